/* SPDX-License-Identifier: Apache-2.0 */
/* Sources whose samples are pieces of large files ("shards"), found by an index of offsets: the members of
 * tar files that
 * have the same key, or the records of TFRecord files.  A worker reads the bytes of a sample when it makes
 * the batch, so
 * that a pass can be shuffled over all shards. */
#ifndef LEATI_DATA_SHARDS_RECORDS_H
#define LEATI_DATA_SHARDS_RECORDS_H

#include "data/images.h"
#include "data/archive/paths.h"
#include "data/numbered/numbered.h"

/* The form in which a field is stored. */
typedef enum leati_field_form {
    LEATI_FIELD_UNKNOWN,
    LEATI_FIELD_PICTURE, /* a file of a picture */
    LEATI_FIELD_CLASS,   /* the text of an integer */
    LEATI_FIELD_NPY,     /* a .npy file */
    LEATI_FIELD_NUMBERS, /* numbers of a tf.train.Feature */
    LEATI_FIELD_RAW      /* the bytes of the elements, as tf.io.decode_raw reads them */
} leati_field_form;

/* What one tensor is made of. */
typedef struct leati_field {
    const char *name; /* as in the SPEC */
    leat_batch_part part;
    leati_field_form form;
    leat_dtype dtype; /* of the stored elements */
    int rank;         /* -1: not known yet */
    int64_t shape[LEAT_MAX_RANK - 1];
    bool has_dtype; /* the SPEC says it */
    int64_t count;  /* elements of a sample */
    int64_t onehot; /* classes; 0: none */
} leati_field;

/* A piece of a shard. */
typedef struct leati_span {
    uint64_t offset;
    uint32_t bytes;
    int32_t shard; /* -1: the sample does not have the field */
} leati_span;

typedef struct leati_records leati_records;

/* Gives the bytes of a field in a sample's piece; *out points into `bytes`.  NULL: a piece is a field. */
typedef leat_status leati_find_field(const leati_records *records, const leati_field *field,
                                     const unsigned char *bytes, size_t count, const unsigned char **out,
                                     size_t *out_count, leat_error *err);

/* Decodes numbers of a field: field->count elements of field->dtype. */
typedef leat_status leati_decode_field(const leati_field *field, const unsigned char *bytes, size_t count,
                                       void *dst, leat_error *err);

struct leati_records {
    leati_numbered numbered; /* first */
    leati_path_list shards;
    unsigned char **contents; /* (shards): the unpacked bytes of compressed shards; NULL: read the file */
    size_t *content_bytes;
    leati_field fields[LEAT_BATCH_MAX_TENSORS];
    int field_count;
    char *texts;       /* the names of the fields */
    leati_span *spans; /* (samples, spans_per_sample) */
    int64_t capacity;
    int spans_per_sample; /* one for each field, or 1 */
    leati_find_field *find;
    leati_decode_field *decode;
    leati_image_choices choices; /* of the pictures */
    float *table;                /* the scaled values of all 256 bytes; NULL: pictures are uint8 */
    int64_t onehot;
    int64_t left_out; /* pieces that the index does not have */
    leati_bad_samples bad;
    int64_t first;  /* the sample that says which types and shapes there are */
    int64_t *sizes; /* of leat_source_note_sizes; borrowed; NULL: nobody asked */
};

/* Makes empty records and parses the options, fields among them.  Errors: LEAT_EINVAL; LEAT_ENOMEM. */
leat_status leati_records_create(leati_records **out, const leati_spec *spec, const leati_settings *settings,
                                 leat_error *err);
void leati_records_destroy(leati_records *records);

/* Appends a sample; the caller writes its spans. */
leat_status leati_records_add(leati_records *records, leati_span **out, leat_error *err);

/* Describes a piece that is left out.  Returns LEAT_OK if the options say that bad data is skipped,
 * otherwise `status`. */
leat_status leati_records_leave_out(leati_records *records, leat_status status, const leat_error *problem,
                                    leat_error *err);

/* Adds a field.  Errors: LEAT_EINVAL too many. */
leat_status leati_records_add_field(leati_records *records, char *name, leat_batch_part part,
                                    leat_error *err);

/* Determines forms, types and shapes of the fields by the first sample, and makes the sequence, which owns
 * the records.
 * On failure the records are destroyed. */
leat_status leati_records_finish(leat_sequence *out, leati_records *records,
                                 const leat_source_options *options, leat_error *err);

#endif
