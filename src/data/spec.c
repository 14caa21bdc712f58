/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a SPEC at its separators, then decodes the parts, so that an escaped separator does not separate.
 * Room: data. */
#include "data/spec.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static int hex(char c) {
    const char *digits = "0123456789abcdef",
               *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

leat_status leati_spec_decode(char *text, leat_error *err) {
    char *to = text;
    for (const char *from = text; *from; ++from, ++to) {
        *to = *from;
        if (*from != '%') continue;
        int high = hex(from[1]), low = high < 0 ? -1 : hex(from[2]);
        if (low < 0 || high + low == 0)
            return leati_fail(err, LEAT_EINVAL,
                              "expected two hexadecimal digits after %% (write %%25 for %%), received '%.3s'",
                              from);
        *to = (char)(high << 4 | low);
        from += 2;
    }
    *to = '\0';
    return LEAT_OK;
}

/* Cuts off and returns the word at *at, which ends at the separator, and moves *at behind the separator; *at
 * becomes NULL at the end of the text. */
static char *split(char **at, char separator) {
    char *word = *at, *end = strchr(word, separator);
    *at = end ? end + 1 : NULL;
    if (end) *end = '\0';
    return word;
}

static leat_status parse_paths(leati_spec *spec, char *text, leat_error *err) {
    while (text) {
        char *path = split(&text, ',');
        if (spec->path_count == LEATI_SPEC_MAX_PATHS)
            return leati_fail(err, LEAT_EINVAL, "expected at most %d paths, received more",
                              LEATI_SPEC_MAX_PATHS);
        if (*path == '\0')
            return leati_fail(err, LEAT_EINVAL, "path %d is empty (a comma in a path is written %%2C)",
                              spec->path_count + 1);
        LEATI_TRY(leati_spec_decode(path, err));
        spec->paths[spec->path_count++] = path;
    }
    return LEAT_OK;
}

static leat_status parse_options(leati_spec *spec, char *text, leat_error *err) {
    while (text) {
        char *key = split(&text, '&'), *value = strchr(key, '=');
        if (!value || value == key)
            return leati_fail(err, LEAT_EINVAL, "expected KEY=VALUE after ? or &, received '%s'", key);
        if (spec->option_count == LEATI_SPEC_MAX_OPTIONS)
            return leati_fail(err, LEAT_EINVAL, "expected at most %d options, received more",
                              LEATI_SPEC_MAX_OPTIONS);
        *value++ = '\0';
        LEATI_TRY(leati_spec_decode(key, err));
        for (int i = 0; i < spec->option_count; ++i)
            if (strcmp(spec->keys[i], key) == 0)
                return leati_fail(err, LEAT_EINVAL, "the option '%s' is given twice", key);
        spec->keys[spec->option_count] = key;
        spec->values[spec->option_count++] = value;
    }
    return LEAT_OK;
}

char *leati_spec_value(const leati_spec *spec, const char *key) {
    for (int i = 0; i < spec->option_count; ++i)
        if (strcmp(spec->keys[i], key) == 0) return spec->values[i];
    return NULL;
}

int leati_spec_kind_length(const char *text) {
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return text[length] == ':' && length < 32 ? (int)length : 0;
}

const char *leati_spec_query(const char *text) {
    const char *mark = strchr(text, '?');
    return mark ? mark + 1 : "";
}

/* Returns the kind that a file with this name probably has. */
static const char *kind_of_name(const char *path) {
    static const char *const endings[][2] = {{".npy", "npy"},    {".npz", "npz"},
                                             {".csv", "csv"},    {".tsv", "csv"},
                                             {".csv.gz", "csv"}, {".csv.zst", "csv"},
                                             {".h5", "h5"},      {".hdf5", "h5"},
                                             {".tar", "tar"},    {".tfrecord", "tfrecord"},
                                             {".zip", "images"}, {".so", "plugin"}};
    const size_t length = strcspn(path, "?,");
    for (size_t i = 0; i < sizeof endings / sizeof *endings; ++i) {
        const size_t bytes = strlen(endings[i][0]);
        if (length > bytes && memcmp(path + length - bytes, endings[i][0], bytes) == 0) return endings[i][1];
    }
    return NULL;
}

static leat_status no_kind(const char *text, leat_error *err) {
    const char *kind = kind_of_name(text);
    if (kind) return leati_fail(err, LEAT_EINVAL, "expected KIND:PATH, such as %s:%s", kind, text);
    return leati_fail(err, LEAT_EINVAL, "expected KIND:PATH, such as npy:x.npy,y.npy, or images:FOLDER");
}

leat_status leati_spec_parse(leati_spec *out, const char *text, leat_error *err) {
    *out = (leati_spec){0};
    int kind = leati_spec_kind_length(text);
    if (kind == 0) return no_kind(text, err);
    out->text = leati_strdup(text);
    if (!out->text) return leati_fail_memory(err, strlen(text), "a SPEC");
    out->text[kind] = '\0';
    out->kind = out->text;
    char *rest = out->text + kind + 1, *options = strchr(rest, '?');
    bool plugin = strcmp(out->kind, "plugin") == 0; /* the plugin parses its options itself */
    if (options) *options++ = '\0';
    leat_status status = parse_paths(out, rest, err);
    if (status == LEAT_OK && !plugin) status = parse_options(out, options, err);
    if (status != LEAT_OK) leati_spec_fini(out);
    return status;
}

void leati_spec_fini(leati_spec *spec) {
    leati_free(spec->text);
    *spec = (leati_spec){0};
}
