/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences mixed by weights.  A table says which part each sample of a period comes from.  Room: data. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/combine/combine.h"
#include "feed/order/order.h"
#include "tensor/sequence.h"

/* The largest length of a period. */
enum { MAX_PERIOD = 1000000 };

typedef struct mix {
    leati_combined base;
    int64_t share[LEAT_COMBINE_MAX_PARTS]; /* samples of each part in a period */
    int64_t period;
    bool is_fixed;       /* the order is the same in each pass */
    unsigned char *part; /* (period) the part of each sample */
    int32_t *rank;       /* (period) the number of earlier samples of that part in the period */
} mix;

/* A part's order in one pass, for as long as the part's samples are not repeated. */
typedef struct draw {
    leati_permutation order;
    int64_t turn; /* -1: not drawn yet */
} draw;

/* Returns how many blocks of a part are permuted together: half of those that it keeps, so that a run of samples may
 * need the end of one group and the beginning of the next. */
static int64_t group_of(const leat_sequence *part) {
    return part->blocks_at_once > 1 ? part->blocks_at_once / 2 : 1;
}

static void begin_turn(draw *d, const leat_sequence *from, uint64_t seed, int64_t turn) {
    const bool blocks = from->block_samples > 1;
    const leati_order_rule rule = {.shuffle = blocks ? LEAT_SHUFFLE_BLOCKS : LEAT_SHUFFLE_SAMPLES,
                                   .by_samples = true,
                                   .seed = seed,
                                   .block = (uint64_t)from->block_samples,
                                   .window = (uint64_t)group_of(from)};
    leati_permutation_init(&d->order, &rule, turn, leati_part_samples(from));
    d->turn = turn;
}

/* Returns the number, in its part, of the sample that is number `place` of the part's samples in this pass. */
static int64_t drawn(const mix *m, draw *d, uint64_t key, int part, int64_t place) {
    const leat_sequence *from = &m->base.parts[part];
    const int64_t samples = leati_part_samples(from), turn = place / samples;
    if (d->turn != turn)
        begin_turn(d, from, leati_mix(m->is_fixed ? 0 : key, (uint64_t)part + 0x6D6978), turn);
    return leati_permutation_at(&d->order, place % samples);
}

/* Returns the place, among all samples of its part, of sample `number`. */
static int64_t place_of(const mix *m, int64_t number) {
    return number / m->period * m->share[m->part[number % m->period]] + m->rank[number % m->period];
}

/* Makes neighbouring samples of one part with one call. */
static leat_status make_all(const mix *m, draw *draws, int64_t *inner, const int64_t *numbers, int64_t count,
                            leati_draws *random, leati_target *target, int64_t *made, leat_error *err) {
    for (int64_t i = 0, n = 0; i < count; i += n) {
        const int part = m->part[numbers[i] % m->period];
        const leat_sequence *from = &m->base.parts[part];
        const int64_t samples = leati_part_samples(from);
        int64_t turn = 0;
        for (n = 0; i + n < count && m->part[numbers[i + n] % m->period] == part; ++n) {
            const int64_t place = place_of(m, numbers[i + n]);
            if (n > 0 && place / samples != turn) break;
            turn = place / samples;
            inner[n] = drawn(m, &draws[part], random->rng.key, part, place);
        }
        leati_draws own =
            leati_draws_of_part(random, (uint64_t)part + (uint64_t)turn * LEAT_COMBINE_MAX_PARTS);
        LEATI_TRY(leati_part_make(from, inner, n, &own, target, made, err));
    }
    return LEAT_OK;
}

static leat_status make_mix(leati_combined *base, const int64_t *numbers, int64_t count, leati_draws *random,
                            leat_batch *batch, leat_error *err) {
    leati_target target = {0};
    int64_t made = 0;
    draw *draws = leati_calloc((size_t)base->part_count, sizeof *draws);
    leati_numbers inner;
    leat_status status = leati_numbers_init(&inner, 0, count, err);
    for (int k = 0; k < batch->tensor_count; ++k) target.data[k] = batch->tensors[k].data;
    for (int i = 0; draws && i < base->part_count; ++i) draws[i].turn = -1;
    if (status == LEAT_OK && !draws)
        status = leati_fail_memory(err, leati_count_bytes(base->part_count, sizeof *draws), "draws of a mix");
    if (status == LEAT_OK)
        status = make_all((const mix *)base, draws, inner.at, numbers, count, random, &target, &made, err);
    leati_free(target.scratch);
    leati_numbers_fini(&inner);
    leati_free(draws);
    return status == LEAT_OK ? leati_batch_finish(batch, made, err) : status;
}

static int64_t locate_in_mix(const leati_combined *base, int64_t number, uint64_t *key, int part) {
    const mix *m = (const mix *)base;
    draw d = {.turn = -1};
    if (m->part[number % m->period] != part) return -1;
    const int64_t inner = drawn(m, &d, *key, part, place_of(m, number));
    *key = leati_key_of_part(*key, (uint64_t)part + (uint64_t)d.turn * LEAT_COMBINE_MAX_PARTS);
    return inner;
}

/* With an order that differs in each pass, any sample of a part may come. */
static void trace_mix(const leati_combined *base, int part, const unsigned char *own, unsigned char *wanted) {
    const mix *m = (const mix *)base;
    draw d = {.turn = -1};
    if (!m->is_fixed) memset(wanted, 1, (size_t)leati_part_samples(&base->parts[part]));
    for (int64_t i = 0; m->is_fixed && i < base->own.samples; ++i)
        if (own[i] && m->part[i % m->period] == part) wanted[drawn(m, &d, 0, part, place_of(m, i))] = 1;
}

static void fix(leati_combined *base) {
    ((mix *)base)->is_fixed = true;
}

/* The samples of one group of blocks are a block of the mixture, and one such block is made at a time. */
static void choose_blocks(mix *m) {
    for (int i = 0; i < m->base.part_count; ++i) {
        const leat_sequence *part = &m->base.parts[i];
        if (part->block_samples <= 1) continue;
        const int64_t rows = leati_mul_saturated(part->block_samples, group_of(part)),
                      samples = leati_mul_saturated(rows / m->share[i], m->period);
        if (m->base.block_samples == 0 || samples < m->base.block_samples) m->base.block_samples = samples;
        if (m->base.block_samples < 1) m->base.block_samples = 1;
        m->base.blocks_at_once = 1;
    }
}

/* ---- Creating ---- */

static int64_t divisor(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Writes the weights times `factor` as integers; returns false if that rounds one of them by more than 1e-9 of it. */
static bool scale_weights(mix *m, const double *weights, double factor, bool rounds) {
    int64_t common = 0;
    for (int i = 0; i < m->base.part_count; ++i) {
        const double scaled = weights[i] * factor, rounded = round(scaled);
        if (!(rounded >= 1 && rounded <= MAX_PERIOD)) {
            if (!rounds || !(rounded <= MAX_PERIOD)) return false;
            m->share[i] = 1;
        } else {
            if (!rounds && fabs(scaled - rounded) > 1e-9 * scaled) return false;
            m->share[i] = (int64_t)rounded;
        }
        common = divisor(m->share[i], common);
    }
    m->period = 0;
    for (int i = 0; i < m->base.part_count; ++i) m->period += m->share[i] /= common;
    return m->period <= MAX_PERIOD;
}

static leat_status read_weights(mix *m, const double *weights, leat_error *err) {
    double sum = 0;
    for (int i = 0; i < m->base.part_count; ++i) {
        if (!(weights[i] > 0 && weights[i] <= 1e12))
            return leati_fail(err, LEAT_EINVAL, "weight %d is %g, expected a number above 0 and at most 1e12",
                              i, weights[i]);
        sum += weights[i];
    }
    static const double factors[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; ++i)
        if (scale_weights(m, weights, factors[i], false)) return LEAT_OK;
    if (scale_weights(m, weights, (MAX_PERIOD - LEAT_COMBINE_MAX_PARTS) / sum, true)) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "the weights differ too much");
}

/* Spreads the parts of a period: each place goes to the part that is most behind its share. */
static leat_status make_table(mix *m, leat_error *err) {
    int64_t behind[LEAT_COMBINE_MAX_PARTS] = {0};
    int32_t taken[LEAT_COMBINE_MAX_PARTS] = {0};
    m->part = leati_calloc((size_t)m->period, sizeof *m->part);
    m->rank = leati_calloc((size_t)m->period, sizeof *m->rank);
    if (!m->part || !m->rank) return leati_fail_memory(err, (size_t)m->period, "the table of a mixture");
    for (int64_t i = 0; i < m->period; ++i) {
        int most = 0;
        for (int k = 0; k < m->base.part_count; ++k) {
            behind[k] += m->share[k];
            if (behind[k] > behind[most]) most = k;
        }
        behind[most] -= m->period;
        m->part[i] = (unsigned char)most;
        m->rank[i] = taken[most]++;
    }
    return LEAT_OK;
}

/* Returns the number of samples until a part has no more. */
static int64_t count_unrepeated(const mix *m) {
    int64_t periods = INT64_MAX / MAX_PERIOD, count = 0;
    int64_t samples[LEAT_COMBINE_MAX_PARTS];
    for (int i = 0; i < m->base.part_count; ++i) {
        samples[i] = leati_part_samples(&m->base.parts[i]);
        if (samples[i] / m->share[i] < periods) periods = samples[i] / m->share[i];
    }
    while (count < m->period && m->rank[count] + periods * m->share[m->part[count]] < samples[m->part[count]])
        ++count;
    return periods * m->period + count;
}

static void fini(leati_combined *base) {
    mix *m = (mix *)base;
    leati_free(m->part);
    leati_free(m->rank);
}

leat_status leat_sequence_mix(leat_sequence *const *parts, const double *weights, int count, int64_t samples,
                              leat_sequence *out, size_t size, leat_error *err) {
    mix *m = NULL;
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_sequence_begin(out, size, err));
    LEATI_GIVEN(parts, err);
    LEATI_GIVEN(weights, err);
    if (samples < 0)
        return leati_fail(err, LEAT_EINVAL, "expected at least 0 samples, received %lld", (long long)samples);
    LEATI_TRY(leati_combined_create(&m, sizeof *m, parts, count, err));
    m->base.make = make_mix;
    m->base.fini = fini;
    m->base.locate = locate_in_mix;
    m->base.trace = trace_mix;
    m->base.fix = fix;
    leat_status status = leati_combined_check_equal(&m->base, err);
    if (status == LEAT_OK) status = read_weights(m, weights, err);
    if (status == LEAT_OK) status = make_table(m, err);
    if (status == LEAT_OK) m->base.own.samples = samples > 0 ? samples : count_unrepeated(m);
    if (status == LEAT_OK) choose_blocks(m);
    return leati_combined_finish(&m->base, status, parts, out, size);
}
