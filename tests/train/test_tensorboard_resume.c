/* SPDX-License-Identifier: Apache-2.0 */
/* A fit that continues from a checkpoint goes on in its event files. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/state.h"
#include "nn/network/network.h"
#include "train/hooks/training.h"
#include "train/support.h"
#include "train/tensorboard_case.h"

/* A fit that a test plays: it calls the hooks itself.  The values depend on the number of steps alone. */
typedef struct play {
    leat_model *model;
    struct leat_training training;
    leat_callback callback;
    int64_t steps;
} play;

enum { STEPS = 4 }; /* of an epoch */

static void open_play(play *p, bool resumed) {
    leat_error err = {0};
    leat_tensorboard_options options = leat_tensorboard_options_default();
    options.update_freq = 1;
    options.histogram_freq = 1;
    *p = (play){.model = make_classifier(1)};
    p->training.model = p->model;
    p->training.params = (leat_training_params){.size = sizeof(leat_training_params), .resumed = resumed};
    p->callback = make_tensorboard(&options);
    expect_ok(p->callback.on_train_begin(p->callback.user, &p->training, 0, NULL, &err), &err);
}

static void close_play(play *p) {
    leat_callback_destroy(&p->callback);
    leat_model_destroy(&p->model);
}

static void end_play(play *p) {
    leat_error err = {0};
    leat_logs logs = {0};
    expect_ok(p->callback.on_train_end(p->callback.user, &p->training, 0, &logs, &err), &err);
    close_play(p);
}

static leat_logs logs_of(int64_t steps) {
    leat_logs logs = {0};
    leat_logs_set(&logs, "loss", 1.0 / (double)(1 + steps));
    leat_logs_set(&logs, "accuracy", (double)steps);
    return logs;
}

/* Does the steps from p->steps up to `until`. */
static void play_until(play *p, int64_t until) {
    leat_error err = {0};
    leat_callback *c = &p->callback;
    while (p->steps < until) {
        int64_t epoch = p->steps / STEPS, step = p->steps % STEPS;
        leat_logs none = {0};
        if (step == 0) expect_ok(c->on_epoch_begin(c->user, &p->training, epoch, &none, &err), &err);
        p->model->iterations = ++p->steps;
        leat_logs logs = logs_of(p->steps);
        expect_ok(c->on_train_batch_end(c->user, &p->training, step, &logs, &err), &err);
        if (p->steps % STEPS != 0) continue;
        expect_ok(c->on_test_end(c->user, &p->training, 0, &logs, &err), &err);
        leat_logs_set(&logs, "val_loss", (double)p->steps);
        expect_ok(c->on_epoch_end(c->user, &p->training, epoch, &logs, &err), &err);
    }
}

static void save(play *p, const char *name) {
    leat_error err = {0};
    leati_snapshot snapshot = {0};
    char path[128];
    snprintf(path, sizeof path, "%s/%s", log_folder, name);
    expect_ok(leati_snapshot_begin(&snapshot, &err), &err);
    leat_state state = {.snapshot = &snapshot, .prefix = "callback.0/"};
    if (p) expect_ok(p->callback.save_state(p->callback.user, &p->training, &state, &err), &err);
    leati_snapshot_finish(&snapshot);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(snapshot.data, 1, snapshot.bytes, file), snapshot.bytes);
    fclose(file);
    leati_snapshot_fini(&snapshot);
}

static leat_status load(play *p, const char *name, int64_t steps, leat_error *err) {
    leati_image image = {0};
    char path[128];
    snprintf(path, sizeof path, "%s/%s", log_folder, name);
    expect_ok(leati_image_open(&image, path, err), err);
    leat_state state = {.image = &image, .prefix = "callback.0/"};
    p->model->iterations = p->steps = steps;
    leat_status status = p->callback.load_state(p->callback.user, &p->training, &state, err);
    leati_image_close(&image);
    return status;
}

static void expect_same_files(const char *run) {
    event_list *whole = read_run(run, 0), *resumed = read_run(run, 1);
    clear_wall_times(whole->file);
    clear_wall_times(resumed->file);
    assert_int_equal(whole->file.count, resumed->file.count);
    assert_memory_equal(whole->file.data, resumed->file.data, whole->file.count);
}

/* Plays 12 steps without interruption, then saves after `saved` steps, loses the work up to `killed` steps, and
 * continues. */
static void kill_and_resume(int64_t saved, int64_t killed) {
    leat_error err = {0};
    char path[512];
    play p;
    open_play(&p, false);
    play_until(&p, 3 * STEPS);
    end_play(&p);
    open_play(&p, false);
    play_until(&p, saved);
    save(&p, "checkpoint");
    play_until(&p, killed);
    close_play(&p); /* writes the lost work to the file, which is the worst case */
    open_play(&p, true);
    expect_ok(load(&p, "checkpoint", saved, &err), &err);
    play_until(&p, 3 * STEPS);
    end_play(&p);
    assert_int_equal(find_file("train", 0, path), 2);
    assert_int_equal(find_file("validation", 0, path), 2);
    expect_same_files("train");
    expect_same_files("validation");
}

static void a_resumed_fit_writes_the_same_bytes(void **state) {
    kill_and_resume(STEPS, 2 * STEPS + 1); /* after an epoch */
    remove_log_folder(state);
    make_log_folder(state);
    kill_and_resume(STEPS + 2, STEPS + 2); /* in an epoch, and killed at once */
    remove_log_folder(state);
    make_log_folder(state);
    kill_and_resume(2, 2 * STEPS); /* before the first validation created its file */
    remove_log_folder(state);
    make_log_folder(state);
    kill_and_resume(0, 1); /* before the first step */
}

static leat_status fail_at_step(void *user, leat_training *training, int64_t step, leat_logs *logs,
                                leat_error *err) {
    (void)step, (void)logs;
    if (leat_training_model(training)->iterations != *(const int64_t *)user) return LEAT_OK;
    return leat_error_set(err, LEAT_EIO, "the end");
}

/* Trains 4 epochs of 5 steps with a checkpoint after every 3 steps.  Step `fails` ends the fit like a crash, without
 * a checkpoint; the next fit continues. */
static void train_with_checkpoints(const char *run_id, int64_t fails) {
    leat_error err = {0};
    char checkpoints[128];
    snprintf(checkpoints, sizeof checkpoints, "%s/%s", log_folder, run_id);
    for (bool resumed = false;; resumed = true) {
        clusters data = clusters_of(40, 8), held_out = clusters_of(16, 8);
        leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
        leat_tensorboard_options board = leat_tensorboard_options_default();
        leat_checkpoint_options saving = leat_checkpoint_options_default();
        board.run_id = run_id;
        board.update_freq = board.histogram_freq = 1;
        saving.folder = checkpoints;
        saving.every_steps = 3;
        saving.resume = resumed;
        leat_model *model = make_classifier(1);
        leat_callback tested = make_tensorboard(&board), bomb = leat_callback_default();
        bomb.user = &fails;
        bomb.on_train_batch_end = fail_at_step;
        leat_fit_options options = quiet_fit_with(4, (leat_callback *[]){&tested, &bomb}, 2);
        options.validation = &validation;
        options.checkpoints = &saving;
        leat_status status = leat_model_fit_generator(model, &sequence, &options, NULL, &err);
        leat_callback_destroy(&tested);
        leat_model_destroy(&model);
        if (status == LEAT_OK) return;
        if (resumed || status != LEAT_EIO) fail_msg("%s", err.message);
        fails = 0; /* no step has this number */
    }
}

static void a_fit_with_checkpoints_continues_its_files(void **state) {
    const int64_t ends[] = {2, 5, 8, 10, 13}; /* the first is before any checkpoint */
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
        char path[512];
        train_with_checkpoints("1", 0);
        train_with_checkpoints("2", ends[i]);
        assert_int_equal(find_file("train", 0, path), 2);
        expect_same_files("train");
        expect_same_files("validation");
        assert_int_equal(tag_count(read_run("train", 1), "batch_loss"), 20);
        remove_log_folder(state);
        make_log_folder(state);
    }
}

static void save_state_writes_the_buffer(void **state) {
    (void)state;
    play p;
    open_play(&p, false);
    play_until(&p, 2);
    assert_int_equal(tag_count(read_run("train", 0), "batch_loss"), 0);
    save(&p, "checkpoint");
    assert_int_equal(tag_count(read_run("train", 0), "batch_loss"), 2);
    end_play(&p);
}

static void a_lost_file_is_an_error(void **state) {
    (void)state;
    leat_error err = {0};
    char path[512] = "";
    play p;
    open_play(&p, false);
    play_until(&p, STEPS);
    save(&p, "checkpoint");
    close_play(&p);
    find_file("train", 0, path);
    unlink(path);
    open_play(&p, true);
    assert_int_equal(load(&p, "checkpoint", STEPS, &err), LEAT_ENOTFOUND);
    assert_non_null(strstr(err.message, "TensorBoard: "));
    assert_non_null(strstr(err.message, path));
    close_play(&p);
}

/* The checkpoint is that of a fit without TensorBoard. */
static void a_new_callback_of_a_resumed_fit_begins_files(void **state) {
    (void)state;
    leat_error err = {0};
    play p;
    save(NULL, "checkpoint");
    open_play(&p, true);
    expect_ok(load(&p, "checkpoint", STEPS, &err), &err);
    play_until(&p, 2 * STEPS);
    end_play(&p);
    const event_list *list = read_run("train", 0);
    assert_true(list->events[1].graph.count > 0);
    assert_int_equal(tag_at(list, "epoch_loss", 0)->step, 1);
    assert_int_equal(tag_at(list, "batch_loss", 0)->step, STEPS + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_resumed_fit_writes_the_same_bytes),
        IN_FOLDER(a_fit_with_checkpoints_continues_its_files),
        IN_FOLDER(save_state_writes_the_buffer),
        IN_FOLDER(a_lost_file_is_an_error),
        IN_FOLDER(a_new_callback_of_a_resumed_fit_begins_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
