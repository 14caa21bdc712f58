/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that are common to current Keras's layers that change images at random in training: options, and the function
 * of the op CALL that draws the numbers of each image and changes the images. */
#ifndef LEATI_NN_LAYERS_PREPROCESSING_RANDOM_IMAGES_H
#define LEATI_NN_LAYERS_PREPROCESSING_RANDOM_IMAGES_H

#include "engine/graph/callee.h"
#include "json/json.h"
#include "nn/layers/layer.h"
#include "nn/layers/preprocessing/image_changes.h"

#define LEATI_RANDOM_OPTIONS 8

typedef struct leati_random_image leati_random_image;
struct leati_random_image {
    leati_callee callee; /* the first member */
    leati_change change; /* without amounts and field */
    int32_t data_format;
    int draws;                  /* numbers of an image; the other amount is equal to the first one */
    double lowest[2], range[2]; /* amount = (lowest + range * uniform) * scale */
    bool by_size, by_values;    /* scale: the height and the width; highest - lowest value */
    bool turns;                 /* the sign of both amounts is drawn before them */
    bool decides;               /* the amount becomes 1 if one more number is below it, otherwise 0 */
    /* Draws the amounts of all images, (count, LEATI_CHANGE_AMOUNTS), which are 0; NULL: as the members above say. */
    void (*draw)(const leati_random_image *o, const leati_image_size *size, leat_rng *rng, int64_t count,
                 float (*amounts)[LEATI_CHANGE_AMOUNTS]);
    json_t *values[LEATI_RANDOM_OPTIONS]; /* the options as they are written back */
};

/* A field of a layer whose configuration begins with a leati_random_image. */
#define LEATI_OPTION(index, key_, preset_)                                                                   \
    {                                                                                                        \
        .key = key_, .kind = LEATI_FIELD_JSON, .preset = preset_,                                            \
        .offset = offsetof(leati_random_image, values) + (index) * sizeof(json_t *)                          \
    }

/* Returns the option with that key; NULL if the layer does not have the option or the option is null. */
const json_t *leati_random_option(const leati_layer *layer, const char *key);

/* Reads a number f as the range -f to f within the limits, or two numbers from -1 as a range, as Keras does. */
leat_status leati_random_range(const leati_layer *layer, const char *key, double least, double most,
                               double out[2], leat_error *err);

/* Reads value_range into the change. */
leat_status leati_random_limits(leati_random_image *o, const leati_layer *layer, leat_error *err);

/* Sets what does not depend on the kind of change.  range[i]: the lowest and the highest number of draw i. */
leat_status leati_random_set(leati_random_image *o, const leati_layer *layer, leati_change_kind kind,
                             int draws, double range[2][2], leat_error *err);

/* Set up RandomContrast and RandomBrightness, whose factor has that key. */
leat_status leati_random_contrast(leati_random_image *o, const leati_layer *layer, const char *key,
                                  leat_error *err);
leat_status leati_random_brightness(leati_random_image *o, const leati_layer *layer, const char *key,
                                    leat_error *err);

/* Draws a number of range `index`. */
double leati_random_draw(const leati_random_image *o, int index, leat_rng *rng);

leati_value leati_random_as_float(leati_graph *g, leati_value x);

/* Returns the images, which are changed in training. */
leati_value leati_random_change(const leati_lowering *lowering, const leati_random_image *o, uint64_t stream,
                                leati_value x);

/* `infer` and `lower` of layers whose configuration is a leati_random_image. */
leat_status leati_random_infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                               leati_shape *outputs, int *output_count, leat_error *err);
void leati_random_lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                        const leati_value *inputs, leati_value *outputs);

#endif
