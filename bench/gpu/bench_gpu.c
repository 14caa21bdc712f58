/* SPDX-License-Identifier: Apache-2.0 */
/* Measures leat on a GPU for bench/gpu/table.py, with the models of bench/gpu's peers:
 *     bench_gpu MODEL MODE BATCH [--device NAME] [--policy NAME] [--tf32 0|1] [--seconds S]
 *               [--steps N] [--workers N] [--threads N]
 * MODEL is mlp (784-512-512-10), lstm (64 steps of 32 features, 64 units, 1 output) or cnn (28x28x1, with dropout),
 * trained by Adam, or a file, resnet50.json for example, trained by SGD with momentum.  Each mode prints JSON:
 *     train   a step of leat_model_train_on_batch that gives the loss (us), and one that does not (us_ahead)
 *     fit     a step of leat_model_fit: all of it (us), and the verdict's waiting and computing
 *     first   makes one step and prints its loss
 *     stream  one stateful step of the LSTM: on the CPU by a streaming predictor, elsewhere by a stateful model
 *     soak    makes --steps steps, with a line every 100; the losses must be finite and memory must not grow
 *     memory  doubles the batch until LEAT_ENOMEM; a step of BATCH must work afterwards */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "leat/leat.h"

enum { host_batches = 4, most_batch = 1 << 23, rounds = 5, fit_batches = 64, fit_bytes = 1 << 28 };

typedef struct bench {
    const char *model_name, *mode, *device, *policy;
    bool tf32;
    long batch, steps;
    int workers, threads;
    double seconds;
    leat_model *model;
    int64_t shape[4]; /* of one sample */
    int rank;
    int64_t classes;
    leat_array inputs[host_batches], targets[host_batches];
} bench;

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- Models and data ---- */

static leat_node *build(leat_builder *g, const char *name, leat_node **input) {
    if (strcmp(name, "mlp") == 0) {
        *input = leat_input(g, (int64_t[]){784}, 1);
        return leat_dense(leat_dense(leat_dense(*input, 512, "relu"), 512, "relu"), 10, "softmax");
    }
    if (strcmp(name, "lstm") == 0) {
        *input = leat_input(g, (int64_t[]){64, 32}, 2);
        return leat_dense(leat_lstm(*input, 64, false), 1, NULL);
    }
    *input = leat_input(g, (int64_t[]){28, 28, 1}, 3);
    leat_node *x = leat_conv2d(leat_conv2d(*input, 32, 3, "relu"), 64, 3, "relu");
    x = leat_flatten(leat_dropout(leat_max_pooling2d(x, 2), 0.25));
    return leat_dense(leat_dropout(leat_dense(x, 128, "relu"), 0.5), 10, "softmax");
}

static leat_status create_model(bench *b, leat_error *err) {
    if (strchr(b->model_name, '.')) return leat_model_load(&b->model, b->model_name, err);
    leat_builder *g = NULL;
    leat_node *input = NULL;
    leat_status status = leat_builder_create(&g, err);
    if (status != LEAT_OK) return status;
    leat_node *output = build(g, b->model_name, &input);
    return leat_model_create(&b->model, &g, &input, 1, &output, 1, err);
}

static leat_status set_device(bench *b, leat_error *err) {
    return leat_model_set_device(b->model, b->device, err);
}

static leat_status make_model(bench *b, leat_error *err) {
    leat_status status = create_model(b, err);
    if (status != LEAT_OK) return status;
    leat_tensor input = leat_model_input_shape(b->model, 0);
    b->rank = input.rank - 1;
    memcpy(b->shape, input.shape + 1, (size_t)b->rank * sizeof *b->shape);
    b->classes = leat_model_output_shape(b->model, 0).shape[1];
    if (b->threads > 0) leat_model_set_threads(b->model, b->threads);
    leat_model_set_tf32(b->model, b->tf32);
    if (b->policy) status = leat_model_set_dtype_policy(b->model, b->policy, err);
    if (status == LEAT_OK) status = set_device(b, err);
    if (status != LEAT_OK) return status;
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = strchr(b->model_name, '.') ? "SGD(learning_rate=0.01, momentum=0.9)" : "adam";
    options.loss = b->classes > 1 ? "sparse_categorical_crossentropy" : "mse";
    return leat_model_compile(b->model, &options, err);
}

static int64_t sample_count(const bench *b) {
    int64_t elements = 1;
    for (int i = 0; i < b->rank; ++i) elements *= b->shape[i];
    return elements;
}

/* Makes arrays of `samples` samples.  The caller frees the data. */
static leat_status make_data(const bench *b, int64_t samples, uint64_t seed, leat_array *input,
                             leat_array *target, leat_error *err) {
    int64_t dims[5] = {samples};
    memcpy(dims + 1, b->shape, (size_t)b->rank * sizeof *dims);
    int64_t elements = samples * sample_count(b);
    float *x = malloc((size_t)elements * sizeof *x), *y = malloc((size_t)samples * sizeof *y);
    *input = (leat_array){.tensor = leat_tensor_view(LEAT_F32, b->rank + 1, dims, x)};
    *target = (leat_array){.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 1}, y)};
    if (!x || !y) {
        free(x);
        free(y);
        return leat_error_set(err, LEAT_ENOMEM, "no memory for %lld samples on the host", (long long)samples);
    }
    leat_rng rng = leat_rng_for(seed, 0, 0);
    for (int64_t i = 0; i < elements; ++i)
        x[i] = i < 1 << 24 ? (float)leat_rng_uniform(&rng) : x[i - (1 << 24)];
    for (int64_t i = 0; i < samples; ++i)
        y[i] = b->classes > 1 ? (float)leat_rng_below(&rng, (uint64_t)b->classes)
                              : (float)leat_rng_uniform(&rng);
    return LEAT_OK;
}

static leat_status step_on(bench *b, leat_array *input, leat_array *target, double *loss, leat_error *err) {
    leat_arrays arrays = {input, target, NULL, 1, 1, 0};
    if (!loss) return leat_model_train_on_batch(b->model, &arrays, NULL, err);
    leat_logs logs;
    leat_status status = leat_model_train_on_batch(b->model, &arrays, &logs, err);
    if (status == LEAT_OK) (void)leat_logs_get(&logs, "loss", loss);
    return status;
}

static leat_status step(bench *b, long i, double *loss, leat_error *err) {
    return step_on(b, &b->inputs[i % host_batches], &b->targets[i % host_batches], loss, err);
}

/* Returns the model's name without folder and suffix. */
static const char *row_model(const bench *b, char *room, size_t bytes) {
    const char *slash = strrchr(b->model_name, '/');
    snprintf(room, bytes, "%s", slash ? slash + 1 : b->model_name);
    room[strcspn(room, ".")] = '\0';
    return room;
}

static void begin_row(const bench *b, const char *setting) {
    char model[64];
    printf("{\"row\": \"%s-%ld-%s\", \"program\": \"leat\", \"setting\": \"%s%s\"",
           row_model(b, model, sizeof model), b->batch,
           b->policy && strcmp(b->policy, "mixed_bfloat16") == 0 ? "bf16"
           : b->tf32                                             ? "tf32"
                                                                 : "f32",
           b->device, setting);
}

/* ---- Measurements ---- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Makes `count` steps and gives their us.  The last step always gives its loss, so that all of them have ended. */
static leat_status round_of(bench *b, long count, bool reads, double *us, double *loss, leat_error *err) {
    leat_status status = LEAT_OK;
    double start = now_us();
    for (long i = 0; status == LEAT_OK && i < count; ++i)
        status = step(b, i, reads || i == count - 1 ? loss : NULL, err);
    *us = now_us() - start;
    return status;
}

static leat_status measure(bench *b, bool reads, double *us, double *loss, leat_error *err) {
    double found[rounds], spent = 0;
    long count = 1;
    leat_status status = round_of(b, 4, reads, &spent, loss, err);
    for (;; count *= 2) {
        if (status == LEAT_OK) status = round_of(b, count, reads, &spent, loss, err);
        if (status != LEAT_OK || spent > b->seconds * 1e6 / rounds / 2) break;
    }
    for (int i = 0; status == LEAT_OK && i < rounds; ++i) {
        status = round_of(b, count, reads, &spent, loss, err);
        found[i] = spent / (double)count;
    }
    if (status != LEAT_OK) return status;
    qsort(found, rounds, sizeof *found, by_value);
    *us = found[rounds / 2];
    return LEAT_OK;
}

static leat_status train(bench *b, leat_error *err) {
    double us = 0, us_ahead = 0, loss = 0, first = 0;
    double start = now_us();
    leat_status status = step(b, 0, &first, err);
    double first_us = now_us() - start;
    if (status == LEAT_OK) status = measure(b, true, &us, &loss, err);
    if (status == LEAT_OK) status = measure(b, false, &us_ahead, &loss, err);
    if (status != LEAT_OK) return status;
    begin_row(b, "");
    printf(", \"us\": %.2f, \"us_ahead\": %.2f, \"first_us\": %.0f, \"loss_first\": %g, \"loss\": %g}\n", us,
           us_ahead, first_us, first, loss);
    return LEAT_OK;
}

static leat_status fit_once(bench *b, leat_arrays *arrays, int64_t epochs, leat_verdict *verdict,
                            leat_error *err) {
    leat_fit_options options = leat_fit_options_default();
    leat_history *history = NULL;
    options.epochs = epochs;
    options.verbose = 0;
    options.workers = b->workers;
    options.threads = b->threads;
    leat_status status = leat_model_fit(b->model, arrays, b->batch, &options, &history, err);
    if (status == LEAT_OK) *verdict = leat_history_verdict(history);
    leat_history_destroy(&history);
    return status;
}

static leat_status fit(bench *b, leat_error *err) {
    int64_t count = fit_bytes / (b->batch * sample_count(b) * (int64_t)sizeof(float));
    count = count < 4 ? 4 : count > fit_batches ? fit_batches : count;
    leat_array input, target;
    leat_verdict v = {0};
    leat_status status = make_data(b, b->batch * count, 3, &input, &target, err);
    if (status != LEAT_OK) return status;
    leat_arrays arrays = {&input, &target, NULL, 1, 1, 0};
    status = fit_once(b, &arrays, 2, &v, err);
    double wanted = 2 * b->seconds * 1e9 / (double)(v.wall_ns > 0 ? v.wall_ns : 1);
    if (status == LEAT_OK) status = fit_once(b, &arrays, wanted > 2 ? (int64_t)wanted : 2, &v, err);
    free(input.tensor.data);
    free(target.tensor.data);
    if (status != LEAT_OK) return status;
    double steps = (double)v.steps * 1e3;
    begin_row(b, " fit");
    printf(", \"us\": %.2f, \"wait_us\": %.2f, \"compute_us\": %.2f, \"workers\": %d, \"steps\": %lld}\n",
           (double)v.wall_ns / steps, (double)v.data_wait_ns / steps, (double)v.compute_ns / steps,
           b->workers, (long long)v.steps);
    return LEAT_OK;
}

/* Replaces the model by a stateful one that reads one time step, since predictors compute on the CPU. */
static leat_status make_stateful(bench *b, leat_error *err) {
    leat_builder *g = NULL;
    leat_model_destroy(&b->model);
    leat_status status = leat_builder_create(&g, err);
    if (status != LEAT_OK) return status;
    leat_node *input = leat_batch_input(g, (int64_t[]){1, 1, 32}, 3);
    leat_node *output = leat_dense(leat_layer(input, "LSTM", "{'units': 64, 'stateful': true}"), 1, NULL);
    status = leat_model_create(&b->model, &g, &input, 1, &output, 1, err);
    return status == LEAT_OK ? set_device(b, err) : status;
}

static leat_status stream_once(bench *b, leat_predictor *predictor, leat_error *err) {
    static const float x[32];
    float y[64];
    const void *inputs[] = {x};
    void *outputs[] = {y};
    if (predictor) return leat_predictor_run(predictor, inputs, outputs, err);
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 3, (int64_t[]){1, 1, 32}, (void *)(uintptr_t)x)};
    leat_arrays arrays = {.inputs = &input, .input_count = 1};
    leat_tensor output;
    return leat_model_predict_on_batch(b->model, &arrays, &output, err);
}

static leat_status stream_rounds(bench *b, leat_predictor *predictor, double *us, leat_error *err) {
    double found[rounds] = {0}, start = 0;
    long count = 16;
    leat_status status = LEAT_OK;
    for (int i = -1; status == LEAT_OK && i < rounds; ++i) {
        start = now_us();
        for (long k = 0; status == LEAT_OK && k < count; ++k) status = stream_once(b, predictor, err);
        double spent = now_us() - start;
        if (i >= 0)
            found[i] = spent / (double)count;
        else if (spent < b->seconds * 1e6 / rounds)
            count *= 2, i = -2;
    }
    qsort(found, rounds, sizeof *found, by_value);
    *us = found[rounds / 2];
    return status;
}

static leat_status stream(bench *b, leat_error *err) {
    leat_predictor_options options = leat_predictor_options_default();
    leat_predictor *predictor = NULL;
    double us = 0;
    options.streaming = true;
    leat_status status = strcmp(b->device, "cpu") == 0
                             ? leat_predictor_create(&predictor, b->model, &options, err)
                             : make_stateful(b, err);
    if (status == LEAT_OK) status = stream_rounds(b, predictor, &us, err);
    leat_predictor_destroy(&predictor);
    if (status == LEAT_OK)
        printf("{\"row\": \"stream\", \"program\": \"leat\", \"setting\": \"%s\", \"us\": %.3f}\n", b->device,
               us);
    return status;
}

/* ---- Checks ---- */

static double resident_mib(void) {
    long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* Gives a hash (FNV-1a) of the model's predictions for the first batch. */
static leat_status hash_predictions(bench *b, uint64_t *hash, leat_error *err) {
    leat_arrays arrays = {.inputs = b->inputs, .input_count = 1};
    leat_tensor output;
    leat_status status = leat_model_predict_on_batch(b->model, &arrays, &output, err);
    *hash = 0xcbf29ce484222325u;
    for (size_t i = 0; status == LEAT_OK && i < leat_tensor_bytes(&output); ++i)
        *hash = (*hash ^ ((const unsigned char *)output.data)[i]) * 0x100000001b3u;
    return status;
}

static leat_status soak(bench *b, leat_error *err) {
    double loss = 0, first = 0, settled = 0;
    uint64_t hash = 0;
    leat_status status = LEAT_OK;
    for (long i = 0; status == LEAT_OK && i < b->steps; ++i) {
        status = step(b, i, &loss, err);
        if (status == LEAT_OK && !isfinite(loss))
            status = leat_error_set(err, LEAT_EINVAL, "the loss of step %ld is %g", i, loss);
        if (i == 0) first = loss;
        if (i == b->steps / 10) settled = resident_mib();
        if (i % 100 == 99 && status == LEAT_OK) {
            printf("step %ld, loss %g, %.1f MiB resident\n", i + 1, loss, resident_mib());
            fflush(stdout);
        }
    }
    if (status == LEAT_OK) status = hash_predictions(b, &hash, err);
    if (status != LEAT_OK) return status;
    double growth = resident_mib() - settled;
    printf(
        "{\"soak\": \"%s\", \"steps\": %ld, \"loss_first\": %.9g, \"loss_last\": %.9g, \"growth_mib\": %.1f, "
        "\"hash\": \"%016llx\"}\n",
        b->model_name, b->steps, first, loss, growth, (unsigned long long)hash);
    if (loss >= first) return leat_error_set(err, LEAT_EINVAL, "the loss rose from %g to %g", first, loss);
    if (growth > 16) return leat_error_set(err, LEAT_EINVAL, "the process grew by %.1f MiB", growth);
    return LEAT_OK;
}

/* Makes a step of `batch` samples with new data. */
static leat_status try_batch(bench *b, long batch, leat_error *err) {
    leat_array input, target;
    double loss = 0;
    leat_status status = make_data(b, batch, 5, &input, &target, err);
    if (status != LEAT_OK) return status;
    status = step_on(b, &input, &target, &loss, err);
    free(input.tensor.data);
    free(target.tensor.data);
    printf("a batch of %ld: %s\n", batch, status == LEAT_OK ? "a step" : err->message);
    fflush(stdout);
    return status;
}

static leat_status memory(bench *b, leat_error *err) {
    leat_status status = LEAT_OK;
    long batch = 1 << 14;
    for (; status == LEAT_OK && batch <= most_batch; batch *= 2) status = try_batch(b, batch, err);
    if (status == LEAT_OK) return leat_error_set(err, LEAT_EINVAL, "memory was not exhausted");
    if (status != LEAT_ENOMEM) return status;
    status = try_batch(b, b->batch, err);
    if (status == LEAT_OK)
        printf("{\"memory\": \"exhausted at a batch of %ld; works afterwards\"}\n", batch / 2);
    return status;
}

static leat_status first(bench *b, leat_error *err) {
    double loss = 0;
    leat_status status = step(b, 0, &loss, err);
    if (status == LEAT_OK) printf("%g\n", loss);
    return status;
}

/* ---- The command ---- */

static const struct {
    const char *name;
    leat_status (*run)(bench *, leat_error *);
} modes[] = {{"train", train},   {"fit", fit},   {"first", first},
             {"stream", stream}, {"soak", soak}, {"memory", memory}};

static leat_status run(bench *b, leat_error *err) {
    leat_status status = make_model(b, err);
    for (int i = 0; status == LEAT_OK && i < host_batches; ++i)
        status = make_data(b, b->batch, 10 + (uint64_t)i, &b->inputs[i], &b->targets[i], err);
    for (size_t i = 0; status == LEAT_OK && i < sizeof modes / sizeof *modes; ++i)
        if (strcmp(modes[i].name, b->mode) == 0) return modes[i].run(b, err);
    return status == LEAT_OK ? leat_error_set(err, LEAT_EINVAL, "unknown mode '%s'", b->mode) : status;
}

static bool parse(bench *b, int argc, char **argv) {
    if (argc < 4 || argc % 2) return false;
    *b = (bench){.model_name = argv[1],
                 .mode = argv[2],
                 .device = "cuda",
                 .batch = strtol(argv[3], NULL, 10),
                 .steps = 10000,
                 .seconds = 1,
                 .workers = 1};
    for (int i = 4; i < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--device") == 0)
            b->device = value;
        else if (strcmp(argv[i], "--policy") == 0)
            b->policy = value;
        else if (strcmp(argv[i], "--tf32") == 0)
            b->tf32 = strcmp(value, "0") != 0;
        else if (strcmp(argv[i], "--seconds") == 0)
            b->seconds = strtod(value, NULL);
        else if (strcmp(argv[i], "--steps") == 0)
            b->steps = strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--workers") == 0)
            b->workers = (int)strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--threads") == 0)
            b->threads = (int)strtol(value, NULL, 10);
        else
            return false;
    }
    return b->batch > 0;
}

int main(int argc, char **argv) {
    bench b = {0};
    leat_error err = {0};
    if (!parse(&b, argc, argv)) {
        fprintf(stderr,
                "usage: bench_gpu mlp|lstm|cnn|FILE train|fit|first|stream|soak|memory BATCH [--device NAME] "
                "[--policy NAME] [--tf32 0|1] [--seconds S] [--steps N] [--workers N] [--threads N]\n");
        return 2;
    }
    leat_status status = run(&b, &err);
    if (status != LEAT_OK) fprintf(stderr, "bench_gpu: %s\n", err.message);
    fflush(stdout);
    for (int i = 0; i < host_batches; ++i) {
        free(b.inputs[i].tensor.data);
        free(b.targets[i].tensor.data);
    }
    leat_model_destroy(&b.model);
    return status == LEAT_OK ? 0 : 1;
}
