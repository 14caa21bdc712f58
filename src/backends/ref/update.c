/* SPDX-License-Identifier: Apache-2.0 */
/* MOVING_AVERAGE and the UPDATE ops in plain C; engine/ops/update.c has the formulas.  All arithmetic is float, as
 * in Keras on TensorFlow.  Room: backends/ref. */
#include <math.h>

#include "backends/ref/ref.h"

static leat_status run_moving_average(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                      leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    float *state = args[0], momentum = ref->attrs.moving_average.momentum;
    const float *value = args[1];
    int64_t count = leati_desc_count(leati_ref_in(ref, 0));
    for (int64_t i = 0; i < count; ++i) state[i] = state[i] * momentum + value[i] * (1 - momentum);
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(moving_average, run_moving_average)

/* The operands of an update. */
typedef struct update {
    const leati_attrs *attrs;
    const float *scalars, *g;
    float *p, *slot[3];
    int64_t count;
} update;

static update update_of(const leati_kernel *kernel, void *const *args) {
    const leati_ref *ref = leati_ref_of(kernel);
    update u = {.attrs = &ref->attrs,
                .scalars = args[0],
                .g = args[1],
                .p = args[2],
                .count = leati_desc_count(leati_ref_in(ref, 1))};
    for (int i = 3; i < ref->input_count; ++i) u.slot[i - 3] = args[i];
    return u;
}

/* Returns the factor of weight decay, which the weights are multiplied by first: the scalar behind the op's
 * `scalars` own ones, or 1 without decay. */
static float decay_factor_of(const update *u, int scalars) {
    return u->attrs->update.decay ? u->scalars[scalars] : 1.0f;
}

static void sgd(const update *u) {
    const float decay_factor = decay_factor_of(u, 2);
    float lr = u->scalars[0], momentum = u->scalars[1], *v = u->slot[0];
    for (int64_t i = 0; i < u->count; ++i) {
        if (!u->attrs->update.momentum) {
            u->p[i] = decay_factor * u->p[i] - lr * u->g[i];
            continue;
        }
        v[i] = momentum * v[i] - lr * u->g[i];
        u->p[i] =
            decay_factor * u->p[i] + (u->attrs->update.nesterov ? momentum * v[i] - lr * u->g[i] : v[i]);
    }
}

static void rmsprop(const update *u) {
    const float decay_factor = decay_factor_of(u, 3);
    float lr = u->scalars[0], rho = u->scalars[1], epsilon = u->scalars[2], *a = u->slot[0];
    for (int64_t i = 0; i < u->count; ++i) {
        a[i] = rho * a[i] + (1 - rho) * (u->g[i] * u->g[i]);
        u->p[i] = decay_factor * u->p[i] - lr * u->g[i] / (sqrtf(a[i]) + epsilon);
    }
}

static void adagrad(const update *u) {
    const float decay_factor = decay_factor_of(u, 2);
    float lr = u->scalars[0], epsilon = u->scalars[1], *a = u->slot[0];
    for (int64_t i = 0; i < u->count; ++i) {
        a[i] += u->g[i] * u->g[i];
        u->p[i] = decay_factor * u->p[i] - lr * u->g[i] / (sqrtf(a[i]) + epsilon);
    }
}

static void adadelta(const update *u) {
    const float decay_factor = decay_factor_of(u, 3);
    float lr = u->scalars[0], rho = u->scalars[1], epsilon = u->scalars[2], *a = u->slot[0], *d = u->slot[1];
    for (int64_t i = 0; i < u->count; ++i) {
        a[i] = rho * a[i] + (1 - rho) * (u->g[i] * u->g[i]);
        float step = u->g[i] * sqrtf(d[i] + epsilon) / sqrtf(a[i] + epsilon);
        u->p[i] = decay_factor * u->p[i] - lr * step;
        d[i] = rho * d[i] + (1 - rho) * (step * step);
    }
}

static void adam(const update *u) {
    const float decay_factor = decay_factor_of(u, 4);
    float lr_t = u->scalars[0], beta_1 = u->scalars[1], beta_2 = u->scalars[2], epsilon = u->scalars[3];
    float *m = u->slot[0], *v = u->slot[1], *vhat = u->slot[2];
    for (int64_t i = 0; i < u->count; ++i) {
        m[i] = beta_1 * m[i] + (1 - beta_1) * u->g[i];
        v[i] = beta_2 * v[i] + (1 - beta_2) * (u->g[i] * u->g[i]);
        float second = v[i];
        if (u->attrs->update.amsgrad) second = vhat[i] = vhat[i] > v[i] ? vhat[i] : v[i];
        u->p[i] = decay_factor * u->p[i] - lr_t * m[i] / (sqrtf(second) + epsilon);
    }
}

static void adamax(const update *u) {
    const float decay_factor = decay_factor_of(u, 4);
    float lr_t = u->scalars[0], beta_1 = u->scalars[1], beta_2 = u->scalars[2], epsilon = u->scalars[3];
    float *m = u->slot[0], *norm = u->slot[1];
    for (int64_t i = 0; i < u->count; ++i) {
        float decayed = beta_2 * norm[i], size = fabsf(u->g[i]);
        m[i] = beta_1 * m[i] + (1 - beta_1) * u->g[i];
        norm[i] = decayed >= size ? decayed : size; /* a NaN gradient gives NaN */
        u->p[i] = decay_factor * u->p[i] - lr_t * m[i] / (norm[i] + epsilon);
    }
}

static void nadam(const update *u) {
    const float decay_factor = decay_factor_of(u, 9);
    const float *s = u->scalars;
    float lr = s[0], beta_1 = s[1], beta_2 = s[2], epsilon = s[3], mu = s[4], mu_next = s[5];
    float *m = u->slot[0], *v = u->slot[1];
    for (int64_t i = 0; i < u->count; ++i) {
        float g_prime = u->g[i] / (1 - s[6]);
        m[i] = beta_1 * m[i] + (1 - beta_1) * u->g[i];
        v[i] = beta_2 * v[i] + (1 - beta_2) * (u->g[i] * u->g[i]);
        float m_bar = (1 - mu) * g_prime + mu_next * (m[i] / (1 - s[7]));
        u->p[i] = decay_factor * u->p[i] - lr * m_bar / (sqrtf(v[i] / (1 - s[8])) + epsilon);
    }
}

static void lion(const update *u) {
    const float decay_factor = decay_factor_of(u, 3);
    float lr = u->scalars[0], beta_1 = u->scalars[1], beta_2 = u->scalars[2], *m = u->slot[0];
    for (int64_t i = 0; i < u->count; ++i) {
        float c = beta_1 * m[i] + (1 - beta_1) * u->g[i];
        float sign = c > 0 ? 1.0f : c < 0 ? -1.0f : c; /* NaN stays NaN */
        u->p[i] = decay_factor * u->p[i] - lr * sign;
        m[i] = beta_2 * m[i] + (1 - beta_2) * u->g[i];
    }
}

#define UPDATE_KERNEL(lower)                                                                                 \
    static leat_status run_##lower(const leati_kernel *kernel, void *const *args, const leati_run *run,      \
                                   leat_error *err) {                                                        \
        (void)run;                                                                                           \
        (void)err;                                                                                           \
        update u = update_of(kernel, args);                                                                  \
        lower(&u);                                                                                           \
        return LEAT_OK;                                                                                      \
    }                                                                                                        \
    LEATI_REF_ACCEPTS(update_##lower, run_##lower)

UPDATE_KERNEL(sgd)
UPDATE_KERNEL(rmsprop)
UPDATE_KERNEL(adagrad)
UPDATE_KERNEL(adadelta)
UPDATE_KERNEL(adam)
UPDATE_KERNEL(adamax)
UPDATE_KERNEL(nadam)
UPDATE_KERNEL(lion)
