/* SPDX-License-Identifier: Apache-2.0 */
/* isa_tmpl.h compiled for x86-64 with AVX2.  Room: backends/native. */
#define LEATI_ISA      leati_native_avx2
#define LEATI_ISA_NAME "avx2"
#define LEATI_LANES    8
#include "backends/native/isa/isa_tmpl.h"
