/* SPDX-License-Identifier: Apache-2.0 */
/* Times single ops at the shapes of the benchmark models, on every implementation that accepts them:
 *     bench_ops [--threads N] [--ref] [--cpu] [--json] [WORD...]        (only cases whose name has a WORD)
 * It prints one line per implementation, and another one with packed weights where the implementation packs: case,
 * implementation, fastest and median microseconds, and GFLOP/s or GB/s of the fastest run.  --cpu counts CPU time,
 * which is more reliable for one thread on a busy machine.  --json prints the same as lines of JSON, with the bytes
 * that a run reads and writes: bench/kernels.py draws a table of them. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/os/clock.h"
#include "base/memory.h"
#include "engine/backend.h"
#include "engine/op_semantics/attention.h"
#include "engine/op_semantics/geometry.h"
#include "leat/rng.h"
#include "backends/ref/ref.h"
#include "backends/native/backend.h"
#if LEAT_ONEDNN
#include "backends/onednn/backend.h"
#endif

const leati_backend *const leati_backends[] = {&leati_backend_native,
#if LEAT_ONEDNN
                                               &leati_backend_onednn,
#endif
                                               &leati_backend_ref, NULL};

#define DIMS(...)                                                                                            \
    {                                                                                                        \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .shape = { __VA_ARGS__ }                 \
    }
#define ABSENT                                                                                               \
    { .rank = -1 }

typedef struct bench_case {
    const char *name;
    leati_op op;
    leati_attrs attrs;
    int input_count;
    leati_desc inputs[LEATI_RNN_BWD_INPUTS];
    double flops; /* 0: print GB/s */
    uint32_t unused;
} bench_case;

#define WINDOW(k, s)                                                                                         \
    {                                                                                                        \
        .spatial = 2, .kernel = {k, k}, .stride = {s, s}, .dilation = { 1, 1 }                               \
    }
#define CONV(k)                                                                                              \
    {                                                                                                        \
        .conv = {.window = WINDOW(k, 1), .groups = 1 }                                                       \
    }

#define CONV_CASES(tag, n, side, in, out, filters)                                                           \
    {"conv " tag " fwd",                                                                                     \
     LEATI_OP_CONV,                                                                                          \
     CONV(3),                                                                                                \
     3,                                                                                                      \
     {DIMS(n, side, side, in), DIMS(3, 3, in, filters), DIMS(filters)},                                      \
     2.0 * n * out * out * 9 * in * filters,                                                                 \
     0},                                                                                                     \
        {"conv " tag " bwd_data",                                                                            \
         LEATI_OP_CONV_BWD_DATA,                                                                             \
         {.conv = {.window = WINDOW(3, 1), .groups = 1, .size = {side, side}}},                              \
         2,                                                                                                  \
         {DIMS(n, out, out, filters), DIMS(3, 3, in, filters)},                                              \
         2.0 * n * out * out * 9 * in * filters,                                                             \
         0},                                                                                                 \
    {                                                                                                        \
        "conv " tag " bwd_weights", LEATI_OP_CONV_BWD_WEIGHTS, CONV(3), 2,                                   \
            {DIMS(n, side, side, in), DIMS(n, out, out, filters)}, 2.0 * n *out *out * 9 * in *filters, 0    \
    }

#define CUBE(axes, k, s, d, before, after)                                                                   \
    .window = {.spatial = axes,                                                                              \
               .kernel = {k, k, k},                                                                          \
               .stride = {s, s, s},                                                                          \
               .dilation = {d, d, d},                                                                        \
               .pad_before = {before, before, before},                                                       \
               .pad_after = {after, after, after}}
#define SIDES(...)                                                                                           \
    { __VA_ARGS__ }
/* A convolution in its three directions; dst is (.., filters), flops are those of one direction. */
#define ANY_CONV_CASES(tag, window_, groups_, size_, src, weights, dst, flops_)                              \
    {                                                                                                        \
        "conv " tag " fwd",                                                                                  \
        LEATI_OP_CONV,                                                                                       \
        {.conv = {window_, .groups = groups_}},                                                              \
        2,                                                                                                   \
        {src, weights},                                                                                      \
        flops_,                                                                                              \
        0},                                                                                                  \
        {"conv " tag " bwd_data",                                                                            \
         LEATI_OP_CONV_BWD_DATA,                                                                             \
         {.conv = {window_, .groups = groups_, .size = size_}},                                              \
         2,                                                                                                  \
         {dst, weights},                                                                                     \
         flops_,                                                                                             \
         0},                                                                                                 \
    {                                                                                                        \
        "conv " tag " bwd_weights", LEATI_OP_CONV_BWD_WEIGHTS, {.conv = {window_, .groups = groups_}}, 2,    \
            {src, dst}, flops_, 2                                                                            \
    }

#define DENSE_CASES(tag, n, in, out)                                                                         \
    {"dense " tag " fwd",                                                                                    \
     LEATI_OP_MATMUL,                                                                                        \
     {0},                                                                                                    \
     3,                                                                                                      \
     {DIMS(n, in), DIMS(in, out), DIMS(out)},                                                                \
     2.0 * n * in * out,                                                                                     \
     0},                                                                                                     \
        {"dense " tag " bwd_data",                                                                           \
         LEATI_OP_MATMUL,                                                                                    \
         {.matmul = {.transpose_b = true}},                                                                  \
         2,                                                                                                  \
         {DIMS(n, out), DIMS(in, out)},                                                                      \
         2.0 * n * in * out,                                                                                 \
         0},                                                                                                 \
    {                                                                                                        \
        "dense " tag " bwd_weights", LEATI_OP_MATMUL, {.matmul = {.transpose_a = true}}, 2,                  \
            {DIMS(n, in), DIMS(n, out)}, 2.0 * n *in *out, 0                                                 \
    }

#define POOL                                                                                                 \
    {                                                                                                        \
        .pooling = {.window = WINDOW(2, 2), .kind = LEATI_POOL_MAX }                                         \
    }
#define AVERAGE_SAME                                                                                         \
    {                                                                                                        \
        .pooling =                                                                                           \
        {.window = {.spatial = 2,                                                                            \
                    .kernel = {3, 3},                                                                        \
                    .stride = {1, 1},                                                                        \
                    .dilation = {1, 1},                                                                      \
                    .pad_before = {1, 1},                                                                    \
                    .pad_after = {1, 1}},                                                                    \
         .kind = LEATI_POOL_AVERAGE }                                                                        \
    }
#define AVERAGE_CASES(tag, n, side, c)                                                                       \
    {"average pool 3x3 " tag " fwd", LEATI_OP_POOLING, AVERAGE_SAME, 1, {DIMS(n, side, side, c)}, 0, 0}, {   \
        "average pool 3x3 " tag " bwd", LEATI_OP_POOLING_BWD, AVERAGE_SAME, 4,                               \
            {DIMS(n, side, side, c), DIMS(n, side, side, c), DIMS(n, side, side, c), DIMS(0)}, 0, 0          \
    }
#define LSTM_OF(train)                                                                                       \
    {                                                                                                        \
        .rnn =                                                                                               \
        {.activation = {LEATI_FN_TANH, 0, 0, 0},                                                             \
         .recurrent_activation = {LEATI_FN_SIGMOID, 0, 0, 0},                                                \
         .training = train }                                                                                 \
    }
#define LSTM_CASES(tag, n)                                                                                   \
    {"lstm " tag " predict",                                                                                 \
     LEATI_OP_RNN,                                                                                           \
     LSTM_OF(false),                                                                                         \
     4,                                                                                                      \
     {DIMS(n, 64, 8), DIMS(8, 256), DIMS(64, 256), DIMS(256)},                                               \
     2.0 * n * 64 * 256 * 72,                                                                                \
     4 | 8},                                                                                                 \
        {"lstm " tag " train fwd",                                                                           \
         LEATI_OP_RNN,                                                                                       \
         LSTM_OF(true),                                                                                      \
         4,                                                                                                  \
         {DIMS(n, 64, 8), DIMS(8, 256), DIMS(64, 256), DIMS(256)},                                           \
         2.0 * n * 64 * 256 * 72,                                                                            \
         1 | 4},                                                                                             \
    {                                                                                                        \
        "lstm " tag " train bwd", LEATI_OP_RNN_BWD, LSTM_OF(true),                                           \
            LEATI_RNN_BWD_INPUTS, {DIMS(n, 64, 8),   DIMS(8, 256),    DIMS(64, 256), DIMS(256), ABSENT,      \
                                   ABSENT,           ABSENT,          ABSENT,        ABSENT,    ABSENT,      \
                                   DIMS(64, n, 320), DIMS(n, 64, 64), ABSENT,        ABSENT},                \
            2.0 * n * 64 * 256 * (64 + 72), 1 | 16 | 32                                                      \
    }

/* Of n samples with t steps; a mask is causal. */
#define ATTENTION_OF(d, train)                                                                               \
    {                                                                                                        \
        .attention = {.scale = 1 / (0.125f * d), .training = train }                                         \
    }
#define ATTENTION_CASES(tag, n, t, h, d, mask)                                                               \
    {"attention " tag " fwd",                                                                                \
     LEATI_OP_ATTENTION,                                                                                     \
     ATTENTION_OF(d, false),                                                                                 \
     LEATI_ATTENTION_INPUTS,                                                                                 \
     {DIMS(n, t, h, d), DIMS(n, t, h, d), DIMS(n, t, h, d), mask},                                           \
     4.0 * n * h * t * t * d,                                                                                \
     2},                                                                                                     \
    {                                                                                                        \
        "attention " tag " bwd", LEATI_OP_ATTENTION_BWD, ATTENTION_OF(d, true), LEATI_ATTENTION_BWD_INPUTS,  \
            {DIMS(n, t, h, d), DIMS(n, t, h, d), DIMS(n, t, h, d), mask,                                     \
             DIMS(n, t, h, d), DIMS(n, h, t),    DIMS(n, t, h, d)},                                          \
            10.0 * n *h *t *t *d, 0                                                                          \
    }

#define FUNCTION_CASES(tag, function, a_)                                                                    \
    {tag " 64x4096", LEATI_OP_ELTWISE, {.eltwise = {function, a_, 0, 0}}, 1, {DIMS(64, 4096)}, 0, 0}, {      \
        tag "_bwd 64x4096", LEATI_OP_ELTWISE_BWD, {.eltwise = {function, a_, 0, 0}}, 2,                      \
            {DIMS(64, 4096), DIMS(64, 4096)}, 0, 0                                                           \
    }

#define NORM_CASES(tag, samples_, channels_, groups_, src, channel, moments)                                 \
    {tag " fwd", LEATI_OP_GROUP_NORM,     {.group_norm = {samples_, 1e-3f, channels_, groups_}},             \
     3,          {src, channel, channel}, 0,                                                                 \
     0},                                                                                                     \
    {                                                                                                        \
        tag " bwd", LEATI_OP_GROUP_NORM_BWD, {.group_norm = {samples_, 1e-3f, channels_, groups_}}, 5,       \
            {src, channel, moments, moments, src}, 0, 0                                                      \
    }

#define BATCH_NORM_CASES(tag, n, side, c)                                                                    \
    {tag " fwd",                                                                                             \
     LEATI_OP_BATCH_NORM,                                                                                    \
     {.batch_norm = {1e-3f}},                                                                                \
     3,                                                                                                      \
     {DIMS(n, side, side, c), DIMS(c), DIMS(c)},                                                             \
     0,                                                                                                      \
     0},                                                                                                     \
    {                                                                                                        \
        tag " bwd", LEATI_OP_BATCH_NORM_BWD, {.batch_norm = {1e-3f}}, 5,                                     \
            {DIMS(n, side, side, c), DIMS(c), DIMS(c), DIMS(c), DIMS(n, side, side, c)}, 0, 0                \
    }

static const bench_case cases[] = {
    CONV_CASES("28x28x1 32, n 64", 64, 28, 1, 26, 32),
    CONV_CASES("26x26x32 64, n 64", 64, 26, 32, 24, 64),
    CONV_CASES("28x28x1 32, n 128", 128, 28, 1, 26, 32),
    CONV_CASES("26x26x32 64, n 128", 128, 26, 32, 24, 64),
    ANY_CONV_CASES("3x3 64->64 at 56, n 8", CUBE(2, 3, 1, 1, 1, 1), 1, SIDES(56, 56), DIMS(8, 56, 56, 64),
                   DIMS(3, 3, 64, 64), DIMS(8, 56, 56, 64), 2.0 * 8 * 3136 * 9 * 64 * 64),
    ANY_CONV_CASES("3x3 128->128 at 28, n 8", CUBE(2, 3, 1, 1, 1, 1), 1, SIDES(28, 28), DIMS(8, 28, 28, 128),
                   DIMS(3, 3, 128, 128), DIMS(8, 28, 28, 128), 2.0 * 8 * 784 * 9 * 128 * 128),
    ANY_CONV_CASES("3x3 256->256 at 14, n 8", CUBE(2, 3, 1, 1, 1, 1), 1, SIDES(14, 14), DIMS(8, 14, 14, 256),
                   DIMS(3, 3, 256, 256), DIMS(8, 14, 14, 256), 2.0 * 8 * 196 * 9 * 256 * 256),
    ANY_CONV_CASES("3x3 512->512 at 7, n 8", CUBE(2, 3, 1, 1, 1, 1), 1, SIDES(7, 7), DIMS(8, 7, 7, 512),
                   DIMS(3, 3, 512, 512), DIMS(8, 7, 7, 512), 2.0 * 8 * 49 * 9 * 512 * 512),
    ANY_CONV_CASES("3x3x3 3->16 at 16x56x56, n 4", CUBE(3, 3, 1, 1, 1, 1), 1, SIDES(16, 56, 56),
                   DIMS(4, 16, 56, 56, 3), DIMS(3, 3, 3, 3, 16), DIMS(4, 16, 56, 56, 16),
                   2.0 * 4 * 50176 * 27 * 3 * 16),
    ANY_CONV_CASES("3x3x3 16->32 at 8x28x28, n 4", CUBE(3, 3, 1, 1, 1, 1), 1, SIDES(8, 28, 28),
                   DIMS(4, 8, 28, 28, 16), DIMS(3, 3, 3, 16, 32), DIMS(4, 8, 28, 28, 32),
                   2.0 * 4 * 6272 * 27 * 16 * 32),
    ANY_CONV_CASES("3x3x3 64->64 at 4x14x14, n 4", CUBE(3, 3, 1, 1, 1, 1), 1, SIDES(4, 14, 14),
                   DIMS(4, 4, 14, 14, 64), DIMS(3, 3, 3, 64, 64), DIMS(4, 4, 14, 14, 64),
                   2.0 * 4 * 784 * 27 * 64 * 64),
    ANY_CONV_CASES("1x1 64->64 at 56, n 8", CUBE(2, 1, 1, 1, 0, 0), 1, SIDES(56, 56), DIMS(8, 56, 56, 64),
                   DIMS(1, 1, 64, 64), DIMS(8, 56, 56, 64), 2.0 * 8 * 3136 * 64 * 64),
    ANY_CONV_CASES("1x1 64->256 at 56, n 8", CUBE(2, 1, 1, 1, 0, 0), 1, SIDES(56, 56), DIMS(8, 56, 56, 64),
                   DIMS(1, 1, 64, 256), DIMS(8, 56, 56, 256), 2.0 * 8 * 3136 * 64 * 256),
    ANY_CONV_CASES("1x1 256->64 at 56, n 8", CUBE(2, 1, 1, 1, 0, 0), 1, SIDES(56, 56), DIMS(8, 56, 56, 256),
                   DIMS(1, 1, 256, 64), DIMS(8, 56, 56, 64), 2.0 * 8 * 3136 * 256 * 64),
    ANY_CONV_CASES("1x1 256->1024 at 14, n 8", CUBE(2, 1, 1, 1, 0, 0), 1, SIDES(14, 14), DIMS(8, 14, 14, 256),
                   DIMS(1, 1, 256, 1024), DIMS(8, 14, 14, 1024), 2.0 * 8 * 196 * 256 * 1024),
    ANY_CONV_CASES("1x1 1024->256 at 14, n 8", CUBE(2, 1, 1, 1, 0, 0), 1, SIDES(14, 14),
                   DIMS(8, 14, 14, 1024), DIMS(1, 1, 1024, 256), DIMS(8, 14, 14, 256),
                   2.0 * 8 * 196 * 1024 * 256),
    ANY_CONV_CASES("1x1 2048->512 at 7, n 8", CUBE(2, 1, 1, 1, 0, 0), 1, SIDES(7, 7), DIMS(8, 7, 7, 2048),
                   DIMS(1, 1, 2048, 512), DIMS(8, 7, 7, 512), 2.0 * 8 * 49 * 2048 * 512),
    ANY_CONV_CASES("depthwise 28x28x128, n 16", CUBE(2, 3, 1, 1, 1, 1), 128, SIDES(28, 28),
                   DIMS(16, 28, 28, 128), DIMS(3, 3, 1, 128), DIMS(16, 28, 28, 128),
                   2.0 * 16 * 784 * 9 * 128),
    ANY_CONV_CASES("depthwise 5x5 28x28x128, n 16", CUBE(2, 5, 1, 1, 2, 2), 128, SIDES(28, 28),
                   DIMS(16, 28, 28, 128), DIMS(5, 5, 1, 128), DIMS(16, 28, 28, 128),
                   2.0 * 16 * 784 * 25 * 128),
    ANY_CONV_CASES("depthwise 28x28x64 by 2, n 16", CUBE(2, 3, 1, 1, 1, 1), 64, SIDES(28, 28),
                   DIMS(16, 28, 28, 64), DIMS(3, 3, 1, 128), DIMS(16, 28, 28, 128), 2.0 * 16 * 784 * 9 * 128),
    ANY_CONV_CASES("depthwise 512x64, one axis, n 16", CUBE(1, 5, 1, 1, 2, 2), 64, SIDES(512),
                   DIMS(16, 512, 64), DIMS(5, 1, 64), DIMS(16, 512, 64), 2.0 * 16 * 512 * 5 * 64),
    ANY_CONV_CASES("depthwise 28x28x128 dilated, n 16", CUBE(2, 3, 1, 2, 2, 2), 128, SIDES(28, 28),
                   DIMS(16, 28, 28, 128), DIMS(3, 3, 1, 128), DIMS(16, 28, 28, 128),
                   2.0 * 16 * 784 * 9 * 128),
    ANY_CONV_CASES("32 groups 14x14x256, n 16", CUBE(2, 3, 1, 1, 1, 1), 32, SIDES(14, 14),
                   DIMS(16, 14, 14, 256), DIMS(3, 3, 8, 256), DIMS(16, 14, 14, 256),
                   2.0 * 16 * 196 * 9 * 8 * 256),
    ANY_CONV_CASES("dilated 28x28x64, n 16", CUBE(2, 3, 1, 2, 2, 2), 1, SIDES(28, 28), DIMS(16, 28, 28, 64),
                   DIMS(3, 3, 64, 64), DIMS(16, 28, 28, 64), 2.0 * 16 * 784 * 9 * 64 * 64),
    ANY_CONV_CASES("causal 512x64 dilated, n 16", CUBE(1, 2, 1, 8, 8, 0), 1, SIDES(512), DIMS(16, 512, 64),
                   DIMS(2, 64, 64), DIMS(16, 512, 64), 2.0 * 16 * 512 * 2 * 64 * 64),
    ANY_CONV_CASES("three axes 16x16x16x16 32, n 2", CUBE(3, 3, 1, 1, 1, 1), 1, SIDES(16, 16, 16),
                   DIMS(2, 16, 16, 16, 16), DIMS(3, 3, 3, 16, 32), DIMS(2, 16, 16, 16, 32),
                   2.0 * 2 * 4096 * 27 * 16 * 32),
    ANY_CONV_CASES("28x28x64 stride 2 128, n 16", CUBE(2, 4, 2, 1, 1, 1), 1, SIDES(28, 28),
                   DIMS(16, 28, 28, 64), DIMS(4, 4, 64, 128), DIMS(16, 14, 14, 128),
                   2.0 * 16 * 196 * 16 * 64 * 128),
    ANY_CONV_CASES("128x16 64, one axis, n 64", CUBE(1, 5, 1, 1, 0, 0), 1, SIDES(128), DIMS(64, 128, 16),
                   DIMS(5, 16, 64), DIMS(64, 124, 64), 2.0 * 64 * 124 * 5 * 16 * 64),
    ANY_CONV_CASES("124x64 64, one axis, n 64", CUBE(1, 5, 1, 1, 0, 0), 1, SIDES(124), DIMS(64, 124, 64),
                   DIMS(5, 64, 64), DIMS(64, 120, 64), 2.0 * 64 * 120 * 5 * 64 * 64),
    ANY_CONV_CASES("3x3 4->64 at 32, n 512", CUBE(2, 3, 1, 1, 1, 1), 1, SIDES(32, 32), DIMS(512, 32, 32, 4),
                   DIMS(3, 3, 4, 64), DIMS(512, 32, 32, 64), 2.0 * 512 * 1024 * 9 * 4 * 64),
    ANY_CONV_CASES("3x3 16->64 at 32, n 64", CUBE(2, 3, 1, 1, 1, 1), 1, SIDES(32, 32), DIMS(64, 32, 32, 16),
                   DIMS(3, 3, 16, 64), DIMS(64, 32, 32, 64), 2.0 * 64 * 1024 * 9 * 16 * 64),
    ANY_CONV_CASES("5x5 16->64 at 28, n 16", CUBE(2, 5, 1, 1, 2, 2), 1, SIDES(28, 28), DIMS(16, 28, 28, 16),
                   DIMS(5, 5, 16, 64), DIMS(16, 28, 28, 64), 2.0 * 16 * 784 * 25 * 16 * 64),
    ANY_CONV_CASES("3x3 16->16 at 32, n 64", CUBE(2, 3, 1, 1, 1, 1), 1, SIDES(32, 32), DIMS(64, 32, 32, 16),
                   DIMS(3, 3, 16, 16), DIMS(64, 32, 32, 16), 2.0 * 64 * 1024 * 9 * 16 * 16),
    ANY_CONV_CASES("3x3 32->48 at 28, n 16", CUBE(2, 3, 1, 1, 1, 1), 1, SIDES(28, 28), DIMS(16, 28, 28, 32),
                   DIMS(3, 3, 32, 48), DIMS(16, 28, 28, 48), 2.0 * 16 * 784 * 9 * 32 * 48),
    {"patches 3x3 of 14x14x64, n 32", LEATI_OP_PATCHES, CONV(3), 1, {DIMS(32, 14, 14, 64)}, 0, 0},
    {"patches_bwd 3x3 of 14x14x64, n 32",
     LEATI_OP_PATCHES_BWD,
     {.conv = {.window = WINDOW(3, 1), .size = {14, 14}}},
     1,
     {DIMS(144, 32, 576)},
     0,
     0},
    {"broadcast to 16x28x28x64 pairs",
     LEATI_OP_BROADCAST,
     {.shape = {5, {16, 28, 28, 64, 2}}},
     1,
     {DIMS(16, 28, 28, 64, 1)},
     0,
     0},
    {"sum of 16x28x28x64 pairs",
     LEATI_OP_REDUCE,
     {.reduce = {LEATI_REDUCE_SUM, 16, false}},
     1,
     {DIMS(16, 28, 28, 64, 2)},
     0,
     0},
    {"matmul 144 of 32x576 by 576x64",
     LEATI_OP_MATMUL,
     {0},
     2,
     {DIMS(144, 32, 576), DIMS(144, 576, 64)},
     2.0 * 144 * 32 * 576 * 64,
     0},
    {"pool 24x24x64, n 128 fwd", LEATI_OP_POOLING, POOL, 1, {DIMS(128, 24, 24, 64)}, 0, 0},
    {"pool 24x24x64, n 128 bwd",
     LEATI_OP_POOLING_BWD,
     POOL,
     4,
     {DIMS(128, 24, 24, 64), DIMS(128, 12, 12, 64), DIMS(128, 12, 12, 64), DIMS(0)},
     0,
     0},
    AVERAGE_CASES("56x56x11, n 1", 1, 56, 11),
    AVERAGE_CASES("28x28x44, n 1", 1, 28, 44),
    AVERAGE_CASES("14x14x88, n 8", 8, 14, 88),
    {"pool 3x3, stride 2, 113x113x64, n 1 fwd",
     LEATI_OP_POOLING,
     {.pooling = {.window = WINDOW(3, 2), .kind = LEATI_POOL_MAX}},
     1,
     {DIMS(1, 113, 113, 64)},
     0,
     0},
    BATCH_NORM_CASES("batch norm 24x24x64, n 128", 128, 24, 64),
    BATCH_NORM_CASES("batch norm 112x112x64, n 8", 8, 112, 64),
    BATCH_NORM_CASES("batch norm 56x56x64, n 8", 8, 56, 64),
    BATCH_NORM_CASES("batch norm 56x56x256, n 8", 8, 56, 256),
    BATCH_NORM_CASES("batch norm 28x28x128, n 8", 8, 28, 128),
    BATCH_NORM_CASES("batch norm 28x28x512, n 8", 8, 28, 512),
    BATCH_NORM_CASES("batch norm 14x14x256, n 8", 8, 14, 256),
    BATCH_NORM_CASES("batch norm 14x14x1024, n 8", 8, 14, 1024),
    BATCH_NORM_CASES("batch norm 7x7x512, n 8", 8, 7, 512),
    BATCH_NORM_CASES("batch norm 7x7x2048, n 8", 8, 7, 2048),
    BATCH_NORM_CASES("batch norm 28x28x36, n 8", 8, 28, 36),
    ANY_CONV_CASES("depthwise 16x16x16x32, n 2", CUBE(3, 3, 1, 1, 1, 1), 32, SIDES(16, 16, 16),
                   DIMS(2, 16, 16, 16, 32), DIMS(3, 3, 3, 1, 32), DIMS(2, 16, 16, 16, 32),
                   2.0 * 2 * 4096 * 27 * 32),
    ANY_CONV_CASES("4 groups of 3, 56x56x12, n 16", CUBE(2, 3, 1, 1, 1, 1), 4, SIDES(56, 56),
                   DIMS(16, 56, 56, 12), DIMS(3, 3, 3, 12), DIMS(16, 56, 56, 12), 2.0 * 16 * 3136 * 27 * 12),
    NORM_CASES("layer norm 4096x256", 1, 256, 1, DIMS(4096, 256), DIMS(256), DIMS(4096, 1)),
    NORM_CASES("group norm 16x28x28x128, 32 groups", 1, 128, 32, DIMS(16, 28, 28, 128), DIMS(128),
               DIMS(16, 32)),
    DENSE_CASES("9216 128, n 64", 64, 9216, 128),
    DENSE_CASES("9216 128, n 128", 128, 9216, 128),
    DENSE_CASES("128 10, n 128", 128, 128, 10),
    DENSE_CASES("64 128, n 1", 1, 64, 128),
    DENSE_CASES("128 128, n 1", 1, 128, 128),
    DENSE_CASES("128 4, n 1", 1, 128, 4),
    DENSE_CASES("128 128, n 2", 2, 128, 128),
    DENSE_CASES("128 128, n 4", 4, 128, 128),
    DENSE_CASES("128 128, n 8", 8, 128, 128),
    DENSE_CASES("128 128, n 12", 12, 128, 128),
    DENSE_CASES("256 512, n 4", 4, 256, 512),
    DENSE_CASES("256 512, n 12", 12, 256, 512),
    DENSE_CASES("64 128, n 64", 64, 64, 128),
    DENSE_CASES("128 128, n 64", 64, 128, 128),
    DENSE_CASES("128 4, n 64", 64, 128, 4),
    DENSE_CASES("64 128, n 1024", 1024, 64, 128),
    DENSE_CASES("128 128, n 1024", 1024, 128, 128),
    DENSE_CASES("128 4, n 1024", 1024, 128, 4),
    LSTM_CASES("64x8 64, n 1", 1),
    LSTM_CASES("64x8 64, n 64", 64),
    LSTM_CASES("64x8 64, n 1024", 1024),
    {"relu 128x24x24x64",
     LEATI_OP_ELTWISE,
     {.eltwise = {LEATI_FN_RELU, 0, 1e38f, 0}},
     1,
     {DIMS(128, 24, 24, 64)},
     0,
     0},
    {"relu_bwd 128x24x24x64",
     LEATI_OP_ELTWISE_BWD,
     {.eltwise = {LEATI_FN_RELU, 0, 1e38f, 0}},
     2,
     {DIMS(128, 24, 24, 64), DIMS(128, 24, 24, 64)},
     0,
     0},
    {"relu 64x128", LEATI_OP_ELTWISE, {.eltwise = {LEATI_FN_RELU, 0, 1e38f, 0}}, 1, {DIMS(64, 128)}, 0, 0},
    {"tanh 128x24x24x64",
     LEATI_OP_ELTWISE,
     {.eltwise = {LEATI_FN_TANH, 0, 0, 0}},
     1,
     {DIMS(128, 24, 24, 64)},
     0,
     0},
    FUNCTION_CASES("exp", LEATI_FN_EXP, 0),
    FUNCTION_CASES("log", LEATI_FN_LOG, 0),
    FUNCTION_CASES("sqrt", LEATI_FN_SQRT, 0),
    FUNCTION_CASES("abs", LEATI_FN_ABS, 0),
    FUNCTION_CASES("gelu", LEATI_FN_GELU, 0),
    FUNCTION_CASES("silu", LEATI_FN_SILU, 0),
    FUNCTION_CASES("pow -1/2", LEATI_FN_POW, -0.5f),
    {"tanh 1x128", LEATI_OP_ELTWISE, {.eltwise = {LEATI_FN_TANH, 0, 0, 0}}, 1, {DIMS(1, 128)}, 0, 0},
    {"add 128x24x24x64",
     LEATI_OP_BINARY,
     {.binary = {LEATI_ADD}},
     2,
     {DIMS(128, 24, 24, 64), DIMS(128, 24, 24, 64)},
     0,
     0},
    {"transpose 16x56x56x64 to channels first",
     LEATI_OP_TRANSPOSE,
     {.transpose = {{0, 3, 1, 2}}},
     1,
     {DIMS(16, 56, 56, 64)},
     0,
     0},
    {"transpose 16x3x224x224 to channels last",
     LEATI_OP_TRANSPOSE,
     {.transpose = {{0, 2, 3, 1}}},
     1,
     {DIMS(16, 3, 224, 224)},
     0,
     0},
    {"transpose 1024x1000", LEATI_OP_TRANSPOSE, {.transpose = {{1, 0}}}, 1, {DIMS(1024, 1000)}, 0, 0},
    {"transpose 32x128x8x64, heads",
     LEATI_OP_TRANSPOSE,
     {.transpose = {{0, 2, 1, 3}}},
     1,
     {DIMS(32, 128, 8, 64)},
     0,
     0},
    {"concat 32x28x28x 256 and 32",
     LEATI_OP_CONCAT,
     {.concat = {3}},
     2,
     {DIMS(32, 28, 28, 256), DIMS(32, 28, 28, 32)},
     0,
     0},
    {"cast 32x224x224x3 bytes",
     LEATI_OP_CAST,
     {.cast = {LEAT_F32, 1.0f / 255}},
     1,
     {{.dtype = LEAT_U8, .rank = 4, .shape = {32, 224, 224, 3}}},
     0,
     0},
    {"one_hot 256x1000",
     LEATI_OP_ONE_HOT,
     {.one_hot = {1000}},
     1,
     {{.dtype = LEAT_U8, .rank = 1, .shape = {256}}},
     0,
     0},
    {"bias gradient 1024x128",
     LEATI_OP_REDUCE,
     {.reduce = {LEATI_REDUCE_SUM, 1, false}},
     1,
     {DIMS(1024, 128)},
     0,
     0},
    {"bias gradient 128x24x24x64",
     LEATI_OP_REDUCE,
     {.reduce = {LEATI_REDUCE_SUM, 7, false}},
     1,
     {DIMS(128, 24, 24, 64)},
     0,
     0},
    {"sums of 200000x3",
     LEATI_OP_REDUCE,
     {.reduce = {LEATI_REDUCE_SUM, 1, false}},
     1,
     {DIMS(200000, 3)},
     0,
     0},
    {"sums of 32x196x64, axes apart",
     LEATI_OP_REDUCE,
     {.reduce = {LEATI_REDUCE_SUM, 5, false}},
     1,
     {DIMS(32, 196, 64)},
     0,
     0},
    {"maxima of 4096x128",
     LEATI_OP_REDUCE,
     {.reduce = {LEATI_REDUCE_MAX, 2, false}},
     1,
     {DIMS(4096, 128)},
     0,
     0},
    {"maxima of 32x196x64, middle",
     LEATI_OP_REDUCE,
     {.reduce = {LEATI_REDUCE_MAX, 2, false}},
     1,
     {DIMS(32, 196, 64)},
     0,
     0},
    {"add 200000x3 and 3", LEATI_OP_BINARY, {.binary = {LEATI_ADD}}, 2, {DIMS(200000, 3), DIMS(3)}, 0, 0},
    {"mul 32x196x64 and 32x1x64",
     LEATI_OP_BINARY,
     {.binary = {LEATI_MUL}},
     2,
     {DIMS(32, 196, 64), DIMS(32, 1, 64)},
     0,
     0},
    {"mul 32x196x64 and 32x196x1",
     LEATI_OP_BINARY,
     {.binary = {LEATI_MUL}},
     2,
     {DIMS(32, 196, 64), DIMS(32, 196, 1)},
     0,
     0},
    {"add 32x8x196x16 and 1x8x1x16",
     LEATI_OP_BINARY,
     {.binary = {LEATI_ADD}},
     2,
     {DIMS(32, 8, 196, 16), DIMS(1, 8, 1, 16)},
     0,
     0},
    {"dropout 128x12x12x64, shared",
     LEATI_OP_DROPOUT,
     {.dropout = {0.25f, 6, 7}},
     1,
     {DIMS(128, 12, 12, 64)},
     0,
     0},
    {"dropout 128x12x12x64", LEATI_OP_DROPOUT, {.dropout = {0.25f, 0, 7}}, 1, {DIMS(128, 12, 12, 64)}, 0, 0},
    {"adam 1200000",
     LEATI_OP_UPDATE_ADAM,
     {0},
     5,
     {DIMS(4), DIMS(1200000), DIMS(1200000), DIMS(1200000), DIMS(1200000)},
     0,
     0},
    {"adam 25000",
     LEATI_OP_UPDATE_ADAM,
     {0},
     5,
     {DIMS(4), DIMS(25000), DIMS(25000), DIMS(25000), DIMS(25000)},
     0,
     0},
    {"softmax 128x10", LEATI_OP_SOFTMAX, {.softmax = {1, false}}, 1, {DIMS(128, 10)}, 0, 0},
    {"softmax 4096x128", LEATI_OP_SOFTMAX, {.softmax = {1, false}}, 1, {DIMS(4096, 128)}, 0, 0},
    {"softmax 32x100x64, middle", LEATI_OP_SOFTMAX, {.softmax = {1, false}}, 1, {DIMS(32, 100, 64)}, 0, 0},
    {"softmax_bwd 4096x128",
     LEATI_OP_SOFTMAX_BWD,
     {.softmax = {1, false}},
     2,
     {DIMS(4096, 128), DIMS(4096, 128)},
     0,
     0},
    {"softmax_xent 64x1000", LEATI_OP_SOFTMAX_XENT, {0}, 2, {DIMS(64, 1000), DIMS(64, 1000)}, 0, 0},
    ATTENTION_CASES("64x4x48, n 32", 32, 64, 4, 48, ABSENT),
    ATTENTION_CASES("200x2x32, n 32", 32, 200, 2, 32, ABSENT),
    ATTENTION_CASES("128x4x64, n 32, causal", 32, 128, 4, 64, DIMS(1, 128, 128)),
    ATTENTION_CASES("1024x8x64, n 1", 1, 1024, 8, 64, ABSENT),
    ATTENTION_CASES("64x4x48, n 1", 1, 64, 4, 48, ABSENT),
    {"argmax 64x1000", LEATI_OP_ARGMAX, {.argmax = {1}}, 1, {DIMS(64, 1000)}, 0, 0},
};

typedef struct buffers {
    void *args[LEATI_MAX_INPUTS + LEATI_MAX_OUTPUTS];
    size_t read, written; /* bytes */
} buffers;

static void die(const char *what, const leat_error *err) {
    fprintf(stderr, "bench_ops: %s: %s\n", what, err ? err->message : "out of memory");
    exit(1);
}

static void *filled(size_t bytes, leat_rng *rng) {
    float *data = leati_calloc_aligned(bytes > 0 ? bytes : 64);
    if (!data) die("a buffer", NULL);
    for (size_t i = 0; i < bytes / sizeof *data; i++)
        data[i] = (float)leat_rng_uniform(rng) * 0.9f + 0.05f; /* suitable for gates and variances, too */
    return data;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool count_processor_time, print_json;
static leati_thread_pool *pool;

static int64_t clock_ns(void) {
    struct timespec now;
    if (!count_processor_time) return leati_now_ns();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Measures for about a third of a second: the fastest and median nanoseconds of a run.  pack keeps packed weights. */
static void time_kernel(const leati_kernel *kernel, void *const *args, void *scratch, void *pack,
                        double *best, double *median) {
    leati_run run = {.seed = 1, .step = 1, .scratch = scratch, .pack = pack, .pool = pool};
    leat_error err = {0};
    double samples[101];
    int count = 0, inner = 1;
    for (int64_t start = leati_now_ns(); count < 101 && (count < 3 || leati_now_ns() - start < 300000000);) {
        int64_t before = clock_ns();
        for (int i = 0; i < inner; i++)
            if (kernel->run(kernel, args, &run, &err) != LEAT_OK) die(kernel->implementation, &err);
        run.packed = pack != NULL;
        double spent = (double)(clock_ns() - before);
        if (spent < 20000 && count == 0) {
            inner *= 2; /* so that a sample is long enough for the clock */
            continue;
        }
        samples[count++] = spent / inner;
    }
    qsort(samples, (size_t)count, sizeof samples[0], by_value);
    *best = samples[0];
    *median = samples[count / 2];
}

/* Fills a mask (1, T, S): step t reads the steps up to t. */
static void fill_causal(float *mask, const leati_desc *desc) {
    for (int64_t i = 0; i < leati_desc_count(desc); i++)
        mask[i] = i % desc->shape[2] <= i / desc->shape[2] ? 1.0f : 0.0f;
}

static buffers make_buffers(const leati_task *task, const leati_kernel *kernel, const leati_kernel *forward) {
    leat_rng rng = leat_rng_for(1, 2, 3);
    buffers b = {0};
    for (int i = 0; i < task->input_count; i++) {
        if (task->inputs[i].rank < 0) continue;
        size_t bytes = leati_desc_bytes(&task->inputs[i]);
        if (task->op == LEATI_OP_POOLING_BWD && i == 3 && forward) bytes = forward->output_bytes[1];
        b.args[i] = filled(bytes, &rng);
        if (task->op == LEATI_OP_POOLING_BWD && i == 3 && bytes)
            memset(b.args[i], 0, bytes); /* the maximum is the first element of each window */
        if ((task->op == LEATI_OP_ATTENTION || task->op == LEATI_OP_ATTENTION_BWD) &&
            i == LEATI_ATTENTION_MASK)
            fill_causal(b.args[i], &task->inputs[i]);
        b.read += bytes;
    }
    for (int i = 0; i < task->output_count; i++) {
        size_t bytes =
            kernel->output_bytes[i] ? kernel->output_bytes[i] : leati_desc_bytes(&task->outputs[i]);
        if (task->unused >> i & 1) continue;
        b.args[task->input_count + i] = filled(bytes, &rng);
        b.written += bytes;
    }
    return b;
}

static void print_time(const bench_case *c, const char *implementation, bool packed, double ns, double median,
                       const buffers *b) {
    if (print_json)
        printf("{\"case\": \"%s\", \"op\": \"%s\", \"kernel\": \"%s\", \"packed\": %s, \"ns\": %.1f, "
               "\"median\": %.1f, "
               "\"flops\": %.0f, \"read\": %zu, \"written\": %zu}\n",
               c->name, leati_op_descriptor_of(c->op)->name, implementation, packed ? "true" : "false", ns,
               median, c->flops, b->read, b->written);
    else
        printf("%-36s %-24s %-7s %10.2f %10.2f us %8.1f %s\n", c->name, implementation,
               packed ? "packed" : "", ns / 1e3, median / 1e3,
               (c->flops > 0 ? c->flops : (double)(b->read + b->written)) / ns,
               c->flops > 0 ? "GF/s" : "GB/s");
}

static void bench_implementation(const bench_case *c, leati_task *task,
                                 const leati_implementation *implementation,
                                 const leati_implementation *forward_of) {
    leati_kernel kernel = {0}, forward = {0};
    char why[LEATI_REASON_BYTES] = "";
    leat_error err = {0};
    leati_desc pooled[2];
    if (forward_of) {
        leati_task f = *task;
        f.op = LEATI_OP_POOLING;
        f.input_count = 1, f.output_count = 2;
        pooled[0] = task->inputs[1], pooled[1] = task->inputs[3];
        f.outputs = pooled;
        if (forward_of->prepare(&f, &forward, why, &err) != LEAT_OK) die(c->name, &err);
        if (forward.run) task->forward = &forward;
    }
    if (implementation->prepare(task, &kernel, why, &err) != LEAT_OK) die(c->name, &err);
    if (!kernel.run) {
        if (!print_json) printf("%-36s declined: %s\n", c->name, why);
    } else {
        buffers b = make_buffers(task, &kernel, task->forward);
        void *scratch = leati_calloc_aligned(kernel.scratch_bytes + 64);
        void *pack = kernel.pack_bytes ? leati_calloc_aligned(kernel.pack_bytes) : NULL;
        for (int kept = 0; kept <= (pack != NULL); kept++) {
            double ns, median;
            time_kernel(&kernel, b.args, scratch, kept ? pack : NULL, &ns, &median);
            print_time(c, kernel.implementation, kept, ns, median, &b);
        }
        leati_free(pack);
        for (int i = 0; i < task->input_count + task->output_count; i++) leati_free(b.args[i]);
        leati_free(scratch);
    }
    fflush(stdout);
    if (kernel.destroy) kernel.destroy(kernel.state);
    if (forward.destroy) forward.destroy(forward.state);
    task->forward = NULL;
}

static const leati_implementation *find(const leati_backend *backend, leati_op op) {
    for (size_t i = 0; i < backend->count; i++)
        if (backend->implementations[i].op == op) return &backend->implementations[i];
    return NULL;
}

static void bench(const bench_case *c, int threads, bool with_ref) {
    leati_desc outputs[LEATI_MAX_OUTPUTS] = {0};
    const leati_op_descriptor *descriptor = leati_op_descriptor_of(c->op);
    leat_error err = {0};
    leati_desc inputs[LEATI_RNN_BWD_INPUTS];
    for (int i = 0; i < LEATI_RNN_BWD_INPUTS; i++)
        inputs[i] = i < c->input_count ? c->inputs[i] : (leati_desc)ABSENT;
    if (c->op == LEATI_OP_POOLING_BWD) inputs[3].dtype = LEAT_U8;
    int input_count = descriptor->optional ? descriptor->max_inputs : c->input_count; /* as in the graph */
    leati_task task = {.op = c->op,
                       .attrs = &c->attrs,
                       .input_count = input_count,
                       .inputs = inputs,
                       .output_count = descriptor->outputs,
                       .outputs = outputs,
                       .threads = threads,
                       .unused = c->unused};
    if (descriptor->infer(&c->attrs, input_count, inputs, outputs, &err) != LEAT_OK) die(c->name, &err);
    for (size_t b = 0; leati_backends[b]; b++) {
        if (strcmp(leati_backends[b]->name, "ref") == 0 && !with_ref) continue;
        for (size_t i = 0; i < leati_backends[b]->count; i++)
            if (leati_backends[b]->implementations[i].op == c->op)
                bench_implementation(c, &task, &leati_backends[b]->implementations[i],
                                     c->op == LEATI_OP_POOLING_BWD ? find(leati_backends[b], LEATI_OP_POOLING)
                                                                   : NULL);
    }
}

int main(int argc, char **argv) {
    int threads = leati_core_count(), first = 1;
    bool with_ref = false;
    for (; first < argc && argv[first][0] == '-'; first++) {
        if (strcmp(argv[first], "--ref") == 0)
            with_ref = true;
        else if (strcmp(argv[first], "--cpu") == 0)
            count_processor_time = true;
        else if (strcmp(argv[first], "--json") == 0)
            print_json = true;
        else if (strcmp(argv[first], "--threads") == 0 && first + 1 < argc)
            threads = atoi(argv[++first]);
        else
            return fprintf(stderr, "usage: bench_ops [--threads N] [--ref] [--cpu] [--json] [WORD...]\n"), 2;
    }
    if (threads < 1) return fprintf(stderr, "bench_ops: expected --threads >= 1\n"), 2;
    leat_error err = {0};
    if (leati_thread_pool_create(&pool, &err) != LEAT_OK ||
        leati_thread_pool_reserve(pool, threads, &err) != LEAT_OK)
        die("threads", &err);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool chosen = first == argc;
        for (int w = first; w < argc; w++) chosen = chosen || strstr(cases[i].name, argv[w]);
        if (chosen) bench(&cases[i], threads, with_ref);
    }
    leati_thread_pool_destroy(&pool);
    return 0;
}
