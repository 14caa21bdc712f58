/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses how a large product is computed: by one of cuBLASLt's algorithms or by an own kernel.  Their speeds differ by
 * factors that no rule foretells, so the candidates run once before a plan does, on memory of their own.  The choice is
 * kept for later products of the same kind.  Room: backends/cuda. */
#include <string.h>

#include "backends/cuda/ops/matmul.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/bfloat16.h"

/* Measuring stops after so much time of the device, and an earlier candidate stays unless a later one is faster by
 * 1 / LEAST_GAIN: equal ones shall not change places from process to process. */
enum { TIMED_RUNS = 4, LEAST_GAIN = 16, MOST_CHOICES = 256, MOST_NS = 1000 * 1000 * 1000 };
/* Filling so much memory takes longer than the calls that start the timed runs, so that the device never waits. */
static const size_t delay_bytes = (size_t)64 << 20, most_bytes = (size_t)2 << 30;

/* What the speed of a product depends on. */
typedef struct kind {
    int64_t count, m, n, k;
    int32_t a, b, out, bias, addend; /* types; -1: absent */
    int32_t transposes, function;
    bool tf32;
} kind;

typedef struct choice {
    kind of;
    int candidate;
} choice;

struct leati_cuda_choices {
    int count;
    int64_t spent_ns;
    choice items[MOST_CHOICES];
};

static kind kind_of(const leati_cuda *cuda, const leati_cuda_product *p) {
    return (kind){.count = p->count,
                  .m = p->m,
                  .n = p->n,
                  .k = p->k,
                  .a = (int32_t)p->a,
                  .b = (int32_t)p->b,
                  .out = (int32_t)p->out,
                  .bias = p->has_bias ? (int32_t)p->bias : -1,
                  .addend = p->has_addend ? (int32_t)p->addend : -1,
                  .transposes = (p->transpose_a ? 1 : 0) + (p->transpose_b ? 2 : 0),
                  .function = p->has_function ? (int32_t)p->function.function : -1,
                  .tf32 = cuda->device.tf32};
}

static bool is_equal(const kind *a, const kind *b) {
    return a->count == b->count && a->m == b->m && a->n == b->n && a->k == b->k && a->a == b->a &&
           a->b == b->b && a->out == b->out && a->bias == b->bias && a->addend == b->addend &&
           a->transposes == b->transposes && a->function == b->function && a->tf32 == b->tf32;
}

/* ---- Measuring ---- */

/* Memory for one product.  The arguments are those of the kernel. */
typedef struct bench {
    leati_device *device;
    unsigned char *memory;
    size_t bytes;
    size_t scratch; /* where it begins */
    size_t at[LEATI_MAX_INPUTS + 1];
    bool used[LEATI_MAX_INPUTS + 1];
} bench;

static void place(bench *b, int arg, int64_t count, leat_dtype type) {
    size_t bytes = leati_count_bytes(count, leati_dtype_bytes(type));
    b->used[arg] = true;
    b->at[arg] = b->bytes;
    b->bytes += leati_device_align(bytes);
}

static void place_all(bench *b, const leati_cuda_product *p) {
    place(b, 0, p->count * p->m * p->k, p->a);
    place(b, 1, p->count * p->k * p->n, p->b);
    if (p->has_bias) place(b, 2, p->n, p->bias);
    if (p->has_addend) place(b, p->addend_arg, p->count * p->m * p->n, p->addend);
    place(b, p->out_arg, p->count * p->m * p->n, p->out);
    b->scratch = b->bytes;
}

static leat_status run_times(const bench *b, const leati_kernel *kernel, int times, leat_error *err) {
    void *args[LEATI_MAX_INPUTS + 1] = {NULL};
    leati_run run = {.scratch = b->memory + b->scratch, .device = b->device};
    for (int i = 0; i <= LEATI_MAX_INPUTS; ++i)
        if (b->used[i]) args[i] = b->memory + b->at[i];
    for (int i = 0; i < times; ++i) LEATI_TRY(kernel->run(kernel, args, &run, err));
    return LEAT_OK;
}

/* Measures a run of the kernel. */
static leat_status measure(bench *b, const leati_kernel *kernel, int64_t *ns, leat_error *err) {
    const leati_device_class *class = b->device->class;
    LEATI_TRY(run_times(b, kernel, 1, err));
    LEATI_TRY(class->fill(b->device, b->memory, 0, b->bytes, err));
    LEATI_TRY(class->stamp(b->device, 0, err));
    LEATI_TRY(run_times(b, kernel, TIMED_RUNS, err));
    LEATI_TRY(class->stamp(b->device, 1, err));
    LEATI_TRY(class->read_stamps(b->device, 2, ns, err));
    *ns /= TIMED_RUNS;
    return LEAT_OK;
}

static void drop(leati_kernel *kernel) {
    if (kernel->destroy) kernel->destroy(kernel->state);
    *kernel = (leati_kernel){0};
}

/* Allocates the memory for the kernels.  If the device has too little, b->memory stays NULL. */
static leat_status allocate(bench *b, const leati_kernel *kernels, int count, leat_error *err) {
    leat_error ignored = {0};
    size_t most = 0;
    void *memory = NULL;
    for (int i = 0; i < count; ++i)
        if (kernels[i].scratch_bytes > most) most = kernels[i].scratch_bytes;
    if (b->bytes > most_bytes || most > most_bytes) return LEAT_OK;
    b->bytes = b->scratch + most;
    if (b->bytes < delay_bytes) b->bytes = delay_bytes;
    leat_status status = b->device->class->allocate(b->device, b->bytes, &memory, &ignored);
    b->memory = memory;
    if (status == LEAT_ENOMEM || status == LEAT_OK) return LEAT_OK;
    *err = ignored;
    return status;
}

/* A candidate that cannot run, although cuBLASLt offered it, is not chosen; only the first one must run. */
static leat_status measure_all(bench *b, leati_cuda_choices *choices, const leati_kernel *kernels, int count,
                               int *fastest, leat_error *err) {
    int64_t best = 0;
    for (int i = 0; i < count && choices->spent_ns < MOST_NS; ++i) {
        int64_t ns = 0;
        leat_error ignored = {0};
        leat_status status = measure(b, &kernels[i], &ns, i == 0 ? err : &ignored);
        if (status != LEAT_OK && i == 0) return status;
        if (status != LEAT_OK) continue;
        choices->spent_ns += (TIMED_RUNS + 1) * ns;
        if (i > 0 && ns >= best - best / LEAST_GAIN) continue;
        best = ns;
        *fastest = i;
    }
    return LEAT_OK;
}

/* ---- Choosing ---- */

/* Makes the kernels of all candidates; none if the first one is missing: what cuBLASLt cannot do at all is not left to
 * an own kernel here.  numbers[i]: the candidate that kernels[i] is. */
static leat_status make_all(leati_cuda *cuda, const leati_cuda_product *p, leati_kernel *kernels,
                            int *numbers, int *count, char *why, leat_error *err) {
    *count = 0;
    for (int candidate = 0; candidate < LEATI_CUDA_MATMUL_CANDIDATES; ++candidate) {
        kernels[*count] = (leati_kernel){0};
        leat_status status = leati_cuda_matmul_candidate(cuda, p, candidate, &kernels[*count], why, err);
        bool made = status == LEAT_OK && kernels[*count].run;
        if (!made) drop(&kernels[*count]);
        numbers[*count] = candidate;
        *count += made;
        LEATI_TRY(status);
        if (*count == 0) return LEAT_OK;
    }
    return LEAT_OK;
}

static leat_status choose(leati_cuda *cuda, const leati_cuda_product *p, int *candidate, char *why,
                          leat_error *err) {
    leati_kernel kernels[LEATI_CUDA_MATMUL_CANDIDATES];
    int numbers[LEATI_CUDA_MATMUL_CANDIDATES], count = 0, fastest = 0;
    bench b = {.device = &cuda->device};
    place_all(&b, p);
    leat_status status = make_all(cuda, p, kernels, numbers, &count, why, err);
    if (status == LEAT_OK && count > 1) status = allocate(&b, kernels, count, err);
    if (status == LEAT_OK && b.memory) status = measure_all(&b, cuda->choices, kernels, count, &fastest, err);
    b.device->class->release(b.device, b.memory);
    *candidate = count > 0 ? numbers[fastest] : 0;
    for (int i = 0; i < count; ++i) drop(&kernels[i]);
    return status;
}

leat_status leati_cuda_matmul_choose(leati_cuda *cuda, const leati_cuda_product *product, int *candidate,
                                     char *why, leat_error *err) {
    const kind wanted = kind_of(cuda, product);
    *candidate = 0;
    if (!cuda->choices) {
        cuda->choices = leati_calloc(1, sizeof *cuda->choices);
        if (!cuda->choices) return leati_fail_memory(err, sizeof *cuda->choices, "choices");
    }
    leati_cuda_choices *choices = cuda->choices;
    for (int i = 0; i < choices->count; ++i) {
        *candidate = choices->items[i].candidate;
        if (is_equal(&choices->items[i].of, &wanted)) return LEAT_OK;
    }
    *candidate = 0;
    if (cuda->recording || choices->count == MOST_CHOICES || choices->spent_ns >= MOST_NS) return LEAT_OK;
    LEATI_TRY(choose(cuda, product, candidate, why, err));
    choices->items[choices->count++] = (choice){wanted, *candidate};
    return LEAT_OK;
}
