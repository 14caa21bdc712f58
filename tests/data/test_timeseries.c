/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of time series, compared with those of Keras 2.3.1 and Keras 3 that tests/golden/record_timeseries.py has
 * recorded. */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "data/files.h"
#include "leat/combine.h"
#include "leat/npz.h"
#include "leat/source.h"

enum { ROWS = 50, MOST = 4096 };

static int enter(void **state) {
    static int32_t x[ROWS], y[ROWS];
    if (files_enter(state) != 0) return -1;
    for (int i = 0; i < ROWS; ++i) x[i] = i, y[i] = 1000 + i;
    leat_tensor tensors[] = {leat_tensor_view(LEAT_I32, 1, (int64_t[]){ROWS}, x),
                             leat_tensor_view(LEAT_I32, 1, (int64_t[]){ROWS}, y)};
    return leat_npz_write("series.npz", (const char *[]){"x", "y"}, tensors, 2, NULL) == LEAT_OK ? 0 : -1;
}

static leat_sequence opened(const char *spec, int64_t batch_size) {
    leat_sequence s;
    leat_error err = {0};
    leat_source_options options = {.size = sizeof options, .batch_size = batch_size};
    if (leat_source_open(&s, sizeof s, spec, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    return s;
}

/* Writes the SPEC with the arguments that Keras was called with. */
static void write_spec(char *out, size_t size, json_t *one_case) {
    const char *key;
    json_t *value;
    int length = snprintf(out, size, "%s(npz:series.npz; squeeze=true",
                          json_string_value(json_object_get(one_case, "function")));
    json_object_foreach(json_object_get(one_case, "arguments"), key, value) {
        if (json_is_true(value))
            length += snprintf(out + length, size - (size_t)length, "; %s=true", key);
        else
            length += snprintf(out + length, size - (size_t)length, "; %s=%lld", key,
                               (long long)json_integer_value(value));
    }
    snprintf(out + length, size - (size_t)length, ")");
}

static void compare_batch(const leat_batch *batch, json_t *one_case, size_t first, const char *spec) {
    json_t *windows = json_object_get(one_case, "windows"), *targets = json_object_get(one_case, "targets");
    const int32_t *x = batch->tensors[0].data, *y = batch->tensors[1].data;
    for (size_t i = 0; i < (size_t)batch->size; ++i) {
        json_t *window = json_array_get(windows, first + i);
        const size_t length = json_array_size(window);
        for (size_t k = 0; k < length; ++k)
            if (x[i * length + k] != json_integer_value(json_array_get(window, k)))
                fail_msg("%s: window %zu, time step %zu: %d", spec, first + i, k, (int)x[i * length + k]);
        assert_int_equal(y[i], json_integer_value(json_array_get(targets, first + i)));
    }
}

static void compare_case(json_t *one_case, int64_t batch_size) {
    static int32_t x[MOST], y[MOST];
    char spec[256];
    write_spec(spec, sizeof spec, one_case);
    leat_sequence s = opened(spec, batch_size);
    json_t *batches = json_object_get(one_case, "batches"), *windows = json_object_get(one_case, "windows");
    const size_t length = json_array_size(json_array_get(windows, 0));
    size_t first = 0;
    assert_int_equal(s.length(s.user), json_array_size(batches));
    assert_int_equal(s.samples(s.user), json_array_size(windows));
    assert_int_equal(s.spec.tensors[0].rank, 1);
    assert_int_equal(s.spec.tensors[0].shape[0], length);
    for (size_t i = 0; i < json_array_size(batches); ++i) {
        leat_batch batch = {.size = s.spec.batch_size,
                            .tensor_count = 2,
                            .tensors = {{.data = x}, {.data = y}}};
        leat_rng rng = leat_rng_for(0, 0, i);
        leat_error err = {0};
        if (s.get(s.user, (int64_t)i, &rng, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
        assert_int_equal(batch.size, json_integer_value(json_array_get(batches, i)));
        compare_batch(&batch, one_case, first, spec);
        first += (size_t)batch.size;
    }
    leat_sequence_destroy(&s);
}

static void compare_record(const char *name, size_t least) {
    char path[512];
    json_error_t error;
    snprintf(path, sizeof path, LEAT_SOURCE_DIR "/tests/golden/timeseries/%s.json", name);
    json_t *record = json_load_file(path, 0, &error), *cases = json_object_get(record, "cases");
    assert_non_null(record);
    assert_true(json_array_size(cases) >= least);
    for (size_t i = 0; i < json_array_size(cases); ++i)
        compare_case(json_array_get(cases, i), json_integer_value(json_object_get(record, "batch_size")));
    json_decref(record);
}

static void windows_are_those_of_the_generator_of_keras_2(void **state) {
    (void)state;
    compare_record("keras-2.3.1", 9);
}

static void windows_are_those_of_the_data_set_of_keras_3(void **state) {
    (void)state;
    compare_record("keras-3", 8);
}

static void rows_of_several_features_get_a_dimension_of_time(void **state) {
    (void)state;
    static float rows[10][3], targets[10];
    static float x[MOST], y[MOST];
    for (int i = 0; i < 10; ++i) {
        for (int k = 0; k < 3; ++k) rows[i][k] = (float)(10 * i + k);
        targets[i] = (float)i;
    }
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){10, 3}, rows)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){10}, targets)};
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_window_options options = leat_window_options_default();
    leat_sequence series, s;
    leat_error err = {0};
    options.length = 4;
    options.target = 5;
    assert_int_equal(leat_arrays_open(&series, sizeof series, &arrays, NULL, &err), LEAT_OK);
    if (leat_sequence_windows(&series, &options, &s, sizeof s, &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_null(series.user);
    assert_int_equal(s.samples(s.user), 5);
    assert_int_equal(s.spec.tensors[0].rank, 2);
    leat_batch batch = {.size = 2, .tensor_count = 2, .tensors = {{.data = x}, {.data = y}}};
    leat_rng rng = leat_rng_for(0, 0, 0);
    assert_int_equal(s.get_samples(s.user, (int64_t[]){4, 1}, 2, &rng, &batch, &err), LEAT_OK);
    assert_true(x[0] == 40 && x[11] == 72 && x[12] == 10 && x[23] == 42);
    assert_true(y[0] == 9 && y[1] == 6);
    leat_sequence_destroy(&s);
}

static void what_does_not_fit_is_an_error(void **state) {
    (void)state;
    static const struct {
        const char *spec, *text;
        leat_status status;
    } cases[] = {
        {"timeseries(npz:series.npz; sequence_length=51)", "no window fits", LEAT_ESHAPE},
        {"timeseries(npz:series.npz; sequence_length=5; start_index=50)", "no window fits", LEAT_ESHAPE},
        {"timeseries(npz:series.npz; sequence_length=0)", "at least 1", LEAT_EINVAL},
        {"timeseries(npz:series.npz; length=5)", "has no option 'length'", LEAT_EINVAL},
        {"timeseries(npz:series.npz)", "sequence_length=N", LEAT_EINVAL},
        {"timeseries_generator(npz:series.npz; length=5; reverse=yes)", "true or false", LEAT_EINVAL},
        {"timeseries(npz:series.npz; sequence_length=9999999999999999; sampling_rate=99999)",
         "no window fits", LEAT_ESHAPE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        leat_sequence s;
        leat_error err = {0};
        assert_int_equal(leat_source_open(&s, sizeof s, cases[i].spec, NULL, &err), cases[i].status);
        if (!strstr(err.message, cases[i].text)) fail_msg("%s: %s", cases[i].spec, err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_those_of_the_generator_of_keras_2),
        cmocka_unit_test(windows_are_those_of_the_data_set_of_keras_3),
        cmocka_unit_test(rows_of_several_features_get_a_dimension_of_time),
        cmocka_unit_test(what_does_not_fit_is_an_error),
    };
    return cmocka_run_group_tests(tests, enter, files_leave);
}
