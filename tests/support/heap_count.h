/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what anybody in this program takes from the heap, libraries too.  -1: not counted, under a sanitizer. */
#ifndef LEAT_TESTS_HEAP_COUNT_H
#define LEAT_TESTS_HEAP_COUNT_H

#include <stdint.h>

int64_t heap_calls(void);

#endif
