/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes ONNX files: the bytes are a file in memory.  A model that is made of them has a configuration, and predictions
 * that can be lowered. */
#include <stdint.h>
#include <stdlib.h>

#include "formats/onnx_import/onnx_import.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    leat_model *model = NULL;
    leat_error err = {0};
    char *text = NULL;
    if (!data) return 0; /* libFuzzer begins with an empty input */
    leat_status status = leati_onnx_load(&model, NULL, data, size, &err);
    if ((status == LEAT_OK) != (model != NULL)) abort();
    if (status == LEAT_EINTERNAL || (status != LEAT_OK && err.message[0] == '\0')) abort();
    if (model && leat_model_summary(model, &text, &err) == LEAT_EINTERNAL) abort();
    leat_string_free(text);
    leat_model_destroy(&model);
    return 0;
}
