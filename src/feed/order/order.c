/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the order of the batches of a pass, and of the samples of a batch.  Room: feed. */
#include "feed/order/order.h"

#include <assert.h>
#include "base/error.h"
#include "base/rng.h"

#define BLOCK_STREAM 0x626c6f636b73u /* as WINDOW_STREAM, for the order of blocks; the next number, too */
#define WINDOW_STREAM                                                                                        \
    0x77696e646f777321u /* makes the windows' borders independent of the order inside them */

static void set_blocks(leati_order_rule *rule, const leat_feed_options *options,
                       const leat_sequence *sequence) {
    const bool given = options->shuffle == LEAT_SHUFFLE_BLOCKS && options->shuffle_window > 0;
    const int64_t group = given ? options->shuffle_window : sequence->blocks_at_once;
    rule->block = (uint64_t)sequence->block_samples;
    rule->window = group > 0 ? (uint64_t)group : 1;
}

leat_status leati_order_rule_init(leati_order_rule *rule, const leat_feed_options *options,
                                  const leat_sequence *sequence, leat_error *err) {
    bool samples = sequence->get_samples != NULL, blocks = samples && sequence->block_samples > 1;
    *rule = (leati_order_rule){.shuffle = options->shuffle, .seed = options->seed};
    if (sequence->next && options->shuffle != LEAT_SHUFFLE_NONE && options->shuffle != LEAT_SHUFFLE_AUTO)
        return leati_fail(err, LEAT_ENOTSUP,
                          "a generator cannot be shuffled: it alone decides the order of its batches");
    switch (options->shuffle) {
    case LEAT_SHUFFLE_NONE:
    case LEAT_SHUFFLE_BATCHES: break;
    case LEAT_SHUFFLE_AUTO:
        rule->shuffle = sequence->next ? LEAT_SHUFFLE_NONE
                        : blocks       ? LEAT_SHUFFLE_BLOCKS
                        : samples      ? LEAT_SHUFFLE_SAMPLES
                                       : LEAT_SHUFFLE_BATCHES;
        break;
    case LEAT_SHUFFLE_SAMPLES:
        if (!samples)
            return leati_fail(err, LEAT_ENOTSUP,
                              "shuffling by samples needs a sequence with samples and get_samples; this "
                              "sequence can only be "
                              "shuffled by batches");
        break;
    case LEAT_SHUFFLE_WINDOW:
        if (options->shuffle_window < 1)
            return leati_fail(err, LEAT_EINVAL, "shuffle_window is %lld, expected at least 1",
                              (long long)options->shuffle_window);
        rule->window = (uint64_t)options->shuffle_window;
        break;
    case LEAT_SHUFFLE_BLOCKS:
        if (!blocks)
            return leati_fail(
                err, LEAT_ENOTSUP,
                "the samples of this data do not lie in blocks, such as chunks of HDF5 that do not fit "
                "into memory: shuffle by samples, or in windows");
        if (options->shuffle_window < 0)
            return leati_fail(err, LEAT_EINVAL, "shuffle_window is %lld, expected at least 0",
                              (long long)options->shuffle_window);
        break;
    default: return leati_fail(err, LEAT_EINVAL, "unknown shuffle %d", (int)options->shuffle);
    }
    if (rule->shuffle == LEAT_SHUFFLE_BLOCKS) set_blocks(rule, options, sequence);
    rule->by_samples = rule->shuffle == LEAT_SHUFFLE_SAMPLES || rule->shuffle == LEAT_SHUFFLE_BLOCKS ||
                       (rule->shuffle == LEAT_SHUFFLE_WINDOW && samples);
    return LEAT_OK;
}

static void init_blocks(leati_permutation *p, const leati_order_rule *rule) {
    p->block = rule->block;
    p->full = p->length / p->block;
    p->window = rule->window < p->full ? rule->window : p->full ? p->full : 1; /* the product stays small */
    leat_rng rng = {.key = leati_mix(p->key, BLOCK_STREAM), .used = 4};
    p->odd_group = p->full ? leat_rng_below(&rng, (p->full - 1) / p->window + 1) : 0;
    if (p->full) leati_shuffle_init(&p->blocks, leati_mix(p->key, BLOCK_STREAM + 1), p->full);
}

void leati_permutation_init(leati_permutation *permutation, const leati_order_rule *rule, int64_t pass,
                            int64_t length) {
    permutation->shuffle = rule->shuffle;
    permutation->key = leati_mix(rule->seed, (uint64_t)pass);
    permutation->length = (uint64_t)length;
    permutation->run = UINT64_MAX;
    if (rule->shuffle == LEAT_SHUFFLE_WINDOW) {
        permutation->window = rule->window;
        leat_rng rng = {.key = leati_mix(permutation->key, WINDOW_STREAM), .used = 4};
        permutation->offset = leat_rng_below(&rng, rule->window);
    } else if (rule->shuffle == LEAT_SHUFFLE_BLOCKS) {
        init_blocks(permutation, rule);
    } else if (rule->shuffle != LEAT_SHUFFLE_NONE) {
        leati_shuffle_init(&permutation->whole, permutation->key, permutation->length);
    }
}

static void enter_run(leati_permutation *p, uint64_t run) {
    uint64_t start = run == 0 ? 0 : run * p->window - p->offset;
    assert(start < p->length);
    uint64_t left = p->length - start, most = run == 0 ? p->window - p->offset : p->window;
    leati_shuffle_init(&p->whole, leati_mix(p->key, run), left < most ? left : most);
    p->run = run;
    p->run_start = start;
}

/* Returns the samples of the shorter block. */
static uint64_t odd_samples(const leati_permutation *p) {
    return p->length - p->full * p->block;
}

/* Returns the full blocks of a group: those from group * window on.  One group has the shorter block behind them. */
static uint64_t full_blocks(const leati_permutation *p, uint64_t group) {
    const uint64_t rest = p->full - group * p->window;
    return rest < p->window ? rest : p->window;
}

static void enter_group(leati_permutation *p, uint64_t group) {
    const uint64_t odd = odd_samples(p);
    p->run = group;
    p->run_start = group * p->window * p->block + (group > p->odd_group ? odd : 0);
    leati_shuffle_init(&p->whole, leati_mix(p->key, group),
                       full_blocks(p, group) * p->block + (group == p->odd_group ? odd : 0));
}

static int64_t at_in_blocks(leati_permutation *p, uint64_t at) {
    const uint64_t odd = odd_samples(p), size = p->window * p->block;
    uint64_t group = at / size;
    if (group >= p->odd_group) {
        const uint64_t behind = at < odd ? 0 : (at - odd) / size;
        group = behind > p->odd_group ? behind : p->odd_group;
    }
    if (group != p->run) enter_group(p, group);
    const uint64_t inside = leati_shuffle_at(&p->whole, at - p->run_start);
    const uint64_t blocks = full_blocks(p, group), number = inside / p->block;
    if (number >= blocks) /* in the shorter block */
        return (int64_t)(p->full * p->block + inside - blocks * p->block);
    return (int64_t)(leati_shuffle_at(&p->blocks, group * p->window + number) * p->block + inside % p->block);
}

int64_t leati_permutation_at(leati_permutation *p, int64_t position) {
    uint64_t at = (uint64_t)position;
    if (p->shuffle == LEAT_SHUFFLE_NONE) return position;
    assert(at < p->length);
    if (p->shuffle == LEAT_SHUFFLE_BLOCKS) return at_in_blocks(p, at);
    if (p->shuffle != LEAT_SHUFFLE_WINDOW) return (int64_t)leati_shuffle_at(&p->whole, at);
    uint64_t run = (at + p->offset) / p->window;
    if (run != p->run) enter_run(p, run);
    return (int64_t)(p->run_start + leati_shuffle_at(&p->whole, at - p->run_start));
}

/* Returns true if `whole` permutes all positions. */
static bool permutes_whole(leat_shuffle shuffle) {
    return shuffle == LEAT_SHUFFLE_BATCHES || shuffle == LEAT_SHUFFLE_SAMPLES;
}

void leati_permutation_range(leati_permutation *p, int64_t first, int64_t count, int64_t *out) {
    uint64_t to[64];
    while (count > 0 && permutes_whole(p->shuffle)) {
        int64_t some = count < 64 ? count : 64;
        leati_shuffle_range(&p->whole, (uint64_t)first, some, to);
        for (int64_t i = 0; i < some; ++i) *out++ = (int64_t)to[i];
        first += some;
        count -= some;
    }
    for (; count > 0; --count) *out++ = leati_permutation_at(p, first++);
}

/* Returns the number of batches of this rank. */
static int64_t share(const leati_order *order) {
    int64_t even = order->total / order->world, rest = order->total % order->world;
    switch (order->remainder) {
    case LEAT_REMAINDER_DROP: return even;
    case LEAT_REMAINDER_PAD: return even + (rest > 0);
    case LEAT_REMAINDER_UNEVEN: break;
    }
    return even + (order->rank < rest);
}

int64_t leati_order_sample(const leati_order_rule *rule, int64_t pass, int64_t samples, int64_t batch_size,
                           int64_t batch, int64_t place) {
    const int64_t position = batch * batch_size + place;
    leati_permutation permutation = {0};
    if (!rule->by_samples || position >= samples) return position;
    leati_permutation_init(&permutation, rule, pass, samples);
    return leati_permutation_at(&permutation, position);
}

void leati_order_start(leati_order *order, const leati_order_rule *rule, int64_t pass, int64_t total) {
    static const leati_order_rule in_order = {.shuffle = LEAT_SHUFFLE_NONE};
    order->total = total;
    order->length = total == LEAT_LENGTH_INFINITE ? total : share(order);
    leati_permutation_init(&order->batches, rule->by_samples ? &in_order : rule, pass, total);
}

int64_t leati_order_index(leati_order *order, int64_t ordinal) {
    int64_t at = ordinal;
    if (order->world > 1)
        at = (int64_t)(((uint64_t)ordinal * (uint64_t)order->world + (uint64_t)order->rank) %
                       (uint64_t)order->total);
    return leati_permutation_at(&order->batches, at);
}
