/* SPDX-License-Identifier: Apache-2.0 */
/* The op table, which layers and backends share.  Each op has a descriptor (leati_op_descriptor): its name, its numbers
 * of inputs and outputs, its shape rule, and its gradient rule, which builds the gradient from other ops.  The kernels
 * of an op belong to the backends (engine/backend.h).
 *
 * Layouts: images (N, H, W, C) or (N, spatial..., C), convolution weights (spatial..., C / groups, filters), sequences
 * (N, T, F), matrices row-major.  All tensors are f32 unless the text says otherwise. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_OP_H
#define LEATI_ENGINE_OP_SEMANTICS_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/tensor.h"

#define LEATI_MAX_CONCAT  64 /* inputs of CONCAT */
#define LEATI_MAX_INPUTS  (LEATI_MAX_CONCAT + 2)
#define LEATI_MAX_OUTPUTS 6

typedef struct leati_graph leati_graph;
typedef struct leati_node leati_node;
typedef struct leati_callee leati_callee; /* engine/graph/callee.h */

typedef struct leati_desc {
    leat_dtype dtype;
    int32_t rank;
    int64_t shape[LEAT_MAX_RANK];
} leati_desc;

/*   A question mark marks an optional input.
 *
 *   op                 inputs -> outputs
 *   MATMUL             a, b, bias? -> a b + bias.  a (..., M, K) or transposed, b (..., K, N) or transposed, bias (N).
 *                      a and b have the same leading axes; there is one product for each of their elements
 *   CONV               src, weights, bias? -> dst
 *   CONV_BWD_DATA      diff_dst, weights -> diff_src (attrs.conv.size: its spatial shape).  As a forward op it is the
 *                      transposed convolution
 *   CONV_BWD_WEIGHTS   src, diff_dst -> diff_weights, diff_bias (outputs may be unused)
 *   PATCHES            src -> (P, N, taps * C): the pixels under the window at each of its P places, 0 in the padding.
 *                      The window is attrs.conv.window
 *   PATCHES_BWD        diff_dst -> diff_src (attrs.conv.size: its spatial shape)
 *   POOLING            src -> dst, workspace (opaque; empty unless the kernel needs one)
 *   POOLING_BWD        src, dst, diff_dst, workspace -> diff_src
 *   RESAMPLE           src (N, spatial..., C) -> dst; each spatial axis is attrs.resample.factor times as long
 *                      (engine/op_semantics/resample.h)
 *   RESAMPLE_BWD       diff_dst -> diff_src
 *   BATCH_NORM         src, gamma?, beta? -> dst, mean, variance (biased), workspace (like POOLING's).  Normalizes
 *                      over the last axis with the statistics of the batch
 *   BATCH_NORM_APPLY   src, gamma?, beta?, mean, variance -> dst.  Normalizes with the given statistics
 *   BATCH_NORM_BWD     src, gamma?, mean, variance, diff_dst, rectified?, workspace?, more? -> diff_src, diff_gamma,
 *                      diff_beta, diff (outputs may be unused).  diff is diff_dst + more where `rectified` is above 0
 *                      or absent, and 0 elsewhere; the gradients are computed from diff.  With a workspace, `rectified`
 *                      is dst of the forward node, into which a function is fused
 *   GROUP_NORM         src, gamma? (C), beta? (C) -> dst, mean, 1 / sqrt(variance + epsilon), the last two (rows,
 *                      groups).  src is seen as (rows, places, groups, C / groups); its first attrs.group_norm.samples
 *                      axes are the rows (engine/op_semantics/group_norm.h).  The moments of a row are computed over
 *                      its places and the channels of one group
 *   GROUP_NORM_BWD     src, gamma?, mean, inverse, diff_dst -> diff_src, diff_gamma, diff_beta
 *   RNN                x (N, T, F), kernel (F, G U), recurrent (U, G U), bias? (G U; for GRU_RESET_AFTER (2, G U): the
 *                      bias of the input and the bias of the state), h0? (N, U), c0? (N, U; LSTM only),
 *                      x_mask? (G, N, F), h_mask? (G, N, U), steps? (N, T)
 *                      -> sequence (N, T, U) in the order of processing, h_last (N, U), c_last (N, U; (0) unless LSTM),
 *                         workspace (T, N, kept; (0) unless training), opaque.
 *                      G is the number of gates; for `kept` see leati_rnn_shape.  x_mask[gate] multiplies x, and
 *                      h_mask[gate] multiplies h, before the product of that gate: they are dropout masks.  Where steps
 *                      is 0, the states do not change, and the output is the output of the step before, or 0 if steps
 *                      was 0 from the start (Keras's rule)
 *   RNN_BWD            the inputs of RNN in their order, sequence (not of an LSTM without steps), workspace,
 *                      diff_sequence?, diff_h_last?, diff_c_last?
 *                      -> diff_x, diff_kernel, diff_recurrent, diff_bias, diff_h0, diff_c0 (outputs may be unused)
 *   LSTM_CELL          z (..., 4 U), c_before? (..., U; absent: 0) -> gates (..., 4 U; (0) unless training), h, c
 *                      (..., U).  z has the sums of the gates i, f, c~, o, which other ops computed; attrs.rnn has
 *                      the activations and `training`.  Only plans of the host have it (outputs may be unused)
 *   LSTM_CELL_BWD      gates, c_before?, c, diff_h?, diff_c? -> diff_z, diff_c_before (outputs may be unused)
 *   ELTWISE            src -> f(src)
 *   ELTWISE_BWD        src or dst (leati_function_uses_dst), diff_dst -> diff_src
 *   BINARY             a, b -> a op b, broadcast as NumPy does
 *   REDUCE             src -> dst over attrs.reduce.axes
 *   BROADCAST          src -> src repeated to attrs.shape (NumPy's rule)
 *   SOFTMAX            src -> softmax over attrs.softmax.axis, or its logarithm if attrs.softmax.log
 *   SOFTMAX_BWD        dst, diff_dst -> diff_src
 *   SOFTMAX_XENT       logits (..., C), labels (..., C) -> loss (...), gradient with respect to the logits (..., C):
 *                      softmax(logits) - labels; attrs.xent may clip the probabilities (leati_xent)
 *   ATTENTION          q (N, T, H, D), k (N, S, G, D), v (N, S, G, V), mask? (N or 1, T or 1, S)
 *                      -> y (N, T, H, V), log_sums (N, H, T; (0) unless training).
 *                      y = dropout(softmax(scale q k')) v for each head; query head h reads key head h / (H / G).
 *                      The mask is 1 for a pair of steps that counts; the score of a pair whose mask is 0 is -1e9, so
 *                      that a row in which no pair counts is uniform.  log_sums has the logarithm of the sum of e^score
 *                      of each row.  Dropout is that of DROPOUT for weights (N, H, T, S).  Only plans of the host have
 *                      it (engine/op_semantics/attention.h)
 *   ATTENTION_BWD      q, k, v, mask?, y, log_sums, diff_y -> diff_q, diff_k, diff_v (outputs may be unused)
 *   CONCAT             2 to 64 tensors -> one, along attrs.concat.axis
 *   SLICE              src -> src[start : start + size : 1], per axis
 *   PAD                src -> dst: attrs.pad.before and .after elements of attrs.pad.value added on each axis
 *   TRANSPOSE          src -> axes permuted: dst.shape[i] = src.shape[perm[i]]
 *   RESHAPE            src -> the same memory with the shape attrs.shape
 *   REVERSE            src -> the elements along attrs.reverse.axis in reverse order
 *   CAST               src -> attrs.cast.dtype; an f32 or bf16 result is multiplied by attrs.cast.scale
 *   COPY               src -> dst
 *   STORE              value, state (written) -> none: state = value.  leati_graph_store adds it
 *   DROPOUT            src -> src * mask / (1 - rate).  The mask is a function of (run seed, run step,
 *                      attrs.dropout.stream, element); all elements along the axes attrs.dropout.shared share one
 *                      number.  The gradient is the same op
 *   RANDOM_NORMAL      like (only its shape is used) -> attrs.random_normal.mean + stddev * z, where z are standard
 *                      normal numbers, a function of (run seed, run step, stream, element): engine/random.h
 *   GATHER             table (V, D), indices (...) of any type -> table[indices] (..., D).  Reals are truncated towards
 *                      zero; an index outside [0, V) is an error
 *   GATHER_BWD         indices, diff_dst -> diff_table (attrs.gather.rows, D): for each row the sum over its indices
 *   ONE_HOT            indices (...) of any integer or float type -> (..., depth)
 *   ARGMAX             src -> i32, the index along attrs.argmax.axis of the largest element; of equal ones the first
 *   IN_TOP_K           predictions (N, C), targets (N) integer -> f32 (N): TensorFlow's in_top_k (a tie counts as in)
 *   MOVING_AVERAGE     state (written), value -> none: state = state * momentum + value * (1 - momentum)
 *   CALL               inputs of attrs.call.callee -> its outputs; unused outputs are (0).  See engine/graph/callee.h
 *   CALL_BWD           the inputs of CALL, its outputs, diff_outputs -> one vector: the concatenated gradients with
 *                      respect to the inputs in attrs.call.wanted
 *   CTC                logits (N, T, C), labels (N, L) f32 -> loss (N), its gradient with respect to the logits
 *                      (N, T, C), workspace (opaque).  Class 0 is the blank; as many labels count as are not 0
 *   RANK_SUM           src -> its sum over the ranks of the run (engine/exchange.h); without other ranks src
 *   UPDATE_*           scalars, gradient, weights (written), slots (written) -> none.  Formulas: engine/ops/update.c
 */
#define LEATI_OP_LIST(X)                                                                                     \
    X(MATMUL, matmul)                                                                                        \
    X(CONV, conv)                                                                                            \
    X(CONV_BWD_DATA, conv_bwd_data)                                                                          \
    X(CONV_BWD_WEIGHTS, conv_bwd_weights)                                                                    \
    X(PATCHES, patches)                                                                                      \
    X(PATCHES_BWD, patches_bwd)                                                                              \
    X(POOLING, pooling)                                                                                      \
    X(POOLING_BWD, pooling_bwd)                                                                              \
    X(RESAMPLE, resample)                                                                                    \
    X(RESAMPLE_BWD, resample_bwd)                                                                            \
    X(BATCH_NORM, batch_norm)                                                                                \
    X(BATCH_NORM_APPLY, batch_norm_apply)                                                                    \
    X(BATCH_NORM_BWD, batch_norm_bwd)                                                                        \
    X(GROUP_NORM, group_norm)                                                                                \
    X(GROUP_NORM_BWD, group_norm_bwd)                                                                        \
    X(RNN, rnn)                                                                                              \
    X(RNN_BWD, rnn_bwd)                                                                                      \
    X(LSTM_CELL, lstm_cell)                                                                                  \
    X(LSTM_CELL_BWD, lstm_cell_bwd)                                                                          \
    X(ELTWISE, eltwise)                                                                                      \
    X(ELTWISE_BWD, eltwise_bwd)                                                                              \
    X(BINARY, binary)                                                                                        \
    X(REDUCE, reduce)                                                                                        \
    X(BROADCAST, broadcast)                                                                                  \
    X(SOFTMAX, softmax)                                                                                      \
    X(SOFTMAX_BWD, softmax_bwd)                                                                              \
    X(SOFTMAX_XENT, softmax_xent)                                                                            \
    X(ATTENTION, attention)                                                                                  \
    X(ATTENTION_BWD, attention_bwd)                                                                          \
    X(CONCAT, concat)                                                                                        \
    X(SLICE, slice)                                                                                          \
    X(PAD, pad)                                                                                              \
    X(TRANSPOSE, transpose)                                                                                  \
    X(RESHAPE, reshape)                                                                                      \
    X(REVERSE, reverse)                                                                                      \
    X(CAST, cast)                                                                                            \
    X(COPY, copy)                                                                                            \
    X(STORE, store)                                                                                          \
    X(DROPOUT, dropout)                                                                                      \
    X(RANDOM_NORMAL, random_normal)                                                                          \
    X(GATHER, gather)                                                                                        \
    X(GATHER_BWD, gather_bwd)                                                                                \
    X(ONE_HOT, one_hot)                                                                                      \
    X(ARGMAX, argmax)                                                                                        \
    X(IN_TOP_K, in_top_k)                                                                                    \
    X(MOVING_AVERAGE, moving_average)                                                                        \
    X(CALL, call)                                                                                            \
    X(CALL_BWD, call_bwd)                                                                                    \
    X(UPDATE_SGD, update_sgd)                                                                                \
    X(UPDATE_RMSPROP, update_rmsprop)                                                                        \
    X(UPDATE_ADAGRAD, update_adagrad)                                                                        \
    X(UPDATE_ADADELTA, update_adadelta)                                                                      \
    X(UPDATE_ADAM, update_adam)                                                                              \
    X(UPDATE_ADAMAX, update_adamax)                                                                          \
    X(UPDATE_NADAM, update_nadam)                                                                            \
    X(UPDATE_LION, update_lion)                                                                              \
    X(CTC, ctc)                                                                                              \
    X(RANK_SUM, rank_sum)

typedef enum leati_op {
#define LEATI_OP_ENUM(upper, lower) LEATI_OP_##upper,
    LEATI_OP_LIST(LEATI_OP_ENUM)
#undef LEATI_OP_ENUM
        LEATI_OP_COUNT
} leati_op;

/* The outputs of LSTM_CELL. */
enum { LEATI_LSTM_GATES, LEATI_LSTM_H, LEATI_LSTM_C };

/* Element-wise functions of one variable: enumerator, name, formula, and true if the derivative is computed from dst
 * (see also leati_eltwise_uses_dst).
 * RELU: x >= c ? min(x, b) : a (x - c), where a is the negative slope, b the maximum (INFINITY: none), c the
 * threshold. */
#define LEATI_FUNCTION_LIST(X)                                                                               \
    X(RELU, relu, "x >= c ? min(x, b) : a (x - c)", false)                                                   \
    X(ELU, elu, "x > 0 ? x : a (e^x - 1)", true)                                                             \
    X(SELU, selu, "1.0507 (x > 0 ? x : 1.6733 (e^x - 1))", true)                                             \
    X(SOFTPLUS, softplus, "log(1 + e^x)", false)                                                             \
    X(SOFTSIGN, softsign, "x / (1 + |x|)", false)                                                            \
    X(TANH, tanh, "tanh x", true)                                                                            \
    X(SIGMOID, sigmoid, "1 / (1 + e^-x)", true)                                                              \
    X(HARD_SIGMOID, hard_sigmoid, "clip(a x + b, 0, 1); derivative a where 0 <= a x + b <= 1", false)        \
    X(EXP, exp, "e^x", true)                                                                                 \
    X(LOG, log, "log x", false)                                                                              \
    X(SQRT, sqrt, "sqrt x", true)                                                                            \
    X(SQUARE, square, "x^2", false)                                                                          \
    X(ABS, abs, "|x|; derivative sign x, 0 at 0", false)                                                     \
    X(LINEAR, linear, "a x + b", false)                                                                      \
    X(CLIP, clip, "min(max(x, a), b); derivative 1 where a <= x <= b", false)                                \
    X(POW, pow, "x^a", false)                                                                                \
    X(GELU, gelu, "x (1 + erf(x / sqrt 2)) / 2", false)                                                      \
    X(SILU, silu, "x / (1 + e^-x)", false)                                                                   \
    X(MISH, mish, "x tanh log(1 + e^x)", false)                                                              \
    X(HARD_SWISH, hard_swish, "x clip(x / 6 + 1 / 2, 0, 1)", false)                                          \
    X(SIN, sin, "sin x", false)                                                                              \
    X(COS, cos, "cos x", false)                                                                              \
    X(TAN, tan, "tan x", false)                                                                              \
    X(ASIN, asin, "arcsin x", false)                                                                         \
    X(ACOS, acos, "arccos x", false)                                                                         \
    X(ATAN, atan, "arctan x", false)                                                                         \
    X(SINH, sinh, "sinh x", false)                                                                           \
    X(COSH, cosh, "cosh x", false)                                                                           \
    X(ASINH, asinh, "arsinh x", false)                                                                       \
    X(ACOSH, acosh, "arcosh x", false)                                                                       \
    X(ATANH, atanh, "artanh x", false)                                                                       \
    X(ERF, erf, "the error function", false)                                                                 \
    X(LOG1P, log1p, "log(1 + x)", false)                                                                     \
    X(EXPM1, expm1, "e^x - 1", false)                                                                        \
    X(GELU_TANH, gelu_tanh, "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2", false)

typedef enum leati_function {
#define LEATI_FUNCTION_ENUM(upper, lower, formula, dst) LEATI_FN_##upper,
    LEATI_FUNCTION_LIST(LEATI_FUNCTION_ENUM)
#undef LEATI_FUNCTION_ENUM
        LEATI_FN_COUNT
} leati_function;

typedef struct leati_eltwise {
    leati_function function;
    float a, b, c;
} leati_eltwise;

/* Comparisons give 1 or 0 and have no gradient.  Where their operands are equal, MAX and MIN pass the gradient to the
 * first operand. */
typedef enum leati_binary {
    LEATI_ADD,
    LEATI_SUB,
    LEATI_MUL,
    LEATI_DIV,
    LEATI_MAX,
    LEATI_MIN,
    LEATI_EQUAL,
    LEATI_GREATER,
    LEATI_GREATER_EQUAL
} leati_binary;

typedef enum leati_reduce {
    LEATI_REDUCE_SUM,
    LEATI_REDUCE_MEAN,
    LEATI_REDUCE_MAX,
    LEATI_REDUCE_MIN
} leati_reduce;

#define LEATI_EPSILON 1e-7f /* keras.backend.epsilon() */

/* From what SOFTMAX_XENT computes its loss.  With p = softmax(logits) and c = clip(p, epsilon, 1 - epsilon): */
typedef enum leati_xent {
    LEATI_XENT_EXACT,     /* -sum labels log p */
    LEATI_XENT_CLIPPED,   /* -sum labels log c */
    LEATI_XENT_NORMALIZED /* -sum labels log (c / sum c) */
} leati_xent;

typedef enum leati_pooling {
    LEATI_POOL_MAX,
    LEATI_POOL_AVERAGE /* padding does not count, as in Keras */
} leati_pooling;

/* Recurrent cells, with their gates in Keras's order.  The formulas are in backends/ref/rnn.c. */
typedef enum leati_cell {
    LEATI_CELL_LSTM,            /* i f c o */
    LEATI_CELL_GRU,             /* z r h, the reset gate before the product */
    LEATI_CELL_GRU_RESET_AFTER, /* z r h, the reset gate after the product */
    LEATI_CELL_SIMPLE,          /* h */
    LEATI_CELL_COUNT
} leati_cell;

/* A sliding window over 1 to 3 spatial axes, outermost first. */
typedef struct leati_window {
    int32_t spatial;
    int64_t kernel[3], stride[3], dilation[3] /* 1: none */, pad_before[3], pad_after[3];
} leati_window;

typedef enum leati_post_kind {
    LEATI_POST_NORM = 1,
    LEATI_POST_ADD = 2,
    LEATI_POST_FUNCTION = 4
} leati_post_kind;

enum {
    LEATI_POST_GAMMA,
    LEATI_POST_BETA,
    LEATI_POST_MEAN,
    LEATI_POST_VARIANCE,
    LEATI_POST_ADDEND,
    LEATI_POST_INPUTS
};

typedef struct leati_attrs {
    union {
        struct {
            bool transpose_a, transpose_b;
        } matmul;
        struct {
            leati_window window;
            int64_t groups;
            int64_t size[3]; /* CONV_BWD_DATA, PATCHES_BWD: spatial shape of diff_src */
        } conv;              /* PATCHES and PATCHES_BWD use it, too, without groups */
        struct {
            leati_window window;
            leati_pooling kind;
        } pooling;
        struct {
            bool linear; /* false: nearest */
            bool halved; /* TensorFlow's half_pixel_centers; only with `linear` */
            int32_t spatial;
            int64_t factor[3];
        } resample;
        struct {
            float epsilon;
            bool synchronized; /* statistics over the rows of all ranks, if there are any; not APPLY */
        } batch_norm;
        struct {
            int32_t samples; /* number of leading axes that form the rows */
            float epsilon;
            int64_t channels, groups;
        } group_norm;
        struct {
            leati_cell cell;
            leati_eltwise activation, recurrent_activation; /* SIMPLE has the first only */
            bool go_backwards; /* the kernel processes the last step of x first */
            bool carry_masked; /* GRU: h_mask[0] also multiplies the h that the update gate keeps */
            bool training;     /* the kernel fills the workspace for the backward pass */
        } rnn;
        leati_eltwise eltwise;
        struct {
            leati_binary kind;
        } binary;
        struct {
            leati_reduce kind;
            uint32_t axes; /* bit i: axis i */
            bool keep_dims;
        } reduce;
        struct {
            int32_t rank;
            int64_t dims[LEAT_MAX_RANK];
        } shape; /* BROADCAST, RESHAPE */
        struct {
            int32_t axis;
            bool log;
        } softmax;
        struct {
            leati_xent kind;
        } xent;
        struct {
            float scale, rate; /* rate: of dropout; 0: none */
            uint64_t stream;
            bool training; /* the kernel fills log_sums for the backward pass */
        } attention;
        struct {
            int32_t axis;
        } concat, reverse, argmax;
        struct {
            int64_t start[LEAT_MAX_RANK], size[LEAT_MAX_RANK];
        } slice;
        struct {
            int64_t before[LEAT_MAX_RANK], after[LEAT_MAX_RANK];
            float value;
        } pad;
        struct {
            int32_t perm[LEAT_MAX_RANK];
        } transpose;
        struct {
            leat_dtype dtype;
            float scale;
        } cast;
        struct {
            float rate;
            uint32_t shared; /* bit i: axis i has one draw for all its elements */
            uint64_t stream;
        } dropout;
        struct {
            float mean, stddev;
            uint64_t stream;
        } random_normal;
        struct {
            int64_t rows;
        } gather; /* GATHER_BWD */
        struct {
            int64_t depth;
        } one_hot;
        struct {
            int64_t k;
        } top_k;
        struct {
            float momentum;
        } moving_average;
        struct {
            const leati_callee *callee; /* outlives the graph and its plans */
            bool training;
            uint64_t stream;
            uint32_t wanted; /* CALL_BWD: bit i: the gradient with respect to input i */
        } call;
        struct {
            bool momentum, nesterov; /* SGD */
            bool amsgrad;            /* ADAM */
            bool decay; /* there is one more scalar, the last: the share of the weights that decays first */
            bool as_keras3;   /* RMSPROP, ADAGRAD, ADADELTA, ADAM, ADAMAX: the formula of current Keras */
            bool accumulates; /* RMSPROP as_keras3: the steps have momentum */
            bool centered;    /* RMSPROP as_keras3: the mean gradient is subtracted */
            /* the last input is the sum of the powers of the gradients of a repeated row; with `rows` the op adds the
             * powers up itself */
            bool powers;
            bool rows; /* the gradient is a list of rows of a table; the last input has their indices */
        } update;
    };
    /* Ops fused into this one, which the kernel applies to output 0 in the order of leati_post_kind.  Only the plan
     * sets it; lowerings do not.  LEATI_POST_INPUTS more inputs come after all of the op's own: gamma?, beta?, mean?
     * and variance? of a BATCH_NORM_APPLY, and an addend? of output 0's shape. */
    struct {
        uint32_t kinds; /* bits of leati_post_kind */
        float epsilon;
        leati_eltwise function;
    } post;
} leati_attrs;

typedef enum leati_op_flag {
    LEATI_OP_VIEW = 1, /* output 0 has the memory of input 0 */
    /* Output 0 may overwrite input 0 if nobody reads input 0 later and their sizes are equal: every kernel of the op
     * works with args[output 0] == args[input 0]. */
    LEATI_OP_IN_PLACE = 2,
    LEATI_OP_RANDOM = 8, /* the result differs from run to run, so the plan must not compute it in advance */
    /* An output that nobody reads is passed as NULL.  Without the flag all outputs are allocated. */
    LEATI_OP_OPTIONAL_OUTPUTS = 4
} leati_op_flag;

typedef struct leati_op_descriptor {
    const char *name;
    int32_t min_inputs, max_inputs, outputs;
    uint32_t flags;  /* leati_op_flag */
    uint32_t writes; /* bit i: input i is a state that the op changes */
    /* Bit i: input i may be absent.  If an op has optional inputs, its nodes always have max_inputs inputs, with
     * LEATI_NONE for an absent one, so that the outputs always have the same indices in args. */
    uint32_t optional;
    /* Computes the shapes and types of the outputs from those of the inputs (in[i].rank == -1: absent).  The caller
     * prefixes its errors with the op's name and the node's label. */
    leat_status (*infer)(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                         leat_error *err);
    /* Adds nodes that compute the gradient with respect to each wanted input from the gradients with respect to the
     * outputs (LEATI_NONE if the loss does not depend on an output).  NULL: no gradient flows through the op. */
    void (*gradient)(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                     const bool *wanted, int32_t *diff_inputs);
} leati_op_descriptor;

const leati_op_descriptor *leati_op_descriptor_of(leati_op op);
const char *leati_function_name(leati_function function);
bool leati_function_uses_dst(leati_function function);
/* Returns true if ELTWISE_BWD of this function takes dst.  It follows LEATI_FUNCTION_LIST with two exceptions: RELU
 * without a threshold and with a slope of at least 0 takes dst (dst > 0 where x > 0), ELU with a negative scale does
 * not. */
bool leati_eltwise_uses_dst(const leati_eltwise *eltwise);

/* Like leat_dtype_bytes() and leat_dtype_name(), but they know LEATI_BF16 (tensor/bfloat16.h), too. */
size_t leati_dtype_bytes(leat_dtype dtype);
const char *leati_dtype_name(leat_dtype dtype);

int64_t leati_desc_count(const leati_desc *desc);
size_t leati_desc_bytes(const leati_desc *desc);
leati_desc leati_desc_make(leat_dtype dtype, int rank, const int64_t *shape);
bool leati_desc_same_shape(const leati_desc *a, const leati_desc *b);

#endif
