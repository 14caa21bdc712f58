/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers one call of a layer: what all layers share, around the layer type's own `lower`.  Room: nn. */
#include "base/error.h"
#include "base/rng.h"
#include "nn/layers/carry.h"
#include "nn/layers/types.h"

uint64_t leati_stream(uint64_t parent, const char *name) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = name; *c; ++c) hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return leati_mix(parent, hash);
}

leati_value leati_layer_weight(const leati_layer *layer, const leati_lowering *lowering, int index) {
    for (; layer->outer; layer = layer->outer) index += layer->first_outer_weight;
    const leati_weight *weight = &layer->weights[index];
    return leati_graph_state(lowering->graph, LEATI_SLAB_WEIGHTS, weight->offset_bytes, &weight->desc);
}

leati_value leati_layer_state(const leati_layer *layer, const leati_lowering *lowering, int index) {
    for (; layer->outer; layer = layer->outer) index += layer->first_outer_state;
    const leati_state *state = &layer->states[index];
    leati_desc desc = state->desc;
    size_t offset = state->offset_bytes;
    if (lowering->whole_batch > 0) { /* the rows of the part's samples */
        const int64_t rows = desc.shape[0] / lowering->whole_batch;
        if (rows * lowering->whole_batch != desc.shape[0])
            return leati_graph_fail(lowering->graph, LEAT_ENOTSUP,
                                    "a state has %lld rows, which %lld samples do not have in equal numbers: "
                                    "such a layer is not supported with several ranks",
                                    (long long)desc.shape[0], (long long)lowering->whole_batch);
        offset += leati_desc_bytes(&desc) / (size_t)lowering->whole_batch * (size_t)lowering->first_sample;
        desc.shape[0] = rows * lowering->part_batch;
    }
    return leati_graph_state(lowering->graph, LEATI_SLAB_STATES, offset, &desc);
}

bool leati_lowering_trains(const leati_lowering *lowering, const leati_layer *layer) {
    while (layer->outer) layer = layer->outer;
    return lowering->mode == LEATI_TRAIN && layer->trains;
}

/* Appends a scalar to a list; where the list is full, adds it to the last one. */
static void add_scalar(leati_lowering *lowering, leati_value *list, int32_t *count, leati_value scalar) {
    const int32_t most = (int32_t)(sizeof lowering->losses / sizeof lowering->losses[0]);
    if (scalar == LEATI_NONE || lowering->mode == LEATI_PREDICT) return;
    if (*count < most)
        list[(*count)++] = scalar;
    else
        list[most - 1] = leati_add(lowering->graph, list[most - 1], scalar);
}

void leati_lowering_add_loss(leati_lowering *lowering, leati_value scalar) {
    add_scalar(lowering, lowering->losses, &lowering->loss_count, scalar);
}

void leati_lowering_add_activity(leati_lowering *lowering, const leati_regularizer *regularizer,
                                 int output_count, const leati_value *outputs) {
    if (!regularizer || lowering->mode == LEATI_PREDICT || lowering->inside) return;
    bool before = leati_graph_store_bf16(lowering->graph, false);
    for (int i = 0; i < output_count; ++i) {
        leati_value penalty = leati_regularizer_lower(regularizer, lowering->graph, outputs[i]);
        const leati_desc *desc = leati_graph_desc(lowering->graph, outputs[i]);
        const int64_t rows = lowering->apart_rows > 1 ? lowering->apart_rows : 1;
        if (regularizer->per_sample && penalty != LEATI_NONE && desc->rank > 0 && desc->shape[0] > 0)
            penalty = leati_linear(lowering->graph, penalty, (float)rows / (float)desc->shape[0], 0.0f);
        else if (lowering->whole_batch > 0) {
            add_scalar(lowering, lowering->sums, &lowering->sum_count, penalty);
            continue;
        }
        leati_lowering_add_loss(lowering, penalty);
    }
    leati_graph_store_bf16(lowering->graph, before);
}

/* Gives an output that is an input a value of its own, like the identity op of Keras 2.3.1: a crossentropy after the
 * layer must not see the softmax before the layer.  In current Keras such a layer returns its input itself. */
static leati_value own_value(const leati_lowering *lowering, leati_value output, int count,
                             const leati_value *inputs) {
    leati_graph *graph = lowering->graph;
    if (lowering->as_keras3 && output >= 0 && leati_graph_value(graph, output)->producer >= 0) return output;
    for (int i = 0; i < count; ++i) {
        if (output != inputs[i]) continue;
        const leati_desc desc = *leati_graph_desc(graph, output);
        return leati_reshape(graph, output, desc.rank, desc.shape);
    }
    return output;
}

leati_value leati_lowering_joined_mask(const leati_lowering *lowering, int input_count) {
    leati_value joined = LEATI_NONE;
    for (int i = 0; i < input_count; ++i) {
        leati_value mask = lowering->input_masks[i];
        if (mask == LEATI_NONE) continue;
        joined = joined == LEATI_NONE ? mask : leati_mul(lowering->graph, joined, mask);
    }
    return joined;
}

/* Rounds an input to bf16, but not integers, which bf16 represents only up to 256. */
static leati_value as_read(const leati_layer *layer, leati_lowering *lowering, int count, leati_value value) {
    bool indices = layer->type->indices && (layer->type != &leati_layer_reversible_embedding || count == 1);
    if (indices || layer->type->integers) return value;
    leati_value read = leati_graph_rounded_to_bf16(lowering->graph, value);
    if (leati_carry_is_step(lowering, value)) leati_carry_mark(lowering, read);
    return read;
}

leat_status leati_layer_lower(const leati_layer *layer, leati_lowering *lowering,
                              const leati_layer_call *call, leat_error *err) {
    const leati_masking masking = layer->type->masking;
    const int count = call->input_count;
    bool makes_step = false;
    if (lowering->carry)
        LEATI_TRY(leati_stepwise_check(layer, lowering, count, call->inputs, &makes_step, err));
    for (int i = 0; i < count; ++i) {
        lowering->input_masks[i] = masking == LEATI_MASK_DROPPED ? LEATI_NONE : call->masks[i];
        if (call->masks[i] != LEATI_NONE && masking == LEATI_MASK_REFUSED)
            return leati_fail(
                err, LEAT_ENOTSUP,
                "%s cannot be called with a mask, and its input has one (from a Masking or Embedding "
                "layer)",
                layer->type->class_name);
    }
    for (int i = 0; i < LEATI_LAYER_MAX_OUTPUTS; ++i) lowering->output_masks[i] = LEATI_NONE;
    leati_value read[LEATI_MAX_INPUTS];
    bool before = leati_graph_store_bf16(lowering->graph, layer->mixed), mixed = layer->mixed || before;
    leati_graph_store_bf16(lowering->graph, mixed); /* layers inside a mixed layer are mixed, too */
    for (int i = 0; i < count; ++i)
        read[i] = mixed ? as_read(layer, lowering, count, call->inputs[i]) : call->inputs[i];
    layer->type->lower(layer, lowering, count, read, call->outputs);
    leati_graph_store_bf16(lowering->graph, before);
    leati_lowering_add_activity(lowering, &layer->activity_regularizer, call->output_count, call->outputs);
    leati_value joined =
        masking == LEATI_MASK_PASSED ? leati_lowering_joined_mask(lowering, count) : LEATI_NONE;
    for (int i = 0; i < call->output_count; ++i) {
        call->outputs[i] = own_value(lowering, call->outputs[i], count, read);
        call->output_masks[i] = masking == LEATI_MASK_PASSED ? joined : lowering->output_masks[i];
    }
    if (makes_step) LEATI_TRY(leati_stepwise_mark(layer, lowering, call->outputs[0], err));
    return leati_graph_check(lowering->graph, err);
}
