/* SPDX-License-Identifier: Apache-2.0 */
/* Reads attributes that hold strings, in all forms that h5py has written, and finds objects.  Room: h5. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "h5/private.h"

/* Limits far above what any model has: a hostile file is refused. */
enum { most_strings = 1 << 20, most_bytes = 1 << 28 };

static char *copy_text(const unsigned char *text, size_t most) {
    size_t length = 0;
    while (length < most && text[length]) ++length;
    char *copy = leati_calloc(length + 1, 1);
    if (copy) memcpy(copy, text, length);
    return copy;
}

/* Copies the elements of an attribute to zeroed pointers. */
static bool copy_elements(leati_h5_reader *r, const leati_h5_found *a, char **items) {
    for (size_t i = 0; i < (size_t)a->space.count; ++i) {
        const unsigned char *text = a->data + i * a->type.bytes;
        size_t bytes = a->type.bytes;
        if (a->type.class == LEATI_H5_VARIABLE_TEXT && !leati_h5_variable_text(r, text, &text, &bytes))
            return false;
        items[i] = copy_text(text, bytes);
        if (!items[i]) return leati_h5_no_memory(r);
    }
    return true;
}

static bool append(leati_h5_reader *r, const leati_h5_found *a, leati_h5_strings *out) {
    size_t bytes = 0, count = (size_t)a->space.count;
    if (count == 0) return true; /* numpy writes an empty list as float64 of shape (0,) */
    if (a->type.class != LEATI_H5_TEXT && a->type.class != LEATI_H5_VARIABLE_TEXT)
        return leati_h5_refused(r, "expected strings");
    if (a->space.count > most_strings || !leati_mul_size(count, a->type.bytes, &bytes) ||
        bytes > most_bytes || bytes > a->bytes)
        return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "an attribute is shorter than its dimensions need");
    char **items = leati_realloc(out->items, out->count + count, sizeof *items);
    if (!items) return leati_h5_no_memory(r);
    out->items = items;
    memset(items + out->count, 0, count * sizeof *items);
    out->count += count; /* if reading fails, leati_h5_strings_fini frees the strings read so far */
    return copy_elements(r, a, items + out->count - count);
}

/* Reads the header of an object; *exists is false if there is no such object. */
static bool open_object(leati_h5_reader *r, const char *object, leati_h5_header *header, bool *exists) {
    uint64_t address;
    *exists = false;
    if (!leati_h5_find_object(r, object, &address)) return false;
    if (address == LEATI_H5_UNDEFINED) return true;
    *exists = true;
    return leati_h5_read_header(r, address, header);
}

/* An object whose attributes are read. */
typedef struct owner {
    leati_h5 *file;
    const char *name;
    leati_h5_reader reader;
    leati_h5_header header;
} owner;

static leat_status open_owner(owner *out, leati_h5 *file, const char *object, leat_error *err) {
    bool exists = false;
    *out = (owner){.file = file, .name = object};
    leati_h5_reader_init(&out->reader, &file->image);
    if (open_object(&out->reader, object, &out->header, &exists) && exists) return LEAT_OK;
    leati_h5_header_fini(&out->header);
    LEATI_TRY(leati_h5_report(file, &out->reader, err, object));
    return leati_fail(err, LEAT_ENOTFOUND, "'%s': '%s': the object does not exist", file->path, object);
}

static leat_status close_owner(owner *o, leat_error *err) {
    leati_h5_header_fini(&o->header);
    return leati_h5_report(o->file, &o->reader, err, o->name);
}

/* Appends the strings of an attribute; *found is false if there is no such attribute. */
static bool read_one(owner *o, const char *name, leati_h5_strings *out, bool *found) {
    leati_h5_found a;
    bool done = leati_h5_find_attribute(&o->reader, &o->header, name, &a, found);
    if (done && *found) done = append(&o->reader, &a, out);
    leati_free(a.owned);
    return done;
}

/* Reads the attribute, or the attributes name0, name1, ... into which it was split. */
static bool read_all(owner *o, const char *name, leati_h5_strings *out, bool *found) {
    char part[128];
    if (!read_one(o, name, out, found)) return false;
    bool more = !*found;
    for (int i = 0; more; ++i) {
        snprintf(part, sizeof part, "%s%d", name, i);
        if (!read_one(o, part, out, &more)) return false;
        *found |= more;
    }
    return true;
}

leat_status leati_h5_read_strings(leati_h5 *file, const char *object, const char *name, leati_h5_strings *out,
                                  leat_error *err) {
    owner o;
    bool found = false;
    *out = (leati_h5_strings){0};
    LEATI_TRY(open_owner(&o, file, object, err));
    read_all(&o, name, out, &found);
    leat_status status = close_owner(&o, err);
    if (status == LEAT_OK && !found)
        status = leati_fail(err, LEAT_ENOTFOUND, "'%s': '%s': the attribute is missing", file->path, object);
    if (status != LEAT_OK) leati_h5_strings_fini(out);
    return leati_prefix(status, err, "attribute '%s'", name);
}

void leati_h5_strings_fini(leati_h5_strings *strings) {
    for (size_t i = 0; i < strings->count; ++i) leati_free(strings->items[i]);
    leati_free(strings->items);
    *strings = (leati_h5_strings){0};
}

leat_status leati_h5_read_string(leati_h5 *file, const char *object, const char *name, char **out,
                                 leat_error *err) {
    owner o;
    bool found = false;
    leati_h5_strings strings = {0};
    *out = NULL;
    LEATI_TRY(open_owner(&o, file, object, err));
    read_one(&o, name, &strings, &found);
    leat_status status = close_owner(&o, err);
    if (status == LEAT_OK && !found)
        status = leati_fail(err, LEAT_ENOTFOUND, "'%s': '%s': the attribute is missing", file->path, object);
    else if (status == LEAT_OK && strings.count != 1)
        status = leati_fail(err, LEAT_EFORMAT, "'%s': '%s': expected one string in an attribute, found %zu",
                            file->path, object, strings.count);
    if (status == LEAT_OK) {
        *out = strings.items[0];
        strings.items[0] = NULL;
    }
    leati_h5_strings_fini(&strings);
    return leati_prefix(status, err, "attribute '%s'", name);
}

leat_status leati_h5_exists(leati_h5 *file, const char *object, bool *exists, leat_error *err) {
    leati_h5_reader r;
    leati_h5_header header = {0};
    leati_h5_reader_init(&r, &file->image);
    open_object(&r, object, &header, exists);
    leati_h5_header_fini(&header);
    return leati_h5_report(file, &r, err, object);
}

bool leati_h5_has_object(leati_h5 *file, const char *object) {
    bool exists = false;
    return leati_h5_exists(file, object, &exists, NULL) != LEAT_OK || exists;
}

bool leati_h5_has_attribute(leati_h5 *file, const char *object, const char *name) {
    owner o;
    leati_h5_found a;
    bool found = false;
    leat_status status = open_owner(&o, file, object, NULL);
    if (status != LEAT_OK) return status != LEAT_ENOTFOUND;
    leati_h5_find_attribute(&o.reader, &o.header, name, &a, &found);
    leati_free(a.owned);
    return close_owner(&o, NULL) != LEAT_OK || found;
}
