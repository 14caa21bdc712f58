/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes BMP: 1, 4 and 8 bits with a palette, 16, 24 and 32 bits, compressed by run lengths or not.  Room: image. */
#include <string.h>

#include "base/error.h"
#include "image/raw.h"

enum { FILE_HEADER = 14, CORE_HEADER = 12, MASKS_END = FILE_HEADER + 40 + 12 };

/* The values of the header's field for compression. */
enum { UNCOMPRESSED = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3 };

typedef struct header {
    int64_t width, height;
    bool top_down;
    unsigned bits, compression, colors;
    size_t size, color_bytes, pixels; /* of the header, of a colour of the palette; offset of the pixels */
    uint32_t masks[4];                /* red, green, blue, alpha */
} header;

static unsigned u16_at(const unsigned char *p) {
    return p[0] | (unsigned)p[1] << 8;
}

static uint32_t u32_at(const unsigned char *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static leat_status truncated(leat_error *err) {
    return leati_fail(err, LEAT_EFORMAT, "the file is truncated");
}

static void read_core(header *h, const unsigned char *p) {
    h->width = u16_at(p + 4);
    h->height = u16_at(p + 6);
    h->bits = u16_at(p + 10);
    h->color_bytes = 3;
}

static leat_status read_info(header *h, const leati_encoded *in, leat_error *err) {
    const unsigned char *p = in->data + FILE_HEADER;
    const uint32_t height = u32_at(p + 8);
    h->top_down = p[11] == 0xff;
    h->width = u32_at(p + 4);
    h->height = h->top_down ? (int64_t)(UINT32_MAX - height) + 1 : height;
    h->bits = u16_at(p + 14);
    h->compression = u32_at(p + 16);
    h->colors = u32_at(p + 32);
    h->color_bytes = 4;
    if (h->compression != BITFIELDS) return LEAT_OK;
    if (in->bytes < MASKS_END) return truncated(err);
    for (int i = 0; i < (h->size >= 56 ? 4 : 3); ++i) h->masks[i] = u32_at(p + 40 + 4 * i);
    return LEAT_OK;
}

static leat_status read_header(header *h, const leati_encoded *in, leat_error *err) {
    if (in->bytes < FILE_HEADER + CORE_HEADER) return truncated(err);
    *h = (header){.size = u32_at(in->data + FILE_HEADER), .pixels = u32_at(in->data + 10)};
    if (h->size != CORE_HEADER && h->size != 40 && h->size != 52 && h->size != 56 && h->size != 64 &&
        h->size != 108 && h->size != 124)
        return leati_fail(err, LEAT_ENOTSUP, "the header has an unknown length of %zu bytes", h->size);
    if (in->bytes < FILE_HEADER + h->size) return truncated(err);
    if (h->size == CORE_HEADER)
        read_core(h, in->data + FILE_HEADER);
    else
        LEATI_TRY(read_info(h, in, err));
    if (h->colors == 0 && h->bits <= 8) h->colors = 1u << h->bits;
    return LEAT_OK;
}

static leat_status read_palette(leati_raw *raw, header *h, const leati_encoded *in, leat_error *err) {
    const size_t at = FILE_HEADER + h->size + (h->compression == BITFIELDS && h->size == 40 ? 12 : 0);
    if (h->colors > 65536)
        return leati_fail(err, LEAT_EFORMAT, "the palette has %u colours, expected at most 256", h->colors);
    if (in->bytes - at < h->colors * h->color_bytes) return truncated(err);
    if (h->pixels == at) h->pixels += h->colors * h->color_bytes; /* some writers forget the palette */
    leati_raw_black_palette(raw);
    for (unsigned i = 0; i < h->colors && i < 256; ++i)
        for (int k = 0; k < 3; ++k) raw->palette[i][k] = in->data[at + i * h->color_bytes + (size_t)(2 - k)];
    return LEAT_OK;
}

/* ---- Run lengths ---- */

typedef struct runs {
    const unsigned char *at, *end;
    int64_t x, y; /* the next pixel; y counts from the file's first line */
} runs;

static void put(leati_picture *picture, runs *r, unsigned char index) {
    if (r->x < picture->width && r->y < picture->height)
        picture->pixels[(picture->height - 1 - r->y) * picture->width + r->x] = index;
    ++r->x;
}

/* Writes `count` literal pixels, whose bytes end at an even offset. */
static bool put_literals(leati_picture *picture, runs *r, int count, bool nibbles) {
    const int bytes = nibbles ? (count + 1) / 2 : count;
    if (r->end - r->at < bytes) return false;
    for (int i = 0; i < count; ++i)
        put(picture, r, nibbles ? (unsigned char)(i % 2 ? r->at[i / 2] & 15 : r->at[i / 2] >> 4) : r->at[i]);
    r->at += bytes;
    if (bytes % 2 && r->at < r->end) ++r->at;
    return true;
}

static leat_status read_runs(leati_raw *raw, const header *h, const leati_encoded *in, leat_error *err) {
    leati_picture *picture = &raw->picture;
    const bool nibbles = h->compression == RLE4;
    runs r = {in->data + h->pixels, in->data + in->bytes, 0, 0};
    while (r.y < picture->height) {
        if (r.end - r.at < 2) return truncated(err);
        const int count = *r.at++, value = *r.at++;
        if (count > 0) {
            for (int i = 0; i < count; ++i)
                put(picture, &r, (unsigned char)(!nibbles ? value : i % 2 ? value & 15 : value >> 4));
        } else if (value == 0) { /* the line ends */
            r.x = 0;
            ++r.y;
        } else if (value == 1) { /* the picture ends */
            return LEAT_OK;
        } else if (value == 2) { /* a step to the right and up */
            if (r.end - r.at < 2) return truncated(err);
            r.x += *r.at++;
            r.y += *r.at++;
        } else if (!put_literals(picture, &r, value, nibbles)) {
            return truncated(err);
        }
    }
    return LEAT_OK;
}

/* ---- Lines ---- */

/* Returns the bits that the mask selects, scaled to 0 .. 255. */
static unsigned char channel_of(uint32_t pixel, uint32_t mask) {
    if (mask == 0) return 0;
    while (!(mask & 1)) {
        mask >>= 1;
        pixel >>= 1;
    }
    return (unsigned char)((uint64_t)(pixel & mask) * 255 / mask);
}

static void read_line(leati_raw *raw, const header *h, const unsigned char *from, unsigned char *to) {
    if (h->bits <= 8) {
        leati_raw_unpack(to, from, h->width, (int)h->bits);
        return;
    }
    const int channels = raw->picture.channels;
    for (int64_t x = 0; x < h->width; ++x, to += channels) {
        if (h->bits == 24) {
            for (int k = 0; k < 3; ++k) to[k] = from[3 * x + 2 - k];
            continue;
        }
        const uint32_t pixel = h->bits == 16 ? u16_at(from + 2 * x) : u32_at(from + 4 * x);
        for (int k = 0; k < channels; ++k) to[k] = channel_of(pixel, h->masks[k]);
    }
}

static leat_status read_lines(leati_raw *raw, const header *h, const leati_encoded *in, leat_error *err) {
    const uint64_t line = ((uint64_t)h->width * h->bits + 31) / 32 * 4;
    if ((in->bytes - h->pixels) / line < (uint64_t)h->height) return truncated(err);
    for (int64_t y = 0; y < h->height; ++y) {
        const int64_t row = h->top_down ? y : h->height - 1 - y;
        read_line(raw, h, in->data + h->pixels + (uint64_t)y * line,
                  raw->picture.pixels + row * h->width * raw->picture.channels);
    }
    return LEAT_OK;
}

/* Checks that the depth and the compression go together, and completes the masks of the channels. */
static leat_status check_form(header *h, leat_error *err) {
    static const uint32_t masks_16[4] = {0x7c00, 0x3e0, 0x1f, 0}, masks_32[4] = {0xff0000, 0xff00, 0xff, 0};
    const bool no_masks = !(h->masks[0] | h->masks[1] | h->masks[2]);
    const bool known = h->compression == UNCOMPRESSED ? h->bits == 1 || h->bits == 4 || h->bits == 8 ||
                                                            h->bits == 16 || h->bits == 24 || h->bits == 32
                       : h->compression == RLE8      ? h->bits == 8 && !h->top_down
                       : h->compression == RLE4      ? h->bits == 4 && !h->top_down
                       : h->compression == BITFIELDS ? h->bits == 16 || h->bits == 24 || h->bits == 32
                                                     : false;
    if (!known)
        return leati_fail(err, LEAT_ENOTSUP, "%u bits with compression %u cannot be read", h->bits,
                          h->compression);
    if (no_masks) memcpy(h->masks, h->bits == 16 ? masks_16 : masks_32, sizeof h->masks);
    if (no_masks && h->compression == BITFIELDS && h->bits == 32) h->masks[3] = 0xff000000;
    return LEAT_OK;
}

leat_status leati_decode_bmp(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    header h;
    LEATI_TRY(read_header(&h, in, err));
    LEATI_TRY(check_form(&h, err));
    LEATI_TRY(leati_raw_create(raw, in, h.width, h.height,
                               h.bits <= 8                  ? LEATI_RAW_PALETTE
                               : h.bits == 32 && h.masks[3] ? LEATI_RAW_RGBA
                                                            : LEATI_RAW_RGB,
                               err));
    if (h.bits <= 8) LEATI_TRY(read_palette(raw, &h, in, err));
    if (h.pixels == 0) h.pixels = FILE_HEADER + h.size;
    if (h.pixels > in->bytes) return truncated(err);
    return h.compression == RLE8 || h.compression == RLE4 ? read_runs(raw, &h, in, err)
                                                          : read_lines(raw, &h, in, err);
}
