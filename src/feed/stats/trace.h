/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with which leat itself writes into a trace.  Times come from leati_now_ns().  The functions do nothing if
 * the trace is NULL. */
#ifndef LEATI_FEED_STATS_TRACE_H
#define LEATI_FEED_STATS_TRACE_H

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

#endif
