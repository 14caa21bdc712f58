/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence whose samples are kept after they were made once.  Room: data. */
#include "data/combine/cache.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "data/combine/combine.h"
#include "tensor/sequence.h"

static const leati_growing type = LEATI_GROWING(leat_cache_options, memory, NULL);

void leat_cache_options_init(leat_cache_options *options, size_t size) {
    leati_growing_init(&type, options, size);
}

typedef struct cached {
    leati_combined base;
    leati_cache cache;
} cached;

/* ---- Batches ---- */

/* Copies a sample of the batch to or from a record, in which the tensors follow each other. */
static void copy_sample(const cached *c, leat_batch *batch, int64_t place, unsigned char *record,
                        bool to_record) {
    for (int k = 0; k < c->base.own.spec.tensor_count; ++k) {
        const size_t bytes = leati_sample_bytes(&c->base.own.spec.tensors[k]);
        unsigned char *sample = (unsigned char *)batch->tensors[k].data + (size_t)place * bytes;
        if (to_record)
            memcpy(record, sample, bytes);
        else
            memcpy(sample, record, bytes);
        record += bytes;
    }
}

static leat_status make_samples(cached *c, const int64_t *numbers, int64_t count, leati_draws *draws,
                                leat_batch *batch, leati_target *target, unsigned char *record, int64_t *made,
                                leat_error *err) {
    for (int64_t i = 0; i < count; ++i) {
        const unsigned char *kept = leati_cache_find(&c->cache, numbers[i]);
        const int64_t before = *made;
        if (kept) {
            copy_sample(c, batch, (*made)++, (unsigned char *)(uintptr_t)kept, false);
            LEATI_TRY(leati_cache_check(&c->cache, kept, err));
            continue;
        }
        LEATI_TRY(leati_part_make(&c->base.parts[0], &numbers[i], 1, draws, target, made, err));
        if (*made == before) continue;
        copy_sample(c, batch, before, record, true);
        leati_cache_keep(&c->cache, numbers[i], record);
    }
    return LEAT_OK;
}

static leat_status make_cached(leati_combined *base, const int64_t *numbers, int64_t count,
                               leati_draws *draws, leat_batch *batch, leat_error *err) {
    cached *c = (cached *)base;
    leati_target target = {0};
    int64_t made = 0;
    unsigned char *record = leati_calloc(1, c->cache.record_bytes);
    if (!record) return leati_fail_memory(err, c->cache.record_bytes, "a sample");
    for (int k = 0; k < batch->tensor_count; ++k) target.data[k] = batch->tensors[k].data;
    const leat_status status = make_samples(c, numbers, count, draws, batch, &target, record, &made, err);
    leati_free(target.scratch);
    leati_free(record);
    return status == LEAT_OK ? leati_batch_finish(batch, made, err) : status;
}

static void before_pass(leati_numbered *base) {
    leati_cache_finish(&((cached *)base)->cache);
}

static void fini(leati_combined *base) {
    leati_cache_close(&((cached *)base)->cache);
}

/* ---- Creating ---- */

/* Hashes what the records depend on: the caller's text and the tensors. */
static void make_key(uint64_t out[2], const cached *c, const char *text) {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, text, strlen(text) + 1);
    for (int k = 0; k < c->base.own.spec.tensor_count; ++k) {
        const leat_tensor_spec *t = &c->base.own.spec.tensors[k];
        const int64_t numbers[] = {(int64_t)t->part, (int64_t)t->dtype, t->rank};
        XXH3_128bits_update(&state, numbers, sizeof numbers);
        XXH3_128bits_update(&state, t->shape, (size_t)t->rank * sizeof *t->shape);
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(&state);
    out[0] = hash.low64;
    out[1] = hash.high64;
}

static leat_status open_cache(cached *c, const leat_cache_options *options, leat_error *err) {
    size_t bytes = 0;
    uint64_t key[2];
    for (int k = 0; k < c->base.own.spec.tensor_count; ++k)
        bytes += leati_sample_bytes(&c->base.own.spec.tensors[k]);
    if (!options->file)
        return leati_cache_open_memory(&c->cache, c->base.own.samples, bytes, options->memory, err);
    make_key(key, c, options->key);
    return leati_cache_open_file(&c->cache, options->file, c->base.own.samples, bytes, key, err);
}

leat_status leat_sequence_cache(leat_sequence *whole, const leat_cache_options *options, leat_sequence *out,
                                size_t size, leat_error *err) {
    cached *c = NULL;
    leat_cache_options all;
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_sequence_begin(out, size, err));
    LEATI_GIVEN(whole, err);
    LEATI_TRY(leati_growing_read(&type, options, &all, err));
    if (all.file && !all.key)
        return leati_fail(err, LEAT_EINVAL, "a cache in a file needs a key, which says what the samples are");
    LEATI_TRY(leati_combined_create(&c, sizeof *c, &whole, 1, err));
    leati_sequence_fix(&c->base.parts[0]);
    c->base.own.samples = leati_part_samples(&c->base.parts[0]);
    c->base.make = make_cached;
    c->base.locate = leati_locate_same;
    c->base.own.before_pass = before_pass;
    c->base.own.depends = true; /* a kept sample is that of the pass in which it was made first */
    c->cache.building.fd = -1;
    const leat_status status = open_cache(c, &all, err);
    if (status == LEAT_OK) c->base.fini = fini;
    return leati_combined_finish(&c->base, status, &whole, out, size);
}
