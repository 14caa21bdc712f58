/* SPDX-License-Identifier: Apache-2.0 */
/* keras.activations: each is a name and the ops that compute it.  A zeroed leati_activation is linear. */
#ifndef LEATI_NN_ACTIVATIONS_ACTIVATION_H
#define LEATI_NN_ACTIVATIONS_ACTIVATION_H

#include <stdbool.h>

#include <jansson.h>

#include "engine/graph/graph.h"
#include "leat/error.h"
#include "nn/config/field.h"
#include "nn/parts/part.h"

typedef enum leati_activation_kind {
    LEATI_ACTIVATION_LINEAR = 0,
    LEATI_ACTIVATION_SOFTMAX,
    LEATI_ACTIVATION_ELU,
    LEATI_ACTIVATION_SELU,
    LEATI_ACTIVATION_SOFTPLUS,
    LEATI_ACTIVATION_SOFTSIGN,
    LEATI_ACTIVATION_RELU,
    LEATI_ACTIVATION_TANH,
    LEATI_ACTIVATION_SIGMOID,
    LEATI_ACTIVATION_HARD_SIGMOID,
    LEATI_ACTIVATION_EXPONENTIAL,
    /* of current Keras */
    LEATI_ACTIVATION_HARD_SIGMOID3, /* current Keras's hard_sigmoid */
    LEATI_ACTIVATION_RELU6,
    LEATI_ACTIVATION_LEAKY_RELU,
    LEATI_ACTIVATION_CELU,
    LEATI_ACTIVATION_GELU,
    LEATI_ACTIVATION_SILU,
    LEATI_ACTIVATION_SWISH,
    LEATI_ACTIVATION_HARD_SILU,
    LEATI_ACTIVATION_HARD_SWISH,
    LEATI_ACTIVATION_MISH,
    LEATI_ACTIVATION_HARD_TANH,
    LEATI_ACTIVATION_SPARSE_SIGMOID,
    LEATI_ACTIVATION_LOG_SOFTMAX,
    LEATI_ACTIVATION_LOG_SIGMOID,
    LEATI_ACTIVATION_TANH_SHRINK,
    LEATI_ACTIVATION_SOFT_SHRINK,
    LEATI_ACTIVATION_HARD_SHRINK,
    LEATI_ACTIVATION_SQUAREPLUS,
    LEATI_ACTIVATION_SPARSE_PLUS,
    LEATI_ACTIVATION_SPARSEMAX,
    LEATI_ACTIVATION_GLU,
    LEATI_ACTIVATION_GELU_APPROXIMATE, /* of KerasHub */
    LEATI_ACTIVATION_COUNT,
    LEATI_ACTIVATION_CUSTOM = LEATI_ACTIVATION_COUNT
} leati_activation_kind;

typedef struct leati_activation {
    leati_activation_kind kind;
    leati_part_object *object; /* LEATI_ACTIVATION_CUSTOM; owned by the field of a configuration */
} leati_activation;

/* Returns the approximation of GELU, x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. */
leati_value leati_gelu_approximate(leati_graph *g, leati_value x);

/* Returns Keras's name: "hard_sigmoid". */
const char *leati_activation_name(leati_activation_kind kind);
/* All names: index from 0; NULL at the end. */
const char *leati_activation_name_at(int index);

/* Finds an activation by its name.  Errors: LEAT_ENOTFOUND with the nearest known name. */
leat_status leati_activation_from_name(leati_activation *out, const char *name, leat_error *err);

/* Read a name, null (linear) or {"class_name": name, ...}; write the name, for a custom activation what
 * leati_part_object_write writes (new reference).  `parts` has the custom activations; the caller frees *out by
 * leati_activation_fini. */
leat_status leati_activation_read_with(leati_activation *out, const json_t *value, const leati_part *parts,
                                       leat_error *err);
/* Like leati_activation_read_with, without custom activations. */
static inline leat_status leati_activation_read(leati_activation *out, const json_t *value, leat_error *err) {
    return leati_activation_read_with(out, value, NULL, err);
}
void leati_activation_fini(leati_activation *activation);
leat_status leati_activation_write(const leati_activation *activation, json_t **out, leat_error *err);

/* True if an output element depends on the whole last axis (softmax, log_softmax, sparsemax, glu); true if the
 * last axis is halved (glu). */
bool leati_activation_reads_last_axis(const leati_activation *activation);
bool leati_activation_halves(const leati_activation *activation);

/* Gets the element-wise function of the activation; returns false if the activation is a chain of ops or custom. */
bool leati_activation_eltwise(const leati_activation *activation, leati_eltwise *out);

/* Adds the ops of the activation; linear adds none.  Softmax is over the last axis. */
leati_value leati_activation_lower(const leati_activation *activation, leati_graph *graph, leati_value x);

/* Makes the callee of a custom activation. */
void leati_custom_activation_prepare(leati_part_object *object);

/* The kind of a field whose member is a leati_activation. */
#define LEATI_FIELD_ACTIVATION (&leati_field_activation)
extern const leati_field_kind leati_field_activation;

#endif
