/* SPDX-License-Identifier: Apache-2.0 */
/* The geometric layers of current Keras as steps, with the layers' names, arguments and matrices.  Room: image. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "image/augment/augment.h"

static const double PI = 3.141592653589793;

leat_status leati_check_factor(leati_step *step, int index, double lowest, leat_error *err) {
    leati_argument *factor = &step->arguments[index];
    const double f = fabs(factor->number[0]);
    if (factor->count == 1) {
        factor->number[0] = fmax(-f, lowest);
        factor->number[1] = f;
        factor->count = 2;
    }
    if (factor->count != 2)
        return leati_fail(err, LEAT_EINVAL, "%s: %s expects a number or two, received %d", step->type->name,
                          step->type->parameters[index].name, factor->count);
    if (factor->number[0] <= factor->number[1]) return LEAT_OK;
    const double low = factor->number[1];
    factor->number[1] = factor->number[0];
    factor->number[0] = low;
    return LEAT_OK;
}

double leati_draw_factor(const leati_step *step, int index, leat_rng *rng) {
    const double *range = step->arguments[index].number;
    return leati_draw_between(rng, range[0], range[1]);
}

/* Reads fill_mode, interpolation and fill_value, which begin at this argument. */
static void set_sampling(leati_step *step, int index) {
    static const leati_fill fills[] = {LEATI_FILL_REFLECT, LEATI_FILL_WRAP, LEATI_FILL_CONSTANT,
                                       LEATI_FILL_NEAREST};
    step->sampling = (leati_sampling){.fill = fills[step->arguments[index].word],
                                      .order = step->arguments[index + 1].word,
                                      .value = (float)step->arguments[index + 2].number[0]};
}

#define SAMPLING                                                                                             \
    {"fill_mode", LEATI_ARGUMENT_WORD, "reflect", "reflect wrap constant nearest", 0, 0},                    \
        {"interpolation", LEATI_ARGUMENT_WORD, "bilinear", "nearest bilinear", 0, 0}, {                      \
        "fill_value", LEATI_ARGUMENT_NUMBER, "0", NULL, -1e9, 1e9                                            \
    }

/* ---- RandomFlip ---- */

/* One number decides about both directions, as in Keras. */
static void draw_flip(const leati_step *step, leat_rng *rng, double *drawn) {
    (void)step;
    drawn[0] = leati_draw_between(rng, 0, 1) <= 0.5;
}

static void flip(const leati_step *step, const double *drawn, leati_affine *out) {
    const int mode = step->arguments[0].word; /* both, horizontal, vertical */
    *out = (leati_affine){{1, 0, 0}, {0, 1, 0}};
    if (drawn[0] == 0) return;
    if (mode != 2) out->x[0] = -1, out->x[2] = (double)(step->before.width - 1);
    if (mode != 1) out->y[1] = -1, out->y[2] = (double)(step->before.height - 1);
}

/* ---- RandomRotation ---- */

static leat_status check_rotation(leati_step *step, leat_error *err) {
    set_sampling(step, 1);
    return leati_check_factor(step, 0, -1, err);
}

static void draw_rotation(const leati_step *step, leat_rng *rng, double *drawn) {
    drawn[0] = 360 * leati_draw_factor(step, 0, rng);
}

static void rotate(const leati_step *step, const double *drawn, leati_affine *out) {
    const double angle = drawn[0] * PI / 180, c = cos(angle), s = sin(angle);
    const double cx = 0.5 * (double)(step->before.width - 1), cy = 0.5 * (double)(step->before.height - 1);
    *out = (leati_affine){{c, -s, cx - cx * c + cy * s}, {s, c, cy - cx * s - cy * c}};
}

/* ---- RandomTranslation ---- */

static leat_status check_two_factors(leati_step *step, leat_error *err) {
    set_sampling(step, 2);
    LEATI_TRY(leati_check_factor(step, 0, -1, err));
    return leati_check_factor(step, 1, -1, err);
}

static void draw_translation(const leati_step *step, leat_rng *rng, double *drawn) {
    drawn[0] = leati_draw_factor(step, 0, rng) * (double)step->before.height;
    drawn[1] = leati_draw_factor(step, 1, rng) * (double)step->before.width;
}

static void translate(const leati_step *step, const double *drawn, leati_affine *out) {
    (void)step;
    *out = (leati_affine){{1, 0, -drawn[1]}, {0, 1, -drawn[0]}};
}

/* ---- RandomZoom ---- */

static leat_status check_zoom(leati_step *step, leat_error *err) {
    set_sampling(step, 2);
    if (step->arguments[1].count > 0) LEATI_TRY(leati_check_factor(step, 1, -1, err));
    return leati_check_factor(step, 0, -1, err);
}

static void draw_zoom(const leati_step *step, leat_rng *rng, double *drawn) {
    drawn[0] = 1 + leati_draw_factor(step, 0, rng);
    drawn[1] = step->arguments[1].count > 0 ? 1 + leati_draw_factor(step, 1, rng) : drawn[0];
}

static void zoom(const leati_step *step, const double *drawn, leati_affine *out) {
    const double cx = (double)(step->before.width - 1) / 2, cy = (double)(step->before.height - 1) / 2;
    *out = (leati_affine){{drawn[1], 0, cx * (1 - drawn[1])}, {0, drawn[0], cy * (1 - drawn[0])}};
}

/* ---- RandomShear ---- */

static leat_status check_shear(leati_step *step, leat_error *err) {
    set_sampling(step, 2);
    LEATI_TRY(leati_check_factor(step, 0, -1, err));
    return leati_check_factor(step, 1, -1, err);
}

static void draw_shear(const leati_step *step, leat_rng *rng, double *drawn) {
    const double sign = leati_draw_between(rng, 0, 1) > 0.5 ? -1 : 1;
    drawn[1] = sign * leati_draw_factor(step, 1, rng);
    drawn[0] = sign * leati_draw_factor(step, 0, rng);
}

static void shear(const leati_step *step, const double *drawn, leati_affine *out) {
    (void)step;
    *out = (leati_affine){{1, drawn[0], 0}, {drawn[1], 1, 0}};
}

/* ---- Crops ---- */

static leat_status check_crop(leati_step *step, leat_error *err) {
    step->after.height = (int64_t)step->arguments[0].number[0];
    step->after.width = (int64_t)step->arguments[1].number[0];
    step->sampling = (leati_sampling){.fill = LEATI_FILL_NEAREST, .order = 1};
    if (step->after.height <= step->before.height && step->after.width <= step->before.width) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "%s: expected a size of at most the picture's, %lld x %lld, received %lld x %lld (size= sets "
        "the picture's)",
        step->type->name, (long long)step->before.height, (long long)step->before.width,
        (long long)step->after.height, (long long)step->after.width);
}

static void draw_crop(const leati_step *step, leat_rng *rng, double *drawn) {
    drawn[0] = floor(leati_draw_between(rng, 0, (double)(step->before.height - step->after.height + 1)));
    drawn[1] = floor(leati_draw_between(rng, 0, (double)(step->before.width - step->after.width + 1)));
}

static void rest_in_middle(const leati_step *step, double *drawn) {
    const int64_t y = (step->before.height - step->after.height) / 2;
    const int64_t x = (step->before.width - step->after.width) / 2;
    drawn[0] = (double)y;
    drawn[1] = (double)x;
}

static void crop(const leati_step *step, const double *drawn, leati_affine *out) {
    (void)step;
    *out = (leati_affine){{1, 0, drawn[1]}, {0, 1, drawn[0]}};
}

static void crop_center(const leati_step *step, const double *drawn, leati_affine *out) {
    double middle[2];
    (void)drawn;
    rest_in_middle(step, middle);
    crop(step, middle, out);
}

#define CROP_PARAMETERS                                                                                      \
    {                                                                                                        \
        {"height", LEATI_ARGUMENT_NUMBER, "", NULL, 1, 65535}, {                                             \
            "width", LEATI_ARGUMENT_NUMBER, "", NULL, 1, 65535                                               \
        }                                                                                                    \
    }

/* ---- Resizing ---- */

/* Positions of half pixels, as tf.image.resize and Keras have them, without smoothing where the picture shrinks. */
static leat_status check_resizing(leati_step *step, leat_error *err) {
    (void)err;
    step->after.height = (int64_t)step->arguments[0].number[0];
    step->after.width = (int64_t)step->arguments[1].number[0];
    step->sampling = (leati_sampling){.fill = LEATI_FILL_NEAREST, .order = step->arguments[2].word};
    return LEAT_OK;
}

static void resize(const leati_step *step, const double *drawn, leati_affine *out) {
    const double sx = (double)step->before.width / (double)step->after.width;
    const double sy = (double)step->before.height / (double)step->after.height;
    (void)drawn;
    *out = (leati_affine){{sx, 0, 0.5 * sx - 0.5}, {0, sy, 0.5 * sy - 0.5}};
}

const leati_step_type leati_geometry_steps[] = {
    {.name = "RandomFlip",
     .parameters = {{"mode", LEATI_ARGUMENT_WORD, "horizontal_and_vertical",
                     "horizontal_and_vertical horizontal vertical", 0, 0}},
     .draws = "flips",
     .draw = draw_flip,
     .matrix = flip,
     .any_sampling = true},
    {.name = "RandomRotation",
     .parameters = {{"factor", LEATI_ARGUMENT_LIST, "", NULL, -1, 1}, SAMPLING},
     .draws = "angle",
     .check = check_rotation,
     .draw = draw_rotation,
     .matrix = rotate},
    {.name = "RandomTranslation",
     .parameters = {{"height_factor", LEATI_ARGUMENT_LIST, "", NULL, -1, 1},
                    {"width_factor", LEATI_ARGUMENT_LIST, "", NULL, -1, 1},
                    SAMPLING},
     .draws = "height_translate width_translate",
     .check = check_two_factors,
     .draw = draw_translation,
     .matrix = translate},
    {.name = "RandomZoom",
     .parameters = {{"height_factor", LEATI_ARGUMENT_LIST, "", NULL, -1, 1},
                    {"width_factor", LEATI_ARGUMENT_LIST, NULL, NULL, -1, 1},
                    SAMPLING},
     .draws = "height_zoom width_zoom",
     .check = check_zoom,
     .draw = draw_zoom,
     .matrix = zoom},
    {.name = "RandomShear",
     .parameters = {{"x_factor", LEATI_ARGUMENT_LIST, "0", NULL, 0, 1},
                    {"y_factor", LEATI_ARGUMENT_LIST, "0", NULL, 0, 1},
                    SAMPLING},
     .draws = "shear_x shear_y",
     .check = check_shear,
     .draw = draw_shear,
     .matrix = shear},
    {.name = "RandomCrop",
     .parameters = CROP_PARAMETERS,
     .draws = "h_start w_start",
     .check = check_crop,
     .draw = draw_crop,
     .rest = rest_in_middle,
     .matrix = crop,
     .any_sampling = true},
    {.name = "CenterCrop",
     .parameters = CROP_PARAMETERS,
     .draws = "",
     .check = check_crop,
     .matrix = crop_center,
     .any_sampling = true},
    {.name = "Resizing",
     .parameters = {{"height", LEATI_ARGUMENT_NUMBER, "", NULL, 1, 65535},
                    {"width", LEATI_ARGUMENT_NUMBER, "", NULL, 1, 65535},
                    {"interpolation", LEATI_ARGUMENT_WORD, "bilinear", "nearest bilinear", 0, 0}},
     .draws = "",
     .check = check_resizing,
     .matrix = resize},
    {.name = NULL},
};
