/* SPDX-License-Identifier: Apache-2.0 */
/* Decompresses with zlib, using leat's allocator and leat's errors.  Room: zip. */
#include "zip/inflate.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static voidpf allocate(voidpf unused, uInt count, uInt size) {
    (void)unused;
    return leati_calloc(count, size);
}

static void release(voidpf unused, voidpf memory) {
    (void)unused;
    leati_free(memory);
}

leat_status leati_inflate_begin(leati_inflater *out, leati_deflate_format format, const void *src,
                                size_t bytes, const char *label, leat_error *err) {
    *out = (leati_inflater){.next = src, .left = bytes, .format = format, .label = label};
    out->stream.zalloc = allocate;
    out->stream.zfree = release;
    static const int window_bits[] = {[LEATI_DEFLATE_RAW] = -MAX_WBITS,
                                      [LEATI_DEFLATE_ZLIB] = MAX_WBITS,
                                      [LEATI_DEFLATE_GZIP] = MAX_WBITS + 16};
    int code = inflateInit2(&out->stream, window_bits[format]);
    if (code == Z_MEM_ERROR) return leati_fail_memory(err, sizeof(leati_inflater), "decompression");
    if (code != Z_OK)
        return leati_fail(err, LEAT_EINTERNAL, "zlib %s does not start: code %d", zlibVersion(), code);
    return LEAT_OK;
}

/* Gives zlib the next piece of the input if it has used up the last one: zlib's counter has 32 bits. */
static void supply_input(leati_inflater *inflater) {
    if (inflater->stream.avail_in > 0 || inflater->left == 0) return;
    size_t piece = inflater->left < (1u << 30) ? inflater->left : 1u << 30;
    inflater->stream.next_in = (unsigned char *)(uintptr_t)inflater->next;
    inflater->stream.avail_in = (uInt)piece;
    inflater->next += piece;
    inflater->left -= piece;
}

/* Handles the end of a gzip member: continues with the next member, if there is one. */
static void end_member(leati_inflater *inflater) {
    supply_input(inflater);
    inflater->ended = inflater->format != LEATI_DEFLATE_GZIP || inflater->stream.avail_in == 0 ||
                      inflater->stream.next_in[0] != 0x1f || inflateReset(&inflater->stream) != Z_OK;
}

static leat_status damaged(const leati_inflater *inflater, int code, leat_error *err) {
    if (code == Z_MEM_ERROR) return leati_fail_memory(err, 0, "decompression");
    if (code == Z_BUF_ERROR)
        return leati_fail(err, LEAT_EFORMAT, "'%s': the compressed data is cut off", inflater->label);
    return leati_fail(err, LEAT_EFORMAT, "'%s': the compressed data is damaged: %s", inflater->label,
                      inflater->stream.msg ? inflater->stream.msg : "no valid deflate stream");
}

leat_status leati_inflate_read(leati_inflater *inflater, void *dst, size_t bytes, leat_error *err) {
    unsigned char *next = dst;
    size_t left = bytes;
    while (left > 0) {
        if (inflater->ended)
            return leati_fail(err, LEAT_EFORMAT, "'%s': the decompressed data ends %zu bytes too early",
                              inflater->label, left);
        supply_input(inflater);
        size_t piece = left < (1u << 30) ? left : 1u << 30;
        inflater->stream.next_out = next;
        inflater->stream.avail_out = (uInt)piece;
        int code = inflate(&inflater->stream, Z_NO_FLUSH);
        size_t produced = piece - inflater->stream.avail_out;
        next += produced;
        left -= produced;
        if (code == Z_STREAM_END)
            end_member(inflater);
        else if (code != Z_OK)
            return damaged(inflater, code, err);
    }
    return LEAT_OK;
}

leat_status leati_inflate_some(leati_inflater *inflater, void *dst, size_t bytes, size_t *produced,
                               bool *ended, leat_error *err) {
    size_t piece = bytes < (1u << 30) ? bytes : 1u << 30;
    *produced = 0;
    if (!inflater->ended) {
        supply_input(inflater);
        inflater->stream.next_out = dst;
        inflater->stream.avail_out = (uInt)piece;
        int code = inflate(&inflater->stream, Z_NO_FLUSH);
        *produced = piece - inflater->stream.avail_out;
        if (code == Z_STREAM_END)
            end_member(inflater);
        else if (code != Z_OK)
            return damaged(inflater, code, err);
    }
    *ended = inflater->ended;
    return LEAT_OK;
}

leat_status leati_inflate_finish(leati_inflater *inflater, leat_error *err) {
    while (!inflater->ended) {
        unsigned char extra;
        supply_input(inflater);
        inflater->stream.next_out = &extra;
        inflater->stream.avail_out = 1;
        int code = inflate(&inflater->stream, Z_NO_FLUSH);
        if (inflater->stream.avail_out == 0)
            return leati_fail(err, LEAT_EFORMAT, "'%s': the decompressed data is longer than its header says",
                              inflater->label);
        if (code == Z_STREAM_END)
            end_member(inflater);
        else if (code != Z_OK)
            return damaged(inflater, code, err);
    }
    return LEAT_OK;
}

void leati_inflate_end(leati_inflater *inflater) {
    (void)inflateEnd(&inflater->stream);
    *inflater = (leati_inflater){0};
}

bool leati_inflate_plausible(uint64_t packed, uint64_t bytes) {
    return bytes / 1032 <= packed;
}

bool leati_is_gzip(const void *data, size_t bytes) {
    return bytes >= 2 && memcmp(data, "\x1f\x8b", 2) == 0;
}
