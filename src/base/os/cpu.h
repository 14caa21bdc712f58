/* SPDX-License-Identifier: Apache-2.0 */
/* What this CPU computes with, none above what the environment's LEAT_MAX_ISA names (base, avx2, avx512): for tests, and to
 * have the same rounding on several machines. */
#ifndef LEATI_BASE_OS_CPU_H
#define LEATI_BASE_OS_CPU_H

#include <stdbool.h>

#include "leat/error.h"

/* Each has those before it. */
typedef enum leati_cpu_isa {
    LEATI_CPU_BASE, /* any CPU of this architecture */
    LEATI_CPU_AVX2, /* with FMA */
    LEATI_CPU_AVX512,
    LEATI_CPU_COUNT
} leati_cpu_isa;

leati_cpu_isa leati_cpu_best_isa(void);

/* LEAT_EINVAL: LEAT_MAX_ISA is none of the words. */
leat_status leati_cpu_check_isa(leat_error *err);

/* Whether it multiplies bfloat16 faster than f32; with LEAT_MAX_ISA=avx512_bf16, for tests, whether it does at all. */
bool leati_cpu_has_bfloat16(void);

#endif
