/* SPDX-License-Identifier: Apache-2.0 */
/* B-trees of version 2 (section III.A.2), which index the objects of fractal heaps.  Room: h5. */
#include "h5/tree2.h"

#include <string.h>

#include "base/memory.h"

enum { most_levels = 16, prefix_bytes = 6, overhead_bytes = 10 };

/* The widths of the fields of one level's child pointers, in bytes. */
typedef struct level {
    uint64_t records; /* the most records of a node */
    uint64_t total;   /* the most records of a node and its descendants */
    int total_bytes;  /* the width of the total in a pointer to such a node; 0 for leaves */
} level;

typedef struct tree {
    size_t node_bytes, record_bytes;
    int depth, count_bytes;
    level levels[most_levels + 1];
    unsigned type;
    leati_h5_tree_record visit;
    void *user;
    bool stop;
} tree;

/* Returns the bytes that hold numbers up to `limit`. */
static int width_of(uint64_t limit) {
    int bits = 0;
    while (limit >> 1 >> bits) ++bits;
    return bits / 8 + 1;
}

static bool compute_levels(leati_h5_reader *r, tree *t, uint64_t at) {
    t->levels[0].records = t->levels[0].total = (t->node_bytes - overhead_bytes) / t->record_bytes;
    t->count_bytes = width_of(t->levels[0].records);
    for (int i = 1; i <= t->depth; ++i) {
        level *l = &t->levels[i], *child = &t->levels[i - 1];
        size_t pointer = (size_t)r->image->offset_bytes + (size_t)t->count_bytes + (size_t)child->total_bytes;
        if (t->node_bytes < overhead_bytes + pointer + t->record_bytes)
            return leati_h5_damaged(r, at, "a B-tree has nodes that are too small");
        l->records = (t->node_bytes - overhead_bytes - pointer) / (t->record_bytes + pointer);
        if (child->total > (UINT64_MAX >> 1) / (l->records + 1))
            return leati_h5_damaged(r, at, "a B-tree has too many levels");
        l->total = (l->records + 1) * child->total + l->records;
        l->total_bytes = width_of(l->total);
    }
    return true;
}

static bool visit_records(leati_h5_reader *r, tree *t, const unsigned char *records, uint64_t count) {
    for (uint64_t i = 0; i < count && !t->stop; ++i)
        if (!t->visit(r, records + i * t->record_bytes, t->user, &t->stop)) return false;
    return true;
}

static bool visit_node(leati_h5_reader *r, tree *t, uint64_t address, uint64_t count, int depth);

static bool visit_children(leati_h5_reader *r, tree *t, leati_h5_cursor *c, uint64_t count, int depth) {
    for (uint64_t i = 0; i <= count && !t->stop; ++i) {
        uint64_t child = leati_h5_take_address(r, c), records = leati_h5_take(c, t->count_bytes);
        leati_h5_skip(c, (size_t)t->levels[depth - 1].total_bytes);
        if (!visit_node(r, t, child, records, depth - 1)) return false;
    }
    return true;
}

/* Returns the bytes of a node that are in use, its checksum included. */
static uint64_t used_bytes(const leati_h5_reader *r, const tree *t, uint64_t count, int depth) {
    uint64_t pointer =
        depth == 0 ? 0
                   : (uint64_t)(r->image->offset_bytes + t->count_bytes + t->levels[depth - 1].total_bytes);
    return overhead_bytes + count * t->record_bytes + (depth == 0 ? 0 : (count + 1) * pointer);
}

static bool visit_node(leati_h5_reader *r, tree *t, uint64_t address, uint64_t count, int depth) {
    if (count > t->levels[depth].records)
        return leati_h5_damaged(r, address, "a B-tree node claims more records than it can hold");
    uint64_t bytes = used_bytes(r, t, count, depth);
    if (!leati_h5_work(r, 64 + bytes / 8)) return false;
    unsigned char *node = leati_h5_load_new(r, address, bytes);
    if (!node) return false;
    bool sound = memcmp(node, depth == 0 ? "BTLF" : "BTIN", 4) == 0 && node[5] == t->type &&
                 leati_h5_checksum_holds(node, (size_t)bytes);
    bool done = sound ? visit_records(r, t, node + prefix_bytes, count)
                      : leati_h5_damaged(r, address, "a B-tree node does not match its checksum");
    if (done && depth > 0 && !t->stop) {
        leati_h5_cursor c = leati_h5_cursor_make(node, (size_t)bytes);
        leati_h5_skip(&c, prefix_bytes + (size_t)count * t->record_bytes);
        done = visit_children(r, t, &c, count, depth);
    }
    leati_free(node);
    return done;
}

bool leati_h5_visit_tree(leati_h5_reader *r, uint64_t address, unsigned type, size_t record_bytes,
                         leati_h5_tree_record visit, void *user) {
    unsigned char header[64];
    size_t bytes = 22 + (size_t)(r->image->offset_bytes + r->image->length_bytes);
    tree t = {.type = type, .visit = visit, .user = user};
    if (!leati_h5_load(r, address, bytes, header)) return false;
    if (memcmp(header, "BTHD", 4) != 0 || header[5] != type || !leati_h5_checksum_holds(header, bytes))
        return leati_h5_damaged(r, address, "a B-tree does not match its checksum");
    leati_h5_cursor c = leati_h5_cursor_make(header, bytes);
    leati_h5_skip(&c, 6);
    t.node_bytes = (size_t)leati_h5_take(&c, 4);
    t.record_bytes = (size_t)leati_h5_take(&c, 2);
    t.depth = (int)leati_h5_take(&c, 2);
    leati_h5_skip(&c, 2);
    uint64_t root = leati_h5_take_address(r, &c), count = leati_h5_take(&c, 2);
    if (t.record_bytes != record_bytes || t.depth > most_levels ||
        t.node_bytes < overhead_bytes + record_bytes)
        return leati_h5_damaged(r, address, "a B-tree has an impossible form");
    if (!compute_levels(r, &t, address)) return false;
    return root == LEATI_H5_UNDEFINED || visit_node(r, &t, root, count, t.depth);
}
