/* SPDX-License-Identifier: Apache-2.0 */
/* The other processes that the launcher has started on this host, before MPI has connected them: they have the same
 * parent.  Room: dist. */
#ifndef LEATI_DIST_SIBLINGS_H
#define LEATI_DIST_SIBLINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct leati_siblings {
    pid_t parent;  /* the launcher, or its daemon on this host */
    pid_t stopped; /* a sibling that was stopped in the last look; 0: none */
    int64_t since_ns, looked_ns;
} leati_siblings;

void leati_siblings_begin(leati_siblings *siblings);
/* To be called a few times in a second.  Returns the number of a process that has been stopped by a signal such as
 * SIGSTOP for this time; 0 if there is none.  A time in which this process was stopped, too, does not count. */
pid_t leati_siblings_find_stopped(leati_siblings *siblings, int64_t timeout_ns);
/* Returns true if the parent has ended.  One system call. */
bool leati_siblings_launcher_has_ended(const leati_siblings *siblings);

#endif
