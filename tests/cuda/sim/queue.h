/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and graphs of the simulated GPU.  Work is held back until something waits for it, or runs early by
 * chance; the work of several streams is interleaved by chance, as far as their events allow.  The functions return
 * what CUDA's functions return. */
#ifndef LEAT_TESTS_CUDA_SIM_QUEUE_H
#define LEAT_TESTS_CUDA_SIM_QUEUE_H

#include <cuda.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

/* One piece of work. */
struct sim_work {
    std::string what; /* for reports: "kernel leati_cuda_copy" */
    std::function<void()> run;
    bool on_host = false; /* a function of the host, which cannot access the GPU's memory */
    std::function<bool()>
        ready; /* for work that waits for another process: whether it can run; none: it can */
    /* Pinned memory that the work uses; bytes == 0: none. */
    uintptr_t pinned = 0;
    size_t pinned_bytes = 0;
};

CUresult sim_stream_create(CUstream *out);
CUresult sim_stream_destroy(CUstream stream);
/* Adds work to a stream, or to the graph that the stream's capture builds. */
CUresult sim_stream_add(CUstream stream, sim_work work);
CUresult sim_stream_synchronize(CUstream stream);
CUresult sim_stream_query(CUstream stream);
CUresult sim_stream_wait_event(CUstream stream, CUevent event);
bool sim_is_capturing(CUstream stream);

CUresult sim_event_create(CUevent *out, unsigned flags);
CUresult sim_event_destroy(CUevent event);
CUresult sim_event_record(CUevent event, CUstream stream);
CUresult sim_event_query(CUevent event);
CUresult sim_event_synchronize(CUevent event);
CUresult sim_event_elapsed(float *milliseconds, CUevent from, CUevent to);

CUresult sim_capture_begin(CUstream stream, CUstreamCaptureMode mode);
CUresult sim_capture_end(CUstream stream, CUgraph *out);
/* For a call that a capture of this thread may forbid: then the capture becomes invalid, and the result is an error. */
CUresult sim_capture_check_unsafe(void);
/* Makes the stream's capture fail at its end. */
void sim_capture_invalidate(CUstream stream);

CUresult sim_graph_instantiate(CUgraphExec *out, CUgraph graph);
CUresult sim_graph_launch(CUgraphExec graph, CUstream stream);
CUresult sim_graph_destroy(CUgraph graph);
CUresult sim_graph_exec_check(CUgraphExec graph);
CUresult sim_graph_exec_destroy(CUgraphExec graph);

/* Returns true if pending work uses some of this pinned memory. */
bool sim_is_in_use(uintptr_t at, size_t bytes);
/* Forgets all pending work, after a failure from which CUDA does not recover. */
void sim_drop_pending(void);
/* Returns true while a function of the host runs as a part of a stream. */
bool sim_in_host_function(void);
/* Returns the number of streams, events and graphs that were not destroyed. */
size_t sim_object_count(void);

#endif
