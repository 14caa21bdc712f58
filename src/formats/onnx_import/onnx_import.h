/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ONNX files as models.  docs/formats/onnx.md says which. */
#ifndef LEATI_FORMATS_ONNX_IMPORT_ONNX_IMPORT_H
#define LEATI_FORMATS_ONNX_IMPORT_ONNX_IMPORT_H

#include "nn/model/model.h"

/* Returns true if the bytes look like an ONNX file. */
bool leati_onnx_is(const unsigned char *data, size_t bytes);

/* Makes a model of an ONNX file.
 * @param path  The path of the file, beside which external data lies; NULL: a file in memory.
 * Errors: LEAT_EFORMAT damaged; LEAT_ENOTSUP names the node that leat cannot express; LEAT_EIO; LEAT_ENOMEM. */
leat_status leati_onnx_load(leat_model **out, const char *path, const void *data, size_t bytes,
                            leat_error *err);

#endif
