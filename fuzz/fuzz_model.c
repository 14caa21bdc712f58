/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes architectures in JSON: a model that is read is written, read again with the same result, summarised, and
 * lowered to the shapes that its layers have announced. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "fuzz.h"
#include "nn/model/model.h"

#define BATCH       2
#define MAX_TENSORS 16

static void check_again(const leat_model *model) {
    leat_model *again = NULL;
    char *text = NULL, *text_again = NULL, *summary = NULL;
    leat_error err = {0};
    leat_status status = leat_model_to_json(model, &text, &err);
    if (status == LEAT_ENOTSUP)
        return; /* a layer that current Keras, from which the text came, does not have */
    if (status == LEAT_OK) status = leat_model_from_json(&again, text, &err);
    if (status == LEAT_OK) status = leat_model_to_json(again, &text_again, &err);
    if (status != LEAT_OK && status != LEAT_ENOMEM) abort();
    if (status == LEAT_OK && strcmp(text, text_again) != 0) abort();
    if (leat_model_summary(model, &summary, &err) == LEAT_OK && !strstr(summary, "Total params: ")) abort();
    leat_string_free(text);
    leat_string_free(text_again);
    leat_string_free(summary);
    leat_model_destroy(&again);
}

/* Returns an input's shape with a batch dimension, and 3 for each unknown dimension. */
static leati_desc concrete(const leati_shape *shape) {
    leati_desc desc = leati_desc_make(LEAT_F32, shape->rank, shape->dims);
    for (int i = 0; i < desc.rank; ++i)
        if (desc.shape[i] < 0) desc.shape[i] = i == 0 ? BATCH : 3;
    return desc;
}

static void check_shapes(const leat_model *model, const leati_graph *graph, const leati_value *outputs) {
    for (int i = 0; i < model->output_count; ++i) {
        leati_shape promised = leati_model_output_shape(model, i);
        const leati_desc *desc = leati_graph_desc(graph, outputs[i]);
        if (desc->rank != promised.rank) abort();
        for (int j = 0; j < desc->rank; ++j)
            if (promised.dims[j] >= 0 && desc->shape[j] != promised.dims[j]) abort();
    }
}

static void check_lowering(const leat_model *model, leati_mode mode) {
    leati_graph *graph = NULL;
    leati_value inputs[MAX_TENSORS], outputs[MAX_TENSORS], masks[MAX_TENSORS];
    if (model->input_count > MAX_TENSORS || model->output_count > MAX_TENSORS) return;
    if (leati_graph_create(&graph, NULL) != LEAT_OK) return;
    leati_lowering lowering = {.graph = graph, .mode = mode};
    for (int i = 0; i < model->input_count; ++i) {
        leati_shape shape = leati_model_input_shape(model, i);
        leati_desc desc = concrete(&shape);
        inputs[i] = leati_graph_input(graph, i, &desc);
    }
    leat_error err = {0};
    leat_status status = leati_model_lower(model, &lowering, inputs, outputs, masks, &err);
    if (status == LEAT_OK) check_shapes(model, graph, outputs);
    if (status == LEAT_EINTERNAL) abort();
    leati_graph_destroy(&graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = leati_calloc(size + 1, 1);
    leat_model *model = NULL;
    leat_error err = {0};
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    leat_status status = leat_model_from_json(&model, text, &err);
    if ((status == LEAT_OK) != (model != NULL)) abort();
    if (status == LEAT_EINTERNAL || (status != LEAT_OK && err.message[0] == '\0')) abort();
    if (model) {
        check_again(model);
        check_lowering(model, LEATI_TRAIN);
        check_lowering(model, LEATI_PREDICT);
    }
    leat_model_destroy(&model);
    leati_free(text);
    return 0;
}
