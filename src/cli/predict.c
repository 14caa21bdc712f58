/* SPDX-License-Identifier: Apache-2.0 */
/* `leat predict`.  Layer: cli. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/session.h"
#include "leat/npz.h"

static bool is_npz(const char *path) {
    size_t length = strlen(path);
    return length >= 4 && strcmp(path + length - 4, ".npz") == 0;
}

static bool is_npy(const char *path) {
    size_t length = strlen(path);
    return length >= 4 && strcmp(path + length - 4, ".npy") == 0;
}

/* What can be said before anything is computed. */
static int check_output(const cli_session *session) {
    const char *path = session->arguments->text[CLI_OUTPUT];
    int outputs = leat_model_output_count(session->model);
    if (is_npz(path) || (is_npy(path) && outputs == 1)) return CLI_SUCCESS;
    if (is_npy(path))
        fprintf(stderr, "leat predict: --output '%s': the model has %d outputs, which go into an .npz file\n",
                path, outputs);
    else
        fprintf(stderr, "leat predict: --output '%s': expected a name that ends in .npy or .npz\n", path);
    return CLI_USAGE;
}

static leat_status write_npz(const leat_model *model, const leat_predictions *predictions, const char *path,
                             leat_error *err) {
    int count = leat_predictions_count(predictions);
    const char **names = calloc((size_t)count + 1, sizeof *names);
    leat_tensor *tensors = calloc((size_t)count + 1, sizeof *tensors);
    leat_status status = LEAT_ENOMEM;
    if (names && tensors) {
        for (int i = 0; i < count; ++i) {
            names[i] = leat_model_output_name(model, i);
            tensors[i] = leat_predictions_get(predictions, i);
        }
        status = leat_npz_write(path, names, tensors, count, err);
    } else
        leat_error_set(err, status, "no memory for a list of %d outputs", count);
    free(names);
    free(tensors);
    return status;
}

static void print_json(const leat_model *model, const leat_predictions *predictions, const char *path) {
    fputs("{\"output\": ", stdout);
    cli_json_string(stdout, path);
    fputs(", \"shapes\": {", stdout);
    for (int i = 0; i < leat_predictions_count(predictions); ++i) {
        leat_tensor tensor = leat_predictions_get(predictions, i);
        if (i) fputs(", ", stdout);
        cli_json_string(stdout, leat_model_output_name(model, i));
        fputs(": [", stdout);
        for (int d = 0; d < tensor.rank; ++d) printf("%s%" PRId64, d ? ", " : "", tensor.shape[d]);
        putchar(']');
    }
    puts("}}");
}

static int save(const cli_session *session, const leat_predictions *predictions) {
    const char *path = session->arguments->text[CLI_OUTPUT];
    leat_error err = {0};
    leat_tensor first = leat_predictions_get(predictions, 0);
    leat_status status = is_npz(path) ? write_npz(session->model, predictions, path, &err)
                                      : leat_npy_write(path, &first, &err);
    if (status != LEAT_OK) return cli_fail(session, &err);
    if (session->arguments->text[CLI_JSON]) print_json(session->model, predictions, path);
    if (cli_number(session->arguments, CLI_VERBOSE, 1) > 0)
        fprintf(stderr, "saved %s: %" PRId64 " samples\n", path, first.shape[0]);
    return CLI_SUCCESS;
}

static int predict(cli_session *session) {
    leat_evaluate_options options = cli_evaluate_options(session->arguments);
    leat_predictions *predictions = NULL;
    leat_error err = {0};
    cli_catch_signals(session);
    leat_status status =
        leat_model_predict_generator(session->model, &session->data, &options, &predictions, &err);
    int code = cli_signal_code();
    if (code == 0) code = status == LEAT_OK ? save(session, predictions) : cli_fail(session, &err);
    leat_predictions_destroy(&predictions);
    return code;
}

int cli_predict(const cli_arguments *arguments) {
    cli_session session = {.command = "predict", .arguments = arguments};
    int code = cli_load(&session);
    if (code == CLI_SUCCESS) code = check_output(&session);
    if (code == CLI_SUCCESS) code = cli_open(&session, &session.data, CLI_DATA, false);
    if (code == CLI_SUCCESS) code = predict(&session);
    cli_close(&session);
    return code;
}
