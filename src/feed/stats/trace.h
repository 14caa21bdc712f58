/* SPDX-License-Identifier: Apache-2.0 */
/* What leat itself writes into a trace.  Times are of leati_now_ns.  A trace that is NULL takes nothing. */
#ifndef LEATI_FEED_STATS_TRACE_H
#define LEATI_FEED_STATS_TRACE_H

#include <stdint.h>

#include "base/shared.h"
#include "leat/trace.h"

/* A lane: `group` ("training feed") is what the viewer folds, `name` ("leat-worker/3", "wait") a line in it.  Lanes of the same
 * group and name are one.  Names are copied. */
LEATI_SHARED int leati_trace_lane(leat_trace *trace, const char *group, const char *name);

/* Something that took time.  pass, index < 0: not said. */
LEATI_SHARED void leati_trace_span(leat_trace *trace, int lane, const char *name, int64_t start_ns,
                                   int64_t end_ns, int64_t pass, int64_t index);

/* Something that happened at a moment. */
void leati_trace_instant(leat_trace *trace, int lane, const char *name, int64_t at_ns);

/* A number that changes over time, drawn as a curve. */
void leati_trace_count(leat_trace *trace, int lane, const char *name, int64_t at_ns, int64_t value);

#endif
