/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes the format of a file and calls its decoder.  Room: image. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/picture.h"
#include "image/raw.h"

/* ---- Pictures ---- */

/* Allocates the pixels, zeroed or with any values, and the slack, which is zeroed. */
static leat_status allocate(leati_picture *out, const leati_picture *size, bool zeroed, leat_error *err) {
    size_t bytes = 0;
    *out = *size;
    if (leati_mul_size((size_t)size->width, (size_t)size->height, &bytes) &&
        leati_mul_size(bytes, (size_t)size->channels, &bytes) && bytes < SIZE_MAX - LEATI_PICTURE_SLACK)
        out->pixels = zeroed ? leati_calloc(bytes + LEATI_PICTURE_SLACK, 1)
                             : leati_realloc(NULL, bytes + LEATI_PICTURE_SLACK, 1);
    if (out->pixels) {
        memset(out->pixels + bytes, 0, LEATI_PICTURE_SLACK);
        return LEAT_OK;
    }
    *out = (leati_picture){0};
    return leati_fail_memory(err, bytes, "a picture");
}

leat_status leati_picture_create(leati_picture *out, int64_t width, int64_t height, int channels,
                                 leat_error *err) {
    return allocate(out, &(leati_picture){width, height, channels, NULL}, true, err);
}

leat_status leati_picture_allocate(leati_picture *out, int64_t width, int64_t height, int channels,
                                   leat_error *err) {
    return allocate(out, &(leati_picture){width, height, channels, NULL}, false, err);
}

void leati_picture_fini(leati_picture *picture) {
    leati_free(picture->pixels);
    *picture = (leati_picture){0};
}

static leat_status check_size(const leati_encoded *in, int64_t width, int64_t height, leat_error *err) {
    const int64_t most = in->options->max_pixels > 0 ? in->options->max_pixels : LEATI_PICTURE_MAX_PIXELS;
    if (width < 1 || height < 1)
        return leati_fail(err, LEAT_EFORMAT, "the header gives the size %lld x %lld, expected at least 1 x 1",
                          (long long)width, (long long)height);
    if (width > most / height)
        return leati_fail(err, LEAT_ESHAPE,
                          "the picture has %lld x %lld pixels, more than the limit of %lld pixels",
                          (long long)width, (long long)height, (long long)most);
    return LEAT_OK;
}

static const int layout_channels[] = {1, 2, 3, 4, 4, 1};

leat_status leati_raw_create(leati_raw *raw, const leati_encoded *in, int64_t width, int64_t height,
                             leati_raw_layout layout, leat_error *err) {
    LEATI_TRY(check_size(in, width, height, err));
    raw->layout = layout;
    return leati_picture_create(&raw->picture, width, height, layout_channels[layout], err);
}

leat_status leati_raw_allocate(leati_raw *raw, const leati_encoded *in, int64_t width, int64_t height,
                               leati_raw_layout layout, leat_error *err) {
    LEATI_TRY(check_size(in, width, height, err));
    raw->layout = layout;
    return leati_picture_allocate(&raw->picture, width, height, layout_channels[layout], err);
}

void leati_raw_black_palette(leati_raw *raw) {
    memset(raw->palette, 0, sizeof raw->palette);
    for (int i = 0; i < 256; ++i) raw->palette[i][3] = 255;
}

void leati_raw_unpack(unsigned char *dst, const unsigned char *src, int64_t count, int bits) {
    const int mask = (1 << bits) - 1;
    int shift = 8;
    for (int64_t i = 0; i < count; ++i) {
        shift -= bits;
        dst[i] = (unsigned char)(*src >> shift & mask);
        if (shift > 0) continue;
        shift = 8;
        ++src;
    }
}

/* ---- Formats ---- */

static bool is_webp(const unsigned char *data, size_t bytes) {
    return bytes >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0;
}

static bool is_ppm(const unsigned char *data, size_t bytes) {
    return bytes >= 3 && data[0] == 'P' && data[1] >= '1' && data[1] <= '6' && data[2] != 0 &&
           strchr(" \t\n\v\f\r#", data[2]);
}

static const struct format {
    const char *name, *magic;
    size_t magic_bytes;
    bool (*recognize)(const unsigned char *data, size_t bytes); /* instead of `magic` */
    leati_decoder *decode;
} formats[] = {
    {"JPEG", "\xff\xd8\xff", 3, NULL, leati_decode_jpeg},
    {"PNG", "\x89PNG\r\n\x1a\n", 8, NULL, leati_decode_png},
    {"WebP", NULL, 0, is_webp, leati_decode_webp},
    {"GIF", "GIF87a", 6, NULL, leati_decode_gif},
    {"GIF", "GIF89a", 6, NULL, leati_decode_gif},
    {"TIFF", "II*\0", 4, NULL, leati_decode_tiff},
    {"TIFF", "MM\0*", 4, NULL, leati_decode_tiff},
    {"TIFF", "II+\0", 4, NULL, leati_decode_tiff}, /* BigTIFF */
    {"TIFF", "MM\0+", 4, NULL, leati_decode_tiff},
    {"BMP", "BM", 2, NULL, leati_decode_bmp},
    {"PPM", NULL, 0, is_ppm, leati_decode_ppm},
};

static const struct format *find_format(const unsigned char *data, size_t bytes) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; ++i) {
        const struct format *f = &formats[i];
        if (f->recognize ? f->recognize(data, bytes)
                         : bytes >= f->magic_bytes && memcmp(data, f->magic, f->magic_bytes) == 0)
            return f;
    }
    return NULL;
}

const char *leati_picture_format(const void *data, size_t bytes) {
    const struct format *format = find_format(data, bytes);
    return format ? format->name : NULL;
}

static leat_status no_picture(const unsigned char *data, size_t bytes, leat_error *err) {
    if (bytes == 0) return leati_fail(err, LEAT_EFORMAT, "no picture: the file is empty");
    return leati_fail(err, LEAT_EFORMAT,
                      "no picture: expected JPEG, PNG, WebP, GIF, TIFF, BMP or PPM, but the file begins with "
                      "%02x %02x %02x %02x",
                      data[0], bytes > 1 ? data[1] : 0, bytes > 2 ? data[2] : 0, bytes > 3 ? data[3] : 0);
}

leat_status leati_picture_decode(leati_picture *out, const void *data, size_t bytes,
                                 const leati_picture_options *options, leat_error *err) {
    const leati_encoded in = {data, bytes, options};
    const struct format *format = find_format(data, bytes);
    leati_raw raw = {0};
    *out = (leati_picture){0};
    if (!format) return no_picture(data, bytes, err);
    leat_status status = format->decode(&raw, &in, err);
    if (status == LEAT_OK) status = leati_raw_convert(out, &raw, options->color, err);
    leati_picture_fini(&raw.picture);
    return leati_prefix(status, err, "%s", format->name);
}
