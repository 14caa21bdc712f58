/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a test of an optimizer whose slots are spread over the ranks: with it and without it, all ranks must end
 * with the same weights, and the files that rank 0 saves in a callback and at the end must have the same bytes.  The
 * slots of a large model must not be resident on the ranks that do not own them. */
#define _DEFAULT_SOURCE /* mincore */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dist/dist.h"
#include "leat/custom.h"
#include "leat/rng.h"
#include "leat/train.h"
#include "nn/model/model.h"

enum { SAMPLES = 40, BATCH = 12, EPOCHS = 3, FEATURES = 9, CLASSES = 3 };

typedef struct shard_case {
    const char *optimizer, *constraint, *arithmetic;
} shard_case;

#define MAX_NORM                                                                                             \
    ", \"kernel_constraint\": {\"class_name\": \"MaxNorm\", \"config\": {\"max_value\": 0.7, \"axis\": 0}}"
#define OPTIMIZER(name, options) "{\"class_name\": \"" name "\", \"config\": {" options "}}"
#define BOTH(name, options)                                                                                  \
    {OPTIMIZER(name, options), "", "keras2"}, {                                                              \
        OPTIMIZER(name, options), "", "keras3"                                                               \
    }
#define NEW(name, options)                                                                                   \
    { OPTIMIZER(name, options), "", "keras3" }

static const shard_case cases[] = {
    BOTH("SGD", "\"learning_rate\": 0.1, \"momentum\": 0.9, \"nesterov\": true"),
    BOTH("SGD", "\"learning_rate\": 0.1"),
    BOTH("Adam", "\"learning_rate\": 0.01"),
    BOTH("Adam", "\"learning_rate\": 0.01, \"amsgrad\": true, \"clipnorm\": 0.2"),
    BOTH("RMSprop", "\"learning_rate\": 0.01"),
    BOTH("Adagrad", "\"learning_rate\": 0.05"),
    BOTH("Adadelta", "\"learning_rate\": 0.5"),
    BOTH("Adamax", "\"learning_rate\": 0.01, \"clipvalue\": 0.01"),
    BOTH("Nadam", "\"learning_rate\": 0.01"),
    NEW("AdamW", "\"learning_rate\": 0.01, \"weight_decay\": 0.01, \"global_clipnorm\": 0.1"),
    NEW("Lion", "\"learning_rate\": 0.01"),
    NEW("Ftrl", "\"learning_rate\": 0.05, \"weight_decay\": 0.01"),
    NEW("ScheduleFreeAdamW", "\"learning_rate\": 0.01"),
    NEW("Adafactor", "\"learning_rate\": 0.05"),
    NEW("Lamb", "\"learning_rate\": 0.05, \"weight_decay\": 0.01"),
    NEW("Muon", "\"learning_rate\": 0.01"),
    NEW("Adam", "\"learning_rate\": 0.01, \"use_ema\": true, \"ema_overwrite_frequency\": 4"),
    NEW("Adam", "\"learning_rate\": 0.01, \"gradient_accumulation_steps\": 3, \"global_clipnorm\": 0.1"),
    NEW("SGD",
        "\"learning_rate\": 0.1, \"momentum\": 0.5, \"use_ema\": true, \"gradient_accumulation_steps\": 2"),
    NEW("Apart", "\"learning_rate\": 0.05, \"weight_decay\": 0.01"),
    NEW("Whole", "\"learning_rate\": 0.05"),
    {OPTIMIZER("Adam", "\"learning_rate\": 0.05"), MAX_NORM, "keras2"},
    {OPTIMIZER("Lamb", "\"learning_rate\": 0.05, \"use_ema\": true"), MAX_NORM, "keras3"},
};

static float features[SAMPLES * FEATURES], labels[SAMPLES * CLASSES];
static leat_dist *dist;
static bool exact;
static const char *now = "";

static void fail(const char *what) {
    fprintf(stderr, "failed: %s: rank %d: %s\n", now, leat_dist_rank(dist), what);
    _Exit(1);
}

static void check(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail(err->message);
}

static void make_data(void) {
    leat_rng rng = leat_rng_for(3, 1, 4);
    for (int i = 0; i < SAMPLES * FEATURES; ++i) features[i] = (float)leat_rng_uniform(&rng) - 0.5f;
    for (int i = 0; i < SAMPLES; ++i) labels[i * CLASSES + i % CLASSES] = 1;
}

/* ---- Custom optimizers ---- */

static leat_registry *registry;
static int fails_on = -1; /* the rank whose function fails, in step 3 */

/* Both need the slot.  The one with whole weights divides by the largest gradient of the weight. */
static leat_status update(const leat_optimizer_call *call, leat_error *err) {
    const bool *is_whole = call->user;
    float largest = *is_whole ? 1e-3f : 1.0f;
    if (leat_dist_rank(dist) == fails_on && call->iterations == 3)
        return leat_error_set(err, LEAT_EUSER, "this share is cursed");
    for (int64_t i = 0; *is_whole && i < call->count; ++i) largest = fmaxf(largest, fabsf(call->gradient[i]));
    for (int64_t i = 0; i < call->count; ++i) {
        call->slots[0][i] = 0.8f * call->slots[0][i] + call->gradient[i] / largest;
        call->weight[i] -= (float)call->learning_rate * call->slots[0][i];
    }
    return LEAT_OK;
}

static void register_optimizers(void) {
    static const char *const slots[] = {"velocity", NULL};
    static const char *const names[] = {"Apart", "Whole"};
    static bool is_whole[] = {false, true};
    leat_error err = {0};
    check(leat_registry_create(&registry, &err), &err);
    for (int i = 0; i < 2; ++i) {
        leat_optimizer_definition definition = leat_optimizer_definition_default();
        definition.name = names[i];
        definition.slots = slots;
        definition.user = &is_whole[i];
        definition.whole_weights = is_whole[i];
        definition.learning_rate = 0.05;
        definition.update = update;
        check(leat_registry_add_optimizer(registry, &definition, &err), &err);
    }
}

/* ---- Models ---- */

static leat_model *make(const shard_case *c, int units) {
    char text[1024];
    leat_model *model = NULL;
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    snprintf(
        text, sizeof text,
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
        "{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": %d, \"activation\": \"tanh\","
        " \"batch_input_shape\": [null, 9]%s}},"
        "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"n\"}},"
        "{\"class_name\": \"Dense\", \"config\": {\"name\": \"b\", \"units\": 3, \"activation\": "
        "\"softmax\"}}]}}",
        units, c->constraint);
    options.optimizer = c->optimizer;
    options.arithmetic = c->arithmetic;
    options.loss = "categorical_crossentropy";
    check(leat_model_from_json_with(&model, text, registry, &err), &err);
    check(leat_model_initialize(model, 5, &err), &err);
    check(leat_model_compile(model, &options, &err), &err);
    leat_model_set_deterministic(model, exact);
    return model;
}

/* A file that was saved in memory. */
typedef struct saved {
    void *data;
    size_t bytes;
} saved;

typedef struct saver {
    leat_model *model;
    bool is_spread;
    saved file;
} saver;

static void save(leat_model *model, saved *out) {
    leat_error err = {0};
    leat_bytes_free(out->data);
    *out = (saved){0};
    check(leat_model_save_memory(model, LEAT_MODEL_FORMAT_H5, true, &out->data, &out->bytes, &err), &err);
}

static void release(saved files[2]) {
    for (int i = 0; i < 2; ++i) {
        leat_bytes_free(files[i].data);
        files[i] = (saved){0};
    }
}

/* The optimizer cannot be saved where this rank does not have its slots. */
static void require_refusal(const leat_model *model) {
    leat_error err = {0};
    saved file = {0};
    if (leati_optimizer_shared_slabs(model->compiled.optimizer) == 0) return;
    if (leat_model_save_memory(model, LEAT_MODEL_FORMAT_KERAS, true, &file.data, &file.bytes, &err) !=
            LEAT_ENOTSUP ||
        !strstr(err.message, "does not have the whole state of the optimizer"))
        fail("the optimizer was saved without its slots");
    check(leat_model_save_memory(model, LEAT_MODEL_FORMAT_KERAS, false, &file.data, &file.bytes, &err), &err);
    leat_bytes_free(file.data);
}

static leat_status end_epoch(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    saver *s = user;
    (void)training;
    (void)logs;
    (void)err;
    if (index == 1) save(s->model, &s->file);
    return LEAT_OK;
}

static leat_status end_batch(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    saver *s = user;
    (void)training;
    (void)logs;
    (void)err;
    if (index == 1 && s->is_spread && leat_dist_size(dist) > 1) require_refusal(s->model);
    return LEAT_OK;
}

static int64_t told_bytes; /* the memory of the model in the verdict of the fit before */

/* Returns the status of the fit, and *files if it is LEAT_OK. */
static leat_status fit(leat_model *model, bool shards, saved files[2], leat_error *err) {
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, FEATURES}, features)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, CLASSES}, labels)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_fit_options options = leat_fit_options_default();
    saver saves = {.model = model, .is_spread = shards};
    leat_callback callback = {.size = sizeof callback,
                              .user = &saves,
                              .on_train_batch_end = end_batch,
                              .on_epoch_end = end_epoch};
    leat_callback *const callbacks[] = {&callback};
    options.epochs = EPOCHS;
    options.verbose = 0;
    options.threads = 1;
    options.seed = 2;
    options.callbacks = callbacks;
    options.callback_count = 1;
    options.shard_optimizer = shards;
    options.dist = dist;
    leat_history *history = NULL;
    leat_status status = leat_model_fit(model, &arrays, BATCH, &options, &history, err);
    files[0] = saves.file;
    if (status == LEAT_OK) told_bytes = leat_history_verdict(history).model_bytes;
    leat_history_destroy(&history);
    if (status != LEAT_OK) return status;
    if (leat_dist_rank(dist) == 0)
        save(model, &files[1]);
    else if (shards)
        require_refusal(model);
    return LEAT_OK;
}

static void train(leat_model *model, bool shards, saved files[2]) {
    leat_error err = {0};
    check(fit(model, shards, files, &err), &err);
}

static void compare_weights(const leat_model *a, const leat_model *b) {
    for (int i = 0; i < leat_model_weight_count(a); ++i) {
        leat_tensor x = leat_model_weight(a, i), y = leat_model_weight(b, i);
        const float *p = x.data, *q = y.data;
        for (int64_t j = 0; j < leat_tensor_count(&x); ++j)
            if (exact ? memcmp(&p[j], &q[j], sizeof *p) != 0
                      : !(fabs((double)p[j] - (double)q[j]) <= 1e-6 * (1 + fabs((double)q[j]))))
                fail(leat_model_weight_name(a, i));
    }
}

static void compare_files(const saved a[2], const saved b[2]) {
    for (int i = 0; i < 2; ++i) {
        if (leat_dist_rank(dist) == 0 && a[i].bytes == 0) fail("nothing was saved");
        if (exact &&
            (a[i].bytes != b[i].bytes || (a[i].bytes > 0 && memcmp(a[i].data, b[i].data, a[i].bytes) != 0)))
            fail(i ? "another file" : "another file in a callback");
    }
}

/* The second fit goes on with the slots that rank 0 has. */
static void try_case(const shard_case *c) {
    leat_model *whole = make(c, 13), *spread = make(c, 13);
    saved files[2] = {{0}}, others[2] = {{0}};
    now = c->optimizer;
    for (int fit = 0; fit < 2; ++fit) {
        train(whole, false, files);
        train(spread, true, others);
        compare_weights(spread, whole);
        compare_files(files, others);
        release(files);
        release(others);
    }
    leat_model_destroy(&whole);
    leat_model_destroy(&spread);
}

/* Each case is tried with one of 2, 3 and 4 ranks, and with all of them if LEAT_TEST_ALL is set. */
static bool is_tried(size_t index) {
    return getenv("LEAT_TEST_ALL") || leat_dist_size(dist) == 2 + (int)(index % 3);
}

/* Returns how many bytes of the optimizer's slots are in memory. */
static size_t resident(const leat_model *model) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = model->weights.trainable_bytes;
    unsigned char *pages = malloc(bytes / page + 2);
    size_t count = 0;
    if (!pages) fail("memory");
    for (int slot = 0; slot < 2; ++slot) {
        const uintptr_t slab = (uintptr_t)model->weights.slab[LEATI_SLAB_SLOT0 + slot];
        const uintptr_t first = (slab + page - 1) / page * page, end = (slab + bytes) / page * page;
        if (mincore((void *)first, end - first, pages) != 0) fail("mincore");
        for (size_t i = 0; i < (end - first) / page; ++i) count += pages[i] & 1u;
    }
    free(pages);
    return count * page;
}

/* A custom optimizer that fails on one rank ends all ranks, in the words of that rank. */
static void check_failure(void) {
    static const shard_case apart = {OPTIMIZER("Apart", ""), "", "keras3"};
    char expected[32];
    leat_error err = {0};
    saved files[2] = {{0}};
    leat_model *model = make(&apart, 13);
    now = "a failure";
    fails_on = leat_dist_size(dist) - 1;
    snprintf(expected, sizeof expected, "rank %d (host ", fails_on);
    if (fit(model, true, files, &err) != LEAT_EUSER || !strstr(err.message, "cursed") ||
        !strstr(err.message, expected))
        fail(err.message);
    fails_on = -1;
    release(files);
    leat_model_destroy(&model);
}

/* Rank 0 has all slots after a fit, the others have only their share. */
static void check_memory(void) {
    static const shard_case adam = {OPTIMIZER("Adam", "\"learning_rate\": 0.01"), "", "keras2"};
    const size_t ranks = (size_t)leat_dist_size(dist);
    saved files[2] = {{0}};
    leat_model *model = make(&adam, 40000);
    const size_t all = 2 * model->weights.trainable_bytes;
    now = "memory";
    train(model, true, files);
    if (leat_dist_rank(dist) != 0 && resident(model) > all / ranks + all / 50)
        fail("foreign slots are resident");
    if (leat_dist_rank(dist) == 0 && resident(model) < all - all / 50) fail("rank 0 has not all slots");
    const double expected =
        (double)(model->weights.bytes + model->weights.trainable_bytes) + (double)all / (double)ranks;
    if (fabs((double)told_bytes - expected) > (double)all / 50) fail("the verdict's memory of the model");
    release(files);
    leat_model_destroy(&model);
}

int main(int argc, char **argv) {
    leat_error err = {0};
    exact = argc > 1 && strcmp(argv[1], "exact") == 0;
    check(leat_dist_open(&dist, NULL, &err), &err);
    make_data();
    register_optimizers();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        if (is_tried(i)) try_case(&cases[i]);
    check_memory();
    check_failure();
    leat_registry_destroy(&registry);
    if (leat_dist_rank(dist) == 0) printf("%d ranks share their optimizers\n", leat_dist_size(dist));
    leat_dist_close(&dist);
    return 0;
}
