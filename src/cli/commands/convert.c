/* SPDX-License-Identifier: Apache-2.0 */
/* `leat convert`: the table of file formats, and the conversion from one into another.  Room: cli. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/options/parse.h"
#include "cli/run/session.h"
#include "cli/run/surgery.h"
#include "cli/text/say.h"
#include "leat/file.h"

/* ---- Formats ---- */

/* A file format.  A new format is a line of the table `formats`. */
typedef struct format {
    const char *suffix;
    bool has_layers, has_weights; /* what a file has, and the model must have to be written */
    leat_status (*write)(const leat_model *model, const char *path, leat_error *err);
} format;

static leat_status write_model(const leat_model *model, const char *path, leat_error *err) {
    return leat_model_save(model, path, true, err);
}

static leat_status write_architecture(const leat_model *model, const char *path, leat_error *err) {
    char *text = NULL;
    leat_status status = leat_model_to_json(model, &text, err);
    if (status == LEAT_OK) status = leat_file_replace(path, text, strlen(text), err);
    leat_string_free(text);
    return status;
}

/* A suffix that ends in another one comes before it. */
static const format formats[] = {
    {".weights.h5", false, true, leat_model_save_weights},
    {".h5", true, true, write_model},
    {".keras", true, true, write_model},
    {".json", true, false, write_architecture},
    {".onnx", true, true, write_model},
    {".safetensors", false, true, leat_model_save_weights},
};

enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

/* Returns the format of a path; prints a message and returns NULL for another suffix. */
static const format *format_of(const char *path) {
    char known[128] = "";
    for (int i = 0; i < FORMAT_COUNT; ++i) {
        if (ends_with(path, formats[i].suffix)) return &formats[i];
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : ", ", formats[i].suffix);
    }
    cli_say("leat convert: '%s': expected a file name that ends in one of %s\n", path, known);
    return NULL;
}

/* ---- Conversion ---- */

/* Prints a message and returns CLI_USAGE if `in` cannot be read, or lacks what `out` has. */
static int check_formats(const char *in_path, const format *in, const format *out, const char *model) {
    if (!in->has_weights && out->has_weights) {
        cli_say("leat convert: '%s' has no weights, which a %s file has; train the model with leat fit, or "
                "convert a file that has weights\n",
                in_path, out->suffix);
        return CLI_USAGE;
    }
    if (!in->has_layers && !model) {
        cli_say("leat convert: '%s' has weights only; name the model that they belong to with --model\n",
                in_path);
        return CLI_USAGE;
    }
    return CLI_SUCCESS;
}

static int convert(cli_session *session, const char *in, const format *out, const char *out_path) {
    const char *model = session->arguments->text[CLI_ARCHITECTURE];
    leat_error err = {0};
    const bool compiles = out->has_weights && !cli_is_cut(session);
    int code = cli_load(session, model ? model : in, compiles ? CLI_FOR_CONVERSION : CLI_FOR_PREDICTION);
    if (code != CLI_SUCCESS) return code;
    leat_status status = model ? leat_model_load_weights(session->model, in, false, &err) : LEAT_OK;
    if (status != LEAT_OK) return cli_fail(session, &err);
    code = cli_cut(session);
    if (code != CLI_SUCCESS) return code;
    status = out->write(session->model, out_path, &err);
    return status == LEAT_OK ? CLI_SUCCESS : cli_fail(session, &err);
}

int cli_convert(const cli_arguments *arguments) {
    cli_session session = {.command = "convert", .arguments = arguments};
    const char *in_path = arguments->operands[0], *out_path = arguments->operands[1];
    const format *in = format_of(in_path), *out = in ? format_of(out_path) : NULL;
    if (!out) return CLI_USAGE;
    int code = check_formats(in_path, in, out, arguments->text[CLI_ARCHITECTURE]);
    if (code != CLI_SUCCESS) return code;
    code = convert(&session, in_path, out, out_path);
    cli_close(&session);
    return code;
}
