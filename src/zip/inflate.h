/* SPDX-License-Identifier: Apache-2.0 */
/* Decompresses gzip files and the deflated members of zip files into memory, when the unpacked size is known
 * beforehand. */
#ifndef LEATI_ZIP_INFLATE_H
#define LEATI_ZIP_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

#include "leat/error.h"

typedef enum leati_deflate_format {
    LEATI_DEFLATE_RAW,  /* a deflate stream without a header, as in zip files */
    LEATI_DEFLATE_ZLIB, /* a stream with zlib's header and checksum, as in HDF5 files */
    LEATI_DEFLATE_GZIP  /* one or several gzip members in a row */
} leati_deflate_format;

typedef struct leati_inflater {
    z_stream stream;
    const unsigned char *next; /* input that zlib has not received yet */
    size_t left;               /* its length in bytes */
    leati_deflate_format format;
    bool ended;
    const char *label; /* name of the file in messages; borrowed */
} leati_inflater;

/* Starts to decompress `bytes` bytes at `src`, which must stay valid until leati_inflate_end.  After a failure
 * there is nothing to free. */
leat_status leati_inflate_begin(leati_inflater *out, leati_deflate_format format, const void *src,
                                size_t bytes, const char *label, leat_error *err);

/* Writes exactly `bytes` bytes to `dst`.  Errors: LEAT_EFORMAT the stream is damaged, or ends too early. */
leat_status leati_inflate_read(leati_inflater *inflater, void *dst, size_t bytes, leat_error *err);

/* Writes at most `bytes` bytes to `dst`; *produced is their number, and *ended says that the stream has ended.
 * Errors: LEAT_EFORMAT the stream is damaged, or ends too early. */
leat_status leati_inflate_some(leati_inflater *inflater, void *dst, size_t bytes, size_t *produced,
                               bool *ended, leat_error *err);

/* Checks that the stream ends here and that its checksum holds.  Errors: LEAT_EFORMAT. */
leat_status leati_inflate_finish(leati_inflater *inflater, leat_error *err);

void leati_inflate_end(leati_inflater *inflater);

/* Returns true if `packed` bytes of deflated data can unpack to `bytes` bytes: the best ratio is 1032 to 1.  If
 * false, the header that claims so is wrong, and no memory should be allocated for it. */
bool leati_inflate_plausible(uint64_t packed, uint64_t bytes);

bool leati_is_gzip(const void *data, size_t bytes);

#endif
