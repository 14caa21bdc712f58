/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator for tests (leat_test(... NO_MEMORY SOURCES ... ../support/memory_failing.c)): it counts allocations
 * and fails the n-th.
 *
 *     for (int64_t n = 1, more = 1; more; ++n) {
 *         memory_fail_at(n);
 *         ... the code under test, which succeeds or fails with LEAT_ENOMEM ...
 *         more = memory_failed();
 *         assert_int_equal(memory_live(), live_before);
 *     }
 *     memory_fail_at(0); */
#ifndef LEAT_TESTS_MEMORY_FAILING_H
#define LEAT_TESTS_MEMORY_FAILING_H

#include <stdbool.h>
#include <stdint.h>

/* Makes the n-th allocation from now on fail (1: the next one), and no other; 0: none. */
void memory_fail_at(int64_t n);

/* Returns true if an allocation failed since memory_fail_at. */
bool memory_failed(void);

/* Returns the number of allocations since memory_fail_at, failed ones included. */
int64_t memory_calls(void);

/* Returns the number of blocks that were allocated and not freed. */
int64_t memory_live(void);

#endif
