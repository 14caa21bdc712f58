/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops for images: other sizes, blocks of pixels as channels, shades of gray.  Room: nn. */
#include "base/memory.h"
#include "nn/layers/operations/operations.h"
#include "nn/layers/operations/resample.h"
#include "nn/layers/spatial.h"

static int32_t format_of(const leati_operands *o) {
    return leati_operand_choice(o, "data_format", leati_data_formats);
}

/* Returns the operand with its channels last; fails the graph unless it is a batch of images. */
static bool read_images(leati_operands *o, const char *name, leati_value *images) {
    leati_value x = leati_operand(o, name);
    int rank = leati_graph_desc(o->g, x)->rank;
    if (rank != 4) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ESHAPE,
                               "%s: expected a batch of images, a tensor of 4 axes, received %d axes", name,
                               rank);
        return false;
    }
    *images = leati_image_value(o->g, x, format_of(o));
    return true;
}

static void write_images(leati_operands *o, leati_value images) {
    o->outputs[0] = leati_image_value_back(o->g, images, format_of(o));
}

enum { DEPTH_TO_SPACE, SPACE_TO_DEPTH };

/* Turns the channels of a pixel into a block of pixels, or a block of pixels into channels: in both directions the
 * channels of one pixel of the block lie together. */
static void lower_blocks(leati_operands *o) {
    static const int32_t perm[] = {0, 1, 3, 2, 4, 5};
    leati_value x;
    if (!read_images(o, "x", &x)) return;
    const leati_desc desc = *leati_graph_desc(o->g, x);
    const int64_t b = leati_operand_int(o, "block_size", 0), *n = desc.shape;
    bool to_space = o->operation->detail == DEPTH_TO_SPACE;
    bool fits = b > 0 && b <= INT16_MAX && (to_space ? n[3] % (b * b) == 0 : n[1] % b == 0 && n[2] % b == 0);
    if (!fits) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ESHAPE,
                               "block_size: expected a number that divides the %s, received %lld",
                               to_space ? "channels by its square" : "height and the width", (long long)b);
        return;
    }
    int64_t depth = to_space ? n[3] / (b * b) : n[3];
    int64_t in_space[] = {n[0], n[1], n[2], b, b, depth},
            in_depth[] = {n[0], n[1] / b, b, n[2] / b, b, depth};
    int64_t out_space[] = {n[0], leati_mul_saturated(n[1], b), leati_mul_saturated(n[2], b), depth};
    int64_t out_depth[] = {n[0], n[1] / b, n[2] / b, depth * b * b};
    x = leati_transpose(o->g, leati_reshape(o->g, x, 6, to_space ? in_space : in_depth), perm);
    write_images(o, leati_reshape(o->g, x, 4, to_space ? out_space : out_depth));
}

static void lower_resize(leati_operands *o) {
    leati_value x;
    int64_t size[LEAT_MAX_RANK];
    if (!read_images(o, "images", &x)) return;
    int count = leati_operand_ints(o, "size", size);
    leati_resize resize = {.interpolation = leati_operand_choice(o, "interpolation", leati_interpolations),
                           .antialias = leati_operand_flag(o, "antialias"),
                           .crop = leati_operand_flag(o, "crop_to_aspect_ratio"),
                           .pad = leati_operand_flag(o, "pad_to_aspect_ratio"),
                           .fill = leati_operand_number_or(o, "fill_value", 0)};
    if (count != 2 || size[0] < 1 || size[1] < 1 || size[0] > INT32_MAX || size[1] > INT32_MAX) {
        o->outputs[0] = leati_operand_fail(o, LEAT_EINVAL, "size: expected a height and a width as numbers");
    } else {
        resize.height = size[0];
        resize.width = size[1];
        write_images(o, leati_resize_image(o->g, x, &resize));
    }
}

/* The brightness of each pixel of an image with 3 channels; an image with 1 channel stays as it is. */
static void lower_grayscale(leati_operands *o) {
    static const float brightness[] = {0.2989f, 0.5870f, 0.1140f};
    leati_value x, y = LEATI_INVALID;
    if (!read_images(o, "images", &x)) return;
    int64_t channels = leati_graph_desc(o->g, x)->shape[3];
    if (channels != 1 && channels != 3) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ESHAPE, "images: expected 1 or 3 channels, received %lld",
                                           (long long)channels);
        return;
    }
    for (int i = 0; i < 3 && channels == 3; ++i) {
        leati_value part = leati_linear(o->g, leati_slice_axis(o->g, x, 3, i, 1), brightness[i], 0);
        y = i == 0 ? part : leati_add(o->g, y, part);
    }
    write_images(o, channels == 1 ? x : y);
}

/* ---- Hue, saturation and value ---- */

static bool read_colours(leati_operands *o, leati_value channels[3]) {
    leati_value x;
    if (!read_images(o, "images", &x)) return false;
    if (leati_graph_desc(o->g, x)->shape[3] != 3) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ESHAPE, "images: expected 3 channels");
        return false;
    }
    for (int i = 0; i < 3; ++i) channels[i] = leati_slice_axis(o->g, x, 3, i, 1);
    return true;
}

static leati_value not_of(leati_graph *g, leati_value x) {
    return leati_linear(g, x, -1, 1);
}

/* The hue is the place of the largest channel and the difference of the two others, in sixths of a turn. */
static void lower_rgb_to_hsv(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x[3], out[3];
    if (!read_colours(o, x)) return;
    leati_value most = leati_binary_of(g, LEATI_MAX, leati_binary_of(g, LEATI_MAX, x[0], x[1]), x[2]);
    leati_value least = leati_binary_of(g, LEATI_MIN, leati_binary_of(g, LEATI_MIN, x[0], x[1]), x[2]);
    leati_value range = leati_sub(g, most, least), zero = leati_scalar(g, 0);
    leati_value grey = not_of(g, leati_binary_of(g, LEATI_GREATER, range, zero));
    leati_value black = not_of(g, leati_binary_of(g, LEATI_GREATER, most, zero));
    leati_value red = leati_binary_of(g, LEATI_EQUAL, most, x[0]);
    leati_value green = leati_mul(g, leati_binary_of(g, LEATI_EQUAL, most, x[1]), not_of(g, red));
    leati_value largest[] = {red, green, not_of(g, leati_add(g, red, green))};
    leati_value hue = LEATI_INVALID;
    for (int i = 0; i < 3; ++i) {
        leati_value rest =
            leati_div(g, leati_sub(g, x[(i + 1) % 3], x[(i + 2) % 3]), leati_add(g, range, grey));
        rest = leati_mul(g, largest[i], leati_linear(g, rest, 1.0f / 6, (float)i / 3));
        hue = i == 0 ? rest : leati_add(g, hue, rest);
    }
    hue = leati_mul(g, hue, not_of(g, grey));
    out[0] = leati_add(g, hue, leati_binary_of(g, LEATI_GREATER, zero, hue));
    out[1] = leati_mul(g, leati_div(g, range, leati_add(g, most, black)), not_of(g, black));
    out[2] = most;
    write_images(o, leati_concat(g, 3, out, 3));
}

/* A channel is value (1 - saturation + saturation share), where the share is a trapezoid of the hue.  As in TensorFlow,
 * hues are not periodic: all outside 0 to 1 are red. */
static void lower_hsv_to_rgb(leati_operands *o) {
    static const float centers[] = {3, 2, 4};
    leati_graph *g = o->g;
    leati_value x[3], out[3];
    if (!read_colours(o, x)) return;
    leati_value turn = leati_linear(g, x[0], 6, 0);
    for (int i = 0; i < 3; ++i) {
        leati_value away = leati_function_of(g, leati_linear(g, turn, 1, -centers[i]), LEATI_FN_ABS);
        leati_value share = leati_clip(g, leati_linear(g, away, i == 0 ? 1 : -1, i == 0 ? -1 : 2), 0, 1);
        leati_value level = leati_mul(g, x[1], leati_linear(g, share, 1, -1));
        out[i] = leati_mul(g, x[2], leati_linear(g, level, 1, 1));
    }
    write_images(o, leati_concat(g, 3, out, 3));
}

/* Reads two of: the number of lines before the image, after it, and the length that results (sign: -1 where lines are
 * cut off).  Computes the third.  Returns false if fewer are given, or a number is negative. */
static bool read_border(const leati_operands *o, const char *const names[3], int64_t length, int sign,
                        int64_t out[2]) {
    int64_t before = leati_operand_int(o, names[0], -1), after = leati_operand_int(o, names[1], -1);
    int64_t target = leati_operand_int(o, names[2], -1);
    bool given[] = {leati_operand_json(o, names[0]) != NULL, leati_operand_json(o, names[1]) != NULL,
                    leati_operand_json(o, names[2]) != NULL};
    if (given[0] + given[1] + given[2] < 2 || target > INT32_MAX) return false;
    int64_t total = given[2] ? sign * (target - length) : before + after;
    out[0] = given[0] ? before : total - after;
    out[1] = given[1] ? after : total - before;
    return out[0] >= 0 && out[1] >= 0 && out[0] <= INT32_MAX && out[1] <= INT32_MAX &&
           out[0] + out[1] == total;
}

enum { PAD, CROP };

/* Adds a border of zeros, or cuts one off. */
static void lower_border(leati_operands *o) {
    static const char *const names[2][2][3] = {{{"top_padding", "bottom_padding", "target_height"},
                                                {"left_padding", "right_padding", "target_width"}},
                                               {{"top_cropping", "bottom_cropping", "target_height"},
                                                {"left_cropping", "right_cropping", "target_width"}}};
    bool crop = o->operation->detail == CROP, fits = true;
    int64_t before[LEAT_MAX_RANK] = {0}, after[LEAT_MAX_RANK] = {0};
    leati_value x;
    if (!read_images(o, "images", &x)) return;
    const leati_desc desc = *leati_graph_desc(o->g, x);
    for (int i = 0; fits && i < 2; ++i) {
        int64_t border[2] = {0};
        fits = read_border(o, names[crop][i], desc.shape[i + 1], crop ? -1 : 1, border);
        before[i + 1] = border[0];
        after[i + 1] = border[1];
        fits = fits && (!crop || border[0] + border[1] <= desc.shape[i + 1]);
    }
    if (!fits) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_EINVAL,
                               "expected two of the border before, the border after and the target "
                               "size, for the height and the width, and no negative number");
        return;
    }
    for (int i = 1; crop && i < 3; ++i)
        x = leati_slice_axis(o->g, x, i, before[i], desc.shape[i] - before[i] - after[i]);
    write_images(o, crop ? x : leati_pad(o->g, x, before, after, 0));
}

#define IMAGE "ops.image"

const leati_operation leati_image_operations[] = {
    {"DepthToSpace", "ops.nn", "x block_size data_format", lower_blocks, DEPTH_TO_SPACE},
    {"SpaceToDepth", "ops.nn", "x block_size data_format", lower_blocks, SPACE_TO_DEPTH},
    {"Resize", IMAGE,
     "images size interpolation antialias crop_to_aspect_ratio pad_to_aspect_ratio fill_mode fill_value "
     "data_format",
     lower_resize, 0},
    {"RGBToGrayscale", IMAGE, "images data_format", lower_grayscale, 0},
    {"RGBToHSV", IMAGE, "images data_format", lower_rgb_to_hsv, 0},
    {"HSVToRGB", IMAGE, "images data_format", lower_hsv_to_rgb, 0},
    {"PadImages", IMAGE,
     "images top_padding left_padding bottom_padding right_padding target_height target_width data_format",
     lower_border, PAD},
    {"CropImages", IMAGE,
     "images top_cropping left_cropping bottom_cropping right_cropping target_height target_width "
     "data_format",
     lower_border, CROP},
    {.name = NULL},
};
