/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of a time series: rows of a sequence, gathered when a batch is made.  Room: data. */
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "data/combine/combine.h"
#include "tensor/sequence.h"

static const leat_window_options defaults = {.stride = 1,
                                             .sampling_rate = 1,
                                             .end = INT64_MAX,
                                             .starts = INT64_MAX};
static const leati_growing type = LEATI_GROWING(leat_window_options, squeeze, &defaults);

void leat_window_options_init(leat_window_options *options, size_t size) {
    leati_growing_init(&type, options, size);
}

typedef struct windows {
    leati_combined base;
    leat_window_options options;
    int input_count;
    size_t input_bytes, other_bytes; /* of one row: of all inputs, and of all other tensors */
} windows;

/* Makes rows of the series: the tensors from `first` up to `last` in the batch, the others in memory that is freed. */
static leat_status make_rows(const windows *w, const int64_t *rows, int64_t count, int first, int last,
                             leati_draws *draws, leat_batch *batch, leat_error *err) {
    const leat_sequence *series = &w->base.parts[0];
    const size_t bytes = leati_count_bytes(count, first == 0 ? w->other_bytes : w->input_bytes);
    leati_target target = {0};
    size_t offset = 0;
    int64_t made = 0;
    unsigned char *dropped = leati_calloc_aligned(bytes ? bytes : 1);
    if (!dropped) return leati_fail_memory(err, bytes, "rows of a time series");
    for (int k = 0; k < series->spec.tensor_count; ++k) {
        const bool kept = k >= first && k < last;
        target.data[k] = kept ? batch->tensors[k].data : dropped + offset;
        if (!kept) offset += (size_t)count * leati_sample_bytes(&series->spec.tensors[k]);
    }
    leat_status status = leati_part_make(series, rows, count, draws, &target, &made, err);
    if (status == LEAT_OK && made != count)
        status = leati_fail(err, LEAT_ENOTSUP, "a time series needs all its rows, but %lld were left out",
                            (long long)(count - made));
    leati_free(target.scratch);
    leati_free(dropped);
    return status;
}

static leat_status make_windows(leati_combined *base, const int64_t *numbers, int64_t count,
                                leati_draws *draws, leat_batch *batch, leat_error *err) {
    const windows *w = (const windows *)base;
    const leat_window_options *o = &w->options;
    const int64_t total = leati_mul_saturated(count, o->length);
    const int tensor_count = base->own.spec.tensor_count;
    leat_status status = LEAT_OK;
    int64_t *rows = leati_calloc((size_t)total, sizeof *rows);
    if (!rows) return leati_fail_memory(err, leati_count_bytes(total, sizeof *rows), "numbers of rows");
    for (int64_t i = 0; i < count; ++i)
        for (int64_t k = 0; k < o->length; ++k)
            rows[i * o->length + k] =
                o->start + numbers[i] * o->stride + (o->reverse ? o->length - 1 - k : k) * o->sampling_rate;
    status = make_rows(w, rows, total, 0, w->input_count, draws, batch, err);
    if (status == LEAT_OK && tensor_count > w->input_count) {
        for (int64_t i = 0; i < count; ++i) rows[i] = o->start + numbers[i] * o->stride + o->target;
        status = make_rows(w, rows, count, w->input_count, tensor_count, draws, batch, err);
    }
    leati_free(rows);
    return status == LEAT_OK ? leati_batch_finish(batch, count, err) : status;
}

static void trace_windows(const leati_combined *base, int part, const unsigned char *own,
                          unsigned char *wanted) {
    const leat_window_options *o = &((const windows *)base)->options;
    const bool has_others = base->own.spec.tensor_count > ((const windows *)base)->input_count;
    (void)part;
    for (int64_t i = 0; i < base->own.samples; ++i) {
        const int64_t start = o->start + i * o->stride;
        for (int64_t k = 0; own[i] && k < o->length; ++k) wanted[start + k * o->sampling_rate] = 1;
        if (own[i] && has_others) wanted[start + o->target] = 1;
    }
}

static int64_t locate_in_windows(const leati_combined *base, int64_t number, uint64_t *key, int part) {
    const leat_window_options *o = &((const windows *)base)->options;
    (void)key;
    (void)part;
    return o->start + number * o->stride;
}

static leati_rows rows_of_windows(const leati_combined *base, int part) {
    const leat_window_options *o = &((const windows *)base)->options;
    const int64_t last = (o->length - 1) * o->sampling_rate;
    (void)part;
    return (leati_rows){o->start, o->stride, (o->target > last ? o->target : last) + 1};
}

/* ---- Creating ---- */

static leat_status check(const leat_window_options *o, leat_error *err) {
    const struct {
        const char *name;
        int64_t value, least;
    } limits[] = {{"length", o->length, 1}, {"stride", o->stride, 1}, {"sampling_rate", o->sampling_rate, 1},
                  {"start", o->start, 0},   {"target", o->target, 0}, {"starts", o->starts, 1}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; ++i)
        if (limits[i].value < limits[i].least)
            return leati_fail(err, LEAT_EINVAL, "%s of the windows is %lld, expected at least %lld",
                              limits[i].name, (long long)limits[i].value, (long long)limits[i].least);
    return LEAT_OK;
}

static leat_status count_windows(windows *w, leat_error *err) {
    const leat_window_options *o = &w->options;
    const int64_t rows = leati_part_samples(&w->base.parts[0]), end = o->end < rows ? o->end : rows;
    int64_t span = leati_mul_saturated(o->length - 1, o->sampling_rate);
    if (o->target > span) span = o->target;
    int64_t starts = o->start < end && span < end - o->start ? end - o->start - span : 0;
    if (starts > o->starts) starts = o->starts;
    if (starts < 1)
        return leati_fail(
            err, LEAT_ESHAPE,
            "no window fits: a window with its target spans %lld rows, and there are %lld from row "
            "%lld on and before row %lld",
            (long long)(span < INT64_MAX ? span + 1 : span), (long long)(end > o->start ? end - o->start : 0),
            (long long)o->start, (long long)end);
    w->base.own.samples = (starts - 1) / o->stride + 1;
    return LEAT_OK;
}

/* Gives the inputs their dimension of time. */
static leat_status describe(windows *w, leat_error *err) {
    leat_batch_spec *spec = &w->base.own.spec;
    w->input_count = leat_batch_spec_count(spec, LEAT_PART_INPUT);
    for (int k = 0; k < spec->tensor_count; ++k) {
        leat_tensor_spec *t = &spec->tensors[k];
        if (k >= w->input_count) {
            w->other_bytes += leati_sample_bytes(t);
            continue;
        }
        w->input_bytes += leati_sample_bytes(t);
        const bool squeezed = w->options.squeeze && t->rank == 1 && t->shape[0] == 1;
        if (t->rank + !squeezed > LEAT_MAX_RANK - 1)
            return leati_fail(err, LEAT_ESHAPE, "input %d has %d dimensions, expected at most %d", k, t->rank,
                              LEAT_MAX_RANK - 2);
        if (!squeezed) memmove(t->shape + 1, t->shape, (size_t)t->rank++ * sizeof *t->shape);
        t->shape[0] = w->options.length;
    }
    return LEAT_OK;
}

leat_status leat_sequence_windows(leat_sequence *whole, const leat_window_options *options,
                                  leat_sequence *out, size_t size, leat_error *err) {
    windows *w = NULL;
    leat_window_options all;
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_sequence_begin(out, size, err));
    LEATI_GIVEN(whole, err);
    LEATI_GIVEN(options, err);
    LEATI_TRY(leati_growing_read(&type, options, &all, err));
    LEATI_TRY(check(&all, err));
    LEATI_TRY(leati_combined_create(&w, sizeof *w, &whole, 1, err));
    w->options = all;
    w->base.make = make_windows;
    w->base.locate = locate_in_windows;
    w->base.trace = trace_windows;
    w->base.rows = rows_of_windows;
    leat_status status = count_windows(w, err);
    if (status == LEAT_OK) status = describe(w, err);
    return leati_combined_finish(&w->base, status, &whole, out, size);
}
