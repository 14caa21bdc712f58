/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the weights of a model as safetensors (docs/formats/safetensors.md). */
#ifndef LEATI_FORMATS_SAFETENSORS_H
#define LEATI_FORMATS_SAFETENSORS_H

#include "formats/keras_h5.h"
#include "nn/network/network.h"

/* Returns true if the bytes begin as a safetensors file does: the length of the header, then a JSON object. */
bool leati_safetensors_is(const unsigned char *data, size_t bytes);

/* Reads the weights from a file in memory.  Weights are matched by name; with matching->by_name, weights that the file
 * lacks keep their values, and other tensors of the file are ignored.
 * Errors: LEAT_EFORMAT, LEAT_ESHAPE, with the name of the tensor; LEAT_EDTYPE a type that cannot be a weight;
 * LEAT_ENOMEM.  After a failure no weight has changed. */
leat_status leati_safetensors_read(leat_model *model, const unsigned char *data, size_t bytes,
                                   const leati_matching *matching, leat_error *err);

/* Write all weights to a file, and into memory, for leati_free(). */
leat_status leati_safetensors_save(const leat_model *model, const char *path, leat_error *err);
leat_status leati_safetensors_save_memory(const leat_model *model, void **out, size_t *bytes,
                                          leat_error *err);

/* The name of weight `index` of leat_model_weight: "dense_1/kernel".  Names that are too long are cut. */
#define LEATI_SAFETENSORS_NAME_BYTES 512
const char *leati_safetensors_name(const leat_model *model, int index,
                                   char out[LEATI_SAFETENSORS_NAME_BYTES]);

#endif
