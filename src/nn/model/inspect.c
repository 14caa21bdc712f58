/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers the layers of a model: first its own layers, then those of its first nested model and the models nested
 * in that one, then those of the second, and so on.  Room: nn. */
#include "leat/inspect.h"

#include <string.h>

#include "base/error.h"
#include "json/json.h"
#include "nn/model/model.h"

/* ---- Numbers ---- */

/* The layer of a number: a member of `owner`.  The first member of `owner` has the number `base`. */
typedef struct place {
    const leat_model *owner;
    int member, base, parent;
} place;

/* Sets *out if the number `wanted` is in this model, whose numbers begin at `base`.  Returns the first number
 * after the model. */
static int64_t search(const leat_model *model, int parent, int64_t base, int wanted, place *out) {
    int64_t next = base + model->member_count;
    if (wanted >= base && wanted < next) *out = (place){model, (int)(wanted - base), (int)base, parent};
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leat_model *inner = leati_member_model(&model->members[i]);
        if (inner) next = search(inner, (int)(base + i), next, wanted, out);
    }
    return next;
}

static int64_t count(const leat_model *model) {
    place none;
    return search(model, -1, 0, -1, &none);
}

static const leati_member *member_at(const leat_model *model, int layer, place *out) {
    *out = (place){0};
    if (model && layer >= 0) search(model, -1, 0, layer, out);
    return out->owner ? &out->owner->members[out->member] : NULL;
}

int leat_model_layer_count(const leat_model *model) {
    return model ? (int)count(model) : 0;
}

static leat_status require_member(const leat_model *model, int layer, place *at, const leati_member **member,
                                  leat_error *err) {
    LEATI_GIVEN(model, err);
    *member = member_at(model, layer, at);
    if (*member) return LEAT_OK;
    return leati_fail_index(err, "layer", layer, leat_model_layer_count(model));
}

/* Returns "inner" of "outer/inner" if `name` is "outer"; NULL otherwise. */
static const char *rest_of_path(const char *path, const char *name) {
    size_t length = strlen(name);
    return strncmp(path, name, length) == 0 && path[length] == '/' ? path + length + 1 : NULL;
}

static int64_t find(const leat_model *model, const char *name, int64_t base) {
    int32_t member = leati_network_find(model, name);
    if (member >= 0) return base + member;
    int64_t next = base + model->member_count, found = -1;
    for (int32_t i = 0; found < 0 && i < model->member_count; ++i) {
        const leat_model *inner = leati_member_model(&model->members[i]);
        if (!inner) continue;
        const char *rest = rest_of_path(name, leati_member_name(model, i));
        if (rest) found = find(inner, rest, next);
        if (found < 0) found = find(inner, name, next);
        next += count(inner);
    }
    return found;
}

int leat_model_find_layer(const leat_model *model, const char *name) {
    return model && name ? (int)find(model, name, 0) : -1;
}

/* ---- One layer ---- */

const char *leat_model_layer_name(const leat_model *model, int layer) {
    place at;
    return member_at(model, layer, &at) ? leati_member_name(at.owner, at.member) : NULL;
}

const char *leat_model_layer_class(const leat_model *model, int layer) {
    place at;
    const leati_member *member = member_at(model, layer, &at);
    if (!member) return NULL;
    return member->layer ? member->layer->type->class_name : member->model->class_name;
}

int leat_model_layer_parent(const leat_model *model, int layer) {
    place at;
    return member_at(model, layer, &at) ? at.parent : -1;
}

bool leat_model_layer_trainable(const leat_model *model, int layer) {
    place at;
    const leati_member *member = member_at(model, layer, &at);
    if (!member) return false;
    return member->layer ? member->layer->trainable : member->model->trainable;
}

static leat_status nested_config(const leat_model *model, json_t **out, leat_error *err) {
    json_t *whole = NULL;
    LEATI_TRY(leati_model_config(model, &whole, err));
    *out = json_incref(json_object_get(whole, "config"));
    json_decref(whole);
    return LEAT_OK;
}

leat_status leat_model_layer_config(const leat_model *model, int layer, char **out, leat_error *err) {
    place at;
    const leati_member *member = NULL;
    json_t *config = NULL;
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_TRY(require_member(model, layer, &at, &member, err));
    leat_status status = member->layer ? leati_layer_config(member->layer, &config, err)
                                       : nested_config(member->model, &config, err);
    if (status == LEAT_OK) status = leati_json_write(config, out, err);
    json_decref(config);
    return status;
}

/* ---- Weights ---- */

static bool has_weight(const leati_member *member, const leati_weight *weight) {
    const leat_model *inner = leati_member_model(member);
    for (int32_t i = 0; inner && i < inner->member_count; ++i)
        if (has_weight(&inner->members[i], weight)) return true;
    for (int32_t i = 0; !inner && i < member->layer->weight_count; ++i)
        if (&member->layer->weights[i] == weight) return true;
    return false;
}

/* Returns the index of a layer's weight `wanted` among the weights of the model.  If there is none, returns -1 and
 * sets *found to the number of weights of the layer. */
static int weight_of(const leat_model *model, const leati_member *member, int wanted, int *found) {
    const leati_weights *all = &model->weights;
    *found = 0;
    for (int32_t i = 0; i < all->count; ++i) {
        if (!has_weight(member, all->entries[all->order[i]])) continue;
        if (*found == wanted) return i;
        ++*found;
    }
    return -1;
}

int leat_model_layer_weight_count(const leat_model *model, int layer) {
    place at;
    const leati_member *member = member_at(model, layer, &at);
    int found = 0;
    if (member) weight_of(model, member, -1, &found);
    return found;
}

int leat_model_layer_weight(const leat_model *model, int layer, int index) {
    place at;
    const leati_member *member = member_at(model, layer, &at);
    int found;
    return member && index >= 0 ? weight_of(model, member, index, &found) : -1;
}

int leat_model_find_weight(const leat_model *model, const char *name) {
    if (!model || !name) return -1;
    size_t length = strlen(name);
    for (int i = 0; i < leat_model_weight_count(model); ++i) {
        const char *own = leat_model_weight_name(model, i);
        if (strncmp(own, name, length) == 0 && (own[length] == '\0' || strcmp(own + length, ":0") == 0))
            return i;
    }
    return -1;
}

static bool trains(const leat_model *model, const leati_weight *weight) {
    for (int32_t i = 0; model->trainable && i < model->member_count; ++i) {
        const leati_member *member = &model->members[i];
        const leat_model *inner = leati_member_model(member);
        if (!has_weight(member, weight)) continue;
        return inner ? trains(inner, weight) : member->layer->trainable && weight->trainable;
    }
    return false;
}

bool leat_model_weight_trainable(const leat_model *model, int index) {
    if (!model || index < 0 || index >= model->weights.count) return false;
    return trains(model, model->weights.entries[model->weights.order[index]]);
}

/* ---- Connections ---- */

static const leati_call *call_at(const leat_model *model, int layer, int call, place *at) {
    const leati_member *member = member_at(model, layer, at);
    return member && call >= 0 && call < member->call_count ? &member->calls[call] : NULL;
}

int leat_model_layer_call_count(const leat_model *model, int layer) {
    place at;
    const leati_member *member = member_at(model, layer, &at);
    return member ? member->call_count : 0;
}

int leat_model_layer_input_count(const leat_model *model, int layer, int call) {
    place at;
    const leati_call *made = call_at(model, layer, call, &at);
    return made ? made->input_count : 0;
}

int leat_model_layer_output_count(const leat_model *model, int layer, int call) {
    place at;
    const leati_call *made = call_at(model, layer, call, &at);
    return made ? made->output_count : 0;
}

static leat_status require_call(const leat_model *model, int layer, int call, place *at,
                                const leati_call **made, leat_error *err) {
    const leati_member *member = NULL;
    LEATI_TRY(require_member(model, layer, at, &member, err));
    if (call < 0 || call >= member->call_count)
        return leati_prefix(leati_fail_index(err, "call", call, member->call_count), err, "layer '%s'",
                            leati_member_name(at->owner, at->member));
    *made = &member->calls[call];
    return LEAT_OK;
}

static leat_status require_tensor(const place *at, const char *what, int index, int count, leat_error *err) {
    if (index >= 0 && index < count) return LEAT_OK;
    return leati_prefix(leati_fail_index(err, what, index, count), err, "layer '%s'",
                        leati_member_name(at->owner, at->member));
}

leat_status leat_model_layer_input(const leat_model *model, int layer, int call, int index,
                                   leat_layer_source *out, leat_error *err) {
    place at;
    const leati_call *made = NULL;
    LEATI_GIVEN(out, err);
    *out = (leat_layer_source){0};
    LEATI_TRY(require_call(model, layer, call, &at, &made, err));
    LEATI_TRY(require_tensor(&at, "input", index, made->input_count, err));
    const leati_source *from = &made->inputs[index];
    *out = (leat_layer_source){at.base + from->layer, from->call, from->tensor};
    return LEAT_OK;
}

static leat_tensor shape_of(const leat_model *owner, const leati_source *source) {
    const leati_layer *layer = owner->members[source->layer].layer;
    leati_shape shape = leati_network_shape(owner, source);
    return leat_tensor_view(layer && leati_layer_is_input(layer) ? layer->dtype : LEAT_F32, shape.rank,
                            shape.dims, NULL);
}

leat_status leat_model_layer_input_shape(const leat_model *model, int layer, int call, int index,
                                         leat_tensor *out, leat_error *err) {
    place at;
    const leati_call *made = NULL;
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    LEATI_TRY(require_call(model, layer, call, &at, &made, err));
    LEATI_TRY(require_tensor(&at, "input", index, made->input_count, err));
    *out = shape_of(at.owner, &made->inputs[index]);
    return LEAT_OK;
}

leat_status leat_model_layer_output_shape(const leat_model *model, int layer, int call, int index,
                                          leat_tensor *out, leat_error *err) {
    place at;
    const leati_call *made = NULL;
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    LEATI_TRY(require_call(model, layer, call, &at, &made, err));
    LEATI_TRY(require_tensor(&at, "output", index, made->output_count, err));
    *out = shape_of(at.owner, &(leati_source){at.member, call, index});
    return LEAT_OK;
}
