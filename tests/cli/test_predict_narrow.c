/* SPDX-License-Identifier: Apache-2.0 */
/* `leat predict --weights-format`: predictions with smaller weights, and what it says of their difference. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/command.h"
#include "data/files.h"
#include "leat/npz.h"

/* 4 numbers to 16 units, 3 classes and a number. */
static const char wide[] =
    "{\"class_name\": \"Model\", \"config\": {\"name\": \"wide\", \"layers\": ["
    "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"inbound_nodes\": [], "
    "\"config\": {\"name\": \"x\", \"batch_input_shape\": [null, 4]}},"
    "{\"class_name\": \"Dense\", \"name\": \"hidden\", \"inbound_nodes\": [[[\"x\", 0, 0, {}]]], "
    "\"config\": {\"name\": \"hidden\", \"units\": 16, \"activation\": \"tanh\"}},"
    "{\"class_name\": \"Dense\", \"name\": \"scores\", \"inbound_nodes\": [[[\"hidden\", 0, 0, {}]]], "
    "\"config\": {\"name\": \"scores\", \"units\": 3, \"activation\": \"softmax\"}},"
    "{\"class_name\": \"Dense\", \"name\": \"value\", \"inbound_nodes\": [[[\"hidden\", 0, 0, {}]]], "
    "\"config\": {\"name\": \"value\", \"units\": 1}}],"
    "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"scores\", 0, 0], [\"value\", 0, 0]]}}";

static const char stateful[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["
    "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"steps\", \"batch_input_shape\": [30, 4], "
    "\"target_shape\": [2, 2]}},"
    "{\"class_name\": \"LSTM\", \"config\": {\"name\": \"cell\", \"units\": 16, \"stateful\": true}}]}}";

static int leave(void **state) {
    return system("rm -f f32.npz bf16.npz int8.npz") == 0 ? files_leave(state) : -1;
}

static double member(const json_t *object, const char *output, const char *name) {
    const json_t *number =
        json_object_get(json_object_get(json_object_get(object, "differences"), output), name);
    if (!json_is_number(number)) fail_msg("no number '%s' of '%s' in: %s", name, output, out);
    return json_number_value(number);
}

/* Returns the largest difference of two arrays of the same shape. */
static double distance(const char *a_path, const char *b_path, const char *name, int64_t samples) {
    leat_npz *a_file = NULL, *b_file = NULL;
    leat_tensor a, b;
    double largest = 0;
    assert_int_equal(leat_npz_open(&a_file, a_path, NULL), LEAT_OK);
    assert_int_equal(leat_npz_open(&b_file, b_path, NULL), LEAT_OK);
    assert_int_equal(leat_npz_get(a_file, name, &a, NULL), LEAT_OK);
    assert_int_equal(leat_npz_get(b_file, name, &b, NULL), LEAT_OK);
    assert_int_equal(a.shape[0], samples);
    assert_int_equal(leat_tensor_count(&a), leat_tensor_count(&b));
    for (int64_t i = 0; i < leat_tensor_count(&a); ++i)
        largest = fmax(largest, fabs((double)((float *)a.data)[i] - (double)((float *)b.data)[i]));
    leat_npz_close(&a_file);
    leat_npz_close(&b_file);
    return largest;
}

/* The difference that the command tells is the one between the files, and it is not 0. */
static void differences_are_those_of_the_files(void **state) {
    (void)state;
    const char *formats[] = {"bf16", "int8"};
    write_text("wide.json", wide);
    runs("predict wide.json --data npz:d.npz --output f32.npz --weights-format f32 --verbose 0");
    for (int i = 0; i < 2; ++i) {
        char line[256], path[16];
        snprintf(path, sizeof path, "%s.npz", formats[i]);
        snprintf(line, sizeof line,
                 "predict wide.json --data npz:d.npz --output %s --weights-format %s --json --batch-size 7",
                 path, formats[i]);
        runs(line);
        json_t *told = json_loads(out, 0, NULL);
        assert_string_equal(json_string_value(json_object_get(told, "weights_format")), formats[i]);
        const double scores = member(told, "scores", "largest"), value = member(told, "value", "largest");
        assert_true(value > 1e-7 && value < 0.05);
        assert_true(scores > 1e-8 && scores < 0.05);
        assert_true(member(told, "value", "mean") <= value);
        assert_true(fabs(distance("f32.npz", path, "scores", 90) - scores) < 1e-6);
        assert_true(fabs(distance("f32.npz", path, "value", 90) - value) < 1e-6);
        assert_true(member(told, "scores", "rows") == 90);
        assert_true(member(told, "scores", "other_choices") <= 90);
        json_decref(told);
        assert_non_null(strstr(errors, "value: "));
        assert_non_null(strstr(errors, "weights change predictions by"));
        assert_non_null(strstr(errors, "of 90 rows have their largest number at another place"));
        assert_non_null(strstr(errors, "a sample takes"));
    }
}

static void steps_limit_the_samples(void **state) {
    (void)state;
    write_text("wide.json", wide);
    runs(
        "predict wide.json --data npz:d.npz --output bf16.npz --weights-format bf16 --batch-size 8 --steps 2 "
        "--verbose 0 --workers 2");
    assert_string_equal(errors, "");
    assert_true(distance("bf16.npz", "bf16.npz", "scores", 16) == 0);
}

static void what_cannot_be_done_is_refused(void **state) {
    (void)state;
    write_text("wide.json", wide);
    write_text("stateful.json", stateful);
#define PREDICT(model) "predict " model " --data npz:d.npz?inputs=x --output bf16.npz --weights-format "
    refused(PREDICT("wide.json") "fp8", "--weights-format");
    refused(PREDICT("wide.json") "bf16 --device cuda", "--device");
    fails(PREDICT("small.json") "bf16", "no layer of the model can use it");
    fails(PREDICT("stateful.json") "bf16 --batch-size 30", "stateful");
    refused("evaluate wide.json --data npz:d.npz --weights-format bf16", "unknown option");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_those_of_the_files),
        cmocka_unit_test(steps_limit_the_samples),
        cmocka_unit_test(what_cannot_be_done_is_refused),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
