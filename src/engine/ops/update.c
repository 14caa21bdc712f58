/* SPDX-License-Identifier: Apache-2.0 */
/* MOVING_AVERAGE and the UPDATE ops of the optimizers, with the formulas of Keras 2.3.1's optimizers.py.  Inputs:
 * scalars (set by the caller before a run), gradient g, weights p (written), optimizer slots (written).  All inputs are
 * f32, and all except the scalars have one shape.
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
 * With attrs.update.decay, one more scalar follows, 1 - lr weight_decay, by which p is multiplied first.
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

static leat_status infer_update(int64_t scalars, int slots, int input_count, const leati_desc *in,
                                leat_error *err) {
    LEATI_TRY(leati_expect_shape(&in[0], "scalars", 1, &scalars, err));
    LEATI_TRY(leati_expect_f32(&in[1], "gradient", err));
    LEATI_TRY(leati_expect_like(&in[2], "weights", &in[1], err));
    for (int i = 3; i < input_count; ++i) {
        char name[24];
        snprintf(name, sizeof name, "optimizer slot %d", i - 3);
        if (i < 3 + slots)
            LEATI_TRY(leati_expect_like(&in[i], name, &in[1], err));
        else if (in[i].rank >= 0)
            return leati_fail(err, LEAT_EINVAL, "expected %d optimizer slots, received %d", slots, i - 2);
    }
    return LEAT_OK;
}

/* Defines the descriptor of an op that has between `fewest` and `most` optimizer slots, and `slots` of them with given
 * attributes. */
#define DEFINE_UPDATE(lower, scalars, slots, fewest, most)                                                   \
    static leat_status infer_##lower(const leati_attrs *attrs, int input_count, const leati_desc *in,        \
                                     leati_desc *out, leat_error *err) {                                     \
        (void)out;                                                                                           \
        return infer_update((scalars) + (attrs->update.decay ? 1 : 0), slots, input_count, in, err);         \
    }                                                                                                        \
    const leati_op_descriptor leati_op_update_##lower = {.name = "update_" #lower,                           \
                                                         .min_inputs = 3 + (fewest),                         \
                                                         .max_inputs = 3 + (most),                           \
                                                         .outputs = 0,                                       \
                                                         .writes = (1u << (3 + (most))) - (1u << 2),         \
                                                         .optional =                                         \
                                                             (1u << (3 + (most))) - (1u << (3 + (fewest))),  \
                                                         .infer = infer_##lower}

DEFINE_UPDATE(sgd, 2, attrs->update.momentum ? 1 : 0, 0, 1);
DEFINE_UPDATE(rmsprop, 3, 1, 1, 1);
DEFINE_UPDATE(adagrad, 2, 1, 1, 1);
DEFINE_UPDATE(adadelta, 3, 2, 2, 2);
DEFINE_UPDATE(adam, 4, attrs->update.amsgrad ? 3 : 2, 2, 3);
DEFINE_UPDATE(adamax, 4, 2, 2, 2);
DEFINE_UPDATE(nadam, 9, 2, 2, 2);
DEFINE_UPDATE(lion, 3, 1, 1, 1);
