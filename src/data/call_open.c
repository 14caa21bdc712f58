/* SPDX-License-Identifier: Apache-2.0 */
/* Opens SPECs that combine others.  Room: data. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/call.h"
#include "data/combine/combine.h"

/* The parts of a combination, opened. */
typedef struct opened {
    const leati_call *call;
    leat_sequence *parts[LEAT_COMBINE_MAX_PARTS]; /* point into `memory` */
    leat_sequence *memory;
    leat_sequence *out;
} opened;

enum { SEQUENCE_BYTES = sizeof(leat_sequence) };

static leat_status finish_concat(opened *o, leat_error *err) {
    return leat_sequence_concat(o->parts, o->call->part_count, o->out, SEQUENCE_BYTES, err);
}

static leat_status finish_zip(opened *o, leat_error *err) {
    return leat_sequence_zip(o->parts, o->call->part_count, o->out, SEQUENCE_BYTES, err);
}

/* Reads numbers like "0.7,0.3", independently of the locale. */
static leat_status read_weights(const opened *o, double *out, leat_error *err) {
    const char *text = leati_call_option(o->call, "weights");
    int count = 0;
    for (int i = 0; i < o->call->part_count; ++i) out[i] = 1;
    if (!text) return LEAT_OK;
    for (const char *at = text;; ++at) {
        double value = 0, place = 1;
        const char *start = at;
        for (; *at >= '0' && *at <= '9'; ++at) value = 10 * value + (*at - '0');
        if (*at == '.')
            for (++at; *at >= '0' && *at <= '9'; ++at) value += (*at - '0') * (place /= 10);
        if (at == start || (*at && *at != ',') || count == o->call->part_count) {
            count = -1;
            break;
        }
        out[count++] = value;
        if (!*at) break;
    }
    if (count == o->call->part_count) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "weights=%s: expected %d numbers with commas between them", text,
                      o->call->part_count);
}

static leat_status finish_mix(opened *o, leat_error *err) {
    double weights[LEAT_COMBINE_MAX_PARTS];
    int64_t samples = 0;
    LEATI_TRY(read_weights(o, weights, err));
    LEATI_TRY(leati_call_integer(o->call, "samples", 1, &samples, err));
    return leat_sequence_mix(o->parts, weights, o->call->part_count, samples, o->out, SEQUENCE_BYTES, err);
}

/* Reads an integer that must be given. */
static leat_status require(const opened *o, const char *key, int64_t least, int64_t *out, leat_error *err) {
    if (!leati_call_option(o->call, key))
        return leati_fail(err, LEAT_EINVAL, "%s needs the option %s=N", o->call->name, key);
    return leati_call_integer(o->call, key, least, out, err);
}

static leat_status finish_repeat(opened *o, leat_error *err) {
    int64_t times = 0;
    LEATI_TRY(require(o, "times", 1, &times, err));
    return leat_sequence_repeat(o->parts[0], times, o->out, SEQUENCE_BYTES, err);
}

static leat_status finish_take(opened *o, leat_error *err) {
    int64_t count = 0;
    LEATI_TRY(require(o, "count", 1, &count, err));
    return leat_sequence_slice(o->parts[0], 0, count, 1, o->out, SEQUENCE_BYTES, err);
}

static leat_status finish_skip(opened *o, leat_error *err) {
    int64_t count = 0;
    LEATI_TRY(require(o, "count", 0, &count, err));
    return leat_sequence_slice(o->parts[0], count, INT64_MAX, 1, o->out, SEQUENCE_BYTES, err);
}

static leat_status finish_shard(opened *o, leat_error *err) {
    int64_t rank = 0, world = 0;
    LEATI_TRY(require(o, "rank", 0, &rank, err));
    LEATI_TRY(require(o, "world", 1, &world, err));
    if (rank >= world)
        return leati_fail(err, LEAT_EINVAL, "rank=%lld: expected 0 to %lld (world=%lld)", (long long)rank,
                          (long long)world - 1, (long long)world);
    return leat_sequence_slice(o->parts[0], rank, INT64_MAX, world, o->out, SEQUENCE_BYTES, err);
}

static leat_status finish_targets(opened *o, leat_error *err) {
    return leat_sequence_as_targets(o->parts[0], o->out, SEQUENCE_BYTES, err);
}

/* ---- Windows ---- */

static leat_status read_flag(const opened *o, const char *key, bool *out, leat_error *err) {
    const char *text = leati_call_option(o->call, key);
    *out = text && strcmp(text, "true") == 0;
    if (!text || *out || strcmp(text, "false") == 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "%s=%s: expected true or false", key, text);
}

static leat_status read_flags(const opened *o, leat_window_options *options, leat_error *err) {
    LEATI_TRY(leati_call_integer(o->call, "sampling_rate", 1, &options->sampling_rate, err));
    LEATI_TRY(leati_call_integer(o->call, "start_index", 0, &options->start, err));
    LEATI_TRY(read_flag(o, "reverse", &options->reverse, err));
    return read_flag(o, "squeeze", &options->squeeze, err);
}

static leat_status finish_timeseries(opened *o, leat_error *err) {
    leat_window_options options = leat_window_options_default();
    LEATI_TRY(require(o, "sequence_length", 1, &options.length, err));
    LEATI_TRY(leati_call_integer(o->call, "sequence_stride", 1, &options.stride, err));
    LEATI_TRY(leati_call_integer(o->call, "end_index", 1, &options.end, err));
    LEATI_TRY(leati_call_integer(o->call, "target", 0, &options.target, err));
    LEATI_TRY(read_flags(o, &options, err));
    return leat_sequence_windows(o->parts[0], &options, o->out, SEQUENCE_BYTES, err);
}

/* Keras counts the rows of a window before it takes every sampling_rate-th of them, and its end_index is the last
 * row. */
static leat_status finish_timeseries_generator(opened *o, leat_error *err) {
    leat_window_options options = leat_window_options_default();
    int64_t last = INT64_MAX - 1;
    LEATI_TRY(require(o, "length", 1, &options.target, err));
    LEATI_TRY(leati_call_integer(o->call, "stride", 1, &options.stride, err));
    LEATI_TRY(leati_call_integer(o->call, "end_index", 0, &last, err));
    LEATI_TRY(read_flags(o, &options, err));
    options.length = (options.target - 1) / options.sampling_rate + 1;
    options.end = last + 1;
    return leat_sequence_windows(o->parts[0], &options, o->out, SEQUENCE_BYTES, err);
}

/* ---- Caches ---- */

static leat_status refuse_augmentation(void *context, const char *source, leat_error *err) {
    (void)context;
    if (!strstr(source, "?augment=") && !strstr(source, "&augment=")) return LEAT_OK;
    return leati_fail(
        err, LEAT_ENOTSUP,
        "a cache around augment=... would repeat the augmentation of the first pass: the option "
        "cache=FILE or cache=memory of images keeps the pictures without it");
}

static leat_status finish_cache(opened *o, leat_error *err) {
    leat_cache_options options = leat_cache_options_default();
    leati_text key = {0};
    char *fingerprint = NULL;
    LEATI_TRY(leati_visit_sources(o->call->parts[0], 0, refuse_augmentation, NULL, err));
    const char *memory = leati_call_option(o->call, "memory");
    if (memory) LEATI_TRY(leati_read_bytes(&options.memory, "memory=", memory, err));
    options.file = leati_call_option(o->call, "file");
    if (!options.file) return leat_sequence_cache(o->parts[0], &options, o->out, SEQUENCE_BYTES, err);
    LEATI_TRY(leat_source_fingerprint(o->call->parts[0], &fingerprint, err));
    leati_text_add(&key, "%s %s", o->call->parts[0], fingerprint);
    leati_free(fingerprint);
    options.key = key.data;
    leat_status status = key.failed ? leati_fail_memory(err, key.length, "the key of a cache")
                                    : leat_sequence_cache(o->parts[0], &options, o->out, SEQUENCE_BYTES, err);
    leati_text_fini(&key);
    return status;
}

/* ---- Opening ---- */

static const struct {
    const char *name;
    leat_status (*finish)(opened *o, leat_error *err);
} finishers[] = {
#define FINISHER(name, parts, options, least, most, text) {#name, finish_##name},
    LEATI_CALL_LIST(FINISHER)
#undef FINISHER
};

static leat_status finish(opened *o, int64_t batch_size, leat_error *err) {
    for (size_t i = 0; i < sizeof finishers / sizeof *finishers; ++i) {
        if (strcmp(finishers[i].name, o->call->name) != 0) continue;
        LEATI_TRY(leati_prefix(finishers[i].finish(o, err), err, "%s", o->call->name));
        leati_combined_set_batch_size(o->out, batch_size);
        return LEAT_OK;
    }
    return leati_fail(err, LEAT_EINVAL, "no combination '%s'", o->call->name);
}

/* The rows of a window are made in runs, which may be longer than a batch. */
static leat_source_options options_of_parts(const leati_call *call, const leat_source_options *options) {
    enum { LEAST_ROWS = 1024 };
    leat_source_options made = *options;
    if (strncmp(call->name, "timeseries", strlen("timeseries")) == 0 && made.batch_size < LEAST_ROWS)
        made.batch_size = LEAST_ROWS;
    return made;
}

static leat_status open_call(leat_sequence *out, const leati_call *call, const leat_source_options *options,
                             int depth, leat_error *err) {
    opened o = {.call = call, .out = out};
    leat_status status = LEAT_OK;
    const leat_source_options inner = options_of_parts(call, options);
    o.memory = leati_calloc((size_t)call->part_count, sizeof *o.memory);
    if (!o.memory) return leati_fail_memory(err, sizeof *o.memory, "the parts of a SPEC");
    for (int i = 0; i < call->part_count && status == LEAT_OK; ++i) {
        o.parts[i] = &o.memory[i];
        status = leati_open_text(o.parts[i], call->parts[i], &inner, depth + 1, err);
        if (!leati_is_call(call->parts[i])) status = leati_prefix(status, err, "'%.100s'", call->parts[i]);
    }
    if (status == LEAT_OK) status = finish(&o, options->batch_size, err);
    for (int i = 0; i < call->part_count; ++i) leat_sequence_destroy(&o.memory[i]);
    leati_free(o.memory);
    return status;
}

leat_status leati_call_open(leat_sequence *out, const char *text, const leat_source_options *options,
                            int depth, leat_error *err) {
    leati_call call;
    LEATI_TRY(leati_check_batch_size(options->batch_size, err));
    if (depth == LEATI_CALL_MAX_DEPTH)
        return leati_fail(err, LEAT_EINVAL, "expected at most %d combinations inside of each other",
                          LEATI_CALL_MAX_DEPTH);
    LEATI_TRY(leati_call_parse(&call, text, err));
    leat_status status = open_call(out, &call, options, depth, err);
    leati_call_fini(&call);
    return status;
}
