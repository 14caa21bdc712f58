/* SPDX-License-Identifier: Apache-2.0 */
/* isa_tmpl.h compiled for x86-64 with AVX-512.  Room: backends/native. */
#define LEATI_ISA      leati_native_avx512
#define LEATI_ISA_NAME "avx512"
#define LEATI_LANES    16
#include "backends/native/isa/isa_tmpl.h"
