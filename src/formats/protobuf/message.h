/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes protocol buffers: a message is a sequence of fields, each with its number.  Source: the encoding page of
 * protobuf.dev. */
#ifndef LEATI_FORMATS_PROTOBUF_MESSAGE_H
#define LEATI_FORMATS_PROTOBUF_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that grow, zeroed at first.  After a failed allocation `failed` stays set and further calls do nothing. */
typedef struct leati_message {
    unsigned char *data;
    size_t length, capacity;
    bool failed;
} leati_message;

void leati_message_fini(leati_message *message);

/* Append bytes, and numbers as 4 and 8 bytes in little-endian order, without a field. */
void leati_message_raw(leati_message *message, const void *data, size_t bytes);
void leati_message_raw_u32(leati_message *message, uint32_t value);
void leati_message_raw_u64(leati_message *message, uint64_t value);
void leati_message_raw_f64(leati_message *message, double value);

/* Append a field of type int64, int32, bool or enum; of type double; of type bytes. */
void leati_message_int(leati_message *message, int field, int64_t value);
void leati_message_double(leati_message *message, int field, double value);
void leati_message_bytes(leati_message *message, int field, const void *data, size_t bytes);

/* Appends a field of type string.  Its bytes that are not UTF-8 become '?', since readers refuse a message with other
 * strings. */
void leati_message_text(leati_message *message, int field, const char *text);

/* Appends a field of type float. */
void leati_message_float(leati_message *message, int field, float value);
/* Appends a field that is a message; appends the fields of another message. */
void leati_message_inner(leati_message *message, int field, const leati_message *inner);
void leati_message_append(leati_message *message, const leati_message *other);
/* Appends the key and the length of a field of `bytes` bytes, which the caller writes behind the message itself. */
void leati_message_begin_bytes(leati_message *message, int field, size_t bytes);
/* Removes all fields; keeps the memory. */
void leati_message_clear(leati_message *message);

/* Begin and end a field that is a message: the fields between the two calls belong to the inner message.  begin
 * returns the position that end needs. */
size_t leati_message_begin(leati_message *message, int field);
void leati_message_end(leati_message *message, size_t begin);

#endif
