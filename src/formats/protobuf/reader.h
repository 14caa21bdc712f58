/* SPDX-License-Identifier: Apache-2.0 */
/* Reads protocol buffers: walks over the fields of a message, within its bytes.  The bytes may come from anybody: a
 * length beyond the end, a varint of more than 10 bytes or an unknown wire type ends the walk as malformed.  Source:
 * the encoding page of protobuf.dev. */
#ifndef LEATI_FORMATS_PROTOBUF_READER_H
#define LEATI_FORMATS_PROTOBUF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of a message that are still to be read. */
typedef struct leati_proto {
    const unsigned char *at, *end;
    bool malformed;
} leati_proto;

typedef enum leati_wire {
    LEATI_WIRE_VARINT = 0,
    LEATI_WIRE_64 = 1,
    LEATI_WIRE_BYTES = 2,
    LEATI_WIRE_32 = 5
} leati_wire;

typedef struct leati_proto_field {
    int number;
    leati_wire wire;
    uint64_t value; /* of varints, and of 4 or 8 bytes in little-endian order */
    const unsigned char *data;
    size_t bytes; /* of LEATI_WIRE_BYTES */
} leati_proto_field;

static inline leati_proto leati_proto_of(const void *data, size_t bytes) {
    const unsigned char *begin = data;
    return (leati_proto){begin, bytes > 0 ? begin + bytes : begin, false};
}

/* Reads the next field; returns false at the end, and if the message is malformed. */
bool leati_proto_next(leati_proto *message, leati_proto_field *out);

/* Read the next number of a packed list of varints, or of 4 or 8 bytes; return false as above. */
bool leati_proto_varint(leati_proto *list, uint64_t *out);
bool leati_proto_fixed(leati_proto *list, int bytes, uint64_t *out);

/* Returns a float whose bits are the low 32 bits of a field's value. */
float leati_proto_float(uint64_t value);
double leati_proto_double(uint64_t value);

#endif
