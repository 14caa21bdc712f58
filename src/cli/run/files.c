/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole files.  Room: cli. */
#include "cli/run/files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

char *cli_read_file(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    size_t used = 0, capacity = 1 << 16;
    char *data = file ? malloc(capacity) : NULL;
    while (data) {
        used += fread(data + used, 1, capacity - used - 1, file);
        if (used < capacity - 1) break;
        char *larger = realloc(data, 2 * capacity);
        if (!larger) free(data);
        data = larger;
        capacity *= 2;
    }
    bool failed = file && ferror(file);
    int number = errno;
    if (file) (void)fclose(file);
    if (failed) {
        free(data);
        data = NULL;
    }
    errno = number;
    if (data) data[used] = '\0';
    *bytes = used;
    return data;
}
