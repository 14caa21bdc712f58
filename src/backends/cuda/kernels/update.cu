/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizers' updates, with the formulas of engine/ops/update.c.  A thread updates four consecutive weights at a
 * time: it reads everything once and writes everything once. */
#include "backends/cuda/kernels/update.h"

#include "backends/cuda/kernels/elements.cuh"

/* One weight with all that belongs to it. */
struct weight {
    float g, power; /* power: g^2, or the sum of powers that takes its place */
    float p, slot[LEATI_CUDA_UPDATE_SLOTS];
};

/* The operands that all weights share. */
struct rule {
    uint32_t flags;
    bool has_powers;
    float scalar[10];
};

static __device__ __forceinline__ bool has(const rule &r, uint32_t flag) {
    return (r.flags & flag) != 0;
}

/* Returns the weight after the decay; `share` is the scalar behind the op's own ones. */
static __device__ __forceinline__ float decayed(const rule &r, float p, float share) {
    return has(r, LEATI_CUDA_UPDATE_DECAY) ? p - share * p : p;
}

static __device__ __forceinline__ float averaged(const rule &r, float x, float y, float keep, float gain) {
    return has(r, LEATI_CUDA_UPDATE_AS_KERAS3) ? x + (y - x) * gain : keep * x + gain * y;
}

struct sgd {
    enum { slots = 1, scalars = 2 };
    static __device__ __forceinline__ void update(const rule &r, weight &w) {
        float p = decayed(r, w.p, r.scalar[scalars]), lr = r.scalar[0], momentum = r.scalar[1];
        if (!has(r, LEATI_CUDA_UPDATE_MOMENTUM)) {
            w.p = p - lr * w.g;
            return;
        }
        float v = momentum * w.slot[0] - lr * w.g;
        w.slot[0] = v;
        w.p = p + (has(r, LEATI_CUDA_UPDATE_NESTEROV) ? momentum * v - lr * w.g : v);
    }
};

/* The slots are a, then m and c as far as the attributes ask for them. */
struct rmsprop {
    enum { slots = 3, scalars = 3, keras3_scalars = 5 };
    static __device__ __forceinline__ void update(const rule &r, weight &w) {
        float lr = r.scalar[0], rho = r.scalar[1], epsilon = r.scalar[2];
        if (!has(r, LEATI_CUDA_UPDATE_AS_KERAS3)) {
            w.slot[0] = rho * w.slot[0] + (1.0f - rho) * w.power;
            w.p = decayed(r, w.p, r.scalar[scalars]) - lr * w.g / (sqrtf(w.slot[0]) + epsilon);
            return;
        }
        bool accumulates = has(r, LEATI_CUDA_UPDATE_ACCUMULATES);
        float gain = r.scalar[3], momentum = r.scalar[4];
        w.slot[0] = rho * w.slot[0] + gain * w.power;
        float second = w.slot[0];
        if (has(r, LEATI_CUDA_UPDATE_CENTERED)) {
            float c = rho * (accumulates ? w.slot[2] : w.slot[1]) + gain * w.g;
            if (accumulates)
                w.slot[2] = c;
            else
                w.slot[1] = c;
            second = w.slot[0] - c * c;
        }
        float step = lr * w.g / sqrtf(second + epsilon);
        if (accumulates) step = w.slot[1] = momentum * w.slot[1] + step;
        w.p = decayed(r, w.p, r.scalar[keras3_scalars]) - step;
    }
};

struct adagrad {
    enum { slots = 1, scalars = 2 };
    static __device__ __forceinline__ void update(const rule &r, weight &w) {
        float lr = r.scalar[0], epsilon = r.scalar[1];
        w.slot[0] += w.power;
        float root =
            has(r, LEATI_CUDA_UPDATE_AS_KERAS3) ? sqrtf(w.slot[0] + epsilon) : sqrtf(w.slot[0]) + epsilon;
        w.p = decayed(r, w.p, r.scalar[scalars]) - lr * w.g / root;
    }
};

struct adadelta {
    enum { slots = 2, scalars = 3 };
    static __device__ __forceinline__ void update(const rule &r, weight &w) {
        bool as_keras3 = has(r, LEATI_CUDA_UPDATE_AS_KERAS3);
        float lr = r.scalar[0], rho = r.scalar[1], epsilon = r.scalar[2];
        float gain = as_keras3 ? r.scalar[3] : 1.0f - rho;
        float a = rho * w.slot[0] + gain * w.power, d = w.slot[1];
        float step = w.g * sqrtf(d + epsilon) / sqrtf(a + epsilon), square = step * step;
        if (r.has_powers) square = w.power * (d + epsilon) / (a + epsilon);
        w.p = decayed(r, w.p, as_keras3 ? r.scalar[4] : r.scalar[3]) - lr * step;
        w.slot[0] = a;
        w.slot[1] = rho * d + gain * square;
    }
};

struct adam {
    enum { slots = 3, scalars = 4 };
    static __device__ __forceinline__ void update(const rule &r, weight &w) {
        bool as_keras3 = has(r, LEATI_CUDA_UPDATE_AS_KERAS3);
        float lr_t = r.scalar[0], beta_1 = r.scalar[1], beta_2 = r.scalar[2], epsilon = r.scalar[3];
        w.slot[0] = averaged(r, w.slot[0], w.g, beta_1, as_keras3 ? beta_1 : 1.0f - beta_1);
        w.slot[1] = averaged(r, w.slot[1], w.power, beta_2, as_keras3 ? beta_2 : 1.0f - beta_2);
        float second = w.slot[1];
        if (has(r, LEATI_CUDA_UPDATE_AMSGRAD)) {
            second = w.slot[2] > second ? w.slot[2] : second;
            w.slot[2] = second;
        }
        w.p = decayed(r, w.p, r.scalar[scalars]) - lr_t * w.slot[0] / (sqrtf(second) + epsilon);
    }
};

struct adamax {
    enum { slots = 2, scalars = 4 };
    static __device__ __forceinline__ void update(const rule &r, weight &w) {
        float lr_t = r.scalar[0], beta_1 = r.scalar[1], beta_2 = r.scalar[2], epsilon = r.scalar[3];
        float gain = has(r, LEATI_CUDA_UPDATE_AS_KERAS3) ? beta_1 : 1.0f - beta_1;
        float lowered = beta_2 * w.slot[1], size = r.has_powers ? w.power : fabsf(w.g);
        w.slot[0] = averaged(r, w.slot[0], w.g, beta_1, gain);
        w.slot[1] = lowered >= size ? lowered : size; /* a NaN gradient gives NaN */
        w.p = decayed(r, w.p, r.scalar[scalars]) - lr_t * w.slot[0] / (w.slot[1] + epsilon);
    }
};

struct nadam {
    enum { slots = 2, scalars = 9 };
    static __device__ __forceinline__ void update(const rule &r, weight &w) {
        const float *s = r.scalar;
        float lr = s[0], beta_1 = s[1], beta_2 = s[2], epsilon = s[3], mu = s[4], mu_next = s[5];
        float g_prime = w.g / (1.0f - s[6]);
        w.slot[0] = beta_1 * w.slot[0] + (1.0f - beta_1) * w.g;
        w.slot[1] = beta_2 * w.slot[1] + (1.0f - beta_2) * w.power;
        float m_bar = (1.0f - mu) * g_prime + mu_next * (w.slot[0] / (1.0f - s[7]));
        w.p = decayed(r, w.p, r.scalar[scalars]) - lr * m_bar / (sqrtf(w.slot[1] / (1.0f - s[8])) + epsilon);
    }
};

struct lion {
    enum { slots = 1, scalars = 3 };
    static __device__ __forceinline__ void update(const rule &r, weight &w) {
        float lr = r.scalar[0], beta_1 = r.scalar[1], beta_2 = r.scalar[2], m = w.slot[0];
        float c = beta_1 * m + (1.0f - beta_1) * w.g;
        float sign = c > 0.0f ? 1.0f : c < 0.0f ? -1.0f : c; /* NaN stays NaN */
        w.p = decayed(r, w.p, r.scalar[scalars]) - lr * sign;
        w.slot[0] = beta_2 * m + (1.0f - beta_2) * w.g;
    }
};

/* Reads f32 or bf16 elements i to i + 3, or fewer at the end. */
static __device__ __forceinline__ void read(const void *data, bool bf16, int64_t i, int left, bool quads,
                                            float *x) {
    if (quads && left >= 4) {
        if (bf16)
            leati_load_quad((const leati_bf16 *)data + i, x);
        else
            leati_load_quad((const float *)data + i, x);
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k)
        x[k] = k >= left ? 0.0f
               : bf16    ? leati_load((const leati_bf16 *)data + i + k)
                         : leati_load((const float *)data + i + k);
}

static __device__ __forceinline__ void write(float *data, int64_t i, int left, bool quads, const float *x) {
    if (quads && left >= 4) {
        leati_store_quad(data + i, x);
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if (k < left) data[i + k] = x[k];
}

static __device__ __forceinline__ void read_rule(const leati_cuda_update_args &a, rule &r) {
    r.flags = a.flags;
    r.has_powers = a.powers != NULL;
    bool bf16 = has(r, LEATI_CUDA_UPDATE_BF16_SCALARS);
#pragma unroll
    for (int k = 0; k < 10; ++k)
        r.scalar[k] = k >= a.scalars_count ? 0.0f
                      : bf16               ? leati_load((const leati_bf16 *)a.scalars + k)
                                           : leati_load((const float *)a.scalars + k);
}

template <typename Optimizer>
static __device__ __forceinline__ void update_quad(const leati_cuda_update_args &a, const rule &r,
                                                   int64_t i) {
    enum { slots = Optimizer::slots };
    int left = a.count - i < 4 ? (int)(a.count - i) : 4;
    bool quads = a.quads != 0;
    float g[4], power[4], p[4], slot[slots][4];
    read(a.g, has(r, LEATI_CUDA_UPDATE_BF16_GRADIENT), i, left, quads, g);
    read(a.p, false, i, left, quads, p);
#pragma unroll
    for (int s = 0; s < slots; ++s)
        if (a.slot[s]) read(a.slot[s], false, i, left, quads, slot[s]);
    if (r.has_powers) read(a.powers, has(r, LEATI_CUDA_UPDATE_BF16_POWERS), i, left, quads, power);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        weight w;
        w.g = g[k];
        w.power = r.has_powers ? power[k] : g[k] * g[k];
        w.p = p[k];
#pragma unroll
        for (int s = 0; s < slots; ++s) w.slot[s] = a.slot[s] ? slot[s][k] : 0.0f;
        Optimizer::update(r, w);
        p[k] = w.p;
#pragma unroll
        for (int s = 0; s < slots; ++s) slot[s][k] = w.slot[s];
    }
    write(a.p, i, left, quads, p);
#pragma unroll
    for (int s = 0; s < slots; ++s)
        if (a.slot[s]) write(a.slot[s], i, left, quads, slot[s]);
}

#define UPDATE_KERNEL(name)                                                                                  \
    LEATI_KERNEL_BOUNDED(leati_cuda_update_##name, leati_cuda_update_args, LEATI_CUDA_UPDATE_THREADS, 4) {   \
        rule r;                                                                                              \
        read_rule(a, r);                                                                                     \
        LEATI_FOR_EACH(quad, (a.count + 3) / 4) update_quad<name>(a, r, 4 * quad);                           \
    }

UPDATE_KERNEL(sgd)
UPDATE_KERNEL(rmsprop)
UPDATE_KERNEL(adagrad)
UPDATE_KERNEL(adadelta)
UPDATE_KERNEL(adam)
UPDATE_KERNEL(adamax)
UPDATE_KERNEL(nadam)
UPDATE_KERNEL(lion)
