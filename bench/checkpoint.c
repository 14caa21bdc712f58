/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of checkpoints:
 *     bench_checkpoint MODEL FOLDER [BATCH [SECONDS [EVERY]]]
 * Trains a model on random data for SECONDS, with a checkpoint into FOLDER every EVERY seconds, and compares the steps
 * during which a checkpoint is copied and written with the other steps of the same run.  Prints, for each checkpoint,
 * how much longer these steps took than as many others, and what share of the time that is with one checkpoint every
 * 30 s. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "leat/leat.h"

enum { most_steps = 1 << 20, most_checkpoints = 1024, window = 10, reference_s = 30 };

/* The steps during which a checkpoint was made: from the one before the copy to the one after which the
 * file existed. */
typedef struct span {
    int64_t first, last;
    int64_t bytes, noted_ns, copied_ns; /* copied_ns: the time of the copy, between two steps */
} span;

typedef struct bench {
    const char *folder;
    leat_model *model;
    int64_t classes, steps, limit_ns;
    int64_t *ends_ns; /* the time after each step */
    span spans[most_checkpoints];
    int count;
    bool writing;
} bench;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- Random data ---- */

static int64_t endless(void *user) {
    (void)user;
    return LEAT_LENGTH_INFINITE;
}

static leat_status make_batch(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)user, (void)err;
    const leat_tensor *x = &batch->tensors[0], *y = &batch->tensors[1];
    float *pixels = x->data, *targets = y->data;
    int64_t count = leat_tensor_count(x), width = y->shape[1];
    for (int64_t i = 0; i < count; i += 64) pixels[i] = (float)leat_rng_uniform(rng);
    memset(targets, 0, leat_tensor_bytes(y));
    for (int64_t i = 0; i < y->shape[0]; ++i) targets[i * width + (index + i) % width] = 1;
    return LEAT_OK;
}

/* ---- The callback ---- */

static void end_span(bench *b) {
    char path[4096];
    struct stat info;
    span *last = &b->spans[b->count - 1];
    snprintf(path, sizeof path, "%s/step-%012lld.leat", b->folder, (long long)last->first + 1);
    if (stat(path, &info) != 0) return;
    last->last = b->steps;
    last->bytes = info.st_size;
    b->writing = false;
}

static leat_status step_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                            leat_error *err) {
    bench *b = user;
    (void)index, (void)logs, (void)err;
    b->ends_ns[b->steps] = now_ns();
    if (b->writing) end_span(b);
    if (b->ends_ns[b->steps] - b->ends_ns[0] > b->limit_ns || b->steps + 1 == most_steps)
        leat_training_stop(training, "enough");
    ++b->steps;
    return LEAT_OK;
}

static leat_status step_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                              leat_error *err) {
    bench *b = user;
    (void)training, (void)index, (void)logs, (void)err;
    span *last = b->count > 0 ? &b->spans[b->count - 1] : NULL;
    if (last && last->copied_ns == 0) last->copied_ns = now_ns() - last->noted_ns;
    return LEAT_OK;
}

static leat_status note_checkpoint(void *user, leat_training *training, leat_state *state, leat_error *err) {
    bench *b = user;
    (void)training, (void)state, (void)err;
    if (b->count == most_checkpoints || b->writing) return LEAT_OK;
    b->spans[b->count++] = (span){.first = b->steps - 1, .noted_ns = now_ns()};
    b->writing = true;
    return LEAT_OK;
}

/* ---- Results ---- */

static int by_value(const void *a, const void *b) {
    const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

/* Returns the mean time of the steps in the windows before and after a span. */
static double usual_ns(const bench *b, const span *s) {
    int64_t times[2 * window];
    int count = 0;
    for (int64_t i = s->first - window; i < s->first; ++i)
        if (i > 0) times[count++] = b->ends_ns[i] - b->ends_ns[i - 1];
    for (int64_t i = s->last + 1; i <= s->last + window && i < b->steps; ++i)
        times[count++] = b->ends_ns[i] - b->ends_ns[i - 1];
    qsort(times, (size_t)count, sizeof *times, by_value);
    return count ? (double)times[count / 2] : 0;
}

static void print_results(const bench *b) {
    double sum = 0;
    int count = 0;
    puts("| checkpoint after step | MB | ms to copy | ms until written | steps meanwhile | ms more than "
         "other steps "
         "| % of 30 s |\n|---|---|---|---|---|---|---|");
    for (int i = 0; i < b->count; ++i) {
        const span *s = &b->spans[i];
        if (s->last == 0) continue;
        double wall = (double)(b->ends_ns[s->last] - b->ends_ns[s->first]);
        double more = wall - usual_ns(b, s) * (double)(s->last - s->first);
        printf("| %lld | %.1f | %.1f | %.0f | %lld | %.1f | %.2f |\n", (long long)s->first + 1,
               (double)s->bytes / 1e6, (double)s->copied_ns / 1e6, wall / 1e6,
               (long long)(s->last - s->first), more / 1e6, more / 1e9 / reference_s * 100);
        sum += more;
        ++count;
    }
    if (count > 0)
        printf("mean: %.1f ms a checkpoint, %.2f %% of the time with one every %d s\n", sum / count / 1e6,
               sum / count / 1e9 / reference_s * 100, reference_s);
}

/* ---- The fit ---- */

static leat_status describe_data(const bench *b, int64_t batch, leat_sequence *data, leat_error *err) {
    const leat_tensor in = leat_model_input_shape(b->model, 0), out = leat_model_output_shape(b->model, 0);
    *data = leat_sequence_default();
    data->length = endless;
    data->get = make_batch;
    data->spec.batch_size = batch;
    leat_status status =
        leat_batch_spec_add(&data->spec, LEAT_PART_INPUT, NULL, LEAT_F32, in.rank - 1, in.shape + 1, err);
    if (status != LEAT_OK) return status;
    return leat_batch_spec_add(&data->spec, LEAT_PART_TARGET, NULL, LEAT_F32, out.rank - 1, out.shape + 1,
                               err);
}

static leat_status train(bench *b, int64_t batch, double every_s, leat_error *err) {
    leat_callback callback = leat_callback_default();
    leat_checkpoint_options checkpoints = leat_checkpoint_options_default();
    leat_fit_options options = leat_fit_options_default();
    leat_sequence data;
    leat_status status = describe_data(b, batch, &data, err);
    if (status != LEAT_OK) return status;
    callback.user = b;
    callback.on_train_batch_begin = step_begin;
    callback.on_train_batch_end = step_end;
    callback.save_state = note_checkpoint;
    checkpoints.folder = b->folder;
    checkpoints.every_epochs = 0;
    checkpoints.every_ms = (int64_t)(every_s * 1000);
    options.checkpoints = &checkpoints;
    options.steps_per_epoch = most_steps;
    options.verbose = 0;
    options.callbacks = (leat_callback *const[]){&callback};
    options.callback_count = 1;
    return leat_model_fit_generator(b->model, &data, &options, NULL, err);
}

static leat_status load(bench *b, const char *path, leat_error *err) {
    leat_compile_options compile = leat_compile_options_default();
    compile.optimizer = "adam";
    compile.loss = "categorical_crossentropy";
    leat_status status = leat_model_load(&b->model, path, err);
    if (status == LEAT_OK) status = leat_model_initialize(b->model, 1, err);
    return status == LEAT_OK ? leat_model_compile(b->model, &compile, err) : status;
}

int main(int argc, char **argv) {
    leat_error err = {0};
    bench b = {.folder = argc > 2 ? argv[2] : NULL};
    if (argc < 3) {
        fputs("usage: bench_checkpoint MODEL FOLDER [BATCH [SECONDS [EVERY]]]\n", stderr);
        return 2;
    }
    const int64_t batch = argc > 3 ? strtoll(argv[3], NULL, 10) : 8;
    b.limit_ns = (int64_t)(1e9 * (argc > 4 ? strtod(argv[4], NULL) : 120));
    b.ends_ns = calloc(most_steps, sizeof *b.ends_ns);
    leat_status status = b.ends_ns ? load(&b, argv[1], &err) : LEAT_ENOMEM;
    if (status == LEAT_OK) status = train(&b, batch, argc > 5 ? strtod(argv[5], NULL) : 30, &err);
    if (status == LEAT_OK)
        print_results(&b);
    else
        fprintf(stderr, "bench_checkpoint: %s\n", err.message);
    leat_model_destroy(&b.model);
    free(b.ends_ns);
    return status == LEAT_OK ? 0 : 1;
}
