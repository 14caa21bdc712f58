/* SPDX-License-Identifier: Apache-2.0 */
/* Data of every type and layout in every call on arrays, and in predictors: the same numbers, byte for byte, as
 * the same values in contiguous float32 give. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "leat/predictor.h"
#include "tensor/convert.h"
#include "tensor/number.h"
#include "train/support.h"

#define DTYPE(name, value, text, bytes) name,
static const leat_dtype dtypes[] = {LEAT_DTYPE_LIST(DTYPE)};
#undef DTYPE
enum { dtype_count = sizeof dtypes / sizeof *dtypes };

enum { SAMPLES = 12, FEATURES = 4, CLASSES = 3 };

/* One array in two forms: as the test's type and layout, and as plain float32. */
typedef struct twin {
    unsigned char memory[4096];
    float plain[SAMPLES * FEATURES];
    int64_t strides[2];
    leat_array given, reference;
} twin;

/* Values that the type can represent: 0 and 1 for bool, otherwise also negative numbers, fractions and subnormal
 * numbers if the type has them. */
static double value_of(leat_dtype dtype, int i) {
    const double small = (double)(i * 5 % 7);
    switch (dtype) {
    case LEAT_BOOL: return i * 5 % 7 % 2;
    case LEAT_F16: return i == 3 ? 0x1p-24 : i == 4 ? -65504 : small / 4 - 1;
    case LEAT_F32:
    case LEAT_F64: return small / 4 - 1;
    case LEAT_I8:
    case LEAT_I16:
    case LEAT_I32:
    case LEAT_I64: return small - 3;
    default: return small;
    }
}

/* way 0: contiguous.  1: Fortran order.  2: samples backwards in records of odd size, at an odd address. */
static void make_twin(twin *t, leat_dtype dtype, int columns, int way, double (*value)(leat_dtype, int)) {
    const int64_t size = (int64_t)leat_dtype_bytes(dtype), record = columns * size + 3;
    const int64_t first = way == 2 ? (SAMPLES - 1) * record + 1 : 0;
    t->strides[0] = way == 0 ? columns * size : way == 1 ? size : -record;
    t->strides[1] = way == 1 ? SAMPLES * size : size;
    for (int i = 0; i < SAMPLES * columns; ++i) {
        const double x = value(dtype, i);
        uint64_t element = 0;
        leati_convert(dtype, &element, LEAT_F64, &x, 1);
        memcpy(t->memory + first + i / columns * t->strides[0] + i % columns * t->strides[1], &element,
               (size_t)size);
        t->plain[i] = (float)x;
    }
    const int64_t shape[] = {SAMPLES, columns};
    t->given = (leat_array){.tensor = leat_tensor_view(dtype, 2, shape, t->memory + first),
                            .strides = way == 0 ? NULL : t->strides};
    t->reference = (leat_array){.tensor = leat_tensor_view(LEAT_F32, 2, shape, t->plain)};
}

static double class_of(leat_dtype dtype, int i) {
    (void)dtype;
    return i / FEATURES % 2;
}

static double class_number(leat_dtype dtype, int i) {
    return dtype == LEAT_BOOL ? i % 2 : i % CLASSES;
}

static double one_hot(leat_dtype dtype, int i) {
    (void)dtype;
    return i % CLASSES == i / CLASSES % CLASSES;
}

static double weight_of(leat_dtype dtype, int i) {
    (void)dtype;
    return i % 2;
}

static leat_model *make_sparse_classifier(uint64_t seed) {
    leat_compile_options options = leat_compile_options_default();
    leat_model *model = make_classifier(seed);
    leat_error err = {0};
    options.optimizer = "adam";
    options.loss = "sparse_categorical_crossentropy";
    options.metrics = "[\"sparse_categorical_accuracy\", \"sparse_top_k_categorical_accuracy\"]";
    expect_ok(leat_model_compile(model, &options, &err), &err);
    return model;
}

static void expect_same_logs(const leat_logs *a, const leat_logs *b) {
    assert_int_equal(a->count, b->count);
    assert_true(a->count > 0);
    for (int i = 0; i < a->count; ++i) {
        assert_true(isfinite(a->items[i].value));
        assert_true(a->items[i].value == b->items[i].value);
    }
}

/* Both models train, each with its own form of the data; logs and weights stay equal. */
static void expect_same_training(leat_model *given, leat_model *reference, const leat_arrays *a,
                                 const leat_arrays *b) {
    leat_error err = {0};
    leat_logs logs[2];
    leat_fit_options options = quiet_fit(2);
    leat_evaluate_options evaluate = leat_evaluate_options_default();
    options.workers = 2;
    options.threads = evaluate.threads = 1;
    for (int i = 0; i < 2; ++i) leat_model_set_threads(i ? reference : given, 1);
    for (int step = 0; step < 2; ++step) {
        expect_ok(leat_model_train_on_batch(given, a, &logs[0], &err), &err);
        expect_ok(leat_model_train_on_batch(reference, b, &logs[1], &err), &err);
        expect_same_logs(&logs[0], &logs[1]);
    }
    expect_ok(leat_model_test_on_batch(given, a, &logs[0], &err), &err);
    expect_ok(leat_model_test_on_batch(reference, b, &logs[1], &err), &err);
    expect_same_logs(&logs[0], &logs[1]);
    expect_ok(leat_model_fit(given, a, 5, &options, NULL, &err), &err);
    expect_ok(leat_model_fit(reference, b, 5, &options, NULL, &err), &err);
    expect_ok(leat_model_evaluate(given, a, 5, &evaluate, &logs[0], &err), &err);
    expect_ok(leat_model_evaluate(reference, b, 5, &evaluate, &logs[1], &err), &err);
    expect_same_logs(&logs[0], &logs[1]);
    assert_true(weights_hash(given) == weights_hash(reference));
}

static void inputs_of_every_type_train_alike(void **state) {
    (void)state;
    static twin x, y, w;
    for (int d = 0; d < dtype_count; ++d)
        for (int way = 0; way < 3; ++way) {
            leat_model *given = make_classifier(7), *reference = make_classifier(7);
            make_twin(&x, dtypes[d], FEATURES, way, value_of);
            make_twin(&y, dtypes[d], CLASSES, way, one_hot);
            make_twin(&w, dtypes[d], 1, way, weight_of);
            w.given.tensor.rank = w.reference.tensor.rank = 1;
            const leat_arrays a = {&x.given, &y.given, &w.given, 1, 1, 1};
            const leat_arrays b = {&x.reference, &y.reference, &w.reference, 1, 1, 1};
            expect_same_training(given, reference, &a, &b);
            leat_model_destroy(&given);
            leat_model_destroy(&reference);
        }
}

static void class_numbers_of_every_type_train_alike(void **state) {
    (void)state;
    static twin x, y;
    for (int d = 0; d < dtype_count; ++d)
        for (int way = 0; way < 3; ++way) {
            leat_model *given = make_sparse_classifier(7), *reference = make_sparse_classifier(7);
            make_twin(&x, LEAT_F32, FEATURES, way, value_of);
            make_twin(&y, dtypes[d], 1, way, class_number);
            const leat_arrays a = {.inputs = &x.given,
                                   .input_count = 1,
                                   .targets = &y.given,
                                   .target_count = 1};
            const leat_arrays b = {.inputs = &x.reference,
                                   .input_count = 1,
                                   .targets = &y.reference,
                                   .target_count = 1};
            expect_same_training(given, reference, &a, &b);
            leat_model_destroy(&given);
            leat_model_destroy(&reference);
        }
}

static double beyond(leat_dtype dtype, int i) {
    (void)dtype;
    return i == 4 ? CLASSES : 0;
}

/* Targets of each type are checked, and the message has the wrong number. */
static void class_numbers_are_checked(void **state) {
    (void)state;
    static twin x, y;
    for (int d = 0; d < dtype_count; ++d) {
        if (dtypes[d] == LEAT_BOOL) continue;
        leat_model *model = make_sparse_classifier(1);
        leat_error err = {0};
        make_twin(&x, LEAT_F32, FEATURES, 0, value_of);
        make_twin(&y, dtypes[d], 1, 2, beyond);
        const leat_arrays a = {.inputs = &x.given, .input_count = 1, .targets = &y.given, .target_count = 1};
        assert_int_equal(leat_model_train_on_batch(model, &a, NULL, &err), LEAT_EINVAL);
        assert_non_null(strstr(err.message, "received 3 in sample 4"));
        leat_model_destroy(&model);
    }
}

static void class_weights_read_every_type(void **state) {
    (void)state;
    static twin x, y;
    const leat_class_weight weights[] = {{0, 1}, {1, 2.5}};
    for (int d = 0; d < dtype_count; ++d) {
        leat_model *models[2] = {make_sparse_classifier(3), make_sparse_classifier(3)};
        make_twin(&x, LEAT_F32, FEATURES, 0, value_of);
        make_twin(&y, dtypes[d], 1, 2, class_of);
        for (int i = 0; i < 2; ++i) {
            leat_error err = {0};
            leat_fit_options options = quiet_fit(2);
            options.class_weight = weights;
            options.class_weight_count = 2;
            const leat_arrays a = {.inputs = i ? &x.reference : &x.given,
                                   .input_count = 1,
                                   .targets = i ? &y.reference : &y.given,
                                   .target_count = 1};
            expect_ok(leat_model_fit(models[i], &a, 5, &options, NULL, &err), &err);
        }
        assert_true(weights_hash(models[0]) == weights_hash(models[1]));
        for (int i = 0; i < 2; ++i) leat_model_destroy(&models[i]);
    }
}

/* y = 2 x in double: the model sees the values of the given type, including NaN and infinities. */
static void predictions_are_those_of_the_values(void **state) {
    (void)state;
    leat_model *model = make_line(0.1);
    static twin x;
    ((float *)leat_model_weight(model, 0).data)[0] = 2;
    for (int d = 0; d < dtype_count; ++d)
        for (int way = 0; way < 3; ++way) {
            leat_error err = {0};
            leat_tensor output;
            leat_predictions *all = NULL;
            make_twin(&x, dtypes[d], 1, way, value_of);
            const leat_arrays a = {.inputs = &x.given, .input_count = 1};
            expect_ok(leat_model_predict_on_batch(model, &a, &output, &err), &err);
            for (int i = 0; i < SAMPLES; ++i)
                assert_true((double)((float *)output.data)[i] == 2 * value_of(dtypes[d], i));
            expect_ok(leat_model_predict(model, &a, 5, NULL, &all, &err), &err);
            output = leat_predictions_get(all, 0);
            for (int i = 0; i < SAMPLES; ++i)
                assert_true((double)((float *)output.data)[i] == 2 * value_of(dtypes[d], i));
            leat_predictions_destroy(&all);
        }
    const uint16_t halves[4] = {0x7c00, 0xfc00, 0x7e01, 0x0001};
    const leat_array input = {
        .tensor = leat_tensor_view(LEAT_F16, 2, (int64_t[]){4, 1}, (void *)(uintptr_t)halves)};
    leat_tensor output;
    leat_error err = {0};
    expect_ok(leat_model_predict_on_batch(model, &(leat_arrays){.inputs = &input, .input_count = 1}, &output,
                                          &err),
              &err);
    const float *y = output.data;
    assert_true(isinf(y[0]) && y[0] > 0 && isinf(y[1]) && y[1] < 0 && isnan(y[2]) && y[3] == 0x1p-23f);
    leat_model_destroy(&model);
}

/* The input's type is chosen with the predictor; its memory is filled by leat_tensor_copy from any layout. */
static void predictors_take_every_type(void **state) {
    (void)state;
    leat_model *model = make_classifier(5);
    static twin x;
    leat_model_set_threads(model, 1);
    for (int d = 0; d < dtype_count; ++d) {
        leat_error err = {0};
        leat_predictor *predictor = NULL;
        leat_predictor_options options = leat_predictor_options_default();
        make_twin(&x, dtypes[d], FEATURES, 2, value_of);
        const leat_arrays b = {.inputs = &x.reference, .input_count = 1};
        options.batch_size = SAMPLES;
        options.inputs = &x.given.tensor;
        expect_ok(leat_predictor_create(&predictor, model, &options, &err), &err);
        const leat_tensor input = leat_predictor_input(predictor, 0);
        assert_int_equal(input.dtype, dtypes[d]);
        expect_ok(leat_tensor_copy(&input, &x.given.tensor, x.given.strides, &err), &err);
        expect_ok(leat_predictor_run(predictor, NULL, NULL, &err), &err);
        const leat_tensor got = leat_predictor_output(predictor, 0);
        leat_tensor expected;
        expect_ok(leat_model_predict_on_batch(model, &b, &expected, &err), &err);
        assert_memory_equal(got.data, expected.data, leat_tensor_bytes(&expected));
        leat_predictor_destroy(&predictor);
    }
    leat_model_destroy(&model);
}

/* A model whose output is its input: the view of the output is valid after the call, also if the input was copied. */
static void outputs_of_strided_inputs_stay(void **state) {
    (void)state;
    leat_model *model = NULL;
    leat_error err = {0};
    static twin x;
    expect_ok(leat_model_from_json(
                  &model,
                  "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"same\", \"layers\": ["
                  "{\"class_name\": \"Activation\", \"config\": {\"name\": \"f\", \"activation\": \"linear\","
                  " \"batch_input_shape\": [null, 4]}}]}}",
                  &err),
              &err);
    for (int way = 0; way < 3; ++way) {
        leat_tensor output;
        make_twin(&x, LEAT_F32, FEATURES, way, value_of);
        const leat_arrays a = {.inputs = &x.given, .input_count = 1};
        expect_ok(leat_model_predict_on_batch(model, &a, &output, &err), &err);
        assert_memory_equal(output.data, x.plain, sizeof x.plain);
    }
    leat_model_destroy(&model);
}

/* An Embedding looks up integer indices exactly; an index outside of the table is an error. */
static void embeddings_read_every_integer_type(void **state) {
    (void)state;
    leat_model *model = NULL;
    leat_error err = {0};
    static twin x;
    expect_ok(leat_model_from_json(
                  &model,
                  "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"words\", \"layers\": ["
                  "{\"class_name\": \"Embedding\", \"config\": {\"name\": \"e\", \"input_dim\": 4,"
                  " \"output_dim\": 2, \"batch_input_shape\": [null, 4]}}]}}",
                  &err),
              &err);
    expect_ok(leat_model_initialize(model, 3, &err), &err);
    const float *table = leat_model_weight(model, 0).data;
    for (int d = 0; d < dtype_count; ++d)
        for (int way = 0; way < 3; ++way) {
            leat_tensor output;
            make_twin(&x, dtypes[d], FEATURES, way, class_number);
            const leat_arrays a = {.inputs = &x.given, .input_count = 1};
            expect_ok(leat_model_predict_on_batch(model, &a, &output, &err), &err);
            for (int i = 0; i < SAMPLES * FEATURES; ++i)
                assert_memory_equal((float *)output.data + 2 * i, table + 2 * (int)x.plain[i],
                                    2 * sizeof *table);
        }
    uint64_t wrong[4] = {0, 1, UINT64_MAX, 2}; /* UINT64_MAX does not fit into int64_t */
    int64_t also[4] = {0, 1, (INT64_C(1) << 32) + 1, 2};
    const leat_tensor tensors[] = {leat_tensor_view(LEAT_U64, 2, (int64_t[]){1, 4}, wrong),
                                   leat_tensor_view(LEAT_I64, 2, (int64_t[]){1, 4}, also)};
    for (int i = 0; i < 2; ++i) {
        leat_tensor output;
        const leat_array input = {.tensor = tensors[i]};
        assert_int_equal(leat_model_predict_on_batch(model,
                                                     &(leat_arrays){.inputs = &input, .input_count = 1},
                                                     &output, &err),
                         LEAT_EINVAL);
        assert_non_null(strstr(err.message, "expected an index from 0 to 3, received "));
        assert_non_null(strstr(err.message, " at place 2 of sample 0 of the batch"));
    }
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_of_every_type_train_alike),
        cmocka_unit_test(class_numbers_of_every_type_train_alike),
        cmocka_unit_test(class_numbers_are_checked),
        cmocka_unit_test(class_weights_read_every_type),
        cmocka_unit_test(predictions_are_those_of_the_values),
        cmocka_unit_test(predictors_take_every_type),
        cmocka_unit_test(outputs_of_strided_inputs_stay),
        cmocka_unit_test(embeddings_read_every_integer_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
