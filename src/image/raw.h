/* SPDX-License-Identifier: Apache-2.0 */
/* What the decoder of a format gives: pixels in the layout of the file, before the conversion of colours. */
#ifndef LEATI_IMAGE_RAW_H
#define LEATI_IMAGE_RAW_H

#include <stdbool.h>

#include "image/picture.h"

/* The layouts of pixels, 8 bits for each channel. */
typedef enum leati_raw_layout {
    LEATI_RAW_GRAY,       /* 1 channel */
    LEATI_RAW_GRAY_ALPHA, /* 2 channels */
    LEATI_RAW_RGB,
    LEATI_RAW_RGBA,
    LEATI_RAW_CMYK,
    LEATI_RAW_PALETTE /* 1 channel: indices of the palette */
} leati_raw_layout;

typedef struct leati_raw {
    leati_picture picture; /* its channels are those of the layout */
    leati_raw_layout layout;
    unsigned char palette[256][4]; /* RGBA */
    bool has_key;                  /* pixels of the colour `key` are transparent; for gray and RGB */
    unsigned char key[3];          /* a gray key is in all three */
} leati_raw;

/* A file in memory and the caller's options. */
typedef struct leati_encoded {
    const unsigned char *data;
    size_t bytes;
    const leati_picture_options *options;
} leati_encoded;

/* Checks the size that a header declares, and allocates the picture.  Errors: LEAT_EFORMAT a side is 0; LEAT_ESHAPE
 * too many pixels; LEAT_ENOMEM. */
leat_status leati_raw_create(leati_raw *raw, const leati_encoded *in, int64_t width, int64_t height,
                             leati_raw_layout layout, leat_error *err);

/* Like leati_raw_create, but the pixels have any values: for a decoder that writes all of them. */
leat_status leati_raw_allocate(leati_raw *raw, const leati_encoded *in, int64_t width, int64_t height,
                               leati_raw_layout layout, leat_error *err);

/* Makes all colours of the palette opaque black, as Pillow has the colours that a file does not define. */
void leati_raw_black_palette(leati_raw *raw);

/* Copies one line of samples of 1, 2, 4 or 8 bits, highest bit first, to one byte each. */
void leati_raw_unpack(unsigned char *dst, const unsigned char *src, int64_t count, int bits);

/* Converts to the colours that the caller wants.  Takes the picture of `raw`.  Errors: LEAT_ENOMEM. */
leat_status leati_raw_convert(leati_picture *out, leati_raw *raw, leati_picture_color color, leat_error *err);

/* The decoders.  On failure *raw may have a picture, which the caller frees. */
typedef leat_status leati_decoder(leati_raw *raw, const leati_encoded *in, leat_error *err);
leati_decoder leati_decode_jpeg, leati_decode_png, leati_decode_webp, leati_decode_gif, leati_decode_tiff,
    leati_decode_bmp, leati_decode_ppm;

#endif
