/* SPDX-License-Identifier: Apache-2.0 */
/* Measures, without leat, what one core allows any kernel, for each of its instruction sets:
 *     bench_peak [--cpu]
 * It prints lines of JSON: the GFLOP/s of multiplications and additions whose operands stay in registers, and the GB/s
 * at which arrays of growing size are read and copied.  A copy of n bytes moves 2 n.  A large copy is also tried with
 * stores past the caches; the faster way counts.  --cpu counts CPU time, which is more reliable on a busy machine.
 * bench/kernels.py compares bench_ops with these figures. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { rounds = 40000, samples = 9, least_bytes = 1 << 14, most_bytes = 1 << 28 };

typedef float products_function(float start);
typedef float read_function(const float *from, int64_t floats);
typedef void copy_function(float *to, const float *from, int64_t floats);

typedef struct instruction_set {
    const char *name;
    bool is_present;
    double flops_per_round;
    products_function *products;
    read_function *read;
    copy_function *copy, *copy_past_caches;
} instruction_set;

/* Arrays of vectors stay in registers only if the loops over them are unrolled. */
#define UNROLLED _Pragma("GCC unroll 12")

/* Defines the four functions of an instruction set.  The 12 sums of products hide the latency of a multiplication, and
 * are few enough for 16 registers; the 8 sums of read do the same for an addition. */
#define FUNCTIONS(NAME, TARGET, VECTOR, WIDTH, SET, ADD, FMA, LOAD, STORE, STREAM)                           \
    TARGET static float products_##NAME(float start) {                                                       \
        VECTOR x = SET(1.0f + start * 1e-9f), y = SET(start * 1e-9f), a[12];                                 \
        UNROLLED                                                                                             \
        for (int i = 0; i < 12; i++) a[i] = SET((float)i);                                                   \
        for (int r = 0; r < rounds; r++) UNROLLED                                                            \
        for (int i = 0; i < 12; i++) a[i] = FMA(a[i], x, y);                                                 \
        UNROLLED                                                                                             \
        for (int i = 1; i < 12; i++) a[0] = ADD(a[0], a[i]);                                                 \
        float result[WIDTH];                                                                                 \
        STORE(result, a[0]);                                                                                 \
        return result[0];                                                                                    \
    }                                                                                                        \
    TARGET static float read_##NAME(const float *from, int64_t floats) {                                     \
        VECTOR a[8];                                                                                         \
        UNROLLED                                                                                             \
        for (int i = 0; i < 8; i++) a[i] = SET(0);                                                           \
        for (int64_t k = 0; k < floats; k += 8 * WIDTH) UNROLLED                                             \
        for (int i = 0; i < 8; i++) a[i] = ADD(a[i], LOAD(from + k + i * WIDTH));                            \
        UNROLLED                                                                                             \
        for (int i = 1; i < 8; i++) a[0] = ADD(a[0], a[i]);                                                  \
        float result[WIDTH];                                                                                 \
        STORE(result, a[0]);                                                                                 \
        return result[0];                                                                                    \
    }                                                                                                        \
    TARGET static void copy_##NAME(float *to, const float *from, int64_t floats) {                           \
        for (int64_t k = 0; k < floats; k += 8 * WIDTH) UNROLLED                                             \
        for (int i = 0; i < 8; i++) STORE(to + k + i * WIDTH, LOAD(from + k + i * WIDTH));                   \
    }                                                                                                        \
    TARGET static void copy_past_caches_##NAME(float *to, const float *from, int64_t floats) {               \
        for (int64_t k = 0; k < floats; k += 8 * WIDTH) UNROLLED                                             \
        for (int i = 0; i < 8; i++) STREAM(to + k + i * WIDTH, LOAD(from + k + i * WIDTH));                  \
    }

#define ROW(NAME, PRESENT, WIDTH)                                                                            \
    {                                                                                                        \
#NAME, PRESENT, 2.0 * 12 * WIDTH *rounds, products_##NAME, read_##NAME, copy_##NAME,                 \
            copy_past_caches_##NAME                                                                          \
    }

#if defined(__x86_64__)
#define SSE_FMA(a, x, y) _mm_add_ps(_mm_mul_ps(a, x), y)
FUNCTIONS(base, , __m128, 4, _mm_set1_ps, _mm_add_ps, SSE_FMA, _mm_loadu_ps, _mm_storeu_ps, _mm_stream_ps)
FUNCTIONS(avx2, __attribute__((target("avx2,fma"))), __m256, 8, _mm256_set1_ps, _mm256_add_ps,
          _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_stream_ps)
FUNCTIONS(avx512, __attribute__((target("avx512f"))), __m512, 16, _mm512_set1_ps, _mm512_add_ps,
          _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_stream_ps)
#elif defined(__aarch64__)
#define NEON_FMA(a, x, y) vfmaq_f32(y, a, x)
FUNCTIONS(base, , float32x4_t, 4, vdupq_n_f32, vaddq_f32, NEON_FMA, vld1q_f32, vst1q_f32, vst1q_f32)
#else
#define PLAIN_SET(x)       (x)
#define PLAIN_ADD(a, b)    ((a) + (b))
#define PLAIN_FMA(a, x, y) ((a) * (x) + (y))
#define PLAIN_LOAD(from)   (*(from))
#define PLAIN_STORE(to, x) (*(to) = (x))
FUNCTIONS(base, , float, 1, PLAIN_SET, PLAIN_ADD, PLAIN_FMA, PLAIN_LOAD, PLAIN_STORE, PLAIN_STORE)
#endif

static clockid_t clock_used = CLOCK_MONOTONIC;
static volatile float sink;

static double now(void) {
    struct timespec t = {0};
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double products_rate(const instruction_set *set) {
    double best = 1e9;
    for (int s = 0; s < samples * 3; s++) {
        double start = now();
        sink = set->products((float)s);
        double spent = now() - start;
        best = spent < best ? spent : best;
    }
    return set->flops_per_round / best * 1e-9;
}

/* Returns the GB/s at which `bytes` are read or copied: one of the two functions is NULL. */
static double moving_rate(read_function *read, copy_function *copy, float *to, const float *from,
                          int64_t bytes) {
    int64_t turns = (1 << 26) / bytes + 1;
    double best = 1e9;
    for (int s = 0; s < samples; s++) {
        double start = now();
        for (int64_t t = 0; t < turns; t++) {
            if (copy)
                copy(to, from, bytes / 4);
            else
                sink = read(from, bytes / 4);
        }
        double spent = now() - start;
        best = spent < best ? spent : best;
    }
    return (copy ? 2.0 : 1.0) * (double)bytes * (double)turns / best * 1e-9;
}

static void print_rates(const instruction_set *set, float *to, const float *from) {
    printf("{\"isa\": \"%s\", \"gflops\": %.1f}\n", set->name, products_rate(set));
    for (int64_t bytes = least_bytes; bytes <= most_bytes; bytes *= 2) {
        double cached = moving_rate(NULL, set->copy, to, from, bytes / 2);
        double past = moving_rate(NULL, set->copy_past_caches, to, from, bytes / 2);
        printf("{\"isa\": \"%s\", \"bytes\": %lld, \"read\": %.1f, \"copy\": %.1f}\n", set->name,
               (long long)bytes, moving_rate(set->read, NULL, NULL, from, bytes),
               cached > past ? cached : past);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--cpu") == 0)
        clock_used = CLOCK_PROCESS_CPUTIME_ID;
    else if (argc > 1)
        return fprintf(stderr, "usage: bench_peak [--cpu]\n"), 2;
    const instruction_set sets[] = {
#if defined(__x86_64__)
        ROW(base, true, 4),
        ROW(avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), 8),
        ROW(avx512, __builtin_cpu_supports("avx512f"), 16),
#elif defined(__aarch64__)
        ROW(base, true, 4),
#else
        ROW(base, true, 1),
#endif
    };
    float *to = aligned_alloc(64, most_bytes / 2), *from = aligned_alloc(64, most_bytes);
    if (!to || !from) return fprintf(stderr, "bench_peak: out of memory\n"), 1;
    memset(to, 0, most_bytes / 2); /* so that the system has mapped all pages before anything is measured */
    memset(from, 0, most_bytes);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (sets[i].is_present) print_rates(&sets[i], to, from);
    free(to);
    free(from);
    return 0;
}
