/* SPDX-License-Identifier: Apache-2.0 */
/* Keras 2.3.1's TestCallbackCounts (tests/keras/callbacks/callbacks_test.py) under its names: how often each hook is
 * called, whatever the data comes from. */
#include "cmocka_all.h"

#include "train/support.h"

typedef struct hook_counts {
#define COUNT_MEMBER(name) int name;
    LEAT_HOOK_LIST(COUNT_MEMBER)
#undef COUNT_MEMBER
} hook_counts;

#define COUNT_FUNCTION(name)                                                                                 \
    static leat_status count_##name(void *user, leat_training *training, int64_t index, leat_logs *logs,     \
                                    leat_error *err) {                                                       \
        (void)training, (void)index, (void)logs, (void)err;                                                  \
        ++((hook_counts *)user)->name;                                                                       \
        return LEAT_OK;                                                                                      \
    }
LEAT_HOOK_LIST(COUNT_FUNCTION)

static leat_callback counting(hook_counts *all) {
    return (leat_callback){.size = sizeof(leat_callback),
                           .user = all,
#define COUNT_HOOK(name) .name = count_##name,
                           LEAT_HOOK_LIST(COUNT_HOOK)};
}

/* 10 samples in 5 batches, 4 samples in 2, as arrays and as generators. */
typedef struct counted {
    leat_model *model;
    clusters data, held_out;
    leat_sequence generator, validation;
    float x[40], y[30];
    leat_array inputs, targets;
    leat_arrays arrays;
    hook_counts got;
    leat_callback callback, *callbacks[1];
} counted;

static void counted_init(counted *c) {
    *c = (counted){.model = make_classifier(1), .data = clusters_of(10, 2), .held_out = clusters_of(4, 2)};
    c->generator = clusters_generator(&c->data);
    c->validation = clusters_generator(&c->held_out);
    c->inputs = (leat_array){.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){10, 4}, c->x)};
    c->targets = (leat_array){.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){10, 3}, c->y)};
    c->arrays = (leat_arrays){&c->inputs, &c->targets, NULL, 1, 1, 0};
    c->callback = counting(&c->got);
    c->callbacks[0] = &c->callback;
}

static void counted_is(counted *c, hook_counts wanted) {
    assert_memory_equal(&c->got, &wanted, sizeof wanted);
    leat_model_destroy(&c->model);
}

static const hook_counts fitted = {.on_train_begin = 1,
                                   .on_train_end = 1,
                                   .on_epoch_begin = 5,
                                   .on_epoch_end = 5,
                                   .on_train_batch_begin = 25,
                                   .on_train_batch_end = 25,
                                   .on_test_begin = 5,
                                   .on_test_end = 5,
                                   .on_test_batch_begin = 10,
                                   .on_test_batch_end = 10};
static const hook_counts evaluated = {.on_test_begin = 1,
                                      .on_test_end = 1,
                                      .on_test_batch_begin = 5,
                                      .on_test_batch_end = 5};
static const hook_counts predicted = {.on_predict_begin = 1,
                                      .on_predict_end = 1,
                                      .on_predict_batch_begin = 5,
                                      .on_predict_batch_end = 5};

static leat_fit_options counted_fit(counted *c) {
    leat_fit_options options = quiet_fit(5);
    options.callbacks = c->callbacks;
    options.callback_count = 1;
    options.validation = &c->validation;
    options.validation_steps = 2;
    return options;
}

static leat_evaluate_options counted_pass(counted *c, int64_t count) {
    leat_evaluate_options options = leat_evaluate_options_default();
    options.steps = count;
    options.callbacks = c->callbacks;
    options.callback_count = 1;
    return options;
}

static void test_callback_hooks_are_called_in_fit(void **state) {
    (void)state;
    leat_error err = {0};
    counted c;
    counted_init(&c);
    leat_fit_options options = counted_fit(&c);
    expect_ok(leat_model_fit(c.model, &c.arrays, 2, &options, NULL, &err), &err);
    counted_is(&c, fitted);
}

static void test_callback_hooks_are_called_in_fit_generator(void **state) {
    (void)state;
    leat_error err = {0};
    counted c;
    counted_init(&c);
    leat_fit_options options = counted_fit(&c);
    options.steps_per_epoch = 5;
    expect_ok(leat_model_fit_generator(c.model, &c.generator, &options, NULL, &err), &err);
    counted_is(&c, fitted);
}

static void test_callback_hooks_are_called_in_evaluate(void **state) {
    (void)state;
    leat_error err = {0};
    leat_logs logs;
    counted c;
    counted_init(&c);
    leat_evaluate_options options = counted_pass(&c, 0);
    expect_ok(leat_model_evaluate(c.model, &c.arrays, 2, &options, &logs, &err), &err);
    counted_is(&c, evaluated);
}

static void test_callback_hooks_are_called_in_evaluate_generator(void **state) {
    (void)state;
    leat_error err = {0};
    leat_logs logs;
    counted c;
    counted_init(&c);
    leat_evaluate_options options = counted_pass(&c, 5);
    expect_ok(leat_model_evaluate_generator(c.model, &c.generator, &options, &logs, &err), &err);
    counted_is(&c, evaluated);
}

static void test_callback_hooks_are_called_in_predict(void **state) {
    (void)state;
    leat_error err = {0};
    leat_predictions *predictions = NULL;
    counted c;
    counted_init(&c);
    leat_evaluate_options options = counted_pass(&c, 0);
    expect_ok(leat_model_predict(c.model, &c.arrays, 2, &options, &predictions, &err), &err);
    leat_predictions_destroy(&predictions);
    counted_is(&c, predicted);
}

static void test_callback_hooks_are_called_in_predict_generator(void **state) {
    (void)state;
    leat_error err = {0};
    leat_predictions *predictions = NULL;
    counted c;
    counted_init(&c);
    leat_evaluate_options options = counted_pass(&c, 5);
    expect_ok(leat_model_predict_generator(c.model, &c.generator, &options, &predictions, &err), &err);
    leat_predictions_destroy(&predictions);
    counted_is(&c, predicted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callback_hooks_are_called_in_fit),
        cmocka_unit_test(test_callback_hooks_are_called_in_fit_generator),
        cmocka_unit_test(test_callback_hooks_are_called_in_evaluate),
        cmocka_unit_test(test_callback_hooks_are_called_in_evaluate_generator),
        cmocka_unit_test(test_callback_hooks_are_called_in_predict),
        cmocka_unit_test(test_callback_hooks_are_called_in_predict_generator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
