/* SPDX-License-Identifier: Apache-2.0 */
/* The models that the benchmarks train. */
#include "models.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

typedef struct small_model {
    const char *name, *loss;
    int64_t shape[4];
    int rank;
    int64_t words;
    leat_node *(*build)(leat_node *input);
} small_model;

static leat_node *passed_through(leat_node *x) {
    return leat_activation(x, "linear");
}

static leat_node *least(leat_node *x) {
    return leat_dense(x, 4, NULL);
}

static leat_node *mlp(leat_node *x) {
    return leat_dense(leat_dense(leat_dense(x, 128, "relu"), 128, "relu"), 4, NULL);
}

static leat_node *lstm(leat_node *x) {
    return leat_dense(leat_lstm(x, 64, false), 4, NULL);
}

static leat_node *gru(leat_node *x) {
    return leat_dense(leat_layer(x, "GRU", "{'units': 64, 'reset_after': true}"), 4, NULL);
}

static leat_node *simple_rnn(leat_node *x) {
    return leat_dense(leat_layer(x, "SimpleRNN", "{'units': 64}"), 4, NULL);
}

static leat_node *bidirectional(leat_node *x) {
    static const char config[] = "{'layer': {'class_name': 'LSTM', 'config': {'units': 64}}}";
    return leat_dense(leat_layer(x, "Bidirectional", config), 4, NULL);
}

static leat_node *conv_lstm(leat_node *x) {
    static const char config[] = "{'filters': 16, 'kernel_size': 3, 'padding': 'same'}";
    return leat_dense(leat_layer(leat_layer(x, "ConvLSTM2D", config), "GlobalAveragePooling2D", NULL), 4,
                      NULL);
}

static leat_node *conv1d(leat_node *x) {
    static const char config[] = "{'filters': 64, 'kernel_size': 5, 'activation': 'relu'}";
    x = leat_layer(leat_layer(x, "Conv1D", config), "Conv1D", config);
    return leat_dense(leat_layer(x, "GlobalMaxPooling1D", NULL), 4, NULL);
}

static leat_node *embedding(leat_node *x) {
    x = leat_layer(x, "Embedding", "{'input_dim': 100000, 'output_dim': 64}");
    return leat_dense(leat_layer(x, "GlobalAveragePooling1D", NULL), 4, NULL);
}

static leat_node *cnn(leat_node *x) {
    x = leat_conv2d(leat_conv2d(x, 32, 3, "relu"), 64, 3, "relu");
    x = leat_dense(leat_flatten(leat_max_pooling2d(x, 2)), 128, "relu");
    return leat_dense(x, 10, "softmax");
}

static const small_model models[] = {
    {"empty", "mse", {4}, 1, 0, passed_through},
    {"least", "mse", {4}, 1, 0, least},
    {"mlp", "mse", {64}, 1, 0, mlp},
    {"lstm", "mse", {64, 8}, 2, 0, lstm},
    {"gru", "mse", {64, 8}, 2, 0, gru},
    {"rnn", "mse", {64, 8}, 2, 0, simple_rnn},
    {"bilstm", "mse", {64, 8}, 2, 0, bidirectional},
    {"convlstm", "mse", {8, 32, 32, 4}, 4, 0, conv_lstm},
    {"conv1d", "mse", {128, 16}, 2, 0, conv1d},
    {"embedding", "mse", {64}, 1, 100000, embedding},
    {"cnn", "categorical_crossentropy", {28, 28, 1}, 3, 0, cnn},
};

static const small_model *find_model(const char *name, leat_error *err) {
    for (size_t i = 0; i < sizeof models / sizeof *models; ++i)
        if (strcmp(name, models[i].name) == 0) return &models[i];
    leat_error_set(err, LEAT_EINVAL,
                   "expected the file of a model or one of empty, least, mlp, lstm, gru, rnn, bilstm, "
                   "convlstm, conv1d, embedding and cnn, received '%s'",
                   name);
    return NULL;
}

static leat_status make_model(leat_model **model, const char *name, const char *metrics, bench_sample *sample,
                              leat_error *err) {
    const small_model *made = find_model(name, err);
    leat_builder *g = NULL;
    if (!made) return LEAT_EINVAL;
    leat_status status = leat_builder_create(&g, err);
    if (status != LEAT_OK) return status;
    sample->rank = made->rank;
    sample->words = made->words;
    memcpy(sample->shape, made->shape, sizeof sample->shape);
    leat_node *input = leat_input(g, sample->shape, sample->rank), *output = made->build(input);
    status = leat_model_create(model, &g, &input, 1, &output, 1, err);
    if (status != LEAT_OK) return status;
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "adam";
    options.loss = made->loss;
    options.metrics = metrics;
    return leat_model_compile(*model, &options, err);
}

static leat_status load_model(leat_model **model, const char *path, bench_sample *sample, leat_error *err) {
    leat_status status = leat_model_load(model, path, err);
    if (status != LEAT_OK) return status;
    leat_tensor input = leat_model_input_shape(*model, 0);
    sample->rank = input.rank - 1;
    /* A model of words begins with their Embedding, which has a row for each word. */
    leat_tensor first = {0};
    sample->words = 0;
    if (input.dtype == LEAT_I32) {
        status = leat_model_weight_shape(*model, 0, &first, err);
        if (status != LEAT_OK) return status;
        sample->words = first.shape[0];
    }
    sample->labels = leat_model_is_compiled(*model);
    if (sample->rank > 4)
        return leat_error_set(err, LEAT_ESHAPE, "expected at most 4 dimensions, received %d", sample->rank);
    memcpy(sample->shape, input.shape + 1, (size_t)sample->rank * sizeof *sample->shape);
    if (sample->labels) return LEAT_OK;
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "SGD(learning_rate=0.01, momentum=0.9)";
    options.loss = sample->loss ? sample->loss : "categorical_crossentropy";
    return leat_model_compile(*model, &options, err);
}

leat_status bench_model(leat_model **model, const char *name, const char *metrics, bench_sample *sample,
                        leat_error *err) {
    return strchr(name, '.') ? load_model(model, name, sample, err)
                             : make_model(model, name, metrics, sample, err);
}

float *bench_random_numbers(size_t count) {
    float *numbers = malloc(count * sizeof *numbers);
    leat_rng rng = leat_rng_for(1, 0, 0);
    for (size_t i = 0; numbers && i < count; ++i) numbers[i] = (float)leat_rng_uniform(&rng);
    return numbers;
}

void *bench_random_inputs(const bench_sample *sample, size_t count) {
    if (sample->words == 0) return bench_random_numbers(count);
    int32_t *words = malloc(count * sizeof *words);
    leat_rng rng = leat_rng_for(1, 0, 0);
    for (size_t i = 0; words && i < count; ++i)
        words[i] = (int32_t)(leat_rng_uniform(&rng) * (double)sample->words);
    return words;
}

double bench_now_ns(bool cpu) {
    struct timespec now;
    clock_gettime(cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

double bench_peak_mib(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}
