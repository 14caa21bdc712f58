/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a convolution, pooling or recurrent node, read once from its descriptions, for kernels. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_GEOMETRY_H
#define LEATI_ENGINE_OP_SEMANTICS_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/op_semantics/function.h"
#include "engine/op_semantics/op.h"

/* A window sliding over three spatial axes; outer ones that the op lacks have size 1. */
typedef struct leati_geometry {
    int64_t batch, channels; /* of the source */
    int64_t filters, groups; /* convolution; pooling: channels and 1 */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad_before[3], pad_after[3];
    int64_t out_pixels, taps; /* batch * out[0..2], kernel[0..2] multiplied */
} leati_geometry;

/* From src (N, spatial..., C) and the window.  Errors: LEAT_EINVAL for a window that cannot be, LEAT_ESHAPE where it
 * does not fit src; the message starts with the numbers, the caller says whose they are. */
leat_status leati_geometry_make(leati_geometry *out, const leati_window *window, const leati_desc *src,
                                leat_error *err);

/* The same of the forward convolution that CONV, CONV_BWD_DATA or CONV_BWD_WEIGHTS belongs to. */
leat_status leati_conv_geometry(leati_geometry *out, leati_op op, const leati_attrs *attrs,
                                const leati_desc *in, leat_error *err);

/* What PATCHES_BWD gives: (N, attrs.conv.size..., C), from its diff_dst (P, N, taps * C). */
leati_desc leati_patches_source(const leati_attrs *attrs, const leati_desc *diff_dst);

/* The source pixel (n, spatial... flattened) that lies under tap `tap` of output pixel `pixel`; -1 in the padding. */
int64_t leati_source_pixel(const leati_geometry *g, int64_t pixel, int64_t tap);

/* Positions of RNN's inputs, which are also RNN_BWD's first, of RNN's outputs, and of RNN_BWD's. */
enum {
    LEATI_RNN_X,
    LEATI_RNN_KERNEL,
    LEATI_RNN_RECURRENT,
    LEATI_RNN_BIAS,
    LEATI_RNN_H0,
    LEATI_RNN_C0,
    LEATI_RNN_X_MASK,
    LEATI_RNN_H_MASK,
    LEATI_RNN_STEPS,
    LEATI_RNN_INPUTS,
    LEATI_RNN_SEQUENCE = LEATI_RNN_INPUTS,
    LEATI_RNN_WORKSPACE,
    LEATI_RNN_DIFF_SEQUENCE,
    LEATI_RNN_DIFF_H_LAST,
    LEATI_RNN_DIFF_C_LAST,
    LEATI_RNN_BWD_INPUTS
};
enum {
    LEATI_RNN_OUT_SEQUENCE,
    LEATI_RNN_OUT_H_LAST,
    LEATI_RNN_OUT_C_LAST,
    LEATI_RNN_OUT_WORKSPACE,
    LEATI_RNN_OUTPUTS,
    LEATI_RNN_GRADIENTS = LEATI_RNN_C0 + 1 /* outputs of RNN_BWD: by inputs 0 to C0 */
};

typedef struct leati_rnn_shape {
    leati_cell cell;
    int64_t batch, steps, features, units;
    int64_t gates;  /* of kernel and recurrent kernel */
    int64_t biases; /* rows of the bias: 1 or 2 */
    int64_t kept;   /* floats of the workspace for each step and sample */
    leati_eltwise activation, recurrent_activation;
    bool go_backwards, carry_masked, training;
} leati_rnn_shape;

leati_rnn_shape leati_rnn_shape_of(const leati_attrs *attrs, const leati_desc *x,
                                   const leati_desc *recurrent);

/* The step of processing at which a sample's steps (T) begin to count, and the step of the input that a step of
 * processing reads. */
int64_t leati_rnn_first_step(const leati_rnn_shape *shape, const float *steps);
static inline int64_t leati_rnn_input_step(const leati_rnn_shape *shape, int64_t step) {
    return shape->go_backwards ? shape->steps - 1 - step : step;
}

#endif
