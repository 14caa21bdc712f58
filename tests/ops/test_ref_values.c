/* SPDX-License-Identifier: Apache-2.0 */
/* Values that ref computes, where a gradient would not show an error: functions against libm in double, updates
 * against Keras's formulas in double, labels at their limits, masks of dropout. */
#include "cmocka_all.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "base/memory.h"
#include "leat/rng.h"
#include "tensor/bfloat16.h"

/* Runs one op of ref on the memory in args: inputs, then outputs; descs has their descriptors. */
static void run_op(leati_op op, const leati_attrs *attrs, int inputs, int outputs, const leati_desc *descs,
                   void *const *args, uint64_t step) {
    leati_task task = {.op = op,
                       .attrs = attrs,
                       .input_count = inputs,
                       .output_count = outputs,
                       .inputs = descs,
                       .outputs = descs + inputs,
                       .threads = 1};
    leati_kernel kernel = {0};
    leat_error err = {0};
    char why[LEATI_REASON_BYTES];
    for (size_t i = 0; i < leati_backend_ref.count && !kernel.run; ++i)
        if (leati_backend_ref.implementations[i].op == op)
            assert_int_equal(leati_backend_ref.implementations[i].prepare(&task, &kernel, why, &err),
                             LEAT_OK);
    assert_non_null(kernel.run);
    leati_run run = {.seed = 1, .step = step, .scratch = leati_calloc_aligned(kernel.scratch_bytes + 1)};
    assert_int_equal(kernel.run(&kernel, args, &run, &err), LEAT_OK);
    leati_free(run.scratch);
    if (kernel.destroy) kernel.destroy(kernel.state);
}

static leati_desc vector(leat_dtype dtype, int64_t count) {
    return leati_desc_make(dtype, 1, &count);
}

static leati_desc matrix(int64_t rows, int64_t columns) {
    return leati_desc_make(LEAT_F32, 2, (int64_t[]){rows, columns});
}

static double in_double(const leati_eltwise *f, double x) {
    double a = (double)f->a, b = (double)f->b, c = (double)f->c;
    switch (f->function) {
    case LEATI_FN_RELU: return x >= c ? fmin(x, b) : a * (x - c);
    case LEATI_FN_ELU: return x > 0 ? x : a * expm1(x);
    case LEATI_FN_SELU: return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x));
    case LEATI_FN_SOFTPLUS: return x > 30 ? x : log1p(exp(x));
    case LEATI_FN_SOFTSIGN: return x / (1 + fabs(x));
    case LEATI_FN_TANH: return tanh(x);
    case LEATI_FN_SIGMOID: return 1 / (1 + exp(-x));
    case LEATI_FN_HARD_SIGMOID: return fmin(fmax(a * x + b, 0), 1);
    case LEATI_FN_EXP: return exp(x);
    case LEATI_FN_LOG: return log(x);
    case LEATI_FN_SQRT: return sqrt(x);
    case LEATI_FN_SQUARE: return x * x;
    case LEATI_FN_ABS: return fabs(x);
    case LEATI_FN_LINEAR: return a * x + b;
    case LEATI_FN_CLIP: return fmin(fmax(x, a), b);
    case LEATI_FN_POW: return pow(x, a);
    case LEATI_FN_GELU: return 0.5 * x * (1 + erf(x * 0.7071067811865476));
    case LEATI_FN_SILU: return x / (1 + exp(-x));
    case LEATI_FN_MISH: return x * tanh(log1p(exp(x)));
    case LEATI_FN_HARD_SWISH: return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case LEATI_FN_SIN: return sin(x);
    case LEATI_FN_COS: return cos(x);
    case LEATI_FN_TAN: return tan(x);
    case LEATI_FN_ASIN: return asin(x);
    case LEATI_FN_ACOS: return acos(x);
    case LEATI_FN_ATAN: return atan(x);
    case LEATI_FN_SINH: return sinh(x);
    case LEATI_FN_COSH: return cosh(x);
    case LEATI_FN_ASINH: return asinh(x);
    case LEATI_FN_ACOSH: return acosh(x);
    case LEATI_FN_ATANH: return atanh(x);
    case LEATI_FN_ERF: return erf(x);
    case LEATI_FN_LOG1P: return log1p(x);
    case LEATI_FN_EXPM1: return expm1(x);
    case LEATI_FN_GELU_TANH: return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case LEATI_FN_COUNT: break;
    }
    return NAN;
}

static void functions_against_libm(void **state) {
    (void)state;
    enum { count = 400 };
    for (int f = 0; f < LEATI_FN_COUNT; ++f) {
        leati_attrs attrs = {.eltwise = {(leati_function)f, 0.25f, 3, 0.5f}};
        bool positive = f == LEATI_FN_LOG || f == LEATI_FN_SQRT || f == LEATI_FN_POW;
        float src[count], dst[count];
        for (int i = 0; i < count; ++i) src[i] = (float)(i - (positive ? -1 : count / 2)) * 0.05f;
        leati_desc descs[2] = {vector(LEAT_F32, count), vector(LEAT_F32, count)};
        run_op(LEATI_OP_ELTWISE, &attrs, 1, 1, descs, (void *[]){src, dst}, 0);
        for (int i = 0; i < count; ++i) {
            double expected = in_double(&attrs.eltwise, (double)src[i]);
            if (isnan(expected) && isnan(dst[i])) continue; /* outside of the domain */
            if (fabs((double)dst[i] - expected) > 4e-7 * fabs(expected) + 1e-12)
                fail_msg("%s(%g): %.9g, expected %.9g", leati_function_name((leati_function)f),
                         (double)src[i], (double)dst[i], expected);
        }
    }
}

/* NaN in an input must give NaN in the output. */
static void functions_keep_nan(void **state) {
    (void)state;
    for (int f = 0; f < LEATI_FN_COUNT; ++f) {
        leati_attrs attrs = {.eltwise = {(leati_function)f, 0.25f, 3, 0.5f}};
        float src = NAN, dst = 0;
        leati_desc descs[2] = {vector(LEAT_F32, 1), vector(LEAT_F32, 1)};
        run_op(LEATI_OP_ELTWISE, &attrs, 1, 1, descs, (void *[]){&src, &dst}, 0);
        if (!isnan(dst)) fail_msg("%s(NaN) is %g", leati_function_name((leati_function)f), (double)dst);
    }
    float pair[2] = {NAN, 1}, one = 2, out[2];
    for (int kind = LEATI_ADD; kind <= LEATI_MIN; ++kind) {
        leati_attrs attrs = {.binary = {(leati_binary)kind}};
        leati_desc descs[3] = {vector(LEAT_F32, 2), vector(LEAT_F32, 1), vector(LEAT_F32, 2)};
        run_op(LEATI_OP_BINARY, &attrs, 2, 1, descs, (void *[]){pair, &one, out}, 0);
        assert_true(isnan(out[0]));
        assert_true(!isnan(out[1]));
    }
}

/* Softmax and cross-entropy of logits that are 200 apart do not overflow. */
static void softmax_of_far_logits(void **state) {
    (void)state;
    float logits[3] = {100, -100, 99}, labels[3] = {0, 1, 0}, loss = 0, difference[3], dst[3];
    leati_attrs attrs = {.softmax = {.axis = 1}}, exact = {.xent = {LEATI_XENT_EXACT}};
    leati_desc descs[4] = {matrix(1, 3), matrix(1, 3), vector(LEAT_F32, 1), matrix(1, 3)};
    run_op(LEATI_OP_SOFTMAX_XENT, &exact, 2, 2, descs, (void *[]){logits, labels, &loss, difference}, 0);
    assert_float_equal(loss, 200.31326, 1e-4);
    assert_float_equal(difference[0], 0.7310586, 1e-6);
    assert_float_equal(difference[1], -1, 1e-6);
    run_op(LEATI_OP_SOFTMAX, &attrs, 1, 1, descs, (void *[]){logits, dst}, 0);
    assert_float_equal(dst[2], 0.2689414, 1e-6);
    assert_true(dst[1] >= 0 && dst[1] < 1e-30f);
}

/* Loss and gradient of a row whose probabilities are p = 1, 2e-9 and 2e-9 are all clipped, and of others. */
static void clipped_probabilities(void **state) {
    (void)state;
    float logits[3] = {20, 0, 0}, labels[3] = {0.25f, 0.75f, 0}, loss = 0, difference[3];
    leati_desc descs[4] = {matrix(1, 3), matrix(1, 3), vector(LEAT_F32, 1), matrix(1, 3)};
    leati_attrs attrs = {.xent = {LEATI_XENT_CLIPPED}};
    run_op(LEATI_OP_SOFTMAX_XENT, &attrs, 2, 2, descs, (void *[]){logits, labels, &loss, difference}, 0);
    assert_float_equal(loss, 12.0885717f, 1e-4);
    for (int i = 0; i < 3; ++i) assert_float_equal(difference[i], 0, 0);
    logits[0] = 1; /* p = 0.57611688, 0.21194156, 0.21194156 */
    run_op(LEATI_OP_SOFTMAX_XENT, &attrs, 2, 2, descs, (void *[]){logits, labels, &loss, difference}, 0);
    assert_float_equal(loss, 1.3014447f, 1e-5);
    assert_float_equal(difference[1], -0.5380584f, 1e-6);
    logits[0] = NAN;
    run_op(LEATI_OP_SOFTMAX_XENT, &attrs, 2, 2, descs, (void *[]){logits, labels, &loss, difference}, 0);
    assert_true(isnan(loss) && isnan(difference[2]));
}

static void classes_at_their_limits(void **state) {
    (void)state;
    enum { rows = 6 };
    float predictions[rows][3] = {{0.5f, 0.5f, 0},  {0.2f, 0.3f, 0.5f}, {1, 2, NAN},
                                  {INFINITY, 1, 0}, {1, 2, 3},          {1, 2, 3}};
    int32_t targets[rows] = {1, 0, 1, 1, 3, -1}, largest[rows];
    float in[rows];
    leati_attrs top = {.top_k = {1}}, argmax = {.argmax = {.axis = 1}};
    leati_desc descs[3] = {matrix(rows, 3), vector(LEAT_I32, rows), vector(LEAT_F32, rows)};
    run_op(LEATI_OP_IN_TOP_K, &top, 2, 1, descs, (void *[]){predictions, targets, in}, 0);
    /* A tie counts as a hit; NaN, infinity and an index that is no class do not. */
    const float expected[rows] = {1, 0, 0, 0, 0, 0};
    for (int i = 0; i < rows; ++i) assert_float_equal(in[i], expected[i], 0);
    leati_desc to[2] = {matrix(rows, 3), vector(LEAT_I32, rows)};
    run_op(LEATI_OP_ARGMAX, &argmax, 1, 1, to, (void *[]){predictions, largest}, 0);
    const int32_t first[rows] = {0, 2, 1, 0, 2, 2};
    for (int i = 0; i < rows; ++i) assert_int_equal(largest[i], first[i]);
}

static void casts_saturate(void **state) {
    (void)state;
    double src[5] = {-1e30, 1e30, NAN, 2.9, -2.9};
    int32_t whole[5];
    uint8_t bytes[5];
    leati_attrs to_i32 = {.cast = {.dtype = LEAT_I32}}, to_u8 = {.cast = {.dtype = LEAT_U8}};
    leati_desc descs[2] = {vector(LEAT_F64, 5), vector(LEAT_I32, 5)};
    run_op(LEATI_OP_CAST, &to_i32, 1, 1, descs, (void *[]){src, whole}, 0);
    const int32_t expected[5] = {INT32_MIN, INT32_MAX, 0, 2, -2};
    assert_memory_equal(whole, expected, sizeof expected);
    run_op(LEATI_OP_CAST, &to_u8, 1, 1, descs, (void *[]){src, bytes}, 0);
    const uint8_t small[5] = {0, 255, 0, 2, 0};
    assert_memory_equal(bytes, small, sizeof small);
}

/* Rounding to bf16 is to the nearest, ties to even; numbers that are too large become infinite, and NaN stays NaN. */
static void casts_round_to_bfloat16(void **state) {
    enum { count = 8 };
    (void)state;
    float src[count] = {1, -0.0f, 1 + 0x1p-8f, 1 + 0x3p-8f, 1 + 0x1.01p-8f, INFINITY, 3.4e38f, NAN};
    const uint16_t expected[count - 1] = {0x3f80, 0x8000, 0x3f80, 0x3f82, 0x3f81, 0x7f80, 0x7f80};
    uint16_t rounded[count];
    float back[count];
    leati_attrs to = {.cast = {.dtype = LEATI_BF16, .scale = 1}},
                from = {.cast = {.dtype = LEAT_F32, .scale = 2}};
    leati_desc descs[2] = {vector(LEAT_F32, count), vector(LEATI_BF16, count)};
    run_op(LEATI_OP_CAST, &to, 1, 1, descs, (void *[]){src, rounded}, 0);
    assert_memory_equal(rounded, expected, sizeof expected);
    leati_desc reversed[2] = {descs[1], descs[0]};
    run_op(LEATI_OP_CAST, &from, 1, 1, reversed, (void *[]){rounded, back}, 0);
    assert_true(back[0] == 2 && back[1] == 0 && back[3] == 2 + 0x4p-7f && isinf(back[5]) && isnan(back[7]));
}

/* The rate is respected, kept elements are scaled, each step has its own mask, and the draw of element e does not
 * depend on the shape. */
static void masks_of_dropout(void **state) {
    (void)state;
    enum { count = 40000 };
    static float ones[count], first[count], again[count], other[count];
    for (int i = 0; i < count; ++i) ones[i] = 1;
    leati_attrs attrs = {.dropout = {.rate = 0.3f, .stream = 4}};
    leati_desc line[2] = {vector(LEAT_F32, count), vector(LEAT_F32, count)};
    leati_desc table[2] = {matrix(200, 200), matrix(200, 200)};
    run_op(LEATI_OP_DROPOUT, &attrs, 1, 1, line, (void *[]){ones, first}, 6);
    run_op(LEATI_OP_DROPOUT, &attrs, 1, 1, table, (void *[]){ones, again}, 6);
    assert_memory_equal(first, again, sizeof first);
    int kept = 0, same = 0;
    run_op(LEATI_OP_DROPOUT, &attrs, 1, 1, line, (void *[]){ones, other}, 7);
    for (int i = 0; i < count; ++i) {
        assert_true(first[i] == 0 || fabsf(first[i] - 1 / 0.7f) < 1e-6f);
        kept += first[i] != 0;
        same += (first[i] != 0) == (other[i] != 0);
    }
    assert_in_range(kept, 28000 - 460, 28000 + 460);               /* 5 sigma of a binomial */
    assert_in_range(same, 40000 * 0.58 - 500, 40000 * 0.58 + 500); /* 0.7^2 + 0.3^2: independent steps */
    attrs.dropout.shared = 1;                                      /* one draw for each column */
    run_op(LEATI_OP_DROPOUT, &attrs, 1, 1, table, (void *[]){ones, again}, 6);
    for (int i = 0; i < count; ++i) assert_float_equal(again[i], first[i % 200], 0);
}

/* Three steps of an optimizer for one weight in double, as in the optimizers.py of Keras 2.3.1. */
typedef struct trajectory {
    double p, s[3];
} trajectory;

static void keras_sgd(trajectory *t, double g, const double *c) {
    t->s[0] = c[1] * t->s[0] - c[0] * g;
    t->p += c[1] * t->s[0] - c[0] * g; /* nesterov */
}

static void keras_rmsprop(trajectory *t, double g, const double *c) {
    t->s[0] = c[1] * t->s[0] + (1 - c[1]) * g * g;
    t->p -= c[0] * g / (sqrt(t->s[0]) + c[2]);
}

static void keras_adagrad(trajectory *t, double g, const double *c) {
    t->s[0] += g * g;
    t->p -= c[0] * g / (sqrt(t->s[0]) + c[1]);
}

static void keras_adadelta(trajectory *t, double g, const double *c) {
    t->s[0] = c[1] * t->s[0] + (1 - c[1]) * g * g;
    double step = g * sqrt(t->s[1] + c[2]) / sqrt(t->s[0] + c[2]);
    t->p -= c[0] * step;
    t->s[1] = c[1] * t->s[1] + (1 - c[1]) * step * step;
}

static void keras_amsgrad(trajectory *t, double g, const double *c) {
    t->s[0] = c[1] * t->s[0] + (1 - c[1]) * g;
    t->s[1] = c[2] * t->s[1] + (1 - c[2]) * g * g;
    t->s[2] = fmax(t->s[2], t->s[1]);
    t->p -= c[0] * t->s[0] / (sqrt(t->s[2]) + c[3]);
}

static void keras_adamax(trajectory *t, double g, const double *c) {
    t->s[0] = c[1] * t->s[0] + (1 - c[1]) * g;
    t->s[1] = fmax(c[2] * t->s[1], fabs(g));
    t->p -= c[0] * t->s[0] / (t->s[1] + c[3]);
}

static void keras_nadam(trajectory *t, double g, const double *c) {
    double g_prime = g / (1 - c[6]);
    t->s[0] = c[1] * t->s[0] + (1 - c[1]) * g;
    t->s[1] = c[2] * t->s[1] + (1 - c[2]) * g * g;
    double m_bar = (1 - c[4]) * g_prime + c[5] * t->s[0] / (1 - c[7]);
    t->p -= c[0] * m_bar / (sqrt(t->s[1] / (1 - c[8])) + c[3]);
}

static void keras_lion(trajectory *t, double g, const double *c) {
    double direction = c[1] * t->s[0] + (1 - c[1]) * g;
    t->p -= c[0] * (double)((direction > 0) - (direction < 0));
    t->s[0] = c[2] * t->s[0] + (1 - c[2]) * g;
}

/* Weight decay is applied before the update. */
static void keras_decaying_sgd(trajectory *t, double g, const double *c) {
    t->p = t->p - c[2] * t->p - c[0] * g;
}

/* Like the functions above, but as in the optimizers of Keras 3. */
static void keras3_rmsprop(trajectory *t, double g, const double *c) {
    t->s[0] = c[1] * t->s[0] + c[3] * g * g;
    t->s[2] = c[1] * t->s[2] + c[3] * g;
    t->s[1] = c[4] * t->s[1] + c[0] * g / sqrt(t->s[0] - t->s[2] * t->s[2] + c[2]);
    t->p -= t->s[1];
}

static void keras3_adagrad(trajectory *t, double g, const double *c) {
    t->s[0] += g * g;
    t->p -= c[0] * g / sqrt(t->s[0] + c[1]);
}

static void keras3_adam(trajectory *t, double g, const double *c) {
    t->s[0] += (g - t->s[0]) * c[1];
    t->s[1] += (g * g - t->s[1]) * c[2];
    t->p -= c[0] * t->s[0] / (sqrt(t->s[1]) + c[3]);
}

static void keras3_adamax(trajectory *t, double g, const double *c) {
    t->s[0] += (g - t->s[0]) * c[1];
    t->s[1] = fmax(c[2] * t->s[1], fabs(g));
    t->p -= c[0] * t->s[0] / (t->s[1] + c[3]);
}

static void updates_against_keras(void **state) {
    (void)state;
    static const struct {
        leati_op op;
        int scalars, slots;
        leati_attrs attrs;
        void (*keras)(trajectory *t, double g, const double *c);
    } optimizers[] = {
        {LEATI_OP_UPDATE_SGD, 2, 1, {.update = {.momentum = true, .nesterov = true}}, keras_sgd},
        {LEATI_OP_UPDATE_RMSPROP, 3, 1, {.update = {0}}, keras_rmsprop},
        {LEATI_OP_UPDATE_ADAGRAD, 2, 1, {.update = {0}}, keras_adagrad},
        {LEATI_OP_UPDATE_ADADELTA, 3, 2, {.update = {0}}, keras_adadelta},
        {LEATI_OP_UPDATE_ADAM, 4, 3, {.update = {.amsgrad = true}}, keras_amsgrad},
        {LEATI_OP_UPDATE_ADAMAX, 4, 2, {.update = {0}}, keras_adamax},
        {LEATI_OP_UPDATE_NADAM, 9, 2, {.update = {0}}, keras_nadam},
        {LEATI_OP_UPDATE_LION, 3, 1, {.update = {0}}, keras_lion},
        {LEATI_OP_UPDATE_SGD, 3, 0, {.update = {.decay = true}}, keras_decaying_sgd},
        {LEATI_OP_UPDATE_RMSPROP,
         5,
         3,
         {.update = {.as_keras3 = true, .accumulates = true, .centered = true}},
         keras3_rmsprop},
        {LEATI_OP_UPDATE_ADAGRAD, 2, 1, {.update = {.as_keras3 = true}}, keras3_adagrad},
        {LEATI_OP_UPDATE_ADAM, 4, 2, {.update = {.as_keras3 = true}}, keras3_adam},
        {LEATI_OP_UPDATE_ADAMAX, 4, 2, {.update = {.as_keras3 = true}}, keras3_adamax},
    };
    const double c[9] = {0.05, 0.9, 0.25, 0.125, 0.75, 0.8, 0.4, 0.5, 0.6},
                 gradients[4] = {0.5, -1.5, 0.01, -0.2};
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; ++o) {
        float scalars[9], g = 0, p = 1, s[3] = {0};
        trajectory t = {.p = 1};
        leati_desc descs[6] = {vector(LEAT_F32, optimizers[o].scalars)};
        for (int i = 1; i < 6; ++i) descs[i] = vector(LEAT_F32, 1);
        for (int i = 0; i < 9; ++i) scalars[i] = (float)c[i];
        for (int step = 0; step < 4; ++step) {
            g = (float)gradients[step];
            optimizers[o].keras(&t, gradients[step], c);
            run_op(optimizers[o].op, &optimizers[o].attrs, 3 + optimizers[o].slots, 0, descs,
                   (void *[]){scalars, &g, &p, &s[0], &s[1], &s[2]}, 0);
            if (fabs((double)p - t.p) > 1e-6)
                fail_msg("%s: %.9g, expected %.9g", leati_op_descriptor_of(optimizers[o].op)->name, (double)p,
                         t.p);
            for (int i = 0; i < 3; ++i) assert_float_equal(s[i], t.s[i], 1e-6);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_against_libm),  cmocka_unit_test(functions_keep_nan),
        cmocka_unit_test(softmax_of_far_logits),   cmocka_unit_test(clipped_probabilities),
        cmocka_unit_test(classes_at_their_limits), cmocka_unit_test(casts_saturate),
        cmocka_unit_test(casts_round_to_bfloat16), cmocka_unit_test(masks_of_dropout),
        cmocka_unit_test(updates_against_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
