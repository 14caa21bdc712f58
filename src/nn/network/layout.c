/* SPDX-License-Identifier: Apache-2.0 */
/* Lays out the weights of a model: Keras's orders of weights, the offsets in the slab, the first values.  Room:
 * nn. */
#include "nn/network/network.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

/* A weight that the finder has found. */
typedef struct found_weight {
    leati_weight *weight;
    const char *base; /* the slab of its present offset; NULL: the weight has no value yet */
    uint64_t stream;
    char *name; /* owned by the finder, until commit */
    size_t offset;
} found_weight;

typedef struct finder {
    found_weight *items; /* capacity: all weights of the model */
    int32_t count;
    leati_text path; /* of nested models: "model_1/" */
    bool failed;
} finder;

enum part { TRAINABLE, FIXED };

static int32_t count_weights(const leat_model *model) {
    int32_t count = 0;
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leati_member *m = &model->members[i];
        const leat_model *inner = leati_member_model(m);
        if (m->layer) count += m->layer->weight_count;
        if (inner) count += count_weights(inner);
    }
    return count;
}

static void find_in_layer(finder *f, leati_layer *layer, enum part part, const char *base, uint64_t stream) {
    for (int32_t i = 0; i < layer->weight_count; ++i) {
        leati_weight *weight = &layer->weights[i];
        bool trains = weight->trainable && layer->trainable;
        leati_text name = {0};
        if (trains != (part == TRAINABLE)) continue;
        leati_text_add(&name, "%s%s/%s:0", f->path.data ? f->path.data : "", layer->name, weight->name);
        f->failed = f->failed || name.failed;
        f->items[f->count++] =
            (found_weight){.weight = weight,
                           .base = weight->placed ? base : NULL,
                           .stream = leati_stream(leati_stream(stream, layer->name), weight->name),
                           .name = name.data};
    }
}

static void find_in_model(finder *f, const leat_model *model, enum part part, const char *base,
                          uint64_t stream);

static void find_in_member(finder *f, const leati_member *member, enum part part, const char *base,
                           uint64_t stream) {
    const leat_model *inner = leati_member_model(member);
    const char *name = member->layer ? member->layer->name : inner->name;
    if (!inner) {
        find_in_layer(f, member->layer, part, base, stream);
        return;
    }
    size_t length = f->path.length;
    leati_text_add(&f->path, "%s/", name);
    find_in_model(f, inner, part, base, leati_stream(stream, name));
    f->failed = f->failed || f->path.failed;
    if (f->path.failed) return;
    f->path.length = length;
    f->path.data[length] = '\0';
}

static void find_in_members(finder *f, const leat_model *model, enum part part, const char *base,
                            uint64_t stream) {
    const char *own_slab = leati_weights_slab(&model->weights, LEATI_SLAB_WEIGHTS);
    for (int32_t i = 0; i < model->member_count; ++i)
        find_in_member(f, &model->members[i], part, own_slab ? own_slab : base, stream);
}

/* Lists Keras's trainable_weights, or its non_trainable_weights: there, a frozen model lists its trainable weights
 * first. */
static void find_in_model(finder *f, const leat_model *model, enum part part, const char *base,
                          uint64_t stream) {
    if (part == TRAINABLE) {
        if (model->trainable) find_in_members(f, model, TRAINABLE, base, stream);
        return;
    }
    if (!model->trainable) find_in_members(f, model, TRAINABLE, base, stream);
    find_in_members(f, model, FIXED, base, stream);
}

static void finder_fini(finder *f) {
    for (int32_t i = 0; f->items && i < f->count; ++i) leati_free(f->items[i].name);
    leati_free(f->items);
    leati_text_fini(&f->path);
}

static leat_status finder_init(finder *f, const leat_model *model, leat_error *err) {
    size_t count = (size_t)count_weights(model);
    *f = (finder){.items = leati_calloc(count + 1, sizeof *f->items)};
    return f->items ? LEAT_OK : leati_fail_memory(err, count * sizeof *f->items, "weights");
}

/* ---- The order of files ---- */

/* Fills `order` and the members' ranges of weights; every entry must have its index. */
static leat_status order_weights(leat_model *model, int32_t *order, leat_error *err) {
    finder f;
    LEATI_TRY(finder_init(&f, model, err));
    for (int32_t i = 0; i < model->member_count; ++i) {
        leati_member *member = &model->members[i];
        member->first_weight = f.count;
        find_in_member(&f, member, TRAINABLE, NULL, 0);
        find_in_member(&f, member, FIXED, NULL, 0);
        member->weight_count = f.count - member->first_weight;
    }
    for (int32_t i = 0; !f.failed && i < f.count; ++i) order[i] = f.items[i].weight->entry;
    bool failed = f.failed;
    finder_fini(&f);
    return failed ? leati_fail_memory(err, 0, "weights") : LEAT_OK;
}

leat_status leati_weights_reorder(leat_model *model, leat_error *err) {
    return order_weights(model, model->weights.order, err);
}

/* ---- Layout ---- */

static leat_status draw(const found_weight *item, uint64_t seed, char *slab, leat_error *err) {
    const leati_weight *w = item->weight;
    leat_status status = leati_initializer_draw(w->initializer, w->desc.rank, w->desc.shape, seed,
                                                item->stream, (float *)(void *)(slab + item->offset), err);
    return leati_prefix(status, err, "weight '%s'", item->name);
}

/* Computes the offsets in a new slab, and its size; returns false on overflow. */
static bool assign_offsets(finder *f, int32_t trainable_count, leati_weights *out) {
    size_t bytes = 0;
    for (int32_t i = 0; i < f->count; ++i) {
        size_t bytes_of_weight = leati_align(leati_desc_bytes(&f->items[i].weight->desc));
        if (i == trainable_count) out->trainable_bytes = bytes;
        f->items[i].offset = bytes;
        if (bytes_of_weight > SIZE_MAX / 2 - bytes) return false;
        bytes += bytes_of_weight;
    }
    if (trainable_count == f->count) out->trainable_bytes = bytes;
    out->bytes = bytes;
    return true;
}

static leat_status allocate(finder *f, leati_weights *out, leat_error *err) {
    size_t count = (size_t)f->count + 1;
    out->count = f->count;
    out->entries = leati_calloc(count, sizeof *out->entries);
    out->names = leati_calloc(count, sizeof *out->names);
    out->order = leati_calloc(count, sizeof *out->order);
    out->lent = leati_calloc(2, sizeof *out->lent);
    if (out->lent) out->states_lent = out->lent + 1;
    out->slab[LEATI_SLAB_WEIGHTS] = leati_calloc_aligned(out->bytes ? out->bytes : 1);
    if (out->state_bytes > 0) out->slab[LEATI_SLAB_STATES] = leati_calloc_aligned(out->state_bytes);
    if (!out->entries || !out->names || !out->order || !out->lent || !out->slab[LEATI_SLAB_WEIGHTS] ||
        (out->state_bytes > 0 && !out->slab[LEATI_SLAB_STATES]))
        return leati_fail_memory(err, out->bytes, "weights");
    return LEAT_OK;
}

static leat_status fill(const finder *f, uint64_t seed, leati_weights *out, leat_error *err) {
    char *slab = out->slab[LEATI_SLAB_WEIGHTS];
    for (int32_t i = 0; i < f->count; ++i) {
        const found_weight *item = &f->items[i];
        if (!item->base)
            LEATI_TRY(draw(item, seed, slab, err));
        else
            memcpy(slab + item->offset, item->base + item->weight->offset_bytes,
                   leati_desc_bytes(&item->weight->desc));
    }
    return LEAT_OK;
}

/* Frees the slabs of nested models, since `model` is the outermost model now, and tells all layers if they train. */
static void release_inner_models(leat_model *model, bool trains) {
    for (int32_t i = 0; i < model->member_count; ++i) {
        leati_member *member = &model->members[i];
        leat_model *inner = leati_member_model(member);
        bool inner_trains = trains && model->trainable;
        if (member->layer) member->layer->trains = inner_trains && member->layer->trainable;
        if (!inner) continue;
        release_inner_models(inner, inner_trains);
        leati_weights_fini(&inner->weights);
    }
}

/* Moves the new layout into the model.  Nothing can fail from here on. */
static void commit(leat_model *model, finder *f, leati_weights *layout) {
    for (int32_t i = 0; i < f->count; ++i) {
        found_weight *item = &f->items[i];
        layout->entries[i] = item->weight;
        layout->names[i] = item->name;
        item->name = NULL;
        item->weight->offset_bytes = item->offset;
        item->weight->entry = i;
        item->weight->placed = true;
    }
    leati_states_move(model, layout->slab[LEATI_SLAB_STATES]);
    release_inner_models(model, true);
    leati_weights_fini(&model->weights);
    model->weights = *layout;
    leati_model_weights_changed(model);
}

/* Computes the order of the new layout, which needs the new indices of the entries; restores the old indices on
 * failure. */
static leat_status order_new(leat_model *model, const finder *f, leati_weights *layout, leat_error *err) {
    int32_t *old = leati_calloc((size_t)f->count + 1, sizeof *old);
    if (!old) return leati_fail_memory(err, (size_t)f->count * sizeof *old, "weights");
    for (int32_t i = 0; i < f->count; ++i) {
        old[i] = f->items[i].weight->entry;
        f->items[i].weight->entry = i;
    }
    leat_status status = order_weights(model, layout->order, err);
    for (int32_t i = 0; status != LEAT_OK && i < f->count; ++i) f->items[i].weight->entry = old[i];
    leati_free(old);
    return status;
}

leat_status leati_weights_layout(leat_model *model, leat_error *err) {
    finder f;
    leati_weights layout = {.state_bytes = leati_states_bytes(model)};
    LEATI_TRY(finder_init(&f, model, err));
    find_in_model(&f, model, TRAINABLE, NULL, 0);
    layout.trainable_count = f.count;
    find_in_model(&f, model, FIXED, NULL, 0);
    leat_status status = f.failed ? leati_fail_memory(err, 0, "the names of weights") : LEAT_OK;
    if (status == LEAT_OK && !assign_offsets(&f, layout.trainable_count, &layout))
        status = leati_fail_memory(err, SIZE_MAX, "weights");
    if (status == LEAT_OK) status = allocate(&f, &layout, err);
    if (status == LEAT_OK) status = fill(&f, model->seed, &layout, err);
    if (status == LEAT_OK) status = order_new(model, &f, &layout, err);
    if (status == LEAT_OK)
        commit(model, &f, &layout);
    else {
        layout.count = 0; /* the finder owns the names */
        leati_weights_fini(&layout);
    }
    finder_fini(&f);
    return status;
}

leat_status leat_model_initialize(leat_model *model, uint64_t seed, leat_error *err) {
    LEATI_GIVEN(model, err);
    finder f;
    LEATI_TRY(finder_init(&f, model, err));
    find_in_model(&f, model, TRAINABLE, NULL, 0);
    find_in_model(&f, model, FIXED, NULL, 0);
    leat_status status = f.failed ? leati_fail_memory(err, 0, "the names of weights") : LEAT_OK;
    for (int32_t i = 0; status == LEAT_OK && i < f.count; ++i) {
        f.items[i].offset = f.items[i].weight->offset_bytes;
        status = draw(&f.items[i], seed, leati_weights_slab(&model->weights, LEATI_SLAB_WEIGHTS), err);
    }
    finder_fini(&f);
    leati_model_weights_changed(model);
    if (status == LEAT_OK) model->seed = seed;
    return status;
}

/* ---- Looking at them ---- */

int leat_model_weight_count(const leat_model *model) {
    return model ? model->weights.count : 0;
}

/* Returns a view of a weight whose index is in range. */
static leat_tensor weight_at(const leat_model *model, int index) {
    const leati_weight *weight = model->weights.entries[model->weights.order[index]];
    char *slab = leati_weights_slab(&model->weights, LEATI_SLAB_WEIGHTS);
    return leat_tensor_view(weight->desc.dtype, weight->desc.rank, weight->desc.shape,
                            slab + weight->offset_bytes);
}

leat_tensor leat_model_weight(const leat_model *model, int index) {
    if (!model || index < 0 || index >= model->weights.count) return (leat_tensor){0};
    *model->weights.lent = true;
    return weight_at(model, index);
}

leat_status leat_model_weight_into(const leat_model *model, int index, leat_tensor *out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    LEATI_GIVEN(model, err);
    if (index < 0 || index >= model->weights.count)
        return leati_fail_index(err, "weight", index, model->weights.count);
    *out = leat_model_weight(model, index);
    return LEAT_OK;
}

static leat_status check_weight_index(const leat_model *model, int index, leat_error *err) {
    LEATI_GIVEN(model, err);
    if (index >= 0 && index < model->weights.count) return LEAT_OK;
    return leati_fail_index(err, "weight", index, model->weights.count);
}

leat_status leat_model_weight_get(const leat_model *model, int index, const leat_tensor *dst,
                                  leat_error *err) {
    LEATI_TRY(check_weight_index(model, index, err));
    LEATI_GIVEN(dst, err);
    leat_tensor weight = weight_at(model, index);
    return leati_prefix(leat_tensor_copy(dst, &weight, NULL, err), err, "weight '%s'",
                        leat_model_weight_name(model, index));
}

leat_status leat_model_weight_set(leat_model *model, int index, const leat_tensor *src, leat_error *err) {
    LEATI_TRY(check_weight_index(model, index, err));
    LEATI_GIVEN(src, err);
    leat_tensor weight = weight_at(model, index);
    LEATI_TRY(leati_prefix(leat_tensor_copy(&weight, src, NULL, err), err, "weight '%s'",
                           leat_model_weight_name(model, index)));
    leati_model_weights_changed(model);
    return LEAT_OK;
}

leat_status leat_model_weight_shape(const leat_model *model, int index, leat_tensor *out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    LEATI_TRY(check_weight_index(model, index, err));
    *out = weight_at(model, index);
    out->data = NULL;
    return LEAT_OK;
}

const char *leat_model_weight_name(const leat_model *model, int index) {
    if (!model || index < 0 || index >= model->weights.count) return NULL;
    return model->weights.names[model->weights.order[index]];
}

/* Compares the shapes of weight `index` of two models. */
static leat_status same_shape(const leat_model *a, const leat_model *b, int index, leat_error *err) {
    const leati_weight *first = a->weights.entries[a->weights.order[index]];
    const leati_weight *second = b->weights.entries[b->weights.order[index]];
    if (leati_desc_same_shape(&first->desc, &second->desc)) return LEAT_OK;
    return leati_fail(err, LEAT_ESHAPE, "expected the weights of '%s' and '%s' to have the same shape",
                      leat_model_weight_name(a, index), leat_model_weight_name(b, index));
}

leat_status leat_model_copy_weights(leat_model *model, const leat_model *from, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(from, err);
    const leati_weights *to_weights = &model->weights, *from_weights = &from->weights;
    if (to_weights->count != from_weights->count)
        return leati_fail(err, LEAT_EINVAL, "expected a model of %d weights, received one of %d",
                          to_weights->count, from_weights->count);
    for (int i = 0; i < to_weights->count; ++i) LEATI_TRY(same_shape(model, from, i, err));
    char *to_slab = leati_weights_slab(to_weights, LEATI_SLAB_WEIGHTS);
    const char *from_slab = leati_weights_slab(from_weights, LEATI_SLAB_WEIGHTS);
    for (int i = 0; model != from && i < to_weights->count; ++i) {
        const leati_weight *to = to_weights->entries[to_weights->order[i]],
                           *source = from_weights->entries[from_weights->order[i]];
        memcpy(to_slab + to->offset_bytes, from_slab + source->offset_bytes, leati_desc_bytes(&to->desc));
    }
    leati_model_weights_changed(model);
    return LEAT_OK;
}

int leati_member_weight_count(const leat_model *model, int member) {
    return model->members[member].weight_count;
}

const leati_weight *leati_member_weight(const leat_model *model, int member, int index) {
    return model->weights.entries[model->weights.order[model->members[member].first_weight + index]];
}

const char *leati_member_weight_name(const leat_model *model, int member, int index) {
    return leat_model_weight_name(model, model->members[member].first_weight + index);
}
