/* SPDX-License-Identifier: Apache-2.0 */
/* MATMUL by cuBLASLt.  It knows column-major matrices: a row-major matrix is its transpose, so that it computes
 * dst' (n, m) = b' (n, k) a' (k, m), with b as its first operand.  Both operands have the same type; if one of them is
 * bf16, the other one is rounded to bf16 first.  The bias has the type of dst.  Room: backends/cuda. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/ops/matmul.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/bfloat16.h"

enum { ROUNDED_A, ROUNDED_B, ROUNDED_BIAS, ROUNDED };
enum { ALIGNED_16, ALIGNED_ELEMENT, ALGORITHMS };
static const size_t most_workspace = (size_t)32 << 20, workspace_alignment = 256;

/* A tensor that is rounded to bf16 before the product. */
typedef struct rounded {
    bool needed, packed; /* packed: in the memory for packed weights, otherwise in scratch */
    size_t offset;
    int64_t count;
} rounded;

typedef struct blas {
    leati_cuda *cuda;
    leati_cuda_product product;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c; /* c: also of dst */
    int algorithm;                  /* its number among those that cuBLASLt offers for aligned operands */
    cublasLtMatmulAlgo_t algorithms[ALGORITHMS];
    size_t workspace_bytes, workspace_offset;
    rounded rounded[ROUNDED];
    CUfunction narrow;
    leati_cuda_grid narrow_grid;
    size_t scratch_bytes, pack_bytes;
} blas;

static void destroy(void *state) {
    blas *s = state;
    const leati_cuda_api *api = s->cuda->api;
    if (s->operation) api->cublasLtMatmulDescDestroy(s->operation);
    if (s->a) api->cublasLtMatrixLayoutDestroy(s->a);
    if (s->b) api->cublasLtMatrixLayoutDestroy(s->b);
    if (s->c) api->cublasLtMatrixLayoutDestroy(s->c);
    leati_free(s);
}

#define TRY_BLAS(call, what) LEATI_TRY(leati_cuda_check_blas((call), what, err))

/* ---- Preparation ---- */

static bool is_relu(const leati_eltwise *f) {
    return f->function == LEATI_FN_RELU && f->a == 0 && f->c == 0 && f->b > 3.4e38f;
}

static bool is_bf16_product(const leati_cuda_product *p) {
    return p->a == LEATI_BF16 || p->b == LEATI_BF16 || p->out == LEATI_BF16;
}

/* Returns why cuBLASLt cannot serve the product, or NULL. */
static const char *obstacle(const leati_cuda_product *p) {
    if (p->has_function && !is_relu(&p->function)) return "cuBLASLt computes no function but relu";
    if (p->has_addend && p->addend != p->out) return "the addend has another type";
    if (p->has_bias && p->bias != p->out && p->bias != LEAT_F32) return "the bias has another type";
    if (p->k == 0) return "no inner axis";
    if (p->count > INT32_MAX) return "too many products";
    return NULL;
}

static leat_status make_operation(blas *s, leat_error *err) {
    const leati_cuda_api *api = s->cuda->api;
    const leati_cuda_product *p = &s->product;
    bool tf32 = s->cuda->device.tf32 && !is_bf16_product(p);
    cublasComputeType_t compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    int32_t transpose_a = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t transpose_b = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    if (p->has_bias) epilogue = p->has_function ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    if (p->has_function && !p->has_bias) epilogue = CUBLASLT_EPILOGUE_RELU;
    TRY_BLAS(api->cublasLtMatmulDescCreate(&s->operation, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
    const struct {
        cublasLtMatmulDescAttributes_t attribute;
        const void *value;
    } attributes[] = {{CUBLASLT_MATMUL_DESC_TRANSA, &transpose_a},
                      {CUBLASLT_MATMUL_DESC_TRANSB, &transpose_b},
                      {CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue}};
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; ++i)
        TRY_BLAS(api->cublasLtMatmulDescSetAttribute(s->operation, attributes[i].attribute,
                                                     attributes[i].value, sizeof(int32_t)),
                 "cublasLtMatmulDescSetAttribute");
    return LEAT_OK;
}

/* Describes count matrices, which lie one after the other, each row-major (rows, columns). */
static leat_status make_layout(const blas *s, cublasLtMatrixLayout_t *out, bool bf16, int64_t rows,
                               int64_t columns, leat_error *err) {
    const leati_cuda_api *api = s->cuda->api;
    int32_t count = (int32_t)s->product.count;
    int64_t stride = rows * columns;
    TRY_BLAS(api->cublasLtMatrixLayoutCreate(out, bf16 ? CUDA_R_16BF : CUDA_R_32F, (uint64_t)columns,
                                             (uint64_t)rows, columns),
             "cublasLtMatrixLayoutCreate");
    if (count == 1) return LEAT_OK;
    TRY_BLAS(api->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                   sizeof count),
             "cublasLtMatrixLayoutSetAttribute");
    TRY_BLAS(api->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                   sizeof stride),
             "cublasLtMatrixLayoutSetAttribute");
    return LEAT_OK;
}

static leat_status make_layouts(blas *s, leat_error *err) {
    const leati_cuda_product *p = &s->product;
    bool bf16 = is_bf16_product(p), ta = p->transpose_a, tb = p->transpose_b;
    LEATI_TRY(make_layout(s, &s->a, bf16, tb ? p->n : p->k, tb ? p->k : p->n, err));
    LEATI_TRY(make_layout(s, &s->b, bf16, ta ? p->k : p->m, ta ? p->m : p->k, err));
    return make_layout(s, &s->c, p->out == LEATI_BF16, p->m, p->n, err);
}

static leat_status set_bias(const blas *s, const void *bias, leat_error *err) {
    if (!s->product.has_bias) return LEAT_OK;
    return leati_cuda_check_blas(s->cuda->api->cublasLtMatmulDescSetAttribute(
                                     s->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias),
                                 "cublasLtMatmulDescSetAttribute", err);
}

static leat_status set_preference(const blas *s, cublasLtMatmulPreference_t preference, uint32_t alignment,
                                  leat_error *err) {
    const leati_cuda_api *api = s->cuda->api;
    /* Neither rounds partial sums to bf16 nor adds them in an order that may change. */
    uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        const void *value;
        size_t bytes;
    } attributes[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most_workspace, sizeof most_workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment, sizeof alignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignment, sizeof alignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignment, sizeof alignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignment, sizeof alignment},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; ++i)
        TRY_BLAS(api->cublasLtMatmulPreferenceSetAttribute(preference, attributes[i].attribute,
                                                           attributes[i].value, attributes[i].bytes),
                 "cublasLtMatmulPreferenceSetAttribute");
    return LEAT_OK;
}

/* Finds an algorithm for operands with this alignment.  *found is false if there is none. */
static leat_status find_algorithm(blas *s, cublasLtMatmulPreference_t preference, int which, bool *found,
                                  leat_error *err) {
    const leati_cuda_product *p = &s->product;
    bool bf16 = is_bf16_product(p);
    uint32_t alignment = which == ALIGNED_16 ? 16 : bf16 ? 2 : 4;
    cublasLtMatmulHeuristicResult_t results[LEATI_CUDA_MATMUL_ALGORITHMS];
    int count = 0, wanted = which == ALIGNED_16 ? s->algorithm : 0;
    memset(results, 0, sizeof results);
    /* cuBLASLt does not read the bias here, but it takes its alignment from the pointer. */
    LEATI_TRY(set_bias(s, (const void *)(uintptr_t)alignment, err));
    LEATI_TRY(set_preference(s, preference, alignment, err));
    cublasStatus_t status =
        s->cuda->api->cublasLtMatmulAlgoGetHeuristic(s->cuda->blas, s->operation, s->a, s->b, s->c, s->c,
                                                     preference, wanted + 1, results, &count);
    const cublasLtMatmulHeuristicResult_t *result = &results[wanted];
    *found = status == CUBLAS_STATUS_SUCCESS && count > wanted && result->state == CUBLAS_STATUS_SUCCESS;
    if (*found) {
        s->algorithms[which] = result->algo;
        if (result->workspaceSize > s->workspace_bytes) s->workspace_bytes = result->workspaceSize;
        return LEAT_OK;
    }
    bool none = status == CUBLAS_STATUS_SUCCESS || status == CUBLAS_STATUS_NOT_SUPPORTED;
    return none ? LEAT_OK : leati_cuda_check_blas(status, "cublasLtMatmulAlgoGetHeuristic", err);
}

static leat_status find_algorithms(blas *s, bool *found, leat_error *err) {
    const leati_cuda_api *api = s->cuda->api;
    cublasLtMatmulPreference_t preference = NULL;
    *found = true;
    TRY_BLAS(api->cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    leat_status status = LEAT_OK;
    for (int i = 0; i < ALGORITHMS && *found && status == LEAT_OK; ++i)
        status = find_algorithm(s, preference, i, found, err);
    api->cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

/* ---- Memory ---- */

static size_t rounded_up(size_t bytes) {
    return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

static void place(rounded *r, size_t *used, int64_t count, bool packed) {
    *r = (rounded){.needed = true, .packed = packed, .offset = *used, .count = count};
    *used += rounded_up(leati_count_bytes(count, sizeof(uint16_t)));
}

/* Divides the scratch: the rounded a, the workspace, and at the end what depends on the weights only. */
static void divide_scratch(blas *s, leati_kernel *kernel) {
    const leati_cuda_product *p = &s->product;
    size_t used = 0, packed = 0;
    bool bf16 = is_bf16_product(p), bias = p->has_bias && p->bias == LEAT_F32 && p->out == LEATI_BF16;
    if (bf16 && p->a == LEAT_F32) place(&s->rounded[ROUNDED_A], &used, p->count * p->m * p->k, false);
    if (bf16 && p->b == LEAT_F32) place(&s->rounded[ROUNDED_B], &packed, p->count * p->k * p->n, true);
    if (bias) place(&s->rounded[ROUNDED_BIAS], &packed, p->n, true);
    s->workspace_offset = used;
    if (s->workspace_bytes) used += rounded_up(s->workspace_bytes) + workspace_alignment;
    s->pack_bytes = packed;
    s->scratch_bytes = used + packed;
    kernel->scratch_bytes = s->scratch_bytes;
    kernel->pack_bytes = s->pack_bytes;
    kernel->pack_inputs = (s->rounded[ROUNDED_B].needed ? 1u << 1 : 0) | (bias ? 1u << 2 : 0);
    snprintf(kernel->pack_key, sizeof kernel->pack_key, "cuda bf16 %lld %lld",
             (long long)s->rounded[ROUNDED_B].count, (long long)s->rounded[ROUNDED_BIAS].count);
}

static leat_status find_narrow(blas *s, leat_error *err) {
    int64_t most = 0;
    for (int i = 0; i < ROUNDED; ++i)
        if (s->rounded[i].count > most) most = s->rounded[i].count;
    if (most == 0) return LEAT_OK;
    s->narrow_grid = leati_cuda_grid_for(s->cuda, (most + 3) / 4);
    return leati_cuda_kernel(s->cuda, LEATI_CUDA_matmul, "leati_cuda_matmul_narrow_all", 0, &s->narrow, err);
}

/* ---- Run ---- */

/* Rounds what is not bf16 yet and puts the rounded tensors into `operands`: a, b, bias. */
static leat_status round_operands(const blas *s, const leati_run *run, const void *operands[ROUNDED],
                                  leat_error *err) {
    unsigned char *scratch = run->scratch, *pack = run->pack;
    bool any = false;
    leati_cuda_matmul_narrow parameters = {0};
    if (!pack && s->pack_bytes) pack = scratch + (s->scratch_bytes - s->pack_bytes);
    for (int i = 0; i < ROUNDED; ++i) {
        const rounded *r = &s->rounded[i];
        if (!r->needed) continue;
        void *to = (r->packed ? pack : scratch) + r->offset;
        if (!r->packed || !run->packed) {
            parameters.from[i] = operands[i];
            parameters.to[i] = to;
            parameters.count[i] = r->count;
            any = true;
        }
        operands[i] = to;
    }
    return any ? leati_cuda_launch(s->cuda, s->narrow, &s->narrow_grid, &parameters, err) : LEAT_OK;
}

static void *workspace_of(const blas *s, const leati_run *run) {
    if (s->workspace_bytes == 0) return NULL;
    uintptr_t at = (uintptr_t)run->scratch + s->workspace_offset + workspace_alignment - 1;
    return (void *)(at / workspace_alignment * workspace_alignment);
}

static leat_status run_blas(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const blas *s = kernel->state;
    const leati_cuda_product *p = &s->product;
    const void *operands[ROUNDED] = {args[0], args[1], p->has_bias ? args[2] : NULL};
    void *dst = args[p->out_arg];
    const void *addend = p->has_addend ? args[p->addend_arg] : dst;
    const float one = 1, beta = p->has_addend ? 1 : 0;
    LEATI_TRY(round_operands(s, run, operands, err));
    LEATI_TRY(set_bias(s, operands[ROUNDED_BIAS], err));
    uintptr_t all = (uintptr_t)operands[ROUNDED_A] | (uintptr_t)operands[ROUNDED_B] |
                    (uintptr_t)operands[ROUNDED_BIAS] | (uintptr_t)addend | (uintptr_t)dst;
    int which = all % 16 == 0 ? ALIGNED_16 : ALIGNED_ELEMENT;
    return leati_cuda_check_blas(s->cuda->api->cublasLtMatmul(s->cuda->blas, s->operation, &one,
                                                              operands[ROUNDED_B], s->a, operands[ROUNDED_A],
                                                              s->b, &beta, addend, s->c, dst, s->c,
                                                              &s->algorithms[which], workspace_of(s, run),
                                                              s->workspace_bytes, s->cuda->stream),
                                 "cublasLtMatmul", err);
}

static void name(const blas *s, leati_kernel *kernel) {
    const char *precision = is_bf16_product(&s->product) ? " bf16" : s->cuda->device.tf32 ? " tf32" : "";
    char number[16] = "";
    if (s->algorithm > 0) snprintf(number, sizeof number, " algorithm %d", s->algorithm + 1);
    snprintf(kernel->implementation, sizeof kernel->implementation, "cublaslt%s%s", precision, number);
}

leat_status leati_cuda_matmul_blas(leati_cuda *cuda, const leati_cuda_product *product, int algorithm,
                                   leati_kernel *kernel, char *why, leat_error *err) {
    const char *refusal = obstacle(product);
    if (refusal) {
        snprintf(why, LEATI_REASON_BYTES, "%s", refusal);
        return LEAT_OK;
    }
    LEATI_TRY(leati_cuda_check(cuda, cuda->api->cuCtxSetCurrent(cuda->context), "cuCtxSetCurrent", err));
    LEATI_TRY(leati_cuda_blas(cuda, err));
    blas *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a kernel");
    s->cuda = cuda;
    s->product = *product;
    s->algorithm = algorithm;
    kernel->state = s;
    kernel->destroy = destroy;
    bool found = false;
    LEATI_TRY(make_operation(s, err));
    LEATI_TRY(make_layouts(s, err));
    LEATI_TRY(find_algorithms(s, &found, err));
    if (!found) {
        destroy(s);
        kernel->state = NULL;
        kernel->destroy = NULL;
        snprintf(why, LEATI_REASON_BYTES, "cuBLASLt has no algorithm");
        return LEAT_OK;
    }
    divide_scratch(s, kernel);
    LEATI_TRY(find_narrow(s, err));
    name(s, kernel);
    kernel->run = run_blas;
    return LEAT_OK;
}
