/* SPDX-License-Identifier: Apache-2.0 */
/* `leat version`.  Room: cli. */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "leat/version.h"

int cli_version(const cli_arguments *arguments) {
    (void)arguments;
    printf("leat %s\n", leat_version());
    return CLI_SUCCESS;
}
