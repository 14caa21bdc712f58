/* SPDX-License-Identifier: Apache-2.0 */
/* The device "auto" where batches need predictions of the model that is trained: whole iterations decide where its
 * steps run.  The data notices where the last step has run, and takes the time that the test wants. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/sim/sim.h"
#include "leat/log.h"
#include "leat/predictor.h"
#include "train/support.h"

enum { slow_ns = 100000000, short_ns = 5000000 };

typedef struct timed {
    leat_sequence inner;
    int64_t launches;   /* on the device, so far */
    int64_t ns[2];      /* after a step on the device, and after one on the host */
    int steps[2], last; /* last: where the last step has run */
} timed;

static int64_t launches(void) {
    return sim_calls("cuLaunchKernelEx") + sim_calls("cuGraphLaunch");
}

static leat_status timed_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    timed *t = user;
    const int64_t now = launches();
    t->last = now == t->launches;
    t->launches = now;
    ++t->steps[t->last];
    const struct timespec pause = {.tv_nsec = (long)t->ns[t->last]};
    if (pause.tv_nsec > 0) (void)nanosleep(&pause, NULL);
    return t->inner.get(t->inner.user, index, rng, batch, err);
}

static int64_t timed_length(void *user) {
    const timed *t = user;
    return t->inner.length(t->inner.user);
}

static char said[4096];

static void keep_log(void *user, leat_log_level level, const char *message) {
    (void)user;
    (void)level;
    size_t length = strlen(said);
    strncpy(said + length, message, sizeof said - length - 1);
}

enum { samples = 120 * 8, epochs = 1 };

/* Fits a classifier with the device `device`, and returns a copy of its first kernel. */
static leat_tensor fit(timed *t, const char *device, bool has_predictor) {
    static float kernels[4][32];
    static int next;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    leat_predictor *predictor = NULL;
    clusters data = clusters_of(samples, 8);
    t->inner = clusters_sequence(&data);
    t->launches = launches();
    leat_sequence sequence = t->inner;
    sequence.user = t;
    sequence.get = timed_get;
    sequence.length = timed_length;
    sequence.samples = NULL;
    sequence.get_samples = NULL;
    sequence.on_epoch_end = NULL;
    leat_fit_options options = quiet_fit(epochs);
    options.workers = 0;
    options.max_queue_size = 1;
    options.shuffle = LEAT_SHUFFLE_NONE;
    said[0] = '\0';
    expect_ok(leat_model_set_device(model, device, &err), &err);
    if (has_predictor) expect_ok(leat_predictor_create(&predictor, model, NULL, &err), &err);
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    leat_tensor kernel = leat_model_weight(model, 0);
    float *copy = kernels[next++ % 4];
    memcpy(copy, kernel.data, sizeof kernels[0]);
    leat_predictor_destroy(&predictor);
    leat_model_destroy(&model);
    return leat_tensor_view(LEAT_F32, 1, (int64_t[]){32}, copy);
}

static void compare(leat_tensor a, leat_tensor b) {
    const float *p = a.data, *q = b.data;
    for (int i = 0; i < 32; ++i)
        if (fabsf(p[i] - q[i]) > 1e-4f) fail_msg("weight %d: %g and %g", i, (double)p[i], (double)q[i]);
}

/* The step decides alone: the simulated GPU is slower, and what the data does is not looked at. */
static void without_predictors_the_step_decides(void **state) {
    (void)state;
    timed t = {0};
    (void)fit(&t, "auto", false);
    assert_int_equal(t.steps[0], 1); /* the first step was measured in both places */
    assert_null(strstr(said, "with the wait for the batch"));
}

/* Batches take long after steps on the CPU, as if these took the cores of the predictions. */
static void long_iterations_leave_the_cpu(void **state) {
    (void)state;
    timed t = {.ns = {short_ns, slow_ns}}, plain = {0};
    leat_tensor kernel = fit(&t, "auto", true);
    assert_non_null(strstr(said, "with the wait for the batch"));
    assert_non_null(strstr(said, "training steps of batch 8 run on cuda:0"));
    assert_int_equal(t.last, 0);
    assert_true(t.steps[1] >= 2 * 16 && t.steps[1] < 2 * 16 + 12); /* the turns on the host */
    compare(kernel, fit(&plain, "cpu", true));
}

static void long_iterations_leave_the_device(void **state) {
    (void)state;
    timed t = {.ns = {slow_ns, short_ns}}, plain = {0};
    leat_tensor kernel = fit(&t, "auto", true);
    assert_non_null(strstr(said, "training steps of batch 8 run on the CPU: with the wait"));
    assert_int_equal(t.last, 1);
    compare(kernel, fit(&plain, "cpu", true));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_predictors_the_step_decides),
        cmocka_unit_test(long_iterations_leave_the_cpu),
        cmocka_unit_test(long_iterations_leave_the_device),
    };
    leat_set_log(keep_log, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
