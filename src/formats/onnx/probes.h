/* SPDX-License-Identifier: Apache-2.0 */
/* The two graphs that an export compares. */
#ifndef LEATI_FORMATS_ONNX_PROBES_H
#define LEATI_FORMATS_ONNX_PROBES_H

#include "formats/onnx/exporter.h"

/* Lowers the model twice and marks the nodes that its outputs need.  Errors: LEAT_ENOTSUP the graphs have different
 * nodes; those of the lowering; LEAT_ENOMEM. */
leat_status leati_onnx_probe(leati_onnx *x, leat_error *err);

/* Returns the name of an open size of the model's inputs: "batch", "<input>_<axis>"; NULL if no axis has that size. */
const char *leati_onnx_open_name(const leati_onnx *x, leati_onnx_size size);

#endif
