/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that uses libleat.so, for test_unload.c: trains a small network of convolutions with two threads. */
#include "leat/leat.h"

enum { SIDE = 16, SAMPLES = 32, CLASSES = 2 };

LEAT_API const char *unload_use(void);

static leat_status build(leat_model **model, leat_error *err) {
    leat_builder *builder = NULL;
    leat_compile_options options = leat_compile_options_default();
    leat_status status = leat_builder_create(&builder, err);
    if (status != LEAT_OK) return status;
    leat_node *input = leat_input(builder, (int64_t[]){SIDE, SIDE, 3}, 3);
    leat_node *output = leat_dense(leat_flatten(leat_conv2d(input, 32, 3, "relu")), CLASSES, "softmax");
    status = leat_model_create(model, &builder, &input, 1, &output, 1, err);
    options.loss = "categorical_crossentropy";
    return status == LEAT_OK ? leat_model_compile(*model, &options, err) : status;
}

static leat_status train(leat_model *model, leat_error *err) {
    static float x[SAMPLES * SIDE * SIDE * 3], y[SAMPLES * CLASSES];
    for (int i = 0; i < SAMPLES * SIDE * SIDE * 3; ++i) x[i] = (float)(i % 11) - 5;
    for (int i = 0; i < SAMPLES; ++i) y[CLASSES * i + i % CLASSES] = 1;
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 4, (int64_t[]){SAMPLES, SIDE, SIDE, 3}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, CLASSES}, y)};
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_fit_options options = leat_fit_options_default();
    options.verbose = 0;
    options.threads = 2;
    options.use_multiprocessing = true;
    leat_status status = leat_model_fit(model, &arrays, SAMPLES, &options, NULL, err);
    options.use_multiprocessing = false;
    return status == LEAT_OK ? leat_model_fit(model, &arrays, SAMPLES, &options, NULL, err) : status;
}

const char *unload_use(void) {
    static leat_error err;
    leat_model *model = NULL;
    leat_status status = build(&model, &err);
    if (status == LEAT_OK) status = train(model, &err);
    leat_model_destroy(&model);
    return status == LEAT_OK ? NULL : err.message;
}
