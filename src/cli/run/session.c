/* SPDX-License-Identifier: Apache-2.0 */
/* The session: steps that several commands share.  Room: cli. */
#include "cli/run/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/parse.h"
#include "cli/run/progress.h"
#include "cli/text/say.h"
#include "leat/inspect.h"
#include "leat/layer.h"
#include "leat/source.h"

/* Used by the signal handler; `signalled_model` and `signalled_feed` are not NULL only while the handlers are
 * installed. */
static leat_model *volatile signalled_model;
static leat_feed *volatile signalled_feed;
static volatile sig_atomic_t received_signal;

static void on_signal(int number) {
    received_signal = number;
    if (signalled_model) leat_model_stop_training(signalled_model);
    if (signalled_feed) leat_feed_stop(signalled_feed);
}

static bool is_ignored(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    action.sa_flags = (int)SA_RESETHAND; /* a second signal ends the process */
    sigaction(number, &action, NULL);
}

int cli_catch_signals(cli_session *session) {
    signalled_model = session->model;
    signalled_feed = session->feed;
    handle(SIGINT, on_signal);
    handle(SIGTERM, on_signal);
    if (!is_ignored(SIGHUP)) handle(SIGHUP, on_signal); /* under nohup training continues */
    return CLI_SUCCESS;
}

int cli_signal_code(void) {
    return received_signal ? 128 + (int)received_signal : 0;
}

int cli_interrupted(const cli_session *session, const char *consequence) {
    cli_say("leat %s: interrupted: %s\n", session->command, consequence);
    return cli_signal_code();
}

int cli_fail(const cli_session *session, const leat_error *err) {
    cli_say("leat %s: %s\n", session->command, err->message);
    return CLI_FAILURE;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Loads the model, with the custom layers of the plugin of --layers, which stays loaded until the model is
 * destroyed. */
static leat_status load(cli_session *session, const char *path, bool compile, leat_error *err) {
    const char *plugin = session->arguments->text[CLI_LAYERS];
    leat_model_load_options options = leat_model_load_options_default();
    leat_registry *registry = NULL;
    leat_status status = leat_registry_create(&registry, err);
    if (status == LEAT_OK && plugin) status = leat_registry_load(registry, plugin, err);
    options.registry = registry;
    options.compile = compile;
    if (status == LEAT_OK) status = leat_model_load_using(&session->model, path, &options, err);
    leat_registry_destroy(&registry);
    return status;
}

static bool is_replaced(const cli_session *session) {
    const char *const *text = session->arguments->text;
    return text[CLI_OPTIMIZER] || text[CLI_LOSS] || text[CLI_METRICS] || text[CLI_ARITHMETIC] ||
           text[CLI_FREEZE] || text[CLI_UNFREEZE];
}

/* Loads the model with the compilation of its file if the command needs that: a command that only predicts needs none,
 * and evaluate and the options that compile the model again make a new one. */
static int load_for(cli_session *session, const char *path, cli_need need) {
    leat_error err = {0};
    bool compile = (need == CLI_FOR_TRAINING || need == CLI_FOR_CONVERSION) && !is_replaced(session) &&
                   !session->arguments->text[CLI_NO_COMPILE];
    leat_status status = load(session, path, compile, &err);
    if (status == LEAT_OK) return CLI_SUCCESS;
    cli_fail(session, &err);
    if (compile && status != LEAT_ENOMEM && load(session, path, false, NULL) == LEAT_OK)
        cli_say("only the file's compilation cannot be used\ntry: leat %s with %s--no-compile, which leaves "
                "it out\n",
                session->command,
                need == CLI_FOR_CONVERSION ? ""
                                           : "--loss, --metrics or --optimizer, which replace a part of the "
                                             "compilation, or with ");
    return CLI_FAILURE;
}

static void show_measuring(void *user, double share) {
    cli_session *session = user;
    if (share <= 0) cli_progress_begin(&session->measuring);
    if (share < 1)
        cli_progress_draw(&session->measuring, share, "measuring");
    else
        cli_progress_end(&session->measuring);
}

int cli_apply_settings(cli_session *session) {
    const char *const *text = session->arguments->text;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (text[CLI_DEVICE]) status = leat_model_set_device(session->model, text[CLI_DEVICE], &err);
    leat_model_set_deterministic(session->model, text[CLI_DETERMINISTIC] != NULL);
    leat_model_set_tf32(session->model, text[CLI_TF32] != NULL);
    leat_model_set_folding(session->model, text[CLI_NO_FOLD] == NULL);
    leat_model_set_tuning(session->model, text[CLI_NO_TUNE] ? LEAT_TUNE_OFF
                                          : text[CLI_TUNE]  ? LEAT_TUNE_MEASURE
                                                            : LEAT_TUNE_KNOWN);
    if (cli_number(session->arguments, CLI_VERBOSE, 1) == 1)
        leat_model_set_measuring_progress(session->model, show_measuring, session);
    if (status == LEAT_OK && text[CLI_DTYPE_POLICY])
        status = leat_model_set_dtype_policy(session->model, text[CLI_DTYPE_POLICY], &err);
    return status == LEAT_OK ? CLI_SUCCESS : cli_fail(session, &err);
}

int cli_load(cli_session *session, const char *path, cli_need need) {
    const char *const *text = session->arguments->text, *weights = text[CLI_WEIGHTS];
    leat_error err = {0};
    if (text[CLI_TUNE] && text[CLI_NO_TUNE]) return cli_exclusive(session->command, "--tune", "--no-tune");
    leat_status status = LEAT_OK;
    int code = load_for(session, path, need);
    if (code != CLI_SUCCESS) return code;
    session->need = need;
    code = cli_apply_settings(session);
    if (code != CLI_SUCCESS) return code;
    bool on_cpu = strcmp(leat_model_device(session->model), "cpu") == 0;
    if (on_cpu && leat_model_prefers_float32(session->model))
        cli_say(
            "leat %s: warning: this CPU does not multiply bfloat16 faster than float32: use float32, which "
            "is faster unless memory is the limit\n",
            session->command);
    if (on_cpu && text[CLI_TF32])
        cli_say("leat %s: warning: --tf32 has no effect on the CPU: choose a GPU with --device\n",
                session->command);
    if (weights) status = leat_model_load_weights_using(session->model, weights, NULL, &err);
    if (status == LEAT_OK && ends_with(path, ".json") && !weights)
        status = leat_model_initialize(session->model, (uint64_t)cli_number(session->arguments, CLI_SEED, 0),
                                       &err);
    return status == LEAT_OK ? CLI_SUCCESS : cli_fail(session, &err);
}

/* Returns true if the model is compiled, or was loaded without the compilation that its file has. */
static bool has_compilation(const leat_model *model) {
    char *config = NULL;
    bool found = leat_model_training_config(model, &config, NULL) == LEAT_OK;
    leat_string_free(config);
    return found;
}

static int fail_to_compile(const cli_session *session, leat_status status, bool kept, const leat_error *err) {
    cli_fail(session, err);
    if (kept)
        cli_say("the file has the loss, the metrics and the optimizer that are not given\n"
                "try: leat %s with all that the message names, or with --no-compile, which leaves them out\n",
                session->command);
    if (status == LEAT_ENOTFOUND)
        fputs("try: leat list losses, leat list metrics, leat list optimizers\n", stderr);
    return CLI_FAILURE;
}

int cli_compile(cli_session *session) {
    const char *const *text = session->arguments->text;
    leat_compile_options options = leat_compile_options_default();
    leat_error err = {0};
    leat_model_set_gradient_checkpointing(session->model, text[CLI_GRADIENT_CHECKPOINTING] != NULL);
    if (leat_model_is_compiled(session->model)) return CLI_SUCCESS;
    options.keep = !text[CLI_NO_COMPILE] && has_compilation(session->model);
    if (!text[CLI_LOSS] && !options.keep) {
        cli_say("leat %s: %s: give --loss\ntry: leat %s --help\n", session->command,
                text[CLI_NO_COMPILE] ? "with --no-compile the loss of the file is left out"
                                     : "the model has no compilation",
                session->command);
        return CLI_USAGE;
    }
    if (options.keep) options.optimizer = NULL;
    if (session->need == CLI_FOR_EVALUATION) options.optimizer = "sgd"; /* never used, and has no state */
    if (text[CLI_OPTIMIZER]) options.optimizer = text[CLI_OPTIMIZER];
    options.loss = text[CLI_LOSS];
    options.metrics = text[CLI_METRICS];
    options.arithmetic = text[CLI_ARITHMETIC];
    leat_status status = leat_model_compile(session->model, &options, &err);
    return status == LEAT_OK ? CLI_SUCCESS : fail_to_compile(session, status, options.keep, &err);
}

static void show_reading(void *user, double share) {
    cli_session *session = user;
    if (share <= 0) cli_progress_begin(&session->reading);
    if (share < 1)
        cli_progress_draw(&session->reading, share, "computing statistics");
    else
        cli_progress_end(&session->reading);
}

int cli_open_data(cli_session *session, leat_sequence *out, const char *spec) {
    leat_source_options options = leat_source_options_default();
    leat_error err = {0};
    options.batch_size = cli_number(session->arguments, CLI_BATCH_SIZE, options.batch_size);
    if (session->batch_size > 0) options.batch_size = session->batch_size;
    options.statistics = session->statistics[0] ? session->statistics : NULL;
    options.read_statistics = session->reads_statistics;
    options.validation_split = session->validation_split;
    options.progress = cli_number(session->arguments, CLI_VERBOSE, 1) == 1 ? show_reading : NULL;
    options.progress_user = session;
    leat_status status = leat_source_open(out, sizeof *out, spec, &options, &err);
    if (status == LEAT_OK) return CLI_SUCCESS;
    cli_fail(session, &err);
    if (status != LEAT_EINVAL) return CLI_FAILURE;
    fputs("try: leat help specs\n", stderr);
    return CLI_USAGE;
}

void cli_close(cli_session *session) {
    handle(SIGINT, SIG_DFL);
    handle(SIGTERM, SIG_DFL);
    if (!is_ignored(SIGHUP)) handle(SIGHUP, SIG_DFL);
    signalled_model = NULL;
    signalled_feed = NULL;
    if (leat_feed_close(&session->feed) ==
        0) { /* otherwise a worker thread that cannot be ended still uses the data */
        leat_sequence_destroy(&session->data);
        leat_sequence_destroy(&session->validation);
    }
    leat_model_destroy(&session->model);
}

leat_evaluate_options cli_evaluate_options(const cli_session *session) {
    const cli_arguments *arguments = session->arguments;
    const leat_feed_options *feed_options = &session->feed_options;
    leat_evaluate_options options = leat_evaluate_options_default();
    options.steps = cli_number(arguments, CLI_STEPS, 0);
    options.verbose = (int)cli_number(arguments, CLI_VERBOSE, 1);
    options.workers = feed_options->workers;
    options.use_multiprocessing = feed_options->use_multiprocessing;
    options.max_queue_size = feed_options->max_queue_size;
    options.feed_memory = feed_options->memory;
    options.faults = feed_options->faults;
    options.seed = feed_options->seed;
    options.threads = (int)cli_number(arguments, CLI_THREADS, 0);
    return options;
}
