/* SPDX-License-Identifier: Apache-2.0 */
/* The plain kernels of a resize, and the choice of kernels.  Room: image. */
#include "image/filter.h"

#include <stdbool.h>

#include "base/os/cpu.h"

enum { HALF = 1 << (LEATI_WEIGHT_BITS - 1) };

static unsigned char clip(int32_t sum) {
    const int32_t value = sum >> LEATI_WEIGHT_BITS;
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

void leati_pass_horizontal_plain(const leati_pass_job *job) {
    const leati_weights *w = job->weights;
    const int channels = job->channels;
    for (int64_t y = 0; y < job->lines; ++y)
        for (int64_t x = 0; x < w->outputs; ++x) {
            const unsigned char *from = job->src + y * job->src_line + (int64_t)w->first[x] * channels;
            unsigned char *to = job->dst + y * job->dst_line + x * channels;
            const int32_t *weights = w->whole + x * w->taps;
            for (int c = 0; c < channels; ++c) {
                int32_t sum = HALF;
                for (int32_t i = 0; i < w->count[x]; ++i) sum += from[i * channels + c] * weights[i];
                to[c] = clip(sum);
            }
        }
}

void leati_pass_vertical_plain(const leati_pass_job *job) {
    const leati_weights *w = job->weights;
    for (int64_t y = 0; y < job->lines; ++y) {
        const unsigned char *from = job->src + w->first[y] * job->src_line;
        unsigned char *to = job->dst + y * job->dst_line;
        const int32_t *weights = w->whole + y * w->taps;
        for (int64_t x = 0; x < job->line_bytes; ++x) {
            int32_t sum = HALF;
            for (int32_t i = 0; i < w->count[y]; ++i) sum += from[i * job->src_line + x] * weights[i];
            to[x] = clip(sum);
        }
    }
}

#if defined(__x86_64__)
static bool has_byte_permutes(void) {
    return leati_cpu_best_isa() == LEATI_CPU_AVX512 && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vnni");
}

leati_pass_kernel *leati_pass_horizontal(void) {
    if (has_byte_permutes()) return leati_pass_horizontal_avx512;
    return leati_cpu_best_isa() >= LEATI_CPU_AVX2 ? leati_pass_horizontal_avx2 : leati_pass_horizontal_plain;
}

leati_pass_kernel *leati_pass_vertical(void) {
    if (has_byte_permutes()) return leati_pass_vertical_avx512;
    return leati_cpu_best_isa() >= LEATI_CPU_AVX2 ? leati_pass_vertical_avx2 : leati_pass_vertical_plain;
}
#else
leati_pass_kernel *leati_pass_horizontal(void) {
    return leati_pass_horizontal_plain;
}

leati_pass_kernel *leati_pass_vertical(void) {
    return leati_pass_vertical_plain;
}
#endif
