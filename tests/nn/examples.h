/* SPDX-License-Identifier: Apache-2.0 */
/* Example configurations of every layer type, for the conformance test.  A new layer gets its rows here. */
#ifndef LEAT_TESTS_NN_EXAMPLES_H
#define LEAT_TESTS_NN_EXAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#define EXAMPLE_MAX_INPUTS 3
#define EXAMPLE_MAX_RANK   4
#define EXAMPLE_BATCH      3 /* samples, where the model says how many: of a stateful layer */

typedef struct example_input {
    int rank; /* without the batch; 0: no such input */
    int64_t dims[EXAMPLE_MAX_RANK];
} example_input;

typedef struct example {
    const char *class_name;
    const char *config; /* what stands between the braces */
    example_input inputs[EXAMPLE_MAX_INPUTS];
} example;

extern const example examples[]; /* ended by class_name NULL */

int example_input_count(const example *e);
int example_output_count(const example *e);
/* Of a layer that looks numbers up: its inputs are whole numbers below it, as they are fed; else 0. */
int example_classes(const example *e);
bool example_is_input_layer(const example *e);

/* The JSON of a model "m": every input "x<i>", behind a Dense "before<i>" that gives it weights in front, into the layer "it". */
#define EXAMPLE_MODEL_BYTES 8192
void example_model(char json[EXAMPLE_MODEL_BYTES], const example *e, bool trainable);

#endif
