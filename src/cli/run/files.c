/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and replaces whole files.  Room: cli. */
#include "cli/run/files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/file.h"

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

leat_status cli_replace_text(const char *path, char *text, leat_error *err) {
    size_t length = strlen(text);
    text[length] = '\n';
    leat_status status = leat_file_replace(path, text, length + 1, err);
    text[length] = '\0';
    return status;
}
