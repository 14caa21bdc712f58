/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuzz target defines: libFuzzer's entry point. */
#ifndef LEAT_FUZZ_H
#define LEAT_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Feeds `size` bytes to a parser.  Any status will do; a crash, a leak or a sanitizer's report will not.  Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
