/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of `leat feed tune`; tune.c measures, tune_report.c chooses a setting and explains the choice,
 * tune_sizes.c compares batch sizes. */
#ifndef LEAT_CLI_COMMANDS_FEED_TUNE_H
#define LEAT_CLI_COMMANDS_FEED_TUNE_H

#include <stdio.h>

#include "cli/run/session.h"

enum { CLI_TUNE_ROWS = 64, CLI_TUNE_SIZES = 16 };

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
    double samples; /* mean number of samples of a step */
    double wait;    /* share of the time that training waited for data */
    double step_ns; /* mean time to compute a step */
    double get_ns;  /* mean time in which a worker makes a batch */
} cli_trial;

/* The settings that were tried with one batch size. */
typedef struct cli_tuning {
    int cores;
    int64_t batch_size;
    int64_t batch_bytes;     /* memory of a full batch */
    int64_t steps_per_epoch; /* 0: the data has no end or no known end */
    int64_t arena_bytes;     /* memory of a training step besides weights and data */
    int count;
    cli_trial rows[CLI_TUNE_ROWS];
} cli_tuning;

typedef struct cli_tunings {
    int64_t base_size;    /* the batch size that the model's learning rate is taken to fit */
    double learning_rate; /* of the model */
    bool is_sgd; /* the optimizer is SGD: the learning rate scales with the batch size, not with its root */
    int count;
    cli_tuning sizes[CLI_TUNE_SIZES]; /* batch sizes in ascending order */
} cli_tunings;

/* Settings whose rates differ by less than this share count as equally fast. */
#define CLI_TUNE_TIE 0.03

/* Returns the index of the recommended row; -1: there is no row.  Among the rows within CLI_TUNE_TIE of the fastest,
 * it is the one with the fewest workers, then with threads rather than processes, the fewest compute threads, the
 * shortest queue. */
int cli_tune_best(const cli_tuning *tuning);

/* Writes a few sentences that explain the choice of the row `best`. */
void cli_tune_explain(const cli_tuning *tuning, int best, char *out, size_t bytes);

/* Print the result on standard output, as a table or as one JSON object without a line break. */
void cli_tune_print(const cli_tuning *tuning);
void cli_tune_print_json(const cli_tuning *tuning);

/* Writes the options of `leat fit` that choose this setting. */
void cli_tune_options_text(const cli_setting *setting, char *out, size_t bytes);

/* Reads a list such as "64,256,1024" into the batch sizes of `out`, in ascending order.  Prints a message and returns
 * false unless the list has 1 to CLI_TUNE_SIZES different sizes. */
bool cli_tune_read_sizes(const char *text, cli_tunings *out);

/* Returns the index of the recommended batch size: the smallest one that trains at least 90 % of the samples per second
 * of the fastest. */
int cli_tune_best_size(const cli_tunings *tunings);

/* Print the comparison of batch sizes on standard output, with the best setting of each, as a table or as one JSON
 * object without a line break. */
void cli_tune_print_sizes(const cli_tunings *tunings);
void cli_tune_print_sizes_json(const cli_tunings *tunings);

#endif
