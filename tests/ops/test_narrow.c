/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in bf16 and int8: MATMUL and RNN of the native backend are compared with ref, which reads weights that this
 * test rounds by itself.  What remains is the rounding of the activations: none, to bf16, or to 16 bits. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"

#include "backends/native/backend.h"
#include "base/memory.h"
#include "base/os/cpu.h"
#include "engine/op_semantics/geometry.h"
#include "ops/compare.h"
#include "tensor/bfloat16.h"

static const leati_weights_format formats[] = {LEATI_WEIGHTS_BF16, LEATI_WEIGHTS_INT8};

/* Relative to the largest result.  The inputs of a product are rounded, too: to bf16 where the processor multiplies
 * bf16, and to 16 bits for int8; a cell adds up the errors of its steps. */
static double tolerance_of(leati_weights_format format) {
    return format == LEATI_WEIGHTS_BF16 && leati_cpu_has_bfloat16() ? 2e-2 : 5e-4;
}

/* Rounds a matrix (rows, columns) as the format keeps it; element (k, j) is w[k * row + j * column]. */
static void round_weights(float *w, int64_t rows, int64_t columns, int64_t row, int64_t column,
                          leati_weights_format format) {
    for (int64_t j = 0; j < columns; j++) {
        float largest = 0;
        for (int64_t k = 0; k < rows; k++) largest = fmaxf(largest, fabsf(w[k * row + j * column]));
        float scale = largest / 127;
        for (int64_t k = 0; k < rows; k++) {
            float *x = &w[k * row + j * column];
            if (format == LEATI_WEIGHTS_BF16)
                *x = leati_bfloat16_to_float(leati_bfloat16_of_float(*x));
            else
                *x = scale > 0 ? scale * rintf(*x / scale) : 0;
        }
    }
}

/* Runs the task on the first native implementation that keeps its weights in the format. */
static void run_narrow(test_task *t, const char *name, leati_weights_format format) {
    char why[LEATI_REASON_BYTES] = "";
    t->task.weights_format = format;
    for (size_t i = 0; i < leati_backend_native.count; i++) {
        const leati_implementation *one = &leati_backend_native.implementations[i];
        leati_kernel kernel = {0};
        if (one->op != t->task.op || !test_run(t, one, why, &kernel)) continue;
        bool narrow = kernel.narrow_weights > 0;
        if (kernel.destroy) kernel.destroy(kernel.state);
        if (!narrow) fail_msg("%s: '%s' keeps f32", name, kernel.implementation);
        return;
    }
    fail_msg("%s: no kernel", name);
}

/* Compares the outputs of the task, computed with weights as they are kept and from the matrices in `rounded`. */
static void compare(test_task *t, const char *name, leati_weights_format format, float *const *rounded) {
    float *got[LEATI_MAX_OUTPUTS] = {0}, *kept[LEATI_MAX_INPUTS] = {0};
    run_narrow(t, name, format);
    for (int i = 0; i < t->task.output_count; i++)
        if (test_output(t, i))
            got[i] = leati_memdup(test_output(t, i), (size_t)test_output_count(t, i) * sizeof(float));
    for (int i = 0; i < t->task.input_count; i++) {
        kept[i] = t->args[i];
        if (rounded[i]) t->args[i] = rounded[i];
    }
    t->task.weights_format = LEATI_WEIGHTS_F32;
    test_run_ref(t);
    for (int i = 0; i < t->task.input_count; i++) t->args[i] = kept[i];
    for (int i = 0; i < t->task.output_count; i++) {
        if (!got[i]) continue;
        double distance = test_distance(got[i], test_output(t, i), test_output_count(t, i));
        if (!(distance <= tolerance_of(format)))
            fail_msg("%s, format %d: output %d differs by %g", name, (int)format, i, distance);
        leati_free(got[i]);
    }
}

/* ---- MATMUL ---- */

typedef struct product_case {
    int64_t m, k, n;
    bool transposed, bias;
    leati_function function;
    int threads;
} product_case;

static const product_case products[] = {
    {1, 64, 128, false, true, LEATI_FN_RELU, 1},      {1, 7, 9, false, true, LEATI_FN_TANH, 1},
    {1, 1, 10, false, false, LEATI_FN_LINEAR, 1},     {3, 65, 70, false, true, LEATI_FN_LINEAR, 1},
    {4, 129, 33, true, true, LEATI_FN_RELU, 1},       {5, 37, 130, false, true, LEATI_FN_SIGMOID, 1},
    {20, 129, 64, true, false, LEATI_FN_LINEAR, 1},   {1, 1301, 40, false, true, LEATI_FN_LINEAR, 1},
    {2, 1100, 1500, false, true, LEATI_FN_LINEAR, 3}, {64, 300, 200, false, true, LEATI_FN_RELU, 3},
};

static void check_product(const product_case *c, leati_weights_format format, leat_rng *rng) {
    char name[96];
    test_task t;
    leati_attrs attrs = {.matmul = {.transpose_b = c->transposed}};
    const leati_desc absent = ABSENT, bias = DIMS(c->n);
    if (c->function != LEATI_FN_LINEAR) {
        attrs.post.kinds = LEATI_POST_FUNCTION;
        attrs.post.function = (leati_eltwise){c->function, 0, INFINITY, 0};
    }
    leati_desc in[3] = {DIMS(c->m, c->k), DIMS(c->k, c->n), c->bias ? bias : absent};
    if (c->transposed) in[1] = (leati_desc)DIMS(c->n, c->k);
    snprintf(name, sizeof name, "%lldx%lldx%lld%s", (long long)c->m, (long long)c->k, (long long)c->n,
             c->transposed ? " transposed" : "");
    test_task_init(&t, LEATI_OP_MATMUL, &attrs, 3, in, 0, c->threads);
    test_fill_inputs(&t, -1, 1, rng);
    float *rounded[LEATI_MAX_INPUTS] = {0};
    rounded[1] = leati_memdup(t.args[1], (size_t)(c->k * c->n) * sizeof(float));
    round_weights(rounded[1], c->k, c->n, c->transposed ? 1 : c->n, c->transposed ? c->k : 1, format);
    compare(&t, name, format, rounded);
    leati_free(rounded[1]);
    test_task_fini(&t);
}

static void test_products(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(3, 1, 4);
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        for (int f = 0; f < 2; f++) check_product(&products[i], formats[f], &rng);
}

/* ---- RNN ---- */

typedef struct rnn_case {
    int64_t batch, steps, features, units;
    bool states, masked;
} rnn_case;

static const rnn_case rnn_cases[] = {{1, 1, 8, 64, true, false},  {1, 6, 8, 64, false, false},
                                     {1, 3, 5, 37, true, false},  {1, 4, 1, 3, true, true},
                                     {3, 2, 5, 21, false, false}, {1, 2, 600, 20, false, false}};

static void check_rnn(const rnn_case *c, leati_cell cell, leati_weights_format format, leat_rng *rng) {
    char name[96];
    test_task t;
    int64_t n = c->batch, f = c->features, u = c->units;
    const leati_desc absent = ABSENT, state = DIMS(n, u);
    leati_attrs attrs = {.rnn = {.cell = cell, .activation = TANH, .recurrent_activation = SIGMOID}};
    leati_desc in[LEATI_RNN_STEPS + 1];
    in[LEATI_RNN_X] = (leati_desc)DIMS(n, c->steps, f);
    in[LEATI_RNN_RECURRENT] = (leati_desc)DIMS(u, u);
    leati_rnn_shape shape = leati_rnn_shape_of(&attrs, &in[LEATI_RNN_X], &in[LEATI_RNN_RECURRENT]);
    int64_t width = shape.gates * u;
    in[LEATI_RNN_KERNEL] = (leati_desc)DIMS(f, width);
    in[LEATI_RNN_RECURRENT] = (leati_desc)DIMS(u, width);
    in[LEATI_RNN_BIAS] = shape.biases == 2 ? (leati_desc)DIMS(2, width) : (leati_desc)DIMS(width);
    in[LEATI_RNN_H0] = c->states ? state : absent;
    in[LEATI_RNN_C0] = c->states && cell == LEATI_CELL_LSTM ? state : absent;
    in[LEATI_RNN_X_MASK] = in[LEATI_RNN_H_MASK] = absent;
    in[LEATI_RNN_STEPS] = c->masked ? (leati_desc)DIMS(n, c->steps) : absent;
    snprintf(name, sizeof name, "cell %d, batch %lld, %lld steps, %lld to %lld", (int)cell, (long long)n,
             (long long)c->steps, (long long)f, (long long)u);
    test_task_init(&t, LEATI_OP_RNN, &attrs, LEATI_RNN_STEPS + 1, in, 1u << LEATI_RNN_OUT_WORKSPACE, 1);
    test_fill_inputs(&t, -0.5f, 0.5f, rng);
    for (int64_t i = 0; c->masked && i < n * c->steps; i++) t.args[LEATI_RNN_STEPS][i] = i % 3 != 1;
    float *rounded[LEATI_MAX_INPUTS] = {0};
    rounded[LEATI_RNN_KERNEL] = leati_memdup(t.args[LEATI_RNN_KERNEL], (size_t)(f * width) * sizeof(float));
    rounded[LEATI_RNN_RECURRENT] =
        leati_memdup(t.args[LEATI_RNN_RECURRENT], (size_t)(u * width) * sizeof(float));
    round_weights(rounded[LEATI_RNN_KERNEL], f, width, width, 1, format);
    round_weights(rounded[LEATI_RNN_RECURRENT], u, width, width, 1, format);
    compare(&t, name, format, rounded);
    leati_free(rounded[LEATI_RNN_KERNEL]);
    leati_free(rounded[LEATI_RNN_RECURRENT]);
    test_task_fini(&t);
}

static void test_cells(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(2, 7, 1);
    for (size_t i = 0; i < sizeof rnn_cases / sizeof rnn_cases[0]; i++)
        for (int cell = 0; cell < LEATI_CELL_COUNT; cell++)
            for (int f = 0; f < 2; f++) check_rnn(&rnn_cases[i], (leati_cell)cell, formats[f], &rng);
}

/* An input that is not finite gives NaN with int8, never a finite number. */
static void test_not_finite(void **state) {
    (void)state;
    const leati_desc in[3] = {DIMS(1, 8), DIMS(8, 16), DIMS(16)};
    const leati_attrs attrs = {0};
    test_task t;
    leat_rng rng = leat_rng_for(1, 1, 1);
    test_task_init(&t, LEATI_OP_MATMUL, &attrs, 3, in, 0, 1);
    test_fill_inputs(&t, -1, 1, &rng);
    t.args[0][3] = NAN;
    for (int f = 0; f < 2; f++) {
        run_narrow(&t, "NaN", formats[f]);
        for (int j = 0; j < 16; j++) assert_true(isnan(test_output(&t, 0)[j]));
    }
    test_task_fini(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
