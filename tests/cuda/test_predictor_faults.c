/* SPDX-License-Identifier: Apache-2.0 */
/* Each call of the driver fails once during the life of a predictor on a device: then a call of the predictor fails, or
 * its predictions are right, and nothing is left behind. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "cuda/sim/sim.h"
#include "leat/predictor.h"
#include "train/support.h"

enum { batch = 4, inputs = 4 * batch, outputs = 3 * batch, runs = 4 };

/* Makes a predictor, which predicts before and after a sync. */
static leat_status live(leat_model *model, const char *device, float numbers[runs][outputs],
                        leat_error *err) {
    leat_predictor *p = NULL;
    float x[inputs];
    leat_predictor_options options = leat_predictor_options_default();
    options.device = device;
    options.batch_size = batch;
    for (int i = 0; i < inputs; ++i) x[i] = (float)i / inputs;
    leat_status status = leat_predictor_create(&p, model, &options, err);
    for (int run = 0; run < runs && status == LEAT_OK; ++run) {
        if (run == runs / 2) {
            status = leat_model_publish(model, err);
            if (status == LEAT_OK) status = leat_predictor_sync(p, err);
            if (status != LEAT_OK) break;
        }
        status = leat_predictor_run(p, (const void *[]){x}, (void *[]){numbers[run]}, err);
    }
    leat_predictor_destroy(&p);
    return status;
}

static void every_call_may_fail(void **state) {
    (void)state;
    static const CUresult results[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN,
                                       CUDA_ERROR_LAUNCH_FAILED};
    float expected[runs][outputs], got[runs][outputs];
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    expect_ok(leat_model_set_device(model, "cpu", &err), &err);
    expect_ok(live(model, "cuda", expected, &err), &err);
    const size_t before = sim_live();
    for (int k = 0; k < 3; ++k) {
        bool failed = true;
        for (int64_t n = 1; failed; ++n) {
            const char *function = NULL;
            err = (leat_error){0};
            sim_fail_at(NULL, n, results[k]);
            leat_status status = live(model, "cuda", got, &err);
            failed = sim_failed(&function);
            sim_fail_at(NULL, 0, CUDA_SUCCESS);
            if (sim_live() != before) fail_msg("call %d, %s: something leaks", (int)n, function);
            if (status != LEAT_OK && !failed) fail_msg("%s", err.message);
            if (status != LEAT_OK && err.message[0] == '\0')
                fail_msg("call %d, %s: no message", (int)n, function);
            for (int run = 0; run < runs && status == LEAT_OK; ++run)
                for (int i = 0; i < outputs; ++i)
                    if (fabsf(got[run][i] - expected[run][i]) > 1e-5f)
                        fail_msg("call %d, %s: wrong numbers", (int)n, function);
        }
    }
    leat_model_destroy(&model);
}

/* The device "auto" goes to the CPU only if there is no GPU; a GPU that fails is an error, or serves. */
static void auto_without_a_gpu_is_the_cpu(void **state) {
    (void)state;
    float expected[runs][outputs], got[runs][outputs];
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    expect_ok(leat_model_set_device(model, "cpu", &err), &err);
    expect_ok(live(model, NULL, expected, &err), &err);
    sim_fail_at("cuDeviceGetCount", 1, CUDA_ERROR_NO_DEVICE);
    expect_ok(live(model, "auto", got, &err), &err);
    assert_memory_equal(got, expected, sizeof got);
    sim_fail_at("cuDeviceGetCount", 1, CUDA_ERROR_NO_DEVICE);
    assert_int_equal(live(model, "cuda", got, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "finds no GPU"));
    sim_fail_at("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(live(model, "auto", got, &err), LEAT_ENOMEM);
    sim_fail_at(NULL, 0, CUDA_SUCCESS);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(auto_without_a_gpu_is_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
