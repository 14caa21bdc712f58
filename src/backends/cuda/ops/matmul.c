/* SPDX-License-Identifier: Apache-2.0 */
/* MATMUL: describes the product, chooses between cuBLASLt and the kernels of kernels/matmul.cu, and launches these.
 * Room: backends/cuda. */
#include "backends/cuda/ops/matmul.h"

#include <stdio.h>

#include "backends/cuda/ops/ops.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/bfloat16.h"

/* From so many multiplications per multiprocessor on, cuBLASLt is asked.  Below, the launch and the reads of memory
 * take most of the time, and the own kernels do everything in one launch. */
enum { MOST_OWN = 512 * 1024, MOST_OWN_TENSOR_CORE = 256 * 1024 };

#define CHECK_FUNCTION(upper, lower, formula, dst)                                                           \
    _Static_assert((int)LEATI_CUDA_##upper == (int)LEATI_FN_##upper, "the order of the functions differs");
LEATI_FUNCTION_LIST(CHECK_FUNCTION)

/* ---- The task ---- */

static void add_post(const leati_task *task, leati_cuda_product *p) {
    uint32_t kinds = task->attrs->post.kinds;
    if (kinds & LEATI_POST_ADD) {
        p->has_addend = true;
        p->addend_arg = leati_op_inputs(task) + LEATI_POST_ADDEND;
        p->addend = task->inputs[p->addend_arg].dtype;
    }
    if (kinds & LEATI_POST_FUNCTION) {
        p->has_function = true;
        p->function = task->attrs->post.function;
    }
}

leati_cuda_product leati_cuda_product_of(const leati_task *task) {
    const leati_desc *a = &task->inputs[0], *dst = &task->outputs[0];
    int rows = dst->rank - 2, columns = dst->rank - 1;
    leati_cuda_product p = {.count = 1,
                            .m = dst->shape[rows],
                            .n = dst->shape[columns],
                            .k = a->shape[task->attrs->matmul.transpose_a ? rows : columns],
                            .transpose_a = task->attrs->matmul.transpose_a,
                            .transpose_b = task->attrs->matmul.transpose_b,
                            .a = a->dtype,
                            .b = task->inputs[1].dtype,
                            .out = dst->dtype,
                            .out_arg = task->input_count};
    for (int i = 0; i < rows; ++i) p.count *= dst->shape[i];
    p.has_bias = leati_op_inputs(task) > 2 && task->inputs[2].rank >= 0;
    if (p.has_bias) p.bias = task->inputs[2].dtype;
    add_post(task, &p);
    return p;
}

static double multiplications(const leati_cuda_product *p) {
    return (double)p->count * (double)p->m * (double)p->n * (double)p->k;
}

static leati_cuda_matmul_end end_of(const leati_cuda_product *p) {
    return (leati_cuda_matmul_end){.bias_bf16 = p->bias == LEATI_BF16,
                                   .addend_bf16 = p->addend == LEATI_BF16,
                                   .slope_bf16 = p->slope == LEATI_BF16,
                                   .out_bf16 = p->out == LEATI_BF16,
                                   .slope_from_dst = p->has_slope && leati_eltwise_uses_dst(&p->function),
                                   .has_function = p->has_function,
                                   .function = {(int32_t)p->function.function, p->function.a, p->function.b,
                                                p->function.c},
                                   .columns = (int32_t)p->n};
}

static void give_args(leati_cuda_matmul_end *end, const leati_cuda_product *p, void *const *args) {
    end->bias = p->has_bias ? args[2] : NULL;
    end->addend = p->has_addend ? args[p->addend_arg] : NULL;
    end->slope_of = p->has_slope ? args[p->slope_arg] : NULL;
    end->out = args[p->out_arg];
}

/* ---- Nothing to compute ---- */

static leat_status run_empty(const leati_kernel *kernel, void *const *args, const leati_run *run,
                             leat_error *err) {
    (void)kernel;
    (void)args;
    (void)run;
    (void)err;
    return LEAT_OK;
}

/* ---- Tiles ---- */

typedef struct tiles {
    leati_device *device;
    leati_cuda_product product;
    CUfunction function;
    leati_cuda_matmul_tile parameters; /* without the arguments */
    leati_cuda_grid grid;
    unsigned a_vector_bytes, b_vector_bytes; /* as in `few` */
    void *finished; /* zeroed memory of the device; NULL: the inner axis is not cut */
} tiles;

static void destroy_tiles(void *state) {
    tiles *t = state;
    if (t->finished) t->device->class->release(t->device, t->finished);
    leati_free(t);
}

static unsigned vector_bytes(leat_dtype type) {
    return type == LEATI_BF16 ? 8 : 16;
}

static bool is_aligned(const void *p, unsigned bytes) {
    return bytes && (uintptr_t)p % bytes == 0;
}

static leat_status run_tiles(const leati_kernel *kernel, void *const *args, const leati_run *run,
                             leat_error *err) {
    const tiles *t = kernel->state;
    leati_cuda_matmul_tile parameters = t->parameters;
    parameters.a = args[0];
    parameters.b = args[1];
    parameters.a_vectorized = is_aligned(args[0], t->a_vector_bytes);
    parameters.b_vectorized = is_aligned(args[1], t->b_vector_bytes);
    parameters.parts = run->scratch;
    parameters.finished = t->finished;
    parameters.row_sums = t->product.has_row_sums ? args[t->product.row_sums_arg] : NULL;
    give_args(&parameters.end, &t->product, args);
    return leati_cuda_launch(leati_cuda_of(t->device), t->function, &t->grid, &parameters, err);
}

/* Returns how the names of kernels end. */
static const char *type_name(leat_dtype type) {
    return type == LEATI_BF16 ? "bf16" : "f32";
}

static int64_t up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* Returns the number of rows that the tiles cover. */
static int64_t rows_of(const leati_cuda_product *p) {
    return p->m + (p->has_row_sums ? 1 : 0);
}

static int64_t count_tiles(const leati_cuda_product *p, int64_t tile) {
    return p->count * up(rows_of(p), tile) * up(p->n, tile);
}

/* A kernel leati_cuda_matmul_tile_*. */
typedef struct shape {
    int tile, threads;
    size_t shared_bytes;
    int blocks;         /* that a multiprocessor runs at once */
    int64_t least_part; /* of the inner axis: with less, a cut costs more than it saves */
} shape;

static const shape shapes[] = {
    {16, LEATI_CUDA_MATMUL_THREADS_16, LEATI_CUDA_MATMUL_SHARED_16, 1, 512},
    {32, LEATI_CUDA_MATMUL_THREADS, LEATI_CUDA_MATMUL_SHARED_32, 2, 256},
    {64, LEATI_CUDA_MATMUL_THREADS, LEATI_CUDA_MATMUL_SHARED_64, 1, 128},
};

/* Returns the number of parts of the inner axis: so many that most multiprocessors have work. */
static int64_t splits_for(const leati_cuda *cuda, const leati_cuda_product *p, const shape *s) {
    enum { most = 64 };
    int64_t blocks = (int64_t)s->blocks * cuda->multiprocessors;
    int64_t parts = blocks / count_tiles(p, s->tile), longest = p->k / s->least_part;
    if (parts > longest) parts = longest;
    if (parts > most) parts = most;
    return parts > 1 ? parts : 1;
}

/* The widest tiles need the fewest reads of shared memory, the narrowest ones give work to most multiprocessors. */
static const shape *shape_for(const leati_cuda *cuda, const leati_cuda_product *p) {
    enum { narrow, middle, wide, least_k = 64 };
    int64_t most = cuda->multiprocessors, wide_tiles = count_tiles(p, 64);
    bool fits =
        cuda->shared_bytes >= LEATI_CUDA_MATMUL_SHARED_64 && p->k >= least_k && 3 * wide_tiles >= most;
    if (fits && 4 * wide_tiles * splits_for(cuda, p, &shapes[wide]) >= 3 * most) return &shapes[wide];
    if (count_tiles(p, 32) >= most) return &shapes[middle];
    return &shapes[narrow];
}

static leat_status plan_tiles(leati_cuda *cuda, tiles *t, leati_kernel *kernel, leat_error *err) {
    const leati_cuda_product *p = &t->product;
    const shape *s = shape_for(cuda, p);
    int64_t tile_count = count_tiles(p, s->tile);
    int64_t split_k = up(up(p->k, splits_for(cuda, p, s)), 16) * 16;
    int64_t splits = p->k > 0 ? up(p->k, split_k) : 1;
    t->parameters = (leati_cuda_matmul_tile){.a_transposed = p->transpose_a,
                                             .b_transposed = p->transpose_b,
                                             .m = (int32_t)p->m,
                                             .n = (int32_t)p->n,
                                             .k = (int32_t)p->k,
                                             .tiles_m = (int32_t)up(rows_of(p), s->tile),
                                             .tiles_n = (int32_t)up(p->n, s->tile),
                                             .splits = (int32_t)splits,
                                             .split_k = (int32_t)split_k,
                                             .row_sums_bf16 = p->row_sums == LEATI_BF16,
                                             .end = end_of(p)};
    t->a_vector_bytes = (p->transpose_a ? p->m : p->k) % 4 ? 0 : vector_bytes(p->a);
    t->b_vector_bytes = (p->transpose_b ? p->k : p->n) % 4 ? 0 : vector_bytes(p->b);
    t->grid = (leati_cuda_grid){.x = (unsigned)(tile_count * splits),
                                .threads = (unsigned)s->threads,
                                .shared_bytes = (unsigned)s->shared_bytes};
    if (splits > 1) {
        kernel->scratch_bytes = leati_count_bytes(tile_count * splits * s->tile * s->tile, sizeof(float));
        LEATI_TRY(t->device->class->allocate(t->device, leati_count_bytes(tile_count, sizeof(unsigned)),
                                             &t->finished, err));
    }
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda tile %d%s", s->tile,
             splits > 1 ? " split" : "");
    char name[64];
    snprintf(name, sizeof name, "leati_cuda_matmul_tile_%d_%s_%s", s->tile, type_name(p->a), type_name(p->b));
    return leati_cuda_kernel(cuda, LEATI_CUDA_matmul, name, s->shared_bytes, &t->function, err);
}

static leat_status prepare_tiles(leati_cuda *cuda, const leati_cuda_product *p, leati_kernel *kernel,
                                 leat_error *err) {
    tiles *t = leati_calloc(1, sizeof *t);
    if (!t) return leati_fail_memory(err, sizeof *t, "a kernel");
    t->device = &cuda->device;
    t->product = *p;
    kernel->state = t;
    kernel->destroy = destroy_tiles;
    LEATI_TRY(plan_tiles(cuda, t, kernel, err));
    kernel->run = run_tiles;
    return LEAT_OK;
}

/* ---- A wide matrix and a few vectors ---- */

typedef struct few {
    leati_cuda *cuda;
    leati_cuda_product product;
    CUfunction function;
    leati_cuda_matmul_few parameters; /* without the arguments */
    leati_cuda_grid grid;
    int wide_arg;
    /* The alignment of the operands at which 4 elements may be read at once; 0: never. */
    unsigned vector_bytes, few_vector_bytes;
} few;

static leat_status run_few(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    const few *f = kernel->state;
    leati_cuda_matmul_few parameters = f->parameters;
    (void)run;
    parameters.wide = args[f->wide_arg];
    parameters.few = args[1 - f->wide_arg];
    parameters.vectorized = is_aligned(parameters.wide, f->vector_bytes);
    parameters.few_vectorized = is_aligned(parameters.few, f->few_vector_bytes);
    give_args(&parameters.end, &f->product, args);
    return leati_cuda_launch(f->cuda, f->function, &f->grid, &parameters, err);
}

/* Describes the operands if a is the wide matrix, or if b is. */
static void describe_few(few *f, bool a_is_wide) {
    const leati_cuda_product *p = &f->product;
    bool along_k = a_is_wide ? p->transpose_b : !p->transpose_a; /* the few vectors are contiguous along k */
    int64_t vectors = a_is_wide ? p->n : p->m;
    f->wide_arg = a_is_wide ? 0 : 1;
    f->parameters = (leati_cuda_matmul_few){.few_bf16 = (a_is_wide ? p->b : p->a) == LEATI_BF16,
                                            .few_count = (int32_t)vectors,
                                            .few_vector = along_k ? (int32_t)p->k : 1,
                                            .few_k = along_k ? 1 : (int32_t)vectors,
                                            .rows = (int32_t)(a_is_wide ? p->m : p->n),
                                            .k = (int32_t)p->k,
                                            .rows_are_rows = a_is_wide,
                                            .end = end_of(p)};
}

static leat_status find_few(few *f, bool rows, leat_dtype type, leat_error *err) {
    int count = f->parameters.few_count, instance = 1;
    char name[64];
    while (instance < count) instance *= 2;
    snprintf(name, sizeof name, "leati_cuda_matmul_%s_%d_%s", rows ? "rows" : "columns", instance,
             type_name(type));
    return leati_cuda_kernel(f->cuda, LEATI_CUDA_matmul, name, 0, &f->function, err);
}

/* Returns true if the product is one of a wide matrix with few vectors for which the kernels have enough parallel
 * work. */
static bool suits_few(const leati_cuda *cuda, const leati_cuda_product *p, bool a_is_wide) {
    enum { least_k = 32, short_k = 2048, narrow = 16 };
    int64_t vectors = a_is_wide ? p->n : p->m, rows = a_is_wide ? p->m : p->n;
    bool is_rows = a_is_wide ? !p->transpose_a : p->transpose_b;
    if (vectors > LEATI_CUDA_MATMUL_MOST_FEW || p->k < least_k) return false;
    int64_t blocks = p->count * up(rows, is_rows ? LEATI_CUDA_MATMUL_THREADS / 32 : narrow);
    return p->k <= short_k || 2 * blocks >= cuda->multiprocessors;
}

static leat_status prepare_few(leati_cuda *cuda, const leati_cuda_product *p, bool a_is_wide,
                               leati_kernel *kernel, leat_error *err) {
    enum { wide_lanes = 8, narrow_lanes = 4, warps = LEATI_CUDA_MATMUL_THREADS / 32 };
    few *f = leati_calloc(1, sizeof *f);
    if (!f) return leati_fail_memory(err, sizeof *f, "a kernel");
    f->cuda = cuda;
    f->product = *p;
    kernel->state = f;
    kernel->destroy = leati_cuda_free_state;
    describe_few(f, a_is_wide);
    leati_cuda_matmul_few *q = &f->parameters;
    bool is_rows = a_is_wide ? !p->transpose_a : p->transpose_b;
    leat_dtype type = a_is_wide ? p->a : p->b;
    bool many = p->count * up(q->rows, 4 * wide_lanes) >= cuda->multiprocessors;
    q->lanes = many ? wide_lanes : narrow_lanes;
    q->blocks = (int32_t)up(q->rows, is_rows ? warps : 4 * q->lanes);
    int64_t contiguous = is_rows ? q->k : q->rows;
    f->vector_bytes = contiguous % 4 != 0 ? 0 : vector_bytes(type);
    f->few_vector_bytes = q->few_k != 1 || q->k % 4 != 0 ? 0 : vector_bytes(a_is_wide ? p->b : p->a);
    f->grid = (leati_cuda_grid){.x = (unsigned)(p->count * q->blocks), .threads = LEATI_CUDA_MATMUL_THREADS};
    LEATI_TRY(find_few(f, is_rows, type, err));
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda few %s",
             a_is_wide ? "columns" : "rows");
    kernel->run = run_few;
    return LEAT_OK;
}

/* ---- The choice ---- */

/* The kernels count rows, columns and strides with 32 bits, and blocks with 31. */
static bool is_countable(const leati_cuda_product *p) {
    const int64_t most = INT32_MAX / 4;
    double blocks = (double)p->count * (double)up(p->m, 16) * (double)up(p->n, 16);
    return p->m < most && p->n < most && p->k < most && blocks < (double)most;
}

static bool is_large(const leati_cuda *cuda, const leati_cuda_product *p) {
    bool tensor_cores = cuda->device.tf32 || p->a == LEATI_BF16 || p->b == LEATI_BF16;
    double most = (double)cuda->multiprocessors * (tensor_cores ? MOST_OWN_TENSOR_CORE : MOST_OWN);
    return multiplications(p) > most;
}

bool leati_cuda_matmul_is_small(const leati_cuda *cuda, const leati_cuda_product *p) {
    return is_countable(p) && (suits_few(cuda, p, p->n < p->m) || !is_large(cuda, p));
}

leat_status leati_cuda_matmul_own(leati_cuda *cuda, const leati_cuda_product *p, leati_kernel *kernel,
                                  leat_error *err) {
    bool a_is_wide = p->n < p->m;
    if (!p->has_row_sums && suits_few(cuda, p, a_is_wide))
        return prepare_few(cuda, p, a_is_wide, kernel, err);
    return prepare_tiles(cuda, p, kernel, err);
}

leat_status leati_cuda_matmul_candidate(leati_cuda *cuda, const leati_cuda_product *product, int candidate,
                                        leati_kernel *kernel, char *why, leat_error *err) {
    enum { first };
    if (candidate == LEATI_CUDA_MATMUL_OWN)
        return is_countable(product) ? leati_cuda_matmul_own(cuda, product, kernel, err) : LEAT_OK;
    return leati_cuda_matmul_blas(cuda, product, candidate == first ? 0 : candidate - 1, kernel, why, err);
}

LEATI_CUDA_PREPARE(matmul) {
    leati_cuda *cuda = leati_cuda_of(task->device);
    leati_cuda_product p = leati_cuda_product_of(task);
    int candidate = 0;
    if (p.count * p.m * p.n == 0) {
        snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
        kernel->run = run_empty;
        return LEAT_OK;
    }
    if (leati_cuda_matmul_is_small(cuda, &p)) return leati_cuda_matmul_own(cuda, &p, kernel, err);
    if (task->measured) LEATI_TRY(leati_cuda_matmul_choose(cuda, &p, &candidate, why, err));
    LEATI_TRY(leati_cuda_matmul_candidate(cuda, &p, candidate, kernel, why, err));
    /* Without the function cuBLASLt may serve the product, and the function takes a launch of its own. */
    if (kernel->run || p.has_function || p.has_addend || !is_countable(&p)) return LEAT_OK;
    return leati_cuda_matmul_own(cuda, &p, kernel, err);
}
