/* SPDX-License-Identifier: Apache-2.0 */
/* What fit, evaluate and predict share: a model, its compilation, data, signals, messages. */
#ifndef LEAT_CLI_RUN_SESSION_H
#define LEAT_CLI_RUN_SESSION_H

#include "cli/run/progress.h"
#include "cli/options/table.h"
#include "leat/error.h"
#include "leat/feed.h"
#include "leat/model.h"
#include "leat/sequence.h"
#include "leat/train.h"

typedef struct cli_session {
    const char *command;
    const cli_arguments *arguments;
    leat_feed_options feeding; /* what the command line says of it: see cli/options/feeding.h */
    leat_model *model;
    leat_feed *feed; /* of a command that takes batches itself */
    leat_sequence data;
    leat_sequence validation;
    cli_progress measuring; /* kernels, or ops */
} cli_session;

/* Loads the model.  Like all below: says what went wrong and returns an exit code. */
int cli_load(cli_session *session, const char *path);

/* Compiles the model where --optimizer, --loss or --metrics ask for it; otherwise it must be compiled. */
int cli_compile(cli_session *session);

/* Opens the data that a SPEC names. */
int cli_open(cli_session *session, leat_sequence *out, const char *spec);

/* From here on SIGINT, SIGTERM and SIGHUP ask the model and the feed to stop after the batch in hand; a second one ends the
 * process.  A SIGHUP that the caller ignores, as nohup does, stays ignored. */
int cli_catch_signals(cli_session *session);

/* 129, 130 or 143 when a signal came, otherwise 0. */
int cli_signal_code(void);

/* Says that a signal came, and what follows from that; returns its code. */
int cli_interrupted(const cli_session *session, const char *consequence);

/* Frees everything.  Signals have their default effect again. */
void cli_close(cli_session *session);

/* Says err's message and returns CLI_FAILURE. */
int cli_fail(const cli_session *session, const leat_error *err);

leat_evaluate_options cli_evaluate_options(const cli_session *session);

#endif
