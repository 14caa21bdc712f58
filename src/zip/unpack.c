/* SPDX-License-Identifier: Apache-2.0 */
/* Decompresses whole files of gzip and Zstandard with buffers that grow.  Room: zip. */
#include "zip/unpack.h"

#include <string.h>

#include <zstd.h>

#include "base/error.h"
#include "base/memory.h"
#include "zip/inflate.h"

enum { FIRST_BYTES = 64 << 10 };

/* The unpacked bytes so far. */
typedef struct output {
    unsigned char *data;
    size_t bytes, capacity;
} output;

/* Makes room for at least one more byte, and for the final zero byte behind it. */
static leat_status make_room(output *out, leat_error *err) {
    if (out->capacity - out->bytes > 1) return LEAT_OK;
    const size_t capacity = out->capacity ? 2 * out->capacity : FIRST_BYTES;
    unsigned char *data = capacity > out->capacity ? leati_realloc(out->data, capacity, 1) : NULL;
    if (!data) return leati_fail_memory(err, capacity, "an unpacked file");
    out->data = data;
    out->capacity = capacity;
    return LEAT_OK;
}

static bool is_zstd(const void *data, size_t bytes) {
    return bytes >= 4 && memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0;
}

bool leati_is_packed(const void *data, size_t bytes) {
    return leati_is_gzip(data, bytes) || is_zstd(data, bytes);
}

static leat_status unpack_gzip(output *out, const void *data, size_t bytes, const char *label,
                               leat_error *err) {
    leati_inflater stream;
    bool ended = false;
    LEATI_TRY(leati_inflate_begin(&stream, LEATI_DEFLATE_GZIP, data, bytes, label, err));
    leat_status status = LEAT_OK;
    while (status == LEAT_OK && !ended) {
        size_t produced = 0;
        status = make_room(out, err);
        if (status != LEAT_OK) break;
        status = leati_inflate_some(&stream, out->data + out->bytes, out->capacity - out->bytes - 1,
                                    &produced, &ended, err);
        out->bytes += produced;
    }
    leati_inflate_end(&stream);
    return status;
}

static leat_status unpack_zstd(output *out, const void *data, size_t bytes, const char *label,
                               leat_error *err) {
    ZSTD_DStream *stream = ZSTD_createDStream();
    if (!stream) return leati_fail_memory(err, 0, "decompression");
    ZSTD_inBuffer in = {data, bytes, 0};
    leat_status status = LEAT_OK;
    for (size_t left = 1; status == LEAT_OK && (in.pos < in.size || left > 0);) {
        status = make_room(out, err);
        if (status != LEAT_OK) break;
        ZSTD_outBuffer piece = {out->data + out->bytes, out->capacity - out->bytes - 1, 0};
        const size_t before = in.pos;
        left = ZSTD_decompressStream(stream, &piece, &in);
        out->bytes += piece.pos;
        if (ZSTD_isError(left))
            status = leati_fail(err, LEAT_EFORMAT, "'%s': the compressed data is damaged: %s", label,
                                ZSTD_getErrorName(left));
        else if (left > 0 && in.pos == before && piece.pos == 0)
            status = leati_fail(err, LEAT_EFORMAT, "'%s': the compressed data is cut off", label);
    }
    (void)ZSTD_freeDStream(stream);
    return status;
}

leat_status leati_unpack(unsigned char **out, size_t *out_bytes, const void *data, size_t bytes,
                         const char *label, leat_error *err) {
    output made = {0};
    *out = NULL;
    leat_status status = is_zstd(data, bytes) ? unpack_zstd(&made, data, bytes, label, err)
                                              : unpack_gzip(&made, data, bytes, label, err);
    if (status != LEAT_OK) {
        leati_free(made.data);
        return status;
    }
    made.data[made.bytes] = 0;
    *out = made.data;
    *out_bytes = made.bytes;
    return LEAT_OK;
}
