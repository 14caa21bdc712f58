/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the convolutions of backends/native; conv.c implements it. */
#ifndef LEATI_BACKENDS_NATIVE_CONV_CONV_H
#define LEATI_BACKENDS_NATIVE_CONV_CONV_H

#include "backends/native/conv/jobs.h"
#include "backends/native/matmul/jobs.h"
#include "backends/native/simd/isa.h"
#include "backends/native/share.h"
#include "engine/backend.h"
#include "tensor/bfloat16.h"

/* The state of a convolution, or of a gradient with respect to the source.  The latter is, for stride 1, a
 * convolution too, with the kernel reversed and its channels and filters exchanged. */
typedef struct leati_conv_state {
    leati_geometry g; /* geometry of the convolution that is computed */
    const leati_native_isa *isa;
    leati_eltwise f;
    float epsilon;
    bool transposed; /* a gradient: weights are given as (taps, filters, channels), taps from last to first */
    /* a gradient of a 1x1 convolution with strides: one pixel of each stride x stride is computed, the others are 0 */
    bool strided_dst;
    bool norm, has_f;
    bool streams;                 /* Winograd: the weights are more than what stays in the L2 cache */
    bool bf16;                    /* source, destination and addend are bf16 */
    int threads, bias, post, dst; /* indices of arguments; bias and post are -1 where absent */
    int64_t block, blocks, parts; /* rows (or tiles) of a block; blocks; column ranges of each block */
    int64_t rows, unit;           /* all rows (or tiles); columns that no two ranges share */
    int64_t size;                 /* side of Winograd's tiles in pixels; 0: no Winograd */
    size_t buffer;                /* floats of scratch of each thread */
} leati_conv_state;

/* Makes the state of a convolution of geometry g, which takes so many operations, and hands it to *kernel. */
leat_status leati_conv_make(leati_conv_state **out, const leati_task *task, const leati_geometry *g,
                            double operations, leati_kernel *kernel, leat_error *err);

/* Makes the state, and fills most of *kernel, for CONV or CONV_BWD_DATA, computed by Winograd's algorithm or by
 * products. *out stays NULL, with the reason in `why`, where no kernel here supports the task.  The caller then
 * sets buffer, blocks and kernel->run, and calls leati_conv_memory(). */
leat_status leati_conv_begin(leati_conv_state **out, const leati_task *task, bool winograd,
                             leati_kernel *kernel, char *why, leat_error *err);

/* Divides the rows (or tiles) into blocks of at most max_rows rows, and the columns into ranges of whole units: each
 * block reads all weights, and each range reads all rows, so that blocks times filters plus ranges times rows is
 * least. */
void leati_conv_share(leati_conv_state *s, int64_t rows, int64_t max_rows, int64_t unit);

/* Divides the rows of all samples into blocks, each of which adds up a gradient with respect to the weights of its own.
 * Their number does not depend on the threads. */
void leati_conv_share_sums(leati_conv_state *s);

/* The rows (or tiles) and columns that one of blocks * parts tasks computes. */
typedef struct leati_conv_area {
    int64_t first, rows, from, columns;
} leati_conv_area;
leati_conv_area leati_conv_area_of(const leati_conv_state *s, int64_t task);

/* Sets the sizes of the kernel's scratch and of its packed weights, which take `floats` floats; names the kernel:
 * `algorithm` ends with a space, or is "". */
void leati_conv_memory(leati_conv_state *s, leati_kernel *kernel, const char *algorithm, size_t floats);

/* Argument of a function that packs a part of the weights. */
typedef struct leati_conv_packing {
    const leati_conv_state *s;
    float *weights, *packed;
} leati_conv_packing;

/* Arguments and memory of one run. */
typedef struct leati_conv_run {
    const leati_conv_state *s;
    const void *src, *addend;
    const float *bias, *packed;
    void *dst;
    float *buffers; /* s->buffer floats for each thread */
} leati_conv_run;
/* Prepares a run; packs the weights, in `tasks` tasks of `pack`, unless the plan keeps them packed. */
leati_conv_run leati_conv_start(const leati_conv_state *s, const leati_kernel *kernel, void *const *args,
                                const leati_run *run, leati_thread_pool_work pack, int64_t tasks);

/* The rows and filters that task `task` of a run computes, of f32, for a kernel that takes them as one job. */
leati_conv_rows leati_conv_rows_of(const leati_conv_run *r, int64_t task);

/* Of kernels of leati_native_conv_product: prepares a run, and computes an area of it from rows of the left operand,
 * which are a_row floats apart. */
leati_conv_run leati_conv_products_start(const leati_kernel *kernel, void *const *args, const leati_run *run);
void leati_conv_products(const leati_conv_run *r, const leati_conv_area *area, const float *a, int64_t a_row);

/* Of kernels of leati_native_conv: prepares a run, and returns the job of all its rows. */
leati_depthwise leati_depthwise_start(const leati_kernel *kernel, void *const *args, const leati_run *run);

/* The image that a convolution reads. */
typedef struct leati_conv_image {
    const leati_geometry *g;
    const void *elements; /* elements of four bytes, or of bf16 */
    /* converts bf16; NULL for elements of four bytes */
    void (*bf16_to_f32)(const uint16_t *from, float *to, int64_t count);
} leati_conv_image;

/* Gathers, for the pixels first to first + count - 1 of the destination, the source pixel under tap `tap` of the
 * window: `width` channels from channel `from` on, to rows that are to_row floats apart; zeros in the padding. */
void leati_conv_gather(const leati_conv_image *image, int64_t tap, int64_t first, int64_t count, int64_t from,
                       int64_t width, float *to, int64_t to_row);

/* Changes the geometry of a gradient with respect to the source to that of the convolution that computes it. */
void leati_conv_transpose_geometry(leati_geometry *g);

static inline bool leati_conv_is_bf16(const leati_desc *desc) {
    return desc->rank >= 0 && desc->dtype == LEATI_BF16;
}

/* True if the pixels under the windows are the source as it is: a 1x1 window without padding and stride. */
bool leati_conv_is_flat(const leati_geometry *g);

/* True for a few single pixels, whose convolution is a dense layer. */
#define LEATI_CONV_FEW_PIXELS 64
bool leati_conv_is_dense(const leati_geometry *g);

/* True if a stride is larger than 1. */
bool leati_conv_has_steps(const leati_geometry *g);

/* True for so few filters that a vector holds elements of a line of the source (few_filters_tmpl.h): a kernel that
 * computes whole vectors of filters is as fast with more. */
bool leati_conv_are_few(int64_t filters, int64_t lanes);

/* True if a dilation is larger than 1. */
bool leati_conv_has_gaps(const leati_geometry *g);

/* Returns `floats` rounded up to whole cache lines. */
static inline size_t leati_conv_line(int64_t floats) {
    return (size_t)leati_round_up(floats, 16);
}

/* Returns the size of Winograd's tiles that costs least, 2 or 4; 4 for a window of one axis.  A tile of size s has
 * (s + 2)^2 elements, and the cost is elements * (tiles + weights_cost): weights_cost is what the weights of one
 * element cost, in units of the cost of one element of one tile. */
int64_t leati_winograd_size(const leati_geometry *g, int64_t weights_cost);

/* Returns how kernels' names tell Winograd's algorithm with tiles of side `size`; "" for size 0. */
const char *leati_winograd_name(const leati_geometry *g, int64_t size);

/* True if Winograd's algorithm supports the convolution, which sums over `channels` channels. */
bool leati_winograd_fits(const leati_geometry *g, int64_t lanes, int64_t channels);

#endif
