/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and graphs of the simulated GPU (queue.h). */
#include "cuda/sim/queue.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "cuda/sim/chance.h"
#include "cuda/sim/memory.h"

namespace {

/* One record of an event: what waits for the event waits for its latest record. */
struct mark {
    bool done = false;
    int64_t ns = 0;
};

struct node {
    sim_work work;
    std::vector<size_t> after; /* nodes of the same graph that run before */
    std::shared_ptr<mark> waits, marks;
};
typedef std::vector<node> node_list;

/* Work that was given to a stream at once: one node, or a launch of a graph. */
struct batch {
    std::shared_ptr<const node_list> nodes;
    std::vector<size_t> missing; /* by node: nodes that must run before */
    std::vector<size_t> ready;
    size_t left = 0;
    std::shared_ptr<mark> before, finished; /* graphs: the previous launch and this one */
};

struct capture {
    CUgraph graph;
    CUstream origin;
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool invalid = false;
};

} // namespace

struct CUgraph_st {
    node_list nodes;
};
struct CUgraphExec_st {
    std::shared_ptr<const node_list> nodes;
    std::shared_ptr<mark> latest;
};
struct CUstream_st {
    std::deque<batch> pending;
    std::shared_ptr<capture> recording; /* NULL: no capture */
    std::vector<size_t> tail;           /* the last nodes of the stream in the graph that is captured */
};
struct CUevent_st {
    bool timing = true;
    std::shared_ptr<mark> latest;       /* NULL: not recorded yet */
    std::shared_ptr<capture> recording; /* NULL: the latest record was not captured */
    std::vector<size_t> tail;
};

namespace {

/* Handles are not used again, so that the use of a destroyed object is noticed. */
template <typename T> struct registry {
    std::vector<std::unique_ptr<T>> all;
    std::unordered_set<const T *> live;
    T *make() {
        all.push_back(std::make_unique<T>());
        live.insert(all.back().get());
        return all.back().get();
    }
    bool knows(const T *handle) const {
        return live.count(handle) == 1;
    }
    void destroy(T *handle) {
        live.erase(handle);
    }
};
registry<CUstream_st> streams;
registry<CUevent_st> events;
registry<CUgraph_st> graphs;
registry<CUgraphExec_st> execs;
std::vector<std::shared_ptr<capture>> captures;
bool in_host_function;

int64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<int64_t>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

/* ---- Running ---- */

batch make_batch(const std::shared_ptr<const node_list> &nodes) {
    batch b;
    b.nodes = nodes;
    b.left = nodes->size();
    b.missing.resize(nodes->size());
    for (size_t i = 0; i < nodes->size(); ++i) {
        b.missing[i] = (*nodes)[i].after.size();
        if (b.missing[i] == 0) b.ready.push_back(i);
    }
    return b;
}

bool can_run(const node &n) {
    return (!n.waits || n.waits->done) && (!n.work.ready || n.work.ready());
}

/* Returns true if the stream's next work waits for another process. */
bool waits_for_others(const CUstream_st &stream) {
    if (stream.pending.empty()) return false;
    const batch &b = stream.pending.front();
    return std::any_of(b.ready.begin(), b.ready.end(),
                       [&](size_t i) { return static_cast<bool>((*b.nodes)[i].work.ready); });
}

bool can_step(const CUstream_st &stream) {
    if (stream.pending.empty()) return false;
    const batch &b = stream.pending.front();
    if (b.before && !b.before->done) return false;
    if (b.left == 0) return true;
    return std::any_of(b.ready.begin(), b.ready.end(), [&](size_t i) { return can_run((*b.nodes)[i]); });
}

void run_work(const sim_work &work) {
    if (work.pinned_bytes && !sim_is_pinned(work.pinned, work.pinned_bytes))
        sim_report("%s uses pinned memory that has been freed", work.what.c_str());
    if (!work.run) return;
    sim_doing = work.what.c_str();
    if (work.on_host)
        sim_close_memory();
    else
        sim_open_memory();
    in_host_function = work.on_host;
    work.run();
    in_host_function = false;
    if (!work.on_host) sim_check_margins();
    sim_doing = nullptr;
}

/* Runs one node of the stream's first batch; can_step has returned true. */
void step(CUstream_st &stream) {
    batch &b = stream.pending.front();
    if (b.left > 0) {
        size_t k = sim_below(static_cast<uint32_t>(b.ready.size()));
        while (!can_run((*b.nodes)[b.ready[k]])) k = (k + 1) % b.ready.size();
        size_t chosen = b.ready[k];
        const node &n = (*b.nodes)[chosen];
        b.ready[k] = b.ready.back();
        b.ready.pop_back();
        run_work(n.work);
        if (n.marks) {
            n.marks->done = true;
            n.marks->ns = now_ns();
        }
        for (size_t i = chosen + 1; i < b.nodes->size(); ++i)
            for (size_t before : (*b.nodes)[i].after)
                if (before == chosen && --b.missing[i] == 0) b.ready.push_back(i);
        --b.left;
    }
    if (b.left > 0) return;
    if (b.finished) b.finished->done = true;
    stream.pending.pop_front();
}

/* Runs one step of a stream that chance picks.  Returns false if no stream can do anything. */
bool step_any() {
    std::vector<CUstream_st *> able;
    for (const auto &stream : streams.all)
        if (can_step(*stream)) able.push_back(stream.get());
    if (able.empty()) return false;
    step(*able[sim_below(static_cast<uint32_t>(able.size()))]);
    return true;
}

template <typename Condition> void run_until(Condition condition) {
    const timespec pause = {0, 50000};
    while (!condition()) {
        if (step_any()) continue;
        if (std::none_of(streams.all.begin(), streams.all.end(),
                         [](const auto &stream) { return waits_for_others(*stream); }))
            sim_report("the streams wait for each other");
        nanosleep(&pause, nullptr);
    }
    sim_close_memory();
}

/* The GPU works while the host adds more: now and then it runs a few steps. */
void run_early() {
    if (sim_below(8) != 0) return;
    for (uint32_t steps = 1 + sim_below(6); steps > 0 && step_any(); --steps) {
    }
    sim_close_memory();
}

/* ---- Captures ---- */

CUresult check_stream(CUstream stream) {
    return stream && streams.knows(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult invalidate(const std::shared_ptr<capture> &recording, CUresult result) {
    recording->invalid = true;
    return result;
}

CUresult add(CUstream stream, node n) {
    if (!stream->recording) {
        stream->pending.push_back(make_batch(std::make_shared<node_list>(1, std::move(n))));
        run_early();
        return CUDA_SUCCESS;
    }
    if (stream->recording->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    node_list &nodes = stream->recording->graph->nodes;
    n.after = stream->tail;
    stream->tail = {nodes.size()};
    nodes.push_back(std::move(n));
    return CUDA_SUCCESS;
}

/* Returns true if all nodes lead to one of the nodes in `tail`. */
bool is_joined(const node_list &nodes, const std::vector<size_t> &tail) {
    std::vector<bool> reached(nodes.size());
    for (size_t i : tail) reached[i] = true;
    for (size_t i = nodes.size(); i-- > 0;)
        for (size_t before : nodes[i].after)
            if (reached[i]) reached[before] = true;
    return std::find(reached.begin(), reached.end(), false) == reached.end();
}

} // namespace

/* ---- Streams ---- */

CUresult sim_stream_create(CUstream *out) {
    *out = streams.make();
    return CUDA_SUCCESS;
}

CUresult sim_stream_destroy(CUstream stream) {
    if (check_stream(stream) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->recording) return invalidate(stream->recording, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    streams.destroy(stream); /* Its pending work still runs, as CUDA says. */
    return CUDA_SUCCESS;
}

CUresult sim_stream_add(CUstream stream, sim_work work) {
    if (check_stream(stream) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
    node n;
    n.work = std::move(work);
    return add(stream, std::move(n));
}

CUresult sim_stream_synchronize(CUstream stream) {
    if (check_stream(stream) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->recording) return invalidate(stream->recording, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    run_until([&] { return stream->pending.empty(); });
    return CUDA_SUCCESS;
}

CUresult sim_stream_query(CUstream stream) {
    if (check_stream(stream) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->recording) return invalidate(stream->recording, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    bool done = stream->pending.empty();
    if (!done) step_any(); /* Who asks again and again sees the end of the work. */
    sim_close_memory();
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult sim_stream_wait_event(CUstream stream, CUevent event) {
    if (check_stream(stream) != CUDA_SUCCESS || !events.knows(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (event->recording) {
        if (event->recording->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (stream->recording && stream->recording != event->recording) {
            event->recording->invalid = true;
            return invalidate(stream->recording, CUDA_ERROR_STREAM_CAPTURE_MERGE);
        }
        stream->recording = event->recording;
        for (size_t i : event->tail)
            if (std::find(stream->tail.begin(), stream->tail.end(), i) == stream->tail.end())
                stream->tail.push_back(i);
        return CUDA_SUCCESS;
    }
    if (stream->recording) return invalidate(stream->recording, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (!event->latest) return CUDA_SUCCESS;
    node n;
    n.work.what = "a wait for an event";
    n.waits = event->latest;
    return add(stream, std::move(n));
}

bool sim_is_capturing(CUstream stream) {
    return check_stream(stream) == CUDA_SUCCESS && stream->recording;
}

/* ---- Events ---- */

CUresult sim_event_create(CUevent *out, unsigned flags) {
    *out = events.make();
    (*out)->timing = !(flags & CU_EVENT_DISABLE_TIMING);
    return CUDA_SUCCESS;
}

CUresult sim_event_destroy(CUevent event) {
    if (!events.knows(event)) return CUDA_ERROR_INVALID_HANDLE;
    event->latest = nullptr;
    event->recording = nullptr;
    events.destroy(event);
    return CUDA_SUCCESS;
}

CUresult sim_event_record(CUevent event, CUstream stream) {
    if (check_stream(stream) != CUDA_SUCCESS || !events.knows(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->recording) {
        if (stream->recording->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        event->recording = stream->recording;
        event->tail = stream->tail;
        return CUDA_SUCCESS;
    }
    event->recording = nullptr;
    event->latest = std::make_shared<mark>();
    node n;
    n.work.what = "the record of an event";
    n.marks = event->latest;
    return add(stream, std::move(n));
}

static CUresult check_event(CUevent event) {
    if (!events.knows(event)) return CUDA_ERROR_INVALID_HANDLE;
    return event->recording ? invalidate(event->recording, CUDA_ERROR_CAPTURED_EVENT) : CUDA_SUCCESS;
}

CUresult sim_event_query(CUevent event) {
    CUresult result = check_event(event);
    if (result != CUDA_SUCCESS || !event->latest) return result;
    bool done = event->latest->done;
    if (!done) step_any();
    sim_close_memory();
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult sim_event_synchronize(CUevent event) {
    CUresult result = check_event(event);
    if (result != CUDA_SUCCESS || !event->latest) return result;
    run_until([&] { return event->latest->done; });
    return CUDA_SUCCESS;
}

CUresult sim_event_elapsed(float *milliseconds, CUevent from, CUevent to) {
    for (CUevent event : {from, to}) {
        CUresult result = check_event(event);
        if (result != CUDA_SUCCESS) return result;
        if (!event->latest || !event->timing) return CUDA_ERROR_INVALID_HANDLE;
        if (!event->latest->done) return CUDA_ERROR_NOT_READY;
    }
    *milliseconds = static_cast<float>(static_cast<double>(to->latest->ns - from->latest->ns) / 1e6);
    return CUDA_SUCCESS;
}

/* ---- Captures and graphs ---- */

CUresult sim_capture_begin(CUstream stream, CUstreamCaptureMode mode) {
    if (check_stream(stream) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->recording) return CUDA_ERROR_ILLEGAL_STATE;
    auto recording = std::make_shared<capture>();
    recording->graph = graphs.make();
    recording->origin = stream;
    recording->mode = mode;
    recording->thread = pthread_self();
    stream->recording = recording;
    stream->tail.clear();
    captures.push_back(recording);
    return CUDA_SUCCESS;
}

CUresult sim_capture_end(CUstream stream, CUgraph *out) {
    *out = nullptr;
    if (check_stream(stream) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
    std::shared_ptr<capture> recording = stream->recording;
    if (!recording) return CUDA_ERROR_ILLEGAL_STATE;
    if (recording->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (recording->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(recording->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUresult result = CUDA_SUCCESS;
    if (recording->invalid)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!is_joined(recording->graph->nodes, stream->tail))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    for (const auto &other : streams.all)
        if (other->recording == recording) {
            other->recording = nullptr;
            other->tail.clear();
        }
    for (const auto &event : events.all)
        if (event->recording == recording) event->recording = nullptr;
    captures.erase(std::find(captures.begin(), captures.end(), recording));
    if (result == CUDA_SUCCESS)
        *out = recording->graph;
    else
        graphs.destroy(recording->graph);
    return result;
}

CUresult sim_capture_check_unsafe(void) {
    CUresult result = CUDA_SUCCESS;
    for (const auto &recording : captures) {
        bool own = pthread_equal(recording->thread, pthread_self());
        if (recording->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
            (own && recording->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
            result = invalidate(recording, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return result;
}

void sim_capture_invalidate(CUstream stream) {
    if (sim_is_capturing(stream)) stream->recording->invalid = true;
}

CUresult sim_graph_instantiate(CUgraphExec *out, CUgraph graph) {
    if (!graphs.knows(graph)) return CUDA_ERROR_INVALID_HANDLE;
    *out = execs.make();
    (*out)->nodes = std::make_shared<const node_list>(graph->nodes);
    return CUDA_SUCCESS;
}

CUresult sim_graph_launch(CUgraphExec graph, CUstream stream) {
    if (!execs.knows(graph) || check_stream(stream) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->recording) return invalidate(stream->recording, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    batch b = make_batch(graph->nodes);
    b.before = graph->latest;
    b.finished = graph->latest = std::make_shared<mark>();
    stream->pending.push_back(std::move(b));
    run_early();
    return CUDA_SUCCESS;
}

CUresult sim_graph_destroy(CUgraph graph) {
    if (!graphs.knows(graph)) return CUDA_ERROR_INVALID_HANDLE;
    graph->nodes.clear();
    graphs.destroy(graph);
    return CUDA_SUCCESS;
}

CUresult sim_graph_exec_check(CUgraphExec graph) {
    return execs.knows(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_graph_exec_destroy(CUgraphExec graph) {
    if (!execs.knows(graph)) return CUDA_ERROR_INVALID_HANDLE;
    graph->nodes = nullptr; /* A pending launch keeps its own reference. */
    execs.destroy(graph);
    return CUDA_SUCCESS;
}

/* ---- For the driver ---- */

bool sim_is_in_use(uintptr_t at, size_t bytes) {
    for (const auto &stream : streams.all)
        for (const batch &b : stream->pending)
            for (const node &n : *b.nodes)
                if (n.work.pinned_bytes && n.work.pinned < at + bytes &&
                    at < n.work.pinned + n.work.pinned_bytes)
                    return true;
    return false;
}

void sim_drop_pending(void) {
    for (const auto &stream : streams.all)
        for (; !stream->pending.empty(); stream->pending.pop_front())
            for (const node &n : *stream->pending.front().nodes)
                if (n.marks) n.marks->done = true;
    for (const auto &graph : execs.all) graph->latest = nullptr;
    sim_close_memory();
}

bool sim_in_host_function(void) {
    return in_host_function;
}

size_t sim_object_count(void) {
    return streams.live.size() + events.live.size() + graphs.live.size() + execs.live.size();
}
