/* SPDX-License-Identifier: Apache-2.0 */
/* isa_tmpl.h compiled for any CPU of this architecture.  Room: backends/native. */
#define LEATI_ISA      leati_native_base
#define LEATI_ISA_NAME "base"
#define LEATI_LANES    4
#include "backends/native/isa/isa_tmpl.h"
