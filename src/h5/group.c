/* SPDX-License-Identifier: Apache-2.0 */
/* Finds objects by their paths: symbol tables (section III.A.1, B, C, D), link messages and dense links.  Links that
 * are not hard links are refused before anything is opened.  Room: h5. */
#include <string.h>

#include "base/memory.h"
#include "h5/reader.h"

static const char soft_link[] = "the path has a soft or external link, which is not supported";

/* A name on a path, and the object that it was found to name. */
typedef struct search {
    const char *name;
    size_t length;
    uint64_t address; /* LEATI_H5_UNDEFINED: not found yet */
} search;

/* ---- Symbol tables ---- */

/* The names of a symbol table. */
typedef struct local_heap {
    uint64_t data, bytes;
} local_heap;

static bool read_local_heap(leati_h5_reader *r, uint64_t address, local_heap *out) {
    unsigned char header[32];
    size_t bytes = 8 + 2 * (size_t)r->image->length_bytes + (size_t)r->image->offset_bytes;
    if (!leati_h5_load(r, address, bytes, header)) return false;
    if (memcmp(header, "HEAP", 5) != 0)
        return leati_h5_damaged(r, address, "expected a local heap, found other data");
    leati_h5_cursor c = leati_h5_cursor_make(header + 8, bytes - 8);
    out->bytes = leati_h5_take_length(r, &c);
    leati_h5_take_length(r, &c);
    out->data = leati_h5_take_address(r, &c);
    return true;
}

/* Compares a name of the heap with the name that is searched for, as strcmp(searched, found) does. */
static bool compare(leati_h5_reader *r, const local_heap *heap, uint64_t offset, const search *s,
                    int *order) {
    unsigned char found[LEATI_H5_MAX_NAME + 1];
    if (offset >= heap->bytes)
        return leati_h5_damaged(r, heap->data, "a name lies outside of its local heap");
    uint64_t present = heap->bytes - offset;
    if (present > s->length + 1) present = s->length + 1;
    if (!leati_h5_work(r, 16) || !leati_h5_load(r, heap->data + offset, present, found)) return false;
    for (size_t i = 0; i < present; ++i) {
        unsigned char wanted = i < s->length ? (unsigned char)s->name[i] : 0;
        *order = (int)wanted - (int)found[i];
        if (*order != 0 || wanted == 0) return true;
    }
    return leati_h5_damaged(r, heap->data, "a name is longer than its local heap");
}

/* Returns an unsigned integer of the file's address or length width. */
static uint64_t number_at(const unsigned char *p, int bytes) {
    leati_h5_cursor c = leati_h5_cursor_make(p, (size_t)bytes);
    return leati_h5_take(&c, bytes);
}

/* Searches a leaf, whose entries are sorted by their names (section III.B). */
static bool search_leaf(leati_h5_reader *r, const local_heap *heap, const unsigned char *entries,
                        size_t count, search *s) {
    int width = r->image->offset_bytes;
    size_t entry_bytes = 2 * (size_t)width + 24, low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const unsigned char *entry = entries + middle * entry_bytes;
        int order = 0;
        if (!compare(r, heap, number_at(entry, width), s, &order)) return false;
        if (order == 0) {
            leati_h5_cursor c = leati_h5_cursor_make(entry + width, (size_t)width + 4);
            s->address = leati_h5_take_address(r, &c);
            return leati_h5_take(&c, 4) != 2 || leati_h5_refused(r, soft_link);
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return true;
}

static bool read_leaf(leati_h5_reader *r, const local_heap *heap, uint64_t address, search *s) {
    unsigned char header[8];
    if (!leati_h5_load(r, address, sizeof header, header)) return false;
    if (memcmp(header, "SNOD\1", 5) != 0)
        return leati_h5_damaged(r, address, "expected a symbol table node, found other data");
    size_t count = header[6] | (size_t)header[7] << 8;
    uint64_t bytes = count * (2 * (uint64_t)r->image->offset_bytes + 24);
    unsigned char *entries = leati_h5_load_new(r, address + 8, bytes);
    bool done = entries && leati_h5_work(r, 16 + bytes / 64) && search_leaf(r, heap, entries, count, s);
    leati_free(entries);
    return done;
}

/* Finds the child that can contain the name: child i has the names after key i up to and including key i + 1.  *child
 * is LEATI_H5_UNDEFINED if no child can. */
static bool choose_child(leati_h5_reader *r, const local_heap *heap, const unsigned char *keys, size_t count,
                         const search *s, uint64_t *child) {
    int key = r->image->length_bytes, width = r->image->offset_bytes;
    size_t pair = (size_t)key + (size_t)width, low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = 0;
        if (!compare(r, heap, number_at(keys + (middle + 1) * pair, key), s, &order)) return false;
        if (order <= 0)
            high = middle;
        else
            low = middle + 1;
    }
    *child = LEATI_H5_UNDEFINED;
    if (low == count) return true;
    leati_h5_cursor c = leati_h5_cursor_make(keys + low * pair + key, (size_t)width);
    *child = leati_h5_take_address(r, &c);
    return true;
}

/* Reads a node of the B-tree (section III.A.1) and replaces *address by the child's; *level is the level that the
 * node must have, -1 for any. */
static bool descend(leati_h5_reader *r, const local_heap *heap, uint64_t *address, int *level,
                    const search *s) {
    unsigned char header[24];
    size_t prefix = 8 + 2 * (size_t)r->image->offset_bytes;
    if (!leati_h5_load(r, *address, prefix, header)) return false;
    if (memcmp(header, "TREE", 4) != 0 || header[4] != 0)
        return leati_h5_damaged(r, *address, "expected a B-tree node of a group, found other data");
    if (*level >= 0 && header[5] != *level)
        return leati_h5_damaged(r, *address, "a B-tree node of a group is on a wrong level");
    size_t count = header[6] | (size_t)header[7] << 8;
    uint64_t pair = (uint64_t)r->image->offset_bytes + (uint64_t)r->image->length_bytes;
    uint64_t bytes = count * pair + (uint64_t)r->image->length_bytes;
    *level = header[5] - 1;
    unsigned char *keys = leati_h5_load_new(r, *address + prefix, bytes);
    bool done = keys && leati_h5_work(r, 16 + bytes / 64) && choose_child(r, heap, keys, count, s, address);
    leati_free(keys);
    return done;
}

static bool search_symbol_table(leati_h5_reader *r, const leati_h5_message *message, search *s) {
    leati_h5_cursor c = leati_h5_cursor_make(message->data, message->bytes);
    uint64_t node = leati_h5_take_address(r, &c), heap_address = leati_h5_take_address(r, &c);
    local_heap heap;
    int level = -1;
    if (c.cut_off) return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a symbol table message is cut off");
    if (!read_local_heap(r, heap_address, &heap)) return false;
    do {
        if (!descend(r, &heap, &node, &level, s)) return false;
        if (node == LEATI_H5_UNDEFINED) return true;
    } while (level >= 0);
    return read_leaf(r, &heap, node, s);
}

/* ---- Link messages, section IV.A.2.g ---- */

static bool match_link(leati_h5_reader *r, const unsigned char *data, size_t bytes, void *user, bool *stop) {
    search *s = user;
    leati_h5_cursor c = leati_h5_cursor_make(data, bytes);
    unsigned version = (unsigned)leati_h5_take(&c, 1), flags = (unsigned)leati_h5_take(&c, 1);
    unsigned type = flags & 8 ? (unsigned)leati_h5_take(&c, 1) : 0;
    if (version != 1) return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a link has an unknown version");
    if (flags & 4) leati_h5_skip(&c, 8);
    if (flags & 16) leati_h5_skip(&c, 1);
    uint64_t length = leati_h5_take(&c, 1 << (flags & 3));
    const unsigned char *name = leati_h5_skip(&c, (size_t)length);
    if (!name) return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a link is cut off");
    if (length != s->length || memcmp(name, s->name, s->length) != 0) return true;
    if (type != 0) return leati_h5_refused(r, soft_link);
    s->address = leati_h5_take_address(r, &c);
    *stop = true;
    return !c.cut_off || leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a link is cut off");
}

static bool search_links(leati_h5_reader *r, const leati_h5_header *header, search *s) {
    bool stop = false;
    for (size_t i = 0; i < header->count && !stop; ++i) {
        const leati_h5_message *m = &header->messages[i];
        if (m->type != LEATI_H5_LINK) continue;
        if (!leati_h5_message_usable(r, m) || !match_link(r, m->data, m->bytes, s, &stop)) return false;
    }
    const leati_h5_message *info = leati_h5_message_of(header, LEATI_H5_LINK_INFO);
    if (stop || !info) return true;
    leati_h5_cursor c = leati_h5_cursor_make(info->data, info->bytes);
    leati_h5_skip(&c, 1);
    if (leati_h5_take(&c, 1) & 1) leati_h5_skip(&c, 8);
    uint64_t heap = leati_h5_take_address(r, &c), tree = leati_h5_take_address(r, &c);
    if (c.cut_off) return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a link info message is cut off");
    return heap == LEATI_H5_UNDEFINED || leati_h5_visit_dense(r, true, heap, tree, s->name, match_link, s);
}

/* ---- Paths ---- */

/* Replaces *address, a group's, by the address of its member. */
static bool find_member(leati_h5_reader *r, uint64_t *address, const char *name) {
    leati_h5_header header = {0};
    search s = {.name = name, .length = strlen(name), .address = LEATI_H5_UNDEFINED};
    bool done = leati_h5_read_header(r, *address, &header);
    if (done) {
        const leati_h5_message *table = leati_h5_message_of(&header, LEATI_H5_SYMBOL_TABLE);
        done = table ? leati_h5_message_usable(r, table) && search_symbol_table(r, table, &s)
                     : search_links(r, &header, &s);
    }
    leati_h5_header_fini(&header);
    *address = s.address;
    return done;
}

bool leati_h5_find_object(leati_h5_reader *r, const char *path, uint64_t *address) {
    char name[LEATI_H5_MAX_NAME];
    *address = r->image->root;
    while (*path) {
        size_t length = strcspn(path, "/");
        if (length >= sizeof name) return leati_h5_refused(r, "the name is too long");
        memcpy(name, path, length);
        name[length] = '\0';
        path += length;
        path += strspn(path, "/");
        if (length == 0) continue;
        if (!find_member(r, address, name)) return false;
        if (*address == LEATI_H5_UNDEFINED) return true;
    }
    return true;
}
