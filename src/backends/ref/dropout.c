/* SPDX-License-Identifier: Apache-2.0 */
/* DROPOUT and RANDOM_NORMAL in plain C.  Room: backends/ref. */
#include "engine/random.h"

#include "backends/ref/ref.h"
#include "backends/ref/walk.h"

static leat_status run_dropout(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const float *src = args[0];
    float *dst = args[1];
    leati_desc drawn = *leati_ref_in(ref, 0);
    leati_walk w = leati_walk_over(&drawn);
    for (int i = 0; i < drawn.rank; ++i)
        if (ref->attrs.dropout.shared >> i & 1u) drawn.shape[i] = 1;
    leati_walk_broadcast(&w, 1, &drawn);
    uint64_t threshold = leati_dropout_threshold(ref->attrs.dropout.rate), block = UINT64_MAX;
    float scale = leati_dropout_scale(ref->attrs.dropout.rate);
    uint32_t words[4] = {0};
    for (; leati_walk_more(&w); leati_walk_next(&w)) {
        uint64_t element = (uint64_t)w.offset[1];
        if (element / 4 != block) {
            block = element / 4;
            leati_random_words(run, ref->attrs.dropout.stream, block, words);
        }
        dst[w.offset[0]] = words[element % 4] >= threshold ? src[w.offset[0]] * scale : 0;
    }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(dropout, run_dropout)

#define TWO_PI 6.283185307179586

static leat_status run_random_normal(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                     leat_error *err) {
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    int64_t count = leati_desc_count(leati_ref_in(ref, 0));
    float *dst = args[1], mean = ref->attrs.random_normal.mean, stddev = ref->attrs.random_normal.stddev;
    uint32_t words[4] = {0};
    for (int64_t i = 0; i < count; i += 2) {
        if (i % 4 == 0) leati_random_words(run, ref->attrs.random_normal.stream, (uint64_t)(i / 4), words);
        double radius = sqrt(-2 * log((double)leati_normal_uniform(words[i % 4])));
        double angle = TWO_PI * (double)words[i % 4 + 1] * 0x1p-32;
        dst[i] = mean + stddev * (float)(radius * cos(angle));
        if (i + 1 < count) dst[i + 1] = mean + stddev * (float)(radius * sin(angle));
    }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(random_normal, run_random_normal)
