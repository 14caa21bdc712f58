/* SPDX-License-Identifier: Apache-2.0 */
/* `leat list`: the names that models and options such as --loss may use.  Room: cli. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/options/suggest.h"
#include "cli/run/json.h"
#include "cli/text/say.h"
#include "leat/model.h"

static const char *const kinds[] = {
#define KIND_NAME(id, name) [LEAT_NAMES_##id] = (name),
    CLI_KIND_LIST(KIND_NAME)
#undef KIND_NAME
};

enum { kind_count = sizeof kinds / sizeof *kinds };

static int unknown_kind(const char *word) {
    const char *suggestion = cli_nearest(word, kinds, kind_count);
    cli_say("leat list: unknown kind '%s'", word);
    if (suggestion) cli_say(": did you mean '%s'?", suggestion);
    fputs("\nexpected one of:", stderr);
    for (int k = 0; k < kind_count; ++k) cli_say(" %s", kinds[k]);
    fputc('\n', stderr);
    return CLI_USAGE;
}

static void print_text(int first, int end, bool names) {
    for (int k = first; k < end; ++k) {
        int count = leat_name_count((leat_name_kind)k);
        if (!names) printf("%-13s %3d\n", kinds[k], count);
        for (int i = 0; names && i < count; ++i) puts(leat_name_get((leat_name_kind)k, i));
    }
}

static void print_json(int first, int end) {
    for (int k = first; k < end; ++k) {
        int count = leat_name_count((leat_name_kind)k);
        printf("%s\"%s\": [", k == first ? "{" : ", ", kinds[k]);
        for (int i = 0; i < count; ++i) {
            if (i) fputs(", ", stdout);
            cli_json_string(stdout, leat_name_get((leat_name_kind)k, i));
        }
        putchar(']');
    }
    puts("}");
}

int cli_list(const cli_arguments *arguments) {
    int first = 0, end = kind_count;
    const char *word = arguments->operand_count > 0 ? arguments->operands[0] : NULL;
    if (word) {
        while (first < kind_count && strcmp(kinds[first], word) != 0) ++first;
        if (first == kind_count) return unknown_kind(word);
        end = first + 1;
    }
    if (arguments->text[CLI_JSON])
        print_json(first, end);
    else
        print_text(first, end, word != NULL);
    return CLI_SUCCESS;
}
