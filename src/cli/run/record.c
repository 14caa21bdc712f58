/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads the record of a run.  Room: cli. */
#include "cli/run/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/options/parse.h"
#include "cli/run/files.h"
#include "cli/text/say.h"
#include "leat/model.h"
#include "leat/source.h"
#include "leat/version.h"

enum { format_version = 1, path_bytes = 4096 };

/* Options that do not change the result of a run, so that they may be given beside --resume. */
static const cli_option_id may_change[] = {
    CLI_EPOCHS,
    CLI_WORKERS,
    CLI_MULTIPROCESSING,
    CLI_MAX_QUEUE_SIZE,
    CLI_FEED_MEMORY,
    CLI_BATCH_TIMEOUT,
    CLI_MAX_DEATHS,
    CLI_THREADS,
    CLI_CHECKPOINT_EVERY,
    CLI_KEEP_CHECKPOINTS,
    CLI_VERBOSE,
    CLI_JSON,
    CLI_DIST,
    CLI_DIST_TIMEOUT,
};

/* Options that say what to do with the folder now: they are not recorded. */
static bool is_of_this_call(cli_option_id id) {
    return id == CLI_OUT || id == CLI_RESUME || id == CLI_OVERWRITE || id == CLI_DATA_CHANGED;
}

static int no_memory(void) {
    cli_say("leat fit: no memory for run.json\n");
    return CLI_FAILURE;
}

/* ---- Writing ---- */

/* JSON has UTF-8 only.  In a SPEC another byte, as in an old file name, becomes %XX, which means the same. */
static json_t *option_json(cli_option_id id, const char *text) {
    json_t *value = cli_options[id].value == CLI_FLAG ? json_true() : json_string(text);
    if (value || cli_options[id].value != CLI_SPEC) return value;
    char *encoded = malloc(3 * strlen(text) + 1), *to = encoded;
    if (!encoded) return NULL;
    for (const unsigned char *from = (const unsigned char *)text; *from; ++from)
        to += *from < 0x80 ? snprintf(to, 2, "%c", *from) : snprintf(to, 4, "%%%02X", *from);
    value = json_string(encoded);
    free(encoded);
    return value;
}

static int add_options(json_t *record, const cli_arguments *arguments) {
    json_t *options = json_object();
    json_object_set_new(record, "options", options);
    for (int id = 0; options && id < CLI_OPTION_COUNT; ++id) {
        if (!arguments->text[id] || is_of_this_call((cli_option_id)id)) continue;
        json_t *value = option_json((cli_option_id)id, arguments->text[id]);
        if (!value) {
            cli_say(
                "leat fit: %s '%s' cannot be recorded in run.json, since it is not UTF-8: rename the file\n",
                cli_options[id].name, arguments->text[id]);
            return CLI_USAGE;
        }
        json_object_set_new(options, cli_options[id].name, value);
    }
    return options ? CLI_SUCCESS : no_memory();
}

/* Adds the fingerprint of the files that a SPEC names. */
static int add_files(json_t *files, const char *key, const char *spec) {
    leat_error err = {0};
    char *text = NULL;
    if (!spec) return CLI_SUCCESS;
    if (leat_source_fingerprint(spec, &text, &err) != LEAT_OK) {
        cli_say("leat fit: %s\n", err.message);
        return CLI_FAILURE;
    }
    json_t *value = json_loads(text, 0, NULL);
    leat_string_free(text);
    return json_object_set_new(files, key, value) == 0 ? CLI_SUCCESS : no_memory();
}

static json_t *time_json(void) {
    char text[40] = "";
    struct tm parts;
    time_t now = time(NULL);
    if (gmtime_r(&now, &parts)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_string(text);
}

/* Adds the fingerprints of the data. */
static int add_data(json_t *record, const cli_arguments *arguments) {
    json_t *files = json_object();
    if (json_object_set_new(record, "files", files) != 0) return no_memory();
    int code = add_files(files, "train", arguments->text[CLI_TRAIN]);
    return code == CLI_SUCCESS ? add_files(files, "validation", arguments->text[CLI_VALIDATION]) : code;
}

/* Adds what the record of a run that goes on keeps, and what a new run's record begins with.  Changed data that was
 * accepted once is not asked about again. */
static int add_origin(json_t *record, const cli_arguments *arguments, const char *start,
                      const cli_record *before) {
    char directory[path_bytes];
    static const char *const kept[] = {"started", "directory", "model", "start", "files"};
    for (size_t i = 0; before && i < sizeof kept / sizeof *kept; ++i)
        json_object_set(record, kept[i], json_object_get(before->json, kept[i]));
    if (before) return arguments->text[CLI_DATA_CHANGED] ? add_data(record, arguments) : CLI_SUCCESS;
    if (!getcwd(directory, sizeof directory)) {
        cli_say("leat fit: cannot find the working directory: %s\n", strerror(errno));
        return CLI_FAILURE;
    }
    json_t *model = json_string(arguments->operands[0]);
    json_object_set_new(record, "started", time_json());
    json_object_set_new(record, "directory", json_string(directory));
    json_object_set_new(record, "model", model ? model : json_string(start));
    json_object_set_new(record, "start", json_string(start));
    return add_data(record, arguments);
}

static int write_json(const char *folder, const json_t *record) {
    char path[path_bytes];
    leat_error err = {0};
    char *text = json_dumps(record, JSON_INDENT(2));
    if (!text) return no_memory();
    snprintf(path, sizeof path, "%s/run.json", folder);
    leat_status status = cli_replace_text(path, text, &err);
    free(text);
    if (status == LEAT_OK) return CLI_SUCCESS;
    cli_say("leat fit: %s\n", err.message);
    return CLI_FAILURE;
}

int cli_record_write(const char *folder, const cli_arguments *arguments, const char *start,
                     const cli_record *before) {
    json_t *record = json_pack("{s:i, s:s}", "format", format_version, "leat", leat_version());
    if (!record) return no_memory();
    int code = add_origin(record, arguments, start, before);
    if (code == CLI_SUCCESS) code = add_options(record, arguments);
    if (code == CLI_SUCCESS) code = write_json(folder, record);
    json_decref(record);
    return code;
}

/* ---- Reading ---- */

static int damaged(const char *path, const char *why) {
    cli_say("leat fit: '%s' is not the record of a run: %s\n", path, why);
    return CLI_FAILURE;
}

/* Makes the words of a command line from the recorded options: --name or --name=value. */
static bool make_words(cli_record *record) {
    json_t *options = json_object_get(record->json, "options"), *value = NULL;
    const char *name = NULL;
    size_t count = 0;
    record->words = calloc(json_object_size(options) + 2, sizeof *record->words);
    if (!json_is_object(options) || !record->words) return false;
    json_object_foreach(options, name, value) {
        const char *text = json_string_value(value);
        size_t bytes = strlen(name) + (text ? strlen(text) : 0) + 2;
        char *word = malloc(bytes);
        if (!word) return false;
        snprintf(word, bytes, "%s%s%s", name, text ? "=" : "", text ? text : "");
        record->words[count++] = word;
    }
    return true;
}

static int parse(cli_record *record, const char *path) {
    int count = 0;
    record->directory = json_string_value(json_object_get(record->json, "directory"));
    record->start = json_string_value(json_object_get(record->json, "start"));
    if (!record->directory || !record->start || strchr(record->start, '/'))
        return damaged(path, "expected 'directory' and 'start'");
    if (json_integer_value(json_object_get(record->json, "format")) != format_version)
        return damaged(path, "expected 'format' 1: it was written by a later version of leat");
    if (!make_words(record)) return damaged(path, "expected 'options'");
    while (record->words[count]) ++count;
    return cli_parse_recorded(cli_command_find("fit"), count, record->words, &record->arguments);
}

int cli_record_read(cli_record *out, const char *folder) {
    char path[path_bytes];
    json_error_t where;
    *out = (cli_record){0};
    snprintf(path, sizeof path, "%s/run.json", folder);
    if (access(path, F_OK) != 0) {
        cli_say(
            "leat fit: --resume '%s': %s: expected the folder of a run that `leat fit --out` has started\n",
            folder, errno == ENOENT ? "there is no run.json" : strerror(errno));
        return CLI_FAILURE;
    }
    out->json = json_load_file(path, 0, &where);
    int code = out->json ? parse(out, path) : damaged(path, where.text);
    if (code != CLI_SUCCESS) cli_record_free(out);
    return code;
}

void cli_record_free(cli_record *record) {
    for (char **word = record->words; word && *word; ++word) free(*word);
    free(record->words);
    json_decref(record->json);
    *record = (cli_record){0};
}

/* ---- A run that goes on ---- */

static int check_files(const cli_record *record, const char *key, const char *spec) {
    leat_error err = {0};
    char *text = json_dumps(json_object_get(json_object_get(record->json, "files"), key), JSON_COMPACT);
    if (!text) return CLI_SUCCESS;
    leat_status status = leat_source_check_fingerprint(spec, text, &err);
    free(text);
    if (status == LEAT_OK) return CLI_SUCCESS;
    cli_say("leat fit: the data is not that with which the run was started: %s\nto continue with it all the "
            "same, add --data-changed\n",
            err.message);
    return CLI_FAILURE;
}

int cli_record_check_data(const cli_record *record) {
    const char *const *text = record->arguments.text;
    int code = check_files(record, "train", text[CLI_TRAIN]);
    if (code != CLI_SUCCESS || !text[CLI_VALIDATION]) return code;
    return check_files(record, "validation", text[CLI_VALIDATION]);
}

static bool is_changeable(cli_option_id id) {
    for (size_t i = 0; i < sizeof may_change / sizeof *may_change; ++i)
        if (may_change[i] == id) return true;
    return is_of_this_call(id);
}

static int refuse(cli_option_id id, const char *given, const char *recorded) {
    const char *name = cli_options[id].name;
    cli_say("leat fit: %s%s%s would change the result of the run, which was started %s %s%s%s: leave it out, "
            "or start another run\n",
            name, *given ? " " : "", given, recorded ? "with" : "without", name,
            recorded && *recorded ? " " : "", recorded ? recorded : "");
    return CLI_USAGE;
}

static void take(cli_arguments *out, const cli_arguments *given, cli_option_id id) {
    out->text[id] = given->text[id];
    out->number[id] = given->number[id];
}

int cli_record_merge(const cli_record *record, const cli_arguments *given, cli_arguments *out) {
    *out = record->arguments;
    out->program = given->program;
    for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
        cli_option_id id = (cli_option_id)i;
        const char *recorded = record->arguments.text[id];
        if (!given->text[id] || (recorded && strcmp(recorded, given->text[id]) == 0)) continue;
        if (!is_changeable(id)) return refuse(id, given->text[id], recorded);
        take(out, given, id);
    }
    if (given->text[CLI_WORKERS]) take(out, given, CLI_MULTIPROCESSING);
    if (given->text[CLI_MAX_QUEUE_SIZE]) take(out, given, CLI_FEED_MEMORY);
    if (given->text[CLI_FEED_MEMORY]) take(out, given, CLI_MAX_QUEUE_SIZE);
    return CLI_SUCCESS;
}
