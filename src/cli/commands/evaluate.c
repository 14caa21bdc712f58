/* SPDX-License-Identifier: Apache-2.0 */
/* `leat evaluate`.  Room: cli. */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/options/feed_options.h"
#include "cli/run/json.h"
#include "cli/run/ranks.h"
#include "cli/run/session.h"
#include "cli/text/say.h"

static void print_text(const leat_logs *logs) {
    for (int i = 0; i < logs->count; ++i)
        cli_say_to(stdout, "%s%s: %.4f", i ? " - " : "", logs->items[i].name, logs->items[i].value);
    putchar('\n');
}

static void print_json(const leat_logs *logs) {
    putchar('{');
    for (int i = 0; i < logs->count; ++i) {
        if (i) fputs(", ", stdout);
        cli_json_string(stdout, logs->items[i].name);
        fputs(": ", stdout);
        cli_json_number(stdout, logs->items[i].value);
    }
    puts("}");
}

static int evaluate(cli_session *session, leat_dist *dist) {
    leat_evaluate_options options = cli_evaluate_options(session);
    leat_error err = {0};
    leat_logs logs = {0};
    options.dist = dist;
    cli_catch_signals(session);
    leat_status status = leat_model_evaluate_generator(session->model, &session->data, &options, &logs, &err);
    if (cli_signal_code()) return cli_interrupted(session, "there is no result");
    if (status != LEAT_OK) return cli_fail(session, &err);
    if (session->arguments->text[CLI_JSON])
        print_json(&logs);
    else
        print_text(&logs);
    return CLI_SUCCESS;
}

int cli_evaluate(const cli_arguments *arguments) {
    cli_session session = {.command = "evaluate", .arguments = arguments};
    cli_ranks ranks = {0};
    int code = cli_feed_options(session.command, arguments, &session.feed_options);
    if (code == CLI_SUCCESS) code = cli_ranks_open(&ranks, session.command, arguments, NULL);
    if (code == CLI_SUCCESS) code = cli_load(&session, arguments->operands[0], CLI_FOR_EVALUATION);
    if (code == CLI_SUCCESS) code = cli_compile(&session);
    session.reads_statistics = true;
    if (code == CLI_SUCCESS) code = cli_open_data(&session, &session.data, arguments->text[CLI_DATA]);
    if (code == CLI_SUCCESS) code = evaluate(&session, ranks.dist);
    cli_close(&session);
    return cli_ranks_close(&ranks, code);
}
