/* SPDX-License-Identifier: Apache-2.0 */
/* keras.optimizers.  The descriptor of an optimizer (nn/optimizers/types.h) has its configuration, its slots, its
 * update op and its scalars, the numbers that change from step to step.  The update is one node over the whole slab
 * of trainable weights, or a chain of ops; the host writes the scalars before each step.  They are computed in float,
 * as in Keras's graph. */
#ifndef LEATI_NN_OPTIMIZERS_OPTIMIZER_H
#define LEATI_NN_OPTIMIZERS_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "engine/graph/graph.h"
#include "leat/error.h"
#include "leat/model.h"
#include "leat/sequence.h"
#include "nn/config/field.h"
#include "nn/parts/part.h"
#include "nn/optimizers/loss_scale.h"
#include "nn/optimizers/schedules/schedule.h"
#include "nn/weights/weights.h"

#define LEATI_OPTIMIZER_MAX_SLOTS   3
#define LEATI_OPTIMIZER_MAX_SCALARS 24

/* The options of all optimizers; a type's fields say which of them it has. */
typedef struct leati_optimizer_config {
    double learning_rate, decay;
    double clipnorm, clipvalue; /* NAN: none */
    double lr;                  /* the old name of learning_rate; NAN: not given */
    double momentum, rho, beta_1, beta_2, epsilon, schedule_decay;
    bool nesterov, amsgrad;
    /* options of current Keras */
    double global_clipnorm, weight_decay; /* NAN: none */
    bool use_ema;
    double ema_momentum;
    int64_t ema_overwrite_frequency;                           /* INT64_MIN: never */
    double beta_2_decay, epsilon_1, epsilon_2, clip_threshold; /* Adafactor */
    bool relative_step;
    double learning_rate_power, initial_accumulator_value, beta; /* Ftrl */
    double l1_regularization_strength, l2_regularization_strength, l2_shrinkage_regularization_strength;
    bool centered; /* RMSprop */
    double
        loss_scale_factor; /* NAN: none.  It changes nothing: gradients are float32 and are divided by it again */
    int64_t gradient_accumulation_steps; /* batches for each update; INT64_MIN: 1 */
    int64_t warmup_steps;                /* ScheduleFreeAdamW */
    double adam_beta_1, adam_beta_2, adam_weight_decay, adam_lr_ratio; /* Muon; adam_weight_decay NAN: none */
    double muon_a, muon_b, muon_c, rms_rate;                           /* Muon; rms_rate NAN: none */
    int64_t ns_steps;
    bool exclude_embeddings;
    json_t *exclude_layers; /* Muon; owned; NULL: none */
} leati_optimizer_config;

/* What an optimizer of current Keras adds up over the gradients of a repeated row of an Embedding, instead of
 * computing it from their sum. */
typedef enum leati_powers { LEATI_POWERS_NONE = 0, LEATI_POWERS_SQUARE, LEATI_POWERS_ABSOLUTE } leati_powers;

/* The part of the slab of trainable weights that one of several ranks updates; zeroed: all of the slab, one process. */
typedef struct leati_share {
    size_t ranks;     /* number of ranks; 0: this is no share, but all */
    size_t from, end; /* bytes of the slab */
} leati_share;

/* A range of the slab of trainable weights that one node updates. */
typedef struct leati_update_range {
    size_t offset_bytes;
    int64_t count;      /* floats */
    leati_value powers; /* (count): the powers of the gradients of a table whose rows repeat; LEATI_NONE */
    leati_value joined; /* the gradient of a lookup whose rows the update reads itself; LEATI_NONE */
} leati_update_range;

typedef struct leati_update {
    const leati_weights *weights;
    leati_value *powers; /* one per trainable weight, as in leati_update_range, of the weight's shape */
    leati_share share;
    int range_count;
    leati_update_range *ranges; /* all of the share, in order */
} leati_update;

typedef struct leati_optimizer leati_optimizer;

typedef struct leati_optimizer_type {
    const char *class_name; /* "RMSprop"; case is ignored, as in Keras */
    const leati_field *fields;
    leati_op op; /* one node over all weights, unless there is a `lower` */
    /* Adds the update as a chain of ops, for each weight or over all weights; scalars[i] are values of rank 0. */
    void (*lower)(const leati_optimizer *optimizer, leati_graph *graph, const leati_update *update,
                  const leati_value *scalars);
    const struct leati_optimizer_type *as_keras3; /* with the arithmetic of current Keras; NULL: the same */
    leati_powers powers;                          /* in the arithmetic of current Keras */
    bool is_new; /* not in Keras 2.3.1: its options have the meaning that they have in current Keras */
    int32_t slot_count;
    const char *slots[LEATI_OPTIMIZER_MAX_SLOTS]; /* names in files: "m" makes "m_0:0" */
    /* True if the last slot is in use; NULL: always.  For an unused slot, files have zeros: a tensor of the weight's
     * shape, or one number if unused_is_one_number (Adam's vhat). */
    bool (*uses_last_slot)(const leati_optimizer_config *config);
    bool unused_is_one_number;
    /* The number of slots and their names, in place of slot_count and slots, if they depend on the configuration. */
    int (*count_slots)(const leati_optimizer_config *config);
    const char *(*slot_name)(const leati_optimizer_config *config, int slot);
    bool
        slots_apart; /* current Keras stores each slot as a block of its own, not the first two weight by weight */
    bool has_schedule; /* Nadam: m_schedule, the second weight in files */
    /* The shape of a slot for a weight, never larger than the weight (NULL: the weight's shape), and the value of a
     * slot before the first step (NULL: 0). */
    leati_desc (*slot_desc)(int slot, const leati_desc *weight);
    /* True if files of current Keras have this slot of a trainable weight; NULL: all slots of all weights. */
    bool (*has_slot)(const leati_optimizer_config *config, const leati_weights *weights, int32_t weight,
                     int slot);
    bool by_weight; /* `lower` needs whole weights, as for their norms; otherwise elements are independent */
    bool decays_itself; /* `lower` applies the weight decay */
    double (*slot_preset)(const leati_optimizer_config *config, int slot);
    int32_t scalar_count;
    void (*scalars)(leati_optimizer *optimizer, int64_t iterations, float *out);
} leati_optimizer_type;

struct leati_optimizer {
    const leati_optimizer_type *type;
    leati_optimizer_config config;
    leati_part_object *object; /* owned: a custom optimizer; NULL: one of leat's */
    leati_schedule *schedule;  /* the learning rate; NULL: it is config.learning_rate */
    bool as_keras3;            /* the arithmetic of current Keras, with TensorFlow as its backend */
    const char *arithmetic;    /* the optimizer's own arithmetic, a literal; NULL: that of the model */
    bool adds_rows;         /* as in tf.keras, gradients of one index are added before squares are computed */
    leati_loss_scale scale; /* zeroed: the optimizer is in no LossScaleOptimizer */
    bool clips_each;  /* as in current Keras, clipnorm limits each weight's gradient; false: all together */
    float m_schedule; /* Nadam: the product of the momentum schedule before step schedule_at */
    int64_t schedule_at;
};

/* Creates an optimizer from a name ("adam") or {"class_name": ..., "config": ...}, with the formulas and the defaults
 * of current Keras if as_keras3 is true, otherwise with those of 2.3.1.  Keys of Keras 3 are ignored if they do not
 * change the result.
 * `parts` has the custom optimizers.
 * Errors: LEAT_ENOTFOUND with the nearest known name; LEAT_EINVAL, LEAT_ENOTSUP an option. */
leat_status leati_optimizer_create_with(leati_optimizer **out, const json_t *value, bool as_keras3,
                                        const leati_part *parts, leat_error *err);
/* Like leati_optimizer_create_with, without custom optimizers. */
static inline leat_status leati_optimizer_create(leati_optimizer **out, const json_t *value, bool as_keras3,
                                                 leat_error *err) {
    return leati_optimizer_create_with(out, value, as_keras3, NULL, err);
}
/* Writes {"class_name": ..., "config": ...} as Keras 2.3.1 does (new reference).  leati_optimizer_write_inner leaves
 * out the LossScaleOptimizer around the optimizer. */
leat_status leati_optimizer_write(const leati_optimizer *optimizer, json_t **out, leat_error *err);
leat_status leati_optimizer_write_inner(const leati_optimizer *optimizer, json_t **out, leat_error *err);
void leati_optimizer_destroy(leati_optimizer **optimizer);

/* Returns the number of slots in files, and the name of a slot: "m" makes "m_0:0". */
int leati_optimizer_file_slots(const leati_optimizer *optimizer);
const char *leati_optimizer_slot_name(const leati_optimizer *optimizer, int slot);
/* Returns the number of slots in use, in the slabs from LEATI_SLAB_SLOT0 on: for Adam without amsgrad, one less than
 * leati_optimizer_file_slots. */
int leati_optimizer_slot_count(const leati_optimizer *optimizer);
/* Returns the slab of the moving average of the weights, after the slots; LEATI_SLAB_COUNT without use_ema. */
leati_slab leati_optimizer_average(const leati_optimizer *optimizer);
/* Returns the number of batches for each update, 1 without gradient_accumulation_steps, and the slab of the gradients'
 * sum, the last slab in use; LEATI_SLAB_COUNT without. */
int64_t leati_optimizer_batches(const leati_optimizer *optimizer);
leati_slab leati_optimizer_accumulator(const leati_optimizer *optimizer);
/* Return what training needs: the number of slabs from LEATI_SLAB_SLOT0 on, and of floats in LEATI_SLAB_SCALARS. */
int leati_optimizer_slab_count(const leati_optimizer *optimizer);
int leati_optimizer_scalar_count(const leati_optimizer *optimizer);
/* Sets the slots of a newly compiled model to their first values. */
void leati_optimizer_preset(const leati_optimizer *optimizer, leati_weights *weights);
/* Computes the scalars of the batch `iterations` (from 0): leati_optimizer_scalar_count floats, to be written to the
 * start of LEATI_SLAB_SCALARS before that batch.  They depend only on `iterations` and the configuration. */
void leati_optimizer_scalars(leati_optimizer *optimizer, int64_t iterations, float *out);

/* Returns the number of slabs, from LEATI_SLAB_SLOT0 on, of which a rank needs only its share: slots, and the moving
 * average of the weights, but not the gradients' sum, which clipping reads as a whole. */
int leati_optimizer_shared_slabs(const leati_optimizer *optimizer);
/* Returns the share of a rank: whole weights if the optimizer or constraints need them, otherwise equal numbers of
 * elements, and on the last rank also what remains.  The shares of all ranks, in their order, are the slab. */
leati_share leati_optimizer_share(const leati_optimizer *optimizer, const leati_weights *weights, int rank,
                                  int ranks);
/* Returns the value of the loss scale in the graph of a step, a scalar; LEATI_NONE: there is none. */
leati_value leati_optimizer_loss_scale(const leati_optimizer *optimizer, leati_graph *graph);
/* True if the weight belongs to the share. */
bool leati_share_has(const leati_share *share, const leati_weight *weight);

/* Adds the ops of a batch that changes no weights: the sum of the gradients, and the weights' moving average. */
void leati_optimizer_accumulate(const leati_optimizer *optimizer, leati_graph *graph,
                                const leati_weights *weights, const leati_share *share);
/* Returns the first trainable weight with a gradient that is a list of rows which the update reads; -1: none. */
int32_t leati_optimizer_reads_rows(const leati_optimizer *optimizer, const leati_graph *graph,
                                   const leati_weights *weights, const leati_value *gradients);
/* Several ranks: the update reads sums over the rows, which parts of a batch add up in LEATI_SLAB_ROWS. */

/* Writes which gradients are lists of rows that the update reads to `has_rows` (trainable_count), and returns the bytes
 * of LEATI_SLAB_ROWS for them; 0: the update reads no rows. */
size_t leati_optimizer_find_rows(const leati_optimizer *optimizer, const leati_graph *graph,
                                 const leati_weights *weights, const leati_value *gradients, bool *has_rows);
/* Adds the ops that store the sums over the rows of these gradients, which belong to a part of a batch.  With
 * clipvalue, also replaces the gradients by the sums of their clipped rows. */
void leati_optimizer_lower_rows(const leati_optimizer *optimizer, leati_graph *graph,
                                const leati_weights *weights, const leati_value *gradients);
/* Returns why the update cannot be separated from the rows; NULL: it can. */
const char *leati_optimizer_keeps_rows(const leati_optimizer *optimizer);

/* Returns true if the update of a large table can read the rows that a lookup's gradient consists of, of a batch with
 * few of them: then the gradient need not be stored.  Only the backends of the host serve such an update. */
bool leati_optimizer_joins(const leati_optimizer *optimizer, const leati_graph *graph,
                           const leati_weight *weight, leati_value gradient);

/* The gradients of all trainable weights, for an update in the same program. */
typedef struct leati_gradients {
    const leati_value *values;
    const bool *joined; /* those that are not stored (leati_optimizer_joins) */
} leati_gradients;

/* Adds the ops of clipping and, for a share of the trainable weights, of the update and of the moving average.
 * `gradients`: NULL if all are stored to LEATI_SLAB_GRADIENTS by another program, and sums over rows by
 * leati_optimizer_lower_rows. */
leat_status leati_optimizer_lower(const leati_optimizer *optimizer, leati_graph *graph,
                                  const leati_weights *weights, const leati_gradients *gradients,
                                  const leati_share *share, leat_error *err);

#endif
