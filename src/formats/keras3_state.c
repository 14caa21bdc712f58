/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the variables of an optimizer in the order of current Keras.  Room: formats. */
#include <stdio.h>
#include <string.h>

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

/* The positions of the variables in a file. */
typedef struct state_layout {
    bool has_rate;  /* the learning rate is at position 1 */
    bool in_blocks; /* the slots are not interleaved weight by weight */
    int scale;      /* number of a LossScaleOptimizer's variables, before all others */
    int first;      /* position of the first slot */
    int product;    /* position of Nadam's product of momenta; -1: none */
} state_layout;

/* A learning rate that is a schedule is no variable; `decay` of 2.3.1 is written as a schedule. */
static bool has_rate_variable(const leat_model *model) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    return !optimizer->schedule && !(optimizer->config.decay > 0);
}

/* True if files have this slot of a trainable weight. */
static bool has_slot(const leat_model *model, int weight, int slot) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    return !optimizer->type->has_slot ||
           optimizer->type->has_slot(&optimizer->config, &model->weights, weight, slot);
}

static int slot_variables(const leat_model *model) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    int missing = 0;
    for (int32_t i = 0; i < model->weights.trainable_count; ++i)
        for (int slot = 0; slot < leati_optimizer_slot_count(optimizer); ++slot)
            missing += has_slot(model, i, slot) ? 0 : 1;
    return leati_optimizer_slab_count(optimizer) * model->weights.trainable_count - missing;
}

/* The variables of a LossScaleOptimizer. */
enum { SCALE_ITERATION, SCALE_RATE, SCALE_COUNTER, SCALE_VALUE, SCALE_VARIABLES };

/* Moves the optimizer's variables behind those of its LossScaleOptimizer. */
static void put_behind_scale(state_layout *layout) {
    layout->scale = SCALE_VARIABLES;
    layout->first += SCALE_VARIABLES;
    if (layout->product >= 0) layout->product += SCALE_VARIABLES;
}

/* Returns the layout of files of current Keras, where the product of momenta is the last variable. */
static state_layout current_layout(const leat_model *model, bool has_rate, bool has_product) {
    const int first = has_rate ? 2 : 1;
    return (state_layout){.has_rate = has_rate,
                          .first = first,
                          .product = has_product ? first + slot_variables(model) : -1};
}

/* Returns the layout of the files that leat writes.  In a LossScaleOptimizer, Keras leaves out the product of momenta,
 * and begins with 1 again. */
static state_layout written_layout(const leat_model *model) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    const bool scaled = optimizer->scale.growth_steps > 0;
    state_layout layout =
        current_layout(model, has_rate_variable(model), optimizer->type->has_schedule && !scaled);
    if (scaled) put_behind_scale(&layout);
    return layout;
}

/* Returns the layout of files of tf.keras 2.11 to 2.15. */
static state_layout late_layout(void) {
    return (state_layout){.first = 1, .product = -1};
}

int leati_keras3_late_state_count(const leat_model *model) {
    return 1 + slot_variables(model);
}

int leati_keras3_state_count(const leat_model *model) {
    const state_layout layout = written_layout(model);
    return layout.first + slot_variables(model) + (layout.product < 0 ? 0 : 1);
}

bool leati_keras3_has_state(const leat_model *model, int count, bool late) {
    const int least = late ? leati_keras3_late_state_count(model) : leati_keras3_state_count(model);
    if (model->compiled.optimizer->scale.wraps) /* before the first step, files have two variables of each */
        return count > 4;
    return count > 0 && (count > 2 || count >= least);
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

/* How far visit_all is: the number of weights, and the number of their slots that files have. */
typedef struct visited {
    int weights, slots;
} visited;

/* Returns the position of a slot after the first one. */
static int slot_position(const leat_model *model, const state_layout *layout, const visited *done, int slot) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    int together = layout->in_blocks ? 1 : slots_together(optimizer);
    if (optimizer->type->has_slot) return done->slots;
    if (slot < together) return together * done->weights + slot;
    return slot * model->weights.trainable_count + done->weights;
}

/* Visits the variables of one trainable weight.  The moving averages of the weights (use_ema) and the sums of gradients
 * (gradient_accumulation_steps) come before the slots. */
static leat_status visit_weight(const leat_model *model, int entry, visited *done, const state_layout *layout,
                                visit do_one, void *user, leat_error *err) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    int slots = leati_optimizer_slot_count(optimizer), all = leati_optimizer_slab_count(optimizer);
    int first = layout->first + (all - slots) * model->weights.trainable_count;
    for (int slot = 0; slot < slots; ++slot) {
        if (!has_slot(model, entry, slot)) continue;
        int position = first + slot_position(model, layout, done, slot);
        LEATI_TRY(do_one(user, position, slot_index(model, slot, entry), err));
        done->slots += 1;
    }
    for (int i = 0; i < all - slots; ++i) {
        int index = slot_index(model, leati_optimizer_file_slots(optimizer) + i, entry);
        int position = layout->first + i * model->weights.trainable_count + done->weights;
        LEATI_TRY(do_one(user, position, index, err));
    }
    done->weights += 1;
    return LEAT_OK;
}

static leat_status visit_all(const leati_placement *placement, const leat_model *model,
                             const state_layout *layout, visit do_one, void *user, leat_error *err) {
    visited done = {0};
    LEATI_TRY(do_one(user, layout->scale, 0, err));
    if (layout->has_rate) LEATI_TRY(do_one(user, layout->scale + 1, LEARNING_RATE, err));
    const int32_t count = placement ? placement->count : model->weights.trainable_count;
    for (int32_t i = 0; i < count; ++i) {
        int entry = placement ? placement->items[i].weight->entry : (int)i;
        if (entry < model->weights.trainable_count)
            LEATI_TRY(visit_weight(model, entry, &done, layout, do_one, user, err));
    }
    return layout->product < 0 ? LEAT_OK : do_one(user, layout->product, 1, err);
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

static leat_status read_number(const transfer *t, int position, double *out, leat_error *err) {
    char path[512];
    leat_tensor tensor;
    t->name_of(t->user, position, path, sizeof path);
    LEATI_TRY(leati_h5_describe(t->file, path, &tensor, err));
    if (leat_tensor_count(&tensor) != 1)
        return leati_fail(err, LEAT_EFORMAT, "'%s': expected one number", path);
    tensor.dtype = LEAT_F64;
    tensor.data = out;
    return leati_h5_read(t->file, path, &tensor, err);
}

static leat_status read_scale(const transfer *t, leati_loss_scale *scale, leat_error *err) {
    double counter = 0, value = 0;
    LEATI_TRY(read_number(t, SCALE_COUNTER, &counter, err));
    LEATI_TRY(read_number(t, SCALE_VALUE, &value, err));
    if (!(counter >= 0) || counter > 1e15 || !(value > 0))
        return leati_fail(err, LEAT_EFORMAT, "the loss scale: expected numbers above 0");
    scale->counter = (int64_t)counter;
    scale->value = (float)value;
    return LEAT_OK;
}

/* Returns the number of variables at the end of a file that leat does not need: tf.keras 2.11 and later give an SGD
 * without momentum a slot, which stays 0. */
static int unused_variables(const leat_model *model, int others) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    bool is_plain =
        strcmp(optimizer->type->class_name, "SGD") == 0 && leati_optimizer_slot_count(optimizer) == 0;
    return is_plain && others > 2 ? model->weights.trainable_count : 0;
}

/* Finds the layout of a file that has `count` variables.  Besides the slots, files of current Keras have the iteration,
 * the learning rate unless it is a schedule, and Nadam's product of momenta; those of tf.keras have the iteration
 * only, and up to 2.10 (in_blocks) the product after the iteration.  SGD of tf.keras from 2.11 on has a momentum for
 * each weight even if it uses none. */
static bool find_layout(const leat_model *model, int count, bool in_blocks, state_layout *out) {
    const bool nadam = model->compiled.optimizer->type->has_schedule;
    const bool wraps = model->compiled.optimizer->scale.wraps;
    int others = count - slot_variables(model) - (wraps ? SCALE_VARIABLES : 0);
    others -= unused_variables(model, others);
    const bool has_product = nadam && !(wraps && others < 3); /* see written_layout */
    *out = current_layout(model, others == (has_product ? 3 : 2), has_product);
    out->in_blocks = in_blocks && strcmp(model->compiled.optimizer->type->class_name, "Ftrl") != 0;
    if (wraps) put_behind_scale(out);
    if (!has_product) return others == 1 || others == 2;
    if (others == 1) out->product = -1;
    if (others == 2 && in_blocks) *out = (state_layout){.in_blocks = true, .first = 2, .product = 1};
    return others >= 1 && others <= 3;
}

leat_status leati_keras3_read_state(const leati_placement *placement, leati_h5 *file, leat_model *model,
                                    int count, bool in_blocks, leati_state_name name_of, void *user,
                                    leat_error *err) {
    transfer t = {.file = file, .target = model, .name_of = name_of, .user = user};
    state_layout layout;
    if (!find_layout(model, count, in_blocks, &layout))
        return leati_fail(err, LEAT_EFORMAT, "the optimizer's state: expected %d variables, found %d",
                          leati_keras3_state_count(model), count);
    if (model->compiled.optimizer->scale.growth_steps > 0)
        LEATI_TRY(read_scale(&t, &model->compiled.optimizer->scale, err));
    return visit_all(placement, model, &layout, read_one, &t, err);
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
    leat_tensor tensor = leat_tensor_view(weight.desc.dtype, weight.desc.rank, weight.desc.shape, data);
    leat_status status = leati_optimizer_weight_copy(t->source, index, data, err);
    if (status == LEAT_OK) status = leati_h5_write(t->file, path, &tensor, err);
    leati_free(data);
    return status;
}

/* Keras counts no iteration of a LossScaleOptimizer, whose learning rate is 0. */
static leat_status write_scale(const transfer *t, const leati_loss_scale *scale, leat_error *err) {
    int64_t iteration = 0, counter = scale->counter;
    float rate = 0.0f, value = scale->value;
    const leat_tensor variables[SCALE_VARIABLES] = {
        [SCALE_ITERATION] = leat_tensor_view(LEAT_I64, 0, NULL, &iteration),
        [SCALE_RATE] = leat_tensor_view(LEAT_F32, 0, NULL, &rate),
        [SCALE_COUNTER] = leat_tensor_view(LEAT_I64, 0, NULL, &counter),
        [SCALE_VALUE] = leat_tensor_view(LEAT_F32, 0, NULL, &value),
    };
    for (int i = 0; i < SCALE_VARIABLES; ++i) {
        char path[512];
        t->name_of(t->user, i, path, sizeof path);
        LEATI_TRY(leati_h5_write(t->file, path, &variables[i], err));
    }
    return LEAT_OK;
}

static void inner_path(void *user, int index, char *out, size_t bytes) {
    (void)user;
    snprintf(out, bytes, "optimizer/inner_optimizer/vars/%d", index);
}

leat_status leati_keras3_write_inner_state(const leati_placement *placement, leati_h5 *file,
                                           const leat_model *model, leat_error *err) {
    transfer t = {.file = file, .source = model, .name_of = inner_path};
    const state_layout layout = current_layout(model, has_rate_variable(model), false);
    return visit_all(placement, model, &layout, write_one, &t, err);
}

leat_status leati_keras3_write_state(const leati_placement *placement, leati_h5 *file,
                                     const leat_model *model, leati_state_name name_of, void *user,
                                     leat_error *err) {
    transfer t = {.file = file, .source = model, .name_of = name_of, .user = user};
    const state_layout layout = placement ? written_layout(model) : late_layout();
    if (layout.scale > 0) LEATI_TRY(write_scale(&t, &model->compiled.optimizer->scale, err));
    return visit_all(placement, model, &layout, write_one, &t, err);
}
