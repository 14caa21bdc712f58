/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a test of how steps end: a rank gets no batch, a rank is asked to stop, and both in the same step.  All
 * ranks must end together, with the same status and the same message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/dist.h"
#include "leat/callback.h"
#include "leat/train.h"

enum { FEATURES = 4, BATCH = 6, BATCHES = 5, EPOCHS = 2 };

static leat_dist *dist;
static leat_model *model;

static bool on_gpu(void) {
    const char *device = getenv("LEAT_DEVICE");
    return device && strcmp(device, "cpu") != 0;
}

static void check(leat_status status, const leat_error *err) {
    if (status == LEAT_OK) return;
    fprintf(stderr, "failed: rank %d: %s\n", leat_dist_rank(dist), err->message);
    _Exit(1);
}

static void require(bool is_right, const char *name, const char *what, const char *got) {
    if (is_right) return;
    fprintf(stderr, "failed: %s: rank %d: %s: %s\n", name, leat_dist_rank(dist), what, got);
    _Exit(1);
}

/* Which rank fails to make batch 2, and which one is asked to stop meanwhile; -1: none. */
typedef struct stop_case {
    const char *name;
    int fails, stops;
    bool has_hooks; /* rank 0 has a callback with hooks of batches */
    bool exact;     /* --deterministic */
    bool is_synchronized;
} stop_case;

static const stop_case cases[] = {
    {"a rank gets no batch", 1, -1, false, false, false},
    {"rank 0 gets no batch", 0, -1, false, false, false},
    {"rank 0 gets no batch, with hooks", 0, -1, true, false, false},
    {"a rank gets no batch, with hooks", 1, -1, true, false, false},
    {"a rank gets no batch, synchronized", 1, -1, false, false, true},
    {"a rank gets no batch, deterministic", 1, -1, false, true, false},
    {"a rank gets no batch, rank 0 is asked to stop", 1, 0, false, false, false},
    {"a rank gets no batch, rank 0 is asked to stop, with hooks", 1, 0, true, false, false},
    {"rank 0 gets no batch, a rank is asked to stop", 0, 1, false, false, false},
    {"rank 0 gets no batch, a rank is asked to stop, with hooks", 0, 1, true, true, false},
    {"a rank is asked to stop", -1, 1, false, false, false},
    {"a rank is asked to stop, with hooks", -1, 1, true, false, true},
    {"rank 0 is asked to stop", -1, 0, false, true, false},
};

static const stop_case *now;

static int64_t length(void *user) {
    (void)user;
    return BATCHES;
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    float *x = batch->tensors[0].data, *y = batch->tensors[1].data;
    (void)user;
    (void)rng;
    for (int i = 0; i < BATCH * FEATURES; ++i) x[i] = (float)((i * 7 + (int)index * 13) % 11) - 5.0f;
    for (int i = 0; i < BATCH; ++i) y[i] = (float)((i + (int)index) % 3);
    if (index == 2 && leat_dist_rank(dist) == now->stops) leat_model_stop_training(model);
    if (index == 2 && leat_dist_rank(dist) == now->fails)
        return leat_error_set(err, LEAT_EUSER, "the disk of this rank is full of sand");
    return LEAT_OK;
}

static leat_sequence make_sequence(void) {
    leat_sequence out = leat_sequence_default();
    out.length = length;
    out.get = get;
    out.spec = (leat_batch_spec){
        .batch_size = BATCH,
        .tensor_count = 2,
        .tensors = {{.part = LEAT_PART_INPUT, .dtype = LEAT_F32, .rank = 1, .shape = {FEATURES}},
                    {.part = LEAT_PART_TARGET, .dtype = LEAT_F32, .rank = 1, .shape = {1}}}};
    return out;
}

static int hooks_called;

static leat_status count_hook(void *user, leat_training *training, int64_t index, leat_logs *logs,
                              leat_error *err) {
    (void)user;
    (void)training;
    (void)index;
    (void)logs;
    (void)err;
    ++hooks_called;
    return LEAT_OK;
}

/* The ranks cannot leave their device in the middle of a fit. */
static leat_status try_to_move(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    leat_error why = {0};
    if (on_gpu())
        require(leat_model_set_device(model, "cpu", &why) == LEAT_ENOTSUP &&
                    strstr(why.message, "several ranks"),
                now->name, "the device was changed", why.message);
    return count_hook(user, training, index, logs, err);
}

static void make_model(void) {
    static const char layers[] =
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
        "{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 5, \"batch_input_shape\": "
        "[null, "
        "4]}},"
        "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"b\"}},"
        "{\"class_name\": \"Dense\", \"config\": {\"name\": \"c\", \"units\": 1}}]}}";
    leat_compile_options options = leat_compile_options_default();
    leat_error err = {0};
    options.optimizer = "adam";
    options.loss = "mse";
    check(leat_model_from_json(&model, layers, &err), &err);
    check(leat_model_initialize(model, 3, &err), &err);
    check(leat_model_compile(model, &options, &err), &err);
    leat_model_set_deterministic(model, now->exact);
}

/* What all ranks must have alike. */
typedef struct outcome {
    int32_t status, epochs;
    char text[LEAT_ERROR_MESSAGE_BYTES];
    float weights[64];
} outcome;

static void compare(const char *what, outcome *mine) {
    char name[128];
    leat_error err = {0};
    outcome *all = calloc((size_t)leat_dist_size(dist), sizeof *all);
    snprintf(name, sizeof name, "%s, %s", now->name, what);
    require(all != NULL, name, "memory", "none");
    for (int i = 0, at = 0; i < leat_model_weight_count(model); ++i) {
        leat_tensor w = leat_model_weight(model, i);
        memcpy(&mine->weights[at], w.data, leat_tensor_bytes(&w));
        at += (int)leat_tensor_count(&w);
    }
    check(leati_dist_all_gather(dist, mine, sizeof *mine, all, &err), &err);
    for (int i = 0; i < leat_dist_size(dist); ++i) {
        require(all[i].status == mine->status && all[i].epochs == mine->epochs, name, "another end",
                all[i].text);
        require(strcmp(all[i].text, mine->text) == 0, name, "another message", all[i].text);
        require(memcmp(all[i].weights, mine->weights, sizeof mine->weights) == 0, name, "other weights", "");
    }
    free(all);
}

/* A failure is told in the words of the rank that failed; a request to stop ends a fit in order. */
static void require_end(const char *what, const outcome *end, leat_status stopped) {
    char name[128], failure[64];
    snprintf(name, sizeof name, "%s, %s", now->name, what);
    snprintf(failure, sizeof failure, "rank %d (host ", now->fails);
    if (now->fails < 0) {
        require(end->status == (int32_t)stopped, name, "another status", end->text);
        return;
    }
    require(end->status == LEAT_EUSER && strstr(end->text, "full of sand"), name, "another failure",
            end->text);
    require(strstr(end->text, failure) != NULL, name, "another rank", end->text);
    require(strstr(end->text, "batch 2") != NULL, name, "another batch", end->text);
}

static void try_fit(leat_callback *const *callbacks) {
    leat_sequence data = make_sequence();
    leat_fit_options options = leat_fit_options_default();
    leat_history *history = NULL;
    leat_error err = {0};
    outcome end = {0};
    make_model();
    options.epochs = EPOCHS;
    options.verbose = 0;
    options.threads = 1;
    options.workers = 0;
    options.shuffle = LEAT_SHUFFLE_NONE;
    options.dist = dist;
    options.sync_batch_norm = now->is_synchronized && !on_gpu(); /* refused on GPUs */
    options.callbacks = callbacks;
    options.callback_count = now->has_hooks;
    hooks_called = 0;
    end.status = (int32_t)leat_model_fit_generator(model, &data, &options, &history, &err);
    snprintf(end.text, sizeof end.text, "%s", err.message);
    if (history) (void)leat_history_values(history, "loss", &end.epochs);
    compare("fit", &end);
    require_end("fit", &end, LEAT_OK);
    require(end.epochs == (now->fails < 0), now->name, "the number of epochs", "");
    require((hooks_called > 0) == (now->has_hooks && leat_dist_rank(dist) == 0), now->name, "hooks", "");
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static void try_pass(bool predicts, leat_callback *const *callbacks) {
    const char *what = predicts ? "predict" : "evaluate";
    leat_sequence data = make_sequence();
    leat_evaluate_options options = leat_evaluate_options_default();
    leat_predictions *predictions = NULL;
    leat_logs logs = {0};
    leat_error err = {0};
    outcome end = {0};
    make_model();
    options.threads = 1;
    options.workers = 0;
    options.verbose = 0;
    options.dist = dist;
    options.callbacks = callbacks;
    options.callback_count = now->has_hooks;
    end.status = (int32_t)(predicts ? leat_model_predict_generator(model, &data, &options, &predictions, &err)
                                    : leat_model_evaluate_generator(model, &data, &options, &logs, &err));
    snprintf(end.text, sizeof end.text, "%s", err.message);
    compare(what, &end);
    require_end(what, &end, LEAT_ESTOPPED);
    leat_predictions_destroy(&predictions);
    leat_model_destroy(&model);
}

int main(void) {
    leat_callback callback = {.size = sizeof callback,
                              .on_train_batch_begin = count_hook,
                              .on_train_batch_end = try_to_move,
                              .on_test_batch_begin = count_hook,
                              .on_predict_batch_end = count_hook};
    leat_callback *const callbacks[] = {&callback};
    leat_error err = {0};
    now = &cases[0];
    check(leat_dist_open(&dist, NULL, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        now = &cases[i];
        try_fit(callbacks);
        try_pass(false, callbacks);
        try_pass(true, callbacks);
    }
    if (leat_dist_rank(dist) == 0) printf("%d ranks end together\n", leat_dist_size(dist));
    leat_dist_close(&dist);
    return 0;
}
