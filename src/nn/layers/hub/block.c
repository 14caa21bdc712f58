/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, builds and calls the layers inside a layer that is made of others.  Room: nn. */
#include "nn/layers/hub/block.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "json/json.h"
#include "nn/layers/types.h"

leat_status leati_block_add(leati_layer *outer, leati_block *block, const leati_layer_type *type,
                            const char *name, const char *group, json_t *config, leat_error *err) {
    leati_layer **inner = &block->layers[block->count];
    leat_status status = LEAT_OK;
    if (!config || json_object_set_new(config, "name", json_string(name)) != 0)
        status = leati_fail(err, LEAT_ENOMEM, "no memory for the layer '%s'", name);
    if (status == LEAT_OK) status = leati_layer_create(inner, type, config, outer->reader, err);
    json_decref(config);
    LEATI_TRY(status);
    block->groups[block->count++] = group;
    leati_layer_adopt(outer, *inner);
    return LEAT_OK;
}

/* Sets the initializers and regularizers of a kernel and a bias. */
static leat_status set_weights(json_t *inner, const leati_block_weights *w, leat_error *err) {
    json_t *kernel = NULL, *bias = NULL, *on_kernel = NULL, *on_bias = NULL;
    leat_status status = leati_initializer_write(w->kernel, &kernel, err);
    if (status == LEAT_OK) status = leati_initializer_write(w->bias, &bias, err);
    if (status == LEAT_OK && w->on_kernel) status = leati_regularizer_write(w->on_kernel, &on_kernel, err);
    if (status == LEAT_OK && w->on_bias) status = leati_regularizer_write(w->on_bias, &on_bias, err);
    bool set = status == LEAT_OK && json_object_set(inner, "kernel_initializer", kernel) == 0 &&
               json_object_set(inner, "bias_initializer", bias) == 0;
    if (set && on_kernel) set = json_object_set(inner, "kernel_regularizer", on_kernel) == 0;
    if (set && on_bias) set = json_object_set(inner, "bias_regularizer", on_bias) == 0;
    json_decref(kernel);
    json_decref(bias);
    json_decref(on_kernel);
    json_decref(on_bias);
    return status != LEAT_OK || set ? status : leati_fail(err, LEAT_ENOMEM, "no memory for initializers");
}

leat_status leati_block_add_weighted(leati_layer *outer, leati_block *block, const leati_layer_type *type,
                                     const char *name, const char *group, json_t *config,
                                     const leati_block_weights *weights, leat_error *err) {
    leat_status status = config ? set_weights(config, weights, err) : LEAT_OK;
    if (status == LEAT_OK) return leati_block_add(outer, block, type, name, group, config, err);
    json_decref(config);
    return status;
}

leat_status leati_block_add_dense(leati_layer *outer, leati_block *block, const char *name, const char *group,
                                  int64_t units, const leati_activation *activation,
                                  const leati_block_weights *weights, leat_error *err) {
    json_t *function = NULL;
    if (activation) LEATI_TRY(leati_activation_write(activation, &function, err));
    json_t *config = json_pack("{s:I, s:o}", "units", (json_int_t)units, "activation",
                               function ? function : json_string("linear"));
    return leati_block_add_weighted(outer, block, &leati_layer_dense, name, group, config, weights, err);
}

leat_status leati_block_add_norm(leati_layer *outer, leati_block *block, const char *name, const char *group,
                                 double epsilon, leat_error *err) {
    json_t *config = json_pack("{s:o}", "epsilon", leati_json_real(epsilon));
    return leati_block_add(outer, block, &leati_layer_layer_normalization, name, group, config, err);
}

leat_status leati_block_add_dropout(leati_layer *outer, leati_block *block, const char *name, double rate,
                                    leat_error *err) {
    json_t *config = json_pack("{s:o}", "rate", leati_json_real(rate));
    return leati_block_add(outer, block, &leati_layer_dropout, name, "", config, err);
}

void leati_block_fini(leati_block *block) {
    for (int32_t i = 0; i < block->count; ++i) leati_layer_destroy(&block->layers[i]);
    block->count = 0;
}

leati_layer *leati_block_find(const leati_block *block, const char *name) {
    int32_t i = 0;
    while (i < block->count - 1 && strcmp(block->layers[i]->name, name) != 0) ++i;
    return block->layers[i];
}

void leati_block_set_size(leati_layer *inner, const char *key, int64_t size) {
    for (const leati_field *field = inner->type->fields; field->key && !inner->built; ++field)
        if (strcmp(field->key, key) == 0) memcpy((char *)inner->config + field->offset, &size, sizeof size);
}

leat_status leati_block_build(leati_layer *outer, const leati_block *block, const char *name,
                              const leati_shape *input, leat_error *err) {
    leati_layer *inner = leati_block_find(block, name);
    return leati_prefix(leati_layer_build_inner(outer, inner, name, 1, input, err), err, "%s", name);
}

void leati_block_weight_path(const leati_block *block, int index, char *out, size_t bytes) {
    int own = index;
    for (int32_t i = 0; i < block->count; ++i) {
        const leati_layer *inner = block->layers[i];
        if (index >= inner->first_outer_weight && index < inner->first_outer_weight + inner->weight_count) {
            leati_layer_inner_weight_path(inner, block->groups[i], index, out, bytes);
            return;
        }
        if (inner->weight_count > 0 && inner->first_outer_weight < index) own -= inner->weight_count;
    }
    snprintf(out, bytes, "vars/%d", own);
}

leati_value leati_block_call(const leati_block *block, const char *name, leati_lowering *lowering,
                             leati_value x) {
    const leati_layer *inner = leati_block_find(block, name);
    leati_inner_call call = {.input_count = 1, .output_count = 1, .inputs = {x}, .masks = {LEATI_NONE}};
    leati_layer_lower_inner(inner, lowering, &call);
    return call.outputs[0];
}
