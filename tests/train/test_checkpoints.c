/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: a fit that was killed, or asked to stop, ends after a resume with the bytes of a fit that was left
 * alone, for any kind of workers, data and model. */
#include "cmocka_all.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leat/file.h"
#include "train/support.h"

typedef enum model_kind { PLAIN, DROPOUT, BFLOAT16, STATEFUL, OTHER_LOSS } model_kind;

/* A fit, and what happens to it. */
typedef struct plan {
    model_kind kind;
    leat_shuffle shuffle;
    bool generator, validation;
    int64_t skip_at; /* the batch of each pass that is skipped; 0: none */
    int64_t grow, steps_per_epoch, validation_every;
    int64_t every; /* steps between checkpoints */
    int workers;
    bool processes;
} plan;

typedef struct result {
    void *model; /* bytes of the saved model */
    size_t bytes;
    double losses[16], val_losses[16], lr[16];
    int count, val_count;
} result;

/* Stops or kills the fit when this number of steps is done, and counts the steps in its state. */
typedef struct bomb {
    int64_t steps, at;
    int64_t tests,
        test_at; /* steps of validation, and the one after which the fit is asked to stop; 0: none */
    bool kills, stops, ends; /* ends: as a callback that has seen enough */
    int64_t stop_epoch;      /* the epoch, from 1, after which the fit is asked to stop; 0: none */
    bool validates;          /* validate in each on_train_batch_end */
    bool poisons;            /* make a weight NaN */
    int begun;               /* epochs begun */
} bomb;

static char folder[] = "/tmp/leat-checkpoints-XXXXXX";

static leat_status count_step(void *user, leat_training *training, int64_t index, leat_logs *logs,
                              leat_error *err) {
    bomb *self = user;
    (void)index, (void)logs, (void)err;
    leat_logs results = {0};
    ++self->steps;
    leat_status status = self->validates ? leat_training_validate(training, &results, err) : LEAT_OK;
    if (status != LEAT_OK || self->steps != self->at) return status;
    if (self->kills) raise(SIGKILL);
    if (self->poisons) {
        leat_tensor weight = leat_model_weight(leat_training_model(training), 0);
        ((float *)weight.data)[1] = NAN;
    }
    if (self->ends) leat_training_stop(training, "enough");
    if (self->stops) leat_model_stop_training(leat_training_model(training));
    return LEAT_OK;
}

static leat_status count_epoch(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    (void)training, (void)index, (void)logs, (void)err;
    ++((bomb *)user)->begun;
    return LEAT_OK;
}

static leat_status count_test(void *user, leat_training *training, int64_t index, leat_logs *logs,
                              leat_error *err) {
    bomb *self = user;
    (void)index, (void)logs, (void)err;
    if (++self->tests == self->test_at) leat_model_stop_training(leat_training_model(training));
    return LEAT_OK;
}

static leat_status end_epoch(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    (void)logs, (void)err;
    if (index + 1 == ((bomb *)user)->stop_epoch) leat_model_stop_training(leat_training_model(training));
    return LEAT_OK;
}

static leat_status save_count(void *user, leat_training *training, leat_state *state, leat_error *err) {
    bomb *self = user;
    (void)training;
    leat_status status = leat_state_put(state, "begun", &self->begun, sizeof self->begun, err);
    return status == LEAT_OK ? leat_state_put(state, "steps", &self->steps, sizeof self->steps, err) : status;
}

static leat_status load_count(void *user, leat_training *training, leat_state *state, leat_error *err) {
    bomb *self = user;
    if (!leat_training_params_get(training)->resumed) return leat_error_set(err, LEAT_EUSER, "not resumed");
    leat_status status = leat_state_get(state, "begun", &self->begun, sizeof self->begun, err);
    return status == LEAT_OK ? leat_state_get(state, "steps", &self->steps, sizeof self->steps, err) : status;
}

static leat_model *make_stateful_net(void) {
    leat_compile_options compile = leat_compile_options_default();
    leat_error err = {0};
    leat_model *model = NULL;
    static const char json[] =
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["
        "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"r\", \"target_shape\": [2, 2], "
        "\"batch_input_shape\": [8, 4], \"dtype\": \"float32\"}},"
        "{\"class_name\": \"LSTM\", \"config\": {\"name\": \"l\", \"units\": 5, \"stateful\": true}},"
        "{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 3, \"activation\": "
        "\"softmax\"}}]}}";
    compile.optimizer = "nadam";
    compile.loss = "categorical_crossentropy";
    compile.metrics = "accuracy";
    expect_ok(leat_model_from_json(&model, json, &err), &err);
    expect_ok(leat_model_initialize(model, 3, &err), &err);
    expect_ok(leat_model_compile(model, &compile, &err), &err);
    return model;
}

static leat_model *make_model(model_kind kind) {
    leat_error err = {0};
    leat_model *model = kind == STATEFUL ? make_stateful_net()
                        : kind == PLAIN  ? make_classifier(1)
                                         : make_dropout_classifier(1);
    if (kind == OTHER_LOSS) {
        leat_compile_options compile = leat_compile_options_default();
        compile.optimizer = "{\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.01}}";
        compile.loss = "mean_squared_error";
        expect_ok(leat_model_compile(model, &compile, &err), &err);
    }
    if (kind == BFLOAT16) expect_ok(leat_model_set_dtype_policy(model, "mixed_bfloat16", &err), &err);
    return model;
}

static clusters make_data(const plan *p) {
    clusters data = clusters_of(p->kind == STATEFUL ? 40 : 38, 8);
    data.noisy = true;
    data.sampled = !p->generator && p->grow == 0;
    data.grow = p->grow;
    if (p->skip_at > 0) data.skip_at = p->skip_at;
    return data;
}

static void keep_series(const leat_history *history, const char *name, double *out, int *count) {
    const double *values = leat_history_values(history, name, count);
    if (values) memcpy(out, values, (size_t)*count * sizeof *values);
}

/* Runs the fit of the plan to its end, or until the bomb goes off; returns the status. */
static leat_status run(const plan *p, bomb *b, const char *checkpoints, int64_t epochs, result *out,
                       leat_error *err) {
    leat_model *model = make_model(p->kind);
    clusters data = make_data(p), held_back = clusters_of(p->kind == STATEFUL ? 24 : 20, 8);
    held_back.noisy = true;
    leat_sequence sequence = p->generator ? clusters_generator(&data) : clusters_sequence(&data);
    leat_sequence validation = clusters_sequence(&held_back);
    leat_callback counter = {.size = sizeof counter,
                             .user = b,
                             .on_train_batch_end = count_step,
                             .on_test_batch_end = count_test,
                             .on_epoch_end = end_epoch,
                             .on_epoch_begin = count_epoch,
                             .save_state = save_count,
                             .load_state = load_count};
    leat_checkpoint_options to = leat_checkpoint_options_default();
    leat_fit_options options = quiet_fit_with(epochs, (leat_callback *const[]){&counter}, 1);
    leat_history *history = NULL;
    to.folder = checkpoints;
    to.every_steps = p->every;
    to.resume = true;
    options.seed = 5;
    options.shuffle = p->shuffle;
    options.shuffle_window = 6;
    options.steps_per_epoch = p->steps_per_epoch;
    options.workers = p->workers;
    options.use_multiprocessing = p->processes;
    options.validation = p->validation ? &validation : NULL;
    options.validation_every = p->validation_every;
    if (p->skip_at > 0) options.faults.bad_batch = LEAT_BAD_BATCH_SKIP;
    if (checkpoints) options.checkpoints = &to;
    leat_status status = leat_model_fit_generator(model, &sequence, &options, &history, err);
    if (status == LEAT_OK && out) {
        expect_ok(leat_model_save_memory(model, LEAT_MODEL_FORMAT_H5, true, &out->model, &out->bytes, err),
                  err);
        keep_series(history, "loss", out->losses, &out->count);
        keep_series(history, "val_loss", out->val_losses, &out->val_count);
    }
    leat_history_destroy(&history);
    leat_model_destroy(&model);
    return status;
}

static void empty_folder(void) {
    char path[512];
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    closedir(directory);
}

static void expect_equal(const result *a, const result *b) {
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->val_count, b->val_count);
    assert_memory_equal(a->losses, b->losses, (size_t)a->count * sizeof a->losses[0]);
    assert_memory_equal(a->val_losses, b->val_losses, (size_t)a->val_count * sizeof a->val_losses[0]);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->model, b->model, a->bytes);
}

/* Runs the fit in a child process, in which the bomb kills it. */
static void run_killed(const plan *p, int64_t at, int64_t epochs) {
    pid_t child = fork();
    if (child == 0) {
        bomb b = {.at = at, .kills = true};
        (void)run(p, &b, folder, epochs, NULL, NULL);
        _exit(1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* On a simulated GPU, whose steps take long, the fit ends at the end of each epoch of five steps and inside of it; with
 * LEAT_TEST_ALL, and on the host, after each step. */
static bool is_tried(int64_t at) {
#ifdef LEAT_TEST_DEVICE
    return getenv("LEAT_TEST_ALL") || at % 5 == 0 || at % 5 == 3;
#else
    return at > 0;
#endif
}

/* Kills the fit after some numbers of steps up to `steps`, or asks it to stop, and resumes it with other workers. */
static void check(plan p, int64_t steps) {
    leat_error err = {0};
    result whole = {0};
    bomb none = {0};
    expect_ok(run(&p, &none, NULL, 3, &whole, &err), &err);
    for (int64_t at = 1; at <= steps; ++at) {
        for (int kills = 0; is_tried(at) && kills < 2; ++kills) {
            bomb b = {.at = at, .stops = true}, then = {0};
            plan other = p;
            result resumed = {0};
            other.workers = p.workers == 2 ? 0 : 2;
            other.processes = !p.processes && at % 2 == 0;
            empty_folder();
            if (kills)
                run_killed(&p, at, 3);
            else
                expect_ok(run(&p, &b, folder, 3, NULL, &err), &err);
            expect_ok(run(&other, &then, folder, 3, &resumed, &err), &err);
            expect_equal(&whole, &resumed);
            assert_int_equal(then.steps, none.steps);
            assert_int_equal(then.begun, none.begun);
            leat_bytes_free(resumed.model);
        }
    }
    leat_bytes_free(whole.model);
}

static void whole_passes(void **state) {
    (void)state;
    check((plan){.kind = DROPOUT, .shuffle = LEAT_SHUFFLE_AUTO, .every = 2, .workers = 2}, 15);
    check((plan){.kind = PLAIN, .shuffle = LEAT_SHUFFLE_WINDOW, .every = 3, .validation = true}, 15);
    check((plan){.kind = PLAIN,
                 .shuffle = LEAT_SHUFFLE_BATCHES,
                 .every = 4,
                 .validation = true,
                 .validation_every = 2,
                 .workers = 1},
          15);
}

static void other_models(void **state) {
    (void)state;
    check((plan){.kind = BFLOAT16, .shuffle = LEAT_SHUFFLE_SAMPLES, .every = 1, .workers = 2}, 15);
    check((plan){.kind = STATEFUL, .every = 2, .workers = 2, .processes = true}, 15);
}

/* A request to stop during a validation inside an epoch: no step is trained before the validation was made.  A request
 * before such a validation does not wait for it. */
static void stops_in_validations(void **state) {
    (void)state;
    const plan p = {.kind = DROPOUT, .every = 1, .validation = true, .validation_every = 2, .workers = 1};
    leat_error err = {0};
    result whole = {0}, resumed = {0};
    bomb none = {0}, first = {.test_at = 2}, second = {.test_at = 1}, before = {.at = 4, .stops = true},
         last = {0};
    expect_ok(run(&p, &none, NULL, 3, &whole, &err), &err);
    empty_folder();
    expect_ok(run(&p, &first, folder, 3, NULL, &err), &err);
    assert_int_equal(first.steps, 2);
    expect_ok(run(&p, &second, folder, 3, NULL, &err), &err);
    assert_int_equal(second.steps, 2);
    expect_ok(run(&p, &before, folder, 3, NULL, &err), &err);
    assert_int_equal(before.steps, 4);
    assert_int_equal(before.tests, 3); /* of the validation after step 2 */
    expect_ok(run(&p, &last, folder, 3, &resumed, &err), &err);
    expect_equal(&whole, &resumed);
    assert_int_equal(before.tests + last.tests, none.tests);
    leat_bytes_free(whole.model);
    leat_bytes_free(resumed.model);
}

/* Epochs that do not end together with passes; passes that grow; batches that are skipped. */
static void other_epochs(void **state) {
    (void)state;
    check((plan){.kind = DROPOUT,
                 .shuffle = LEAT_SHUFFLE_AUTO,
                 .every = 2,
                 .steps_per_epoch = 7,
                 .validation = true,
                 .workers = 2},
          21);
    check((plan){.kind = DROPOUT, .shuffle = LEAT_SHUFFLE_BATCHES, .every = 2, .grow = 8}, 18);
    check((plan){.kind = DROPOUT, .every = 2, .skip_at = 2, .workers = 2}, 12);
    check((plan){.kind = DROPOUT, .every = 1, .skip_at = 4, .validation = true, .workers = 2}, 12);
}

static void generators(void **state) {
    (void)state;
    check((plan){.kind = DROPOUT, .every = 2, .steps_per_epoch = 4, .generator = true, .workers = 1}, 12);
}

/* A fit that has ended goes on to a later epoch with the bytes of a fit that was that long from its beginning. */
static void more_epochs(void **state) {
    (void)state;
    const plan p = {.kind = DROPOUT, .shuffle = LEAT_SHUFFLE_AUTO, .workers = 1};
    leat_error err = {0};
    result whole = {0}, longer = {0};
    bomb a = {0}, b = {0}, c = {0};
    leat_checkpoint_info info = {0};
    empty_folder();
    expect_ok(run(&p, &a, NULL, 5, &whole, &err), &err);
    expect_ok(run(&p, &b, folder, 2, NULL, &err), &err);
    expect_ok(leat_checkpoint_find(folder, &info, sizeof info, &err), &err);
    assert_true(info.ended);
    assert_int_equal(info.epoch, 2);
    assert_int_equal(info.steps, 10);
    expect_ok(run(&p, &c, folder, 5, &longer, &err), &err);
    expect_equal(&whole, &longer);
    leat_bytes_free(whole.model);
    leat_bytes_free(longer.model);
}

/* A fit that is asked to stop inside a validation, which the resumed fit begins anew. */
static void stopped_validations(void **state) {
    (void)state;
    const plan plans[] = {{.kind = DROPOUT, .every = 3, .validation = true, .workers = 1},
                          {.kind = STATEFUL, .every = 3, .validation = true, .workers = 1},
                          {.kind = STATEFUL, .every = 3, .validation = true, .validation_every = 2}};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; ++i) {
        leat_error err = {0};
        result whole = {0};
        bomb none = {0};
        expect_ok(run(&plans[i], &none, NULL, 3, &whole, &err), &err);
        for (int64_t at = 1; at <= none.tests; ++at) {
            bomb b = {.test_at = at}, then = {0};
            result resumed = {0};
            empty_folder();
            expect_ok(run(&plans[i], &b, folder, 3, NULL, &err), &err);
            expect_ok(run(&plans[i], &then, folder, 3, &resumed, &err), &err);
            expect_equal(&whole, &resumed);
            assert_int_equal(then.steps, none.steps);
            leat_bytes_free(resumed.model);
        }
        leat_bytes_free(whole.model);
    }
}

/* A validation that a hook starts is finished, so that a request to stop leads to a checkpoint all the same. */
static void stopped_validations_of_hooks(void **state) {
    (void)state;
    const plan p = {.kind = STATEFUL, .every = 100, .validation = true, .workers = 1};
    leat_error err = {0};
    result whole = {0};
    bomb none = {.validates = true};
    leat_checkpoint_info info = {0};
    expect_ok(run(&p, &none, NULL, 2, &whole, &err), &err);
    for (int64_t at = 1; at < none.tests; at += 2) {
        bomb b = {.test_at = at, .validates = true}, then = {.validates = true};
        result resumed = {0};
        empty_folder();
        expect_ok(run(&p, &b, folder, 2, NULL, &err), &err);
        expect_ok(leat_checkpoint_find(folder, &info, sizeof info, &err), &err);
        assert_int_equal(info.steps, b.steps);
        expect_ok(run(&p, &then, folder, 2, &resumed, &err), &err);
        expect_equal(&whole, &resumed);
        leat_bytes_free(resumed.model);
    }
    leat_bytes_free(whole.model);
}

/* A fit that a callback has ended does nothing more, however often it is resumed. */
static void ended_fits(void **state) {
    (void)state;
    const plan p = {.kind = DROPOUT, .every = 2, .workers = 1};
    leat_error err = {0};
    bomb b = {.at = 7, .ends = true};
    result ended = {0};
    leat_checkpoint_info info = {0};
    empty_folder();
    expect_ok(run(&p, &b, folder, 3, &ended, &err), &err);
    for (int i = 0; i < 3; ++i) {
        bomb then = {0};
        result resumed = {0};
        expect_ok(run(&p, &then, folder, 3, &resumed, &err), &err);
        expect_equal(&ended, &resumed);
        assert_int_equal(then.steps, 7);
        expect_ok(leat_checkpoint_find(folder, &info, sizeof info, &err), &err);
        assert_true(info.ended);
        leat_bytes_free(resumed.model);
    }
    leat_bytes_free(ended.model);
}

/* A checkpoint with weights that are not finite does not take the place of one from which a fit can continue. */
static void weights_that_are_not_finite(void **state) {
    (void)state;
    const plan p = {.kind = DROPOUT, .every = 2, .workers = 1};
    leat_error err = {0};
    leat_checkpoint_info info = {0};
    for (int stops = 0; stops < 2; ++stops) {
        bomb b = {.at = 8, .poisons = true, .stops = stops > 0};
        empty_folder();
        (void)run(&p, &b, folder, 2, NULL, &err);
        expect_ok(leat_checkpoint_find(folder, &info, sizeof info, &err), &err);
        assert_true(info.steps > 0 && info.steps < 8);
    }
}

static void write_text(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The folder of another fit is refused while that fit runs; unfinished files of a killed fit are removed. */
static void folder_in_use(void **state) {
    (void)state;
    const plan p = {.kind = PLAIN, .every = 2};
    const char left[] = "step-000000000004.leat.leat-999999999-0.tmp";
    char path[512];
    leat_error err = {0};
    leat_lock *lock = NULL;
    bomb b = {0};
    empty_folder();
    write_text(left, "unfinished");
    write_text("step- 7.leat", "no checkpoint");
    snprintf(path, sizeof path, "%s/%s", folder, left);
    expect_ok(leat_folder_lock(&lock, folder, &err), &err);
    assert_int_equal(run(&p, &b, folder, 1, NULL, &err), LEAT_EBUSY);
    assert_int_equal(b.steps, 0);
    leat_folder_unlock(&lock);
    expect_ok(run(&p, &b, folder, 1, NULL, &err), &err);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* A request to stop that comes after the last step ends nothing: the fit can go on to a later epoch. */
static void a_request_after_the_last_step(void **state) {
    (void)state;
    const plan p = {.kind = DROPOUT, .workers = 1};
    leat_error err = {0};
    result whole = {0}, longer = {0};
    bomb a = {0}, b = {.stop_epoch = 2}, c = {0};
    empty_folder();
    expect_ok(run(&p, &a, NULL, 4, &whole, &err), &err);
    expect_ok(run(&p, &b, folder, 2, NULL, &err), &err);
    expect_ok(run(&p, &c, folder, 4, &longer, &err), &err);
    expect_equal(&whole, &longer);
    leat_bytes_free(whole.model);
    leat_bytes_free(longer.model);
}

static void damage(const char *path, bool truncates) {
    if (truncates) {
        struct stat info;
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(truncate(path, info.st_size - 5), 0);
        return;
    }
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "x", 1, 3000), 1);
    close(fd);
}

/* Damages one checkpoint after the other until there is no other; returns how many there were. */
static int damage_all(bool truncates) {
    leat_checkpoint_info info = {0};
    int count = 0;
    for (; leat_checkpoint_find(folder, &info, sizeof info, NULL) == LEAT_OK; ++count)
        damage(info.path, truncates);
    return count;
}

/* The checkpoint before a damaged one is taken; if all are damaged, the fit refuses to begin anew. */
static void damaged_files(void **state) {
    (void)state;
    const plan p = {.kind = DROPOUT, .every = 1};
    leat_error err = {0};
    result whole = {0}, resumed = {0};
    bomb a = {0}, b = {.at = 7, .stops = true}, c = {0};
    leat_checkpoint_info info = {0};
    expect_ok(run(&p, &a, NULL, 3, &whole, &err), &err);
    for (int truncates = 0; truncates < 2; ++truncates) {
        empty_folder();
        b.steps = 0;
        expect_ok(run(&p, &b, folder, 3, NULL, &err), &err);
        expect_ok(leat_checkpoint_find(folder, &info, sizeof info, &err), &err);
        assert_int_equal(info.steps, 7);
        damage(info.path, truncates);
        expect_ok(leat_checkpoint_find(folder, &info, sizeof info, &err), &err);
        assert_true(info.steps < 7);
        assert_int_equal(info.damaged, 1);
        expect_ok(run(&p, &c, folder, 3, &resumed, &err), &err);
        expect_equal(&whole, &resumed);
        leat_bytes_free(resumed.model);
        assert_int_equal(damage_all(truncates), 2);
        if (run(&p, &c, folder, 3, NULL, &err) != LEAT_EFORMAT) fail_msg("%s", err.message);
    }
    leat_bytes_free(whole.model);
}

/* What would change the result is refused by name. */
static void other_options(void **state) {
    (void)state;
    const plan p = {.kind = DROPOUT, .every = 1};
    plan other = p;
    leat_error err = {0};
    bomb b = {.at = 3, .stops = true}, c = {0};
    empty_folder();
    expect_ok(run(&p, &b, folder, 3, NULL, &err), &err);
    other.shuffle = LEAT_SHUFFLE_BATCHES;
    assert_int_equal(run(&other, &c, folder, 3, NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "shuffle: the checkpoint was written with 0, this fit has 1"));
    other = p;
    other.kind = STATEFUL;
    assert_int_equal(run(&other, &c, folder, 3, NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "list of weights"));
    other.kind = OTHER_LOSS;
    assert_int_equal(run(&other, &c, folder, 3, NULL, &err), LEAT_EINVAL);
    if (!strstr(err.message, "arguments of compile")) fail_msg("%s", err.message);
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    empty_folder();
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_passes),
        cmocka_unit_test(other_models),
        cmocka_unit_test(other_epochs),
        cmocka_unit_test(generators),
        cmocka_unit_test(more_epochs),
        cmocka_unit_test(a_request_after_the_last_step),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(other_options),
        cmocka_unit_test(stopped_validations),
        cmocka_unit_test(stopped_validations_of_hooks),
        cmocka_unit_test(ended_fits),
        cmocka_unit_test(folder_in_use),
        cmocka_unit_test(weights_that_are_not_finite),
        cmocka_unit_test(stops_in_validations),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
