/* SPDX-License-Identifier: Apache-2.0 */
/* Compares all implementations of an op with ref, and gradients with finite differences of ref along random
 * directions. */
#ifndef LEAT_TESTS_OPS_COMPARE_H
#define LEAT_TESTS_OPS_COMPARE_H

#include "ops/task.h"

/* Relative to the largest value of ref: sums of up to some thousand f32 products in another order, and activations
 * within 3 units in the last place, through up to 7 steps. */
#define TOLERANCE 2e-5

#define TANH                                                                                                 \
    { LEATI_FN_TANH, 0, 0, 0 }
#define SIGMOID                                                                                              \
    { LEATI_FN_SIGMOID, 0, 0, 0 }
#define HARD_SIGMOID                                                                                         \
    { LEATI_FN_HARD_SIGMOID, 0.2f, 0.5f, 0 }

/* Runs t on all implementations of its op, and compares the used outputs with ref's, except those of `opaque`,
 * whose contents only their own backend can interpret.
 * Returns the number of implementations that ran. */
int test_compare_except(test_task *t, const char *name, double tolerance, uint32_t opaque);

/* Like test_compare_except() for all outputs, twice: for the implementations that could serve the task, which measuring
 * may choose from, and for those that the rules choose from. */
int test_compare(test_task *t, const char *name, double tolerance);

/* Compares the gradient of the sum of output * weight over all outputs (NULL weights count as 0) with respect to input
 * `input` with finite differences along a few directions. */
void test_check_gradient(test_task *forward, float *const *weights, int input, const float *gradient,
                         const char *name, const char *implementation, leat_rng *rng);

/* Returns a new array with random numbers in [-1, 1) for a tensor. */
float *test_random_like(const leati_desc *desc, leat_rng *rng);

#endif
