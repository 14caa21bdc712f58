/* SPDX-License-Identifier: Apache-2.0 */
/* How leat notices that its process was forked, and keeps its locks free at that moment. */
#ifndef LEATI_BASE_OS_FORK_H
#define LEATI_BASE_OS_FORK_H

#include <stdbool.h>
#include <stdint.h>

#include "leat/fork.h"

/* How many forks lie between the process that loaded leat and this one.  An object that owns threads or processes keeps the
 * number under which it made them: in a process with another number they do not exist.  Async-signal-safe. */
uint32_t leati_fork_depth(void);

/* Between these two calls no other thread forks: a child never inherits a lock that a thread holds there, nor a library's state
 * that a thread is changing.  Calls nest.  A fork waits for the end of such a section, so that it must not wait for anything
 * that the forking thread may have to do. */
void leati_fork_hold(void);
void leati_fork_release(void);

/* Has end_threads called before each fork: a library that computes ends threads there which a child would wait for in vain. */
void leati_fork_ends_threads(void (*end_threads)(void));

#endif
