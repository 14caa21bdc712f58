/* SPDX-License-Identifier: Apache-2.0 */
/* `leat summary`.  Layer: cli. */
#include <stdio.h>

#include "cli/session.h"

int cli_summary(const cli_arguments *arguments) {
    cli_session session = {.command = "summary", .arguments = arguments};
    leat_error err = {0};
    char *text = NULL;
    int code = cli_load(&session, arguments->operands[0]);
    if (code == CLI_SUCCESS && leat_model_summary(session.model, &text, &err) != LEAT_OK)
        code = cli_fail(&session, &err);
    if (text) fputs(text, stdout);
    leat_string_free(text);
    cli_close(&session);
    return code;
}
