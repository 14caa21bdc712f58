/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of keras.ops, as products with matrices of sines and cosines.  Room: nn. */
#include <math.h>

#include "base/memory.h"
#include "nn/layers/operations/operations.h"

/* Longer transforms would take too much memory for their matrices. */
enum { MOST_FREQUENCIES = 4096 };

typedef struct complex_value {
    leati_value real, imaginary;
} complex_value;

/* Makes a constant (rows, columns) of cos or sin(2 pi row column / length), times `scale`.  `one_sided`: each frequency
 * but the first, and the last of an even length, stands for two, and is doubled; frequencies are rows. */
static leati_value waves(leati_operands *o, int64_t rows, int64_t columns, int64_t length, bool sine,
                         double scale, bool one_sided) {
    float *values = leati_calloc((size_t)(rows * columns) + 1, sizeof *values);
    if (!values) return leati_operand_fail(o, LEAT_ENOMEM, "no memory for a transform");
    for (int64_t i = 0; i < rows * columns; ++i) {
        const int64_t row = i / columns, turn = row * (i % columns) % length;
        const double angle = 2 * LEATI_PI * (double)turn / (double)length;
        const double weight = one_sided && row > 0 && 2 * row != length ? 2 * scale : scale;
        values[i] = (float)(weight * (sine ? sin(angle) : cos(angle)));
    }
    const leati_desc desc = leati_desc_make(LEAT_F32, 2, (int64_t[]){rows, columns});
    leati_value out = leati_graph_constant(o->g, &desc, values);
    leati_free(values);
    return out;
}

/* Multiplies the last axis of x by a matrix. */
static leati_value times(leati_graph *g, leati_value x, leati_value matrix) {
    leati_desc desc = *leati_graph_desc(g, x);
    const int64_t *size = leati_graph_desc(g, matrix)->shape;
    if (x == LEATI_INVALID || matrix == LEATI_INVALID) return LEATI_INVALID;
    leati_value rows = leati_reshape(g, x, 2, (int64_t[]){leati_desc_count(&desc) / size[0], size[0]});
    desc.shape[desc.rank - 1] = size[1];
    return leati_reshape(g, leati_matmul(g, rows, false, matrix, false, LEATI_NONE), desc.rank, desc.shape);
}

/* Reads the length of an axis; fails where it is too long. */
static int64_t length_of(leati_operands *o, leati_value x, int axis) {
    const leati_desc *desc = leati_graph_desc(o->g, x);
    const int64_t length = desc->rank > axis && axis >= 0 ? desc->shape[axis] : 0;
    if (length >= 1 && length <= MOST_FREQUENCIES) return length;
    leati_operand_fail(o, LEAT_ENOTSUP, "expected an axis of 1 to %d elements", MOST_FREQUENCIES);
    return 0;
}

/* Transforms the last axis; `inverse`: back, with the factor 1 / length. */
static complex_value transform(leati_operands *o, complex_value x, bool inverse) {
    leati_graph *g = o->g;
    const int64_t n = length_of(o, x.real, leati_graph_desc(g, x.real)->rank - 1);
    if (n == 0) return (complex_value){LEATI_INVALID, LEATI_INVALID};
    const double scale = inverse ? 1 / (double)n : 1;
    leati_value cosine = waves(o, n, n, n, false, scale, false),
                sine = waves(o, n, n, n, true, inverse ? -scale : scale, false);
    return (complex_value){leati_add(g, times(g, x.real, cosine), times(g, x.imaginary, sine)),
                           leati_sub(g, times(g, x.imaginary, cosine), times(g, x.real, sine))};
}

static complex_value last_two_swapped(leati_graph *g, complex_value x) {
    return (complex_value){leati_operation_swap_last(g, x.real), leati_operation_swap_last(g, x.imaginary)};
}

/* Reads the pair of the real and the imaginary part, of at least `rank` axes. */
static bool read_pair(leati_operands *o, int rank, complex_value *x) {
    leati_value parts[2];
    o->output_count = 2;
    o->outputs[0] = o->outputs[1] = LEATI_INVALID;
    if (leati_operand_list(o, "x", parts, 2) == 2 && leati_graph_desc(o->g, parts[0])->rank >= rank &&
        leati_desc_same_shape(leati_graph_desc(o->g, parts[0]), leati_graph_desc(o->g, parts[1]))) {
        *x = (complex_value){parts[0], parts[1]};
        return true;
    }
    o->outputs[0] = o->outputs[1] =
        leati_operand_fail(o, LEAT_ESHAPE,
                           "expected a real and an imaginary part of one shape of at least %d axes", rank);
    return false;
}

enum { ONE, TWO, TWO_BACK };

static void lower_fft(leati_operands *o) {
    complex_value x;
    const int detail = o->operation->detail;
    if (!read_pair(o, detail == ONE ? 2 : 3, &x)) return;
    x = transform(o, x, detail == TWO_BACK);
    if (detail != ONE && x.real != LEATI_INVALID) {
        x = transform(o, last_two_swapped(o->g, x), detail == TWO_BACK);
        if (x.real != LEATI_INVALID) x = last_two_swapped(o->g, x);
    }
    o->outputs[0] = x.real;
    o->outputs[1] = x.imaginary;
}

/* Cuts the last axis off, or fills it with zeros. */
static leati_value resized(leati_graph *g, leati_value x, int64_t length) {
    const leati_desc desc = *leati_graph_desc(g, x);
    const int last = desc.rank - 1;
    int64_t before[LEAT_MAX_RANK] = {0}, after[LEAT_MAX_RANK] = {0};
    if (desc.shape[last] > length) return leati_slice_axis(g, x, last, 0, length);
    after[last] = length - desc.shape[last];
    return after[last] > 0 ? leati_pad(g, x, before, after, 0) : x;
}

static int64_t checked_length(leati_operands *o, int64_t length) {
    if (length >= 1 && length <= MOST_FREQUENCIES) return length;
    leati_operand_fail(o, LEAT_ENOTSUP, "fft_length: expected 1 to %d", MOST_FREQUENCIES);
    return 0;
}

/* Transforms real numbers; the frequencies above length / 2 are left out. */
static void lower_rfft(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const int rank = leati_graph_desc(o->g, x)->rank;
    o->output_count = 2;
    o->outputs[0] = o->outputs[1] = LEATI_INVALID;
    if (rank < 2) {
        o->outputs[0] = o->outputs[1] =
            leati_operand_fail(o, LEAT_ESHAPE, "expected at least 2 axes, received %d", rank);
        return;
    }
    if (length_of(o, x, rank - 1) == 0) return;
    const int64_t n = checked_length(o, leati_operand_int(o, "fft_length", length_of(o, x, rank - 1)));
    if (n == 0) return;
    x = resized(o->g, x, n);
    o->outputs[0] = times(o->g, x, waves(o, n, n / 2 + 1, n, false, 1, false));
    o->outputs[1] = times(o->g, x, waves(o, n, n / 2 + 1, n, true, -1, false));
}

static void lower_irfft(leati_operands *o) {
    complex_value x;
    leati_graph *g = o->g;
    if (!read_pair(o, 2, &x)) return;
    o->output_count = 1;
    const int64_t m = length_of(o, x.real, leati_graph_desc(g, x.real)->rank - 1);
    const int64_t n = m == 0 ? 0 : checked_length(o, leati_operand_int(o, "fft_length", 2 * (m - 1)));
    if (n == 0) return;
    const int64_t rows = n / 2 + 1;
    leati_value real = times(g, resized(g, x.real, rows), waves(o, rows, n, n, false, 1 / (double)n, true));
    leati_value rest =
        times(g, resized(g, x.imaginary, rows), waves(o, rows, n, n, true, 1 / (double)n, true));
    o->outputs[0] = leati_sub(g, real, rest);
}

#define MATH "ops.math"

const leati_operation leati_fourier_operations[] = {
    {"FFT", MATH, "x", lower_fft, ONE},
    {"FFT2", MATH, "x", lower_fft, TWO},
    {"IFFT2", MATH, "x", lower_fft, TWO_BACK},
    {"RFFT", MATH, "x fft_length", lower_rfft, 0},
    {"IRFFT", MATH, "x fft_length", lower_irfft, 0},
    {.name = NULL},
};
