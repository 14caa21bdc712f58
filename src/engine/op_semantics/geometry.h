/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of a convolution, pooling or recurrent node, computed once from its attributes and shapes, for kernels. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_GEOMETRY_H
#define LEATI_ENGINE_OP_SEMANTICS_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/op_semantics/function.h"
#include "engine/op_semantics/op.h"

/* A window that slides over three spatial axes.  If the op has fewer, the outer axes have size 1. */
typedef struct leati_geometry {
    int64_t batch, channels; /* of the source */
    int64_t filters, groups; /* of a convolution; for pooling: channels and 1 */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad_before[3], pad_after[3];
    int64_t out_pixels; /* batch * out[0] * out[1] * out[2] */
    int64_t taps;       /* kernel[0] * kernel[1] * kernel[2] */
} leati_geometry;

/* Computes the geometry of `window` over src (N, spatial..., C).  Errors: LEAT_EINVAL if the window is invalid,
 * LEAT_ESHAPE if it does not fit src.  The message does not name the op; the caller adds the name. */
leat_status leati_geometry_make(leati_geometry *out, const leati_window *window, const leati_desc *src,
                                leat_error *err);

/* Computes the geometry of the forward convolution to which a CONV, CONV_BWD_DATA or CONV_BWD_WEIGHTS node belongs. */
leat_status leati_conv_geometry(leati_geometry *out, leati_op op, const leati_attrs *attrs,
                                const leati_desc *in, leat_error *err);

/* Returns the shape of PATCHES_BWD's output, (N, attrs.conv.size..., C), from its diff_dst (P, N, taps * C). */
leati_desc leati_patches_source(const leati_attrs *attrs, const leati_desc *diff_dst);

/* Returns the index of the source pixel (of n and the spatial axes, flattened) under tap `tap` of output pixel `pixel`;
 * -1 if the tap lies in the padding. */
int64_t leati_source_pixel(const leati_geometry *g, int64_t pixel, int64_t tap);

/* Indices of the inputs of RNN, which are also the first inputs of RNN_BWD, and of RNN_BWD's other inputs. */
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
/* Indices of the outputs of RNN. */
enum {
    LEATI_RNN_OUT_SEQUENCE,
    LEATI_RNN_OUT_H_LAST,
    LEATI_RNN_OUT_C_LAST,
    LEATI_RNN_OUT_WORKSPACE,
    LEATI_RNN_OUTPUTS,
    LEATI_RNN_GRADIENTS = LEATI_RNN_C0 + 1 /* number of outputs of RNN_BWD: one for each input up to c0 */
};

typedef struct leati_rnn_shape {
    leati_cell cell;
    int64_t batch, steps, features, units;
    int64_t gates;  /* number of gates in kernel and recurrent kernel */
    int64_t biases; /* rows of the bias: 1 or 2 */
    int64_t kept;   /* floats of the workspace for each step and sample */
    leati_eltwise activation, recurrent_activation;
    bool go_backwards, carry_masked, training;
} leati_rnn_shape;

leati_rnn_shape leati_rnn_shape_of(const leati_attrs *attrs, const leati_desc *x,
                                   const leati_desc *recurrent);

/* Returns the first processing step whose mask is not 0; `steps` (T) is the mask of one sample. */
int64_t leati_rnn_first_step(const leati_rnn_shape *shape, const float *steps);
/* Returns the time step of the input that processing step `step` reads. */
static inline int64_t leati_rnn_input_step(const leati_rnn_shape *shape, int64_t step) {
    return shape->go_backwards ? shape->steps - 1 - step : step;
}

#endif
