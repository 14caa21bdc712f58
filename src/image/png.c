/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes PNG with libpng; of an animation, the first picture.  Room: image. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/raw.h"

typedef struct decoder {
    png_structp png;
    png_infop info;
    const unsigned char *at;
    size_t left;
    png_bytep *rows;
    unsigned char *wide; /* the pixels of a picture with 16 bits of gray */
    char message[160];
} decoder;

static void fail_decoding(png_structp png, png_const_charp text) {
    decoder *d = png_get_error_ptr(png);
    snprintf(d->message, sizeof d->message, "%s", text);
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static void read_data(png_structp png, png_bytep to, size_t count) {
    decoder *d = png_get_io_ptr(png);
    if (count > d->left) png_error(png, "the file is truncated");
    memcpy(to, d->at, count);
    d->at += count;
    d->left -= count;
}

static void *allocate(png_structp png, png_alloc_size_t bytes) {
    (void)png;
    return leati_calloc(bytes, 1);
}

static void release(png_structp png, void *memory) {
    (void)png;
    leati_free(memory);
}

/* Reads the palette and the transparency of its colours. */
static void read_palette(decoder *d, leati_raw *raw) {
    png_colorp colors = NULL;
    png_bytep alpha = NULL;
    int count = 0, alpha_count = 0;
    leati_raw_black_palette(raw);
    if (png_get_PLTE(d->png, d->info, &colors, &count))
        for (int i = 0; i < count && i < 256; ++i) {
            raw->palette[i][0] = colors[i].red;
            raw->palette[i][1] = colors[i].green;
            raw->palette[i][2] = colors[i].blue;
        }
    if (png_get_tRNS(d->png, d->info, &alpha, &alpha_count, NULL))
        for (int i = 0; i < alpha_count && i < 256; ++i) raw->palette[i][3] = alpha[i];
}

/* Reads the transparent colour of a picture without a palette.  Pillow compares the low byte of each number with the
 * pixels of 8 bits, whatever the depth of the file, and treats 1 bit alone differently. */
static void read_key(decoder *d, leati_raw *raw, int depth) {
    png_color_16p color = NULL;
    if (!png_get_tRNS(d->png, d->info, NULL, NULL, &color) || !color) return;
    raw->has_key = true;
    if (raw->layout == LEATI_RAW_RGB) {
        raw->key[0] = (unsigned char)color->red;
        raw->key[1] = (unsigned char)color->green;
        raw->key[2] = (unsigned char)color->blue;
    } else {
        memset(raw->key, depth == 1 ? (color->gray ? 255 : 0) : (unsigned char)color->gray, 3);
    }
}

static leati_raw_layout layout_of(int type) {
    return type == PNG_COLOR_TYPE_PALETTE      ? LEATI_RAW_PALETTE
           : type == PNG_COLOR_TYPE_GRAY       ? LEATI_RAW_GRAY
           : type == PNG_COLOR_TYPE_GRAY_ALPHA ? LEATI_RAW_GRAY_ALPHA
           : type == PNG_COLOR_TYPE_RGB        ? LEATI_RAW_RGB
                                               : LEATI_RAW_RGBA;
}

/* Scales gray of 1, 2 or 4 bits to 8 bits. */
static void spread_gray(leati_picture *picture, int depth) {
    const int64_t count = picture->width * picture->height;
    const int factor = 255 / ((1 << depth) - 1);
    for (int64_t i = 0; i < count; ++i) picture->pixels[i] = (unsigned char)(picture->pixels[i] * factor);
}

/* Reduces gray of 16 bits to 8 bits as Pillow does: numbers above 255 become 255. */
static void clip_gray(leati_picture *picture, const unsigned char *wide) {
    const int64_t count = picture->width * picture->height;
    for (int64_t i = 0; i < count; ++i) picture->pixels[i] = wide[2 * i] ? 255 : wide[2 * i + 1];
}

/* Reads all lines. */
static leat_status read_lines(decoder *d, leati_raw *raw, bool wide, leat_error *err) {
    const size_t height = (size_t)raw->picture.height;
    const size_t line = (size_t)raw->picture.width * (size_t)raw->picture.channels * (wide ? 2 : 1);
    d->rows = leati_calloc(height, sizeof *d->rows);
    if (wide) d->wide = leati_calloc(line, height);
    if (!d->rows || (wide && !d->wide)) return leati_fail_memory(err, line * height, "the lines of a PNG");
    for (size_t y = 0; y < height; ++y) d->rows[y] = (wide ? d->wide : raw->picture.pixels) + y * line;
    png_read_image(d->png, d->rows);
    if (wide) clip_gray(&raw->picture, d->wide);
    return LEAT_OK;
}

static leat_status decode(decoder *d, leati_raw *raw, const leati_encoded *in, leat_error *err) {
    png_read_info(d->png, d->info);
    const int depth = png_get_bit_depth(d->png, d->info), type = png_get_color_type(d->png, d->info);
    const leati_raw_layout layout = layout_of(type);
    const bool wide = depth == 16 && layout == LEATI_RAW_GRAY;
    LEATI_TRY(leati_raw_create(raw, in, png_get_image_width(d->png, d->info),
                               png_get_image_height(d->png, d->info), layout, err));
    if (layout == LEATI_RAW_PALETTE) read_palette(d, raw);
    if (layout == LEATI_RAW_GRAY || layout == LEATI_RAW_RGB) read_key(d, raw, depth);
    png_set_packing(d->png);
    if (depth == 16 && !wide) png_set_strip_16(d->png);
    (void)png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
    LEATI_TRY(read_lines(d, raw, wide, err));
    if (layout == LEATI_RAW_GRAY && depth < 8) spread_gray(&raw->picture, depth);
    return LEAT_OK;
}

leat_status leati_decode_png(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    decoder d = {.at = in->data, .left = in->bytes};
    decoder *volatile state = &d; /* memory that setjmp leaves alone */
    volatile leat_status status = LEAT_ENOMEM;
    d.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &d, fail_decoding, ignore_warning, NULL, allocate,
                                     release);
    if (!d.png) return leati_fail_memory(err, 0, "a PNG decoder");
    d.info = png_create_info_struct(d.png);
    if (!d.info) {
        png_destroy_read_struct(&d.png, NULL, NULL);
        return leati_fail_memory(err, 0, "a PNG decoder");
    }
    if (setjmp(png_jmpbuf(d.png)) == 0) {
        png_set_read_fn(d.png, &d, read_data);
        png_set_user_limits(d.png, INT32_MAX, INT32_MAX);
        status = decode(&d, raw, in, err);
    } else {
        status = leati_fail(err, LEAT_EFORMAT, "%s", state->message);
    }
    leati_free(state->rows);
    leati_free(state->wide);
    png_destroy_read_struct(&state->png, &state->info, NULL);
    return status;
}
