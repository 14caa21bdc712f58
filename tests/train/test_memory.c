/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: the n-th allocation fails, for every n, from making a model to loading it again; and a steady step has
 * none. leat's own allocations: jansson 2.14 drops letters of a text when its buffer cannot grow, and libraries
 * like HDF5 have no door of ours. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "cmocka_all.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "leat/predictor.h"
#include "support/memory_failing.h"
#include "train/support.h"

static const char architecture[] =
    "{\"class_name\": \"Model\", \"config\": {\"name\": \"small\", \"layers\": ["
    "{\"class_name\": \"InputLayer\", \"name\": \"in\", \"inbound_nodes\": [],"
    " \"config\": {\"name\": \"in\", \"batch_input_shape\": [null, 4]}},"
    "{\"class_name\": \"Dense\", \"name\": \"hidden\", \"inbound_nodes\": [[[\"in\", 0, 0, {}]]],"
    " \"config\": {\"name\": \"hidden\", \"units\": 3, \"activation\": \"relu\","
    " \"kernel_regularizer\": {\"class_name\": \"L1L2\", \"config\": {\"l1\": 0.0, \"l2\": 0.01}}}},"
    "{\"class_name\": \"BatchNormalization\", \"name\": \"norm\", \"inbound_nodes\": [[[\"hidden\", 0, 0, "
    "{}]]],"
    " \"config\": {\"name\": \"norm\"}},"
    "{\"class_name\": \"Dense\", \"name\": \"out\", \"inbound_nodes\": [[[\"norm\", 0, 0, {}]]],"
    " \"config\": {\"name\": \"out\", \"units\": 3, \"activation\": \"softmax\"}}],"
    " \"input_layers\": [[\"in\", 0, 0]], \"output_layers\": [[\"out\", 0, 0]]}}";

static leat_status make(leat_model **model, leat_error *err) {
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "adam";
    options.loss = "categorical_crossentropy";
    options.metrics = "accuracy";
    leat_status status = leat_model_from_json(model, architecture, err);
    return status == LEAT_OK ? leat_model_compile(*model, &options, err) : status;
}

static leat_status train(leat_model *model, int workers, leat_error *err) {
    clusters data = clusters_of(20, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = leat_fit_options_default();
    leat_history *history = NULL;
    options.verbose = 0;
    options.threads = 1;
    options.workers = workers;
    options.validation = &sequence;
    leat_status status = leat_model_fit_generator(model, &sequence, &options, &history, err);
    char *json = NULL;
    if (status == LEAT_OK) status = leat_history_json(history, &json, err);
    leat_string_free(json);
    leat_history_destroy(&history);
    return status;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void)info, (void)kind, (void)at;
    return remove(path);
}

/* Trains with TensorBoard, whose files are in the folder PATH-logs. */
static leat_status train_with_tensorboard(leat_model *model, const char *path, leat_error *err) {
    char folder[128];
    leat_callback callback = {0}, *callbacks[] = {&callback};
    leat_tensorboard_options board = leat_tensorboard_options_default();
    clusters data = clusters_of(20, 8);
    leat_sequence sequence = clusters_sequence(&data);
    snprintf(folder, sizeof folder, "%s-logs", path);
    board.log_dir = folder;
    board.update_freq = board.histogram_freq = 1;
    leat_status status = leat_tensorboard_create(&callback, sizeof callback, &board, err);
    leat_fit_options options = quiet_fit_with(1, callbacks, 1);
    options.workers = 0;
    options.validation = &sequence;
    if (status == LEAT_OK) status = leat_model_fit_generator(model, &sequence, &options, NULL, err);
    leat_callback_destroy(&callback);
    (void)nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return status;
}

/* Trains up to an epoch, from the newest checkpoint in the folder on. */
static leat_status train_from_checkpoint(const char *folder, int64_t epochs, leat_error *err) {
    clusters data = clusters_of(20, 8), held_back = clusters_of(10, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_back);
    leat_callback stopping = {0}, logger = {0}, *callbacks[] = {&stopping, &logger};
    leat_early_stopping_options patience = leat_early_stopping_options_default();
    leat_checkpoint_options to = leat_checkpoint_options_default();
    leat_model *model = NULL;
    char log[160];
    patience.restore_best_weights = true;
    patience.patience = 9;
    to.folder = folder;
    to.every_steps = 2;
    to.resume = true;
    snprintf(log, sizeof log, "%s/log.csv", folder);
    leat_status status = make(&model, err);
    if (status == LEAT_OK) status = leat_early_stopping_create(&stopping, sizeof stopping, &patience, err);
    if (status == LEAT_OK) status = leat_csv_logger_create(&logger, sizeof logger, log, NULL, false, err);
    leat_fit_options options = quiet_fit_with(epochs, callbacks, 2);
    options.workers = 0;
    options.validation = &validation;
    options.validation_every = 2;
    options.checkpoints = &to;
    if (status == LEAT_OK) status = leat_model_fit_generator(model, &sequence, &options, NULL, err);
    leat_callback_destroy(&stopping);
    leat_callback_destroy(&logger);
    leat_model_destroy(&model);
    return status;
}

static leat_status predict(leat_model *model, leat_error *err) {
    clusters data = clusters_of(20, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_evaluate_options options = leat_evaluate_options_default();
    leat_predictions *predictions = NULL;
    options.workers = 0;
    options.threads = 1;
    leat_status status = leat_model_predict_generator(model, &sequence, &options, &predictions, err);
    leat_predictions_destroy(&predictions);
    return status;
}

typedef leat_status (*life)(const char *path, leat_error *err);

static leat_status create_and_fit(const char *path, leat_error *err) {
    (void)path;
    leat_model *model = NULL;
    leat_status status = make(&model, err);
    if (status == LEAT_OK) status = train(model, 0, err);
    if (status == LEAT_OK) status = predict(model, err);
    leat_model_destroy(&model);
    return status;
}

static leat_status fit_with_a_worker(const char *path, leat_error *err) {
    (void)path;
    leat_model *model = NULL;
    leat_status status = make(&model, err);
    if (status == LEAT_OK) status = train(model, 1, err);
    leat_model_destroy(&model);
    return status;
}

static leat_status fit_and_continue(const char *path, leat_error *err) {
    char folder[128];
    leat_checkpoint_info info;
    snprintf(folder, sizeof folder, "%s-checkpoints", path);
    leat_status status = train_from_checkpoint(folder, 1, err);
    if (status == LEAT_OK) status = train_from_checkpoint(folder, 2, err);
    if (status == LEAT_OK) status = leat_checkpoint_find(folder, &info, sizeof info, err);
    (void)nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return status;
}

static leat_status create_and_watch(const char *path, leat_error *err) {
    leat_model *model = NULL;
    leat_status status = make(&model, err);
    if (status == LEAT_OK) status = train_with_tensorboard(model, path, err);
    leat_model_destroy(&model);
    return status;
}

static leat_status save_and_load(const char *path, leat_error *err) {
    leat_model *model = NULL, *again = NULL;
    leat_status status = make(&model, err);
    if (status == LEAT_OK) status = leat_model_save(model, path, true, err);
    if (status == LEAT_OK) status = leat_model_load(&again, path, err);
    leat_model_destroy(&model);
    leat_model_destroy(&again);
    return status;
}

static leat_status publish_and_run(leat_model *model, leat_predictor *predictor, leat_error *err) {
    float y[3];
    leat_status status = leat_model_publish(model, err);
    if (status == LEAT_OK) status = leat_predictor_sync(predictor, err);
    if (status == LEAT_OK) status = leat_predictor_run(predictor, NULL, (void *[]){y}, err);
    return status;
}

static leat_status create_predictors(const char *path, leat_error *err) {
    (void)path;
    leat_model *model = NULL;
    leat_predictor *one = NULL, *two = NULL;
    leat_status status = make(&model, err);
    if (status == LEAT_OK) status = leat_predictor_create(&one, model, NULL, err);
    if (status == LEAT_OK) status = leat_predictor_create(&two, model, NULL, err);
    for (int i = 0; status == LEAT_OK && i < 3; ++i) status = publish_and_run(model, one, err);
    leat_predictor_destroy(&one);
    leat_predictor_destroy(&two);
    leat_model_destroy(&model);
    return status;
}

static leat_status words(const char *path, leat_error *err) {
    (void)path;
    leat_model *model = NULL;
    char *json = NULL, *table = NULL, *plan = NULL, *figures = NULL;
    leat_plan_options options = leat_plan_options_default();
    leat_status status = make(&model, err);
    options.threads = 1;
    if (status == LEAT_OK) status = leat_model_to_json(model, &json, err);
    if (status == LEAT_OK) status = leat_model_summary(model, &table, err);
    if (status == LEAT_OK) status = leat_model_plan_summary(model, &options, &plan, err);
    options.json = options.train = true;
    if (status == LEAT_OK) status = leat_model_plan_summary(model, &options, &figures, err);
    leat_string_free(json);
    leat_string_free(table);
    leat_string_free(plan);
    leat_string_free(figures);
    leat_model_destroy(&model);
    return status;
}

/* Lets each allocation fail in turn: every run ends in success, or in LEAT_ENOMEM with a message, and leaks nothing. */
static void sweep(life run) {
    char path[] = "/tmp/leat-memory-XXXXXX";
    close(mkstemp(path));
    leat_error first = {0};
    if (run(path, &first) != LEAT_OK)
        fail_msg("%s", first.message); /* libraries keep memory that they allocate once */
    int64_t live = memory_live(), n = 1;
    for (bool more = true; more; ++n) {
        leat_error err = {0};
        memory_fail_at(n);
        leat_status status = run(path, &err);
        more = memory_failed();
        if (more && status != LEAT_OK && status != LEAT_ENOMEM)
            fail_msg("allocation %lld failed as %s: %s", (long long)n, leat_status_name(status), err.message);
        if (status != LEAT_OK) assert_true(err.message[0] != '\0');
        if (!more) assert_int_equal(status, LEAT_OK);
        if (memory_live() != live)
            fail_msg("allocation %lld failed and left %lld blocks", (long long)n,
                     (long long)(memory_live() - live));
    }
    memory_fail_at(0);
    unlink(path);
    print_message("  %lld allocations failed in turn\n", (long long)n - 2);
}

static void create_and_fit_survive(void **state) {
    (void)state;
    sweep(create_and_fit);
}

static void event_files_survive(void **state) {
    (void)state;
    sweep(create_and_watch);
}

static void fit_and_continue_survive(void **state) {
    (void)state;
    sweep(fit_and_continue);
}

static void fit_with_a_worker_survives(void **state) {
    (void)state;
    sweep(fit_with_a_worker);
}

static void save_and_load_survive(void **state) {
    (void)state;
    sweep(save_and_load);
}

static void predictors_survive(void **state) {
    (void)state;
    sweep(create_predictors);
}

static void a_steady_prediction_allocates_nothing(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = NULL;
    leat_predictor *predictor = NULL;
    leat_status status = make(&model, &err);
    if (status == LEAT_OK) status = leat_predictor_create(&predictor, model, NULL, &err);
    for (int i = 0; status == LEAT_OK && i < 5; ++i) status = publish_and_run(model, predictor, &err);
    memory_fail_at(0);
    for (int i = 0; status == LEAT_OK && i < 20; ++i) status = publish_and_run(model, predictor, &err);
    if (status != LEAT_OK) fail_msg("%s", err.message);
    assert_int_equal(memory_calls(), 0);
    leat_predictor_destroy(&predictor);
    leat_model_destroy(&model);
}

static void words_survive(void **state) {
    (void)state;
    sweep(words);
}

static leat_status watch(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                         leat_error *err) {
    (void)training, (void)logs, (void)err;
    if (batch == 5) memory_fail_at(0); /* starts counting */
    if (batch == 40) *(int64_t *)user = memory_calls();
    return LEAT_OK;
}

static void a_steady_step_allocates_nothing(void **state) {
    (void)state;
    leat_error err = {0};
    for (int workers = 0; workers < 3; ++workers) {
        int64_t calls = -1;
        leat_model *model = make_classifier(1);
        clusters data = clusters_of(400, 8);
        leat_sequence sequence = clusters_sequence(&data);
        leat_callback callback = {.size = sizeof(leat_callback), .user = &calls, .on_train_batch_end = watch};
        leat_fit_options options = leat_fit_options_default();
        options.verbose = 0;
        options.workers = workers;
        options.callbacks = (leat_callback *[]){&callback};
        options.callback_count = 1;
        if (leat_model_fit_generator(model, &sequence, &options, NULL, &err) != LEAT_OK)
            fail_msg("%s", err.message);
        assert_int_equal(calls, 0);
        leat_model_destroy(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_and_fit_survive),
        cmocka_unit_test(event_files_survive),
        cmocka_unit_test(fit_and_continue_survive),
        cmocka_unit_test(fit_with_a_worker_survives),
        cmocka_unit_test(save_and_load_survive),
        cmocka_unit_test(words_survive),
        cmocka_unit_test(a_steady_step_allocates_nothing),
        cmocka_unit_test(predictors_survive),
        cmocka_unit_test(a_steady_prediction_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
