/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences that are made of other sequences: several one after the other, side by side, or mixed; a part of one, or
 * one several times; windows of a time series; a cache.  The SPECs of leat/source.h have the same functions, such as
 * concat(SPEC; SPEC).
 *
 * A combination takes sequences whose samples have numbers, that is, with get_samples: all sources of leat have it.
 * The combination has it, too, so that the feed shuffles its samples and combinations can be combined.  Each random
 * choice is a function of (seed, pass, sample).
 *
 * All functions take over the sequences that they receive: on success these structs are zeroed, and the combination
 * destroys what they were; on failure they are unchanged.  `out` is owned by the caller (leat_sequence_destroy), and
 * zeroed on failure; `size` is sizeof *out.
 *
 * Errors of all functions: LEAT_EINVAL an argument; LEAT_ENOTSUP a sequence has no get_samples, or it has
 * on_epoch_end; LEAT_ESHAPE the sequences do not fit together; LEAT_ENOMEM.  Threads: any; any number of threads may
 * call `get` of a combination at the same time, if they may call `get` of its parts. */
#ifndef LEAT_COMBINE_H
#define LEAT_COMBINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/sequence.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The largest number of sequences that one function combines. */
#define LEAT_COMBINE_MAX_PARTS 64

/** Puts sequences one after the other: first all samples of parts[0], then those of parts[1], and so on.  All parts
 *  have the same tensors; the names are those of the first part.
 *  @param parts  `count` pointers to different structs.
 *  Errors: see above; LEAT_ESHAPE also if the tensors differ. */
LEAT_API LEAT_CHECKED leat_status leat_sequence_concat(leat_sequence *const *parts, int count,
                                                       leat_sequence *out, size_t size, leat_error *err);

/** Puts sequences side by side: sample i has the inputs of sample i of all parts, in order, then the targets of all
 *  parts, then the sample weights.  All parts draw the same random numbers, so that pictures and masks that are read
 *  with the same augmentation move together.  A sample that one part leaves out is left out as a whole.
 *  @param parts  `count` pointers to different structs.
 *  Errors: see above; LEAT_ESHAPE also if the parts have different numbers of samples. */
LEAT_API LEAT_CHECKED leat_status leat_sequence_zip(leat_sequence *const *parts, int count,
                                                    leat_sequence *out, size_t size, leat_error *err);

/** Mixes sequences: in each run of samples, part k has weights[k] / (sum of the weights) of them, as exactly as
 *  integers allow.  A pass takes samples of a part without repetition, in an order that is a function of (seed, pass),
 *  until the part has no more; then it begins anew in another order.  In leat_sequence_split and leat_sequence_cache
 *  the order is the same for all seeds and passes, so that a sample's number says what the sample is.
 *  @param parts  `count` pointers to different structs, whose tensors are the same.
 *  @param weights  `count` numbers above 0; they are compared with a precision of 1e-6 of their sum.
 *  @param samples  The number of samples of a pass; 0: as many as there are until a sample would be repeated.
 *  Errors: see above. */
LEAT_API LEAT_CHECKED leat_status leat_sequence_mix(leat_sequence *const *parts, const double *weights,
                                                    int count, int64_t samples, leat_sequence *out,
                                                    size_t size, leat_error *err);

/** Repeats a sequence: a pass of the result has all samples `times` times, with other random numbers each time.
 *  Errors: see above. */
LEAT_API LEAT_CHECKED leat_status leat_sequence_repeat(leat_sequence *whole, int64_t times,
                                                       leat_sequence *out, size_t size, leat_error *err);

/** Selects the samples start, start + step, ... below stop, like whole[start:stop:step] in Python: the first n
 *  (0, n, 1), all but the first n (n, INT64_MAX, 1), the share of one of several ranks (rank, INT64_MAX, world).
 *  @param stop  Larger than the number of samples: that number.
 *  Errors: see above; LEAT_EINVAL also if no sample is left. */
LEAT_API LEAT_CHECKED leat_status leat_sequence_slice(leat_sequence *whole, int64_t start, int64_t stop,
                                                      int64_t step, leat_sequence *out, size_t size,
                                                      leat_error *err);

/** Makes the inputs of a sequence targets, for leat_sequence_zip.  Its targets and sample weights are left out.
 *  Errors: see above. */
LEAT_API LEAT_CHECKED leat_status leat_sequence_as_targets(leat_sequence *whole, leat_sequence *out,
                                                           size_t size, leat_error *err);

/** The windows of a time series.  Initialize by leat_window_options_default(). */
typedef struct leat_window_options {
    size_t size;           /* sizeof the struct, set by leat_window_options_init */
    int64_t length;        /* time steps of a window; at least 1; required */
    int64_t stride;        /* rows from the beginning of a window to that of the next one; default 1 */
    int64_t sampling_rate; /* rows from one time step of a window to the next; default 1 */
    int64_t start, end;    /* the rows from `start` on and before `end` are used; default 0, INT64_MAX: all */
    /* the row whose targets and sample weights belong to a window, from the window's first row on; default 0 */
    int64_t target;
    int64_t starts; /* windows begin in that many rows after `start`; default INT64_MAX */
    bool reverse;   /* the last time step comes first; default false */
    /* inputs of the shape (1,) become windows of the shape (length,) instead of (length, 1); default false */
    bool squeeze;
} leat_window_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_window_options_init(leat_window_options *options, size_t size);
/** Returns the default options. */
static inline leat_window_options leat_window_options_default(void) {
    leat_window_options options;
    leat_window_options_init(&options, sizeof options);
    return options;
}

/** Makes windows of the samples of a sequence, which are the rows of a time series.  Window i has the inputs of rows
 *  start + i * stride + k * sampling_rate, 0 <= k < length, as (length, ...), and the targets and sample weights of
 *  the row start + i * stride + target.  Rows are gathered when a batch is made.  There are as many windows as have all
 *  their rows, and the row of their targets, before `end`.
 *  Source: keras.utils.timeseries_dataset_from_array (with target 0) and
 *  keras.preprocessing.sequence.TimeseriesGenerator (target = its `length`, length = that / sampling_rate rounded up,
 *  end = its end_index + 1).
 *  Errors: see above; LEAT_ESHAPE no window fits, or an input has LEAT_MAX_RANK - 1 dimensions. */
LEAT_API LEAT_CHECKED leat_status leat_sequence_windows(leat_sequence *whole,
                                                        const leat_window_options *options,
                                                        leat_sequence *out, size_t size, leat_error *err);

/** Options of a cache.  Initialize by leat_cache_options_default(). */
typedef struct leat_cache_options {
    size_t size; /* sizeof the struct, set by leat_cache_options_init */
    /* the path of the file that keeps the samples; NULL (default): memory, which worker processes share */
    const char *file;
    /* a text that says what the samples are: with another text, a file is made anew; required with `file` */
    const char *key;
    size_t memory; /* bytes that a cache in memory may take; 0 (default): half of the machine's memory */
} leat_cache_options;

/** Like leat_window_options_init, for the options of a cache.  Threads: any. */
LEAT_API void leat_cache_options_init(leat_cache_options *options, size_t size);
/** Returns the default options. */
static inline leat_cache_options leat_cache_options_default(void) {
    leat_cache_options options;
    leat_cache_options_init(&options, sizeof options);
    return options;
}

/** Keeps the samples of a sequence after they were made once.  For sequences that draw random numbers it keeps what was
 *  drawn first; a mixture has one order.  Samples that do not fit into memory are made each time.
 *
 *  A file is made during the first pass, under a temporary name, and gets its name when it has all samples; later it
 *  is mapped, and the checksum of each sample is checked when the sample is first read.  Two programs may make the
 *  same file at the same time.  If the disk is full, or the file cannot be written, the log says so, and samples are
 *  made each time.  A sample that was left out (LEAT_ESKIPPED) is not kept, and the file is then not finished.
 *  Errors: see above; LEAT_EINVAL also if `file` is not a cache; LEAT_ENOTSUP also if the samples vary in shape. */
LEAT_API LEAT_CHECKED leat_status leat_sequence_cache(leat_sequence *whole, const leat_cache_options *options,
                                                      leat_sequence *out, size_t size, leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
