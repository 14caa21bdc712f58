/* SPDX-License-Identifier: Apache-2.0 */
/* `leat fit`.  Room: cli. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/interrupt.h"
#include "cli/commands/live_history.h"
#include "cli/options/feed_options.h"
#include "cli/options/parse.h"
#include "cli/report/page.h"
#include "cli/run/session.h"
#include "leat/file.h"

enum { path_bytes = 4096, callback_max = 5 };

/* The folder of --out, the callbacks of the fit, and the trace.  callbacks[0] records the position and stops the fit
 * on a signal, with or without a folder; the others write to the folder. */
typedef struct output {
    const char *folder; /* NULL: nothing is saved */
    leat_callback callbacks[callback_max];
    leat_callback *list[callback_max];
    int count;
    leat_trace *trace; /* NULL: none */
    cli_position position;
    bool saved; /* model.h5 was written */
} output;

static void path_in_output(char out[path_bytes], const output *to, const char *name) {
    snprintf(out, path_bytes, "%s/%s", to->folder, name);
}

/* Creates a folder and its parents. */
static int make_folder(const cli_session *session, const char *folder) {
    char path[path_bytes];
    if (!*folder || snprintf(path, sizeof path, "%s", folder) >= path_bytes - 64) {
        fprintf(stderr, "leat fit: --out '%.100s': expected the name of a folder\n", folder);
        return CLI_USAGE;
    }
    for (char *slash = path + 1; (slash = strchr(slash, '/')); ++slash) {
        *slash = '\0';
        (void)mkdir(path, 0777); /* the last folder is checked below */
        *slash = '/';
    }
    struct stat info;
    if ((mkdir(path, 0777) == 0 || errno == EEXIST) && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return CLI_SUCCESS;
    fprintf(stderr, "leat %s: cannot create the folder '%s': %s\n", session->command, folder,
            strerror(errno == EEXIST ? ENOTDIR : errno));
    return CLI_FAILURE;
}

static leat_status add_checkpoint(output *to, const char *name, bool best, leat_error *err) {
    char path[path_bytes];
    leat_model_checkpoint_options options = leat_model_checkpoint_options_default();
    path_in_output(path, to, name);
    options.filepath = path;
    options.save_best_only = best;
    return leat_model_checkpoint_create(&to->callbacks[to->count++], sizeof(leat_callback), &options, err);
}

static leat_status add_log(output *to, bool append, leat_error *err) {
    char path[path_bytes];
    path_in_output(path, to, "log.csv");
    return leat_csv_logger_create(&to->callbacks[to->count++], sizeof(leat_callback), path, ",", append, err);
}

/* Prints a note when training begins, so that an error before that is printed alone. */
static leat_status note_nothing_is_saved(void *user, leat_training *training, int64_t index, leat_logs *logs,
                                         leat_error *err) {
    (void)user, (void)index, (void)logs, (void)err;
    leat_training_write(training, "nothing will be saved: give --out DIR to save the model");
    return LEAT_OK;
}

static int open_output(cli_session *session, output *to) {
    const cli_arguments *a = session->arguments;
    leat_error err = {0};
    to->folder = a->text[CLI_OUT];
    to->callbacks[0] = cli_position_callback(&to->position);
    if (!to->folder) to->callbacks[0].on_train_begin = note_nothing_is_saved;
    to->list[0] = &to->callbacks[0];
    to->count = 1;
    if (a->text[CLI_TRACE] && leat_trace_open(&to->trace, a->text[CLI_TRACE], &err) != LEAT_OK)
        return cli_fail(session, &err);
    if (!to->folder) return CLI_SUCCESS;
    int code = make_folder(session, to->folder);
    if (code != CLI_SUCCESS) return code;
    leat_status status = add_log(to, cli_number(a, CLI_INITIAL_EPOCH, 0) > 0, &err);
    if (status == LEAT_OK) status = add_checkpoint(to, "checkpoint.h5", false, &err);
    if (status == LEAT_OK && a->text[CLI_VALIDATION]) status = add_checkpoint(to, "best.h5", true, &err);
    if (status == LEAT_OK) status = cli_live_history_create(&to->callbacks[to->count++], to->folder, &err);
    for (int i = 0; i < to->count; ++i) to->list[i] = &to->callbacks[i];
    return status == LEAT_OK ? CLI_SUCCESS : cli_fail(session, &err);
}

/* Destroys the callbacks and closes the trace.  Call it after the fit, whose feeds write to the trace. */
static int close_output(const cli_session *session, output *to, int code) {
    leat_error err = {0};
    for (int i = 0; i < to->count; ++i) leat_callback_destroy(&to->callbacks[i]);
    if (leat_trace_close(&to->trace, &err) != LEAT_OK && code != CLI_FAILURE) code = cli_fail(session, &err);
    return code;
}

static leat_fit_options fit_options(const cli_session *session, const output *to) {
    const cli_arguments *a = session->arguments;
    leat_fit_options options = leat_fit_options_default();
    options.epochs = cli_number(a, CLI_EPOCHS, options.epochs);
    options.initial_epoch = cli_number(a, CLI_INITIAL_EPOCH, 0);
    options.steps_per_epoch = cli_number(a, CLI_STEPS_PER_EPOCH, 0);
    options.validation_steps = cli_number(a, CLI_VALIDATION_STEPS, 0);
    options.validation_freq = cli_number(a, CLI_VALIDATION_FREQ, options.validation_freq);
    options.verbose = (int)cli_number(a, CLI_VERBOSE, 1);
    options.workers = session->feed_options.workers;
    options.use_multiprocessing = session->feed_options.use_multiprocessing;
    options.max_queue_size = session->feed_options.max_queue_size;
    options.feed_memory = session->feed_options.memory;
    options.shuffle = session->feed_options.shuffle;
    options.shuffle_window = session->feed_options.shuffle_window;
    options.faults = session->feed_options.faults;
    options.trace = to->trace;
    options.seed = session->feed_options.seed;
    options.threads = (int)cli_number(a, CLI_THREADS, 0);
    options.callbacks = to->list;
    options.callback_count = to->count;
    options.validation = a->text[CLI_VALIDATION] ? &session->validation : NULL;
    return options;
}

/* Replaces DIR/history.json by the text and a line break. */
static int write_history(const output *to, char *json) {
    char path[path_bytes];
    leat_error err = {0};
    size_t length = strlen(json);
    path_in_output(path, to, "history.json");
    json[length] = '\n';
    leat_status status = leat_file_replace(path, json, length + 1, &err);
    json[length] = '\0';
    if (status == LEAT_OK) return CLI_SUCCESS;
    fprintf(stderr, "leat fit: %s\n", err.message);
    return CLI_FAILURE;
}

static int write_report(const output *to) {
    char history[path_bytes], path[path_bytes];
    path_in_output(history, to, "history.json");
    path_in_output(path, to, "report.html");
    return cli_report_write("fit", history, path);
}

static int save_model(const cli_session *session, output *to) {
    char path[path_bytes];
    leat_error err = {0};
    path_in_output(path, to, "model.h5");
    if (leat_model_save(session->model, path, true, &err) != LEAT_OK) return cli_fail(session, &err);
    to->saved = true;
    if (cli_number(session->arguments, CLI_VERBOSE, 1) > 0) fprintf(stderr, "saved %s\n", path);
    return CLI_SUCCESS;
}

/* Writes the results of a fit: history.json, report.html, model.h5 unless the fit failed, and the JSON object. */
static int write_results(const cli_session *session, output *to, const leat_history *history, bool failed) {
    leat_error err = {0};
    char *json = NULL;
    int code = CLI_SUCCESS;
    if (!history) return CLI_SUCCESS;
    if (leat_history_json(history, &json, &err) != LEAT_OK) return cli_fail(session, &err);
    if (to->folder) code = write_history(to, json);
    if (to->folder && code == CLI_SUCCESS) code = write_report(to);
    if (to->folder && !failed && code == CLI_SUCCESS) code = save_model(session, to);
    if (session->arguments->text[CLI_JSON] && !failed) puts(json);
    leat_string_free(json);
    return code;
}

static int train(cli_session *session, output *to) {
    leat_fit_options options = fit_options(session, to);
    leat_history *history = NULL;
    leat_error err = {0};
    cli_catch_signals(session);
    leat_status status = leat_model_fit_generator(session->model, &session->data, &options, &history, &err);
    bool failed = status != LEAT_OK && !(status == LEAT_ESTOPPED && cli_signal_code());
    int code = failed ? cli_fail(session, &err) : CLI_SUCCESS;
    int report_code = write_results(session, to, history, failed);
    leat_history_destroy(&history);
    if (code == CLI_SUCCESS) code = report_code;
    if (!failed && cli_signal_code()) cli_print_interrupt(session, &to->position, to->folder, to->saved);
    return code == CLI_SUCCESS && cli_signal_code() ? cli_signal_code() : code;
}

static int check_options(const cli_arguments *a) {
    int64_t epochs = cli_number(a, CLI_EPOCHS, 1), first = cli_number(a, CLI_INITIAL_EPOCH, 0);
    if (!a->text[CLI_VALIDATION] && a->text[CLI_VALIDATION_STEPS])
        return cli_needs("fit", "--validation-steps", "--validation");
    if (!a->text[CLI_VALIDATION] && a->text[CLI_VALIDATION_FREQ])
        return cli_needs("fit", "--validation-freq", "--validation");
    if (epochs > first) return CLI_SUCCESS;
    fprintf(stderr,
            "leat fit: --epochs %" PRId64 " is the number of the last epoch: expected more than "
            "--initial-epoch, which is %" PRId64 "\ntry: leat fit --help\n",
            epochs, first);
    return CLI_USAGE;
}

static int prepare(cli_session *session, output *to) {
    const cli_arguments *a = session->arguments;
    int code = check_options(a);
    if (code == CLI_SUCCESS) code = cli_feed_options(session->command, a, &session->feed_options);
    if (code == CLI_SUCCESS) code = cli_load(session, a->operands[0]);
    if (code == CLI_SUCCESS) code = cli_compile(session);
    if (code == CLI_SUCCESS) code = cli_open_data(session, &session->data, a->text[CLI_TRAIN]);
    if (code == CLI_SUCCESS && a->text[CLI_VALIDATION])
        code = cli_open_data(session, &session->validation, a->text[CLI_VALIDATION]);
    return code == CLI_SUCCESS ? open_output(session, to) : code;
}

int cli_fit(const cli_arguments *arguments) {
    cli_session session = {.command = "fit", .arguments = arguments};
    output to = {0};
    int code = prepare(&session, &to);
    if (code == CLI_SUCCESS) code = train(&session, &to);
    code = close_output(&session, &to, code);
    cli_close(&session);
    return code;
}
