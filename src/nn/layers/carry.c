/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the states of a program, and marks values that are steps.  Room: nn. */
#include "nn/layers/carry.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

void leati_carry_fini(leati_carry *carry) {
    leati_free(carry->items);
    leati_free(carry->steps);
    *carry = (leati_carry){0};
}

static leati_carried *find(const leati_carry *carry, const leati_layer *layer, int32_t index) {
    for (int32_t i = 0; i < carry->count; ++i)
        if (carry->items[i].layer == layer && carry->items[i].index == index) return &carry->items[i];
    return NULL;
}

static leati_carried *add(leati_carry *carry) {
    if (carry->count == carry->capacity) {
        int32_t capacity = carry->capacity ? 2 * carry->capacity : 8;
        leati_carried *items = leati_realloc(carry->items, (size_t)capacity, sizeof *items);
        if (!items) return NULL;
        carry->items = items;
        carry->capacity = capacity;
    }
    return &carry->items[carry->count++];
}

leati_value leati_carry_state(const leati_layer *layer, leati_lowering *lowering, bool shared, int32_t index,
                              const leati_desc *desc) {
    leati_carry *carry = lowering->carry;
    leati_carried *state = shared ? find(carry, layer, index) : NULL;
    if (!state) {
        state = add(carry);
        if (!state) return leati_graph_fail(lowering->graph, LEAT_ENOMEM, "no memory for a list of states");
        *state = (leati_carried){layer, index, *desc, carry->bytes};
        carry->bytes += leati_align(leati_desc_bytes(desc));
    }
    if (!leati_desc_same_shape(&state->desc, desc))
        return leati_graph_fail(lowering->graph, LEAT_ESHAPE,
                                "a stateful layer is called with batches of different sizes");
    return leati_graph_state(lowering->graph, LEATI_SLAB_STATES, state->offset_bytes, desc);
}

void leati_carry_mark(leati_lowering *lowering, leati_value value) {
    leati_carry *carry = lowering->carry;
    if (value < 0) return;
    if (value >= carry->step_capacity) {
        int32_t capacity = 2 * value + 16;
        bool *steps = leati_realloc(carry->steps, (size_t)capacity, sizeof *steps);
        if (!steps) {
            leati_graph_fail(lowering->graph, LEAT_ENOMEM, "no memory for a list of values");
            return;
        }
        memset(steps + carry->step_capacity, 0, (size_t)(capacity - carry->step_capacity) * sizeof *steps);
        carry->steps = steps;
        carry->step_capacity = capacity;
    }
    carry->steps[value] = true;
}

bool leati_carry_is_step(const leati_lowering *lowering, leati_value value) {
    const leati_carry *carry = lowering->carry;
    return carry && value >= 0 && value < carry->step_capacity && carry->steps[value];
}
