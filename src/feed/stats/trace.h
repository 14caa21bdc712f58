/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with which leat itself writes into a trace.  Times come from leati_now_ns().  The functions do nothing if
 * the trace is NULL. */
#ifndef LEATI_FEED_STATS_TRACE_H
#define LEATI_FEED_STATS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/shared.h"
#include "leat/trace.h"

/* Returns the number of a lane, which is a line in the viewer with the title `name` ("leat-worker/3", "wait") in a
 * group that the viewer can fold, `group` ("training feed").  The same group and name give the same lane.  The names
 * are copied. */
LEATI_SHARED int leati_trace_lane(leat_trace *trace, const char *group, const char *name);

/* Adds an event with a duration; a negative pass or index is left out. */
LEATI_SHARED void leati_trace_span(leat_trace *trace, int lane, const char *name, int64_t start_ns,
                                   int64_t end_ns, int64_t pass, int64_t index);

/* Adds an event without a duration. */
void leati_trace_instant(leat_trace *trace, int lane, const char *name, int64_t at_ns);

/* Adds a value of a number that changes over time; the viewer draws a curve. */
void leati_trace_count(leat_trace *trace, int lane, const char *name, int64_t at_ns, int64_t value);

/* Lets the groups of this trace be those of a rank: their names begin with "rank 2 (b): ", and no group of another rank
 * has their numbers.  Returns false if the trace already has groups that are not of this rank, or is
 * no regular file, which can be read back. */
LEATI_SHARED bool leati_trace_set_rank(leat_trace *trace, int rank, const char *host);

/* Gives a copy of the events that were added since the last call, as the lines of the file, and the origin of their
 * times.  The caller frees *text with leati_free.  Errors: LEAT_EIO the file cannot be read, or an event could not be
 * written; LEAT_ENOMEM. */
LEATI_SHARED leat_status leati_trace_read(leat_trace *trace, char **text, size_t *bytes, int64_t *origin_ns,
                                          leat_error *err);

/* The clock of another process: its time t is t + offset_ns[0] at at_ns[0], t + offset_ns[1] at at_ns[1] and linear
 * between and beyond; at_ns are its own times. */
typedef struct leati_trace_clock {
    int64_t at_ns[2], offset_ns[2];
} leati_trace_clock;

/* Converts a time of the other process. */
int64_t leati_trace_convert(const leati_trace_clock *clock, int64_t at_ns);

/* Adds the events of another process, as leati_trace_read gives them. */
LEATI_SHARED void leati_trace_add(leat_trace *trace, const char *text, size_t bytes, int64_t origin_ns,
                                  const leati_trace_clock *clock);

#endif
