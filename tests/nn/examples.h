/* SPDX-License-Identifier: Apache-2.0 */
/* Example configurations of every layer type, for the conformance test.  A new layer needs examples here. */
#ifndef LEAT_TESTS_NN_EXAMPLES_H
#define LEAT_TESTS_NN_EXAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#define EXAMPLE_MAX_INPUTS 3
#define EXAMPLE_MAX_RANK   5
#define EXAMPLE_BATCH      3 /* samples, for a stateful layer, whose model fixes the batch size */

typedef struct example_input {
    int rank; /* without the batch; 0: there is no such input */
    int64_t dims[EXAMPLE_MAX_RANK];
} example_input;

typedef struct example {
    const char *class_name;
    const char *config; /* the text between the braces */
    example_input inputs[EXAMPLE_MAX_INPUTS];
} example;

extern const example examples[]; /* ends with class_name NULL */

int example_input_count(const example *e);
int example_output_count(const example *e);
/* Returns the number of classes for an input that has indices, or a mask: integers below this number; 0 for an input
 * of real numbers. */
int example_classes(const example *e, int input);
bool example_is_input_layer(const example *e);
/* Returns true for a layer through which no gradient flows. */
bool example_stops_gradients(const example *e);

/* Writes the JSON of a model "m": each input "x<i>" goes through a Dense "before<i>", so that weights precede the
 * layer, into the layer "it". */
#define EXAMPLE_MODEL_BYTES 8192
void example_model(char json[EXAMPLE_MODEL_BYTES], const example *e, bool trainable);

#endif
