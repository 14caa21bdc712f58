/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the variables of an optimizer in the order of current Keras.  Room: formats. */
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "formats/keras3.h"
#include "formats/keras_h5.h"

/* Index of the learning rate's variable, which is no weight of leat's optimizer. */
#define LEARNING_RATE (-1)

void leati_keras3_state_path(void *user, int index, char *out, size_t bytes) {
    (void)user;
    snprintf(out, bytes, "optimizer/vars/%d", index);
}

/* A learning rate that is a schedule is no variable; `decay` of 2.3.1 is written as a schedule. */
static bool has_rate_variable(const leat_model *model) {
    return !(model->compiled.optimizer->config.decay > 0);
}

/* Returns the number of variables after the learning rate: the slots, and Nadam's product of momenta as the last. */
static int slot_variables(const leat_model *model) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    return leati_optimizer_slab_count(optimizer) * model->weights.trainable_count +
           (optimizer->type->has_schedule ? 1 : 0);
}

int leati_keras3_state_count(const leat_model *model) {
    return (has_rate_variable(model) ? 2 : 1) + slot_variables(model);
}

/* Returns the index, for leati_optimizer_weight_at, of slot `slot` of the trainable weight `weight`. */
static int slot_index(const leat_model *model, int slot, int weight) {
    int first = model->compiled.optimizer->type->has_schedule ? 2 : 1;
    return first + slot * model->weights.trainable_count + weight;
}

/* Returns the number of slots that the file interleaves weight by weight: the first two, or all slots of
 * Adafactor, or none of RMSprop.  Each further slot follows as a block of its own. */
static int slots_together(const leati_optimizer *optimizer) {
    int slots = leati_optimizer_slot_count(optimizer);
    if (optimizer->type->slots_apart) return 0;
    return slots < 2 || optimizer->type->slot_desc ? slots : 2;
}

/* Reads or writes the variable at `position` of the file, which is weight `index` of leat's optimizer. */
typedef leat_status (*visit)(void *user, int position, int index, leat_error *err);

/* Visits the variables of one trainable weight, the `done`-th in current Keras's order.  The moving averages of the
 * weights (use_ema) come before the slots, which begin at position `first`. */
static leat_status visit_weight(const leat_model *model, int entry, int done, int first, visit do_one,
                                void *user, leat_error *err) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    int slots = leati_optimizer_slot_count(optimizer), pairs = slots_together(optimizer);
    int trainable = model->weights.trainable_count;
    int average = first;
    if (optimizer->config.use_ema) first += trainable;
    for (int slot = 0; slot < slots; ++slot) {
        int position = slot < pairs ? pairs * done + slot : slot * trainable + done;
        LEATI_TRY(do_one(user, first + position, slot_index(model, slot, entry), err));
    }
    if (!optimizer->config.use_ema) return LEAT_OK;
    return do_one(user, average + done, slot_index(model, leati_optimizer_file_slots(optimizer), entry), err);
}

static leat_status visit_all(const leati_placement *placement, const leat_model *model, bool has_rate,
                             visit do_one, void *user, leat_error *err) {
    int first = has_rate ? 2 : 1, done = 0;
    LEATI_TRY(do_one(user, 0, 0, err));
    if (has_rate) LEATI_TRY(do_one(user, 1, LEARNING_RATE, err));
    for (int32_t i = 0; i < placement->count; ++i) {
        int entry = placement->items[i].weight->entry;
        if (entry < model->weights.trainable_count)
            LEATI_TRY(visit_weight(model, entry, done++, first, do_one, user, err));
    }
    if (!model->compiled.optimizer->type->has_schedule) return LEAT_OK;
    return do_one(user, first + slot_variables(model) - 1, 1, err);
}

/* ---- Reading ---- */

typedef struct transfer {
    leati_h5 *file;
    leat_model *target;       /* reading */
    const leat_model *source; /* writing */
    leati_state_name name_of;
    void *user; /* of name_of */
} transfer;

static leat_status read_one(void *user, int position, int index, leat_error *err) {
    const transfer *t = user;
    char path[512];
    if (index == LEARNING_RATE) return LEAT_OK; /* the configuration has it */
    t->name_of(t->user, position, path, sizeof path);
    return leati_keras_h5_read_optimizer_weight(t->file, path, t->target, index, err);
}

leat_status leati_keras3_read_state(const leati_placement *placement, leati_h5 *file, leat_model *model,
                                    int count, leati_state_name name_of, void *user, leat_error *err) {
    transfer t = {.file = file, .target = model, .name_of = name_of, .user = user};
    int slots = slot_variables(model);
    if (count != slots + 1 && count != slots + 2)
        return leati_fail(err, LEAT_EFORMAT, "the optimizer's state: expected %d variables, found %d",
                          leati_keras3_state_count(model), count);
    return visit_all(placement, model, count == slots + 2, read_one, &t, err);
}

/* ---- Writing ---- */

static leat_status write_one(void *user, int position, int index, leat_error *err) {
    const transfer *t = user;
    const leati_optimizer *optimizer = t->source->compiled.optimizer;
    float rate = (float)optimizer->config.learning_rate;
    char path[512];
    t->name_of(t->user, position, path, sizeof path);
    if (index == LEARNING_RATE) {
        leat_tensor tensor = leat_tensor_view(LEAT_F32, 0, NULL, &rate);
        return leati_h5_write(t->file, path, &tensor, err);
    }
    leati_optimizer_weight weight = leati_optimizer_weight_at(t->source, index);
    size_t bytes = leati_desc_bytes(&weight.desc);
    void *data = leati_calloc_aligned(bytes);
    if (!data) return leati_fail_memory(err, bytes, "the optimizer's state");
    leati_optimizer_weight_copy(t->source, index, data);
    leat_tensor tensor = leat_tensor_view(weight.desc.dtype, weight.desc.rank, weight.desc.shape, data);
    leat_status status = leati_h5_write(t->file, path, &tensor, err);
    leati_free(data);
    return status;
}

leat_status leati_keras3_write_state(const leati_placement *placement, leati_h5 *file,
                                     const leat_model *model, leati_state_name name_of, void *user,
                                     leat_error *err) {
    transfer t = {.file = file, .source = model, .name_of = name_of, .user = user};
    return visit_all(placement, model, has_rate_variable(model), write_one, &t, err);
}
