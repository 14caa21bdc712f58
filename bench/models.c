/* SPDX-License-Identifier: Apache-2.0 */
/* The models that the benchmarks train. */
#include "models.h"

#include <stdlib.h>
#include <string.h>

static leat_node *build(leat_builder *g, const char *name, leat_node **input, int64_t *shape, int *rank) {
    if (strcmp(name, "mlp") == 0) {
        *rank = 1;
        shape[0] = 64;
        *input = leat_input(g, shape, 1);
        leat_node *x = leat_dense(leat_dense(*input, 128, "relu"), 128, "relu");
        return leat_dense(x, 4, NULL);
    }
    if (strcmp(name, "least") == 0) {
        *rank = 1;
        shape[0] = 4;
        *input = leat_input(g, shape, 1);
        return leat_dense(*input, 4, NULL);
    }
    if (strcmp(name, "lstm") == 0) {
        *rank = 2;
        shape[0] = 64;
        shape[1] = 8;
        *input = leat_input(g, shape, 2);
        return leat_dense(leat_lstm(*input, 64, false), 4, NULL);
    }
    *rank = 3;
    shape[0] = shape[1] = 28;
    shape[2] = 1;
    *input = leat_input(g, shape, 3);
    leat_node *x = leat_conv2d(leat_conv2d(*input, 32, 3, "relu"), 64, 3, "relu");
    x = leat_dense(leat_flatten(leat_max_pooling2d(x, 2)), 128, "relu");
    return leat_dense(x, 10, "softmax");
}

static leat_status make_model(leat_model **model, const char *name, const char *metrics, int64_t *shape,
                              int *rank, leat_error *err) {
    leat_builder *g = NULL;
    leat_node *input = NULL;
    leat_status status = leat_builder_create(&g, err);
    if (status != LEAT_OK) return status;
    leat_node *output = build(g, name, &input, shape, rank);
    status = leat_model_create(model, &g, &input, 1, &output, 1, err);
    if (status != LEAT_OK) return status;
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "adam";
    options.loss = strcmp(name, "cnn") == 0 ? "categorical_crossentropy" : "mse";
    options.metrics = metrics;
    return leat_model_compile(*model, &options, err);
}

static leat_status load_model(leat_model **model, const char *path, int64_t *shape, int *rank,
                              leat_error *err) {
    leat_status status = leat_model_load(model, path, err);
    if (status != LEAT_OK) return status;
    leat_tensor input = leat_model_input_shape(*model, 0);
    *rank = input.rank - 1;
    if (*rank > 4)
        return leat_error_set(err, LEAT_ESHAPE, "expected at most 4 dimensions, received %d", *rank);
    memcpy(shape, input.shape + 1, (size_t)*rank * sizeof *shape);
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "SGD(learning_rate=0.01, momentum=0.9)";
    options.loss = "categorical_crossentropy";
    return leat_model_compile(*model, &options, err);
}

leat_status bench_model(leat_model **model, const char *name, const char *metrics, int64_t *shape, int *rank,
                        leat_error *err) {
    return strchr(name, '.') ? load_model(model, name, shape, rank, err)
                             : make_model(model, name, metrics, shape, rank, err);
}

float *bench_random_numbers(size_t count) {
    float *numbers = malloc(count * sizeof *numbers);
    leat_rng rng = leat_rng_for(1, 0, 0);
    for (size_t i = 0; numbers && i < count; ++i) numbers[i] = (float)leat_rng_uniform(&rng);
    return numbers;
}
