/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the colours of decoded pixels with the integer arithmetic of Pillow's Image.convert.  Room: image. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/raw.h"

/* ITU-R 601 luma in fixed point with 16 bits. */
static unsigned char luma(const unsigned char *rgb) {
    return (unsigned char)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

/* Computes a * b / 255, rounded. */
static unsigned multiply_255(unsigned a, unsigned b) {
    const unsigned product = a * b + 128;
    return ((product >> 8) + product) >> 8;
}

/* Writes one CMYK pixel as RGB. */
static void cmyk_to_rgb(unsigned char *rgb, const unsigned char *cmyk) {
    const unsigned white = 255u - cmyk[3];
    for (int i = 0; i < 3; ++i) {
        const int value = (int)white - (int)multiply_255(cmyk[i], white);
        rgb[i] = (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

/* Writes one pixel of the layout as RGBA. */
static void read_pixel(unsigned char rgba[4], const leati_raw *raw, const unsigned char *pixel) {
    rgba[3] = 255;
    switch (raw->layout) {
    case LEATI_RAW_GRAY: memset(rgba, pixel[0], 3); break;
    case LEATI_RAW_GRAY_ALPHA:
        memset(rgba, pixel[0], 3);
        rgba[3] = pixel[1];
        break;
    case LEATI_RAW_RGB: memcpy(rgba, pixel, 3); break;
    case LEATI_RAW_RGBA: memcpy(rgba, pixel, 4); break;
    case LEATI_RAW_CMYK: cmyk_to_rgb(rgba, pixel); break;
    case LEATI_RAW_PALETTE: memcpy(rgba, raw->palette[pixel[0]], 4); break;
    }
    if (raw->has_key && memcmp(rgba, raw->key, 3) == 0) rgba[3] = 0;
}

static void convert_pixels(leati_picture *out, const leati_raw *raw) {
    const int64_t count = out->width * out->height;
    const unsigned char *from = raw->picture.pixels;
    unsigned char *to = out->pixels, rgba[4];
    for (int64_t i = 0; i < count; ++i, from += raw->picture.channels, to += out->channels) {
        read_pixel(rgba, raw, from);
        if (out->channels == 1)
            *to = luma(rgba);
        else
            memcpy(to, rgba, (size_t)out->channels);
    }
}

/* The conversion that most photographs need for a model of gray pictures. */
static void rgb_to_gray(leati_picture *out, const leati_raw *raw) {
    const int64_t count = out->width * out->height;
    const unsigned char *from = raw->picture.pixels;
    unsigned char *to = out->pixels;
    for (int64_t i = 0; i < count; ++i) to[i] = luma(from + 3 * i);
}

leat_status leati_raw_convert(leati_picture *out, leati_raw *raw, leati_picture_color color,
                              leat_error *err) {
    static const leati_raw_layout same[] = {
        [LEATI_COLOR_GRAYSCALE] = LEATI_RAW_GRAY,
        [LEATI_COLOR_RGB] = LEATI_RAW_RGB,
        [LEATI_COLOR_RGBA] = LEATI_RAW_RGBA,
    };
    if (raw->layout == same[color]) { /* a key changes alpha alone */
        *out = raw->picture;
        raw->picture = (leati_picture){0};
        return LEAT_OK;
    }
    LEATI_TRY(leati_picture_allocate(out, raw->picture.width, raw->picture.height, (int)color, err));
    if (color == LEATI_COLOR_GRAYSCALE && raw->layout == LEATI_RAW_RGB)
        rgb_to_gray(out, raw);
    else
        convert_pixels(out, raw);
    return LEAT_OK;
}
