/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, checks and stops the helper process, from the caller's process. */
#ifndef LEATI_FEED_WORKERS_PROCESS_H
#define LEATI_FEED_WORKERS_PROCESS_H

#include "feed/workers/helper.h"

/* Forks the helper, which forks the workers.  *helper is zeroed, or its last helper was dismissed.  Errors: LEAT_EIO,
 * LEAT_ENOMEM. */
leat_status leati_processes_start(leati_helper *helper, leati_pool_work *work, leat_error *err);

/* Gives a helper program the new data of its feeds, and lets it fork new workers.  Returns false if there is no such
 * program: then the workers are stopped and started. */
bool leati_processes_renew(leati_helper *helper, leati_pool_work *work);

/* Checks that the helper runs.  Errors: LEAT_EWORKER if it has died, and the workers with it. */
leat_status leati_processes_check(leati_helper *helper, leat_error *err);

/* Makes the helper exit and waits until it and all workers are gone.  The workers must have been told to exit
 * before. */
void leati_processes_dismiss(leati_helper *helper, const leati_worker_table *table);

void leati_processes_fini(leati_helper *helper);

/* In the helper: allocates the table of workers, before any of them is forked.  Errors: LEAT_ENOMEM. */
leat_status leati_processes_prepare(leati_helper *helper, leati_pool_work *work, leat_error *err);

/* In the helper: removes the signal handlers of the program, because they would run the program's code in the wrong
 * process.  A terminal or a scheduler sends signals to the whole process group; only the caller reacts to them, and the
 * workers exit when the caller tells them to or is gone.  Handlers of faults such as SIGSEGV stay, because they print
 * where the fault happened. */
void leati_processes_reset_signals(void);

#endif
