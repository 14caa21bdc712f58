/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks: how often each hook is called, what the ready-made ones do, how training is stopped. */
#include "cmocka_all.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/support.h"

/* ---- counting hooks ---- */

typedef struct counts {
#define COUNT_MEMBER(name) int name;
    LEAT_HOOK_LIST(COUNT_MEMBER)
#undef COUNT_MEMBER
} counts;

#define COUNT_FUNCTION(name)                                                                                 \
    static leat_status count_##name(void *user, leat_training *training, int64_t index, leat_logs *logs,     \
                                    leat_error *err) {                                                       \
        (void)training, (void)index, (void)logs, (void)err;                                                  \
        ++((counts *)user)->name;                                                                            \
        return LEAT_OK;                                                                                      \
    }
LEAT_HOOK_LIST(COUNT_FUNCTION)

static leat_callback counting(counts *all) {
    *all = (counts){0};
    return (leat_callback){.size = sizeof(leat_callback),
                           .user = all,
#define COUNT_HOOK(name) .name = count_##name,
                           LEAT_HOOK_LIST(COUNT_HOOK)};
}

static void hooks_are_called_as_often_as_in_keras(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8), held_out = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    counts all;
    leat_callback callback = counting(&all);
    leat_callback *callbacks[] = {&callback};
    leat_fit_options options = quiet_fit_with(5, callbacks, 1);
    options.validation = &validation;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    assert_int_equal(all.on_train_begin, 1);
    assert_int_equal(all.on_train_end, 1);
    assert_int_equal(all.on_epoch_begin, 5);
    assert_int_equal(all.on_epoch_end, 5);
    assert_int_equal(all.on_train_batch_begin, 25);
    assert_int_equal(all.on_train_batch_end, 25);
    assert_int_equal(all.on_test_begin, 5);
    assert_int_equal(all.on_test_end, 5);
    assert_int_equal(all.on_test_batch_begin, 10);
    assert_int_equal(all.on_test_batch_end, 10);
    assert_int_equal(all.on_predict_begin, 0);
    leat_evaluate_options evaluate = leat_evaluate_options_default();
    evaluate.callbacks = callbacks;
    evaluate.callback_count = 1;
    leat_predictions *predictions = NULL;
    expect_ok(leat_model_predict_generator(model, &validation, &evaluate, &predictions, &err), &err);
    assert_int_equal(all.on_predict_begin, 1);
    assert_int_equal(all.on_predict_batch_end, 2);
    assert_int_equal(all.on_predict_end, 1);
    leat_predictions_destroy(&predictions);
    leat_model_destroy(&model);
}

/* ---- prescribed values: a callback overwrites val_loss at the end of each epoch ---- */

typedef struct script {
    const double *values;
    const char *name;
    float *weight; /* set to the epoch's number, so that the test recognizes a restored weight */
} script;

static leat_status play(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                        leat_error *err) {
    (void)training, (void)err;
    const script *self = user;
    leat_logs_set(logs, self->name, self->values[epoch]);
    if (self->weight) *self->weight = (float)epoch;
    return LEAT_OK;
}

typedef struct rig {
    leat_model *model;
    clusters data;
    leat_sequence sequence;
    script script;
    leat_callback player;
} rig;

static void rig_init(rig *r, const char *name, const double *values) {
    r->model = make_classifier(1);
    r->data = clusters_of(16, 8);
    r->sequence = clusters_sequence(&r->data);
    r->script = (script){values, name, leat_model_weight(r->model, 0).data};
    r->player = (leat_callback){.size = sizeof(leat_callback), .user = &r->script, .on_epoch_end = play};
}

static int epochs_run(rig *r, leat_callback *tested, int64_t epochs) {
    leat_error err = {0};
    leat_callback *callbacks[] = {&r->player, tested};
    leat_fit_options options = quiet_fit_with(epochs, callbacks, 2);
    leat_history *history = NULL;
    int count = 0;
    expect_ok(leat_model_fit_generator(r->model, &r->sequence, &options, &history, &err), &err);
    leat_history_values(history, "loss", &count);
    leat_history_destroy(&history);
    return count;
}

static void early_stopping_waits_and_restores(void **state) {
    (void)state;
    leat_error err = {0};
    rig r;
    rig_init(&r, "watched", (double[]){3, 1, 2, 2, 2, 2, 2, 2});
    leat_early_stopping_options options = leat_early_stopping_options_default();
    leat_callback tested;
    options.monitor = "watched";
    options.patience = 2;
    expect_ok(leat_early_stopping_create(&tested, sizeof tested, &options, &err), &err);
    assert_int_equal(epochs_run(&r, &tested, 8), 4);
    assert_true(*r.script.weight == 3);
    assert_int_equal(epochs_run(&r, &tested, 8), 4); /* a callback can be used again */
    leat_callback_destroy(&tested);
    options.restore_best_weights = true;
    expect_ok(leat_early_stopping_create(&tested, sizeof tested, &options, &err), &err);
    assert_int_equal(epochs_run(&r, &tested, 8), 4);
    assert_true(*r.script.weight == 1);
    leat_callback_destroy(&tested);
    options.baseline = 0.5; /* never reached, so there are no weights to restore */
    expect_ok(leat_early_stopping_create(&tested, sizeof tested, &options, &err), &err);
    assert_int_equal(epochs_run(&r, &tested, 8), 2);
    assert_true(*r.script.weight == 1);
    leat_callback_destroy(&tested);
    leat_model_destroy(&r.model);
}

static void reduce_lr_on_plateau_divides(void **state) {
    (void)state;
    leat_error err = {0};
    rig r;
    rig_init(&r, "watched", (double[]){1, 1, 1, 1, 1, 1, 1, 1});
    leat_model_set_learning_rate(r.model, 0.1);
    leat_reduce_lr_options options = leat_reduce_lr_options_default();
    leat_callback tested;
    options.monitor = "watched";
    options.patience = 2;
    options.min_lr = 0.002;
    expect_ok(leat_reduce_lr_on_plateau_create(&tested, sizeof tested, &options, &err), &err);
    epochs_run(&r, &tested, 3);
    assert_true(fabs(leat_model_learning_rate(r.model) - 0.01) < 1e-9);
    leat_model_set_learning_rate(r.model, 0.1);
    epochs_run(&r, &tested, 8);
    assert_true(fabs(leat_model_learning_rate(r.model) - 0.002) < 1e-9);
    leat_callback_destroy(&tested);
    options.factor = 1;
    assert_int_equal(leat_reduce_lr_on_plateau_create(&tested, sizeof tested, &options, &err), LEAT_EINVAL);
    leat_model_destroy(&r.model);
}

static double one_over_epoch(void *user, int64_t epoch, double learning_rate) {
    (void)user, (void)learning_rate;
    return 1.0 / (1.0 + (double)epoch);
}

static void scheduler_sets_the_rate_and_logs_it(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_line(0.5);
    float x[] = {1}, y[] = {1};
    leat_array inputs = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){1}, x)};
    leat_array targets = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){1}, y)};
    leat_arrays arrays = {&inputs, &targets, NULL, 1, 1, 0};
    leat_callback tested;
    expect_ok(leat_learning_rate_scheduler_create(&tested, sizeof tested, one_over_epoch, NULL, 0, &err),
              &err);
    leat_fit_options options = quiet_fit_with(5, (leat_callback *[]){&tested}, 1);
    leat_history *history = NULL;
    expect_ok(leat_model_fit(model, &arrays, 1, &options, &history, &err), &err);
    int count = 0;
    const double *rates = leat_history_values(history, "lr", &count);
    assert_int_equal(count, 5);
    assert_true(fabs(rates[4] - 0.2) < 1e-7);
    assert_true(fabs(leat_model_learning_rate(model) - 0.2) < 1e-7);
    leat_history_destroy(&history);
    leat_callback_destroy(&tested);
    leat_model_destroy(&model);
}

/* ---- files ---- */

static char *read_text(const char *path) {
    static char text[4096];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void csv_has_columns_for_validation_from_the_start(void **state) {
    (void)state;
    leat_error err = {0};
    char path[] = "/tmp/leat-csv-XXXXXX";
    close(mkstemp(path));
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(16, 8), held_out = clusters_of(8, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_callback tested;
    expect_ok(leat_csv_logger_create(&tested, sizeof tested, path, NULL, false, &err), &err);
    leat_fit_options options = quiet_fit_with(2, (leat_callback *[]){&tested}, 1);
    options.validation = &validation;
    options.validation_freq = 2;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    char *text = read_text(path);
    assert_ptr_equal(strstr(text, "epoch,accuracy,loss,val_accuracy,val_loss\r\n0,"), text);
    assert_non_null(strstr(text, ",NA,NA\r\n1,"));
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    text = read_text(path);
    assert_null(strstr(text + 1, "epoch")); /* one header */
    leat_callback_destroy(&tested);
    expect_ok(leat_csv_logger_create(&tested, sizeof tested, "/no/such/folder/log.csv", NULL, false, &err),
              &err);
    options.callbacks = (leat_callback *[]){&tested};
    assert_int_equal(leat_model_fit_generator(model, &sequence, &options, NULL, &err), LEAT_EIO);
    leat_callback_destroy(&tested);
    unlink(path);
    leat_model_destroy(&model);
}

/* Compiles a locale with a decimal comma in `folder`.  Returns false if the system lacks the sources of locales. */
static bool use_comma(const char *folder) {
    char command[256];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/words 2>&1", folder,
             folder);
    (void)!system(command);
    setenv("LOCPATH", folder, 1);
    bool used = setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;
    unsetenv("LOCPATH");
    return used;
}

static void remove_tree(const char *folder) {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void files_have_points_in_every_locale(void **state) {
    (void)state;
    leat_error err = {0};
    char folder[] = "/tmp/leat-locale-XXXXXX", path[64], pattern[64];
    assert_non_null(mkdtemp(folder));
    if (!use_comma(folder)) {
        remove_tree(folder);
        LEAT_SKIP("no localedef, or no sources of the locale de_DE");
    }
    snprintf(path, sizeof path, "%s/log.csv", folder);
    snprintf(pattern, sizeof pattern, "%s/{loss:.1f}.h5", folder);
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_callback log, checkpoint;
    leat_model_checkpoint_options named = leat_model_checkpoint_options_default();
    named.filepath = pattern;
    named.monitor = "loss";
    expect_ok(leat_csv_logger_create(&log, sizeof log, path, NULL, false, &err), &err);
    expect_ok(leat_model_checkpoint_create(&checkpoint, sizeof checkpoint, &named, &err), &err);
    leat_fit_options options = quiet_fit_with(1, (leat_callback *[]){&log, &checkpoint}, 2);
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    setlocale(LC_NUMERIC, "C");
    const char *line = strstr(read_text(path), "\r\n0,");
    assert_non_null(line);
    double accuracy = -1, loss = -1;
    assert_int_equal(sscanf(line + 4, "%lf,%lf\r\n", &accuracy, &loss), 2);
    snprintf(path, sizeof path, "%s/%.1f.h5", folder, loss);
    assert_int_equal(access(path, R_OK), 0);
    leat_callback_destroy(&log);
    leat_callback_destroy(&checkpoint);
    leat_model_destroy(&model);
    remove_tree(folder);
}

static void checkpoints_are_named_and_chosen(void **state) {
    (void)state;
    leat_error err = {0};
    char folder[] = "/tmp/leat-checkpoint-XXXXXX", pattern[128], path[128];
    assert_non_null(mkdtemp(folder));
    rig r;
    rig_init(&r, "watched", (double[]){3, 1, 2, 0.5});
    leat_model_checkpoint_options options = leat_model_checkpoint_options_default();
    leat_callback tested;
    snprintf(pattern, sizeof pattern, "%s/{epoch:02d}-{watched:.2f}.h5", folder);
    options.filepath = pattern;
    options.monitor = "watched";
    options.save_best_only = true;
    expect_ok(leat_model_checkpoint_create(&tested, sizeof tested, &options, &err), &err);
    epochs_run(&r, &tested, 4);
    const char *expected[] = {"01-3.00.h5", "02-1.00.h5", "04-0.50.h5"};
    for (int i = 0; i < 3; ++i) {
        snprintf(path, sizeof path, "%s/%s", folder, expected[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0); /* no other file and no unfinished file is left */
    leat_callback_destroy(&tested);
    assert_non_null(mkdtemp(strcpy(folder, "/tmp/leat-checkpoint-XXXXXX")));
    snprintf(pattern, sizeof pattern, "%s/{nothing}.h5", folder);
    expect_ok(leat_model_checkpoint_create(&tested, sizeof tested, &options, &err), &err);
    leat_fit_options fit = quiet_fit_with(1, (leat_callback *[]){&tested}, 1);
    options.save_best_only = false;
    leat_callback_destroy(&tested);
    expect_ok(leat_model_checkpoint_create(&tested, sizeof tested, &options, &err), &err);
    assert_int_equal(leat_model_fit_generator(r.model, &r.sequence, &fit, NULL, &err), LEAT_ENOTFOUND);
    leat_callback_destroy(&tested);
    rmdir(folder);
    leat_model_destroy(&r.model);
}

static void doubled_braces_are_braces(void **state) {
    (void)state;
    leat_error err = {0};
    char folder[] = "/tmp/leat-braces-XXXXXX", pattern[128], path[128];
    assert_non_null(mkdtemp(folder));
    rig r;
    rig_init(&r, "watched", (double[]){3, 1});
    leat_model_checkpoint_options options = leat_model_checkpoint_options_default();
    leat_callback tested;
    snprintf(pattern, sizeof pattern, "%s/{{x}}{{epoch:02d}}-{epoch}}}.h5", folder);
    options.filepath = pattern;
    expect_ok(leat_model_checkpoint_create(&tested, sizeof tested, &options, &err), &err);
    epochs_run(&r, &tested, 1);
    snprintf(path, sizeof path, "%s/{x}{epoch:02d}-1}.h5", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    leat_callback_destroy(&tested);
    const char *const wrong[] = {"a{b", "a}b", "{{}", "{a{b}}", "{epoch}}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        options.filepath = wrong[i];
        assert_int_equal(leat_model_checkpoint_create(&tested, sizeof tested, &options, &err), LEAT_EINVAL);
        assert_non_null(strstr(err.message, "for a brace"));
    }
    leat_model_destroy(&r.model);
}

/* ---- stopping ---- */

static leat_status ask_to_stop(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                               leat_error *err) {
    (void)user, (void)logs, (void)err;
    if (batch == 2) leat_training_stop(training, "seen enough");
    return LEAT_OK;
}

static leat_status note_reason(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    (void)index, (void)logs, (void)err;
    snprintf(user, 64, "%s", leat_training_stop_reason(training));
    return LEAT_OK;
}

static void stopping_ends_after_the_batch(void **state) {
    (void)state;
    leat_error err = {0};
    char reason[64] = "";
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(80, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_callback stopper = {.size = sizeof(leat_callback),
                             .user = reason,
                             .on_train_batch_end = ask_to_stop,
                             .on_train_end = note_reason};
    leat_fit_options options = quiet_fit_with(5, (leat_callback *[]){&stopper}, 1);
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    assert_int_equal(leat_history_verdict(history).steps, 3);
    assert_string_equal(reason, "seen enough");
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static leat_status request(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                           leat_error *err) {
    (void)user, (void)logs, (void)err;
    if (batch == 1) leat_model_stop_training(leat_training_model(training));
    return LEAT_OK;
}

static void a_request_stops_fit_and_predict(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(80, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_callback asks = {.size = sizeof(leat_callback),
                          .on_train_batch_end = request,
                          .on_predict_batch_end = request};
    leat_fit_options options = quiet_fit_with(5, (leat_callback *[]){&asks}, 1);
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    assert_int_equal(leat_history_verdict(history).steps, 2);
    leat_history_destroy(&history);
    leat_evaluate_options predict = leat_evaluate_options_default();
    predict.callbacks = options.callbacks;
    predict.callback_count = 1;
    leat_predictions *predictions = NULL;
    assert_int_equal(leat_model_predict_generator(model, &sequence, &predict, &predictions, &err),
                     LEAT_ESTOPPED);
    assert_null(predictions);
    leat_model_destroy(&model);
}

static void terminate_on_nan_ends_the_epoch(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(80, 8);
    data.nan_at = 4;
    leat_sequence sequence = clusters_sequence(&data);
    leat_callback tested;
    expect_ok(leat_terminate_on_nan_create(&tested, sizeof tested, &err), &err);
    leat_fit_options options = quiet_fit_with(3, (leat_callback *[]){&tested}, 1);
    options.shuffle = LEAT_SHUFFLE_NONE;
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    assert_int_equal(leat_history_verdict(history).steps, 5);
    leat_history_destroy(&history);
    leat_callback_destroy(&tested);
    leat_model_destroy(&model);
}

static leat_status break_down(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                              leat_error *err) {
    (void)user, (void)training, (void)logs;
    return epoch == 1 ? leat_error_set(err, LEAT_EUSER, "the disk is full of cats") : LEAT_OK;
}

static void a_failing_hook_ends_training_with_its_words(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_callback broken = {.size = sizeof(leat_callback), .on_epoch_end = break_down};
    leat_fit_options options = quiet_fit_with(5, (leat_callback *[]){&broken}, 1);
    leat_history *history = NULL;
    int count = 0;
    assert_int_equal(leat_model_fit_generator(model, &sequence, &options, &history, &err), LEAT_EUSER);
    assert_string_equal(err.message, "epoch 2: on_epoch_end 1: the disk is full of cats");
    leat_history_values(history, "loss", &count);
    assert_int_equal(count, 1);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static leat_status validate_now(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                                leat_error *err) {
    (void)logs;
    if (batch != 1) return LEAT_OK;
    leat_logs results = {0};
    leat_status status = leat_training_validate(training, &results, err);
    if (status == LEAT_OK) leat_logs_get(&results, "loss", user);
    return status;
}

static void a_callback_can_validate_in_mid_epoch(void **state) {
    (void)state;
    leat_error err = {0};
    double seen = 0;
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8), held_out = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_callback callback = {.size = sizeof(leat_callback),
                              .user = &seen,
                              .on_train_batch_end = validate_now};
    leat_fit_options options = quiet_fit_with(1, (leat_callback *[]){&callback}, 1);
    assert_int_equal(leat_model_fit_generator(model, &sequence, &options, NULL, &err), LEAT_EINVAL);
    options.validation = &validation;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    assert_true(seen > 0);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooks_are_called_as_often_as_in_keras),
        cmocka_unit_test(early_stopping_waits_and_restores),
        cmocka_unit_test(reduce_lr_on_plateau_divides),
        cmocka_unit_test(scheduler_sets_the_rate_and_logs_it),
        cmocka_unit_test(csv_has_columns_for_validation_from_the_start),
        cmocka_unit_test(files_have_points_in_every_locale),
        cmocka_unit_test(checkpoints_are_named_and_chosen),
        cmocka_unit_test(doubled_braces_are_braces),
        cmocka_unit_test(stopping_ends_after_the_batch),
        cmocka_unit_test(a_request_stops_fit_and_predict),
        cmocka_unit_test(terminate_on_nan_ends_the_epoch),
        cmocka_unit_test(a_failing_hook_ends_training_with_its_words),
        cmocka_unit_test(a_callback_can_validate_in_mid_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
