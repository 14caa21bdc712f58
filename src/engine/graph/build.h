/* SPDX-License-Identifier: Apache-2.0 */
/* Ops as functions, for lowerings.  Each function adds a node and returns its first output.  engine/op_semantics/op.h
 * defines the ops; engine/graph/graph.h says how failures are reported. */
#ifndef LEATI_ENGINE_GRAPH_BUILD_H
#define LEATI_ENGINE_GRAPH_BUILD_H

#include "engine/graph/graph.h"

leati_value leati_matmul(leati_graph *g, leati_value a, bool transpose_a, leati_value b, bool transpose_b,
                         leati_value bias);
leati_value leati_eltwise_of(leati_graph *g, leati_value x, leati_eltwise f);
/* Adds an ELTWISE with the default a, b and c of the function. */
leati_value leati_function_of(leati_graph *g, leati_value x, leati_function f);
leati_value leati_linear(leati_graph *g, leati_value x, float a, float b); /* a x + b */
leati_value leati_clip(leati_graph *g, leati_value x, float low, float high);
leati_value leati_binary_of(leati_graph *g, leati_binary kind, leati_value a, leati_value b);
leati_value leati_add(leati_graph *g, leati_value a, leati_value b);
leati_value leati_sub(leati_graph *g, leati_value a, leati_value b);
leati_value leati_mul(leati_graph *g, leati_value a, leati_value b);
leati_value leati_div(leati_graph *g, leati_value a, leati_value b);
/* Returns the angle of the point (x, y) with the x axis, -pi to pi; 0 at (0, 0), where its gradient is that of y. */
leati_value leati_angle_of(leati_graph *g, leati_value y, leati_value x);
leati_value leati_reduce_of(leati_graph *g, leati_reduce kind, leati_value x, uint32_t axes, bool keep_dims);
/* Reduces the last axis. */
leati_value leati_reduce_last(leati_graph *g, leati_reduce kind, leati_value x, bool keep_dims);
/* Reduces all axes, to a scalar. */
leati_value leati_reduce_all(leati_graph *g, leati_reduce kind, leati_value x);
leati_value leati_softmax_of(leati_graph *g, leati_value x, int axis);
/* Computes one softmax over several axes (bit i: axis i) together. */
leati_value leati_softmax_over(leati_graph *g, leati_value x, uint32_t axes);
leati_value leati_log_softmax(leati_graph *g, leati_value x, int axis);
leati_value leati_softmax_xent(leati_graph *g, leati_value logits, leati_value labels, leati_xent kind);
/* Returns the CTC loss of each sample. */
leati_value leati_ctc(leati_graph *g, leati_value logits, leati_value labels);
/* Returns the sum of x over the ranks of a run. */
leati_value leati_rank_sum(leati_graph *g, leati_value x);
leati_value leati_reshape(leati_graph *g, leati_value x, int rank, const int64_t *dims);
leati_value leati_broadcast(leati_graph *g, leati_value x, int rank, const int64_t *dims);
leati_value leati_expand_last(leati_graph *g, leati_value x); /* (...) -> (..., 1) */
leati_value leati_transpose(leati_graph *g, leati_value x, const int32_t *perm);
leati_value leati_concat(leati_graph *g, int count, const leati_value *x, int axis);
leati_value leati_slice_axis(leati_graph *g, leati_value x, int axis, int64_t start, int64_t size);
leati_value leati_pad(leati_graph *g, leati_value x, const int64_t *before, const int64_t *after,
                      float value);
leati_value leati_reverse(leati_graph *g, leati_value x, int axis);
leati_value leati_cast(leati_graph *g, leati_value x, leat_dtype dtype, float scale);
leati_value leati_dropout(leati_graph *g, leati_value x, float rate, uint32_t shared, uint64_t stream);
/* Returns mean + stddev * z with the shape of `like`; z is standard normal. */
leati_value leati_random_normal(leati_graph *g, leati_value like, float mean, float stddev, uint64_t stream);
leati_value leati_gather(leati_graph *g, leati_value table, leati_value indices);
leati_value leati_one_hot(leati_graph *g, leati_value indices, int64_t depth);
leati_value leati_argmax(leati_graph *g, leati_value x, int axis);
leati_value leati_in_top_k(leati_graph *g, leati_value predictions, leati_value targets, int64_t k);
leati_value leati_scalar(leati_graph *g, float value); /* a constant of rank 0 */
leati_value leati_full(leati_graph *g, int rank, const int64_t *dims, float value);
/* Sums x over the axes along which NumPy's broadcasting repeats a tensor of the shape `like` to the shape of x.  The
 * result has the shape `like`.  This is the gradient of an operand that was broadcast. */
leati_value leati_sum_to(leati_graph *g, leati_value x, const leati_desc *like);
leati_value leati_eltwise_bwd(leati_graph *g, leati_value src_or_dst, leati_value diff_dst, leati_eltwise f);
void leati_moving_average(leati_graph *g, leati_value state, leati_value value, float momentum);

#endif
