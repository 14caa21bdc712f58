/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a small convolutional network from a folder of pictures with a subfolder for each class, or from a CSV list of
 * pictures, with augmentation.  The last fifth of the pictures validates.
 *
 *     cc train_pictures.c -o train_pictures $(pkg-config --cflags --libs leat) && ./train_pictures photos 2 10
 *
 * The means and standard deviations of the channels are computed in one pass over the training data, and used for the
 * validation data, too. */
#include <stdio.h>
#include <stdlib.h>

#include "leat/leat.h"

static void check(leat_status status, const leat_error *err) {
    if (status == LEAT_OK) return;
    fprintf(stderr, "train_pictures: %s\n", err->message);
    exit(1);
}

static void show_progress(void *user, double share) {
    (void)user;
    if (share == 1) printf("statistics of the training data are computed\n");
}

/* Opens a subset of the pictures: "training" or "validation", which is not augmented. */
static leat_sequence open_pictures(const char *folder, const char *subset) {
    char spec[4096];
    leat_sequence out;
    leat_error err = {0};
    leat_source_options options = leat_source_options_default();
    options.batch_size = 16;
    options.progress = show_progress;
    snprintf(spec, sizeof spec,
             "images:%.3000s?size=32x32&validation=0.2&subset=%s&seed=1&augment=flip,rotate(10),zoom(0.1),"
             "brightness(0.2),featurewise_center,featurewise_std_normalization",
             folder, subset);
    check(leat_source_open(&out, sizeof out, spec, &options, &err), &err);
    return out;
}

static leat_model *make_model(int64_t classes) {
    char head[96];
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    snprintf(head, sizeof head, "{'units': %d, 'activation': 'softmax'}", (int)classes);
    check(leat_builder_create(&builder, &err), &err);
    leat_node *input = leat_input(builder, (int64_t[]){32, 32, 3}, 3);
    leat_node *x =
        leat_layer(input, "Conv2D", "{'filters': 16, 'kernel_size': [3, 3], 'activation': 'relu'}");
    x = leat_layer(x, "MaxPooling2D", "{}");
    x = leat_layer(x, "Conv2D", "{'filters': 32, 'kernel_size': [3, 3], 'activation': 'relu'}");
    x = leat_layer(x, "GlobalAveragePooling2D", "{}");
    x = leat_layer(x, "Dense", head);
    check(leat_model_create(&model, &builder, &input, 1, &x, 1, &err), &err);
    options.optimizer = "adam";
    options.loss = "sparse_categorical_crossentropy";
    options.metrics = "accuracy";
    check(leat_model_compile(model, &options, &err), &err);
    return model;
}

int main(int count, char **arguments) {
    leat_error err = {0};
    leat_logs logs;
    double accuracy = 0;
    if (count != 4) {
        fprintf(stderr, "usage: %s FOLDER CLASSES EPOCHS\n", arguments[0]);
        return 2;
    }
    leat_sequence training = open_pictures(arguments[1], "training");
    leat_sequence validation = open_pictures(arguments[1], "validation");
    leat_model *model = make_model(strtol(arguments[2], NULL, 10));
    leat_fit_options options = leat_fit_options_default();
    options.epochs = strtol(arguments[3], NULL, 10);
    options.workers = 2;
    options.validation = &validation;
    options.verbose = 2;
    check(leat_model_fit_generator(model, &training, &options, NULL, &err), &err);
    check(leat_model_evaluate_generator(model, &training, NULL, &logs, &err), &err);
    leat_logs_get(&logs, "accuracy", &accuracy);
    printf("accuracy on the training pictures %.2f\n", accuracy);
    check(leat_model_save(model, "pictures.h5", true, &err), &err);
    leat_model_destroy(&model);
    leat_sequence_destroy(&validation);
    leat_sequence_destroy(&training);
    return 0;
}
