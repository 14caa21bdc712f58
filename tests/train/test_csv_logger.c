/* SPDX-License-Identifier: Apache-2.0 */
/* CSVLogger: quotes, files that are continued, and locales with a decimal comma. */
#include "cmocka_all.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/support.h"

typedef struct rig {
    leat_model *model;
    clusters data;
    leat_sequence sequence;
    char path[64];
} rig;

static void rig_init(rig *r) {
    r->model = make_classifier(1);
    r->data = clusters_of(16, 8);
    r->sequence = clusters_sequence(&r->data);
    snprintf(r->path, sizeof r->path, "/tmp/leat-csv-XXXXXX");
    int fd = mkstemp(r->path);
    assert_true(fd >= 0);
    close(fd);
}

static void rig_fini(rig *r) {
    unlink(r->path);
    leat_model_destroy(&r->model);
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static const char *read_text(const char *path) {
    static char text[8192];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* Adds values with these names to the logs, as a callback of a user may. */
static leat_status add_values(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                              leat_error *err) {
    (void)training, (void)epoch, (void)err;
    for (const char *const *name = user; *name; ++name) leat_logs_set(logs, *name, 0.5);
    return LEAT_OK;
}

static leat_status fit(rig *r, const char *separator, bool append, const char *const *names,
                       leat_error *err) {
    leat_callback log, values = {.size = sizeof values,
                                 .user = (void *)(uintptr_t)names,
                                 .on_epoch_end = names ? add_values : NULL};
    expect_ok(leat_csv_logger_create(&log, sizeof log, r->path, separator, append, err), err);
    leat_fit_options options = quiet_fit_with(1, (leat_callback *[]){&values, &log}, 2);
    leat_status status = leat_model_fit_generator(r->model, &r->sequence, &options, NULL, err);
    leat_callback_destroy(&log);
    return status;
}

static void expect_begin(const char *text, const char *begin) {
    if (strncmp(text, begin, strlen(begin)) != 0)
        fail_msg("expected '%s' at the beginning of: %s", begin, text);
}

static void names_are_quoted_like_in_python(void **state) {
    (void)state;
    leat_error err = {0};
    const char *const names[] = {"a,b", "say \"x\"", "two\nlines", "semi;colon", "z z", NULL};
    rig r;
    rig_init(&r);
    expect_ok(fit(&r, NULL, false, names, &err), &err);
    expect_begin(read_text(r.path),
                 "epoch,\"a,b\",accuracy,loss,\"say \"\"x\"\"\",semi;colon,\"two\nlines\",z z\r\n0,0.5,");
    expect_ok(fit(&r, ";", false, names, &err), &err);
    expect_begin(read_text(r.path),
                 "epoch;a,b;accuracy;loss;\"say \"\"x\"\"\";\"semi;colon\";\"two\nlines\";z z\r\n0;0.5;");
    expect_ok(fit(&r, ";", true, names, &err), &err); /* the header is read as it was written */
    assert_non_null(strstr(read_text(r.path), ";0.5\r\n0;0.5;"));
    expect_ok(fit(&r, ".", false, names, &err), &err);
    assert_non_null(strstr(read_text(r.path), "\r\n0.\"0.5\"."));
    rig_fini(&r);
}

static void rows_fit_the_header_of_the_file(void **state) {
    (void)state;
    leat_error err = {0};
    rig r;
    rig_init(&r);
    write_text(r.path, "epoch,loss,other,accuracy\r\n0,1,2,3\r\n");
    const char *const more[] = {"lr", NULL};
    expect_ok(fit(&r, NULL, true, more, &err), &err);
    const char *row = strstr(read_text(r.path), "0,1,2,3\r\n0,");
    assert_non_null(row);
    double loss = -1, accuracy = -1;
    int length = 0;
    assert_int_equal(sscanf(row + 11, "%lf,NA,%lf\r\n%n", &loss, &accuracy, &length), 2);
    assert_true(length > 0 && row[11 + length] == '\0' && accuracy >= 0 && accuracy <= 1);
    write_text(r.path, "epoch,loss,accuracy\r\n0,1,2\r\n1,0.");
    expect_ok(fit(&r, NULL, true, NULL, &err), &err);
    assert_non_null(strstr(read_text(r.path), "\r\n1,0.\r\n0,")); /* a row begins on a line of its own */
    rig_fini(&r);
}

static void another_header_is_refused_before_training(void **state) {
    (void)state;
    leat_error err = {0};
    rig r;
    rig_init(&r);
    const uint64_t before = weights_hash(r.model);
    write_text(r.path, "epoch,loss,mae\r\n0,1,2\r\n");
    assert_int_equal(fit(&r, NULL, true, NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "has no column 'accuracy'"));
    assert_non_null(strstr(err.message, "its columns are epoch, loss, mae: write to another file"));
    assert_string_equal(read_text(r.path), "epoch,loss,mae\r\n0,1,2\r\n");
    assert_int_equal(fit(&r, ";", true, NULL, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "begins with the column 'epoch' and the separator ';'"));
    assert_true(weights_hash(r.model) == before);
    rig_fini(&r);
}

static void a_separator_is_needed(void **state) {
    (void)state;
    leat_error err = {0};
    leat_callback log;
    assert_int_equal(leat_csv_logger_create(&log, sizeof log, "x.csv", "", false, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "separator"));
}

/* Compiles a locale with a decimal comma in `folder`, and sets it.  Returns false if the system lacks the sources of
 * locales. */
static bool use_comma(const char *folder) {
    char command[256];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/words 2>&1", folder,
             folder);
    (void)!system(command);
    setenv("LOCPATH", folder, 1);
    bool used = setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
    unsetenv("LOCPATH");
    return used;
}

static void names_and_numbers_have_points_in_every_locale(void **state) {
    (void)state;
    leat_error err = {0};
    rig r;
    char folder[] = "/tmp/leat-comma-XXXXXX", command[64], name[LEAT_LOG_NAME_BYTES];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "rm -r %s", folder);
    bool used = use_comma(folder);
    assert_int_equal(system(command), 0);
    if (!used) LEAT_SKIP("no localedef, or no sources of the locale de_DE");
    rig_init(&r);
    leat_compile_options compile = leat_compile_options_default();
    compile.loss = "categorical_crossentropy";
    compile.metrics = "Precision(thresholds=[0.3, 0.75])";
    expect_ok(leat_model_compile(r.model, &compile, &err), &err);
    expect_ok(leat_model_metric_name(r.model, 1, name, &err), &err);
    assert_string_equal(name, "precision@0.3");
    expect_ok(fit(&r, NULL, false, NULL, &err), &err);
    expect_begin(read_text(r.path), "epoch,loss,precision@0.3,precision@0.75\r\n0,");
    const char *row = strstr(read_text(r.path), "\r\n0,") + 2;
    int commas = 0;
    for (; *row; ++row) commas += *row == ',';
    assert_int_equal(commas, 3);
    setlocale(LC_ALL, "C");
    rig_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_quoted_like_in_python),
        cmocka_unit_test(rows_fit_the_header_of_the_file),
        cmocka_unit_test(another_header_is_refused_before_training),
        cmocka_unit_test(a_separator_is_needed),
        cmocka_unit_test(names_and_numbers_have_points_in_every_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
