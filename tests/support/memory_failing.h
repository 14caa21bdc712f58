/* SPDX-License-Identifier: Apache-2.0 */
/* A memory.c for tests (leat_test(... NO_MEMORY SOURCES ... ../support/memory_failing.c)): it counts allocations, and lets
 * the n-th fail.
 *
 *     for (int64_t n = 1, more = 1; more; ++n) {
 *         memory_fail_at(n);
 *         ... what is to be tested: succeeds, or fails with LEAT_ENOMEM ...
 *         more = memory_failed();
 *         assert_int_equal(memory_live(), live_before);
 *     }
 *     memory_fail_at(0); */
#ifndef LEAT_TESTS_MEMORY_FAILING_H
#define LEAT_TESTS_MEMORY_FAILING_H

#include <stdbool.h>
#include <stdint.h>

/* From now on the n-th allocation fails (1: the next one), and no other; 0: none. */
void memory_fail_at(int64_t n);

/* Whether one failed since memory_fail_at. */
bool memory_failed(void);

/* Allocations asked for since memory_fail_at. */
int64_t memory_calls(void);

/* Blocks that were allocated and not freed. */
int64_t memory_live(void);

#endif
