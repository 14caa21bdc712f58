/* SPDX-License-Identifier: Apache-2.0 */
/* Small networks for tests of compile and programs, as Keras's JSON. */
#ifndef LEAT_TESTS_NN_SMALL_MODELS_H
#define LEAT_TESTS_NN_SMALL_MODELS_H

#define SMALL_INPUT(name, shape)                                                                             \
    "{\"class_name\": \"InputLayer\", \"name\": \"" name                                                     \
    "\", \"inbound_nodes\": [], \"config\": {\"name\": \"" name                                              \
    "\", \"dtype\": \"float32\", \"sparse\": false, \"batch_input_shape\": " shape "}}"

#define SMALL_DENSE(name, from, units, more)                                                                 \
    "{\"class_name\": \"Dense\", \"name\": \"" name "\", \"inbound_nodes\": [[[\"" from "\", 0, 0, {}]]],"   \
    " \"config\": {\"name\": \"" name "\", \"units\": " units more "}}"

#define SMALL_MODEL(layers, inputs, outputs)                                                                 \
    "{\"class_name\": \"Model\", \"config\": {\"name\": \"small\", \"layers\": [" layers                     \
    "], \"input_layers\": [" inputs "], \"output_layers\": [" outputs "]}}"

/* x (4) -> hidden (5, tanh) -> y (3, softmax) */
#define SMALL_ONE                                                                                            \
    SMALL_MODEL(SMALL_INPUT("x", "[null, 4]") ", " SMALL_DENSE(                                              \
                    "hidden", "x", "5",                                                                      \
                    ", \"activation\": \"tanh\"") ", " SMALL_DENSE("y", "hidden", "3",                       \
                                                                   ", \"activation\": \"softmax\""),         \
                "[\"x\", 0, 0]", "[\"y\", 0, 0]")

/* x (4) -> a (3, softmax), x -> b (1, sigmoid) */
#define SMALL_TWO                                                                                            \
    SMALL_MODEL(SMALL_INPUT("x", "[null, 4]") ", " SMALL_DENSE(                                              \
                    "a", "x", "3",                                                                           \
                    ", \"activation\": \"softmax\"") ", " SMALL_DENSE("b", "x", "1",                         \
                                                                      ", \"activation\": \"sigmoid\""),      \
                "[\"x\", 0, 0]", "[\"a\", 0, 0], [\"b\", 0, 0]")

/* x (T, 4) -> y (T, 2): three dimensions, with a penalty and a constraint */
#define SMALL_SEQUENCE                                                                                       \
    SMALL_MODEL(SMALL_INPUT("x", "[null, 3, 4]") ", " SMALL_DENSE(                                           \
                    "y", "x", "2", ", \"kernel_regularizer\": \"l2\", \"kernel_constraint\": \"max_norm\""), \
                "[\"x\", 0, 0]", "[\"y\", 0, 0]")

#endif
