/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of the report's page.  Room: cli. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "cli/report/page.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/options/table.h"
#include "cli/report/check.h"
#include "cli/run/files.h"
#include "cli/text/say.h"
#include "leat/file.h"
#include "leat/version.h"

/* The place of the numbers in the template. */
static const char marker[] = "@LEAT_RUN@";

/* ---- Reading ---- */

/* Returns the file as a string for free(); NULL with errno on failure.  A NUL in the file is replaced by \1, which
 * JSON does not allow either, so that the check fails there. */
static char *read_file(const char *path) {
    size_t bytes = 0;
    char *text = cli_read_file(path, &bytes);
    for (size_t i = 0; text && i < bytes; ++i)
        if (!text[i]) text[i] = '\1';
    return text;
}

static int check(const char *command, const char *path, const char *text) {
    const char *at = text, *expected = cli_report_check(text, &at);
    if (!expected) return CLI_SUCCESS;
    int line = 1, column = 1;
    for (const char *c = text; c < at; ++c) {
        line += *c == '\n';
        column = *c == '\n' ? 1 : column + 1;
    }
    cli_say("leat %s: '%s' is damaged: expected %s in line %d, column %d%s\n", command, path, expected, line,
            column, *at ? "" : ", where it ends");
    return CLI_FAILURE;
}

/* ---- Writing ---- */

/* Writes JSON inside a script element.  Characters that could end the element or begin a comment become escape
 * sequences, which is correct since JSON has these characters in strings only. */
static void put_json(FILE *out, const char *json) {
    for (; *json; ++json)
        if (strchr("<>&", *json))
            fprintf(out, "\\u%04x", (unsigned)*json);
        else
            fputc(*json, out);
}

static void put_member(FILE *out, const char *key, const char *text) {
    fprintf(out, "\"%s\": \"", key);
    for (; *text; ++text)
        if (strchr("<>&\"\\", *text) || (unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            fputc(*text, out);
    fputs("\", ", out);
}

/* Writes the run's name: the name of the folder that contains history.json; otherwise the name of the file. */
static void run_name(char *out, size_t bytes, const char *path) {
    char *full_path = realpath(path, NULL), *slash = full_path ? strrchr(full_path, '/') : NULL;
    if (slash && slash > full_path && strcmp(slash, "/history.json") == 0) {
        *slash = '\0';
        slash = strrchr(full_path, '/');
    }
    snprintf(out, bytes, "%s", slash ? slash + 1 : path);
    free(full_path);
}

/* Returns run.json beside the history, the record of the command that started the run, as a string for free(); NULL if
 * there is none, or if it is damaged, with a message. */
static char *read_record(const cli_report_page *page) {
    char path[PATH_MAX];
    const char *slash = strrchr(page->history, '/');
    int folder = slash ? (int)(slash - page->history) + 1 : 0;
    if (snprintf(path, sizeof path, "%.*srun.json", folder, page->history) >= PATH_MAX) return NULL;
    char *record = read_file(path);
    if (!record || check(page->command, path, record) == CLI_SUCCESS) return record;
    cli_say("leat %s: the report is written without '%s'\n", page->command, path);
    free(record);
    return NULL;
}

static void put_run(FILE *out, const cli_report_page *page, const char *numbers) {
    char name[NAME_MAX + 1], date[40] = "";
    struct stat info;
    struct tm parts;
    run_name(name, sizeof name, page->history);
    if (stat(page->history, &info) == 0 && gmtime_r(&info.st_mtime, &parts))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &parts);
    fputc('{', out);
    put_member(out, "name", name);
    put_member(out, "date", date);
    put_member(out, "version", leat_version());
    fprintf(out, "\"reload_s\": %d, \"died\": %s, ", page->reload_s, page->died ? "true" : "false");
    char *record = read_record(page);
    if (record) {
        fputs("\"record\": ", out);
        put_json(out, record);
        fputs(", ", out);
    }
    free(record);
    fputs("\"run\": ", out);
    put_json(out, numbers);
    fputc('}', out);
}

static void put_page(FILE *out, const cli_report_page *page, const char *numbers) {
    const char *insertion = strstr(cli_report_template, marker);
    fwrite(cli_report_template, 1, (size_t)(insertion - cli_report_template), out);
    put_run(out, page, numbers);
    fputs(insertion + sizeof marker - 1, out);
}

/* Returns the page as a string for free(); NULL: no memory. */
static char *make_page(const cli_report_page *page, const char *numbers, size_t *bytes) {
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);
    if (!out) return NULL;
    put_page(out, page, numbers);
    bool failed = ferror(out);
    if (fclose(out) == 0 && !failed) return text;
    free(text);
    return NULL;
}

int cli_report_write_page(const cli_report_page *page, const char *numbers) {
    leat_error err = {0};
    size_t bytes = 0;
    char *text = make_page(page, numbers, &bytes);
    leat_status status =
        text ? leat_file_replace(page->output, text, bytes, &err)
             : leat_error_set(&err, LEAT_ENOMEM, "no memory for the report '%s'", page->output);
    free(text);
    if (status == LEAT_OK) return CLI_SUCCESS;
    cli_say("leat %s: %s\n", page->command, err.message);
    return CLI_FAILURE;
}

char *cli_report_read(const cli_report_page *page) {
    char *text = read_file(page->history);
    if (!text)
        cli_say("leat %s: cannot read '%s': %s\n", page->command, page->history, strerror(errno));
    else if (check(page->command, page->history, text) != CLI_SUCCESS) {
        free(text);
        text = NULL;
    }
    return text;
}

int cli_report_write(const char *command, const char *history, const char *output) {
    cli_report_page page = {.command = command, .history = history, .output = output};
    char *numbers = cli_report_read(&page);
    int code = numbers ? cli_report_write_page(&page, numbers) : CLI_FAILURE;
    free(numbers);
    return code;
}
