/* SPDX-License-Identifier: Apache-2.0 */
/* A program: the whole step as one graph.  Train: forward, losses, gradients, clipping, update, constraints, metrics.
 * Test: forward, losses, metrics.  Predict: forward. */
#ifndef LEATI_NN_PROGRAM_PROGRAM_H
#define LEATI_NN_PROGRAM_PROGRAM_H

#include "engine/graph/graph.h"
#include "leat/sequence.h"
#include "nn/network/network.h"

#define LEATI_PROGRAM_MAX_OUTPUTS LEATI_NETWORK_MAX_OUTPUTS
#define LEATI_PROGRAM_MAX_METRICS LEATI_NETWORK_MAX_METRICS

struct leati_carry;

/* What the step reads, with concrete shapes (batch dimension in front): inputs, targets, then sample weights, into which
 * class weights have been multiplied already.  Zeroed before it is filled: two are compared as bytes. */
typedef struct leati_program_spec {
    leati_mode mode;
    int32_t input_count, target_count; /* of the model: inputs, outputs; predict: no targets, 0 */
    leati_desc inputs[LEATI_PROGRAM_MAX_OUTPUTS];
    leati_desc targets[LEATI_PROGRAM_MAX_OUTPUTS]; /* by output; rank -1: that output has no loss */
    leati_desc weights[LEATI_PROGRAM_MAX_OUTPUTS]; /* rank -1: that output has no sample weights */
} leati_program_spec;

/* The handles of what a run leaves.  Graph inputs are bound in this order: inputs, targets, weights (absent ones take no
 * place). */
typedef struct leati_program {
    leati_graph *graph;
    int32_t binding_count;
    leati_value predictions[LEATI_PROGRAM_MAX_OUTPUTS]; /* readable after a run in predict mode only */
    leati_value loss;                                   /* scalar: the total, regularizers included */
    leati_value regularization;                         /* scalar, LEATI_NONE without regularizers */
    leati_value
        output_losses[LEATI_PROGRAM_MAX_OUTPUTS]; /* scalars: weighted mean over the batch, unscaled */
    /* Per metric of model->compiled.metrics what leati_metric_add takes: its values, its targets or LEATI_NONE, its
     * weights or LEATI_NONE.  All are the plan's own memory, whatever becomes of what was bound. */
    leati_value metrics[LEATI_PROGRAM_MAX_METRICS];
    leati_value metric_targets[LEATI_PROGRAM_MAX_METRICS];
    leati_value metric_weights[LEATI_PROGRAM_MAX_METRICS];
} leati_program;

/* Builds it for a compiled model (predict: any model).  The caller owns program->graph.
 * Errors: LEAT_ESHAPE a target or weight that does not fit its output, naming both. */
leat_status leati_program_build(const leat_model *model, const leati_program_spec *spec,
                                leati_program *program, leat_error *err);

/* A prediction with states of its own (nn/layers/carry.h), for shapes that may differ from those that the model's inputs declare:
 * other batches, and one step of each input that `sequence` names. */
leat_status leati_program_build_carrying(const leat_model *model, const leati_program_spec *spec,
                                         struct leati_carry *carry, const bool *sequence,
                                         leati_program *program, leat_error *err);

/* Which inputs of the model are sequences: those that lead to a recurrent layer through layers that take each step by
 * itself.  Errors: LEAT_ENOTSUP a layer before it that does not, by name; LEAT_EINVAL no recurrent layer. */
leat_status leati_stepwise_inputs(const leat_model *model, bool *out, leat_error *err);

#endif
