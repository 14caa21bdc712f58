/* SPDX-License-Identifier: Apache-2.0 */
/* Makes batches of pieces of shards: reads the pieces, and decodes each field.  Room: data. */
#include "data/shards/records.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/npy.h"
#include "data/samples.h"
#include "tensor/number.h"

void leati_records_destroy(leati_records *records) {
    if (!records) return;
    for (int64_t i = 0; records->contents && i < records->shards.count; ++i) leati_free(records->contents[i]);
    leati_free(records->contents);
    leati_free(records->content_bytes);
    leati_free(records->spans);
    leati_free(records->table);
    leati_path_list_fini(&records->shards);
    leati_free(records->texts);
    leati_free(records);
}

leat_status leati_records_add(leati_records *records, leati_span **out, leat_error *err) {
    const int width = records->spans_per_sample;
    if (records->numbered.samples == records->capacity) {
        const int64_t capacity = records->capacity ? 2 * records->capacity : 256;
        leati_span *spans = leati_realloc(records->spans, (size_t)(capacity * width), sizeof *spans);
        if (!spans) return leati_fail_memory(err, (size_t)(capacity * width) * sizeof *spans, "an index");
        records->spans = spans;
        records->capacity = capacity;
    }
    *out = records->spans + records->numbered.samples++ * width;
    for (int i = 0; i < width; ++i) (*out)[i] = (leati_span){.shard = -1};
    return LEAT_OK;
}

leat_status leati_records_leave_out(leati_records *records, leat_status status, const leat_error *problem,
                                    leat_error *err) {
    LEATI_TRY(leati_bad_sample(&records->bad, status, problem, err));
    ++records->left_out;
    return LEAT_OK;
}

/* ---- Reading ---- */

/* The shard that is open, and the bytes of the current piece. */
typedef struct reading {
    int fd;
    int32_t shard;
    unsigned char *buffer;
    size_t capacity;
} reading;

static leat_status open_shard(const leati_records *records, reading *in, int32_t shard, leat_error *err) {
    if (in->fd >= 0 && in->shard == shard) return LEAT_OK;
    if (in->fd >= 0) close(in->fd);
    const char *path = records->shards.paths[shard];
    in->shard = shard;
    in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in->fd >= 0) return LEAT_OK;
    return leati_fail_errno(err, errno == ENOENT ? LEAT_ENOTFOUND : LEAT_EIO, errno, "cannot open '%s'",
                            path);
}

static leat_status read_file(const leati_records *records, reading *in, const leati_span *span,
                             leat_error *err) {
    LEATI_TRY(open_shard(records, in, span->shard, err));
    if (in->capacity < span->bytes || !in->buffer) {
        const size_t capacity = (size_t)span->bytes + span->bytes / 4 + 1;
        unsigned char *buffer = leati_realloc(in->buffer, capacity, 1);
        if (!buffer) return leati_fail_memory(err, capacity, "a sample");
        in->buffer = buffer;
        in->capacity = capacity;
    }
    for (size_t done = 0; done < span->bytes;) {
        const ssize_t count =
            pread(in->fd, in->buffer + done, span->bytes - done, (off_t)(span->offset + done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0)
            return leati_fail_errno(err, LEAT_EIO, errno, "cannot read '%s'",
                                    records->shards.paths[span->shard]);
        if (count == 0)
            return leati_fail(err, LEAT_EIO, "'%s' was shortened: it ends at byte %llu",
                              records->shards.paths[span->shard], (unsigned long long)(span->offset + done));
        done += (size_t)count;
    }
    return LEAT_OK;
}

/* Gives the bytes of a piece until the next call. */
static leat_status read_span(const leati_records *records, reading *in, const leati_span *span,
                             const unsigned char **out, leat_error *err) {
    if (span->shard < 0) return leati_fail(err, LEAT_EFORMAT, "the sample does not have it");
    if (records->contents && records->contents[span->shard]) {
        *out = records->contents[span->shard] + span->offset;
        return LEAT_OK;
    }
    LEATI_TRY(read_file(records, in, span, err));
    *out = in->buffer;
    return LEAT_OK;
}

static void end_reading(reading *in) {
    if (in->fd >= 0) close(in->fd);
    leati_free(in->buffer);
}

/* ---- Decoding ---- */

static leat_status decode_picture(const leati_records *records, const unsigned char *bytes, size_t count,
                                  void *dst, int64_t *size, leat_error *err) {
    const leati_image_choices *c = &records->choices;
    const leati_picture_options options = leati_image_decoding(c);
    leati_picture in, out = {c->width, c->height, (int)c->color, dst};
    LEATI_TRY(leati_picture_decode(&in, bytes, count, &options, err));
    if (size && size[0] == 0) {
        size[0] = in.height;
        size[1] = in.width;
    }
    leat_status status =
        records->table ? leati_picture_allocate(&out, out.width, out.height, out.channels, err) : LEAT_OK;
    if (status == LEAT_OK) status = leati_picture_fit(&out, &in, c->filter, c->fit, err);
    if (records->table && out.pixels != dst) {
        if (status == LEAT_OK) leati_image_write_scaled(&out, records->table, dst);
        leati_picture_fini(&out);
    }
    leati_picture_fini(&in);
    return status;
}

static leat_status read_class(const unsigned char *bytes, size_t count, int64_t *out, leat_error *err) {
    size_t at = 0;
    while (count > 0 && (bytes[count - 1] == '\n' || bytes[count - 1] == '\r' || bytes[count - 1] == ' '))
        --count;
    const bool negative = count > 0 && bytes[0] == '-';
    at += negative;
    *out = 0;
    for (; at < count && bytes[at] >= '0' && bytes[at] <= '9' && *out <= INT32_MAX; ++at)
        *out = 10 * *out + (bytes[at] - '0');
    if (at == count && count > (size_t)negative && *out <= INT32_MAX) {
        if (negative) *out = -*out;
        return LEAT_OK;
    }
    return leati_fail(err, LEAT_EFORMAT, "expected the text of an integer, found '%.*s'",
                      count < 20 ? (int)count : 20, (const char *)bytes);
}

static leat_status write_onehot(int64_t label, int64_t classes, float *dst, leat_error *err) {
    if (label < 0 || label >= classes)
        return leati_fail(err, LEAT_EINVAL, "the label is %lld, expected 0 to %lld (onehot=%lld)",
                          (long long)label, (long long)classes - 1, (long long)classes);
    memset(dst, 0, (size_t)classes * sizeof *dst);
    dst[label] = 1;
    return LEAT_OK;
}

/* Parses a .npy file that is a sample of a field. */
static leat_status parse_npy(leati_array *out, const leati_field *field, const unsigned char *bytes,
                             size_t count, leat_error *err) {
    LEATI_TRY(leati_npy_parse(out, bytes, count, field->name, err));
    if (out->fortran && out->rank > 1)
        return leati_fail(err, LEAT_ENOTSUP, "arrays in Fortran order are not supported here");
    return LEAT_OK;
}

static leat_status decode_npy(const leati_field *field, const unsigned char *bytes, size_t count, void *dst,
                              leat_error *err) {
    leati_array array;
    LEATI_TRY(parse_npy(&array, field, bytes, count, err));
    if (array.dtype != field->dtype || leati_array_count(&array) != field->count)
        return leati_fail(err, LEAT_ESHAPE,
                          "expected %lld elements of %s as in the first sample, found %lld of %s",
                          (long long)field->count, leat_dtype_name(field->dtype),
                          (long long)leati_array_count(&array), leat_dtype_name(array.dtype));
    if (array.bytes > 0) memcpy(dst, array.data, array.bytes);
    if (array.swapped) leati_swap_bytes(dst, leat_dtype_bytes(array.dtype), (size_t)field->count);
    return LEAT_OK;
}

/* Decodes elements of the stored type. */
static leat_status decode_elements(const leati_records *records, const leati_field *field,
                                   const unsigned char *bytes, size_t count, void *dst, leat_error *err) {
    if (field->form == LEATI_FIELD_NUMBERS) return records->decode(field, bytes, count, dst, err);
    if (field->form == LEATI_FIELD_NPY) return decode_npy(field, bytes, count, dst, err);
    if (field->form == LEATI_FIELD_CLASS) {
        int64_t label = 0;
        LEATI_TRY(read_class(bytes, count, &label, err));
        memcpy(dst, &(int32_t){(int32_t)label}, sizeof(int32_t));
        return LEAT_OK;
    }
    if (count != leati_count_bytes(field->count, leat_dtype_bytes(field->dtype)))
        return leati_fail(err, LEAT_ESHAPE, "expected %zu bytes, found %zu",
                          leati_count_bytes(field->count, leat_dtype_bytes(field->dtype)), count);
    if (count > 0) memcpy(dst, bytes, count);
    return LEAT_OK;
}

/* @param size  Receives height and width of a picture, if it is 0; NULL: nobody asked. */
static leat_status decode_field(const leati_records *records, const leati_field *field,
                                const unsigned char *bytes, size_t count, void *dst, int64_t *size,
                                leat_error *err) {
    if (records->find) LEATI_TRY(records->find(records, field, bytes, count, &bytes, &count, err));
    if (field->form == LEATI_FIELD_PICTURE) return decode_picture(records, bytes, count, dst, size, err);
    if (field->onehot > 0) {
        uint64_t element = 0;
        LEATI_TRY(decode_elements(records, field, bytes, count, &element, err));
        return write_onehot(leati_integer_at(field->dtype, &element, 0), field->onehot, dst, err);
    }
    if (field->dtype != LEAT_F64) return decode_elements(records, field, bytes, count, dst, err);
    double *numbers = leati_calloc((size_t)field->count, sizeof *numbers);
    if (!numbers) return leati_fail_memory(err, (size_t)field->count * sizeof *numbers, "a sample");
    leat_status status = decode_elements(records, field, bytes, count, numbers, err);
    for (int64_t i = 0; status == LEAT_OK && i < field->count; ++i) ((float *)dst)[i] = (float)numbers[i];
    leati_free(numbers);
    return status;
}

/* ---- Batches ---- */

/* Names the place of a piece in messages. */
static leat_status name_place(const leati_records *records, leat_status status, const leati_span *span,
                              const leati_field *field, leat_error *err) {
    if (span->shard < 0) return leati_prefix(status, err, "'%s'", field->name);
    return leati_prefix(status, err, "'%s', offset %llu, '%s'", records->shards.paths[span->shard],
                        (unsigned long long)span->offset, field->name);
}

/* Writes all fields of a sample into place `at` of the batch. */
static leat_status write_sample(const leati_records *records, reading *in, int64_t sample, int64_t at,
                                leat_batch *batch, leat_error *err) {
    const leati_span *spans = records->spans + sample * records->spans_per_sample, *last = NULL;
    const unsigned char *bytes = NULL;
    for (int k = 0; k < records->field_count; ++k) {
        const leati_span *span = records->spans_per_sample > 1 ? &spans[k] : spans;
        leat_status status = last && span == last ? LEAT_OK : read_span(records, in, span, &bytes, err);
        if (status == LEAT_OK)
            status = decode_field(records, &records->fields[k], bytes, span->bytes,
                                  (unsigned char *)batch->tensors[k].data +
                                      (size_t)at * leati_sample_bytes(&records->numbered.spec.tensors[k]),
                                  records->sizes ? records->sizes + 2 * sample : NULL, err);
        if (status != LEAT_OK) return name_place(records, status, span, &records->fields[k], err);
        last = span;
    }
    return LEAT_OK;
}

static leat_status make_batch(leati_numbered *source, const int64_t *numbers, int64_t count, leat_rng *rng,
                              leat_batch *batch, leat_error *err) {
    leati_records *records = (leati_records *)source;
    (void)rng;
    reading in = {.fd = -1};
    leat_error first = {0};
    leat_status status = LEAT_OK;
    int64_t made = 0;
    for (int64_t i = 0; i < count && status == LEAT_OK; ++i) {
        leat_error problem = {0};
        status = write_sample(records, &in, numbers[i], made, batch, &problem);
        if (status == LEAT_OK)
            ++made;
        else
            status = leati_bad_sample(&records->bad, status, &problem, err);
        if (first.message[0] == '\0') first = problem;
    }
    end_reading(&in);
    if (status == LEAT_OK && made == 0) return leati_bad_batch(&records->bad, count, &first, err);
    batch->size = made;
    for (int k = 0; k < records->field_count; ++k) batch->tensors[k].shape[0] = made;
    return status;
}

bool leati_is_records(const leat_sequence *sequence) {
    return leati_numbered_of(sequence, make_batch) != NULL;
}

leat_status leati_records_note_sizes(const leat_sequence *sequence, int64_t *sizes, leat_error *err) {
    leati_records *records = sequence->user;
    bool has_pictures = false;
    for (int k = 0; k < records->field_count; ++k)
        has_pictures = has_pictures || records->fields[k].form == LEATI_FIELD_PICTURE;
    if (!has_pictures)
        return leati_fail(err, LEAT_ENOTSUP, "expected samples with pictures, received others");
    if (records->choices.scaled_decoding)
        return leati_fail(err, LEAT_ENOTSUP, "with decode=scaled, the sizes of pictures are not known");
    records->sizes = sizes;
    return LEAT_OK;
}

const char *leati_records_place(const leat_sequence *sequence, int64_t number, uint64_t *offset) {
    const leati_records *records = sequence->user;
    const leati_span *span = &records->spans[number * records->spans_per_sample];
    *offset = span->offset;
    return records->shards.paths[span->shard];
}

static void destroy(leati_numbered *source) {
    leati_records_destroy((leati_records *)source);
}

/* ---- The first sample ---- */

/* Determines type and shape of a field by the first sample. */
static leat_status describe_field(leati_records *records, leati_field *field, const unsigned char *bytes,
                                  size_t count, leat_error *err) {
    if (records->find) LEATI_TRY(records->find(records, field, bytes, count, &bytes, &count, err));
    if (field->form == LEATI_FIELD_PICTURE) return LEAT_OK;
    int64_t present = field->count;
    if (field->form == LEATI_FIELD_NPY) {
        leati_array array;
        LEATI_TRY(parse_npy(&array, field, bytes, count, err));
        field->dtype = array.dtype;
        present = leati_array_count(&array);
        if (field->rank < 0) {
            field->rank = array.rank < LEAT_MAX_RANK ? array.rank : LEAT_MAX_RANK - 1;
            memcpy(field->shape, array.shape, (size_t)field->rank * sizeof *field->shape);
        }
    } else if (field->form == LEATI_FIELD_CLASS) {
        field->dtype = LEAT_I32;
        present = 1;
    } else if (field->form == LEATI_FIELD_RAW) {
        if (!field->has_dtype) field->dtype = LEAT_U8;
        present = (int64_t)(count / leat_dtype_bytes(field->dtype));
    }
    if (field->rank < 0 || (field->rank == 0 && field->form == LEATI_FIELD_NPY)) {
        field->rank = 1;
        field->shape[0] = present;
    }
    field->count = leati_shape_count(field->rank, field->shape);
    if (field->count == present && present > 0) return LEAT_OK;
    return leati_fail(err, LEAT_ESHAPE, "the first sample has %lld elements, its shape would need %lld",
                      (long long)present, (long long)field->count);
}

static leat_status add_tensor(leati_records *records, leati_field *field, leat_error *err) {
    const leati_image_choices *c = &records->choices;
    const int64_t picture[] = {c->height, c->width, (int64_t)c->color};
    if (field->form == LEATI_FIELD_PICTURE)
        return leat_batch_spec_add(&records->numbered.spec, field->part, NULL,
                                   records->table ? LEAT_F32 : LEAT_U8, 3, picture, err);
    if (field->part == LEAT_PART_TARGET && records->onehot > 0) {
        if (field->count != 1 || !leati_dtype_is_integer(field->dtype))
            return leati_fail(err, LEAT_ESHAPE, "'%s': onehot needs one integer for each sample",
                              field->name);
        field->onehot = records->onehot;
        return leat_batch_spec_add(&records->numbered.spec, field->part, NULL, LEAT_F32, 1, &records->onehot,
                                   err);
    }
    return leat_batch_spec_add(&records->numbered.spec, field->part, NULL,
                               field->dtype == LEAT_F64 ? LEAT_F32 : field->dtype, field->rank, field->shape,
                               err);
}

static leat_status describe(leati_records *records, leat_error *err) {
    reading in = {.fd = -1};
    leat_status status = LEAT_OK;
    for (int k = 0; k < records->field_count && status == LEAT_OK; ++k) {
        const leati_span *span = &records->spans[records->first * records->spans_per_sample +
                                                 (records->spans_per_sample > 1 ? k : 0)];
        const unsigned char *bytes = NULL;
        status = read_span(records, &in, span, &bytes, err);
        if (status == LEAT_OK) status = describe_field(records, &records->fields[k], bytes, span->bytes, err);
        if (status != LEAT_OK) status = name_place(records, status, span, &records->fields[k], err);
        if (status == LEAT_OK) status = add_tensor(records, &records->fields[k], err);
    }
    end_reading(&in);
    return status;
}

static leat_status finish(leati_records *records, const leat_source_options *options, leat_error *err) {
    LEATI_TRY(leati_check_batch_size(options->batch_size, err));
    if (records->numbered.samples == 0)
        return leati_fail(err, LEAT_EFORMAT, "'%s' has no samples", records->shards.paths[0]);
    records->numbered.spec.batch_size = options->batch_size;
    records->numbered.make = make_batch;
    records->numbered.destroy = destroy;
    LEATI_TRY(
        leati_scaled_bytes(&records->table, records->choices.numerator, records->choices.denominator, err));
    return describe(records, err);
}

leat_status leati_records_finish(leat_sequence *out, leati_records *records,
                                 const leat_source_options *options, leat_error *err) {
    leat_status status = finish(records, options, err);
    if (status != LEAT_OK) {
        leati_records_destroy(records);
        return status;
    }
    records->numbered.depends = records->bad.skipped;
    *out = leati_numbered_sequence(&records->numbered);
    return LEAT_OK;
}
