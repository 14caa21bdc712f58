/* SPDX-License-Identifier: Apache-2.0 */
/* Detection of the CPU's instruction sets.  Room: base. */
#include "base/os/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Words of LEAT_MAX_ISA, in the order of leati_cpu_isa.  avx512_bf16, beyond that order, is avx512 with one
 * extension. */
static const char *const isa_names[] = {"base", "avx2", "avx512", "avx512_bf16"};

/* Returns the instruction set that LEAT_MAX_ISA names; the highest one if the variable is not set, empty or
 * unknown. */
static leati_cpu_isa highest_allowed(bool *valid) {
    const char *name = getenv("LEAT_MAX_ISA");
    *valid = true;
    if (!name || !*name) return LEATI_CPU_COUNT - 1;
    for (int i = 0; i < (int)(sizeof isa_names / sizeof *isa_names); ++i)
        if (strcmp(isa_names[i], name) == 0)
            return i < LEATI_CPU_COUNT ? (leati_cpu_isa)i : LEATI_CPU_COUNT - 1;
    *valid = false;
    return LEATI_CPU_COUNT - 1;
}

static bool cpu_has(leati_cpu_isa isa) {
#if defined(__x86_64__)
    if (isa == LEATI_CPU_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
    if (isa == LEATI_CPU_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return isa == LEATI_CPU_BASE;
}

leati_cpu_isa leati_cpu_best_isa(void) {
    bool valid;
    leati_cpu_isa isa = highest_allowed(&valid);
    while (!cpu_has(isa)) --isa;
    return isa;
}

const char *leati_cpu_isa_name(leati_cpu_isa isa) {
    return isa_names[isa];
}

leat_status leati_cpu_check_isa(leat_error *err) {
    bool valid;
    highest_allowed(&valid);
    if (valid) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL,
                      "LEAT_MAX_ISA: expected base, avx2, avx512 or avx512_bf16, received '%s'",
                      getenv("LEAT_MAX_ISA"));
}

/* Intel's cores take two cycles to multiply a vector of bfloat16, and half a cycle for a vector of float32, which has
 * half as many elements: there bfloat16 is slower. */
bool leati_cpu_has_bfloat16(void) {
#if defined(__x86_64__)
    const char *name = getenv("LEAT_MAX_ISA");
    bool is_useful = !__builtin_cpu_is("intel") || (name && strcmp(name, "avx512_bf16") == 0);
    bool is_allowed = !name || strcmp(name, "avx512") != 0;
    return is_useful && is_allowed && leati_cpu_best_isa() == LEATI_CPU_AVX512 &&
           __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}
