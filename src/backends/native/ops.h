/* SPDX-License-Identifier: Apache-2.0 */
/* What backends/native serves. */
#ifndef LEATI_BACKENDS_NATIVE_OPS_H
#define LEATI_BACKENDS_NATIVE_OPS_H

#include "engine/backend.h"

#define LEATI_NATIVE_LIST(X)                                                                                 \
    X(LSTM, lstm)                                                                                            \
    X(LSTM_BWD, lstm_bwd)

#define LEATI_NATIVE_DECLARED(upper, lower)                                                                  \
    leat_status leati_native_##lower(const leati_task *task, leati_kernel *kernel, char *why,                \
                                     leat_error *err);
LEATI_NATIVE_LIST(LEATI_NATIVE_DECLARED)
#undef LEATI_NATIVE_DECLARED

#endif
