/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the order of layers of a configuration of current Keras, by which the groups of its files are numbered.
 * Room: nn. */
#include "base/error.h"
#include "nn/config/object.h"
#include "nn/model/model.h"

static json_t *order_of(const json_t *config);

/* Returns {"class_name": ..., "config": ...} with a name and the layers inside (new reference); NULL without memory. */
static json_t *item_order(const json_t *item) {
    const json_t *config = json_object_get(item, "config"), *inner = json_object_get(config, "layer");
    json_t *kept = leati_item_is_model(item) ? order_of(config) : json_object();
    bool set = kept && json_object_set_new(kept, "name", json_string(leati_item_name(item))) == 0;
    if (set && leati_item_is_model(inner)) set = json_object_set_new(kept, "layer", item_order(inner)) == 0;
    if (!set) {
        json_decref(kept);
        return NULL;
    }
    return json_pack("{s:s, s:o}", "class_name", leati_item_class(item), "config", kept);
}

/* Returns {"layers": [...]} for the configuration of a model (new reference); NULL without memory. */
static json_t *order_of(const json_t *config) {
    const json_t *layers = json_is_array(config) ? config : json_object_get(config, "layers");
    json_t *list = json_array();
    for (size_t i = 0; list && i < json_array_size(layers); ++i) {
        if (json_array_append_new(list, item_order(json_array_get(layers, i))) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list ? json_pack("{s:o}", "layers", list) : NULL;
}

leat_status leati_model_store_layer_order(leat_model *model, const json_t *root, leat_error *err) {
    json_t *order = item_order(root);
    if (!order) return leati_fail(err, LEAT_ENOMEM, "no memory for the order of layers");
    json_decref(model->layer_order);
    model->layer_order = order;
    return LEAT_OK;
}

leat_status leati_model_layer_order(const leat_model *model, json_t **out, leat_error *err) {
    if (!model->layer_order) return leati_model_config(model, out, err);
    *out = json_incref(model->layer_order);
    return LEAT_OK;
}
