/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of Keras's functions that read data, and what stands for them in a SPEC or on the command line, for
 * messages.  Room: data. */
#include <string.h>

#include "data/kinds.h"

static const char augment[] = "a step of augment=, such as augment=rotation_range=15,horizontal_flip";

static const char *const arguments[][2] = {
    {"target_size", "size=HEIGHTxWIDTH"},
    {"image_size", "size=HEIGHTxWIDTH"},
    {"color_mode", "color=rgb, grayscale or rgba"},
    {"class_mode", "labels=int, onehot, binary, raw, multi_output, input or none"},
    {"label_mode", "labels=int, onehot, binary or none"},
    {"class_names", "classes=NAME,NAME"},
    {"rescale", "scale=1/255"},
    {"validation_split", "validation=0.2, with subset=training or subset=validation"},
    {"crop_to_aspect_ratio", "aspect=crop"},
    {"keep_aspect_ratio", "aspect=crop"},
    {"pad_to_aspect_ratio", "aspect=pad"},
    {"batch_size", "the option --batch-size of the command"},
    {"shuffle", "the option --shuffle of the command"},
    {"rotation_range", augment},
    {"width_shift_range", augment},
    {"height_shift_range", augment},
    {"shear_range", augment},
    {"zoom_range", augment},
    {"brightness_range", augment},
    {"channel_shift_range", augment},
    {"horizontal_flip", augment},
    {"vertical_flip", augment},
    {"fill_mode", augment},
    {"cval", augment},
    {"featurewise_center", augment},
    {"featurewise_std_normalization", augment},
    {"samplewise_center", augment},
    {"samplewise_std_normalization", augment},
    {"zca_whitening", augment},
};

const char *leati_keras_option(const char *name) {
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; ++i)
        if (strcmp(arguments[i][0], name) == 0) return arguments[i][1];
    return NULL;
}
