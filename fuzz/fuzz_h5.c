/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes model files: the bytes are a .h5 file in memory, which is loaded as a model and as weights. */
#include <stdint.h>
#include <stdlib.h>

#include "fuzz.h"
#include "leat/model.h"

static void check(leat_status status, const leat_error *err) {
    if (status == LEAT_EINTERNAL || (status != LEAT_OK && err->message[0] == '\0')) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    leat_model *model = NULL;
    leat_error err = {0};
    if (!data) return 0; /* libFuzzer begins with an empty input */
    leat_status status = leat_model_load_memory(&model, data, size, NULL, &err);
    if ((status == LEAT_OK) != (model != NULL)) abort();
    check(status, &err);
    if (model) check(leat_model_load_weights_memory(model, data, size, true, &err), &err);
    leat_model_destroy(&model);
    return 0;
}
