/* SPDX-License-Identifier: Apache-2.0 */
/* A trace: what each worker, the feed and training did when, as a file that https://ui.perfetto.dev and
 * chrome://tracing open (Trace Event Format, JSON). */
#ifndef LEAT_TRACE_H
#define LEAT_TRACE_H

#include "leat/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque.  Written by the thread that takes batches; externally synchronised.  A forked child writes nothing to the trace that
 *  it inherited, and may close it. */
typedef struct leat_trace leat_trace;

/** Creates the file, or empties it and writes it in place, so that what a killed program has written can be read; it may be
 *  a FIFO or a character device.  Errors: LEAT_EINVAL a directory, block device or socket; LEAT_EIO; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_trace_open(leat_trace **out, const char *path, leat_error *err);

/** Ends the file, after the feeds that write to it are closed.  Sets *trace to NULL; NULL is fine.  Errors: LEAT_EIO
 *  when something could not be written, now or earlier: the file then ends early. */
LEAT_API LEAT_CHECKED leat_status leat_trace_close(leat_trace **trace, leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
