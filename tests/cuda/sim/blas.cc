/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated cuBLASLt: the functions that the backend uses, in plain C++.  It checks what the real library checks or
 * relies on, and computes when the stream runs the work. */
#include <string.h>

#include <algorithm>
#include <vector>

#include "cuda/sim/work.h"
#include "backends/cuda/driver/api.h"
extern "C" {
#include "base/error.h"
}

namespace {

struct layout {
    cudaDataType type;
    int64_t rows, columns, ld, count, stride;
};
struct operation {
    cublasComputeType_t compute;
    cudaDataType scale;
    int32_t transpose_a, transpose_b;
    uint32_t epilogue;
    const void *bias;
};
struct preference {
    size_t workspace;
    uint32_t alignment[4]; /* A, B, C, D */
};
/* What the simulation keeps in the opaque memory of an algorithm. */
struct algorithm {
    uint32_t magic, alignment[4];
    size_t workspace;
};
enum : uint32_t { MAGIC = 0x5a1f0b1a };

static_assert(sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t), "the algorithm is too large");

layout *of(cublasLtMatrixLayout_t l) {
    return reinterpret_cast<layout *>(l);
}
operation *of(cublasLtMatmulDesc_t d) {
    return reinterpret_cast<operation *>(d);
}
preference *of(cublasLtMatmulPreference_t p) {
    return reinterpret_cast<preference *>(p);
}

size_t bytes_of(cudaDataType type) {
    return type == CUDA_R_16BF ? 2 : 4;
}

template <typename T> cublasStatus_t take(T *to, const void *from, size_t bytes) {
    if (bytes != sizeof *to) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- Descriptions ---- */

cublasStatus_t create(cublasLtHandle_t *out) {
    static char handle;
    *out = reinterpret_cast<cublasLtHandle_t>(&handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy(cublasLtHandle_t) {
    return CUBLAS_STATUS_SUCCESS;
}
size_t get_version(void) {
    return CUBLAS_VERSION;
}
cublasStatus_t desc_create(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale) {
    *out = reinterpret_cast<cublasLtMatmulDesc_t>(
        new operation{compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t desc_destroy(cublasLtMatmulDesc_t d) {
    delete of(d);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t desc_set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t attribute, const void *value,
                        size_t bytes) {
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return take(&of(d)->transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return take(&of(d)->transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(&of(d)->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(&of(d)->bias, value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
    }
}
cublasStatus_t layout_create(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t columns,
                             int64_t ld) {
    if ((type != CUDA_R_32F && type != CUDA_R_16BF) || rows == 0 || columns == 0 || ld < (int64_t)rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    *out =
        reinterpret_cast<cublasLtMatrixLayout_t>(new layout{type, (int64_t)rows, (int64_t)columns, ld, 1, 0});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layout_destroy(cublasLtMatrixLayout_t l) {
    delete of(l);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layout_set(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t attribute,
                          const void *value, size_t bytes) {
    int32_t count = 0;
    switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        if (take(&count, value, bytes) != CUBLAS_STATUS_SUCCESS || count < 1)
            return CUBLAS_STATUS_INVALID_VALUE;
        of(l)->count = count;
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return take(&of(l)->stride, value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
    }
}
cublasStatus_t preference_create(cublasLtMatmulPreference_t *out) {
    *out = reinterpret_cast<cublasLtMatmulPreference_t>(new preference{0, {256, 256, 256, 256}});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_destroy(cublasLtMatmulPreference_t p) {
    delete of(p);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_set(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t attribute,
                              const void *value, size_t bytes) {
    uint32_t schemes = 0;
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return take(&of(p)->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return take(&schemes, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return take(&of(p)->alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return take(&of(p)->alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return take(&of(p)->alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return take(&of(p)->alignment[3], value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
    }
}

/* ---- Checks ---- */

bool has_bias(const operation &o) {
    return o.epilogue == CUBLASLT_EPILOGUE_BIAS || o.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}
bool has_relu(const operation &o) {
    return o.epilogue == CUBLASLT_EPILOGUE_RELU || o.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

bool are_types_served(const operation &o, const layout &a, const layout &b, const layout &c,
                      const layout &d) {
    if (o.scale != CUDA_R_32F || a.type != b.type || c.type != d.type) return false;
    if (a.type == CUDA_R_16BF) return o.compute == CUBLAS_COMPUTE_32F;
    return d.type == CUDA_R_32F &&
           (o.compute == CUBLAS_COMPUTE_32F || o.compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}

/* True if the matrices of a stack of results do not overlap. */
bool is_stack(const layout &l, int64_t count) {
    return l.count == count && (count == 1 || l.stride >= l.ld * l.columns);
}

cublasStatus_t check(const operation &o, const layout &a, const layout &b, const layout &c, const layout &d) {
    bool ta = o.transpose_a == CUBLAS_OP_T, tb = o.transpose_b == CUBLAS_OP_T;
    int64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns, n = tb ? b.rows : b.columns;
    if ((!ta && o.transpose_a != CUBLAS_OP_N) || (!tb && o.transpose_b != CUBLAS_OP_N))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (k != (tb ? b.columns : b.rows) || d.rows != m || d.columns != n || c.rows != m || c.columns != n)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_stack(a, d.count) || !is_stack(b, d.count) || !is_stack(c, d.count) || !is_stack(d, d.count))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (o.epilogue != CUBLASLT_EPILOGUE_DEFAULT && o.epilogue != CUBLASLT_EPILOGUE_RELU && !has_bias(o))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (has_bias(o) && !o.bias) return CUBLAS_STATUS_INVALID_VALUE;
    return are_types_served(o, a, b, c, d) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

bool is_aligned(const void *p, size_t bytes) {
    return (uintptr_t)p % bytes == 0;
}

/* ---- The product ---- */

float load(const void *p, cudaDataType type, int64_t i) {
    if (type == CUDA_R_32F) return static_cast<const float *>(p)[i];
    uint32_t bits = (uint32_t) static_cast<const uint16_t *>(p)[i] << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
void store(void *p, cudaDataType type, int64_t i, float x) {
    if (type == CUDA_R_32F) {
        static_cast<float *>(p)[i] = x;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = x != x ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
    static_cast<uint16_t *>(p)[i] = (uint16_t)(bits >> 16);
}

struct product {
    operation o;
    layout a, b, c, d;
    const void *A, *B, *C;
    void *D, *workspace;
    size_t workspace_bytes;
    float alpha, beta;
};

/* An element of A or B as it is multiplied. */
double factor(const product &p, const void *matrix, cudaDataType type, int64_t i) {
    float x = load(matrix, type, i);
    return p.o.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? sim_tf32(x) : x;
}

float element(const product &p, int64_t matrix, int64_t i, int64_t j) {
    bool ta = p.o.transpose_a == CUBLAS_OP_T, tb = p.o.transpose_b == CUBLAS_OP_T;
    int64_t k_count = ta ? p.a.rows : p.a.columns;
    double sum = 0;
    for (int64_t k = 0; k < k_count; ++k)
        sum += factor(p, p.A, p.a.type, matrix * p.a.stride + (ta ? i * p.a.ld + k : k * p.a.ld + i)) *
               factor(p, p.B, p.b.type, matrix * p.b.stride + (tb ? k * p.b.ld + j : j * p.b.ld + k));
    float x = p.alpha * (float)sum;
    if (p.beta != 0) x += p.beta * load(p.C, p.c.type, matrix * p.c.stride + j * p.c.ld + i);
    if (has_bias(p.o)) x += load(p.o.bias, p.d.type, i);
    return has_relu(p.o) && x < 0 ? 0 : x;
}

void compute(const product &p) {
    if (p.workspace) memset(p.workspace, 0xff, p.workspace_bytes);
    for (int64_t matrix = 0; matrix < p.d.count; ++matrix)
        for (int64_t j = 0; j < p.d.columns; ++j)
            for (int64_t i = 0; i < p.d.rows; ++i)
                store(p.D, p.d.type, matrix * p.d.stride + j * p.d.ld + i, element(p, matrix, i, j));
}

/* Asks for a workspace where the inner axis is long, as the library does to cut the sum. */
cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t o, cublasLtMatrixLayout_t a,
                         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                         cublasLtMatmulPreference_t preference, int wanted,
                         cublasLtMatmulHeuristicResult_t *results, int *count) {
    cublasStatus_t status = check(*of(o), *of(a), *of(b), *of(c), *of(d));
    *count = 0;
    if (status != CUBLAS_STATUS_SUCCESS || wanted < 1) return status;
    algorithm chosen = {MAGIC, {}, 0};
    memcpy(chosen.alignment, of(preference)->alignment, sizeof chosen.alignment);
    if (of(a)->rows * of(a)->columns > of(d)->rows * of(d)->columns)
        chosen.workspace = std::min<size_t>(of(preference)->workspace, 4096);
    /* two algorithms, which do the same */
    for (; *count < std::min(wanted, 2); ++*count) {
        memcpy(&results[*count].algo, &chosen, sizeof chosen);
        results[*count].workspaceSize = chosen.workspace;
        results[*count].state = CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t o, const void *alpha, const void *A,
                      cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b, const void *beta,
                      const void *C, cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                      const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes,
                      cudaStream_t stream) {
    algorithm chosen;
    if (!handle || !alpha || !beta || !A || !B || !C || !D || !algo) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&chosen, algo, sizeof chosen);
    cublasStatus_t status = check(*of(o), *of(a), *of(b), *of(c), *of(d));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (chosen.magic != MAGIC || chosen.workspace > workspace_bytes || (chosen.workspace && !workspace) ||
        !is_aligned(workspace, 256))
        return CUBLAS_STATUS_INVALID_VALUE;
    const void *const pointers[] = {A, B, C, D};
    for (int i = 0; i < 4; ++i)
        if (!is_aligned(pointers[i], chosen.alignment[i])) return CUBLAS_STATUS_INVALID_VALUE;
    if (has_bias(*of(o)) && !is_aligned(of(o)->bias, bytes_of(of(d)->type)))
        return CUBLAS_STATUS_INVALID_VALUE;
    product p = {*of(o),
                 *of(a),
                 *of(b),
                 *of(c),
                 *of(d),
                 A,
                 B,
                 C,
                 D,
                 workspace,
                 chosen.workspace,
                 *static_cast<const float *>(alpha),
                 *static_cast<const float *>(beta)};
    if (C == D && p.beta != 0) return CUBLAS_STATUS_INVALID_VALUE; /* leat has no such product */
    sim_enqueue(stream, [p] { compute(p); });
    return CUBLAS_STATUS_SUCCESS;
}

} // namespace

extern "C" leat_status leati_cuda_load_blas(leati_cuda_api *api, leat_error *) {
    api->cublasLtCreate = create;
    api->cublasLtDestroy = destroy;
    api->cublasLtGetVersion = get_version;
    api->cublasLtMatmulDescCreate = desc_create;
    api->cublasLtMatmulDescDestroy = desc_destroy;
    api->cublasLtMatmulDescSetAttribute = desc_set;
    api->cublasLtMatrixLayoutCreate = layout_create;
    api->cublasLtMatrixLayoutDestroy = layout_destroy;
    api->cublasLtMatrixLayoutSetAttribute = layout_set;
    api->cublasLtMatmulPreferenceCreate = preference_create;
    api->cublasLtMatmulPreferenceDestroy = preference_destroy;
    api->cublasLtMatmulPreferenceSetAttribute = preference_set;
    api->cublasLtMatmulAlgoGetHeuristic = heuristic;
    api->cublasLtMatmul = matmul;
    sim_guard_blas(api);
    return LEAT_OK;
}
