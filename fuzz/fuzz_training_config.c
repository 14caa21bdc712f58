/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the training_config of a model file with two outputs: it is compiled, written, and compiled again. */
#include <stdlib.h>

#include "fuzz.h"
#include "nn/model/model.h"

static const char network[] =
    "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": ["
    "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"inbound_nodes\": [], \"config\": {\"name\": \"x\", "
    "\"batch_input_shape\": [null, 3, 4], \"dtype\": \"float32\"}},"
    "{\"class_name\": \"Dense\", \"name\": \"a\", \"inbound_nodes\": [[[\"x\", 0, 0, {}]]], "
    "\"config\": {\"name\": \"a\", \"units\": 3}},"
    "{\"class_name\": \"Flatten\", \"name\": \"b\", \"inbound_nodes\": [[[\"x\", 0, 0, {}]]], "
    "\"config\": {\"name\": \"b\"}}],"
    "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"a\", 0, 0], [\"b\", 0, 0]]}}";

/* An accepted configuration must be accepted again after it was written. */
static void compile_again(leat_model *model) {
    leat_error err = {0};
    json_t *written = NULL;
    if (leati_model_training_config(model, &written, &err) != LEAT_OK) abort();
    if (leati_model_compile_config(model, written, &err) != LEAT_OK) abort();
    json_decref(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    leat_error err = {0};
    leat_model *model = NULL;
    json_t *config = json_loadb((const char *)data, size, 0, NULL);
    if (!config) return 0;
    if (leat_model_from_json(&model, network, &err) != LEAT_OK) abort();
    if (leati_model_compile_config(model, config, &err) == LEAT_OK) compile_again(model);
    leat_model_destroy(&model);
    json_decref(config);
    return 0;
}
