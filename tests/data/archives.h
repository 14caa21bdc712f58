/* SPDX-License-Identifier: Apache-2.0 */
/* Makes archives byte by byte, for the tests of sources that read them. */
#ifndef LEAT_TESTS_DATA_ARCHIVES_H
#define LEAT_TESTS_DATA_ARCHIVES_H

#include <stdbool.h>
#include <stdint.h>

#include "data/files.h"

/* An archive under construction; zeroed, with is_zip set, at first. */
typedef struct archive {
    bytes data;
    bytes directory; /* the central directory of a zip file */
    bool is_zip;
    bool deflates; /* the members of a zip file */
    int count;
} archive;

/* Adds a member; a name that ends in '/' is that of a folder. */
void archive_add(archive *a, const char *name, const void *content, size_t size);

/* Ends the archive and writes it to a file. */
void archive_write(archive *a, const char *path);

#endif
