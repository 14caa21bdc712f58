/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of keras.ops that leat computes where a functional model calls them as layers. */
#ifndef LEATI_NN_LAYERS_OPERATIONS_OPERATIONS_H
#define LEATI_NN_LAYERS_OPERATIONS_OPERATIONS_H

#include "leat/error.h"
#include "nn/layers/operations/operands.h"

#define LEATI_PI 3.14159265358979323846

/* Each table ends with a NULL name. */
extern const leati_operation leati_elementwise_operations[], leati_moving_operations[],
    leati_reducing_operations[], leati_ordering_operations[], leati_product_operations[],
    leati_nn_operations[], leati_image_operations[], leati_choice_operations[], leati_part_operations[],
    leati_window_operations[], leati_fourier_operations[], leati_matrix_operations[],
    leati_statistic_operations[], leati_pair_operations[];

/* Finds a function by Keras's class name; NULL if there is none. */
const leati_operation *leati_operation_find(const char *name);
/* Returns the failure for a function that leat does not have, with the way out. */
leat_status leati_operation_unknown(const char *name, leat_error *err);
/* Returns true if the function has an argument of that name. */
bool leati_operation_has(const leati_operation *operation, const char *argument);

/* Selects elements of x1 where the condition is 1, and of x2 where it is 0, broadcast to one shape.  What is not
 * selected may be NaN or infinite (elementwise.c). */
leati_value leati_operation_select(leati_operands *o, leati_value condition, leati_value x1, leati_value x2);

/* Casts x to the type of the argument `dtype`, if there is one, as far as that changes numbers of type f32: integers
 * are truncated, and bool is 0 or 1 (elementwise.c). */
leati_value leati_operation_to_dtype(const leati_operands *o, leati_value x);

/* Return 1 where x is NaN, or where it is not 0, and 0 elsewhere (elementwise.c). */
leati_value leati_operation_is_nan(leati_graph *g, leati_value x);
leati_value leati_operation_truth(leati_graph *g, leati_value x);

/* Returns 1 above 0, -1 below 0, and 0 at 0 (elementwise.c). */
leati_value leati_operation_sign(leati_graph *g, leati_value x);

/* Exchanges the last two axes (moving.c). */
leati_value leati_operation_swap_last(leati_graph *g, leati_value x);

/* Returns the largest integer that is not above x; infinite numbers and NaN stay (elementwise.c). */
leati_value leati_operation_floor(leati_graph *g, leati_value x);

/* Rounds to the nearest integer, and halves to the even one (elementwise.c). */
leati_value leati_operation_round(leati_graph *g, leati_value x);

/* Returns one-hot vectors of classes along an axis of the result (functions.c). */
leati_value leati_operation_one_hot(leati_graph *g, leati_value classes, int64_t depth, int axis);

/* Returns the norm of any order above 0 over some axes (reducing.c). */
leati_value leati_operation_norm(leati_graph *g, leati_value x, uint32_t axes, bool keeps, double order);

/* Takes `count` elements of an axis, from `start` in steps of `step`, which may be negative (moving.c). */
leati_value leati_operation_take_axis(leati_graph *g, leati_value x, int axis, int64_t start, int64_t step,
                                      int64_t count);

#endif
