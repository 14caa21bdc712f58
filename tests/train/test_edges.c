/* SPDX-License-Identifier: Apache-2.0 */
/* The edges of training: requests to stop at awkward moments, names that half agree, defaults by NULL, models that are
 * compiled again, many shapes, callbacks after a failure. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/support.h"

static int count_of(const leat_history *history, const char *name) {
    int count = 0;
    leat_history_values(history, name, &count);
    return count;
}

/* ---- stopping ---- */

static leat_status request_at_batch_1(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                                      leat_error *err) {
    (void)user, (void)logs, (void)err;
    if (batch == 1) leat_model_stop_training(leat_training_model(training));
    return LEAT_OK;
}

static leat_status count_call(void *user, leat_training *training, int64_t index, leat_logs *logs,
                              leat_error *err) {
    (void)training, (void)index, (void)logs, (void)err;
    ++*(int *)user;
    return LEAT_OK;
}

static void a_request_ends_validation_and_drops_its_values(void **state) {
    (void)state;
    leat_error err = {0};
    int ends = 0;
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(16, 8), held_out = clusters_of(80, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_callback asks = {.size = sizeof(leat_callback), .on_test_batch_end = request_at_batch_1};
    leat_callback counts = {.size = sizeof(leat_callback), .user = &ends, .on_train_end = count_call};
    leat_fit_options options = quiet_fit_with(5, (leat_callback *[]){&asks, &counts}, 2);
    options.validation = &validation;
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    assert_int_equal(count_of(history, "loss"), 1);
    assert_int_equal(count_of(history, "val_loss"), 0);
    assert_int_equal(ends, 1);
    leat_model_destroy(&model);
    assert_int_equal(count_of(history, "accuracy"),
                     1); /* the history is valid after the model is destroyed */
    leat_history_destroy(&history);
}

static leat_status stop_then_evaluate(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                                      leat_error *err) {
    leat_logs results;
    (void)logs;
    if (batch > 0) return LEAT_OK;
    leat_model_stop_training(leat_training_model(training));
    return leat_model_evaluate_generator(leat_training_model(training), user, NULL, &results, err);
}

static void an_evaluation_in_a_hook_forgets_no_request(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8), one = clusters_of(8, 8);
    leat_sequence sequence = clusters_sequence(&data), other = clusters_sequence(&one);
    leat_callback callback = {.size = sizeof(leat_callback),
                              .user = &other,
                              .on_train_batch_end = stop_then_evaluate};
    leat_fit_options options = quiet_fit_with(5, (leat_callback *[]){&callback}, 1);
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    assert_int_equal(leat_history_verdict(history).steps, 1);
    leat_history_destroy(&history);
    expect_ok(leat_model_fit_generator(model, &other, &options, NULL, &err),
              &err); /* the request does not stop the next fit */
    leat_model_destroy(&model);
}

static leat_status validate_inside(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                                   leat_error *err) {
    leat_logs results = {0};
    (void)user, (void)batch, (void)logs;
    return leat_training_validate(training, &results, err);
}

static void a_hook_of_validation_cannot_validate(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(16, 8), held_out = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_callback callback = {.size = sizeof(leat_callback), .on_test_batch_end = validate_inside};
    leat_fit_options options = quiet_fit_with(1, (leat_callback *[]){&callback}, 1);
    options.validation = &validation;
    assert_int_equal(leat_model_fit_generator(model, &sequence, &options, NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "validation cannot be started in a hook of validation"));
    leat_model_destroy(&model);
}

/* ---- arguments ---- */

typedef struct table {
    float x[12], y[12], w[12];
    leat_array inputs, targets, weights;
    leat_arrays arrays;
} table;

/* 12 samples of y = 2 x. */
static void table_init(table *t) {
    for (int i = 0; i < 12; ++i) {
        t->x[i] = (float)i / 12;
        t->y[i] = 2 * t->x[i];
        t->w[i] = 1;
    }
    t->inputs = (leat_array){.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){12}, t->x)};
    t->targets = (leat_array){.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){12}, t->y)};
    t->weights = (leat_array){.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){12}, t->w)};
    t->arrays = (leat_arrays){&t->inputs, &t->targets, NULL, 1, 1, 0};
}

static leat_status keep_params(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    (void)index, (void)logs, (void)err;
    *(leat_training_params *)user = *leat_training_params_get(training);
    return LEAT_OK;
}

static void params_know_samples_and_batch_size(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_line(0.1);
    leat_training_params params = {0};
    table t;
    table_init(&t);
    leat_callback callback = {.size = sizeof(leat_callback),
                              .user = &params,
                              .on_epoch_begin = keep_params,
                              .on_test_begin = keep_params};
    leat_fit_options options = quiet_fit_with(3, (leat_callback *[]){&callback}, 1);
    expect_ok(leat_model_fit(model, &t.arrays, 5, &options, NULL, &err), &err);
    assert_int_equal(params.samples, 12);
    assert_int_equal(params.batch_size, 5);
    assert_int_equal(params.steps, 3);
    assert_int_equal(params.epochs, 3);
    leat_evaluate_options evaluate = leat_evaluate_options_default();
    evaluate.callbacks = options.callbacks;
    evaluate.callback_count = 1;
    leat_logs logs;
    expect_ok(leat_model_evaluate(model, &t.arrays, 4, &evaluate, &logs, &err), &err);
    assert_int_equal(params.samples, 12);
    assert_int_equal(params.batch_size, 4);
    leat_model_destroy(&model);
}

static void null_options_are_the_defaults(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_line(0.1);
    leat_logs logs;
    leat_predictions *predictions = NULL;
    table t;
    table_init(&t);
    expect_ok(leat_model_fit(model, &t.arrays, 0, NULL, NULL, &err), &err);
    expect_ok(leat_model_evaluate(model, &t.arrays, 0, NULL, &logs, &err), &err);
    expect_ok(leat_model_predict(model, &t.arrays, 0, NULL, &predictions, &err), &err);
    assert_int_equal(leat_predictions_get(predictions, 0).shape[0], 12);
    leat_predictions_destroy(&predictions);
    t.arrays.input_count = 0;
    assert_int_equal(leat_model_fit(model, &t.arrays, 0, NULL, NULL, &err), LEAT_EINVAL);
    assert_int_equal(leat_model_train_on_batch(model, &t.arrays, NULL, &err), LEAT_EINVAL);
    leat_model_destroy(&model);
}

static void steps_beyond_all_numbers_are_no_limit(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_callback asks = {.size = sizeof(leat_callback), .on_train_batch_end = request_at_batch_1};
    leat_fit_options options = quiet_fit_with(INT64_MAX, (leat_callback *[]){&asks}, 1);
    options.steps_per_epoch = INT64_MAX / 2;
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    assert_int_equal(leat_history_verdict(history).steps, 2);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static void a_class_is_a_whole_number(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_line(0.1);
    table t;
    table_init(&t);
    leat_class_weight classes[] = {{0, 3}, {1, 2}};
    leat_fit_options options = quiet_fit_with(1, NULL, 0);
    options.shuffle = LEAT_SHUFFLE_NONE;
    options.class_weight = classes;
    options.class_weight_count = 2;
    assert_int_equal(leat_model_fit(model, &t.arrays, 12, &options, NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "class 0.166667 is missing"));
    t.y[0] = NAN;
    assert_int_equal(leat_model_fit(model, &t.arrays, 12, &options, NULL, &err), LEAT_EINVAL);
    leat_model_destroy(&model);
}

/* ---- names ---- */

/* A model with two inputs, left and right, which are concatenated. */
static leat_model *make_pair(void) {
    leat_error err = {0};
    leat_model *model = NULL;
    expect_ok(
        leat_model_from_json(
            &model,
            "{\"class_name\": \"Model\", \"config\": {\"name\": \"pair\", \"layers\": ["
            "{\"class_name\": \"InputLayer\", \"name\": \"left\", \"inbound_nodes\": [], \"config\": "
            "{\"name\": \"left\", \"batch_input_shape\": [null, 1]}},"
            "{\"class_name\": \"InputLayer\", \"name\": \"right\", \"inbound_nodes\": [], \"config\": "
            "{\"name\": \"right\", \"batch_input_shape\": [null, 1]}},"
            "{\"class_name\": \"Concatenate\", \"name\": \"out\", \"config\": {\"name\": \"out\"},"
            " \"inbound_nodes\": [[[\"left\", 0, 0, {}], [\"right\", 0, 0, {}]]]}],"
            "\"input_layers\": [[\"left\", 0, 0], [\"right\", 0, 0]], \"output_layers\": [[\"out\", 0, 0]]}}",
            &err),
        &err);
    return model;
}

static void tensors_are_matched_by_all_names_or_none(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_pair();
    float five[] = {5}, two[] = {2};
    leat_array inputs[] = {{.name = "right", .tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){1}, five)},
                           {.name = "left", .tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){1}, two)}};
    leat_arrays arrays = {.inputs = inputs, .input_count = 2};
    leat_tensor output;
    expect_ok(leat_model_predict_on_batch(model, &arrays, &output, &err), &err);
    assert_true(((float *)output.data)[0] == 2 && ((float *)output.data)[1] == 5);
    inputs[0].name = "first";
    inputs[1].name = NULL;
    expect_ok(leat_model_predict_on_batch(model, &arrays, &output, &err), &err);
    assert_true(((float *)output.data)[0] == 5 && ((float *)output.data)[1] == 2);
    inputs[1].name = "left";
    assert_int_equal(leat_model_predict_on_batch(model, &arrays, &output, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "'right' is missing"));
    leat_model_destroy(&model);
}

/* ---- models that change ---- */

static void compiling_anew_makes_new_plans(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1), *other = make_classifier(2);
    clusters data = clusters_of(40, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit_with(1, NULL, 0);
    leat_compile_options compile = leat_compile_options_default();
    compile.optimizer = "sgd";
    compile.loss = "categorical_crossentropy";
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    expect_ok(leat_model_set_trainable(model, "hidden", false, &err), &err);
    expect_ok(leat_model_compile(model, &compile, &err), &err);
    uint64_t untouched = weights_hash(other);
    leat_tensor hidden = leat_model_weight(model, 0);
    float before = *(float *)hidden.data;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    assert_true(*(float *)hidden.data == before); /* frozen, and its view still valid: compiled before */
    assert_true(weights_hash(other) == untouched);
    expect_ok(leat_model_set_trainable(model, "hidden", true, &err), &err);
    expect_ok(leat_model_compile(model, &compile, &err), &err);
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    assert_false(*(float *)leat_model_weight(model, 0).data == before);
    leat_model_destroy(&model);
    expect_ok(leat_model_fit_generator(other, &sequence, &options, NULL, &err), &err);
    leat_model_destroy(&other);
}

static void many_batch_sizes_cost_no_more_than_some(void **state) {
    (void)state;
    enum { most = 150 };
    leat_error err = {0};
    leat_model *model = make_line(0.1);
    *(float *)leat_model_weight(model, 0).data = 3;
    float x[most];
    for (int i = 0; i < most; ++i) x[i] = (float)i;
    for (int64_t round = 0; round < 2; ++round)
        for (int64_t size = 1; size <= most; ++size) {
            leat_array inputs = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){size}, x)};
            leat_arrays arrays = {.inputs = &inputs, .input_count = 1};
            leat_tensor output;
            expect_ok(leat_model_predict_on_batch(model, &arrays, &output, &err), &err);
            assert_int_equal(output.shape[0], size);
            assert_true(((float *)output.data)[size - 1] == 3 * x[size - 1]);
        }
    leat_model_destroy(&model);
}

static void more_metrics_than_logs_hold_are_refused(void **state) {
    (void)state;
    leat_error err = {0};
    char metrics[8192] = "[";
    for (int i = 0; i < 40; ++i)
        snprintf(metrics + strlen(metrics), sizeof metrics - strlen(metrics),
                 "%s{\"class_name\": \"MeanSquaredError\", \"config\": {\"name\": \"m%d\"}}", i ? "," : "",
                 i);
    strcat(metrics, "]");
    leat_model *model = make_line(0.1);
    leat_compile_options compile = leat_compile_options_default();
    compile.loss = "mse";
    compile.metrics = metrics;
    expect_ok(leat_model_compile(model, &compile, &err), &err);
    table t;
    table_init(&t);
    leat_sequence validation;
    expect_ok(leat_arrays_open(&validation, sizeof validation, &t.arrays, NULL, &err), &err);
    leat_fit_options options = quiet_fit_with(1, NULL, 0);
    expect_ok(leat_model_fit(model, &t.arrays, 4, &options, NULL, &err), &err);
    options.validation = &validation;
    assert_int_equal(leat_model_fit(model, &t.arrays, 4, &options, NULL, &err), LEAT_ENOTSUP);
    leat_sequence_destroy(&validation);
    leat_model_destroy(&model);
}

/* ---- callbacks ---- */

static void a_csv_logger_survives_a_failed_fit(void **state) {
    (void)state;
    leat_error err = {0};
    char path[] = "/tmp/leat-csv-XXXXXX", text[256] = "";
    close(mkstemp(path));
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_callback tested;
    expect_ok(leat_csv_logger_create(&tested, sizeof tested, path, NULL, false, &err), &err);
    leat_fit_options options = quiet_fit_with(1, (leat_callback *[]){&tested}, 1);
    data.fail_at = 1;
    assert_int_equal(leat_model_fit_generator(model, &sequence, &options, NULL, &err), LEAT_EUSER);
    data.fail_at = -1;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    leat_callback_destroy(&tested);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_ptr_equal(strstr(text, "epoch,accuracy,loss\r\n0,"), text);
    unlink(path);
    leat_model_destroy(&model);
}

static void checkpoints_refuse_odd_formats(void **state) {
    (void)state;
    leat_error err = {0};
    const char *const wrong[] = {"/tmp/leat-{loss:d}.h5", "/tmp/leat-{epoch:9999d}.h5",
                                 "/tmp/leat-{loss:.9s}.h5", "/tmp/leat-{loss:1234567f}.h5"};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        leat_model_checkpoint_options checkpoint = leat_model_checkpoint_options_default();
        leat_callback tested;
        checkpoint.filepath = wrong[i];
        expect_ok(leat_model_checkpoint_create(&tested, sizeof tested, &checkpoint, &err), &err);
        leat_fit_options options = quiet_fit_with(1, (leat_callback *[]){&tested}, 1);
        assert_int_equal(leat_model_fit_generator(model, &sequence, &options, NULL, &err), LEAT_EINVAL);
        assert_non_null(strstr(err.message, "filepath: "));
        leat_callback_destroy(&tested);
    }
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_ends_validation_and_drops_its_values),
        cmocka_unit_test(an_evaluation_in_a_hook_forgets_no_request),
        cmocka_unit_test(a_hook_of_validation_cannot_validate),
        cmocka_unit_test(params_know_samples_and_batch_size),
        cmocka_unit_test(null_options_are_the_defaults),
        cmocka_unit_test(steps_beyond_all_numbers_are_no_limit),
        cmocka_unit_test(a_class_is_a_whole_number),
        cmocka_unit_test(tensors_are_matched_by_all_names_or_none),
        cmocka_unit_test(compiling_anew_makes_new_plans),
        cmocka_unit_test(many_batch_sizes_cost_no_more_than_some),
        cmocka_unit_test(more_metrics_than_logs_hold_are_refused),
        cmocka_unit_test(a_csv_logger_survives_a_failed_fit),
        cmocka_unit_test(checkpoints_refuse_odd_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
