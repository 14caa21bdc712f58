/* SPDX-License-Identifier: Apache-2.0 */
/* The function that each fuzz target defines: libFuzzer's entry point. */
#ifndef LEAT_FUZZ_H
#define LEAT_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Gives `size` bytes to a parser.  The parser may return any status, but must not crash, leak or cause a report of a
 * sanitizer.  Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
