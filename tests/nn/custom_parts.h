/* SPDX-License-Identifier: Apache-2.0 */
/* Custom parts for tests, most of them copies of leat's own: losses, metrics, activations and others. */
#ifndef LEAT_TESTS_NN_CUSTOM_PARTS_H
#define LEAT_TESTS_NN_CUSTOM_PARTS_H

#include "leat/custom.h"

/* "MyMse": MeanSquaredError times the key `factor` (default 1). */
leat_loss_definition custom_mse(void);
/* "my_classes": sparse_categorical_crossentropy of probabilities. */
leat_loss_definition custom_classes(void);
/* "MyError": the mean absolute error, plus the key `offset` (default 0). */
leat_metric_definition custom_error(void);
/* "my_tanh". */
leat_activation_definition custom_tanh(void);
/* "MyRows": the key `factor` (default 1) times x minus the mean of the row. */
leat_activation_definition custom_rows(void);
/* "MyUniform": RandomUniform from -0.05 to the key `maxval` (default 0.05). */
leat_initializer_definition custom_uniform(void);
/* "MyL2": the key `l2` (default 0.01) times the sum of squares. */
leat_regularizer_definition custom_l2(void);
/* "MyMaxNorm": MaxNorm of axis 0 with the key `max_value` (default 2). */
leat_constraint_definition custom_max_norm(void);

/* "MyAdam": Adam with the keys `beta_1`, `beta_2` and `epsilon`; slots m and v. */
leat_optimizer_definition custom_adam(void);
/* "MyNormalized": SGD on each weight's gradient divided by its norm. */
leat_optimizer_definition custom_normalized(void);

/* "cells>MyLSTMCell": LSTMCell with sigmoid gates and the key `units`. */
leat_layer_definition custom_lstm_cell(void);

/* Returns a registry of all of them; a failure fails the test. */
leat_registry *custom_parts_registry(void);

#endif
