/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's side of worker processes: fork the helper, miss it, dismiss it. */
#ifndef LEATI_FEED_WORKERS_PROCESS_H
#define LEATI_FEED_WORKERS_PROCESS_H

#include "feed/workers/helper.h"

/* Forks the helper, which forks the workers.  *helper is zeroed, or was dismissed.  Errors: LEAT_EIO, LEAT_ENOMEM. */
leat_status leati_processes_start(leati_helper *helper, leati_works *works, leat_error *err);

/* Errors: LEAT_EWORKER when the helper died, with the workers that descend from it. */
leat_status leati_processes_check(leati_helper *helper, leat_error *err);

/* Waits until the helper and all workers, which have been told to leave, are gone. */
void leati_processes_dismiss(leati_helper *helper, const leati_worker_table *table);

void leati_processes_fini(leati_helper *helper);

#endif
