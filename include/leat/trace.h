/* SPDX-License-Identifier: Apache-2.0 */
/* A trace: a file that records what each worker, the feed and training did, and when.  https://ui.perfetto.dev and
 * chrome://tracing open it (Trace Event Format, JSON). */
#ifndef LEAT_TRACE_H
#define LEAT_TRACE_H

#include "leat/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A trace file that is being written.  Opaque.  The thread that takes batches from a feed writes to it.  A
 *  forked child writes nothing to an inherited trace, and may close it.  Threads: externally synchronised. */
typedef struct leat_trace leat_trace;

/** Creates the file, or truncates an existing one.  leat writes the file in place, so that the trace of a killed
 *  program can be read; the file may be a FIFO or a character device.
 *  @param[out] out  New trace, owned by the caller (leat_trace_close); NULL on failure.
 *  Errors: LEAT_EINVAL the path is a directory, a block device or a socket; LEAT_EIO; LEAT_ENOMEM.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_trace_open(leat_trace **out, const char *path, leat_error *err);

/** Completes and closes the file, and sets *trace to NULL; NULL is fine.  Close all feeds that write to the trace
 *  before.
 *  Errors: LEAT_EIO something could not be written, now or earlier: the file then ends early. */
LEAT_API LEAT_CHECKED leat_status leat_trace_close(leat_trace **trace, leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
