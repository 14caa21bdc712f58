/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a model as an ONNX file (docs/formats/onnx.md). */
#ifndef LEATI_FORMATS_ONNX_ONNX_H
#define LEATI_FORMATS_ONNX_ONNX_H

#include "leat/error.h"
#include "nn/network/network.h"

/* Writes the prediction of a model.  Errors: LEAT_ENOTSUP something that ONNX cannot represent, with the layer's name
 * and what to do; LEAT_EINVAL, LEAT_EIO the file; LEAT_ENOMEM. */
leat_status leati_onnx_save(const leat_model *model, const char *path, leat_error *err);

/* Like leati_onnx_save(), with another limit than 2 GiB for the file: above it, the large constants are in the file
 * <path>.data beside it. */
leat_status leati_onnx_save_within(const leat_model *model, const char *path, size_t limit_bytes,
                                   leat_error *err);

/* Like leati_onnx_save(), but writes into memory, for leati_free(). */
leat_status leati_onnx_save_memory(const leat_model *model, void **out, size_t *bytes, leat_error *err);

#endif
