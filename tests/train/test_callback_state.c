/* SPDX-License-Identifier: Apache-2.0 */
/* The states of callbacks in checkpoints: a callback that loads a state does what the callback that saved it does
 * next. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/state.h"
#include "train/hooks/training.h"
#include "train/support.h"

/* A run whose epochs end when the test says so, with one callback. */
typedef struct run {
    leat_training training;
    leat_callback callback;
} run;

static void call(run *r, leat_hook hook, int64_t index, leat_logs *logs) {
    leat_error err = {0};
    if (hook) expect_ok(hook(r->callback.user, &r->training, index, logs, &err), &err);
}

static void begin(run *r, leat_model *model, const char *text, bool resumed) {
    static const char *const metrics[] = {"loss", "val_loss"};
    leat_error err = {0};
    leat_logs logs = {0};
    *r = (run){.training = {.model = model,
                            .params = {.size = sizeof(leat_training_params),
                                       .metrics = metrics,
                                       .metric_count = 2,
                                       .resumed = resumed}}};
    expect_ok(leat_callback_from_text(&r->callback, sizeof r->callback, text, &err), &err);
    call(r, r->callback.on_train_begin, 0, &logs);
}

static void end_epoch(run *r, int64_t epoch, double value) {
    leat_logs logs = {0};
    leat_logs_set(&logs, "loss", 1);
    leat_logs_set(&logs, "val_loss", value);
    call(r, r->callback.on_epoch_end, epoch, &logs);
}

/* Saves the state of a callback to a file. */
static void save_to(run *from, const char *path) {
    leat_error err = {0};
    leati_snapshot snapshot = {0};
    leat_state state = {.snapshot = &snapshot, .prefix = "callback.0/"};
    expect_ok(leati_snapshot_begin(&snapshot, &err), &err);
    expect_ok(from->callback.save_state(from->callback.user, &from->training, &state, &err), &err);
    leati_snapshot_finish(&snapshot);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(snapshot.data, 1, snapshot.bytes, file), snapshot.bytes);
    assert_int_equal(fclose(file), 0);
    leati_snapshot_fini(&snapshot);
}

static leat_status load_from(run *to, const char *path, leat_error *err) {
    leati_image image = {0};
    expect_ok(leati_image_open(&image, path, err), err);
    leat_state state = {.image = &image, .prefix = "callback.0/"};
    leat_status status = to->callback.load_state(to->callback.user, &to->training, &state, err);
    leati_image_close(&image);
    return status;
}

static char state_path[64];

/* Moves the state of `from` to a new callback. */
static void resume(run *to, run *from, leat_model *model, const char *text) {
    leat_error err = {0};
    save_to(from, state_path);
    begin(to, model, text, true);
    expect_ok(load_from(to, state_path, &err), &err);
}

static int make_path(void **state) {
    (void)state;
    snprintf(state_path, sizeof state_path, "/tmp/leat-state-XXXXXX");
    int fd = mkstemp(state_path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state) {
    (void)state;
    return unlink(state_path);
}

static void early_stopping_keeps_its_patience_and_weights(void **state) {
    (void)state;
    leat_model *model = make_classifier(1);
    float *weight = leat_model_weight(model, 0).data;
    const char text[] = "EarlyStopping(patience=3, restore_best_weights=True)";
    run first, second, fresh;
    begin(&first, model, text, false);
    *weight = 5;
    end_epoch(&first, 0, 0.5);
    *weight = 6;
    end_epoch(&first, 1, 0.7);
    end_epoch(&first, 2, 0.7);
    assert_false(first.training.stop);
    resume(&second, &first, model, text);
    begin(&fresh, model, text, true);
    end_epoch(&second, 3, 0.6); /* worse than 0.5, so that this is the third epoch of waiting */
    assert_true(second.training.stop);
    assert_true(*weight == 5);
    *weight = 6;
    end_epoch(&first, 3, 0.6);
    assert_true(first.training.stop && *weight == 5);
    assert_string_equal(first.training.stop_reason, second.training.stop_reason);
    end_epoch(&fresh, 3, 0.6); /* without a state it would not stop */
    assert_false(fresh.training.stop);
    leat_callback_destroy(&first.callback);
    leat_callback_destroy(&second.callback);
    leat_callback_destroy(&fresh.callback);
    leat_model_destroy(&model);
}

static void early_stopping_refuses_weights_of_another_model(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1), *other = make_line(0.1);
    const char text[] = "EarlyStopping(restore_best_weights=True)";
    run first, second;
    begin(&first, model, text, false);
    end_epoch(&first, 0, 0.5);
    save_to(&first, state_path);
    begin(&second, other, text, true);
    assert_int_equal(load_from(&second, state_path, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "EarlyStopping: the best weights have"));
    leat_callback_destroy(&first.callback);
    leat_callback_destroy(&second.callback);
    leat_model_destroy(&model);
    leat_model_destroy(&other);
}

static void reduce_lr_keeps_its_counters(void **state) {
    (void)state;
    const double values[] = {1, 1, 1, 1, 1, 0.5, 1, 1, 1, 1, 1, 1};
    const char text[] = "ReduceLROnPlateau(patience=2, cooldown=2, factor=0.5)";
    for (int at = 1; at < 11; ++at) {
        leat_model *model = make_classifier(1), *again = make_classifier(1);
        run first, second;
        begin(&first, model, text, false);
        for (int i = 0; i < at; ++i) end_epoch(&first, i, values[i]);
        resume(&second, &first, again, text);
        leat_model_set_learning_rate(again, leat_model_learning_rate(model)); /* the fit restores the rate */
        for (int i = at; i < 12; ++i) {
            end_epoch(&first, i, values[i]);
            end_epoch(&second, i, values[i]);
            if (leat_model_learning_rate(again) != leat_model_learning_rate(model))
                fail_msg("saved after %d epochs: another rate after epoch %d", at, i);
        }
        assert_true(leat_model_learning_rate(model) < 0.005);
        leat_callback_destroy(&first.callback);
        leat_callback_destroy(&second.callback);
        leat_model_destroy(&model);
        leat_model_destroy(&again);
    }
}

static void model_checkpoint_keeps_the_best_value(void **state) {
    (void)state;
    leat_model *model = make_classifier(1);
    char folder[] = "/tmp/leat-best-XXXXXX", best[64], text[128];
    assert_non_null(mkdtemp(folder));
    snprintf(best, sizeof best, "%s/best.h5", folder);
    snprintf(text, sizeof text, "ModelCheckpoint(filepath='%s', save_best_only=True, period=2)", best);
    run first, second;
    begin(&first, model, text, false);
    end_epoch(&first, 0, 0.1); /* not looked at */
    end_epoch(&first, 1, 0.5);
    assert_int_equal(unlink(best), 0);
    end_epoch(&first, 2, 0.1);
    resume(&second, &first, model, text);
    end_epoch(&second, 3, 0.6);
    assert_int_not_equal(access(best, F_OK), 0); /* 0.6 is worse than 0.5 */
    end_epoch(&second, 4, 0.1);
    end_epoch(&second, 5, 0.4);
    assert_int_equal(unlink(best), 0);
    leat_callback_destroy(&first.callback);
    leat_callback_destroy(&second.callback);
    leat_model_destroy(&model);
    assert_int_equal(rmdir(folder), 0);
}

static void expect_file(const char *path, const char *expected) {
    char text[512];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, expected);
}

static void csv_logger_continues_its_file(void **state) {
    (void)state;
    leat_model *model = make_classifier(1);
    char path[] = "/tmp/leat-log-XXXXXX", text[128];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(text, sizeof text, "CSVLogger(filename='%s')", path);
    run first, second;
    for (int at = 0; at < 3; ++at) {
        begin(&first, model, text, false);
        for (int i = 0; i < at; ++i) end_epoch(&first, i, i);
        save_to(&first, state_path);
        for (int i = at; i < 3; ++i) end_epoch(&first, i, 100 + i); /* rows after the checkpoint */
        begin(&second, model, text, true);
        leat_error err = {0};
        expect_ok(load_from(&second, state_path, &err), &err);
        for (int i = at; i < 3; ++i) end_epoch(&second, i, i);
        expect_file(path, "epoch,loss,val_loss\r\n0,1,0\r\n1,1,1\r\n2,1,2\r\n");
        leat_callback_destroy(&first.callback);
        leat_callback_destroy(&second.callback);
    }
    begin(&first, model, text, false);
    end_epoch(&first, 0, 0);
    save_to(&first, state_path);
    unlink(path);
    begin(&second, model, text, true);
    leat_error err = {0};
    assert_int_not_equal(load_from(&second, state_path, &err), LEAT_OK); /* the rows are lost */
    assert_non_null(strstr(err.message, path));
    leat_callback_destroy(&first.callback);
    leat_callback_destroy(&second.callback);
    leat_model_destroy(&model);
    unlink(path);
}

/* A file that was continued has columns of its own, which are in the state, too. */
static void csv_logger_keeps_the_columns_of_a_continued_file(void **state) {
    (void)state;
    leat_model *model = make_classifier(1);
    char path[] = "/tmp/leat-log-XXXXXX", text[128];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "epoch,val_loss,x,loss\n0,1,2,3", 29), 29);
    close(fd);
    snprintf(text, sizeof text, "CSVLogger(filename='%s', append=True)", path);
    for (int at = 1; at < 3; ++at) {
        run first, second;
        begin(&first, model, text, false);
        if (at > 1) end_epoch(&first, 1, 7);
        resume(&second, &first, model, text);
        if (at == 1) end_epoch(&second, 1, 7);
        end_epoch(&second, 2, 8);
        expect_file(path, at == 1 ? "epoch,val_loss,x,loss\n0,1,2,3\r\n1,7,NA,1\r\n2,8,NA,1\r\n"
                                  : "epoch,val_loss,x,loss\n0,1,2,3\r\n1,7,NA,1\r\n2,8,NA,1\r\n1,7,NA,1\r\n"
                                    "2,8,NA,1\r\n");
        leat_callback_destroy(&first.callback);
        leat_callback_destroy(&second.callback);
    }
    leat_model_destroy(&model);
    unlink(path);
}

static void a_state_without_values_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"EarlyStopping", "ReduceLROnPlateau", "ModelCheckpoint(filepath=x)",
                                        "CSVLogger(filename='/tmp/leat-none.csv')"};
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    leati_snapshot snapshot = {0};
    expect_ok(leati_snapshot_begin(&snapshot, &err), &err);
    leati_snapshot_finish(&snapshot);
    FILE *file = fopen(state_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(snapshot.data, 1, snapshot.bytes, file), snapshot.bytes);
    assert_int_equal(fclose(file), 0);
    leati_snapshot_fini(&snapshot);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
        run r;
        begin(&r, model, texts[i], true);
        assert_int_equal(load_from(&r, state_path, &err), LEAT_ENOTFOUND);
        leat_callback_destroy(&r.callback);
    }
    unlink("/tmp/leat-none.csv");
    leat_model_destroy(&model);
}

/* ---- Whole fits ---- */

enum { CALLBACKS = 6 };

/* Stops the fit after a number of steps, like a signal. */
static leat_status count_down(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                              leat_error *err) {
    (void)batch, (void)logs, (void)err;
    if (--*(int *)user == 0) leat_model_stop_training(leat_training_model(training));
    return LEAT_OK;
}

/* Trains for at most 8 epochs with all built-in callbacks that have a state, whose files are in `folder`.  The fit is
 * suspended after `steps` steps.  Returns a hash of the weights. */
static uint64_t fit_part(const char *folder, int steps) {
    char texts[CALLBACKS][256], checkpoints[128];
    leat_error err = {0};
    leat_model *model = make_dropout_classifier(1);
    clusters data = clusters_of(40, 8), held_out = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_callback callbacks[CALLBACKS + 1] = {
        {.size = sizeof(leat_callback), .user = &steps, .on_train_batch_end = count_down}};
    leat_callback *list[CALLBACKS + 1] = {&callbacks[0]};
    snprintf(texts[0], sizeof texts[0],
             "ReduceLROnPlateau(monitor=loss, min_delta=0.01, patience=1, cooldown=1)");
    snprintf(texts[1], sizeof texts[1], "CSVLogger(filename='%s/log.csv')", folder);
    snprintf(texts[2], sizeof texts[2], "ModelCheckpoint(filepath='%s/{epoch}.h5', period=2)", folder);
    snprintf(texts[3], sizeof texts[3], "ModelCheckpoint(filepath='%s/best.h5', save_best_only=True)",
             folder);
    snprintf(texts[4], sizeof texts[4],
             "EarlyStopping(monitor=loss, min_delta=10, patience=6, restore_best_weights=True)");
    snprintf(texts[5], sizeof texts[5], "TerminateOnNaN");
    for (int i = 0; i < CALLBACKS; ++i) {
        list[i + 1] = &callbacks[i + 1];
        expect_ok(leat_callback_from_text(list[i + 1], sizeof callbacks[0], texts[i], &err), &err);
    }
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", folder);
    leat_checkpoint_options saving = leat_checkpoint_options_default();
    saving.folder = checkpoints;
    saving.resume = true;
    leat_fit_options options = quiet_fit_with(8, list, CALLBACKS + 1);
    options.validation = &validation;
    options.checkpoints = &saving;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    uint64_t hash = weights_hash(model);
    for (int i = 0; i <= CALLBACKS; ++i) leat_callback_destroy(&callbacks[i]);
    leat_model_destroy(&model);
    return hash;
}

static size_t read_file(const char *folder, const char *name, char *text, size_t size) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is missing", path);
    size_t bytes = fread(text, 1, size, file);
    fclose(file);
    return bytes;
}

/* A fit of 5 steps an epoch that is suspended after any step ends with the bytes of the fit that was not. */
static void a_resumed_fit_ends_with_the_same_files(void **state) {
    (void)state;
    static char whole[1 << 16], resumed[1 << 16];
    static const char *const files[] = {"log.csv", "best.h5", "2.h5", "4.h5", "6.h5"};
    char first[] = "/tmp/leat-whole-XXXXXX", second[] = "/tmp/leat-parts-XXXXXX", command[128];
    assert_non_null(mkdtemp(first));
    uint64_t hash = fit_part(first, -1);
    assert_true(read_file(first, "log.csv", whole, sizeof whole) > 100);
    for (int steps = 1; steps < 30; steps += 4) {
        memcpy(second, "/tmp/leat-parts-XXXXXX", sizeof second);
        assert_non_null(mkdtemp(second));
        (void)fit_part(second, steps);
        (void)fit_part(second, 3);
        assert_true(fit_part(second, -1) == hash);
        for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
            size_t bytes = read_file(first, files[i], whole, sizeof whole);
            assert_int_equal(read_file(second, files[i], resumed, sizeof resumed), bytes);
            if (memcmp(whole, resumed, bytes) != 0) fail_msg("after %d steps: %s differs", steps, files[i]);
        }
        snprintf(command, sizeof command, "rm -r %s", second);
        assert_int_equal(system(command), 0);
    }
    snprintf(command, sizeof command, "rm -r %s", first);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(early_stopping_keeps_its_patience_and_weights),
        cmocka_unit_test(early_stopping_refuses_weights_of_another_model),
        cmocka_unit_test(reduce_lr_keeps_its_counters),
        cmocka_unit_test(model_checkpoint_keeps_the_best_value),
        cmocka_unit_test(csv_logger_continues_its_file),
        cmocka_unit_test(csv_logger_keeps_the_columns_of_a_continued_file),
        cmocka_unit_test(a_state_without_values_is_refused),
        cmocka_unit_test(a_resumed_fit_ends_with_the_same_files),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
