/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the graph of a step: inputs, forward pass, losses, gradients, update, constraints, metrics.  Room: nn. */
#include "nn/program/step.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "engine/graph/build.h"
#include "nn/layers/carry.h"
#include "nn/losses/types.h"
#include "tensor/number.h"

typedef leati_step_context context;

#define SHAPE_TEXT_BYTES 128

/* ---- What is bound ---- */

static leati_value bind(context *c, const leati_desc *desc) {
    return leati_graph_input(c->graph, c->program->binding_count++, desc);
}

leati_value leati_step_as_float(context *c, leati_value x) {
    return leati_graph_desc(c->graph, x)->dtype == LEAT_F32 ? x : leati_cast(c->graph, x, LEAT_F32, 1.0f);
}

/* True if the given shape is the expected one (-1: any size), or lacks only a last dimension of 1, which Keras
 * allows. */
static bool fits(const leati_desc *given, int rank, const int64_t *expected) {
    bool lacks_one = given->rank == rank - 1 && expected[rank - 1] == 1;
    if (given->rank != rank && !lacks_one) return false;
    for (int i = 0; i < given->rank; ++i) {
        if (expected[i] >= 0 && given->shape[i] != expected[i]) return false;
    }
    return true;
}

static leati_value with_last_dimension(context *c, leati_value x, int rank) {
    leati_desc desc = *leati_graph_desc(c->graph, x);
    if (desc.rank == rank) return x;
    desc.shape[desc.rank] = 1;
    return leati_reshape(c->graph, x, rank, desc.shape);
}

static leat_status input_mismatch(const context *c, int input, const leati_shape *expected, leat_error *err) {
    leati_desc given = c->spec->inputs[input];
    const long long batch = (long long)expected->dims[0];
    char want[SHAPE_TEXT_BYTES], got[SHAPE_TEXT_BYTES], hint[160] = "";
    if (given.rank > 0 && c->spec->whole_batch > 0) given.shape[0] = c->spec->whole_batch;
    if (batch > 0 && given.rank > 0 && given.shape[0] != expected->dims[0])
        snprintf(
            hint, sizeof hint,
            ": the model has a fixed batch size: use --batch-size %lld (batch_size in C) and a multiple of "
            "%lld samples",
            batch, batch);
    return leati_fail(err, LEAT_ESHAPE, "input '%s': expected shape %s, received %s%s",
                      leati_model_input_name(c->model, input),
                      leati_shape_text(want, sizeof(want), expected->rank, expected->dims),
                      leati_shape_text(got, sizeof(got), given.rank, given.shape), hint);
}

/* True if only layers that need all digits of integers read the input; such an input is not converted to f32. */
static bool keeps_digits(const leat_model *model, int input) {
    const leati_source *source = &model->inputs[input];
    int readers = 0;
    for (int32_t i = 0; i < model->output_count; ++i)
        if (model->outputs[i].layer == source->layer) return false;
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leati_member *member = &model->members[i];
        for (int32_t j = 0; j < member->call_count; ++j)
            for (int32_t k = 0; k < member->calls[j].input_count; ++k) {
                if (member->calls[j].inputs[k].layer != source->layer) continue;
                if (!member->layer || !member->layer->type->integers) return false;
                ++readers;
            }
    }
    return readers > 0;
}

static leati_value bind_input(context *c, int input, int rank) {
    const leati_desc *given = &c->spec->inputs[input];
    leati_value x = with_last_dimension(c, bind(c, given), rank);
    return leati_dtype_is_integer(given->dtype) && keeps_digits(c->model, input) ? x
                                                                                 : leati_step_as_float(c, x);
}

leat_status leati_step_bind_inputs(context *c, leati_value *inputs, leat_error *err) {
    if (c->spec->input_count != c->model->input_count) {
        return leati_fail(err, LEAT_ESHAPE, "expected %d inputs, received %d", (int)c->model->input_count,
                          (int)c->spec->input_count);
    }
    for (int i = 0; i < c->spec->input_count; ++i) {
        const leati_desc *given = &c->spec->inputs[i];
        const leati_shape declared = leati_model_input_shape(c->model, i);
        leati_shape expected = declared;
        if (c->carry || declared.dims[0] == c->spec->whole_batch) expected.dims[0] = -1;
        if (c->carry && c->sequence[i]) expected.dims[1] = -1;
        if (c->spec->whole_batch > 0 && declared.dims[0] > 0 && declared.dims[0] != c->spec->whole_batch)
            return input_mismatch(c, i, &declared, err);
        if (!fits(given, expected.rank, expected.dims)) return input_mismatch(c, i, &declared, err);
        inputs[i] = bind_input(c, i, expected.rank);
    }
    return LEAT_OK;
}

static leat_status target_mismatch(const context *c, int output, const leati_desc *expected,
                                   leat_error *err) {
    const leati_desc *given = &c->spec->targets[output];
    const leati_output_loss *loss = &c->model->compiled.losses[output];
    char want[SHAPE_TEXT_BYTES], got[SHAPE_TEXT_BYTES];
    bool numbers = given->rank > 0 && given->shape[given->rank - 1] == 1 && !loss->type->sparse;
    bool hint = numbers && strcmp(loss->type->measure.name, "categorical_crossentropy") == 0;
    return leati_fail(err, LEAT_ESHAPE,
                      "target of output '%s': expected shape %s for loss '%s', received %s%s",
                      leati_model_output_name(c->model, output),
                      leati_shape_text(want, sizeof(want), expected->rank, expected->shape),
                      loss->type->measure.name, leati_shape_text(got, sizeof(got), given->rank, given->shape),
                      hint ? "; for class numbers use 'sparse_categorical_crossentropy'" : "");
}

static leat_status bind_target(context *c, int output, leat_error *err) {
    const leati_output_loss *loss = &c->model->compiled.losses[output];
    const leati_desc *given = &c->spec->targets[output];
    c->targets[output] = LEATI_NONE;
    if (!loss->type) {
        if (given->rank < 0) return LEAT_OK;
        return leati_fail(err, LEAT_EINVAL, "output '%s' has no loss, but received a target",
                          leati_model_output_name(c->model, output));
    }
    if (given->rank < 0) {
        return leati_fail(err, LEAT_EINVAL, "output '%s' has a loss, but received no target",
                          leati_model_output_name(c->model, output));
    }
    leati_desc expected = *leati_graph_desc(c->graph, c->compared[output]);
    if (loss->type->sparse && expected.rank > 0) expected.shape[expected.rank - 1] = 1;
    if (loss->type->label_lists && expected.rank == 3) {
        expected.rank = 2;
        expected.shape[1] = given->rank == 2 ? given->shape[1] : -1;
    }
    if (!fits(given, expected.rank, expected.shape)) return target_mismatch(c, output, &expected, err);
    leati_value target = with_last_dimension(c, bind(c, given), expected.rank);
    bool keep_type = loss->type->sparse && leati_dtype_is_integer(given->dtype);
    c->targets[output] = keep_type ? target : leati_step_as_float(c, target);
    return LEAT_OK;
}

/* Returns the rank that sample weights must have: 2.3.1 knows it from sample_weight_mode; current Keras takes weights
 * of any leading axes of the predictions, with or without a last axis of length 1. */
static int rank_of_weights(const context *c, const leati_output_loss *loss, const leati_desc *given,
                           const leati_desc *prediction) {
    if (!c->model->compiled.as_keras3 || loss->temporal) return loss->temporal ? 2 : 1;
    const bool has_last =
        given->rank == prediction->rank && given->rank > 1 && given->shape[given->rank - 1] == 1;
    const int most = prediction->rank > 1 ? prediction->rank - 1 : 1,
              rank = has_last ? given->rank - 1 : given->rank;
    return rank < 1 ? 1 : rank > most ? most : rank;
}

static leat_status bind_weight(context *c, int output, leat_error *err) {
    const leati_desc *given = &c->spec->weights[output];
    c->weights[output] = LEATI_NONE;
    if (given->rank < 0) return LEAT_OK;
    const leati_output_loss *loss = &c->model->compiled.losses[output];
    const leati_desc *prediction = leati_graph_desc(c->graph, c->compared[output]);
    const int rank = rank_of_weights(c, loss, given, prediction);
    bool is_valid =
        loss->type && (given->rank == rank ||
                       (c->model->compiled.as_keras3 && given->rank == rank + 1 && given->shape[rank] == 1));
    for (int i = 0; is_valid && i < rank; ++i) {
        is_valid = given->shape[i] == prediction->shape[i];
    }
    if (!is_valid) {
        char got[SHAPE_TEXT_BYTES];
        return leati_fail(err, LEAT_ESHAPE, "sample weights of output '%s': expected %s, received shape %s",
                          leati_model_output_name(c->model, output),
                          !loss->type ? "none, because it has no loss"
                          : loss->temporal
                              ? "one per sample and time step"
                              : "one per sample (sample_weight_mode \"temporal\" for time steps)",
                          leati_shape_text(got, sizeof(got), given->rank, given->shape));
    }
    const leati_desc bound = *given;
    leati_value weights = bind(c, given);
    if (bound.rank > rank) weights = leati_reshape(c->graph, weights, rank, bound.shape);
    c->weights[output] = leati_step_as_float(c, weights);
    return LEAT_OK;
}

static leat_status bind_targets(context *c, leat_error *err) {
    if (c->spec->target_count != c->model->output_count) {
        return leati_fail(err, LEAT_ESHAPE, "expected targets for %d outputs, received %d",
                          (int)c->model->output_count, (int)c->spec->target_count);
    }
    for (int i = 0; i < c->model->output_count; ++i) {
        int rank = leati_graph_desc(c->graph, c->program->predictions[i])->rank;
        c->compared[i] = with_last_dimension(c, c->program->predictions[i], rank == 1 ? 2 : rank);
        LEATI_TRY(bind_target(c, i, err));
    }
    for (int i = 0; i < c->model->output_count; ++i) {
        LEATI_TRY(bind_weight(c, i, err));
    }
    return LEAT_OK;
}

/* ---- Losses ---- */

static leati_value add_term(context *c, leati_value sum, leati_value term) {
    return sum == LEATI_NONE ? term : leati_add(c->graph, sum, term);
}

leati_value leati_step_weights(context *c, int output, leati_value weights) {
    leati_value mask = c->masks[output];
    if (mask == LEATI_NONE || weights == LEATI_NONE) return mask == LEATI_NONE ? weights : mask;
    if (leati_graph_desc(c->graph, weights)->rank < leati_graph_desc(c->graph, mask)->rank)
        weights = leati_expand_last(c->graph, weights);
    return leati_mul(c->graph, weights, mask);
}

static leati_totals *totals_of(context *c) {
    return c->spec->whole_batch > 0 ? &c->totals : NULL;
}

/* Returns the weights of an output's losses.  Current Keras divides by the number of steps that count, where 2.3.1
 * divides by the number of all steps. */
static leati_value loss_weights(context *c, int output) {
    leati_value mask = c->masks[output], weights = leati_step_weights(c, output, c->weights[output]);
    bool by_count = c->model->compiled.losses[output].reduction == LEATI_REDUCTION_SUM_OVER_BATCH_SIZE;
    leati_totals *totals = totals_of(c);
    if (mask == LEATI_NONE || !c->model->compiled.as_keras3 || !by_count) return weights;
    leati_value steps = leati_reduce_all(c->graph, LEATI_REDUCE_SUM, mask);
    steps = leati_total_count(c->graph, totals, steps);
    steps = leati_binary_of(c->graph, LEATI_MAX, steps, leati_scalar(c->graph, 1.0f));
    int64_t all = leati_desc_count(leati_graph_desc(c->graph, mask));
    if (totals) all = all / totals->samples * totals->whole;
    return leati_mul(c->graph, weights, leati_div(c->graph, leati_scalar(c->graph, (float)all), steps));
}

/* Returns the share of these samples in a value that is a mean over the batch. */
static leati_value share_of(context *c, leati_value mean) {
    if (c->spec->whole_batch == 0) return mean;
    float share = (float)c->spec->inputs[0].shape[0] / (float)c->spec->whole_batch;
    return leati_linear(c->graph, mean, share, 0.0f);
}

static leat_status lower_losses(context *c, const leati_lowering *lowering, leat_error *err) {
    leati_program *program = c->program;
    leati_value total = LEATI_NONE, sum = LEATI_NONE;
    if (lowering->added_loss_count > 0) LEATI_TRY(leati_step_add_losses(c, lowering, &sum, err));
    leati_graph_label(c->graph, "loss");
    for (int i = 0; i < c->model->output_count; ++i) {
        const leati_output_loss *loss = &c->model->compiled.losses[i];
        program->output_losses[i] = LEATI_NONE;
        if (!loss->type) continue;
        const leati_value weights = loss_weights(c, i);
        leati_value value =
            leati_loss_lower(loss, c->graph, c->targets[i], c->compared[i], weights, totals_of(c));
        if (c->totals.collects) continue;
        leati_graph_keep(c->graph, value);
        program->output_losses[i] = value;
        float weight = (float)loss->weight;
        total = add_term(c, total, weight == 1.0f ? value : leati_linear(c->graph, value, weight, 0.0f));
    }
    if (c->totals.collects) return leati_graph_check(c->graph, err);
    for (int32_t i = 0; i < lowering->loss_count; ++i) {
        program->regularization = add_term(c, program->regularization, lowering->losses[i]);
    }
    if (program->regularization != LEATI_NONE) program->regularization = share_of(c, program->regularization);
    for (int32_t i = 0; i < lowering->sum_count; ++i)
        program->regularization = add_term(c, program->regularization, lowering->sums[i]);
    if (sum != LEATI_NONE) program->regularization = add_term(c, program->regularization, sum);
    if (program->regularization != LEATI_NONE) {
        leati_graph_keep(c->graph, program->regularization);
        total = add_term(c, total, program->regularization);
    }
    if (total == LEATI_NONE) {
        return leati_fail(err, LEAT_EINVAL,
                          "the model was compiled without a loss; there is nothing to optimize");
    }
    program->loss = total;
    leati_graph_keep(c->graph, total);
    return leati_graph_check(c->graph, err);
}

/* ---- Training ---- */

static leati_value weight_in(context *c, leati_slab slab, const leati_weight *weight) {
    return leati_graph_state(c->graph, slab, weight->offset_bytes, &weight->desc);
}

/* Returns what is differentiated.  A step in one part has no loss scale (leati_trainer_step). */
static leati_value scaled_loss(context *c) {
    leati_value scale = LEATI_NONE;
    if (c->spec->part_of_step == LEATI_STEP_GRADIENTS)
        scale = leati_optimizer_loss_scale(c->model->compiled.optimizer, c->graph);
    return scale == LEATI_NONE ? c->program->loss : leati_mul(c->graph, c->program->loss, scale);
}

/* Divides the gradients of the scaled loss by the scale. */
static void unscale_gradients(context *c) {
    const int64_t count = (int64_t)(c->model->weights.trainable_bytes / sizeof(float));
    const leati_desc all = leati_desc_make(LEAT_F32, 1, &count);
    const leati_value scale = leati_optimizer_loss_scale(c->model->compiled.optimizer, c->graph);
    if (scale == LEATI_NONE) return;
    const leati_value gradients = leati_graph_state(c->graph, LEATI_SLAB_GRADIENTS, 0, &all);
    leati_graph_store(c->graph, gradients, leati_div(c->graph, gradients, scale));
}

/* Tells if a weight on which the loss does not depend stays, as in current Keras: a gradient of 0 must not move
 * it. */
static bool may_stay(const leat_model *model) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    return model->compiled.as_keras3 && !optimizer->object && isnan(optimizer->config.weight_decay) &&
           strcmp(optimizer->type->class_name, "Ftrl") != 0;
}

/* Stores the gradients to their slab, except those that the update joins. */
static leat_status store_gradients(context *c, leati_value *wrt, leati_value *gradients, bool *joined,
                                   leat_error *err) {
    const leati_weights *weights = &c->model->weights;
    const bool may_join = c->spec->on_host && c->spec->part_of_step == LEATI_STEP_WHOLE && !c->rows;
    for (int32_t i = 0; i < weights->trainable_count; ++i) {
        wrt[i] = weight_in(c, LEATI_SLAB_WEIGHTS, weights->entries[i]);
    }
    int32_t forward_count = leati_graph_node_count(c->graph);
    LEATI_TRY(
        leati_graph_differentiate(c->graph, scaled_loss(c), weights->trainable_count, wrt, gradients, err));
    if (c->model->gradient_checkpointing) LEATI_TRY(leati_graph_recompute(c->graph, forward_count, err));
    leati_graph_label(c->graph, "gradients");
    for (int32_t i = 0; i < weights->trainable_count; ++i) {
        if (gradients[i] == LEATI_NONE && may_stay(c->model)) {
            const leati_desc desc = weights->entries[i]->desc;
            gradients[i] = leati_full(c->graph, desc.rank, desc.shape, 0.0f);
        } else if (gradients[i] == LEATI_NONE) {
            return leati_fail(
                err, LEAT_EINVAL,
                "weight '%s': the loss does not depend on it; freeze its layer, or give the outputs "
                "that it leads to a loss",
                weights->names[i]);
        }
        joined[i] = may_join && leati_optimizer_joins(c->model->compiled.optimizer, c->graph,
                                                      weights->entries[i], gradients[i]);
        c->program->joins_gradients |= joined[i];
        if (!joined[i])
            leati_graph_store(c->graph, weight_in(c, LEATI_SLAB_GRADIENTS, weights->entries[i]),
                              gradients[i]);
    }
    return LEAT_OK;
}

static void apply_constraints(context *c) {
    leati_graph_label(c->graph, "constraints");
    for (int32_t i = 0; i < c->model->weights.trainable_count; ++i) {
        const leati_weight *weight = c->model->weights.entries[i];
        if (weight->constraint.kind == LEATI_CONSTRAINT_NONE) continue;
        if (c->spec->share.ranks > 0 && !leati_share_has(&c->spec->share, weight)) continue;
        leati_value w = weight_in(c, LEATI_SLAB_WEIGHTS, weight);
        leati_graph_store(c->graph, w, leati_constraint_lower(&weight->constraint, c->graph, w));
    }
}

/* Adds the update by `gradients`; NULL: another program has stored them to their slab. */
static leat_status lower_update(context *c, const leati_gradients *gradients, leat_error *err) {
    const leati_weights *weights = &c->model->weights;
    leati_graph_label(c->graph, "optimizer");
    if (c->spec->phase == LEATI_PHASE_SUM)
        leati_optimizer_accumulate(c->model->compiled.optimizer, c->graph, weights, &c->spec->share);
    else
        LEATI_TRY(leati_optimizer_lower(c->model->compiled.optimizer, c->graph, weights, gradients,
                                        &c->spec->share, err));
    apply_constraints(c);
    return leati_graph_check(c->graph, err);
}

/* The second part of a step has no rows of an Embedding's gradient, one for each index of the batch: an update that
 * reads them needs their sums.  With a loss scale there are none, since the rows are scaled. */
static leat_status lower_rows(context *c, const leati_value *gradients, leat_error *err) {
    const leati_optimizer *optimizer = c->model->compiled.optimizer;
    const leati_weights *weights = &c->model->weights;
    const int32_t weight = leati_optimizer_reads_rows(optimizer, c->graph, weights, gradients);
    const char *why = leati_optimizer_keeps_rows(optimizer);
    if (weight < 0) return LEAT_OK;
    if (why)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "weight '%s': %s and an optimizer that reads the gradient's rows, one for each index of the "
            "batch, are not supported with several ranks: use the arithmetic of Keras 2.3.1 without "
            "clipvalue",
            weights->names[weight], why);
    leati_optimizer_lower_rows(optimizer, c->graph, weights, gradients);
    return leati_graph_check(c->graph, err);
}

/* Builds the second part of a training step: the gradients are already in their slab. */
static leat_status build_update(context *c, leat_error *err) {
    unscale_gradients(c);
    return lower_update(c, NULL, err);
}

static leat_status lower_training(context *c, leat_error *err) {
    const leati_weights *weights = &c->model->weights;
    size_t count = (size_t)weights->trainable_count;
    if (count == 0) return LEAT_OK;
    leati_value *values = leati_calloc(2 * count, sizeof(*values));
    bool *joined = leati_calloc(count, sizeof(*joined));
    leat_status status = values && joined
                             ? store_gradients(c, values, values + count, joined, err)
                             : leati_fail_memory(err, count * (2 * sizeof(*values) + 1), "gradients");
    if (status == LEAT_OK && c->rows)
        *c->row_bytes = leati_optimizer_find_rows(c->model->compiled.optimizer, c->graph, weights,
                                                  values + count, c->rows);
    else if (status == LEAT_OK && c->spec->part_of_step == LEATI_STEP_GRADIENTS)
        status = lower_rows(c, values + count, err);
    else if (status == LEAT_OK)
        status = lower_update(c, &(leati_gradients){.values = values + count, .joined = joined}, err);
    leati_free(values);
    leati_free(joined);
    return status;
}

/* ---- The whole ---- */

static leat_status build(context *c, leat_error *err) {
    leati_value inputs[LEATI_PROGRAM_MAX_OUTPUTS];
    leati_lowering lowering = {.graph = c->graph,
                               .mode = c->spec->mode,
                               .as_keras3 = c->model->as_keras3,
                               .norms = c->spec->norms,
                               .on_host = c->spec->on_host,
                               .whole_batch = c->spec->whole_batch,
                               .part_batch = c->spec->inputs[0].shape[0],
                               .first_sample = c->spec->first_sample,
                               .carry = c->carry};
    c->totals = (leati_totals){.collects = c->spec->part_of_step == LEATI_STEP_TOTALS,
                               .samples = c->spec->inputs[0].shape[0],
                               .whole = c->spec->whole_batch,
                               .first = c->spec->first_sample,
                               .most = c->spec->most_samples,
                               .binding = &c->program->binding_count};
    LEATI_TRY(leati_step_bind_inputs(c, inputs, err));
    for (int i = 0; c->carry && i < c->spec->input_count; ++i)
        if (c->sequence[i]) leati_carry_mark(&lowering, inputs[i]);
    LEATI_TRY(leati_model_lower(c->model, &lowering, inputs, c->program->predictions, c->masks, err));
    LEATI_TRY(leati_graph_check(c->graph, err));
    if (c->spec->mode == LEATI_PREDICT) {
        for (int i = 0; i < c->model->output_count; ++i) {
            leati_graph_keep(c->graph, c->program->predictions[i]);
        }
        return leati_graph_check(c->graph, err);
    }
    LEATI_TRY(bind_targets(c, err));
    LEATI_TRY(lower_losses(c, &lowering, err));
    c->program->total_count = c->totals.count;
    memcpy(c->program->totals, c->totals.values, sizeof c->program->totals);
    if (c->totals.collects) return LEAT_OK;
    if (c->spec->mode == LEATI_TRAIN) LEATI_TRY(lower_training(c, err));
    LEATI_TRY(leati_step_lower_metrics(c, &lowering, err));
    return leati_graph_check(c->graph, err);
}

leati_phase leati_program_phase(const leat_model *model, leati_mode mode) {
    if (mode != LEATI_TRAIN || !model->compiled.ready) return LEATI_PHASE_ONLY;
    int64_t batches = leati_optimizer_batches(model->compiled.optimizer);
    if (batches == 1) return LEATI_PHASE_ONLY;
    return model->iterations % batches == batches - 1 ? LEATI_PHASE_UPDATE : LEATI_PHASE_SUM;
}

static leat_status build_program(context *c, leat_error *err) {
    const leati_program_spec *spec = c->spec;
    leati_program *program = c->program;
    *program = (leati_program){.loss = LEATI_NONE, .regularization = LEATI_NONE};
    if (spec->mode != LEATI_PREDICT && !c->model->compiled.ready) {
        return leati_fail(err, LEAT_EINVAL, "the model is not compiled: call leat_model_compile first");
    }
    LEATI_TRY(leati_network_check_counts(c->model, err));
    LEATI_TRY(leati_graph_create(&program->graph, err));
    c->graph = program->graph;
    leat_status status = spec->part_of_step == LEATI_STEP_UPDATE ? build_update(c, err) : build(c, err);
    if (status != LEAT_OK) leati_graph_destroy(&program->graph);
    return status;
}

leat_status leati_program_build(const leat_model *model, const leati_program_spec *spec,
                                leati_program *program, leat_error *err) {
    context c = {.model = model, .spec = spec, .program = program};
    return build_program(&c, err);
}

leat_status leati_program_find_rows(const leat_model *model, const leati_program_spec *spec, bool *out,
                                    size_t *bytes, leat_error *err) {
    leati_program program;
    context c = {.model = model, .spec = spec, .program = &program, .rows = out, .row_bytes = bytes};
    *bytes = 0;
    LEATI_TRY(build_program(&c, err));
    leati_graph_destroy(&program.graph);
    return LEAT_OK;
}

leat_status leati_program_build_carrying(const leat_model *model, const leati_program_spec *spec,
                                         leati_carry *carry, const bool *sequence, leati_program *program,
                                         leat_error *err) {
    context c = {.model = model, .spec = spec, .program = program, .carry = carry, .sequence = sequence};
    return build_program(&c, err);
}
