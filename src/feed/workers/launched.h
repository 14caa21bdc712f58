/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs that a feed's helper consists of have in common: the helper program and, with
 * leat_helper_supervise, the program of each worker. */
#ifndef LEATI_FEED_WORKERS_LAUNCHED_H
#define LEATI_FEED_WORKERS_LAUNCHED_H

#include "feed/workers/launch.h"
#include "leat/helper.h"

struct leat_helper {
    const leati_launch_record *record; /* a mapping */
    size_t record_bytes;
    leati_pool_work work;
    leati_service *services;
    leati_service **service_pointers; /* the array to which `work` points */
    leati_mapping *rings;
    leati_helper helper;
    int descriptor;           /* of the record */
    leat_sequence *sequences; /* that the program has made */
};

/* Maps the record and all that it names; the descriptors stay open.  Errors: as of leat_helper_open, but for
 * LEAT_ESTOPPED; then *out is NULL. */
leat_status leati_launched_open(leat_helper **out, int descriptor, leat_error *err);

/* Closes the descriptors of the rings and of the worker table. */
void leati_launched_release(leat_helper *helper);

/* Allocates the program's sequences, lets it make them, and gives their functions to the services.  Errors: of `make`;
 * LEAT_EINVAL the sequences are not those of the feeds; LEAT_ENOMEM. */
leat_status leati_launched_make(leat_helper *helper, leat_helper_make make, void *user, leat_error *err);

/* Sets up the helper's table of workers.  Errors: LEAT_ESTOPPED the caller is gone; LEAT_ENOMEM. */
leat_status leati_launched_prepare(leat_helper *helper, leat_error *err);

/* Runs the workers of the present generation until they are gone. */
void leati_launched_run(leat_helper *helper);

/* Waits until the caller says what follows.  Returns true if that is new data, and maps the record again; false if the
 * helper shall exit, if the caller is gone, or with an error in *err. */
bool leati_launched_renew(leat_helper *helper, leat_error *err);

/* Gives the program signal handlers and a signal mask for workers. */
void leati_launched_set_signals(void);

#endif
