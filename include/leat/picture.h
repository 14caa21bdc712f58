/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures for a sequence of your own: decode the bytes of a file, resize, augment.  The source `images:` calls the
 * same functions (leat/source.h), so that a sequence's `get` that uses them makes the same bytes.
 *
 *     leat_picture photo, small;
 *     leat_picture_decode(&photo, file, file_bytes, NULL, err);
 *     leat_picture_resize(&small, &photo, 224, 224, "bilinear", "crop", err);
 *     leat_augment_apply(augment, rng, number, small.pixels, batch_place, err);
 *
 * Decoded and resized pixels have the bytes that Pillow gives, as Keras's load_img does.  docs/pictures.md lists the
 * steps of an augmentation. */
#ifndef LEAT_PICTURE_H
#define LEAT_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/rng.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A picture in memory.  Frozen. */
typedef struct leat_picture {
    int64_t width;
    int64_t height;
    int64_t channels; /* 1 gray, 3 RGB, 4 RGBA */
    uint8_t *pixels;  /* (height, width, channels); leat_picture_destroy frees them */
} leat_picture;

/** Options of leat_picture_decode.  Initialize them by leat_picture_options_default(). */
typedef struct leat_picture_options {
    size_t size;        /* sizeof the struct, set by leat_picture_options_init */
    int64_t channels;   /* of the result: 1 gray, 3 RGB, 4 RGBA; default 3 */
    int64_t max_pixels; /* a picture with more pixels is refused; default 89478485 */
    /* If both are positive, a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size as long as it is not smaller than
     * this: faster, but with other pixels.  Default 0. */
    int64_t scaled_width;
    int64_t scaled_height;
} leat_picture_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_picture_options_init(leat_picture_options *options, size_t size);
/** Returns the default options. */
static inline leat_picture_options leat_picture_options_default(void) {
    leat_picture_options options;
    leat_picture_options_init(&options, sizeof options);
    return options;
}

/** Decodes a file in memory: JPEG, PNG, WebP, GIF, TIFF, BMP or PPM, recognized by the content.  The orientation in the
 *  EXIF data of a photograph is ignored, as Keras ignores it.  Of an animation the first picture is decoded.
 *  @param[out] out  For leat_picture_destroy; zeroed on failure.
 *  @param options  NULL: the defaults.
 *  Errors: LEAT_EFORMAT no picture, or damaged, or truncated; LEAT_ENOTSUP a form of a format that cannot be read;
 *  LEAT_ESHAPE more than max_pixels pixels; LEAT_EINVAL the options; LEAT_ENOMEM.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_picture_decode(leat_picture *out, const void *data, size_t bytes,
                                                      const leat_picture_options *options, leat_error *err);

/** Resizes a picture, as Pillow's Image.resize does.
 *  @param[out] out  A new picture with the channels of `in`, for leat_picture_destroy; zeroed on failure.
 *  @param interpolation  "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming"; NULL: "bilinear".
 *  @param aspect  If the aspect ratio changes: "stretch", "crop" (the largest part in the middle that has the new
 *  ratio) or "pad" (black margins); NULL: "stretch".
 *  Errors: LEAT_EINVAL an unknown word; LEAT_ESHAPE a side is not from 1 to 65535, or `in` has no pixels; LEAT_ENOMEM.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_picture_resize(leat_picture *out, const leat_picture *in,
                                                      int64_t height, int64_t width,
                                                      const char *interpolation, const char *aspect,
                                                      leat_error *err);

/** Frees the pixels of a picture that leat made, and zeroes the struct.  NULL and zeroed structs are allowed. */
LEAT_API void leat_picture_destroy(leat_picture *picture);

/* ---- Augmentation ---- */

/** An augmentation: a list of steps such as flips and rotations, for pictures of one size.  Opaque.
 *  Threads: immutable; any number of threads may use it at the same time. */
typedef struct leat_augment leat_augment;

/** Parses the steps of an augmentation: "flip,rotate(15),zoom(0.1)".  docs/pictures.md lists the steps, which have the
 *  names of ImageDataGenerator's arguments, of Keras's layers, or short ones.
 *  @param[out] out  New object, owned by the caller (leat_augment_destroy); NULL on failure.
 *  @param height, width, channels  The pictures that leat_augment_apply will receive; 1, 3 or 4 channels.
 *  Errors: LEAT_EINVAL the text, the message says which step and names the nearest known word; LEAT_ESHAPE the size;
 *  LEAT_ENOMEM.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_augment_create(leat_augment **out, const char *steps, int64_t height,
                                                      int64_t width, int64_t channels, leat_error *err);

/** Frees the object and sets *augment to NULL; NULL is fine. */
LEAT_API void leat_augment_destroy(leat_augment **augment);

/** Tells the size of the results, which crops change, and their type: floats if a step makes values that are not from 0
 *  to 255, such as rescale or samplewise_center, and bytes otherwise.  Each pointer may be NULL. */
LEAT_API void leat_augment_output(const leat_augment *augment, int64_t *height, int64_t *width,
                                  bool *is_float);

/** Augments one picture.  The random numbers are a function of (seed, pass, sample_number): of rng->key, which is the
 *  same for all batches of a pass, and of the number.  *rng does not change.
 *  @param rng  The generator that `get` received, or leat_rng_for(seed, pass, 0).
 *  @param sample_number  The number of the sample in its data set.
 *  @param src  (height, width, channels)
 *  @param[out] dst  Bytes or floats, as leat_augment_output says; values are rounded to bytes and limited to 0 to 255.
 *  Errors: LEAT_ENOMEM.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_augment_apply(const leat_augment *augment, const leat_rng *rng,
                                                     int64_t sample_number, const uint8_t *src, void *dst,
                                                     leat_error *err);

/** Like leat_augment_apply, but writes values * scale as floats, without rounding.
 *  Errors: LEAT_ENOMEM.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_augment_apply_floats(const leat_augment *augment, const leat_rng *rng,
                                                            int64_t sample_number, const uint8_t *src,
                                                            double scale, float *dst, leat_error *err);

/** Moves a mask of segmentation as leat_augment_apply moves the picture of the same sample: the geometric steps alone,
 *  with the nearest pixel, so that labels are not mixed.
 *  @param src  (height, width): a label for each pixel
 *  Errors: LEAT_ENOMEM.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_augment_apply_mask(const leat_augment *augment, const leat_rng *rng,
                                                          int64_t sample_number, const uint8_t *src,
                                                          uint8_t *dst, leat_error *err);

/** Lists the numbers that leat_augment_apply draws for a sample, as JSON: an array with an object for each step, which
 *  has its name (`step`) and the drawn numbers by name, such as {"step": "rotate", "theta": -3.25}.
 *  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_ENOMEM.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_augment_explain(const leat_augment *augment, const leat_rng *rng,
                                                       int64_t sample_number, char **out, leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
