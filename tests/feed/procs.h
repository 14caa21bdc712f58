/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the helper and its workers in /proc, and makes system calls fail. */
#ifndef LEAT_TESTS_FEED_PROCS_H
#define LEAT_TESTS_FEED_PROCS_H

#include <stddef.h>
#include <sys/types.h>

struct CMUnitTest;

enum { most_children = 64 };

/* Lists the children of a process's main thread.  Returns their number, at most most_children. */
int children_of(pid_t parent, pid_t *out);

/* Reads the name that ps shows; "" if the process is gone. */
void name_of(pid_t pid, char *out, int bytes);

/* helper_of waits for the child named leat-helper; children_named counts the children whose names have the prefix
 * now. */
pid_t helper_of(pid_t parent);
int children_named(pid_t parent, const char *prefix);

/* Waits until a helper has `expected` workers, and lists them. */
int workers_of(pid_t helper, int expected, pid_t *out);

/* A teardown: kills and reaps all children of this process.  If a test fails, its feed stays open, and the next test
 * would find its helper, or wait for it without end. */
int end_children(void **state);

/* Runs each test in a process of its own, all at the same time: for tests that wait for the clock.  Returns the number
 * of those that failed. */
int run_together(const struct CMUnitTest *tests, size_t count);

/* Makes a system call fail in this process and its children, as an older kernel or a sandbox does.  If third_argument
 * is not 0, only calls with this third argument fail.  Exits with 77 if the kernel does not support such filters. */
void deny(unsigned number, int error, int third_argument);

/* Skips the running test and prints the reason in the form that tools/check-skips requires. */
void skip_because(const char *reason);

#endif
