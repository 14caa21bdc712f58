/* SPDX-License-Identifier: Apache-2.0 */
/* Finds layers whose masks current Keras treats in another way than the model does. */
#ifndef LEATI_NN_MODEL_EXPORT_MASKS_H
#define LEATI_NN_MODEL_EXPORT_MASKS_H

#include "nn/network/network.h"

/* Fails if current Keras would compute other outputs than the model because it treats a mask in another way.  Follows
 * the masks through all calls, without batches and shapes.
 * Errors: LEAT_ENOTSUP names the layer, the reason and what to do; LEAT_ENOMEM. */
leat_status leati_keras3_check_masks(const leat_model *model, leat_error *err);

#endif
