/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the table and the JSON of a model's summary share. */
#ifndef LEATI_NN_MODEL_SUMMARY_H
#define LEATI_NN_MODEL_SUMMARY_H

#include "nn/model/model.h"

/* Returns the number of parameters of a layer, or of all layers of a nested model. */
int64_t leati_summary_params(const leati_member *member);

/* Returns the number of parameters that training changes.  A compiled model trains the weights that were trainable
 * when it was compiled, as in Keras. */
int64_t leati_summary_trainable_params(const leat_model *model);

/* Returns the index of the first member in the summary: Keras does not list a Sequential's own InputLayer. */
int32_t leati_summary_first(const leat_model *model);

/* Writes a tensor that a layer reads as Keras does: "dense_1[0][0]". */
enum { LEATI_SUMMARY_FIELD_BYTES = 320 };
void leati_summary_source(char out[LEATI_SUMMARY_FIELD_BYTES], const leat_model *model,
                          const leati_source *source);

#endif
