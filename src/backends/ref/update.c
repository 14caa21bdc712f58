/* SPDX-License-Identifier: Apache-2.0 */
/* MOVING_AVERAGE and the UPDATE ops in plain C; engine/ops/update.c has the formulas.  All arithmetic is float, as
 * in Keras on TensorFlow.  Room: backends/ref. */
#include <math.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "engine/op_semantics/index.h"

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

enum { MAX_SLOTS = 3 };

/* The operands of an update. */
typedef struct update {
    const leati_attrs *attrs;
    const float *scalars, *g;
    const float *powers; /* NULL: those of g */
    float *p, *slot[MAX_SLOTS];
    int64_t count;
    bool sums_absolute; /* powers are absolute values, not squares */
} update;

static bool has_last_input(const leati_attrs *attrs) {
    return attrs->update.powers || attrs->update.rows;
}

static update update_of(const leati_kernel *kernel, void *const *args) {
    const leati_ref *ref = leati_ref_of(kernel);
    update u = {.attrs = &ref->attrs,
                .scalars = args[0],
                .g = args[1],
                .p = args[2],
                .count = leati_desc_count(leati_ref_in(ref, 2))};
    int end = ref->input_count - (has_last_input(&ref->attrs) ? 1 : 0);
    for (int i = 0; i < MAX_SLOTS && 3 + i < end; ++i) u.slot[i] = args[3 + i];
    if (ref->attrs.update.powers) u.powers = args[end];
    return u;
}

/* Adds up the rows of the gradient and their powers, in tables of the weights' shape in `scratch`. */
static leat_status sum_rows(const leati_ref *ref, void *const *args, float *scratch, update *u,
                            leat_error *err) {
    const int last = ref->input_count - 1;
    const leati_desc *table = leati_ref_in(ref, 2), *indices = leati_ref_in(ref, last);
    const int64_t columns = table->shape[1], count = leati_desc_count(indices);
    const float *gradient = args[1];
    float *g = scratch, *powers = scratch + u->count;
    for (int64_t i = 0; i < u->count; ++i) g[i] = powers[i] = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t row = leati_index_at(indices->dtype, args[last], i, table->shape[0]);
        if (row < 0) return leati_index_fail(indices, args[last], i, table->shape[0], err);
        for (int64_t c = 0; c < columns; ++c) {
            const float x = gradient[i * columns + c];
            g[row * columns + c] += x;
            powers[row * columns + c] += u->sums_absolute ? fabsf(x) : x * x;
        }
    }
    u->g = g;
    if (ref->attrs.update.powers) u->powers = powers;
    return LEAT_OK;
}

/* Returns the share of the weights that decays first: the scalar behind the op's `scalars` own ones, or 0. */
static float decay_of(const update *u, int scalars) {
    return u->attrs->update.decay ? u->scalars[scalars] : 0.0f;
}

/* Returns weight i after the decay. */
static float decayed(const update *u, int64_t i, float decay) {
    return u->attrs->update.decay ? u->p[i] - decay * u->p[i] : u->p[i];
}

static float square_at(const update *u, int64_t i) {
    return u->powers ? u->powers[i] : u->g[i] * u->g[i];
}

static void sgd(const update *u) {
    const float decay = decay_of(u, 2);
    float lr = u->scalars[0], momentum = u->scalars[1], *v = u->slot[0];
    for (int64_t i = 0; i < u->count; ++i) {
        float p = decayed(u, i, decay);
        if (!u->attrs->update.momentum) {
            u->p[i] = p - lr * u->g[i];
            continue;
        }
        v[i] = momentum * v[i] - lr * u->g[i];
        u->p[i] = p + (u->attrs->update.nesterov ? momentum * v[i] - lr * u->g[i] : v[i]);
    }
}

static void rmsprop_as_keras3(const update *u) {
    const float decay = decay_of(u, 5);
    float lr = u->scalars[0], rho = u->scalars[1], epsilon = u->scalars[2], gain = u->scalars[3];
    float momentum = u->scalars[4], *a = u->slot[0];
    float *m = u->attrs->update.accumulates ? u->slot[1] : NULL, *c = u->slot[m ? 2 : 1];
    for (int64_t i = 0; i < u->count; ++i) {
        a[i] = rho * a[i] + gain * square_at(u, i);
        float second = a[i];
        if (u->attrs->update.centered) {
            c[i] = rho * c[i] + gain * u->g[i];
            second = a[i] - c[i] * c[i];
        }
        float step = lr * u->g[i] / sqrtf(second + epsilon);
        if (m) step = m[i] = momentum * m[i] + step;
        u->p[i] = decayed(u, i, decay) - step;
    }
}

static void rmsprop(const update *u) {
    if (u->attrs->update.as_keras3) {
        rmsprop_as_keras3(u);
        return;
    }
    const float decay = decay_of(u, 3);
    float lr = u->scalars[0], rho = u->scalars[1], epsilon = u->scalars[2], *a = u->slot[0];
    for (int64_t i = 0; i < u->count; ++i) {
        a[i] = rho * a[i] + (1 - rho) * square_at(u, i);
        u->p[i] = decayed(u, i, decay) - lr * u->g[i] / (sqrtf(a[i]) + epsilon);
    }
}

static void adagrad(const update *u) {
    const float decay = decay_of(u, 2);
    float lr = u->scalars[0], epsilon = u->scalars[1], *a = u->slot[0];
    for (int64_t i = 0; i < u->count; ++i) {
        a[i] += square_at(u, i);
        float root = u->attrs->update.as_keras3 ? sqrtf(a[i] + epsilon) : sqrtf(a[i]) + epsilon;
        u->p[i] = decayed(u, i, decay) - lr * u->g[i] / root;
    }
}

static void adadelta(const update *u) {
    bool as_keras3 = u->attrs->update.as_keras3;
    const float decay = decay_of(u, as_keras3 ? 4 : 3);
    float lr = u->scalars[0], rho = u->scalars[1], epsilon = u->scalars[2];
    float gain = as_keras3 ? u->scalars[3] : 1 - rho, *a = u->slot[0], *d = u->slot[1];
    for (int64_t i = 0; i < u->count; ++i) {
        a[i] = rho * a[i] + gain * square_at(u, i);
        float step = u->g[i] * sqrtf(d[i] + epsilon) / sqrtf(a[i] + epsilon), square = step * step;
        if (u->powers) square = u->powers[i] * (d[i] + epsilon) / (a[i] + epsilon);
        u->p[i] = decayed(u, i, decay) - lr * step;
        d[i] = rho * d[i] + gain * square;
    }
}

/* Returns the moving average `x` after the value `y`; `keep` is 1 - gain in current Keras, whose formula does not
 * read it. */
static float averaged(const update *u, float x, float y, float keep, float gain) {
    return u->attrs->update.as_keras3 ? x + (y - x) * gain : keep * x + gain * y;
}

static void adam(const update *u) {
    const float decay = decay_of(u, 4);
    bool as_keras3 = u->attrs->update.as_keras3;
    float lr_t = u->scalars[0], beta_1 = u->scalars[1], beta_2 = u->scalars[2], epsilon = u->scalars[3];
    float gain_1 = as_keras3 ? beta_1 : 1 - beta_1, gain_2 = as_keras3 ? beta_2 : 1 - beta_2;
    float *m = u->slot[0], *v = u->slot[1], *vhat = u->slot[2];
    for (int64_t i = 0; i < u->count; ++i) {
        m[i] = averaged(u, m[i], u->g[i], beta_1, gain_1);
        v[i] = averaged(u, v[i], square_at(u, i), beta_2, gain_2);
        float second = v[i];
        if (u->attrs->update.amsgrad) second = vhat[i] = vhat[i] > v[i] ? vhat[i] : v[i];
        u->p[i] = decayed(u, i, decay) - lr_t * m[i] / (sqrtf(second) + epsilon);
    }
}

static void adamax(const update *u) {
    const float decay = decay_of(u, 4);
    float lr_t = u->scalars[0], beta_1 = u->scalars[1], beta_2 = u->scalars[2], epsilon = u->scalars[3];
    float gain = u->attrs->update.as_keras3 ? beta_1 : 1 - beta_1, *m = u->slot[0], *norm = u->slot[1];
    for (int64_t i = 0; i < u->count; ++i) {
        float lowered = beta_2 * norm[i], size = u->powers ? u->powers[i] : fabsf(u->g[i]);
        m[i] = averaged(u, m[i], u->g[i], beta_1, gain);
        norm[i] = lowered >= size ? lowered : size; /* a NaN gradient gives NaN */
        u->p[i] = decayed(u, i, decay) - lr_t * m[i] / (norm[i] + epsilon);
    }
}

static void nadam(const update *u) {
    const float decay = decay_of(u, 9);
    const float *s = u->scalars;
    float lr = s[0], beta_1 = s[1], beta_2 = s[2], epsilon = s[3], mu = s[4], mu_next = s[5];
    float *m = u->slot[0], *v = u->slot[1];
    for (int64_t i = 0; i < u->count; ++i) {
        float g_prime = u->g[i] / (1 - s[6]);
        m[i] = beta_1 * m[i] + (1 - beta_1) * u->g[i];
        v[i] = beta_2 * v[i] + (1 - beta_2) * square_at(u, i);
        float m_bar = (1 - mu) * g_prime + mu_next * (m[i] / (1 - s[7]));
        u->p[i] = decayed(u, i, decay) - lr * m_bar / (sqrtf(v[i] / (1 - s[8])) + epsilon);
    }
}

static void lion(const update *u) {
    const float decay = decay_of(u, 3);
    float lr = u->scalars[0], beta_1 = u->scalars[1], beta_2 = u->scalars[2], *m = u->slot[0];
    for (int64_t i = 0; i < u->count; ++i) {
        float c = beta_1 * m[i] + (1 - beta_1) * u->g[i];
        float sign = c > 0 ? 1.0f : c < 0 ? -1.0f : c; /* NaN stays NaN */
        u->p[i] = decayed(u, i, decay) - lr * sign;
        m[i] = beta_2 * m[i] + (1 - beta_2) * u->g[i];
    }
}

#define UPDATE_KERNEL(lower)                                                                                 \
    static leat_status run_##lower(const leati_kernel *kernel, void *const *args, const leati_run *run,      \
                                   leat_error *err) {                                                        \
        update u = update_of(kernel, args);                                                                  \
        u.sums_absolute = lower == adamax;                                                                   \
        if (u.attrs->update.rows) LEATI_TRY(sum_rows(leati_ref_of(kernel), args, run->scratch, &u, err));    \
        lower(&u);                                                                                           \
        return LEAT_OK;                                                                                      \
    }                                                                                                        \
    leat_status leati_ref_update_##lower(const leati_task *task, leati_kernel *kernel, char *why,            \
                                         leat_error *err) {                                                  \
        (void)why;                                                                                           \
        if (task->attrs->update.rows) kernel->scratch_bytes = 2 * leati_desc_bytes(&task->inputs[2]);        \
        return leati_ref_accept(task, kernel, run_##lower, err);                                             \
    }

UPDATE_KERNEL(sgd)
UPDATE_KERNEL(rmsprop)
UPDATE_KERNEL(adagrad)
UPDATE_KERNEL(adadelta)
UPDATE_KERNEL(adam)
UPDATE_KERNEL(adamax)
UPDATE_KERNEL(nadam)
UPDATE_KERNEL(lion)
