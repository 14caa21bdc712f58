/* SPDX-License-Identifier: Apache-2.0 */
/* Datatypes, dataspaces and attributes (sections IV.A.2.b, d and m), and strings of variable length (section III.E).
 * Room: h5. */
#include <string.h>

#include "base/memory.h"
#include "h5/reader.h"

/* ---- Datatypes ---- */

static bool little_endian(void) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1;
}

/* Gives the type of integers of all bits. */
static void parse_integer(leati_h5_cursor *c, unsigned bits, leati_h5_type *out) {
    static const leat_dtype types[2][4] = {{LEAT_U8, LEAT_U16, LEAT_U32, LEAT_U64},
                                           {LEAT_I8, LEAT_I16, LEAT_I32, LEAT_I64}};
    uint64_t offset = leati_h5_take(c, 2), precision = leati_h5_take(c, 2);
    int log2 = out->bytes == 1 ? 0 : out->bytes == 2 ? 1 : out->bytes == 4 ? 2 : out->bytes == 8 ? 3 : -1;
    if (log2 < 0 || offset != 0 || precision != 8 * out->bytes) return;
    out->class = LEATI_H5_NUMBER;
    out->dtype = types[bits >> 3 & 1][log2];
    out->swapped = (bits & 1) == (little_endian() ? 1 : 0);
}

/* Gives the type of IEEE 754's floats of 2, 4 and 8 bytes. */
static void parse_float(leati_h5_cursor *c, unsigned bits, leati_h5_type *out) {
    static const struct {
        size_t bytes;
        leat_dtype dtype;
        unsigned exponent_bits, mantissa_bits, bias;
    } floats[] = {{2, LEAT_F16, 5, 10, 15}, {4, LEAT_F32, 8, 23, 127}, {8, LEAT_F64, 11, 52, 1023}};
    unsigned offset = (unsigned)leati_h5_take(c, 2), precision = (unsigned)leati_h5_take(c, 2);
    unsigned exponent_at = (unsigned)leati_h5_take(c, 1), exponent_bits = (unsigned)leati_h5_take(c, 1);
    unsigned mantissa_at = (unsigned)leati_h5_take(c, 1), mantissa_bits = (unsigned)leati_h5_take(c, 1);
    unsigned bias = (unsigned)leati_h5_take(c, 4);
    for (size_t i = 0; i < sizeof floats / sizeof *floats; ++i) {
        bool same = out->bytes == floats[i].bytes && offset == 0 && precision == 8 * out->bytes &&
                    exponent_at == floats[i].mantissa_bits && exponent_bits == floats[i].exponent_bits &&
                    mantissa_at == 0 && mantissa_bits == floats[i].mantissa_bits && bias == floats[i].bias &&
                    (bits >> 8 & 0xff) == 8 * out->bytes - 1 && (bits & 0x40) == 0;
        if (!same) continue;
        out->class = LEATI_H5_NUMBER;
        out->dtype = floats[i].dtype;
        out->swapped = (bits & 1) == (little_endian() ? 1 : 0);
    }
}

/* Gives the type of the integers that an enumeration stands for, such as the one that h5py makes of NumPy's bool. */
static void parse_enumeration(leati_h5_cursor *c, leati_h5_type *out) {
    const unsigned first = (unsigned)leati_h5_take(c, 1), bits = (unsigned)leati_h5_take(c, 3);
    const size_t bytes = (size_t)leati_h5_take(c, 4);
    if ((first & 0xf) == 0 && bytes == out->bytes) parse_integer(c, bits, out);
}

bool leati_h5_parse_type(leati_h5_reader *r, const unsigned char *data, size_t bytes, leati_h5_type *out) {
    leati_h5_cursor c = leati_h5_cursor_make(data, bytes);
    unsigned first = (unsigned)leati_h5_take(&c, 1), bits = (unsigned)leati_h5_take(&c, 3);
    *out = (leati_h5_type){.class = LEATI_H5_OTHER, .bytes = (size_t)leati_h5_take(&c, 4)};
    switch (first & 0xf) {
    case 0: parse_integer(&c, bits, out); break;
    case 1: parse_float(&c, bits, out); break;
    case 3: out->class = LEATI_H5_TEXT; break;
    case 8: parse_enumeration(&c, out); break;
    case 9:
        if ((bits & 0xf) == 1 && out->bytes == 8 + (size_t)r->image->offset_bytes)
            out->class = LEATI_H5_VARIABLE_TEXT;
        break;
    default: break;
    }
    bool sound = !c.cut_off && first >> 4 >= 1 && first >> 4 <= 5 && out->bytes > 0;
    return sound || leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a datatype is damaged");
}

/* ---- Dataspaces ---- */

bool leati_h5_parse_space(leati_h5_reader *r, const unsigned char *data, size_t bytes, leati_h5_space *out) {
    leati_h5_cursor c = leati_h5_cursor_make(data, bytes);
    int version = (int)leati_h5_take(&c, 1);
    *out = (leati_h5_space){.rank = (int)leati_h5_take(&c, 1), .count = 1};
    leati_h5_take(&c, 1);
    bool null = version == 2 ? leati_h5_take(&c, 1) == 2 : !leati_h5_skip(&c, 5);
    if (version < 1 || version > 2 || out->rank > LEATI_H5_MAX_RANK)
        return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a dataspace is damaged");
    for (int i = 0; i < out->rank; ++i) {
        uint64_t dim = out->dims[i] = leati_h5_take_length(r, &c);
        if (dim > INT64_MAX || (dim > 0 && out->count > INT64_MAX / dim))
            return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "the dimensions of a dataspace are too large");
        out->count *= dim;
    }
    if (null) out->count = 0;
    return !c.cut_off || leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a dataspace is cut off");
}

/* ---- Attributes ---- */

/* An attribute message, and the name that is searched for. */
typedef struct attribute_search {
    const char *name;
    leati_h5_found *out;
    bool found, keep; /* keep: copy the message, whose memory is borrowed */
} attribute_search;

/* Parses the parts behind the name.  Version 1 pads each part to a multiple of 8 bytes. */
static bool parse_parts(leati_h5_reader *r, leati_h5_cursor *c, const size_t sizes[2], bool padded,
                        leati_h5_found *out) {
    const unsigned char *parts[2];
    for (int i = 0; i < 2; ++i) {
        parts[i] = leati_h5_skip(c, sizes[i]);
        if (padded) leati_h5_skip(c, (8 - sizes[i] % 8) % 8);
    }
    if (!parts[0] || !parts[1]) return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "an attribute is cut off");
    out->data = c->next;
    out->bytes = leati_h5_left(c);
    return leati_h5_parse_type(r, parts[0], sizes[0], &out->type) &&
           leati_h5_parse_space(r, parts[1], sizes[1], &out->space);
}

static bool match_attribute(leati_h5_reader *r, const unsigned char *data, size_t bytes, void *user,
                            bool *stop) {
    attribute_search *s = user;
    leati_h5_cursor c = leati_h5_cursor_make(data, bytes);
    unsigned version = (unsigned)leati_h5_take(&c, 1), flags = (unsigned)leati_h5_take(&c, 1);
    size_t name_bytes = (size_t)leati_h5_take(&c, 2), sizes[2];
    sizes[0] = (size_t)leati_h5_take(&c, 2);
    sizes[1] = (size_t)leati_h5_take(&c, 2);
    if (version == 3) leati_h5_skip(&c, 1);
    const unsigned char *name = leati_h5_skip(&c, name_bytes);
    if (version < 1 || version > 3 || !name)
        return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "an attribute is damaged");
    size_t length = strlen(s->name);
    if (name_bytes <= length || memcmp(name, s->name, length + 1) != 0) return true;
    if (version > 1 && flags & 3)
        return leati_h5_refused(r, "an attribute uses a committed datatype, which is not supported");
    s->found = *stop = true;
    if (s->keep) {
        s->out->owned = leati_memdup(data, bytes);
        if (!s->out->owned) return leati_h5_no_memory(r);
        size_t done = (size_t)(c.next - data);
        c = leati_h5_cursor_make(s->out->owned + done, bytes - done);
    }
    if (version == 1) leati_h5_skip(&c, (8 - name_bytes % 8) % 8);
    return parse_parts(r, &c, sizes, version == 1, s->out);
}

/* Searches the attributes that lie in a fractal heap, if there are any. */
static bool search_dense(leati_h5_reader *r, const leati_h5_header *header, attribute_search *s) {
    const leati_h5_message *info = leati_h5_message_of(header, LEATI_H5_ATTRIBUTE_INFO);
    if (!info) return true;
    leati_h5_cursor c = leati_h5_cursor_make(info->data, info->bytes);
    leati_h5_skip(&c, 1);
    if (leati_h5_take(&c, 1) & 1) leati_h5_skip(&c, 2);
    uint64_t heap = leati_h5_take_address(r, &c), tree = leati_h5_take_address(r, &c);
    if (c.cut_off) return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "an attribute info message is cut off");
    s->keep = true;
    return heap == LEATI_H5_UNDEFINED ||
           leati_h5_visit_dense(r, false, heap, tree, s->name, match_attribute, s);
}

bool leati_h5_find_attribute(leati_h5_reader *r, const leati_h5_header *header, const char *name,
                             leati_h5_found *out, bool *found) {
    attribute_search s = {.name = name, .out = out};
    *out = (leati_h5_found){0};
    bool stop = false, done = true;
    for (size_t i = 0; i < header->count && done && !stop; ++i) {
        const leati_h5_message *m = &header->messages[i];
        if (m->type != LEATI_H5_ATTRIBUTE) continue;
        done = leati_h5_message_usable(r, m) && match_attribute(r, m->data, m->bytes, &s, &stop);
    }
    if (done && !stop) done = search_dense(r, header, &s);
    *found = s.found;
    return done;
}

/* ---- Global heaps, section III.E ---- */

/* Makes the collection at `address` the one in memory. */
static bool load_collection(leati_h5_reader *r, uint64_t address) {
    unsigned char header[16];
    size_t prefix = 8 + (size_t)r->image->length_bytes;
    if (r->collection == address) return true;
    if (!leati_h5_load(r, address, prefix, header)) return false;
    leati_h5_cursor c = leati_h5_cursor_make(header + 8, prefix - 8);
    uint64_t bytes = leati_h5_take_length(r, &c);
    if (memcmp(header, "GCOL", 4) != 0 || header[4] != 1 || bytes < prefix)
        return leati_h5_damaged(r, address, "expected a global heap collection, found other data");
    if (!leati_h5_work(r, 64 + bytes / 64)) return false;
    unsigned char *data = leati_h5_load_new(r, address, bytes);
    if (!data) return false;
    leati_free(r->collection_data);
    r->collection_data = data;
    r->collection_bytes = (size_t)bytes;
    r->collection = address;
    return true;
}

/* Finds an object of the collection in memory. */
static bool find_in_collection(leati_h5_reader *r, uint64_t index, const unsigned char **data,
                               size_t *bytes) {
    leati_h5_cursor c = leati_h5_cursor_make(r->collection_data, r->collection_bytes);
    leati_h5_skip(&c, 8 + (size_t)r->image->length_bytes);
    while (leati_h5_left(&c) >= 8 + (size_t)r->image->length_bytes) {
        uint64_t found = leati_h5_take(&c, 2);
        leati_h5_skip(&c, 6);
        uint64_t size = leati_h5_take_length(r, &c);
        if (found == 0) break; /* the rest is free */
        *data = leati_h5_skip(&c, size > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)size);
        if (!*data)
            return leati_h5_damaged(r, r->collection, "an object is longer than its global heap collection");
        *bytes = (size_t)size;
        if (found == index) return true;
        if (!leati_h5_work(r, 1)) return false;
        size_t padding = (8 - size % 8) % 8;
        leati_h5_skip(&c, padding < leati_h5_left(&c) ? padding : leati_h5_left(&c));
    }
    return leati_h5_damaged(r, r->collection, "a string is not in its global heap collection");
}

bool leati_h5_variable_text(leati_h5_reader *r, const unsigned char *element, const unsigned char **text,
                            size_t *bytes) {
    leati_h5_cursor c = leati_h5_cursor_make(element, 8 + (size_t)r->image->offset_bytes);
    size_t length = (size_t)leati_h5_take(&c, 4), present = 0;
    uint64_t address = leati_h5_take_address(r, &c), index = leati_h5_take(&c, 4);
    *text = (const unsigned char *)"";
    *bytes = 0;
    if (length == 0 || address == 0 || address == LEATI_H5_UNDEFINED) return true;
    if (!load_collection(r, address) || !find_in_collection(r, index, text, &present)) return false;
    if (length > present)
        return leati_h5_damaged(r, address, "a string is longer than its object in a global heap");
    if (!leati_h5_work(r, length)) return false; /* many elements may refer to one long string */
    *bytes = length;
    return true;
}
