/* SPDX-License-Identifier: Apache-2.0 */
/* Sets Keras's dtype policy for all layers of a model.  Room: nn. */
#include <string.h>

#include "base/os/cpu.h"
#include "base/error.h"
#include "nn/layers/wrapping.h"
#include "nn/model/model.h"

static void set_layer(leati_layer *layer, bool mixed) {
    layer->mixed = mixed && !leati_layer_is_input(layer);
    layer->float16 = false;
    for (const leati_field *field = layer->type->fields; field && field->key; ++field) {
        const void *address = (const char *)layer->config + field->offset;
        if (field->kind == LEATI_FIELD_LAYER) {
            leati_layer *inner = *(leati_layer *const *)address;
            if (inner) set_layer(inner, mixed);
        }
        if (field->kind == LEATI_FIELD_LAYERS) {
            const leati_layers *inner = address;
            for (int32_t i = 0; i < inner->count; ++i) set_layer(inner->items[i], mixed);
        }
    }
}

static void set_model(leat_model *model, bool mixed) {
    for (int32_t i = 0; i < model->member_count; ++i) {
        leat_model *inner = leati_member_model(&model->members[i]);
        if (model->members[i].layer) set_layer(model->members[i].layer, mixed);
        if (inner) set_model(inner, mixed);
    }
}

leat_status leat_model_set_dtype_policy(leat_model *model, const char *policy, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(policy, err);
    bool mixed = strcmp(policy, LEATI_MIXED_BFLOAT16) == 0;
    if (!mixed && strcmp(policy, "float32") != 0)
        return leati_fail(err, LEAT_ENOTSUP,
                          "dtype policy: expected float32 or " LEATI_MIXED_BFLOAT16 ", received '%.80s'",
                          policy);
    set_model(model, mixed);
    ++model->version;
    return LEAT_OK;
}

int32_t leati_model_count_mixed(const leat_model *model) {
    int32_t count = 0;
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leat_model *inner = leati_member_model(&model->members[i]);
        count += model->members[i].layer && model->members[i].layer->mixed;
        if (inner) count += leati_model_count_mixed(inner);
    }
    return count;
}

bool leat_model_prefers_float32(const leat_model *model) {
    return model && leati_model_count_mixed(model) > 0 && !leati_cpu_has_bfloat16();
}
