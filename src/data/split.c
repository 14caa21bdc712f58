/* SPDX-License-Identifier: Apache-2.0 */
/* leat_sequence_split: two sequences that are parts of one, the first samples and the last ones.  Room: data. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/combine/combine.h"
#include "data/numbered/numbered.h"
#include "leat/source.h"
#include "tensor/sequence.h"

/* The sequence that two parts share; the part that is destroyed last destroys it. */
typedef struct shared {
    leat_sequence whole;
    atomic_int parts;
} shared;

/* A part: its samples are those of the whole from number `first` on. */
typedef struct part {
    leati_numbered numbered; /* first */
    shared *shared;
    int64_t first;
} part;

int64_t leati_split_count(int64_t samples, double share) {
    return (int64_t)floor((double)samples * (1 - share));
}

/* Makes samples of the whole.
 * @param is_plain  Without random changes. */
static leat_status make_as(const part *p, const int64_t *numbers, int64_t count, bool is_plain, leat_rng *rng,
                           leat_batch *batch, leat_error *err) {
    const leat_sequence *whole = &p->shared->whole;
    const bool plain = is_plain && whole->get_plain;
    leati_numbers moved;
    LEATI_TRY(leati_numbers_init(&moved, p->first, count, err));
    for (int64_t i = 0; i < count; ++i) moved.at[i] = p->first + numbers[i];
    const leat_status status =
        (plain ? whole->get_plain : whole->get_samples)(whole->user, moved.at, count, rng, batch, err);
    leati_numbers_fini(&moved);
    return status;
}

/* The second part is for validation. */
static leat_status make(leati_numbered *numbered, const int64_t *numbers, int64_t count, leat_rng *rng,
                        leat_batch *batch, leat_error *err) {
    const part *p = (const part *)numbered;
    return make_as(p, numbers, count, p->first > 0, rng, batch, err);
}

static leat_status get_plain(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                             leat_batch *batch, leat_error *err) {
    return make_as(user, numbers, count, true, rng, batch, err);
}

/* True if batch `index`, with `rows` samples, is also a batch of the whole. */
static bool is_whole_batch(const part *p, int64_t rows) {
    const leat_sequence *whole = &p->shared->whole;
    return whole->get && rows == whole->spec.batch_size && p->numbered.spec.batch_size == rows &&
           p->first % rows == 0 && (p->first == 0 || !whole->get_plain);
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    part *p = user;
    const leat_sequence *whole = &p->shared->whole;
    const int64_t size = p->numbered.spec.batch_size, start = index * size,
                  left = p->numbered.samples - start;
    if (is_whole_batch(p, left < size ? left : size))
        return whole->get(whole->user, (p->first + start) / size, rng, batch, err);
    return leati_numbered_get(p, index, rng, batch, err);
}

static void destroy(leati_numbered *numbered) {
    part *p = (part *)numbered;
    if (atomic_fetch_sub(&p->shared->parts, 1) == 1) {
        leat_sequence_destroy(&p->shared->whole);
        leati_free(p->shared);
    }
    leati_free(p);
}

/* ---- Making ---- */

static leat_status check(const leat_sequence *whole, double share, int64_t *first, leat_error *err) {
    if (!(share > 0 && share < 1))
        return leati_fail(err, LEAT_EINVAL, "expected a share between 0 and 1, received %g", share);
    if (!whole->get_samples || !whole->samples)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "a split needs a sequence that has get_samples, like arrays and the files idx, npy and "
            "npz; this is %s: use separate validation data",
            whole->next ? "a generator" : "a sequence of batches alone");
    if (whole->on_epoch_end || whole->worker_init || whole->worker_fini)
        return leati_fail(err, LEAT_ENOTSUP,
                          "a split needs a sequence without on_epoch_end, worker_init and worker_fini: use "
                          "separate validation data");
    int64_t count = whole->samples(whole->user);
    *first = leati_split_count(count, share);
    if (*first > 0 && *first < count) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "a share of %g of %lld samples leaves %lld and %lld: expected at least one in each part", share,
        (long long)count, (long long)*first, (long long)(count - *first));
}

static leat_sequence sequence_of(part *p, int64_t first, int64_t count) {
    *p = (part){.numbered = {.spec = p->shared->whole.spec,
                             .samples = count,
                             .depends = !p->shared->whole.independent_samples,
                             .make = make,
                             .destroy = destroy},
                .shared = p->shared,
                .first = first};
    leat_sequence made = leati_numbered_sequence(&p->numbered);
    made.get = get;
    made.get_plain = p->shared->whole.get_plain ? get_plain : NULL;
    made.block_samples = p->shared->whole.block_samples;
    made.blocks_at_once = p->shared->whole.blocks_at_once;
    return made;
}

leat_status leat_sequence_split(leat_sequence *whole, double share, leat_sequence *first, leat_sequence *last,
                                size_t size, leat_error *err) {
    LEATI_GIVEN(first, err);
    LEATI_TRY(leati_sequence_begin(first, size, err));
    LEATI_GIVEN(last, err);
    LEATI_TRY(leati_sequence_begin(last, size, err));
    LEATI_GIVEN(whole, err);
    leat_sequence all;
    int64_t count = 0;
    LEATI_TRY(leati_sequence_read(whole, &all, err));
    LEATI_TRY(check(&all, share, &count, err));
    shared *owner = leati_calloc(1, sizeof *owner);
    part *parts[2] = {leati_calloc(1, sizeof *parts[0]), leati_calloc(1, sizeof *parts[1])};
    if (!owner || !parts[0] || !parts[1]) {
        leati_free(owner);
        leati_free(parts[0]);
        leati_free(parts[1]);
        return leati_fail_memory(err, sizeof *owner, "a split sequence");
    }
    leati_sequence_fix(&all);
    owner->whole = all;
    atomic_init(&owner->parts, 2);
    parts[0]->shared = parts[1]->shared = owner;
    leat_sequence made[2] = {sequence_of(parts[0], 0, count),
                             sequence_of(parts[1], count, all.samples(all.user) - count)};
    memset(whole, 0, whole->size);
    leati_sequence_write(&made[0], first, size);
    leati_sequence_write(&made[1], last, size);
    return LEAT_OK;
}
