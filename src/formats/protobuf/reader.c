/* SPDX-License-Identifier: Apache-2.0 */
/* Reads protocol buffers.  Room: formats. */
#include "formats/protobuf/reader.h"

#include <string.h>

bool leati_proto_varint(leati_proto *list, uint64_t *out) {
    *out = 0;
    if (list->at >= list->end) return false;
    for (int shift = 0; shift < 70 && list->at < list->end; shift += 7) {
        const unsigned char byte = *list->at++;
        if (shift < 64) *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return true;
    }
    list->malformed = true;
    list->at = list->end;
    return false;
}

bool leati_proto_fixed(leati_proto *list, int bytes, uint64_t *out) {
    *out = 0;
    if (list->end - list->at < bytes) {
        list->malformed = list->malformed || list->at < list->end;
        list->at = list->end;
        return false;
    }
    for (int i = bytes - 1; i >= 0; --i) *out = *out << 8 | list->at[i];
    list->at += bytes;
    return true;
}

static bool malformed(leati_proto *message) {
    message->malformed = true;
    message->at = message->end;
    return false;
}

bool leati_proto_next(leati_proto *message, leati_proto_field *out) {
    uint64_t key;
    *out = (leati_proto_field){0};
    if (message->at >= message->end) return false;
    if (!leati_proto_varint(message, &key) || key >> 3 == 0 || key >> 3 > INT32_MAX)
        return malformed(message);
    out->number = (int)(key >> 3);
    out->wire = (leati_wire)(key & 7);
    switch (key & 7) {
    case LEATI_WIRE_VARINT: return leati_proto_varint(message, &out->value) || malformed(message);
    case LEATI_WIRE_64: return leati_proto_fixed(message, 8, &out->value) || malformed(message);
    case LEATI_WIRE_32: return leati_proto_fixed(message, 4, &out->value) || malformed(message);
    case LEATI_WIRE_BYTES: break;
    default: return malformed(message);
    }
    if (!leati_proto_varint(message, &out->value) || out->value > (uint64_t)(message->end - message->at))
        return malformed(message);
    out->data = message->at;
    out->bytes = (size_t)out->value;
    message->at += out->bytes;
    return true;
}

float leati_proto_float(uint64_t value) {
    const uint32_t bits = (uint32_t)value;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

double leati_proto_double(uint64_t value) {
    double out;
    memcpy(&out, &value, sizeof out);
    return out;
}
