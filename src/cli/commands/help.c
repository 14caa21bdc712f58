/* SPDX-License-Identifier: Apache-2.0 */
/* `leat help`.  Room: cli. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/help/manual.h"
#include "cli/options/suggest.h"
#include "cli/text/say.h"
#include "leat/source.h"

int cli_help(const cli_arguments *arguments) {
    if (arguments->operand_count == 0) {
        cli_help_overview(stdout);
        return CLI_SUCCESS;
    }
    char topic[64];
    bool two = arguments->operand_count == 2;
    snprintf(topic, sizeof topic, "%s%s%s", arguments->operands[0], two ? " " : "",
             two ? arguments->operands[1] : "");
    const cli_command *command = cli_command_find(topic);
    if (strcmp(topic, "specs") == 0)
        fputs(leat_source_help(), stdout);
    else if (command)
        cli_help_command(stdout, command);
    else {
        const char *suggestion = cli_nearest_command(topic), *topics[] = {"specs", suggestion};
        suggestion = cli_nearest(topic, topics, suggestion ? 2 : 1);
        cli_say("leat help: unknown command or topic '%s'", topic);
        if (suggestion) cli_say(": did you mean '%s'?", suggestion);
        fputs("\ntry: leat help\n", stderr);
        return CLI_USAGE;
    }
    return CLI_SUCCESS;
}
