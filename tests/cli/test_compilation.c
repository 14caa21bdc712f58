/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on files whose loss, metrics or optimizer leat does not have: what they do without the compilation, and how
 * options replace parts of it. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "data/files.h"
#include "leat/npz.h"

#define FILES LEAT_SOURCE_DIR "/tests/golden/files/"
#define OWN   FILES "open_own.keras "
#define KNOWN FILES "keras3_lstm.keras "

static int leave(void **state) {
    return system("rm -rf run p.npy own.npz known.npz") == 0 ? files_leave(state) : -1;
}

/* Creates own.npz for the model OWN, and known.npz for KNOWN. */
static void write_data(void) {
    static float x[8 * 10], y[8 * 2];
    leat_error error = {0};
    for (int i = 0; i < 80; ++i) x[i] = (float)(i % 7) / 7.0f;
    for (int i = 0; i < 16; ++i) y[i] = (float)(i % 3);
    leat_tensor own[] = {leat_tensor_view(LEAT_F32, 2, (int64_t[]){8, 4}, x),
                         leat_tensor_view(LEAT_F32, 2, (int64_t[]){8, 2}, y)};
    leat_tensor known[] = {leat_tensor_view(LEAT_F32, 3, (int64_t[]){8, 5, 2}, x),
                           leat_tensor_view(LEAT_F32, 2, (int64_t[]){8, 1}, y)};
    const char *const names[] = {"x", "y"};
    assert_int_equal(leat_npz_write("own.npz", names, own, 2, &error), LEAT_OK);
    assert_int_equal(leat_npz_write("known.npz", names, known, 2, &error), LEAT_OK);
}

static void says(const char *text, bool expected) {
    if ((strstr(errors, text) != NULL) != expected) fail_msg("'%s' in: %s", text, errors);
}

/* Predictions and summaries never need the compilation. */
static void predict_and_summary_skip_the_compilation(void **state) {
    (void)state;
    runs("summary " OWN);
    runs("summary " OWN "--plan");
    write_data();
    runs("predict " OWN "--data npz:own.npz --output p.npy");
}

static void commands_that_need_it_name_the_way_out(void **state) {
    (void)state;
    write_data();
    fails("fit " OWN "--train npz:own.npz", "unknown optimizer");
    says("only the file's compilation cannot be used", true);
    says("--no-compile", true);
    says("leat_model", false);
    fails("evaluate " OWN "--data npz:own.npz", "unknown loss 'distant'");
    says("--no-compile", true);
    says("leat_model", false);
    refused("fit " OWN "--train npz:own.npz --no-compile", "--no-compile the loss of the file is left out");
}

static void options_replace_what_is_unknown(void **state) {
    (void)state;
    write_data();
    runs("fit " OWN "--train npz:own.npz --no-compile --loss mse");
    runs("evaluate " OWN "--data npz:own.npz --no-compile --loss mse");
    runs("evaluate " OWN "--data npz:own.npz --loss mse --metrics mae");
    runs("fit " OWN "--train npz:own.npz --loss mse --metrics mae --optimizer adam");
    fails("fit " OWN "--train npz:own.npz --loss mse --optimizer adam", "unknown metric 'nearest'");
    says("--no-compile", true);
}

/* Also with an unknown compilation a file is converted; the new file has none, and the same predictions. */
static void convert_leaves_the_compilation_out(void **state) {
    (void)state;
    static const char *const made[] = {"own.h5", "own.keras"};
    write_data();
    runs("predict " OWN "--data npz:own.npz --output p.npy");
    assert_int_equal(system("mv p.npy before.npy"), 0);
    fails("convert " OWN "own.h5", "--no-compile");
    assert_int_not_equal(access("own.h5", F_OK), 0);
    for (size_t i = 0; i < sizeof made / sizeof made[0]; ++i) {
        char line[256];
        snprintf(line, sizeof line, "convert " OWN "%s --no-compile", made[i]);
        runs(line);
        snprintf(line, sizeof line, "predict %s --data npz:own.npz --output p.npy", made[i]);
        runs(line);
        assert_int_equal(system("cmp p.npy before.npy"), 0);
        snprintf(line, sizeof line, "fit %s --train npz:own.npz", made[i]);
        refused(line, "--loss");
        remove(made[i]);
    }
    runs("convert " KNOWN "known.h5 --no-compile"); /* also a compilation that leat knows is left out */
    refused("fit known.h5 --train npz:known.npz", "--loss");
    remove("known.h5");
    remove("before.npy");
}

/* An option alone keeps the rest of the file's compilation: otherwise a loss would be missing. */
static void options_alone_keep_the_rest(void **state) {
    (void)state;
    write_data();
    runs("fit " KNOWN "--train npz:known.npz --optimizer adam --out run");
    runs("fit " KNOWN "--train npz:known.npz --metrics mae --out run --overwrite");
    assert_non_null(strstr(out, "mean_absolute_error") || strstr(errors, "mae") ? "" : NULL);
    runs("summary run/model.h5 --plan --train");
    runs("evaluate " KNOWN "--data npz:known.npz --metrics mae");
    assert_non_null(strstr(out, "mae"));
    runs("fit " KNOWN "--train npz:known.npz --optimizer "
         "Adam(learning_rate=ExponentialDecay(initial_learning_rate=0.1,decay_steps=2,decay_rate=0.5))");
}

static void weights_come_from_a_file(void **state) {
    (void)state;
    static float x[8 * 5 * 3];
    leat_error error = {0};
    leat_tensor tensor = leat_tensor_view(LEAT_F32, 3, (int64_t[]){8, 5, 3}, x);
    assert_int_equal(leat_npz_write("own.npz", (const char *const[]){"x"}, &tensor, 1, &error), LEAT_OK);
    runs("predict " FILES "open_weights.json --weights " FILES "open_weights.weights.h5 --data npz:own.npz "
         "--output p.npy");
    fails("predict " FILES "open_weights.weights.h5 --data npz:own.npz --output p.npy",
          "the file has weights only");
    says("leat_model", false);
    fails("predict " FILES "open_weights.json --weights " FILES "cnn_weights.h5 --data npz:own.npz "
          "--output p.npy",
          "cnn_weights.h5'");
}

static void a_schedule_is_not_set_by_callbacks(void **state) {
    (void)state;
    write_data();
    fails("fit " FILES "open_pieces.keras --train npz:own.npz --verbose 0 --lr-schedule "
          "CosineDecay(initial_learning_rate=0.1,decay_steps=10)",
          "is the schedule PiecewiseConstantDecay, which cannot be set");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predict_and_summary_skip_the_compilation),
        cmocka_unit_test(commands_that_need_it_name_the_way_out),
        cmocka_unit_test(options_replace_what_is_unknown),
        cmocka_unit_test(convert_leaves_the_compilation_out),
        cmocka_unit_test(options_alone_keep_the_rest),
        cmocka_unit_test(weights_come_from_a_file),
        cmocka_unit_test(a_schedule_is_not_set_by_callbacks),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
