/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution, pooling, batch normalisation and matrix products: every implementation is compared with ref, and every
 * gradient with finite differences of ref along random directions (compare.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

#include "base/memory.h"
#include "engine/op_semantics/geometry.h"
#include "ops/compare.h"

/* --- convolution ------------------------------------------------------------------------------------------------ */

typedef struct conv_case {
    const char *name;
    leati_window window;
    int64_t groups, batch, channels, filters, size[3];
    bool bias;
} conv_case;

#define W2(k, s, d, before, after)                                                                           \
    {                                                                                                        \
        .spatial = 2, .kernel = {k, k}, .stride = {s, s}, .dilation = {d, d},                                \
        .pad_before = {before, before}, .pad_after = {                                                       \
            after,                                                                                           \
            after                                                                                            \
        }                                                                                                    \
    }

static const conv_case conv_cases[] = {
    {"3x3", W2(3, 1, 1, 0, 0), 1, 2, 3, 4, {7, 6}, true},
    {"3x3 without bias", W2(3, 1, 1, 0, 0), 1, 2, 16, 32, {6, 7}, false},
    {"3x3 of one channel", W2(3, 1, 1, 0, 0), 1, 2, 1, 32, {8, 8}, true},
    {"3x3 same", W2(3, 1, 1, 1, 1), 1, 2, 8, 8, {6, 5}, true},
    {"3x3 of 16 filters", W2(3, 1, 1, 1, 1), 1, 2, 32, 16, {9, 8}, true},
    {"3x3 of 48 filters", W2(3, 1, 1, 0, 0), 1, 1, 16, 48, {13, 11}, true},
    {"3x3 of 24 filters", W2(3, 1, 1, 1, 1), 1, 2, 16, 24, {5, 9}, true},
    {"3x3 of 12 filters", W2(3, 1, 1, 1, 1), 1, 2, 16, 12, {6, 6}, false},
    {"3x3 of 4 channels", W2(3, 1, 1, 1, 1), 1, 2, 4, 64, {9, 8}, true},
    {"3x3 of 4 channels, three shares", W2(3, 1, 1, 1, 1), 1, 2, 4, 32, {40, 41}, true},
    {"3x3 of 6 channels, stride 2", W2(3, 2, 1, 0, 1), 1, 2, 6, 64, {9, 10}, true},
    {"5x5 of 8 channels", W2(5, 1, 1, 2, 2), 1, 3, 8, 32, {7, 6}, true},
    {"4x4 of 5 channels, rows dilated, much padding",
     {.spatial = 2,
      .kernel = {4, 4},
      .stride = {2, 3},
      .dilation = {2, 1},
      .pad_before = {5, 6},
      .pad_after = {2, 4}},
     1,
     2,
     5,
     32,
     {6, 5},
     false},
    {"three axes of 4 channels",
     {.spatial = 3,
      .kernel = {2, 2, 3},
      .stride = {1, 2, 1},
      .dilation = {2, 1, 1},
      .pad_before = {1, 0, 1},
      .pad_after = {1, 1, 1}},
     1,
     2,
     4,
     32,
     {4, 5, 6},
     true},
    {"1x1 of single pixels", W2(1, 1, 1, 0, 0), 1, 3, 20, 33, {1, 1}, true},
    {"1x1 of a single pixel", W2(1, 1, 1, 0, 0), 1, 1, 70, 24, {1, 1}, false},
    {"1x1, 24 filters", W2(1, 1, 1, 0, 0), 1, 2, 40, 24, {9, 9}, true},
    {"1x1, 9 channels, 7 filters", W2(1, 1, 1, 0, 0), 1, 2, 9, 7, {9, 8}, true},
    {"1x1, 17 channels, 40 filters", W2(1, 1, 1, 0, 0), 1, 2, 17, 40, {9, 9}, true},
    {"1x1, 8 channels, 57 filters", W2(1, 1, 1, 0, 0), 1, 3, 8, 57, {7, 5}, false},
    {"1x1, 520 channels, 72 filters", W2(1, 1, 1, 0, 0), 1, 1, 520, 72, {9, 11}, true},
    {"2x2 stride 2, a row left over", W2(2, 2, 1, 0, 0), 1, 2, 3, 5, {7, 7}, true},
    {"3x3 stride 2 same, uneven padding", W2(3, 2, 1, 0, 1), 1, 2, 4, 8, {8, 8}, true},
    {"3x3 dilation 2", W2(3, 1, 2, 0, 0), 1, 2, 4, 8, {9, 8}, true},
    {"3x3 dilation 2 same", W2(3, 1, 2, 2, 2), 1, 1, 3, 2, {6, 6}, true},
    {"1x1", W2(1, 1, 1, 0, 0), 1, 3, 8, 16, {4, 5}, true},
    {"5x5", W2(5, 1, 1, 2, 2), 1, 1, 8, 8, {7, 7}, true},
    {"groups 2", W2(3, 1, 1, 1, 1), 2, 2, 4, 6, {5, 5}, true},
    {"depthwise", W2(3, 1, 1, 1, 1), 8, 2, 8, 8, {6, 6}, true},
    {"depthwise, 2 filters a channel", W2(3, 2, 1, 0, 1), 3, 2, 3, 6, {6, 6}, true},
    {"one axis",
     {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {1}, .pad_before = {2}},
     1,
     2,
     3,
     4,
     {9},
     true},
    {"one axis, 3 taps of panels",
     {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {1}, .pad_before = {1}, .pad_after = {1}},
     1,
     2,
     16,
     32,
     {9},
     true},
    {"one axis, 5 taps of panels",
     {.spatial = 1, .kernel = {5}, .stride = {1}, .dilation = {1}},
     1,
     3,
     32,
     32,
     {12},
     true},
    {"one axis, 5 taps of panels, causal, more than one share",
     {.spatial = 1, .kernel = {5}, .stride = {1}, .dilation = {1}, .pad_before = {4}},
     1,
     7,
     32,
     64,
     {150},
     true},
    {"one axis, 5 taps, 16 filters",
     {.spatial = 1, .kernel = {5}, .stride = {1}, .dilation = {1}, .pad_before = {2}, .pad_after = {2}},
     1,
     2,
     32,
     16,
     {19},
     true},
    {"one of two axes, 5 taps of panels",
     {.spatial = 2,
      .kernel = {1, 5},
      .stride = {1, 1},
      .dilation = {1, 1},
      .pad_before = {0, 2},
      .pad_after = {0, 1}},
     1,
     2,
     32,
     32,
     {3, 6},
     false},
    {"one axis, causal, dilation 2",
     {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {2}, .pad_before = {4}},
     1,
     2,
     8,
     8,
     {9},
     false},
    {"three axes, one dilated",
     {.spatial = 3, .kernel = {2, 2, 2}, .stride = {1, 1, 1}, .dilation = {1, 2, 1}},
     1,
     3,
     2,
     2,
     {4, 6, 4},
     true},
    {"three axes, strides, groups",
     {.spatial = 3,
      .kernel = {1, 2, 3},
      .stride = {2, 2, 2},
      .dilation = {1, 1, 1},
      .pad_before = {0, 0, 1},
      .pad_after = {0, 1, 1}},
     2,
     2,
     4,
     6,
     {5, 5, 4},
     true},
    {"three axes, depthwise",
     {.spatial = 3, .kernel = {2, 2, 2}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}},
     8,
     1,
     8,
     8,
     {4, 3, 4},
     false},
    {"one axis, depthwise, 2 filters a channel, stride 2",
     {.spatial = 1, .kernel = {3}, .stride = {2}, .dilation = {1}, .pad_after = {1}},
     5,
     2,
     5,
     10,
     {8},
     true},
    {"one axis, groups, dilation 3",
     {.spatial = 1, .kernel = {2}, .stride = {1}, .dilation = {3}},
     4,
     2,
     16,
     8,
     {9},
     true},
    {"2x2 stride 3, dilation 2", W2(2, 3, 2, 0, 0), 1, 2, 3, 5, {8, 10}, true},
    {"one filter 5x5", W2(5, 1, 1, 2, 2), 1, 2, 32, 1, {5, 21}, false},
    {"one filter 3x3 valid, rows of 8 pixels", W2(3, 1, 1, 0, 0), 1, 1, 8, 1, {4, 18}, true},
    {"2 filters 3x3, stride 2", W2(3, 2, 1, 0, 1), 1, 3, 21, 2, {8, 19}, true},
    {"3 filters 3x3", W2(3, 1, 1, 1, 1), 1, 2, 17, 3, {5, 11}, true},
    {"4 filters, more padding than source", W2(5, 1, 1, 4, 4), 1, 1, 16, 4, {2, 2}, false},
    {"one filter, one axis, causal",
     {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {1}, .pad_before = {2}},
     1,
     2,
     64,
     1,
     {9},
     true},
    {"one filter, three axes",
     {.spatial = 3,
      .kernel = {2, 3, 3},
      .stride = {1, 2, 1},
      .dilation = {1, 1, 1},
      .pad_before = {0, 1, 1},
      .pad_after = {1, 1, 1}},
     1,
     2,
     8,
     1,
     {3, 5, 12},
     true},
    {"depthwise, dilation 2, 3 filters a channel", W2(3, 1, 2, 2, 2), 8, 2, 8, 24, {7, 6}, true},
    {"depthwise 5x5 of many channels", W2(5, 1, 1, 2, 2), 45, 2, 45, 45, {7, 6}, true},
    {"depthwise of seven large samples", W2(3, 1, 1, 1, 1), 16, 7, 16, 16, {17, 12}, true},
    {"3x3 of seven large samples, few weights", W2(3, 2, 1, 0, 1), 1, 7, 3, 16, {24, 23}, true},
    {"depthwise, dilation 2, stride 3", W2(2, 3, 2, 1, 0), 33, 2, 33, 33, {9, 8}, false},
    {"depthwise, dilation 3, all but padding", W2(3, 1, 3, 3, 3), 8, 3, 8, 8, {2, 4}, true},
    {"depthwise 3x3, rows of three tiles", W2(3, 1, 1, 1, 1), 40, 2, 40, 40, {5, 19}, true},
    {"depthwise 3x3 valid", W2(3, 1, 1, 0, 0), 24, 1, 24, 24, {6, 12}, false},
    {"depthwise 3x3 of more channels than a block", W2(3, 1, 1, 1, 1), 300, 1, 300, 300, {3, 4}, true},
    {"depthwise 3x3, stride 2", W2(3, 2, 1, 0, 1), 72, 2, 72, 72, {8, 22}, true},
    {"depthwise 3x3, stride 2, padding on both sides", W2(3, 2, 1, 1, 1), 17, 1, 17, 17, {9, 7}, false},
    {"depthwise 5x5, a row of two tiles", W2(5, 1, 1, 2, 2), 32, 1, 32, 32, {4, 14}, true},
    {"depthwise 5x5, more padding than source", W2(5, 1, 1, 4, 3), 20, 2, 20, 20, {2, 1}, true},
    {"depthwise 3x3, more padding than window", W2(3, 1, 1, 3, 4), 16, 1, 16, 16, {2, 3}, false},
    {"depthwise 5x5, stride 2", W2(5, 2, 1, 1, 2), 56, 2, 56, 56, {10, 21}, true},
    {"depthwise 7x7", W2(7, 1, 1, 3, 3), 24, 2, 24, 24, {7, 7}, true},
    {"depthwise 7x7, rows of two tiles", W2(7, 1, 1, 3, 3), 36, 1, 36, 36, {5, 13}, false},
    {"depthwise 7x7, stride 2", W2(7, 2, 1, 2, 3), 16, 1, 16, 16, {9, 26}, true},
    {"depthwise 4x4", W2(4, 1, 1, 1, 2), 19, 2, 19, 19, {6, 15}, true},
    {"depthwise 3x3, dilation 2, rows of two tiles", W2(3, 1, 2, 2, 2), 18, 1, 18, 18, {6, 14}, true},
    {"depthwise of 3 channels", W2(3, 1, 1, 1, 1), 3, 2, 3, 3, {5, 11}, true},
    {"depthwise of 7 channels, stride 2", W2(5, 2, 1, 1, 2), 7, 1, 7, 7, {8, 9}, false},
    {"one axis, depthwise, causal",
     {.spatial = 1, .kernel = {5}, .stride = {1}, .dilation = {1}, .pad_before = {4}},
     48,
     2,
     48,
     48,
     {21},
     true},
    {"three axes, depthwise, stride 2",
     {.spatial = 3,
      .kernel = {2, 3, 3},
      .stride = {1, 2, 2},
      .dilation = {2, 1, 1},
      .pad_before = {1, 1, 0},
      .pad_after = {0, 1, 1}},
     22,
     2,
     22,
     22,
     {4, 5, 6},
     true},
    {"groups 2 of 16 channels, 5x5", W2(5, 1, 1, 2, 2), 2, 2, 32, 32, {7, 7}, false},
    {"one sample of many rows, stride 2, uneven padding", W2(3, 2, 1, 0, 1), 1, 1, 16, 24, {30, 9}, true},
    {"one sample of many rows, dilation 2", W2(3, 1, 2, 2, 2), 1, 1, 8, 16, {19, 7}, false},
    {"one sample of many rows, more padding before", W2(4, 3, 1, 3, 1), 1, 1, 16, 16, {29, 8}, true},
    {"one sample of many rows, groups", W2(3, 1, 1, 1, 1), 2, 1, 32, 32, {17, 5}, true},
    {"one sample of many rows, depthwise, stride 2", W2(5, 2, 1, 1, 2), 32, 1, 32, 32, {23, 10}, true},
    {"one sample of more steps than rows, depthwise",
     {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {2}, .pad_before = {4}},
     16,
     1,
     16,
     16,
     {25},
     true},
    {"three axes",
     {.spatial = 3,
      .kernel = {2, 3, 2},
      .stride = {1, 2, 1},
      .dilation = {1, 1, 1},
      .pad_before = {0, 1, 0},
      .pad_after = {0, 1, 1}},
     1,
     2,
     3,
     4,
     {4, 5, 4},
     true},
    {"3x3 same of whole panels", W2(3, 1, 1, 1, 1), 1, 2, 32, 64, {5, 6}, true},
    {"3x3 valid of whole panels, many tiles", W2(3, 1, 1, 0, 0), 1, 2, 16, 32, {45, 44}, true},
    {"3x3 same of whole panels, tiles of 4x4, cut", W2(3, 1, 1, 1, 1), 1, 2, 64, 32, {23, 21}, true},
    {"3x3 of more channels than a group", W2(3, 1, 1, 2, 0), 1, 3, 80, 96, {4, 3}, false},
    {"3x3 of whole panels, cut", W2(3, 1, 1, 2, 2), 1, 1, 64, 32, {1, 1}, true},
    {"1x1 of whole panels", W2(1, 1, 1, 0, 0), 1, 3, 32, 32, {28, 28}, true},
    {"1x1 of whole panels, stride 2", W2(1, 2, 1, 0, 0), 1, 2, 64, 32, {5, 6}, true},
    {"1x1 of many channels, stride 3", W2(1, 3, 1, 0, 0), 1, 2, 1056, 32, {4, 7}, false},
    {"5x5 of whole panels, stride 2", W2(5, 2, 1, 2, 1), 1, 2, 32, 64, {8, 9}, true},
    {"3x3 of whole panels, dilation 2", W2(3, 1, 2, 2, 2), 1, 1, 64, 32, {7, 6}, true},
    {"3x3 of whole panels, dilation 2, many tiles", W2(3, 1, 2, 2, 2), 1, 2, 32, 64, {45, 43}, true},
    {"3x3 of whole panels, dilation 4 of a few pixels", W2(3, 1, 4, 4, 4), 1, 2, 32, 32, {9, 8}, true},
    {"3x3 of whole panels, dilation of nearly the image", W2(3, 1, 8, 8, 8), 1, 1, 32, 32, {9, 9}, true},
    {"3x3 of whole panels, two dilations",
     {.spatial = 2,
      .kernel = {3, 3},
      .stride = {1, 1},
      .dilation = {1, 3},
      .pad_before = {0, 4},
      .pad_after = {1, 2}},
     1,
     2,
     48,
     96,
     {13, 22},
     true},
    {"one axis of whole panels, causal, dilation 4",
     {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {4}, .pad_before = {8}},
     1,
     5,
     32,
     32,
     {131},
     true},
    {"one axis of whole panels, 5 taps, dilation 3",
     {.spatial = 1, .kernel = {5}, .stride = {1}, .dilation = {3}, .pad_before = {6}, .pad_after = {6}},
     1,
     2,
     32,
     64,
     {37},
     true},
    {"groups of 4 channels", W2(3, 1, 1, 1, 1), 8, 2, 32, 32, {5, 19}, true},
    {"groups of 4 channels, stride 2", W2(3, 2, 1, 0, 1), 4, 1, 16, 16, {6, 21}, false},
    {"groups of 2 channels, wide window, much padding", W2(5, 1, 1, 4, 6), 8, 1, 16, 16, {4, 9}, true},
    {"groups of 8 channels, dilation 2", W2(3, 1, 2, 2, 2), 4, 2, 32, 32, {5, 8}, true},
    {"groups of 8 channels", W2(3, 1, 1, 1, 1), 2, 1, 16, 16, {7, 9}, false},
    {"depthwise, two filters", W2(3, 1, 1, 1, 1), 16, 2, 16, 32, {5, 11}, true},
    {"depthwise, two filters of 24 channels, stride 2", W2(3, 2, 1, 0, 1), 24, 1, 24, 48, {6, 9}, false},
    {"depthwise, four filters, dilation 2", W2(3, 1, 2, 2, 2), 16, 1, 16, 64, {4, 19}, true},
    {"depthwise, eight filters", W2(2, 1, 1, 0, 1), 4, 2, 4, 32, {3, 17}, true},
    {"groups of two channels and one filter", W2(3, 1, 1, 1, 1), 32, 1, 64, 32, {4, 9}, true},
    {"groups of 4 channels, three axes",
     {.spatial = 3,
      .kernel = {2, 3, 3},
      .stride = {1, 1, 1},
      .dilation = {1, 1, 1},
      .pad_before = {0, 1, 1},
      .pad_after = {1, 1, 1}},
     4,
     1,
     16,
     16,
     {3, 4, 5},
     true},
    {"groups of 4 channels, many rows", W2(3, 1, 1, 1, 1), 4, 3, 16, 16, {22, 3}, true},
    {"one channel, stride 2", W2(5, 2, 1, 1, 2), 1, 3, 1, 32, {9, 12}, true},
    {"one channel, much padding", W2(5, 1, 1, 4, 3), 1, 1, 1, 16, {3, 7}, false},
    {"two channels", W2(3, 1, 1, 1, 1), 1, 2, 2, 24, {6, 17}, true},
    {"four channels, stride 2", W2(4, 2, 1, 1, 1), 1, 2, 4, 19, {8, 11}, true},
    {"one channel, three axes, three strides",
     {.spatial = 3,
      .kernel = {2, 3, 4},
      .stride = {2, 1, 3},
      .dilation = {1, 1, 1},
      .pad_before = {0, 1, 1},
      .pad_after = {1, 1, 2}},
     1,
     2,
     1,
     16,
     {3, 4, 14},
     false},
    {"whole panels with gaps and a stride", W2(3, 2, 2, 2, 2), 1, 1, 32, 32, {9, 7}, true},
    {"three axes of whole panels",
     {.spatial = 3,
      .kernel = {2, 3, 1},
      .stride = {1, 1, 1},
      .dilation = {1, 1, 1},
      .pad_before = {0, 1, 0},
      .pad_after = {1, 1, 0}},
     1,
     2,
     32,
     32,
     {3, 4, 5},
     true},
};

static void describe_conv(const conv_case *c, leati_desc inputs[3], leati_attrs *attrs) {
    int spatial = c->window.spatial;
    *attrs = (leati_attrs){.conv = {.window = c->window, .groups = c->groups}};
    inputs[0] = inputs[1] = (leati_desc){.rank = spatial + 2};
    inputs[0].shape[0] = c->batch;
    for (int i = 0; i < spatial; i++) {
        inputs[0].shape[1 + i] = attrs->conv.size[i] = c->size[i];
        inputs[1].shape[i] = c->window.kernel[i];
    }
    inputs[0].shape[spatial + 1] = c->channels;
    inputs[1].shape[spatial] = c->channels / c->groups;
    inputs[1].shape[spatial + 1] = c->filters;
    inputs[2] = leati_desc_make(LEAT_F32, 1, &c->filters);
}

static void check_conv_gradients(const conv_case *c, test_task *forward, leat_rng *rng) {
    float *weights[LEATI_MAX_OUTPUTS] = {test_random_like(&forward->outputs[0], rng)};
    test_task data, kernel;
    test_task_init(&data, LEATI_OP_CONV_BWD_DATA, &forward->attrs, 2,
                   (leati_desc[]){forward->outputs[0], forward->inputs[1]}, 0, 2);
    test_task_init(&kernel, LEATI_OP_CONV_BWD_WEIGHTS, &forward->attrs, 2,
                   (leati_desc[]){forward->inputs[0], forward->outputs[0]}, c->bias ? 0 : 2, 2);
    memcpy(data.args[0], weights[0], leati_desc_bytes(&data.inputs[0]));
    memcpy(data.args[1], forward->args[1], leati_desc_bytes(&data.inputs[1]));
    memcpy(kernel.args[0], forward->args[0], leati_desc_bytes(&kernel.inputs[0]));
    memcpy(kernel.args[1], weights[0], leati_desc_bytes(&kernel.inputs[1]));
    test_compare(&data, c->name, TOLERANCE); /* all agree with ref, which agrees with finite differences */
    test_compare(&kernel, c->name, TOLERANCE);
    test_check_gradient(forward, weights, 0, test_output(&data, 0), c->name, data.implementation, rng);
    test_check_gradient(forward, weights, 1, test_output(&kernel, 0), c->name, kernel.implementation, rng);
    if (c->bias)
        test_check_gradient(forward, weights, 2, test_output(&kernel, 1), c->name, kernel.implementation,
                            rng);
    test_task_fini(&data);
    test_task_fini(&kernel);
    leati_free(weights[0]);
}

static void test_conv(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(1, 0, 0);
    int served = 0;
    for (size_t i = 0; i < sizeof conv_cases / sizeof conv_cases[0]; i++) {
        const conv_case *c = &conv_cases[i];
        leati_desc inputs[3];
        leati_attrs attrs;
        test_task t;
        describe_conv(c, inputs, &attrs);
        test_task_init(&t, LEATI_OP_CONV, &attrs, c->bias ? 3 : 2, inputs, 0, 2);
        test_fill_inputs(&t, -1, 1, &rng);
        served += test_compare(&t, c->name, TOLERANCE);
        check_conv_gradients(c, &t, &rng);
        test_task_fini(&t);
    }
    assert_true(served >= (int)(sizeof conv_cases / sizeof conv_cases[0]));
#if LEAT_ONEDNN
    assert_true(served > (int)(sizeof conv_cases / sizeof conv_cases[0])); /* oneDNN served some */
#endif
}

/* Backends divide samples, or rows of samples, among threads, of which there may be more than of these. */
static void test_conv_of_many_threads(void **state) {
    static const int threads[] = {3, 7, 16};
    (void)state;
    leat_rng rng = leat_rng_for(8, 0, 0);
    for (size_t i = 0; i < sizeof conv_cases / sizeof conv_cases[0]; i++)
        for (size_t j = 0; j < sizeof threads / sizeof threads[0]; j++) {
            const conv_case *c = &conv_cases[i];
            leati_desc inputs[3];
            leati_attrs attrs;
            test_task forward, data, weights;
            describe_conv(c, inputs, &attrs);
            test_task_init(&forward, LEATI_OP_CONV, &attrs, c->bias ? 3 : 2, inputs, 0, threads[j]);
            test_task_init(&data, LEATI_OP_CONV_BWD_DATA, &attrs, 2,
                           (leati_desc[]){forward.outputs[0], inputs[1]}, 0, threads[j]);
            test_fill_inputs(&forward, -1, 1, &rng);
            test_task_init(&weights, LEATI_OP_CONV_BWD_WEIGHTS, &attrs, 2,
                           (leati_desc[]){inputs[0], forward.outputs[0]}, c->bias ? 0 : 2, threads[j]);
            test_fill_inputs(&data, -1, 1, &rng);
            test_fill_inputs(&weights, -1, 1, &rng);
            assert_true(test_compare(&forward, c->name, TOLERANCE) >= 1);
            assert_true(test_compare(&data, c->name, TOLERANCE) >= 1);
            assert_true(test_compare(&weights, c->name, TOLERANCE) >= 1);
            test_task_fini(&weights);
            test_task_fini(&forward);
            test_task_fini(&data);
        }
}

/* Computed by hand: (1, 1, 3) with kernel (2) of 10, 1 gives 12, 23; with one more element of padding in front 1,
 * 12, 23. */
static void test_conv_by_hand(void **state) {
    (void)state;
    leati_attrs attrs = {
        .conv = {.window = {.spatial = 1, .kernel = {2}, .stride = {1}, .dilation = {1}, .pad_before = {1}},
                 .groups = 1}};
    leati_desc inputs[] = {DIMS(1, 3, 1), DIMS(2, 1, 1)};
    test_task t;
    test_task_init(&t, LEATI_OP_CONV, &attrs, 2, inputs, 0, 1);
    memcpy(t.args[0], (float[]){1, 2, 3}, 12);
    memcpy(t.args[1], (float[]){10, 1}, 8);
    test_run_ref(&t);
    assert_int_equal(t.outputs[0].shape[1], 3);
    const float expected[] = {1, 12, 23};
    for (int i = 0; i < 3; i++) assert_true(test_output(&t, 0)[i] == expected[i]);
    test_task_fini(&t);
}

/* --- patches ---------------------------------------------------------------------------------------------------- */

/* Patches for the windows of the convolution cases: every implementation copies, and adds in the same order, so
 * results are equal. */
static void test_patches(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(5, 0, 0);
    for (size_t i = 0; i < sizeof conv_cases / sizeof conv_cases[0]; i++) {
        const conv_case *c = &conv_cases[i];
        leati_desc inputs[3];
        leati_attrs attrs;
        test_task t, bwd;
        describe_conv(c, inputs, &attrs);
        test_task_init(&t, LEATI_OP_PATCHES, &attrs, 1, inputs, 0, 2);
        test_task_init(&bwd, LEATI_OP_PATCHES_BWD, &attrs, 1, t.outputs, 0, 2);
        test_fill_inputs(&t, -1, 1, &rng);
        test_fill_inputs(&bwd, -1, 1, &rng);
        assert_true(leati_desc_same_shape(&bwd.outputs[0], &inputs[0]));
        assert_true(test_compare(&t, c->name, 0) > 0);
        assert_true(test_compare(&bwd, c->name, TOLERANCE) > 0);
        test_task_fini(&t);
        test_task_fini(&bwd);
    }
}

/* (1, 3, 1) under a window of two gives the patches 1 2 and 2 3. */
static void test_patches_by_hand(void **state) {
    (void)state;
    leati_attrs attrs = {.conv = {.window = {.spatial = 1, .kernel = {2}, .stride = {1}, .dilation = {1}}}};
    leati_desc inputs[] = {DIMS(2, 3, 1)};
    const float expected[] = {1, 2, 4, 5, 2, 3, 5, 6};
    test_task t;
    test_task_init(&t, LEATI_OP_PATCHES, &attrs, 1, inputs, 0, 1);
    memcpy(t.args[0], (float[]){1, 2, 3, 4, 5, 6}, 24);
    test_run_ref(&t);
    assert_int_equal(test_output_count(&t, 0), 8);
    for (int i = 0; i < 8; i++) assert_true(test_output(&t, 0)[i] == expected[i]);
    test_task_fini(&t);
}

/* --- pooling ---------------------------------------------------------------------------------------------------- */

typedef struct pool_case {
    const char *name;
    leati_window window;
    leati_desc src;
} pool_case;

static const pool_case pool_cases[] = {
    {"2x2", W2(2, 2, 1, 0, 0), DIMS(2, 6, 8, 16)},
    {"2x2 of three channels, a row left over", W2(2, 2, 1, 0, 0), DIMS(2, 7, 5, 3)},
    {"3x3 stride 2 same", W2(3, 2, 1, 0, 1), DIMS(2, 8, 8, 8)},
    {"3x3 stride 1 same", W2(3, 1, 1, 1, 1), DIMS(1, 5, 6, 11)},
    {"2x2 stride 3", W2(2, 3, 1, 0, 0), DIMS(1, 8, 8, 4)},
    {"3x3 stride 2 same, three samples", W2(3, 2, 1, 0, 1), DIMS(3, 11, 8, 16)},
    {"3x3 stride 2, padding on all sides", W2(3, 2, 1, 1, 1), DIMS(1, 13, 9, 16)},
    {"1x1 stride 2", W2(1, 2, 1, 0, 0), DIMS(3, 5, 19, 22)},
    {"2x2 of one channel", W2(2, 2, 1, 0, 0), DIMS(3, 5, 25, 1)},
    {"2x2 of 11 channels", W2(2, 2, 1, 0, 0), DIMS(3, 5, 18, 11)},
    {"3x3 stride 1 same, of 11 channels", W2(3, 1, 1, 1, 1), DIMS(3, 4, 13, 11)},
    {"3x3 stride 1 same, of 44 channels", W2(3, 1, 1, 1, 1), DIMS(2, 3, 14, 44)},
    {"3x3 stride 1 same, narrow", W2(3, 1, 1, 1, 1), DIMS(2, 9, 2, 20)},
    {"3x3 stride 2, of 22 channels", W2(3, 2, 1, 0, 0), DIMS(3, 5, 21, 22)},
    {"3x3 stride 2 same, of 88 channels", W2(3, 2, 1, 0, 1), DIMS(1, 6, 16, 88)},
    {"3x3 stride 1 same, on two threads", W2(3, 1, 1, 1, 1), DIMS(3, 19, 40, 16)},
    {"3x3 stride 3", W2(3, 3, 1, 1, 1), DIMS(2, 6, 24, 17)},
    {"5x5 stride 1 same", W2(5, 1, 1, 2, 2), DIMS(2, 5, 11, 9)},
    {"5x5 stride 2 of a small image", W2(5, 2, 1, 2, 2), DIMS(2, 3, 4, 35)},
    {"one axis, long",
     {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {1}, .pad_before = {2}},
     DIMS(3, 29, 6)},
    {"one axis",
     {.spatial = 1, .kernel = {3}, .stride = {2}, .dilation = {1}, .pad_after = {1}},
     DIMS(2, 9, 6)},
    {"three axes",
     {.spatial = 3, .kernel = {2, 2, 2}, .stride = {2, 2, 1}, .dilation = {1, 1, 1}},
     DIMS(1, 4, 4, 3, 8)},
};

/* Fills with values that differ by far more than the step of the finite differences, so that no maximum changes its
 * position. */
static void fill_apart(float *to, int64_t count, leat_rng *rng) {
    for (int64_t i = 0; i < count; i++) to[i] = (float)i * 0.05f;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)leat_rng_below(rng, (uint64_t)i + 1);
        float swap = to[i];
        to[i] = to[j];
        to[j] = swap;
    }
}

/* Runs each implementation of the backward pass after the forward pass of the same backend. */
static int check_pool_backward(const pool_case *c, test_task *forward, leat_rng *rng) {
    float *weights[LEATI_MAX_OUTPUTS] = {test_random_like(&forward->outputs[0], rng)};
    int served = 0;
    test_task t;
    test_task_init(&t, LEATI_OP_POOLING_BWD, &forward->attrs, 4,
                   (leati_desc[]){forward->inputs[0], forward->outputs[0], forward->outputs[0],
                                  forward->outputs[1]},
                   0, 2);
    for (size_t b = 0; test_backends[b]; b++)
        for (size_t k = 0; k < test_backends[b]->count; k++) {
            const leati_implementation *first = &test_backends[b]->implementations[k];
            leati_kernel kernel = {0};
            char why[LEATI_REASON_BYTES] = "";
            if (first->op != LEATI_OP_POOLING || !test_run(forward, first, why, &kernel)) continue;
            memcpy(t.args[0], forward->args[0], leati_desc_bytes(&t.inputs[0]));
            memcpy(t.args[1], test_output(forward, 0), leati_desc_bytes(&t.inputs[1]));
            memcpy(t.args[2], weights[0], leati_desc_bytes(&t.inputs[2]));
            float *own = t.args[3];
            t.args[3] = test_output(forward, 1);
            t.task.forward = &kernel;
            served += test_compare(&t, c->name, TOLERANCE);
            t.args[3] = own;
            test_check_gradient(forward, weights, 0, test_output(&t, 0), c->name, t.implementation, rng);
            if (kernel.destroy) kernel.destroy(kernel.state);
        }
    leati_free(weights[0]);
    test_task_fini(&t);
    return served;
}

static void test_pooling(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(2, 0, 0);
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < sizeof pool_cases / sizeof pool_cases[0]; i++) {
            const pool_case *c = &pool_cases[i];
            leati_attrs attrs = {
                .pooling = {.window = c->window, .kind = kind ? LEATI_POOL_AVERAGE : LEATI_POOL_MAX}};
            test_task t;
            test_task_init(&t, LEATI_OP_POOLING, &attrs, 1, &c->src, 0, 2);
            fill_apart(t.args[0], leati_desc_count(&c->src), &rng);
            test_compare(&t, c->name, TOLERANCE);
            assert_true(check_pool_backward(c, &t, &rng) >= 1);
            test_task_fini(&t);
        }
}

/* Where several elements are the maximum, the first receives the whole gradient, in every implementation. */
static void test_pooling_ties(void **state) {
    (void)state;
    leati_attrs attrs = {.pooling = {.window = W2(2, 2, 1, 0, 0), .kind = LEATI_POOL_MAX}};
    leati_desc src = DIMS(2, 4, 4, 16);
    test_task forward;
    test_task_init(&forward, LEATI_OP_POOLING, &attrs, 1, &src, 0, 2);
    /* pairs of pixels in a row are equal */
    for (int64_t i = 0; i < leati_desc_count(&src); i++) forward.args[0][i] = (float)(i / 16 / 2 % 2);
    pool_case c = {.name = "ties"};
    for (size_t b = 0; test_backends[b]; b++)
        for (size_t k = 0; k < test_backends[b]->count; k++) {
            leati_kernel kernel = {0};
            char why[LEATI_REASON_BYTES] = "";
            if (test_backends[b]->implementations[k].op != LEATI_OP_POOLING) continue;
            if (!test_run(&forward, &test_backends[b]->implementations[k], why, &kernel)) continue;
            test_task t;
            test_task_init(&t, LEATI_OP_POOLING_BWD, &attrs, 4,
                           (leati_desc[]){src, forward.outputs[0], forward.outputs[0], forward.outputs[1]}, 0,
                           2);
            memcpy(t.args[0], forward.args[0], leati_desc_bytes(&src));
            memcpy(t.args[1], test_output(&forward, 0), leati_desc_bytes(&t.inputs[1]));
            for (int64_t i = 0; i < leati_desc_count(&t.inputs[2]); i++) t.args[2][i] = 1;
            float *own = t.args[3];
            t.args[3] = test_output(&forward, 1);
            t.task.forward = &kernel;
            test_compare(&t, c.name, 0);
            t.args[3] = own;
            for (int64_t i = 0; i < leati_desc_count(&src); i++) {
                int64_t pixel = i / 16, row = pixel / 4 % 4, column = pixel % 4;
                assert_true(test_output(&t, 0)[i] == (row % 2 == 0 && column % 2 == 0 ? 1.0f : 0.0f));
            }
            test_task_fini(&t);
            if (kernel.destroy) kernel.destroy(kernel.state);
        }
    test_task_fini(&forward);
}

/* --- batch normalisation ---------------------------------------------------------------------------------------- */

/* The gradient through max(dst, 0), which `rectified` is: equal to the gradient with diff_dst set to 0 where
 * rectified is 0. */
static void check_rectified_norm(test_task *plain, leat_rng *rng) {
    test_task t;
    leati_desc inputs[6];
    int64_t count = leati_desc_count(&plain->inputs[4]);
    memcpy(inputs, plain->inputs, 5 * sizeof *inputs);
    inputs[5] = inputs[4];
    test_task_init(&t, LEATI_OP_BATCH_NORM_BWD, &plain->attrs, 6, inputs, 0, 2);
    test_fill_inputs(&t, -1, 1, rng);
    for (int i = 0; i < 4; i++)
        if (plain->args[i]) memcpy(t.args[i], plain->args[i], leati_desc_bytes(&inputs[i]));
    test_compare(&t, "batch_norm_bwd, rectified", 1e-4);
    for (int64_t i = 0; i < count; i++) plain->args[4][i] = t.args[5][i] > 0 ? t.args[4][i] : 0;
    test_run_ref(plain);
    test_run_ref(&t);
    for (int64_t i = 0; i < count; i++) {
        assert_true(test_output(&t, 0)[i] == test_output(plain, 0)[i]);
        assert_true(test_output(&t, 3)[i] == plain->args[4][i]);
    }
    test_task_fini(&t);
}

static void check_norm(const leati_desc *src, bool gamma, bool beta, leat_rng *rng) {
    int64_t channels = src->shape[src->rank - 1];
    leati_desc channel = leati_desc_make(LEAT_F32, 1, &channels), absent = ABSENT;
    leati_attrs attrs = {.batch_norm = {1e-3f}};
    test_task t, bwd, apply;
    test_task_init(&t, LEATI_OP_BATCH_NORM, &attrs, 3,
                   (leati_desc[]){*src, gamma ? channel : absent, beta ? channel : absent}, 0, 2);
    test_fill_inputs(&t, -1, 1.5f, rng);
    test_compare(&t, "batch_norm", TOLERANCE);
    test_task_init(&apply, LEATI_OP_BATCH_NORM_APPLY, &attrs, 5,
                   (leati_desc[]){*src, t.inputs[1], t.inputs[2], channel, channel}, 0, 2);
    test_fill_inputs(&apply, 0.2f, 1.5f, rng);
    test_compare(&apply, "batch_norm_apply", TOLERANCE);
    test_task_init(&bwd, LEATI_OP_BATCH_NORM_BWD, &attrs, 5,
                   (leati_desc[]){*src, t.inputs[1], channel, channel, *src}, 0, 2);
    float *weights[LEATI_MAX_OUTPUTS] = {test_random_like(src, rng)};
    memcpy(bwd.args[0], t.args[0], leati_desc_bytes(src));
    if (gamma) memcpy(bwd.args[1], t.args[1], leati_desc_bytes(&channel));
    memcpy(bwd.args[2], test_output(&t, 1), leati_desc_bytes(&channel));
    memcpy(bwd.args[3], test_output(&t, 2), leati_desc_bytes(&channel));
    memcpy(bwd.args[4], weights[0], leati_desc_bytes(src));
    test_compare(&bwd, "batch_norm_bwd", 1e-4); /* the sums nearly cancel */
    for (int i = 0; i < 3; i++)
        if (i == 0 || (i == 1 ? gamma : beta))
            test_check_gradient(&t, weights, i, test_output(&bwd, i), "batch_norm", bwd.implementation, rng);
    check_rectified_norm(&bwd, rng);
    leati_free(weights[0]);
    test_task_fini(&t);
    test_task_fini(&apply);
    test_task_fini(&bwd);
}

static void test_batch_norm(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(3, 0, 0);
    const leati_desc shapes[] = {DIMS(3, 4, 5, 8), DIMS(16, 5), DIMS(4, 6, 3),      DIMS(2, 7, 7, 32),
                                 DIMS(33, 70),     DIMS(1, 4),  DIMS(2, 96, 96, 36)};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int which = 0; which < 4; which++) check_norm(&shapes[i], which & 1, which & 2, &rng);
}

/* --- products --------------------------------------------------------------------------------------------------- */

static void test_matmul(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(6, 0, 0);
    const int64_t sizes[][3] = {{1, 1, 1},      {1, 64, 128},    {3, 5, 7},       {16, 9, 33},
                                {64, 128, 10},  {130, 300, 70},  {1, 200, 3},     {1024, 70, 32},
                                {1280, 33, 64}, {2, 40, 96},     {5, 33, 32},     {7, 9, 64},
                                {12, 31, 160},  {300, 530, 100}, {3, 3000, 2900}, {100, 10, 4},
                                {40, 3, 900},   {1, 2101, 4003}, {1, 300, 421},   {5, 301, 413},
                                {12, 130, 610}, {40, 270, 520}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int which = 0; which < 8; which++) {
            int64_t m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
            if (k * n > 8388608 && which & 3) continue; /* a matrix that is not packed, as it is */
            leati_attrs attrs = {.matmul = {.transpose_a = which & 1, .transpose_b = which & 2}};
            leati_desc inputs[] = {DIMS(which & 1 ? k : m, which & 1 ? m : k),
                                   DIMS(which & 2 ? n : k, which & 2 ? k : n), DIMS(n)};
            test_task t;
            test_task_init(&t, LEATI_OP_MATMUL, &attrs, which & 4 ? 3 : 2, inputs, 0, 2);
            test_fill_inputs(&t, -1, 1, &rng);
            assert_true(test_compare(&t, "matmul", TOLERANCE) >= 1);
            test_task_fini(&t);
        }
}

/* Products of several matrices, which backends divide into matrices, rows or columns. */
static void test_matmul_of_many_threads(void **state) {
    static const int64_t sizes[][4] = {{4, 5, 7, 9}, {2, 70, 33, 20}, {2, 3, 40, 130}, {1, 40, 12, 8}};
    static const int threads[] = {2, 3, 16};
    (void)state;
    leat_rng rng = leat_rng_for(9, 0, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int which = 0; which < 24; which++) {
            int64_t b = sizes[i][0], m = sizes[i][1], k = sizes[i][2], n = sizes[i][3];
            leati_attrs attrs = {.matmul = {.transpose_a = which & 1, .transpose_b = which & 2}};
            leati_desc inputs[] = {DIMS(b, which & 1 ? k : m, which & 1 ? m : k),
                                   DIMS(b, which & 2 ? n : k, which & 2 ? k : n), DIMS(n)};
            test_task t;
            test_task_init(&t, LEATI_OP_MATMUL, &attrs, which & 4 ? 3 : 2, inputs, 0, threads[which / 8]);
            test_fill_inputs(&t, -1, 1, &rng);
            assert_true(test_compare(&t, "matmul of several matrices", TOLERANCE) >= 1);
            test_task_fini(&t);
        }
}

/* An invalid window or invalid weights give an error message with the numbers. */
/* Sets gradient, first moment and second moment to 0 in every second, fourth and eighth block of 64 elements. */
static void let_blocks_rest(test_task *t, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const int64_t block = i / 64;
        if (block % 2 == 0) t->args[1][i] = 0;
        if (block % 4 == 0) t->args[3][i] = 0;
        t->args[4][i] = block % 8 == 0 ? 0 : fabsf(t->args[4][i]);
    }
}

/* Adam leaves out blocks in which nothing moves, and no others. */
static void test_adam_at_rest(void **state) {
    const int64_t count = 64 * 40 + 7, scalars = 4;
    leati_desc all = leati_desc_make(LEAT_F32, 1, &count), few = leati_desc_make(LEAT_F32, 1, &scalars);
    (void)state;
    for (size_t b = 0; test_backends[b]; b++)
        for (size_t i = 0; i < test_backends[b]->count; i++) {
            const leati_implementation *implementation = &test_backends[b]->implementations[i];
            char why[LEATI_REASON_BYTES] = "";
            test_task t[2];
            if (implementation->op != LEATI_OP_UPDATE_ADAM) continue;
            for (int k = 0; k < 2; k++) {
                leat_rng rng = leat_rng_for(9, 0, 0);
                test_task_init(&t[k], LEATI_OP_UPDATE_ADAM, &(leati_attrs){0}, 5,
                               (leati_desc[]){few, all, all, all, all}, 0, 2);
                test_fill_inputs(&t[k], -1, 1, &rng);
                memcpy(t[k].args[0], (float[]){0.01f, 0.9f, 0.999f, 1e-7f}, 4 * sizeof(float));
                let_blocks_rest(&t[k], count);
            }
            test_run_ref(&t[0]);
            assert_true(test_run(&t[1], implementation, why, NULL));
            for (int k = 2; k < 5; k++) assert_true(test_distance(t[0].args[k], t[1].args[k], count) < 1e-6);
            test_task_fini(&t[0]);
            test_task_fini(&t[1]);
        }
}

static void test_refusals(void **state) {
    (void)state;
    const struct {
        leati_op op;
        leati_attrs attrs;
        leati_desc in[3];
        leat_status status;
        const char *says;
    } cases[] = {
        {LEATI_OP_CONV,
         {.conv = {.window = W2(3, 0, 1, 0, 0), .groups = 1}},
         {DIMS(1, 5, 5, 2), DIMS(3, 3, 2, 4)},
         LEAT_EINVAL,
         "stride 0"},
        {LEATI_OP_CONV,
         {.conv = {.window = W2(3, 1, 1, 0, 0), .groups = 1}},
         {DIMS(1, 2, 5, 2), DIMS(3, 3, 2, 4)},
         LEAT_ESHAPE,
         "a window of 3 elements"},
        {LEATI_OP_CONV,
         {.conv = {.window = W2(3, 1, 1, 0, 0), .groups = 1}},
         {DIMS(1, 5, 5, 2), DIMS(3, 3, 3, 4)},
         LEAT_ESHAPE,
         "expected weights (3, 3, 2, 4), received (3, 3, 3, 4)"},
        {LEATI_OP_CONV,
         {.conv = {.window = W2(3, 1, 1, 0, 0), .groups = 3}},
         {DIMS(1, 5, 5, 2), DIMS(3, 3, 2, 4)},
         LEAT_ESHAPE,
         "3 groups for 2 channels"},
        {LEATI_OP_CONV,
         {.conv = {.window = W2(INT64_MAX, 1, 2, 0, 0), .groups = 1}},
         {DIMS(1, 5, 5, 2), DIMS(3, 3, 2, 4)},
         LEAT_EINVAL,
         "kernel 9223372036854775807"},
        {LEATI_OP_POOLING,
         {.pooling = {.window = W2(2, 2, 1, 2, 0)}},
         {DIMS(1, 5, 5, 2)},
         LEAT_EINVAL,
         "padding 2"},
        {LEATI_OP_BATCH_NORM,
         {.batch_norm = {1e-3f}},
         {DIMS(4, 5), DIMS(4), DIMS(5)},
         LEAT_ESHAPE,
         "gamma (5)"},
        {LEATI_OP_RNN,
         {.rnn = {.activation = TANH, .recurrent_activation = SIGMOID}},
         {DIMS(2, 3, 4), DIMS(4, 8), DIMS(3, 12)},
         LEAT_ESHAPE,
         "expected kernel (4, 12), received (4, 8)"},
        {LEATI_OP_RNN,
         {.rnn = {.activation = {LEATI_FN_SQUARE, 0, 0, 0}, .recurrent_activation = SIGMOID}},
         {DIMS(2, 3, 4), DIMS(4, 12), DIMS(3, 12)},
         LEAT_ENOTSUP,
         "activation 'square'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        leati_desc out[LEATI_MAX_OUTPUTS];
        leat_error err = {0};
        int count = cases[i].op == LEATI_OP_POOLING ? 1 : cases[i].op == LEATI_OP_CONV ? 2 : 3;
        assert_int_equal(
            leati_op_descriptor_of(cases[i].op)->infer(&cases[i].attrs, count, cases[i].in, out, &err),
            cases[i].status);
        if (!strstr(err.message, cases[i].says))
            fail_msg("expected '%s' in '%s'", cases[i].says, err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_by_hand),
        cmocka_unit_test(test_patches),
        cmocka_unit_test(test_patches_by_hand),
        cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_pooling_ties),
        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_matmul_of_many_threads),
        cmocka_unit_test(test_conv_of_many_threads),
        cmocka_unit_test(test_adam_at_rest),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
