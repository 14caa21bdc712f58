/* SPDX-License-Identifier: Apache-2.0 */
/* The type of a model that takes the place of a layer inside another layer, like a TimeDistributed's.  The model's
 * layers have their own weights and states, which leati_layer_model finds.  No configuration names this type.
 * Room: nn. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/custom/registry.h"
#include "nn/model/model.h"

typedef struct config {
    leat_model *model;
} config;

static const leati_field fields[] = {{.key = NULL}};

static void fini(void *memory) {
    config *c = memory;
    leat_model_destroy(&c->model);
}

static leat_model *model_of(const leati_layer *layer) {
    const config *c = layer->config;
    return c->model;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    return leati_network_infer_call(model_of(layer), input_count, inputs, outputs, output_count, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    leati_value masks[LEATI_MAX_INPUTS], output_masks[LEATI_LAYER_MAX_OUTPUTS];
    const bool inside = lowering->inside;
    leat_error err = {0};
    memcpy(masks, lowering->input_masks, (size_t)input_count * sizeof *masks);
    lowering->inside = false; /* the layers of the model add the penalties of their outputs */
    leat_status status =
        leati_network_lower(model_of(layer), lowering, inputs, masks, outputs, output_masks, &err);
    lowering->inside = inside;
    if (status != LEAT_OK)
        leati_graph_fail(lowering->graph, status, "%s", err.message);
    else
        memcpy(lowering->output_masks, output_masks,
               (size_t)model_of(layer)->output_count * sizeof *output_masks);
}

static void set_trainable(leati_layer *layer, bool trainable) {
    model_of(layer)->trainable = trainable;
}

/* Writes the model without "trainable", because the outer layer decides about it. */
static leat_status write(const leati_layer *layer, json_t **out, leat_error *err) {
    LEATI_TRY(leati_model_config(model_of(layer), out, err));
    json_object_del(json_object_get(*out, "config"), "trainable");
    return LEAT_OK;
}

static const leati_layer_type nested = {.class_name = "Model",
                                        .name_prefix = "model",
                                        .config_bytes = sizeof(config),
                                        .fields = fields,
                                        .min_inputs = 1,
                                        .max_inputs = LEATI_MAX_INPUTS,
                                        .masking = LEATI_MASK_COMPUTED,
                                        .write = write,
                                        .set_trainable = set_trainable,
                                        .model = model_of,
                                        .fini = fini,
                                        .infer = infer,
                                        .lower = lower};

static leat_status read_model(const leati_layer_reader *reader, leati_layer **out, const json_t *item,
                              leat_error *err) {
    leat_model *model = NULL;
    leati_layer *layer = NULL;
    *out = NULL;
    LEATI_TRY(leati_model_read_inner(&model, item, reader->registry, err));
    layer = leati_calloc(1, sizeof *layer);
    config *c = leati_calloc(1, sizeof *c);
    if (!layer || !c) {
        leati_free(c);
        leati_free(layer);
        leat_model_destroy(&model);
        return leati_fail_memory(err, sizeof *layer + sizeof *c, "a layer");
    }
    c->model = model;
    *layer = (leati_layer){.type = &nested, .dtype = LEAT_F32, .trainable = model->trainable, .config = c};
    memcpy(layer->name, model->name, sizeof layer->name);
    *out = layer;
    return LEAT_OK;
}

static const leati_layer_type *find_type(const leati_layer_reader *reader, const char *class_name,
                                         const json_t *layer_config, leat_error *err) {
    return leati_registry_find(reader->registry, class_name, layer_config, err);
}

leati_layer_reader leati_layer_reader_for(const leat_registry *registry) {
    return (leati_layer_reader){.scope = {leati_registry_parts(registry)},
                                .registry = registry,
                                .find_type = find_type,
                                .read_model = read_model};
}
