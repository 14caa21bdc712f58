/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the code of this CPU.  Layer: backends/native. */
#include "backends/native/isa.h"

#include <stdlib.h>
#include <string.h>

/* Best first; the last one serves any CPU. */
static const leati_native_isa *const isas[] = {
#if LEATI_NATIVE_X86
    &leati_native_avx512,
    &leati_native_avx2,
#endif
    &leati_native_base,
};

static bool has(const leati_native_isa *isa) {
#if LEATI_NATIVE_X86
    if (isa == &leati_native_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
    if (isa == &leati_native_avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return isa == &leati_native_base;
}

const leati_native_isa *leati_native_isa_of(void) {
    const char *most = getenv("LEAT_MAX_ISA");
    size_t count = sizeof isas / sizeof isas[0], first = 0;
    for (size_t i = 0; most && i < count; i++)
        if (strcmp(isas[i]->name, most) == 0) first = i;
    for (size_t i = first; i < count; i++)
        if (has(isas[i])) return isas[i];
    return &leati_native_base;
}
