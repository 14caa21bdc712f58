/* SPDX-License-Identifier: Apache-2.0 */
/* A program of another version: compiled against headers whose structs are shorter (an older version's), as they
 * are, or longer (a newer version's), it runs with the same libleat.so.  resize.awk writes the headers.  Behind
 * every struct lies a guard: a library that reads it takes the guard's bytes for options, and one that writes it
 * is found out. */
#include "cmocka_all.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "leat/leat.h"

enum { GUARD_BYTES = 256, GUARD = 0xa5, SAMPLES = 12, FEATURES = 3 };

/* A struct that may grow has no padding at its end: a member without alignment, added there, begins a new word. */
#ifdef LEAT_NEWER
#define CHECK_END(type) assert_int_equal(offsetof(type, added_later) % sizeof(size_t), 0)
#else
#define CHECK_END(type) (void)0
#endif
/* A struct of the caller's, and the guard behind it. */
#define GUARDED(type, name)                                                                                  \
    struct {                                                                                                 \
        type own;                                                                                            \
        unsigned char guard[GUARD_BYTES];                                                                    \
    } name;                                                                                                  \
    CHECK_END(type);                                                                                         \
    memset(&(name), GUARD, sizeof(name))
#define INIT(type, name)                                                                                     \
    GUARDED(type, name);                                                                                     \
    type##_init(&(name).own, sizeof(name).own);                                                              \
    assert_int_equal((name).own.size, sizeof(name).own)
#define CHECK_GUARD(name) check_guard((name).guard, #name)

static void check_guard(const unsigned char *guard, const char *name) {
    for (int i = 0; i < GUARD_BYTES; ++i)
        if (guard[i] != GUARD) fail_msg("byte %d behind %s was overwritten", i, name);
}

static void expect_ok(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static leat_error failed; /* of the call that must fail */

/* A call is refused, and says which struct is to blame. */
static void expect_refused(leat_status status, const char *struct_name, const char *words) {
    assert_int_equal(status, LEAT_EINVAL);
    if (!strstr(failed.message, struct_name) || !strstr(failed.message, words))
        fail_msg("'%s' does not say '%s' and '%s'", failed.message, struct_name, words);
}

/* CALL with a struct that names no size is refused; so is, of a newer version's program, CALL with a member that is set
 * and that the library does not know. */
#ifdef LEAT_NEWER
#define REFUSES(name, type, call)                                                                            \
    do {                                                                                                     \
        (name).own.added_later[7] = 1;                                                                       \
        expect_refused((call), #type, "newer leat");                                                         \
        (name).own.added_later[7] = 0;                                                                       \
        REFUSES_NO_SIZE(name, type, call);                                                                   \
    } while (0)
#else
#define REFUSES(name, type, call) REFUSES_NO_SIZE(name, type, call)
#endif
#define REFUSES_NO_SIZE(name, type, call)                                                                    \
    do {                                                                                                     \
        (name).own.size = 0;                                                                                 \
        expect_refused((call), #type, "start from " #type "_init()");                                        \
        (name).own.size = sizeof(name).own;                                                                  \
        CHECK_GUARD(name);                                                                                   \
    } while (0)

/* ---- A model, and data ---- */

static float points[SAMPLES][FEATURES], targets[SAMPLES][1];
static leat_array input, target;
static leat_arrays arrays;

static void make_arrays(void) {
    for (int i = 0; i < SAMPLES; ++i) points[i][i % FEATURES] = targets[i][0] = (float)i / SAMPLES;
    input.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, FEATURES}, points);
    target.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, targets);
    arrays = (leat_arrays){.inputs = &input, .targets = &target, .input_count = 1, .target_count = 1};
}

static leat_model *make_model(void) {
    leat_error err = {0};
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    make_arrays();
    expect_ok(leat_builder_create(&builder, &err), &err);
    leat_node *x = leat_input(builder, (int64_t[]){FEATURES}, 1), *y = leat_dense(x, 1, NULL);
    expect_ok(leat_model_create(&model, &builder, &x, 1, &y, 1, &err), &err);
    INIT(leat_compile_options, compile);
    assert_string_equal(compile.own.optimizer, "rmsprop");
    compile.own.optimizer = "sgd";
    compile.own.loss = "mse";
    REFUSES(compile, leat_compile_options, leat_model_compile(model, &compile.own, &failed));
    expect_ok(leat_model_compile(model, &compile.own, &err), &err);
    CHECK_GUARD(compile);
    return model;
}

/* ---- Callbacks ---- */

static leat_status count_epochs(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                                leat_error *err) {
    (void)epoch, (void)logs, (void)err;
    const leat_training_params *params = leat_training_params_get(training);
    assert_true(params->size >= offsetof(leat_training_params, do_validation) + sizeof params->do_validation);
#ifdef LEAT_NEWER
    assert_true(params->size <= offsetof(leat_training_params, added_later));
#endif
    assert_int_equal(params->epochs, 3);
    ++*(int *)user;
    return LEAT_OK;
}

/* leat fills callbacks by the caller's size. */
static void ready_made_callbacks_fit_the_caller(void **state) {
    (void)state;
    leat_error err = {0};
    GUARDED(leat_callback, stopping);
    GUARDED(leat_callback, reducing);
    GUARDED(leat_callback, saving);
    GUARDED(leat_callback, ending);
    INIT(leat_early_stopping_options, stop);
    INIT(leat_reduce_lr_options, reduce);
    INIT(leat_model_checkpoint_options, save);
    save.own.filepath = "abi.h5";
    assert_string_equal(stop.own.monitor, "val_loss");
    assert_true(reduce.own.patience == 10);
    REFUSES(stop, leat_early_stopping_options,
            leat_early_stopping_create(&stopping.own, sizeof stopping.own, &stop.own, &failed));
    REFUSES(reduce, leat_reduce_lr_options,
            leat_reduce_lr_on_plateau_create(&reducing.own, sizeof reducing.own, &reduce.own, &failed));
    REFUSES(save, leat_model_checkpoint_options,
            leat_model_checkpoint_create(&saving.own, sizeof saving.own, &save.own, &failed));
    expect_refused(leat_terminate_on_nan_create(&ending.own, 0, &failed), "leat_callback", "start from");
    expect_ok(leat_early_stopping_create(&stopping.own, sizeof stopping.own, &stop.own, &err), &err);
    expect_ok(leat_reduce_lr_on_plateau_create(&reducing.own, sizeof reducing.own, &reduce.own, &err), &err);
    expect_ok(leat_model_checkpoint_create(&saving.own, sizeof saving.own, &save.own, &err), &err);
    expect_ok(leat_terminate_on_nan_create(&ending.own, sizeof ending.own, &err), &err);
    leat_callback *const made[] = {&stopping.own, &reducing.own, &saving.own, &ending.own};
    for (size_t i = 0; i < sizeof made / sizeof *made; ++i) {
        assert_int_equal(made[i]->size, sizeof *made[i]);
#ifdef LEAT_NEWER
        assert_true(made[i]->added_later[0] == 0 && !made[i]->on_added_later);
#endif
        leat_callback_destroy(made[i]);
        assert_int_equal(made[i]->size, 0);
    }
    CHECK_GUARD(stopping), CHECK_GUARD(reducing), CHECK_GUARD(saving), CHECK_GUARD(ending);
    CHECK_GUARD(stop), CHECK_GUARD(reduce), CHECK_GUARD(save);
}

/* ---- Fit, evaluate, statistics ---- */

static void read_results(const leat_history *history) {
    GUARDED(leat_verdict, verdict);
    GUARDED(leat_feed_stats, stats);
    leat_history_verdict_into(history, &verdict.own, sizeof verdict.own);
    leat_history_feed_stats_into(history, &stats.own, sizeof stats.own);
    assert_int_equal(verdict.own.steps, 9);
    assert_int_equal(stats.own.batches, 9);
    assert_int_equal(leat_history_verdict(history).steps, 9);
#ifdef LEAT_NEWER
    assert_true(verdict.own.added_later[0] == 0 && stats.own.added_later[0] == 0);
#endif
    CHECK_GUARD(verdict), CHECK_GUARD(stats);
}

static void trains_and_evaluates(void **state) {
    (void)state;
    leat_error err = {0};
    leat_history *history = NULL;
    leat_model *model = make_model();
    int epochs = 0;
    leat_logs logs;
    INIT(leat_callback, counter);
    INIT(leat_fit_options, fit);
    INIT(leat_evaluate_options, evaluate);
    leat_callback *callbacks[] = {&counter.own};
    counter.own.user = &epochs;
    counter.own.on_epoch_end = count_epochs;
    assert_true(fit.own.epochs == 1 && fit.own.verbose == 1 && fit.own.max_queue_size == 10);
    assert_true(fit.own.workers == 1 && evaluate.own.workers == 1);
    fit.own.epochs = 3;
    fit.own.verbose = 0;
    fit.own.callbacks = callbacks;
    fit.own.callback_count = 1;
    REFUSES(fit, leat_fit_options, leat_model_fit(model, &arrays, 4, &fit.own, NULL, &failed));
    REFUSES(counter, leat_callback, leat_model_fit(model, &arrays, 4, &fit.own, NULL, &failed));
    REFUSES(evaluate, leat_evaluate_options,
            leat_model_evaluate(model, &arrays, 4, &evaluate.own, &logs, &failed));
    expect_ok(leat_model_fit(model, &arrays, 4, &fit.own, &history, &err), &err);
    expect_ok(leat_model_evaluate(model, &arrays, 4, &evaluate.own, &logs, &err), &err);
    assert_int_equal(epochs, 3);
    read_results(history);
    CHECK_GUARD(fit), CHECK_GUARD(counter), CHECK_GUARD(evaluate);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static void predicts_and_plans(void **state) {
    (void)state;
    leat_error err = {0};
    leat_predictor *predictor = NULL;
    char *plan = NULL;
    leat_model *model = make_model();
    INIT(leat_predictor_options, predict);
    INIT(leat_plan_options, options);
    assert_true(predict.own.batch_size == 1 && options.own.batch_size == 32 && options.own.unknown == 32);
    REFUSES(predict, leat_predictor_options, leat_predictor_create(&predictor, model, &predict.own, &failed));
    REFUSES(options, leat_plan_options, leat_model_plan_summary(model, &options.own, &plan, &failed));
    expect_ok(leat_predictor_create(&predictor, model, &predict.own, &err), &err);
    expect_ok(leat_model_plan_summary(model, &options.own, &plan, &err), &err);
    CHECK_GUARD(predict), CHECK_GUARD(options);
    leat_string_free(plan);
    leat_predictor_destroy(&predictor);
    leat_model_destroy(&model);
}

/* ---- Feeds ---- */

static int64_t three_batches(void *user) {
    (void)user;
    return 3;
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)user, (void)rng, (void)err;
    ((float *)batch->tensors[0].data)[0] = (float)index;
    return LEAT_OK;
}

static void take_all(leat_feed *feed) {
    leat_error err = {0};
    GUARDED(leat_feed_stats, stats);
    for (int i = 0; i < 3; ++i) {
        const leat_batch *batch = NULL;
        expect_ok(leat_feed_get(feed, &batch, &err), &err);
        assert_true(((const float *)batch->tensors[0].data)[0] == (float)i);
        leat_feed_release(feed);
    }
    leat_feed_stats_get_into(feed, &stats.own, sizeof stats.own);
    assert_int_equal(stats.own.batches, 3);
    CHECK_GUARD(stats);
}

static void feeds_its_own_sequence(void **state) {
    (void)state;
    leat_error err = {0};
    leat_feed *feed = NULL;
    INIT(leat_sequence, sequence);
    INIT(leat_feed_options, options);
    assert_true(options.own.workers == 1 && options.own.world == 1 && options.own.faults.max_deaths == 3);
    sequence.own.length = three_batches;
    sequence.own.get = get;
    sequence.own.spec.batch_size = 1;
    expect_ok(leat_batch_spec_add(&sequence.own.spec, LEAT_PART_INPUT, NULL, LEAT_F32, 0, NULL, &err), &err);
    REFUSES(options, leat_feed_options, leat_feed_open(&feed, &sequence.own, &options.own, &failed));
    REFUSES(sequence, leat_sequence, leat_feed_open(&feed, &sequence.own, &options.own, &failed));
    for (int processes = 0; processes < 2; ++processes) {
        options.own.use_multiprocessing = processes;
        const leat_feed_config config = {.sequence = &sequence.own, .options = &options.own};
        expect_ok(leat_feed_open_together(&feed, &config, 1, &err), &err);
        take_all(feed);
        leat_feed_close(&feed);
    }
    CHECK_GUARD(sequence), CHECK_GUARD(options);
}

static void sources_fit_the_caller(void **state) {
    (void)state;
    leat_error err = {0};
    GUARDED(leat_sequence, made);
    INIT(leat_source_options, options);
    assert_true(options.own.batch_size == 32);
    make_arrays();
    REFUSES(options, leat_source_options,
            leat_arrays_open(&made.own, sizeof made.own, &arrays, &options.own, &failed));
    expect_refused(leat_arrays_open(&made.own, 0, &arrays, &options.own, &failed), "leat_sequence",
                   "start from");
    expect_ok(leat_arrays_open(&made.own, sizeof made.own, &arrays, &options.own, &err), &err);
    assert_true(made.own.size == sizeof made.own && made.own.spec.batch_size == SAMPLES);
    leat_sequence_destroy(&made.own);
    expect_ok(leat_npy_write("abi.npy", &input.tensor, &err), &err);
    expect_ok(leat_source_open(&made.own, sizeof made.own, "npy:abi.npy", &options.own, &err), &err);
    leat_sequence_destroy(&made.own);
    assert_int_equal(made.own.size, 0);
    CHECK_GUARD(made), CHECK_GUARD(options);
}

/* ---- Custom layers ---- */

static leat_status build(const void *config, int count, const leat_tensor *inputs,
                         leat_layer_weights *weights, leat_error *err) {
    (void)config, (void)count, (void)inputs;
    INIT(leat_layer_weight, weight);
    weight.own.name = "scale";
    REFUSES(weight, leat_layer_weight, leat_layer_add_weight(weights, &weight.own, &failed));
    leat_status status = leat_layer_add_weight(weights, &weight.own, err);
    CHECK_GUARD(weight);
    return status;
}

static leat_status forward(const leat_layer_call *call, leat_error *err) {
    (void)err;
    assert_true(call->size >= offsetof(leat_layer_call, outputs) + sizeof call->outputs);
    memcpy(call->outputs[0].data, call->inputs[0].data, leat_tensor_bytes(&call->inputs[0]));
    return LEAT_OK;
}

static void registers_a_layer(void **state) {
    (void)state;
    leat_error err = {0};
    leat_registry *registry = NULL;
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    INIT(leat_layer_definition, definition);
    assert_true(definition.own.min_inputs == 1 && definition.own.max_inputs == 1 &&
                definition.own.outputs == 1);
    definition.own.class_name = "AbiScale";
    definition.own.build = build;
    definition.own.forward = forward;
    expect_ok(leat_registry_create(&registry, &err), &err);
    REFUSES(definition, leat_layer_definition, leat_registry_add(registry, &definition.own, &failed));
    expect_ok(leat_registry_add(registry, &definition.own, &err), &err);
    CHECK_GUARD(definition);
    expect_ok(leat_builder_create(&builder, &err), &err);
    leat_builder_use(builder, registry);
    leat_node *x = leat_input(builder, (int64_t[]){FEATURES}, 1), *y = leat_layer(x, "AbiScale", NULL);
    expect_ok(leat_model_create(&model, &builder, &x, 1, &y, 1, &err), &err);
    assert_int_equal(leat_model_weight_count(model), 1);
    make_arrays();
    leat_tensor prediction;
    const leat_arrays inputs = {.inputs = &input, .input_count = 1};
    expect_ok(leat_model_predict_on_batch(model, &inputs, &prediction, &err), &err);
    assert_memory_equal(prediction.data, points, sizeof points);
    leat_model_destroy(&model);
    leat_registry_destroy(&registry);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ready_made_callbacks_fit_the_caller),
        cmocka_unit_test(trains_and_evaluates),
        cmocka_unit_test(predicts_and_plans),
        cmocka_unit_test(feeds_its_own_sequence),
        cmocka_unit_test(sources_fit_the_caller),
        cmocka_unit_test(registers_a_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
