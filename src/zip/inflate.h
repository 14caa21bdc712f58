/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression into memory whose size is known beforehand: gzip files and the deflated members of zip files. */
#ifndef LEATI_ZIP_INFLATE_H
#define LEATI_ZIP_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

#include "leat/error.h"

typedef enum leati_deflate_format {
    LEATI_DEFLATE_RAW,
    LEATI_DEFLATE_GZIP /* one or several gzip members in a row */
} leati_deflate_format;

typedef struct leati_inflater {
    z_stream stream;
    const unsigned char *next; /* input that the stream has not been shown */
    size_t left;
    leati_deflate_format format;
    bool ended;
    const char *label; /* the file, for messages; borrowed */
} leati_inflater;

/* Starts over `bytes` of compressed input, which must stay until the end.  After a failure nothing is owed. */
leat_status leati_inflate_begin(leati_inflater *out, leati_deflate_format format, const void *src,
                                size_t bytes, const char *label, leat_error *err);

/* Writes exactly `bytes`.  Errors: LEAT_EFORMAT the stream is damaged, or ends before. */
leat_status leati_inflate_read(leati_inflater *inflater, void *dst, size_t bytes, leat_error *err);

/* Checks that the stream ends here and that its checksum holds.  Errors: LEAT_EFORMAT. */
leat_status leati_inflate_finish(leati_inflater *inflater, leat_error *err);

void leati_inflate_end(leati_inflater *inflater);

/* Whether `packed` bytes of deflate can hold `bytes`: its best ratio is 1032 to 1.  False means a false claim, for
 * which no memory should be asked. */
bool leati_inflate_plausible(uint64_t packed, uint64_t bytes);

bool leati_is_gzip(const void *data, size_t bytes);

#endif
