/* SPDX-License-Identifier: Apache-2.0 */
/* The backend that computes with oneDNN. */
#ifndef LEATI_BACKENDS_ONEDNN_BACKEND_H
#define LEATI_BACKENDS_ONEDNN_BACKEND_H

#include "engine/backend.h"

extern const leati_backend leati_backend_onednn;

#endif
