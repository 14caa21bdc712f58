/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the layer Operation: a function of keras.ops and its arguments. */
#ifndef LEATI_NN_LAYERS_OPERATIONS_OPERATION_H
#define LEATI_NN_LAYERS_OPERATIONS_OPERATION_H

#include "nn/config/field.h"
#include "nn/layers/operations/operands.h"

typedef struct leati_operation_config {
    char function[LEATI_FIELD_TEXT_BYTES]; /* Keras's class: "TrueDivide" */
    json_t *options;                       /* the configuration of the function itself, without its name */
    json_t *args, *kwargs;                 /* the arguments of the call; {"input": i} is a tensor */
    int32_t input_count;
    const leati_operation *operation;
} leati_operation_config;

/* Returns the module of a function without "keras.src.": "ops.numpy"; NULL for an unknown function. */
const char *leati_operation_module(const char *function);

#endif
