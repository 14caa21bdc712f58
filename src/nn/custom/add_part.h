/* SPDX-License-Identifier: Apache-2.0 */
/* Makes parts of definitions that have a gradient, for registries and for the checks of gradients. */
#ifndef LEATI_NN_CUSTOM_ADD_PART_H
#define LEATI_NN_CUSTOM_ADD_PART_H

#include "nn/parts/part.h"

/* Check a definition and make a part with one holder.  library may be NULL.  Errors: LEAT_EINVAL the definition. */
leat_status leati_part_of_loss(leati_part **out, const leat_loss_definition *definition,
                               leati_library *library, leat_error *err);
leat_status leati_part_of_activation(leati_part **out, const leat_activation_definition *definition,
                                     leati_library *library, leat_error *err);
leat_status leati_part_of_regularizer(leati_part **out, const leat_regularizer_definition *definition,
                                      leati_library *library, leat_error *err);

#endif
