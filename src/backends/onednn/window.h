/* SPDX-License-Identifier: Apache-2.0 */
/* Memory descriptors of images and windows, for the convolutions and pooling of backends/onednn. */
#ifndef LEATI_BACKENDS_ONEDNN_WINDOW_H
#define LEATI_BACKENDS_ONEDNN_WINDOW_H

#include "backends/onednn/session.h"
#include "engine/op_semantics/geometry.h"

/* A window in oneDNN's form: only the axes that the op has. */
typedef struct leati_dnnl_window {
    int spatial;
    dnnl_dims_t kernel, strides, dilates, pad_before, pad_after;
} leati_dnnl_window;

static inline leati_dnnl_window leati_dnnl_window_of(const leati_geometry *g, int spatial) {
    leati_dnnl_window w = {.spatial = spatial};
    for (int i = 0, from = 3 - spatial; i < spatial; i++, from++) {
        w.kernel[i] = g->kernel[from];
        w.strides[i] = g->stride[from];
        w.dilates[i] = g->dilation[from] - 1;
        w.pad_before[i] = g->pad_before[from];
        w.pad_after[i] = g->pad_after[from];
    }
    return w;
}

static inline dnnl_status_t leati_image_md_as(leati_own_md *md, int spatial, int64_t batch, int64_t channels,
                                              const int64_t size[3], dnnl_data_type_t type,
                                              const dnnl_format_tag_t tags[3]) {
    dnnl_dims_t dims = {batch, channels};
    for (int i = 0; i < spatial; i++) dims[2 + i] = size[3 - spatial + i];
    return leati_md_init_as(md, 2 + spatial, dims, type, tags[spatial - 1]);
}

/* Describes an image with dimensions (N, C, spatial...), which lies in memory as (N, spatial..., C) as everywhere
 * in leat. */
static inline dnnl_status_t leati_image_md(leati_own_md *md, int spatial, int64_t batch, int64_t channels,
                                           const int64_t size[3], dnnl_data_type_t type) {
    static const dnnl_format_tag_t tags[] = {dnnl_nwc, dnnl_nhwc, dnnl_ndhwc};
    return leati_image_md_as(md, spatial, batch, channels, size, type, tags);
}

/* Describes an image of f32 that lies in memory as (N, C / 8, spatial..., 8). */
static inline dnnl_status_t leati_blocked_image_md(leati_own_md *md, int spatial, int64_t batch,
                                                   int64_t channels, const int64_t size[3]) {
    static const dnnl_format_tag_t tags[] = {dnnl_nCw8c, dnnl_nChw8c, dnnl_nCdhw8c};
    return leati_image_md_as(md, spatial, batch, channels, size, dnnl_f32, tags);
}

#endif
