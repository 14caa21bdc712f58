/* SPDX-License-Identifier: Apache-2.0 */
/* The functions for bindings of other languages: those that write a result through a pointer give the same results
 * as those that return it by value, and refuse NULL and wrong indices; texts are logged without a format. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/leat.h"
#include "train/support.h"

static leat_error err;

/* Expects that the call fails with this status and a message, and sets *out to zeros. */
#define expect_refusal(call, status, out)                                                                    \
    do {                                                                                                     \
        memset(&err, 0, sizeof err);                                                                         \
        memset(&(out), 0x5a, sizeof(out));                                                                   \
        assert_int_equal(call, status);                                                                      \
        assert_int_not_equal(err.message[0], 0);                                                             \
        for (size_t byte = 0; byte < sizeof(out); ++byte)                                                    \
            assert_int_equal(((const unsigned char *)&(out))[byte], 0);                                      \
    } while (0)

#define expect_null(call, name)                                                                              \
    do {                                                                                                     \
        memset(&err, 0, sizeof err);                                                                         \
        assert_int_equal(call, LEAT_EINVAL);                                                                 \
        assert_non_null(strstr(err.message, name " is NULL"));                                               \
    } while (0)

static void expect_same(const leat_tensor *a, leat_tensor b) {
    assert_int_equal(a->dtype, b.dtype);
    assert_int_equal(a->rank, b.rank);
    assert_memory_equal(a->shape, b.shape, sizeof b.shape);
    assert_ptr_equal(a->data, b.data);
}

/* A stateful LSTM(2) named "memory" on a batch of one sequence of 3 steps of 2 numbers. */
static leat_model *make_stateful(void) {
    leat_model *model = NULL;
    leat_builder *builder = NULL;
    expect_ok(leat_builder_create(&builder, &err), &err);
    leat_node *input = leat_batch_input(builder, (int64_t[]){1, 3, 2}, 3);
    leat_node *output = leat_layer(input, "LSTM", "{'units': 2, 'stateful': true, 'name': 'memory'}");
    expect_ok(leat_model_create(&model, &builder, &input, 1, &output, 1, &err), &err);
    return model;
}

static void views_of_a_model(void **state) {
    leat_model *model = make_classifier(1);
    leat_tensor out;
    (void)state;
    for (int i = 0; i < leat_model_weight_count(model); ++i) {
        expect_ok(leat_model_weight_into(model, i, &out, &err), &err);
        expect_same(&out, leat_model_weight(model, i));
    }
    expect_ok(leat_model_input_shape_into(model, 0, &out, &err), &err);
    expect_same(&out, leat_model_input_shape(model, 0));
    assert_int_equal(out.shape[0], -1);
    expect_ok(leat_model_output_shape_into(model, 0, &out, &err), &err);
    expect_same(&out, leat_model_output_shape(model, 0));
    expect_refusal(leat_model_weight_into(model, 4, &out, &err), LEAT_EINVAL, out);
    assert_non_null(strstr(err.message, "from 0 to 3, received 4"));
    expect_refusal(leat_model_weight_into(model, -1, &out, &err), LEAT_EINVAL, out);
    expect_refusal(leat_model_input_shape_into(model, 1, &out, &err), LEAT_EINVAL, out);
    expect_refusal(leat_model_output_shape_into(model, -1, &out, &err), LEAT_EINVAL, out);
    expect_refusal(leat_model_weight_into(NULL, 0, &out, &err), LEAT_EINVAL, out);
    expect_null(leat_model_weight_into(model, 0, NULL, &err), "out");
    expect_null(leat_model_input_shape_into(NULL, 0, &out, &err), "model");
    expect_null(leat_model_output_shape_into(NULL, 0, &out, &err), "model");
    leat_model_destroy(&model);
}

/* The copies have the numbers of the views, converted, and a changed weight changes predictions. */
static void copies_of_weights(void **state) {
    leat_model *model = make_classifier(1);
    leat_tensor shape, wrong;
    double numbers[4096] = {0};
    (void)state;
    for (int i = 0; i < leat_model_weight_count(model); ++i) {
        expect_ok(leat_model_weight_shape(model, i, &shape, &err), &err);
        assert_null(shape.data);
        assert_int_equal(shape.dtype, LEAT_F32);
        assert_in_range(leat_tensor_count(&shape), 1, 4096);
        shape.dtype = LEAT_F64;
        shape.data = numbers;
        expect_ok(leat_model_weight_get(model, i, &shape, &err), &err);
        const float *seen = leat_model_weight(model, i).data;
        for (int64_t k = 0; k < leat_tensor_count(&shape); ++k) {
            assert_true(numbers[k] == (double)seen[k]);
            numbers[k] += 0.5;
        }
        expect_ok(leat_model_weight_set(model, i, &shape, &err), &err);
        for (int64_t k = 0; k < leat_tensor_count(&shape); ++k) assert_true((float)numbers[k] == seen[k]);
    }
    wrong = leat_tensor_view(LEAT_F64, 1, (int64_t[]){1}, numbers);
    assert_int_equal(leat_model_weight_get(model, 0, &wrong, &err), LEAT_ESHAPE);
    assert_non_null(strstr(err.message, leat_model_weight_name(model, 0)));
    assert_int_equal(leat_model_weight_set(model, 0, &wrong, &err), LEAT_ESHAPE);
    assert_int_equal(leat_model_weight_get(model, -1, &wrong, &err), LEAT_EINVAL);
    assert_int_equal(leat_model_weight_set(model, 4, &wrong, &err), LEAT_EINVAL);
    expect_refusal(leat_model_weight_shape(model, 4, &wrong, &err), LEAT_EINVAL, wrong);
    expect_null(leat_model_weight_get(NULL, 0, &wrong, &err), "model");
    expect_null(leat_model_weight_set(model, 0, NULL, &err), "src");
    leat_model_destroy(&model);
}

static void views_of_states(void **state) {
    leat_model *model = make_stateful();
    leat_predictor *predictor = NULL;
    leat_tensor out;
    (void)state;
    expect_ok(leat_model_state_into(model, "memory", 1, &out, &err), &err);
    expect_same(&out, leat_model_state(model, "memory", 1));
    expect_refusal(leat_model_state_into(model, "memory", 2, &out, &err), LEAT_ENOTFOUND, out);
    expect_refusal(leat_model_state_into(model, "other", 0, &out, &err), LEAT_ENOTFOUND, out);
    expect_null(leat_model_state_into(model, NULL, 0, &out, &err), "layer");
    expect_ok(leat_predictor_create(&predictor, model, NULL, &err), &err);
    expect_ok(leat_predictor_input_into(predictor, 0, &out, &err), &err);
    expect_same(&out, leat_predictor_input(predictor, 0));
    expect_ok(leat_predictor_output_into(predictor, 0, &out, &err), &err);
    expect_same(&out, leat_predictor_output(predictor, 0));
    expect_ok(leat_predictor_state_into(predictor, "memory", 0, &out, &err), &err);
    expect_same(&out, leat_predictor_state(predictor, "memory", 0));
    expect_refusal(leat_predictor_input_into(predictor, 1, &out, &err), LEAT_EINVAL, out);
    expect_refusal(leat_predictor_output_into(predictor, -1, &out, &err), LEAT_EINVAL, out);
    expect_refusal(leat_predictor_state_into(predictor, "memory", 2, &out, &err), LEAT_ENOTFOUND, out);
    expect_null(leat_predictor_input_into(NULL, 0, &out, &err), "predictor");
    expect_null(leat_predictor_state_into(predictor, NULL, 0, &out, &err), "layer");
    leat_predictor_destroy(&predictor);
    leat_model_destroy(&model);
}

static void views_are_checked(void **state) {
    float data[6];
    int64_t shape[LEAT_MAX_RANK + 1] = {2, 3};
    leat_tensor out;
    (void)state;
    expect_ok(leat_tensor_view_into(LEAT_F32, 2, shape, data, &out, &err), &err);
    expect_same(&out, leat_tensor_view(LEAT_F32, 2, shape, data));
    expect_ok(leat_tensor_view_into(LEAT_I64, 0, NULL, data, &out, &err), &err);
    expect_refusal(leat_tensor_view_into((leat_dtype)77, 2, shape, data, &out, &err), LEAT_EDTYPE, out);
    expect_refusal(leat_tensor_view_into(LEAT_F32, LEAT_MAX_RANK + 1, shape, data, &out, &err), LEAT_ESHAPE,
                   out);
    expect_refusal(leat_tensor_view_into(LEAT_F32, -1, shape, data, &out, &err), LEAT_ESHAPE, out);
    expect_null(leat_tensor_view_into(LEAT_F32, 2, NULL, data, &out, &err), "shape");
    expect_null(leat_tensor_view_into(LEAT_F32, 2, shape, data, NULL, &err), "out");
}

/* Metric names are the names of evaluation's results, in the same order. */
static void expect_metric_names(leat_model *model, const leat_arrays *arrays, const char *first) {
    leat_logs logs;
    char name[LEAT_LOG_NAME_BYTES];
    expect_ok(leat_model_evaluate(model, arrays, 0, NULL, &logs, &err), &err);
    assert_int_equal(leat_model_metric_count(model), logs.count);
    for (int i = 0; i < logs.count; ++i) {
        expect_ok(leat_model_metric_name(model, i, name, &err), &err);
        assert_string_equal(name, logs.items[i].name);
    }
    expect_ok(leat_model_metric_name(model, 1, name, &err), &err);
    assert_string_equal(name, first);
    assert_int_equal(leat_model_metric_name(model, logs.count, name, &err), LEAT_EINVAL);
    assert_string_equal(name, "");
}

static void names_of_metrics(void **state) {
    leat_model *model = make_classifier(1), *two = NULL;
    leat_builder *builder = NULL;
    float x[2][4] = {{0}}, y[2][3] = {{0}};
    leat_array in = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 4}, x)}, out[2];
    leat_arrays arrays = {.inputs = &in, .input_count = 1, .targets = out, .target_count = 1};
    leat_compile_options options = leat_compile_options_default();
    (void)state;
    out[0] = out[1] = (leat_array){.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 3}, y)};
    expect_metric_names(model, &arrays, "accuracy");
    expect_ok(leat_builder_create(&builder, &err), &err);
    leat_node *input = leat_input(builder, (int64_t[]){4}, 1), *outputs[2];
    outputs[0] = leat_layer(input, "Dense", "{'units': 3, 'name': 'a'}");
    outputs[1] = leat_layer(input, "Dense", "{'units': 3, 'name': 'b'}");
    expect_ok(leat_model_create(&two, &builder, &input, 1, outputs, 2, &err), &err);
    assert_int_equal(leat_model_metric_count(two), 0);
    options.loss = "mse";
    options.metrics = "mae";
    expect_ok(leat_model_compile(two, &options, &err), &err);
    arrays.target_count = 2;
    expect_metric_names(two, &arrays, "a_loss");
    assert_int_equal(leat_model_metric_count(two), 5);
    assert_int_equal(leat_model_metric_count(NULL), 0);
    expect_null(leat_model_metric_name(two, 0, NULL, &err), "out");
    leat_model_destroy(&two);
    leat_model_destroy(&model);
}

/* The optimizer's state after training is the number of steps and Adam's moments. */
static void state_of_the_optimizer_after_a_fit(void **state) {
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(12, 4);
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit(2);
    int64_t steps = 0;
    float moments[64] = {0}, sum = 0;
    leat_tensor counter, slot;
    char name[LEAT_OPTIMIZER_NAME_BYTES];
    (void)state;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    expect_ok(leat_model_optimizer_weight_shape(model, 0, &counter, name, &err), &err);
    counter.data = &steps;
    expect_ok(leat_model_optimizer_weight_get(model, 0, &counter, &err), &err);
    assert_int_equal(steps, 6);
    expect_ok(leat_model_optimizer_weight_shape(model, 1, &slot, name, &err), &err);
    assert_string_equal(name, "m_0:0");
    assert_true(leat_tensor_count(&slot) <= 64);
    slot.data = moments;
    expect_ok(leat_model_optimizer_weight_get(model, 1, &slot, &err), &err);
    for (int i = 0; i < 64; ++i) sum += moments[i] * moments[i];
    assert_true(sum > 0);
    leat_model_destroy(&model);
}

static void predictions_by_pointer(void **state) {
    leat_model *model = make_classifier(1);
    leat_predictions *predictions = NULL;
    float x[3][4] = {{0}};
    leat_array in = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 4}, x)};
    leat_arrays arrays = {.inputs = &in, .input_count = 1};
    leat_tensor out;
    (void)state;
    expect_ok(leat_model_predict(model, &arrays, 2, NULL, &predictions, &err), &err);
    expect_ok(leat_predictions_get_into(predictions, 0, &out, &err), &err);
    expect_same(&out, leat_predictions_get(predictions, 0));
    expect_refusal(leat_predictions_get_into(predictions, 1, &out, &err), LEAT_EINVAL, out);
    expect_null(leat_predictions_get_into(NULL, 0, &out, &err), "predictions");
    leat_predictions_destroy(&predictions);
    leat_model_destroy(&model);
}

/* ---- Predictions into the caller's memory ---- */

enum { SAMPLES = 10, CLASSES = 3 };

typedef struct room {
    float before, values[SAMPLES][CLASSES], after; /* guards around it */
    leat_tensor tensor;
} room;

static void make_room(room *r, int64_t samples) {
    for (int i = 0; i < SAMPLES * CLASSES; ++i) r->values[i / CLASSES][i % CLASSES] = -1;
    r->before = r->after = -7;
    r->tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, CLASSES}, r->values);
}

static void expect_predicted(const room *r, const leat_predictions *all, int64_t samples) {
    const leat_tensor want = leat_predictions_get(all, 0);
    assert_int_equal(r->tensor.shape[0], samples);
    assert_memory_equal(r->values, want.data, (size_t)samples * CLASSES * sizeof(float));
    for (int64_t i = samples; i < SAMPLES; ++i) assert_true(r->values[i][0] == -1);
    assert_true(r->before == -7 && r->after == -7);
}

static void predictions_go_into_given_memory(void **state) {
    leat_model *model = make_classifier(1);
    leat_predictions *all = NULL;
    float x[8][4];
    room r;
    (void)state;
    for (int i = 0; i < 32; ++i) x[i / 4][i % 4] = (float)(i % 7) - 3;
    leat_array in = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){8, 4}, x)};
    leat_arrays arrays = {.inputs = &in, .input_count = 1};
    expect_ok(leat_model_predict(model, &arrays, 3, NULL, &all, &err), &err);
    for (int64_t samples = 8; samples <= SAMPLES; ++samples) {
        make_room(&r, samples);
        expect_ok(leat_model_predict_into(model, &arrays, 3, NULL, &r.tensor, &err), &err);
        expect_predicted(&r, all, 8);
        make_room(&r, samples);
        expect_ok(leat_model_predict_on_batch_into(model, &arrays, &r.tensor, &err), &err);
        assert_int_equal(r.tensor.shape[0], 8);
        const leat_tensor want = leat_predictions_get(all, 0);
        for (int i = 0; i < 8 * CLASSES; ++i) /* a batch of another size may round otherwise */
            assert_float_equal(r.values[i / CLASSES][i % CLASSES], ((const float *)want.data)[i], 1e-6);
        assert_true(r.before == -7 && r.after == -7);
    }
    make_room(&r, 0);
    r.tensor.data = NULL; /* the caller does not want this output */
    expect_ok(leat_model_predict_into(model, &arrays, 3, NULL, &r.tensor, &err), &err);
    leat_predictions_destroy(&all);
    leat_model_destroy(&model);
}

/* A sequence, and a generator that ends before its steps do. */
static void predictions_of_sequences_go_into_given_memory(void **state) {
    leat_model *model = make_classifier(1);
    leat_predictions *all = NULL;
    clusters data = clusters_of(SAMPLES - 1, 4);
    leat_sequence sequence = clusters_sequence(&data);
    leat_evaluate_options options = leat_evaluate_options_default();
    room r;
    (void)state;
    expect_ok(leat_model_predict_generator(model, &sequence, NULL, &all, &err), &err);
    make_room(&r, SAMPLES);
    expect_ok(leat_model_predict_generator_into(model, &sequence, NULL, &r.tensor, &err), &err);
    expect_predicted(&r, all, SAMPLES - 1);
    make_room(&r, SAMPLES - 2); /* the missing room is noticed at the last batch */
    assert_int_equal(leat_model_predict_generator_into(model, &sequence, NULL, &r.tensor, &err), LEAT_ESHAPE);
    assert_non_null(strstr(err.message, "(9, 3), received float32 of shape (8, 3)"));
    assert_int_equal(r.tensor.shape[0], SAMPLES - 2);
    assert_true(r.values[SAMPLES - 2][0] == -1);
    data.ends_at = 2;
    leat_sequence generator = clusters_generator(&data);
    options.steps = 5;
    make_room(&r, SAMPLES);
    expect_ok(leat_model_predict_generator_into(model, &generator, &options, &r.tensor, &err), &err);
    expect_predicted(&r, all, 8);
    leat_predictions_destroy(&all);
    leat_model_destroy(&model);
}

static void memory_for_predictions_is_checked(void **state) {
    leat_model *model = make_classifier(1);
    float x[8][4] = {{0}};
    leat_array in = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){8, 4}, x)};
    leat_arrays arrays = {.inputs = &in, .input_count = 1};
    room r;
    (void)state;
#define REFUSED(status)                                                                                      \
    do {                                                                                                     \
        leat_tensor given = r.tensor;                                                                        \
        assert_int_equal(leat_model_predict_into(model, &arrays, 3, NULL, &r.tensor, &err), status);         \
        assert_int_equal(leat_model_predict_on_batch_into(model, &arrays, &r.tensor, &err), status);         \
        assert_memory_equal(&given, &r.tensor, sizeof given);                                                \
        assert_true(r.values[0][0] == -1);                                                                   \
    } while (0)
    make_room(&r, 7);
    REFUSED(LEAT_ESHAPE);
    assert_non_null(strstr(err.message, "output 0: expected memory for float32 of shape (8, 3), received "
                                        "float32 of shape (7, 3)"));
    make_room(&r, 8);
    r.tensor.shape[1] = 2;
    REFUSED(LEAT_ESHAPE);
    make_room(&r, 8);
    r.tensor.rank = 1;
    REFUSED(LEAT_ESHAPE);
    make_room(&r, 8);
    r.tensor.rank = 9;
    REFUSED(LEAT_ESHAPE);
    make_room(&r, 8);
    r.tensor.dtype = LEAT_F64;
    REFUSED(LEAT_EDTYPE);
#undef REFUSED
    expect_null(leat_model_predict_into(model, &arrays, 3, NULL, NULL, &err), "outputs");
    expect_null(leat_model_predict_into(model, NULL, 3, NULL, &r.tensor, &err), "arrays");
    expect_null(leat_model_predict_generator_into(model, NULL, NULL, &r.tensor, &err), "sequence");
    expect_null(leat_model_predict_on_batch_into(NULL, &arrays, &r.tensor, &err), "model");
    arrays.inputs = NULL;
    make_room(&r, 8);
    assert_int_equal(leat_model_predict_on_batch_into(model, &arrays, &r.tensor, &err), LEAT_EINVAL);
    assert_int_equal(leat_model_predict_into(model, &arrays, 3, NULL, &r.tensor, &err), LEAT_EINVAL);
    leat_model_destroy(&model);
}

static void predictors_check_what_they_are_given(void **state) {
    leat_model *model = make_classifier(1);
    leat_predictor *predictor = NULL;
    float x[1][4] = {{1, 2, 3, 4}}, y[1][CLASSES], plain[1][CLASSES];
    leat_tensor in = leat_tensor_view(LEAT_F32, 2, (int64_t[]){1, 4}, x);
    leat_tensor out = leat_tensor_view(LEAT_F32, 2, (int64_t[]){1, CLASSES}, y), bad;
    (void)state;
    expect_ok(leat_predictor_create(&predictor, model, NULL, &err), &err);
    expect_ok(leat_predictor_run(predictor, (const void *[]){x}, (void *[]){plain}, &err), &err);
    expect_ok(leat_predictor_run_into(predictor, &in, &out, &err), &err);
    assert_memory_equal(y, plain, sizeof y);
    expect_ok(leat_predictor_run_into(predictor, NULL, NULL, &err), &err);
    bad = in;
    bad.shape[1] = 5;
    assert_int_equal(leat_predictor_run_into(predictor, &bad, &out, &err), LEAT_ESHAPE);
    assert_non_null(
        strstr(err.message, "input 0: expected float32 of shape (1, 4), received float32 of shape (1, 5)"));
    bad = out;
    bad.dtype = LEAT_F64;
    assert_int_equal(leat_predictor_run_into(predictor, &in, &bad, &err), LEAT_EDTYPE);
    bad.rank = 9;
    bad.dtype = LEAT_F32;
    assert_int_equal(leat_predictor_run_into(predictor, &in, &bad, &err), LEAT_ESHAPE);
    expect_null(leat_predictor_run_into(NULL, &in, &out, &err), "predictor");
    leat_predictor_destroy(&predictor);
    leat_model_destroy(&model);
}

/* ---- Owners of views ---- */

/* A view of a weight stays valid through all documented operations, and shows the model's weight. */
static void views_of_weights_stay_in_place(void **state) {
    leat_model *model = make_classifier(1), *other = make_classifier(2);
    clusters data = clusters_of(12, 4);
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit(1);
    leat_tensor view = leat_model_weight(model, 0);
    const char *name = leat_model_weight_name(model, 0);
    char path[] = "/tmp/leat_boundary_XXXXXX";
    float before, after;
    int file = mkstemp(path);
    (void)state;
    assert_true(file >= 0);
    close(file);
    memcpy(&before, view.data, sizeof before);
    expect_ok(leat_model_save_weights(model, path, &err), &err);
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    memcpy(&after, view.data, sizeof after);
    assert_true(before != after); /* the view shows what training did */
    expect_ok(leat_model_initialize(model, 3, &err), &err);
    expect_ok(leat_model_copy_weights(model, other, &err), &err);
    expect_ok(leat_model_set_trainable(model, leat_model_layer_name(model, 1), false, &err), &err);
    expect_ok(leat_model_publish(model, &err), &err);
    expect_ok(leat_model_load_weights(model, path, false, &err), &err);
    memcpy(&after, view.data, sizeof after);
    assert_true(before == after);
    assert_ptr_equal(view.data, leat_model_weight(model, 0).data);
    assert_ptr_equal(name, leat_model_weight_name(model, 0));
    unlink(path);
    leat_model_destroy(&other);
    leat_model_destroy(&model);
}

/* Inputs and states of a predictor stay in place; an output is asked for again after each run. */
static void views_of_a_predictor_stay_in_place(void **state) {
    leat_model *model = make_stateful();
    leat_predictor *predictor = NULL;
    (void)state;
    expect_ok(leat_predictor_create(&predictor, model, NULL, &err), &err);
    leat_tensor input = leat_predictor_input(predictor, 0);
    leat_tensor memory = leat_predictor_state(predictor, "memory", 0);
    for (int i = 0; i < 6; ++i) ((float *)input.data)[i] = 1;
    for (int run = 0; run < 3; ++run) {
        float y[2];
        expect_ok(leat_predictor_run(predictor, NULL, (void *[]){y}, &err), &err);
        assert_memory_equal(leat_predictor_output(predictor, 0).data, y, sizeof y);
        assert_memory_equal(memory.data, y, sizeof y); /* h after the last step is the output */
        expect_ok(leat_model_initialize(model, (uint64_t)run, &err), &err);
        expect_ok(leat_model_publish(model, &err), &err);
        expect_ok(leat_predictor_sync(predictor, &err), &err);
        assert_ptr_equal(input.data, leat_predictor_input(predictor, 0).data);
        assert_ptr_equal(memory.data, leat_predictor_state(predictor, "memory", 0).data);
    }
    leat_model_destroy(&model); /* the predictor keeps it */
    expect_ok(leat_predictor_run(predictor, NULL, NULL, &err), &err);
    leat_predictor_destroy(&predictor);
}

/* Predictions do not depend on the model. */
static void predictions_outlive_their_model(void **state) {
    leat_model *model = make_classifier(1);
    leat_predictions *all = NULL;
    float x[2][4] = {{1, 2, 3, 4}, {4, 3, 2, 1}}, kept[2][3];
    leat_array in = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 4}, x)};
    leat_arrays arrays = {.inputs = &in, .input_count = 1};
    (void)state;
    expect_ok(leat_model_predict(model, &arrays, 2, NULL, &all, &err), &err);
    memcpy(kept, leat_predictions_get(all, 0).data, sizeof kept);
    leat_model_destroy(&model);
    assert_memory_equal(kept, leat_predictions_get(all, 0).data, sizeof kept);
    leat_predictions_destroy(&all);
}

static void positions_of_a_feed(void **state) {
    clusters data = clusters_of(10, 4);
    leat_sequence sequence = clusters_sequence(&data);
    leat_feed *feed = NULL;
    leat_feed_position at, next;
    leat_feed_making making;
    const leat_batch *batch = NULL;
    (void)state;
    expect_ok(leat_feed_open(&feed, &sequence, NULL, &err), &err);
    for (int i = 0; i < 2; ++i) {
        expect_ok(leat_feed_get(feed, &batch, &err), &err);
        leat_feed_release(feed);
    }
    expect_ok(leat_feed_position_get_into(feed, &at, &err), &err);
    assert_int_equal(at.ordinal, 1);
    assert_int_equal(at.ordinal, leat_feed_position_get(feed).ordinal);
    expect_ok(leat_feed_next_position_into(feed, &next, &err), &err);
    assert_int_equal(next.ordinal, 2);
    expect_ok(leat_feed_making_get_into(feed, &making, &err), &err);
    assert_true(making.end_ns > 0);
    assert_int_equal(making.end_ns, leat_feed_making_get(feed).end_ns);
    expect_refusal(leat_feed_position_get_into(NULL, &at, &err), LEAT_EINVAL, at);
    expect_refusal(leat_feed_next_position_into(NULL, &next, &err), LEAT_EINVAL, next);
    expect_refusal(leat_feed_making_get_into(NULL, &making, &err), LEAT_EINVAL, making);
    expect_null(leat_feed_next_position_into(feed, NULL, &err), "out");
    leat_feed_close(&feed);
}

static void random_streams_by_pointer(void **state) {
    leat_rng by_value = leat_rng_for(1, 2, 3), by_pointer;
    (void)state;
    leat_rng_for_into(1, 2, 3, &by_pointer);
    for (int i = 0; i < 10; ++i) assert_int_equal(leat_rng_u64(&by_value), leat_rng_u64(&by_pointer));
    leat_rng_for_into(1, 2, 3, NULL);
}

static leat_status write_text(void *user, leat_training *training, int64_t index, leat_logs *logs,
                              leat_error *error) {
    (void)user, (void)index, (void)logs, (void)error;
    leat_training_write_text(training, "100 %s of %n\n");
    leat_training_write_text(training, NULL);
    return LEAT_OK;
}

/* Trains with a callback that writes to the log, which writes the text to standard error. */
static void written(int verbose, char *out, size_t bytes) {
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(4, 4);
    leat_sequence sequence = clusters_sequence(&data);
    leat_callback callback = {.size = sizeof(leat_callback), .on_train_begin = write_text},
                  *callbacks[] = {&callback};
    leat_fit_options options = quiet_fit_with(1, callbacks, 1);
    FILE *file = tmpfile();
    assert_non_null(file);
    options.verbose = verbose;
    leat_set_log(leat_log_to_stderr, NULL);
    fflush(stderr);
    int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    leat_status status = leat_model_fit_generator(model, &sequence, &options, NULL, &err);
    fflush(stderr);
    leat_set_log(NULL, NULL);
    dup2(kept, STDERR_FILENO);
    close(kept);
    expect_ok(status, &err);
    rewind(file);
    out[fread(out, 1, bytes - 1, file)] = '\0';
    fclose(file);
    leat_model_destroy(&model);
}

static void progress_takes_finished_text(void **state) {
    char text[4096];
    (void)state;
    written(2, text, sizeof text);
    assert_non_null(strstr(text, "100 %s of %n\n"));
    written(0, text, sizeof text);
    assert_null(strstr(text, "100"));
    leat_training_write_text(NULL, "nowhere");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_of_a_model),
        cmocka_unit_test(copies_of_weights),
        cmocka_unit_test(views_of_states),
        cmocka_unit_test(views_are_checked),
        cmocka_unit_test(predictions_by_pointer),
        cmocka_unit_test(positions_of_a_feed),
        cmocka_unit_test(random_streams_by_pointer),
        cmocka_unit_test(predictions_go_into_given_memory),
        cmocka_unit_test(predictions_of_sequences_go_into_given_memory),
        cmocka_unit_test(memory_for_predictions_is_checked),
        cmocka_unit_test(predictors_check_what_they_are_given),
        cmocka_unit_test(views_of_weights_stay_in_place),
        cmocka_unit_test(views_of_a_predictor_stay_in_place),
        cmocka_unit_test(predictions_outlive_their_model),
        cmocka_unit_test(names_of_metrics),
        cmocka_unit_test(state_of_the_optimizer_after_a_fit),
        cmocka_unit_test(progress_takes_finished_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
