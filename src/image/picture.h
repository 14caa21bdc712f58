/* SPDX-License-Identifier: Apache-2.0 */
/* One picture in memory: decoded from the bytes of a file, converted, resized.  Every result has the bytes that Pillow
 * gives, because Keras's load_img calls Pillow; docs/decisions/0600 and 0601 list the exceptions. */
#ifndef LEATI_IMAGE_PICTURE_H
#define LEATI_IMAGE_PICTURE_H

#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

/* Bytes behind the last pixel that vectorized loops may read, but whose values they ignore. */
enum { LEATI_PICTURE_SLACK = 64 };

/* The number of pixels above which a picture is refused unless the caller sets a limit: about 90 million, the number
 * from which on Pillow warns of a decompression bomb. */
enum { LEATI_PICTURE_MAX_PIXELS = 89478485 };

/* The channels of a picture, named by Keras's color_mode. */
typedef enum leati_picture_color {
    LEATI_COLOR_GRAYSCALE = 1,
    LEATI_COLOR_RGB = 3,
    LEATI_COLOR_RGBA = 4
} leati_picture_color;

typedef struct leati_picture {
    int64_t width, height;
    int channels;
    unsigned char *pixels; /* (height, width, channels), and LEATI_PICTURE_SLACK bytes */
} leati_picture;

typedef struct leati_picture_options {
    leati_picture_color color;
    int64_t max_pixels; /* 0: LEATI_PICTURE_MAX_PIXELS */
    /* If both are positive, a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size as long as it is not smaller than
     * this.  The pixels then differ from Pillow's. */
    int64_t scaled_width, scaled_height;
} leati_picture_options;

/* Allocates the pixels of a picture, zeroed.  Errors: LEAT_ENOMEM. */
leat_status leati_picture_create(leati_picture *out, int64_t width, int64_t height, int channels,
                                 leat_error *err);
/* Like leati_picture_create, but the pixels have any values: for a caller that writes all of them. */
leat_status leati_picture_allocate(leati_picture *out, int64_t width, int64_t height, int channels,
                                   leat_error *err);
void leati_picture_fini(leati_picture *picture);

/* Decodes a file in memory; the format is recognized by the content.  The orientation that a photograph's EXIF data
 * demands is ignored, as Keras ignores it.  The first picture of an animation is decoded.
 * @param[out] out  For leati_picture_fini; zeroed on failure.
 * Errors: LEAT_EFORMAT no picture, or damaged, or truncated; LEAT_ENOTSUP a form of a format that cannot be read;
 * LEAT_ESHAPE more than max_pixels pixels; LEAT_ENOMEM. */
leat_status leati_picture_decode(leati_picture *out, const void *data, size_t bytes,
                                 const leati_picture_options *options, leat_error *err);

/* Returns the name of the format that the content has, such as "JPEG"; NULL if no format is recognized. */
const char *leati_picture_format(const void *data, size_t bytes);

/* ---- Resizing ---- */

/* Pillow's filters. */
typedef enum leati_filter {
    LEATI_FILTER_NEAREST,
    LEATI_FILTER_BILINEAR,
    LEATI_FILTER_BICUBIC,
    LEATI_FILTER_LANCZOS,
    LEATI_FILTER_BOX,
    LEATI_FILTER_HAMMING,
    LEATI_FILTER_COUNT
} leati_filter;

/* The ways to fit a picture into a size of another aspect ratio. */
typedef enum leati_fit {
    LEATI_FIT_STRETCH, /* changes the aspect ratio */
    LEATI_FIT_CROP,    /* the largest part in the middle that has the ratio: load_img's keep_aspect_ratio */
    LEATI_FIT_PAD,     /* black margins: pad_to_aspect_ratio of image_dataset_from_directory */
    LEATI_FIT_COUNT
} leati_fit;

/* Names of filters and fits as Keras and SPECs have them: "bilinear", "crop". */
extern const char *const leati_filter_names[LEATI_FILTER_COUNT];
extern const char *const leati_fit_names[LEATI_FIT_COUNT];

/* A rectangle of a picture. */
typedef struct leati_box {
    int64_t x0, y0, x1, y1; /* x0 <= x < x1, y0 <= y < y1 */
} leati_box;

/* Resizes the box of a picture, as Pillow's Image.resize(size, resample, box) does.
 * @param box  NULL: the whole picture.
 * @param[in,out] out  A picture of the new size, with the channels of `in`, made by leati_picture_create.
 * Errors: LEAT_ESHAPE the box is empty or not inside the picture; LEAT_ENOMEM. */
leat_status leati_picture_resize(leati_picture *out, const leati_picture *in, leati_filter filter,
                                 const leati_box *box, leat_error *err);

/* Resizes a picture into `out` and treats its aspect ratio as `fit` says.  Errors: as leati_picture_resize. */
leat_status leati_picture_fit(leati_picture *out, const leati_picture *in, leati_filter filter, leati_fit fit,
                              leat_error *err);

#endif
