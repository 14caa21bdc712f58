/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer learning: a network learns to tell three spiral arms apart.  Its base, with a new head and the base's layers
 * frozen, then learns another question about the same points from few labels; at last the whole network is tuned.
 *
 *     cc transfer_learning.c -o transfer_learning $(pkg-config --cflags --libs leat) -lm && ./transfer_learning */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "leat/leat.h"

enum { most = 900 };

typedef struct points {
    int64_t count;
    float x[most * 2]; /* (count, 2) */
    float y[most];     /* (count, 1): the class */
} points;

static void check(leat_status status, const leat_error *err) {
    if (status == LEAT_OK) return;
    fprintf(stderr, "transfer_learning: %s\n", err->message);
    exit(1);
}

/* Draws points of three arms.  The class is the arm, or with `inside` 1 if the point is near the centre. */
static void draw(points *p, int64_t count, bool inside, uint64_t seed) {
    leat_rng rng = leat_rng_for(seed, 0, 0);
    p->count = count;
    for (int64_t i = 0; i < count; ++i) {
        double radius = 0.2 + 0.8 * leat_rng_uniform(&rng);
        int arm = (int)leat_rng_below(&rng, 3);
        double angle = 4 * radius + arm * 2.0943951;
        p->x[2 * i] = (float)(radius * cos(angle) + 0.03 * leat_rng_normal(&rng));
        p->x[2 * i + 1] = (float)(radius * sin(angle) + 0.03 * leat_rng_normal(&rng));
        p->y[i] = inside ? (float)(radius < 0.6) : (float)arm;
    }
}

static void compile(leat_model *model, const char *optimizer) {
    leat_compile_options options = leat_compile_options_default();
    leat_error err = {0};
    options.optimizer = optimizer;
    options.loss = "sparse_categorical_crossentropy";
    options.metrics = "accuracy";
    check(leat_model_compile(model, &options, &err), &err);
}

static void fit(leat_model *model, points *p, int64_t epochs) {
    leat_array x = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){p->count, 2}, p->x)};
    leat_array y = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){p->count, 1}, p->y)};
    leat_arrays arrays = {.inputs = &x, .input_count = 1, .targets = &y, .target_count = 1};
    leat_fit_options options = leat_fit_options_default();
    leat_error err = {0};
    options.epochs = epochs;
    options.verbose = 0;
    check(leat_model_fit(model, &arrays, 16, &options, NULL, &err), &err);
}

static double accuracy(leat_model *model, points *p) {
    leat_array x = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){p->count, 2}, p->x)};
    leat_array y = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){p->count, 1}, p->y)};
    leat_arrays arrays = {.inputs = &x, .input_count = 1, .targets = &y, .target_count = 1};
    leat_logs logs;
    leat_error err = {0};
    double value = 0;
    check(leat_model_evaluate(model, &arrays, 0, NULL, &logs, &err), &err);
    leat_logs_get(&logs, "accuracy", &value);
    return value;
}

/* A network for the arms: two hidden layers, whose names begin with "base", and a head of three classes. */
static leat_model *make_model(void) {
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    leat_error err = {0};
    check(leat_builder_create(&builder, &err), &err);
    leat_node *input = leat_input(builder, (int64_t[]){2}, 1);
    leat_node *x = leat_layer(input, "Dense", "{'units': 64, 'activation': 'relu', 'name': 'base_1'}");
    x = leat_layer(x, "Dense", "{'units': 64, 'activation': 'relu', 'name': 'base_2'}");
    x = leat_layer(x, "Dense", "{'units': 3, 'activation': 'softmax', 'name': 'arms'}");
    check(leat_model_create(&model, &builder, &input, 1, &x, 1, &err), &err);
    return model;
}

/* Replaces the head: the new model has copies of the base's layers and a new Dense of two classes. */
static leat_model *replace_head(const leat_model *model) {
    leat_builder *builder = NULL;
    leat_model *made = NULL;
    leat_error err = {0};
    check(leat_builder_create_from(&builder, model, &err), &err);
    leat_node *input = leat_builder_input(builder, 0);
    leat_node *x = leat_builder_layer(builder, "base_2");
    x = leat_layer(x, "Dense", "{'units': 2, 'activation': 'softmax', 'name': 'inside'}");
    check(leat_model_create(&made, &builder, &input, 1, &x, 1, &err), &err);
    return made;
}

int main(void) {
    static points arms, few, test;
    leat_error err = {0};
    leat_model *model = make_model();
    draw(&arms, most, false, 1);
    compile(model, "Adam(learning_rate=0.003)");
    fit(model, &arms, 30);
    printf("arms: accuracy %.2f\n", accuracy(model, &arms));

    leat_model *transferred = replace_head(model);
    draw(&few, 60, true, 2);
    draw(&test, most, true, 3);
    check(leat_model_set_trainable_matching(transferred, "base_*", false, NULL, &err), &err);
    compile(transferred, "Adam(learning_rate=0.01)"); /* freezing takes effect at the next compile */
    fit(transferred, &few, 60);
    printf("new head on a frozen base: accuracy %.2f\n", accuracy(transferred, &test));

    check(leat_model_set_trainable_matching(transferred, "*", true, NULL, &err), &err);
    compile(transferred, "Adam(learning_rate=0.001)");
    fit(transferred, &few, 60);
    printf("whole network tuned: accuracy %.2f\n", accuracy(transferred, &test));
    leat_model_destroy(&transferred);
    leat_model_destroy(&model);
    return 0;
}
