/* SPDX-License-Identifier: Apache-2.0 */
/* Threads or processes, behind one face.  Layer: feed. */
#include "feed/workers/worker_pool.h"

#include "base/error.h"
#include "feed/workers/process.h"

leat_status leati_crew_start(leati_crew *crew, leat_error *err) {
    const leati_roster *roster = &crew->works->roster;
    if (roster->count == 0) return LEAT_OK;
    if (!roster->between_processes) return leati_threads_start(&crew->threads, crew->works, err);
    return leati_processes_start(&crew->helper, crew->works, err);
}

leat_status leati_crew_check(leati_crew *crew, leat_error *err) {
    return crew->works->roster.between_processes ? leati_processes_check(&crew->helper, err) : LEAT_OK;
}

int leati_crew_dismiss(leati_crew *crew, int64_t patience_ns) {
    if (!crew->works || crew->works->roster.count == 0 || !crew->works->roster.shared) return 0;
    leati_roster_retire(&crew->works->roster);
    leati_processes_dismiss(&crew->helper, &crew->works->roster);
    return leati_threads_join(&crew->threads, patience_ns);
}

void leati_crew_fini(leati_crew *crew) {
    leati_threads_fini(&crew->threads);
    leati_processes_fini(&crew->helper);
}
