/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes safetensors files: the bytes are weights of a small model, which are loaded strictly and by name. */
#include <stdint.h>
#include <stdlib.h>

#include "formats/safetensors.h"
#include "fuzz.h"
#include "leat/model.h"

static const char architecture[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [{\"class_name\": \"Dense\", "
    "\"config\": {\"name\": \"a\", \"units\": 2, \"batch_input_shape\": [null, 3]}}]}}";

static void read_as(leat_model *model, const uint8_t *data, size_t size, const leati_matching *matching) {
    leat_error err = {0};
    leat_status status = leati_safetensors_read(model, data, size, matching, &err);
    if (status == LEAT_EINTERNAL || (status != LEAT_OK && err.message[0] == '\0')) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    leat_model *model = NULL;
    leat_error err = {0};
    if (!data) return 0; /* libFuzzer begins with an empty input */
    if (leat_model_from_json(&model, architecture, &err) != LEAT_OK) abort();
    read_as(model, data, size, &(leati_matching){0});
    read_as(model, data, size, &(leati_matching){.by_name = true, .skip_mismatch = true});
    read_as(model, data, size, &(leati_matching){.by_name = true, .reshape = true});
    leat_model_destroy(&model);
    return 0;
}
