/* SPDX-License-Identifier: Apache-2.0 */
/* What no program means to pass: pointers that are NULL, sizes and types that do not exist.  Each is an error with a name. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "leat/leat.h"
#include "train/support.h"

static leat_error err;

/* The call is refused as LEAT_EINVAL, and the message says of what. */
#define expect_null(call, name)                                                                              \
    do {                                                                                                     \
        memset(&err, 0, sizeof err);                                                                         \
        assert_int_equal(call, LEAT_EINVAL);                                                                 \
        assert_non_null(strstr(err.message, name " is NULL"));                                               \
    } while (0)

#define expect_refusal(call, status)                                                                         \
    do {                                                                                                     \
        memset(&err, 0, sizeof err);                                                                         \
        assert_int_equal(call, status);                                                                      \
        assert_int_not_equal(err.message[0], 0);                                                             \
    } while (0)

enum { SAMPLES = 8 };

static float x[SAMPLES][4], y[SAMPLES][3];

static const leat_arrays *points(void) {
    static leat_array in, out;
    static leat_arrays all;
    in.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 4}, x);
    out.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 3}, y);
    all = (leat_arrays){.inputs = &in, .input_count = 1, .targets = &out, .target_count = 1};
    return &all;
}

static void models_without_arguments(void **state) {
    leat_model *model = make_classifier(1), *none = NULL;
    leat_builder *builder = NULL;
    char *text = NULL;
    (void)state;
    expect_null(leat_builder_create(NULL, &err), "out");
    expect_null(leat_model_create(&none, NULL, NULL, 0, NULL, 0, &err), "builder");
    expect_ok(leat_builder_create(&builder, &err), &err);
    expect_null(leat_model_create(NULL, &builder, NULL, 0, NULL, 0, &err), "out");
    assert_null(builder);
    expect_null(leat_model_load(&none, NULL, &err), "path");
    expect_null(leat_model_load(NULL, "m.h5", &err), "out");
    expect_null(leat_model_from_json(&none, NULL, &err), "json");
    expect_null(leat_model_save(model, NULL, true, &err), "path");
    expect_null(leat_model_save(NULL, "m.h5", true, &err), "model");
    expect_null(leat_model_save_weights(model, NULL, &err), "path");
    expect_null(leat_model_load_weights(model, NULL, false, &err), "path");
    expect_null(leat_model_compile(model, NULL, &err), "options");
    expect_null(leat_model_copy_weights(model, NULL, &err), "from");
    expect_null(leat_model_initialize(NULL, 1, &err), "model");
    expect_null(leat_model_set_trainable(model, NULL, false, &err), "layer");
    expect_null(leat_model_set_dtype_policy(model, NULL, &err), "policy");
    expect_null(leat_model_summary(NULL, &text, &err), "model");
    expect_null(leat_model_to_json(model, NULL, &err), "out");
    expect_null(leat_model_plan_summary(model, NULL, NULL, &err), "out");
    assert_null(leat_model_state(model, NULL, 0).data);
    leat_model_destroy(&model);
}

/* A network keeps its first error. */
static void networks_without_arguments(void **state) {
    (void)state;
    for (int i = 0; i < 3; ++i) {
        leat_builder *builder = NULL;
        leat_model *model = NULL;
        expect_ok(leat_builder_create(&builder, &err), &err);
        leat_node *input = leat_input(builder, i == 0 ? NULL : (int64_t[]){4}, 1);
        leat_node *output = i == 1 ? leat_layer(input, NULL, NULL) : leat_merge(NULL, 2, "Add", NULL);
        assert_null(output);
        expect_refusal(leat_model_create(&model, &builder, &input, 1, &output, 1, &err), LEAT_EINVAL);
        assert_null(model);
    }
}

static void training_without_arguments(void **state) {
    leat_model *model = make_classifier(1);
    leat_sequence sequence;
    leat_predictions *predictions = NULL;
    leat_arrays arrays = *points();
    leat_logs logs;
    (void)state;
    expect_null(leat_model_fit(NULL, &arrays, 4, NULL, NULL, &err), "model");
    expect_null(leat_model_fit(model, NULL, 4, NULL, NULL, &err), "arrays");
    expect_null(leat_model_fit_generator(model, NULL, NULL, NULL, &err), "sequence");
    expect_null(leat_model_evaluate(model, NULL, 4, NULL, &logs, &err), "arrays");
    expect_null(leat_model_evaluate(model, &arrays, 4, NULL, NULL, &err), "logs");
    expect_null(leat_model_predict(model, NULL, 4, NULL, &predictions, &err), "arrays");
    expect_null(leat_model_predict(model, &arrays, 4, NULL, NULL, &err), "out");
    expect_null(leat_model_train_on_batch(model, NULL, NULL, &err), "arrays");
    expect_null(leat_model_predict_on_batch(model, &arrays, NULL, &err), "outputs");
    expect_null(leat_arrays_open(NULL, &arrays, NULL, &err), "out");
    expect_null(leat_source_open(&sequence, NULL, NULL, &err), "spec");
    arrays.inputs = NULL;
    expect_refusal(leat_model_fit(model, &arrays, 4, NULL, NULL, &err), LEAT_EINVAL);
    expect_refusal(leat_model_train_on_batch(model, &arrays, NULL, &err), LEAT_EINVAL);
    leat_array hollow = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 4}, NULL)};
    arrays.inputs = &hollow;
    expect_refusal(leat_model_fit(model, &arrays, 4, NULL, NULL, &err), LEAT_EINVAL);
    expect_refusal(leat_model_train_on_batch(model, &arrays, NULL, &err), LEAT_EINVAL);
    leat_model_destroy(&model);
}

static void options_out_of_range(void **state) {
    leat_model *model = make_classifier(1);
    leat_fit_options fit = quiet_fit(1);
    leat_evaluate_options evaluation = leat_evaluate_options_default();
    leat_logs logs;
    (void)state;
    fit.threads = -1;
    expect_refusal(leat_model_fit(model, points(), 4, &fit, NULL, &err), LEAT_EINVAL);
    fit.threads = 100000;
    expect_refusal(leat_model_fit(model, points(), 4, &fit, NULL, &err), LEAT_EINVAL);
    fit = quiet_fit(-1);
    expect_refusal(leat_model_fit(model, points(), 4, &fit, NULL, &err), LEAT_EINVAL);
    fit = quiet_fit(1);
    fit.callback_count = evaluation.callback_count = 1;
    expect_null(leat_model_fit(model, points(), 4, &fit, NULL, &err), "callback 0");
    expect_null(leat_model_evaluate(model, points(), 4, &evaluation, &logs, &err), "callback 0");
    leat_model_destroy(&model);
}

static void predictors_without_arguments(void **state) {
    leat_model *model = make_classifier(1);
    leat_predictor *predictor = NULL;
    leat_predictor_options options = leat_predictor_options_default();
    leat_tensor input = leat_tensor_view((leat_dtype)77, 2, (int64_t[]){1, 4}, NULL);
    int64_t many[LEAT_MAX_RANK + 2] = {1, 4, 1, 1, 1, 1, 1, 1, 1, 1};
    (void)state;
    expect_null(leat_predictor_create(&predictor, NULL, NULL, &err), "model");
    expect_null(leat_predictor_create(NULL, model, NULL, &err), "out");
    expect_null(leat_predictor_run(NULL, NULL, NULL, &err), "p");
    expect_null(leat_predictor_sync(NULL, &err), "p");
    expect_null(leat_model_publish(NULL, &err), "model");
    options.inputs = &input;
    expect_refusal(leat_predictor_create(&predictor, model, &options, &err), LEAT_EDTYPE);
    input = leat_tensor_view(LEAT_F32, LEAT_MAX_RANK + 2, many, NULL);
    expect_refusal(leat_predictor_create(&predictor, model, &options, &err), LEAT_ESHAPE);
    options = leat_predictor_options_default();
    options.batch_size = INT64_MAX;
    expect_refusal(leat_predictor_create(&predictor, model, &options, &err), LEAT_ENOMEM);
    options.batch_size = 1;
    options.threads = 100000;
    expect_refusal(leat_predictor_create(&predictor, model, &options, &err), LEAT_EINVAL);
    leat_model_destroy(&model);
}

static void ends_take_null(void **state) {
    (void)state;
    leat_builder_destroy(NULL);
    leat_model_destroy(NULL);
    leat_predictor_destroy(NULL);
    leat_history_destroy(NULL);
    leat_predictions_destroy(NULL);
    leat_registry_destroy(NULL);
    leat_npz_close(NULL);
    leat_sequence_destroy(NULL);
    leat_callback_destroy(NULL);
    leat_string_free(NULL);
    assert_int_equal(leat_feed_close(NULL), 0);
}

/* A misspelt cap must not pass for none: whoever sets it wants to know what that instruction set gives. */
static void unknown_cap_is_refused(void **state) {
    leat_model *model = make_classifier(1);
    leat_fit_options fit = quiet_fit(1);
    (void)state;
    setenv("LEAT_MAX_ISA", "AVX2", 1);
    expect_refusal(leat_model_fit(model, points(), 4, &fit, NULL, &err), LEAT_EINVAL);
    assert_non_null(
        strstr(err.message, "LEAT_MAX_ISA: expected base, avx2, avx512 or avx512_bf16, received 'AVX2'"));
    setenv("LEAT_MAX_ISA", "", 1);
    expect_ok(leat_model_fit(model, points(), 4, &fit, NULL, &err), &err);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_without_arguments),   cmocka_unit_test(models_without_arguments),
        cmocka_unit_test(training_without_arguments),   cmocka_unit_test(options_out_of_range),
        cmocka_unit_test(predictors_without_arguments), cmocka_unit_test(ends_take_null),
        cmocka_unit_test(unknown_cap_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
