/* SPDX-License-Identifier: Apache-2.0 */
/* Current Keras's layers that move the pixels of images, or change their values by a line, at random in training.  In
 * predictions and evaluations they return the images.
 * Source: keras.layers.RandomFlip, RandomRotation, ... */
#include "nn/layers/preprocessing/random_images.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/layers/spatial.h"
#include "nn/layers/types.h"

leati_value leati_random_as_float(leati_graph *g, leati_value x) {
    return leati_graph_desc(g, x)->dtype == LEAT_F32 ? x : leati_cast(g, x, LEAT_F32, 1);
}

leat_status leati_random_infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                               leati_shape *outputs, int *output_count, leat_error *err) {
    leati_shape image;
    (void)layer, (void)input_count, (void)output_count;
    outputs[0] = inputs[0];
    return leati_image_shape(&inputs[0], 2, LEATI_CHANNELS_LAST, &image, err);
}

/* ---- Options ---- */

/* Layers whose options are a factor and a range of values. */
static const leati_field factor_fields[] = {LEATI_OPTION(0, "factor", NULL),
                                            LEATI_OPTION(1, "value_range", "[0, 255]"),
                                            LEATI_OPTION(2, "data_format", "\"channels_last\""),
                                            LEATI_OPTION(3, "seed", "null"),
                                            {.key = NULL}};
static const leati_field random_grayscale_fields[] = {LEATI_OPTION(0, "factor", "0.5"),
                                                      LEATI_OPTION(1, "data_format", "\"channels_last\""),
                                                      {.key = NULL}};
static const leati_field random_invert_fields[] = {LEATI_OPTION(0, "factor", "1.0"),
                                                   LEATI_OPTION(1, "value_range", "[0, 255]"),
                                                   LEATI_OPTION(2, "data_format", "\"channels_last\""),
                                                   LEATI_OPTION(3, "seed", "null"),
                                                   {.key = NULL}};
static const leati_field random_rotation_fields[] = {LEATI_OPTION(0, "factor", NULL),
                                                     LEATI_OPTION(1, "fill_mode", "\"reflect\""),
                                                     LEATI_OPTION(2, "fill_value", "0.0"),
                                                     LEATI_OPTION(3, "interpolation", "\"bilinear\""),
                                                     LEATI_OPTION(4, "data_format", "\"channels_last\""),
                                                     LEATI_OPTION(5, "seed", "null"),
                                                     {.key = NULL}};
static const leati_field random_shear_fields[] = {LEATI_OPTION(0, "x_factor", "0.0"),
                                                  LEATI_OPTION(1, "y_factor", "0.0"),
                                                  LEATI_OPTION(2, "interpolation", "\"bilinear\""),
                                                  LEATI_OPTION(3, "fill_mode", "\"reflect\""),
                                                  LEATI_OPTION(4, "fill_value", "0.0"),
                                                  LEATI_OPTION(5, "data_format", "\"channels_last\""),
                                                  LEATI_OPTION(6, "seed", "null"),
                                                  {.key = NULL}};
static const leati_field random_translation_fields[] = {LEATI_OPTION(0, "height_factor", NULL),
                                                        LEATI_OPTION(1, "width_factor", NULL),
                                                        LEATI_OPTION(2, "fill_mode", "\"reflect\""),
                                                        LEATI_OPTION(3, "interpolation", "\"bilinear\""),
                                                        LEATI_OPTION(4, "fill_value", "0.0"),
                                                        LEATI_OPTION(5, "data_format", "\"channels_last\""),
                                                        LEATI_OPTION(6, "seed", "null"),
                                                        {.key = NULL}};
static const leati_field random_zoom_fields[] = {LEATI_OPTION(0, "height_factor", NULL),
                                                 LEATI_OPTION(1, "width_factor", "null"),
                                                 LEATI_OPTION(2, "fill_mode", "\"reflect\""),
                                                 LEATI_OPTION(3, "interpolation", "\"bilinear\""),
                                                 LEATI_OPTION(4, "fill_value", "0.0"),
                                                 LEATI_OPTION(5, "data_format", "\"channels_last\""),
                                                 LEATI_OPTION(6, "seed", "null"),
                                                 {.key = NULL}};

/* ---- Layers that change images in one function of the op CALL ---- */

const json_t *leati_random_option(const leati_layer *layer, const char *key) {
    const leati_random_image *o = layer->config;
    for (const leati_field *field = layer->type->fields; field->key; ++field)
        if (strcmp(field->key, key) == 0)
            return *(json_t *const *)(const void *)((const char *)o + field->offset);
    return NULL;
}

leat_status leati_random_range(const leati_layer *layer, const char *key, double least, double most,
                               double out[2], leat_error *err) {
    const json_t *value = leati_random_option(layer, key);
    const bool pair = json_array_size(value) == 2;
    for (int i = 0; i < 2; ++i) {
        const json_t *item = pair ? json_array_get(value, (size_t)i) : value;
        if (!json_is_number(item) || json_number_value(item) < (pair ? -1 : least) ||
            json_number_value(item) > most)
            return leati_fail(err, LEAT_EINVAL, "%s: expected a number from %g to %g, or a list of two", key,
                              least, most);
        out[i] = json_number_value(item);
    }
    if (!pair) out[1] = out[0] < 0 ? -out[0] : out[0];
    if (!pair) out[0] = -out[1] < least ? least : -out[1];
    if (out[0] > out[1]) {
        const double first = out[0];
        out[0] = out[1];
        out[1] = first;
    }
    return LEAT_OK;
}

/* Reads an option that is one of the names; an option that the layer does not have is the first name. */
static leat_status read_choice(const leati_layer *layer, const char *key, const char *const *names,
                               int32_t *out, leat_error *err) {
    const json_t *value = leati_random_option(layer, key);
    const char *text = json_string_value(value);
    *out = 0;
    if (!value) return LEAT_OK;
    for (; names[*out]; ++*out)
        if (text && strcmp(text, names[*out]) == 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "%s: expected one of Keras's names, such as \"%s\"", key, names[0]);
}

static leati_random_image *config_of(const leati_layer *layer) {
    return layer->config;
}

static leat_status changed_shape(const leati_callee *callee, int input_count, const leati_desc *inputs,
                                 leati_desc *outputs, leat_error *err) {
    const leati_random_image *o = (const void *)callee;
    const int64_t channels = inputs[0].shape[3];
    const leati_change_kind kind = o->change.kind;
    const bool colours = kind == LEATI_HUE || kind == LEATI_SATURATION;
    (void)input_count;
    outputs[0] = inputs[0];
    if (kind == LEATI_FADE && channels != 1 && channels != 3)
        return leati_fail(err, LEAT_ESHAPE, "expected images of 1 or 3 channels, received %lld",
                          (long long)channels);
    if ((colours || (kind == LEATI_ERASE && o->change.fill_count == 3)) && channels != 3)
        return leati_fail(err, LEAT_ESHAPE, "expected images of 3 channels, received %lld",
                          (long long)channels);
    return LEAT_OK;
}

/* The images of one run. */
typedef struct batch {
    const leati_random_image *options;
    const leati_callee_run *run;
    leati_image_size size;
    float (*amounts)[LEATI_CHANGE_AMOUNTS]; /* of each image */
    float *fields;                          /* ELASTIC: (images, 2, height, width); otherwise NULL */
} batch;

/* Makes the displacements of the pixels of an image in `field`; `noise` has the same size. */
static void make_field(const leati_change *change, const leati_image_size *size, float *noise, float *field) {
    leat_rng rng = leat_rng_for((uint64_t)change->amount[2], 0, 0);
    for (int64_t i = 0; i < size->height * size->width; ++i) noise[i] = (float)leat_rng_normal(&rng);
    leati_elastic_field(change, size, noise, field);
}

static void change_one(void *context, int64_t index, int member) {
    const batch *b = context;
    const int64_t pixels = b->size.height * b->size.width, offset = index * pixels * b->size.channels;
    leati_change change = b->options->change;
    (void)member;
    memcpy(change.amount, b->amounts[index], sizeof change.amount);
    if (b->fields) {
        float *field = b->fields + 2 * index * pixels;
        make_field(&change, &b->size, field + pixels, field);
        change.field = field;
    }
    const float *src = (const float *)b->run->args[0] + offset;
    if (b->run->diff_args)
        leati_change_image_back(&change, &b->size, src, (const float *)b->run->diff_results[0] + offset,
                                (float *)b->run->diff_args[0] + offset);
    else
        leati_change_image(&change, &b->size, src, (float *)b->run->results[0] + offset);
}

/* Draws the numbers in the order of the images; of an image first that of the height, then that of the width. */
static void draw_amounts(const leati_random_image *o, const leati_image_size *size, leat_rng *rng,
                         int64_t count, float (*amounts)[LEATI_CHANGE_AMOUNTS]) {
    const double scales[] = {o->by_size ? (double)size->height : 1, o->by_size ? (double)size->width : 1};
    const double values = o->by_values ? (double)o->change.highest - (double)o->change.lowest : 1;
    for (int64_t i = 0; i < count; ++i) {
        const double sign = o->turns && leat_rng_uniform(rng) > 0.5 ? -1 : 1;
        for (int j = 0; j < 2 && j < o->draws; ++j)
            amounts[i][j] = (float)(leati_random_draw(o, j, rng) * scales[j] * values * sign);
        if (o->decides) amounts[i][0] = (float)leat_rng_uniform(rng) < amounts[i][0] ? 1.0f : 0.0f;
        if (o->draws == 1) amounts[i][1] = amounts[i][0];
    }
}

static leat_status change_all(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const leati_desc *desc = &run->inputs[0];
    const leati_random_image *o = (const void *)callee;
    batch b = {.options = o, .run = run, .size = {desc->shape[1], desc->shape[2], desc->shape[3]}};
    const size_t count = (size_t)desc->shape[0], pixels = (size_t)(b.size.height * b.size.width);
    if (run->diff_args && !run->diff_args[0]) return LEAT_OK;
    b.amounts = leati_calloc(count + 1, sizeof *b.amounts);
    if (!b.amounts) return leati_fail_memory(err, count * sizeof *b.amounts, "random numbers");
    if (o->change.kind == LEATI_ELASTIC) {
        b.fields = leati_calloc(2 * count * pixels + 1, sizeof *b.fields);
        if (!b.fields) {
            leati_free(b.amounts);
            return leati_fail_memory(err, 2 * count * pixels * sizeof *b.fields, "displacements of pixels");
        }
    }
    (o->draw ? o->draw : draw_amounts)(o, &b.size, run->rng, (int64_t)count, b.amounts);
    leati_thread_pool_share(run->pool, LEATI_THREAD_POOL_MAX, (int64_t)count, change_one, &b);
    leati_free(b.fields);
    leati_free(b.amounts);
    return LEAT_OK;
}

double leati_random_draw(const leati_random_image *o, int index, leat_rng *rng) {
    return o->lowest[index] + o->range[index] * leat_rng_uniform(rng);
}

static const char *const fill_modes[] = {"reflect", "wrap", "constant", "nearest", NULL};
static const char *const elastic_fill_modes[] = {"reflect", "wrap", "constant", "nearest", "mirror", NULL};
static const char *const interpolations[] = {"bilinear", "nearest", NULL};

leat_status leati_random_set(leati_random_image *o, const leati_layer *layer, leati_change_kind kind,
                             int draws, double range[2][2], leat_error *err) {
    const json_t *fill = kind == LEATI_ERASE ? NULL : leati_random_option(layer, "fill_value");
    const char *const *modes = kind == LEATI_ELASTIC ? elastic_fill_modes : fill_modes;
    int32_t interpolation;
    LEATI_TRY(read_choice(layer, "data_format", leati_data_formats, &o->data_format, err));
    LEATI_TRY(read_choice(layer, "fill_mode", modes, &o->change.fill_mode, err));
    LEATI_TRY(read_choice(layer, "interpolation", interpolations, &interpolation, err));
    if (fill && !json_is_number(fill)) return leati_fail(err, LEAT_EINVAL, "fill_value: expected a number");
    o->change.fill_value = (float)json_number_value(fill);
    o->change.bilinear = interpolation == 0;
    o->change.kind = kind;
    o->draws = draws;
    for (int i = 0; i < draws; ++i) {
        o->lowest[i] = range[i][0];
        o->range[i] = range[i][1] - range[i][0];
    }
    o->callee = (leati_callee){.output_count = 1,
                               .infer = changed_shape,
                               .forward = change_all,
                               .backward = change_all};
    return LEAT_OK;
}

static leat_status check_rotation(leati_layer *layer, leat_error *err) {
    double range[2][2] = {{0}};
    LEATI_TRY(leati_random_range(layer, "factor", -1, 1, range[0], err));
    for (int i = 0; i < 2; ++i) range[0][i] *= 360;
    return leati_random_set(config_of(layer), layer, LEATI_ROTATE, 1, range, err);
}

static leat_status check_translation(leati_layer *layer, leat_error *err) {
    double range[2][2];
    LEATI_TRY(leati_random_range(layer, "height_factor", -1, 1, range[0], err));
    LEATI_TRY(leati_random_range(layer, "width_factor", -1, 1, range[1], err));
    config_of(layer)->by_size = true;
    return leati_random_set(config_of(layer), layer, LEATI_TRANSLATE, 2, range, err);
}

/* Without a width_factor the width is zoomed as the height. */
static leat_status check_zoom(leati_layer *layer, leat_error *err) {
    const bool both = leati_random_option(layer, "width_factor") != NULL;
    double range[2][2] = {{0}};
    LEATI_TRY(leati_random_range(layer, "height_factor", -1, 1, range[0], err));
    if (both) LEATI_TRY(leati_random_range(layer, "width_factor", -1, 1, range[1], err));
    for (int i = 0; i < 4; ++i) range[i / 2][i % 2] += 1;
    return leati_random_set(config_of(layer), layer, LEATI_ZOOM, both ? 2 : 1, range, err);
}

leat_status leati_random_limits(leati_random_image *o, const leati_layer *layer, leat_error *err) {
    const json_t *value = leati_random_option(layer, "value_range");
    const json_t *low = json_array_get(value, 0), *high = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_number(low) || !json_is_number(high))
        return leati_fail(err, LEAT_EINVAL, "value_range: expected a list of two numbers");
    o->change.lowest = (float)json_number_value(low);
    o->change.highest = (float)json_number_value(high);
    return LEAT_OK;
}

leat_status leati_random_contrast(leati_random_image *o, const leati_layer *layer, const char *key,
                                  leat_error *err) {
    double range[2][2] = {{0}};
    LEATI_TRY(leati_random_limits(o, layer, err));
    LEATI_TRY(leati_random_range(layer, key, 0, 1, range[0], err));
    range[0][0] = 1 - range[0][0];
    range[0][1] = 1 + range[0][1];
    return leati_random_set(o, layer, LEATI_CONTRAST, 1, range, err);
}

static leat_status check_contrast(leati_layer *layer, leat_error *err) {
    return leati_random_contrast(layer->config, layer, "factor", err);
}

leat_status leati_random_brightness(leati_random_image *o, const leati_layer *layer, const char *key,
                                    leat_error *err) {
    double range[2][2] = {{0}};
    LEATI_TRY(leati_random_limits(o, layer, err));
    LEATI_TRY(leati_random_range(layer, key, -1, 1, range[0], err));
    o->by_values = true;
    return leati_random_set(o, layer, LEATI_BRIGHTEN, 1, range, err);
}

static leat_status check_brightness(leati_layer *layer, leat_error *err) {
    return leati_random_brightness(layer->config, layer, "factor", err);
}

static leat_status check_degeneration(leati_layer *layer, leat_error *err) {
    double range[2][2] = {{0}};
    LEATI_TRY(leati_random_limits(config_of(layer), layer, err));
    LEATI_TRY(leati_random_range(layer, "factor", -1, 1, range[0], err));
    return leati_random_set(config_of(layer), layer, LEATI_FADE, 1, range, err);
}

/* Here the factor is the probability that an image loses its colours. */
static leat_status check_grayscale(leati_layer *layer, leat_error *err) {
    leati_random_image *o = layer->config;
    const json_t *factor = leati_random_option(layer, "factor");
    const double probability = json_number_value(factor);
    double range[2][2] = {{probability, probability}};
    if (!json_is_number(factor) || probability < 0 || probability > 1)
        return leati_fail(err, LEAT_EINVAL, "factor: expected a number from 0 to 1");
    o->change.lowest = -INFINITY;
    o->change.highest = INFINITY;
    o->decides = true;
    return leati_random_set(config_of(layer), layer, LEATI_FADE, 1, range, err);
}

static leat_status check_invert(leati_layer *layer, leat_error *err) {
    double range[2][2] = {{0}};
    LEATI_TRY(leati_random_limits(config_of(layer), layer, err));
    LEATI_TRY(leati_random_range(layer, "factor", 0, 1, range[0], err));
    config_of(layer)->decides = true;
    return leati_random_set(config_of(layer), layer, LEATI_INVERT, 1, range, err);
}

static leat_status check_shear(leati_layer *layer, leat_error *err) {
    double range[2][2];
    LEATI_TRY(leati_random_range(layer, "y_factor", -1, 1, range[0], err));
    LEATI_TRY(leati_random_range(layer, "x_factor", -1, 1, range[1], err));
    config_of(layer)->turns = true;
    return leati_random_set(config_of(layer), layer, LEATI_SHEAR, 2, range, err);
}

leati_value leati_random_change(const leati_lowering *lowering, const leati_random_image *o, uint64_t stream,
                                leati_value x) {
    leati_graph *g = lowering->graph;
    x = leati_random_as_float(g, x);
    if (!leati_lowering_in_training(lowering)) return x;
    x = leati_image_value(g, x, o->data_format);
    leati_graph_call(g, &o->callee, true, stream, 1, &x, &x);
    return leati_image_value_back(g, x, o->data_format);
}

void leati_random_lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                        const leati_value *inputs, leati_value *outputs) {
    (void)input_count;
    outputs[0] = leati_random_change(lowering, layer->config, lowering->stream, inputs[0]);
}

#define CHANGED(name, class_name, fields_, check_)                                                           \
    LEATI_LAYER_TYPE(name, class_name, #name, leati_random_image, fields_, LEATI_ONE_INPUT, .check = check_, \
                     .infer = leati_random_infer, .lower = leati_random_lower)
CHANGED(random_brightness, "RandomBrightness", factor_fields, check_brightness);
CHANGED(random_color_degeneration, "RandomColorDegeneration", factor_fields, check_degeneration);
CHANGED(random_contrast, "RandomContrast", factor_fields, check_contrast);
CHANGED(random_grayscale, "RandomGrayscale", random_grayscale_fields, check_grayscale);
CHANGED(random_invert, "RandomInvert", random_invert_fields, check_invert);
CHANGED(random_shear, "RandomShear", random_shear_fields, check_shear);
CHANGED(random_rotation, "RandomRotation", random_rotation_fields, check_rotation);
CHANGED(random_translation, "RandomTranslation", random_translation_fields, check_translation);
CHANGED(random_zoom, "RandomZoom", random_zoom_fields, check_zoom);

/* ---- RandomCrop ---- */

typedef struct crop_config {
    int64_t height, width;
    int32_t data_format;
    json_t *seed; /* kept and written, but not used */
} crop_config;

static const leati_field crop_fields[] = {LEATI_INT_FIELD(crop_config, height, 1, NULL),
                                          LEATI_INT_FIELD(crop_config, width, 1, NULL),
                                          LEATI_DATA_FORMAT_FIELD(crop_config),
                                          LEATI_FIELD(crop_config, seed, LEATI_FIELD_JSON, "null"),
                                          {.key = NULL}};

/* Keras crops in training only; in predictions it returns the whole image.  So the shape of the output depends on
 * the mode, unless the image already has the size. */
static leat_status infer_crop(const leati_layer *layer, int input_count, const leati_shape *inputs,
                              leati_shape *outputs, int *output_count, leat_error *err) {
    const crop_config *c = layer->config;
    leati_shape image;
    (void)input_count, (void)output_count;
    outputs[0] = inputs[0];
    LEATI_TRY(leati_image_shape(&inputs[0], 2, c->data_format, &image, err));
    if (image.dims[1] == c->height && image.dims[2] == c->width) return LEAT_OK;
    return leati_fail(
        err, LEAT_ENOTSUP,
        "leat has RandomCrop only for images of its size (%lld x %lld): Keras crops in fit, but "
        "predicts from the whole image; crop the images in the sequence or the source of the data, and "
        "remove the layer or use CenterCrop",
        (long long)c->height, (long long)c->width);
}

static void lower_crop(const leati_layer *layer, leati_lowering *lowering, int input_count,
                       const leati_value *inputs, leati_value *outputs) {
    (void)layer, (void)input_count;
    outputs[0] = leati_random_as_float(lowering->graph, inputs[0]);
}

LEATI_LAYER_TYPE(random_crop, "RandomCrop", "random_crop", crop_config, crop_fields, LEATI_ONE_INPUT,
                 .infer = infer_crop, .lower = lower_crop);

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
    leati_value x = leati_random_as_float(g, inputs[0]);
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
                 .infer = leati_random_infer, .lower = lower_flip);
