/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the time of one training step or one prediction through the public interface:
 *     bench_step MODEL train|predict|first|fit BATCH [THREADS [SECONDS [POLICY]]] [--loss NAME] [--cpu]
 * MODEL is one of those of models.h or a model's file, for which --loss is used (default: categorical_crossentropy)
 * if the file has none.  THREADS 0: leat's choice.  It prints one JSON object: median,
 * quartiles and fastest in us (with --cpu of the CPU time of all threads), and peak memory.  `first` makes one training
 * step and ends.  `fit` measures a step of leat_model_fit with a metric and a callback: the total, computing, waiting
 * for data, and the rest of the loop.  bench/compare runs this program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/leat.h"
#include "models.h"

enum { most_samples = 1 << 20 };

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
    qsort(samples, (size_t)count, sizeof *samples, by_value);
    printf("{\"model\": \"%s\", \"mode\": \"%s\", \"batch\": %ld, \"median_us\": %.2f, \"q1_us\": %.2f, "
           "\"q3_us\": %.2f, "
           "\"min_us\": %.2f, \"rounds\": %d, \"peak_mib\": %.0f}\n",
           name, mode, batch, samples[count / 2], samples[count / 4], samples[count * 3 / 4], samples[0],
           count, bench_peak_mib());
}

typedef struct arguments {
    const char *name, *mode;
    long batch;
    int threads;
    double seconds;
    const char *policy, *loss;
    bool cpu;
} arguments;

static leat_status measure(leat_model *model, const arguments *a, const leat_arrays *arrays, double *samples,
                           int *count, leat_error *err) {
    const bool train = strcmp(a->mode, "train") == 0;
    for (int i = 0; i < 3; ++i) {
        leat_status status = once(model, train, arrays, err);
        if (status != LEAT_OK) return status;
    }
    double end = bench_now_ns(false) + a->seconds * 1e9;
    for (*count = 0; *count < most_samples && (*count < 5 || bench_now_ns(false) < end); ++*count) {
        double start = bench_now_ns(a->cpu);
        leat_status status = once(model, train, arrays, err);
        samples[*count] = (bench_now_ns(a->cpu) - start) / 1e3;
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

/* Returns targets whose data, which the caller frees, is NULL without memory. */
static leat_array random_targets(const leat_model *model, const bench_sample *sample, int64_t count) {
    leat_tensor like = leat_model_output_shape(model, 0);
    like.shape[0] = count;
    bench_sample target = {.words = sample->labels ? like.shape[like.rank - 1] : 0};
    if (sample->labels) --like.rank;
    like.data = NULL;
    void *data = bench_random_inputs(&target, (size_t)leat_tensor_count(&like));
    leat_dtype dtype = sample->labels ? LEAT_I32 : LEAT_F32;
    return (leat_array){.tensor = leat_tensor_view(dtype, like.rank, like.shape, data)};
}

static leat_status run(leat_model *model, const arguments *a, const bench_sample *sample, leat_error *err) {
    bool fits = strcmp(a->mode, "fit") == 0, first = strcmp(a->mode, "first") == 0;
    int64_t dims[5] = {fits ? a->batch * batches : a->batch}, elements = dims[0];
    for (int i = 0; i < sample->rank; ++i) elements *= dims[i + 1] = sample->shape[i];
    void *x = bench_random_inputs(sample, (size_t)elements);
    double *samples = malloc(most_samples * sizeof *samples);
    leat_array inputs = {
        .tensor = leat_tensor_view(sample->words ? LEAT_I32 : LEAT_F32, sample->rank + 1, dims, x)};
    leat_array targets = random_targets(model, sample, dims[0]);
    leat_arrays arrays = {&inputs, &targets, NULL, 1, 1, 0};
    leat_status status = LEAT_ENOMEM;
    int count = 0;
    if (a->threads > 0) leat_model_set_threads(model, a->threads);
    if (x && targets.tensor.data && samples) {
        status = fits    ? fit(model, a->name, &inputs, &targets, a->batch, a->threads, a->seconds, err)
                 : first ? once(model, true, &arrays, err)
                         : measure(model, a, &arrays, samples, &count, err);
        if (status == LEAT_OK && !fits && !first) report(a->name, a->mode, a->batch, samples, count);
    }
    free(x);
    free(targets.tensor.data);
    free(samples);
    return status;
}

static bool parse(arguments *a, int argc, char **argv) {
    if (argc > 1 && strcmp(argv[argc - 1], "--cpu") == 0) {
        a->cpu = true;
        --argc;
    }
    if (argc > 2 && strcmp(argv[argc - 2], "--loss") == 0) {
        a->loss = argv[argc - 1];
        argc -= 2;
    }
    if (argc < 4 || argc > 7) return false;
    a->name = argv[1];
    a->mode = argv[2];
    a->batch = strtol(argv[3], NULL, 10);
    a->threads = argc > 4 ? (int)strtol(argv[4], NULL, 10) : 0;
    a->seconds = argc > 5 ? strtod(argv[5], NULL) : 3;
    a->policy = argc > 6 ? argv[6] : NULL;
    return true;
}

int main(int argc, char **argv) {
    arguments a = {0};
    if (!parse(&a, argc, argv)) {
        fprintf(stderr, "usage: bench_step MODEL train|predict|first|fit BATCH [THREADS [SECONDS [POLICY]]] "
                        "[--loss NAME] [--cpu]\n");
        return 2;
    }
    leat_error err = {0};
    leat_model *model = NULL;
    bench_sample sample = {.loss = a.loss};
    const char *metrics = strcmp(a.mode, "fit") == 0 ? "mae" : NULL;
    leat_status status = bench_model(&model, a.name, metrics, &sample, &err);
    if (status == LEAT_OK && a.policy) status = leat_model_set_dtype_policy(model, a.policy, &err);
    if (status == LEAT_OK) status = run(model, &a, &sample, &err);
    if (status != LEAT_OK) fprintf(stderr, "bench_step: %s\n", err.message);
    leat_model_destroy(&model);
    return status == LEAT_OK ? 0 : 1;
}
