/* SPDX-License-Identifier: Apache-2.0 */
/* External data: constants of an ONNX file that lie in a file beside it.  Room: formats. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/file.h"
#include "formats/onnx_import/file.h"

enum { MOST_FILES = 64, PATH_BYTES = 4096 };

typedef struct leati_import_external {
    struct leati_import_external *next;
    const char *location;
    leati_map map;
} leati_import_external;

/* Returns true if a path stays inside of the folder: relative, without "..". */
static bool is_inside(const char *location) {
    if (location[0] == '\0' || location[0] == '/') return false;
    for (const char *part = location;;) {
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.') return false;
        if (part[length] == '\0') return true;
        part += length + 1;
    }
}

static leat_status open_external(leati_import_file *file, const char *location, leati_import_external **out,
                                 leat_error *err) {
    char path[PATH_BYTES];
    int count = 0;
    for (*out = file->external; *out; *out = (*out)->next, ++count)
        if (strcmp((*out)->location, location) == 0) return LEAT_OK;
    if (!file->directory)
        return leati_fail(err, LEAT_ENOTSUP,
                          "the constants are in another file, '%.200s': load the model by its path",
                          location);
    if (!is_inside(location))
        return leati_fail(
            err, LEAT_EFORMAT,
            "external data: expected a path inside of the folder of the ONNX file, found '%.200s'", location);
    if (count >= MOST_FILES)
        return leati_fail(err, LEAT_EFORMAT, "expected at most %d files of external data", MOST_FILES);
    if (snprintf(path, sizeof path, "%s%s", file->directory, location) >= (int)sizeof path)
        return leati_fail(err, LEAT_EFORMAT, "external data: the path '%.200s' is too long", location);
    *out = leati_arena_get(file->arena, 1, sizeof **out);
    if (!*out) return leati_fail_memory(err, sizeof **out, "external data");
    (*out)->location = location;
    LEATI_TRY(leati_prefix(leati_map_open_guarded(&(*out)->map, path, err), err, "external data"));
    (*out)->next = file->external;
    file->external = *out;
    return LEAT_OK;
}

leat_status leati_import_external_find(leati_import_file *file, const char *location, uint64_t offset,
                                       uint64_t bytes, const unsigned char **out, leat_error *err) {
    leati_import_external *external;
    LEATI_TRY(open_external(file, location, &external, err));
    if (offset > external->map.size || bytes > external->map.size - offset)
        return leati_fail(err, LEAT_EFORMAT,
                          "external data '%.200s': expected %llu bytes at %llu, the file has %zu bytes",
                          location, (unsigned long long)bytes, (unsigned long long)offset,
                          external->map.size);
    *out = external->map.data + offset;
    return LEAT_OK;
}

void leati_import_external_fini(leati_import_file *file) {
    for (leati_import_external *at = file->external; at; at = at->next) leati_map_close(&at->map);
    file->external = NULL;
}
