/* SPDX-License-Identifier: Apache-2.0 */
/* `leat predict`.  Room: cli. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/predict_csv.h"
#include "cli/commands/predict_narrow.h"
#include "cli/options/feed_options.h"
#include "cli/options/parse.h"
#include "cli/run/json.h"
#include "cli/run/ranks.h"
#include "cli/run/session.h"
#include "cli/run/surgery.h"
#include "cli/text/say.h"
#include "leat/npz.h"

static bool ends_in(const char *path, const char *ending) {
    size_t length = strlen(path), tail = strlen(ending);
    return length >= tail && strcmp(path + length - tail, ending) == 0;
}

/* Checks that a file can be written at `path`: its folder is writable, and the path is not a folder itself. */
static int check_writable(const char *path) {
    char folder[PATH_MAX];
    struct stat info;
    const char *slash = strrchr(path, '/');
    int number = 0;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (access(folder, W_OK) != 0)
        number = errno;
    else if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        number = EISDIR;
    if (number == 0) return CLI_SUCCESS;
    cli_say("leat predict: cannot write '%s': %s\n", path, strerror(number));
    return CLI_FAILURE;
}

/* Checks --output before anything is computed. */
static int check_output(const cli_session *session) {
    const char *path = session->arguments->text[CLI_OUTPUT];
    int outputs = leat_model_output_count(session->model);
    const bool is_npy = ends_in(path, ".npy");
    if (ends_in(path, ".npz") || ends_in(path, ".csv") || (is_npy && outputs == 1))
        return check_writable(path);
    if (is_npy)
        cli_say(
            "leat predict: --output '%s': the model has %d outputs: give the name of an .npz or .csv file\n",
            path, outputs);
    else
        cli_say("leat predict: --output '%s': expected a name that ends in .npy, .npz or .csv\n", path);
    fputs("try: leat predict --help\n", stderr);
    return CLI_USAGE;
}

static void free_names(char **names) {
    for (int i = 0; names && names[i]; ++i) free(names[i]);
    free(names);
}

static bool is_taken(char *const *names, int count, const char *name) {
    for (int i = 0; i < count; ++i)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Returns the layer's name, with "_1", "_2" appended if it is among `names`: Keras names metrics in this way. */
static char *unique_name(char *const *names, int count, const char *layer) {
    size_t bytes = strlen(layer) + sizeof "_2147483647";
    char *name = malloc(bytes);
    if (!name) return NULL;
    snprintf(name, bytes, "%s", layer);
    for (int i = 1; is_taken(names, count, name); ++i) snprintf(name, bytes, "%s_%d", layer, i);
    return name;
}

/* Returns a different name for each output, with NULL at the end; NULL: no memory.  Free it with free_names. */
static char **output_names(const leat_model *model) {
    int count = leat_model_output_count(model);
    char **names = calloc((size_t)count + 1, sizeof *names);
    for (int i = 0; names && i < count; ++i) {
        names[i] = unique_name(names, i, leat_model_output_name(model, i));
        if (!names[i]) {
            free_names(names);
            names = NULL;
        }
    }
    return names;
}

/* The predictions that are saved: `tensors` has `count` outputs.  narrow: how smaller weights change them; NULL: the
 * model's own weights were used. */
typedef struct results {
    leat_tensor *tensors;
    int count;
    const cli_narrow *narrow;
} results;

static void print_json(char *const *names, const results *r, const cli_arguments *arguments) {
    fputs("{\"output\": ", stdout);
    cli_json_string(stdout, arguments->text[CLI_OUTPUT]);
    fputs(", \"shapes\": {", stdout);
    for (int i = 0; i < r->count; ++i) {
        const leat_tensor *tensor = &r->tensors[i];
        if (i) fputs(", ", stdout);
        cli_json_string(stdout, names[i]);
        fputs(": [", stdout);
        for (int d = 0; d < tensor->rank; ++d) printf("%s%" PRId64, d ? ", " : "", tensor->shape[d]);
        putchar(']');
    }
    putchar('}');
    if (r->narrow) cli_narrow_print_json(r->narrow, arguments->text[CLI_WEIGHTS_FORMAT], names);
    puts("}");
}

static leat_status write_file(const char *path, const cli_session *session, char *const *names,
                              const results *r, leat_error *err) {
    if (ends_in(path, ".csv"))
        return cli_predict_csv_write(path, &session->data, names, r->tensors, r->count, err);
    if (ends_in(path, ".npz"))
        return leat_npz_write(path, (const char *const *)names, r->tensors, r->count, err);
    return leat_npy_write(path, &r->tensors[0], err);
}

static int save(const cli_session *session, const results *r) {
    const cli_arguments *arguments = session->arguments;
    const char *path = arguments->text[CLI_OUTPUT];
    leat_error err = {0};
    char **names = output_names(session->model);
    const bool says = cli_number(arguments, CLI_VERBOSE, 1) > 0;
    leat_status status =
        names ? LEAT_OK : leat_error_set(&err, LEAT_ENOMEM, "no memory for names of outputs");
    if (status == LEAT_OK) status = write_file(path, session, names, r, &err);
    if (status == LEAT_OK && arguments->text[CLI_JSON]) print_json(names, r, arguments);
    if (status == LEAT_OK && says && r->narrow)
        cli_narrow_say(r->narrow, arguments->text[CLI_WEIGHTS_FORMAT], names);
    free_names(names);
    if (status != LEAT_OK) return cli_fail(session, &err);
    const int64_t samples = r->tensors[0].shape[0];
    if (says) cli_say("saved %s: %" PRId64 " sample%s\n", path, samples, samples == 1 ? "" : "s");
    return CLI_SUCCESS;
}

static int save_predictions(const cli_session *session, const leat_predictions *predictions) {
    leat_error err = {0};
    results r = {.count = leat_predictions_count(predictions)};
    r.tensors = calloc((size_t)r.count + 1, sizeof *r.tensors);
    if (!r.tensors) {
        leat_error_set(&err, LEAT_ENOMEM, "no memory for a list of %d outputs", r.count);
        return cli_fail(session, &err);
    }
    for (int i = 0; i < r.count; ++i) r.tensors[i] = leat_predictions_get(predictions, i);
    int code = save(session, &r);
    free(r.tensors);
    return code;
}

/* All ranks have all predictions; rank 0 writes them. */
static int predict(cli_session *session, const cli_ranks *ranks) {
    leat_evaluate_options options = cli_evaluate_options(session);
    leat_predictions *predictions = NULL;
    leat_error err = {0};
    options.dist = ranks->dist;
    cli_catch_signals(session);
    leat_status status =
        leat_model_predict_generator(session->model, &session->data, &options, &predictions, &err);
    int code = 0;
    if (cli_signal_code())
        code = cli_interrupted(session, "nothing was saved");
    else if (status != LEAT_OK)
        code = cli_fail(session, &err);
    else if (cli_ranks_leads(ranks))
        code = save_predictions(session, predictions);
    leat_predictions_destroy(&predictions);
    return code;
}

static int predict_narrow(cli_session *session) {
    cli_narrow run = {0};
    int code = cli_narrow_predict(&run, session);
    if (code == CLI_SUCCESS)
        code = save(session, &(results){.tensors = run.outputs, .count = run.output_count, .narrow = &run});
    cli_narrow_free(&run);
    return code;
}

/* Checks the options that --weights-format excludes. */
static int check_format(const char *command, const cli_arguments *arguments, const cli_ranks *ranks) {
    const char *device = arguments->text[CLI_DEVICE];
    leat_weights_format format = LEAT_WEIGHTS_F32;
    leat_error err = {0};
    if (!arguments->text[CLI_WEIGHTS_FORMAT]) return CLI_SUCCESS;
    if (leat_weights_format_parse(&format, arguments->text[CLI_WEIGHTS_FORMAT], &err) != LEAT_OK) {
        cli_say("leat %s: --weights-format: %s\ntry: leat %s --help\n", command, err.message, command);
        return CLI_USAGE;
    }
    if (format == LEAT_WEIGHTS_F32) return CLI_SUCCESS;
    if (device && strcmp(device, "cpu") != 0) return cli_exclusive(command, "--weights-format", "--device");
    if (!ranks->dist) return CLI_SUCCESS;
    cli_say("leat %s: --weights-format predicts sample by sample in one process: start it without mpirun, or "
            "give "
            "--dist none\n",
            command);
    return CLI_USAGE;
}

int cli_predict(const cli_arguments *arguments) {
    cli_session session = {.command = "predict", .arguments = arguments};
    cli_ranks ranks = {0};
    int code = cli_feed_options(session.command, arguments, &session.feed_options);
    if (code == CLI_SUCCESS) code = cli_ranks_open(&ranks, session.command, arguments, NULL);
    if (code == CLI_SUCCESS) code = check_format(session.command, arguments, &ranks);
    if (code == CLI_SUCCESS) code = cli_load(&session, arguments->operands[0], CLI_FOR_PREDICTION);
    if (code == CLI_SUCCESS) code = cli_cut(&session);
    if (code == CLI_SUCCESS) code = cli_ranks_leads(&ranks) ? check_output(&session) : CLI_SUCCESS;
    session.reads_statistics = true;
    if (code == CLI_SUCCESS) code = cli_open_data(&session, &session.data, arguments->text[CLI_DATA]);
    if (code == CLI_SUCCESS)
        code = cli_narrow_wanted(arguments) ? predict_narrow(&session) : predict(&session, &ranks);
    cli_close(&session);
    return cli_ranks_close(&ranks, code);
}
