/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `leat fit` that make callbacks, choose the validation data and weigh classes. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "cli/command.h"
#include "data/files.h"
#include "leat/npz.h"

#define QUIET "--verbose 0 --json --seed 3 "

static int leave(void **state) {
    if (system("rm -rf run*") != 0) return -1;
    return files_leave(state);
}

/* Returns the series of this name of the last command's JSON object; the caller frees *root. */
static json_t *series(json_t **root, const char *name) {
    *root = json_loads(out, 0, NULL);
    assert_non_null(*root);
    return json_object_get(json_object_get(*root, "history"), name);
}

static size_t epochs_of(const char *line) {
    json_t *root = NULL;
    runs(line);
    size_t count = json_array_size(series(&root, "loss"));
    json_decref(root);
    return count;
}

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

/* ---- --out ---- */

static void braces_in_a_folder_are_braces(void **state) {
    (void)state;
    runs(FIT QUIET "--epochs 2 --out run_{x}");
    assert_true(exists("run_{x}/history.json") && exists("run_{x}/model.h5"));
    runs(FIT QUIET "--epochs 1 --validation npz:d.npz --out run_{epoch:02d}/}{");
    assert_true(exists("run_{epoch:02d}/}{/best.h5"));
    assert_false(exists("run_01"));
}

/* ---- Callbacks ---- */

static void early_stopping_takes_keras_arguments(void **state) {
    (void)state;
    assert_int_equal(epochs_of(FIT QUIET "--epochs 9 --early-stopping monitor=loss,min_delta=100,patience=2"),
                     3);
    assert_int_equal(epochs_of(FIT QUIET
                               "--epochs 9 --early-stopping=monitor=\"loss\",min_delta=100 --out run"),
                     2);
    assert_int_equal(epochs_of(FIT QUIET
                               "--epochs 4 --validation npz:d.npz --early-stopping mode=max,patience=1"),
                     2);
    runs(FIT "--verbose 2 --epochs 9 --early-stopping monitor=loss,min_delta=100");
    assert_non_null(strstr(errors, "early stopping"));
}

static void the_learning_rate_follows_the_options(void **state) {
    (void)state;
    json_t *root = NULL, *rates = NULL;
    /* 90 samples are 3 steps of an epoch. */
    runs(FIT QUIET "--epochs 3 --out run --overwrite "
                   "--lr-schedule PiecewiseConstantDecay(boundaries=[2,5],values=[0.5,0.25,0.125])");
    rates = series(&root, "lr");
    assert_int_equal(json_array_size(rates), 3);
    const double expected[] = {0.5, 0.25, 0.125};
    for (size_t i = 0; i < 3; ++i) assert_true(json_number_value(json_array_get(rates, i)) == expected[i]);
    json_decref(root);
    FILE *log = fopen("run/log.csv", "r");
    char line[128];
    assert_non_null(log);
    assert_non_null(fgets(line, sizeof line, log));
    assert_string_equal(line, "epoch,accuracy,loss,lr\r\n");
    fclose(log);
    runs(FIT QUIET "--epochs 3 --reduce-lr-on-plateau monitor=loss,min_delta=100,patience=1,factor=0.5");
    rates = series(&root, "lr");
    double first = json_number_value(json_array_get(rates, 0));
    assert_true(fabs(json_number_value(json_array_get(rates, 2)) - first / 2) < 1e-6 * first);
    json_decref(root);
}

static void save_best_decides_about_best_h5(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf run"), 0);
    runs(FIT QUIET "--epochs 2 --out run --overwrite");
    assert_false(exists("run/best.h5"));
    runs(FIT QUIET "--epochs 2 --out run --overwrite --save-best loss");
    assert_true(exists("run/best.h5"));
    assert_int_equal(unlink("run/best.h5"), 0);
    runs(FIT QUIET "--epochs 2 --out run --overwrite --save-best val_accuracy --validation-split 0.25");
    assert_true(exists("run/best.h5"));
}

/* With --overwrite, a command that is refused leaves the old run as it is. */
static void a_mistake_costs_no_old_run(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf run"), 0);
    runs(FIT QUIET "--epochs 1 --out run");
    refused(FIT QUIET "--epochs 1 --out run --overwrite --early-stopping monitor=accurac",
            "did you mean 'accuracy'?");
    fails(FIT QUIET "--epochs 1 --out run --overwrite --validation npz:none.npz", "none.npz");
    assert_true(exists("run/model.h5") && exists("run/run.json") && exists("run/checkpoints"));
    runs("fit --resume run --epochs 2 --verbose 0");
}

/* ---- Data ---- */

/* The last samples are the validation data: the same numbers come from two files. */
static void a_validation_split_takes_the_last_samples(void **state) {
    (void)state;
    leat_npz *all = NULL;
    leat_error why = {0};
    leat_tensor x, y;
    char split[1 << 14], once[1 << 14];
    assert_int_equal(leat_npz_open(&all, "d.npz", &why), LEAT_OK);
    assert_int_equal(leat_npz_get(all, "x", &x, &why), LEAT_OK);
    assert_int_equal(leat_npz_get(all, "y", &y, &why), LEAT_OK);
    assert_int_equal(x.shape[0], 90);
    leat_tensor first[] = {x, y}, last[] = {x, y};
    for (int i = 0; i < 2; ++i) {
        size_t row = leat_tensor_bytes(&first[i]) / 90;
        first[i].shape[0] = 62; /* int(90 * (1 - 0.3)), as in Python */
        last[i].shape[0] = 28;
        last[i].data = (char *)last[i].data + 62 * row;
    }
    const char *const names[] = {"x", "y"};
    assert_int_equal(leat_npz_write("first.npz", names, first, 2, &why), LEAT_OK);
    assert_int_equal(leat_npz_write("last.npz", names, last, 2, &why), LEAT_OK);
    leat_npz_close(&all);
    json_t *root = NULL;
    runs(FIT QUIET "--epochs 3 --batch-size 20 --validation-split 0.3");
    (void)series(&root, "loss");
    char *text = json_dumps(json_object_get(root, "history"), JSON_SORT_KEYS);
    snprintf(split, sizeof split, "%s", text);
    free(text);
    json_decref(root);
    runs("fit small.json --train npz:first.npz --validation npz:last.npz --loss categorical_crossentropy "
         "--optimizer adam --metrics accuracy " QUIET "--epochs 3 --batch-size 20");
    assert_int_equal(json_array_size(series(&root, "val_loss")), 3);
    text = json_dumps(json_object_get(root, "history"), JSON_SORT_KEYS);
    snprintf(once, sizeof once, "%s", text);
    free(text);
    json_decref(root);
    assert_string_equal(split, once);
    runs(FIT QUIET
         "--epochs 1 --validation-split 0.3 --workers 2 --use-multiprocessing --validation-steps 1");
}

/* d.npz has one-hot targets.  counted.npz has the classes 0, 1 and 2: 60, 20 and 10 samples. */
static void class_weights_are_listed_or_counted(void **state) {
    (void)state;
    float x[90][4];
    int32_t y[90];
    leat_error why = {0};
    json_t *root = NULL;
    char listed[64], balanced[64];
    for (int i = 0; i < 90; ++i) {
        for (int k = 0; k < 4; ++k) x[i][k] = (float)((i * 7 + k * 3) % 11) / 11;
        y[i] = i % 9 < 6 ? 0 : i % 9 < 8 ? 1 : 2;
    }
    leat_tensor tensors[] = {leat_tensor_view(LEAT_F32, 2, (int64_t[]){90, 4}, x),
                             leat_tensor_view(LEAT_I32, 1, (int64_t[]){90}, y)};
    assert_int_equal(leat_npz_write("counted.npz", (const char *[]){"x", "y"}, tensors, 2, &why), LEAT_OK);
#define SPARSE "fit small.json --train npz:counted.npz --loss sparse_categorical_crossentropy " QUIET
    runs(SPARSE "--class-weight 0:0.5,1:1.5,2:3"); /* 90 / (3 * 60), 90 / (3 * 20), 90 / (3 * 10) */
    snprintf(listed, sizeof listed, "%.12g", json_number_value(json_array_get(series(&root, "loss"), 0)));
    json_decref(root);
    runs(SPARSE "--class-weight balanced");
    snprintf(balanced, sizeof balanced, "%.12g", json_number_value(json_array_get(series(&root, "loss"), 0)));
    json_decref(root);
    assert_string_equal(listed, balanced);
    runs(SPARSE "--class-weight scores=0:0.5,1:1.5,2:3");
    snprintf(listed, sizeof listed, "%.12g", json_number_value(json_array_get(series(&root, "loss"), 0)));
    json_decref(root);
    assert_string_equal(listed, balanced);
    runs(SPARSE);
    snprintf(listed, sizeof listed, "%.12g", json_number_value(json_array_get(series(&root, "loss"), 0)));
    json_decref(root);
    assert_string_not_equal(listed, balanced);
    runs("fit small.json --train npz:counted.npz?onehot=3 --loss categorical_crossentropy " QUIET
         "--class-weight balanced --workers 2 --shuffle samples");
    runs(FIT QUIET "--class-weight balanced --validation-split 0.5");
    fails(SPARSE "--class-weight 0:1,1:2",
          "class_weight must list all classes of the data: class 2 is missing");
    fails(SPARSE "--class-weight 0:1,1:2,2:1,7:1", "class_weight lists class 7");
    fails(SPARSE "--class-weight score=0:1,1:2,2:1", "no output 'score' with a loss; did you mean 'scores'?");
    refused(SPARSE "--class-weight scores=0:1;", "'a=0:1,1:5;b=0:2,1:1'");
}

/* ---- Resuming ---- */

#define ALL                                                                                                  \
    FIT QUIET                                                                                                \
        "--validation-split 0.2 --class-weight balanced --reduce-lr-on-plateau min_delta=100,patience=1 "    \
        "--early-stopping min_delta=100,patience=5,restore_best_weights=true --save-best val_accuracy "

static void read_file(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is missing", path);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* The options are in the record of the run, and the callbacks go on where they were. */
static void a_resumed_run_has_the_options(void **state) {
    (void)state;
    static char whole[1 << 14], parts[1 << 14];
    runs(ALL "--epochs 9 --out run_whole");
    runs(ALL "--epochs 2 --out run_parts");
    runs("fit --resume run_parts --epochs 4 --verbose 0");
    runs("fit --resume run_parts --epochs 9 --verbose 0");
    read_file("run_whole/log.csv", whole, sizeof whole);
    read_file("run_parts/log.csv", parts, sizeof parts);
    assert_string_equal(whole, parts);
    int lines = 0;
    for (const char *c = whole; *c; ++c) lines += *c == '\n';
    assert_int_equal(lines, 7); /* the header, the first epoch, and the 5 epochs of patience */
    assert_int_equal(system("cmp -s run_whole/best.h5 run_parts/best.h5"), 0);
    assert_int_equal(system("cmp -s run_whole/model.h5 run_parts/model.h5"), 0);
}

/* ---- Contradictions ---- */

static void contradictions_exit_with_2(void **state) {
    (void)state;
    refused(FIT "--validation npz:d.npz --validation-split 0.2",
            "--validation and --validation-split exclude each other");
    refused(FIT "--validation-split 20",
            "--validation-split '20': expected a number between 0 and 1, such as 0.2");
    refused(FIT "--validation-split 0", "between 0 and 1");
    refused(FIT "--validation-split 0.2x", "between 0 and 1");
    refused(FIT "--validation-split 0.999", "a share of 0.999 of 90 samples leaves 0 and 90");
    refused("fit small.json --train plugin:" LEAT_PLUGIN_ROWS " --loss mse --validation-split 0.5",
            "this is a sequence of batches alone: use separate validation data");
}

static void mistakes_are_told_before_training(void **state) {
    (void)state;
    refused(
        FIT
        "--lr-schedule CosineDecay(initial_learning_rate=1,decay_steps=9) --reduce-lr-on-plateau patience=1",
        "--lr-schedule and --reduce-lr-on-plateau exclude each other");
    refused(FIT "--save-best loss", "--save-best needs --out");
    refused(FIT "--out run_no --save-best val_loss",
            "give --validation or --validation-split, or --save-best loss");
    refused(FIT "--out run_no --save-best los", "did you mean 'loss'?; it logs loss, accuracy");
    refused(FIT "--early-stopping patience=3",
            "--early-stopping monitors 'val_loss', which needs validation data: give --validation or "
            "--validation-split, or monitor=loss");
    refused(FIT "--validation npz:d.npz --early-stopping patience=3,monitor='val_acc'",
            "--early-stopping monitors 'val_acc', which this training does not log");
    refused(FIT "--validation npz:d.npz --early-stopping monitor=val_accuracyy",
            "did you mean 'val_accuracy'?; it logs loss, accuracy, val_loss, val_accuracy");
    refused(FIT "--reduce-lr-on-plateau patience=3", "--reduce-lr-on-plateau monitors 'val_loss'");
    refused(FIT "--early-stopping patienc=3",
            "EarlyStopping: unknown key 'patienc'; did you mean 'patience'?");
    refused(FIT "--early-stopping 3", "expected key=value, received '3'");
    refused(FIT "--reduce-lr-on-plateau factor=3", "factor: expected a number between 0 and 1");
    refused(FIT "--lr-schedule CosinDecay(decay_steps=3)", "did you mean 'CosineDecay'?");
    refused(FIT "--lr-schedule EarlyStopping(patience=3)",
            "--lr-schedule 'EarlyStopping(patience=3)': expected CosineDecay");
    refused(FIT "--lr-schedule CosineDecay", "CosineDecay: the key 'initial_learning_rate' is missing");
    refused(FIT "--class-weight 0=1",
            "--class-weight '0=1': expected balanced, or classes with weights, such as 0:1,1:5");
    refused(FIT "--class-weight 0:1,", "expected balanced");
    refused(FIT "--class-weight 0:nan", "expected balanced");
    refused(FIT "--validation-steps 3", "--validation-steps needs --validation or --validation-split");
    assert_false(exists("run_no"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(braces_in_a_folder_are_braces),
        cmocka_unit_test(early_stopping_takes_keras_arguments),
        cmocka_unit_test(the_learning_rate_follows_the_options),
        cmocka_unit_test(save_best_decides_about_best_h5),
        cmocka_unit_test(a_mistake_costs_no_old_run),
        cmocka_unit_test(a_validation_split_takes_the_last_samples),
        cmocka_unit_test(class_weights_are_listed_or_counted),
        cmocka_unit_test(a_resumed_run_has_the_options),
        cmocka_unit_test(contradictions_exit_with_2),
        cmocka_unit_test(mistakes_are_told_before_training),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
