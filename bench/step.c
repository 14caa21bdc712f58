/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the time of one training step or one prediction through the public interface:
 *     bench_step MODEL train|predict|first|fit BATCH [THREADS [SECONDS [POLICY]]]
 * MODEL is mlp (64-128-128-4), lstm (64 steps of 8 features, 64 units, 4 outputs), cnn (28x28x1: conv32, conv64,
 * pool, dense 128, dense 10) or least (4 numbers to 4, almost no arithmetic), trained by Adam; or the file of a model
 * with one input and one output, trained by SGD with momentum.  THREADS 0: leat's choice.  It prints one JSON object:
 * median, quartiles and fastest in us, and peak memory.  `first` makes one training step and ends.  `fit` measures a
 * step of leat_model_fit with a metric and a callback: the total, computing, waiting for data, and the rest of the
 * loop.  bench/compare runs this program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "leat/leat.h"
#include "models.h"

enum { most_samples = 1 << 20 };

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static leat_status once(leat_model *model, bool train, const leat_arrays *arrays, leat_error *err) {
    leat_tensor output;
    return train ? leat_model_train_on_batch(model, arrays, NULL, err)
                 : leat_model_predict_on_batch(model, arrays, &output, err);
}

static void report(const char *name, const char *mode, long batch, double *samples, int count) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    qsort(samples, (size_t)count, sizeof *samples, by_value);
    printf("{\"model\": \"%s\", \"mode\": \"%s\", \"batch\": %ld, \"median_us\": %.2f, \"q1_us\": %.2f, "
           "\"q3_us\": %.2f, "
           "\"min_us\": %.2f, \"rounds\": %d, \"peak_mib\": %.0f}\n",
           name, mode, batch, samples[count / 2], samples[count / 4], samples[count * 3 / 4], samples[0],
           count, (double)usage.ru_maxrss / 1024);
}

static leat_status measure(leat_model *model, bool train, const leat_arrays *arrays, double seconds,
                           double *samples, int *count, leat_error *err) {
    for (int i = 0; i < 3; ++i) {
        leat_status status = once(model, train, arrays, err);
        if (status != LEAT_OK) return status;
    }
    double end = now_us() + seconds * 1e6;
    for (*count = 0; *count < most_samples && (*count < 5 || now_us() < end); ++*count) {
        double start = now_us();
        leat_status status = once(model, train, arrays, err);
        samples[*count] = now_us() - start;
        if (status != LEAT_OK) return status;
    }
    return LEAT_OK;
}

/* ---- fit ---- */

enum { batches = 256 };

static leat_status count_batch(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                               leat_error *err) {
    (void)training, (void)batch, (void)logs, (void)err;
    ++*(int64_t *)user;
    return LEAT_OK;
}

static leat_status fit_once(leat_model *model, const leat_arrays *arrays, long batch, int threads,
                            int workers, int64_t epochs, leat_verdict *verdict, leat_error *err) {
    int64_t seen = 0;
    leat_callback counter = {.size = sizeof(leat_callback), .user = &seen, .on_train_batch_end = count_batch};
    leat_callback *list[] = {&counter};
    leat_fit_options options = leat_fit_options_default();
    leat_history *history = NULL;
    options.epochs = epochs;
    options.verbose = 0;
    options.workers = workers;
    options.threads = threads;
    options.callbacks = list;
    options.callback_count = 1;
    leat_status status = leat_model_fit(model, arrays, batch, &options, &history, err);
    if (status == LEAT_OK) *verdict = leat_history_verdict(history);
    leat_history_destroy(&history);
    return status;
}

/* Measures fit without workers and with one, on samples that are shuffled again for each epoch. */
static leat_status fit(leat_model *model, const char *name, leat_array *inputs, leat_array *targets,
                       long batch, int threads, double seconds, leat_error *err) {
    leat_arrays arrays = {inputs, targets, NULL, 1, 1, 0};
    leat_status status = LEAT_OK;
    for (int workers = 0; status == LEAT_OK && workers < 2; ++workers) {
        leat_verdict v = {0};
        status = fit_once(model, &arrays, batch, threads, workers, 4, &v, err);
        if (status != LEAT_OK) break;
        double wanted = 4 * seconds / 2 * 1e9 / (double)(v.wall_ns > 0 ? v.wall_ns : 1);
        status = fit_once(model, &arrays, batch, threads, workers, wanted > 1 ? (int64_t)wanted : 1, &v, err);
        double steps = (double)v.steps * 1e3;
        printf("{\"model\": \"%s\", \"mode\": \"fit\", \"batch\": %ld, \"workers\": %d, \"steps\": %lld, "
               "\"step_us\": %.2f, \"compute_us\": %.2f, \"wait_us\": %.2f, \"loop_us\": %.2f}\n",
               name, batch, workers, (long long)v.steps, (double)v.wall_ns / steps,
               (double)v.compute_ns / steps, (double)v.data_wait_ns / steps,
               (double)(v.wall_ns - v.compute_ns - v.data_wait_ns) / steps);
    }
    return status;
}

typedef struct arguments {
    const char *name, *mode;
    long batch;
    int threads;
    double seconds;
} arguments;

static leat_status run(leat_model *model, const arguments *a, const int64_t *shape, int rank,
                       leat_error *err) {
    bool fits = strcmp(a->mode, "fit") == 0, first = strcmp(a->mode, "first") == 0;
    int64_t dims[5] = {fits ? a->batch * batches : a->batch}, elements = dims[0];
    int64_t classes = leat_model_output_shape(model, 0).shape[1];
    for (int i = 0; i < rank; ++i) elements *= dims[i + 1] = shape[i];
    float *x = bench_random_numbers((size_t)elements), *y = bench_random_numbers((size_t)(dims[0] * classes));
    double *samples = malloc(most_samples * sizeof *samples);
    leat_array inputs = {.tensor = leat_tensor_view(LEAT_F32, rank + 1, dims, x)};
    leat_array targets = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){dims[0], classes}, y)};
    leat_arrays arrays = {&inputs, &targets, NULL, 1, 1, 0};
    leat_status status = LEAT_ENOMEM;
    int count = 0;
    if (a->threads > 0) leat_model_set_threads(model, a->threads);
    if (x && y && samples) {
        status = fits    ? fit(model, a->name, &inputs, &targets, a->batch, a->threads, a->seconds, err)
                 : first ? once(model, true, &arrays, err)
                         : measure(model, strcmp(a->mode, "train") == 0, &arrays, a->seconds, samples, &count,
                                   err);
        if (status == LEAT_OK && !fits && !first) report(a->name, a->mode, a->batch, samples, count);
    }
    free(x);
    free(y);
    free(samples);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: bench_step mlp|lstm|cnn|least|FILE train|predict|first|fit BATCH [THREADS "
                        "[SECONDS [POLICY]]]\n");
        return 2;
    }
    leat_error err = {0};
    leat_model *model = NULL;
    int64_t shape[4] = {0};
    int rank = 0;
    arguments a = {argv[1], argv[2], strtol(argv[3], NULL, 10), 0, 3};
    if (argc > 4) a.threads = (int)strtol(argv[4], NULL, 10);
    if (argc > 5) a.seconds = strtod(argv[5], NULL);
    const char *metrics = strcmp(a.mode, "fit") == 0 ? "mae" : NULL;
    leat_status status = bench_model(&model, a.name, metrics, shape, &rank, &err);
    if (status == LEAT_OK && argc > 6) status = leat_model_set_dtype_policy(model, argv[6], &err);
    if (status == LEAT_OK) status = run(model, &a, shape, rank, &err);
    if (status != LEAT_OK) fprintf(stderr, "bench_step: %s\n", err.message);
    leat_model_destroy(&model);
    return status == LEAT_OK ? 0 : 1;
}
