/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that have the names and the numbers of the arguments of Keras 2.3.1's ImageDataGenerator, and short names
 * for them.  Room: image. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "image/augment/augment.h"
#include "image/augment/color.h"
#include "image/augment/statistics.h"

static const double DEGREE = 3.141592653589793 / 180;

/* Moves the origin of a matrix (y, x) of the generator to its centre, which is half a pixel behind the middle, and
 * writes the matrix in the order (x, y). */
static void center(leati_affine *out, const leati_step *step, double yy, double yx, double xy, double xx,
                   double ty, double tx) {
    const double cy = (double)step->before.height / 2 + 0.5, cx = (double)step->before.width / 2 + 0.5;
    *out = (leati_affine){{xx, xy, tx + cx - (xy * cy + xx * cx)}, {yx, yy, ty + cy - (yy * cy + yx * cx)}};
}

/* ---- Rotation and shear ---- */

static void draw_symmetric(const leati_step *step, leat_rng *rng, double *drawn) {
    const double range = step->arguments[0].number[0];
    drawn[0] = leati_draw_between(rng, -range, range);
}

static void rotate(const leati_step *step, const double *drawn, leati_affine *out) {
    const double c = cos(drawn[0] * DEGREE), s = sin(drawn[0] * DEGREE);
    center(out, step, c, -s, s, c, 0, 0);
}

static void shear(const leati_step *step, const double *drawn, leati_affine *out) {
    center(out, step, 1, -sin(drawn[0] * DEGREE), 0, cos(drawn[0] * DEGREE), 0, 0);
}

/* ---- Shifts ---- */

/* Draws a shift in pixels: of a fraction's range below 1, or in pixels; of an integer N one of 0 to N - 1 with a random
 * sign; of a list one of its numbers with a random sign. */
static double draw_shift(const leati_argument *range, int64_t length, leat_rng *rng) {
    double most = 0, shift = 0;
    for (int i = 0; i < range->count; ++i) most = fmax(most, range->number[i]);
    if (range->is_list || range->is_integer) {
        const uint64_t choices = range->is_list ? (uint64_t)range->count : (uint64_t)fabs(most);
        const uint64_t choice = leat_rng_below(rng, choices);
        shift = range->is_list ? range->number[choice] : (double)choice;
        shift *= leati_draw_between(rng, 0, 1) < 0.5 ? -1 : 1;
    } else {
        shift = leati_draw_between(rng, -most, most);
    }
    return most < 1 ? shift * (double)length : shift;
}

static void draw_height_shift(const leati_step *step, leat_rng *rng, double *drawn) {
    drawn[0] = draw_shift(&step->arguments[0], step->before.height, rng);
}

static void draw_width_shift(const leati_step *step, leat_rng *rng, double *drawn) {
    drawn[0] = draw_shift(&step->arguments[0], step->before.width, rng);
}

static void draw_both_shifts(const leati_step *step, leat_rng *rng, double *drawn) {
    drawn[0] = draw_shift(&step->arguments[0], step->before.height, rng);
    drawn[1] = draw_shift(&step->arguments[0], step->before.width, rng);
}

static void shift_height(const leati_step *step, const double *drawn, leati_affine *out) {
    center(out, step, 1, 0, 0, 1, drawn[0], 0);
}

static void shift_width(const leati_step *step, const double *drawn, leati_affine *out) {
    center(out, step, 1, 0, 0, 1, 0, drawn[0]);
}

static void shift_both(const leati_step *step, const double *drawn, leati_affine *out) {
    center(out, step, 1, 0, 0, 1, drawn[0], drawn[1]);
}

/* ---- Zoom ---- */

/* Makes the pair (1 - range, 1 + range) of a number, as the generator does for zoom_range. */
static leat_status check_pair_around_1(leati_step *step, leat_error *err) {
    leati_argument *range = &step->arguments[0];
    if (range->count == 1 && !range->is_list) {
        const double r = range->number[0];
        range->number[0] = 1 - r;
        range->number[1] = 1 + r;
        range->count = 2;
    }
    if (range->count == 2) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "%s expects a number or two, such as 0.2 or (0.8, 1.2), received %d",
                      step->type->name, range->count);
}

static void draw_zoom(const leati_step *step, leat_rng *rng, double *drawn) {
    const double *range = step->arguments[0].number;
    drawn[0] = leati_draw_between(rng, range[0], range[1]);
    drawn[1] = leati_draw_between(rng, range[0], range[1]);
}

static void zoom(const leati_step *step, const double *drawn, leati_affine *out) {
    center(out, step, drawn[0], 0, 0, drawn[1], 0, 0);
}

/* ---- Flips ---- */

static void draw_flip(const leati_step *step, leat_rng *rng, double *drawn) {
    const double u = leati_draw_between(rng, 0, 1);
    drawn[0] = u < 0.5 && step->arguments[0].number[0] != 0;
}

static void flip_horizontal(const leati_step *step, const double *drawn, leati_affine *out) {
    *out = (leati_affine){{1, 0, 0}, {0, 1, 0}};
    if (drawn[0] != 0) out->x[0] = -1, out->x[2] = (double)(step->before.width - 1);
}

static void flip_vertical(const leati_step *step, const double *drawn, leati_affine *out) {
    *out = (leati_affine){{1, 0, 0}, {0, 1, 0}};
    if (drawn[0] != 0) out->y[1] = -1, out->y[2] = (double)(step->before.height - 1);
}

/* The short step `flip` draws for both directions, whichever it has. */
static void draw_flips(const leati_step *step, leat_rng *rng, double *drawn) {
    const int mode = step->arguments[0].word;
    const double horizontal = leati_draw_between(rng, 0, 1), vertical = leati_draw_between(rng, 0, 1);
    drawn[0] = horizontal < 0.5 && mode != 1;
    drawn[1] = vertical < 0.5 && mode != 0;
}

static void flip(const leati_step *step, const double *drawn, leati_affine *out) {
    leati_affine vertical;
    flip_horizontal(step, drawn, out);
    flip_vertical(step, drawn + 1, &vertical);
    out->y[1] = vertical.y[1];
    out->y[2] = vertical.y[2];
}

/* ---- Colours ---- */

static void draw_range(const leati_step *step, leat_rng *rng, double *drawn) {
    const double *range = step->arguments[0].number;
    drawn[0] = leati_draw_between(rng, range[0], range[1]);
}

static leat_status check_pair(leati_step *step, leat_error *err) {
    if (step->arguments[0].count == 2) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "%s expects two numbers, such as (0.8, 1.2), received %d",
                      step->type->name, step->arguments[0].count);
}

/* Checks that there is a number for all channels, or one for each. */
static leat_status check_channels(leati_step *step, leat_error *err) {
    const int count = step->arguments[0].count;
    if (count == 0) return LEAT_OK; /* the numbers are computed of the training data */
    if (count == 1 || count == step->before.channels) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "%s expects a number, or one for each of %lld channels, received %d (leat feed check prints them)",
        step->type->name, (long long)step->before.channels, count);
}

static leat_status check_whitening(leati_step *step, leat_error *err) {
    const leati_extent *picture = &step->before;
    const int64_t values = picture->height * picture->width * picture->channels;
    if (values <= LEATI_WHITENING_MOST_VALUES && step->arguments[0].number[0] != 0) return LEAT_OK;
    if (step->arguments[0].number[0] == 0)
        return leati_fail(err, LEAT_EINVAL, "zca_whitening=false: leave the step out");
    return leati_fail(
        err, LEAT_EINVAL,
        "zca_whitening expects pictures of at most %d values, such as 32x32 pixels of 3 channels, "
        "received %lld x %lld pixels of %lld channels",
        LEATI_WHITENING_MOST_VALUES, (long long)picture->height, (long long)picture->width,
        (long long)picture->channels);
}

/* ---- The table ---- */

#define RANGE(name, least, most)                                                                             \
    {                                                                                                        \
        { name, LEATI_ARGUMENT_NUMBER, "", NULL, least, most }                                               \
    }
#define RANGES(name, least, most)                                                                            \
    {                                                                                                        \
        { name, LEATI_ARGUMENT_LIST, "", NULL, least, most }                                                 \
    }
#define SWITCH(name)                                                                                         \
    {                                                                                                        \
        { name, LEATI_ARGUMENT_BOOL, "true", NULL, 0, 0 }                                                    \
    }

const leati_step_type leati_generator_steps[] = {
    {.name = "rotation_range",
     .parameters = RANGE("rotation_range", 0, 360),
     .draws = "theta",
     .draw = draw_symmetric,
     .matrix = rotate},
    {.name = "rotate",
     .parameters = RANGE("degrees", 0, 360),
     .draws = "theta",
     .draw = draw_symmetric,
     .matrix = rotate},
    {.name = "height_shift_range",
     .parameters = RANGES("height_shift_range", -65536, 65536),
     .draws = "tx",
     .draw = draw_height_shift,
     .matrix = shift_height},
    {.name = "width_shift_range",
     .parameters = RANGES("width_shift_range", -65536, 65536),
     .draws = "ty",
     .draw = draw_width_shift,
     .matrix = shift_width},
    {.name = "shift",
     .parameters = RANGES("range", -65536, 65536),
     .draws = "tx ty",
     .draw = draw_both_shifts,
     .matrix = shift_both},
    {.name = "shear_range",
     .parameters = RANGE("shear_range", 0, 360),
     .draws = "shear",
     .draw = draw_symmetric,
     .matrix = shear},
    {.name = "shear",
     .parameters = RANGE("degrees", 0, 360),
     .draws = "shear",
     .draw = draw_symmetric,
     .matrix = shear},
    {.name = "zoom_range",
     .parameters = RANGES("zoom_range", -100, 100),
     .draws = "zx zy",
     .check = check_pair_around_1,
     .draw = draw_zoom,
     .matrix = zoom},
    {.name = "zoom",
     .parameters = RANGES("range", -100, 100),
     .draws = "zx zy",
     .check = check_pair_around_1,
     .draw = draw_zoom,
     .matrix = zoom},
    {.name = "horizontal_flip",
     .parameters = SWITCH("horizontal_flip"),
     .draws = "flip_horizontal",
     .draw = draw_flip,
     .matrix = flip_horizontal,
     .any_sampling = true},
    {.name = "vertical_flip",
     .parameters = SWITCH("vertical_flip"),
     .draws = "flip_vertical",
     .draw = draw_flip,
     .matrix = flip_vertical,
     .any_sampling = true},
    {.name = "flip",
     .parameters = {{"mode", LEATI_ARGUMENT_WORD, "horizontal", "horizontal vertical both", 0, 0}},
     .draws = "flip_horizontal flip_vertical",
     .draw = draw_flips,
     .matrix = flip,
     .any_sampling = true},
    {.name = "channel_shift_range",
     .parameters = RANGE("channel_shift_range", 0, 1e6),
     .draws = "channel_shift_intensity",
     .draw = draw_symmetric,
     .apply = leati_color_channel_shift},
    {.name = "brightness_range",
     .parameters = RANGES("brightness_range", 0, 1e6),
     .draws = "brightness",
     .check = check_pair,
     .draw = draw_range,
     .apply = leati_color_enhance_brightness},
    {.name = "brightness",
     .parameters = RANGES("range", 0, 1e6),
     .draws = "brightness",
     .check = check_pair_around_1,
     .draw = draw_range,
     .apply = leati_color_multiply},
    {.name = "rescale",
     .parameters = RANGE("rescale", -1e6, 1e6),
     .draws = "",
     .apply = leati_color_rescale,
     .makes_floats = true},
    {.name = "samplewise_center",
     .parameters = SWITCH("samplewise_center"),
     .draws = "",
     .apply = leati_color_samplewise_center,
     .makes_floats = true},
    {.name = "samplewise_std_normalization",
     .parameters = SWITCH("samplewise_std_normalization"),
     .draws = "",
     .apply = leati_color_samplewise_std,
     .makes_floats = true},
    {.name = "featurewise_center",
     .parameters = {{"mean", LEATI_ARGUMENT_LIST, NULL, "true True", -1e6, 1e6}},
     .draws = "",
     .check = check_channels,
     .apply = leati_color_featurewise_center,
     .makes_floats = true,
     .takes_statistics = true},
    {.name = "featurewise_std_normalization",
     .parameters = {{"std", LEATI_ARGUMENT_LIST, NULL, "true True", 0, 1e6}},
     .draws = "",
     .check = check_channels,
     .apply = leati_color_featurewise_std,
     .makes_floats = true,
     .takes_statistics = true},
    {.name = "zca_whitening",
     .parameters = SWITCH("zca_whitening"),
     .draws = "",
     .check = check_whitening,
     .apply = leati_color_whiten,
     .makes_floats = true,
     .takes_statistics = true},
    {.name = "zca_epsilon", .parameters = RANGE("zca_epsilon", 0, 1e6), .draws = ""},
    {.name = "fill_mode",
     .parameters = {{"fill_mode", LEATI_ARGUMENT_WORD, "", "nearest constant reflect wrap", 0, 0}},
     .draws = ""},
    {.name = "cval", .parameters = RANGE("cval", -1e9, 1e9), .draws = ""},
    {.name = "interpolation_order", .parameters = RANGE("interpolation_order", 0, 1), .draws = ""},
    {.name = NULL},
};
