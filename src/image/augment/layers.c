/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of current Keras that change colours, as steps, with the layers' names and arguments.  Pictures have
 * values from 0 to 255, which is the default of the layers' value_range.  Room: image. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "image/augment/augment.h"

static int64_t pixel_count(const leati_work *work) {
    return work->extent.height * work->extent.width;
}

static int64_t value_count(const leati_work *work) {
    return pixel_count(work) * work->extent.channels;
}

static float clip(float value, float least, float most) {
    return value < least ? least : value > most ? most : value;
}

static leat_status check_positive(leati_step *step, leat_error *err) {
    return leati_check_factor(step, 0, 0, err);
}

static leat_status check_any(leati_step *step, leat_error *err) {
    return leati_check_factor(step, 0, -1, err);
}

static leat_status check_rgb(leati_step *step, leat_error *err) {
    if (step->before.channels == 3) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "%s expects pictures with 3 channels, received %lld",
                      step->type->name, (long long)step->before.channels);
}

static leat_status check_any_rgb(leati_step *step, leat_error *err) {
    LEATI_TRY(check_rgb(step, err));
    return check_any(step, err);
}

static leat_status check_positive_rgb(leati_step *step, leat_error *err) {
    LEATI_TRY(check_rgb(step, err));
    return check_positive(step, err);
}

static void draw_one_factor(const leati_step *step, leat_rng *rng, double *drawn) {
    drawn[0] = leati_draw_factor(step, 0, rng);
}

/* ---- RandomBrightness, RandomContrast ---- */

static leat_status brighten(const leati_step *step, const double *drawn, leati_work *work, leat_error *err) {
    const int64_t count = value_count(work);
    const float delta = (float)(drawn[0] * 255);
    (void)step;
    (void)err;
    leati_work_to_floats(work);
    for (int64_t i = 0; i < count; ++i) work->pixels[i] = clip(work->pixels[i] + delta, 0, 255);
    return LEAT_OK;
}

static void draw_contrast(const leati_step *step, leat_rng *rng, double *drawn) {
    const double *range = step->arguments[0].number;
    drawn[0] = leati_draw_between(rng, 1 - range[0], 1 + range[1]);
}

static leat_status change_contrast(const leati_step *step, const double *drawn, leati_work *work,
                                   leat_error *err) {
    const int64_t count = value_count(work), channels = work->extent.channels;
    const float factor = (float)drawn[0];
    double sums[4] = {0};
    float means[4] = {0};
    (void)step;
    (void)err;
    leati_work_to_floats(work);
    for (int64_t i = 0; i < count; i += channels)
        for (int64_t c = 0; c < channels; ++c) sums[c] += work->pixels[i + c];
    for (int64_t c = 0; c < channels; ++c) means[c] = (float)(sums[c] / (double)pixel_count(work));
    for (int64_t i = 0; i < count; i += channels)
        for (int64_t c = 0; c < channels; ++c)
            work->pixels[i + c] = clip((work->pixels[i + c] - means[c]) * factor + means[c], 0, 255);
    return LEAT_OK;
}

/* ---- RandomHue, RandomSaturation ---- */

static void to_hsv(float hsv[3], const float rgb[3]) {
    const float r = rgb[0], g = rgb[1], b = rgb[2];
    const float value = fmaxf(fmaxf(r, g), b), range = value - fminf(fminf(r, g), b);
    const float norm = 1 / (6 * (range > 0 ? range : 1));
    float hue = value == r   ? norm * (g - b)
                : value == g ? norm * (b - r) + 2.0f / 6
                             : norm * (r - g) + 4.0f / 6;
    if (range <= 0) hue = 0;
    hsv[0] = hue < 0 ? hue + 1 : hue;
    hsv[1] = value > 0 ? range / value : 0;
    hsv[2] = value;
}

static void to_rgb(float rgb[3], const float hsv[3]) {
    const float turn = (hsv[0] - floorf(hsv[0])) * 6, s = hsv[1], rest = 1 - s;
    rgb[0] = hsv[2] * (rest + s * clip(fabsf(turn - 3) - 1, 0, 1));
    rgb[1] = hsv[2] * (rest + s * clip(2 - fabsf(turn - 2), 0, 1));
    rgb[2] = hsv[2] * (rest + s * clip(2 - fabsf(turn - 4), 0, 1));
}

static void draw_hue(const leati_step *step, leat_rng *rng, double *drawn) {
    const double sign = leati_draw_between(rng, 0, 1) > 0.5 ? -1 : 1;
    drawn[0] = sign * leati_draw_factor(step, 0, rng) * 0.5;
}

static leat_status change_hue(const leati_step *step, const double *drawn, leati_work *work,
                              leat_error *err) {
    const int64_t count = value_count(work);
    const float shift = (float)drawn[0];
    (void)step;
    (void)err;
    leati_work_to_floats(work);
    for (int64_t i = 0; i < count; i += 3) {
        const float rgb[3] = {work->pixels[i] / 255, work->pixels[i + 1] / 255, work->pixels[i + 2] / 255};
        float hsv[3], result[3];
        to_hsv(hsv, rgb);
        hsv[0] += shift;
        hsv[0] = hsv[0] > 1 ? hsv[0] - 1 : hsv[0] < 0 ? hsv[0] + 1 : hsv[0];
        to_rgb(result, hsv);
        for (int c = 0; c < 3; ++c) work->pixels[i + c] = clip(result[c], 0, 1) * 255;
    }
    return LEAT_OK;
}

static void draw_saturation(const leati_step *step, leat_rng *rng, double *drawn) {
    const double factor = leati_draw_factor(step, 0, rng);
    drawn[0] = factor / (1 - factor + 1e-7);
}

static leat_status change_saturation(const leati_step *step, const double *drawn, leati_work *work,
                                     leat_error *err) {
    const int64_t count = value_count(work);
    const float factor = (float)drawn[0];
    (void)step;
    (void)err;
    leati_work_to_floats(work);
    for (int64_t i = 0; i < count; i += 3) {
        float hsv[3];
        to_hsv(hsv, work->pixels + i);
        hsv[1] = clip(hsv[1] * factor, 0, 255);
        to_rgb(work->pixels + i, hsv);
    }
    return LEAT_OK;
}

/* ---- RandomGrayscale, RandomColorDegeneration ---- */

static float gray(const float *rgb) {
    return 0.2989f * rgb[0] + 0.5870f * rgb[1] + 0.1140f * rgb[2];
}

static void draw_grayscale(const leati_step *step, leat_rng *rng, double *drawn) {
    drawn[0] = leati_draw_between(rng, 0, 1) < step->arguments[0].number[0];
}

static leat_status degenerate(const leati_step *step, const double *drawn, leati_work *work,
                              leat_error *err) {
    const int64_t count = value_count(work);
    const float factor = (float)drawn[0];
    (void)step;
    (void)err;
    leati_work_to_floats(work);
    for (int64_t i = 0; i < count; i += 3) {
        const float level = gray(work->pixels + i);
        for (int c = 0; c < 3; ++c)
            work->pixels[i + c] = clip(work->pixels[i + c] + factor * (level - work->pixels[i + c]), 0, 255);
    }
    return LEAT_OK;
}

/* ---- RandomInvert, RandomPosterization, Solarization ---- */

/* Draws a probability, then a number that has to be below it. */
static void draw_chance(const leati_step *step, leat_rng *rng, double *drawn) {
    const double chance = leati_draw_factor(step, 0, rng);
    drawn[0] = leati_draw_between(rng, 0, 1) < chance;
}

static leat_status invert(const leati_step *step, const double *drawn, leati_work *work, leat_error *err) {
    const int64_t count = value_count(work);
    (void)step;
    (void)err;
    if (drawn[0] == 0) return LEAT_OK;
    leati_work_to_floats(work);
    for (int64_t i = 0; i < count; ++i) work->pixels[i] = 255 - work->pixels[i];
    return LEAT_OK;
}

static leat_status check_posterization(leati_step *step, leat_error *err) {
    return leati_check_factor(step, 0, 1, err);
}

/* The upper end is excluded, unless it is the lower end too. */
static void draw_posterization(const leati_step *step, leat_rng *rng, double *drawn) {
    drawn[0] = 8 - floor(leati_draw_factor(step, 0, rng));
}

static leat_status posterize(const leati_step *step, const double *drawn, leati_work *work, leat_error *err) {
    const int64_t count = value_count(work);
    const unsigned mask = 255u << (unsigned)drawn[0] & 255u;
    (void)step;
    (void)err;
    leati_work_to_floats(work);
    for (int64_t i = 0; i < count; ++i)
        work->pixels[i] = (float)((unsigned)clip(work->pixels[i], 0, 255) & mask);
    return LEAT_OK;
}

static leat_status check_solarization(leati_step *step, leat_error *err) {
    LEATI_TRY(leati_check_factor(step, 0, 0, err));
    return leati_check_factor(step, 1, 0, err);
}

/* As in Keras, the upper end is multiplied by 255 and the lower end is not. */
static void draw_solarization(const leati_step *step, leat_rng *rng, double *drawn) {
    for (int i = 0; i < 2; ++i) {
        const double *range = step->arguments[i].number;
        drawn[i] = leati_draw_between(rng, range[0], range[1] * 255);
    }
}

static leat_status solarize(const leati_step *step, const double *drawn, leati_work *work, leat_error *err) {
    const int64_t count = value_count(work);
    const float addition = (float)drawn[0], threshold = (float)drawn[1];
    (void)step;
    (void)err;
    leati_work_to_floats(work);
    for (int64_t i = 0; i < count; ++i) {
        const float value = clip(work->pixels[i] + addition, 0, 255);
        work->pixels[i] = value < threshold ? value : 255 - value;
    }
    return LEAT_OK;
}

/* ---- AutoContrast, Equalization ---- */

static leat_status auto_contrast(const leati_step *step, const double *drawn, leati_work *work,
                                 leat_error *err) {
    const int64_t count = value_count(work), channels = work->extent.channels;
    (void)step;
    (void)drawn;
    (void)err;
    leati_work_to_floats(work);
    for (int64_t c = 0; c < channels; ++c) {
        float low = work->pixels[c], high = low;
        for (int64_t i = c; i < count; i += channels) {
            low = fminf(low, work->pixels[i]);
            high = fmaxf(high, work->pixels[i]);
        }
        if (high <= low) continue;
        const float scale = 255 / (high - low), offset = -low * scale;
        for (int64_t i = c; i < count; i += channels)
            work->pixels[i] = clip(work->pixels[i] * scale + offset, 0, 255);
    }
    return LEAT_OK;
}

/* Makes the table that equalizes a channel; returns false if all its values are equal. */
static bool make_table(float table[256], const leati_work *work, int64_t channel) {
    const int64_t count = value_count(work), channels = work->extent.channels;
    int64_t histogram[256] = {0}, sum = 0, first = 0;
    int kinds = 0;
    for (int64_t i = channel; i < count; i += channels) ++histogram[(int)clip(work->pixels[i], 0, 255)];
    for (int i = 0; i < 256; ++i) {
        kinds += histogram[i] > 0;
        if (sum == 0) first = histogram[i];
        sum += histogram[i];
        table[i] = (float)sum;
    }
    if (kinds < 2) return false;
    for (int i = 0; i < 256; ++i)
        table[i] = clip(nearbyintf((float)(((double)table[i] - (double)first) * 255 / (double)(sum - first))),
                        0, 255);
    return true;
}

static leat_status equalize(const leati_step *step, const double *drawn, leati_work *work, leat_error *err) {
    const int64_t count = value_count(work), channels = work->extent.channels;
    float table[256];
    (void)step;
    (void)drawn;
    (void)err;
    leati_work_to_floats(work);
    for (int64_t c = 0; c < channels; ++c) {
        if (!make_table(table, work, c)) continue;
        for (int64_t i = c; i < count; i += channels)
            work->pixels[i] = table[(int)clip(work->pixels[i] / 255.0f * 255, 0, 255)];
    }
    return LEAT_OK;
}

/* ---- RandomSharpness, RandomGaussianBlur ---- */

/* Filters lines and columns of the picture with weights of their own, zeros around the picture; the result is in
 * work->spare. */
static void convolve(leati_work *work, const float *across, int64_t width, const float *down,
                     int64_t height) {
    const int64_t w = work->extent.width, h = work->extent.height, c = work->extent.channels;
    for (int64_t y = 0; y < h; ++y)
        for (int64_t x = 0; x < w * c; ++x) {
            float sum = 0;
            for (int64_t j = 0; j < height; ++j) {
                const int64_t row = y + j - (height - 1) / 2;
                if (row < 0 || row >= h) continue;
                for (int64_t i = 0; i < width; ++i) {
                    const int64_t at = x + (i - (width - 1) / 2) * c;
                    if (at >= 0 && at < w * c) sum += across[i] * down[j] * work->pixels[row * w * c + at];
                }
            }
            work->spare[y * w * c + x] = sum;
        }
}

static leat_status sharpen(const leati_step *step, const double *drawn, leati_work *work, leat_error *err) {
    static const float ones[] = {1, 1, 1};
    const int64_t count = value_count(work);
    const float weight = (float)(1 - 2 * drawn[0]);
    (void)step;
    (void)err;
    leati_work_to_floats(work);
    convolve(work, ones, 3, ones, 3); /* the sum of 9 pixels; the one in the middle counts 5 times */
    for (int64_t i = 0; i < count; ++i) {
        const float smooth = (work->spare[i] + 4 * work->pixels[i]) / 13;
        work->pixels[i] = clip(work->pixels[i] + weight * (smooth - work->pixels[i]), 0, 255);
    }
    return LEAT_OK;
}

enum { MOST_TAPS = 63 };

static leat_status check_blur(leati_step *step, leat_error *err) {
    leati_argument *size = &step->arguments[1];
    LEATI_TRY(leati_check_factor(step, 0, 0, err));
    LEATI_TRY(leati_check_factor(step, 2, 0, err));
    if (size->count == 1) size->number[size->count++] = size->number[0];
    if (size->count == 2 && fmod(size->number[0], 2) == 1 && fmod(size->number[1], 2) == 1) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "%s: kernel_size expects one or two odd integers", step->type->name);
}

static void draw_blur(const leati_step *step, leat_rng *rng, double *drawn) {
    draw_chance(step, rng, drawn);
    drawn[1] = leati_draw_factor(step, 2, rng) + 1e-6;
    drawn[2] = leati_draw_factor(step, 2, rng) + 1e-6;
}

static void make_gaussian(float *weights, int64_t taps, double sigma) {
    double values[MOST_TAPS], sum = 0;
    for (int64_t i = 0; i < taps; ++i) {
        const double distance = ((double)i - (double)(taps - 1) / 2) / sigma;
        values[i] = exp(-0.5 * distance * distance);
        sum += values[i];
    }
    for (int64_t i = 0; i < taps; ++i) weights[i] = (float)(values[i] / sum);
}

static leat_status blur(const leati_step *step, const double *drawn, leati_work *work, leat_error *err) {
    const int64_t width = (int64_t)step->arguments[1].number[0],
                  height = (int64_t)step->arguments[1].number[1];
    const int64_t count = value_count(work);
    float across[MOST_TAPS], down[MOST_TAPS];
    (void)err;
    if (drawn[0] == 0) return LEAT_OK;
    make_gaussian(across, width, drawn[1]);
    make_gaussian(down, height, drawn[2]);
    leati_work_to_floats(work);
    convolve(work, across, width, down, height);
    for (int64_t i = 0; i < count; ++i) work->spare[i] = clip(work->spare[i], 0, 255);
    leati_work_swap(work);
    return LEAT_OK;
}

/* ---- RandomErasing ---- */

static leat_status check_erasing(leati_step *step, leat_error *err) {
    LEATI_TRY(leati_check_factor(step, 0, 0, err));
    LEATI_TRY(leati_check_factor(step, 1, 0, err));
    const int fills = step->arguments[2].count;
    if (fills <= 1 || fills == step->before.channels) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL,
                      "%s: fill_value expects a number, or one for each channel, received %d",
                      step->type->name, fills);
}

/* Draws the box, the chance, and a seed for the noise that fills the box. */
static void draw_erasing(const leati_step *step, leat_rng *rng, double *drawn) {
    const double width = sqrt(leati_draw_factor(step, 1, rng)) * (double)step->before.width;
    const double height = sqrt(leati_draw_factor(step, 1, rng)) * (double)step->before.height;
    drawn[1] = leati_draw_between(rng, 0, (double)step->before.width - width);
    drawn[2] = drawn[1] + width;
    drawn[3] = leati_draw_between(rng, 0, (double)step->before.height - height);
    drawn[4] = drawn[3] + height;
    draw_chance(step, rng, drawn);
    drawn[5] = (double)leat_rng_u32(rng);
}

static leat_status erase(const leati_step *step, const double *drawn, leati_work *work, leat_error *err) {
    const leati_argument *fill = &step->arguments[2];
    const int64_t width = work->extent.width, channels = work->extent.channels;
    leat_rng noise = leat_rng_for((uint64_t)drawn[5], 0, 0);
    (void)err;
    if (drawn[0] == 0) return LEAT_OK;
    leati_work_to_floats(work);
    for (int64_t y = (int64_t)ceil(drawn[3]); y < work->extent.height && (double)y < drawn[4]; ++y)
        for (int64_t x = (int64_t)ceil(drawn[1]); x < width && (double)x < drawn[2]; ++x)
            for (int64_t c = 0; c < channels; ++c) {
                const double value =
                    fill->count == 0 ? leat_rng_normal(&noise) * 255 : fill->number[fill->count > 1 ? c : 0];
                work->pixels[(y * width + x) * channels + c] = clip((float)value, 0, 255);
            }
    return LEAT_OK;
}

/* ---- Rescaling ---- */

static leat_status rescale(const leati_step *step, const double *drawn, leati_work *work, leat_error *err) {
    const int64_t count = value_count(work);
    const float scale = (float)step->arguments[0].number[0], offset = (float)step->arguments[1].number[0];
    (void)drawn;
    (void)err;
    leati_work_to_floats(work);
    for (int64_t i = 0; i < count; ++i) work->pixels[i] = work->pixels[i] * scale + offset;
    return LEAT_OK;
}

#define FACTOR(least, most)                                                                                  \
    {                                                                                                        \
        { "factor", LEATI_ARGUMENT_LIST, "", NULL, least, most }                                             \
    }

const leati_step_type leati_color_steps[] = {
    {.name = "RandomBrightness",
     .parameters = FACTOR(-1, 1),
     .draws = "rgb_delta",
     .check = check_any,
     .draw = draw_one_factor,
     .apply = brighten},
    {.name = "RandomContrast",
     .parameters = FACTOR(0, 1),
     .draws = "contrast_factor",
     .check = check_positive,
     .draw = draw_contrast,
     .apply = change_contrast},
    {.name = "RandomHue",
     .parameters = FACTOR(0, 1),
     .draws = "factor",
     .check = check_positive_rgb,
     .draw = draw_hue,
     .apply = change_hue},
    {.name = "RandomSaturation",
     .parameters = FACTOR(-1, 1),
     .draws = "factor",
     .check = check_any_rgb,
     .draw = draw_saturation,
     .apply = change_saturation},
    {.name = "RandomGrayscale",
     .parameters = {{"factor", LEATI_ARGUMENT_NUMBER, "0.5", NULL, 0, 1}},
     .draws = "should_apply",
     .check = check_rgb,
     .draw = draw_grayscale,
     .apply = degenerate},
    {.name = "RandomColorDegeneration",
     .parameters = FACTOR(-1, 1),
     .draws = "factor",
     .check = check_any_rgb,
     .draw = draw_one_factor,
     .apply = degenerate},
    {.name = "RandomInvert",
     .parameters = {{"factor", LEATI_ARGUMENT_LIST, "1", NULL, 0, 1}},
     .draws = "apply_inversion",
     .check = check_positive,
     .draw = draw_chance,
     .apply = invert},
    {.name = "RandomPosterization",
     .parameters = FACTOR(1, 8),
     .draws = "shift_factor",
     .check = check_posterization,
     .draw = draw_posterization,
     .apply = posterize},
    {.name = "Solarization",
     .parameters = {{"addition_factor", LEATI_ARGUMENT_LIST, "0", NULL, 0, 1},
                    {"threshold_factor", LEATI_ARGUMENT_LIST, "0", NULL, 0, 1}},
     .draws = "additions thresholds",
     .check = check_solarization,
     .draw = draw_solarization,
     .apply = solarize},
    {.name = "AutoContrast", .draws = "", .apply = auto_contrast},
    {.name = "Equalization", .draws = "", .apply = equalize},
    {.name = "RandomSharpness",
     .parameters = FACTOR(0, 1),
     .draws = "factor",
     .check = check_positive,
     .draw = draw_one_factor,
     .apply = sharpen},
    {.name = "RandomGaussianBlur",
     .parameters = {{"factor", LEATI_ARGUMENT_LIST, "1", NULL, 0, 1},
                    {"kernel_size", LEATI_ARGUMENT_LIST, "3", NULL, 1, MOST_TAPS},
                    {"sigma", LEATI_ARGUMENT_LIST, "1", NULL, 0, 1}},
     .draws = "should_apply_blur sigma_x sigma_y",
     .check = check_blur,
     .draw = draw_blur,
     .apply = blur},
    {.name = "RandomErasing",
     .parameters = {{"factor", LEATI_ARGUMENT_LIST, "1", NULL, 0, 1},
                    {"scale", LEATI_ARGUMENT_LIST, "(0.02, 0.33)", NULL, 0, 1},
                    {"fill_value", LEATI_ARGUMENT_LIST, NULL, NULL, 0, 255}},
     .draws = "apply_erasing x0 x1 y0 y1 noise",
     .check = check_erasing,
     .draw = draw_erasing,
     .apply = erase},
    {.name = "Rescaling",
     .parameters = {{"scale", LEATI_ARGUMENT_NUMBER, "", NULL, -1e6, 1e6},
                    {"offset", LEATI_ARGUMENT_NUMBER, "0", NULL, -1e6, 1e6}},
     .draws = "",
     .apply = rescale,
     .makes_floats = true},
    {.name = NULL},
};
