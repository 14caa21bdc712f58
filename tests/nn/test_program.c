/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: bindings, types that are cast, shapes that do not fit, steps that are not possible. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/program/program.h"
#include "nn/run.h"
#include "nn/small_models.h"

#define BATCH 4

static leat_model *make(const char *json, const char *optimizer, const char *loss) {
    leat_error err = {0};
    leat_model *model = NULL;
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = optimizer;
    options.loss = loss;
    assert_ok(leat_model_from_json(&model, json, &err), &err);
    if (loss) assert_ok(leat_model_compile(model, &options, &err), &err);
    return model;
}

static leati_desc desc(leat_dtype dtype, int rank, int64_t a, int64_t b, int64_t c) {
    const int64_t shape[] = {a, b, c};
    return leati_desc_make(dtype, rank, shape);
}

static leati_program_spec spec_of(leati_mode mode, leati_desc x, leati_desc t) {
    leati_program_spec spec = {.mode = mode, .input_count = 1};
    spec.inputs[0] = x;
    spec.target_count = mode == LEATI_PREDICT ? 0 : 1;
    for (int i = 0; i < LEATI_PROGRAM_MAX_OUTPUTS; ++i) {
        spec.targets[i].rank = spec.weights[i].rank = -1;
    }
    spec.targets[0] = t;
    return spec;
}

/* Runs `steps` steps over bound arrays and returns the last loss. */
static float run_steps(leat_model *model, const leati_program_spec *spec, const void *const *inputs,
                       int steps, const run_backend *backend) {
    leat_error err = {0};
    leati_program program;
    leati_arena *arena = NULL;
    leati_plan *plan = NULL;
    assert_ok(leati_program_build(model, spec, &program, &err), &err);
    assert_ok(leati_arena_create(&arena, &err), &err);
    leati_plan_options options = {.threads = 1, .backends = backend->list, .arena = arena};
    memcpy(options.slabs, model->weights.slab, sizeof options.slabs);
    assert_ok(leati_plan_create(&plan, &program.graph, &options, &err), &err);
    for (int i = 0; i < steps; ++i) {
        leati_optimizer_scalars(model->compiled.optimizer, model->iterations++,
                                model->weights.slab[LEATI_SLAB_SCALARS]);
        assert_ok(leati_plan_run(plan, inputs, 0, 0, &err), &err);
    }
    leat_tensor loss = leati_plan_output(plan, program.loss);
    float value = *(const float *)loss.data;
    leati_plan_destroy(&plan);
    leati_arena_destroy(&arena);
    return value;
}

static const float xs[BATCH * 4] = {1, 2, 3, 4, 0, 1, 0, 1, 2, 0, 2, 0, 5, 5, 0, 0};
static const uint8_t bytes[BATCH * 4] = {1, 2, 3, 4, 0, 1, 0, 1, 2, 0, 2, 0, 5, 5, 0, 0};
static const float rows[BATCH * 3] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0};
static const double wide_rows[BATCH * 3] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0};
static const uint8_t byte_rows[BATCH * 3] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0};
static const int32_t numbers[BATCH] = {0, 1, 2, 0};
static const int64_t long_numbers[BATCH] = {0, 1, 2, 0};
static const float float_numbers[BATCH] = {0, 1, 2, 0};
static const uint8_t byte_numbers[BATCH] = {0, 1, 2, 0};

/* The step is the same for all types of inputs and targets, and for class numbers (N) and (N, 1). */
static void test_types(void **state) {
    (void)state;
    const leati_desc x = desc(LEAT_F32, 2, BATCH, 4, 0), bytes_x = desc(LEAT_U8, 2, BATCH, 4, 0);
    const struct {
        const char *loss;
        leati_desc x, t;
        const void *inputs[2];
    } cases[] = {
        {"categorical_crossentropy", x, desc(LEAT_F32, 2, BATCH, 3, 0), {xs, rows}},
        {"categorical_crossentropy", bytes_x, desc(LEAT_F32, 2, BATCH, 3, 0), {bytes, rows}},
        {"categorical_crossentropy", x, desc(LEAT_F64, 2, BATCH, 3, 0), {xs, wide_rows}},
        {"categorical_crossentropy", x, desc(LEAT_U8, 2, BATCH, 3, 0), {xs, byte_rows}},
        {"sparse_categorical_crossentropy", x, desc(LEAT_I32, 1, BATCH, 0, 0), {xs, numbers}},
        {"sparse_categorical_crossentropy", x, desc(LEAT_I32, 2, BATCH, 1, 0), {xs, numbers}},
        {"sparse_categorical_crossentropy", x, desc(LEAT_I64, 1, BATCH, 0, 0), {xs, long_numbers}},
        {"sparse_categorical_crossentropy", x, desc(LEAT_F32, 1, BATCH, 0, 0), {xs, float_numbers}},
        {"sparse_categorical_crossentropy", x, desc(LEAT_U8, 1, BATCH, 0, 0), {xs, byte_numbers}},
    };
    for (int b = 0; run_backends[b].name; ++b) {
        float first = 0.0f;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
            leat_model *model = make(SMALL_ONE, "sgd", cases[i].loss);
            const leati_program_spec spec = spec_of(LEATI_TRAIN, cases[i].x, cases[i].t);
            float loss = run_steps(model, &spec, cases[i].inputs, 3, &run_backends[b]);
            if (i == 0) first = loss;
            assert_true(isfinite(loss) && loss > 0.0f && loss == first);
            leat_model_destroy(&model);
        }
    }
}

/* Metrics of numbers beside a sparse loss compare the class numbers as numbers, whatever the type of the targets. */
static void test_metrics_of_class_numbers(void **state) {
    (void)state;
    const leati_desc x = desc(LEAT_F32, 2, BATCH, 4, 0);
    const leati_desc targets[] = {desc(LEAT_I32, 2, BATCH, 1, 0), desc(LEAT_F32, 2, BATCH, 1, 0)};
    const void *const inputs[][2] = {{xs, numbers}, {xs, float_numbers}};
    float losses[2];
    for (int i = 0; i < 2; ++i) {
        leat_error err = {0};
        leat_model *model = make(SMALL_ONE, NULL, NULL);
        leat_compile_options options = leat_compile_options_default();
        options.loss = "sparse_categorical_crossentropy";
        options.metrics = "mae,accuracy";
        assert_ok(leat_model_compile(model, &options, &err), &err);
        const leati_program_spec spec = spec_of(LEATI_TRAIN, x, targets[i]);
        losses[i] = run_steps(model, &spec, inputs[i], 2, &run_backends[0]);
        leat_model_destroy(&model);
    }
    assert_true(isfinite(losses[0]) && losses[0] == losses[1]);
}

/* Building or binding the program must fail; the message says what is wrong and where. */
static void expect(const char *json, const char *loss, const leati_program_spec *spec, leat_status status,
                   const char *says) {
    leat_error err = {0};
    leati_program program;
    leat_model *model = make(json, "sgd", loss);
    assert_int_equal(leati_program_build(model, spec, &program, &err), status);
    if (!strstr(err.message, says)) fail_msg("'%s' does not say '%s'", err.message, says);
    assert_null(program.graph);
    leat_model_destroy(&model);
}

static void test_shapes(void **state) {
    (void)state;
    const leati_desc x = desc(LEAT_F32, 2, BATCH, 4, 0), t = desc(LEAT_F32, 2, BATCH, 3, 0);
    leati_program_spec spec = spec_of(LEATI_TRAIN, desc(LEAT_F32, 2, BATCH, 5, 0), t);
    expect(SMALL_ONE, "mse", &spec, LEAT_ESHAPE, "input 'x': expected shape (None, 4), received (4, 5)");
    spec = spec_of(LEATI_TRAIN, x, desc(LEAT_F32, 2, BATCH, 2, 0));
    expect(SMALL_ONE, "mse", &spec, LEAT_ESHAPE, "target of output 'y': expected shape (4, 3)");
    spec = spec_of(LEATI_TRAIN, x, desc(LEAT_I32, 2, BATCH, 1, 0));
    expect(SMALL_ONE, "categorical_crossentropy", &spec, LEAT_ESHAPE, "sparse_categorical_crossentropy");
    spec = spec_of(LEATI_TRAIN, x, t);
    expect(SMALL_ONE, "sparse_categorical_crossentropy", &spec, LEAT_ESHAPE, "expected shape (4, 1)");
    spec.weights[0] = desc(LEAT_F32, 1, BATCH + 1, 0, 0);
    expect(SMALL_ONE, "mse", &spec, LEAT_ESHAPE, "sample weights of output 'y': expected one per sample");
    spec.weights[0] = desc(LEAT_F32, 2, BATCH, 3, 0);
    expect(SMALL_ONE, "mse", &spec, LEAT_ESHAPE, "temporal");
    spec = spec_of(LEATI_TRAIN, x, (leati_desc){.rank = -1});
    expect(SMALL_ONE, "mse", &spec, LEAT_EINVAL, "output 'y' has a loss, but received no target");
    spec = spec_of(LEATI_TRAIN, x, t);
    spec.input_count = 0;
    expect(SMALL_ONE, "mse", &spec, LEAT_ESHAPE, "expected 1 inputs, received 0");
    spec = spec_of(LEATI_TEST, x, t);
    spec.target_count = 2;
    expect(SMALL_ONE, "mse", &spec, LEAT_ESHAPE, "expected targets for 1 outputs, received 2");
}

static void test_impossible_steps(void **state) {
    (void)state;
    const leati_desc x = desc(LEAT_F32, 2, BATCH, 4, 0), t = desc(LEAT_F32, 2, BATCH, 3, 0);
    leati_program_spec spec = spec_of(LEATI_TRAIN, x, t);
    expect(SMALL_ONE, NULL, &spec, LEAT_EINVAL, "not compiled");
    spec.target_count = 2;
    expect(SMALL_TWO, "{\"a\": \"mse\"}", &spec, LEAT_EINVAL,
           "weight 'b/kernel:0': the loss does not depend on it");
    spec.targets[0].rank = -1;
    expect(SMALL_TWO, "[null, null]", &spec, LEAT_EINVAL, "without a loss");
    spec.targets[0] = t;
    expect(SMALL_TWO, "{\"b\": \"mse\"}", &spec, LEAT_EINVAL,
           "output 'a' has no loss, but received a target");
}

/* A model that is not compiled can predict. */
static void test_predict(void **state) {
    (void)state;
    leat_error err = {0};
    leati_program program;
    leat_model *model = make(SMALL_TWO, "sgd", NULL);
    leati_program_spec spec =
        spec_of(LEATI_PREDICT, desc(LEAT_F32, 2, BATCH, 4, 0), (leati_desc){.rank = -1});
    assert_ok(leati_program_build(model, &spec, &program, &err), &err);
    assert_int_equal(program.binding_count, 1);
    assert_true(leati_graph_value(program.graph, program.predictions[1])->output);
    leati_graph_destroy(&program.graph);
    leat_model_destroy(&model);
}

/* Builds the prediction of an Embedding with a mask, and a Softmax behind it. */
static leat_status build_masked_softmax(const char *version, leat_error *err) {
    char json[1024];
    leati_program program = {0};
    snprintf(json, sizeof json,
             "{\"class_name\": \"Sequential\", \"keras_version\": \"%s\", \"config\": {\"name\": \"s\", "
             "\"layers\": [{\"class_name\": \"Embedding\", \"config\": {\"name\": \"e\", \"input_dim\": 5, "
             "\"output_dim\": 3, \"mask_zero\": true, \"batch_input_shape\": [null, 3]}}, {\"class_name\": "
             "\"Softmax\", \"config\": {\"name\": \"y\"}}]}}",
             version);
    leat_model *model = make(json, NULL, NULL);
    leati_program_spec spec =
        spec_of(LEATI_PREDICT, desc(LEAT_I32, 2, BATCH, 3, 0), desc(LEAT_F32, 1, BATCH, 0, 0));
    leat_status status = leati_program_build(model, &spec, &program, err);
    leati_graph_destroy(&program.graph);
    leat_model_destroy(&model);
    return status;
}

/* Keras 2.3.1 passes a mask of steps on; current Keras takes the mask for a mask of the classes. */
static void test_softmax_behind_a_mask(void **state) {
    leat_error err = {0};
    (void)state;
    assert_ok(build_masked_softmax("2.3.1", &err), &err);
    assert_int_equal(build_masked_softmax("3.15.1", &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "use Activation('softmax')"));
}

/* MaskedLMHead numbers the steps of all samples in float: beyond 2^24 - 1 of them it refuses the batch. */
static void test_steps_of_a_masked_lm_head(void **state) {
    static const char json[] =
        "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": ["
        "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"config\": {\"batch_input_shape\": [null, 4096, "
        "1], "
        "\"dtype\": \"float32\", \"name\": \"x\"}, \"inbound_nodes\": []}, "
        "{\"class_name\": \"InputLayer\", \"name\": \"p\", \"config\": {\"batch_input_shape\": [null, 2], "
        "\"dtype\": \"int32\", \"name\": \"p\"}, \"inbound_nodes\": []}, "
        "{\"class_name\": \"keras_hub>MaskedLMHead\", \"name\": \"head\", \"config\": {\"name\": \"head\", "
        "\"vocabulary_size\": 6}, \"inbound_nodes\": [[[\"x\", 0, 0, {}], [\"p\", 0, 0, {}]]]}], "
        "\"input_layers\": [[\"x\", 0, 0], [\"p\", 0, 0]], \"output_layers\": [[\"head\", 0, 0]]}}";
    (void)state;
    leat_model *model = make(json, NULL, NULL);
    for (int64_t batch = 4095; batch <= 4096; ++batch) {
        leati_program program = {0};
        leat_error err = {0};
        leati_program_spec spec = spec_of(LEATI_PREDICT, desc(LEAT_F32, 3, batch, 4096, 1), (leati_desc){0});
        spec.input_count = 2;
        spec.inputs[1] = desc(LEAT_I32, 2, batch, 2, 0);
        const leat_status status = leati_program_build(model, &spec, &program, &err);
        assert_int_equal(status, batch < 4096 ? LEAT_OK : LEAT_ENOTSUP);
        if (batch == 4096)
            assert_non_null(strstr(err.message, "4096 samples with 4096 steps has more than 16777215 steps"));
        leati_graph_destroy(&program.graph);
    }
    leat_model_destroy(&model);
}

/* A joined mask of ones would take as much memory as the tensors: without masks there is none. */
static void test_concatenate_without_masks(void **state) {
    (void)state;
    static const char json[] =
        "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": ["
        "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"config\": {\"name\": \"x\", "
        "\"batch_input_shape\": [null, 4]}, \"inbound_nodes\": []},"
        "{\"class_name\": \"Concatenate\", \"name\": \"c\", \"config\": {\"name\": \"c\", \"axis\": -1}, "
        "\"inbound_nodes\": [[[\"x\", 0, 0, {}], [\"x\", 0, 0, {}]]]}],"
        "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"c\", 0, 0]]}}";
    leat_error err = {0};
    leati_program program;
    leat_model *model = make(json, NULL, NULL);
    const leati_desc x = desc(LEAT_F32, 2, BATCH, 4, 0);
    const leati_program_spec spec = spec_of(LEATI_PREDICT, x, x);
    assert_ok(leati_program_build(model, &spec, &program, &err), &err);
    /* the input, the result and its copy for the caller: no constant */
    assert_int_equal(leati_graph_value_count(program.graph), 3);
    leati_graph_destroy(&program.graph);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_metrics_of_class_numbers),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_impossible_steps),
        cmocka_unit_test(test_predict),
        cmocka_unit_test(test_concatenate_without_masks),
        cmocka_unit_test(test_softmax_behind_a_mask),
        cmocka_unit_test(test_steps_of_a_masked_lm_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
