/* SPDX-License-Identifier: Apache-2.0 */
/* What this CPU computes with.  Layer: base. */
#include "base/cpu.h"

#include <stdlib.h>
#include <string.h>

bool leati_cpu_has_bfloat16(void) {
#if defined(__x86_64__)
    const char *most = getenv("LEAT_MAX_ISA");
    bool capped = most && (strcmp(most, "base") == 0 || strcmp(most, "avx2") == 0);
    return !capped && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}
