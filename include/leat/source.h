/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences that leat makes from arrays in memory, and from files that a SPEC names.
 *
 *     SPEC = KIND:PATH[,PATH...][?KEY=VALUE[&KEY=VALUE...]]      idx:x.gz,y.gz?scale=1/255&onehot=10
 *
 * A SPEC may combine others: concat(SPEC; SPEC), take(SPEC; count=100); see leat/combine.h.  leat_source_help()
 * describes the kinds, options and combinations.  Files are mapped, not loaded: if a file is shortened while
 * it is in use, `get` fails with LEAT_EIO.  In all sources the first dimension counts samples.  A batch is a run
 * of consecutive samples; the last batch may be shorter.  A pass can be shuffled by samples (LEAT_SHUFFLE_SAMPLES
 * of the feed).  float64 becomes float32; other data types are kept until the model reads them.  An input or
 * target with one number per sample has the shape (1,), as in Keras. */
#ifndef LEAT_SOURCE_H
#define LEAT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/sequence.h"
#include "leat/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Options of a source.  Initialize them by leat_source_options_default().
 *  Threads: `progress` is called by the thread that opens the source, and by no other. */
typedef struct leat_source_options {
    size_t size;        /* sizeof the struct, set by leat_source_options_init */
    int64_t batch_size; /* samples of a full batch; default 32 */
    /* The file of the statistics of the training data that steps of `images` such as featurewise_center without numbers
     * need (docs/pictures.md): written if there is no such file, otherwise read.  The option statistics of a SPEC takes
     * precedence.  Borrowed for the call; default NULL: without a file, statistics are computed at each opening. */
    const char *statistics;
    bool read_statistics; /* statistics are read, never computed: for validation, evaluation and prediction */
    /* Is told the share, from 0 to 1, of a pass over the data that computes statistics, in the calling thread; it is
     * 1 at the end.  Default NULL. */
    void (*progress)(void *user, double share);
    void *progress_user;
    /* The share that leat_sequence_split will take from the end for validation: statistics are those of the samples
     * before it.  From 0 to less than 1; default 0. */
    double validation_split;
} leat_source_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_source_options_init(leat_source_options *options, size_t size);
/** Returns the default options. */
static inline leat_source_options leat_source_options_default(void) {
    leat_source_options options;
    leat_source_options_init(&options, sizeof options);
    return options;
}

/** One array of samples.  Frozen, since callers pass C arrays of this struct. */
typedef struct leat_array {
    const char
        *name; /* name of the model's input or output layer; NULL or "": layers are matched by position */
    leat_tensor tensor; /* (samples, ...) */
    /* Strides of the tensor in bytes, tensor.rank numbers, as in leat_tensor_copy; a stride may be negative or 0.
     * NULL: the tensor is contiguous and in row-major order.  The numbers are copied. */
    const int64_t *strides;
} leat_array;

/** The arrays of a data set; all have the same number of samples.  Frozen. */
typedef struct leat_arrays {
    const leat_array *inputs;
    const leat_array *targets;
    const leat_array *sample_weights;
    int32_t input_count;
    int32_t target_count;
    int32_t sample_weight_count;
} leat_arrays;

/** Makes a sequence of batches from arrays in memory, as keras.Model.fit does.
 *  @param[out] out  The sequence, owned by the caller (leat_sequence_destroy); zeroed on failure.
 *  @param size  sizeof *out.
 *  @param arrays  The memory of the tensors is borrowed until leat_sequence_destroy; names and structs are copied.
 *  @param options  NULL: the defaults.
 *  Errors: LEAT_EINVAL there is no input, or the batch size is below 1; LEAT_ESHAPE there are no samples, or the
 *  arrays have different numbers of samples; LEAT_EDTYPE unknown data type; LEAT_ENOMEM.
 *  Threads: any; any number of threads may call `get` of the sequence at the same time. */
LEAT_API LEAT_CHECKED leat_status leat_arrays_open(leat_sequence *out, size_t size, const leat_arrays *arrays,
                                                   const leat_source_options *options, leat_error *err);

/** Opens the sequence that a SPEC names.  The first file that is mapped installs a handler of SIGBUS, which
 *  passes on signals that do not concern mapped files.
 *  @param[out] out  The sequence, owned by the caller (leat_sequence_destroy); zeroed on failure.
 *  @param size  sizeof *out.
 *  @param spec  See above, and leat_source_help().
 *  @param options  NULL: the defaults.
 *  Errors: LEAT_EINVAL the SPEC, the message names the nearest known word; LEAT_ENOTFOUND, LEAT_EIO a file;
 *  LEAT_EFORMAT a file is damaged; LEAT_ESHAPE the arrays do not agree; LEAT_ENOMEM; the errors of a plugin.
 *  Threads: as in leat_arrays_open. */
LEAT_API LEAT_CHECKED leat_status leat_source_open(leat_sequence *out, size_t size, const char *spec,
                                                   const leat_source_options *options, leat_error *err);

/** Splits a sequence in two, like the argument validation_split of keras.Model.fit: *last gets the last
 *  `share` of the samples, *first gets the others, floor(samples * (1 - share)) of them.  The samples are split in
 *  their own order; a shuffle of the parts comes later.  *last has no augmentation (leat_sequence.get_plain).
 *  @param whole  Taken: zeroed on success, and destroyed together with the second of the two parts.  Unchanged on
 *  failure.
 *  @param[out] first, last  The parts, owned by the caller (leat_sequence_destroy); zeroed on failure.
 *  @param size  sizeof *first.
 *  Errors: LEAT_EINVAL `share` is not between 0 and 1, or a part would be empty; LEAT_ENOTSUP the sequence has no
 *  get_samples (a generator, most plugins), or it has on_epoch_end, worker_init or worker_fini; LEAT_ENOMEM.
 *  Threads: any; the parts as in leat_arrays_open. */
LEAT_API LEAT_CHECKED leat_status leat_sequence_split(leat_sequence *whole, double share,
                                                      leat_sequence *first, leat_sequence *last, size_t size,
                                                      leat_error *err);

/** Describes the files that a SPEC names, so that leat_source_check_fingerprint can tell later whether a file has
 *  changed: a JSON array with an object for each file, which has its `path`, its size (`bytes`), its modification time
 *  (`modified_s` and `modified_ns`, from 1970 on) and the checksum (`xxh3`) of its content.  For a file of more than
 *  1 MiB, that is the checksum of a sample: the first and the last 64 KiB and 64 blocks of 4 KiB in between.  A
 *  folder of pictures has one object, and so have the files that a range or a pattern such as train-{00..99}.tar
 *  names, with the sum of the sizes, the newest modification time, and the checksum of
 *  paths and sizes.  A CSV list of pictures is described together with the
 *  pictures that it names.  The file of the kind `plugin` is the shared object; files that the plugin itself opens are
 *  not described.
 *  @param spec  As in leat_source_open.
 *  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_EINVAL the SPEC, or a file is not a regular file; LEAT_ENOTFOUND, LEAT_EIO a file; LEAT_ENOMEM.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_source_fingerprint(const char *spec, char **out, leat_error *err);

/** Checks that the files that a SPEC names have not changed since leat_source_fingerprint described them.  A file
 *  whose modification time alone differs counts as changed, and the message then says that size and checksum are the
 *  same: if the file is large, only a sample of its content was compared.
 *  @param spec  As in leat_source_open.
 *  @param recorded  The text that leat_source_fingerprint returned.
 *  Errors: LEAT_EINVAL a file has changed, and the message says which file and how; the SPEC names other files, or
 *  is wrong; LEAT_EFORMAT `recorded` is not the text of a fingerprint; LEAT_ENOTFOUND, LEAT_EIO a file; LEAT_ENOMEM.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_source_check_fingerprint(const char *spec, const char *recorded,
                                                                leat_error *err);

/** Names the files of a source whose samples are files, which is the kind `images`: a JSON object with `classes`, an
 *  array of names in the order of their labels, and `files`, an array with an object for each sample, in the order of
 *  the samples.  The object has the `path` and, if there are classes, the `label`.  Names are escaped as in a SPEC.
 *  @param spec  As in leat_source_open.
 *  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_ENOTSUP the samples of this kind are not files; those of leat_source_open.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_source_files(const char *spec, char **out, leat_error *err);

/** Has a source note the size that each picture has in its file, before it is resized: the first picture of a sample,
 *  of the kinds `images`, `tar` and `tfrecord` and of combinations of them.
 *  @param sequence  Made by leat_source_open, or a combination.
 *  @param[out] sizes  (samples, 2)  When `get` or `get_samples` has decoded a picture in this process, it writes height
 *  and width here.  The memory is borrowed until another call, or leat_sequence_destroy.  NULL: sizes are no longer
 *  noted.
 *  Errors: LEAT_ENOTSUP the sequence has no pictures of these kinds, or has the option decode=scaled; LEAT_ESHAPE,
 *  LEAT_EINVAL, LEAT_EDTYPE its specification was overwritten; LEAT_ENOMEM.
 *  Threads: one thread calls this, before others read. */
LEAT_API LEAT_CHECKED leat_status leat_source_note_sizes(const leat_sequence *sequence, int64_t *sizes,
                                                         leat_error *err);

/** Says where a sample comes from: the path of a picture, or "train-003.tar, offset 71680" in shards, "a.csv, line 7"
 *  in tables, "x.npz, row 5" (from 0) in arrays.  In a combination it is the place in the source, in `zip` that in its
 *  first part.  Paths are escaped as in a SPEC.
 *  @param sequence  Made by leat_source_open, or a combination.
 *  @param sample  0 <= sample < samples.
 *  @param rng  The random numbers with which get_samples would make the sample, by which `mix` chooses; NULL: allowed
 *  if the sequence is no combination.
 *  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_ENOTSUP samples of this kind have no name; LEAT_EINVAL there is no such sample, or the specification
 *  was overwritten; LEAT_ENOMEM.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_source_sample_name(const leat_sequence *sequence, int64_t sample,
                                                          const leat_rng *rng, char **out, leat_error *err);

/** Returns a description of SPECs as plain text: kinds, options, examples.  The text is static.  Threads: any. */
LEAT_API const char *leat_source_help(void);

#ifdef __cplusplus
}
#endif
#endif
