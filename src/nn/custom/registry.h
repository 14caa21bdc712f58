/* SPDX-License-Identifier: Apache-2.0 */
/* Finds layer types by their class names, among custom layers and leat's own. */
#ifndef LEATI_NN_CUSTOM_REGISTRY_H
#define LEATI_NN_CUSTOM_REGISTRY_H

#include "nn/layers/layer.h"

/* Finds the type of a class name, among the custom layers of a registry first (NULL: none).  The configuration
 * decides which custom layer a Lambda is.  Errors: LEAT_ENOTSUP with the nearest known name. */
const leati_layer_type *leati_registry_find(const leat_registry *registry, const char *class_name,
                                            const json_t *config, leat_error *err);

/* Makes the custom layer of a type known to a registry.  The registry does not hold the layer, which must live as
 * long as the registry.  Does nothing for leat's own types.
 * Errors: LEAT_EINVAL the registry knows a different layer of that class name; LEAT_ENOMEM. */
leat_status leati_registry_lend(leat_registry *registry, const leati_layer_type *type, leat_error *err);

/* Returns the list of the custom parts of a registry; NULL if there is none. */
const leati_part *leati_registry_parts(const leat_registry *registry);
/* Gives a registry without parts the parts of a list. */
void leati_registry_share(leat_registry *registry, const leati_part *parts);
/* Registers a part; consumes its reference, also on failure.  Errors: LEAT_EINVAL the name is already registered. */
leat_status leati_registry_add_part(leat_registry *registry, leati_part *part, leat_error *err);
/* Returns the library whose function is registering now; NULL if there is none. */
leati_library *leati_registry_opening(const leat_registry *registry);

#endif
