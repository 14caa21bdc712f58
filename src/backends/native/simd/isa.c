/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the kernels of this CPU's instruction set.  Room: backends/native. */
#include "backends/native/simd/isa.h"

#include "base/os/cpu.h"

const leati_native_isa *leati_native_isa_of(void) {
    static const leati_native_isa *const isas[LEATI_CPU_COUNT] = {
        [LEATI_CPU_BASE] = &leati_native_base,
#if LEATI_NATIVE_X86
        [LEATI_CPU_AVX2] = &leati_native_avx2,
        [LEATI_CPU_AVX512] = &leati_native_avx512,
#endif
    };
    return isas[leati_cpu_best_isa()];
}
