/* SPDX-License-Identifier: Apache-2.0 */
/* Layers AddLoss and AddMetric of tf.keras. */
#ifndef LEATI_NN_MODEL_ANCILLARY_H
#define LEATI_NN_MODEL_ANCILLARY_H

#include <jansson.h>

#include "leat/error.h"

/* Gives the architecture without the layers AddLoss and AddMetric, and without the layers that only these layers need
 * (new reference; the same object if there are none).
 * @param[out] loss  Room for LEAT_NAME_BYTES bytes; receives the name of the first AddLoss, "" if there is none. */
leat_status leati_without_ancillary(const json_t *root, json_t **out, char *loss, leat_error *err);

#endif
