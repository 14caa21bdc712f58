/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the heap allocations of the whole program, libraries included.  The count is -1 under a sanitizer. */
#ifndef LEAT_TESTS_HEAP_COUNT_H
#define LEAT_TESTS_HEAP_COUNT_H

#include <stdint.h>

int64_t heap_calls(void);

#endif
