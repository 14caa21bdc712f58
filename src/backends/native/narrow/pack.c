/* SPDX-License-Identifier: Apache-2.0 */
/* Packs weights in bf16 or int8, and chooses the functions that multiply with them.  Room: backends/native. */
#include <math.h>

#include "backends/native/narrow/narrow.h"
#include "backends/native/simd/isa.h"
#include "base/os/cpu.h"
#include "tensor/bfloat16.h"

#define LARGEST 127 /* of int8; -128 is not used, so that the range is symmetric */

static float element(const leati_narrow_source *s, int64_t k, int64_t j) {
    return k < s->depth && j < s->present ? s->from[k * s->row + j * s->column] : 0;
}

/* Returns 0 for a column of zeros, and NaN for one that has a weight that is not finite. */
static float scale_of_column(const leati_narrow_source *s, int64_t j) {
    float largest = 0;
    for (int64_t k = 0; k < s->depth; k++) {
        float x = fabsf(element(s, k, j));
        if (!isfinite(x)) return NAN;
        if (x > largest) largest = x;
    }
    return largest / LARGEST;
}

/* Returns the integer nearest to x / scale; 0 where the scale is 0 or NaN. */
static int8_t rounded(float x, float scale) {
    if (!(scale > 0)) return 0;
    float whole = rintf(x / scale); /* of a subnormal scale the quotient may be a little larger */
    return (int8_t)(whole > LARGEST ? LARGEST : whole < -LARGEST ? -LARGEST : whole);
}

void leati_narrow_pack(const leati_narrow *narrow, const leati_narrow_source *source, int64_t columns,
                       void *to, float *scales) {
    bool int8 = narrow->scaled;
    uint16_t *words = to;
    int8_t *bytes = to;
    for (int64_t j = 0; int8 && j < columns; j++) scales[j] = scale_of_column(source, j);
    for (int64_t k = 0; k < source->depth; k += 2)
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = 0; i < 2; i++)
                if (int8)
                    *bytes++ = rounded(element(source, k + i, j), scales[j]);
                else
                    *words++ = leati_bfloat16_of_float(element(source, k + i, j));
}

void leati_narrow_expand(const leati_narrow *narrow, const void *w, int64_t w_row, const float *scales,
                         int64_t depth, int64_t columns, float *to, int64_t to_row) {
    const uint16_t *words = w;
    const int8_t *bytes = w;
    for (int64_t k = 0; k < depth; k++, to += to_row) {
        int64_t first = k / 2 * w_row + k % 2;
        if (narrow->scaled)
            for (int64_t j = 0; j < columns; j++) to[j] = scales[j] * (float)bytes[first + 2 * j];
        else
            for (int64_t j = 0; j < columns; j++) to[j] = leati_bfloat16_to_float(words[first + 2 * j]);
    }
}

leati_narrow leati_narrow_of(leati_weights_format format) {
    const leati_native_isa *isa = leati_native_isa_of();
    bool int8 = format == LEATI_WEIGHTS_INT8;
    leati_narrow narrow = {.format = format,
                           .element_bytes = int8 ? 1 : 2,
                           .scaled = int8,
                           .prepared_bytes = int8 ? sizeof(int16_t) : sizeof(float),
                           .name = int8 ? "int8" : "bf16",
                           .layout = int8 ? "weights int8 by row" : "weights bf16",
                           .prepare = int8 ? isa->narrow_prepare_int16 : isa->narrow_prepare_f32,
                           .multiply = int8 ? isa->narrow_multiply_int8 : isa->narrow_multiply_bf16};
#if LEATI_NATIVE_X86
    if (leati_cpu_has_bfloat16() && __builtin_cpu_supports("avx512vnni")) {
        if (!int8) narrow.prepare = leati_narrow_prepare_bf16;
        narrow.prepared_bytes = 2;
        narrow.multiply = int8 ? leati_narrow_multiply_int8 : leati_narrow_multiply_bf16;
    }
#endif
    return narrow;
}
