/* SPDX-License-Identifier: Apache-2.0 */
/* Actors and a trainer: two threads predict with a small recurrent network, one observation at a time, while the main
 * thread trains the network and publishes its weights.  An episode is a wave; the network learns to predict its next
 * value. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "leat/leat.h"

enum { actors = 2, steps = 8, samples = 512, rounds = 20, episode = 40 };

typedef struct actor {
    pthread_t thread;
    leat_predictor *predictor;
    atomic_bool *done;
    double error; /* mean squared error of the last episode */
    long runs;
    leat_error err;
} actor;

static float wave(long i) {
    return (float)sin(0.3 * (double)i);
}

static leat_status play(actor *a) {
    a->error = 0;
    leat_predictor_reset(a->predictor);
    leat_status status = leat_predictor_sync(a->predictor, &a->err); /* new weights between episodes */
    for (long i = 0; status == LEAT_OK && i < episode; ++i) {
        float seen = wave(i), next = 0;
        status = leat_predictor_run(a->predictor, (const void *[]){&seen}, (void *[]){&next}, &a->err);
        a->error += (next - wave(i + 1)) * (next - wave(i + 1)) / (double)episode;
        ++a->runs;
    }
    return status;
}

static void *act(void *user) {
    actor *a = user;
    while (!atomic_load(a->done))
        if (play(a) != LEAT_OK) return NULL;
    (void)play(a);
    return NULL;
}

static leat_status make_model(leat_model **model, leat_error *err) {
    leat_builder *g = NULL;
    leat_compile_options how = leat_compile_options_default();
    how.optimizer = "Adam(learning_rate=0.01)";
    how.loss = "mse";
    leat_status status = leat_builder_create(&g, err);
    if (status != LEAT_OK) return status;
    leat_node *x = leat_input(g, (int64_t[]){steps, 1}, 2); /* windows of a wave */
    leat_node *y = leat_dense(leat_lstm(x, 16, false), 1, NULL);
    status = leat_model_create(model, &g, &x, 1, &y, 1, err);
    return status == LEAT_OK ? leat_model_compile(*model, &how, err) : status;
}

static leat_status train(leat_model *model, leat_error *err) {
    static float x[samples][steps], y[samples];
    for (long i = 0; i < samples; ++i) {
        for (long t = 0; t < steps; ++t) x[i][t] = wave(i + t);
        y[i] = wave(i + steps);
    }
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 3, (int64_t[]){samples, steps, 1}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 1}, y)};
    leat_arrays data = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_fit_options fit = leat_fit_options_default();
    fit.verbose = 0;
    leat_status status = LEAT_OK;
    for (int round = 0; status == LEAT_OK && round < rounds; ++round) {
        status = leat_model_fit(model, &data, 64, &fit, NULL, err);
        if (status == LEAT_OK) status = leat_model_publish(model, err);
    }
    return status;
}

int main(void) {
    leat_error err = {0};
    leat_model *model = NULL;
    atomic_bool done = false;
    actor all[actors] = {{0}};
    leat_predictor_options options = leat_predictor_options_default();
    options.streaming = true; /* one observation per call, although the model was trained on windows */
    leat_status status = make_model(&model, &err);
    int running = 0;
    for (; status == LEAT_OK && running < actors; ++running) {
        actor *a = &all[running];
        a->done = &done;
        status = leat_predictor_create(&a->predictor, model, &options, &err);
        if (status != LEAT_OK || pthread_create(&a->thread, NULL, act, a) != 0) break;
    }
    if (status == LEAT_OK) status = train(model, &err);
    atomic_store(&done, true);
    for (int i = 0; i < running; ++i) pthread_join(all[i].thread, NULL);
    for (int i = 0; status == LEAT_OK && i < running; ++i)
        printf("actor %d: %ld predictions, mean squared error of the last episode %.4f\n", i, all[i].runs,
               all[i].error);
    if (status != LEAT_OK) fprintf(stderr, "%s\n", err.message);
    for (int i = 0; i < actors; ++i) leat_predictor_destroy(&all[i].predictor);
    leat_model_destroy(&model);
    return status == LEAT_OK ? 0 : 1;
}
