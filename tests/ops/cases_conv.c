/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution in a graph; test_compute.c has more shapes. */
#include <math.h>

#include "ops/harness.h"

#define W2(k, s, d, before, after)                                                                           \
    .window = {.spatial = 2,                                                                                 \
               .kernel = {k, k},                                                                             \
               .stride = {s, s},                                                                             \
               .dilation = {d, d},                                                                           \
               .pad_before = {before, before},                                                               \
               .pad_after = {after, after}}

/* Followed by a function, which is fused where the backend can. */
#define FUSED(title, corners, f, pa, pb)                                                                     \
    {                                                                                                        \
        .name = "conv, then " title, .op = LEATI_OP_CONV,                                                    \
        .attrs = {.conv = {W2(3, 1, 1, 1, 1), .groups = 1}}, .input_count = 3,                               \
        .inputs = {OP_F32(2, 4, 4, 3), OP_F32(3, 3, 3, 9), OP_F32(9)},                                       \
        .then = &(const leati_eltwise){.function = (f), .a = (pa), .b = (pb)}, .bends = (corners)            \
    }

/* Filters are whole panels, which backends/native supports. */
#define FUSED_PANELS(title, size, side, f, pa, pb)                                                           \
    {                                                                                                        \
        .name = "conv of panels, then " title, .op = LEATI_OP_CONV,                                          \
        .attrs = {.conv = {W2(size, 1, 1, (size) / 2, (size) / 2), .groups = 1}}, .input_count = 3,          \
        .inputs = {OP_F32(1, side, side, 32), OP_F32(size, size, 32, 32), OP_F32(32)},                       \
        .then = &(const leati_eltwise){.function = (f), .a = (pa), .b = (pb)}, .bends = true                 \
    }

/* Shapes at the edges of a GPU's tiles: a window of `size`, without padding. */
#define TILES(title, side, channels, filters, size, step, apart)                                             \
    {                                                                                                        \
        .name = "conv in tiles, " title, .op = LEATI_OP_CONV,                                                \
        .attrs = {.conv = {W2(size, step, apart, 0, 0), .groups = 1}}, .input_count = 3,                     \
        .inputs = {OP_F32(1, side, side, channels), OP_F32(size, size, channels, filters), OP_F32(filters)}, \
        .bends = true                                                                                        \
    }

/* Single pixels, more than a dense layer has, whose filters do not fill vectors. */
#define FUSED_REMAINDER(title, filters, f, pa, pb)                                                           \
    {                                                                                                        \
        .name = "conv of " #filters " filters, then " title, .op = LEATI_OP_CONV,                            \
        .attrs = {.conv = {W2(1, 1, 1, 0, 0), .groups = 1}}, .input_count = 3,                               \
        .inputs = {OP_F32(1, 9, 9, 9), OP_F32(1, 1, 9, filters), OP_F32(filters)},                           \
        .then = &(const leati_eltwise){.function = (f), .a = (pa), .b = (pb)}, .bends = true                 \
    }

/* Whole panels again, with strides. */
#define STEPS_OF_PANELS(size, side)                                                                          \
    {                                                                                                        \
        .name = "conv of panels, stride 2, window of " #size, .op = LEATI_OP_CONV,                           \
        .attrs = {.conv = {W2(size, 2, 1, (size) / 2, (size) / 2), .groups = 1}}, .input_count = 3,          \
        .inputs = {OP_F32(2, side, side, 32), OP_F32(size, size, 32, 32), OP_F32(32)},                       \
    }

const op_case cases_conv[] = {
    {.name = "conv 3x3 valid",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {W2(3, 1, 1, 0, 0), .groups = 1}},
     .input_count = 3,
     .inputs = {OP_F32(2, 5, 4, 3), OP_F32(3, 3, 3, 4), OP_F32(4)}},
    {.name = "conv 3x3 same, stride 2, no bias",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {W2(3, 2, 1, 0, 1), .groups = 1}},
     .input_count = 2,
     .inputs = {OP_F32(2, 4, 4, 2), OP_F32(3, 3, 2, 3)}},
    {.name = "conv dilated",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {W2(2, 1, 2, 0, 0), .groups = 1}},
     .input_count = 3,
     .inputs = {OP_F32(1, 5, 5, 2), OP_F32(2, 2, 2, 8), OP_F32(8)}},
    {.name = "conv depthwise, two filters a channel",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {W2(3, 1, 1, 1, 1), .groups = 3}},
     .input_count = 3,
     .inputs = {OP_F32(2, 4, 4, 3), OP_F32(3, 3, 1, 6), OP_F32(6)}},
    {.name = "conv one axis",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {.window = {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {1}},
                        .groups = 1}},
     .input_count = 3,
     .inputs = {OP_F32(2, 6, 3), OP_F32(3, 3, 4), OP_F32(4)}},
    {.name = "conv three axes, groups, dilated",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {.window = {.spatial = 3,
                                   .kernel = {2, 1, 2},
                                   .stride = {1, 1, 1},
                                   .dilation = {1, 1, 2},
                                   .pad_after = {1, 0, 1}},
                        .groups = 2}},
     .input_count = 3,
     .inputs = {OP_F32(1, 3, 2, 4, 4), OP_F32(2, 1, 2, 2, 6), OP_F32(6)}},
    {.name = "conv of 45 products, uneven padding, stride 2",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {W2(3, 2, 1, 0, 1), .groups = 1}},
     .input_count = 3,
     .inputs = {OP_F32(2, 4, 6, 5), OP_F32(3, 3, 5, 6), OP_F32(6)}},
    {.name = "conv of 45 products, more padding before, dilated",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {W2(3, 1, 2, 3, 1), .groups = 1}},
     .input_count = 3,
     .inputs = {OP_F32(1, 4, 3, 5), OP_F32(3, 3, 5, 2), OP_F32(2)}},
    {.name = "conv of 36 products, stride 2, a row left over",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {W2(2, 2, 1, 0, 0), .groups = 1}},
     .input_count = 2,
     .inputs = {OP_F32(2, 5, 4, 9), OP_F32(2, 2, 9, 8)}},
    {.name = "conv of one axis, causal, 48 products",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {.window =
                            {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {2}, .pad_before = {4}},
                        .groups = 1}},
     .input_count = 3,
     .inputs = {OP_F32(2, 6, 16), OP_F32(3, 16, 8), OP_F32(8)}},
    {.name = "conv of one axis, 5 taps of panels, then leaky relu",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {.window = {.spatial = 1,
                                   .kernel = {5},
                                   .stride = {1},
                                   .dilation = {1},
                                   .pad_before = {2},
                                   .pad_after = {2}},
                        .groups = 1}},
     .input_count = 3,
     .inputs = {OP_F32(2, 9, 32), OP_F32(5, 32, 32), OP_F32(32)},
     .then = &(const leati_eltwise){.function = LEATI_FN_RELU, .a = 0.25f, .b = INFINITY},
     .bends = true},
    {.name = "conv of one axis, 3 taps of panels, then relu6",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {.window = {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {1}},
                        .groups = 1}},
     .input_count = 3,
     .inputs = {OP_F32(2, 9, 32), OP_F32(3, 32, 32), OP_F32(32)},
     .then = &(const leati_eltwise){.function = LEATI_FN_RELU, .b = 6},
     .bends = true},
    {.name = "conv of three axes, 64 products",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {.window = {.spatial = 3,
                                   .kernel = {2, 2, 2},
                                   .stride = {1, 2, 1},
                                   .dilation = {1, 1, 1},
                                   .pad_after = {1, 0, 1}},
                        .groups = 1}},
     .input_count = 3,
     .inputs = {OP_F32(1, 2, 3, 2, 8), OP_F32(2, 2, 2, 8, 3), OP_F32(3)}},
    {.name = "conv of two groups, 45 products",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {W2(3, 1, 1, 1, 1), .groups = 2}},
     .input_count = 3,
     .inputs = {OP_F32(1, 3, 3, 10), OP_F32(3, 3, 5, 4), OP_F32(4)}},
    {.name = "conv depthwise, stride 2, eight channels",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {W2(3, 2, 1, 0, 1), .groups = 8}},
     .input_count = 3,
     .inputs = {OP_F32(2, 4, 6, 8), OP_F32(3, 3, 1, 8), OP_F32(8)}},
    {.name = "conv depthwise 5x5, sixteen channels",
     .op = LEATI_OP_CONV,
     .attrs = {.conv = {W2(5, 1, 1, 2, 2), .groups = 16}},
     .input_count = 2,
     .inputs = {OP_F32(1, 3, 6, 16), OP_F32(5, 5, 1, 16)}},
    {.name = "transposed of 45 products, uneven padding",
     .op = LEATI_OP_CONV_BWD_DATA,
     .attrs = {.conv = {W2(3, 2, 1, 0, 1), .groups = 1, .size = {4, 6}}},
     .input_count = 2,
     .inputs = {OP_F32(1, 2, 3, 5), OP_F32(3, 3, 8, 5)}},
    {.name = "transposed, one axis, stride 3",
     .op = LEATI_OP_CONV_BWD_DATA,
     .attrs = {.conv = {.window = {.spatial = 1, .kernel = {2}, .stride = {3}, .dilation = {1}},
                        .groups = 1,
                        .size = {12}}},
     .input_count = 2,
     .inputs = {OP_F32(2, 4, 3), OP_F32(2, 2, 3)}},
    {.name = "transposed 3x3, stride 2, same",
     .op = LEATI_OP_CONV_BWD_DATA,
     .attrs = {.conv = {W2(3, 2, 1, 0, 1), .groups = 1, .size = {6, 6}}},
     .input_count = 2,
     .inputs = {OP_F32(2, 3, 3, 3), OP_F32(3, 3, 4, 3)}},
    {.name = "transposed, dilated",
     .op = LEATI_OP_CONV_BWD_DATA,
     .attrs = {.conv = {W2(2, 1, 2, 0, 0), .groups = 1, .size = {5, 6}}},
     .input_count = 2,
     .inputs = {OP_F32(1, 3, 4, 8), OP_F32(2, 2, 2, 8)}},
    {.name = "transposed, groups",
     .op = LEATI_OP_CONV_BWD_DATA,
     .attrs = {.conv = {W2(2, 2, 1, 0, 0), .groups = 2, .size = {5, 4}}},
     .input_count = 2,
     .inputs = {OP_F32(1, 2, 2, 4), OP_F32(2, 2, 3, 4)}},
    {.name = "transposed, three axes",
     .op = LEATI_OP_CONV_BWD_DATA,
     .attrs = {.conv = {.window = {.spatial = 3,
                                   .kernel = {2, 3, 1},
                                   .stride = {2, 1, 1},
                                   .dilation = {1, 1, 1},
                                   .pad_before = {0, 1, 0},
                                   .pad_after = {0, 1, 0}},
                        .groups = 1,
                        .size = {4, 3, 2}}},
     .input_count = 2,
     .inputs = {OP_F32(1, 2, 3, 2, 3), OP_F32(2, 3, 1, 2, 3)}},
    {.name = "transposed, three axes, dilated",
     .op = LEATI_OP_CONV_BWD_DATA,
     .attrs = {.conv =
                   {.window = {.spatial = 3, .kernel = {2, 2, 2}, .stride = {1, 1, 1}, .dilation = {1, 2, 1}},
                    .groups = 1,
                    .size = {4, 6, 4}}},
     .input_count = 2,
     .inputs = {OP_F32(3, 3, 4, 3, 2), OP_F32(2, 2, 2, 2, 2)}},
    {.name = "patches 2x2, stride 2, a row left over",
     .op = LEATI_OP_PATCHES,
     .attrs = {.conv = {W2(2, 2, 1, 0, 0)}},
     .input_count = 1,
     .inputs = {OP_F32(2, 5, 4, 3)}},
    {.name = "patches 3x3, padding, dilation",
     .op = LEATI_OP_PATCHES,
     .attrs = {.conv = {W2(3, 1, 2, 2, 3)}},
     .input_count = 1,
     .inputs = {OP_F32(1, 3, 4, 2)}},
    {.name = "patches of one axis",
     .op = LEATI_OP_PATCHES,
     .attrs =
         {.conv =
              {.window = {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {1}, .pad_before = {1}}}},
     .input_count = 1,
     .inputs = {OP_F32(3, 5, 1)}},
    {.name = "patches of three axes",
     .op = LEATI_OP_PATCHES,
     .attrs = {.conv = {.window = {.spatial = 3,
                                   .kernel = {1, 2, 3},
                                   .stride = {1, 2, 1},
                                   .dilation = {1, 1, 1},
                                   .pad_before = {0, 1, 1},
                                   .pad_after = {1, 0, 1}}}},
     .input_count = 1,
     .inputs = {OP_F32(2, 2, 3, 3, 2)}},
    {.name = "patches_bwd 3x3, padding",
     .op = LEATI_OP_PATCHES_BWD,
     .attrs = {.conv = {W2(3, 2, 1, 1, 1), .size = {3, 5}}},
     .input_count = 1,
     .inputs = {OP_F32(6, 2, 18)}},
    FUSED("relu", true, LEATI_FN_RELU, 0, INFINITY),
    FUSED("elu", true, LEATI_FN_ELU, 0.5f, 0),
    FUSED("selu", true, LEATI_FN_SELU, 0, 0),
    FUSED("tanh", false, LEATI_FN_TANH, 0, 0),
    FUSED("sigmoid", false, LEATI_FN_SIGMOID, 0, 0),
    FUSED_PANELS("relu", 3, 3, LEATI_FN_RELU, 0, INFINITY),
    FUSED_PANELS("leaky relu", 3, 3, LEATI_FN_RELU, 0.25f, INFINITY),
    FUSED_PANELS("relu, of 4x4 tiles", 3, 24, LEATI_FN_RELU, 0, INFINITY),
    FUSED_PANELS("silu, of 4x4 tiles", 3, 24, LEATI_FN_SILU, 0, 0),
    FUSED_PANELS("relu6", 1, 3, LEATI_FN_RELU, 0, 0.5f),
    FUSED_PANELS("silu", 1, 3, LEATI_FN_SILU, 0, 0),
    FUSED_REMAINDER("tanh", 6, LEATI_FN_TANH, 0, 0),
    FUSED_REMAINDER("relu6", 23, LEATI_FN_RELU, 0, 0.5f),
    FUSED_REMAINDER("hard swish", 41, LEATI_FN_HARD_SWISH, 0, 0),
    FUSED_REMAINDER("silu", 72, LEATI_FN_SILU, 0, 0),
    STEPS_OF_PANELS(1, 4),
    STEPS_OF_PANELS(3, 5),
    TILES("more than 128 pixels and filters", 23, 4, 132, 1, 2, 1),
    TILES("of more pixels than 128, 12 filters", 14, 4, 12, 3, 1, 1),
    TILES("of 20 channels, 36 filters, stride 2", 9, 20, 36, 3, 2, 1),
    TILES("of stride 2 and dilation 2", 12, 8, 32, 3, 2, 2),
    TILES("of stride 2 and dilation 3", 12, 4, 8, 3, 2, 3),
    TILES("of three channels, 64 filters", 12, 3, 64, 5, 2, 1),
    TILES("of one channel, 32 filters", 14, 1, 32, 3, 1, 1),
    TILES("of 6 channels, 7 filters, stride 2", 9, 6, 7, 3, 2, 1),
    {0},
};
