/* SPDX-License-Identifier: Apache-2.0 */
/* `leat fit`: starts a run, or continues one.  Room: cli. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/fit_callbacks.h"
#include "cli/commands/fit_data.h"
#include "cli/commands/interrupt.h"
#include "cli/commands/live_history.h"
#include "cli/options/checkpoint_options.h"
#include "cli/options/feed_options.h"
#include "cli/options/parse.h"
#include "cli/options/tensorboard_options.h"
#include "cli/report/page.h"
#include "cli/run/files.h"
#include "cli/run/folder.h"
#include "cli/run/json.h"
#include "cli/run/ranks.h"
#include "cli/run/record.h"
#include "cli/run/session.h"
#include "cli/run/statistics.h"
#include "cli/run/surgery.h"
#include "cli/text/say.h"
#include "leat/checkpoint.h"
#include "leat/file.h"

/* A run: its session, its folder, the callbacks of the fit, and the trace.  The first callback keeps the position and
 * stops the fit on a signal. */
typedef struct fit_run {
    cli_session session;
    cli_arguments
        arguments; /* of the run: of this call or, with --resume, of the call that started the run */
    bool resumed;
    cli_ranks ranks;
    cli_folder folder; /* path "": nothing is saved, or another rank saves it */
    char start[16];    /* name of the copy of the model in the folder */
    cli_callbacks callbacks;
    cli_class_weights class_weights;
    leat_trace *trace; /* NULL: none */
    char trace_path[CLI_PATH_BYTES];
    cli_position position;
    leat_checkpoint_options checkpoints;
    char checkpoint_folder[CLI_PATH_BYTES];
    bool saved; /* model.h5 was written */
} fit_run;

static bool has_folder(const fit_run *run) {
    return run->folder.path[0] != '\0';
}

/* ---- Callbacks ---- */

/* Prints a note when training begins, so that an error before that is printed alone. */
static leat_status note_nothing_is_saved(void *user, leat_training *training, int64_t index, leat_logs *logs,
                                         leat_error *err) {
    (void)user, (void)index, (void)logs, (void)err;
    leat_training_write(training, "nothing will be saved: give --out DIR to save the model");
    return LEAT_OK;
}

static int add_live_history(fit_run *run) {
    leat_callback history = leat_callback_default();
    leat_error err = {0};
    if (cli_live_history_create(&history, run->folder.path, &err) != LEAT_OK)
        return cli_fail(&run->session, &err);
    cli_callbacks_add(&run->callbacks, &history);
    return CLI_SUCCESS;
}

/* Each rank writes a trace; at the end of the fit rank 0 adds those of the others to its own. */
static int open_trace(fit_run *run) {
    const char *path = run->session.arguments->text[CLI_TRACE];
    leat_error err = {0};
    if (!path) return CLI_SUCCESS;
    if (cli_ranks_leads(&run->ranks))
        snprintf(run->trace_path, sizeof run->trace_path, "%s", path);
    else
        snprintf(run->trace_path, sizeof run->trace_path, "%s.rank%d", path, leat_dist_rank(run->ranks.dist));
    return leat_trace_open(&run->trace, run->trace_path, &err) == LEAT_OK ? CLI_SUCCESS
                                                                          : cli_fail(&run->session, &err);
}

static int make_callbacks(fit_run *run) {
    cli_session *session = &run->session;
    run->position.stops_on_nan = session->arguments->text[CLI_NO_STOP_ON_NAN] == NULL;
    leat_callback position = cli_position_callback(&run->position);
    if (!has_folder(run)) position.on_train_begin = note_nothing_is_saved;
    cli_callbacks_add(&run->callbacks, &position);
    int code = cli_add_callbacks(session, has_folder(run) ? run->folder.path : NULL, &run->callbacks);
    if (code == CLI_SUCCESS && has_folder(run)) code = add_live_history(run);
    return code == CLI_SUCCESS ? open_trace(run) : code;
}

/* Destroys the callbacks and closes the trace.  Call it after the fit, whose feeds write to the trace. */
static int close_output(fit_run *run, int code) {
    leat_error err = {0};
    cli_callbacks_destroy(&run->callbacks);
    cli_class_weights_free(&run->class_weights);
    if (leat_trace_close(&run->trace, &err) != LEAT_OK && code != CLI_FAILURE)
        code = cli_fail(&run->session, &err);
    if (code == CLI_SUCCESS && run->trace_path[0] && !cli_ranks_leads(&run->ranks))
        (void)unlink(run->trace_path); /* its events are in the trace of rank 0 */
    return code;
}

/* ---- Results ---- */

/* Replaces DIR/history.json by the text and a line break. */
static int write_history(const fit_run *run, char *json) {
    char path[CLI_PATH_BYTES];
    leat_error err = {0};
    cli_folder_path(path, &run->folder, "history.json");
    leat_status status = cli_replace_text(path, json, &err);
    return status == LEAT_OK ? CLI_SUCCESS : cli_fail(&run->session, &err);
}

static int write_report(const fit_run *run) {
    char history[CLI_PATH_BYTES], path[CLI_PATH_BYTES];
    cli_folder_path(history, &run->folder, "history.json");
    cli_folder_path(path, &run->folder, "report.html");
    return cli_report_write("fit", history, path);
}

static int save_model(fit_run *run) {
    char path[CLI_PATH_BYTES];
    leat_error err = {0};
    cli_folder_path(path, &run->folder, "model.h5");
    if (leat_model_save(run->session.model, path, true, &err) != LEAT_OK)
        return cli_fail(&run->session, &err);
    run->saved = true;
    if (cli_number(run->session.arguments, CLI_VERBOSE, 1) > 0)
        cli_say("saved %s/model.h5\n", run->folder.name);
    return CLI_SUCCESS;
}

/* Writes the results of a fit: first the model, unless the fit failed, then history.json, report.html and the JSON
 * object.  Each is written even if another cannot be. */
static int write_results(fit_run *run, const leat_history *history, bool failed) {
    leat_error err = {0};
    char *json = NULL;
    int code = has_folder(run) && !failed ? save_model(run) : CLI_SUCCESS;
    if (!history) return code;
    if (leat_history_json(history, &json, &err) != LEAT_OK) return cli_fail(&run->session, &err);
    int written = has_folder(run) ? write_history(run, json) : CLI_SUCCESS;
    if (has_folder(run) && written == CLI_SUCCESS) written = write_report(run);
    if (run->session.arguments->text[CLI_JSON] && !failed) cli_json_text(stdout, json);
    leat_string_free(json);
    return code == CLI_SUCCESS ? written : code;
}

/* ---- Training ---- */

static leat_fit_options fit_options(fit_run *run) {
    const cli_session *session = &run->session;
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
    options.trace = run->trace;
    options.seed = session->feed_options.seed;
    options.threads = (int)cli_number(a, CLI_THREADS, 0);
    options.callbacks = run->callbacks.list;
    options.callback_count = run->callbacks.count;
    if (run->class_weights.outputs) {
        options.output_class_weights = run->class_weights.outputs;
        options.output_class_weight_count = run->class_weights.output_count;
    } else {
        options.class_weight = run->class_weights.items;
        options.class_weight_count = run->class_weights.count;
    }
    options.validation = cli_has_validation(a) ? &session->validation : NULL;
    options.validation_every = cli_number(a, CLI_VALIDATION_EVERY, 0);
    options.dist = run->ranks.dist;
    options.bf16_gradients = run->arguments.text[CLI_BF16_GRADIENTS] != NULL;
    options.shard_optimizer = run->arguments.text[CLI_SHARD_OPTIMIZER] != NULL;
    options.sync_batch_norm = run->arguments.text[CLI_SYNC_BATCH_NORM] != NULL;
    bool with_leader = !cli_ranks_leads(&run->ranks) && a->text[CLI_OUT]; /* rank 0 writes the checkpoints */
    if (has_folder(run) || with_leader) options.checkpoints = &run->checkpoints;
    return options;
}

static int train(fit_run *run) {
    cli_session *session = &run->session;
    leat_fit_options options = fit_options(run);
    leat_history *history = NULL;
    leat_error err = {0};
    cli_catch_signals(session);
    leat_status status = leat_model_fit_generator(session->model, &session->data, &options, &history, &err);
    bool failed = status != LEAT_OK && !(status == LEAT_ESTOPPED && cli_signal_code());
    int code = failed ? cli_fail(session, &err) : CLI_SUCCESS;
    if (!failed && run->position.nan_step > 0)
        failed = true, code = cli_print_nan(&run->position, &run->folder);
    int report_code = write_results(run, history, failed);
    leat_history_destroy(&history);
    if (code == CLI_SUCCESS) code = report_code;
    if (!failed && cli_signal_code())
        cli_print_interrupt(session, &run->position, &run->folder, run->saved);
    else if (status != LEAT_OK || report_code != CLI_SUCCESS)
        cli_print_failure(&run->folder);
    return code == CLI_SUCCESS && cli_signal_code() ? cli_signal_code() : code;
}

/* Lets the record of the run say that ranks have trained it, so that a process that continues it alone computes as one
 * rank. */
static void note_ranks(fit_run *run) {
    if (run->ranks.dist && !run->arguments.text[CLI_DIST])
        run->arguments.text[CLI_DIST] = leat_dist_is_launched() ? "auto" : "self";
}

/* ---- Starting a run ---- */

static int check_options(const cli_arguments *a) {
    int64_t epochs = cli_number(a, CLI_EPOCHS, 1), first = cli_number(a, CLI_INITIAL_EPOCH, 0);
    static const cli_option_id of_validation[] = {CLI_VALIDATION_STEPS, CLI_VALIDATION_FREQ,
                                                  CLI_VALIDATION_EVERY};
    static const cli_option_id of_folder[] = {CLI_CHECKPOINT_EVERY, CLI_KEEP_CHECKPOINTS, CLI_OVERWRITE};
    for (size_t i = 0; i < sizeof of_validation / sizeof *of_validation; ++i)
        if (!cli_has_validation(a) && a->text[of_validation[i]])
            return cli_needs("fit", cli_options[of_validation[i]].name, "--validation or --validation-split");
    for (size_t i = 0; i < sizeof of_folder / sizeof *of_folder; ++i)
        if (!a->text[CLI_OUT] && a->text[of_folder[i]])
            return cli_needs("fit", cli_options[of_folder[i]].name, "--out");
    if (a->text[CLI_STOP_ON_NAN] && a->text[CLI_NO_STOP_ON_NAN])
        return cli_exclusive("fit", "--stop-on-nan", "--no-stop-on-nan");
    if (a->text[CLI_DATA_CHANGED] && !a->text[CLI_RESUME])
        return cli_needs("fit", "--data-changed", "--resume");
    int code = cli_check_fit_data(a);
    if (code == CLI_SUCCESS) code = cli_check_callbacks(a);
    if (code != CLI_SUCCESS || epochs > first) return code;
    cli_say("leat fit: --epochs %" PRId64 " is the number of the last epoch: expected more than "
            "--initial-epoch, which is %" PRId64 "\ntry: leat fit --help\n",
            epochs, first);
    return CLI_USAGE;
}

static int read_options(fit_run *run) {
    int code = check_options(&run->arguments);
    if (code == CLI_SUCCESS) code = cli_feed_options("fit", &run->arguments, &run->session.feed_options);
    leat_tensorboard_options tensorboard;
    if (code == CLI_SUCCESS) code = cli_tensorboard_options(&run->arguments, &tensorboard);
    return code == CLI_SUCCESS ? cli_checkpoint_options(&run->arguments, &run->checkpoints) : code;
}

/* Copies the model to start.h5, start.json or start.keras in the folder, so that the run can begin anew even if the
 * model's file is changed or removed. */
static int copy_model(fit_run *run, const void *data, size_t bytes) {
    const char *model = run->arguments.operands[0], *dot = strrchr(model, '.');
    bool known = dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".keras") == 0);
    char path[CLI_PATH_BYTES];
    leat_error err = {0};
    snprintf(run->start, sizeof run->start, "start%s", known ? dot : ".h5");
    cli_folder_path(path, &run->folder, run->start);
    return leat_file_replace(path, data, bytes, &err) == LEAT_OK ? CLI_SUCCESS
                                                                 : cli_fail(&run->session, &err);
}

static int refuse_other_run(const fit_run *run, const char *file) {
    const char *out = run->arguments.text[CLI_OUT];
    if (strcmp(file, "run.json") == 0)
        cli_say("leat fit: '%s' is the folder of another run: to continue that run: leat fit --resume %s; to "
                "replace it, add --overwrite\n",
                out, out);
    else
        cli_say("leat fit: '%s' has a %s of another run: choose another --out, or add --overwrite\n", out,
                file);
    return CLI_FAILURE;
}

/* Makes the folder of a new run, with run.json.  What another run has left there is removed only with --overwrite, and
 * only after the model was read, since it may be a part of that run. */
static int start_run(fit_run *run) {
    const cli_arguments *a = &run->arguments;
    size_t bytes = 0;
    if (!a->text[CLI_OUT] || !cli_ranks_leads(&run->ranks)) return CLI_SUCCESS;
    char *model = cli_read_file(a->operands[0], &bytes);
    if (!model) {
        cli_say("leat fit: cannot read '%s': %s\n", a->operands[0], strerror(errno));
        return CLI_FAILURE;
    }
    int code = cli_folder_make(&run->folder, a->text[CLI_OUT]);
    const char *other = code == CLI_SUCCESS ? cli_folder_find_run(&run->folder) : NULL;
    if (other && a->text[CLI_OVERWRITE]) code = cli_folder_remove_run(&run->folder);
    if (other && !a->text[CLI_OVERWRITE]) {
        code = refuse_other_run(run, other);
        cli_folder_close(&run->folder);
    }
    if (code == CLI_SUCCESS) code = copy_model(run, model, bytes);
    if (code == CLI_SUCCESS) code = cli_record_write(run->folder.path, a, run->start, NULL);
    free(model);
    return code;
}

/* Checks the data before --overwrite removes another run: the fit would find the mistake too late. */
static int check_data(const cli_session *session) {
    leat_error err = {0};
    leat_status status = leat_model_check_data(session->model, &session->data.spec, &err);
    if (status != LEAT_OK) return cli_fail(session, &err);
    if (!cli_has_validation(session->arguments)) return CLI_SUCCESS;
    status = leat_model_check_data(session->model, &session->validation.spec, &err);
    if (status == LEAT_OK) return CLI_SUCCESS;
    cli_say("leat fit: validation data: %s\n", err.message);
    return CLI_FAILURE;
}

static int load_all(fit_run *run, const char *model) {
    cli_session *session = &run->session;
    int code = cli_load(session, model, CLI_FOR_TRAINING);
    if (code == CLI_SUCCESS) code = cli_freeze(session);
    if (code == CLI_SUCCESS) code = cli_compile(session);
    if (code == CLI_SUCCESS) code = cli_check_monitors(session);
    if (code == CLI_SUCCESS) code = cli_statistics_begin(session, &run->folder);
    if (code == CLI_SUCCESS) code = cli_open_fit_data(session);
    if (code == CLI_SUCCESS) code = check_data(session);
    return code == CLI_SUCCESS ? cli_read_class_weights(session, &run->class_weights) : code;
}

/* The folder is made first, so that a run which is killed while it loads its data can be resumed.  With --overwrite the
 * folder is made last, so that a mistake in the new command does not cost the old run. */
static int prepare_new(fit_run *run) {
    bool late = run->arguments.text[CLI_OVERWRITE] != NULL;
    int code = read_options(run);
    if (code == CLI_SUCCESS && !late) code = start_run(run);
    if (code == CLI_SUCCESS) code = load_all(run, run->arguments.operands[0]);
    if (code == CLI_SUCCESS && late) code = start_run(run);
    return code == CLI_SUCCESS ? cli_statistics_keep(&run->session, &run->folder) : code;
}

/* ---- Continuing a run ---- */

/* Reads the record of the run, and goes to the folder in which it was started, to which its paths are relative. */
static int read_run(fit_run *run, cli_record *record, const cli_arguments *given) {
    int code = cli_ranks_leads(&run->ranks) ? cli_folder_open(&run->folder, given->text[CLI_RESUME])
                                            : cli_folder_find(&run->folder, given->text[CLI_RESUME]);
    if (code == CLI_SUCCESS) code = cli_record_read(record, run->folder.path);
    if (code == CLI_SUCCESS) code = cli_record_merge(record, given, &run->arguments);
    if (code == CLI_SUCCESS && chdir(record->directory) != 0) {
        cli_say("leat fit: cannot go to '%s', where the run was started: %s\n", record->directory,
                strerror(errno));
        code = CLI_FAILURE;
    }
    if (code == CLI_SUCCESS && !given->text[CLI_DATA_CHANGED]) code = cli_record_check_data(record);
    return code;
}

static int prepare_resumed(fit_run *run, cli_record *record, const cli_arguments *given) {
    char model[CLI_PATH_BYTES];
    run->resumed = true;
    int code = given->operand_count == 0 && !given->text[CLI_OUT]
                   ? read_run(run, record, given)
                   : cli_exclusive("fit", "--resume", given->operand_count ? "MODEL" : "--out");
    if (code != CLI_SUCCESS) return code;
    cli_folder_path(model, &run->folder, record->start);
    snprintf(run->start, sizeof run->start, "%.15s", record->start);
    run->arguments.text[CLI_OUT] = given->text[CLI_RESUME];
    code = cli_ranks_open(&run->ranks, "fit", given, record->arguments.text[CLI_DIST]);
    note_ranks(run);
    if (code == CLI_SUCCESS) code = read_options(run);
    if (code == CLI_SUCCESS) code = load_all(run, model);
    if (code != CLI_SUCCESS || !cli_ranks_leads(&run->ranks)) return code;
    return cli_record_write(run->folder.path, &run->arguments, run->start, record);
}

/* ---- The command ---- */

static int prepare(fit_run *run, cli_record *record, const cli_arguments *given) {
    int code = cli_ranks_open(&run->ranks, "fit", given, NULL);
    note_ranks(run);
    if (code == CLI_SUCCESS)
        code = given->text[CLI_RESUME] ? prepare_resumed(run, record, given) : prepare_new(run);
    if (code != CLI_SUCCESS) return code;
    snprintf(run->checkpoint_folder, sizeof run->checkpoint_folder, "%.4000s/checkpoints", run->folder.path);
    run->checkpoints.folder = run->checkpoint_folder;
    run->checkpoints.resume = run->resumed;
    if (cli_ranks_leads(&run->ranks)) return make_callbacks(run);
    run->folder.path[0] = '\0';
    return open_trace(run);
}

int cli_fit(const cli_arguments *arguments) {
    fit_run run = {.session = {.command = "fit"}, .arguments = *arguments};
    cli_record record = {0};
    run.session.arguments = &run.arguments;
    int code = prepare(&run, &record, arguments);
    if (code == CLI_SUCCESS)
        code = train(&run);
    else if (!run.resumed)
        cli_folder_abandon(&run.folder);
    code = close_output(&run, code);
    cli_statistics_end(&run.session);
    cli_close(&run.session);
    cli_folder_close(&run.folder);
    cli_record_free(&record);
    return cli_ranks_close(&run.ranks, code);
}
