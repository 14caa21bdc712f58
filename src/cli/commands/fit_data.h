/* SPDX-License-Identifier: Apache-2.0 */
/* The data of `leat fit`: training and validation data, and the weights of classes. */
#ifndef LEAT_CLI_COMMANDS_FIT_DATA_H
#define LEAT_CLI_COMMANDS_FIT_DATA_H

#include "cli/run/session.h"

/* True if the fit validates: --validation or --validation-split was given. */
bool cli_has_validation(const cli_arguments *arguments);

/* The weights of classes, for leat_fit_options.class_weight, or by output for output_class_weights.  Zeroed at first;
 * cli_class_weights_free. */
typedef struct cli_class_weights {
    char *names;                       /* memory of the outputs' names */
    leat_output_class_weight *outputs; /* NULL: none; their weights are in `items` */
    int output_count;
    leat_class_weight *items; /* NULL: none */
    int count;
} cli_class_weights;

/* Checks the options of the data, before the model is loaded.  Like the functions below, prints a message on failure
 * and returns an exit code. */
int cli_check_fit_data(const cli_arguments *arguments);

/* Opens session->data and, with --validation or --validation-split, session->validation. */
int cli_open_fit_data(cli_session *session);

/* Reads --class-weight.  `balanced` reads the targets of session->data once. */
int cli_read_class_weights(cli_session *session, cli_class_weights *out);
void cli_class_weights_free(cli_class_weights *weights);

#endif
