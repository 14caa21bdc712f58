/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the code of this CPU.  Layer: backends/native. */
#include "backends/native/isa.h"

const leati_native_isa *leati_native_isa_of(void) {
#if LEATI_NATIVE_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return &leati_native_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &leati_native_avx2;
#endif
    return &leati_native_base;
}
