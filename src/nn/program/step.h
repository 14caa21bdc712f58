/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that build the graph of a step share.  Room: nn. */
#ifndef LEATI_NN_PROGRAM_STEP_H
#define LEATI_NN_PROGRAM_STEP_H

#include "nn/layers/layer.h"
#include "nn/layers/carry.h"
#include "nn/program/program.h"

/* The state of a build. */
typedef struct leati_step_context {
    const leat_model *model;
    const leati_program_spec *spec;
    leati_program *program;
    leati_graph *graph;
    leati_value
        targets[LEATI_PROGRAM_MAX_OUTPUTS]; /* f32, or class numbers; LEATI_NONE: the output has no loss */
    leati_value weights[LEATI_PROGRAM_MAX_OUTPUTS];
    leati_value masks[LEATI_PROGRAM_MAX_OUTPUTS]; /* masks of the predictions */
    leati_value
        compared[LEATI_PROGRAM_MAX_OUTPUTS]; /* the predictions for losses and metrics: (N, 1) for (N) */
    leati_carry *carry;                      /* NULL: none */
    const bool *sequence;                    /* one per input; only with a carry */
    leati_totals totals;                     /* of a part of a batch */
    bool *rows;                              /* for leati_program_find_rows; otherwise NULL */
    size_t *row_bytes;
} leati_step_context;

/* Binds the inputs of the model.  Errors: LEAT_ESHAPE an input that does not fit. */
leat_status leati_step_bind_inputs(leati_step_context *c, leati_value *inputs, leat_error *err);
leati_value leati_step_as_float(leati_step_context *c, leati_value x);
/* Returns the sample weights of an output times its mask, as in Keras; LEATI_NONE if there is neither. */
leati_value leati_step_weights(leati_step_context *c, int output, leati_value weights);

/* Adds the ops of the metrics.  Errors: those of the graph; LEAT_ENOTSUP the parts of an added metric do not add up. */
leat_status leati_step_lower_metrics(leati_step_context *c, const leati_lowering *lowering, leat_error *err);

/* How a number that a model computes of a batch follows from those of the parts of the batch. */
typedef enum leati_added_kind {
    LEATI_ADDED_APART = 0, /* it is no number of the batch: each sample has values of its own */
    LEATI_ADDED_MEAN,      /* the mean over the parts, weighted by their samples; or the same in all parts */
    LEATI_ADDED_SUM,       /* the sum over the parts */
    LEATI_ADDED_MIXED      /* not known */
} leati_added_kind;

typedef struct leati_added_kinds {
    leati_added_kind losses[LEATI_LOWERING_MAX_ADDED], metrics[LEATI_LOWERING_MAX_ADDED];
} leati_added_kinds;

/* Finds out the kinds of what AddLoss and AddMetric layers add, in the order of the lowering. */
leat_status leati_step_added_kinds(const leati_step_context *c, leati_added_kinds *out, leat_error *err);
/* Returns in *sum the added losses of a part of a batch, such that the sums of the parts add up.
 * Errors: LEAT_ENOTSUP. */
leat_status leati_step_add_losses(leati_step_context *c, const leati_lowering *lowering, leati_value *sum,
                                  leat_error *err);

#endif
