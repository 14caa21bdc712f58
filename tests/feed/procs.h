/* SPDX-License-Identifier: Apache-2.0 */
/* The helper and its workers as the kernel lists them, and ways to refuse what they ask of it. */
#ifndef LEAT_TESTS_FEED_PROCS_H
#define LEAT_TESTS_FEED_PROCS_H

#include <sys/types.h>

enum { most_children = 64 };

/* Children that a process's main thread has made: how many, at most most_children. */
int children_of(pid_t parent, pid_t *out);

/* The name that ps shows; "" when the process is gone. */
void name_of(pid_t pid, char *out, int bytes);

/* The first child of that name, waited for; children_named counts them now. */
pid_t helper_of(pid_t parent);
int children_named(pid_t parent, const char *prefix);

/* Waits until a helper has so many workers. */
int workers_of(pid_t helper, int expected, pid_t *out);

/* A teardown: kills and reaps all children of this process.  A test that failed in the middle has left a feed open, whose
 * helper the next test would take for its own, or wait for without end. */
int end_children(void **state);

/* Makes a system call fail in this process and its children, as it does where the kernel is older or a sandbox says no;
 * only with that third argument, where one is given.  Ends the process with 77 where there are no such filters. */
void deny(unsigned number, int error, int third_argument);

/* Skips the test in hand, and says why, as tools/check-skips wants it. */
void skip_because(const char *reason);

#endif
