/* SPDX-License-Identifier: Apache-2.0 */
/* `leat predict --weights-format`: predictions with smaller weights, beside those with the model's own.  Room: cli. */
#ifndef LEAT_CLI_COMMANDS_PREDICT_NARROW_H
#define LEAT_CLI_COMMANDS_PREDICT_NARROW_H

#include <stdbool.h>

#include "cli/run/session.h"
#include "leat/predictor.h"

/* How the predictions of an output differ from those with f32 weights. */
typedef struct cli_difference {
    double largest, sum;   /* of the absolute differences; a difference with a NaN counts as infinite */
    double largest_number; /* the largest absolute value of the predictions with f32 weights */
    int64_t numbers;
    int64_t rows,
        other_choices; /* rows along the last axis, and those whose largest number is at another place */
} cli_difference;

/* The predictions of all samples, and what the smaller weights cost and bring. */
typedef struct cli_narrow {
    leat_predictor *exact, *narrow; /* for one sample */
    leat_tensor *outputs;           /* predictions with smaller weights; the first dimension counts samples */
    cli_difference *differences;    /* one for each output */
    int output_count;
    int64_t samples, room;       /* done, and those that fit into `outputs` */
    int64_t exact_ns, narrow_ns; /* time of all runs */
} cli_narrow;

/* Returns true if --weights-format asks for smaller weights. */
bool cli_narrow_wanted(const cli_arguments *arguments);

/* Predicts each sample of the data with both kinds of weights.  Prints a message on failure; returns an exit code. */
int cli_narrow_predict(cli_narrow *run, cli_session *session);

/* Print the differences: sentences on standard error, or members of a JSON object on standard output. */
void cli_narrow_say(const cli_narrow *run, const char *format, char *const *names);
void cli_narrow_print_json(const cli_narrow *run, const char *format, char *const *names);

void cli_narrow_free(cli_narrow *run);

#endif
