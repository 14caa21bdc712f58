/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the element-wise functions of one variable and their derivatives.  Room: engine. */
#include "engine/op_semantics/function.h"

#include <math.h>

/* Klambauer et al., "Self-normalizing neural networks", 2017. */
#define SELU_SCALE 1.0507009873554805f
#define SELU_ALPHA 1.6732632423543772f

#define SQRT_HALF      0.70710678118654752
#define SQRT_2_OVER_PI 0.79788456080286536
#define NORMAL_PEAK    0.39894228040143268f /* 1 / sqrt(2 pi) */

#define SLOPE_OF_ERF 1.1283791670955126f /* 2 / sqrt(pi): the derivative of erf at 0 */

static float sigmoid(float x) {
    return 1 / (1 + expf(-x));
}

static float softplus(float x) {
    return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
}

static float clip(float x, float low, float high) {
    float below = x < high || isnan(x) ? x : high;
    return below > low || isnan(x) ? below : low;
}

/* gelu_tanh(x) / x = (1 + tanh t) / 2 = 1 / (1 + e^-2t) with t = sqrt(2 / pi) (x + 0.044715 x^3). */
static double gelu_tanh_share(double x) {
    return 1 / (1 + exp(-2 * SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)));
}

static float gelu_tanh_slope(double x) {
    double share = gelu_tanh_share(x), t_slope = SQRT_2_OVER_PI * (1 + 3 * 0.044715 * x * x);
    return (float)(share + 2 * x * share * (1 - share) * t_slope);
}

float leati_eltwise_at(const leati_eltwise *f, float x) {
    switch (f->function) {
    case LEATI_FN_RELU: /* the sum makes +0 of -0, as Keras's max(x, 0) does */
        return (x >= f->c ? (x < f->b ? x : f->b) : f->a * (x - f->c)) + 0.0f;
    case LEATI_FN_ELU: return x > 0 ? x : f->a * expm1f(x);
    case LEATI_FN_SELU: return SELU_SCALE * (x > 0 ? x : SELU_ALPHA * expm1f(x));
    case LEATI_FN_SOFTPLUS: return softplus(x);
    case LEATI_FN_SOFTSIGN: return x / (1 + fabsf(x));
    case LEATI_FN_TANH: return tanhf(x);
    case LEATI_FN_SIGMOID: return sigmoid(x);
    case LEATI_FN_HARD_SIGMOID: return clip(f->a * x + f->b, 0, 1);
    case LEATI_FN_EXP: return expf(x);
    case LEATI_FN_LOG: return logf(x);
    case LEATI_FN_SQRT: return sqrtf(x);
    case LEATI_FN_SQUARE: return x * x;
    case LEATI_FN_ABS: return fabsf(x);
    case LEATI_FN_LINEAR: return f->a * x + f->b;
    case LEATI_FN_CLIP: return clip(x, f->a, f->b);
    case LEATI_FN_POW: return powf(x, f->a);
    case LEATI_FN_GELU: return (float)(0.5 * (double)x * erfc(-(double)x * SQRT_HALF));
    case LEATI_FN_SILU: return x * sigmoid(x);
    case LEATI_FN_MISH: return x * tanhf(softplus(x));
    case LEATI_FN_HARD_SWISH: return x * clip(x / 6 + 0.5f, 0, 1);
    case LEATI_FN_SIN: return sinf(x);
    case LEATI_FN_COS: return cosf(x);
    case LEATI_FN_TAN: return tanf(x);
    case LEATI_FN_ASIN: return asinf(x);
    case LEATI_FN_ACOS: return acosf(x);
    case LEATI_FN_ATAN: return atanf(x);
    case LEATI_FN_SINH: return sinhf(x);
    case LEATI_FN_COSH: return coshf(x);
    case LEATI_FN_ASINH: return asinhf(x);
    case LEATI_FN_ACOSH: return acoshf(x);
    case LEATI_FN_ATANH: return atanhf(x);
    case LEATI_FN_ERF: return erff(x);
    case LEATI_FN_LOG1P: return log1pf(x);
    case LEATI_FN_EXPM1: return expm1f(x);
    case LEATI_FN_GELU_TANH: return (float)((double)x * gelu_tanh_share((double)x));
    case LEATI_FN_COUNT: break;
    }
    return NAN;
}

float leati_slope_at(const leati_eltwise *f, float x) {
    switch (f->function) {
    case LEATI_FN_RELU: return x > f->c ? (x < f->b ? 1.0f : 0.0f) : f->a;
    case LEATI_FN_ELU: return x > 0 ? 1 : f->a * expf(x);
    case LEATI_FN_SELU: return x > 0 ? SELU_SCALE : SELU_SCALE * SELU_ALPHA * expf(x);
    case LEATI_FN_SOFTPLUS: return sigmoid(x);
    case LEATI_FN_SOFTSIGN: return 1 / ((1 + fabsf(x)) * (1 + fabsf(x)));
    case LEATI_FN_TANH: return 1 - tanhf(x) * tanhf(x);
    case LEATI_FN_SIGMOID: return sigmoid(x) * sigmoid(-x);
    case LEATI_FN_HARD_SIGMOID: {
        float y = f->a * x + f->b;
        return y >= 0 && y <= 1 ? f->a : 0;
    }
    case LEATI_FN_EXP: return expf(x);
    case LEATI_FN_LOG: return 1 / x;
    case LEATI_FN_SQRT: return 0.5f / sqrtf(x);
    case LEATI_FN_SQUARE: return 2 * x;
    case LEATI_FN_ABS: return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
    case LEATI_FN_LINEAR: return f->a;
    case LEATI_FN_CLIP: return x >= f->a && x <= f->b ? 1.0f : 0.0f;
    case LEATI_FN_POW: return f->a * powf(x, f->a - 1);
    case LEATI_FN_GELU:
        return (float)(0.5 * erfc(-(double)x * SQRT_HALF)) + x * NORMAL_PEAK * expf(-0.5f * x * x);
    case LEATI_FN_SILU: return sigmoid(x) * (1 + x * sigmoid(-x));
    case LEATI_FN_MISH: {
        float t = tanhf(softplus(x));
        return t + x * sigmoid(x) * (1 - t * t);
    }
    case LEATI_FN_HARD_SWISH: return x <= -3 ? 0.0f : x < 3 ? x / 3 + 0.5f : 1.0f;
    case LEATI_FN_SIN: return cosf(x);
    case LEATI_FN_COS: return -sinf(x);
    case LEATI_FN_TAN: return 1 / (cosf(x) * cosf(x));
    case LEATI_FN_ASIN: return 1 / sqrtf((1 - x) * (1 + x));
    case LEATI_FN_ACOS: return -1 / sqrtf((1 - x) * (1 + x));
    case LEATI_FN_ATAN: return 1 / (1 + x * x);
    case LEATI_FN_SINH: return coshf(x);
    case LEATI_FN_COSH: return sinhf(x);
    case LEATI_FN_ASINH: return 1 / sqrtf(x * x + 1);
    case LEATI_FN_ACOSH: return 1 / sqrtf((x - 1) * (x + 1));
    case LEATI_FN_ATANH: return 1 / ((1 - x) * (1 + x));
    case LEATI_FN_ERF: return SLOPE_OF_ERF * expf(-x * x);
    case LEATI_FN_LOG1P: return 1 / (1 + x);
    case LEATI_FN_EXPM1: return expf(x);
    case LEATI_FN_GELU_TANH: return gelu_tanh_slope((double)x);
    case LEATI_FN_COUNT: break;
    }
    return NAN;
}

bool leati_slope_known_from_dst(const leati_eltwise *f) {
    switch (f->function) {
    case LEATI_FN_RELU:
        return f->a >= 0 && f->b > 0 && f->c == 0; /* otherwise several x may have the same y */
    case LEATI_FN_ELU: return f->a >= 0;
    case LEATI_FN_SELU:
    case LEATI_FN_SOFTPLUS:
    case LEATI_FN_SOFTSIGN:
    case LEATI_FN_TANH:
    case LEATI_FN_SIGMOID:
    case LEATI_FN_HARD_SIGMOID:
    case LEATI_FN_EXP:
    case LEATI_FN_SQRT:
    case LEATI_FN_LINEAR: return true;
    default: return false;
    }
}

float leati_slope_from_dst(const leati_eltwise *f, float y) {
    switch (f->function) {
    case LEATI_FN_RELU: return y <= 0 ? f->a : y < f->b ? 1.0f : 0.0f;
    case LEATI_FN_ELU: return y > 0 ? 1 : y + f->a;
    case LEATI_FN_SELU: return y > 0 ? SELU_SCALE : y + SELU_SCALE * SELU_ALPHA;
    case LEATI_FN_SOFTPLUS: return -expm1f(-y);
    case LEATI_FN_SOFTSIGN: return (1 - fabsf(y)) * (1 - fabsf(y));
    case LEATI_FN_TANH: return 1 - y * y;
    case LEATI_FN_SIGMOID: return y * (1 - y);
    case LEATI_FN_HARD_SIGMOID: return y > 0 && y < 1 ? f->a : 0;
    case LEATI_FN_EXP: return y;
    case LEATI_FN_SQRT: return 0.5f / y;
    case LEATI_FN_LINEAR: return f->a;
    default: return NAN;
    }
}
