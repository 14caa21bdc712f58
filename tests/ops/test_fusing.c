/* SPDX-License-Identifier: Apache-2.0 */
/* Fusing by a plan: the plan fuses what it can, computes the same as the single ops, does not fuse what it must not,
 * and never uses packed weights that are out of date. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "base/memory.h"
#include "engine/graph/build.h"
#include "engine/plan/plan.h"
#include "leat/rng.h"
#include "backends/native/backend.h"
#if LEAT_ONEDNN
#include "backends/onednn/backend.h"
#endif

enum { SLAB_FLOATS = 1 << 16, MOST_INPUTS = 4, MOST_KEPT = 12 };

/* A graph that is being built; the same calls build it again for another plan, with the same random numbers. */
typedef struct bench {
    leati_graph *graph;
    leati_arena *arena;
    leati_plan *plan;
    float *slab;
    size_t used; /* floats of the slab in use */
    int input_count, kept_count;
    float *inputs[MOST_INPUTS];
    leati_value kept[MOST_KEPT];
    leat_rng rng;
} bench;

static void bench_init(bench *b) {
    leat_error err = {0};
    *b = (bench){.rng = leat_rng_for(7, 0, 0)};
    assert_int_equal(leati_graph_create(&b->graph, &err), LEAT_OK);
    assert_int_equal(leati_arena_create(&b->arena, &err), LEAT_OK);
    assert_non_null(b->slab = leati_calloc_aligned(SLAB_FLOATS * sizeof *b->slab));
}

static void bench_fini(bench *b) {
    leati_plan_destroy(&b->plan);
    leati_graph_destroy(&b->graph);
    leati_arena_destroy(&b->arena);
    leati_free(b->slab);
    for (int i = 0; i < b->input_count; ++i) leati_free(b->inputs[i]);
}

static void fill(bench *b, float *to, int64_t count, double low, double high) {
    for (int64_t i = 0; i < count; ++i) to[i] = (float)(low + (high - low) * leat_rng_uniform(&b->rng));
}

static leati_value input(bench *b, int rank, const int64_t *shape) {
    leati_desc desc = leati_desc_make(LEAT_F32, rank, shape);
    float *data = leati_calloc_aligned(leati_desc_bytes(&desc));
    assert_non_null(data);
    fill(b, data, leati_desc_count(&desc), -1, 1);
    b->inputs[b->input_count] = data;
    return leati_graph_input(b->graph, b->input_count++, &desc);
}

static leati_value weight_within(bench *b, double low, double high, int rank, const int64_t *shape) {
    leati_desc desc = leati_desc_make(LEAT_F32, rank, shape);
    size_t at = b->used, count = (size_t)leati_desc_count(&desc);
    b->used += (count + 15) / 16 * 16;
    assert_true(b->used <= SLAB_FLOATS);
    fill(b, b->slab + at, (int64_t)count, low, high);
    return leati_graph_state(b->graph, LEATI_SLAB_WEIGHTS, at * sizeof(float), &desc);
}

static leati_value weight(bench *b, int rank, const int64_t *shape) {
    return weight_within(b, -0.5, 0.5, rank, shape);
}

#define SHAPE(...)                                                                                           \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]) {                                        \
        __VA_ARGS__                                                                                          \
    }

static leati_value keep(bench *b, leati_value value) {
    leati_graph_keep(b->graph, value);
    b->kept[b->kept_count++] = value;
    return value;
}

static void compile(bench *b, const leati_backend *const *backends, bool unfused, int threads) {
    leat_error err = {0};
    leati_plan_options options = {.threads = threads,
                                  .backends = backends,
                                  .arena = b->arena,
                                  .unfused = unfused};
    options.slabs[LEATI_SLAB_WEIGHTS] = b->slab;
    if (leati_plan_create(&b->plan, &b->graph, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
}

static void run(bench *b) {
    leat_error err = {0};
    if (leati_plan_run(b->plan, (const void *const *)b->inputs, 0, 0, &err) != LEAT_OK)
        fail_msg("%s", err.message);
}

#if LEAT_ONEDNN
static int steps_named(const bench *b, const char *op) {
    int count = 0;
    for (int32_t s = 0; s < leati_plan_step_count(b->plan); ++s) {
        leati_plan_step step;
        leati_plan_step_get(b->plan, s, &step);
        count += strcmp(step.op, op) == 0;
    }
    return count;
}
#endif

/* ---- Nets ---- */

static leati_value convolve_apart(bench *b, leati_value x, int64_t filters, int64_t window, int64_t apart,
                                  int64_t groups, bool bias) {
    const leati_desc *desc = leati_graph_desc(b->graph, x);
    const int64_t padding = window / 2 * apart;
    leati_attrs attrs = {.conv = {.window = {.spatial = 2,
                                             .kernel = {window, window},
                                             .stride = {1, 1},
                                             .dilation = {apart, apart},
                                             .pad_before = {padding, padding},
                                             .pad_after = {padding, padding}},
                                  .groups = groups}};
    leati_value args[] = {x, weight(b, SHAPE(window, window, desc->shape[3] / groups, filters)), LEATI_NONE};
    if (bias) args[2] = weight(b, SHAPE(filters));
    return leati_graph_node(b->graph, LEATI_OP_CONV, &attrs, 3, args, NULL);
}

static leati_value convolve(bench *b, leati_value x, int64_t filters, int64_t window, int64_t groups,
                            bool bias) {
    return convolve_apart(b, x, filters, window, 1, groups, bias);
}

static leati_value apply_norm(bench *b, leati_value x, bool scale, bool center) {
    const leati_desc *desc = leati_graph_desc(b->graph, x);
    int64_t c = desc->shape[desc->rank - 1];
    leati_attrs attrs = {.batch_norm = {.epsilon = 1e-3f}};
    leati_value args[] = {x, LEATI_NONE, LEATI_NONE, LEATI_NONE, LEATI_NONE};
    if (scale) args[1] = weight_within(b, 0.5, 1.5, SHAPE(c));
    if (center) args[2] = weight(b, SHAPE(c));
    args[3] = weight(b, SHAPE(c));
    args[4] = weight_within(b, 0.25, 2, SHAPE(c));
    return leati_graph_node(b->graph, LEATI_OP_BATCH_NORM_APPLY, &attrs, 5, args, NULL);
}

static leati_value relu(bench *b, leati_value x) {
    return leati_function_of(b->graph, x, LEATI_FN_RELU);
}

static leati_value relu6(bench *b, leati_value x) {
    return leati_eltwise_of(b->graph, x, (leati_eltwise){.function = LEATI_FN_RELU, .b = 6});
}

static void residual_block(bench *b) {
    leati_value x = input(b, SHAPE(2, 7, 6, 16));
    leati_value y = relu(b, apply_norm(b, convolve(b, x, 8, 1, 1, true), true, true));
    y = relu(b, apply_norm(b, convolve(b, y, 8, 3, 1, false), true, false));
    y = apply_norm(b, convolve(b, y, 16, 1, 1, false), false, true);
    keep(b, relu(b, leati_add(b->graph, y, x)));
}

/* The same net with whole panels: a 3x3 convolution by Winograd's algorithm, and a sum that is deeper than a part
 * of a panel. */
static void residual_block_of_panels(bench *b) {
    leati_value x = input(b, SHAPE(2, 7, 5, 544));
    leati_value y = relu(b, apply_norm(b, convolve(b, x, 32, 1, 1, true), true, true));
    y = relu(b, apply_norm(b, convolve(b, y, 32, 3, 1, true), true, false));
    leati_value z =
        relu(b, leati_add(b->graph, apply_norm(b, convolve(b, y, 32, 3, 1, false), false, true), y));
    y = apply_norm(b, convolve(b, z, 544, 1, 1, false), false, true);
    keep(b, relu(b, leati_add(b->graph, y, x)));
}

/* A block with so many products that several threads share the rows of a single sample. */
static void large_residual_block(bench *b) {
    leati_value x = input(b, SHAPE(1, 21, 20, 32));
    leati_value y = relu(b, apply_norm(b, convolve(b, x, 32, 3, 1, true), true, true));
    y = apply_norm(b, convolve(b, y, 32, 3, 1, false), true, true);
    keep(b, relu(b, leati_add(b->graph, y, x)));
}

/* The shortcut is computed last, so the addition is fused into its convolution. */
static void projection_block(bench *b) {
    leati_value x = input(b, SHAPE(2, 5, 5, 8));
    leati_value y = apply_norm(b, convolve(b, x, 24, 3, 1, false), true, true);
    leati_value shortcut = apply_norm(b, convolve(b, x, 24, 1, 1, false), true, true);
    keep(b, relu(b, leati_add(b->graph, y, shortcut)));
}

static void separable_block(bench *b) {
    leati_value x = input(b, SHAPE(2, 8, 8, 8));
    leati_value y = relu6(b, apply_norm(b, convolve(b, x, 16, 1, 1, false), true, true));
    y = relu6(b, apply_norm(b, convolve(b, y, 16, 3, 16, false), true, true));
    y = apply_norm(b, convolve(b, y, 8, 1, 1, false), true, true);
    keep(b, leati_add(b->graph, x, y));
}

/* Depthwise convolutions whose results, of 512 KiB or more, only a convolution with windows of one pixel reads;
 * channels and filters that end within a vector, sums in both, rows of two samples in a block. */
static void separable_convolutions(bench *b) {
    leati_value x = input(b, SHAPE(2, 46, 37, 40));
    leati_value y = relu6(b, apply_norm(b, convolve(b, x, 40, 3, 40, false), true, true));
    y = keep(b, leati_add(b->graph, apply_norm(b, convolve(b, y, 40, 1, 1, false), true, false), x));
    y = leati_add(b->graph, convolve(b, y, 40, 5, 40, true), x);
    keep(b, leati_function_of(b->graph, convolve(b, y, 33, 1, 1, true), LEATI_FN_GELU));
    leati_value few = input(b, SHAPE(1, 220, 220, 3));
    few = leati_function_of(b->graph, convolve(b, few, 3, 3, 3, false), LEATI_FN_TANH);
    keep(b, convolve(b, few, 20, 1, 1, false));
}

/* Single pixels whose filters end within a vector. */
static void bottleneck(bench *b) {
    leati_value x = input(b, SHAPE(2, 9, 7, 24));
    leati_value y = relu6(b, apply_norm(b, convolve(b, x, 73, 1, 1, true), true, true));
    y = apply_norm(b, convolve(b, y, 24, 1, 1, false), true, true);
    keep(b, leati_add(b->graph, x, y));
}

/* Depthwise convolutions followed by other functions, also with a sum, and channels that end within a vector. */
static void depthwise_chains(bench *b) {
    const leati_function functions[] = {LEATI_FN_HARD_SWISH, LEATI_FN_SILU, LEATI_FN_GELU, LEATI_FN_RELU};
    leati_value x = input(b, SHAPE(2, 5, 19, 40));
    for (int i = 0; i < 4; ++i) {
        leati_value y = apply_norm(b, convolve(b, x, 40, 3 + 2 * (i % 3), 40, i % 2), i != 1, i != 2);
        y = keep(b, leati_function_of(b->graph, y, functions[i]));
        y = leati_add(b->graph, convolve(b, y, 40, 3, 40, true), x);
        keep(b, leati_function_of(b->graph, y, functions[i]));
    }
    leati_value few = input(b, SHAPE(1, 4, 11, 6));
    leati_value y = relu6(b, apply_norm(b, convolve(b, few, 6, 3, 6, false), true, true));
    keep(b, leati_add(b->graph, convolve(b, y, 6, 5, 6, true), few));
}

/* Outputs that are sums over the lanes of vectors. */
static void few_filters(bench *b) {
    leati_value x = input(b, SHAPE(2, 5, 21, 24));
    for (int filters = 1; filters <= 4; ++filters) {
        leati_value y = relu(b, apply_norm(b, convolve(b, x, filters, 3, 1, filters % 2), true, true));
        y = leati_add(b->graph, convolve(b, x, filters, 5, 1, true), y);
        keep(b, leati_function_of(b->graph, y, LEATI_FN_TANH));
    }
}

/* Groups of 2, 4 and 8 channels. */
static void grouped(bench *b) {
    leati_value x = input(b, SHAPE(2, 5, 21, 32));
    for (int width = 2; width <= 8; width *= 2) {
        leati_value y = relu(b, apply_norm(b, convolve(b, x, 32, 3, 32 / width, width != 4), true, true));
        y = leati_add(b->graph, convolve(b, y, 32, 5, 32 / width, true), x);
        keep(b, leati_function_of(b->graph, y, LEATI_FN_TANH));
    }
}

/* Windows that are larger than the image, as in an ASPP block: oneDNN 2.6 adds to them wrongly. */
static void beyond_the_image(bench *b) {
    leati_value x = input(b, SHAPE(2, 8, 8, 16));
    leati_value y = apply_norm(b, convolve_apart(b, x, 16, 3, 6, 1, true), true, true);
    y = leati_add(b->graph, y, apply_norm(b, convolve_apart(b, x, 16, 3, 12, 1, true), true, true));
    keep(b, leati_add(b->graph, convolve_apart(b, x, 16, 3, 9, 1, false), y));
}

static void odd_channels(bench *b) {
    leati_value x = input(b, SHAPE(2, 5, 7, 3));
    leati_value y = relu(b, apply_norm(b, convolve(b, x, 5, 3, 1, true), true, true));
    keep(b,
         leati_function_of(b->graph, leati_add(b->graph, convolve(b, y, 5, 3, 1, true), y), LEATI_FN_TANH));
}

static void products(bench *b) {
    leati_value x = input(b, SHAPE(6, 32));
    leati_value y = leati_matmul(b->graph, x, false, weight(b, SHAPE(32, 24)), false, weight(b, SHAPE(24)));
    y = leati_function_of(b->graph, y, LEATI_FN_SIGMOID);
    leati_value z = leati_matmul(b->graph, y, false, weight(b, SHAPE(24, 32)), false, weight(b, SHAPE(32)));
    keep(b, relu(b, leati_add(b->graph, z, x)));
}

/* Normalizations behind products, not behind a reshape that changes the columns; a few rows are
 * normalized apart. */
static void normalized_products(bench *b) {
    leati_value x = input(b, SHAPE(70, 33));
    leati_value y = leati_matmul(b->graph, x, false, weight(b, SHAPE(33, 40)), false, weight(b, SHAPE(40)));
    y = relu(b, apply_norm(b, y, true, true));
    leati_value z = leati_matmul(b->graph, y, false, weight(b, SHAPE(40, 33)), false, LEATI_NONE);
    keep(b, relu(b, leati_add(b->graph, apply_norm(b, z, false, true), x)));
    z = leati_matmul(b->graph, y, false, weight(b, SHAPE(40, 120)), false, LEATI_NONE);
    keep(b, apply_norm(b, leati_reshape(b->graph, z, 3, (int64_t[]){70, 3, 40}), true, false));
    leati_value few = input(b, SHAPE(12, 33));
    few = leati_matmul(b->graph, few, false, weight(b, SHAPE(33, 40)), false, LEATI_NONE);
    keep(b, relu(b, apply_norm(b, few, true, true)));
}

static void keep_gradients(bench *b, leati_value loss) {
    leati_value wrt[16], diff[16];
    int count = 0;
    for (leati_value v = 0; v < leati_graph_value_count(b->graph); ++v)
        if (leati_graph_value(b->graph, v)->storage == LEATI_IN_SLAB) wrt[count++] = v;
    leat_error err = {0};
    assert_int_equal(leati_graph_differentiate(b->graph, loss, count, wrt, diff, &err), LEAT_OK);
    keep(b, loss);
    for (int i = 0; i < count; ++i) keep(b, diff[i]);
}

static leati_value squares(bench *b, leati_value y) {
    return leati_reduce_all(b->graph, LEATI_REDUCE_SUM, leati_mul(b->graph, y, y));
}

/* Multiplies the last axis of x by weights, as a Dense layer does: x is reshaped to rows and back. */
static leati_value dense(bench *b, leati_value x, int64_t units) {
    leati_desc desc = *leati_graph_desc(b->graph, x);
    int64_t in = desc.shape[desc.rank - 1], rows = leati_desc_count(&desc) / in;
    leati_value y = leati_matmul(b->graph, leati_reshape(b->graph, x, 2, (int64_t[]){rows, in}), false,
                                 weight(b, SHAPE(in, units)), false, weight(b, SHAPE(units)));
    desc.shape[desc.rank - 1] = units;
    return leati_reshape(b->graph, y, desc.rank, desc.shape);
}

static leati_value gelu(bench *b, leati_value x) {
    return leati_function_of(b->graph, x, LEATI_FN_GELU);
}

/* The two Dense layers of a transformer's block, for several widths: also more rows than a group has, and rows that end
 * within a panel.  The last sum's addend is computed after the product. */
static void perceptrons_of_blocks(bench *b) {
    const int64_t rows[] = {3, 25, 110}, units[] = {40, 64, 100};
    for (int i = 0; i < 3; ++i) {
        leati_value x = input(b, SHAPE(2, rows[i], 20));
        keep(b, leati_add(b->graph, x, dense(b, gelu(b, dense(b, x, units[i])), 20)));
    }
    leati_value x = input(b, SHAPE(2, 30, 20)), y = dense(b, x, 20);
    keep(b, leati_add(b->graph, y, gelu(b, x)));
}

/* The value before the function is read by its gradient, so only the sum is fused. */
static void perceptron_training(bench *b) {
    leati_value x = input(b, SHAPE(3, 9, 20));
    keep_gradients(b, squares(b, leati_add(b->graph, x, dense(b, gelu(b, dense(b, x, 40)), 20))));
}

/* One kernel computes the gradients with respect to weights and bias: several chunks of samples, and columns that end
 * within a panel.  The gradients of few columns, and of the sum of all columns, are computed apart. */
static void dense_training(bench *b) {
    leati_value x = input(b, SHAPE(3, 250, 20)), few = weight(b, SHAPE(20, 2)), bias = weight(b, SHAPE(2));
    leati_value y =
        leati_matmul(b->graph, leati_reshape(b->graph, x, 2, (int64_t[]){750, 20}), false, few, false, bias);
    leati_value loss = squares(b, leati_function_of(b->graph, dense(b, x, 100), LEATI_FN_TANH));
    keep_gradients(b, leati_add(b->graph, loss, squares(b, y)));
}

/* A leading axis of 1 makes no stack of matrices. */
static void product_of_one_matrix(bench *b) {
    leati_value x = leati_reshape(b->graph, input(b, SHAPE(50, 24)), 3, (int64_t[]){1, 50, 24});
    leati_value w = leati_reshape(b->graph, weight(b, SHAPE(24, 40)), 3, (int64_t[]){1, 24, 40});
    leati_value y = leati_matmul(b->graph, x, false, w, false, LEATI_NONE);
    keep_gradients(b, squares(b, relu(b, leati_reshape(b->graph, y, 4, (int64_t[]){5, 10, 5, 8}))));
}

static void preactivation(bench *b) {
    leati_value x = input(b, SHAPE(3, 6, 6, 16));
    leati_value y = convolve(b, relu(b, apply_norm(b, x, true, true)), 8, 3, 1, false);
    leati_value both[] = {x, y};
    keep(b, leati_concat(b->graph, 2, both, 3));
}

/* A separate bias op, as transposed convolutions have it; and more following ops than a kernel can fuse. */
static void sums(bench *b) {
    leati_value x = input(b, SHAPE(3, 9, 50, 8));
    leati_value y =
        leati_function_of(b->graph, leati_add(b->graph, x, weight(b, SHAPE(8))), LEATI_FN_SOFTSIGN);
    leati_value z = input(b, SHAPE(3, 9, 50, 8));
    keep(b, relu(b, leati_add(b->graph, y, z)));
    keep(b, leati_function_of(b->graph, leati_mul(b->graph, x, z), LEATI_FN_TANH));
}

static leati_value train_norm(bench *b, leati_value x) {
    const leati_desc *desc = leati_graph_desc(b->graph, x);
    int64_t c = desc->shape[desc->rank - 1];
    leati_attrs attrs = {.batch_norm = {.epsilon = 1e-3f}};
    leati_value args[] = {x, weight_within(b, 0.5, 1.5, SHAPE(c)), weight(b, SHAPE(c))};
    return leati_graph_node(b->graph, LEATI_OP_BATCH_NORM, &attrs, 3, args, NULL);
}

/* Pads the source with zeros like ZeroPadding2D. */
static leati_value surround(bench *b, leati_value x, int64_t before, int64_t after) {
    const int64_t front[] = {0, before, before, 0}, back[] = {0, after, after, 0};
    return leati_pad(b->graph, x, front, back, 0);
}

static void padded(bench *b) {
    leati_value x = input(b, SHAPE(2, 6, 7, 8));
    leati_value y = relu(b, apply_norm(b, convolve(b, surround(b, x, 0, 1), 16, 3, 1, false), true, true));
    y = convolve(b, surround(b, y, 1, 1), 8, 5, 1, true);
    keep(b, y);
    /* more padding than the window's size: not folded */
    keep(b, convolve(b, surround(b, y, 2, 0), 8, 1, 1, true));
    leati_value both = surround(b, y, 1, 1);
    keep(b, convolve(b, both, 8, 5, 1, true));
    keep(b, relu(b, both)); /* another op reads the value: not fused */
}

static void training(bench *b) {
    leati_value x = input(b, SHAPE(4, 6, 6, 8)), shortcut = convolve(b, x, 8, 1, 1, false);
    leati_value y = relu(b, train_norm(b, convolve(b, x, 8, 3, 1, false)));
    y = train_norm(b, convolve(b, y, 8, 3, 1, false));
    y = relu(b, leati_add(b->graph, y, shortcut));
    keep_gradients(b, squares(b, leati_sub(b->graph, y, input(b, SHAPE(4, 6, 6, 8)))));
}

/* The gradient of the last relu is also read before the normalisation's gradient: it is not fused. */
static void late_shortcut(bench *b) {
    leati_value x = input(b, SHAPE(4, 6, 6, 8)), y = train_norm(b, convolve(b, x, 8, 3, 1, false));
    y = relu(b, leati_add(b->graph, y, convolve(b, x, 8, 1, 1, false)));
    keep_gradients(b, squares(b, leati_sub(b->graph, y, input(b, SHAPE(4, 6, 6, 8)))));
}

/* The gradient with respect to the unpadded image is a slice of that with respect to the padded image. */
static void padded_training(bench *b) {
    leati_value x = input(b, SHAPE(2, 6, 6, 8));
    leati_value y = convolve(b, surround(b, x, 1, 1), 8, 5, 1, true);
    y = convolve(b, surround(b, y, 0, 1), 8, 3, 1, true);
    keep_gradients(b, squares(b, y));
}

typedef struct net {
    const char *name;
    void (*build)(bench *b);
    const char *fused[4]; /* steps of the plan with the backends onednn and native */
    int count[4];
} net;

static const net nets[] = {
    {"residual block", residual_block, {"conv+norm+relu", "conv+norm+add+relu"}, {2, 1}},
    {"residual block of panels", residual_block_of_panels, {"conv+norm+relu", "conv+norm+add+relu"}, {2, 2}},
    {"large residual block", large_residual_block, {"conv+norm+relu", "conv+norm+add+relu"}, {1, 1}},
    {"projection block", projection_block, {"conv+norm", "conv+norm+add+relu"}, {1, 1}},
    {"separable block", separable_block, {"conv+norm+relu", "conv+norm+add"}, {2, 1}},
    {"separable convolutions",
     separable_convolutions,
     {"conv+conv+norm+add", "conv+conv+gelu", "conv+tanh", "conv"},
     {1, 1, 1, 1}},
    {"bottleneck", bottleneck, {"conv+norm+relu", "conv+norm+add"}, {1, 1}},
    {"depthwise chains", depthwise_chains, {NULL}, {0}},
    {"few filters", few_filters, {"conv+norm+relu", "conv+add+tanh"}, {4, 4}},
    {"grouped", grouped, {"conv+norm+relu", "conv+add+tanh"}, {3, 3}},
    {"windows beyond the image", beyond_the_image, {NULL}, {0}},
    {"odd channels", odd_channels, {NULL}, {0}},
    {"products", products, {"matmul+sigmoid", "matmul+add+relu"}, {1, 1}},
    {"normalized products",
     normalized_products,
     {"matmul+norm+relu", "matmul+norm+add+relu", "matmul", "batch_norm_apply+relu"},
     {1, 1, 2, 1}},
    {"perceptrons of blocks",
     perceptrons_of_blocks,
     {"matmul+gelu", "matmul+add", "binary", "eltwise gelu"},
     {3, 3, 1, 1}},
    {"perceptron, training",
     perceptron_training,
     {"matmul+add", "eltwise gelu", "eltwise_bwd gelu"},
     {1, 1, 1}},
    {"dense layers, training", dense_training, {"reduce", "matmul+tanh", "matmul"}, {3, 1, 3}},
    {"product of one matrix", product_of_one_matrix, {"matmul+relu", "matmul"}, {1, 1}},
    {"preactivation", preactivation, {"batch_norm_apply+relu", "conv"}, {1, 1}},
    {"sums", sums, {"binary+softsign", "binary+relu", "binary+tanh"}, {1, 1, 1}},
    {"padded", padded, {"conv+norm+relu", "conv", "pad"}, {1, 3, 2}},
    {"padded training", padded_training, {"conv", "conv_bwd_weights", "pad", "slice"}, {2, 2, 0, 0}},
    {"training",
     training,
     {"batch_norm+relu", "batch_norm+add+relu", "relu+batch_norm_bwd", "eltwise_bwd relu"},
     {1, 1, 2, 0}},
    {"late shortcut", late_shortcut, {"relu+batch_norm_bwd", "eltwise_bwd relu"}, {0, 1}},
};

static const leati_backend *const only_ref[] = {&leati_backend_ref, NULL};
#if LEAT_ONEDNN
static const leati_backend *const with_onednn[] = {&leati_backend_onednn, &leati_backend_ref, NULL};
static const leati_backend *const with_all[] = {&leati_backend_native, &leati_backend_onednn,
                                                &leati_backend_ref, NULL};
#else
static const leati_backend *const with_native[] = {&leati_backend_native, &leati_backend_ref, NULL};
#endif

static double distance(const leat_tensor *a, const leat_tensor *b) {
    leati_desc desc = leati_desc_make(a->dtype, a->rank, a->shape);
    double most = 0, scale = 1e-3;
    const float *x = a->data, *y = b->data;
    for (int64_t i = 0; i < leati_desc_count(&desc); ++i) {
        double off = fabs((double)x[i] - (double)y[i]);
        if (!(off <= most)) most = off; /* true for NaN, too */
        if (fabs((double)y[i]) > scale) scale = fabs((double)y[i]);
    }
    return most / scale;
}

/* Compares the net, fused on these backends, with ref op by op. */
static void compare(const net *n, const leati_backend *const *backends, int threads, double tolerance) {
    bench fused, plain;
    bench_init(&fused);
    bench_init(&plain);
    n->build(&fused);
    n->build(&plain);
    compile(&fused, backends, false, threads);
    compile(&plain, only_ref, true, 1);
    run(&plain);
    for (int again = 0; again < 2; ++again) {
        run(&fused);
        for (int i = 0; i < fused.kept_count; ++i) {
            leat_tensor got = leati_plan_output(fused.plan, fused.kept[i]);
            leat_tensor expected = leati_plan_output(plain.plan, plain.kept[i]);
            double off = distance(&got, &expected);
            if (!(off <= tolerance)) fail_msg("%s: output %d is %.3g off", n->name, i, off);
        }
    }
#if LEAT_ONEDNN && defined __x86_64__ /* on other CPUs oneDNN has no kernel for some of the ops */
    for (int i = 0; backends == with_all && i < 4 && n->fused[i]; ++i)
        if (steps_named(&fused, n->fused[i]) != n->count[i]) {
            leati_text text = {0};
            leati_plan_describe(fused.plan, &text);
            fail_msg("%s: expected '%s' %d times:\n%s", n->name, n->fused[i], n->count[i], text.data);
        }
#endif
    bench_fini(&fused);
    bench_fini(&plain);
}

static void fused_is_as_one_by_one(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; ++i) {
        compare(&nets[i], only_ref, 1, 1e-5);
#if LEAT_ONEDNN
        for (int threads = 1; threads <= 3; ++threads) {
            compare(&nets[i], with_onednn, threads, 1e-5);
            compare(&nets[i], with_all, threads, 1e-5);
        }
#else
        for (int threads = 1; threads < 3; ++threads) compare(&nets[i], with_native, threads, 1e-5);
#endif
    }
}

#if LEAT_ONEDNN
/* ---- Where nothing may be fused ---- */

static void a_value_that_others_read_stays(void **state) {
    (void)state;
    bench b;
    bench_init(&b);
    leati_value x = input(&b, SHAPE(2, 5, 5, 8)), y = convolve(&b, x, 8, 3, 1, false);
    keep(&b, relu(&b, y));
    keep(&b, y);
    leati_value z = apply_norm(&b, convolve(&b, x, 8, 3, 1, false), true, true);
    keep(&b, leati_mul(b.graph, relu(&b, z), z));
    compile(&b, with_all, false, 1);
    assert_int_equal(steps_named(&b, "conv"), 1);
    assert_int_equal(steps_named(&b, "conv+norm"), 1);
    assert_int_equal(steps_named(&b, "eltwise relu"), 2);
    bench_fini(&b);
}

/* The addend is written between the convolution and the sum, so they must not be fused. */
static void an_addend_that_is_written_between_is_read_late(void **state) {
    (void)state;
    bench b;
    bench_init(&b);
    leati_value x = input(&b, SHAPE(1, 4, 4, 8)), w = weight(&b, SHAPE(1, 4, 4, 8));
    leati_value y = convolve(&b, x, 8, 1, 1, false);
    leati_graph_store(b.graph, w, input(&b, SHAPE(1, 4, 4, 8)));
    leati_value sum = keep(&b, leati_add(b.graph, y, w));
    compile(&b, with_all, false, 1);
    assert_int_equal(steps_named(&b, "conv"), 1);
    run(&b);
    float first = ((const float *)leati_plan_output(b.plan, sum).data)[0];
    run(&b); /* the state is what was stored: the result is unchanged */
    assert_true(first == ((const float *)leati_plan_output(b.plan, sum).data)[0]);
    bench_fini(&b);
}

/* ---- Packed weights ---- */

typedef struct packed {
    bench b;
    leati_value out;
} packed;

static void packed_init(packed *p) {
    bench_init(&p->b);
    leati_value x = input(&p->b, SHAPE(1, 6, 6, 8));
    p->out = keep(&p->b, apply_norm(&p->b, convolve(&p->b, x, 16, 3, 1, true), true, true));
    compile(&p->b, with_all, false, 1);
}

static float first_output(packed *p) {
    run(&p->b);
    return ((const float *)leati_plan_output(p->b.plan, p->out).data)[0];
}

static void weights_are_packed_once_a_version(void **state) {
    (void)state;
    packed p;
    packed_init(&p);
    leati_plan_step step;
    leati_plan_step_get(p.b.plan, 0, &step);
    assert_string_equal(step.op, "conv+norm");
    assert_int_equal(step.reorders, 0);
    assert_non_null(strstr(step.layout, "nhwc weights"));
    assert_true(step.kept_bytes >= 3 * 3 * 8 * 16 * sizeof(float));
    leati_arena_set_version(p.b.arena, 1);
    float before = first_output(&p);
    for (int i = 0; i < 3 * 3 * 8 * 16; ++i) p.b.slab[i] *= 2;
    assert_true(first_output(&p) == before);
    leati_arena_set_version(p.b.arena, 2);
    float after = first_output(&p);
    assert_true(after != before);
    for (int i = 0; i < 3 * 3 * 8 * 16; ++i) p.b.slab[i] /= 2;
    leati_arena_set_version(p.b.arena, 0); /* the version of the weights is unknown */
    assert_true(first_output(&p) == before);
    for (int i = 0; i < 3 * 3 * 8 * 16; ++i) p.b.slab[i] *= 2;
    assert_true(first_output(&p) == after);
    bench_fini(&p.b);
}

/* Another plan of the same arena writes the weights, so they are packed again; a plan with the same convolution
 * finds them packed. */
static void a_plan_that_writes_weights_spoils_what_was_packed(void **state) {
    (void)state;
    packed p;
    packed_init(&p);
    bench writer = p.b, second = p.b;
    leat_error err = {0};
    const leati_desc desc = {.dtype = LEAT_F32, .rank = 4, .shape = {3, 3, 8, 16}};
    leati_arena_set_version(p.b.arena, 1);
    float before = first_output(&p);
    writer.plan = second.plan = NULL;
    assert_int_equal(leati_graph_create(&writer.graph, &err), LEAT_OK);
    leati_value w = leati_graph_state(writer.graph, LEATI_SLAB_WEIGHTS, 0, &desc);
    leati_graph_store(writer.graph, w, leati_linear(writer.graph, w, 3, 0));
    compile(&writer, with_all, false, 1);
    assert_int_equal(leati_graph_create(&second.graph, &err), LEAT_OK);
    second.used = 0;
    second.input_count = second.kept_count = 0;
    second.rng = leat_rng_for(7, 0, 0);
    leati_value x = input(&second, SHAPE(2, 6, 6, 8));
    leati_value out = keep(&second, apply_norm(&second, convolve(&second, x, 16, 3, 1, true), true, true));
    compile(&second, with_all, false, 1);
    run(&writer);
    float after = first_output(&p);
    assert_true(after != before);
    for (int i = 0; i < 3 * 3 * 8 * 16; ++i) p.b.slab[i] = 0; /* not noticed: the weights are packed */
    assert_true(first_output(&p) == after);
    run(&second);
    assert_true(((const float *)leati_plan_output(second.plan, out).data)[0] != 0);
    leati_plan_destroy(&writer.plan);
    leati_plan_destroy(&second.plan);
    leati_free(second.inputs[0]);
    bench_fini(&p.b);
}

/* Attention has weights of three axes. */
static void reshaped_weights_stay_packed(void **state) {
    (void)state;
    bench b;
    bench_init(&b);
    leati_value x = input(&b, SHAPE(32, 256)), w = weight(&b, SHAPE(256, 4, 64));
    keep(&b, leati_matmul(b.graph, x, false, leati_reshape(b.graph, w, SHAPE(256, 256)), false, LEATI_NONE));
    compile(&b, with_all, false, 1);
    leati_plan_step step;
    leati_plan_step_get(b.plan, 0, &step);
    assert_true(step.kept_bytes >= 256 * 256 * sizeof(float));
    bench_fini(&b);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_is_as_one_by_one),
#if LEAT_ONEDNN
        cmocka_unit_test(a_value_that_others_read_stays),
        cmocka_unit_test(an_addend_that_is_written_between_is_read_late),
        cmocka_unit_test(weights_are_packed_once_a_version),
        cmocka_unit_test(a_plan_that_writes_weights_spoils_what_was_packed),
        cmocka_unit_test(reshaped_weights_stay_packed),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
