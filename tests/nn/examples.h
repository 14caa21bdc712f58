/* SPDX-License-Identifier: Apache-2.0 */
/* Example configurations of every layer type, for the conformance test.  A new layer gets its rows here. */
#ifndef LEAT_TESTS_NN_EXAMPLES_H
#define LEAT_TESTS_NN_EXAMPLES_H

#include <stdint.h>

#define EXAMPLE_MAX_INPUTS 3
#define EXAMPLE_MAX_RANK   4

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

#endif
