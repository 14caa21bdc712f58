/* SPDX-License-Identifier: Apache-2.0 */
/* Detection of forks, and sections in which no other thread forks. */
#ifndef LEATI_BASE_OS_FORK_H
#define LEATI_BASE_OS_FORK_H

#include <stdbool.h>
#include <stdint.h>

#include "leat/fork.h"

/* Returns the number of forks between the process that loaded leat and this one.  An object that owns threads or
 * processes stores the number when it starts them: in a process with another number they do not exist.
 * Async-signal-safe. */
uint32_t leati_fork_depth(void);

/* Begin and end a section during which no other thread forks, so that a child never inherits a lock that is held or a
 * library's state that is being changed in the section.  Sections nest.  A fork waits until no other thread is inside
 * one, so code in a section must not wait for another thread that may fork. */
void leati_fork_hold(void);
void leati_fork_release(void);

/* Registers a function that is called before each fork: the function of a library that computes, to end its threads,
 * for which a child would otherwise wait forever. */
void leati_fork_ends_threads(void (*end_threads)(void));

#endif
