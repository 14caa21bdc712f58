/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the time of one prediction with a leat_predictor:
 *     bench_predict MODEL BATCH [--threads N] [--seconds S] [--streaming] [--on-batch] [--weights F] [--device D]
 *                   [--cpu]
 * MODEL is one of those of models.h or a model's file.  --streaming: one time step per call.  --on-batch:
 * leat_model_predict_on_batch instead.  --weights: how the predictor keeps the weights (f32, bf16 or int8).  --device:
 * where it computes (cpu, cuda, auto).  --cpu: the CPU time of all threads.  It prints one JSON object: ns of a
 * prediction, median, p99, least, and, unless --cpu is given, the mean of consecutive predictions without reading the
 * clock (clock_ns) in between; and peak memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/leat.h"
#include "models.h"

enum { most_samples = 1 << 20, most_inputs = 16, in_a_row = 64 };

typedef struct bench {
    const char *name, *weights, *device;
    long batch;
    int threads;
    double seconds;
    bool streaming, on_batch, cpu;
    bench_sample sample;
    leat_model *model;
    leat_predictor *predictor;
    leat_array inputs[most_inputs];
    int input_count;
    int64_t samples[most_samples];
    int count;
    double row_ns, clock_ns;
} bench;

static int64_t now_ns(const bench *b) {
    return (int64_t)bench_now_ns(b->cpu);
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool fill_inputs(bench *b) {
    for (int i = 0; i < b->input_count; ++i) {
        leat_tensor tensor = leat_predictor_input(b->predictor, i);
        tensor.data = bench_random_inputs(&b->sample, (size_t)leat_tensor_count(&tensor));
        if (!tensor.data) return false;
        b->inputs[i] = (leat_array){.tensor = tensor};
    }
    return true;
}

static leat_status prepare(bench *b, leat_error *err) {
    leat_predictor_options options = leat_predictor_options_default();
    options.batch_size = b->batch;
    options.threads = b->threads;
    options.streaming = b->streaming;
    options.device = b->device;
    leat_status status = leat_weights_format_parse(&options.weights_format, b->weights, err);
    if (status == LEAT_OK) status = bench_model(&b->model, b->name, NULL, &b->sample, err);
    if (status != LEAT_OK) return status;
    leat_model_set_threads(b->model, b->threads);
    if (b->on_batch) status = leat_model_set_device(b->model, b->device, err);
    if (status != LEAT_OK) return status;
    b->input_count = leat_model_input_count(b->model);
    status = leat_predictor_create(&b->predictor, b->model, &options, err);
    if (status != LEAT_OK) return status;
    return fill_inputs(b) ? LEAT_OK : LEAT_ENOMEM;
}

static leat_status once(bench *b, leat_error *err) {
    leat_tensor outputs[most_inputs];
    const void *inputs[most_inputs];
    if (b->on_batch) {
        leat_arrays arrays = {.inputs = b->inputs, .input_count = b->input_count};
        return leat_model_predict_on_batch(b->model, &arrays, outputs, err);
    }
    for (int i = 0; i < b->input_count; ++i) inputs[i] = b->inputs[i].tensor.data;
    return leat_predictor_run(b->predictor, inputs, NULL, err);
}

static leat_status measure(bench *b, leat_error *err) {
    leat_status status = LEAT_OK;
    int64_t rows = 0, start, spent = 0;
    for (int i = 0; status == LEAT_OK && i < in_a_row; ++i) status = once(b, err);
    int64_t end = now_ns(b) + (int64_t)(b->seconds / 2 * 1e9);
    while (status == LEAT_OK && b->count < most_samples && (b->count < 5 || now_ns(b) < end)) {
        start = now_ns(b);
        status = once(b, err);
        b->samples[b->count++] = now_ns(b) - start;
    }
    end = now_ns(b) + (int64_t)(b->seconds / 2 * 1e9);
    for (; status == LEAT_OK && !b->cpu && now_ns(b) < end; ++rows) {
        start = now_ns(b);
        for (int i = 0; status == LEAT_OK && i < in_a_row; ++i) status = once(b, err);
        spent += now_ns(b) - start;
    }
    b->row_ns = rows ? (double)spent / (double)rows / in_a_row : 0;
    start = now_ns(b);
    for (int i = 0; i < 10000; ++i) (void)now_ns(b);
    b->clock_ns = (double)(now_ns(b) - start) / 10001;
    qsort(b->samples, (size_t)b->count, sizeof b->samples[0], by_value);
    return status;
}

static bool parse(bench *b, int argc, char **argv) {
    if (argc < 3) return false;
    *b = (bench){.name = argv[1],
                 .batch = strtol(argv[2], NULL, 10),
                 .threads = 1,
                 .seconds = 2,
                 .weights = "f32",
                 .device = "cpu"};
    for (int i = 3; i < argc; ++i) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--streaming") == 0)
            b->streaming = true;
        else if (strcmp(argv[i], "--on-batch") == 0)
            b->on_batch = true;
        else if (strcmp(argv[i], "--cpu") == 0)
            b->cpu = true;
        else if (strcmp(argv[i], "--weights") == 0 && more)
            b->weights = argv[++i];
        else if (strcmp(argv[i], "--device") == 0 && more)
            b->device = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0 && more)
            b->threads = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0 && more)
            b->seconds = strtod(argv[++i], NULL);
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static bench b;
    leat_error err = {0};
    if (!parse(&b, argc, argv)) {
        fputs("usage: bench_predict MODEL BATCH [--threads N] [--seconds S] [--streaming] [--on-batch] "
              "[--weights f32|bf16|int8] [--device cpu|cuda|auto] [--cpu]\n",
              stderr);
        return 2;
    }
    leat_status status = prepare(&b, &err);
    if (status == LEAT_OK) status = measure(&b, &err);
    if (status == LEAT_OK)
        printf("{\"model\": \"%s\", \"call\": \"%s\", \"weights\": \"%s\", \"device\": \"%s\", \"batch\": "
               "%ld, \"threads\": %d, "
               "\"median_ns\": %lld, "
               "\"p99_ns\": %lld, \"min_ns\": %lld, \"mean_ns\": %.0f, \"clock_ns\": %.0f, \"runs\": %d, "
               "\"peak_mib\": %.0f}\n",
               b.name,
               b.on_batch    ? "predict_on_batch"
               : b.streaming ? "streaming"
                             : "predictor",
               b.weights, b.on_batch ? leat_model_device(b.model) : leat_predictor_device(b.predictor),
               b.batch, b.threads, (long long)b.samples[b.count / 2],
               (long long)b.samples[(int64_t)b.count * 99 / 100], (long long)b.samples[0], b.row_ns,
               b.clock_ns, b.count, bench_peak_mib());
    if (status != LEAT_OK) fprintf(stderr, "bench_predict: %s\n", err.message);
    for (int i = 0; i < b.input_count; ++i) free(b.inputs[i].tensor.data);
    leat_predictor_destroy(&b.predictor);
    leat_model_destroy(&b.model);
    return status == LEAT_OK ? 0 : 1;
}
