/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a file that is in memory, so that reading many small headers takes few system calls. */
#ifndef LEATI_DATA_ARCHIVE_WINDOW_H
#define LEATI_DATA_ARCHIVE_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

enum { LEATI_WINDOW_BYTES = 32 << 10 };

typedef struct leati_window {
    const char *label;
    int fd; /* -1: all bytes are at `memory` */
    const unsigned char *memory;
    uint64_t size;         /* of the file */
    uint64_t begin;        /* offset of the first byte of `buffer` */
    size_t count;          /* bytes in `buffer` */
    unsigned char *buffer; /* LEATI_WINDOW_BYTES */
} leati_window;

/* Opens a file, for leati_window_close.  Errors: LEAT_ENOTFOUND, LEAT_EIO; LEAT_EINVAL not a regular
 * file; LEAT_ENOMEM. */
leat_status leati_window_open(leati_window *out, const char *path, leat_error *err);
leati_window leati_window_of(const void *data, size_t bytes, const char *label);
void leati_window_close(leati_window *window);

/* Gives `bytes` bytes at an offset, at most LEATI_WINDOW_BYTES, until the next call.  *out is NULL if the
 * file has fewer.
 * Errors: LEAT_EIO. */
leat_status leati_window_get(leati_window *window, uint64_t offset, size_t bytes, const unsigned char **out,
                             leat_error *err);

#endif
