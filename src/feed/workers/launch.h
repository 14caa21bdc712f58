/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the helper as another program, and what the two programs tell each other. */
#ifndef LEATI_FEED_WORKERS_LAUNCH_H
#define LEATI_FEED_WORKERS_LAUNCH_H

#include "feed/workers/helper.h"
#include "leat/version.h"

/* The contents of the memfd that the helper program receives: this struct, a leati_launched_feed for each feed, and
 * the data of the feeds. */
typedef struct leati_launch_record {
    char version[32];    /* of leat: both programs must have the same */
    size_t service_size; /* sizeof(leati_service) there */
    size_t bytes;        /* of the record */
    pid_t caller;
    int control; /* the eventfd that tells the helper to exit */
    int feed_count;
    uint32_t generation;      /* of the workers */
    leati_worker_table table; /* of the caller; its mapping has a descriptor */
} leati_launch_record;

typedef struct leati_launched_feed {
    leati_service service; /* of the caller; its pointers are valid there only */
    leati_mapping mapping; /* of the ring, with a descriptor */
    size_t data_offset, data_bytes;
} leati_launched_feed;

/* Starts the program helper->command.  helper->control and helper->work must be set.  Sets helper->pid.  Errors:
 * LEAT_EIO, LEAT_ENOMEM. */
leat_status leati_launch(leati_helper *helper, leat_error *err);

/* Starts a program that inherits these descriptors; SIGINT and SIGQUIT are blocked in it.  Returns 0 or an errno.
 * last_word: the word after those of `command`. */
int leati_launch_program(pid_t *pid, const char *const *command, const char *last_word,
                         const int *descriptors, int count);

/* Writes the record again, with new data and the new generation, for a program that runs already.  Errors: LEAT_EIO. */
leat_status leati_launch_again(const leati_helper *helper, leat_error *err);

#endif
