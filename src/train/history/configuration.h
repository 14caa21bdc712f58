/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a fit in its history: what determines the result, and where and by how many workers the result
 * was computed.  docs/formats/history.md describes the JSON.  Room: train. */
#ifndef LEATI_TRAIN_HISTORY_CONFIGURATION_H
#define LEATI_TRAIN_HISTORY_CONFIGURATION_H

#include <jansson.h>

/* Returns a copy (new reference) of what leati_history_configure stored, with facts about the machine added; NULL
 * without memory. */
json_t *leati_configuration_json(const json_t *configuration);

#endif
