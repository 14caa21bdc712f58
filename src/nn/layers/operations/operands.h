/* SPDX-License-Identifier: Apache-2.0 */
/* The operands of a function of keras.ops that is called as a layer: the tensors of the call, and the constants that
 * are in its arguments or in the function's own configuration. */
#ifndef LEATI_NN_LAYERS_OPERATIONS_OPERANDS_H
#define LEATI_NN_LAYERS_OPERATIONS_OPERANDS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "engine/graph/build.h"

typedef struct leati_operation leati_operation;

/* A call.  In `args` and `kwargs`, {"input": i} stands for inputs[i]. */
typedef struct leati_operands {
    leati_graph *g;
    const leati_operation *operation;
    const json_t *args, *kwargs, *options; /* borrowed; may be NULL */
    int input_count, output_count;         /* output_count is 1 unless `lower` sets it */
    const leati_value *inputs;
    leati_value *outputs; /* room for LEATI_LAYER_MAX_OUTPUTS */
} leati_operands;

/* Describes a function of keras.ops. */
struct leati_operation {
    const char *name;      /* Keras's class: "TrueDivide" */
    const char *module;    /* Keras's module without "keras.src.": "ops.numpy" */
    const char *signature; /* the names of the arguments of a call in their order, then of the options */
    void (*lower)(leati_operands *o);
    int detail; /* what `lower` computes, if it serves several functions */
};

/* Returns the constant or the {"input": i} of an argument; NULL if the argument is absent or null. */
const json_t *leati_operand_json(const leati_operands *o, const char *name);
/* Returns true if the argument is there and null: None was given. */
bool leati_operand_is_none(const leati_operands *o, const char *name);
/* Returns an argument as an f32 value, whether it is a tensor or a constant.  The graph keeps failures. */
leati_value leati_operand(const leati_operands *o, const char *name);
/* Like leati_operand; returns the constant `preset` if the argument is absent. */
leati_value leati_operand_or(const leati_operands *o, const char *name, float preset);
/* Like leati_operand; fails for a tensor. */
leati_value leati_operand_without_tensor(const leati_operands *o, const char *name);
/* Returns false for a tensor, and for lists with one. */
bool leati_operand_is_constant(const leati_operands *o, const char *name);
/* Returns the nested lists of an argument that is an array, and other arguments like leati_operand_json. */
const json_t *leati_operand_plain(const leati_operands *o, const char *name);
/* Returns the number of an argument that is a constant number, true or false; returns false for other arguments. */
bool leati_operand_number(const leati_operands *o, const char *name, double *out);
/* These return `preset` (of a flag: false; of a choice: 0) if the argument is absent, and also for another kind of
 * value, for which they fail the graph.  Integers are below 2^31, and not below -2^31.  A choice is the position of
 * the text in a list that ends with NULL. */
double leati_operand_number_or(const leati_operands *o, const char *name, double preset);
int64_t leati_operand_int(const leati_operands *o, const char *name, int64_t preset);
bool leati_operand_flag(const leati_operands *o, const char *name);
const char *leati_operand_text(const leati_operands *o, const char *name, const char *preset);
int leati_operand_choice(const leati_operands *o, const char *name, const char *const *choices);
/* Reads a list of integers, or one integer, into out; null elements are -1.  Returns the count; -1 if the argument is
 * absent; fails the graph and returns -2 for other values. */
int leati_operand_ints(const leati_operands *o, const char *name, int64_t out[LEAT_MAX_RANK]);
#define LEATI_AXIS_NEEDED                                                                                    \
    (INT64_MIN / 2) /* the preset of an axis without which leat does not have the function */
/* Returns an axis of a tensor of that rank, from 0; -1 after a failure. */
int leati_operand_axis(const leati_operands *o, const char *name, int rank, int64_t preset);
/* Returns axes as bits; all axes if the argument is absent; 0 after a failure. */
uint32_t leati_operand_axes(const leati_operands *o, const char *name, int rank);
/* Reads a list of tensors and constants.  Returns the count; 0 after a failure. */
int leati_operand_list(const leati_operands *o, const char *name, leati_value *out, int most);

/* Makes a constant of a number, nested lists of numbers, or an object of the class "__numpy__" or "__tensor__". */
leati_value leati_operand_constant(leati_graph *g, const json_t *value);

/* Returns the failure "keras.ops.<name>: <reason>". */
leati_value leati_operand_fail(const leati_operands *o, leat_status code, const char *format, ...)
    LEAT_PRINTF(3, 4);

/* Returns the position of an argument in a signature; -1 if the function does not have it. */
int leati_argument_position(const char *signature, const char *name);

/* Returns the axis from 0; -1 if a tensor of that rank does not have it. */
int leati_axis_from(int64_t axis, int rank);

#endif
