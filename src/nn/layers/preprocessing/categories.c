/* SPDX-License-Identifier: Apache-2.0 */
/* Turns indices of categories into vectors, in one function of the op CALL: integers keep all their digits, and a large
 * vocabulary needs no tensor of (elements, vocabulary).
 * Source: keras.src.utils.numerical_utils.encode_categorical_inputs.  Room: nn. */
#include "nn/layers/preprocessing/categories.h"

#include <string.h>

#include "base/error.h"

const char *const leati_category_modes[] = {"int", "one_hot", "multi_hot", "count", NULL};
const char *const leati_weighted_category_modes[] = {"int", "one_hot", "multi_hot", "count", "tf_idf", NULL};

/* ---- Shapes ---- */

/* Computes the shape of the output.  ONE_HOT replaces a last axis of length 1 by the categories, or appends their axis;
 * the modes after it combine the elements of the last axis. */
static leat_status encoded(const leati_categories *c, const leati_shape *in, leati_shape *out,
                           leat_error *err) {
    const bool one_hot = c->output_mode == LEATI_MODE_ONE_HOT;
    *out = *in;
    if (c->output_mode == LEATI_MODE_INT) return LEAT_OK;
    if (!one_hot && in->rank != 2) return leati_shape_unexpected(in, "an input (batch, values)", err);
    if (one_hot && (in->rank < 2 || in->dims[in->rank - 1] != 1)) {
        if (in->rank == LEAT_MAX_RANK) return leati_shape_unexpected(in, "an input of rank 1 to 7", err);
        ++out->rank;
    }
    out->dims[out->rank - 1] = c->depth;
    return LEAT_OK;
}

leat_status leati_categories_infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                                   leati_shape *outputs, int *output_count, leat_error *err) {
    (void)output_count;
    for (int i = 1; i < input_count; ++i)
        if (inputs[i].rank != inputs[0].rank)
            return leati_shape_unexpected(&inputs[i], "inputs of one shape", err);
    return encoded(layer->config, &inputs[0], &outputs[0], err);
}

static leat_status infer_call(const leati_callee *callee, int input_count, const leati_desc *inputs,
                              leati_desc *outputs, leat_error *err) {
    leati_shape in = {.rank = inputs[0].rank}, out;
    for (int i = 1; i < input_count; ++i)
        if (!leati_desc_same_shape(&inputs[i], &inputs[0]))
            return leati_fail(err, LEAT_ESHAPE, "expected inputs of one shape");
    memcpy(in.dims, inputs[0].shape, sizeof in.dims);
    LEATI_TRY(encoded((const leati_categories *)(const void *)callee, &in, &out, err));
    outputs[0] = leati_desc_make(LEAT_F32, out.rank, out.dims);
    return LEAT_OK;
}

/* ---- Computing ---- */

static leat_status forward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const leati_categories *c = (const void *)callee; /* its first member */
    const leati_desc *in = &run->inputs[0];
    const int32_t mode = c->output_mode;
    const int64_t count = leati_desc_count(in);
    const int64_t joined = mode > LEATI_MODE_ONE_HOT ? in->shape[in->rank - 1] : 1; /* elements of a vector */
    float *out = run->results[0];
    if (mode != LEATI_MODE_INT) memset(out, 0, leati_desc_bytes(&run->outputs[0]));
    for (int64_t i = 0; i < count; ++i) {
        int64_t index;
        LEATI_TRY(c->index(c, run, i, &index, err));
        if (mode == LEATI_MODE_INT) {
            out[i] = (float)index;
        } else if (index >= 0 && index < c->depth) {
            float *number = &out[i / joined * c->depth + index];
            *number = mode >= LEATI_MODE_COUNT ? *number + 1 : 1;
        }
    }
    const int64_t numbers = mode == LEATI_MODE_TF_IDF ? leati_desc_count(&run->outputs[0]) : 0;
    for (int64_t i = 0; i < numbers; ++i) out[i] *= c->weights[i % c->depth];
    return LEAT_OK;
}

leat_status leati_categories_set(leati_categories *categories, int64_t depth, leati_category_index *index,
                                 leat_error *err) {
    if (categories->sparse)
        return leati_fail(err, LEAT_ENOTSUP,
                          "sparse: expected false, received true; leat's tensors are dense");
    if (depth > INT32_MAX)
        return leati_fail(err, LEAT_EINVAL, "expected at most %d categories, received %lld", INT32_MAX,
                          (long long)depth);
    categories->callee =
        (leati_callee){.output_count = 1, .any_types = true, .infer = infer_call, .forward = forward};
    categories->depth = depth;
    categories->index = index;
    return LEAT_OK;
}

void leati_categories_lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                            const leati_value *inputs, leati_value *outputs) {
    const leati_categories *c = layer->config;
    leati_graph_call(lowering->graph, &c->callee, leati_lowering_in_training(lowering), lowering->stream,
                     input_count, inputs, outputs);
    leati_graph_set_exact(lowering->graph, outputs[0]);
}

leat_status leati_salt_read(leati_salt *out, const json_t *value, leat_error *err) {
    const bool pair = json_array_size(value) == 2, number = json_is_integer(value);
    *out = (leati_salt){.present = value != NULL};
    for (int i = 0; i < 2 && value; ++i) {
        const json_t *item = pair ? json_array_get(value, (size_t)i) : value;
        if (!(pair || number) || !json_is_integer(item))
            return leati_fail(err, LEAT_EINVAL, "salt: expected an integer, a list of two integers, or null");
        out->key[i] = (uint64_t)json_integer_value(item);
    }
    return LEAT_OK;
}
