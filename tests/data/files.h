/* SPDX-License-Identifier: Apache-2.0 */
/* Makes files byte by byte, for the tests of the readers. */
#ifndef LEAT_TESTS_DATA_FILES_H
#define LEAT_TESTS_DATA_FILES_H

#include <stddef.h>
#include <stdint.h>

/* Bytes under construction; a fixed size is enough for tests. */
typedef struct bytes {
    unsigned char data[1 << 16];
    size_t size;
} bytes;

void bytes_add(bytes *out, const void *data, size_t size);
void bytes_add_le(bytes *out, uint64_t value, int size);
void bytes_add_be(bytes *out, uint64_t value, int size);
void bytes_add_text(bytes *out, const char *text);

/* Adds a .npy header of the given version whose dictionary is `dict`. */
void bytes_add_npy_header(bytes *out, int version, const char *dict);

/* Adds a zip file with one deflated member. */
void bytes_add_deflated_zip(bytes *out, const char *name, const void *data, size_t size);

/* Adds deflated bytes, with the header and the trailer of gzip if `gzip` is true. */
void bytes_add_deflated(bytes *out, const void *data, size_t size, int gzip);

void bytes_write(const bytes *in, const char *path);

/* Enter and remove a new folder for the test program. */
int files_enter(void **state);
int files_leave(void **state);
int files_count(void); /* number of files in the folder of the test program */

#endif
