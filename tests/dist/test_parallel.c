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

typedef struct refusal {
    const char *batch, *options, *loss, *message;
} refusal;

static leat_status fit(const refusal *r, leat_error *err) {
    static float inputs[SAMPLES * 4], targets[SAMPLES * 2];
    char layer[512], text[1024];
    leat_model *model = NULL;
    leat_dist *dist = NULL;
    leat_compile_options options = leat_compile_options_default();
    leat_dist_options self = leat_dist_options_default();
    leat_fit_options training = leat_fit_options_default();
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 4}, inputs)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 2}, targets)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    snprintf(layer, sizeof layer, DENSE, r->batch, r->options);
    snprintf(text, sizeof text,
             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [%s]}}", layer);
    options.loss = r->loss;
    assert_int_equal(leat_model_from_json(&model, text, err), LEAT_OK);
    assert_int_equal(leat_model_initialize(model, 1, err), LEAT_OK);
    assert_int_equal(leat_model_compile(model, &options, err), LEAT_OK);
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

static void what_cannot_be_cut_is_refused(void **state) {
    static const refusal refusals[] = {
        {"10", "", "mse", "fixed batch size"},
        {"null", "", "Dice", "loss 'dice'"},
        {"null",
         ", \"activity_regularizer\": {\"class_name\": \"L1L2\", \"config\": {\"l1\": 0.1, \"l2\": 0.0}}",
         "mse", "activity_regularizer"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; ++i) {
        leat_error err = {0};
        assert_int_equal(fit(&refusals[i], &err), LEAT_ENOTSUP);
        if (!strstr(err.message, refusals[i].message)) fail_msg("%s: %s", refusals[i].message, err.message);
    }
}

static void the_rest_is_trained(void **state) {
    const refusal none = {"null", "", "mse", ""};
    leat_error err = {0};
    (void)state;
    assert_int_equal(fit(&none, &err), LEAT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_cut_is_refused),
        cmocka_unit_test(the_rest_is_trained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
