/* SPDX-License-Identifier: Apache-2.0 */
/* What `leat feed tune` measured, between the file that measures and the file that explains. */
#ifndef LEAT_CLI_COMMANDS_FEED_TUNE_H
#define LEAT_CLI_COMMANDS_FEED_TUNE_H

#include <stdio.h>

#include "cli/run/session.h"

enum { CLI_TUNE_ROWS = 64 };

typedef struct cli_setting {
    int workers;
    bool processes;
    int threads; /* that compute */
    int queue;
} cli_setting;

/* A setting, and what training with it did.  Times are ns of a step. */
typedef struct cli_trial {
    cli_setting setting;
    int64_t steps;  /* that were counted */
    double rate;    /* steps a second */
    double wait;    /* share of the time in which training waited for data */
    double step_ns; /* computing */
    double get_ns;  /* a worker's, for one batch */
} cli_trial;

typedef struct cli_tuning {
    int cores;
    int count;
    cli_trial rows[CLI_TUNE_ROWS];
} cli_tuning;

/* Settings whose rates differ by less are equal: the smaller one is chosen. */
#define CLI_TUNE_TIE 0.03

/* The row to recommend: among those within CLI_TUNE_TIE of the fastest the one with the fewest workers, then threads before
 * processes, then the fewest compute threads, then the shortest queue.  -1: no row. */
int cli_tune_best(const cli_tuning *tuning);

/* Why that row, in a few sentences. */
void cli_tune_explain(const cli_tuning *tuning, int best, char *out, size_t bytes);

/* The result on standard output: a table for people, or one JSON object. */
void cli_tune_print(const cli_tuning *tuning);
void cli_tune_print_json(const cli_tuning *tuning);

#endif
