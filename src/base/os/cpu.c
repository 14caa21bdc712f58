/* SPDX-License-Identifier: Apache-2.0 */
/* What this CPU computes with.  Layer: base. */
#include "base/os/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* In the order of leati_cpu_isa; what follows is the last, with more. */
static const char *const names[] = {"base", "avx2", "avx512", "avx512_bf16"};

/* What LEAT_MAX_ISA names; where there is none, or it is empty or unknown, the last. */
static leati_cpu_isa most(bool *known) {
    const char *name = getenv("LEAT_MAX_ISA");
    *known = true;
    if (!name || !*name) return LEATI_CPU_COUNT - 1;
    for (int i = 0; i < (int)(sizeof names / sizeof *names); ++i)
        if (strcmp(names[i], name) == 0) return i < LEATI_CPU_COUNT ? (leati_cpu_isa)i : LEATI_CPU_COUNT - 1;
    *known = false;
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
    bool known;
    leati_cpu_isa isa = most(&known);
    while (!has(isa)) --isa;
    return isa;
}

leat_status leati_cpu_check_isa(leat_error *err) {
    bool known;
    most(&known);
    if (known) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL,
                      "LEAT_MAX_ISA: expected base, avx2, avx512 or avx512_bf16, received '%s'",
                      getenv("LEAT_MAX_ISA"));
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
