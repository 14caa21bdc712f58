/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a sequence, a sequence several times, and inputs as targets.  Room: data. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/combine/combine.h"
#include "tensor/sequence.h"

/* ---- Parts and repetitions: sample i is sample start + step * (i % period) of the whole ---- */

typedef struct selection {
    leati_combined base;
    int64_t start, step, period;
} selection;

static leat_status make_selection(leati_combined *base, const int64_t *numbers, int64_t count,
                                  leati_draws *draws, leat_batch *batch, leat_error *err) {
    const selection *s = (const selection *)base;
    leati_target target = {0};
    int64_t made = 0;
    leat_status status = LEAT_OK;
    leati_numbers inner;
    LEATI_TRY(leati_numbers_init(&inner, 0, count, err));
    for (int k = 0; k < batch->tensor_count; ++k) target.data[k] = batch->tensors[k].data;
    for (int64_t i = 0, n = 0; i < count && status == LEAT_OK; i += n) {
        const int64_t turn = numbers[i] / s->period;
        leati_draws own = leati_draws_of_part(draws, (uint64_t)turn);
        for (n = 0; i + n < count && numbers[i + n] / s->period == turn; ++n)
            inner.at[n] = s->start + s->step * (numbers[i + n] % s->period);
        status = leati_part_make(&base->parts[0], inner.at, n, &own, &target, &made, err);
    }
    leati_free(target.scratch);
    leati_numbers_fini(&inner);
    return status == LEAT_OK ? leati_batch_finish(batch, made, err) : status;
}

static int64_t locate_in_selection(const leati_combined *base, int64_t number, uint64_t *key, int part) {
    const selection *s = (const selection *)base;
    (void)part;
    *key = leati_key_of_part(*key, (uint64_t)(number / s->period));
    return s->start + s->step * (number % s->period);
}

/* The offset is that of a repetition, if there is one: each begins where the one before has ended. */
static leati_rows rows_of_selection(const leati_combined *base, int part) {
    const selection *s = (const selection *)base;
    (void)part;
    return (leati_rows){base->own.samples > s->period ? -s->period : s->start, s->step, 1};
}

leat_status leat_sequence_repeat(leat_sequence *whole, int64_t times, leat_sequence *out, size_t size,
                                 leat_error *err) {
    selection *s = NULL;
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_sequence_begin(out, size, err));
    LEATI_GIVEN(whole, err);
    if (times < 1)
        return leati_fail(err, LEAT_EINVAL, "expected at least 1 repetition, received %lld",
                          (long long)times);
    LEATI_TRY(leati_combined_create(&s, sizeof *s, &whole, 1, err));
    s->step = 1;
    s->period = leati_part_samples(&s->base.parts[0]);
    s->base.make = make_selection;
    s->base.locate = locate_in_selection;
    s->base.rows = rows_of_selection;
    leat_status status = LEAT_OK;
    if (!leati_mul_i64(s->period, times, &s->base.own.samples))
        status = leati_fail(err, LEAT_EINVAL, "%lld repetitions of %lld samples are too many",
                            (long long)times, (long long)s->period);
    return leati_combined_finish(&s->base, status, &whole, out, size);
}

leat_status leat_sequence_slice(leat_sequence *whole, int64_t start, int64_t stop, int64_t step,
                                leat_sequence *out, size_t size, leat_error *err) {
    selection *s = NULL;
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_sequence_begin(out, size, err));
    LEATI_GIVEN(whole, err);
    if (start < 0 || step < 1)
        return leati_fail(err, LEAT_EINVAL,
                          "expected a start of at least 0 and a step of at least 1, received %lld and %lld",
                          (long long)start, (long long)step);
    LEATI_TRY(leati_combined_create(&s, sizeof *s, &whole, 1, err));
    const int64_t count = leati_part_samples(&s->base.parts[0]), end = stop < count ? stop : count;
    s->start = start;
    s->step = step;
    s->base.own.samples = s->period = end > start ? (end - start - 1) / step + 1 : 0;
    s->base.make = make_selection;
    s->base.locate = locate_in_selection;
    s->base.rows = rows_of_selection;
    leat_status status = LEAT_OK;
    if (s->period < 1)
        status =
            leati_fail(err, LEAT_EINVAL, "no samples are left: there are %lld, and %lld to %lld are wanted",
                       (long long)count, (long long)start, (long long)end - 1);
    return leati_combined_finish(&s->base, status, &whole, out, size);
}

/* ---- Inputs as targets ---- */

typedef struct targets {
    leati_combined base;
    size_t dropped_bytes; /* of the tensors that are left out, for one sample */
} targets;

static leat_status make_targets(leati_combined *base, const int64_t *numbers, int64_t count,
                                leati_draws *draws, leat_batch *batch, leat_error *err) {
    const targets *t = (const targets *)base;
    const leat_batch_spec *spec = &base->parts[0].spec;
    leati_target target = {0};
    int64_t made = 0;
    size_t offset = 0;
    unsigned char *dropped = NULL;
    if (t->dropped_bytes > 0) {
        const size_t bytes = leati_count_bytes(count, t->dropped_bytes);
        dropped = leati_calloc_aligned(bytes);
        if (!dropped) return leati_fail_memory(err, bytes, "tensors that are left out");
    }
    for (int k = 0; k < spec->tensor_count; ++k) {
        const bool kept = k < batch->tensor_count;
        target.data[k] = kept ? batch->tensors[k].data : dropped + offset;
        if (!kept) offset += (size_t)count * leati_sample_bytes(&spec->tensors[k]);
    }
    leat_status status = leati_part_make(&base->parts[0], numbers, count, draws, &target, &made, err);
    leati_free(target.scratch);
    leati_free(dropped);
    return status == LEAT_OK ? leati_batch_finish(batch, made, err) : status;
}

leat_status leat_sequence_as_targets(leat_sequence *whole, leat_sequence *out, size_t size, leat_error *err) {
    targets *t = NULL;
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_sequence_begin(out, size, err));
    LEATI_GIVEN(whole, err);
    LEATI_TRY(leati_combined_create(&t, sizeof *t, &whole, 1, err));
    leat_batch_spec *spec = &t->base.own.spec;
    for (int k = 0; k < spec->tensor_count; ++k)
        if (spec->tensors[k].part != LEAT_PART_INPUT)
            t->dropped_bytes += leati_sample_bytes(&spec->tensors[k]);
    spec->tensor_count = leat_batch_spec_count(spec, LEAT_PART_INPUT);
    for (int k = 0; k < spec->tensor_count; ++k) spec->tensors[k].part = LEAT_PART_TARGET;
    t->base.own.samples = leati_part_samples(&t->base.parts[0]);
    t->base.make = make_targets;
    t->base.locate = leati_locate_same;
    return leati_combined_finish(&t->base, LEAT_OK, &whole, out, size);
}
