/* SPDX-License-Identifier: Apache-2.0 */
/* What a fit with ranks refuses, with one process that computes as a rank does. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "leat/dist.h"
#include "leat/train.h"

enum { SAMPLES = 20 };

#define DENSE                                                                                                \
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 2, \"batch_input_shape\": [%s, "   \
    "4]%s}}"

/* Closes the configuration of the dense layer, and begins another layer. */
#define SYNCHRONIZED                                                                                         \
    "}}, {\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"n\", \"synchronized\": true"

static bool rounds; /* fits send gradients as bfloat16 */

typedef struct refusal {
    const char *batch, *options, *loss, *message, *metrics;
} refusal;

static leat_status fit_with(const refusal *r, float *inputs, float *targets, int64_t width, leat_error *err) {
    char layer[512], text[1024];
    leat_model *model = NULL;
    leat_dist *dist = NULL;
    leat_compile_options options = leat_compile_options_default();
    leat_dist_options self = leat_dist_options_default();
    leat_fit_options training = leat_fit_options_default();
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 4}, inputs)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, width}, targets)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    snprintf(layer, sizeof layer, DENSE, r->batch, r->options);
    snprintf(text, sizeof text,
             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [%s]}}", layer);
    options.loss = r->loss;
    options.metrics = r->metrics;
    assert_int_equal(leat_model_from_json(&model, text, err), LEAT_OK);
    assert_int_equal(leat_model_initialize(model, 1, err), LEAT_OK);
    assert_int_equal(leat_model_compile(model, &options, err), LEAT_OK);
    leat_model_set_deterministic(model, true);
    self.kind = LEAT_DIST_SELF;
    assert_int_equal(leat_dist_open(&dist, &self, err), LEAT_OK);
    training.verbose = 0;
    training.shuffle = LEAT_SHUFFLE_NONE;
    training.bf16_gradients = rounds;
    training.dist = dist;
    leat_status status = leat_model_fit(model, &arrays, 10, &training, NULL, err);
    leat_dist_close(&dist);
    leat_model_destroy(&model);
    return status;
}

static leat_status fit(const refusal *r, leat_error *err) {
    static float inputs[SAMPLES * 4], targets[SAMPLES * 2];
    return fit_with(r, inputs, targets, 2, err);
}

static void what_cannot_be_cut_is_refused(void **state) {
    static const refusal refusals[] = {
        {"null", SYNCHRONIZED, "mse", "layer 'n': a synchronized BatchNormalization", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; ++i) {
        leat_error err = {0};
        assert_int_equal(fit(&refusals[i], &err), LEAT_ENOTSUP);
        if (!strstr(err.message, refusals[i].message)) fail_msg("%s: %s", refusals[i].message, err.message);
    }
}

static void the_rest_is_trained(void **state) {
    static const refusal none[] = {
        {"null", "", "mse", "", NULL},
        {"null", "", "mse", "", "{\"class_name\": \"PearsonCorrelation\", \"config\": {\"axis\": 1}}"},
        {"null", "", "mse", "", "cosine_similarity,r2_score,RootMeanSquaredError,dice"},
        {"null", "", "mse", "", "{\"class_name\": \"PearsonCorrelation\", \"config\": {\"axis\": 0}}"},
        {"null", "", "mse", "", "{\"class_name\": \"ConcordanceCorrelation\", \"config\": {\"axis\": -2}}"},
        {"null", "", "Dice", "", NULL},
        {"10", "", "mse", "", NULL},
        {"null",
         ", \"activity_regularizer\": {\"class_name\": \"L1L2\", \"config\": {\"l1\": 0.1, \"l2\": 0.0}}",
         "mse", "", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; ++i) {
        leat_error err = {0};
        if (fit(&none[i], &err) != LEAT_OK) fail_msg("%zu: %s", i, err.message);
    }
}

/* A model that adds a function of the mean of its input to the loss. */
#define ADDED                                                                                                \
    "{\"class_name\": \"Functional\", \"keras_version\": \"2.15.0\", \"config\": {\"name\": \"m\", "         \
    "\"layers\": ["                                                                                          \
    "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"config\": {\"batch_input_shape\": [null, 4], "      \
    "\"name\": \"x\"}, \"inbound_nodes\": []}, {\"class_name\": \"Dense\", \"name\": \"d\", \"config\": {"   \
    "\"name\": \"d\", \"units\": 2}, \"inbound_nodes\": [[[\"x\", 0, 0, {}]]]}, "                            \
    "{\"class_name\": \"Operation\", \"name\": \"r\", \"config\": {\"name\": \"r\", \"function\": \"%s\", "  \
    "\"options\": {\"axis\": null, \"keepdims\": false}, \"args\": [{\"input\": 0}], \"kwargs\": {}}, "      \
    "\"inbound_nodes\": [[[\"d\", 0, 0, {}]]]}, {\"class_name\": \"AddLoss\", \"name\": \"a\", \"config\": " \
    "{"                                                                                                      \
    "\"name\": \"a\", \"unconditional\": false}, \"inbound_nodes\": [[[\"r\", 0, 0, {}]]]}], "               \
    "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"d\", 0, 0]]}}"

static leat_status fit_added(const char *function, leat_error *err) {
    static float inputs[SAMPLES * 4], targets[SAMPLES * 2];
    char text[2048];
    leat_model *model = NULL;
    leat_dist *dist = NULL;
    leat_compile_options options = leat_compile_options_default();
    leat_dist_options self = leat_dist_options_default();
    leat_fit_options training = leat_fit_options_default();
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 4}, inputs)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 2}, targets)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    snprintf(text, sizeof text, ADDED, function);
    options.loss = "mse";
    if (leat_model_from_json(&model, text, err) != LEAT_OK) fail_msg("%s", err->message);
    assert_int_equal(leat_model_initialize(model, 1, err), LEAT_OK);
    if (leat_model_compile(model, &options, err) != LEAT_OK) fail_msg("%s", err->message);
    leat_model_set_deterministic(model, true);
    self.kind = LEAT_DIST_SELF;
    assert_int_equal(leat_dist_open(&dist, &self, err), LEAT_OK);
    training.verbose = 0;
    training.dist = dist;
    leat_status status = leat_model_fit(model, &arrays, 10, &training, NULL, err);
    leat_dist_close(&dist);
    leat_model_destroy(&model);
    return status;
}

/* Means and sums over samples add up over the parts of a batch; the maximum of a batch does not. */
static void what_is_added_is_a_mean_or_a_sum(void **state) {
    leat_error err = {0};
    (void)state;
    if (fit_added("Mean", &err) != LEAT_OK || fit_added("Sum", &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_int_equal(fit_added("Max", &err), LEAT_ENOTSUP);
    if (!strstr(err.message, "neither a mean nor a sum")) fail_msg("%s", err.message);
}

/* The sums of a deterministic model are exact. */
static void rounded_gradients_are_refused_with_determinism(void **state) {
    static float labels[SAMPLES * 2], inputs[SAMPLES * 4];
    const refusal rounded = {"null", "", "mse", "", NULL};
    leat_error err = {0};
    (void)state;
    rounds = true;
    assert_int_equal(fit_with(&rounded, inputs, labels, 2, &err), LEAT_ENOTSUP);
    rounds = false;
    assert_non_null(strstr(err.message, "--bf16-gradients is not supported with --deterministic"));
}

/* The label of sample 13, the fourth of the second batch, is wrong; the batch is cut into 8 parts. */
static void a_wrong_sample_is_named(void **state) {
    static float labels[SAMPLES], inputs[SAMPLES * 4];
    const refusal sparse = {"null", ", \"activation\": \"softmax\"", "sparse_categorical_crossentropy", "",
                            NULL};
    leat_error err = {0};
    (void)state;
    labels[13] = 7;
    assert_int_equal(fit_with(&sparse, inputs, labels, 1, &err), LEAT_EINVAL);
    if (!strstr(err.message, "sample 13 of the data")) fail_msg("%s", err.message);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_cut_is_refused),
        cmocka_unit_test(the_rest_is_trained),
        cmocka_unit_test(what_is_added_is_a_mean_or_a_sum),
        cmocka_unit_test(rounded_gradients_are_refused_with_determinism),
        cmocka_unit_test(a_wrong_sample_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
