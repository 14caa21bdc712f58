/* SPDX-License-Identifier: Apache-2.0 */
/* Current Keras's layers that change images at random in training: RandomFlip, and layers that leat has for prediction
 * and evaluation only, where they return the images.  Their options are kept and written back, but not used.
 * Source: keras.layers.RandomFlip, RandomRotation, ... */
#include "nn/layers/spatial.h"
#include "nn/layers/types.h"

static leati_value as_float(leati_graph *g, leati_value x) {
    return leati_graph_desc(g, x)->dtype == LEAT_F32 ? x : leati_cast(g, x, LEAT_F32, 1);
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    leati_shape image;
    (void)layer, (void)input_count, (void)output_count;
    outputs[0] = inputs[0];
    return leati_image_shape(&inputs[0], 2, LEATI_CHANNELS_LAST, &image, err);
}

/* ---- Layers for prediction and evaluation ---- */

#define MOST_OPTIONS 8

typedef struct options {
    json_t *values[MOST_OPTIONS];
} options;

#define OPTION(index, key_, preset_)                                                                         \
    { .key = key_, .kind = LEATI_FIELD_JSON, .offset = (index) * sizeof(json_t *), .preset = preset_ }

/* Returns the images.  In training it fails: a model that trains without the changes learns something else. */
static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    (void)input_count;
    outputs[0] = as_float(lowering->graph, inputs[0]);
    if (leati_lowering_in_training(lowering))
        outputs[0] =
            leati_graph_fail(lowering->graph, LEAT_ENOTSUP,
                             "leat does not train with %s, but predicts and evaluates; remove the layer "
                             "from the model, and change the images in the sequence or the source of the "
                             "data",
                             layer->type->class_name);
}

static const leati_field random_brightness_fields[] = {OPTION(0, "factor", NULL),
                                                       OPTION(1, "value_range", "[0, 255]"),
                                                       OPTION(2, "data_format", "\"channels_last\""),
                                                       OPTION(3, "seed", "null"),
                                                       {.key = NULL}};
static const leati_field random_color_degeneration_fields[] = {OPTION(0, "factor", NULL),
                                                               OPTION(1, "value_range", "[0, 255]"),
                                                               OPTION(2, "data_format", "\"channels_last\""),
                                                               OPTION(3, "seed", "null"),
                                                               {.key = NULL}};
static const leati_field random_color_jitter_fields[] = {OPTION(0, "value_range", "[0, 255]"),
                                                         OPTION(1, "brightness_factor", "null"),
                                                         OPTION(2, "contrast_factor", "null"),
                                                         OPTION(3, "saturation_factor", "null"),
                                                         OPTION(4, "hue_factor", "null"),
                                                         OPTION(5, "data_format", "\"channels_last\""),
                                                         OPTION(6, "seed", "null"),
                                                         {.key = NULL}};
static const leati_field random_contrast_fields[] = {OPTION(0, "factor", NULL),
                                                     OPTION(1, "value_range", "[0, 255]"),
                                                     OPTION(2, "data_format", "\"channels_last\""),
                                                     OPTION(3, "seed", "null"),
                                                     {.key = NULL}};
static const leati_field random_elastic_transform_fields[] = {OPTION(0, "factor", "1.0"),
                                                              OPTION(1, "scale", "1.0"),
                                                              OPTION(2, "interpolation", "\"bilinear\""),
                                                              OPTION(3, "fill_mode", "\"reflect\""),
                                                              OPTION(4, "fill_value", "0.0"),
                                                              OPTION(5, "value_range", "[0, 255]"),
                                                              OPTION(6, "data_format", "\"channels_last\""),
                                                              OPTION(7, "seed", "null"),
                                                              {.key = NULL}};
static const leati_field random_erasing_fields[] = {OPTION(0, "factor", "1.0"),
                                                    OPTION(1, "scale", "[0.02, 0.33]"),
                                                    OPTION(2, "fill_value", "null"),
                                                    OPTION(3, "value_range", "[0, 255]"),
                                                    OPTION(4, "data_format", "\"channels_last\""),
                                                    OPTION(5, "seed", "null"),
                                                    {.key = NULL}};
static const leati_field random_gaussian_blur_fields[] = {OPTION(0, "factor", "1.0"),
                                                          OPTION(1, "kernel_size", "3"),
                                                          OPTION(2, "sigma", "1.0"),
                                                          OPTION(3, "value_range", "[0, 255]"),
                                                          OPTION(4, "data_format", "\"channels_last\""),
                                                          OPTION(5, "seed", "null"),
                                                          {.key = NULL}};
static const leati_field random_grayscale_fields[] = {OPTION(0, "factor", "0.5"),
                                                      OPTION(1, "data_format", "\"channels_last\""),
                                                      {.key = NULL}};
static const leati_field random_hue_fields[] = {OPTION(0, "factor", NULL),
                                                OPTION(1, "value_range", "[0, 255]"),
                                                OPTION(2, "data_format", "\"channels_last\""),
                                                OPTION(3, "seed", "null"),
                                                {.key = NULL}};
static const leati_field random_invert_fields[] = {OPTION(0, "factor", "1.0"),
                                                   OPTION(1, "value_range", "[0, 255]"),
                                                   OPTION(2, "data_format", "\"channels_last\""),
                                                   OPTION(3, "seed", "null"),
                                                   {.key = NULL}};
static const leati_field random_perspective_fields[] = {OPTION(0, "factor", "1.0"),
                                                        OPTION(1, "scale", "1.0"),
                                                        OPTION(2, "interpolation", "\"bilinear\""),
                                                        OPTION(3, "fill_value", "0.0"),
                                                        OPTION(4, "data_format", "\"channels_last\""),
                                                        OPTION(5, "seed", "null"),
                                                        {.key = NULL}};
static const leati_field random_posterization_fields[] = {OPTION(0, "factor", NULL),
                                                          OPTION(1, "value_range", "[0, 255]"),
                                                          OPTION(2, "data_format", "\"channels_last\""),
                                                          OPTION(3, "seed", "null"),
                                                          {.key = NULL}};
static const leati_field random_rotation_fields[] = {OPTION(0, "factor", NULL),
                                                     OPTION(1, "fill_mode", "\"reflect\""),
                                                     OPTION(2, "fill_value", "0.0"),
                                                     OPTION(3, "interpolation", "\"bilinear\""),
                                                     OPTION(4, "data_format", "\"channels_last\""),
                                                     OPTION(5, "seed", "null"),
                                                     {.key = NULL}};
static const leati_field random_saturation_fields[] = {OPTION(0, "factor", NULL),
                                                       OPTION(1, "value_range", "[0, 255]"),
                                                       OPTION(2, "data_format", "\"channels_last\""),
                                                       OPTION(3, "seed", "null"),
                                                       {.key = NULL}};
static const leati_field random_sharpness_fields[] = {OPTION(0, "factor", NULL),
                                                      OPTION(1, "value_range", "[0, 255]"),
                                                      OPTION(2, "data_format", "\"channels_last\""),
                                                      OPTION(3, "seed", "null"),
                                                      {.key = NULL}};
static const leati_field random_shear_fields[] = {OPTION(0, "x_factor", "0.0"),
                                                  OPTION(1, "y_factor", "0.0"),
                                                  OPTION(2, "interpolation", "\"bilinear\""),
                                                  OPTION(3, "fill_mode", "\"reflect\""),
                                                  OPTION(4, "fill_value", "0.0"),
                                                  OPTION(5, "data_format", "\"channels_last\""),
                                                  OPTION(6, "seed", "null"),
                                                  {.key = NULL}};
static const leati_field random_translation_fields[] = {OPTION(0, "height_factor", NULL),
                                                        OPTION(1, "width_factor", NULL),
                                                        OPTION(2, "fill_mode", "\"reflect\""),
                                                        OPTION(3, "interpolation", "\"bilinear\""),
                                                        OPTION(4, "fill_value", "0.0"),
                                                        OPTION(5, "data_format", "\"channels_last\""),
                                                        OPTION(6, "seed", "null"),
                                                        {.key = NULL}};
static const leati_field random_zoom_fields[] = {OPTION(0, "height_factor", NULL),
                                                 OPTION(1, "width_factor", "null"),
                                                 OPTION(2, "fill_mode", "\"reflect\""),
                                                 OPTION(3, "interpolation", "\"bilinear\""),
                                                 OPTION(4, "fill_value", "0.0"),
                                                 OPTION(5, "data_format", "\"channels_last\""),
                                                 OPTION(6, "seed", "null"),
                                                 {.key = NULL}};

#define PREDICTED(name, class_name)                                                                          \
    LEATI_LAYER_TYPE(name, class_name, #name, options, name##_fields, LEATI_ONE_INPUT, .infer = infer,       \
                     .lower = lower)
PREDICTED(random_brightness, "RandomBrightness");
PREDICTED(random_color_degeneration, "RandomColorDegeneration");
PREDICTED(random_color_jitter, "RandomColorJitter");
PREDICTED(random_contrast, "RandomContrast");
PREDICTED(random_elastic_transform, "RandomElasticTransform");
PREDICTED(random_erasing, "RandomErasing");
PREDICTED(random_gaussian_blur, "RandomGaussianBlur");
PREDICTED(random_grayscale, "RandomGrayscale");
PREDICTED(random_hue, "RandomHue");
PREDICTED(random_invert, "RandomInvert");
PREDICTED(random_perspective, "RandomPerspective");
PREDICTED(random_posterization, "RandomPosterization");
PREDICTED(random_rotation, "RandomRotation");
PREDICTED(random_saturation, "RandomSaturation");
PREDICTED(random_sharpness, "RandomSharpness");
PREDICTED(random_shear, "RandomShear");
PREDICTED(random_translation, "RandomTranslation");
PREDICTED(random_zoom, "RandomZoom");

/* ---- RandomFlip ---- */

enum { HORIZONTAL, VERTICAL, HORIZONTAL_AND_VERTICAL };
static const char *const modes[] = {"horizontal", "vertical", "horizontal_and_vertical", NULL};

typedef struct flip_config {
    int32_t mode, data_format;
    json_t *seed; /* kept and written, but not used */
} flip_config;

static const leati_field flip_fields[] = {LEATI_CHOICE_FIELD(flip_config, mode, modes,
                                                             "\"horizontal_and_vertical\""),
                                          LEATI_DATA_FORMAT_FIELD(flip_config),
                                          LEATI_FIELD(flip_config, seed, LEATI_FIELD_JSON, "null"),
                                          {.key = NULL}};

/* Turns half of the images around along an axis.  The mask of a dropout of half the ones decides, one number for each
 * image. */
static leati_value flipped(leati_lowering *lowering, leati_value x, int axis) {
    leati_graph *g = lowering->graph;
    int64_t dims[LEAT_MAX_RANK] = {leati_graph_desc(g, x)->shape[0], 1, 1, 1};
    uint64_t stream = leati_stream(lowering->stream, axis == 1 ? "vertical" : "horizontal");
    leati_value draws = leati_dropout(g, leati_full(g, 4, dims, 1), 0.5f, 0, stream);
    leati_value mask = leati_linear(g, draws, 0.5f, 0);
    leati_value other = leati_mul(g, leati_reverse(g, x, axis), mask);
    return leati_add(g, leati_mul(g, x, leati_linear(g, mask, -1, 1)), other);
}

static void lower_flip(const leati_layer *layer, leati_lowering *lowering, int input_count,
                       const leati_value *inputs, leati_value *outputs) {
    const flip_config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_value x = as_float(g, inputs[0]);
    (void)input_count;
    if (leati_lowering_in_training(lowering)) {
        x = leati_image_value(g, x, c->data_format);
        if (c->mode != VERTICAL) x = flipped(lowering, x, 2);
        if (c->mode != HORIZONTAL) x = flipped(lowering, x, 1);
        x = leati_image_value_back(g, x, c->data_format);
    }
    outputs[0] = x;
}

LEATI_LAYER_TYPE(random_flip, "RandomFlip", "random_flip", flip_config, flip_fields, LEATI_ONE_INPUT,
                 .infer = infer, .lower = lower_flip);
