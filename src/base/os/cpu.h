/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction sets of this CPU.  The environment variable LEAT_MAX_ISA (base, avx2, avx512) sets the highest one
 * to be used: for tests, and for the same rounding on several machines. */
#ifndef LEATI_BASE_OS_CPU_H
#define LEATI_BASE_OS_CPU_H

#include <stdbool.h>

#include "leat/error.h"

/* Instruction sets; each includes the ones before it. */
typedef enum leati_cpu_isa {
    LEATI_CPU_BASE, /* any CPU of this architecture */
    LEATI_CPU_AVX2, /* with FMA */
    LEATI_CPU_AVX512,
    LEATI_CPU_COUNT
} leati_cpu_isa;

/* Returns the highest instruction set that the CPU has and LEAT_MAX_ISA allows. */
leati_cpu_isa leati_cpu_best_isa(void);
/* Returns the name of an instruction set, as LEAT_MAX_ISA has it: "base", "avx2", "avx512". */
const char *leati_cpu_isa_name(leati_cpu_isa isa);

/* Checks LEAT_MAX_ISA.  Errors: LEAT_EINVAL its value is none of the words above. */
leat_status leati_cpu_check_isa(leat_error *err);

/* Returns true if the CPU multiplies bfloat16 faster than float32; with LEAT_MAX_ISA=avx512_bf16, for tests, true if
 * the CPU has instructions that multiply bfloat16 at all. */
bool leati_cpu_has_bfloat16(void);

#endif
