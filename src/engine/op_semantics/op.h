/* SPDX-License-Identifier: Apache-2.0 */
/* The op table: what layers and backends both know.  An op is one row: name, how many inputs and outputs, its shape
 * rule and its gradient rule (more ops).  Kernels are the backends' (engine/backend.h).
 *
 * Layouts: images (N, H, W, C) or (N, spatial..., C), convolution weights (spatial..., C / groups, filters), sequences
 * (N, T, F), matrices row-major.  All f32 unless said. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_OP_H
#define LEATI_ENGINE_OP_SEMANTICS_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/tensor.h"

#define LEATI_MAX_INPUTS  34 /* a merge of 32, and two */
#define LEATI_MAX_OUTPUTS 6

typedef struct leati_graph leati_graph;
typedef struct leati_node leati_node;
typedef struct leati_callee leati_callee; /* engine/graph/callee.h */

typedef struct leati_desc {
    leat_dtype dtype;
    int32_t rank;
    int64_t shape[LEAT_MAX_RANK];
} leati_desc;

/*   op                 inputs -> outputs
 *   MATMUL             a, b, bias? -> a b + bias.  a (..., M, K) or transposed, b (..., K, N) or transposed, with the
 *                      same leading axes: a product for each; bias (N)
 *   CONV               src, weights, bias? -> dst
 *   CONV_BWD_DATA      diff_dst, weights -> diff_src (attrs.conv.size: its spatial shape).  Forward, it is the
 *                      transposed convolution
 *   CONV_BWD_WEIGHTS   src, diff_dst -> diff_weights, diff_bias (outputs may be unused)
 *   PATCHES            src -> (P, N, taps * C): the pixels under the window at each of its P places, 0 in the padding.
 *                      Its window is attrs.conv's
 *   PATCHES_BWD        diff_dst -> diff_src (attrs.conv.size: its spatial shape)
 *   POOLING            src -> dst, workspace (opaque; of a kernel that needs one)
 *   POOLING_BWD        src, dst, diff_dst, workspace -> diff_src
 *   RESAMPLE           src (N, spatial..., C) -> each spatial axis attrs.resample.factor times as long (engine/op_semantics/resample.h)
 *   RESAMPLE_BWD       diff_dst -> diff_src
 *   BATCH_NORM         src, gamma?, beta? -> dst, mean, variance (biased).  Over the last axis, statistics of the batch
 *   BATCH_NORM_APPLY   src, gamma?, beta?, mean, variance -> dst.  Given statistics
 *   BATCH_NORM_BWD     src, gamma?, mean, variance, diff_dst, rectified? -> diff_src, diff_gamma, diff_beta, diff (outputs
 *                      may be unused).  diff_dst counts only where `rectified` is above 0; diff is what counts of it
 *   GROUP_NORM         src, gamma? (C), beta? (C) -> dst, mean, 1 / sqrt(variance + epsilon), both (rows, groups).  src is
 *                      (rows, places, groups, C / groups), its first attrs.group_norm.samples axes being the rows
 *                      (engine/op_semantics/group_norm.h); moments of a row are over its places and a group's channels
 *   GROUP_NORM_BWD     src, gamma?, mean, inverse, diff_dst -> diff_src, diff_gamma, diff_beta
 *   RNN                x (N, T, F), kernel (F, G U), recurrent (U, G U), bias? (G U; GRU_RESET_AFTER: (2, G U), that
 *                      of the input and that of the state), h0? (N, U), c0? (N, U; LSTM only), x_mask? (G, N, F),
 *                      h_mask? (G, N, U), steps? (N, T)
 *                      -> sequence (N, T, U) in the order of processing, h_last (N, U), c_last (N, U; LSTM, else (0)),
 *                         workspace (T, N, kept), opaque; (0) when not training.
 *                      G gates, kept: leati_rnn_shape.  x_mask[gate] multiplies x, h_mask[gate] multiplies h, before the
 *                      product of that gate: factors of dropout.  Where steps is 0 the states stay, and the output is
 *                      that of the step before, 0 before the first that counts (Keras's rule)
 *   RNN_BWD            the inputs of RNN in their order, sequence (not of an LSTM without steps), workspace, diff_sequence?,
 *                      diff_h_last?, diff_c_last?
 *                      -> diff_x, diff_kernel, diff_recurrent, diff_bias, diff_h0, diff_c0 (outputs may be unused)
 *   ELTWISE            src -> f(src)
 *   ELTWISE_BWD        src or dst (leati_function_uses_dst), diff_dst -> diff_src
 *   BINARY             a, b -> a op b, broadcast as NumPy does
 *   REDUCE             src -> dst over attrs.reduce.axes
 *   BROADCAST          src -> src repeated to attrs.shape (NumPy's rule)
 *   SOFTMAX            src -> dst over attrs.softmax.axis, or its logarithm
 *   SOFTMAX_BWD        dst, diff_dst -> diff_src
 *   SOFTMAX_XENT       logits (..., C), labels (..., C) -> loss (...), softmax(logits) - labels (..., C)
 *   CONCAT             2 to 32 tensors -> one, along attrs.concat.axis
 *   SLICE              src -> src[start : start + size : 1], per axis
 *   PAD                src -> dst: before and after per axis, filled with attrs.pad.value
 *   TRANSPOSE          src -> axes permuted: dst.shape[i] = src.shape[perm[i]]
 *   RESHAPE            src -> the same memory as attrs.shape
 *   REVERSE            src -> the order along attrs.reverse.axis turned round
 *   CAST               src -> attrs.cast.dtype, times attrs.cast.scale for f32 and bf16
 *   COPY               src -> dst
 *   STORE              value, state (written) -> none: state = value.  The op of leati_graph_store
 *   DROPOUT            src -> src * mask / (1 - rate), the mask a function of (run seed, run step, attrs.dropout.stream,
 *                      element or, along attrs.dropout.shared axes, one draw for all).  Its gradient is itself
 *   RANDOM_NORMAL      like (its shape alone matters) -> attrs.random_normal.mean + stddev * z, z standard normal numbers
 *                      that are a function of (run seed, run step, stream, element): engine/random.h
 *   GATHER             table (V, D), indices (...) of any type -> table[indices] (..., D); reals are cut towards zero, and
 *                      an index outside [0, V) is an error
 *   GATHER_BWD         indices, diff_dst -> diff_table (attrs.gather.rows, D): sums over the indices that name a row
 *   ONE_HOT            indices (...) of any integer or float type -> (..., depth)
 *   ARGMAX             src -> i32 over attrs.argmax.axis; the first of equals
 *   IN_TOP_K           predictions (N, C), targets (N) integer -> f32 (N): TensorFlow's in_top_k (ties count as in)
 *   MOVING_AVERAGE     state (written), value -> none: state = state * momentum + value * (1 - momentum)
 *   CALL               inputs of attrs.call.callee -> its outputs, (0) behind the last.  engine/graph/callee.h
 *   CALL_BWD           the inputs of CALL, its outputs, diff_outputs -> one vector: the gradients by the inputs that
 *                      attrs.call.wanted names, one behind the other
 *   UPDATE_*           scalars, gradient, weights (written), slots (written) -> none.  nn/optimizers says the formulas
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
    X(ELTWISE, eltwise)                                                                                      \
    X(ELTWISE_BWD, eltwise_bwd)                                                                              \
    X(BINARY, binary)                                                                                        \
    X(REDUCE, reduce)                                                                                        \
    X(BROADCAST, broadcast)                                                                                  \
    X(SOFTMAX, softmax)                                                                                      \
    X(SOFTMAX_BWD, softmax_bwd)                                                                              \
    X(SOFTMAX_XENT, softmax_xent)                                                                            \
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
    X(UPDATE_LION, update_lion)

typedef enum leati_op {
#define LEATI_OP_ENUM(upper, lower) LEATI_OP_##upper,
    LEATI_OP_LIST(LEATI_OP_ENUM)
#undef LEATI_OP_ENUM
        LEATI_OP_COUNT
} leati_op;

/* Functions of one number: enumerator, name, formula, whether the derivative is taken from dst (see also
 * leati_eltwise_uses_dst).
 * RELU: x >= c ? min(x, b) : a (x - c), with a the negative slope, b the maximum (INFINITY: none), c the threshold. */
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
    X(HARD_SWISH, hard_swish, "x clip(x / 6 + 1 / 2, 0, 1)", false)

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

/* Comparisons give 1 or 0 and have no gradient; MAX and MIN pass it to the first operand where equal. */
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

typedef enum leati_pooling {
    LEATI_POOL_MAX,
    LEATI_POOL_AVERAGE /* over the elements that are not padding, as Keras does */
} leati_pooling;

/* Recurrent cells.  Their gates lie in Keras's order; formulas: backends/ref/rnn.c. */
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
        } conv;              /* and PATCHES, without groups */
        struct {
            leati_window window;
            leati_pooling kind;
        } pooling;
        struct {
            bool linear; /* else nearest */
            bool halved; /* of linear: an element lies in the middle of its place, not at the start */
            int32_t spatial;
            int64_t factor[3];
        } resample;
        struct {
            float epsilon;
        } batch_norm;
        struct {
            int32_t samples; /* leading axes that are rows */
            float epsilon;
            int64_t channels, groups;
        } group_norm;
        struct {
            leati_cell cell;
            leati_eltwise activation, recurrent_activation; /* SIMPLE has the first only */
            bool go_backwards;                              /* process the last step of x first */
            bool carry_masked; /* GRU: what the update gate keeps of h has passed h_mask[0], too */
            bool training;     /* keep what the backward pass needs */
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
            uint32_t wanted; /* CALL_BWD: bit i: the gradient by input i */
        } call;
        struct {
            bool momentum, nesterov; /* SGD */
            bool amsgrad;            /* ADAM */
            bool decay; /* one more scalar behind the others: what the weights are multiplied by first */
        } update;
    };
    /* What is done to output 0 after the op, in this order.  The plan sets it when it fuses; lowerings do not.  The
     * further inputs come after all of the op's own, LEATI_POST_INPUTS of them: gamma?, beta?, mean?, variance? of a
     * BATCH_NORM_APPLY, and an addend? of output 0's shape. */
    struct {
        uint32_t kinds; /* leati_post_kind */
        float epsilon;
        leati_eltwise function;
    } post;
} leati_attrs;

typedef enum leati_op_flag {
    LEATI_OP_VIEW = 1,     /* output 0 is input 0's memory */
    LEATI_OP_IN_PLACE = 2, /* output 0 may take the memory of input 0, if that dies here and bytes agree:
                                     every kernel of the op works with args[output 0] == args[input 0] */
    LEATI_OP_RANDOM = 8,   /* another result in every run: never computed ahead */
    LEATI_OP_OPTIONAL_OUTPUTS =
        4 /* an output that nobody reads is passed as NULL; otherwise all are allocated */
} leati_op_flag;

typedef struct leati_op_row {
    const char *name;
    int32_t min_inputs, max_inputs, outputs;
    uint32_t flags;  /* leati_op_flag */
    uint32_t writes; /* bit i: input i is a state that the op changes */
    uint32_t
        optional; /* bit i: input i may be absent.  A node of an op that has such inputs always lists max_inputs
                          of them, LEATI_NONE for what is missing, so that the outputs' place in args is fixed */
    /* Shapes and types of the outputs from those of the inputs (in[i].rank == -1: absent).  Its errors are prefixed
     * with the op's name and the node's label. */
    leat_status (*infer)(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                         leat_error *err);
    /* Adds the nodes that compute the gradient by the inputs that are wanted from that by the outputs
     * (LEATI_NONE where an output does not reach the loss).  NULL: the op has no gradient, it stops there. */
    void (*gradient)(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                     const bool *wanted, int32_t *diff_inputs);
} leati_op_row;

const leati_op_row *leati_op_row_of(leati_op op);
const char *leati_function_name(leati_function function);
bool leati_function_uses_dst(leati_function function);
/* Whether ELTWISE_BWD of it takes dst.  Beside the list's column: RELU without threshold and with a slope of at least 0 does
 * (dst > 0 where x > 0), ELU with a negative scale does not. */
bool leati_eltwise_uses_dst(const leati_eltwise *eltwise);

/* As leat_dtype_bytes and _name, of LEATI_BF16 (tensor/bfloat16.h) too. */
size_t leati_dtype_bytes(leat_dtype dtype);
const char *leati_dtype_name(leat_dtype dtype);

int64_t leati_desc_count(const leati_desc *desc);
size_t leati_desc_bytes(const leati_desc *desc);
leati_desc leati_desc_make(leat_dtype dtype, int rank, const int64_t *shape);
bool leati_desc_same_shape(const leati_desc *a, const leati_desc *b);

#endif
