/* SPDX-License-Identifier: Apache-2.0 */
/* Threads or processes, behind one face.  Layer: feed. */
#include "feed/crew.h"

#include "base/error.h"
#include "base/memory.h"
#include "feed/process.h"

static leat_status start_threads(leati_crew *crew, leat_error *err) {
    int count = crew->ring->worker_count;
    if (!crew->threads) crew->threads = leati_calloc((size_t)count, sizeof *crew->threads);
    if (!crew->threads)
        return leati_fail_memory(err, (size_t)count * sizeof *crew->threads, "worker threads");
    uint32_t generation = atomic_load(&crew->ring->shared->generation);
    for (int i = 0; i < count; ++i)
        crew->threads[i].worker = (leati_worker){.ring = crew->ring,
                                                 .sequence = crew->sequence,
                                                 .seed = crew->seed,
                                                 .number = i,
                                                 .generation = generation};
    leat_status status = leati_threads_start(crew->threads, count, &crew->thread_count, err);
    if (status != LEAT_OK) leati_crew_dismiss(crew);
    return status;
}

leat_status leati_crew_start(leati_crew *crew, leat_error *err) {
    if (crew->ring->worker_count == 0) return LEAT_OK;
    if (!crew->ring->between_processes) return start_threads(crew, err);
    return leati_processes_start(&crew->helper, crew->ring, crew->sequence, crew->seed, err);
}

leat_status leati_crew_check(leati_crew *crew, leat_error *err) {
    return crew->ring->between_processes ? leati_processes_check(&crew->helper, err) : LEAT_OK;
}

void leati_crew_dismiss(leati_crew *crew) {
    if (!crew->ring || crew->ring->worker_count == 0) return;
    leati_ring_retire(crew->ring);
    leati_threads_join(crew->threads, &crew->thread_count);
    leati_processes_dismiss(&crew->helper, crew->ring);
}

void leati_crew_fini(leati_crew *crew) {
    leati_free(crew->threads);
    leati_processes_fini(&crew->helper);
    *crew = (leati_crew){0};
}
