/* SPDX-License-Identifier: Apache-2.0 */
/* The composition root: the one file that names backends. */
#include <stddef.h>

#include "backends/native/backend.h"
#include "backends/ref/ref.h"
#include "engine/backend.h"
#ifdef LEAT_WITH_ONEDNN
#include "backends/onednn/backend.h"
#endif

const leati_backend *const leati_backends[] = {
    &leati_backend_native,
#ifdef LEAT_WITH_ONEDNN
    &leati_backend_onednn,
#endif
    &leati_backend_ref,
    NULL,
};
