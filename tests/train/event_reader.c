/* SPDX-License-Identifier: Apache-2.0 */
/* Reads event files. */
#include "train/event_reader.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t slow_crc32c(const unsigned char *data, size_t count) {
    uint32_t crc = UINT32_MAX;
    for (size_t bit = 0; bit < 8 * count; ++bit) {
        uint32_t input = data[bit / 8] >> (bit % 8) & 1;
        crc = (crc ^ input) & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
    return crc ^ UINT32_MAX;
}

static uint64_t little_endian(const unsigned char *data, int count) {
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; --i) value = value << 8 | data[i];
    return value;
}

/* ---- Messages ---- */

/* A field at a position of a message. */
typedef struct field_view {
    int number, wire_type;
    uint64_t value;
    bytes data;
} field_view;

static uint64_t take_varint(bytes message, size_t *at) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(shift < 70 && *at < message.count);
        unsigned char byte = message.data[(*at)++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
}

static field_view take_field(bytes message, size_t *at) {
    uint64_t key = take_varint(message, at);
    field_view found = {.number = (int)(key >> 3), .wire_type = (int)(key & 7)};
    size_t count = 0;
    switch (found.wire_type) {
    case 0: found.value = take_varint(message, at); return found;
    case 1: count = 8; break;
    case 2: count = (size_t)take_varint(message, at); break;
    case 5: count = 4; break;
    default: fail_msg("a field with wire type %d", found.wire_type);
    }
    assert_true(count <= message.count - *at);
    found.data = (bytes){message.data + *at, count};
    if (found.wire_type != 2) found.value = little_endian(found.data.data, (int)count);
    *at += count;
    return found;
}

static bool find_field(bytes message, int number, int n, field_view *out) {
    for (size_t at = 0; at < message.count;) {
        *out = take_field(message, &at);
        if (out->number == number && n-- == 0) return true;
    }
    return false;
}

bool field_number(bytes message, int field, int n, uint64_t *value) {
    field_view found;
    *value = 0;
    if (!find_field(message, field, n, &found)) return false;
    assert_int_not_equal(found.wire_type, 2);
    *value = found.value;
    return true;
}

bool field_bytes(bytes message, int field, int n, bytes *value) {
    field_view found;
    *value = (bytes){0};
    if (!find_field(message, field, n, &found)) return false;
    assert_int_equal(found.wire_type, 2);
    *value = found.data;
    return true;
}

const char *field_text(bytes message, int field, int n, char out[256]) {
    bytes text;
    field_bytes(message, field, n, &text);
    snprintf(out, 256, "%.*s", (int)text.count, text.count ? (const char *)text.data : "");
    return out;
}

/* ---- Events ---- */

static void read_tensor(event *out, bytes tensor) {
    uint64_t number;
    bytes shape, dim;
    assert_true(field_number(tensor, 1, 0, &number));
    out->dtype = (int)number;
    assert_true(field_bytes(tensor, 2, 0, &shape));
    for (; field_bytes(shape, 2, out->rank, &dim); ++out->rank) {
        assert_true(out->rank < 4 && field_number(dim, 1, 0, &number));
        out->dims[out->rank] = (int64_t)number;
    }
    assert_true(field_bytes(tensor, 4, 0, &out->content));
}

static void read_summary(event *out, bytes summary) {
    bytes value, other, metadata, plugin, tensor;
    uint64_t number;
    char text[256];
    assert_true(field_bytes(summary, 1, 0, &value));
    assert_false(field_bytes(summary, 1, 1, &other));
    field_text(value, 1, 0, out->tag);
    assert_true(field_bytes(value, 9, 0, &metadata) && field_bytes(metadata, 1, 0, &plugin));
    snprintf(out->plugin, sizeof out->plugin, "%s", field_text(plugin, 1, 0, text));
    assert_true(field_number(metadata, 4, 0, &number));
    out->data_class = (int)number;
    assert_true(field_bytes(value, 8, 0, &tensor));
    read_tensor(out, tensor);
}

static event read_event(bytes message) {
    event out = {0};
    uint64_t number;
    bytes summary;
    char text[256];
    assert_true(field_number(message, 1, 0, &number));
    memcpy(&out.wall_time, &number, sizeof out.wall_time);
    field_number(message, 2, 0, &number);
    out.step = (int64_t)number;
    snprintf(out.version, sizeof out.version, "%s", field_text(message, 3, 0, text));
    field_bytes(message, 4, 0, &out.graph);
    if (field_bytes(message, 5, 0, &summary)) read_summary(&out, summary);
    return out;
}

static bytes read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("no file %s", path);
    fseek(file, 0, SEEK_END);
    size_t count = (size_t)ftell(file);
    unsigned char *data = malloc(count + 1);
    assert_non_null(data);
    rewind(file);
    assert_int_equal(fread(data, 1, count, file), count);
    fclose(file);
    return (bytes){data, count};
}

static void check_crc(const unsigned char *stored, const unsigned char *data, size_t count) {
    uint32_t masked = (uint32_t)little_endian(stored, 4) - 0xa282ead8U;
    assert_int_equal(masked << 15 | masked >> 17, slow_crc32c(data, count));
}

/* Returns the data of the record at *at, and moves *at behind the record. */
static bytes take_record(bytes file, size_t *at) {
    assert_true(file.count - *at >= 16);
    const unsigned char *record = file.data + *at;
    uint64_t count = little_endian(record, 8);
    assert_true(count <= file.count - *at - 16);
    *at += 16 + (size_t)count;
    return (bytes){record + 12, (size_t)count};
}

void read_events(event_list *out, const char *path) {
    out->file = read_file(path);
    out->count = 0;
    for (size_t at = 0; at < out->file.count;) {
        bytes message = take_record(out->file, &at);
        check_crc(message.data - 4, message.data - 12, 8);
        check_crc(message.data + message.count, message.data, message.count);
        assert_true(out->count < EVENT_MAX);
        out->events[out->count++] = read_event(message);
    }
    assert_true(out->count > 0);
    assert_string_equal(out->events[0].version, "brain.Event:2");
}

void free_events(event_list *list) {
    free((void *)(uintptr_t)list->file.data);
    *list = (event_list){0};
}

int tag_count(const event_list *list, const char *tag) {
    int count = 0;
    for (int i = 0; i < list->count; ++i)
        if (strcmp(list->events[i].tag, tag) == 0) ++count;
    return count;
}

const event *tag_at(const event_list *list, const char *tag, int n) {
    for (int i = 0; i < list->count; ++i)
        if (strcmp(list->events[i].tag, tag) == 0 && n-- == 0) return &list->events[i];
    fail_msg("no event %s", tag);
    return NULL;
}

float scalar_of(const event *from) {
    float value = 0;
    assert_int_equal(from->dtype, 1);
    assert_int_equal(from->rank, 0);
    assert_int_equal(from->content.count, sizeof value);
    assert_string_equal(from->plugin, "scalars");
    assert_int_equal(from->data_class, 1);
    memcpy(&value, from->content.data, sizeof value);
    return value;
}

void clear_wall_times(bytes file) {
    for (size_t at = 0; at < file.count;) {
        bytes message = take_record(file, &at);
        unsigned char *data = (unsigned char *)(uintptr_t)message.data;
        assert_int_equal(data[0], 1 << 3 | 1); /* wall_time is the first field */
        memset(data + 1, 0, 8);
        memset(data + message.count, 0, 4);
    }
}
