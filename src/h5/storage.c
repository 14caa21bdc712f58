/* SPDX-License-Identifier: Apache-2.0 */
/* Where the elements of datasets are: data layout messages (section IV.A.2.i) and fill values (f).  Room: h5. */
#include <string.h>

#include "base/memory.h"
#include "h5/reader.h"

static bool cut_off(leati_h5_reader *r) {
    return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a data layout message is damaged");
}

/* Finds the bytes of the fill value; *value is NULL for the default, zeros. */
static bool find_fill(leati_h5_reader *r, const leati_h5_header *header, size_t element,
                      const unsigned char **value) {
    const leati_h5_message *m = leati_h5_message_of(header, LEATI_H5_FILL);
    *value = NULL;
    if (!m) return true;
    leati_h5_cursor c = leati_h5_cursor_make(m->data, m->bytes);
    int version = (int)leati_h5_take(&c, 1);
    bool defined = false;
    if (version == 3)
        defined = leati_h5_take(&c, 1) & 0x20;
    else {
        leati_h5_skip(&c, 2);
        defined = leati_h5_take(&c, 1) != 0;
    }
    uint64_t bytes = defined ? leati_h5_take(&c, 4) : 0;
    if (!defined || bytes == 0) return true;
    *value = bytes == element ? leati_h5_skip(&c, element) : NULL;
    return *value || leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a fill value is damaged");
}

/* Sets all elements to the fill value. */
static bool fill(leati_h5_reader *r, const leati_h5_header *header, size_t element, uint64_t count,
                 unsigned char *dst) {
    const unsigned char *value;
    if (!find_fill(r, header, element, &value)) return false;
    for (uint64_t i = 0; value && i < count; ++i) memcpy(dst + i * element, value, element);
    return true;
}

static bool read_compact(leati_h5_reader *r, leati_h5_cursor *c, size_t bytes, unsigned char *dst) {
    size_t present = (size_t)leati_h5_take(c, 2);
    const unsigned char *data = leati_h5_skip(c, present);
    if (!data || present < bytes) return cut_off(r);
    if (bytes > 0) memcpy(dst, data, bytes);
    return true;
}

static bool read_contiguous(leati_h5_reader *r, const leati_h5_header *header, leati_h5_cursor *c,
                            const leati_h5_type *type, uint64_t count, unsigned char *dst) {
    uint64_t address = leati_h5_take_address(r, c), present = leati_h5_take_length(r, c);
    if (c->cut_off) return cut_off(r);
    if (address == LEATI_H5_UNDEFINED) return fill(r, header, type->bytes, count, dst);
    if (present < count * type->bytes)
        return leati_h5_damaged(r, address, "a dataset has less storage than its dimensions need");
    return leati_h5_load(r, address, count * type->bytes, dst);
}

/* Begins to parse the data layout message: version and class. */
static bool find_layout(leati_h5_reader *r, const leati_h5_header *header, leati_h5_cursor *c, int *version,
                        int *class) {
    const leati_h5_message *m = leati_h5_message_of(header, LEATI_H5_LAYOUT);
    if (!m) return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a dataset has no data layout message");
    if (!leati_h5_message_usable(r, m)) return false;
    *c = leati_h5_cursor_make(m->data, m->bytes);
    *version = (int)leati_h5_take(c, 1);
    *class = (int)leati_h5_take(c, 1);
    if (*version == 3 || *version == 4) return true;
    return leati_h5_refused(r,
                            "the dataset's layout has a version other than 3 and 4, which is not supported");
}

bool leati_h5_index_storage(leati_h5_reader *r, const leati_h5_header *header, const leati_h5_type *type,
                            const leati_h5_space *space, leati_h5_index *out) {
    leati_h5_cursor c;
    int version = 0, class = 0;
    const unsigned char *value = NULL;
    if (!find_layout(r, header, &c, &version, &class)) return false;
    if (class != 2) return true;
    if (!find_fill(r, header, type->bytes, &value)) return false;
    if (value && type->bytes <= sizeof out->fill) memcpy(out->fill, value, type->bytes);
    return leati_h5_index_chunks(r, header, version, &c, type, space, out);
}

bool leati_h5_read_elements(leati_h5_reader *r, const leati_h5_header *header, const leati_h5_type *type,
                            const leati_h5_space *space, unsigned char *dst) {
    leati_h5_cursor c;
    int version = 0, class = 0;
    if (!find_layout(r, header, &c, &version, &class)) return false;
    switch (class) {
    case 0: return read_compact(r, &c, (size_t)space->count * type->bytes, dst);
    case 1: return read_contiguous(r, header, &c, type, space->count, dst);
    case 2:
        return fill(r, header, type->bytes, space->count, dst) &&
               leati_h5_read_chunks(r, header, version, &c, type, space, dst);
    case 3: return leati_h5_refused(r, "the dataset has virtual storage, which is not supported");
    default: return cut_off(r);
    }
}

bool leati_h5_find_contiguous(leati_h5_reader *r, const leati_h5_header *header, const leati_h5_type *type,
                              const leati_h5_space *space, uint64_t *address) {
    const leati_h5_message *m = leati_h5_message_of(header, LEATI_H5_LAYOUT);
    *address = LEATI_H5_UNDEFINED;
    if (!m || !leati_h5_message_usable(r, m)) return r->status == LEAT_OK;
    leati_h5_cursor c = leati_h5_cursor_make(m->data, m->bytes);
    const int version = (int)leati_h5_take(&c, 1), class = (int)leati_h5_take(&c, 1);
    if (version < 3 || version > 4 || class != 1) return true;
    const uint64_t at = leati_h5_take_address(r, &c), present = leati_h5_take_length(r, &c);
    const uint64_t size = r->image->size;
    if (c.cut_off || space->count > size / type->bytes || present < space->count * type->bytes) return true;
    if (at <= size && space->count * type->bytes <= size - at) *address = at;
    return true;
}
