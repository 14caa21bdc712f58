/* SPDX-License-Identifier: Apache-2.0 */
/* Object headers: the lists of messages that describe groups and datasets (section IV.A).  Room: h5. */
#include <string.h>

#include "base/memory.h"
#include "h5/reader.h"

/* A limit far above the headers of any model: an attribute has less than 64 KiB. */
enum { most_header_bytes = 64 << 20, most_blocks = 1 << 16 };

/* A block of messages. */
typedef struct block {
    uint64_t address, bytes;
} block;

/* A header that is being read. */
typedef struct parse {
    leati_h5_header *out;
    int version;
    bool tracks_order;  /* the messages of version 2 have numbers */
    block *blocks;      /* found so far; the first one contains the header's first message */
    size_t block_count; /* out->block_count of these are read */
    uint64_t bytes;     /* sum of the blocks */
} parse;

void leati_h5_header_fini(leati_h5_header *header) {
    for (size_t i = 0; i < header->block_count; ++i) leati_free(header->blocks[i]);
    leati_free(header->blocks);
    leati_free(header->messages);
    *header = (leati_h5_header){0};
}

const leati_h5_message *leati_h5_message_of(const leati_h5_header *header, unsigned type) {
    for (size_t i = 0; i < header->count; ++i)
        if (header->messages[i].type == type) return &header->messages[i];
    return NULL;
}

bool leati_h5_message_usable(leati_h5_reader *r, const leati_h5_message *message) {
    if (!(message->flags & 2)) return true;
    return leati_h5_refused(
        r, "the object uses a shared message (a committed datatype), which is not supported");
}

static bool add_block(leati_h5_reader *r, parse *p, uint64_t address, uint64_t bytes) {
    p->bytes += bytes < most_header_bytes ? bytes : most_header_bytes;
    if (bytes < 8 || p->bytes >= most_header_bytes || p->bytes > r->image->size ||
        p->block_count == most_blocks)
        return leati_h5_damaged(r, address, "an object header has blocks without end");
    block *blocks = leati_realloc(p->blocks, p->block_count + 1, sizeof *blocks);
    if (!blocks) return leati_h5_no_memory(r);
    p->blocks = blocks;
    blocks[p->block_count++] = (block){address, bytes};
    return true;
}

static bool add_message(leati_h5_reader *r, parse *p, const leati_h5_message *message) {
    leati_h5_header *out = p->out;
    if (message->type == LEATI_H5_CONTINUATION) {
        leati_h5_cursor c = leati_h5_cursor_make(message->data, message->bytes);
        uint64_t address = leati_h5_take_address(r, &c), bytes = leati_h5_take_length(r, &c);
        return !c.cut_off && add_block(r, p, address, bytes);
    }
    if (out->count == out->capacity) {
        size_t capacity = out->capacity ? 2 * out->capacity : 16;
        leati_h5_message *messages = leati_realloc(out->messages, capacity, sizeof *messages);
        if (!messages) return leati_h5_no_memory(r);
        out->messages = messages;
        out->capacity = capacity;
    }
    out->messages[out->count++] = *message;
    return true;
}

static bool parse_messages(leati_h5_reader *r, parse *p, const unsigned char *data, size_t bytes,
                           uint64_t at) {
    leati_h5_cursor c = leati_h5_cursor_make(data, bytes);
    size_t prefix = p->version == 1 ? 8 : p->tracks_order ? 6 : 4;
    while (leati_h5_left(&c) >= prefix) {
        leati_h5_message message = {0};
        message.type = (unsigned)leati_h5_take(&c, p->version == 1 ? 2 : 1);
        message.bytes = (size_t)leati_h5_take(&c, 2);
        message.flags = (unsigned)leati_h5_take(&c, 1);
        leati_h5_skip(&c, prefix - (p->version == 1 ? 5 : 4));
        message.data = leati_h5_skip(&c, message.bytes);
        if (!message.data) return leati_h5_damaged(r, at, "a message is longer than its object header");
        if (message.type != 0 && !add_message(r, p, &message))
            return leati_h5_damaged(r, at, "a message of an object header is damaged");
    }
    return true;
}

/* Reads the next block that was found. */
static bool read_block(leati_h5_reader *r, parse *p) {
    leati_h5_header *out = p->out;
    block next = p->blocks[out->block_count];
    unsigned char **blocks = leati_realloc(out->blocks, out->block_count + 1, sizeof *blocks);
    if (!blocks) return leati_h5_no_memory(r);
    out->blocks = blocks;
    unsigned char *data = leati_h5_load_new(r, next.address, next.bytes);
    if (!data) return false;
    size_t start = 0, bytes = (size_t)next.bytes;
    bool continued = out->block_count > 0;
    out->blocks[out->block_count++] = data;
    if (p->version == 2 && continued) { /* section IV.A.1.b: "OCHK", messages, checksum */
        if (memcmp(data, "OCHK", 4) != 0 || !leati_h5_checksum_holds(data, bytes))
            return leati_h5_damaged(r, next.address,
                                    "a block of an object header does not match its checksum");
        start = 4;
        bytes -= 8;
    }
    return parse_messages(r, p, data + start, bytes, next.address);
}

/* Section IV.A.1.a: 16 bytes, then the first block. */
static bool begin_old(leati_h5_reader *r, parse *p, uint64_t address, const unsigned char *prefix) {
    leati_h5_cursor c = leati_h5_cursor_make(prefix, 16);
    leati_h5_skip(&c, 8);
    uint64_t bytes = leati_h5_take(&c, 4);
    p->version = 1;
    return bytes == 0 || add_block(r, p, address + 16, bytes);
}

/* Section IV.A.1.b: "OHDR", times, the length of the first block, messages, checksum. */
static bool begin_new(leati_h5_reader *r, parse *p, uint64_t address) {
    unsigned char prefix[34] = {0};
    uint64_t rest = r->image->size - address;
    if (!leati_h5_load(r, address, rest < sizeof prefix ? rest : sizeof prefix, prefix)) return false;
    leati_h5_cursor c = leati_h5_cursor_make(prefix, sizeof prefix);
    leati_h5_skip(&c, 4);
    unsigned version = (unsigned)leati_h5_take(&c, 1), flags = (unsigned)leati_h5_take(&c, 1);
    if (version != 2) return leati_h5_damaged(r, address, "an object header has an unknown version");
    if (flags & 0x20) leati_h5_skip(&c, 16);
    if (flags & 0x10) leati_h5_skip(&c, 4);
    uint64_t bytes = leati_h5_take(&c, 1 << (flags & 3)), start = (uint64_t)(c.next - prefix);
    if (bytes > most_header_bytes) return leati_h5_damaged(r, address, "an object header is too long");
    unsigned char *whole = leati_h5_load_new(r, address, start + bytes + 4);
    if (!whole) return false;
    bool holds = leati_h5_checksum_holds(whole, (size_t)(start + bytes + 4));
    leati_free(whole);
    if (!holds) return leati_h5_damaged(r, address, "an object header does not match its checksum");
    p->version = 2;
    p->tracks_order = flags & 4;
    return bytes < 8 || add_block(r, p, address + start, bytes);
}

static bool read_blocks(leati_h5_reader *r, parse *p, uint64_t address) {
    unsigned char prefix[16];
    if (!leati_h5_load(r, address, sizeof prefix, prefix)) return false;
    if (memcmp(prefix, "OHDR", 4) == 0) {
        if (!begin_new(r, p, address)) return false;
    } else if (prefix[0] != 1)
        return leati_h5_damaged(r, address, "expected an object header, found other data");
    else if (!begin_old(r, p, address, prefix))
        return false;
    while (p->out->block_count < p->block_count)
        if (!read_block(r, p)) return false;
    return true;
}

bool leati_h5_read_header(leati_h5_reader *r, uint64_t address, leati_h5_header *out) {
    parse p = {.out = out};
    bool complete = read_blocks(r, &p, address);
    leati_free(p.blocks);
    return complete && leati_h5_work(r, 16 + p.bytes / 64);
}
