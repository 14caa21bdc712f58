/* SPDX-License-Identifier: Apache-2.0 */
/* What the table and the JSON of a model's summary share. */
#ifndef LEATI_NN_MODEL_SUMMARY_H
#define LEATI_NN_MODEL_SUMMARY_H

#include "nn/model/model.h"

/* Parameters of a layer, or of all layers of a nested model. */
int64_t leati_summary_params(const leati_member *member);

/* Parameters that training changes.  A compiled model trains what it did when it was compiled, as in Keras. */
int64_t leati_summary_trainable_params(const leat_model *model);

/* The first member that a summary lists: Keras does not list a Sequential's own InputLayer. */
int32_t leati_summary_first(const leat_model *model);

/* "dense_1[0][0]": a tensor that a layer reads, as Keras writes it. */
enum { LEATI_SUMMARY_FIELD_BYTES = 320 };
void leati_summary_source(char out[LEATI_SUMMARY_FIELD_BYTES], const leat_model *model,
                          const leati_source *source);

#endif
