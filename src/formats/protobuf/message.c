/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes protocol buffers.  Room: formats. */
#include "formats/protobuf/message.h"

#include <string.h>

#include "base/memory.h"

enum { WIRE_VARINT = 0, WIRE_64_BITS = 1, WIRE_BYTES = 2, WIRE_32_BITS = 5, VARINT_BYTES = 10 };

void leati_message_fini(leati_message *message) {
    leati_free(message->data);
    *message = (leati_message){0};
}

static bool reserve(leati_message *message, size_t more) {
    if (message->failed) return false;
    if (more <= message->capacity - message->length) return true;
    size_t capacity = message->capacity ? message->capacity : 1024;
    while (capacity - message->length < more && capacity <= SIZE_MAX / 2) capacity *= 2;
    unsigned char *data = leati_realloc(message->data, capacity, 1);
    if (!data || capacity - message->length < more) message->failed = true;
    if (!data) return false;
    message->data = data;
    message->capacity = capacity;
    return !message->failed;
}

void leati_message_raw(leati_message *message, const void *data, size_t bytes) {
    if (bytes == 0 || !reserve(message, bytes)) return;
    memcpy(message->data + message->length, data, bytes);
    message->length += bytes;
}

static void raw_little_endian(leati_message *message, uint64_t value, size_t bytes) {
    unsigned char data[8];
    for (size_t i = 0; i < bytes; ++i) data[i] = (unsigned char)(value >> 8 * i);
    leati_message_raw(message, data, bytes);
}

void leati_message_raw_u32(leati_message *message, uint32_t value) {
    raw_little_endian(message, value, 4);
}

void leati_message_raw_u64(leati_message *message, uint64_t value) {
    raw_little_endian(message, value, 8);
}

void leati_message_raw_f64(leati_message *message, double value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    leati_message_raw_u64(message, bits);
}

/* Encodes a number in groups of 7 bits, the lowest group first, and returns the number of bytes. */
static size_t encode(unsigned char out[VARINT_BYTES], uint64_t value) {
    size_t bytes = 0;
    for (; value >= 0x80; value >>= 7) out[bytes++] = (unsigned char)(value | 0x80);
    out[bytes++] = (unsigned char)value;
    return bytes;
}

static void add_varint(leati_message *message, uint64_t value) {
    unsigned char data[VARINT_BYTES];
    leati_message_raw(message, data, encode(data, value));
}

static void add_key(leati_message *message, int field, int wire_type) {
    add_varint(message, (uint64_t)field << 3 | (uint64_t)wire_type);
}

void leati_message_int(leati_message *message, int field, int64_t value) {
    add_key(message, field, WIRE_VARINT);
    add_varint(message, (uint64_t)value);
}

void leati_message_double(leati_message *message, int field, double value) {
    add_key(message, field, WIRE_64_BITS);
    leati_message_raw_f64(message, value);
}

void leati_message_bytes(leati_message *message, int field, const void *data, size_t bytes) {
    add_key(message, field, WIRE_BYTES);
    add_varint(message, bytes);
    leati_message_raw(message, data, bytes);
}

/* Returns the number of bytes of the UTF-8 character at `at`, which a zero byte follows at some place; 0 if the byte
 * there begins no character.  Source: Unicode, table 3-7. */
static size_t character_bytes(const unsigned char *at) {
    static const struct {
        unsigned char first, last, low, high; /* range of the first byte, range of the second byte */
        size_t bytes;
    } forms[] = {{0x01, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                 {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                 {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    size_t form = 0, count = sizeof forms / sizeof *forms;
    while (form < count && (at[0] < forms[form].first || at[0] > forms[form].last)) ++form;
    if (form == count) return 0;
    if (forms[form].bytes > 1 && (at[1] < forms[form].low || at[1] > forms[form].high)) return 0;
    for (size_t i = 2; i < forms[form].bytes; ++i)
        if ((at[i] & 0xC0) != 0x80) return 0;
    return forms[form].bytes;
}

void leati_message_text(leati_message *message, int field, const char *text) {
    size_t length = strlen(text);
    leati_message_bytes(message, field, text, length);
    if (message->failed) return;
    unsigned char *copy = message->data + message->length - length;
    for (size_t i = 0; i < length;) {
        size_t bytes = character_bytes((const unsigned char *)text + i);
        if (bytes == 0) copy[i] = '?';
        i += bytes ? bytes : 1;
    }
}

size_t leati_message_begin(leati_message *message, int field) {
    add_key(message, field, WIRE_BYTES);
    return message->length;
}

void leati_message_end(leati_message *message, size_t begin) {
    unsigned char length[VARINT_BYTES];
    size_t inner = message->length - begin, bytes = encode(length, inner);
    if (!reserve(message, bytes)) return;
    memmove(message->data + begin + bytes, message->data + begin, inner);
    memcpy(message->data + begin, length, bytes);
    message->length += bytes;
}

void leati_message_float(leati_message *message, int field, float value) {
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    add_key(message, field, WIRE_32_BITS);
    leati_message_raw_u32(message, bits);
}

void leati_message_begin_bytes(leati_message *message, int field, size_t bytes) {
    add_key(message, field, WIRE_BYTES);
    add_varint(message, bytes);
}

void leati_message_append(leati_message *message, const leati_message *other) {
    message->failed |= other->failed;
    leati_message_raw(message, other->data, other->length);
}

void leati_message_inner(leati_message *message, int field, const leati_message *inner) {
    leati_message_begin_bytes(message, field, inner->length);
    leati_message_append(message, inner);
}

void leati_message_clear(leati_message *message) {
    message->length = 0;
}
