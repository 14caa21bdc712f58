/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of `leat feed tune`; tune.c measures, tune_report.c chooses a setting and explains the choice. */
#ifndef LEAT_CLI_COMMANDS_FEED_TUNE_H
#define LEAT_CLI_COMMANDS_FEED_TUNE_H

#include <stdio.h>

#include "cli/run/session.h"

enum { CLI_TUNE_ROWS = 64 };

typedef struct cli_setting {
    int workers;
    bool processes;
    int threads; /* number of compute threads */
    int queue;   /* --max-queue-size */
} cli_setting;

/* A setting and its measurements. */
typedef struct cli_trial {
    cli_setting setting;
    int64_t steps;  /* number of measured steps */
    double rate;    /* steps per second */
    double wait;    /* share of the time that training waited for data */
    double step_ns; /* mean time to compute a step */
    double get_ns;  /* mean time in which a worker makes a batch */
} cli_trial;

typedef struct cli_tuning {
    int cores;
    int count;
    cli_trial rows[CLI_TUNE_ROWS];
} cli_tuning;

/* Settings whose rates differ by less than this share count as equally fast. */
#define CLI_TUNE_TIE 0.03

/* Returns the index of the recommended row; -1: there is no row.  Among the rows within CLI_TUNE_TIE of the fastest,
 * it is the one with the fewest workers, then with threads rather than processes, the fewest compute threads, the
 * shortest queue. */
int cli_tune_best(const cli_tuning *tuning);

/* Writes a few sentences that explain the choice of the row `best`. */
void cli_tune_explain(const cli_tuning *tuning, int best, char *out, size_t bytes);

/* Print the result on standard output, as a table or as one JSON object. */
void cli_tune_print(const cli_tuning *tuning);
void cli_tune_print_json(const cli_tuning *tuning);

#endif
