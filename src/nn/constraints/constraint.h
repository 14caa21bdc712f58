/* SPDX-License-Identifier: Apache-2.0 */
/* keras.constraints: projections of a weight after each update.  A zeroed leati_constraint is no constraint. */
#ifndef LEATI_NN_CONSTRAINTS_CONSTRAINT_H
#define LEATI_NN_CONSTRAINTS_CONSTRAINT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "engine/graph/graph.h"
#include "leat/error.h"
#include "nn/config/field.h"
#include "nn/parts/part.h"

typedef enum leati_constraint_kind {
    LEATI_CONSTRAINT_NONE = 0,
    LEATI_CONSTRAINT_MAX_NORM,
    LEATI_CONSTRAINT_NON_NEG,
    LEATI_CONSTRAINT_UNIT_NORM,
    LEATI_CONSTRAINT_MIN_MAX_NORM,
    LEATI_CONSTRAINT_CUSTOM
} leati_constraint_kind;

typedef struct leati_constraint {
    leati_constraint_kind kind;
    double min_value, max_value, rate;
    int32_t axis_count; /* the axes that the norms are computed over */
    int32_t axes[LEAT_MAX_RANK];
    bool axis_listed;          /* the configuration gave a list, not a number */
    leati_part_object *object; /* LEATI_CONSTRAINT_CUSTOM; owned by the field of a configuration */
} leati_constraint;

/* Read a name ("max_norm", "MaxNorm", ...), {"class_name": ..., "config": ...} or null; write {"class_name": ...,
 * "config": ...} or null (new reference).  `parts` has the custom constraints; the caller frees *out by
 * leati_constraint_fini. */
leat_status leati_constraint_read_with(leati_constraint *out, const json_t *value, const leati_part *parts,
                                       leat_error *err);
static inline leat_status leati_constraint_read(leati_constraint *out, const json_t *value, leat_error *err) {
    return leati_constraint_read_with(out, value, NULL, err);
}
leat_status leati_constraint_write(const leati_constraint *constraint, json_t **out, leat_error *err);

void leati_constraint_fini(leati_constraint *constraint);

/* All names: index from 0; NULL at the end. */
const char *leati_constraint_name_at(int index);

/* Returns the constrained weight; w itself if there is no constraint. */
leati_value leati_constraint_lower(const leati_constraint *constraint, leati_graph *graph, leati_value w);

/* Makes the callee of a custom constraint. */
void leati_custom_constraint_prepare(leati_part_object *object);

/* The kind of a field whose member is a leati_constraint; null is a constraint of kind none. */
#define LEATI_FIELD_CONSTRAINT (&leati_field_constraint)
extern const leati_field_kind leati_field_constraint;

#endif
