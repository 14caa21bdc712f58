/* SPDX-License-Identifier: Apache-2.0 */
/* Expands ranges and patterns in paths.  Room: data. */
#include "data/archive/paths.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

enum { MAX_FILES = 1000000, MAX_DIGITS = 9 };

void leati_path_list_fini(leati_path_list *list) {
    for (int64_t i = 0; i < list->count; ++i) leati_free(list->paths[i]);
    leati_free(list->paths);
    *list = (leati_path_list){0};
}

/* Takes `path`; NULL: there was no memory for it. */
static leat_status add(leati_path_list *list, char *path, leat_error *err) {
    if (path && list->count == MAX_FILES) {
        leati_free(path);
        return leati_fail(err, LEAT_EINVAL, "expected at most %d files, received more", MAX_FILES);
    }
    if (path && list->count == list->capacity) {
        const int64_t capacity = list->capacity ? 2 * list->capacity : 16;
        char **paths = leati_realloc(list->paths, (size_t)capacity, sizeof *paths);
        if (!paths) {
            leati_free(path);
            path = NULL;
        } else {
            list->paths = paths;
            list->capacity = capacity;
        }
    }
    if (!path) return leati_fail_memory(err, 0, "the paths of files");
    list->paths[list->count++] = path;
    return LEAT_OK;
}

/* Reads the digits of a number, at most MAX_DIGITS; returns the text after them. */
static const char *read_number(const char *p, int64_t *out, int *digits) {
    *out = 0;
    for (*digits = 0; *p >= '0' && *p <= '9' && *digits < MAX_DIGITS; ++p, ++*digits)
        *out = 10 * *out + (*p - '0');
    return p;
}

/* A range {FIRST..LAST} of a path. */
typedef struct range {
    const char *begin, *end;
    int64_t first, last;
    int digits;
} range;

static bool find_range(range *out, const char *path) {
    for (const char *p = path; (p = strchr(p, '{')); ++p) {
        int digits = 0, last_digits = 0;
        const char *q = read_number(p + 1, &out->first, &digits);
        if (digits == 0 || strncmp(q, "..", 2) != 0) continue;
        q = read_number(q + 2, &out->last, &last_digits);
        if (last_digits == 0 || *q != '}' || out->last < out->first) continue;
        out->begin = p;
        out->end = q + 1;
        out->digits = digits;
        return true;
    }
    return false;
}

static leat_status add_matches(leati_path_list *list, const char *pattern, leat_error *err) {
    glob_t found;
    const int failed = glob(pattern, 0, NULL, &found);
    leat_status status = LEAT_OK;
    if (failed == GLOB_NOMATCH)
        return leati_fail(err, LEAT_ENOTFOUND, "no file has a name that fits '%s'", pattern);
    if (failed) return leati_fail(err, LEAT_EIO, "cannot search for files whose names fit '%s'", pattern);
    for (size_t i = 0; i < found.gl_pathc && status == LEAT_OK; ++i)
        status = add(list, leati_strdup(found.gl_pathv[i]), err);
    globfree(&found);
    return status;
}

static leat_status expand(leati_path_list *list, const char *path, leat_error *err) {
    range r;
    if (access(path, F_OK) == 0) return add(list, leati_strdup(path), err);
    if (!find_range(&r, path))
        return strchr(path, '*') ? add_matches(list, path, err) : add(list, leati_strdup(path), err);
    for (int64_t i = r.first; i <= r.last; ++i) {
        leati_text one = {0};
        leati_text_add(&one, "%.*s%0*lld%s", (int)(r.begin - path), path, r.digits, (long long)i, r.end);
        leat_status status =
            one.failed ? leati_fail_memory(err, 0, "the paths of files") : expand(list, one.data, err);
        leati_text_fini(&one);
        if (status != LEAT_OK) return status;
    }
    return LEAT_OK;
}

leat_status leati_path_list_expand(leati_path_list *out, const char *const *paths, int count,
                                   leat_error *err) {
    leat_status status = LEAT_OK;
    *out = (leati_path_list){0};
    for (int i = 0; i < count && status == LEAT_OK; ++i) status = expand(out, paths[i], err);
    if (status != LEAT_OK) leati_path_list_fini(out);
    return status;
}
