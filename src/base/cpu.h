/* SPDX-License-Identifier: Apache-2.0 */
/* What this CPU computes with. */
#ifndef LEATI_BASE_CPU_H
#define LEATI_BASE_CPU_H

#include <stdbool.h>

/* Whether it multiplies bfloat16, and the environment's LEAT_MAX_ISA allows that.  Without, f32 is faster. */
bool leati_cpu_has_bfloat16(void);

#endif
