/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes PBM, PGM and PPM, as text (P1, P2, P3) and binary (P4, P5, P6).  Room: image. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "image/raw.h"

typedef struct reader {
    const unsigned char *at, *end;
} reader;

static bool is_space(unsigned char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static leat_status truncated(leat_error *err) {
    return leati_fail(err, LEAT_EFORMAT, "the file is truncated");
}

static void skip_space(reader *in) {
    while (in->at < in->end && (is_space(*in->at) || *in->at == '#')) {
        if (*in->at++ != '#') continue;
        while (in->at < in->end && *in->at != '\n' && *in->at != '\r') ++in->at;
    }
}

/* Reads an integer from 0 to `most` after white space and comments. */
static leat_status read_number(reader *in, int64_t most, int64_t *out, leat_error *err) {
    int64_t value = 0;
    skip_space(in);
    if (in->at == in->end) return truncated(err);
    if (*in->at < '0' || *in->at > '9')
        return leati_fail(err, LEAT_EFORMAT, "expected a number, found the byte %02x", *in->at);
    for (; in->at < in->end && *in->at >= '0' && *in->at <= '9'; ++in->at) {
        value = 10 * value + (*in->at - '0');
        if (value > most)
            return leati_fail(err, LEAT_EFORMAT, "expected a number of at most %lld, found a larger one",
                              (long long)most);
    }
    *out = value;
    return LEAT_OK;
}

/* Reduces a sample to 8 bits.  Pillow has gray of more than 8 bits as an integer of 16 bits, which it then clips. */
static unsigned char reduce(int64_t value, int64_t most, bool gray) {
    const double range = gray && most > 255 ? 65535 : 255;
    const double scaled = rint((double)value / (double)most * range);
    return scaled > 255 ? 255 : (unsigned char)scaled;
}

static leat_status read_text_bits(leati_picture *picture, reader *in, leat_error *err) {
    for (int64_t i = 0; i < picture->width * picture->height; ++i) {
        skip_space(in);
        if (in->at == in->end) return truncated(err);
        if (*in->at != '0' && *in->at != '1')
            return leati_fail(err, LEAT_EFORMAT, "expected 0 or 1, found the byte %02x", *in->at);
        picture->pixels[i] = *in->at++ == '0' ? 255 : 0;
    }
    return LEAT_OK;
}

static leat_status read_bits(leati_picture *picture, reader *in, leat_error *err) {
    const int64_t line = (picture->width + 7) / 8;
    if ((in->end - in->at) / line < picture->height) return truncated(err);
    for (int64_t y = 0; y < picture->height; ++y, in->at += line) {
        unsigned char *to = picture->pixels + y * picture->width;
        leati_raw_unpack(to, in->at, picture->width, 1);
        for (int64_t x = 0; x < picture->width; ++x) to[x] = to[x] ? 0 : 255;
    }
    return LEAT_OK;
}

static leat_status read_text(leati_picture *picture, reader *in, int64_t most, leat_error *err) {
    const int64_t count = picture->width * picture->height * picture->channels;
    for (int64_t i = 0; i < count; ++i) {
        int64_t value = 0;
        LEATI_TRY(read_number(in, most, &value, err));
        picture->pixels[i] = reduce(value, most, picture->channels == 1);
    }
    return LEAT_OK;
}

static leat_status read_binary(leati_picture *picture, reader *in, int64_t most, leat_error *err) {
    const int64_t count = picture->width * picture->height * picture->channels;
    const int64_t bytes = most > 255 ? 2 : 1;
    if ((in->end - in->at) / bytes < count) return truncated(err);
    if (most == 255) {
        memcpy(picture->pixels, in->at, (size_t)count);
        return LEAT_OK;
    }
    for (int64_t i = 0; i < count; ++i) {
        const int64_t value = bytes == 1 ? in->at[i] : in->at[2 * i] << 8 | in->at[2 * i + 1];
        picture->pixels[i] = reduce(value, most, picture->channels == 1);
    }
    return LEAT_OK;
}

leat_status leati_decode_ppm(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    reader from = {in->data + 2, in->data + in->bytes};
    const char kind = (char)in->data[1];
    int64_t width = 0, height = 0, most = 1;
    LEATI_TRY(read_number(&from, INT32_MAX, &width, err));
    LEATI_TRY(read_number(&from, INT32_MAX, &height, err));
    if (kind != '1' && kind != '4') {
        LEATI_TRY(read_number(&from, 65535, &most, err));
        if (most < 1) return leati_fail(err, LEAT_EFORMAT, "the largest sample is 0, expected at least 1");
    }
    if (from.at < from.end) ++from.at; /* one white space before binary samples */
    LEATI_TRY(leati_raw_create(raw, in, width, height,
                               kind == '3' || kind == '6' ? LEATI_RAW_RGB : LEATI_RAW_GRAY, err));
    switch (kind) {
    case '1': return read_text_bits(&raw->picture, &from, err);
    case '4': return read_bits(&raw->picture, &from, err);
    case '2':
    case '3': return read_text(&raw->picture, &from, most, err);
    default: return read_binary(&raw->picture, &from, most, err);
    }
}
