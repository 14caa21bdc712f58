/* SPDX-License-Identifier: Apache-2.0 */
/* Registers custom losses, metrics, activations, initializers, regularizers, constraints and optimizers.  Room: nn. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "nn/activations/activation.h"
#include "nn/constraints/constraint.h"
#include "nn/custom/add_part.h"
#include "nn/custom/registry.h"
#include "nn/initializers/types.h"
#include "nn/losses/types.h"
#include "nn/metrics/types.h"
#include "nn/optimizers/types.h"
#include "nn/regularizers/regularizer.h"

static const leati_growing loss_type = LEATI_GROWING(leat_loss_definition, gradient, NULL);
static const leati_growing metric_type = LEATI_GROWING(leat_metric_definition, result, NULL);
static const leati_growing activation_type = LEATI_GROWING(leat_activation_definition, backward, NULL);
static const leati_growing initializer_type = LEATI_GROWING(leat_initializer_definition, fill, NULL);
static const leati_growing regularizer_type = LEATI_GROWING(leat_regularizer_definition, gradient, NULL);
static const leat_optimizer_definition optimizer_defaults = {.learning_rate = 0.001};
static const leati_growing optimizer_type =
    LEATI_GROWING(leat_optimizer_definition, update, &optimizer_defaults);
static const leati_growing constraint_type = LEATI_GROWING(leat_constraint_definition, apply, NULL);

void leat_loss_definition_init(leat_loss_definition *definition, size_t size) {
    leati_growing_init(&loss_type, definition, size);
}

void leat_metric_definition_init(leat_metric_definition *definition, size_t size) {
    leati_growing_init(&metric_type, definition, size);
}

void leat_activation_definition_init(leat_activation_definition *definition, size_t size) {
    leati_growing_init(&activation_type, definition, size);
}

void leat_initializer_definition_init(leat_initializer_definition *definition, size_t size) {
    leati_growing_init(&initializer_type, definition, size);
}

void leat_regularizer_definition_init(leat_regularizer_definition *definition, size_t size) {
    leati_growing_init(&regularizer_type, definition, size);
}

void leat_constraint_definition_init(leat_constraint_definition *definition, size_t size) {
    leati_growing_init(&constraint_type, definition, size);
}

void leat_optimizer_definition_init(leat_optimizer_definition *definition, size_t size) {
    leati_growing_init(&optimizer_type, definition, size);
}

/* ---- Making ---- */

/* The members that begin each definition. */
#define SPEC(kind_, read, bytes)                                                                             \
    {                                                                                                        \
        .kind = (kind_), .name = (read).name, .keys = (read).keys, .config_bytes = (read).config_bytes,      \
        .user = (read).user, .check = (read).check, .definition = &(read), .definition_bytes = sizeof(read), \
        .type_bytes = (bytes)                                                                                \
    }

static leat_status missing(const char *kind, const char *name, const char *function, leat_error *err) {
    return leati_fail(err, LEAT_EINVAL, "%s '%s': %s is missing", kind, name ? name : "", function);
}

leat_status leati_part_of_loss(leati_part **out, const leat_loss_definition *definition,
                               leati_library *library, leat_error *err) {
    leat_loss_definition read;
    *out = NULL;
    LEATI_TRY(leati_growing_read(&loss_type, definition, &read, err));
    const leati_part_spec spec = SPEC(LEATI_PART_LOSS, read, leati_custom_loss_bytes);
    if (!read.values) return missing("loss", read.name, "values", err);
    if (read.value_rank < 0 || read.value_rank > LEAT_MAX_RANK)
        return leati_fail(err, LEAT_EINVAL, "loss '%s': value_rank: expected 0 to %d, received %d",
                          read.name ? read.name : "", LEAT_MAX_RANK, (int)read.value_rank);
    LEATI_TRY(leati_part_create(out, &spec, library, err));
    leati_custom_loss_fill(*out);
    return LEAT_OK;
}

leat_status leati_part_of_activation(leati_part **out, const leat_activation_definition *definition,
                                     leati_library *library, leat_error *err) {
    leat_activation_definition read;
    *out = NULL;
    LEATI_TRY(leati_growing_read(&activation_type, definition, &read, err));
    const leati_part_spec spec = SPEC(LEATI_PART_ACTIVATION, read, 0);
    if (!read.forward) return missing("activation", read.name, "forward", err);
    return leati_part_create(out, &spec, library, err);
}

leat_status leati_part_of_regularizer(leati_part **out, const leat_regularizer_definition *definition,
                                      leati_library *library, leat_error *err) {
    leat_regularizer_definition read;
    *out = NULL;
    LEATI_TRY(leati_growing_read(&regularizer_type, definition, &read, err));
    const leati_part_spec spec = SPEC(LEATI_PART_REGULARIZER, read, 0);
    if (!read.penalty) return missing("regularizer", read.name, "penalty", err);
    return leati_part_create(out, &spec, library, err);
}

static leat_status make_metric(leati_part **out, const leat_metric_definition *definition,
                               leati_library *library, leat_error *err) {
    leat_metric_definition read;
    *out = NULL;
    LEATI_TRY(leati_growing_read(&metric_type, definition, &read, err));
    const leati_part_spec spec = SPEC(LEATI_PART_METRIC, read, leati_custom_metric_bytes);
    if (!read.update || !read.result)
        return missing("metric", read.name, read.update ? "result" : "update", err);
    if (!read.count_states && read.state_count < 1)
        return leati_fail(err, LEAT_EINVAL, "metric '%s': state_count: expected at least 1, received %lld",
                          read.name ? read.name : "", (long long)read.state_count);
    LEATI_TRY(leati_part_create(out, &spec, library, err));
    leati_custom_metric_fill(*out);
    return LEAT_OK;
}

static leat_status make_initializer(leati_part **out, const leat_initializer_definition *definition,
                                    leati_library *library, leat_error *err) {
    leat_initializer_definition read;
    *out = NULL;
    LEATI_TRY(leati_growing_read(&initializer_type, definition, &read, err));
    const leati_part_spec spec = SPEC(LEATI_PART_INITIALIZER, read, 0);
    if (!read.fill) return missing("initializer", read.name, "fill", err);
    return leati_part_create(out, &spec, library, err);
}

static leat_status make_constraint(leati_part **out, const leat_constraint_definition *definition,
                                   leati_library *library, leat_error *err) {
    leat_constraint_definition read;
    *out = NULL;
    LEATI_TRY(leati_growing_read(&constraint_type, definition, &read, err));
    const leati_part_spec spec = SPEC(LEATI_PART_CONSTRAINT, read, 0);
    if (!read.apply) return missing("constraint", read.name, "apply", err);
    return leati_part_create(out, &spec, library, err);
}

static leat_status make_optimizer(leati_part **out, const leat_optimizer_definition *definition,
                                  leati_library *library, leat_error *err) {
    leat_optimizer_definition read;
    *out = NULL;
    LEATI_TRY(leati_growing_read(&optimizer_type, definition, &read, err));
    const leati_part_spec spec = SPEC(LEATI_PART_OPTIMIZER, read, leati_custom_optimizer_bytes);
    if (!read.update) return missing("optimizer", read.name, "update", err);
    if (!isfinite(read.learning_rate))
        return leati_fail(err, LEAT_EINVAL, "optimizer '%s': learning_rate: expected a finite number",
                          read.name ? read.name : "");
    LEATI_TRY(leati_part_create(out, &spec, library, err));
    leat_status status = leati_custom_optimizer_fill(*out, err);
    if (status == LEAT_OK) return LEAT_OK;
    const leati_part *part = *out;
    *out = NULL;
    leati_part_release(&part);
    return status;
}

/* ---- Registering ---- */

static bool is_listed(const char *(*name_at)(int index), const char *name) {
    for (int i = 0; name_at(i); ++i)
        if (strcmp(name_at(i), name) == 0) return true;
    return false;
}

/* Registers a part unless leat has an object of its name, which cannot have a package. */
static leat_status add(leat_registry *registry, leati_part *part, const char *(*name_at)(int index),
                       leat_error *err) {
    const leati_part *refused = part;
    if (!is_listed(name_at, part->name)) return leati_registry_add_part(registry, part, err);
    leat_status status =
        leati_fail(err, LEAT_EINVAL,
                   "%s '%s': leat has this name already; expected another name, or one with a package "
                   "('mine>%s')",
                   leati_part_noun(part->kind), part->name, part->name);
    leati_part_release(&refused);
    return status;
}

leat_status leat_registry_add_loss(leat_registry *registry, const leat_loss_definition *definition,
                                   leat_error *err) {
    LEATI_GIVEN(registry, err);
    LEATI_GIVEN(definition, err);
    leati_part *part = NULL;
    LEATI_TRY(leati_part_of_loss(&part, definition, leati_registry_opening(registry), err));
    return add(registry, part, leati_metric_name_at, err); /* the losses are among the metrics */
}

leat_status leat_registry_add_metric(leat_registry *registry, const leat_metric_definition *definition,
                                     leat_error *err) {
    LEATI_GIVEN(registry, err);
    LEATI_GIVEN(definition, err);
    leati_part *part = NULL;
    LEATI_TRY(make_metric(&part, definition, leati_registry_opening(registry), err));
    return add(registry, part, leati_metric_name_at, err);
}

leat_status leat_registry_add_activation(leat_registry *registry,
                                         const leat_activation_definition *definition, leat_error *err) {
    LEATI_GIVEN(registry, err);
    LEATI_GIVEN(definition, err);
    leati_part *part = NULL;
    LEATI_TRY(leati_part_of_activation(&part, definition, leati_registry_opening(registry), err));
    return add(registry, part, leati_activation_name_at, err);
}

leat_status leat_registry_add_initializer(leat_registry *registry,
                                          const leat_initializer_definition *definition, leat_error *err) {
    LEATI_GIVEN(registry, err);
    LEATI_GIVEN(definition, err);
    leati_part *part = NULL;
    LEATI_TRY(make_initializer(&part, definition, leati_registry_opening(registry), err));
    return add(registry, part, leati_initializer_name_at, err);
}

leat_status leat_registry_add_regularizer(leat_registry *registry,
                                          const leat_regularizer_definition *definition, leat_error *err) {
    LEATI_GIVEN(registry, err);
    LEATI_GIVEN(definition, err);
    leati_part *part = NULL;
    LEATI_TRY(leati_part_of_regularizer(&part, definition, leati_registry_opening(registry), err));
    return add(registry, part, leati_regularizer_name_at, err);
}

leat_status leat_registry_add_constraint(leat_registry *registry,
                                         const leat_constraint_definition *definition, leat_error *err) {
    LEATI_GIVEN(registry, err);
    LEATI_GIVEN(definition, err);
    leati_part *part = NULL;
    LEATI_TRY(make_constraint(&part, definition, leati_registry_opening(registry), err));
    return add(registry, part, leati_constraint_name_at, err);
}

leat_status leat_registry_add_optimizer(leat_registry *registry, const leat_optimizer_definition *definition,
                                        leat_error *err) {
    LEATI_GIVEN(registry, err);
    LEATI_GIVEN(definition, err);
    leati_part *part = NULL;
    LEATI_TRY(make_optimizer(&part, definition, leati_registry_opening(registry), err));
    return add(registry, part, leati_optimizer_name_at, err);
}
