/* SPDX-License-Identifier: Apache-2.0 */
/* The history: epochs of series with gaps, validations inside epochs, configuration, state, and checkpoints. */
#include "cmocka_all.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "checkpoint/state.h"
#include "train/history/history.h"
#include "train/support.h"

/* ---- Histories ---- */

static json_t *json_of(const leat_history *history) {
    leat_error err = {0};
    char *text = NULL;
    expect_ok(leat_history_json(history, &text, &err), &err);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    leat_string_free(text);
    return root;
}

static void add_epoch(leat_history *history, int64_t epoch, double loss, double val_loss) {
    leat_error err = {0};
    leat_logs logs = {0};
    leat_logs_set(&logs, "loss", loss);
    if (!isnan(val_loss)) leat_logs_set(&logs, "val_loss", val_loss);
    expect_ok(leati_history_add(history, epoch, 100, &logs, &err), &err);
}

static void add_validation(leat_history *history, int64_t epoch, int64_t step, const char *name,
                           double value) {
    leat_error err = {0};
    leat_logs logs = {0};
    leat_logs_set(&logs, name, value);
    expect_ok(leati_history_add_validation(history, epoch, step, &logs, &err), &err);
}

static void expect_integers(json_t *array, size_t count, const int64_t *values) {
    assert_true(json_is_array(array));
    assert_int_equal(json_array_size(array), count);
    for (size_t i = 0; i < count; ++i)
        assert_int_equal(json_integer_value(json_array_get(array, i)), values[i]);
}

static void expect_epochs(const leat_history *history, const char *name, int count, const int64_t *expected) {
    int found = -1;
    const int64_t *epochs = leat_history_epochs(history, name, &found);
    assert_int_equal(found, count);
    if (count > 0) assert_memory_equal(epochs, expected, (size_t)count * sizeof *expected);
}

/* ---- Epochs ---- */

static void series_know_their_epochs(void **state) {
    (void)state;
    leat_error err = {0};
    leat_history *history = NULL;
    expect_ok(leati_history_create(&history, &err), &err);
    for (int64_t epoch = 0; epoch < 40; ++epoch)
        add_epoch(history, epoch, 1, epoch % 16 == 3 || epoch == 38 ? 2 : (double)NAN);
    expect_epochs(history, "val_loss", 4, (const int64_t[]){3, 19, 35, 38});
    int count = 0;
    const int64_t *all = leat_history_epochs(history, "loss", &count);
    assert_int_equal(count, 40);
    for (int i = 0; i < count; ++i) assert_int_equal(all[i], i);
    expect_epochs(history, "lr", 0, NULL);
    assert_null(leat_history_epochs(history, "lr", &count));
    json_t *root = json_of(history), *epochs_of = json_object_get(root, "epochs_of");
    assert_int_equal(json_object_size(epochs_of), 1); /* loss has a value in each epoch */
    expect_integers(json_object_get(epochs_of, "val_loss"), 4, (const int64_t[]){3, 19, 35, 38});
    json_t *steps = json_object_get(root, "steps");
    assert_int_equal(json_array_size(steps), 40);
    assert_int_equal(json_integer_value(json_array_get(steps, 39)), 100);
    assert_null(json_object_get(root, "validations"));
    json_decref(root);
    leat_history_destroy(&history);
}

/* 8 epochs that are validated after epochs 4 and 8, as --validation-freq 4 asks for. */
static void a_fit_stores_the_epochs_of_its_validations(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(60, 20), held_out = clusters_of(40, 20);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_fit_options options = quiet_fit(8);
    options.validation = &validation;
    options.validation_freq = 4;
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    expect_epochs(history, "val_loss", 2, (const int64_t[]){3, 7});
    expect_epochs(history, "val_accuracy", 2, (const int64_t[]){3, 7});
    int count = 0;
    assert_non_null(leat_history_epochs(history, "loss", &count));
    assert_int_equal(count, 8);
    json_t *root = json_of(history);
    expect_integers(json_object_get(json_object_get(root, "epochs_of"), "val_loss"), 2,
                    (const int64_t[]){3, 7});
    expect_integers(json_object_get(root, "steps"), 8, (const int64_t[]){3, 3, 3, 3, 3, 3, 3, 3});
    json_decref(root);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

/* ---- Validations inside epochs ---- */

static void validations_are_written_by_step(void **state) {
    (void)state;
    leat_error err = {0};
    leat_history *history = NULL;
    expect_ok(leati_history_create(&history, &err), &err);
    add_validation(history, 0, 50, "val_loss", 3);
    add_validation(history, 0, 100, "val_loss", 2);
    add_validation(history, 1, 150, "val_mae", 1);
    add_validation(history, 1, 200, "val_loss", (double)INFINITY);
    json_t *root = json_of(history), *all = json_object_get(root, "validations");
    expect_integers(json_object_get(all, "epoch"), 4, (const int64_t[]){0, 0, 1, 1});
    expect_integers(json_object_get(all, "step"), 4, (const int64_t[]){50, 100, 150, 200});
    json_t *values = json_object_get(all, "values"), *loss = json_object_get(values, "val_loss");
    assert_int_equal(json_array_size(loss), 4);
    assert_true(json_number_value(json_array_get(loss, 1)) == 2);
    assert_true(json_is_null(json_array_get(loss, 2)) && json_is_null(json_array_get(loss, 3)));
    json_t *mae = json_object_get(values, "val_mae");
    assert_true(json_is_null(json_array_get(mae, 0)));
    assert_true(json_number_value(json_array_get(mae, 2)) == 1);
    json_decref(root);
    leat_history_destroy(&history);
}

/* ---- Configuration ---- */

static const char *text_at(json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    if (!text) fail_msg("no text '%s'", key);
    return text;
}

static int64_t integer_at(json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) fail_msg("no integer '%s'", key);
    return json_integer_value(value);
}

static void check_machine(json_t *machine) {
    assert_int_equal(integer_at(machine, "workers"), 2);
    assert_true(json_is_false(json_object_get(machine, "use_multiprocessing")));
    assert_int_equal(integer_at(machine, "max_queue_size"), 7);
    assert_int_equal(integer_at(machine, "threads"), 1);
    assert_in_range(integer_at(machine, "cores"), 1, 1 << 20);
    assert_true(integer_at(machine, "memory_bytes") > 1 << 20);
    assert_non_null(strstr("base avx2 avx512", text_at(machine, "instruction_set")));
    char host[256] = "";
    const char *system = text_at(machine, "system");
    assert_non_null(strstr(system, "Linux "));
    if (gethostname(host, sizeof host - 1) == 0 && strlen(host) > 6) assert_null(strstr(system, host));
}

static void check_training(json_t *training) {
    json_t *optimizer = json_object_get(training, "optimizer");
    assert_string_equal(text_at(optimizer, "class_name"), "Adam");
    assert_true(json_is_object(json_object_get(optimizer, "config")));
    assert_string_equal(text_at(training, "loss"), "categorical_crossentropy");
    assert_string_equal(text_at(training, "metrics"), "accuracy");
    assert_int_equal(integer_at(training, "batch_size"), 20);
    assert_int_equal(integer_at(training, "epochs"), 2);
    assert_int_equal(integer_at(training, "initial_epoch"), 0);
    assert_int_equal(integer_at(training, "steps_per_epoch"), 3);
    json_t *validation = json_object_get(training, "validation");
    assert_int_equal(integer_at(validation, "batch_size"), 10);
    assert_int_equal(integer_at(validation, "steps"), 4);
    assert_int_equal(integer_at(validation, "freq"), 2);
    assert_int_equal(integer_at(training, "seed"), 17);
    json_t *shuffle = json_object_get(training, "shuffle");
    assert_string_equal(text_at(shuffle, "how"), "window");
    assert_int_equal(integer_at(shuffle, "window"), 3);
    json_t *weights = json_object_get(training, "class_weight");
    assert_int_equal(json_object_size(weights), 3);
    assert_true(json_number_value(json_object_get(weights, "2")) == 0.5);
    assert_string_equal(text_at(training, "dtype_policy"), "float32");
    assert_true(json_is_false(json_object_get(training, "deterministic")));
    assert_true(json_is_true(json_object_get(training, "folding")));
    assert_string_equal(text_at(training, "tuning"), "off");
}

static void the_configuration_says_how_the_run_was_made(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(60, 20), held_out = clusters_of(40, 10);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_class_weight weights[] = {{0, 1}, {1, 2}, {2, 0.5}};
    leat_fit_options options = quiet_fit(2);
    options.steps_per_epoch = 3;
    options.validation = &validation;
    options.validation_steps = 4;
    options.validation_freq = 2;
    options.class_weight = weights;
    options.class_weight_count = 3;
    options.seed = 17;
    options.shuffle = LEAT_SHUFFLE_WINDOW;
    options.shuffle_window = 3;
    options.workers = 2;
    options.max_queue_size = 7;
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    json_t *root = json_of(history), *all = json_object_get(root, "configuration");
    assert_string_equal(text_at(all, "leat"), leat_version());
    json_t *about_model = json_object_get(all, "model");
    assert_string_equal(text_at(about_model, "class"), "Sequential");
    assert_int_equal(integer_at(about_model, "layers"), 2);
    assert_int_equal(integer_at(about_model, "weights"), 4);
    assert_int_equal(integer_at(about_model, "parameters"), 4 * 8 + 8 + 8 * 3 + 3);
    assert_int_equal(integer_at(about_model, "trainable_parameters"), 67);
    check_training(json_object_get(all, "training"));
    check_machine(json_object_get(all, "machine"));
    json_decref(root);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

/* ---- A fit that is running ---- */

typedef struct watcher {
    int seen;
    int64_t steps_seen;
    int stop_after; /* step after which the model is asked to stop; -1: never */
    bool fails;
} watcher;

static leat_status watch(void *user, leat_training *training, int64_t step, leat_logs *logs,
                         leat_error *err) {
    watcher *self = user;
    (void)logs;
    if (step == self->stop_after) leat_model_stop_training(leat_training_model(training));
    if (self->fails && step == 1) return leat_error_set(err, LEAT_EIO, "the disk is away \xff");
    if (step != 2) return LEAT_OK;
    const leat_history *history = leat_training_history(training);
    assert_non_null(history);
    leat_verdict verdict = leat_history_verdict(history);
    assert_true(verdict.steps > self->steps_seen);
    assert_true(verdict.wall_ns >= verdict.data_wait_ns + verdict.compute_ns);
    assert_true(verdict.text[0]);
    assert_true(leat_history_feed_stats(history).batches >= verdict.steps);
    self->steps_seen = verdict.steps;
    json_t *root = json_of(history), *progress = json_object_get(root, "progress");
    assert_string_equal(text_at(root, "state"), "running");
    assert_null(json_object_get(root, "state_text"));
    assert_int_equal(json_array_size(json_object_get(root, "epoch")), self->seen);
    assert_int_equal(integer_at(progress, "epoch"), self->seen);
    assert_int_equal(integer_at(progress, "epochs"), 2);
    assert_int_equal(integer_at(progress, "steps"), 3);
    assert_int_equal(integer_at(progress, "step"), 2); /* the history gets a step after the callbacks */
    assert_true(json_is_number(json_object_get(json_object_get(progress, "logs"), "loss")));
    json_decref(root);
    ++self->seen;
    return LEAT_OK;
}

static leat_status expect_no_history(void *user, leat_training *training, int64_t index, leat_logs *logs,
                                     leat_error *err) {
    (void)index, (void)logs, (void)err;
    assert_null(leat_training_history(training));
    ++*(int *)user;
    return LEAT_OK;
}

/* Runs a fit of 2 epochs with 3 steps each, and checks the state of its history. */
static void fit_ends(watcher *self, const char *state, const char *text) {
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(60, 20);
    leat_sequence sequence = clusters_sequence(&data);
    leat_callback callback = {.size = sizeof callback, .user = self, .on_train_batch_end = watch};
    leat_callback *callbacks[] = {&callback};
    leat_fit_options options = quiet_fit_with(2, callbacks, 1);
    leat_history *history = NULL;
    leat_status status = leat_model_fit_generator(model, &sequence, &options, &history, &err);
    assert_int_equal(status == LEAT_OK, !self->fails);
    json_t *root = json_of(history);
    assert_string_equal(text_at(root, "state"), state);
    assert_null(json_object_get(root, "progress"));
    if (!text)
        assert_null(json_object_get(root, "state_text"));
    else if (!strstr(text_at(root, "state_text"), text))
        fail_msg("'%s' does not say '%s'", text_at(root, "state_text"), text);
    json_decref(root);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static void a_hook_sees_the_history_so_far(void **state) {
    (void)state;
    watcher self = {.stop_after = -1};
    fit_ends(&self, "ended", NULL);
    assert_int_equal(self.seen, 2);
}

static void the_state_says_how_a_fit_ended(void **state) {
    (void)state;
    fit_ends(&(watcher){.stop_after = 1}, "interrupted", "stopped on request");
    fit_ends(&(watcher){.stop_after = -1, .fails = true}, "failed", "the disk is away \xEF\xBF\xBD");
}

static void an_evaluation_has_no_history(void **state) {
    (void)state;
    leat_error err = {0};
    int calls = 0;
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(60, 20);
    leat_sequence sequence = clusters_sequence(&data);
    leat_callback callback = {.size = sizeof callback,
                              .user = &calls,
                              .on_test_batch_end = expect_no_history};
    leat_callback *callbacks[] = {&callback};
    leat_evaluate_options options = leat_evaluate_options_default();
    leat_logs logs = {0};
    options.callbacks = callbacks;
    options.callback_count = 1;
    options.verbose = 0;
    expect_ok(leat_model_evaluate_generator(model, &sequence, &options, &logs, &err), &err);
    assert_int_equal(calls, 3);
    assert_null(leat_training_history(NULL));
    leat_model_destroy(&model);
}

/* ---- Checkpoints ---- */

/* A history with all that a checkpoint keeps. */
static leat_history *rich_history(void) {
    leat_error err = {0};
    leat_history *history = NULL;
    expect_ok(leati_history_create(&history, &err), &err);
    expect_ok(leati_record_begin(&history->record, 0, leati_now_ns() - 10000000, &err), &err);
    for (int64_t epoch = 4; epoch < 30; ++epoch)
        add_epoch(history, epoch, epoch == 9 ? (double)INFINITY : 1.0 / (double)epoch,
                  epoch % 4 == 3 ? 0.1 + (double)epoch : (double)NAN);
    leat_logs odd = {0};
    leat_logs_set(&odd, "a/b,\"\xff\n", 3);
    expect_ok(leati_history_add(history, 30, 99, &odd, &err), &err);
    add_validation(history, 4, 50, "val_loss", 3);
    add_validation(history, 5, 150, "val_mae", 4);
    for (int64_t step = 0; step < 2600; ++step)
        leati_record_step(&history->record, history->record.origin_ns + step * 1000, step, 2 * step);
    history->verdict =
        (leat_verdict){.steps = 2600, .wall_ns = 5000, .data_wait_ns = 300, .compute_ns = 4000};
    history->record.feed = (leat_feed_stats){.batches = 2600,
                                             .bytes = 1 << 20,
                                             .starved = 7,
                                             .wait_ns = 300,
                                             .get_ns = 900,
                                             .worker_deaths = 4,
                                             .timeouts = 3,
                                             .retries = 2,
                                             .skips = 1};
    return history;
}

/* Opens a file with the history's state in `image`. */
static void store(const leat_history *history, leati_image *image) {
    leat_error err = {0};
    leati_snapshot snapshot = {0};
    leat_state to = {.snapshot = &snapshot, .prefix = "history/"};
    expect_ok(leati_snapshot_begin(&snapshot, &err), &err);
    expect_ok(leati_history_save(history, &to, &err), &err);
    leati_snapshot_finish(&snapshot);
    FILE *file = fopen("history.state", "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(snapshot.data, 1, snapshot.bytes, file), snapshot.bytes);
    fclose(file);
    leati_snapshot_fini(&snapshot);
    expect_ok(leati_image_open(image, "history.state", &err), &err);
}

/* Removes the members of the JSON that belong to the machine and the moment. */
static json_t *kept_of(const leat_history *history) {
    json_t *root = json_of(history);
    json_object_del(json_object_get(root, "verdict"), "text");
    return root;
}

static void a_resumed_history_continues(void **state) {
    (void)state;
    leat_error err = {0};
    for (int begun = 0; begun < 2; ++begun) { /* loaded before and after the feed is opened */
        leat_history *saved = rich_history(), *loaded = NULL;
        leati_image image = {0};
        store(saved, &image);
        leat_state from = {.image = &image, .prefix = "history/"};
        expect_ok(leati_history_create(&loaded, &err), &err);
        int64_t opened_ns = leati_now_ns();
        if (begun) expect_ok(leati_record_begin(&loaded->record, 0, opened_ns, &err), &err);
        expect_ok(leati_history_load(loaded, &from, &err), &err);
        if (!begun) expect_ok(leati_record_begin(&loaded->record, 0, opened_ns, &err), &err);
        json_t *before = kept_of(saved), *after = kept_of(loaded);
        assert_true(json_equal(before, after));
        json_decref(before);
        json_decref(after);
        assert_true(loaded->record.origin_ns < opened_ns);
        assert_int_equal(loaded->record.origin_ns, opened_ns - loaded->record.earlier.elapsed_ns);
        assert_int_equal(loaded->record.earlier.steps, 2600);
        assert_int_equal(loaded->record.earlier.skips, 1);
        /* A later step has a later time than all points before. */
        int last = loaded->record.point_count - 1;
        loaded->record.points[last].steps = loaded->record.steps_per_point;
        leati_record_step(&loaded->record, opened_ns + 5, 1, 1);
        assert_true(loaded->record.points[last + 1].start_ns > loaded->record.points[last].start_ns);
        add_epoch(loaded, 31, 1, 2);
        int count = 0;
        const int64_t *epochs = leat_history_epochs(loaded, "val_loss", &count);
        assert_int_equal(epochs[count - 1], 31);
        leati_image_close(&image);
        leat_history_destroy(&saved);
        leat_history_destroy(&loaded);
    }
    unlink("history.state");
}

static void an_empty_history_is_resumed(void **state) {
    (void)state;
    leat_error err = {0};
    leat_history *saved = NULL, *loaded = NULL;
    leati_image image = {0};
    expect_ok(leati_history_create(&saved, &err), &err);
    expect_ok(leati_history_create(&loaded, &err), &err);
    store(saved, &image);
    leat_state from = {.image = &image, .prefix = "history/"};
    expect_ok(leati_history_load(loaded, &from, &err), &err);
    json_t *before = json_of(saved), *after = json_of(loaded);
    assert_true(json_equal(before, after));
    json_decref(before);
    json_decref(after);
    leati_image_close(&image);
    leat_history_destroy(&saved);
    leat_history_destroy(&loaded);
    unlink("history.state");
}

/* Loads a history from a state in which the value `name` is replaced by these bytes (NULL: is missing). */
static void load_fails(const char *name, const void *data, size_t bytes, leat_status expected) {
    static const char *const names[] = {"epochs", "series.0",        "validations", "validation_series.0",
                                        "sums",   "steps_per_point", "points"};
    leat_error err = {0};
    leat_history *saved = rich_history(), *loaded = NULL;
    leati_image image = {0};
    store(saved, &image);
    leati_snapshot snapshot = {0};
    leat_state from = {.image = &image, .prefix = "history/"},
               to = {.snapshot = &snapshot, .prefix = "history/"};
    expect_ok(leati_snapshot_begin(&snapshot, &err), &err);
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        size_t found = 0;
        const void *value = leat_state_find(&from, names[i], &found);
        assert_non_null(value);
        if (strcmp(names[i], name) == 0 && !data) continue;
        if (strcmp(names[i], name) == 0) {
            value = data;
            found = bytes;
        }
        expect_ok(leat_state_put(&to, names[i], value, found, &err), &err);
    }
    leati_snapshot_finish(&snapshot);
    FILE *file = fopen("damaged.state", "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(snapshot.data, 1, snapshot.bytes, file), snapshot.bytes);
    fclose(file);
    leati_snapshot_fini(&snapshot);
    leati_image_close(&image);
    expect_ok(leati_image_open(&image, "damaged.state", &err), &err);
    expect_ok(leati_history_create(&loaded, &err), &err);
    leat_status status = leati_history_load(loaded, &from, &err);
    if (status != expected) fail_msg("'%s': status %d: %s", name, (int)status, err.message);
    leati_image_close(&image);
    leat_history_destroy(&saved);
    leat_history_destroy(&loaded);
    unlink("history.state");
    unlink("damaged.state");
}

static void a_damaged_history_is_refused(void **state) {
    (void)state;
    char zeros[8 * 2000] = {0}, name[LEAT_LOG_NAME_BYTES + 16];
    int64_t zero = 0;
    memset(name, 'x', sizeof name);
    load_fails("epochs", NULL, 0, LEAT_ENOTFOUND);
    load_fails("validations", NULL, 0, LEAT_ENOTFOUND);
    load_fails("sums", NULL, 0, LEAT_ENOTFOUND);
    load_fails("epochs", zeros, 15, LEAT_EFORMAT);
    load_fails("epochs", zeros, 3, LEAT_EFORMAT);
    load_fails("series.0", zeros, 127, LEAT_EFORMAT);
    load_fails("series.0", name, sizeof name, LEAT_EFORMAT); /* a name without its final zero byte */
    load_fails("validations", zeros, 8, LEAT_EFORMAT);       /* results of validations that do not exist */
    load_fails("points", zeros, 33, LEAT_EFORMAT);
    load_fails("points", zeros, 64, LEAT_EFORMAT); /* points without steps */
    load_fails("steps_per_point", &zero, sizeof zero, LEAT_EFORMAT);
    load_fails("sums", zeros, 16, LEAT_EFORMAT);
}

typedef struct stopper {
    int64_t epoch, step; /* where the fit is stopped; epoch -1: nowhere */
    int64_t now;         /* the current epoch */
} stopper;

static leat_status note_epoch(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                              leat_error *err) {
    (void)training, (void)logs, (void)err;
    ((stopper *)user)->now = epoch;
    return LEAT_OK;
}

static leat_status stop_there(void *user, leat_training *training, int64_t step, leat_logs *logs,
                              leat_error *err) {
    stopper *self = user;
    (void)logs, (void)err;
    if (self->now == self->epoch && step == self->step)
        leat_model_stop_training(leat_training_model(training));
    return LEAT_OK;
}

/* Fits 6 epochs with 3 steps each, with validations inside some of them; returns the history's JSON. */
static json_t *fit_in_folder(const char *folder, bool resume, int64_t stop_epoch, int64_t stop_step) {
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(60, 20), held_out = clusters_of(40, 20);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    stopper self = {.epoch = stop_epoch, .step = stop_step};
    leat_callback callback = {.size = sizeof callback,
                              .user = &self,
                              .on_epoch_begin = note_epoch,
                              .on_train_batch_end = stop_there};
    leat_callback *callbacks[] = {&callback};
    leat_fit_options options = quiet_fit_with(6, callbacks, 1);
    leat_checkpoint_options checkpoints = leat_checkpoint_options_default();
    checkpoints.folder = folder;
    checkpoints.resume = resume;
    options.checkpoints = &checkpoints;
    options.validation = &validation;
    options.validation_freq = 4;
    options.validation_every = 4;
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    json_t *root = json_of(history);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
    return root;
}

/* A fit that was stopped in epochs 2 and 5 has the history of one that was not, except for times. */
static void a_resumed_fit_has_the_whole_history(void **state) {
    (void)state;
    static const char *const same[] = {"state", "epoch", "steps", "history", "epochs_of", "validations"};
    assert_int_equal(system("rm -rf whole parts"), 0);
    json_t *whole = fit_in_folder("whole", false, -1, 0);
    json_t *first = fit_in_folder("parts", false, 1, 1);
    assert_string_equal(text_at(first, "state"), "interrupted");
    assert_int_equal(integer_at(json_object_get(first, "verdict"), "steps"), 5);
    json_t *second = fit_in_folder("parts", true, 4, 0), *last = fit_in_folder("parts", true, -1, 0);
    for (size_t i = 0; i < sizeof same / sizeof *same; ++i)
        if (!json_equal(json_object_get(whole, same[i]), json_object_get(last, same[i])))
            fail_msg("'%s' is not that of a fit without an interruption", same[i]);
    expect_integers(json_object_get(json_object_get(last, "validations"), "step"), 3,
                    (const int64_t[]){4, 8, 16});
    json_t *before = json_object_get(whole, "configuration"), *after = json_object_get(last, "configuration");
    assert_true(json_equal(json_object_get(before, "training"), json_object_get(after, "training")));
    assert_true(json_equal(json_object_get(before, "model"), json_object_get(after, "model")));
    assert_int_equal(integer_at(json_object_get(last, "verdict"), "steps"), 18);
    assert_int_equal(integer_at(json_object_get(last, "feed"), "batches"), 18);
    assert_int_equal(json_array_size(json_object_get(json_object_get(last, "timeline"), "t_s")), 18);
    json_decref(whole);
    json_decref(first);
    json_decref(second);
    json_decref(last);
    assert_int_equal(system("rm -rf whole parts"), 0);
}

static void counters_of_earlier_fits_are_added(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(60, 20);
    leat_sequence sequence = clusters_sequence(&data);
    leat_feed *feed = NULL;
    const leat_batch *batch = NULL;
    leati_record *record = calloc(1, sizeof *record);
    assert_non_null(record);
    expect_ok(leat_feed_open(&feed, &sequence, NULL, &err), &err);
    expect_ok(leati_record_begin(record, 1, leati_now_ns(), &err), &err);
    leati_record_sums earlier = {
        .elapsed_ns = 1000000000, .batches = 10, .bytes = 5, .starved = 4, .skips = 2};
    leati_record_continue(record, &earlier);
    assert_int_equal(record->feed.batches, 10);
    expect_ok(leat_feed_get(feed, &batch, &err), &err);
    leati_record_batch(record, feed);
    leati_record_end(record, feed);
    leati_record_end(record, feed); /* does not add them twice */
    leat_feed_stats now = leat_feed_stats_get(feed);
    assert_int_equal(record->feed.batches, 10 + now.batches);
    assert_int_equal(record->feed.bytes, 5 + now.bytes);
    assert_int_equal(record->feed.skips, 2);
    assert_true(record->spans[0].start_ns >= earlier.elapsed_ns);
    assert_true(record->depth_count > 0 && record->depths[0].time_ns >= earlier.elapsed_ns);
    leat_feed_close(&feed);
    leati_record_fini(record);
    free(record);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_know_their_epochs),
        cmocka_unit_test(a_fit_stores_the_epochs_of_its_validations),
        cmocka_unit_test(validations_are_written_by_step),
        cmocka_unit_test(the_configuration_says_how_the_run_was_made),
        cmocka_unit_test(a_hook_sees_the_history_so_far),
        cmocka_unit_test(the_state_says_how_a_fit_ended),
        cmocka_unit_test(an_evaluation_has_no_history),
        cmocka_unit_test(a_resumed_history_continues),
        cmocka_unit_test(an_empty_history_is_resumed),
        cmocka_unit_test(a_damaged_history_is_refused),
        cmocka_unit_test(a_resumed_fit_has_the_whole_history),
        cmocka_unit_test(counters_of_earlier_fits_are_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
