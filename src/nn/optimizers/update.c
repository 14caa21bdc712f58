/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the ops of an optimizer to the graph: clipping, the update of the trainable weights, their moving average.
 *
 * In the arithmetic of current Keras, the gradient of an Embedding's table is a list of rows, one for each index of the
 * batch (TensorFlow's IndexedSlices), unless something else than lookups contributes to it.  Powers of gradients, as
 * in Adam's second moment, and norms are computed from these rows and then added, so that an index that occurs twice
 * has another result than with the sum of its rows.  Keras 2.3.1 only clips values row by row.
 * Source: keras.src.backend.tensorflow.sparse; tf.clip_by_value.  Room: nn. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/graph/build.h"
#include "nn/optimizers/types.h"

typedef struct context {
    const leati_optimizer *optimizer;
    leati_graph *graph;
    const leati_weights *weights;
    const leati_gradients *gradients; /* NULL: another program has stored them */
    leati_value *
        rows; /* per trainable weight: its gradient, if that is a list of rows in this graph, or LEATI_NONE */
    const bool
        *summed; /* per trainable weight: the sums over its rows are in LEATI_SLAB_ROWS; NULL: none is */
    leati_update update; /* `powers` and `ranges` are owned */
} context;

static leati_value slab_range(leati_graph *graph, leati_slab slab, size_t offset_bytes, int64_t count) {
    const leati_desc all = leati_desc_make(LEAT_F32, 1, &count);
    return leati_graph_state(graph, slab, offset_bytes, &all);
}

static leati_value whole_slab(leati_graph *graph, leati_slab slab, const leati_weights *weights) {
    return slab_range(graph, slab, 0, (int64_t)(weights->trainable_bytes / sizeof(float)));
}

/* The share of the slab that this process updates. */
static leati_value shared_slab(const context *c, leati_slab slab) {
    const leati_share *share = &c->update.share;
    return slab_range(c->graph, slab, share->from, (int64_t)((share->end - share->from) / sizeof(float)));
}

static leati_value gradient_of(const context *c, int32_t weight) {
    const leati_weight *entry = c->weights->entries[weight];
    return leati_graph_state(c->graph, LEATI_SLAB_GRADIENTS, entry->offset_bytes, &entry->desc);
}

/* ---- Gradients that are lists of rows ---- */

static const leati_node *producer_of(const leati_graph *graph, leati_value value) {
    int32_t producer = value >= 0 ? leati_graph_value(graph, value)->producer : -1;
    return producer >= 0 ? leati_graph_node_at(graph, producer) : NULL;
}

static bool is_sum(const leati_node *node) {
    return node && node->op == LEATI_OP_BINARY && node->attrs.binary.kind == LEATI_ADD;
}

/* True if the gradient is a sum of lookups' gradients and of nothing else. */
static bool has_rows_of(const leati_graph *graph, leati_value gradient) {
    const leati_node *node = producer_of(graph, gradient);
    if (is_sum(node)) return has_rows_of(graph, node->inputs[0]) && has_rows_of(graph, node->inputs[1]);
    return node && node->op == LEATI_OP_GATHER_BWD;
}

/* Returns the sum over all rows of f(factor * row), in the shape of the table; factor may be LEATI_NONE, which is 1. */
static leati_value sum_of_scaled_rows(leati_graph *graph, leati_value gradient, leati_value factor,
                                      const leati_eltwise *f) {
    const leati_node *node = producer_of(graph, gradient);
    const leati_attrs attrs = node->attrs;
    leati_value inputs[2] = {node->inputs[0], node->inputs[1]};
    if (is_sum(node)) {
        leati_value first = sum_of_scaled_rows(graph, inputs[0], factor, f);
        return leati_add(graph, first, sum_of_scaled_rows(graph, inputs[1], factor, f));
    }
    if (factor != LEATI_NONE) inputs[1] = leati_mul(graph, inputs[1], factor);
    inputs[1] = leati_eltwise_of(graph, inputs[1], *f);
    return leati_graph_node(graph, LEATI_OP_GATHER_BWD, &attrs, 2, inputs, NULL);
}

/* Returns the sum over all rows of f(row), in the shape of the table. */
static leati_value sum_of_rows(leati_graph *graph, leati_value gradient, const leati_eltwise *f) {
    return sum_of_scaled_rows(graph, gradient, LEATI_NONE, f);
}

static leati_value squares_of_rows(leati_graph *graph, leati_value gradient) {
    return sum_of_rows(graph, gradient, &(leati_eltwise){.function = LEATI_FN_SQUARE});
}

static bool clips(const leati_optimizer_config *c) {
    return isgreater(c->clipnorm, 0.0) || isgreater(c->global_clipnorm, 0.0) || isgreater(c->clipvalue, 0.0);
}

static bool adds_powers(const leati_optimizer *optimizer) {
    return optimizer->as_keras3 && !optimizer->adds_rows && optimizer->type->powers != LEATI_POWERS_NONE;
}

/* Returns true if lists of rows may have another update than their sums. */
static bool rows_matter(const leati_optimizer *optimizer) {
    return leati_optimizer_batches(optimizer) == 1 && /* the sum over batches is no list of rows */
           (adds_powers(optimizer) || clips(&optimizer->config));
}

/* The clipnorm of 2.3.1 adds the rows first. */
static bool clips_sums(const leati_optimizer *optimizer) {
    const leati_optimizer_config *config = &optimizer->config;
    return !optimizer->clips_each && !isgreater(config->global_clipnorm, 0.0) &&
           !isgreater(config->clipvalue, 0.0);
}

int32_t leati_optimizer_reads_rows(const leati_optimizer *optimizer, const leati_graph *graph,
                                   const leati_weights *weights, const leati_value *gradients) {
    const bool reads = rows_matter(optimizer) && (adds_powers(optimizer) || !clips_sums(optimizer));
    for (int32_t i = 0; reads && i < weights->trainable_count; ++i)
        if (has_rows_of(graph, gradients[i])) return i;
    return -1;
}

/* ---- Sums over rows in their slab: the sums of squares, one number per trainable weight, then the powers ---- */

static bool stores_powers(const leati_optimizer *optimizer) {
    return adds_powers(optimizer) && !isgreater(optimizer->config.global_clipnorm, 0.0);
}

static bool stores_squares(const leati_optimizer *optimizer) {
    const leati_optimizer_config *config = &optimizer->config;
    return (isgreater(config->clipnorm, 0.0) && optimizer->clips_each) ||
           isgreater(config->global_clipnorm, 0.0);
}

/* Returns where the powers of a weight begin; for the number of weights, the size of the slab. */
static size_t powers_at(const leati_optimizer *optimizer, const leati_weights *weights, const bool *has_rows,
                        int32_t weight) {
    size_t at = leati_align((size_t)weights->trainable_count * sizeof(float));
    for (int32_t i = 0; i < weight && stores_powers(optimizer); ++i)
        if (has_rows[i]) at += leati_align(leati_desc_bytes(&weights->entries[i]->desc));
    return at;
}

static leati_value stored_squares(const context *c, int32_t weight) {
    const leati_desc number = leati_desc_make(LEAT_F32, 0, NULL);
    return leati_graph_state(c->graph, LEATI_SLAB_ROWS, (size_t)weight * sizeof(float), &number);
}

static leati_value stored_powers(const context *c, int32_t weight) {
    return leati_graph_state(c->graph, LEATI_SLAB_ROWS,
                             powers_at(c->optimizer, c->weights, c->summed, weight),
                             &c->weights->entries[weight]->desc);
}

static bool is_summed(const context *c, int32_t weight) {
    return c->summed && c->summed[weight];
}

size_t leati_optimizer_find_rows(const leati_optimizer *optimizer, const leati_graph *graph,
                                 const leati_weights *weights, const leati_value *gradients, bool *has_rows) {
    const bool any = leati_optimizer_reads_rows(optimizer, graph, weights, gradients) >= 0;
    for (int32_t i = 0; i < weights->trainable_count; ++i)
        has_rows[i] = any && has_rows_of(graph, gradients[i]);
    return any ? powers_at(optimizer, weights, has_rows, weights->trainable_count) : 0;
}

const char *leati_optimizer_keeps_rows(const leati_optimizer *optimizer) {
    const leati_optimizer_config *config = &optimizer->config;
    if (optimizer->scale.growth_steps > 0) return "a scaled loss";
    if (!optimizer->as_keras3 && isgreater(config->clipvalue, 0.0) && isgreater(config->clipnorm, 0.0))
        return "clipvalue beside clipnorm";
    return NULL;
}

/* ---- Updates by rows ---- */

/* Below, a gradient of the whole table costs less than an update of its own, or than its calls for single rows. */
enum { LEAST_BYTES_TO_JOIN = 1 << 20, LEAST_BYTES_PER_INDEX = 1 << 10 };

bool leati_optimizer_joins(const leati_optimizer *optimizer, const leati_graph *graph,
                           const leati_weight *weight, leati_value gradient) {
    const leati_node *lookup = producer_of(graph, gradient);
    if (!lookup || lookup->op != LEATI_OP_GATHER_BWD) return false;
    if (optimizer->object || optimizer->type->lower || clips(&optimizer->config) ||
        leati_optimizer_batches(optimizer) > 1)
        return false;
    const int64_t indices = leati_desc_count(&leati_graph_value(graph, lookup->inputs[0])->desc),
                  bytes = (int64_t)leati_desc_bytes(&weight->desc);
    return bytes >= LEAST_BYTES_TO_JOIN && bytes / LEAST_BYTES_PER_INDEX >= indices && indices <= INT32_MAX;
}

/* Returns the gradient of a weight if it is joined, else LEATI_NONE. */
static leati_value joined_gradient(const context *c, int32_t weight) {
    const leati_gradients *gradients = c->gradients;
    return gradients && gradients->joined[weight] ? gradients->values[weight] : LEATI_NONE;
}

static bool is_apart(const context *c, int32_t weight) {
    return c->update.powers[weight] != LEATI_NONE || joined_gradient(c, weight) != LEATI_NONE;
}

/* Finds the gradients that are lists of rows, where that makes a difference. */
static void find_rows(context *c) {
    const leati_gradients *gradients = c->gradients;
    bool matters = gradients && rows_matter(c->optimizer);
    c->summed = gradients ? NULL : c->weights->has_rows;
    for (int32_t i = 0; i < c->weights->trainable_count; ++i) {
        bool rows = matters && !gradients->joined[i] && has_rows_of(c->graph, gradients->values[i]);
        c->rows[i] = rows ? gradients->values[i] : LEATI_NONE;
        c->update.powers[i] = LEATI_NONE;
    }
}

static leati_value powers_of_rows(const context *c, leati_value gradient) {
    static const leati_eltwise functions[] = {[LEATI_POWERS_SQUARE] = {.function = LEATI_FN_SQUARE},
                                              [LEATI_POWERS_ABSOLUTE] = {.function = LEATI_FN_ABS}};
    return sum_of_rows(c->graph, gradient, &functions[c->optimizer->type->powers]);
}

static void sum_powers(context *c) {
    for (int32_t i = 0; adds_powers(c->optimizer) && i < c->weights->trainable_count; ++i) {
        if (c->rows[i] != LEATI_NONE)
            c->update.powers[i] = powers_of_rows(c, c->rows[i]);
        else if (is_summed(c, i))
            c->update.powers[i] = stored_powers(c, i);
    }
}

/* ---- Clipping ---- */

/* Returns the factor that scales gradients to the limit if their norm is larger: c / max(|g|, c). */
static leati_value norm_factor(leati_graph *graph, leati_value squared_norm, float limit) {
    leati_value norm = leati_function_of(graph, squared_norm, LEATI_FN_SQRT);
    leati_value constant = leati_scalar(graph, limit);
    return leati_div(graph, constant, leati_binary_of(graph, LEATI_MAX, norm, constant));
}

static leati_value squared_norm(leati_graph *graph, leati_value gradients) {
    leati_value square = leati_function_of(graph, gradients, LEATI_FN_SQUARE);
    return leati_reduce_all(graph, LEATI_REDUCE_SUM, square);
}

static leati_value squared_norm_of(const context *c, int32_t weight) {
    if (is_summed(c, weight)) return stored_squares(c, weight);
    if (c->rows[weight] == LEATI_NONE) return squared_norm(c->graph, gradient_of(c, weight));
    leati_value squares = squares_of_rows(c->graph, c->rows[weight]);
    return leati_reduce_all(c->graph, LEATI_REDUCE_SUM, squares);
}

/* Multiplies the powers by the power of the factor of their gradient. */
static void scale_powers(context *c, int32_t weight, leati_value factor) {
    leati_value *powers = &c->update.powers[weight];
    if (*powers == LEATI_NONE) return;
    if (c->optimizer->type->powers == LEATI_POWERS_SQUARE)
        factor = leati_function_of(c->graph, factor, LEATI_FN_SQUARE);
    *powers = leati_mul(c->graph, *powers, factor);
}

static void clip_each_norm(context *c, float limit) {
    for (int32_t i = 0; i < c->weights->trainable_count; ++i) {
        leati_value gradient = gradient_of(c, i);
        leati_value factor = norm_factor(c->graph, squared_norm_of(c, i), limit);
        leati_graph_store(c->graph, gradient, leati_mul(c->graph, gradient, factor));
        scale_powers(c, i, factor);
    }
}

/* Returns the squared norm of all gradients.  The clipnorm of 2.3.1 adds the rows first. */
static leati_value whole_norm(const context *c, leati_value gradients) {
    leati_value sum = LEATI_NONE;
    bool adds_first = !isgreater(c->optimizer->config.global_clipnorm, 0.0), any_rows = false;
    for (int32_t i = 0; !adds_first && i < c->weights->trainable_count; ++i)
        any_rows |= c->rows[i] != LEATI_NONE || is_summed(c, i);
    if (!any_rows) return squared_norm(c->graph, gradients);
    for (int32_t i = 0; i < c->weights->trainable_count; ++i) {
        leati_value term = squared_norm_of(c, i);
        sum = sum == LEATI_NONE ? term : leati_add(c->graph, sum, term);
    }
    return sum;
}

/* Returns the factor of the gradients. */
static leati_value clip_whole_norm(const context *c, float limit) {
    leati_value gradients = whole_slab(c->graph, LEATI_SLAB_GRADIENTS, c->weights);
    leati_value factor = norm_factor(c->graph, whole_norm(c, gradients), limit);
    leati_graph_store(c->graph, gradients, leati_mul(c->graph, gradients, factor));
    return factor;
}

/* Replaces a gradient by the sum of its clipped rows, which are multiplied by `factor` before, and returns the sum. */
static leati_value clip_rows(const context *c, int32_t weight, leati_value rows, float limit,
                             leati_value factor) {
    const leati_eltwise f = {.function = LEATI_FN_CLIP, .a = -limit, .b = limit};
    rows = sum_of_scaled_rows(c->graph, rows, factor, &f);
    leati_graph_store(c->graph, gradient_of(c, weight), rows);
    return rows;
}

/* Clips the gradients between the sums of rows that are clipped already. */
static void clip_between_rows(const context *c, float limit) {
    size_t from = 0;
    for (int32_t i = 0; i <= c->weights->trainable_count; ++i) {
        const bool ends = i == c->weights->trainable_count;
        if (!ends && !is_summed(c, i)) continue;
        const size_t end = ends ? c->weights->trainable_bytes : c->weights->entries[i]->offset_bytes;
        const leati_value some = end > from ? slab_range(c->graph, LEATI_SLAB_GRADIENTS, from,
                                                         (int64_t)((end - from) / sizeof(float)))
                                            : LEATI_NONE;
        if (some != LEATI_NONE) leati_graph_store(c->graph, some, leati_clip(c->graph, some, -limit, limit));
        if (!ends) from = end + leati_align(leati_desc_bytes(&c->weights->entries[i]->desc));
    }
}

/* Clips lists of rows row by row, and everything else in one node.  The gradients are already multiplied by `factor`,
 * which may be LEATI_NONE; the rows are not. */
static void clip_values(context *c, float limit, leati_value factor) {
    clip_between_rows(c, limit);
    for (int32_t i = 0; i < c->weights->trainable_count; ++i)
        if (c->rows[i] != LEATI_NONE) c->rows[i] = clip_rows(c, i, c->rows[i], limit, factor);
}

/* Clips the gradients and sums their powers.  In 2.3.1, clipvalue comes after clipnorm; current Keras has only one of
 * them. */
static void clip(context *c) {
    const leati_optimizer_config *config = &c->optimizer->config;
    bool as_keras3 = c->optimizer->as_keras3, by_value = isgreater(config->clipvalue, 0.0);
    leati_value factor = LEATI_NONE;
    if (by_value && as_keras3) clip_values(c, (float)config->clipvalue, factor);
    if (!isgreater(config->global_clipnorm, 0.0)) sum_powers(c); /* global_clipnorm adds the rows up */
    if (isgreater(config->clipnorm, 0.0) && c->optimizer->clips_each)
        clip_each_norm(c, (float)config->clipnorm);
    else if (isgreater(config->clipnorm, 0.0))
        factor = clip_whole_norm(c, (float)config->clipnorm);
    else if (isgreater(config->global_clipnorm, 0.0))
        clip_whole_norm(c, (float)config->global_clipnorm);
    if (by_value && !as_keras3) clip_values(c, (float)config->clipvalue, factor);
}

/* ---- The update ---- */

static void add_range(context *c, size_t from, size_t to, leati_value powers, leati_value joined) {
    if (from == to) return;
    int64_t count = (int64_t)((to - from) / sizeof(float));
    if (powers != LEATI_NONE) powers = leati_reshape(c->graph, powers, 1, &count);
    c->update.ranges[c->update.range_count++] =
        (leati_update_range){.offset_bytes = from, .count = count, .powers = powers, .joined = joined};
}

/* Returns the weight with an update of its own that is the first at or behind a place of the slab; -1 if there is
 * none. */
static int32_t next_apart(const context *c, size_t from) {
    int32_t found = -1;
    for (int32_t i = 0; i < c->weights->trainable_count; ++i) {
        size_t offset = c->weights->entries[i]->offset_bytes;
        if (!is_apart(c, i) || offset < from) continue;
        if (found < 0 || offset < c->weights->entries[found]->offset_bytes) found = i;
    }
    return found;
}

/* Adds what the share has of a weight with an update of its own as a range. */
static void add_range_apart(context *c, int32_t weight, size_t from, size_t to) {
    const leati_weight *entry = c->weights->entries[weight];
    const int64_t start = (int64_t)((from - entry->offset_bytes) / sizeof(float)),
                  size = (int64_t)((to - from) / sizeof(float)), all = leati_desc_count(&entry->desc);
    leati_value powers = c->update.powers[weight];
    if (size < all)
        powers = leati_slice_axis(c->graph, leati_reshape(c->graph, powers, 1, &all), 0, start, size);
    add_range(c, from, to, powers, joined_gradient(c, weight));
}

/* Divides the share into the weights with an update of their own and the ranges between them. */
static void make_ranges(context *c) {
    const leati_share *share = &c->update.share;
    size_t from = share->from;
    for (int32_t i = next_apart(c, 0); i >= 0; i = next_apart(c, c->weights->entries[i]->offset_bytes + 1)) {
        const leati_weight *weight = c->weights->entries[i];
        size_t begin = weight->offset_bytes, end = begin + leati_desc_bytes(&weight->desc);
        if (begin < share->from) begin = share->from;
        if (end > share->end) end = share->end;
        if (begin >= end) continue;
        add_range(c, from, begin, LEATI_NONE, LEATI_NONE);
        add_range_apart(c, i, begin, end);
        from = end;
    }
    add_range(c, from, share->end, LEATI_NONE, LEATI_NONE);
}

/* Returns what a slab has for a range: a table if the update reads rows, otherwise a vector. */
static leati_value range_of(const context *c, leati_slab slab, const leati_update_range *range) {
    if (range->joined == LEATI_NONE) return slab_range(c->graph, slab, range->offset_bytes, range->count);
    const int64_t rows = producer_of(c->graph, range->joined)->attrs.gather.rows,
                  shape[] = {rows, range->count / rows};
    const leati_desc table = leati_desc_make(LEAT_F32, 2, shape);
    return leati_graph_state(c->graph, slab, range->offset_bytes, &table);
}

/* Adds the update of a range as one node. */
static void update_range(const context *c, const leati_update_range *range) {
    const leati_optimizer *optimizer = c->optimizer;
    const leati_optimizer_type *type = optimizer->type;
    bool decays = leati_optimizer_decays(optimizer), powers = range->powers != LEATI_NONE;
    bool joined = range->joined != LEATI_NONE;
    leati_value inputs[4 + LEATI_OPTIMIZER_MAX_SLOTS];
    inputs[0] = slab_range(c->graph, LEATI_SLAB_SCALARS, 0, type->scalar_count + (decays ? 1 : 0));
    inputs[1] =
        joined ? producer_of(c->graph, range->joined)->inputs[1] : range_of(c, LEATI_SLAB_GRADIENTS, range);
    inputs[2] = range_of(c, LEATI_SLAB_WEIGHTS, range);
    int slots = leati_optimizer_slot_count(optimizer),
        last = leati_op_descriptor_of(type->op)->max_inputs - 1;
    for (int i = 0; 3 + i < last; ++i) {
        leati_slab slab = (leati_slab)(LEATI_SLAB_SLOT0 + i);
        inputs[3 + i] = i < slots ? range_of(c, slab, range) : LEATI_NONE;
    }
    inputs[last] = joined ? producer_of(c->graph, range->joined)->inputs[0] : range->powers;
    leati_attrs attrs = {0};
    attrs.update.momentum = optimizer->config.momentum != 0.0;
    attrs.update.nesterov = optimizer->config.nesterov;
    attrs.update.amsgrad = optimizer->config.amsgrad;
    attrs.update.decay = decays;
    attrs.update.as_keras3 = optimizer->as_keras3;
    attrs.update.accumulates = optimizer->config.momentum > 0.0;
    attrs.update.centered = optimizer->config.centered;
    attrs.update.powers = powers || (joined && adds_powers(optimizer));
    attrs.update.rows = joined;
    leati_graph_node(c->graph, type->op, &attrs, powers || joined ? last + 1 : 3 + slots, inputs, NULL);
}

/* a x + b y */
static leati_value weighted_sum(leati_graph *graph, leati_value a, leati_value x, leati_value b,
                                leati_value y) {
    return leati_add(graph, leati_mul(graph, x, a), leati_mul(graph, y, b));
}

/* Updates the moving average of the weights, and replaces the weights by it in the steps that `overwrites` says. */
static void update_average(const context *c, const leati_value *extra) {
    leati_value w = shared_slab(c, LEATI_SLAB_WEIGHTS);
    leati_value average = shared_slab(c, leati_optimizer_average(c->optimizer));
    leati_value now =
        weighted_sum(c->graph, extra[LEATI_SCALAR_MOMENTUM], average, extra[LEATI_SCALAR_GAIN], w);
    leati_graph_store(c->graph, average, now);
    if (c->optimizer->config.ema_overwrite_frequency > 0)
        leati_graph_store(c->graph, w,
                          weighted_sum(c->graph, extra[LEATI_SCALAR_OLD], w, extra[LEATI_SCALAR_NEW], now));
}

static void decay(const context *c, leati_value share) {
    leati_value w = shared_slab(c, LEATI_SLAB_WEIGHTS);
    leati_graph_store(c->graph, w, leati_sub(c->graph, w, leati_mul(c->graph, w, share)));
}

/* Adds the sum over the batches before to the gradients, divides by the number of batches, and begins a new sum. */
static void average_gradients(const context *c) {
    leati_value gradients = whole_slab(c->graph, LEATI_SLAB_GRADIENTS, c->weights);
    leati_value sum = whole_slab(c->graph, leati_optimizer_accumulator(c->optimizer), c->weights);
    leati_value batches = leati_scalar(c->graph, (float)leati_optimizer_batches(c->optimizer));
    leati_graph_store(c->graph, gradients, leati_div(c->graph, leati_add(c->graph, gradients, sum), batches));
    leati_graph_store(c->graph, sum, leati_linear(c->graph, sum, 0.0f, 0.0f));
}

/* Sets the values of the scalars. */
static void read_scalars(const context *c, leati_value *scalars) {
    const leati_desc number = leati_desc_make(LEAT_F32, 0, NULL);
    for (int i = 0; i < leati_optimizer_scalar_count(c->optimizer); ++i)
        scalars[i] = leati_graph_state(c->graph, LEATI_SLAB_SCALARS, (size_t)i * sizeof(float), &number);
}

/* Every rank clips all gradients, since norms need them; the rest is done for the share. */
static void lower(context *c) {
    const leati_optimizer *optimizer = c->optimizer;
    const leati_optimizer_type *type = optimizer->type;
    leati_value scalars[LEATI_OPTIMIZER_MAX_SCALARS], *extra = scalars + type->scalar_count;
    if (leati_optimizer_batches(optimizer) > 1) average_gradients(c);
    clip(c);
    if (c->update.share.from == c->update.share.end) return;
    make_ranges(c);
    if (type->lower || optimizer->config.use_ema) read_scalars(c, scalars);
    if (type->lower && !type->decays_itself && leati_optimizer_decays(optimizer))
        decay(c, extra[LEATI_SCALAR_DECAY]);
    if (type->lower) type->lower(optimizer, c->graph, &c->update, scalars);
    for (int i = 0; !type->lower && i < c->update.range_count; ++i) update_range(c, &c->update.ranges[i]);
    if (optimizer->config.use_ema) update_average(c, extra);
}

/* Stores the sums over the rows of a gradient. */
static void store_rows(const context *c, int32_t weight, leati_value rows) {
    const float limit = (float)c->optimizer->config.clipvalue;
    if (isgreater(limit, 0.0f)) rows = clip_rows(c, weight, rows, limit, LEATI_NONE);
    if (stores_squares(c->optimizer)) {
        leati_value squares = squares_of_rows(c->graph, rows);
        leati_graph_store(c->graph, stored_squares(c, weight),
                          leati_reduce_all(c->graph, LEATI_REDUCE_SUM, squares));
    }
    if (stores_powers(c->optimizer))
        leati_graph_store(c->graph, stored_powers(c, weight), powers_of_rows(c, rows));
}

void leati_optimizer_lower_rows(const leati_optimizer *optimizer, leati_graph *graph,
                                const leati_weights *weights, const leati_value *gradients) {
    const context c = {.optimizer = optimizer,
                       .graph = graph,
                       .weights = weights,
                       .summed = weights->has_rows};
    for (int32_t i = 0; i < weights->trainable_count; ++i)
        if (is_summed(&c, i)) store_rows(&c, i, gradients[i]);
}

static leati_share share_or_all(const leati_share *share, const leati_weights *weights) {
    return share->ranks > 0 ? *share : (leati_share){.end = weights->trainable_bytes};
}

void leati_optimizer_accumulate(const leati_optimizer *optimizer, leati_graph *graph,
                                const leati_weights *weights, const leati_share *share) {
    const context c = {.optimizer = optimizer,
                       .graph = graph,
                       .weights = weights,
                       .update = {.share = share_or_all(share, weights)}};
    leati_value scalars[LEATI_OPTIMIZER_MAX_SCALARS];
    leati_value sum = whole_slab(graph, leati_optimizer_accumulator(optimizer), weights);
    leati_graph_store(graph, sum, leati_add(graph, whole_slab(graph, LEATI_SLAB_GRADIENTS, weights), sum));
    if (!optimizer->config.use_ema || c.update.share.from == c.update.share.end) return;
    read_scalars(&c, scalars);
    update_average(&c, scalars + optimizer->type->scalar_count);
}

leat_status leati_optimizer_lower(const leati_optimizer *optimizer, leati_graph *graph,
                                  const leati_weights *weights, const leati_gradients *gradients,
                                  const leati_share *share, leat_error *err) {
    size_t count = (size_t)weights->trainable_count;
    context c = {.optimizer = optimizer,
                 .graph = graph,
                 .weights = weights,
                 .gradients = gradients,
                 .update = {.weights = weights, .share = share_or_all(share, weights)}};
    c.rows = leati_calloc(count, sizeof *c.rows);
    c.update.powers = leati_calloc(count, sizeof *c.update.powers);
    c.update.ranges = leati_calloc(2 * count + 1, sizeof *c.update.ranges);
    bool has_memory = c.rows && c.update.powers && c.update.ranges;
    if (has_memory) {
        find_rows(&c);
        lower(&c);
    }
    leati_free(c.rows);
    leati_free(c.update.powers);
    leati_free(c.update.ranges);
    return has_memory ? LEAT_OK : leati_fail_memory(err, 2 * count * sizeof *c.update.ranges, "the update");
}
