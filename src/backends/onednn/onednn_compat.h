/* SPDX-License-Identifier: Apache-2.0 */
/* One interface to oneDNN 2.6 and 3.x.  In 2.6 an operation descriptor is filled in and then made into a primitive
 * descriptor, and a memory descriptor is a struct; in 3.x one call makes a primitive descriptor, and memory
 * descriptors are objects.  The choice is made when leat is compiled: header and library must have the same major
 * version. */
#ifndef LEATI_BACKENDS_ONEDNN_COMPAT_H
#define LEATI_BACKENDS_ONEDNN_COMPAT_H

#include <stdbool.h>

#include <oneapi/dnnl/dnnl.h>

#if DNNL_VERSION_MAJOR < 2 || (DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR < 6)
#error "leat needs oneDNN 2.6 or later"
#endif
#define LEATI_DNNL3 (DNNL_VERSION_MAJOR >= 3)

#if LEATI_DNNL3
typedef const_dnnl_memory_desc_t leati_md; /* borrowed */
#else
typedef const dnnl_memory_desc_t *leati_md;
#endif

/* A memory descriptor that leat owns and releases with leati_md_fini(). */
typedef struct leati_own_md {
    dnnl_memory_desc_t md;
} leati_own_md;

static inline leati_md leati_md_of(const leati_own_md *owned) {
#if LEATI_DNNL3
    return owned->md;
#else
    return &owned->md;
#endif
}

static inline dnnl_status_t leati_md_init_as(leati_own_md *owned, int rank, const int64_t *dims,
                                             dnnl_data_type_t type, dnnl_format_tag_t tag) {
#if LEATI_DNNL3
    return dnnl_memory_desc_create_with_tag(&owned->md, rank, dims, type, tag);
#else
    return dnnl_memory_desc_init_by_tag(&owned->md, rank, dims, type, tag);
#endif
}

static inline dnnl_status_t leati_md_init(leati_own_md *owned, int rank, const int64_t *dims,
                                          dnnl_format_tag_t tag) {
    return leati_md_init_as(owned, rank, dims, dnnl_f32, tag);
}

static inline dnnl_status_t leati_md_init_by_strides(leati_own_md *owned, int rank, const int64_t *dims,
                                                     dnnl_data_type_t type, const int64_t *strides) {
#if LEATI_DNNL3
    return dnnl_memory_desc_create_with_strides(&owned->md, rank, dims, type, strides);
#else
    return dnnl_memory_desc_init_by_strides(&owned->md, rank, dims, type, strides);
#endif
}

static inline void leati_md_fini(leati_own_md *owned) {
#if LEATI_DNNL3
    if (owned->md) dnnl_memory_desc_destroy(owned->md);
    owned->md = NULL;
#else
    (void)owned;
#endif
}

/* The layout of a memory descriptor: strides of the dimensions, and the blocks into which the innermost parts of
 * some dimensions are divided. */
typedef struct leati_md_blocking {
    int rank, blocks;
    const dnnl_dim_t *dims, *strides, *block_sizes, *block_axes;
} leati_md_blocking;

/* Returns false for a layout that only oneDNN knows. */
static inline bool leati_md_blocking_of(leati_md md, leati_md_blocking *out) {
#if LEATI_DNNL3
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    int32_t rank = 0, blocks = 0;
    *out = (leati_md_blocking){0};
    if (dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind) != dnnl_success || kind != dnnl_blocked)
        return false;
    dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &rank);
    dnnl_memory_desc_query(md, dnnl_query_dims, &out->dims);
    dnnl_memory_desc_query(md, dnnl_query_strides, &out->strides);
    dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &blocks);
    dnnl_memory_desc_query(md, dnnl_query_inner_blks, &out->block_sizes);
    dnnl_memory_desc_query(md, dnnl_query_inner_idxs, &out->block_axes);
    out->rank = rank;
    out->blocks = blocks;
    return true;
#else
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    *out = (leati_md_blocking){md->ndims, b->inner_nblks, md->dims, b->strides, b->inner_blks, b->inner_idxs};
    return md->format_kind == dnnl_blocked;
#endif
}

/* Descriptors and parameters of a convolution; forward and both gradients need the same ones. */
typedef struct leati_conv_mds {
    leati_md src, weights, bias /* may be NULL */, dst;
    const dnnl_dim_t *strides, *dilates /* 0: none */, *pad_before, *pad_after;
} leati_conv_mds;

static inline dnnl_status_t leati_pd_conv(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                          dnnl_prop_kind_t prop, const leati_conv_mds *c,
                                          dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
    const dnnl_alg_kind_t alg = dnnl_convolution_direct;
#if LEATI_DNNL3
    if (prop == dnnl_backward_data)
        return dnnl_convolution_backward_data_primitive_desc_create(pd, engine, alg, c->src, c->weights,
                                                                    c->dst, c->strides, c->dilates,
                                                                    c->pad_before, c->pad_after, hint, attr);
    if (prop == dnnl_backward_weights)
        return dnnl_convolution_backward_weights_primitive_desc_create(pd, engine, alg, c->src, c->weights,
                                                                       c->bias, c->dst, c->strides,
                                                                       c->dilates, c->pad_before,
                                                                       c->pad_after, hint, attr);
    return dnnl_convolution_forward_primitive_desc_create(pd, engine, prop, alg, c->src, c->weights, c->bias,
                                                          c->dst, c->strides, c->dilates, c->pad_before,
                                                          c->pad_after, attr);
#else
    dnnl_convolution_desc_t d;
    dnnl_status_t status;
    if (prop == dnnl_backward_data)
        status =
            dnnl_dilated_convolution_backward_data_desc_init(&d, alg, c->src, c->weights, c->dst, c->strides,
                                                             c->dilates, c->pad_before, c->pad_after);
    else if (prop == dnnl_backward_weights)
        status = dnnl_dilated_convolution_backward_weights_desc_init(&d, alg, c->src, c->weights, c->bias,
                                                                     c->dst, c->strides, c->dilates,
                                                                     c->pad_before, c->pad_after);
    else
        status =
            dnnl_dilated_convolution_forward_desc_init(&d, prop, alg, c->src, c->weights, c->bias, c->dst,
                                                       c->strides, c->dilates, c->pad_before, c->pad_after);
    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &d, attr, engine, hint) : status;
#endif
}

/* Pooling: forward where hint is NULL, else backward; src and dst are then descriptors of their gradients. */
static inline dnnl_status_t leati_pd_pooling(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                             dnnl_prop_kind_t prop, dnnl_alg_kind_t alg,
                                             const leati_conv_mds *c, const dnnl_dim_t *kernel,
                                             dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
#if LEATI_DNNL3
    if (hint)
        return dnnl_pooling_backward_primitive_desc_create(pd, engine, alg, c->src, c->dst, c->strides,
                                                           kernel, c->dilates, c->pad_before, c->pad_after,
                                                           hint, attr);
    return dnnl_pooling_forward_primitive_desc_create(pd, engine, prop, alg, c->src, c->dst, c->strides,
                                                      kernel, c->dilates, c->pad_before, c->pad_after, attr);
#else
    dnnl_pooling_desc_t d;
    dnnl_status_t status = hint ? dnnl_pooling_backward_desc_init(&d, alg, c->src, c->dst, c->strides, kernel,
                                                                  c->pad_before, c->pad_after)
                                : dnnl_pooling_forward_desc_init(&d, prop, alg, c->src, c->dst, c->strides,
                                                                 kernel, c->pad_before, c->pad_after);
    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &d, attr, engine, hint) : status;
#endif
}

static inline dnnl_status_t leati_pd_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, leati_md a,
                                            leati_md b, leati_md bias, leati_md dst,
                                            const_dnnl_primitive_attr_t attr) {
#if LEATI_DNNL3
    return dnnl_matmul_primitive_desc_create(pd, engine, a, b, bias, dst, attr);
#else
    dnnl_matmul_desc_t d;
    dnnl_status_t status = dnnl_matmul_desc_init(&d, a, b, bias, dst);
    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &d, attr, engine, NULL) : status;
#endif
}

static inline dnnl_status_t leati_post_eltwise(dnnl_post_ops_t post, dnnl_alg_kind_t alg, float alpha,
                                               float beta) {
#if LEATI_DNNL3
    return dnnl_post_ops_append_eltwise(post, alg, alpha, beta);
#else
    return dnnl_post_ops_append_eltwise(post, 1, alg, alpha, beta);
#endif
}

#endif
