/* SPDX-License-Identifier: Apache-2.0 */
/* Files that older builds of leat wrote (tests/golden/older) open, predict what the build predicted, and train on as it
 * did: models of all formats, files of weights, and the folder of a run with its checkpoint. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "data/files.h"
#include "support/npz.h"

/* The predictions are probabilities; kernels of other instruction sets round differently. */
static const double predicts = 1e-6, trains = 1e-5;

/* Enters an empty folder with a copy of the files of older builds in older/. */
static int enter_with_older(void **state) {
    if (files_enter(state) != 0) return -1;
    return system("cp -r '" LEAT_SOURCE_DIR "/tests/golden/older' older && chmod -R u+w older");
}

static int leave_older(void **state) {
    if (system("rm -rf older run run-* p.npz data.npz") != 0) return -1;
    return files_leave(state);
}

static void expect_same(const char *what, const char *path, double limit) {
    leat_npz *got = NULL, *want = NULL;
    leat_error error = {0};
    if (leat_npz_open(&got, "p.npz", &error) != LEAT_OK || leat_npz_open(&want, path, &error) != LEAT_OK)
        fail_msg("%s: %s", what, error.message);
    const leat_tensor a = test_npz_get(got, "out"), b = test_npz_get(want, "out");
    assert_int_equal(leat_tensor_count(&a), leat_tensor_count(&b));
    const float *x = a.data, *y = b.data;
    for (int64_t i = 0; i < leat_tensor_count(&a); ++i)
        if (!(fabs((double)x[i] - (double)y[i]) <= limit))
            fail_msg("%s: prediction %d is %.9g, expected %.9g of '%s'", what, (int)i, (double)x[i],
                     (double)y[i], path);
    leat_npz_close(&got);
    leat_npz_close(&want);
}

/* Checks what a model, or net.json with weights, predicts; `wanted` is the name of the recorded predictions. */
static void check_predictions(const char *commit, const char *arguments, const char *wanted, double limit) {
    char line[512], path[256];
    snprintf(line, sizeof line, "predict %s --data npz:older/data.npz --output p.npz --verbose 0", arguments);
    snprintf(path, sizeof path, "older/%s/%s.npz", commit, wanted);
    runs(line);
    expect_same(arguments, path, limit);
}

/* Trains a model for two epochs, as the older build did, and checks the predictions. */
static void check_training(const char *commit, const char *model, const char *wanted) {
    char line[512];
    snprintf(
        line, sizeof line,
        "fit %s --train npz:older/data.npz --no-shuffle --batch-size 4 --epochs 2 --verbose 0 --out run-on "
        "--overwrite",
        model);
    runs(line);
    check_predictions(commit, "run-on/model.h5", wanted, trains);
}

static void check_model(const char *commit, const char *name, const char *y, const char *after) {
    char path[128];
    snprintf(path, sizeof path, "older/%s/%s", commit, name);
    check_predictions(commit, path, y, predicts);
    check_training(commit, path, after);
}

static void check_weights(const char *commit, const char *architecture, const char *name) {
    char arguments[256];
    snprintf(arguments, sizeof arguments, "older/%s --weights older/%s/%s", architecture, commit, name);
    check_predictions(commit, arguments, "adam.y", predicts);
}

static const char first[] = "56efe59c", before_gpus[] = "16610067", before_ranks[] = "6f4fd8b0";

static void models_of_older_builds_go_on(void **state) {
    (void)state;
    static const char *const commits[] = {first, before_gpus, before_ranks};
    for (size_t i = 0; i < sizeof commits / sizeof commits[0]; ++i) {
        check_model(commits[i], "adam.h5", "adam.y", "adam.after");
        check_model(commits[i], "sgd.h5", "sgd.y", "sgd.after");
    }
    check_model(before_ranks, "heads.h5", "heads.y", "heads.after");
    check_model(before_gpus, "adam.keras", "adam.y", "adam.keras.after");
    check_model(before_ranks, "adam.keras", "adam.y", "adam.keras.after");
}

static void weights_of_older_builds_are_read(void **state) {
    (void)state;
    check_weights(before_gpus, "net.json", "adam.weights.h5");
    check_weights(before_gpus, "16610067/adam.json", "adam.weights.h5");
    check_weights(before_ranks, "net.json", "adam.weights.h5");
    check_weights(before_ranks, "6f4fd8b0/adam.json", "adam.safetensors");
}

/* Copies the folder of a run to run/, with this folder as its working directory. */
static void take_run(const char *commit) {
    char line[512];
    snprintf(line, sizeof line,
             "rm -rf run && cp -r older/%s/run run && cp older/data.npz . && sed -i \"s,@HERE@,$(pwd),g\" "
             "run/run.json",
             commit);
    assert_int_equal(system(line), 0);
}

static void runs_of_older_builds_are_resumed(void **state) {
    (void)state;
    static const char *const commits[] = {before_gpus, before_ranks};
    for (size_t i = 0; i < sizeof commits / sizeof commits[0]; ++i) {
        take_run(commits[i]);
        runs("fit --resume run --epochs 4 --verbose 0 --data-changed");
        check_predictions(commits[i], "run/model.h5", "run.after", trains);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_of_older_builds_go_on),
        cmocka_unit_test(weights_of_older_builds_are_read),
        cmocka_unit_test(runs_of_older_builds_are_resumed),
    };
    return cmocka_run_group_tests(tests, enter_with_older, leave_older);
}
