/* SPDX-License-Identifier: Apache-2.0 */
/* keras.models.clone_model: writes the model's configuration and reads it again.  Room: nn. */
#include <string.h>

#include "base/error.h"
#include "leat/layer.h"
#include "nn/custom/registry.h"
#include "nn/layers/wrapping.h"
#include "nn/model/model.h"

static leat_status lend_model(leat_registry *registry, const leat_model *model, leat_error *err);

/* Lends the registry the types of a layer, of the layers in its configuration, and of a model inside it. */
static leat_status lend_layer(leat_registry *registry, const leati_layer *layer, leat_error *err) {
    const leat_model *inner = leati_layer_model(layer);
    LEATI_TRY(leati_registry_lend(registry, layer->type, err));
    for (const leati_field *field = layer->type->fields; field && field->key; ++field) {
        const void *address = (const char *)layer->config + field->offset;
        if (field->kind == LEATI_FIELD_LAYER) {
            const leati_layer *wrapped = *(leati_layer *const *)address;
            if (wrapped) LEATI_TRY(lend_layer(registry, wrapped, err));
        }
        if (field->kind == LEATI_FIELD_LAYERS) {
            const leati_layers *list = address;
            for (int32_t i = 0; i < list->count; ++i) LEATI_TRY(lend_layer(registry, list->items[i], err));
        }
    }
    return inner ? lend_model(registry, inner, err) : LEAT_OK;
}

static leat_status lend_model(leat_registry *registry, const leat_model *model, leat_error *err) {
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leati_member *member = &model->members[i];
        LEATI_TRY(member->layer ? lend_layer(registry, member->layer, err)
                                : lend_model(registry, member->model, err));
    }
    return LEAT_OK;
}

static leat_status read_again(leat_model **out, const leat_model *model, leat_error *err) {
    leat_registry *registry = NULL;
    json_t *config = NULL;
    leat_status status = leat_registry_create(&registry, err);
    if (status == LEAT_OK) leati_registry_share(registry, model->parts);
    if (status == LEAT_OK) status = lend_model(registry, model, err);
    if (status == LEAT_OK) status = leati_model_config(model, &config, err);
    if (status == LEAT_OK) status = leati_model_from_config_with(out, config, registry, err);
    json_decref(config);
    leat_registry_destroy(&registry);
    return status;
}

leat_status leat_model_clone(leat_model **out, const leat_model *model, bool copy_weights, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    leat_model *clone = NULL;
    leat_status status = read_again(&clone, model, err);
    if (status == LEAT_OK && copy_weights) status = leat_model_copy_weights(clone, model, err);
    if (status != LEAT_OK) {
        leat_model_destroy(&clone);
        return leati_prefix(status, err, "clone of model '%s'", model->name);
    }
    if (copy_weights) clone->seed = model->seed;
    clone->as_keras3 = model->as_keras3;
    memcpy(clone->added_loss, model->added_loss, sizeof clone->added_loss);
    memcpy(clone->added_reason, model->added_reason, sizeof clone->added_reason);
    clone->gradient_checkpointing = model->gradient_checkpointing;
    clone->from_keras3 = model->from_keras3;
    clone->deterministic = model->deterministic;
    clone->tf32 = model->tf32;
    clone->unfolded = model->unfolded;
    clone->tuning = model->tuning;
    *out = clone;
    return LEAT_OK;
}
