/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of TensorBoard's event files, written without the code that writes them. */
#ifndef LEAT_TESTS_TRAIN_EVENT_READER_H
#define LEAT_TESTS_TRAIN_EVENT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a file or of a message; borrowed unless said otherwise. */
typedef struct bytes {
    const unsigned char *data;
    size_t count;
} bytes;

/* Returns the value of a field's n-th occurrence in a message: a number, the bits of a double, or bytes.  false: the
 * message has no such occurrence.  Fails the test if the message is damaged. */
bool field_number(bytes message, int field, int n, uint64_t *value);
bool field_bytes(bytes message, int field, int n, bytes *value);
/* Like field_bytes, but copies a text; "" if there is none. */
const char *field_text(bytes message, int field, int n, char out[256]);

/* An event.  For a summary: its tag, the plugin that shows it, and its tensor. */
typedef struct event {
    double wall_time;
    int64_t step;
    bytes graph;      /* a GraphDef; count 0: none */
    char version[32]; /* "" except in the first event */
    char tag[256];    /* "": no summary */
    char plugin[32];
    int data_class, dtype;
    int rank;
    int64_t dims[4];
    bytes content;
} event;

enum { EVENT_MAX = 512 };

typedef struct event_list {
    bytes file; /* owned */
    int count;
    event events[EVENT_MAX];
} event_list;

/* Reads a file.  Fails the test if the framing, a checksum or a message is wrong. */
void read_events(event_list *out, const char *path);
void free_events(event_list *list);

/* Returns the number of events with this tag; the n-th of them. */
int tag_count(const event_list *list, const char *tag);
const event *tag_at(const event_list *list, const char *tag, int n);
/* Returns the value of a scalar. */
float scalar_of(const event *from);

/* Replaces the wall times of a file, and the checksums that depend on them, by zeros. */
void clear_wall_times(bytes file);

/* CRC-32C, bit by bit. */
uint32_t slow_crc32c(const unsigned char *data, size_t count);

#endif
