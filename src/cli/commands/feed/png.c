/* SPDX-License-Identifier: Apache-2.0 */
/* Packs pictures as PNG files: each line is the difference to the line above, deflated.  Room: cli. */
#include "cli/commands/feed/png.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { HEADER_BYTES = 8 + 25, CHUNK_BYTES = 12, FILTER_UP = 2, TYPE_GRAY = 0, TYPE_RGB = 2 };

static void put_u32(unsigned char *to, size_t value) {
    for (int i = 0; i < 4; ++i) to[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* Writes the length, the name and the checksum around the data of a chunk, which stands at to + 8.  Returns the bytes
 * of the chunk. */
static size_t put_chunk(unsigned char *to, const char *name, size_t bytes) {
    put_u32(to, bytes);
    memcpy(to + 4, name, 4);
    put_u32(to + 8 + bytes, crc32(0, to + 4, (uInt)bytes + 4));
    return bytes + CHUNK_BYTES;
}

/* Writes the lines, each with its filter before it. */
static void filter_lines(unsigned char *to, const unsigned char *pixels, int64_t width, int64_t height,
                         int64_t channels, int64_t kept) {
    for (int64_t y = 0; y < height; ++y) {
        const unsigned char *line = pixels + y * width * channels;
        *to++ = FILTER_UP;
        for (int64_t x = 0; x < width; ++x)
            for (int64_t c = 0; c < kept; ++c) {
                const int64_t at = x * channels + c;
                *to++ = (unsigned char)(line[at] - (y > 0 ? line[at - width * channels] : 0));
            }
    }
}

unsigned char *cli_png_write(const unsigned char *pixels, int64_t width, int64_t height, int64_t channels,
                             size_t *bytes) {
    const int64_t kept = channels == 1 ? 1 : 3;
    const size_t raw = (size_t)(height * (width * kept + 1));
    uLongf packed = compressBound((uLong)raw);
    unsigned char *lines = malloc(raw), *out = malloc(HEADER_BYTES + packed + (size_t)2 * CHUNK_BYTES),
                  *at = out;
    bool made = lines && out;
    if (made) {
        filter_lines(lines, pixels, width, height, channels, kept);
        memcpy(at, "\x89PNG\r\n\x1a\n", 8);
        at += 8;
        put_u32(at + 8, (size_t)width);
        put_u32(at + 12, (size_t)height);
        const unsigned char kind[5] = {8, kept == 1 ? TYPE_GRAY : TYPE_RGB, 0, 0, 0};
        memcpy(at + 16, kind, sizeof kind);
        at += put_chunk(at, "IHDR", 13);
        made = compress2(at + 8, &packed, lines, (uLong)raw, Z_BEST_COMPRESSION) == Z_OK;
    }
    if (made) {
        at += put_chunk(at, "IDAT", packed);
        at += put_chunk(at, "IEND", 0);
        *bytes = (size_t)(at - out);
    } else {
        free(out);
        out = NULL;
    }
    free(lines);
    return out;
}
