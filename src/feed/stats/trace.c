/* SPDX-License-Identifier: Apache-2.0 */
/* Writes traces in the Trace Event Format: an array of events, one on each line.  A "process" of the format is a group,
 * and a "thread" is a lane.  The file is written in buffers that end with a complete event.  Readers accept an array
 * without its end, so the file of a program that was killed can be opened, too.  The file is not written with stdio,
 * because a forked worker would write stdio's buffer a second time.  Room: feed. */
#include "feed/stats/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "base/os/file.h"
#include "base/os/fork.h"
#include "base/memory.h"

enum {
    buffer_bytes = 1 << 17,
    name_bytes = 240,                   /* a longer name is cut off */
    escaped_bytes = 6 * name_bytes + 1, /* "\u001f" */
    event_bytes = 2 * escaped_bytes + 512,
    first_thread =
        101 /* viewers show a thread whose number is the number of its process as the main thread */
};

typedef struct lane {
    char *group, *name;
    int process; /* number of the group, from 1 */
} lane;

enum { groups_of_rank = 1000 }; /* numbers of groups that a rank may use */

struct leat_trace {
    uint32_t fork_depth; /* of the process that opened the trace; its children write nothing */
    int fd;
    char *path;
    int64_t origin_ns;
    lane *lanes;
    int lane_count, lane_capacity, process_count;
    int rank;           /* -1: the trace is not of a rank */
    char prefix[96];    /* of the names of groups; "" without ranks */
    off_t read_bytes;   /* bytes of the file that leati_trace_read has given */
    bool has_events;    /* an event was added */
    leat_status status; /* LEAT_EIO: nothing more is written */
    leat_error error;   /* the first error, if status is not LEAT_OK */
    size_t used;
    char buffer[buffer_bytes];
};

static void fail_writing(leat_trace *trace, int number) {
    trace->status = leati_fail_errno(&trace->error, LEAT_EIO, number, "cannot write '%s'", trace->path);
}

/* Returns true in a child process: it has a copy of the buffer that its parent will write to the same file. */
static bool is_inherited(const leat_trace *trace) {
    return trace->fork_depth != leati_fork_depth();
}

static void flush(leat_trace *trace) {
    bool writes = !is_inherited(trace) && trace->used > 0 && trace->status != LEAT_EIO;
    int number = writes ? leati_write_all(trace->fd, trace->buffer, trace->used, -1) : 0;
    if (number != 0) fail_writing(trace, number);
    trace->used = 0;
}

/* Adds an event.  An event that does not fit into the buffer is left out, because half an event would break the
 * file. */
static void LEAT_PRINTF(2, 3) add(leat_trace *trace, const char *format, ...) {
    if (trace->status == LEAT_EIO) return;
    if (trace->used + event_bytes > buffer_bytes) flush(trace);
    const char *separator = trace->has_events ? ",\n" : "\n";
    size_t room = buffer_bytes - trace->used, skip = strlen(separator);
    memcpy(trace->buffer + trace->used, separator, skip);
    va_list values;
    va_start(values, format);
    int length = vsnprintf(trace->buffer + trace->used + skip, room - skip, format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= room - skip) return;
    trace->used += skip + (size_t)length;
    trace->has_events = true;
}

/* Returns the length of the UTF-8 character at `text`, or 0 if there is no valid one. */
static size_t character(const unsigned char *text) {
    if (text[0] < 0x80) return 1;
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4) return 0;
    for (size_t i = 1; i < length; ++i)
        if ((text[i] & 0xc0) != 0x80) return 0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool surrogate = text[0] == 0xed && text[1] > 0x9f, beyond = text[0] == 0xf4 && text[1] > 0x8f;
    return overlong || surrogate || beyond ? 0 : length;
}

/* Escapes a name for a JSON string.  Bytes that are not UTF-8 become U+FFFD. */
static const char *escape(char out[escaped_bytes], const char *name) {
    const unsigned char *next = (const unsigned char *)name, *end = next + strnlen(name, name_bytes);
    char *to = out;
    while (next < end) {
        size_t length = character(next);
        if (next + length > end) break;
        if (length == 0)
            to = stpcpy(to, "\\ufffd");
        else if (*next == '"' || *next == '\\' || *next < 0x20)
            to += snprintf(to, 7, "\\u%04x", *next);
        else
            for (size_t i = 0; i < length; ++i) *to++ = (char)next[i];
        next += length ? length : 1;
    }
    *to = '\0';
    return out;
}

/* A time in microseconds in the notation of the format: "12.345". */
typedef struct micros {
    char text[28];
} micros;

static micros micros_of(int64_t ns) {
    micros out;
    if (ns < 0) ns = 0;
    snprintf(out.text, sizeof out.text, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
    return out;
}

static void name_process(leat_trace *trace, int process, const char *group) {
    char name[escaped_bytes], full[name_bytes + sizeof trace->prefix];
    snprintf(full, sizeof full, "%s%s", trace->prefix, group);
    add(trace, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"%s\"}}", process,
        escape(name, full));
    add(trace, "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%d,\"args\":{\"sort_index\":%d}}",
        process, process);
}

static void name_thread(leat_trace *trace, int number) {
    char name[escaped_bytes];
    const lane *l = &trace->lanes[number];
    add(trace, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
        l->process, first_thread + number, escape(name, l->name));
    add(trace,
        "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%d,\"tid\":%d,\"args\":{\"sort_index\":%d}}",
        l->process, first_thread + number, number);
}

static leat_status grow(leat_trace *trace) {
    if (trace->lane_count < trace->lane_capacity) return LEAT_OK;
    int capacity = trace->lane_capacity ? 2 * trace->lane_capacity : 16;
    lane *lanes = leati_realloc(trace->lanes, (size_t)capacity, sizeof *lanes);
    if (!lanes) return leati_fail_memory(&trace->error, (size_t)capacity * sizeof *lanes, "a trace's lanes");
    trace->lanes = lanes;
    trace->lane_capacity = capacity;
    return LEAT_OK;
}

static leat_status add_lane(leat_trace *trace, const char *group, const char *name, int process) {
    LEATI_TRY(grow(trace));
    lane *l = &trace->lanes[trace->lane_count];
    *l = (lane){.group = leati_strdup(group), .name = leati_strdup(name), .process = process};
    ++trace->lane_count; /* destroy() frees the names, even if only one of them could be copied */
    return l->group && l->name ? LEAT_OK : leati_fail_memory(&trace->error, strlen(name), "a lane's name");
}

int leati_trace_lane(leat_trace *trace, const char *group, const char *name) {
    if (!trace || trace->status != LEAT_OK) return -1;
    int process = 0;
    for (int i = 0; i < trace->lane_count; ++i) {
        const lane *l = &trace->lanes[i];
        if (strcmp(l->group, group) != 0) continue;
        if (strcmp(l->name, name) == 0) return i;
        process = l->process;
    }
    bool first = process == 0;
    if (first) process = ++trace->process_count + (trace->rank > 0 ? trace->rank * groups_of_rank : 0);
    trace->status = add_lane(trace, group, name, process);
    if (trace->status != LEAT_OK) return -1;
    if (first) name_process(trace, process, group);
    name_thread(trace, trace->lane_count - 1);
    return trace->lane_count - 1;
}

static bool has_lane(const leat_trace *trace, int lane_number) {
    return trace && lane_number >= 0 && lane_number < trace->lane_count;
}

void leati_trace_span(leat_trace *trace, int lane_number, const char *name, int64_t start_ns, int64_t end_ns,
                      int64_t pass, int64_t index) {
    if (!has_lane(trace, lane_number)) return;
    char escaped[escaped_bytes], said_pass[40] = "", said_index[40] = "";
    if (start_ns < trace->origin_ns) start_ns = trace->origin_ns;
    if (pass >= 0) snprintf(said_pass, sizeof said_pass, "\"pass\":%" PRId64, pass);
    if (index >= 0)
        snprintf(said_index, sizeof said_index, "%s\"index\":%" PRId64, pass >= 0 ? "," : "", index);
    add(trace, "{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%s,\"dur\":%s,\"args\":{%s%s}}",
        escape(escaped, name), trace->lanes[lane_number].process, first_thread + lane_number,
        micros_of(start_ns - trace->origin_ns).text, micros_of(end_ns - start_ns).text, said_pass,
        said_index);
}

void leati_trace_instant(leat_trace *trace, int lane_number, const char *name, int64_t at_ns) {
    char escaped[escaped_bytes];
    if (!has_lane(trace, lane_number)) return;
    add(trace, "{\"ph\":\"i\",\"s\":\"t\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%s}",
        escape(escaped, name), trace->lanes[lane_number].process, first_thread + lane_number,
        micros_of(at_ns - trace->origin_ns).text);
}

/* The series of the counter has an empty name, because Perfetto would append another name to the counter's name. */
void leati_trace_count(leat_trace *trace, int lane_number, const char *name, int64_t at_ns, int64_t value) {
    char escaped[escaped_bytes];
    if (!has_lane(trace, lane_number)) return;
    add(trace, "{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%s,\"args\":{\"\":%" PRId64 "}}",
        escape(escaped, name), trace->lanes[lane_number].process, first_thread + lane_number,
        micros_of(at_ns - trace->origin_ns).text, value);
}

/* ---- Traces of several ranks ---- */

bool leati_trace_set_rank(leat_trace *trace, int rank, const char *host) {
    struct stat file;
    if (trace->process_count > 0) return trace->rank == rank;
    if (fstat(trace->fd, &file) != 0 || !S_ISREG(file.st_mode)) return false;
    trace->rank = rank;
    snprintf(trace->prefix, sizeof trace->prefix, "rank %d (%s): ", rank, host);
    return true;
}

leat_status leati_trace_read(leat_trace *trace, char **text, size_t *bytes, int64_t *origin_ns,
                             leat_error *err) {
    leati_map map = {0};
    *text = NULL;
    *bytes = 0;
    *origin_ns = trace->origin_ns;
    flush(trace);
    if (trace->status != LEAT_OK) {
        if (err) *err = trace->error;
        return trace->status;
    }
    LEATI_TRY(leati_map_open(&map, trace->path, err));
    const size_t from = (size_t)trace->read_bytes;
    if (map.size > from) {
        *bytes = map.size - from;
        *text = leati_calloc(1, *bytes + 1);
        if (*text) {
            memcpy(*text, map.data + from, *bytes);
            (*text)[*bytes] = '\0';
            trace->read_bytes = (off_t)map.size;
        }
    }
    leati_map_close(&map);
    return *text || *bytes == 0 ? LEAT_OK : leati_fail_memory(err, *bytes, "the events of a trace");
}

int64_t leati_trace_convert(const leati_trace_clock *clock, int64_t at_ns) {
    const int64_t span = clock->at_ns[1] - clock->at_ns[0];
    const double part = span > 0 ? (double)(at_ns - clock->at_ns[0]) / (double)span : 0;
    const double drift = (double)(clock->offset_ns[1] - clock->offset_ns[0]);
    return at_ns + clock->offset_ns[0] + (int64_t)(drift * part);
}

/* Adds one event, with another time if it has a time: `"ts":12.345,`.  Names contain no quotation marks, so that the
 * words are found only there. */
static void add_event(leat_trace *trace, const char *line, size_t bytes, int64_t origin_ns,
                      const leati_trace_clock *clock) {
    static const char key[] = "\"ts\":";
    char event[event_bytes];
    if (bytes >= sizeof event) return;
    memcpy(event, line, bytes);
    event[bytes] = '\0';
    char *time = strstr(event, key);
    if (!time) {
        add(trace, "%s", event);
        return;
    }
    char *rest = NULL;
    time += sizeof key - 1;
    const int64_t us = strtoll(time, &rest, 10);
    const int64_t ns = us * 1000 + (*rest == '.' ? strtoll(rest + 1, &rest, 10) : 0);
    const int64_t at = leati_trace_convert(clock, origin_ns + ns) - trace->origin_ns;
    *time = '\0';
    add(trace, "%s%s%s", event, micros_of(at).text, rest);
}

void leati_trace_add(leat_trace *trace, const char *text, size_t bytes, int64_t origin_ns,
                     const leati_trace_clock *clock) {
    const char *line = text, *end = text + bytes;
    while (line < end) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        const char *last = next ? next : end;
        const char *stop = last > line && last[-1] == ',' ? last - 1 : last;
        if (*line == '{' && stop > line && stop[-1] == '}')
            add_event(trace, line, (size_t)(stop - line), origin_ns, clock);
        line = last + 1;
    }
}

leat_status leat_trace_open(leat_trace **out, const char *path, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(path, err);
    leat_trace *trace = leati_calloc(1, sizeof *trace);
    if (!trace) return leati_fail_memory(err, sizeof *trace, "a trace");
    trace->path = leati_strdup(path);
    leat_status status = trace->path ? leati_stream_open(&trace->fd, path, false, err)
                                     : leati_fail_memory(err, strlen(path) + 1, "a file name");
    if (status != LEAT_OK) {
        leati_free(trace->path);
        leati_free(trace);
        return status;
    }
    trace->rank = -1;
    trace->origin_ns = leati_now_ns();
    trace->fork_depth = leati_fork_depth();
    trace->buffer[trace->used++] = '[';
    *out = trace;
    return LEAT_OK;
}

static void destroy(leat_trace *trace) {
    for (int i = 0; i < trace->lane_count; ++i) {
        leati_free(trace->lanes[i].group);
        leati_free(trace->lanes[i].name);
    }
    leati_free(trace->lanes);
    leati_free(trace->path);
    leati_free(trace);
}

leat_status leat_trace_close(leat_trace **trace, leat_error *err) {
    if (!trace || !*trace) return LEAT_OK;
    leat_trace *t = *trace;
    *trace = NULL;
    flush(t);
    t->used = (size_t)snprintf(t->buffer, sizeof t->buffer, "\n]\n");
    flush(t);
    if (close(t->fd) != 0 && t->status == LEAT_OK) fail_writing(t, errno);
    leat_status status = t->status;
    if (status != LEAT_OK && err) *err = t->error;
    destroy(t);
    return status;
}
