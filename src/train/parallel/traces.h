/* SPDX-License-Identifier: Apache-2.0 */
/* Brings the traces of all ranks into that of rank 0, with one clock.  Room: train. */
#ifndef LEATI_TRAIN_PARALLEL_TRACES_H
#define LEATI_TRAIN_PARALLEL_TRACES_H

#include "dist/dist.h"
#include "feed/stats/trace.h"

typedef struct leati_traces {
    bool merge; /* every rank has a trace, and they will be merged */
    /* On rank 0: the clocks of the ranks (ranks), owned; otherwise NULL. */
    leati_trace_clock *clocks;
} leati_traces;

/* Begins the traces of a fit: compares the clocks of the ranks for the first time.  Every rank makes this call, before
 * anything of the fit is written to its trace; `trace` may be NULL.  Without a trace on every rank nothing is merged.
 * Errors: those of the communicator; LEAT_ENOMEM. */
leat_status leati_traces_begin(leati_traces *traces, leat_dist *dist, leat_trace *trace, leat_error *err);

/* Compares the clocks again, and adds the events of all ranks to the trace of rank 0.  Every rank makes this call if
 * the fit has not failed.  Errors: as leati_traces_begin; LEAT_EIO a trace cannot be read. */
leat_status leati_traces_merge(leati_traces *traces, leat_dist *dist, leat_trace *trace, leat_error *err);

void leati_traces_fini(leati_traces *traces);

#endif
