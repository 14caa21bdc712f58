/* SPDX-License-Identifier: Apache-2.0 */
/* keras.regularizers: l1 * sum |w| + l2 * sum w^2, or the mean of the products of vectors, added to the loss.  A zeroed
 * leati_regularizer is none. */
#ifndef LEATI_NN_REGULARIZERS_REGULARIZER_H
#define LEATI_NN_REGULARIZERS_REGULARIZER_H

#include <stdbool.h>

#include <jansson.h>

#include "engine/graph/graph.h"
#include "leat/error.h"
#include "nn/config/field.h"
#include "nn/parts/part.h"

typedef enum leati_regularizer_kind {
    LEATI_REGULARIZER_NONE = 0,
    LEATI_REGULARIZER_L1L2,
    LEATI_REGULARIZER_ORTHOGONAL, /* of the rows of a matrix, or of its columns */
    LEATI_REGULARIZER_CUSTOM
} leati_regularizer_kind;

typedef struct leati_regularizer {
    leati_regularizer_kind kind;
    bool per_sample; /* a penalty of outputs is divided by the batch size, as in current Keras */
    float l1, l2;
    bool columns;              /* LEATI_REGULARIZER_ORTHOGONAL, whose factor is l1 */
    leati_part_object *object; /* LEATI_REGULARIZER_CUSTOM; owned by the field of a configuration */
} leati_regularizer;

/* Read a name ("l1", "l2", "l1_l2": 0.01 each), {"class_name": ..., "config": ...} or null; write {"class_name":
 * ..., "config": ...} or null (new reference).  `parts` has the custom regularizers; the caller frees *out by
 * leati_regularizer_fini. */
leat_status leati_regularizer_read_with(leati_regularizer *out, const json_t *value, const leati_part *parts,
                                        leat_error *err);
static inline leat_status leati_regularizer_read(leati_regularizer *out, const json_t *value,
                                                 leat_error *err) {
    return leati_regularizer_read_with(out, value, NULL, err);
}
leat_status leati_regularizer_write(const leati_regularizer *regularizer, json_t **out, leat_error *err);

void leati_regularizer_fini(leati_regularizer *regularizer);

/* All names: index from 0; NULL at the end. */
const char *leati_regularizer_name_at(int index);

/* Returns the penalty of x as a scalar; LEATI_NONE if there is none.  The penalty of outputs is the sum over the
 * batch. */
leati_value leati_regularizer_lower(const leati_regularizer *regularizer, leati_graph *graph, leati_value x);

/* Makes the callee of a custom regularizer. */
void leati_custom_regularizer_prepare(leati_part_object *object);

/* The kind of a field whose member is a leati_regularizer; null is a regularizer of kind none. */
#define LEATI_FIELD_REGULARIZER (&leati_field_regularizer)
extern const leati_field_kind leati_field_regularizer;

#endif
