/* SPDX-License-Identifier: Apache-2.0 */
/* Actors predict, each with its own predictor, while the trainer trains and publishes: no prediction is made of
 * weights of two versions.  All weights of version v are v, so that a prediction tells which of them it has seen. */
#include "cmocka_all.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "leat/predictor.h"
#include "train/support.h"

enum { ACTORS = 3, VERSIONS = 40, ROUNDS = 5, WIDTH = 8 };

#define DENSE(name, units, more)                                                                             \
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"" name "\", \"units\": " #units                    \
    ", \"use_bias\": false" more "}}"
#define CONV(name, more)                                                                                     \
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"" name                                            \
    "\", \"filters\": 8, \"kernel_size\": [1, 1], \"use_bias\": false" more "}}"

typedef struct network {
    const char *layers;
    float factor; /* a prediction is factor * v^3 */
} network;

static const network dense = {
    DENSE("a", 8, ", \"batch_input_shape\": [null, 8]") "," DENSE("b", 8, "") "," DENSE("c", 1, ""), 512};
static const network packed = {
    CONV("a", ", \"batch_input_shape\": [null, 1, 1, 8]") "," CONV(
        "b", "") ",{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\"}}," DENSE("c", 1, ""),
    512};

typedef struct actor {
    pthread_t thread;
    leat_predictor *predictor;
    float factor;
    atomic_bool *done;
    int64_t runs, mixed, backwards, failures;
    float last; /* v */
} actor;

/* Returns the version v that gives this prediction, 0 for none. */
static float version_of(float prediction, float factor) {
    for (int v = 1; v <= VERSIONS; ++v)
        if (prediction == factor * (float)v * (float)v * (float)v) return (float)v;
    return 0;
}

static void act_once(actor *a) {
    float x[WIDTH], y = 0;
    for (int i = 0; i < WIDTH; ++i) x[i] = 1;
    uint64_t before = leat_predictor_version(a->predictor);
    if (leat_predictor_sync(a->predictor, NULL) != LEAT_OK ||
        leat_predictor_run(a->predictor, (const void *[]){x}, (void *[]){&y}, NULL) != LEAT_OK)
        ++a->failures;
    a->backwards += leat_predictor_version(a->predictor) < before;
    a->last = version_of(y, a->factor);
    a->mixed += a->last == 0;
    ++a->runs;
}

static void *act(void *user) {
    actor *a = user;
    while (!atomic_load(a->done)) act_once(a);
    act_once(a);
    return NULL;
}

static void set_weights(leat_model *model, float value) {
    for (int i = 0; i < leat_model_weight_count(model); ++i) {
        leat_tensor weight = leat_model_weight(model, i);
        for (int64_t k = 0; k < leat_tensor_count(&weight); ++k) ((float *)weight.data)[k] = value;
    }
}

/* A step that writes all weights, and changes none. */
static void train(leat_model *model, const network *net) {
    float x[WIDTH] = {1, 2}, y[1] = {3};
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){1, WIDTH}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){1, 1}, y)};
    if (net == &packed) input.tensor = leat_tensor_view(LEAT_F32, 4, (int64_t[]){1, 1, 1, WIDTH}, x);
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_error err = {0};
    expect_ok(leat_model_train_on_batch(model, &arrays, NULL, &err), &err);
}

static leat_model *make(const network *net) {
    static char json[4096];
    leat_model *model = NULL;
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.0}}";
    options.loss = "mse";
    snprintf(json, sizeof json,
             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [%s]}}",
             net->layers);
    expect_ok(leat_model_from_json(&model, json, &err), &err);
    expect_ok(leat_model_compile(model, &options, &err), &err);
    leat_model_set_threads(model, 1);
    set_weights(model, 1);
    return model;
}

static void never_mixed(const network *net) {
    leat_model *model = make(net);
    leat_error err = {0};
    atomic_bool done = false;
    actor actors[ACTORS] = {{0}};
    for (int i = 0; i < ACTORS; ++i) {
        actors[i].factor = net->factor;
        actors[i].done = &done;
        expect_ok(leat_predictor_create(&actors[i].predictor, model, NULL, &err), &err);
    }
    for (int i = 0; i < ACTORS; ++i)
        assert_int_equal(pthread_create(&actors[i].thread, NULL, act, &actors[i]), 0);
    for (int round = 0; round < ROUNDS; ++round)
        for (int v = 1; v <= VERSIONS; ++v) {
            set_weights(model, (float)v);
            train(model, net);
            expect_ok(leat_model_publish(model, &err), &err);
        }
    set_weights(model, 1); /* no predictor may see this value */
    atomic_store(&done, true);
    for (int i = 0; i < ACTORS; ++i) {
        actor *a = &actors[i];
        pthread_join(a->thread, NULL);
        if (a->mixed + a->backwards + a->failures > 0)
            fail_msg("of %lld runs %lld of mixed weights, %lld of older ones, %lld failed",
                     (long long)a->runs, (long long)a->mixed, (long long)a->backwards,
                     (long long)a->failures);
        assert_float_equal(a->last, VERSIONS, 0);
        leat_predictor_destroy(&a->predictor);
    }
    leat_model_destroy(&model);
}

static void weights_are_never_mixed(void **state) {
    (void)state;
    never_mixed(&dense);
}

static void packed_weights_are_never_mixed(void **state) {
    (void)state;
    never_mixed(&packed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_never_mixed),
        cmocka_unit_test(packed_weights_are_never_mixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
