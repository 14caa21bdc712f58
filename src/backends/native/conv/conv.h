/* SPDX-License-Identifier: Apache-2.0 */
/* What the convolutions of backends/native have in common (conv.c). */
#ifndef LEATI_BACKENDS_NATIVE_CONV_CONV_H
#define LEATI_BACKENDS_NATIVE_CONV_CONV_H

#include "backends/native/simd/isa.h"
#include "engine/backend.h"
#include "tensor/bfloat16.h"

/* The gradient by the source of a convolution with stride 1 is a convolution, with the weights turned round. */
typedef struct leati_conv_state {
    leati_geometry g; /* of the convolution that is computed */
    const leati_native_isa *isa;
    leati_eltwise f;
    float epsilon;
    bool turned; /* weights are (taps, filters, channels), taps from last to first */
    bool spread; /* computed at one pixel of each stride x stride, 0 at the others: a 1x1 gradient */
    bool norm, has_f;
    bool narrow;                  /* source, destination and addend are bf16 */
    int threads, bias, post, dst; /* arguments; bias and post: -1 where absent */
    int64_t block, blocks, parts; /* rows (or tiles) of a block, blocks, groups of columns of each */
    int64_t size;                 /* Winograd's tiles: pixels of a side; 0: not by Winograd */
    size_t buffer;                /* floats of a thread's memory, before the weights' in scratch */
} leati_conv_state;

/* Fills a state and most of *kernel for CONV or CONV_BWD_DATA, by Winograd's way or by products; *out stays NULL, with the reason, for what no kernel here
 * takes.  The caller sets buffer, blocks, packed floats and kernel->run, and calls leati_conv_memory. */
leat_status leati_conv_begin(leati_conv_state **out, const leati_task *task, bool winograd,
                             leati_kernel *kernel, char *why, leat_error *err);

/* Shares rows (of what is computed) among blocks of at most `most`, and these among groups of columns. */
void leati_conv_share(leati_conv_state *s, int64_t rows, int64_t most);

/* Sets what the kernel needs: scratch, and `floats` of packed weights; names it. */
void leati_conv_memory(leati_conv_state *s, leati_kernel *kernel, size_t floats);

/* What is given to a function that packs a part of the weights. */
typedef struct leati_conv_packing {
    const leati_conv_state *s;
    float *weights, *packed;
} leati_conv_packing;

/* What a run works with.  Weights are packed where they were not, in `tasks` parts. */
typedef struct leati_conv_run {
    const leati_conv_state *s;
    const void *src, *addend;
    const float *bias, *packed;
    void *dst;
    float *buffers; /* s->buffer floats for each thread */
} leati_conv_run;
leati_conv_run leati_conv_start(const leati_conv_state *s, const leati_kernel *kernel, void *const *args,
                                const leati_run *run, leati_thread_pool_work pack, int64_t tasks);

/* What a convolution reads. */
typedef struct leati_conv_image {
    const leati_geometry *g;
    const void *numbers;                                           /* of four bytes, */
    void (*widen)(const uint16_t *from, float *to, int64_t count); /* or where this is given bf16 */
} leati_conv_image;

/* Rows of `width` channels from channel `from` on: of what lies under tap `tap` at the pixels first to first + count - 1;
 * zeros in the padding. */
void leati_conv_gather(const leati_conv_image *image, int64_t tap, int64_t first, int64_t count, int64_t from,
                       int64_t width, float *to, int64_t to_row);

static inline bool leati_conv_is_bf16(const leati_desc *desc) {
    return desc->rank >= 0 && desc->dtype == LEATI_BF16;
}

/* Whether what lies under the window at each pixel is the source as it lies. */
bool leati_conv_is_flat(const leati_geometry *g);

/* Whether its windows lie more than one pixel apart. */
bool leati_conv_has_steps(const leati_geometry *g);

static inline int64_t leati_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* The states' allocation rounded up to whole cache lines, in floats. */
static inline size_t leati_conv_line(int64_t floats) {
    return (size_t)(floats + 15) / 16 * 16;
}

/* The size of Winograd's tiles that takes least: 2, or 4.  weights_cost: of those of a place, in tiles. */
int64_t leati_winograd_size(const leati_geometry *g, int64_t weights_cost);

/* Whether Winograd's way computes it. */
bool leati_winograd_fits(const leati_geometry *g, int64_t lanes);

#endif
