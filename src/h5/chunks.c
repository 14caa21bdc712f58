/* SPDX-License-Identifier: Apache-2.0 */
/* Chunked datasets, whose chunks are indexed by a B-tree of version 1 (section III.A.1), or, in layouts of version 4
 * (section VII), by nothing, by the chunk's number, or by a fixed array.  Room: h5. */
#include <string.h>

#include "base/memory.h"
#include "h5/reader.h"

/* A chunk may be larger than a small dataset that can grow; a larger chunk than this must not be larger than its
 * dataset. */
#define MOST_CHUNK_BYTES ((uint64_t)64 << 20)

enum { single_chunk = 1, implicit = 2, fixed_array = 3, most_levels = 64 };

/* A chunked dataset that is being read. */
typedef struct chunked {
    const leati_h5_type *type;
    const leati_h5_space *space;
    uint64_t dims[LEATI_H5_MAX_RANK]; /* of a chunk */
    uint64_t grid[LEATI_H5_MAX_RANK]; /* number of chunks in each dimension */
    uint64_t cells;                   /* number of chunks */
    uint64_t bytes;                   /* of a chunk, unpacked */
    uint64_t left;                    /* chunks that may still come */
    leati_h5_filters filters;
    unsigned char *dst;
    leati_h5_index
        *index; /* receives the places of the chunks, which are not read; NULL: they are read to dst */
} chunked;

typedef leati_h5_stored stored;

/* ---- One chunk ---- */

/* Copies the elements of a chunk that are inside the dataset. */
static void place(const chunked *d, const uint64_t *start, const unsigned char *chunk) {
    int rank = d->space->rank, last = rank - 1;
    size_t element = d->type->bytes;
    uint64_t index[LEATI_H5_MAX_RANK] = {0}, inside[LEATI_H5_MAX_RANK];
    for (int i = 0; i < rank; ++i) {
        uint64_t rest = d->space->dims[i] - start[i];
        inside[i] = rest < d->dims[i] ? rest : d->dims[i];
    }
    for (int i = 0; i >= 0;) {
        uint64_t from = 0, to = 0;
        for (i = 0; i < rank; ++i) {
            from = from * d->dims[i] + index[i];
            to = to * d->space->dims[i] + start[i] + index[i];
        }
        memcpy(d->dst + to * element, chunk + from * element, (size_t)inside[last] * element);
        for (i = last - 1; i >= 0 && ++index[i] == inside[i]; --i) index[i] = 0;
    }
}

unsigned char *leati_h5_load_chunk(leati_h5_reader *r, const leati_h5_filters *filters, size_t element,
                                   const leati_h5_stored *where, uint64_t bytes) {
    unsigned char *data = leati_h5_load_new(r, where->address, where->bytes);
    if (data && leati_h5_undo_filters(r, filters, where->skipped, element, &data, (size_t)where->bytes,
                                      (size_t)bytes))
        return data;
    if (r->status != LEAT_OK && r->at == LEATI_H5_UNDEFINED) r->at = where->address;
    leati_free(data);
    return NULL;
}

/* Writes the place of the chunk that begins at the element `start` into the index. */
static bool note_chunk(const chunked *d, const uint64_t *start, const stored *where) {
    uint64_t number = 0;
    for (int i = 0; i < d->space->rank; ++i) number = number * d->grid[i] + start[i] / d->dims[i];
    d->index->places[number] = *where;
    return true;
}

/* Reads or notes the chunk that begins at the element `start` of the dataset. */
static bool read_chunk(leati_h5_reader *r, chunked *d, const uint64_t *start, const stored *where) {
    for (int i = 0; i < d->space->rank; ++i)
        if (start[i] >= d->space->dims[i] || start[i] % d->dims[i] != 0)
            return leati_h5_damaged(r, where->address, "a chunk lies outside of its dataset");
    if (d->left == 0)
        return leati_h5_damaged(r, where->address, "a dataset has more chunks than its dimensions allow");
    --d->left;
    if (d->filters.count == 0 && where->bytes != d->bytes)
        return leati_h5_damaged(r, where->address, "a chunk has an unexpected size");
    if (d->index) return note_chunk(d, start, where);
    unsigned char *data = leati_h5_load_chunk(r, &d->filters, d->type->bytes, where, d->bytes);
    if (data) place(d, start, data);
    leati_free(data);
    return data != NULL;
}

/* Reads the chunk with a number: the last dimension counts fastest. */
static bool read_numbered(leati_h5_reader *r, chunked *d, uint64_t number, const stored *where) {
    uint64_t start[LEATI_H5_MAX_RANK];
    for (int i = d->space->rank - 1; i >= 0; --i) {
        start[i] = number % d->grid[i] * d->dims[i];
        number /= d->grid[i];
    }
    return where->address == LEATI_H5_UNDEFINED || read_chunk(r, d, start, where);
}

/* ---- B-trees of version 1 ---- */

static bool read_node(leati_h5_reader *r, chunked *d, uint64_t address, int level);

static bool read_entries(leati_h5_reader *r, chunked *d, leati_h5_cursor *c, size_t count, int level) {
    for (size_t k = 0; k < count; ++k) {
        uint64_t start[LEATI_H5_MAX_RANK] = {0};
        stored where = {.bytes = leati_h5_take(c, 4)};
        where.skipped = (unsigned)leati_h5_take(c, 4);
        for (int i = 0; i < d->space->rank; ++i) start[i] = leati_h5_take(c, 8);
        leati_h5_skip(c, 8); /* the offset in an element: 0 */
        where.address = leati_h5_take_address(r, c);
        if (level > 0 ? !read_node(r, d, where.address, level - 1) : !read_chunk(r, d, start, &where))
            return false;
    }
    return true;
}

/* Reads the chunks of a node and of its children.  level: the level that the node must have; -1: any. */
static bool read_node(leati_h5_reader *r, chunked *d, uint64_t address, int level) {
    unsigned char header[24];
    size_t prefix = 8 + 2 * (size_t)r->image->offset_bytes;
    if (!leati_h5_load(r, address, prefix, header)) return false;
    if (memcmp(header, "TREE", 4) != 0 || header[4] != 1 || header[5] > most_levels ||
        (level >= 0 && header[5] != level))
        return leati_h5_damaged(r, address, "expected a B-tree node of chunks, found other data");
    size_t count = header[6] | (size_t)header[7] << 8;
    size_t bytes = count * (16 + 8 * (size_t)d->space->rank + (size_t)r->image->offset_bytes);
    if (!leati_h5_work(r, 64 + bytes / 8)) return false;
    unsigned char *entries = leati_h5_load_new(r, address + prefix, bytes);
    if (!entries) return false;
    leati_h5_cursor c = leati_h5_cursor_make(entries, bytes);
    bool done = read_entries(r, d, &c, count, header[5]);
    leati_free(entries);
    return done;
}

/* ---- Fixed arrays, sections VII.C ---- */

typedef struct array {
    uint64_t block, entries;
    unsigned page_bits; /* a page has 2^page_bits entries */
    size_t entry_bytes;
    bool filtered;
} array;

static bool read_array_header(leati_h5_reader *r, uint64_t address, array *out) {
    unsigned char header[32];
    size_t bytes = 12 + (size_t)(r->image->offset_bytes + r->image->length_bytes);
    if (!leati_h5_load(r, address, bytes, header)) return false;
    leati_h5_cursor c = leati_h5_cursor_make(header, bytes);
    leati_h5_skip(&c, 5);
    out->filtered = leati_h5_take(&c, 1) == 1;
    out->entry_bytes = (size_t)leati_h5_take(&c, 1);
    out->page_bits = (unsigned)leati_h5_take(&c, 1);
    out->entries = leati_h5_take_length(r, &c);
    out->block = leati_h5_take_address(r, &c);
    size_t least = (size_t)r->image->offset_bytes + (out->filtered ? 5 : 0);
    bool sound = memcmp(header, "FAHD", 4) == 0 && leati_h5_checksum_holds(header, bytes) &&
                 out->page_bits < 32 && out->entry_bytes >= least && out->entry_bytes <= least + 8;
    return sound || leati_h5_damaged(r, address, "an index of chunks does not match its checksum");
}

/* Reads the chunks of `count` entries, from the chunk `first` on; their checksum follows the entries. */
static bool read_page(leati_h5_reader *r, chunked *d, const array *a, uint64_t first, uint64_t count,
                      const unsigned char *page, size_t prefix) {
    size_t bytes = prefix + (size_t)count * a->entry_bytes;
    if (!leati_h5_checksum_holds(page, bytes + 4))
        return leati_h5_damaged(r, a->block, "an index of chunks does not match its checksum");
    leati_h5_cursor c = leati_h5_cursor_make(page + prefix, bytes - prefix);
    for (uint64_t i = 0; i < count; ++i) {
        stored where = {.address = leati_h5_take_address(r, &c), .bytes = d->bytes};
        if (a->filtered) {
            where.bytes = leati_h5_take(&c, (int)a->entry_bytes - r->image->offset_bytes - 4);
            where.skipped = (unsigned)leati_h5_take(&c, 4);
        }
        if (!read_numbered(r, d, first + i, &where)) return false;
    }
    return true;
}

/* Reads the pages of a long array, which follow its block; pages without chunks are marked in a bitmap. */
static bool read_pages(leati_h5_reader *r, chunked *d, const array *a, const unsigned char *bitmap,
                       uint64_t at) {
    uint64_t in_page = (uint64_t)1 << a->page_bits;
    for (uint64_t first = 0, k = 0; first < a->entries; first += in_page, ++k) {
        uint64_t rest = a->entries - first, count = rest < in_page ? rest : in_page;
        bool used = bitmap[k / 8] >> (7 - k % 8) & 1;
        unsigned char *page = used ? leati_h5_load_new(r, at, count * a->entry_bytes + 4) : NULL;
        bool done = !used || (page && read_page(r, d, a, first, count, page, 0));
        leati_free(page);
        if (!done) return false;
        at += count * a->entry_bytes + 4;
    }
    return true;
}

static bool read_array(leati_h5_reader *r, chunked *d, uint64_t address) {
    array a;
    if (!read_array_header(r, address, &a)) return false;
    if (a.block == LEATI_H5_UNDEFINED) return true; /* no chunk was written */
    if (a.entries != d->cells || a.entries > r->image->size)
        return leati_h5_damaged(r, address, "an index of chunks has an unexpected length");
    uint64_t in_page = (uint64_t)1 << a.page_bits;
    bool paged = a.entries > in_page;
    size_t prefix = 6 + (size_t)r->image->offset_bytes;
    uint64_t pages = (a.entries + in_page - 1) >> a.page_bits;
    uint64_t bytes = prefix + 4 + (paged ? (pages + 7) / 8 : a.entries * a.entry_bytes);
    unsigned char *block = leati_h5_load_new(r, a.block, bytes);
    if (!block) return false;
    bool done = memcmp(block, "FADB", 4) == 0 && leati_h5_checksum_holds(block, (size_t)bytes);
    if (!done) leati_h5_damaged(r, a.block, "an index of chunks does not match its checksum");
    if (done)
        done = paged ? read_pages(r, d, &a, block + prefix, a.block + bytes)
                     : read_page(r, d, &a, 0, a.entries, block, prefix);
    leati_free(block);
    return done;
}

/* ---- Layouts ---- */

/* Fills the index, in which no chunk has a place yet. */
static bool begin_index(leati_h5_reader *r, chunked *d) {
    leati_h5_index *out = d->index;
    memcpy(out->dims, d->dims, sizeof out->dims);
    memcpy(out->grid, d->grid, sizeof out->grid);
    out->cells = d->cells;
    out->bytes = d->bytes;
    out->filters = d->filters;
    out->places = leati_calloc(d->cells ? (size_t)d->cells : 1, sizeof *out->places);
    return out->places || leati_h5_no_memory(r);
}

/* Computes the grid of chunks; their dimensions are set. */
static bool measure(leati_h5_reader *r, chunked *d, uint64_t element) {
    uint64_t total = d->space->count * d->type->bytes;
    d->bytes = d->type->bytes;
    d->cells = 1;
    if (element != d->type->bytes || d->space->rank < 1)
        return leati_h5_damaged(r, LEATI_H5_UNDEFINED,
                                "the chunks of a dataset have another type than the dataset");
    for (int i = 0; i < d->space->rank; ++i) {
        uint64_t dim = d->dims[i];
        if (dim == 0 || dim > UINT32_MAX || d->bytes > ((uint64_t)1 << 31) / dim)
            return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "the dimensions of a chunk are out of range");
        d->bytes *= dim;
        d->grid[i] = d->space->dims[i] / dim + (d->space->dims[i] % dim != 0);
        d->cells *= d->grid[i];
    }
    d->left = d->cells;
    if (d->bytes <= MOST_CHUNK_BYTES || d->bytes <= total) return !d->index || begin_index(r, d);
    return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a chunk is larger than its dataset");
}

/* Layouts of version 4: *index is the kind of index. */
static bool parse_new(leati_h5_reader *r, chunked *d, leati_h5_cursor *c, int *index, stored *single) {
    unsigned flags = (unsigned)leati_h5_take(c, 1);
    int rank = (int)leati_h5_take(c, 1), width = (int)leati_h5_take(c, 1);
    if (rank != d->space->rank + 1 || width < 1 || width > 8)
        return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a data layout message is damaged");
    if (flags & 1)
        return leati_h5_refused(
            r, "the dataset has chunks without filters at its edges, which is not supported");
    for (int i = 0; i + 1 < rank; ++i) d->dims[i] = leati_h5_take(c, width);
    uint64_t element = leati_h5_take(c, width);
    *index = (int)leati_h5_take(c, 1);
    if (!measure(r, d, element)) return false;
    *single = (stored){.bytes = d->bytes};
    if (*index == single_chunk && flags & 2) {
        single->bytes = leati_h5_take_length(r, c);
        single->skipped = (unsigned)leati_h5_take(c, 4);
    }
    if (*index == fixed_array) leati_h5_take(c, 1);
    single->address = leati_h5_take_address(r, c);
    return !c->cut_off || leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a data layout message is cut off");
}

static bool read_new(leati_h5_reader *r, chunked *d, leati_h5_cursor *c) {
    int index = 0;
    stored where = {.address = LEATI_H5_UNDEFINED};
    if (!parse_new(r, d, c, &index, &where)) return false;
    if (d->space->count == 0 || where.address == LEATI_H5_UNDEFINED) return true;
    switch (index) {
    case single_chunk: return read_numbered(r, d, 0, &where);
    case implicit:
        for (uint64_t i = 0; i < d->cells; ++i, where.address += d->bytes)
            if (!read_numbered(r, d, i, &where)) return false;
        return true;
    case fixed_array: return read_array(r, d, where.address);
    default:
        return leati_h5_refused(
            r, "the dataset can grow and was written with h5py's libver='latest', which is not "
               "supported; write it without maxshape, or without libver");
    }
}

/* Layouts of version 3. */
static bool read_old(leati_h5_reader *r, chunked *d, leati_h5_cursor *c) {
    int rank = (int)leati_h5_take(c, 1);
    uint64_t address = leati_h5_take_address(r, c);
    if (rank != d->space->rank + 1)
        return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a data layout message is damaged");
    for (int i = 0; i + 1 < rank; ++i) d->dims[i] = leati_h5_take(c, 4);
    uint64_t element = leati_h5_take(c, 4);
    if (c->cut_off) return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a data layout message is cut off");
    if (!measure(r, d, element)) return false;
    return d->space->count == 0 || address == LEATI_H5_UNDEFINED || read_node(r, d, address, -1);
}

static bool visit(leati_h5_reader *r, const leati_h5_header *header, int version, leati_h5_cursor *c,
                  chunked *d) {
    if (!leati_h5_parse_filters(r, header, &d->filters)) return false;
    return version == 3 ? read_old(r, d, c) : read_new(r, d, c);
}

bool leati_h5_read_chunks(leati_h5_reader *r, const leati_h5_header *header, int version, leati_h5_cursor *c,
                          const leati_h5_type *type, const leati_h5_space *space, unsigned char *dst) {
    return visit(r, header, version, c, &(chunked){.type = type, .space = space, .dst = dst});
}

bool leati_h5_index_chunks(leati_h5_reader *r, const leati_h5_header *header, int version, leati_h5_cursor *c,
                           const leati_h5_type *type, const leati_h5_space *space, leati_h5_index *out) {
    out->chunked = true;
    return visit(r, header, version, c, &(chunked){.type = type, .space = space, .index = out});
}
