/* SPDX-License-Identifier: Apache-2.0 */
/* Dense storage: the links of groups and the attributes of objects that have many of them lie in a fractal heap
 * (section III.G), and a B-tree finds them by the checksum of their names.  Room: h5. */
#include <string.h>

#include "base/memory.h"
#include "h5/reader.h"
#include "h5/tree2.h"

enum { link_tree = 5, attribute_tree = 8, huge_tree = 1, most_id_bytes = 64 };

typedef struct heap {
    uint64_t address, huge, root;
    size_t id_bytes;
    unsigned flags;
    int offset_bytes, length_bytes; /* widths of the fields of an identifier, and of a block's offset */
    uint64_t width, first_block, largest_block;
    unsigned root_rows;
} heap;

static int log2_of(uint64_t x) {
    int bits = 0;
    while (x >> 1 >> bits) ++bits;
    return bits;
}

static bool power_of_2(uint64_t x) {
    return x > 0 && (x & (x - 1)) == 0;
}

static bool valid_heap(const heap *h) {
    return h->id_bytes > 0 && h->id_bytes <= most_id_bytes && power_of_2(h->width) &&
           power_of_2(h->first_block) && power_of_2(h->largest_block) && h->first_block <= h->largest_block &&
           h->offset_bytes >= 1 && h->offset_bytes <= 8 && h->length_bytes <= 8 &&
           h->largest_block <= (uint64_t)1 << 32 && h->root_rows <= 64;
}

static bool read_heap(leati_h5_reader *r, uint64_t address, heap *out) {
    unsigned char header[256];
    size_t bytes = 22 + 12 * (size_t)r->image->length_bytes + 3 * (size_t)r->image->offset_bytes + 4;
    if (!leati_h5_load(r, address, bytes, header)) return false;
    leati_h5_cursor c = leati_h5_cursor_make(header, bytes);
    leati_h5_skip(&c, 5);
    *out = (heap){.address = address, .id_bytes = (size_t)leati_h5_take(&c, 2)};
    uint64_t filters = leati_h5_take(&c, 2);
    if (memcmp(header, "FRHP", 4) != 0)
        return leati_h5_damaged(r, address, "expected a fractal heap, found other data");
    if (filters) return leati_h5_refused(r, "a group or an attribute is compressed, which is not supported");
    if (!leati_h5_checksum_holds(header, bytes))
        return leati_h5_damaged(r, address, "a fractal heap does not match its checksum");
    out->flags = (unsigned)leati_h5_take(&c, 1);
    uint64_t largest_object = leati_h5_take(&c, 4);
    leati_h5_take_length(r, &c);
    out->huge = leati_h5_take_address(r, &c);
    leati_h5_take_length(r, &c);
    leati_h5_take_address(r, &c);
    for (int i = 0; i < 8; ++i) leati_h5_take_length(r, &c); /* statistics */
    out->width = leati_h5_take(&c, 2);
    out->first_block = leati_h5_take_length(r, &c);
    out->largest_block = leati_h5_take_length(r, &c);
    out->offset_bytes = ((int)leati_h5_take(&c, 2) + 7) / 8;
    leati_h5_take(&c, 2);
    out->root = leati_h5_take_address(r, &c);
    out->root_rows = (unsigned)leati_h5_take(&c, 2);
    int in_block = (log2_of(out->largest_block) + 7) / 8, in_object = log2_of(largest_object) / 8 + 1;
    out->length_bytes = in_block < in_object ? in_block : in_object;
    return valid_heap(out) || leati_h5_damaged(r, address, "a fractal heap has an impossible form");
}

/* Returns the size of the blocks in a row of a doubling table. */
static uint64_t row_bytes(const heap *h, unsigned row) {
    return row < 2 ? h->first_block : h->first_block << (row - 1 < 40 ? row - 1 : 40);
}

/* A part of the heap's address space: a direct block, or an indirect block with rows. */
typedef struct part {
    uint64_t address, offset, bytes;
    unsigned rows; /* 0: a direct block */
} part;

/* Replaces an indirect block by the child that contains the offset. */
static bool descend(leati_h5_reader *r, const heap *h, part *p, uint64_t offset) {
    unsigned direct_rows = (unsigned)(log2_of(h->largest_block) - log2_of(h->first_block)) + 2;
    uint64_t start = p->offset, index = 0;
    unsigned row = 0;
    for (; row < p->rows && offset - start >= row_bytes(h, row) * h->width; ++row) {
        start += row_bytes(h, row) * h->width;
        index += h->width;
    }
    if (row >= p->rows) return leati_h5_damaged(r, p->address, "an object lies outside of its fractal heap");
    uint64_t column = (offset - start) / row_bytes(h, row);
    uint64_t entries = h->width * p->rows, width = (uint64_t)r->image->offset_bytes;
    uint64_t prefix = 5 + (uint64_t)(r->image->offset_bytes + h->offset_bytes);
    unsigned char *block = leati_h5_load_new(r, p->address, prefix + entries * width + 4);
    if (!block) return false;
    bool sound = memcmp(block, "FHIB", 4) == 0 &&
                 leati_h5_checksum_holds(block, (size_t)(prefix + entries * width + 4));
    leati_h5_cursor c = leati_h5_cursor_make(block + prefix + (index + column) * width, (size_t)width);
    p->address = leati_h5_take_address(r, &c);
    leati_free(block);
    if (!sound)
        return leati_h5_damaged(r, h->address, "a block of a fractal heap does not match its checksum");
    p->offset = start + column * row_bytes(h, row);
    p->bytes = row_bytes(h, row);
    int rows = row < direct_rows ? 0 : log2_of(p->bytes) - log2_of(h->first_block * h->width) + 1;
    if (rows < 0) return leati_h5_damaged(r, h->address, "a fractal heap has an impossible form");
    p->rows = (unsigned)rows;
    return true;
}

/* Reads `bytes` bytes at an offset of the heap's address space. */
static unsigned char *managed(leati_h5_reader *r, const heap *h, uint64_t offset, uint64_t bytes) {
    part p = {.address = h->root, .bytes = h->first_block, .rows = h->root_rows};
    while (p.rows > 0)
        if (!leati_h5_work(r, 64) || !descend(r, h, &p, offset)) return NULL;
    if (offset < p.offset || offset - p.offset > p.bytes || bytes > p.bytes - (offset - p.offset)) {
        leati_h5_damaged(r, p.address, "an object lies outside of its block of a fractal heap");
        return NULL;
    }
    size_t prefix = 5 + (size_t)(r->image->offset_bytes + h->offset_bytes);
    unsigned char *block = leati_h5_load_new(r, p.address, p.bytes);
    bool sound = block && p.bytes >= prefix + 4 && memcmp(block, "FHDB", 4) == 0;
    if (sound && h->flags & 2) { /* the checksum was computed while its field was zero */
        leati_h5_cursor c = leati_h5_cursor_make(block + prefix, 4);
        uint64_t checksum = leati_h5_take(&c, 4);
        memset(block + prefix, 0, 4);
        sound = checksum == leati_h5_checksum(block, (size_t)p.bytes);
    }
    if (sound && leati_h5_work(r, p.bytes / 8)) {
        memmove(block, block + (offset - p.offset), (size_t)bytes);
        return block;
    }
    leati_h5_damaged(r, p.address, "a block of a fractal heap does not match its checksum");
    leati_free(block);
    return NULL;
}

/* A search for a huge object. */
typedef struct huge_search {
    uint64_t id, address, bytes;
} huge_search;

static bool match_huge(leati_h5_reader *r, const unsigned char *record, void *user, bool *stop) {
    huge_search *search = user;
    leati_h5_cursor c = leati_h5_cursor_make(record, 24);
    uint64_t address = leati_h5_take_address(r, &c), bytes = leati_h5_take_length(r, &c);
    if (leati_h5_take_length(r, &c) != search->id) return true;
    search->address = address;
    search->bytes = bytes;
    *stop = true;
    return true;
}

/* Reads an object that has a place of its own in the file (section III.G, "huge objects"). */
static unsigned char *huge(leati_h5_reader *r, const heap *h, leati_h5_cursor *id, size_t *bytes) {
    huge_search search = {.address = LEATI_H5_UNDEFINED};
    size_t direct = (size_t)r->image->offset_bytes + (size_t)r->image->length_bytes;
    if (h->id_bytes > direct) {
        search.address = leati_h5_take_address(r, id);
        search.bytes = leati_h5_take_length(r, id);
    } else {
        search.id = leati_h5_take(id, h->id_bytes - 1 < 8 ? (int)h->id_bytes - 1 : 8);
        size_t record = (size_t)r->image->offset_bytes + 2 * (size_t)r->image->length_bytes;
        if (!leati_h5_visit_tree(r, h->huge, huge_tree, record, match_huge, &search)) return NULL;
    }
    *bytes = (size_t)search.bytes;
    return leati_h5_work(r, search.bytes / 64) ? leati_h5_load_new(r, search.address, search.bytes) : NULL;
}

/* Returns the bytes of an object of the heap, for leati_free; NULL on failure. */
static unsigned char *object_of(leati_h5_reader *r, const heap *h, const unsigned char *id, size_t *bytes) {
    leati_h5_cursor c = leati_h5_cursor_make(id, h->id_bytes);
    unsigned first = (unsigned)leati_h5_take(&c, 1);
    switch (first & 0xf0) {
    case 0x00: {
        uint64_t offset = leati_h5_take(&c, h->offset_bytes);
        *bytes = (size_t)leati_h5_take(&c, h->length_bytes);
        if (!c.cut_off) return managed(r, h, offset, *bytes);
        break;
    }
    case 0x10: return huge(r, h, &c, bytes);
    case 0x20: {
        *bytes = (first & 0xf) + 1;
        const unsigned char *inner = leati_h5_skip(&c, *bytes);
        unsigned char *copy = inner ? leati_memdup(inner, *bytes) : NULL;
        if (inner && !copy) leati_h5_no_memory(r);
        if (inner) return copy;
        break;
    }
    default: break;
    }
    leati_h5_damaged(r, h->address, "an identifier of an object in a fractal heap is damaged");
    return NULL;
}

typedef struct dense_search {
    heap heap;
    uint32_t hash;
    bool links;
    leati_h5_visit visit;
    void *user;
} dense_search;

static bool match_record(leati_h5_reader *r, const unsigned char *record, void *user, bool *stop) {
    dense_search *search = user;
    size_t bytes = 0;
    leati_h5_cursor c = leati_h5_cursor_make(record + (search->links ? 0 : 13), 4);
    if ((uint32_t)leati_h5_take(&c, 4) != search->hash) return true;
    unsigned char *object = object_of(r, &search->heap, record + (search->links ? 4 : 0), &bytes);
    if (!object) return false;
    bool done = search->visit(r, object, bytes, search->user, stop);
    leati_free(object);
    return done;
}

bool leati_h5_visit_dense(leati_h5_reader *r, bool links, uint64_t heap_address, uint64_t tree,
                          const char *name, leati_h5_visit visit, void *user) {
    dense_search search = {.links = links, .visit = visit, .user = user};
    if (!read_heap(r, heap_address, &search.heap)) return false;
    size_t id_bytes = links ? 7 : 8;
    if (search.heap.id_bytes != id_bytes)
        return leati_h5_damaged(r, heap_address, "a fractal heap has identifiers of an unexpected length");
    search.hash = leati_h5_checksum((const unsigned char *)name, strlen(name));
    return leati_h5_visit_tree(r, tree, links ? link_tree : attribute_tree, links ? 11 : 17, match_record,
                               &search);
}
