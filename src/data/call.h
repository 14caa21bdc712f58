/* SPDX-License-Identifier: Apache-2.0 */
/* SPECs that combine other SPECs: NAME(SPEC[; SPEC...][; KEY=VALUE...]). */
#ifndef LEATI_DATA_CALL_H
#define LEATI_DATA_CALL_H

#include "leat/combine.h"
#include "leat/source.h"

/* All combinations: name, parts, options, least and largest number of parts, description. */
#define LEATI_CALL_LIST(X)                                                                                   \
    X(concat, "SPEC; SPEC...", "", 1, LEAT_COMBINE_MAX_PARTS, "The samples of one after those of another.")  \
    X(zip, "SPEC; SPEC...", "", 1, LEAT_COMBINE_MAX_PARTS,                                                   \
      "Sample i has the inputs of sample i of all, then their targets; equal random numbers for all.")       \
    X(mix, "SPEC; SPEC...; weights=3,1", "weights samples", 1, LEAT_COMBINE_MAX_PARTS,                       \
      "Samples in these proportions, until one would repeat, or samples=N of them in a pass.")               \
    X(repeat, "SPEC; times=N", "times", 1, 1, "All samples N times in a pass.")                              \
    X(take, "SPEC; count=N", "count", 1, 1, "The first N samples.")                                          \
    X(skip, "SPEC; count=N", "count", 1, 1, "All samples but the first N.")                                  \
    X(shard, "SPEC; rank=R; world=W", "rank world", 1, 1, "Every W-th sample, from sample R on.")            \
    X(targets, "SPEC", "", 1, 1, "The inputs become targets, for zip; other tensors are left out.")          \
    X(timeseries, "SPEC; sequence_length=N",                                                                 \
      "sequence_length sequence_stride sampling_rate start_index end_index target reverse squeeze", 1, 1,    \
      "Windows of N rows, as Keras's timeseries_dataset_from_array makes them: sequence_stride=1, "          \
      "sampling_rate=1, start_index=0, end_index=N.  The targets are those of the row number target=0 of "   \
      "the window.  reverse=true; squeeze=true makes (N, 1) to (N,).")                                       \
    X(timeseries_generator, "SPEC; length=N",                                                                \
      "length sampling_rate stride start_index end_index reverse squeeze", 1, 1,                             \
      "Windows as Keras's TimeseriesGenerator makes them, with its arguments.")                              \
    X(cache, "SPEC[; file=PATH]", "file memory", 1, 1,                                                       \
      "Samples are kept after the first pass: in memory (memory=BYTES of it, with K, M or G), or in a "      \
      "file, which is made anew when the SPEC or its files change.")

enum { LEATI_CALL_MAX_OPTIONS = 16, LEATI_CALL_MAX_DEPTH = 16 };

typedef struct leati_call {
    char *text; /* a copy of the SPEC, into which the members below point */
    const char *name;
    char *parts[LEAT_COMBINE_MAX_PARTS]; /* SPECs */
    int part_count;
    char *keys[LEATI_CALL_MAX_OPTIONS], *values[LEATI_CALL_MAX_OPTIONS]; /* decoded */
    int option_count;
} leati_call;

/* Returns true if the SPEC is a combination: a name and a bracket. */
bool leati_is_call(const char *text);

/* Parses a combination, and checks its name, its options' names and the number of its parts.  Errors: LEAT_EINVAL,
 * with what was expected and where; LEAT_ENOMEM.  After a failure there is nothing to free. */
leat_status leati_call_parse(leati_call *out, const char *text, leat_error *err);
void leati_call_fini(leati_call *call);

/* Returns the value of an option; NULL: it was not given. */
const char *leati_call_option(const leati_call *call, const char *key);

/* Reads an option that is an integer of at least `least`; *out keeps its value if the option was not given.  Errors:
 * LEAT_EINVAL. */
leat_status leati_call_integer(const leati_call *call, const char *key, int64_t least, int64_t *out,
                               leat_error *err);

/* Opens any SPEC, a combination or a source.  `depth`: the number of combinations around it.  Errors: those of
 * leat_source_open. */
leat_status leati_open_text(leat_sequence *out, const char *text, const leat_source_options *options,
                            int depth, leat_error *err);

/* Opens a combination. */
leat_status leati_call_open(leat_sequence *out, const char *text, const leat_source_options *options,
                            int depth, leat_error *err);

/* Calls visit(context, SPEC) for each source of a SPEC, in order, until one fails; for a source itself, once.
 * Errors: those of leati_call_parse and of visit. */
leat_status leati_visit_sources(const char *text, int depth,
                                leat_status (*visit)(void *context, const char *source, leat_error *err),
                                void *context, leat_error *err);

/* Reads a number of bytes with K, M or G, such as 4G.  `key` stands before the text in messages.
 * Errors: LEAT_EINVAL. */
leat_status leati_read_bytes(size_t *out, const char *key, const char *text, leat_error *err);

#endif
