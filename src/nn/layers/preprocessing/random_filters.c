/* SPDX-License-Identifier: Apache-2.0 */
/* Current Keras's layers that change colours, filter, erase or distort images at random in training.
 * Source: keras.layers.RandomHue, RandomSaturation, ... */
#include <math.h>

#include "base/error.h"
#include "nn/layers/preprocessing/random_images.h"
#include "nn/layers/types.h"

/* Draws a probability, then a number that has to be below the probability. */
static float draw_decision(const leati_random_image *o, leat_rng *rng) {
    const double probability = leati_random_draw(o, 0, rng);
    return leat_rng_uniform(rng) < probability ? 1.0f : 0.0f;
}

/* Draws a key of at most 24 bits, which a float32 can hold. */
static float draw_key(leat_rng *rng) {
    return (float)(leat_rng_u32(rng) >> 8);
}

/* ---- RandomHue, RandomSaturation, RandomPosterization, RandomSharpness ---- */

static const leati_field factor_fields[] = {LEATI_OPTION(0, "factor", NULL),
                                            LEATI_OPTION(1, "value_range", "[0, 255]"),
                                            LEATI_OPTION(2, "data_format", "\"channels_last\""),
                                            LEATI_OPTION(3, "seed", "null"),
                                            {.key = NULL}};

static leat_status set_hue(leati_random_image *o, const leati_layer *layer, const char *key,
                           leat_error *err) {
    double range[2][2] = {{0}};
    LEATI_TRY(leati_random_limits(o, layer, err));
    LEATI_TRY(leati_random_range(layer, key, 0, 1, range[0], err));
    for (int i = 0; i < 2; ++i) range[0][i] *= 0.5;
    o->turns = true;
    return leati_random_set(o, layer, LEATI_HUE, 1, range, err);
}

static leat_status check_hue(leati_layer *layer, leat_error *err) {
    return set_hue(layer->config, layer, "factor", err);
}

static void draw_saturation(const leati_random_image *o, const leati_image_size *size, leat_rng *rng,
                            int64_t count, float (*amounts)[LEATI_CHANGE_AMOUNTS]) {
    (void)size;
    for (int64_t i = 0; i < count; ++i) {
        const double factor = leati_random_draw(o, 0, rng);
        amounts[i][0] = (float)(factor / (1 - factor + 1e-7));
    }
}

static leat_status set_saturation(leati_random_image *o, const leati_layer *layer, const char *key,
                                  leat_error *err) {
    double range[2][2] = {{0}};
    LEATI_TRY(leati_random_limits(o, layer, err));
    LEATI_TRY(leati_random_range(layer, key, -1, 1, range[0], err));
    o->draw = draw_saturation;
    return leati_random_set(o, layer, LEATI_SATURATION, 1, range, err);
}

static leat_status check_saturation(leati_layer *layer, leat_error *err) {
    return set_saturation(layer->config, layer, "factor", err);
}

/* Draws an integer, the highest one excluded, unless it is the lowest one, too. */
static void draw_posterization(const leati_random_image *o, const leati_image_size *size, leat_rng *rng,
                               int64_t count, float (*amounts)[LEATI_CHANGE_AMOUNTS]) {
    (void)size;
    for (int64_t i = 0; i < count; ++i) amounts[i][0] = (float)(8 - floor(leati_random_draw(o, 0, rng)));
}

static leat_status check_posterization(leati_layer *layer, leat_error *err) {
    leati_random_image *o = layer->config;
    double range[2][2] = {{0}};
    LEATI_TRY(leati_random_limits(o, layer, err));
    LEATI_TRY(leati_random_range(layer, "factor", 1, 8, range[0], err));
    if (range[0][0] < 0 || range[0][1] < 1)
        return leati_fail(err, LEAT_EINVAL, "factor: expected numbers of bits from 1 to 8, received %g to %g",
                          range[0][0], range[0][1]);
    o->draw = draw_posterization;
    return leati_random_set(o, layer, LEATI_POSTERIZE, 1, range, err);
}

static leat_status check_sharpness(leati_layer *layer, leat_error *err) {
    double range[2][2] = {{0}};
    LEATI_TRY(leati_random_limits(layer->config, layer, err));
    LEATI_TRY(leati_random_range(layer, "factor", 0, 1, range[0], err));
    return leati_random_set(layer->config, layer, LEATI_SHARPEN, 1, range, err);
}

#define CHANGED(name, class_name, fields_, check_)                                                           \
    LEATI_LAYER_TYPE(name, class_name, #name, leati_random_image, fields_, LEATI_ONE_INPUT, .check = check_, \
                     .infer = leati_random_infer, .lower = leati_random_lower)
CHANGED(random_hue, "RandomHue", factor_fields, check_hue);
CHANGED(random_posterization, "RandomPosterization", factor_fields, check_posterization);
CHANGED(random_saturation, "RandomSaturation", factor_fields, check_saturation);
CHANGED(random_sharpness, "RandomSharpness", factor_fields, check_sharpness);

/* ---- RandomColorJitter ---- */

/* The changes in Keras's order; a change whose factor is null is left out. */
enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, JITTERS };
static const char *const jitter_keys[] = {"brightness_factor", "contrast_factor", "saturation_factor",
                                          "hue_factor"};

typedef struct jitter_config {
    leati_random_image parts[JITTERS]; /* the first one has the options of the layer */
    bool used[JITTERS];
} jitter_config;

static const leati_field random_color_jitter_fields[] = {LEATI_OPTION(0, "value_range", "[0, 255]"),
                                                         LEATI_OPTION(1, "brightness_factor", "null"),
                                                         LEATI_OPTION(2, "contrast_factor", "null"),
                                                         LEATI_OPTION(3, "saturation_factor", "null"),
                                                         LEATI_OPTION(4, "hue_factor", "null"),
                                                         LEATI_OPTION(5, "data_format", "\"channels_last\""),
                                                         LEATI_OPTION(6, "seed", "null"),
                                                         {.key = NULL}};

static leat_status check_jitter(leati_layer *layer, leat_error *err) {
    jitter_config *c = layer->config;
    leat_status (*const set[])(leati_random_image *, const leati_layer *, const char *,
                               leat_error *) = {leati_random_brightness, leati_random_contrast,
                                                set_saturation, set_hue};
    for (int i = 0; i < JITTERS; ++i) {
        c->used[i] = leati_random_option(layer, jitter_keys[i]) != NULL;
        if (c->used[i]) LEATI_TRY(set[i](&c->parts[i], layer, jitter_keys[i], err));
    }
    return LEAT_OK;
}

static void lower_jitter(const leati_layer *layer, leati_lowering *lowering, int input_count,
                         const leati_value *inputs, leati_value *outputs) {
    const jitter_config *c = layer->config;
    leati_value x = leati_random_as_float(lowering->graph, inputs[0]);
    (void)input_count;
    for (int i = 0; i < JITTERS; ++i)
        if (c->used[i])
            x = leati_random_change(lowering, &c->parts[i], leati_stream(lowering->stream, jitter_keys[i]),
                                    x);
    outputs[0] = x;
}

LEATI_LAYER_TYPE(random_color_jitter, "RandomColorJitter", "random_color_jitter", jitter_config,
                 random_color_jitter_fields, LEATI_ONE_INPUT, .check = check_jitter,
                 .infer = leati_random_infer, .lower = lower_jitter);

/* ---- RandomGaussianBlur ---- */

static const leati_field random_gaussian_blur_fields[] = {LEATI_OPTION(0, "factor", "1.0"),
                                                          LEATI_OPTION(1, "kernel_size", "3"),
                                                          LEATI_OPTION(2, "sigma", "1.0"),
                                                          LEATI_OPTION(3, "value_range", "[0, 255]"),
                                                          LEATI_OPTION(4, "data_format", "\"channels_last\""),
                                                          LEATI_OPTION(5, "seed", "null"),
                                                          {.key = NULL}};

/* The images of a batch are blurred with the same two numbers. */
static void draw_blur(const leati_random_image *o, const leati_image_size *size, leat_rng *rng, int64_t count,
                      float (*amounts)[LEATI_CHANGE_AMOUNTS]) {
    const double across = leati_random_draw(o, 1, rng) + 1e-6, down = leati_random_draw(o, 1, rng) + 1e-6;
    (void)size;
    for (int64_t i = 0; i < count; ++i) {
        amounts[i][0] = draw_decision(o, rng);
        amounts[i][1] = (float)across;
        amounts[i][2] = (float)down;
    }
}

static leat_status check_blur(leati_layer *layer, leat_error *err) {
    leati_random_image *o = layer->config;
    const json_t *size = leati_random_option(layer, "kernel_size");
    double range[2][2];
    LEATI_TRY(leati_random_limits(o, layer, err));
    LEATI_TRY(leati_random_range(layer, "factor", 0, 1, range[0], err));
    LEATI_TRY(leati_random_range(layer, "sigma", 0, 1, range[1], err));
    for (int i = 0; i < 2; ++i) {
        const json_t *item = json_array_size(size) == 2 ? json_array_get(size, (size_t)i) : size;
        const double taps = json_number_value(item);
        if (!json_is_number(item) || !(taps >= 1 && taps <= LEATI_MOST_TAPS) || fmod(taps, 2) != 1)
            return leati_fail(err, LEAT_EINVAL,
                              "kernel_size: expected an odd number from 1 to %d, or a list of two",
                              LEATI_MOST_TAPS);
        o->change.taps[i] = (int32_t)taps;
    }
    o->draw = draw_blur;
    return leati_random_set(o, layer, LEATI_BLUR, 2, range, err);
}

CHANGED(random_gaussian_blur, "RandomGaussianBlur", random_gaussian_blur_fields, check_blur);

/* ---- RandomErasing ---- */

static const leati_field random_erasing_fields[] = {LEATI_OPTION(0, "factor", "1.0"),
                                                    LEATI_OPTION(1, "scale", "[0.02, 0.33]"),
                                                    LEATI_OPTION(2, "fill_value", "null"),
                                                    LEATI_OPTION(3, "value_range", "[0, 255]"),
                                                    LEATI_OPTION(4, "data_format", "\"channels_last\""),
                                                    LEATI_OPTION(5, "seed", "null"),
                                                    {.key = NULL}};

/* Of an image first the shares of the width and of the height, then the left and the upper edge are drawn. */
static void draw_boxes(const leati_random_image *o, const leati_image_size *size, leat_rng *rng,
                       int64_t count, float (*amounts)[LEATI_CHANGE_AMOUNTS]) {
    const double sides[] = {(double)size->width, (double)size->height};
    for (int64_t i = 0; i < count; ++i) {
        double lengths[2];
        for (int k = 0; k < 2; ++k) lengths[k] = sqrt(fmax(leati_random_draw(o, 1, rng), 0)) * sides[k];
        for (int k = 0; k < 2; ++k) {
            const double start = leat_rng_uniform(rng) * (sides[k] - lengths[k]);
            amounts[i][1 + 2 * k] = (float)start;
            amounts[i][2 + 2 * k] = (float)(start + lengths[k]);
        }
        amounts[i][0] = draw_decision(o, rng);
        amounts[i][5] = draw_key(rng);
    }
}

/* Reads null, which means noise, a number, or a list of a number for each of three channels. */
static leat_status read_fills(const leati_layer *layer, leati_change *change, leat_error *err) {
    const json_t *fill = leati_random_option(layer, "fill_value");
    const bool list = json_is_array(fill);
    change->fill_count = !fill ? 0 : list ? 3 : 1;
    for (int i = 0; i < change->fill_count; ++i) {
        const json_t *item = list ? json_array_get(fill, (size_t)i) : fill;
        if ((list && json_array_size(fill) != 3) || !json_is_number(item))
            return leati_fail(err, LEAT_EINVAL, "fill_value: expected null, a number, or a list of three");
        change->fills[i] = (float)json_number_value(item);
    }
    return LEAT_OK;
}

static leat_status check_erasing(leati_layer *layer, leat_error *err) {
    leati_random_image *o = layer->config;
    double range[2][2];
    LEATI_TRY(leati_random_limits(o, layer, err));
    LEATI_TRY(leati_random_range(layer, "factor", 0, 1, range[0], err));
    LEATI_TRY(leati_random_range(layer, "scale", 0, 1, range[1], err));
    LEATI_TRY(read_fills(layer, &o->change, err));
    o->draw = draw_boxes;
    return leati_random_set(o, layer, LEATI_ERASE, 2, range, err);
}

CHANGED(random_erasing, "RandomErasing", random_erasing_fields, check_erasing);

/* ---- RandomPerspective ---- */

static const leati_field random_perspective_fields[] = {LEATI_OPTION(0, "factor", "1.0"),
                                                        LEATI_OPTION(1, "scale", "1.0"),
                                                        LEATI_OPTION(2, "interpolation", "\"bilinear\""),
                                                        LEATI_OPTION(3, "fill_value", "0.0"),
                                                        LEATI_OPTION(4, "data_format", "\"channels_last\""),
                                                        LEATI_OPTION(5, "seed", "null"),
                                                        {.key = NULL}};

static void draw_corners(const leati_random_image *o, const leati_image_size *size, leat_rng *rng,
                         int64_t count, float (*amounts)[LEATI_CHANGE_AMOUNTS]) {
    (void)size;
    for (int64_t i = 0; i < count; ++i) {
        const float moves = draw_decision(o, rng);
        for (int k = 0; k < 8; ++k) amounts[i][k] = moves * (float)leati_random_draw(o, 1, rng);
    }
}

static leat_status check_perspective(leati_layer *layer, leat_error *err) {
    leati_random_image *o = layer->config;
    const json_t *scale = leati_random_option(layer, "scale");
    const double half = 0.5 * json_number_value(scale);
    double range[2][2] = {{0}, {-half, half}};
    if (!json_is_number(scale) || !(half >= 0 && half <= 0.5))
        return leati_fail(err, LEAT_EINVAL, "scale: expected a number from 0 to 1");
    LEATI_TRY(leati_random_range(layer, "factor", 0, 1, range[0], err));
    o->draw = draw_corners;
    return leati_random_set(o, layer, LEATI_PERSPECTIVE, 2, range, err);
}

CHANGED(random_perspective, "RandomPerspective", random_perspective_fields, check_perspective);

/* ---- RandomElasticTransform ---- */

static const leati_field random_elastic_transform_fields[] = {LEATI_OPTION(0, "factor", "1.0"),
                                                              LEATI_OPTION(1, "scale", "1.0"),
                                                              LEATI_OPTION(2, "interpolation",
                                                                           "\"bilinear\""),
                                                              LEATI_OPTION(3, "fill_mode", "\"reflect\""),
                                                              LEATI_OPTION(4, "fill_value", "0.0"),
                                                              LEATI_OPTION(5, "value_range", "[0, 255]"),
                                                              LEATI_OPTION(6, "data_format",
                                                                           "\"channels_last\""),
                                                              LEATI_OPTION(7, "seed", "null"),
                                                              {.key = NULL}};

/* The images of a batch are distorted with the same factor, each with its own noise. */
static void draw_distortions(const leati_random_image *o, const leati_image_size *size, leat_rng *rng,
                             int64_t count, float (*amounts)[LEATI_CHANGE_AMOUNTS]) {
    const float factor = (float)leati_random_draw(o, 1, rng);
    (void)size;
    for (int64_t i = 0; i < count; ++i) {
        amounts[i][0] = draw_decision(o, rng);
        amounts[i][1] = factor;
        amounts[i][2] = draw_key(rng);
    }
}

static leat_status check_elastic(leati_layer *layer, leat_error *err) {
    leati_random_image *o = layer->config;
    double range[2][2];
    LEATI_TRY(leati_random_limits(o, layer, err));
    LEATI_TRY(leati_random_range(layer, "factor", 0, 1, range[0], err));
    LEATI_TRY(leati_random_range(layer, "scale", 0, 1, range[1], err));
    o->draw = draw_distortions;
    return leati_random_set(o, layer, LEATI_ELASTIC, 2, range, err);
}

CHANGED(random_elastic_transform, "RandomElasticTransform", random_elastic_transform_fields, check_elastic);
