/* SPDX-License-Identifier: Apache-2.0 */
/* Custom optimizers: the user's function updates weights and slots in pieces, which the threads of the pool share.  The
 * update is a call that has the new weights and slots as its results.  Room: nn. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/graph/build.h"
#include "nn/optimizers/types.h"

enum { PIECE = 1 << 16, MAX_KEYS = 64, MAX_NAMES = 2 * MAX_KEYS };

/* The scalars: the learning rate, and two numbers below 2^24 that make up the iterations. */
enum { RATE, ITERATIONS_HIGH, ITERATIONS_LOW, SCALAR_COUNT };
#define LOW_BITS 24

/* The inputs of a call: the scalars, the gradient, the weight, the slots. */
enum { GRADIENT = SCALAR_COUNT, WEIGHT, FIRST_SLOT };

static const leati_field shared_fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                            LEATI_OPTIMIZER_COMMON};

typedef struct custom_optimizer {
    leati_optimizer_type type; /* first, because leati_part.type is read as a leati_optimizer_type */
    leati_field fields[sizeof shared_fields / sizeof shared_fields[0]];
    char learning_rate[32]; /* the default as JSON */
} custom_optimizer;

const size_t leati_custom_optimizer_bytes = sizeof(custom_optimizer);

/* ---- Computing ---- */

static leat_status infer(const leati_callee *callee, int input_count, const leati_desc *inputs,
                         leati_desc *outputs, leat_error *err) {
    (void)input_count;
    (void)err;
    for (int i = 0; i < callee->output_count; ++i) outputs[i] = inputs[WEIGHT];
    return LEAT_OK;
}

/* An update that threads share. */
typedef struct update {
    const leati_part_object *object;
    const leati_callee_run *run;
    int64_t piece; /* number of elements of a piece */
    leat_status *statuses;
    leat_error *errors;
} update;

enum { MAX_PIECES = 64 };

static void update_piece(void *context, int64_t index, int member) {
    const update *u = context;
    const leat_optimizer_definition *d = u->object->part->definition;
    const leati_desc *desc = &u->run->inputs[WEIGHT];
    const int64_t total = leati_desc_count(desc), from = index * u->piece;
    const int64_t count = total - from < u->piece ? total - from : u->piece;
    const float *rate = u->run->args[RATE], *high = u->run->args[ITERATIONS_HIGH],
                *low = u->run->args[ITERATIONS_LOW];
    float *results[LEATI_OPTIMIZER_MAX_SLOTS + 1];
    (void)member;
    for (int i = 0; i < u->run->output_count; ++i) {
        results[i] = (float *)u->run->results[i] + from;
        memcpy(results[i], (const float *)u->run->args[WEIGHT + i] + from, (size_t)count * sizeof(float));
    }
    const leat_optimizer_call call = {.size = sizeof call,
                                      .config = leati_part_settings(u->object),
                                      .user = d->user,
                                      .iterations = ((int64_t)*high << LOW_BITS) + (int64_t)*low,
                                      .learning_rate = (double)*rate,
                                      .rank = d->whole_weights ? desc->rank : 1,
                                      .shape = d->whole_weights ? desc->shape : &count,
                                      .count = count,
                                      .gradient = (const float *)u->run->args[GRADIENT] + from,
                                      .weight = results[0],
                                      .slots = results + 1};
    u->statuses[index] = d->update(&call, &u->errors[index]);
}

static leat_status forward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const leati_part_object *object = (const void *)callee;
    const leat_optimizer_definition *d = object->part->definition;
    const int64_t total = leati_desc_count(&run->inputs[WEIGHT]);
    leat_status statuses[MAX_PIECES] = {LEAT_OK};
    leat_error errors[MAX_PIECES];
    update u = {.object = object, .run = run, .piece = total, .statuses = statuses, .errors = errors};
    if (!d->whole_weights) u.piece = total / MAX_PIECES + 1 > PIECE ? total / MAX_PIECES + 1 : PIECE;
    const int64_t pieces = total > 0 ? (total + u.piece - 1) / u.piece : 0;
    for (int64_t i = 0; i < pieces; ++i) errors[i] = (leat_error){0};
    leati_thread_pool_share(run->pool, LEATI_THREAD_POOL_MAX, pieces, update_piece, &u);
    for (int64_t i = 0; i < pieces; ++i) {
        if (statuses[i] == LEAT_OK) continue;
        if (err) *err = errors[i];
        return leati_prefix(statuses[i], err, "optimizer '%s'", d->name);
    }
    return LEAT_OK;
}

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    out[RATE] = leati_optimizer_rate(optimizer, iterations);
    out[ITERATIONS_HIGH] = (float)(iterations >> LOW_BITS);
    out[ITERATIONS_LOW] = (float)(iterations & ((INT64_C(1) << LOW_BITS) - 1));
}

/* Updates a range of the slabs that has the shape of `desc`. */
static void lower_range(const leati_optimizer *optimizer, leati_graph *g, size_t offset_bytes,
                        const leati_desc *desc, const leati_value *s) {
    const int results = 1 + optimizer->type->slot_count;
    leati_value inputs[FIRST_SLOT + LEATI_OPTIMIZER_MAX_SLOTS], out[LEATI_OPTIMIZER_MAX_SLOTS + 1];
    for (int i = 0; i < SCALAR_COUNT; ++i) inputs[i] = s[i];
    inputs[GRADIENT] = leati_graph_state(g, LEATI_SLAB_GRADIENTS, offset_bytes, desc);
    inputs[WEIGHT] = leati_graph_state(g, LEATI_SLAB_WEIGHTS, offset_bytes, desc);
    for (int i = 0; i + 1 < results; ++i)
        inputs[FIRST_SLOT + i] = leati_graph_state(g, (leati_slab)(LEATI_SLAB_SLOT0 + i), offset_bytes, desc);
    leati_graph_call(g, &optimizer->object->callee, true, 0, WEIGHT + results, inputs, out);
    for (int i = 0; i < results; ++i) leati_graph_store(g, inputs[WEIGHT + i], out[i]);
}

static void lower(const leati_optimizer *optimizer, leati_graph *g, const leati_update *update_,
                  const leati_value *s) {
    const leat_optimizer_definition *d = optimizer->object->part->definition;
    for (int32_t i = 0; d->whole_weights && i < update_->weights->trainable_count; ++i) {
        const leati_weight *weight = update_->weights->entries[i];
        if (!leati_share_has(&update_->share, weight)) continue;
        lower_range(optimizer, g, weight->offset_bytes, &weight->desc, s);
    }
    for (int i = 0; !d->whole_weights && i < update_->range_count; ++i) {
        const leati_desc desc = leati_desc_make(LEAT_F32, 1, &update_->ranges[i].count);
        lower_range(optimizer, g, update_->ranges[i].offset_bytes, &desc, s);
    }
}

/* ---- The type ---- */

static leat_status count_slots(leati_optimizer_type *type, const leat_optimizer_definition *d,
                               leat_error *err) {
    for (; d->slots && d->slots[type->slot_count]; ++type->slot_count) {
        const char *name = d->slots[type->slot_count];
        if (type->slot_count == LEATI_OPTIMIZER_MAX_SLOTS)
            return leati_fail(err, LEAT_EINVAL, "optimizer '%s': expected at most %d slots", d->name,
                              LEATI_OPTIMIZER_MAX_SLOTS);
        if (!name[0] || strlen(name) > 32 || strchr(name, '/'))
            return leati_fail(err, LEAT_EINVAL,
                              "optimizer '%s': slot %d: expected a name of 1 to 32 bytes without '/'",
                              d->name, (int)type->slot_count);
        type->slots[type->slot_count] = name;
    }
    return LEAT_OK;
}

leat_status leati_custom_optimizer_fill(leati_part *part, leat_error *err) {
    const leat_optimizer_definition *d = part->definition;
    custom_optimizer *custom = part->type;
    memcpy(custom->fields, shared_fields, sizeof shared_fields);
    snprintf(custom->learning_rate, sizeof custom->learning_rate, "%.9g", d->learning_rate);
    leati_decimal_point(custom->learning_rate);
    custom->fields[0].preset = custom->learning_rate;
    custom->type = (leati_optimizer_type){.class_name = leati_bare_name(part->name),
                                          .fields = custom->fields,
                                          .lower = lower,
                                          .by_weight = d->whole_weights,
                                          .is_new = true,
                                          .scalar_count = SCALAR_COUNT,
                                          .scalars = scalars};
    return count_slots(&custom->type, d, err);
}

/* Lists the names of the keys that a reader leaves to the other one: the ignored keys, then those of `others`. */
static void list_names(const char **out, const char *const *ignored, const leati_field *others) {
    int count = 0;
    for (int i = 0; ignored[i]; ++i) out[count++] = ignored[i];
    for (const leati_field *field = others; field->key && count + 1 < MAX_NAMES; ++field)
        out[count++] = field->key;
    out[count] = NULL;
}

leat_status leati_custom_optimizer_read(leati_optimizer *optimizer, const leati_part *part,
                                        const leati_object *object, const json_t *config,
                                        const char *const *ignored, leat_error *err) {
    const char *names[MAX_NAMES];
    leati_object inner = *object;
    inner.config = config;
    list_names(names, ignored, optimizer->type->fields);
    LEATI_TRY(leati_part_object_create(&optimizer->object, part, &inner, names, err));
    optimizer->object->is_function = false;
    optimizer->object->callee =
        (leati_callee){.output_count = 1 + optimizer->type->slot_count, .infer = infer, .forward = forward};
    list_names(names, ignored, part->fields);
    return leati_fields_read(optimizer->type->fields, names, config, &optimizer->config, err);
}

leat_status leati_custom_optimizer_write(const leati_optimizer *optimizer, json_t *config, json_t **out,
                                         leat_error *err) {
    json_t *own = NULL;
    leat_status status = leati_part_object_write(optimizer->object, NULL, NULL, out, err);
    if (status == LEAT_OK) {
        own = json_object_get(*out, "config");
        if (json_object_update_missing(own, config) != 0) {
            json_decref(*out);
            *out = NULL;
            status = leati_fail(err, LEAT_ENOMEM, "no memory for an optimizer");
        }
    }
    json_decref(config);
    return status;
}
