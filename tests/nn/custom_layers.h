/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of a user's own, for tests: one like Dense, one without weights that has a factor, one of two inputs and outputs. */
#ifndef LEAT_TESTS_NN_OWN_LAYERS_H
#define LEAT_TESTS_NN_OWN_LAYERS_H

#include "leat/layer.h"

/* "Product": keys units, kernel_initializer, kernel_regularizer, kernel_constraint; weights kernel, bias. */
leat_layer_definition own_product(void);
/* "times": key factor (default 2); passes masks on.  It has no weights. */
leat_layer_definition own_times(void);
/* "SumAndDifference": of two inputs of one shape, two outputs. */
leat_layer_definition own_sum_and_difference(void);

/* A registry of the three; a failure fails the test. */
leat_registry *own_registry(void);

#endif
