/* SPDX-License-Identifier: Apache-2.0 */
/* Keras's example CNN on Fashion-MNIST: built in C, fed by worker processes, saved as a file that Keras can load.
 *
 *     cc fashion_mnist.c -o fashion_mnist $(pkg-config --cflags --libs leat) && ./fashion_mnist [EPOCHS [FOLDER]]
 *
 * FOLDER contains the four files of Fashion-MNIST; Debian's package dataset-fashion-mnist installs them. */
#include <stdio.h>
#include <stdlib.h>

#include "leat/leat.h"

static leat_status build(leat_model **out, leat_error *err) {
    leat_builder *builder = NULL;
    leat_status status = leat_builder_create(&builder, err);
    if (status != LEAT_OK) return status;
    leat_node *input = leat_input(builder, (int64_t[]){28, 28, 1}, 3);
    leat_node *x = leat_conv2d(input, 32, 3, "relu");
    x = leat_conv2d(x, 64, 3, "relu");
    x = leat_max_pooling2d(x, 2);
    x = leat_dropout(x, 0.25);
    x = leat_dense(leat_flatten(x), 128, "relu");
    x = leat_dropout(x, 0.5);
    x = leat_dense(x, 10, "softmax");
    status = leat_model_create(out, &builder, &input, 1, &x, 1, err);
    if (status != LEAT_OK) return status;
    leat_compile_options compile = leat_compile_options_default();
    compile.optimizer = "adam";
    compile.loss = "categorical_crossentropy";
    compile.metrics = "accuracy";
    return leat_model_compile(*out, &compile, err);
}

static leat_status open_data(leat_sequence *out, const char *folder, const char *name, leat_error *err) {
    char spec[1024];
    leat_source_options options = leat_source_options_default();
    options.batch_size = 128;
    snprintf(spec, sizeof spec,
             "idx:%s/%s-images-idx3-ubyte.gz,%s/%s-labels-idx1-ubyte.gz?scale=1/255&onehot=10", folder, name,
             folder, name);
    return leat_source_open(out, sizeof *out, spec, &options, err);
}

int main(int argc, char **argv) {
    const char *folder = argc > 2 ? argv[2] : "/usr/share/datasets/fashion-mnist";
    leat_sequence train = {0}, test = {0};
    leat_model *model = NULL;
    leat_error err = {0};
    leat_fit_options fit = leat_fit_options_default(); /* Keras's defaults */
    leat_set_log(leat_log_to_stderr, NULL);            /* says what bounds the training, and warns */
    fit.epochs = argc > 1 ? atoi(argv[1]) : 6;
    fit.workers = 2;
    fit.use_multiprocessing = true;
    fit.validation = &test;
    leat_status status = build(&model, &err);
    if (status == LEAT_OK) status = open_data(&train, folder, "train", &err);
    if (status == LEAT_OK) status = open_data(&test, folder, "t10k", &err);
    if (status == LEAT_OK) status = leat_model_fit_generator(model, &train, &fit, NULL, &err);
    if (status == LEAT_OK) status = leat_model_save(model, "fashion_mnist.h5", true, &err);
    if (status != LEAT_OK) fprintf(stderr, "fashion_mnist: %s\n", err.message);
    leat_sequence_destroy(&train);
    leat_sequence_destroy(&test);
    leat_model_destroy(&model);
    return status == LEAT_OK ? 0 : 1;
}
