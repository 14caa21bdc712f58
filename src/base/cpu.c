/* SPDX-License-Identifier: Apache-2.0 */
/* What this CPU computes with.  Layer: base. */
#include "base/cpu.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[LEATI_CPU_COUNT] = {"base", "avx2", "avx512"};

static leati_cpu_isa most(void) {
    const char *name = getenv("LEAT_MAX_ISA");
    for (int i = 0; name && i < LEATI_CPU_COUNT; ++i)
        if (strcmp(names[i], name) == 0) return (leati_cpu_isa)i;
    return LEATI_CPU_COUNT - 1;
}

static bool has(leati_cpu_isa isa) {
#if defined(__x86_64__)
    if (isa == LEATI_CPU_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
    if (isa == LEATI_CPU_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return isa == LEATI_CPU_BASE;
}

leati_cpu_isa leati_cpu_best_isa(void) {
    leati_cpu_isa isa = most();
    while (!has(isa)) --isa;
    return isa;
}

/* Intel's cores take two cycles for a vector of bf16, and half a cycle for one of f32, which is half as much work. */
bool leati_cpu_has_bfloat16(void) {
#if defined(__x86_64__)
    const char *name = getenv("LEAT_MAX_ISA");
    bool wanted = !__builtin_cpu_is("intel") || (name && strcmp(name, "avx512_bf16") == 0);
    return wanted && leati_cpu_best_isa() == LEATI_CPU_AVX512 && __builtin_cpu_supports("avx512bf16") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}
