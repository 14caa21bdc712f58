/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes recurrent layers.  Room: nn. */
#include "nn/layers/recurrence.h"

#include <string.h>

const leati_recurrence *leati_recurrence_of(const leati_layer *layer) {
    if (!layer->type->lower) return NULL;
    for (const leati_field *field = layer->type->fields; field->key; ++field)
        if (strcmp(field->key, "go_backwards") == 0) return layer->config;
    return NULL;
}
