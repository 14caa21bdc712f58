/* SPDX-License-Identifier: Apache-2.0 */
/* MOVING_AVERAGE and the UPDATE ops of the optimizers, with the formulas of Keras 2.3.1's optimizers.py.  Inputs:
 * scalars (set by the caller before a run), gradient g, weights p (written), optimizer slots (written).  All inputs are
 * f32, and all except the scalars have one shape (but see attrs.update.rows below).
 *
 *   op        scalars                        optimizer    formula
 *                                            slots
 *   SGD       lr, momentum                   v            v = momentum v - lr g;  p += nesterov ? momentum v - lr g : v
 *                                                         (without attrs.update.momentum there is no optimizer slot,
 *                                                         and p -= lr g)
 *   RMSPROP   lr, rho, epsilon               a            a = rho a + (1 - rho) g^2;  p -= lr g / (sqrt a + epsilon)
 *   ADAGRAD   lr, epsilon                    a            a += g^2;  p -= lr g / (sqrt a + epsilon)
 *   ADADELTA  lr, rho, epsilon               a, d         a = rho a + (1 - rho) g^2
 *                                                         u = g sqrt(d + epsilon) / sqrt(a + epsilon);  p -= lr u
 *                                                         d = rho d + (1 - rho) u^2
 *   ADAM      lr_t, beta_1, beta_2, epsilon  m, v[, vhat] m = beta_1 m + (1 - beta_1) g
 *                                                         v = beta_2 v + (1 - beta_2) g^2
 *                                                         p -= lr_t m / (sqrt v + epsilon)
 *                                                         (attrs.update.amsgrad: vhat = max(vhat, v) in place of v)
 *   ADAMAX    lr_t, beta_1, beta_2, epsilon  m, u         m as in ADAM;  u = max(beta_2 u, |g|)
 *                                                         p -= lr_t m / (u + epsilon)
 *   NADAM     lr, beta_1, beta_2, epsilon,   m, v         m, v as in ADAM;  g' = g / (1 - s);  m' = m / (1 - s');
 *             mu, mu', s, s', beta_2^t                    v' = v / (1 - beta_2^t);  mbar = (1 - mu) g' + mu' m'
 *                                                         p -= lr mbar / (sqrt v' + epsilon)
 *   LION      lr, beta_1, beta_2             m            p -= lr sign(beta_1 m + (1 - beta_1) g)
 *                                                         m = beta_2 m + (1 - beta_2) g
 *
 * With attrs.update.as_keras3, the formulas of current Keras replace those of 2.3.1:
 *
 *   RMSPROP   lr, rho, epsilon, 1 - rho,     a[, m][, c]  a = rho a + (1 - rho) g^2;  step = lr g / sqrt(a + epsilon)
 *             momentum                                    (attrs.update.centered: c = rho c + (1 - rho) g, and
 *                                                         a - c^2 in place of a in the root)
 *                                                         p -= step  (attrs.update.accumulates: m = momentum m + step;
 *                                                         p -= m)
 *   ADAGRAD   lr, epsilon                    a            a += g^2;  p -= lr g / sqrt(a + epsilon)
 *   ADADELTA  lr, rho, epsilon, 1 - rho      a, d         as above
 *   ADAM      lr_t, 1 - beta_1, 1 - beta_2,  m, v[, vhat] m += (1 - beta_1) (g - m);  v += (1 - beta_2) (g^2 - v)
 *             epsilon                                     p as above
 *   ADAMAX    lr_t, 1 - beta_1, beta_2,      m, u         m as in ADAM;  u and p as above
 *             epsilon
 *
 * There, 1 - rho and 1 - beta are computed in double.  NADAM is the same in both; its scalars differ.
 * With attrs.update.decay, one more scalar follows, lr weight_decay; p -= lr weight_decay p comes first.
 * With attrs.update.powers, one more input follows all optimizer slots, of the shape of g.  It replaces g^2, and |g|
 * in ADAMAX: g is then the sum of several gradients of the same row, and the input is the sum of their squares, or of
 * their absolute values.  In ADADELTA, u^2 becomes that sum (d + epsilon) / (a + epsilon).
 * With attrs.update.rows, the weights are a table (rows, columns), the gradient is (..., columns), and in the place of
 * the powers an input (...) of any type has the index of each of its rows.  g is the sum of the gradient's rows with
 * the same index, and 0 where there is none; with attrs.update.powers, the powers are the sums of those of the rows.
 * The indices are those of a GATHER that ran before.
 * lr_t is lr sqrt(1 - beta_2^t) / (1 - beta_1^t) for ADAM and lr / (1 - beta_1^t) for ADAMAX, computed in float.  In
 * NADAM, mu and mu' are momentum_cache_t and momentum_cache_t_1, s and s' are m_schedule_new and m_schedule_next.
 * Room: engine. */
#include <stdio.h>

#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status infer_moving_average(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                        leati_desc *out, leat_error *err) {
    (void)attrs;
    (void)input_count;
    (void)out;
    LEATI_TRY(leati_expect_f32(&in[0], "state", err));
    return leati_expect_like(&in[1], "value", &in[0], err);
}

const leati_op_descriptor leati_op_moving_average = {.name = "moving_average",
                                                     .min_inputs = 2,
                                                     .max_inputs = 2,
                                                     .outputs = 0,
                                                     .writes = 1u,
                                                     .infer = infer_moving_average};

static leat_status infer_rows(int input_count, int most, const leati_desc *in, leat_error *err) {
    LEATI_TRY(leati_expect_rank(&in[2], "weights", 2, err));
    if (input_count != 4 + most || in[3 + most].rank < 0 || in[1].rank != in[3 + most].rank + 1)
        return leati_fail(err, LEAT_ESHAPE, "expected a gradient with one row for each index");
    leati_desc gradient = in[3 + most];
    gradient.dtype = LEAT_F32;
    gradient.shape[gradient.rank++] = in[2].shape[1];
    return leati_expect_like(&in[1], "gradient", &gradient, err);
}

static leat_status infer_update(const leati_attrs *attrs, int64_t scalars, int slots, int most,
                                int input_count, const leati_desc *in, leat_error *err) {
    if (attrs->update.decay) scalars += 1;
    LEATI_TRY(leati_expect_shape(&in[0], "scalars", 1, &scalars, err));
    LEATI_TRY(leati_expect_f32(&in[1], "gradient", err));
    LEATI_TRY(attrs->update.rows ? infer_rows(input_count, most, in, err)
                                 : leati_expect_like(&in[2], "weights", &in[1], err));
    for (int i = 3; i < input_count; ++i) {
        char name[24];
        if (i == 3 + most && attrs->update.rows) return LEAT_OK;
        if (i == 3 + most && attrs->update.powers) return leati_expect_like(&in[i], "powers", &in[2], err);
        snprintf(name, sizeof name, "optimizer slot %d", i - 3);
        if (i < 3 + slots)
            LEATI_TRY(leati_expect_like(&in[i], name, &in[2], err));
        else if (in[i].rank >= 0)
            return leati_fail(err, LEAT_EINVAL, "expected %d optimizer slots, received %d", slots, i - 2);
    }
    return LEAT_OK;
}

/* Defines the descriptor of an op that has between `fewest` and `most` optimizer slots, and `slots` of them with given
 * attributes.  The optional input behind them is for attrs.update.powers, or for attrs.update.rows. */
#define DEFINE_UPDATE(lower, scalars, slots, fewest, most)                                                   \
    static leat_status infer_##lower(const leati_attrs *attrs, int input_count, const leati_desc *in,        \
                                     leati_desc *out, leat_error *err) {                                     \
        (void)out;                                                                                           \
        return infer_update(attrs, scalars, slots, most, input_count, in, err);                              \
    }                                                                                                        \
    const leati_op_descriptor leati_op_update_##lower = {.name = "update_" #lower,                           \
                                                         .min_inputs = 3 + (fewest),                         \
                                                         .max_inputs = 4 + (most),                           \
                                                         .outputs = 0,                                       \
                                                         .writes = (1u << (3 + (most))) - (1u << 2),         \
                                                         .optional =                                         \
                                                             (1u << (4 + (most))) - (1u << (3 + (fewest))),  \
                                                         .infer = infer_##lower}

/* The momentum and the mean gradient of RMSPROP. */
static int rmsprop_slots(const leati_attrs *attrs) {
    return 1 + (attrs->update.accumulates ? 1 : 0) + (attrs->update.centered ? 1 : 0);
}

DEFINE_UPDATE(sgd, 2, attrs->update.momentum ? 1 : 0, 0, 1);
DEFINE_UPDATE(rmsprop, attrs->update.as_keras3 ? 5 : 3, rmsprop_slots(attrs), 1, 3);
DEFINE_UPDATE(adagrad, 2, 1, 1, 1);
DEFINE_UPDATE(adadelta, attrs->update.as_keras3 ? 4 : 3, 2, 2, 2);
DEFINE_UPDATE(adam, 4, attrs->update.amsgrad ? 3 : 2, 2, 3);
DEFINE_UPDATE(adamax, 4, 2, 2, 2);
DEFINE_UPDATE(nadam, 9, 2, 2, 2);
DEFINE_UPDATE(lion, 3, 1, 1, 1);
