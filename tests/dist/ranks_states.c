/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a test of stateful layers and of inputs with a fixed batch size, whose parts the ranks compute.  All
 * ranks together and this process alone must end with the same weights, states, results and predictions: to 1e-6, with
 * the option "exact" to the byte; also where a callback of rank 0 resets the states, and where a fit that all ranks
 * have begun is continued by one process. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/checkpoint.h"
#include "leat/dist.h"
#include "leat/rng.h"
#include "leat/train.h"

/* Each batch has the next 5 steps of the same 6 series. */
enum { BATCH = 6, BATCHES = 4, SAMPLES = BATCH * BATCHES, STEPS = 5, FEATURES = 3, EPOCHS = 3 };

typedef struct states_case {
    const char *name, *layers;
    const char *stateful[2]; /* layers */
    bool resets;             /* a callback resets the states at the end of each epoch */
} states_case;

#define RECURRENT(kind, name, options)                                                                       \
    "{\"class_name\": \"" kind "\", \"config\": {\"name\": \"" name                                          \
    "\", \"units\": 4, \"stateful\": true, \"batch_input_shape\": [6, 5, 3]" options "}},"
#define OUT       "{\"class_name\": \"Dense\", \"config\": {\"name\": \"out\", \"units\": 2}}"
#define SEQUENCES ", \"return_sequences\": true"

static const states_case cases[] = {
    {"LSTM", RECURRENT("LSTM", "a", "") OUT, {"a", NULL}, false},
    {"LSTM and GRU", RECURRENT("LSTM", "a", SEQUENCES) RECURRENT("GRU", "b", "") OUT, {"a", "b"}, true},
    {"SimpleRNN", RECURRENT("SimpleRNN", "a", ", \"dropout\": 0.0") OUT, {"a", NULL}, true},
    {"a fixed batch size",
     "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\", \"batch_input_shape\": [6, 5, 3]}},"
     "{\"class_name\": \"Dense\", \"config\": {\"name\": \"h\", \"units\": 5, \"activation\": "
     "\"tanh\"}}," OUT,
     {NULL, NULL},
     false},
    {"a fixed batch size of two layers",
     "{\"class_name\": \"Conv1D\", \"config\": {\"name\": \"c\", \"filters\": 4, \"kernel_size\": [2],"
     " \"batch_input_shape\": [6, 5, 3]}},"
     "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"r\", \"target_shape\": [16]}}," OUT,
     {NULL, NULL},
     false},
};

static float series[SAMPLES * STEPS * FEATURES], targets[SAMPLES * 2];
static int rank;
static bool exact;
static const char *now = "the start"; /* the case */

static void fail(const char *what) {
    fprintf(stderr, "failed: %s: rank %d: %s\n", now, rank, what);
    _Exit(1);
}

static void check(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail(err->message);
}

static void make_data(void) {
    leat_rng rng = leat_rng_for(8, 9, 10);
    for (int i = 0; i < SAMPLES * STEPS * FEATURES; ++i) series[i] = (float)leat_rng_uniform(&rng) - 0.5f;
    for (int i = 0; i < SAMPLES; ++i) /* of the batch before, so that states help */
        for (int j = 0; j < 2; ++j)
            targets[2 * i + j] = series[(i < BATCH ? i : i - BATCH) * STEPS * FEATURES + j];
}

static leat_model *make(const states_case *c) {
    char text[2048];
    leat_model *model = NULL;
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.1, \"momentum\": 0.5}}";
    options.loss = "mse";
    options.metrics = "mae";
    snprintf(text, sizeof text,
             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [%s]}}", c->layers);
    check(leat_model_from_json(&model, text, &err), &err);
    check(leat_model_initialize(model, 7, &err), &err);
    check(leat_model_compile(model, &options, &err), &err);
    leat_model_set_deterministic(model, exact);
    return model;
}

static leat_arrays arrays_of(leat_array *input, leat_array *target) {
    *input =
        (leat_array){.tensor = leat_tensor_view(LEAT_F32, 3, (int64_t[]){SAMPLES, STEPS, FEATURES}, series)};
    *target = (leat_array){.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 2}, targets)};
    return (leat_arrays){.inputs = input, .input_count = 1, .targets = target, .target_count = 1};
}

static leat_status reset(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                         leat_error *err) {
    (void)training, (void)epoch, (void)logs, (void)err;
    leat_model_reset_states(user);
    return LEAT_OK;
}

/* Trains with validation; with a folder, checkpoints are written after each epoch. */
static leat_history *fit(leat_model *model, const states_case *c, leat_dist *dist, int64_t epochs,
                         const char *folder, bool resume) {
    leat_array input, target;
    const leat_arrays arrays = arrays_of(&input, &target);
    leat_callback resets = {.size = sizeof resets, .user = model, .on_epoch_end = reset}, *const callbacks[] =
                                                                                              {&resets};
    leat_checkpoint_options checkpoints = leat_checkpoint_options_default();
    leat_source_options source = leat_source_options_default();
    leat_fit_options options = leat_fit_options_default();
    leat_sequence validation = {0};
    leat_history *history = NULL;
    leat_error err = {0};
    source.batch_size = BATCH;
    check(leat_arrays_open(&validation, sizeof validation, &arrays, &source, &err), &err);
    checkpoints.folder = folder;
    checkpoints.every_steps = BATCHES;
    checkpoints.resume = resume;
    options.epochs = epochs;
    options.shuffle = LEAT_SHUFFLE_NONE;
    options.verbose = 0;
    options.threads = 1;
    options.seed = 5;
    options.validation = &validation;
    options.callbacks = c->resets ? callbacks : NULL;
    options.callback_count = c->resets;
    options.checkpoints = folder ? &checkpoints : NULL;
    options.dist = dist;
    check(leat_model_fit(model, &arrays, BATCH, &options, &history, &err), &err);
    leat_sequence_destroy(&validation);
    return history;
}

static void compare(const char *what, int64_t index, double together, double alone) {
    char text[256];
    if (exact ? together == alone : fabs(together - alone) <= 1e-6 * (1 + fabs(alone))) return;
    snprintf(text, sizeof text, "%s, number %lld: %.9g by all ranks, %.9g by one", what, (long long)index,
             together, alone);
    fail(text);
}

static void compare_tensors(const char *what, const leat_tensor *a, const leat_tensor *b) {
    const float *p = a->data, *q = b->data;
    compare(what, -1, (double)leat_tensor_count(a), (double)leat_tensor_count(b));
    for (int64_t i = 0; i < leat_tensor_count(a); ++i) compare(what, i, (double)p[i], (double)q[i]);
}

static void compare_models(const states_case *c, const leat_model *a, const leat_model *b) {
    for (int i = 0; i < leat_model_weight_count(a); ++i) {
        const leat_tensor x = leat_model_weight(a, i), y = leat_model_weight(b, i);
        compare_tensors(leat_model_weight_name(a, i), &x, &y);
    }
    for (int i = 0; i < 2 && c->stateful[i]; ++i) {
        leat_tensor x, y;
        leat_error err = {0};
        check(leat_model_state_into(a, c->stateful[i], 0, &x, &err), &err);
        check(leat_model_state_into(b, c->stateful[i], 0, &y, &err), &err);
        compare_tensors("a state", &x, &y);
    }
}

static void compare_histories(const leat_history *a, const leat_history *b) {
    for (int i = 0; i < leat_history_count(a); ++i) {
        int count = 0, other = 0;
        const char *name = leat_history_name(a, i);
        const double *p = leat_history_values(a, name, &count), *q = leat_history_values(b, name, &other);
        compare(name, -1, count, other);
        for (int j = 0; j < count; ++j) compare(name, j, p[j], q[j]);
    }
}

/* Evaluates, and then predicts: both go on with the states. */
static void use(leat_model *model, leat_dist *dist, leat_logs *logs, leat_predictions **predictions) {
    leat_array input, target;
    const leat_arrays arrays = arrays_of(&input, &target);
    leat_evaluate_options options = leat_evaluate_options_default();
    leat_error err = {0};
    options.threads = 1;
    options.verbose = 0;
    options.dist = dist;
    check(leat_model_evaluate(model, &arrays, BATCH, &options, logs, &err), &err);
    check(leat_model_predict(model, &arrays, BATCH, &options, predictions, &err), &err);
}

static void try_case(const states_case *c, leat_dist *all, leat_dist *one) {
    leat_model *together = make(c), *alone = make(c);
    leat_history *common = fit(together, c, all, EPOCHS, NULL, false),
                 *single = fit(alone, c, exact ? one : NULL, EPOCHS, NULL, false);
    leat_logs logs = {0}, others = {0};
    leat_predictions *predictions = NULL, *single_predictions = NULL;
    compare_histories(common, single);
    compare_models(c, together, alone);
    use(together, all, &logs, &predictions);
    use(alone, exact ? one : NULL, &others, &single_predictions);
    for (int i = 0; i < logs.count; ++i)
        compare(logs.items[i].name, i, logs.items[i].value, others.items[i].value);
    const leat_tensor x = leat_predictions_get(predictions, 0),
                      y = leat_predictions_get(single_predictions, 0);
    compare_tensors("predictions", &x, &y);
    compare_models(c, together, alone);
    leat_predictions_destroy(&predictions);
    leat_predictions_destroy(&single_predictions);
    leat_history_destroy(&common);
    leat_history_destroy(&single);
    leat_model_destroy(&together);
    leat_model_destroy(&alone);
}

/* Removes a folder of checkpoints, which has no folders in it. */
static void remove_folder(const char *folder) {
    DIR *open = opendir(folder);
    char path[512];
    for (const struct dirent *entry = NULL; open && (entry = readdir(open));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        (void)unlink(path);
    }
    if (open) (void)closedir(open);
    (void)rmdir(folder);
}

/* All ranks train an epoch; a new model of one process, which knows the states from the checkpoint, trains the rest. */
static void try_resume(const states_case *c, leat_dist *all, leat_dist *one) {
    char folder[64];
    leat_model *begun = make(c), *resumed = make(c), *whole = make(c);
    snprintf(folder, sizeof folder, "states-%ld-%d", (long)getppid(), exact);
    leat_history *first = fit(begun, c, all, 1, folder, false),
                 *uninterrupted = fit(whole, c, all, EPOCHS, NULL, false), *second = NULL;
    if (rank == 0) {
        second = fit(resumed, c, exact ? one : NULL, EPOCHS, folder, true);
        compare_models(c, whole, resumed);
        compare_histories(uninterrupted, second);
        remove_folder(folder);
    }
    leat_history_destroy(&first);
    leat_history_destroy(&second);
    leat_history_destroy(&uninterrupted);
    leat_model_destroy(&begun);
    leat_model_destroy(&resumed);
    leat_model_destroy(&whole);
}

/* Every batch must have the size of the model. */
static void another_size_is_refused(leat_dist *all) {
    leat_array input, target;
    const leat_arrays arrays = arrays_of(&input, &target);
    leat_model *model = make(&cases[3]);
    leat_fit_options options = leat_fit_options_default();
    leat_error err = {0};
    options.verbose = 0;
    options.threads = 1;
    options.dist = all;
    if (leat_model_fit(model, &arrays, BATCH - 1, &options, NULL, &err) != LEAT_ESHAPE ||
        !strstr(err.message, "expected shape (6, 5, 3), received (5, 5, 3)"))
        fail(err.message);
    leat_model_destroy(&model);
}

int main(int argc, char **argv) {
    leat_dist *all = NULL, *one = NULL;
    leat_error err = {0};
    leat_dist_options self = leat_dist_options_default();
    self.kind = LEAT_DIST_SELF;
    exact = argc > 1 && strcmp(argv[1], "exact") == 0;
    check(leat_dist_open(&all, NULL, &err), &err);
    check(leat_dist_open(&one, &self, &err), &err);
    rank = leat_dist_rank(all);
    make_data();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        now = cases[i].name;
        try_case(&cases[i], all, one);
    }
    now = "a fit that is continued";
    try_resume(&cases[0], all, one);
    try_resume(&cases[1], all, one);
    now = "another batch size";
    another_size_is_refused(all);
    if (rank == 0) printf("%d ranks keep the states that one does\n", leat_dist_size(all));
    leat_dist_close(&one);
    leat_dist_close(&all);
    return 0;
}
