/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the headers of tar files.  Sources: POSIX.1-2008, pax, "ustar Interchange Format" and "pax Header
 * Block"; the manual
 * of GNU tar, "Basic Tar Format".  Room: data. */
#include "data/archive/tar.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/archive/window.h"

enum { BLOCK = 512, MAX_NAME = 32 << 10 };

/* The position in an archive, and what extra headers say about the next member. */
typedef struct scan {
    leati_window *file;
    uint64_t at;
    char *name; /* for leati_free; NULL: the header's own name */
    bool has_size;
    uint64_t size;
    bool is_sparse;
} scan;

static leat_status damaged(const scan *s, const char *text, leat_error *err) {
    return leati_fail(err, LEAT_EFORMAT, "'%s', offset %llu: %s", s->file->label, (unsigned long long)s->at,
                      text);
}

/* Reads a number of a header: octal digits, or 0x80 and a big-endian number. */
static bool read_number(uint64_t *out, const unsigned char *field, int bytes) {
    uint64_t value = 0;
    int i = 0;
    if (field[0] == 0x80) {
        for (i = 1; i < bytes; ++i) {
            if (value >> 55) return false;
            value = value << 8 | field[i];
        }
        *out = value;
        return value >> 62 == 0;
    }
    while (i < bytes && field[i] == ' ') ++i;
    for (; i < bytes && field[i] >= '0' && field[i] <= '7'; ++i)
        value = value << 3 | (uint64_t)(field[i] - '0');
    *out = value;
    return i == bytes || field[i] == ' ' || field[i] == '\0';
}

static bool checksum_holds(const unsigned char *header) {
    uint64_t expected = 0, sum = 8 * ' ';
    for (int i = 0; i < BLOCK; ++i) sum += i >= 148 && i < 156 ? 0 : header[i];
    return read_number(&expected, header + 148, 8) && sum == expected;
}

bool leati_is_tar(const void *data, size_t bytes) {
    return bytes >= BLOCK && checksum_holds(data);
}

static bool is_zero(const unsigned char *header) {
    for (int i = 0; i < BLOCK; ++i)
        if (header[i] != 0) return false;
    return true;
}

/* Sets the name of the next member to `bytes` bytes, up to a zero byte. */
static leat_status set_name(scan *s, const void *text, size_t bytes, leat_error *err) {
    const char *end = bytes > 0 ? memchr(text, 0, bytes) : NULL;
    if (end) bytes = (size_t)(end - (const char *)text);
    leati_free(s->name);
    s->name = leati_calloc(bytes + 1, 1);
    if (!s->name) return leati_fail_memory(err, bytes, "the name of a member");
    if (bytes > 0) memcpy(s->name, text, bytes);
    return LEAT_OK;
}

/* Reads the records "LENGTH KEY=VALUE\n" of a pax header. */
static leat_status read_pax(scan *s, const unsigned char *text, size_t bytes, leat_error *err) {
    for (size_t at = 0; at < bytes && text[at] != 0;) {
        size_t length = 0, p = at;
        for (; p < bytes && text[p] >= '0' && text[p] <= '9' && length <= bytes; ++p)
            length = 10 * length + (text[p] - '0');
        if (p == at || p == bytes || text[p] != ' ' || length < p - at + 3 || length > bytes - at)
            return damaged(s, "the pax header is damaged", err);
        const char *key = (const char *)text + p + 1;
        const size_t rest = length - (p - at) - 2; /* without the line break */
        const char *value = memchr(key, '=', rest);
        if (!value) return damaged(s, "the pax header is damaged", err);
        const size_t key_bytes = (size_t)(value++ - key), value_bytes = rest - key_bytes - 1;
        if (key_bytes == 4 && memcmp(key, "path", 4) == 0) LEATI_TRY(set_name(s, value, value_bytes, err));
        if (key_bytes > 10 && memcmp(key, "GNU.sparse", 10) == 0) s->is_sparse = true;
        if (key_bytes == 4 && memcmp(key, "size", 4) == 0) {
            s->size = 0;
            for (size_t i = 0; i < value_bytes; ++i) {
                if (value[i] < '0' || value[i] > '9' || s->size >> 58)
                    return damaged(s, "the size in a pax header is no number", err);
                s->size = 10 * s->size + (uint64_t)(value[i] - '0');
            }
            s->has_size = true;
        }
        at += length;
    }
    return LEAT_OK;
}

/* Reads the content of an extra header. */
static leat_status read_extra(scan *s, unsigned char type, uint64_t size, leat_error *err) {
    const unsigned char *text = NULL;
    if (size > MAX_NAME) return damaged(s, "a name or a pax header has more than 32 KiB", err);
    LEATI_TRY(leati_window_get(s->file, s->at + BLOCK, (size_t)size, &text, err));
    if (!text) return damaged(s, "the file ends inside of a header", err);
    return type == 'L' ? set_name(s, text, (size_t)size, err) : read_pax(s, text, (size_t)size, err);
}

/* Takes the name of the header, unless an extra header gave one. */
static leat_status take_name(scan *s, const unsigned char *header, leat_error *err) {
    char name[256 + 2];
    size_t prefix = 0;
    if (s->name) return LEAT_OK;
    if (memcmp(header + 257, "ustar\0", 6) == 0) { /* in GNU's header, other things are there */
        while (prefix < 155 && header[345 + prefix]) ++prefix;
        memcpy(name, header + 345, prefix);
        if (prefix > 0) name[prefix++] = '/';
    }
    memcpy(name + prefix, header, 100);
    return set_name(s, name, prefix + 100, err);
}

/* Handles the member whose header is at s->at, and moves there from. */
static leat_status visit_member(scan *s, const unsigned char *block, leati_tar_visit visit, void *user,
                                leat_error *err) {
    unsigned char header[BLOCK];
    uint64_t size = 0;
    memcpy(header, block, BLOCK); /* the window moves */
    const unsigned char type = header[156];
    if (!checksum_holds(header))
        return damaged(s,
                       s->at == 0 ? "this is no tar file (compressed files must be unpacked)"
                                  : "the checksum of a header is wrong",
                       err);
    if (!read_number(&size, header + 124, 12)) return damaged(s, "the size of a member is no number", err);
    if (type == 'L' || type == 'x') {
        LEATI_TRY(read_extra(s, type, size, err));
        s->at += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
        return LEAT_OK;
    }
    if (s->has_size) size = s->size;
    if (type == 'S' || s->is_sparse)
        return leati_fail(err, LEAT_ENOTSUP, "'%s', offset %llu: sparse members are not supported",
                          s->file->label, (unsigned long long)s->at);
    const bool is_link = type == '1' || type == '2', is_folder = type == '5';
    const bool is_known = is_link || is_folder || type == '0' || type == '\0' || type == '7';
    if (type >= '1' && type <= '6') size = 0; /* links, devices and folders have no content */
    const uint64_t begin = s->at + BLOCK;
    LEATI_TRY(take_name(s, header, err));
    if (begin > s->file->size || size > s->file->size - begin)
        return leati_fail(err, LEAT_EFORMAT, "'%s', offset %llu: the file ends inside of '%.200s'",
                          s->file->label, (unsigned long long)s->at, s->name);
    const leati_tar_member member = {s->name,
                                     is_link     ? LEATI_TAR_LINK
                                     : is_folder ? LEATI_TAR_FOLDER
                                                 : LEATI_TAR_FILE,
                                     begin, size};
    if (is_known) LEATI_TRY(visit(user, &member, err));
    s->at = begin + (size + BLOCK - 1) / BLOCK * BLOCK;
    leati_free(s->name);
    s->name = NULL;
    s->has_size = s->is_sparse = false;
    return LEAT_OK;
}

static leat_status scan_window(leati_window *file, leati_tar_visit visit, void *user, leat_error *err) {
    scan s = {.file = file};
    leat_status status = LEAT_OK;
    bool ended = false;
    while (status == LEAT_OK && !ended) {
        const unsigned char *header = NULL;
        status = leati_window_get(file, s.at, BLOCK, &header, err);
        if (status != LEAT_OK) break;
        if (!header)
            status = damaged(&s, "the file is cut off: expected a header or the end of the archive", err);
        else if (!(ended = is_zero(header)))
            status = visit_member(&s, header, visit, user, err);
    }
    leati_free(s.name);
    return status;
}

leat_status leati_tar_scan(const char *path, leati_tar_visit visit, void *user, leat_error *err) {
    leati_window file;
    LEATI_TRY(leati_window_open(&file, path, err));
    leat_status status = scan_window(&file, visit, user, err);
    leati_window_close(&file);
    return status;
}

leat_status leati_tar_scan_bytes(const void *data, size_t bytes, const char *label, leati_tar_visit visit,
                                 void *user, leat_error *err) {
    leati_window file = leati_window_of(data, bytes, label);
    return scan_window(&file, visit, user, err);
}
