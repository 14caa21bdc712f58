/* SPDX-License-Identifier: Apache-2.0 */
/* Reads idx files, plain or compressed by gzip.  Room: data. */
#include "data/idx.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "zip/inflate.h"

enum { magic_bytes = 4, header_max = magic_bytes + 4 * LEAT_MAX_RANK };

static bool find_dtype(leat_dtype *out, unsigned char type) {
    static const struct {
        unsigned char type;
        leat_dtype dtype;
    } types[] = {{0x08, LEAT_U8},  {0x09, LEAT_I8},  {0x0b, LEAT_I16},
                 {0x0c, LEAT_I32}, {0x0d, LEAT_F32}, {0x0e, LEAT_F64}};
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
        if (types[i].type != type) continue;
        *out = types[i].dtype;
        return true;
    }
    return false;
}

/* Reads the first four bytes: data type and rank. */
static leat_status parse_magic(leati_array *out, const unsigned char *p, const char *label, leat_error *err) {
    *out = (leati_array){0};
    if (p[0] != 0 || p[1] != 0 || !find_dtype(&out->dtype, p[2]))
        return leati_fail(err, LEAT_EFORMAT, "'%s' is not an idx file: it begins with %02x %02x %02x %02x",
                          label, p[0], p[1], p[2], p[3]);
    if (p[3] > LEAT_MAX_RANK)
        return leati_fail(err, LEAT_ENOTSUP, "'%s': expected at most %d dimensions, found %d", label,
                          LEAT_MAX_RANK, p[3]);
    out->rank = p[3];
    out->swapped = leati_little_endian() && leat_dtype_bytes(out->dtype) > 1;
    return LEAT_OK;
}

/* Reads the dimensions and computes the size of the data. */
static leat_status parse_shape(leati_array *out, const unsigned char *p, const char *label, leat_error *err) {
    size_t bytes = leat_dtype_bytes(out->dtype);
    for (int i = 0; i < out->rank; ++i, p += 4) {
        out->shape[i] = (int64_t)p[0] << 24 | (int64_t)p[1] << 16 | (int64_t)p[2] << 8 | p[3];
        if (!leati_mul_size(bytes, (size_t)out->shape[i], &bytes))
            return leati_fail(err, LEAT_EFORMAT, "'%s': the header's dimensions are too large", label);
    }
    out->bytes = bytes;
    return LEAT_OK;
}

static leat_status cut_off(const char *label, leat_error *err) {
    return leati_fail(err, LEAT_EFORMAT, "'%s': the file ends inside the idx header", label);
}

static leat_status parse_plain(leati_array *out, const unsigned char *p, size_t size, const char *label,
                               leat_error *err) {
    if (size < magic_bytes) return cut_off(label, err);
    LEATI_TRY(parse_magic(out, p, label, err));
    size_t header = magic_bytes + 4 * (size_t)out->rank;
    if (size < header) return cut_off(label, err);
    LEATI_TRY(parse_shape(out, p + magic_bytes, label, err));
    if (size - header != out->bytes)
        return leati_fail(err, LEAT_EFORMAT, "'%s': the idx header promises %zu bytes, but %zu follow", label,
                          out->bytes, size - header);
    out->data = p + header;
    return LEAT_OK;
}

static leat_status unpack(leati_array *out, void **unpacked, leati_inflater *stream, size_t packed,
                          const char *label, leat_error *err) {
    unsigned char header[header_max];
    LEATI_TRY(leati_inflate_read(stream, header, magic_bytes, err));
    LEATI_TRY(parse_magic(out, header, label, err));
    LEATI_TRY(leati_inflate_read(stream, header + magic_bytes, 4 * (size_t)out->rank, err));
    LEATI_TRY(parse_shape(out, header + magic_bytes, label, err));
    if (!leati_inflate_plausible(packed, out->bytes))
        return leati_fail(err, LEAT_EFORMAT,
                          "'%s': the idx header promises %zu bytes, more than %zu packed bytes can hold",
                          label, out->bytes, packed);
    *unpacked = leati_calloc_aligned(out->bytes);
    if (!*unpacked) return leati_fail_memory(err, out->bytes, "an unpacked idx file");
    out->data = *unpacked;
    LEATI_TRY(leati_inflate_read(stream, *unpacked, out->bytes, err));
    return leati_inflate_finish(stream, err);
}

leat_status leati_idx_parse(leati_array *out, void **unpacked, const void *data, size_t size,
                            const char *label, leat_error *err) {
    *unpacked = NULL;
    if (!leati_is_gzip(data, size)) return parse_plain(out, data, size, label, err);
    leati_inflater stream;
    LEATI_TRY(leati_inflate_begin(&stream, LEATI_DEFLATE_GZIP, data, size, label, err));
    leat_status status = unpack(out, unpacked, &stream, size, label, err);
    leati_inflate_end(&stream);
    if (status == LEAT_OK) return LEAT_OK;
    leati_free(*unpacked);
    *unpacked = NULL;
    return status;
}
