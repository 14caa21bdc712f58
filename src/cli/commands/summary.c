/* SPDX-License-Identifier: Apache-2.0 */
/* `leat summary`.  Room: cli. */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/options/parse.h"
#include "cli/run/json.h"
#include "cli/run/session.h"
#include "cli/run/surgery.h"
#include "cli/text/say.h"

static int write_plan(cli_session *session, char **text) {
    const cli_arguments *arguments = session->arguments;
    leat_plan_options options = leat_plan_options_default();
    leat_error err = {0};
    options.batch_size = cli_number(arguments, CLI_BATCH_SIZE, options.batch_size);
    options.unknown = cli_number(arguments, CLI_UNKNOWN, options.unknown);
    options.threads = (int)cli_number(arguments, CLI_THREADS, 0);
    options.train = arguments->text[CLI_TRAIN_STEP] != NULL;
    options.time = arguments->text[CLI_TIME] != NULL;
    options.json = arguments->text[CLI_JSON] != NULL;
    if (options.train) {
        int code = cli_compile(session);
        if (code != CLI_SUCCESS) return code;
    }
    if (leat_model_plan_summary(session->model, &options, text, &err) == LEAT_OK) return CLI_SUCCESS;
    return cli_fail(session, &err);
}

/* Returns the name of an option that has an effect only with --plan; NULL: none was given. */
static const char *option_without_plan(const cli_arguments *arguments) {
    static const cli_option_id plan_options[] = {
        CLI_BATCH_SIZE,    CLI_TRAIN_STEP, CLI_TIME,    CLI_LOSS,    CLI_OPTIMIZER,
        CLI_METRICS,       CLI_NO_COMPILE, CLI_UNKNOWN, CLI_THREADS, CLI_GRADIENT_CHECKPOINTING,
        CLI_DETERMINISTIC, CLI_NO_FOLD,    CLI_TUNE,    CLI_NO_TUNE, CLI_DEVICE,
        CLI_TF32};
    for (size_t i = 0; i < sizeof plan_options / sizeof *plan_options; ++i)
        if (arguments->text[plan_options[i]]) return cli_options[plan_options[i]].name;
    return NULL;
}

int cli_summary(const cli_arguments *arguments) {
    cli_session session = {.command = "summary", .arguments = arguments};
    leat_status (*write)(const leat_model *model, char **out, leat_error *err) =
        arguments->text[CLI_JSON] ? leat_model_summary_json : leat_model_summary;
    const char *useless_option = arguments->text[CLI_PLAN] ? NULL : option_without_plan(arguments);
    leat_error err = {0};
    char *text = NULL;
    if (useless_option) return cli_needs("summary", useless_option, "--plan");
    int code = cli_load(&session, arguments->operands[0],
                        arguments->text[CLI_TRAIN_STEP] ? CLI_FOR_TRAINING : CLI_FOR_PREDICTION);
    if (code == CLI_SUCCESS) code = cli_cut(&session);
    if (code == CLI_SUCCESS && arguments->text[CLI_PLAN])
        code = write_plan(&session, &text);
    else if (code == CLI_SUCCESS && write(session.model, &text, &err) != LEAT_OK)
        code = cli_fail(&session, &err);
    if (text && arguments->text[CLI_JSON])
        cli_json_text(stdout, text);
    else if (text)
        cli_say_text(stdout, text);
    leat_string_free(text);
    cli_close(&session);
    return code;
}
