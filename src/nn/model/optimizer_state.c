/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of the optimizer, in the order of files: iterations, m_schedule (Nadam), then for each slot the
 * values of all trainable weights, then the moving averages and the sums of gradients.
 * Source: optimizer.weights of Keras 2.3.1. */
#include "nn/model/model.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "tensor/number.h"

/* The kinds of the optimizer's weights. */
typedef enum part_kind { PART_ITERATIONS, PART_SCHEDULE, PART_SLOT, PART_AVERAGE, PART_SUM } part_kind;

typedef struct part {
    part_kind kind;
    int slot, weight;
    bool in_use; /* false: a slot that this configuration does not use */
} part;

static part part_of(const leat_model *model, int index) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    if (index == 0) return (part){.kind = PART_ITERATIONS};
    index -= 1;
    if (optimizer->type->has_schedule) {
        if (index == 0) return (part){.kind = PART_SCHEDULE};
        index -= 1;
    }
    int count = model->weights.trainable_count, slot = index / count;
    if (slot < leati_optimizer_file_slots(optimizer))
        return (part){PART_SLOT, slot, index % count, slot < leati_optimizer_slot_count(optimizer)};
    if (optimizer->config.use_ema && slot == leati_optimizer_file_slots(optimizer))
        return (part){PART_AVERAGE, leati_optimizer_slot_count(optimizer), index % count, true};
    return (part){PART_SUM, leati_optimizer_slab_count(optimizer) - 1, index % count, true};
}

int leati_optimizer_weight_count(const leat_model *model) {
    if (!model->compiled.ready) return 0;
    const leati_optimizer *optimizer = model->compiled.optimizer;
    int slots = leati_optimizer_file_slots(optimizer) + (optimizer->config.use_ema ? 1 : 0) +
                (leati_optimizer_batches(optimizer) > 1 ? 1 : 0);
    return 1 + (optimizer->type->has_schedule ? 1 : 0) + slots * model->weights.trainable_count;
}

leati_optimizer_weight leati_optimizer_weight_at(const leat_model *model, int index) {
    const leati_optimizer_type *type = model->compiled.optimizer->type;
    const part p = part_of(model, index);
    const int64_t one = 1;
    leati_optimizer_weight weight = {0};
    switch (p.kind) {
    case PART_ITERATIONS:
        snprintf(weight.name, sizeof(weight.name), "%s/iterations:0", type->class_name);
        weight.desc = leati_desc_make(LEAT_I64, 0, NULL);
        break;
    case PART_SCHEDULE:
        snprintf(weight.name, sizeof(weight.name), "%s/m_schedule:0", type->class_name);
        weight.desc = leati_desc_make(LEAT_F32, 0, NULL);
        break;
    case PART_SLOT:
        snprintf(weight.name, sizeof(weight.name), "%s_%d:0",
                 leati_optimizer_slot_name(model->compiled.optimizer, p.slot), p.weight);
        weight.desc = !p.in_use && type->unused_is_one_number ? leati_desc_make(LEAT_F32, 1, &one)
                                                              : model->weights.entries[p.weight]->desc;
        if (type->slot_desc) weight.desc = type->slot_desc(p.slot, &weight.desc);
        break;
    case PART_AVERAGE:
    case PART_SUM:
        snprintf(weight.name, sizeof(weight.name), "%s_%d:0",
                 p.kind == PART_SUM ? "gradient_accumulator" : "average", p.weight);
        weight.desc = model->weights.entries[p.weight]->desc;
        break;
    }
    return weight;
}

static char *slot_data(const leat_model *model, const part *p) {
    return (char *)leati_weights_slab(&model->weights, (leati_slab)(LEATI_SLAB_SLOT0 + p->slot)) +
           model->weights.entries[p->weight]->offset_bytes;
}

leat_status leati_optimizer_weight_copy(const leat_model *model, int index, void *out, leat_error *err) {
    const part p = part_of(model, index);
    if (p.kind == PART_ITERATIONS) {
        memcpy(out, &model->iterations, sizeof(model->iterations));
    } else if (p.kind == PART_SCHEDULE) {
        float scalars[LEATI_OPTIMIZER_MAX_SCALARS]; /* leati_optimizer_scalars updates m_schedule */
        leati_optimizer_scalars(model->compiled.optimizer, model->iterations, scalars);
        memcpy(out, &model->compiled.optimizer->m_schedule, sizeof(float));
    } else {
        const leati_optimizer_weight weight = leati_optimizer_weight_at(model, index);
        if (p.kind != PART_SUM) LEATI_TRY(leati_weights_check_slots(&model->weights, err));
        size_t bytes = leati_desc_bytes(&weight.desc);
        if (p.in_use) {
            memcpy(out, slot_data(model, &p), bytes);
        } else {
            memset(out, 0, bytes);
        }
    }
    return LEAT_OK;
}

bool leati_model_skips_update(leat_model *model) {
    leati_loss_scale *scale = &model->compiled.optimizer->scale;
    if (scale->growth_steps == 0) return false;
    return leati_loss_scale_skips(scale, leati_weights_slab(&model->weights, LEATI_SLAB_GRADIENTS),
                                  model->weights.trainable_bytes / sizeof(float));
}

static leat_status read_whole(const leat_tensor *value, int64_t *out, leat_error *err) {
    if (leat_dtype_bytes(value->dtype) == 0) return leati_fail(err, LEAT_EDTYPE, "expected an integer");
    *out = leati_integer_at(value->dtype, value->data, 0);
    return LEAT_OK;
}

static leat_status set_iterations(leat_model *model, const leat_tensor *value, leat_error *err) {
    int64_t iterations = 0;
    LEATI_TRY(read_whole(value, &iterations, err));
    if (iterations < 0) return leati_fail(err, LEAT_EINVAL, "expected iterations >= 0");
    model->iterations = iterations;
    return LEAT_OK;
}

static bool same_shape(const leati_desc *desc, const leat_tensor *value) {
    if (desc->rank == 0)
        return leat_tensor_count(value) == 1; /* some files have the shape (1) for a scalar */
    bool same = desc->rank == value->rank;
    for (int i = 0; same && i < desc->rank; ++i) {
        same = desc->shape[i] == value->shape[i];
    }
    return same;
}

leat_status leati_optimizer_weight_set(leat_model *model, int index, const leat_tensor *value,
                                       leat_error *err) {
    const leati_optimizer_weight weight = leati_optimizer_weight_at(model, index);
    const part p = part_of(model, index);
    if (!same_shape(&weight.desc, value)) {
        char want[96], got[96];
        return leati_fail(err, LEAT_ESHAPE, "optimizer weight '%s': expected shape %s, received %s",
                          weight.name,
                          leati_shape_text(want, sizeof(want), weight.desc.rank, weight.desc.shape),
                          leati_shape_text(got, sizeof(got), value->rank, value->shape));
    }
    if (p.kind == PART_ITERATIONS) {
        return leati_prefix(set_iterations(model, value, err), err, "optimizer weight '%s'", weight.name);
    }
    if (p.kind == PART_SLOT && weight.desc.rank == 0 &&
        value->dtype == LEAT_I32) { /* Adafactor's r of a vector */
        *(float *)(void *)slot_data(model, &p) = (float)*(const int32_t *)value->data;
        return LEAT_OK;
    }
    if (value->dtype != LEAT_F32) {
        return leati_fail(err, LEAT_EDTYPE, "optimizer weight '%s': expected float32, received %s",
                          weight.name, leat_dtype_name(value->dtype));
    }
    if (p.kind == PART_SCHEDULE) {
        memcpy(&model->compiled.optimizer->m_schedule, value->data, sizeof(float));
        model->compiled.optimizer->schedule_at = model->iterations;
    } else if (p.in_use) {
        memcpy(slot_data(model, &p), value->data, leati_desc_bytes(&weight.desc));
        leati_weights_changed(&model->weights, (leati_slab)(LEATI_SLAB_SLOT0 + p.slot));
    }
    return LEAT_OK;
}

void leati_optimizer_finish(leat_model *model) {
    leati_weights *weights = &model->weights;
    if (!model->compiled.ready || model->iterations == 0 || weights->trainable_bytes == 0) return;
    leati_slab average = leati_optimizer_average(model->compiled.optimizer);
    if (average == LEATI_SLAB_COUNT) return;
    memcpy(leati_weights_slab(weights, LEATI_SLAB_WEIGHTS), leati_weights_slab(weights, average),
           weights->trainable_bytes);
    leati_model_weights_changed(model);
}
