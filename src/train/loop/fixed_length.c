/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence whose passes have a fixed length.  Room: train. */
#include "train/loop/fixed_length.h"

#include "base/error.h"

static int64_t fixed_length(void *user) {
    return ((const leati_fixed_length *)user)->steps;
}

static leat_status fixed_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    const leat_sequence *inner = &((const leati_fixed_length *)user)->inner;
    int64_t length = inner->length(inner->user);
    if (length < 1) return leati_fail(err, LEAT_EINVAL, "the sequence has become empty");
    return inner->get(inner->user, index % length, rng, batch, err);
}

static leat_status fixed_end(void *user, int64_t pass, leat_error *err) {
    const leat_sequence *inner = &((const leati_fixed_length *)user)->inner;
    return inner->on_epoch_end(inner->user, pass, err);
}

static leat_status fixed_init(void *user, int worker, leat_error *err) {
    const leat_sequence *inner = &((const leati_fixed_length *)user)->inner;
    return inner->worker_init(inner->user, worker, err);
}

static void fixed_fini(void *user, int worker) {
    const leat_sequence *inner = &((const leati_fixed_length *)user)->inner;
    inner->worker_fini(inner->user, worker);
}

static int64_t fixed_samples(void *user) {
    const leati_fixed_length *fixed = user;
    const int64_t all = fixed->inner.samples(fixed->inner.user);
    return fixed->steps < (all - 1) / fixed->inner.spec.batch_size + 1
               ? fixed->steps * fixed->inner.spec.batch_size
               : all;
}

static leat_status fixed_get_samples(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                                     leat_batch *batch, leat_error *err) {
    const leat_sequence *inner = &((const leati_fixed_length *)user)->inner;
    return inner->get_samples(inner->user, numbers, count, rng, batch, err);
}

/* True if the passes are the first samples of the sequence's own passes. */
static bool is_beginning(const leati_fixed_length *fixed) {
    const leat_sequence *inner = &fixed->inner;
    return inner->get_samples && !inner->on_epoch_end && fixed->steps <= inner->length(inner->user);
}

leat_sequence leati_fixed_length_sequence(leati_fixed_length *fixed, bool in_order) {
    leat_sequence sequence = fixed->inner;
    sequence.user = fixed;
    sequence.length = fixed_length;
    sequence.get = fixed_get;
    const bool has_samples = in_order && is_beginning(fixed);
    sequence.samples = has_samples ? fixed_samples : NULL;
    sequence.get_samples = has_samples ? fixed_get_samples : NULL;
    if (sequence.on_epoch_end) sequence.on_epoch_end = fixed_end;
    if (sequence.worker_init) sequence.worker_init = fixed_init;
    if (sequence.worker_fini) sequence.worker_fini = fixed_fini;
    sequence.destroy = NULL;
    return sequence;
}
