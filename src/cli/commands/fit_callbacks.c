/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the callbacks of `leat fit` from its options.  Room: cli. */
#include "cli/commands/fit_callbacks.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names/nearest.h"
#include "cli/commands/fit_data.h"
#include "cli/options/parse.h"
#include "cli/run/monitors.h"
#include "cli/text/say.h"

enum { path_bytes = 4096, call_bytes = 2048, max_names = 64 };

static const char *const schedules[] = {"CosineDecay",      "CosineDecayRestarts",    "ExponentialDecay",
                                        "InverseTimeDecay", "PiecewiseConstantDecay", "PolynomialDecay"};

enum { schedule_count = sizeof schedules / sizeof *schedules };

void cli_callbacks_add(cli_callbacks *callbacks, const leat_callback *callback) {
    callbacks->items[callbacks->count] = *callback;
    callbacks->list[callbacks->count] = &callbacks->items[callbacks->count];
    ++callbacks->count;
}

void cli_callbacks_destroy(cli_callbacks *callbacks) {
    for (int i = 0; i < callbacks->count; ++i) leat_callback_destroy(&callbacks->items[i]);
    callbacks->count = 0;
}

/* ---- Callbacks from the text of an option ---- */

/* Prints "leat fit: OPTION 'VALUE': MESSAGE" and how to get help; returns CLI_USAGE. */
static int refuse(cli_option_id id, const char *value, const char *message) {
    cli_say("leat fit: %s '%.200s': %s\ntry: leat fit --help\n", cli_options[id].name, value, message);
    return CLI_USAGE;
}

/* Creates the callback of an option, whose value is the list of arguments of the class `name`.  NAME NULL: the value is
 * the whole call. */
static int make(leat_callback *out, cli_option_id id, const char *name, const char *value) {
    char call[call_bytes];
    leat_error err = {0};
    int length = name ? snprintf(call, sizeof call, "%s(verbose=1, %s)", name, value)
                      : snprintf(call, sizeof call, "%s", value);
    if (length >= call_bytes) return refuse(id, value, "expected a shorter text");
    leat_status status = leat_callback_from_text(out, sizeof *out, call, &err);
    if (status == LEAT_OK) return CLI_SUCCESS;
    if (status != LEAT_ENOMEM) return refuse(id, value, err.message);
    cli_say("leat fit: %s\n", err.message);
    return CLI_FAILURE;
}

static bool is_schedule(const char *word) {
    for (int i = 0; i < schedule_count; ++i)
        if (strcmp(schedules[i], word) == 0) return true;
    return false;
}

/* Creates the callback of --lr-schedule.  Other callbacks than schedules are refused. */
static int make_schedule(leat_callback *out, const char *value) {
    char word[64], message[256];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(value, "( "), value);
    if (is_schedule(word)) return make(out, CLI_LR_SCHEDULE, NULL, value);
    const char *near = leati_nearest(word, schedules, schedule_count);
    snprintf(message, sizeof message,
             "expected CosineDecay, CosineDecayRestarts, ExponentialDecay, InverseTimeDecay, "
             "PiecewiseConstantDecay or PolynomialDecay, with arguments in parentheses%s%s%s",
             near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
    return refuse(CLI_LR_SCHEDULE, value, message);
}

/* Creates the callback of an option that was given. */
static int make_of(leat_callback *out, cli_option_id id, const char *value) {
    if (id == CLI_LR_SCHEDULE) return make_schedule(out, value);
    return make(out, id, id == CLI_EARLY_STOPPING ? "EarlyStopping" : "ReduceLROnPlateau", value);
}

static int check_text(const cli_arguments *a, cli_option_id id) {
    leat_callback made = {0};
    if (!a->text[id]) return CLI_SUCCESS;
    int code = make_of(&made, id, a->text[id]);
    leat_callback_destroy(&made);
    return code;
}

int cli_check_callbacks(const cli_arguments *a) {
    if (a->text[CLI_LR_SCHEDULE] && a->text[CLI_REDUCE_LR])
        return cli_exclusive("fit", "--lr-schedule", "--reduce-lr-on-plateau");
    if (a->text[CLI_SAVE_BEST] && !a->text[CLI_OUT]) return cli_needs("fit", "--save-best", "--out");
    if (a->text[CLI_SAVE_BEST] && !*a->text[CLI_SAVE_BEST])
        return refuse(CLI_SAVE_BEST, "", "expected the name of a value, such as val_loss");
    int code = check_text(a, CLI_EARLY_STOPPING);
    if (code == CLI_SUCCESS) code = check_text(a, CLI_REDUCE_LR);
    return code == CLI_SUCCESS ? check_text(a, CLI_LR_SCHEDULE) : code;
}

/* ---- Monitored values ---- */

/* Returns the end of the argument that begins at `at`: a comma outside of quotes and brackets, or the end. */
static const char *argument_end(const char *at) {
    int depth = 0;
    for (char quote = '\0'; *at; ++at) {
        if (quote) {
            if (*at == quote) quote = '\0';
        } else if (*at == '"' || *at == '\'') {
            quote = *at;
        } else {
            depth += strchr("([{", *at) ? 1 : strchr(")]}", *at) ? -1 : 0;
            if (*at == ',' && depth <= 0) break;
        }
    }
    return at;
}

/* Copies the value of the argument monitor from a list of valid arguments; the default is val_loss. */
static void find_monitor(const char *arguments, char out[LEAT_LOG_NAME_BYTES]) {
    snprintf(out, LEAT_LOG_NAME_BYTES, "val_loss");
    for (const char *at = arguments, *end; *at; at = *end ? end + 1 : end) {
        end = argument_end(at);
        while (isspace((unsigned char)*at)) ++at;
        if (strncmp(at, "monitor", 7) != 0) continue;
        for (at += 7; isspace((unsigned char)*at) || *at == '='; ++at) {
        }
        const char *last = end;
        while (last > at && isspace((unsigned char)last[-1])) --last;
        bool quoted = last - at >= 2 && (*at == '"' || *at == '\'');
        snprintf(out, LEAT_LOG_NAME_BYTES, "%.*s", (int)(last - at) - 2 * quoted, at + quoted);
    }
}

/* The names of the values that the fit logs. */
typedef struct log_names {
    char text[max_names][LEAT_LOG_NAME_BYTES];
    const char *list[max_names];
    int count;
} log_names;

static void collect_names(const cli_session *session, log_names *names) {
    const bool validates = cli_has_validation(session->arguments);
    const int count = leat_model_metric_count(session->model);
    for (int i = 0; i < count * (validates ? 2 : 1) && names->count < max_names; ++i) {
        char name[LEAT_LOG_NAME_BYTES];
        if (leat_model_metric_name(session->model, i % count, name, NULL) != LEAT_OK) continue;
        char *text = names->text[names->count];
        snprintf(text, LEAT_LOG_NAME_BYTES, "%s%.*s", i < count ? "" : "val_", LEAT_LOG_NAME_BYTES - 5, name);
        names->list[names->count++] = text;
    }
}

/* Checks that the fit logs the value that an option monitors: otherwise the callback would do nothing. */
static int check_monitor(const cli_session *session, cli_option_id id, const char *monitor) {
    log_names names = {0};
    if (strncmp(monitor, "val_", 4) == 0 && !cli_has_validation(session->arguments)) {
        cli_say("leat fit: %s monitors '%s', which needs validation data: give --validation or "
                "--validation-split, or %s\ntry: leat fit --help\n",
                cli_options[id].name, monitor, id == CLI_SAVE_BEST ? "--save-best loss" : "monitor=loss");
        return CLI_USAGE;
    }
    collect_names(session, &names);
    for (int i = 0; i < names.count; ++i)
        if (strcmp(names.list[i], monitor) == 0) return CLI_SUCCESS;
    const char *near = leati_nearest(monitor, names.list, (size_t)names.count);
    cli_say("leat fit: %s monitors '%s', which this training does not log%s%s%s; it logs",
            cli_options[id].name, monitor, near ? ": did you mean '" : "", near ? near : "",
            near ? "'?" : "");
    for (int i = 0; i < names.count; ++i) cli_say("%s %s", i > 0 ? "," : "", names.list[i]);
    cli_say("\ntry: leat fit --help\n");
    return CLI_USAGE;
}

int cli_check_monitors(const cli_session *session) {
    static const cli_option_id ids[] = {CLI_EARLY_STOPPING, CLI_REDUCE_LR};
    const char *const *text = session->arguments->text;
    int code = text[CLI_SAVE_BEST] ? check_monitor(session, CLI_SAVE_BEST, text[CLI_SAVE_BEST]) : CLI_SUCCESS;
    for (size_t i = 0; i < sizeof ids / sizeof *ids && code == CLI_SUCCESS; ++i) {
        char monitor[LEAT_LOG_NAME_BYTES];
        if (!text[ids[i]]) continue;
        find_monitor(text[ids[i]], monitor);
        code = check_monitor(session, ids[i], monitor);
    }
    return code;
}

/* ---- All callbacks ---- */

static int add_text(cli_callbacks *callbacks, const cli_arguments *a, cli_option_id id) {
    leat_callback made = {0};
    if (!a->text[id]) return CLI_SUCCESS;
    int code = make_of(&made, id, a->text[id]);
    if (code == CLI_SUCCESS) cli_callbacks_add(callbacks, &made);
    return code;
}

static int add_made(const cli_session *session, cli_callbacks *callbacks, const leat_callback *made,
                    leat_status status, const leat_error *err) {
    if (status != LEAT_OK) return cli_fail(session, err);
    cli_callbacks_add(callbacks, made);
    return CLI_SUCCESS;
}

static int add_log(const cli_session *session, const char *folder, cli_callbacks *callbacks) {
    char path[path_bytes];
    leat_callback made = {0};
    leat_error err = {0};
    snprintf(path, sizeof path, "%s/log.csv", folder);
    leat_status status = leat_csv_logger_create(&made, sizeof made, path, ",", false, &err);
    return add_made(session, callbacks, &made, status, &err);
}

/* Braces of the folder are doubled: they are no fields of the path. */
static int add_best(const cli_session *session, const char *folder, const char *monitor,
                    cli_callbacks *callbacks) {
    char path[2 * path_bytes];
    size_t used = 0;
    leat_callback made = {0};
    leat_error err = {0};
    leat_model_checkpoint_options options = leat_model_checkpoint_options_default();
    for (const char *c = folder; *c && used < path_bytes * 2 - 64; ++c) {
        path[used++] = *c;
        if (*c == '{' || *c == '}') path[used++] = *c;
    }
    snprintf(path + used, sizeof path - used, "/best.h5");
    options.filepath = path;
    options.save_best_only = true;
    options.monitor = monitor;
    leat_status status = leat_model_checkpoint_create(&made, sizeof made, &options, &err);
    return add_made(session, callbacks, &made, status, &err);
}

static int add_files(const cli_session *session, const char *folder, cli_callbacks *callbacks) {
    const char *best = session->arguments->text[CLI_SAVE_BEST];
    if (!best && cli_has_validation(session->arguments)) best = "val_loss";
    int code = add_log(session, folder, callbacks);
    return code == CLI_SUCCESS && best ? add_best(session, folder, best, callbacks) : code;
}

static int add_monitors(const cli_session *session, const char *folder, cli_callbacks *callbacks) {
    leat_callback monitors[CLI_MAX_MONITORS] = {0};
    leat_error err = {0};
    int count = 0;
    leat_status status = cli_add_monitors(session->arguments, folder, monitors, &count, &err);
    for (int i = 0; i < count; ++i) cli_callbacks_add(callbacks, &monitors[i]);
    return status == LEAT_OK ? CLI_SUCCESS : cli_fail(session, &err);
}

int cli_add_callbacks(const cli_session *session, const char *folder, cli_callbacks *callbacks) {
    const cli_arguments *a = session->arguments;
    int code = add_text(callbacks, a, CLI_LR_SCHEDULE);
    if (code == CLI_SUCCESS) code = add_text(callbacks, a, CLI_REDUCE_LR);
    if (code == CLI_SUCCESS && folder) code = add_files(session, folder, callbacks);
    if (code == CLI_SUCCESS) code = add_monitors(session, folder, callbacks);
    return code == CLI_SUCCESS ? add_text(callbacks, a, CLI_EARLY_STOPPING) : code;
}
