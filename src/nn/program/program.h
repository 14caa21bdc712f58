/* SPDX-License-Identifier: Apache-2.0 */
/* A program is the graph of a whole step.  Train: forward pass, losses, gradients, clipping, update, constraints,
 * metrics.  Test: forward pass, losses, metrics.  Predict: forward pass. */
#ifndef LEATI_NN_PROGRAM_PROGRAM_H
#define LEATI_NN_PROGRAM_PROGRAM_H

#include "engine/graph/graph.h"
#include "leat/sequence.h"
#include "nn/network/network.h"

#define LEATI_PROGRAM_MAX_OUTPUTS LEATI_NETWORK_MAX_OUTPUTS
#define LEATI_PROGRAM_MAX_METRICS LEATI_NETWORK_MAX_METRICS

struct leati_carry;

/* What a training step does with its gradients. */
typedef enum leati_phase {
    LEATI_PHASE_ONLY = 0, /* updates the weights: there is no gradient_accumulation_steps */
    LEATI_PHASE_SUM,      /* adds them to the sum of the batches before */
    LEATI_PHASE_UPDATE    /* updates the weights by the mean over all batches */
} leati_phase;

/* The part of a training step that a program computes.  Between the two parts, ranks add up their gradients, and a loss
 * scale decides whether there is an update. */
typedef enum leati_part_of_step {
    LEATI_STEP_WHOLE = 0,
    LEATI_STEP_GRADIENTS, /* up to the gradients, which stay in their slab, and the metrics */
    LEATI_STEP_UPDATE,    /* the update by the gradients in the slab; the program reads no batch */
    LEATI_STEP_TOTALS     /* of a part of a batch: only the sums that its losses need of all parts */
} leati_part_of_step;

/* The shapes that the step reads, with the batch in front and all dimensions known: inputs, targets, then sample
 * weights, which include the class weights.  Must be zeroed before it is filled, because specs are compared as
 * bytes. */
typedef struct leati_program_spec {
    leati_mode mode;
    leati_phase phase; /* leati_program_phase */
    leati_part_of_step part_of_step;
    /* Number of samples of the batch of which these samples are a part; 0: they are the batch.  Losses and gradients
     * are then shares, whose sums over the parts are those of the batch (decision 0702). */
    int64_t whole_batch;
    /* With whole_batch, of a model with states or with a loss of pairs: the place of these samples in the batch, and
     * the most samples that a batch has. */
    int64_t first_sample, most_samples;
    leati_norms norms;                 /* with whole_batch */
    leati_share share;                 /* of an update: the weights that this rank updates */
    bool on_host;                      /* the plan runs on the host, which serves ops that no device serves */
    int32_t input_count, target_count; /* the model's inputs and outputs; target_count is 0 to predict */
    leati_desc inputs[LEATI_PROGRAM_MAX_OUTPUTS];
    leati_desc targets[LEATI_PROGRAM_MAX_OUTPUTS]; /* per output; rank -1: the output has no loss */
    leati_desc weights[LEATI_PROGRAM_MAX_OUTPUTS]; /* per output; rank -1: the output has no sample weights */
} leati_program_spec;

/* The results of a run.  Graph inputs are bound in this order: inputs, targets, weights, totals, without those that are
 * absent. */
typedef struct leati_program {
    leati_graph *graph;
    int32_t binding_count;
    /* Sums over the batch (nn/losses/totals.h): of LEATI_STEP_TOTALS its results; of the other programs of a part, its
     * last inputs, behind those that are in the spec. */
    int32_t total_count;
    leati_value totals[LEATI_TOTALS_MAX];
    leati_value predictions[LEATI_PROGRAM_MAX_OUTPUTS]; /* readable after a run in predict mode only */
    bool joins_gradients;       /* an update reads gradients that are not stored in LEATI_SLAB_GRADIENTS */
    leati_value loss;           /* scalar: the total, regularizers included */
    leati_value regularization; /* scalar, LEATI_NONE without regularizers */
    leati_value output_losses
        [LEATI_PROGRAM_MAX_OUTPUTS]; /* scalars: weighted mean over the batch, before loss_weights */
    /* For each metric of model->compiled.metrics, the arguments of leati_metric_add: values, targets or
     * LEATI_NONE, weights or LEATI_NONE.  All are in the plan's own memory, and stay valid when the bound inputs
     * are gone. */
    leati_value metrics[LEATI_PROGRAM_MAX_METRICS];
    leati_value metric_targets[LEATI_PROGRAM_MAX_METRICS];
    leati_value metric_weights[LEATI_PROGRAM_MAX_METRICS];
    /* Of a part of a batch: the metric is computed from the predictions, targets and weights of the whole batch, and
     * the values above are those of the part. */
    bool metric_is_whole[LEATI_PROGRAM_MAX_METRICS];
} leati_program;

/* Returns the phase of the model's next step in this mode. */
leati_phase leati_program_phase(const leat_model *model, leati_mode mode);

/* Builds the program of a compiled model (predict: of any model).  The caller owns program->graph.
 * Errors: LEAT_ESHAPE a target or weight that does not fit its output; the message names both. */
leat_status leati_program_build(const leat_model *model, const leati_program_spec *spec,
                                leati_program *program, leat_error *err);

/* Finds the gradients that are lists of rows which the update of this training step reads (leati_optimizer_find_rows).
 * `out` has a place for each trainable weight.  Errors: as leati_program_build. */
leat_status leati_program_find_rows(const leat_model *model, const leati_program_spec *spec, bool *out,
                                    size_t *bytes, leat_error *err);

/* Builds a prediction whose states belong to the program (nn/layers/carry.h).  Shapes may differ from those that
 * the model's inputs declare: another batch size, and one step of each input that `sequence` marks. */
leat_status leati_program_build_carrying(const leat_model *model, const leati_program_spec *spec,
                                         struct leati_carry *carry, const bool *sequence,
                                         leati_program *program, leat_error *err);

/* Marks the inputs of the model that are sequences: those that lead to a recurrent layer through layers that treat
 * each step independently.  Errors: LEAT_ENOTSUP another layer is in between, with its name; LEAT_EINVAL no
 * recurrent layer. */
leat_status leati_stepwise_inputs(const leat_model *model, bool *out, leat_error *err);

#endif
