/* SPDX-License-Identifier: Apache-2.0 */
/* Custom layers for tests: one like Dense, one without weights that has a factor, one with two inputs and two
 * outputs. */
#ifndef LEAT_TESTS_NN_CUSTOM_LAYERS_H
#define LEAT_TESTS_NN_CUSTOM_LAYERS_H

#include "leat/layer.h"

/* "Product": keys units, kernel_initializer, kernel_regularizer, kernel_constraint; weights kernel, bias. */
leat_layer_definition custom_product(void);
/* "times": key factor (default 2); passes masks on.  It has no weights. */
leat_layer_definition custom_times(void);
/* "SumAndDifference": two inputs of one shape, two outputs. */
leat_layer_definition custom_sum_and_difference(void);

/* Returns a registry of the three layers; a failure fails the test. */
leat_registry *custom_registry(void);

#endif
