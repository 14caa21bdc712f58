/* SPDX-License-Identifier: Apache-2.0 */
/* The body of isa_*.c: all code that exists once per instruction set, and its table.  The includer defines LEATI_ISA
 * (the table), LEATI_ISA_NAME and LEATI_LANES, and CMake gives it the compiler options. */
#include "backends/native/lstm_body.h"

const leati_native_isa LEATI_ISA = {
    .name = LEATI_ISA_NAME,
    .panel = LEATI_PANEL,
    .rows = LEATI_ROWS,
    .lstm_scratch = lstm_scratch,
    .lstm_pack = lstm_pack,
    .lstm_pack_transposed = lstm_pack_transposed,
    .lstm_unpack = lstm_unpack,
    .lstm_forward = lstm_forward,
    .lstm_backward = lstm_backward,
};
