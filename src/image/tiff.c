/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes TIFF with libtiff: gray, RGB, CMYK and palettes, with or without alpha, 1 to 16 bits.  Room: image. */
#include <stdio.h>
#include <string.h>

#include <tiffio.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/raw.h"

/* The file in memory, and the form of its pixels. */
typedef struct source {
    const leati_encoded *in;
    toff_t at;
    uint16_t bits, samples, photometric, planar, format, extra_count;
    uint16_t extra[4];
    uint32_t width, height;
} source;

/* ---- The file in memory ---- */

static tmsize_t read_data(thandle_t handle, void *to, tmsize_t count) {
    source *s = handle;
    const toff_t size = s->in->bytes, left = s->at < size ? size - s->at : 0;
    const toff_t taken = (toff_t)count < left ? (toff_t)count : left;
    memcpy(to, s->in->data + (taken ? s->at : 0), taken);
    s->at += taken;
    return (tmsize_t)taken;
}

static tmsize_t write_data(thandle_t handle, void *from, tmsize_t count) {
    (void)handle;
    (void)from;
    (void)count;
    return 0;
}

static toff_t seek_data(thandle_t handle, toff_t offset, int whence) {
    source *s = handle;
    s->at = offset + (whence == SEEK_CUR ? s->at : whence == SEEK_END ? s->in->bytes : 0);
    return s->at;
}

static int close_data(thandle_t handle) {
    (void)handle;
    return 0;
}

static toff_t size_of_data(thandle_t handle) {
    return ((const source *)handle)->in->bytes;
}

static int keep_error(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments) {
    (void)tiff;
    (void)module;
    vsnprintf(user, 160, format, arguments);
    return 1;
}

static int ignore_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments) {
    (void)tiff;
    (void)user;
    (void)module;
    (void)format;
    (void)arguments;
    return 1;
}

/* ---- The form of the pixels ---- */

static void read_form(source *s, TIFF *tiff) {
    uint16_t count = 0, *extra = NULL;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &s->width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &s->height);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &s->bits);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &s->samples);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &s->planar);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &s->format);
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &s->photometric);
    if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &extra))
        for (; s->extra_count < count && s->extra_count < 4; ++s->extra_count)
            s->extra[s->extra_count] = extra[s->extra_count];
    if (s->photometric != PHOTOMETRIC_YCBCR) return;
    uint16_t compression = 0;
    TIFFGetField(tiff, TIFFTAG_COMPRESSION, &compression);
    if (compression == COMPRESSION_JPEG && TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB))
        s->photometric = PHOTOMETRIC_RGB;
}

/* Finds the layout of the decoded pixels; returns false if the form is not supported. */
static bool find_layout(const source *s, leati_raw_layout *layout) {
    const bool byte = s->bits == 8, wide = s->bits == 16;
    const bool alpha = s->extra_count == 1 && s->extra[0] == EXTRASAMPLE_UNASSALPHA;
    const bool plain = s->extra_count == 0, ignored = s->extra_count == 1 && s->extra[0] == 0;
    if (s->format != SAMPLEFORMAT_UINT) return false;
    switch (s->photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
        *layout = s->samples == 2 && alpha ? LEATI_RAW_GRAY_ALPHA : LEATI_RAW_GRAY;
        return s->samples == 1 ? s->bits == 1 || s->bits == 2 || s->bits == 4 || byte || wide
                               : s->samples == 2 && byte && (alpha || ignored) && s->photometric == 1;
    case PHOTOMETRIC_PALETTE:
        *layout = LEATI_RAW_PALETTE;
        return s->samples == 1 && (s->bits == 1 || s->bits == 2 || s->bits == 4 || byte);
    case PHOTOMETRIC_RGB:
        *layout = s->samples == 4 && !ignored ? LEATI_RAW_RGBA : LEATI_RAW_RGB;
        return (byte || wide) &&
               ((s->samples == 3 && plain) || (s->samples == 4 && (alpha || ignored || plain)));
    case PHOTOMETRIC_SEPARATED: *layout = LEATI_RAW_CMYK; return (byte || wide) && s->samples == 4 && plain;
    default: return false;
    }
}

static leat_status check_form(const source *s, leati_raw_layout *layout, leat_error *err) {
    if (find_layout(s, layout)) return LEAT_OK;
    return leati_fail(
        err, LEAT_ENOTSUP,
        "%u samples of %u bits with photometric interpretation %u cannot be read; expected gray, "
        "RGB, CMYK or a palette, of at most 16 bits",
        s->samples, s->bits, s->photometric);
}

static void read_palette(leati_raw *raw, const source *s, TIFF *tiff) {
    uint16_t *red = NULL, *green = NULL, *blue = NULL;
    leati_raw_black_palette(raw);
    if (!TIFFGetField(tiff, TIFFTAG_COLORMAP, &red, &green, &blue)) return;
    for (int i = 0; i < 1 << s->bits; ++i) {
        raw->palette[i][0] = (unsigned char)(red[i] >> 8);
        raw->palette[i][1] = (unsigned char)(green[i] >> 8);
        raw->palette[i][2] = (unsigned char)(blue[i] >> 8);
    }
}

/* ---- Pixels ---- */

/* Reduces a sample of 16 bits: gray is clipped, as Pillow does, and colours keep their high byte. */
static unsigned char reduce(const source *s, uint16_t value) {
    if (s->samples == 1) return value > 255 ? 255 : (unsigned char)value;
    return (unsigned char)(value >> 8);
}

/* Writes `count` pixels of one line.  `from` has all samples of each pixel, or with separate planes only sample
 * `plane`. */
static void write_line(leati_raw *raw, const source *s, const unsigned char *from, unsigned char *to,
                       int64_t count, int plane) {
    const int channels = raw->picture.channels, stride = plane < 0 ? s->samples : 1;
    const int first = plane < 0 ? 0 : plane, last = plane < 0 ? channels : plane + 1;
    if (first >= channels) return;
    if (s->bits < 8) {
        const int factor = raw->layout == LEATI_RAW_PALETTE ? 1 : 255 / ((1 << s->bits) - 1);
        leati_raw_unpack(to, from, count, s->bits);
        for (int64_t x = 0; x < count; ++x) to[x] = (unsigned char)(to[x] * factor);
    } else {
        for (int64_t x = 0; x < count; ++x)
            for (int k = first; k < last; ++k) {
                const int64_t at = x * stride + (plane < 0 ? k : 0);
                uint16_t value = from[at];
                if (s->bits == 16) memcpy(&value, from + 2 * at, 2);
                to[x * channels + k] = s->bits == 16 ? reduce(s, value) : (unsigned char)value;
            }
    }
    if (s->photometric == PHOTOMETRIC_MINISWHITE && s->bits <= 8)
        for (int64_t x = 0; x < count; ++x) to[x] = (unsigned char)(255 - to[x]);
}

/* A part of the picture: a strip or a tile. */
typedef struct part {
    int64_t x, y, width, height; /* inside the picture */
    int plane;                   /* -1: all samples */
} part;

static void write_part(leati_raw *raw, const source *s, const part *p, const unsigned char *from,
                       size_t line) {
    for (int64_t y = 0; y < p->height; ++y)
        write_line(raw, s, from + (size_t)y * line,
                   raw->picture.pixels + ((p->y + y) * raw->picture.width + p->x) * raw->picture.channels,
                   p->width, p->plane);
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static bool read_strips(leati_raw *raw, const source *s, TIFF *tiff, unsigned char *buffer, tmsize_t bytes) {
    uint32_t rows = 0;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows);
    if (rows == 0 || rows > s->height) rows = s->height;
    const uint32_t count = (s->height + rows - 1) / rows, planes = s->planar == 2 ? s->samples : 1;
    const tmsize_t line = TIFFScanlineSize(tiff);
    for (uint32_t i = 0; i < count * planes; ++i) {
        const part p = {.y = (int64_t)(i % count) * rows,
                        .width = s->width,
                        .height = least(rows, s->height - (int64_t)(i % count) * rows),
                        .plane = s->planar == 2 ? (int)(i / count) : -1};
        const tmsize_t wanted = least(bytes, line * p.height);
        if (TIFFReadEncodedStrip(tiff, i, buffer, wanted) != wanted) return false;
        write_part(raw, s, &p, buffer, (size_t)line);
    }
    return true;
}

static bool read_tiles(leati_raw *raw, const source *s, TIFF *tiff, unsigned char *buffer, tmsize_t bytes) {
    uint32_t width = 0, height = 0;
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height);
    if (width == 0 || height == 0) return false;
    const uint32_t planes = s->planar == 2 ? s->samples : 1;
    for (uint32_t k = 0; k < planes; ++k)
        for (int64_t y = 0; y < s->height; y += height)
            for (int64_t x = 0; x < s->width; x += width) {
                const part p = {x, y, least(width, s->width - x), least(height, s->height - y),
                                s->planar == 2 ? (int)k : -1};
                const uint32_t tile = TIFFComputeTile(tiff, (uint32_t)x, (uint32_t)y, 0, (uint16_t)k);
                if (TIFFReadEncodedTile(tiff, tile, buffer, bytes) != bytes) return false;
                write_part(raw, s, &p, buffer, (size_t)TIFFTileRowSize(tiff));
            }
    return true;
}

/* ---- Orientation: Pillow obeys that of TIFF ---- */

static leat_status turn(leati_raw *raw, TIFF *tiff, leat_error *err) {
    uint16_t orientation = ORIENTATION_TOPLEFT;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &orientation);
    if (orientation < 2 || orientation > 8) return LEAT_OK;
    const bool swap = orientation >= 5;
    const bool right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const leati_picture in = raw->picture;
    leati_picture out;
    LEATI_TRY(leati_picture_create(&out, swap ? in.height : in.width, swap ? in.width : in.height,
                                   in.channels, err));
    unsigned char *to = out.pixels;
    for (int64_t y = 0; y < out.height; ++y)
        for (int64_t x = 0; x < out.width; ++x, to += in.channels) {
            const int64_t across = swap ? y : x, down = swap ? x : y;
            const int64_t column = right ? in.width - 1 - across : across;
            const int64_t row = bottom ? in.height - 1 - down : down;
            memcpy(to, in.pixels + (row * in.width + column) * in.channels, (size_t)in.channels);
        }
    leati_picture_fini(&raw->picture);
    raw->picture = out;
    return LEAT_OK;
}

static leat_status decode(leati_raw *raw, source *s, TIFF *tiff, const char *message, leat_error *err) {
    leati_raw_layout layout = LEATI_RAW_GRAY;
    read_form(s, tiff);
    LEATI_TRY(check_form(s, &layout, err));
    LEATI_TRY(leati_raw_create(raw, s->in, s->width, s->height, layout, err));
    if (layout == LEATI_RAW_PALETTE) read_palette(raw, s, tiff);
    const bool tiled = TIFFIsTiled(tiff) != 0;
    const tmsize_t bytes = tiled ? TIFFTileSize(tiff) : TIFFStripSize(tiff);
    const tmsize_t most = ((tmsize_t)s->width + 65536) * ((tmsize_t)s->height + 65536) * 8;
    if (bytes <= 0 || (bytes > most) || bytes / 64 > 2 * LEATI_PICTURE_MAX_PIXELS)
        return leati_fail(err, LEAT_EFORMAT, "a strip or tile has %lld bytes", (long long)bytes);
    unsigned char *buffer = leati_calloc((size_t)bytes + LEATI_PICTURE_SLACK, 1);
    if (!buffer) return leati_fail_memory(err, (size_t)bytes, "a strip of a TIFF");
    const bool done =
        tiled ? read_tiles(raw, s, tiff, buffer, bytes) : read_strips(raw, s, tiff, buffer, bytes);
    leati_free(buffer);
    if (done) return turn(raw, tiff, err);
    return leati_fail(err, LEAT_EFORMAT, "%s", message[0] ? message : "the file is truncated");
}

leat_status leati_decode_tiff(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    source s = {.in = in, .format = SAMPLEFORMAT_UINT};
    char message[160] = "";
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return leati_fail_memory(err, 0, "a TIFF decoder");
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, message);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_warning, NULL);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)1 << 30);
    TIFF *tiff = TIFFClientOpenExt("picture", "rm", &s, read_data, write_data, seek_data, close_data,
                                   size_of_data, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    if (!tiff) return leati_fail(err, LEAT_EFORMAT, "%s", message[0] ? message : "the file is damaged");
    leat_status status = decode(raw, &s, tiff, message, err);
    TIFFClose(tiff);
    return status;
}
