/* SPDX-License-Identifier: Apache-2.0 */
/* The text file of OpenMetrics: a reader with the rules of OpenMetrics 1.0 checks each file, and the values. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/image.h"
#include "checkpoint/state.h"
#include "leat/log.h"
#include "train/hooks/training.h"
#include "train/support.h"

/* ---- a reader of the format ---- */

enum { max_series = 64, max_families = 32, file_bytes = 1 << 16 };

typedef struct series {
    char key[512]; /* name and labels, as they stand in the file */
    double value;
} series;

typedef struct metrics {
    int series_count, family_count;
    series series[max_series];
    char families[max_families][64];
    bool is_counter[max_families];
} metrics;

static size_t name_bytes(const char *at) {
    size_t bytes = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789");
    return strchr("0123456789", *at) ? 0 : bytes;
}

/* Reads `name="value"`, where the value has the escapes \\, \" and \n. */
static const char *skip_label(const char *at) {
    size_t bytes = name_bytes(at);
    assert_true(bytes > 0 && !memchr(at, ':', bytes) && at[bytes] == '=' && at[bytes + 1] == '"');
    for (at += bytes + 2; *at != '"'; ++at) {
        assert_true(*at != '\0' && *at != '\n');
        if (*at == '\\') {
            ++at;
            assert_true(*at == '\\' || *at == '"' || *at == 'n');
        }
    }
    return at + 1;
}

static const char *skip_labels(const char *at) {
    if (*at != '{') return at;
    do at = skip_label(at + 1);
    while (*at == ',');
    assert_int_equal(*at, '}');
    return at + 1;
}

static double read_value(const char *text) {
    char *end = NULL;
    double value = strcmp(text, "+Inf") == 0   ? INFINITY
                   : strcmp(text, "-Inf") == 0 ? -INFINITY
                   : strcmp(text, "NaN") == 0  ? NAN
                                               : strtod(text, &end);
    if (end) assert_true(end > text && *end == '\0' && isfinite(value) && !strpbrk(text, "xXpP"));
    return value;
}

/* A sample belongs to the family that was declared last; that of a counter ends with _total. */
static void read_sample(metrics *m, const char *line) {
    assert_true(m->family_count > 0 && m->series_count < max_series);
    const char *family = m->families[m->family_count - 1], *labels = line + name_bytes(line);
    const size_t bytes = strlen(family);
    assert_memory_equal(line, family, bytes);
    const char *suffix = m->is_counter[m->family_count - 1] ? "_total" : "";
    assert_int_equal(labels - line, bytes + strlen(suffix));
    assert_memory_equal(line + bytes, suffix, strlen(suffix));
    const char *end = skip_labels(labels);
    assert_int_equal(*end, ' ');
    assert_null(strchr(end + 1, ' ')); /* no time stamp, which node_exporter refuses */
    series *s = &m->series[m->series_count++];
    snprintf(s->key, sizeof s->key, "%.*s", (int)(end - line), line);
    s->value = read_value(end + 1);
    if (m->is_counter[m->family_count - 1]) assert_true(s->value >= 0);
    for (int i = 0; i + 1 < m->series_count; ++i) assert_string_not_equal(m->series[i].key, s->key);
}

/* "# TYPE name type" opens a family, "# HELP name text" follows. */
static void read_comment(metrics *m, const char *line) {
    char name[64], type[16];
    if (sscanf(line, "# TYPE %63s %15s", name, type) == 2) {
        assert_true(m->family_count < max_families);
        assert_true(strcmp(type, "gauge") == 0 || strcmp(type, "counter") == 0);
        assert_int_equal(name_bytes(name), strlen(name));
        for (int i = 0; i < m->family_count; ++i) assert_string_not_equal(m->families[i], name);
        snprintf(m->families[m->family_count], sizeof name, "%s", name);
        m->is_counter[m->family_count++] = strcmp(type, "counter") == 0;
        return;
    }
    assert_int_equal(sscanf(line, "# HELP %63s", name), 1);
    assert_true(m->family_count > 0);
    assert_string_equal(name, m->families[m->family_count - 1]);
}

static void read_file(const char *path, metrics *out) {
    static char text[file_bytes];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0';
    memset(out, 0, sizeof *out);
    assert_true(bytes >= 6);
    assert_string_equal(text + bytes - 6, "# EOF\n");
    text[bytes - 6] = '\0';
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        *end = '\0';
        if (*line == '#')
            read_comment(out, line);
        else
            read_sample(out, line);
    }
}

static double value_of(const metrics *m, const char *key) {
    for (int i = 0; i < m->series_count; ++i)
        if (strcmp(m->series[i].key, key) == 0) return m->series[i].value;
    fail_msg("the file has no %s", key);
    return 0;
}

static bool has_key(const metrics *m, const char *key) {
    for (int i = 0; i < m->series_count; ++i)
        if (strcmp(m->series[i].key, key) == 0) return true;
    return false;
}

/* ---- fits ---- */

static char path[64];
static metrics now;

static int enter(void **state) {
    (void)state;
    strcpy(path, "/tmp/leat-metrics-XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0) return -1;
    close(fd);
    return 0;
}

static int leave(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

static leat_open_metrics_options options_for(const char *file) {
    leat_open_metrics_options options = leat_open_metrics_options_default();
    options.path = file;
    return options;
}

static void a_fit_leaves_its_last_state(void **state) {
    (void)state;
    leat_error err = {0};
    leat_callback metrics_callback;
    leat_open_metrics_options options = options_for(path);
    expect_ok(leat_open_metrics_create(&metrics_callback, sizeof metrics_callback, &options, &err), &err);
    leat_callback *callbacks[] = {&metrics_callback};
    leat_history *history = NULL;
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(37, 8), held_out = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_fit_options fit = quiet_fit_with(3, callbacks, 1);
    fit.validation = &validation;
    expect_ok(leat_model_fit_generator(model, &sequence, &fit, &history, &err), &err);
    leat_callback_destroy(&metrics_callback);
    read_file(path, &now);
    assert_true(value_of(&now, "leat_running") == 0);
    assert_true(value_of(&now, "leat_epoch") == 3 && value_of(&now, "leat_epochs") == 3);
    assert_true(value_of(&now, "leat_step") == 5 && value_of(&now, "leat_epoch_steps") == 5);
    assert_true(value_of(&now, "leat_steps_total") == 15 && value_of(&now, "leat_samples_total") == 3 * 37);
    assert_true(value_of(&now, "leat_learning_rate") == leat_model_learning_rate(model));
    assert_true(value_of(&now, "leat_loss") == series_at(history, "loss", 2));
    assert_true(value_of(&now, "leat_metric{name=\"loss\"}") == series_at(history, "loss", 2));
    assert_true(value_of(&now, "leat_metric{name=\"val_accuracy\"}") ==
                series_at(history, "val_accuracy", 2));
    assert_true(fabs(value_of(&now, "leat_last_update_timestamp_seconds") - (double)time(NULL)) < 3600);
    assert_true(value_of(&now, "leat_elapsed_seconds") >= 0);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

/* ---- a fit of which only the callback is real ---- */

typedef struct fake_fit {
    leat_training training;
    leat_callback callback;
    leat_logs logs;
} fake_fit;

static leat_status call(fake_fit *fit, leat_hook hook, int64_t index, leat_error *err) {
    return hook(fit->callback.user, &fit->training, index, &fit->logs, err);
}

static void begin(fake_fit *fit, const leat_open_metrics_options *options) {
    leat_error err = {0};
    memset(fit, 0, sizeof *fit);
    fit->training.params = (leat_training_params){.epochs = 9, .steps = 100, .verbose = 1};
    fit->training.model = make_line(0.25);
    expect_ok(leat_open_metrics_create(&fit->callback, sizeof fit->callback, options, &err), &err);
}

static void run(fake_fit *fit, leat_hook hook, int64_t index) {
    leat_error err = {0};
    expect_ok(call(fit, hook, index, &err), &err);
}

static void end(fake_fit *fit) {
    leat_callback_destroy(&fit->callback);
    leat_model_destroy(&fit->training.model);
}

static void values_and_labels_of_all_kinds_are_written(void **state) {
    (void)state;
    fake_fit fit;
    leat_open_metrics_options options = options_for(path);
    options.labels = (const char *const[]){"run=a \"quoted\"\nback\\slash", "host=Größe\xFF", "_empty="};
    options.label_count = 3;
    begin(&fit, &options);
    run(&fit, fit.callback.on_train_begin, 0);
    read_file(path, &now);
#define LABELS "run=\"a \\\"quoted\\\"\\nback\\\\slash\",host=\"Größe?\",_empty=\"\""
    assert_true(value_of(&now, "leat_running{" LABELS "}") == 1);
    assert_true(value_of(&now, "leat_epoch{" LABELS "}") == 0);
    assert_false(has_key(&now, "leat_loss{" LABELS "}"));
    assert_true(value_of(&now, "leat_learning_rate{" LABELS "}") == 0.25);
    run(&fit, fit.callback.on_epoch_begin, 4);
    leat_logs_set(&fit.logs, "loss", NAN);
    leat_logs_set(&fit.logs, "big", INFINITY);
    leat_logs_set(&fit.logs, "small", -INFINITY);
    leat_logs_set(&fit.logs, "pre\"ci\\sion\n@0.5", 1e-7);
    leat_logs_set(&fit.logs, "lr", 0.25);
    run(&fit, fit.callback.on_epoch_end, 4);
    read_file(path, &now);
    assert_true(value_of(&now, "leat_epoch{" LABELS "}") == 5 &&
                value_of(&now, "leat_epochs{" LABELS "}") == 9);
    assert_true(isnan(value_of(&now, "leat_loss{" LABELS "}")));
    assert_true(isnan(value_of(&now, "leat_metric{" LABELS ",name=\"loss\"}")));
    assert_true(value_of(&now, "leat_metric{" LABELS ",name=\"big\"}") == INFINITY);
    assert_true(value_of(&now, "leat_metric{" LABELS ",name=\"small\"}") == -INFINITY);
    assert_true(value_of(&now, "leat_metric{" LABELS ",name=\"pre\\\"ci\\\\sion\\n@0.5\"}") == 1e-7);
    assert_false(has_key(&now, "leat_metric{" LABELS ",name=\"lr\"}"));
    end(&fit);
}

static void steps_write_only_when_the_time_has_come(void **state) {
    (void)state;
    fake_fit fit;
    leat_open_metrics_options options = options_for(path);
    options.every_ms = 3600000;
    begin(&fit, &options);
    leat_logs_set(&fit.logs, "batch", 0);
    leat_logs_set(&fit.logs, "size", 32);
    leat_logs_set(&fit.logs, "loss", 0.5);
    run(&fit, fit.callback.on_train_begin, 0);
    run(&fit, fit.callback.on_epoch_begin, 0);
    for (int i = 0; i < 10; ++i) run(&fit, fit.callback.on_train_batch_end, i);
    read_file(path, &now);
    assert_true(value_of(&now, "leat_steps_total") == 0); /* still the file of on_train_begin */
    end(&fit);
    options.every_ms = 1;
    begin(&fit, &options);
    leat_logs_set(&fit.logs, "batch", 0);
    leat_logs_set(&fit.logs, "size", 32);
    leat_logs_set(&fit.logs, "loss", 0.5);
    run(&fit, fit.callback.on_train_begin, 0);
    run(&fit, fit.callback.on_epoch_begin, 0);
    run(&fit, fit.callback.on_train_batch_end, 0);
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    run(&fit, fit.callback.on_train_batch_end, 1);
    read_file(path, &now);
    assert_true(value_of(&now, "leat_step") == 2 && value_of(&now, "leat_samples_total") == 64);
    assert_true(value_of(&now, "leat_loss") == 0.5);
    assert_false(has_key(&now, "leat_metric{name=\"size\"}"));
    assert_false(has_key(&now, "leat_metric{name=\"batch\"}"));
    end(&fit);
}

/* The counters continue, and there is never a file in which they begin at 0 again. */
static void a_resumed_fit_continues_to_count(void **state) {
    (void)state;
    enum { done = 117 };
    leat_error err = {0};
    fake_fit fit;
    char checkpoint[80];
    leati_snapshot snapshot = {0};
    leati_image image;
    leat_open_metrics_options options = options_for(path);
    begin(&fit, &options);
    leat_logs_set(&fit.logs, "size", 32);
    run(&fit, fit.callback.on_train_begin, 0);
    for (int i = 0; i < done; ++i) run(&fit, fit.callback.on_train_batch_end, i % 100);
    expect_ok(leati_snapshot_begin(&snapshot, &err), &err);
    leat_state saved = {.snapshot = &snapshot, .prefix = "callback.0/"};
    expect_ok(fit.callback.save_state(fit.callback.user, &fit.training, &saved, &err), &err);
    leati_snapshot_finish(&snapshot);
    snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", path);
    FILE *file = fopen(checkpoint, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(snapshot.data, 1, snapshot.bytes, file), snapshot.bytes);
    fclose(file);
    leati_snapshot_fini(&snapshot);
    end(&fit);
    assert_int_equal(unlink(path), 0);

    begin(&fit, &options);
    leat_logs_set(&fit.logs, "size", 32);
    fit.training.params.resumed = true;
    run(&fit, fit.callback.on_train_begin, 0);
    assert_int_equal(access(path, F_OK), -1);
    expect_ok(leati_image_open(&image, checkpoint, &err), &err);
    leat_state loaded = {.image = &image, .prefix = "callback.0/"};
    expect_ok(fit.callback.load_state(fit.callback.user, &fit.training, &loaded, &err), &err);
    leati_image_close(&image);
    run(&fit, fit.callback.on_epoch_begin, 1);
    run(&fit, fit.callback.on_train_batch_end, 17);
    read_file(path, &now);
    assert_true(value_of(&now, "leat_steps_total") == done + 1);
    assert_true(value_of(&now, "leat_samples_total") == 32 * (done + 1));
    assert_true(value_of(&now, "leat_epoch") == 2 && value_of(&now, "leat_step") == 18);
    end(&fit);
    unlink(checkpoint);
}

/* ---- failures ---- */

static int warnings;

static void hear(void *user, leat_log_level level, const char *message) {
    (void)user;
    if (level == LEAT_LOG_WARNING && strstr(message, "leat: OpenMetrics: ")) ++warnings;
}

static void a_file_that_cannot_be_written_ends_no_training(void **state) {
    (void)state;
    leat_error err = {0};
    fake_fit fit;
    char folder[] = "/tmp/leat-metrics-XXXXXX", file[64];
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/a.prom", folder);
    leat_open_metrics_options options = options_for(file);
    begin(&fit, &options);
    run(&fit, fit.callback.on_train_begin, 0);
    assert_true(unlink(file) == 0 && rmdir(folder) == 0);
    leat_set_log(hear, NULL);
    for (int i = 0; i < 3; ++i) run(&fit, fit.callback.on_epoch_end, i);
    leat_set_log(NULL, NULL);
    assert_int_equal(warnings, 1);
    assert_int_equal(call(&fit, fit.callback.on_train_begin, 0, &err),
                     LEAT_EIO); /* a new fit says so at once */
    assert_memory_equal(err.message, "OpenMetrics: ", 13);
    end(&fit);
}

static void options_are_checked(void **state) {
    (void)state;
    static const char *const labels[][2] = {{"a b=c", "x=y"},  {"x=y", "7=c"},   {"x=y", "none"},
                                            {"x=y", "name=z"}, {"__x=y", "z=z"}, {"x=y", "x=z"},
                                            {"x=y", NULL},     {"=y", "x=z"}};
    leat_callback callback;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; ++i) {
        leat_error err = {0};
        leat_open_metrics_options options = options_for(path);
        options.labels = labels[i];
        options.label_count = 2;
        assert_int_equal(leat_open_metrics_create(&callback, sizeof callback, &options, &err), LEAT_EINVAL);
        assert_memory_equal(err.message, "OpenMetrics: label ", 19);
    }
    leat_error err = {0};
    leat_open_metrics_options options = leat_open_metrics_options_default();
    assert_int_equal(options.every_ms, 10000);
    assert_int_equal(leat_open_metrics_create(&callback, sizeof callback, &options, &err), LEAT_EINVAL);
    assert_string_equal(err.message, "OpenMetrics: path is required");
    options.path = path;
    options.every_ms = -1;
    assert_int_equal(leat_open_metrics_create(&callback, sizeof callback, &options, &err), LEAT_EINVAL);
    options.every_ms = 0;
    options.label_count = 1;
    assert_int_equal(leat_open_metrics_create(&callback, sizeof callback, &options, &err), LEAT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_fit_leaves_its_last_state, enter, leave),
        cmocka_unit_test_setup_teardown(values_and_labels_of_all_kinds_are_written, enter, leave),
        cmocka_unit_test_setup_teardown(steps_write_only_when_the_time_has_come, enter, leave),
        cmocka_unit_test_setup_teardown(a_resumed_fit_continues_to_count, enter, leave),
        cmocka_unit_test(a_file_that_cannot_be_written_ends_no_training),
        cmocka_unit_test_setup_teardown(options_are_checked, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
