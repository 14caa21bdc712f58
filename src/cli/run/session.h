/* SPDX-License-Identifier: Apache-2.0 */
/* The session: the model, data, signals and messages of a command that runs a model or a feed. */
#ifndef LEAT_CLI_RUN_SESSION_H
#define LEAT_CLI_RUN_SESSION_H

#include "cli/options/table.h"
#include "cli/run/folder.h"
#include "cli/run/progress.h"
#include "leat/error.h"
#include "leat/feed.h"
#include "leat/model.h"
#include "leat/sequence.h"
#include "leat/train.h"

/* What a command does with the model: decides about the compilation of the model's file. */
typedef enum cli_need {
    CLI_FOR_PREDICTION, /* no compilation */
    CLI_FOR_EVALUATION, /* the loss and the metrics */
    CLI_FOR_TRAINING,   /* also the optimizer and its state */
    CLI_FOR_CONVERSION  /* all that the file has; the command has no options that compile the model again */
} cli_need;

typedef struct cli_session {
    const char *command;
    const cli_arguments *arguments;
    leat_feed_options feed_options; /* from the command line, see cli/options/feed_options.h */
    leat_model *model;
    cli_need need;   /* set by cli_load */
    leat_feed *feed; /* NULL, except in commands that take batches themselves */
    leat_sequence data;
    leat_sequence validation;
    cli_progress measuring;          /* progress line while kernels are measured */
    char statistics[CLI_PATH_BYTES]; /* file of the statistics of the training data; "": none */
    char temporary
        [CLI_PATH_BYTES];    /* the folder of this file, if the run has none (cli/run/statistics.h); "" */
    bool reads_statistics;   /* the data is not that of a training */
    int64_t batch_size;      /* of the data, instead of the option's; 0: the option's */
    double validation_split; /* the share of the data that will be split off for validation */
    cli_progress reading;    /* progress line while statistics are computed */
} cli_session;

/* Loads the model.  Like the functions below, prints a message on failure and returns an exit code. */
int cli_load(cli_session *session, const char *path, cli_need need);

/* Applies the options that say how the model computes, such as --device: to the model that cli_load has loaded, or to a
 * model that takes its place. */
int cli_apply_settings(cli_session *session);

/* Compiles the model.  --optimizer, --loss and --metrics replace parts of the compilation that the file of the model
 * has; --no-compile drops the other parts.  Without these options the file's compilation is used. */
int cli_compile(cli_session *session);

/* Opens the data that a SPEC names. */
int cli_open_data(cli_session *session, leat_sequence *out, const char *spec);

/* Installs handlers: SIGINT, SIGTERM and SIGHUP make the model and the feed stop after the current batch, and a
 * second such signal ends the process.  SIGHUP stays ignored if it was ignored before, as under nohup. */
int cli_catch_signals(cli_session *session);

/* Returns the exit code 129, 130 or 143 if a signal was received, otherwise 0. */
int cli_signal_code(void);

/* Prints that a signal interrupted the command, and the consequence; returns cli_signal_code(). */
int cli_interrupted(const cli_session *session, const char *consequence);

/* Frees everything and restores the default actions of the signals. */
void cli_close(cli_session *session);

/* Prints err's message; returns CLI_FAILURE. */
int cli_fail(const cli_session *session, const leat_error *err);

/* Returns the options of leat_model_evaluate_generator and leat_model_predict_generator from the command line. */
leat_evaluate_options cli_evaluate_options(const cli_session *session);

#endif
