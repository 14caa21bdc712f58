/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer state: after writing and reading it, training continues with the same bytes.  Also the average of
 * weights. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "train/support.h"

enum { BATCH = 6, STEPS = 4 };

static float inputs[BATCH * 4], targets[BATCH * 3];
static leat_array input, target;

static int make_data(void **state) {
    (void)state;
    for (int i = 0; i < BATCH * 4; ++i) inputs[i] = sinf(1.7f * (float)i);
    for (int i = 0; i < BATCH; ++i) targets[3 * i + i % 3] = 1.0f;
    input.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){BATCH, 4}, inputs);
    target.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){BATCH, 3}, targets);
    return 0;
}

static leat_arrays data(void) {
    return (leat_arrays){.inputs = &input, .targets = &target, .input_count = 1, .target_count = 1};
}

static void compile(leat_model *model, const char *optimizer, const char *metrics) {
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = optimizer;
    options.loss = "categorical_crossentropy";
    options.metrics = metrics;
    expect_ok(leat_model_compile(model, &options, &err), &err);
}

static void train(leat_model *model, int steps) {
    leat_error err = {0};
    leat_arrays arrays = data();
    for (int i = 0; i < steps; ++i) expect_ok(leat_model_train_on_batch(model, &arrays, NULL, &err), &err);
}

static void a_saved_optimizer_goes_on(void **state) {
    (void)state;
    static const char *const optimizers[] = {
        "SGD(momentum=0.9, nesterov=True, weight_decay=0.01)",
        "RMSprop",
        "Adagrad(clipvalue=0.1)",
        "Adadelta",
        "Adam(amsgrad=True, clipnorm=0.2, global_clipnorm=None)",
        "Adamax(global_clipnorm=0.1)",
        "Nadam(use_ema=True)",
        "AdamW(use_ema=True, ema_momentum=0.6, ema_overwrite_frequency=3)",
        "Lion(weight_decay=0.1)",
        "Adafactor(learning_rate=0.1)",
        "Ftrl(learning_rate=0.2, l1_regularization_strength=0.01)",
    };
    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; ++i) {
        char path[] = "/tmp/leat-optimizer-XXXXXX";
        close(mkstemp(path));
        leat_error err = {0};
        leat_model *model = make_classifier(1);
        compile(model, optimizers[i], NULL);
        train(model, STEPS);
        expect_ok(leat_model_save(model, path, true, &err), &err);
        train(model, STEPS);
        uint64_t whole = weights_hash(model);
        leat_model_destroy(&model);
        expect_ok(leat_model_load(&model, path, &err), &err);
        assert_false(weights_hash(model) == whole);
        train(model, STEPS);
        if (weights_hash(model) != whole) fail_msg("%s goes on otherwise", optimizers[i]);
        leat_model_destroy(&model);
        unlink(path);
    }
}

/* The average of one weight as Keras computes it: the first step's value, then a share of each. */
typedef struct follower {
    double average;
    int64_t seen;
    float last;
} follower;

static leat_status follow(void *user, leat_training *training, int64_t index, leat_logs *logs,
                          leat_error *err) {
    (void)index, (void)logs, (void)err;
    follower *f = user;
    leat_tensor weight = leat_model_weight(leat_training_model(training), 0);
    f->last = *(const float *)weight.data;
    f->average = f->seen++ == 0 ? (double)f->last : 0.75 * f->average + 0.25 * (double)f->last;
    return LEAT_OK;
}

/* At its end, fit replaces the weights with their average; train_on_batch does not. */
static void a_fit_ends_with_the_average(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    follower f = {0};
    leat_callback callback = {.size = sizeof(leat_callback), .user = &f, .on_train_batch_end = follow};
    leat_callback *const callbacks[] = {&callback};
    leat_fit_options options = quiet_fit_with(3, callbacks, 1);
    leat_arrays arrays = data();
    compile(model, "AdamW(learning_rate=0.05, use_ema=True, ema_momentum=0.75)", NULL);
    expect_ok(leat_model_fit(model, &arrays, 2, &options, NULL, &err), &err);
    assert_int_equal(f.seen, 9);
    float end = *(const float *)leat_model_weight(model, 0).data;
    assert_float_equal(end, f.average, 1e-6);
    assert_true(fabs((double)f.last - f.average) > 1e-3);
    leat_model_destroy(&model);
}

/* Metrics that are classes are saved as Keras saves them, and have the same names after loading. */
static void metrics_of_classes_come_back(void **state) {
    (void)state;
    char path[] = "/tmp/leat-metrics-XXXXXX";
    close(mkstemp(path));
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    leat_arrays arrays = data();
    leat_logs before, after;
    compile(model, "sgd",
            "AUC(num_thresholds=7),AUC(curve=PR),Precision(thresholds=[0.3, 0.4], class_id=1),acc");
    expect_ok(leat_model_test_on_batch(model, &arrays, &before, &err), &err);
    expect_ok(leat_model_save(model, path, true, &err), &err);
    leat_model_destroy(&model);
    expect_ok(leat_model_load(&model, path, &err), &err);
    expect_ok(leat_model_test_on_batch(model, &arrays, &after, &err), &err);
    static const char *const names[] = {"loss", "auc", "auc_1", "precision@0.3", "precision@0.4", "acc"};
    assert_int_equal(before.count, 6);
    assert_int_equal(after.count, 6);
    for (int i = 0; i < 6; ++i) {
        assert_string_equal(before.items[i].name, names[i]);
        assert_string_equal(after.items[i].name, names[i]);
        assert_true(before.items[i].value == after.items[i].value);
    }
    leat_model_destroy(&model);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_saved_optimizer_goes_on),
        cmocka_unit_test(a_fit_ends_with_the_average),
        cmocka_unit_test(metrics_of_classes_come_back),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
