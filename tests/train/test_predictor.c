/* SPDX-License-Identifier: Apache-2.0 */
/* Predictors: what predict_on_batch gives, byte for byte; one step at a time what the window gives; states of
 * their own; new weights when asked for; what they refuse. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/predictor.h"
#include "train/support.h"

enum { BATCH = 2, STEPS = 5, FEATURES = 3, MOST = 4096 };

static leat_model *model_of(const char *layers) {
    static char json[1 << 16];
    leat_model *model = NULL;
    leat_error err = {0};
    snprintf(json, sizeof json,
             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [%s]}}", layers);
    expect_ok(leat_model_from_json(&model, json, &err), &err);
    expect_ok(leat_model_initialize(model, 7, &err), &err);
    leat_model_set_threads(model, 1);
    return model;
}

static void fill(float *values, int count) {
    for (int i = 0; i < count; ++i) values[i] = (float)((i * 37 % 19) - 9) / 9.0f;
}

/* The model's first output for a batch of such inputs. */
static leat_tensor on_batch(leat_model *model, leat_tensor *inputs, int count) {
    leat_array arrays[4] = {{0}};
    leat_tensor outputs[4];
    leat_error err = {0};
    for (int i = 0; i < count; ++i) arrays[i].tensor = inputs[i];
    leat_arrays all = {.inputs = arrays, .input_count = count};
    expect_ok(leat_model_predict_on_batch(model, &all, outputs, &err), &err);
    return outputs[0];
}

static void expect_same_as_on_batch(leat_model *model, int64_t batch) {
    static float memory[4][MOST], got[MOST];
    leat_predictor_options options = leat_predictor_options_default();
    leat_predictor *predictor = NULL;
    leat_tensor inputs[4];
    const void *pointers[4];
    void *outputs[4] = {got};
    leat_error err = {0};
    int count = leat_model_input_count(model);
    options.batch_size = batch;
    expect_ok(leat_predictor_create(&predictor, model, &options, &err), &err);
    for (int i = 0; i < count; ++i) {
        inputs[i] = leat_predictor_input(predictor, i);
        int64_t numbers = leat_tensor_count(&inputs[i]);
        assert_true(numbers <= MOST && inputs[i].shape[0] == batch);
        fill(memory[i], (int)numbers);
        memcpy(inputs[i].data, memory[i], (size_t)numbers * sizeof(float));
        pointers[i] = inputs[i].data = memory[i];
    }
    leat_tensor expected = on_batch(model, inputs, count);
    for (int way = 0; way < 3; ++way) { /* given, the predictor's own, given again */
        memset(got, 0, sizeof got);
        expect_ok(leat_predictor_run(predictor, way == 1 ? NULL : pointers, outputs, &err), &err);
        leat_tensor own = leat_predictor_output(predictor, 0);
        assert_int_equal(leat_tensor_bytes(&own), leat_tensor_bytes(&expected));
        assert_memory_equal(got, expected.data, leat_tensor_bytes(&expected));
        assert_memory_equal(own.data, expected.data, leat_tensor_bytes(&expected));
    }
    leat_predictor_destroy(&predictor);
    assert_null(predictor);
}

#define DENSE(name, units, more)                                                                             \
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"" name "\", \"units\": " #units more "}}"
#define INPUT(shape) ", \"batch_input_shape\": " shape

static void gives_what_predict_on_batch_gives(void **state) {
    (void)state;
    static const char *const models[] = {
        DENSE("a", 16, ", \"activation\": \"relu\"" INPUT("[null, 7]")) "," DENSE("b", 3, ""),
        "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 16, \"kernel_size\": [3, 3],"
        " \"batch_input_shape\": [null, 6, 6, 8]}},"
        "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"n\"}},"
        "{\"class_name\": \"Activation\", \"config\": {\"name\": \"r\", \"activation\": \"relu\"}},"
        "{\"class_name\": \"GlobalAveragePooling2D\", \"config\": {\"name\": \"g\"}}",
        "{\"class_name\": \"LSTM\", \"config\": {\"name\": \"l\", \"units\": 6,"
        " \"batch_input_shape\": [null, 5, 3]}}," DENSE("b", 3, ""),
        "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\", \"batch_input_shape\": [null, 5, 3]}}"};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; ++i) {
        leat_model *model = model_of(models[i]);
        for (int64_t batch = 1; batch < 5; batch += 3) expect_same_as_on_batch(model, batch);
        leat_model_destroy(&model);
    }
}

/* Two inputs, the second of which is a model's inside, and two outputs. */
static void several_inputs_and_outputs(void **state) {
    (void)state;
    leat_error err = {0};
    leat_builder *inside = NULL, *builder = NULL;
    leat_model *inner = NULL, *model = NULL;
    expect_ok(leat_builder_create(&inside, &err), &err);
    leat_node *in = leat_input(inside, (int64_t[]){4}, 1), *out = leat_dense(in, 5, "tanh");
    expect_ok(leat_model_create(&inner, &inside, &in, 1, &out, 1, &err), &err);
    expect_ok(leat_builder_create(&builder, &err), &err);
    leat_node *inputs[2] = {leat_input(builder, (int64_t[]){3}, 1), leat_input(builder, (int64_t[]){4}, 1)};
    leat_node *parts[2] = {inputs[0], leat_call_model(&inner, &inputs[1], 1)};
    leat_node *joined = leat_merge(parts, 2, "Concatenate", NULL);
    leat_node *outputs[2] = {leat_dense(joined, 2, "softmax"), leat_dense(joined, 1, NULL)};
    expect_ok(leat_model_create(&model, &builder, inputs, 2, outputs, 2, &err), &err);
    expect_same_as_on_batch(model, 3);
    leat_predictor *predictor = NULL;
    float second = 0;
    expect_ok(leat_predictor_create(&predictor, model, NULL, &err), &err);
    fill(leat_predictor_input(predictor, 0).data, 3);
    expect_ok(leat_predictor_run(predictor, NULL, (void *[]){NULL, &second}, &err), &err);
    assert_float_equal(second, *(float *)leat_predictor_output(predictor, 1).data, 0);
    assert_null(leat_predictor_output(predictor, 2).data);
    leat_predictor_destroy(&predictor);
    leat_model_destroy(&model);
}

/* ---- Streaming ---- */

/* Expects that the steps of the window x (BATCH, STEPS, FEATURES), one by one, give the same as the whole window. */
static void expect_window(leat_model *model, const float *x) {
    leat_predictor_options options = leat_predictor_options_default();
    leat_predictor *predictor = NULL;
    leat_error err = {0};
    options.batch_size = BATCH;
    options.streaming = true;
    leat_tensor window =
        leat_tensor_view(LEAT_F32, 3, (int64_t[]){BATCH, STEPS, FEATURES}, (void *)(uintptr_t)x);
    leat_tensor whole = on_batch(model, &window, 1);
    const float *expected = whole.data;
    expect_ok(leat_predictor_create(&predictor, model, &options, &err), &err);
    leat_tensor step = leat_predictor_input(predictor, 0), out = leat_predictor_output(predictor, 0);
    assert_int_equal(step.shape[1], 1);
    bool each = whole.rank == 3;
    int64_t width = whole.shape[whole.rank - 1];
    for (int again = 0; again < 2; ++again) {
        for (int t = 0; t < STEPS; ++t) {
            for (int n = 0; n < BATCH; ++n)
                memcpy((float *)step.data + n * FEATURES, x + (n * STEPS + t) * FEATURES,
                       FEATURES * sizeof *x);
            expect_ok(leat_predictor_run(predictor, NULL, NULL, &err), &err);
            for (int n = 0; n < BATCH && (each || t == STEPS - 1); ++n)
                for (int64_t i = 0; i < width; ++i)
                    assert_float_equal(((float *)out.data)[n * width + i],
                                       expected[(each ? n * STEPS + t : n) * width + i], 1e-6);
        }
        leat_predictor_reset(predictor);
    }
    leat_predictor_destroy(&predictor);
}

#define CELL(class, name, more)                                                                              \
    "{\"class_name\": \"" class "\", \"config\": {\"name\": \"" name "\", \"units\": 6" more "}}"
#define SEQUENCES ", \"return_sequences\": true"
#define WINDOW    INPUT("[null, 5, 3]")
#define MASKED                                                                                               \
    "{\"class_name\": \"Masking\", \"config\": {\"name\": \"mask\", \"mask_value\": 0.0" WINDOW "}},"

static const char *const streams[] = {
    CELL("LSTM", "a", WINDOW) "," DENSE("d", 2, ""),
    CELL("GRU", "a", SEQUENCES WINDOW) "," CELL("SimpleRNN", "b", "") "," DENSE("d", 2, ""),
    CELL("LSTM", "a",
         SEQUENCES
             WINDOW) ","
                     "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"n\"}},"
                     "{\"class_name\": \"TimeDistributed\", \"config\": {\"name\": \"t\", \"layer\": " DENSE(
                         "d", 2, "") "}}",
    DENSE("e", 4, WINDOW) "," CELL("LSTM", "a", SEQUENCES) ","
                                                           "{\"class_name\": \"Activation\", \"config\": "
                                                           "{\"name\": \"s\", \"activation\": \"softmax\"}}",
    MASKED CELL("LSTM", "a", "") "," DENSE("d", 2, ""),
    MASKED CELL("GRU", "a", SEQUENCES) "," CELL("LSTM", "b", SEQUENCES) "," DENSE("d", 2, ""),
    "{\"class_name\": \"RNN\", \"config\": {\"name\": \"r\"" SEQUENCES WINDOW
    ", \"cell\": {\"class_name\": \"StackedRNNCells\", \"config\": {\"name\": \"s\", \"cells\": [" CELL(
        "LSTMCell", "x", "") "," CELL("GRUCell", "y", "") "]}}}}",
};

static void steps_one_by_one_are_the_window(void **state) {
    (void)state;
    float x[BATCH * STEPS * FEATURES];
    fill(x, BATCH * STEPS * FEATURES);
    memset(x, 0, FEATURES * sizeof *x);                /* masked: the first step of one sample, */
    memset(x + 8 * FEATURES, 0, FEATURES * sizeof *x); /* a middle one of the other, */
    memset(x + 4 * FEATURES, 0, FEATURES * sizeof *x); /* and the last of the first */
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; ++i) {
        leat_model *model = model_of(streams[i]);
        expect_window(model, x);
        leat_model_destroy(&model);
    }
}

static void streaming_refuses_what_needs_more_than_a_step(void **state) {
    (void)state;
    static const char *const refused[][2] = {
        {"{\"class_name\": \"Conv1D\", \"config\": {\"name\": \"c\", \"filters\": 6, \"kernel_size\": "
         "[1]" WINDOW "}}," CELL("LSTM", "a", ""),
         "layer 'c': streaming: Conv1D reads several steps"},
        {"{\"class_name\": \"Bidirectional\", \"config\": {\"name\": \"b\", \"layer\": " CELL("LSTM", "c", "")
             WINDOW "}}",
         "expected a model with a recurrent layer of one direction"},
        {CELL("LSTM", "a",
              SEQUENCES WINDOW) ","
                                "{\"class_name\": \"GlobalAveragePooling1D\", \"config\": {\"name\": \"g\"}}",
         "layer 'g': streaming: GlobalAveragePooling1D reads several steps"},
        {CELL("LSTM", "a", ", \"go_backwards\": true" WINDOW), "layer 'a': streaming: go_backwards"},
        {CELL(
             "LSTM", "a",
             SEQUENCES
                 WINDOW) ","
                         "{\"class_name\": \"Bidirectional\", \"config\": {\"name\": \"b\", \"layer\": " CELL(
                             "LSTM", "c", "") "}}",
         "layer 'b': streaming: Bidirectional reads several steps"},
        {CELL("LSTM", "a",
              SEQUENCES WINDOW) ","
                                "{\"class_name\": \"Softmax\", \"config\": {\"name\": \"s\", \"axis\": 1}}",
         "layer 's': streaming: Softmax reads several steps"},
        {DENSE("d", 2, WINDOW), "streaming: expected a model with a recurrent layer"},
    };
    leat_predictor_options options = leat_predictor_options_default();
    options.streaming = true;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; ++i) {
        leat_model *model = model_of(refused[i][0]);
        leat_predictor *predictor = NULL;
        leat_error err = {0};
        assert_int_not_equal(leat_predictor_create(&predictor, model, &options, &err), LEAT_OK);
        assert_null(predictor);
        if (!strstr(err.message, refused[i][1])) fail_msg("%s", err.message);
        leat_model_destroy(&model);
    }
}

/* One input is a sequence, the other an image, whose layers need not be stepwise. */
static void an_input_that_is_no_sequence(void **state) {
    (void)state;
    leat_error err = {0};
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    leat_predictor *predictor = NULL;
    leat_predictor_options options = leat_predictor_options_default();
    expect_ok(leat_builder_create(&builder, &err), &err);
    leat_node *inputs[2] = {leat_input(builder, (int64_t[]){STEPS, FEATURES}, 2),
                            leat_input(builder, (int64_t[]){4, 4, 1}, 3)};
    leat_node *parts[2] = {leat_lstm(inputs[0], 4, false),
                           leat_flatten(leat_conv2d(inputs[1], 2, 3, "relu"))};
    leat_node *y = leat_dense(leat_merge(parts, 2, "Concatenate", NULL), 2, NULL);
    expect_ok(leat_model_create(&model, &builder, inputs, 2, &y, 1, &err), &err);
    options.streaming = true;
    expect_ok(leat_predictor_create(&predictor, model, &options, &err), &err);
    leat_tensor step = leat_predictor_input(predictor, 0), image = leat_predictor_input(predictor, 1);
    float x[STEPS * FEATURES], picture[16];
    fill(x, STEPS * FEATURES);
    fill(picture, 16);
    assert_int_equal(step.shape[1], 1);
    assert_int_equal(image.shape[1], 4);
    memcpy(image.data, picture, sizeof picture);
    for (int t = 0; t < STEPS; ++t)
        expect_ok(leat_predictor_run(predictor, (const void *[]){x + t * FEATURES, NULL}, NULL, &err), &err);
    leat_tensor whole[2] = {leat_tensor_view(LEAT_F32, 3, (int64_t[]){1, STEPS, FEATURES}, x),
                            leat_tensor_view(LEAT_F32, 4, (int64_t[]){1, 4, 4, 1}, picture)};
    leat_tensor expected = on_batch(model, whole, 2), got = leat_predictor_output(predictor, 0);
    for (int i = 0; i < 2; ++i) assert_float_equal(((float *)got.data)[i], ((float *)expected.data)[i], 1e-6);
    leat_predictor_destroy(&predictor);
    leat_model_destroy(&model);
}

/* A sequence of its own that is added to each window: one step of the other would be taken for five. */
static void a_step_is_not_joined_with_several(void **state) {
    (void)state;
    leat_error err = {0};
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    leat_predictor *predictor = NULL;
    leat_predictor_options options = leat_predictor_options_default();
    expect_ok(leat_builder_create(&builder, &err), &err);
    leat_node *inputs[2] = {leat_input(builder, (int64_t[]){STEPS, FEATURES}, 2),
                            leat_input(builder, (int64_t[]){STEPS * FEATURES}, 1)};
    leat_node *parts[2] = {inputs[0], leat_layer(inputs[1], "Reshape", "{'target_shape': [5, 3]}")};
    leat_node *y = leat_lstm(leat_merge(parts, 2, "Add", NULL), 4, false);
    expect_ok(leat_model_create(&model, &builder, inputs, 2, &y, 1, &err), &err);
    options.streaming = true;
    assert_int_equal(leat_predictor_create(&predictor, model, &options, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "Add joins one step of a sequence with several"));
    leat_model_destroy(&model);
}

/* ---- States ---- */

static leat_predictor *stream(leat_model *model, int64_t batch) {
    leat_predictor_options options = leat_predictor_options_default();
    leat_predictor *predictor = NULL;
    leat_error err = {0};
    options.batch_size = batch;
    options.streaming = true;
    expect_ok(leat_predictor_create(&predictor, model, &options, &err), &err);
    return predictor;
}

static void step(leat_predictor *predictor, float value, float *out) {
    leat_error err = {0};
    leat_tensor x = leat_predictor_input(predictor, 0);
    for (int64_t i = 0; i < leat_tensor_count(&x); ++i) ((float *)x.data)[i] = value;
    expect_ok(leat_predictor_run(predictor, NULL, (void *[]){out}, &err), &err);
}

static void states_are_saved_restored_and_reset(void **state) {
    (void)state;
    leat_model *model = model_of(streams[1]);
    leat_predictor *one = stream(model, BATCH), *two = stream(model, BATCH);
    float first[2 * BATCH], after[2 * BATCH], again[2 * BATCH];
    unsigned char kept[1024];
    assert_true(leat_predictor_state_bytes(one) > 0 && leat_predictor_state_bytes(one) <= sizeof kept);
    step(one, 1, first);
    leat_predictor_save(one, kept);
    step(one, -1, after);
    assert_memory_not_equal(first, after, sizeof first);
    leat_predictor_restore(two, kept); /* another predictor continues with these states */
    step(two, -1, again);
    assert_memory_equal(again, after, sizeof after);
    leat_predictor_reset(one);
    step(one, 1, again);
    assert_memory_equal(again, first, sizeof first);
    leat_predictor_reset_sample(one, 1); /* resets the second sample's state, not the first's */
    step(one, -1, again);
    assert_memory_equal(again, after, 2 * sizeof *again);
    assert_memory_not_equal(again + 2, after + 2, 2 * sizeof *again);
    leat_tensor h = leat_predictor_state(one, "b", 0);
    assert_int_equal(h.shape[0], BATCH);
    assert_int_equal(h.shape[1], 6);
    assert_true(((float *)h.data)[0] != 0);
    assert_null(leat_predictor_state(one, "b", 1).data);
    assert_null(leat_predictor_state(one, "d", 0).data);
    leat_predictor_destroy(&one);
    leat_predictor_destroy(&two);
    leat_model_destroy(&model);
}

/* A stateful model's predictors leave its own states alone, and may have other batches. */
static void stateful_models(void **state) {
    (void)state;
    leat_model *model =
        model_of(CELL("LSTM", "a", ", \"stateful\": true" INPUT("[2, 1, 3]")) "," DENSE("d", 2, ""));
    leat_predictor *predictor = NULL, *single = stream(model, 1);
    leat_predictor_options options = leat_predictor_options_default();
    leat_error err = {0};
    float x[6], expected[2][4], got[4];
    leat_tensor input = leat_tensor_view(LEAT_F32, 3, (int64_t[]){2, 1, 3}, x);
    for (int i = 0; i < 6; ++i) x[i] = 1;
    for (int i = 0; i < 2; ++i) memcpy(expected[i], on_batch(model, &input, 1).data, sizeof expected[i]);
    options.batch_size = 2;
    expect_ok(leat_predictor_create(&predictor, model, &options, &err), &err);
    for (int i = 0; i < 2; ++i) {
        expect_ok(leat_predictor_run(predictor, (const void *[]){x}, (void *[]){got}, &err), &err);
        assert_memory_equal(got, expected[i], sizeof got);
        step(single, 1, got);
        for (int k = 0; k < 2; ++k) assert_float_equal(got[k], expected[i][k], 1e-6);
    }
    leat_predictor_destroy(&predictor);
    leat_predictor_destroy(&single);
    leat_model_destroy(&model);
}

/* ---- Weights ---- */

static float predict_one(leat_predictor *predictor) {
    leat_error err = {0};
    leat_tensor x = leat_predictor_input(predictor, 0);
    fill(x.data, (int)leat_tensor_count(&x));
    expect_ok(leat_predictor_run(predictor, NULL, NULL, &err), &err);
    return *(float *)leat_predictor_output(predictor, 0).data;
}

static void new_weights_are_seen_when_asked_for(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(3);
    leat_predictor *old = NULL, *fresh = NULL, *later = NULL;
    expect_ok(leat_predictor_create(&old, model, NULL, &err), &err);
    expect_ok(leat_predictor_create(&fresh, model, NULL, &err), &err);
    assert_int_equal(leat_predictor_version(old), leat_predictor_version(fresh));
    float before = predict_one(fresh);
    expect_ok(leat_model_initialize(model, 4, &err), &err);
    expect_ok(leat_predictor_sync(fresh, &err), &err);
    assert_float_equal(predict_one(fresh), before, 0); /* not published */
    expect_ok(leat_model_publish(model, &err), &err);
    assert_float_equal(predict_one(fresh), before, 0); /* not asked for */
    expect_ok(leat_predictor_sync(fresh, &err), &err);
    assert_true(predict_one(fresh) != before);
    assert_true(leat_predictor_version(fresh) > leat_predictor_version(old));
    expect_ok(leat_predictor_create(&later, model, NULL, &err), &err);
    assert_int_equal(leat_predictor_version(later), leat_predictor_version(fresh));
    assert_float_equal(predict_one(later), predict_one(fresh), 0);
    assert_float_equal(predict_one(old), before, 0);
    leat_predictor_destroy(&old);
    leat_predictor_destroy(&fresh);
    leat_predictor_destroy(&later);
    leat_model_destroy(&model);
}

/* The packed weights of a convolution and of a recurrent layer follow each publication; the states stay unchanged. */
static void packed_weights_follow(void **state) {
    (void)state;
    static const char *const models[] = {
        "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 8, \"kernel_size\": [3, 3],"
        " \"batch_input_shape\": [null, 6, 6, 8]}},"
        "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\"}}," DENSE("d", 2, ""),
        CELL("LSTM", "a", WINDOW) "," DENSE("d", 2, "")};
    leat_error err = {0};
    for (int m = 0; m < 2; ++m) {
        leat_model *model = model_of(models[m]);
        leat_predictor_options options = leat_predictor_options_default();
        leat_predictor *predictors[3] = {0}, *fresh = NULL;
        options.streaming = m == 1;
        for (int i = 0; i < 3; ++i)
            expect_ok(leat_predictor_create(&predictors[i], model, &options, &err), &err);
        for (uint64_t round = 1; round < 6; ++round) {
            expect_ok(leat_model_initialize(model, round, &err), &err);
            expect_ok(leat_model_publish(model, &err), &err);
            expect_ok(leat_predictor_create(&fresh, model, &options, &err), &err);
            float expected = predict_one(fresh);
            for (int i = 0; i < 3; ++i) {
                expect_ok(leat_predictor_sync(predictors[i], &err), &err);
                leat_predictor_reset(predictors[i]);
                assert_float_equal(predict_one(predictors[i]), expected, 0);
            }
            leat_predictor_destroy(&fresh);
        }
        if (m == 1) {
            unsigned char states[2][512];
            leat_predictor_save(predictors[0], states[0]);
            expect_ok(leat_model_publish(model, &err), &err);
            expect_ok(leat_predictor_sync(predictors[0], &err), &err);
            leat_predictor_save(predictors[0], states[1]);
            assert_memory_equal(states[0], states[1], leat_predictor_state_bytes(predictors[0]));
        }
        for (int i = 0; i < 3; ++i) leat_predictor_destroy(&predictors[i]);
        leat_model_destroy(&model);
    }
}

/* Large images are computed in groups of two samples (engine/plan/group_samples.c), whichever way the batch comes; a
 * sample's prediction is the one that it has alone, also with new weights. */
static void groups_of_samples_predict_the_same(void **state) {
    (void)state;
    enum { BATCHED = 8, NUMBERS = 136 * 136 * 8, CLASSES = 3 };
    static float x[BATCHED * NUMBERS];
    leat_error err = {0};
    leat_model *model = model_of(
        "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 8, \"kernel_size\": [1, 1],"
        " \"activation\": \"relu\", \"batch_input_shape\": [null, 136, 136, 8]}},"
        "{\"class_name\": \"DepthwiseConv2D\", \"config\": {\"name\": \"w\", \"kernel_size\": [3, 3]}},"
        "{\"class_name\": \"GlobalAveragePooling2D\", \"config\": {\"name\": \"g\"}}," DENSE("d", 3, ""));
    leat_predictor_options options = leat_predictor_options_default();
    leat_predictor *one = NULL, *all = NULL;
    leat_plan_options plan = leat_plan_options_default();
    char *text = NULL;
    plan.batch_size = BATCHED;
    plan.threads = 1;
    expect_ok(leat_model_plan_summary(model, &plan, &text, &err), &err);
    assert_non_null(strstr(text, "are computed for groups of 2 samples"));
    leat_string_free(text);
    fill(x, BATCHED * NUMBERS);
    for (int i = 0; i < BATCHED * NUMBERS; ++i) x[i] += (float)(i / NUMBERS);
    expect_ok(leat_predictor_create(&one, model, &options, &err), &err);
    options.batch_size = BATCHED;
    expect_ok(leat_predictor_create(&all, model, &options, &err), &err);
    for (uint64_t round = 1; round < 4; ++round) {
        float got[BATCHED][CLASSES], expected[CLASSES];
        expect_ok(leat_model_initialize(model, round, &err), &err);
        expect_ok(leat_model_publish(model, &err), &err);
        expect_ok(leat_predictor_sync(one, &err), &err);
        expect_ok(leat_predictor_sync(all, &err), &err);
        expect_ok(leat_predictor_run(all, (const void *[]){x}, (void *[]){got}, &err), &err);
        leat_tensor input = leat_predictor_input(all, 0);
        input.data = x;
        assert_memory_equal(on_batch(model, &input, 1).data, got, sizeof got);
        for (int i = 0; i < BATCHED; ++i) {
            expect_ok(leat_predictor_run(one, (const void *[]){x + (ptrdiff_t)i * NUMBERS},
                                         (void *[]){expected}, &err),
                      &err);
            for (int j = 0; j < CLASSES; ++j) assert_float_equal(got[i][j], expected[j], 1e-4);
        }
    }
    leat_predictor_destroy(&one);
    leat_predictor_destroy(&all);
    leat_model_destroy(&model);
}

/* Smaller weights give other predictions, but not by much, and follow each publication; one step at a time gives what
 * the window gives. */
static void expect_near_f32(leat_weights_format format, bool streaming, float most) {
    leat_model *model =
        model_of("{\"class_name\": \"LSTM\", \"config\": {\"name\": \"l\", \"units\": 64" WINDOW
                 "}}," DENSE("h", 32, ", \"activation\": \"tanh\"") "," DENSE("o", 1, ""));
    leat_predictor_options options = leat_predictor_options_default();
    leat_predictor *plain = NULL, *small = NULL, *fresh = NULL;
    leat_error err = {0};
    options.streaming = streaming;
    expect_ok(leat_predictor_create(&plain, model, &options, &err), &err);
    options.weights_format = format;
    expect_ok(leat_predictor_create(&small, model, &options, &err), &err);
    assert_int_equal(leat_predictor_narrow_weights(plain), 0);
    assert_int_equal(leat_predictor_narrow_weights(small), (FEATURES + 64) * 256 + 64 * 32);
    for (uint64_t round = 1; round < 4; ++round) {
        float exact = predict_one(plain), near = predict_one(small);
        assert_true(near != exact);
        assert_float_equal(near, exact, most);
        expect_ok(leat_model_initialize(model, round, &err), &err);
        expect_ok(leat_model_publish(model, &err), &err);
        expect_ok(leat_predictor_sync(plain, &err), &err);
        expect_ok(leat_predictor_sync(small, &err), &err);
        leat_predictor_reset(plain);
        leat_predictor_reset(small);
        expect_ok(leat_predictor_create(&fresh, model, &options, &err), &err);
        assert_float_equal(predict_one(small), predict_one(fresh), 0);
        leat_predictor_reset(small);
        leat_predictor_destroy(&fresh);
    }
    leat_predictor_destroy(&plain);
    leat_predictor_destroy(&small);
    leat_model_destroy(&model);
}

static void smaller_weights_predict_nearly_the_same(void **state) {
    (void)state;
    for (int streaming = 0; streaming < 2; ++streaming) {
        expect_near_f32(LEAT_WEIGHTS_BF16, streaming, 0.01f);
        expect_near_f32(LEAT_WEIGHTS_INT8, streaming, 0.02f);
    }
}

static void formats_have_names(void **state) {
    (void)state;
    leat_weights_format format = LEAT_WEIGHTS_F32;
    leat_error err = {0};
    expect_ok(leat_weights_format_parse(&format, "int8", &err), &err);
    assert_int_equal(format, LEAT_WEIGHTS_INT8);
    assert_int_equal(leat_weights_format_parse(&format, "int4", &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "expected f32, bf16 or int8, received 'int4'"));
    assert_int_equal(format, LEAT_WEIGHTS_F32);
}

static void weights_that_moved_are_refused(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = model_of(DENSE("a", 4, INPUT("[null, 3]")) "," DENSE("b", 2, ""));
    leat_compile_options options = leat_compile_options_default();
    leat_predictor *predictor = NULL;
    options.loss = "mse";
    expect_ok(leat_predictor_create(&predictor, model, NULL, &err), &err);
    float before = predict_one(predictor);
    expect_ok(leat_model_compile(model, &options, &err), &err); /* the weights keep their positions */
    expect_ok(leat_model_publish(model, &err), &err);
    expect_ok(leat_predictor_sync(predictor, &err), &err);
    assert_float_equal(predict_one(predictor), before, 0);
    expect_ok(leat_model_set_trainable(model, "a", false, &err), &err);
    expect_ok(leat_model_compile(model, &options, &err), &err);
    expect_ok(leat_model_publish(model, &err), &err);
    assert_int_equal(leat_predictor_sync(predictor, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "compiled again with other layers frozen"));
    assert_float_equal(predict_one(predictor), before, 0);
    leat_predictor_destroy(&predictor);
    leat_model_destroy(&model);
}

/* The owner may destroy the model before the predictors are destroyed. */
static void a_predictor_keeps_its_model(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = model_of(CELL("LSTM", "a", INPUT("[null, 4, 3]")) "," DENSE("b", 2, ""));
    leat_predictor *first = NULL, *second = NULL;
    expect_ok(leat_predictor_create(&first, model, NULL, &err), &err);
    expect_ok(leat_predictor_create(&second, model, NULL, &err), &err);
    float before = predict_one(first);
    expect_ok(leat_model_initialize(model, 4, &err), &err);
    expect_ok(leat_model_publish(model, &err), &err);
    leat_model_destroy(&model);
    assert_null(model);
    assert_float_equal(predict_one(first), before, 0);
    leat_predictor_destroy(&first);
    expect_ok(leat_predictor_sync(second, &err), &err);
    assert_true(predict_one(second) != before);
    leat_predictor_destroy(&second);
}

static void options_are_checked(void **state) {
    (void)state;
    leat_model *model = model_of(CELL("LSTM", "a", INPUT("[null, null, 3]")));
    leat_predictor_options options = leat_predictor_options_default();
    leat_predictor *predictor = NULL;
    leat_error err = {0};
    assert_int_equal(leat_predictor_create(&predictor, model, NULL, &err), LEAT_ESHAPE);
    assert_non_null(
        strstr(err.message,
               "expected a complete shape with first dimension 1, received (1, None, 3): give the shape"));
    leat_tensor shape = leat_tensor_view(LEAT_F64, 3, (int64_t[]){1, 4, 3}, NULL);
    options.inputs = &shape;
    expect_ok(leat_predictor_create(&predictor, model, &options, &err), &err);
    assert_int_equal(leat_predictor_input(predictor, 0).dtype, LEAT_F64);
    leat_predictor_destroy(&predictor);
    shape.shape[2] = 4;
    assert_int_equal(leat_predictor_create(&predictor, model, &options, &err), LEAT_ESHAPE);
    options.inputs = NULL;
    options.batch_size = 0;
    assert_int_equal(leat_predictor_create(&predictor, model, &options, &err), LEAT_EINVAL);
    options.batch_size = 1;
    options.threads = 0;
    assert_int_equal(leat_predictor_create(&predictor, model, &options, &err), LEAT_EINVAL);
    options.threads = 1;
    options.weights_format = (leat_weights_format)3;
    assert_int_equal(leat_predictor_create(&predictor, model, &options, &err), LEAT_EINVAL);
    assert_null(predictor);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_what_predict_on_batch_gives),
        cmocka_unit_test(several_inputs_and_outputs),
        cmocka_unit_test(steps_one_by_one_are_the_window),
        cmocka_unit_test(streaming_refuses_what_needs_more_than_a_step),
        cmocka_unit_test(an_input_that_is_no_sequence),
        cmocka_unit_test(a_step_is_not_joined_with_several),
        cmocka_unit_test(states_are_saved_restored_and_reset),
        cmocka_unit_test(stateful_models),
        cmocka_unit_test(new_weights_are_seen_when_asked_for),
        cmocka_unit_test(packed_weights_follow),
        cmocka_unit_test(groups_of_samples_predict_the_same),
        cmocka_unit_test(smaller_weights_predict_nearly_the_same),
        cmocka_unit_test(formats_have_names),
        cmocka_unit_test(weights_that_moved_are_refused),
        cmocka_unit_test(a_predictor_keeps_its_model),
        cmocka_unit_test(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
