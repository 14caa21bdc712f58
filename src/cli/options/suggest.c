/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions for misspelt names.  Room: cli. */
#include "cli/options/suggest.h"

#include <stdio.h>
#include <string.h>

#include "base/names/nearest.h"

const char *cli_nearest(const char *word, const char *const *names, int count) {
    const char *nearest = leati_nearest(word, names, (size_t)count);
    if (nearest || strlen(word) <= 2) return nearest;
    int matches = 0;
    for (int i = 0; i < count; ++i)
        if (strncmp(word, names[i], strlen(word)) == 0 && matches++ == 0) nearest = names[i];
    return matches == 1 ? nearest : NULL;
}

/* Names that other programs use for a command. */
static const char *const other_names[][2] = {
    {"train", "fit"}, {"test", "evaluate"}, {"eval", "evaluate"}, {"plot", "report"}, {"info", "summary"}};

/* Compares `word` with the last words of commands' names and returns the full name of the nearest command; NULL:
 * none.  any_group: looks at all commands; otherwise at the members of `group` (NULL: the commands of no group). */
static const char *nearest_member(const char *word, const cli_command *group, bool any_group) {
    const char *names[32] = {0}, *last_names[32] = {0};
    int count = 0;
    for (int i = 0; i < cli_command_count && count < 32; ++i) {
        if (!any_group && !cli_command_is_in(&cli_commands[i], group)) continue;
        names[count] = cli_commands[i].name;
        last_names[count++] = cli_command_last_name(&cli_commands[i]);
    }
    const char *last = cli_nearest(word, last_names, count);
    for (int i = 0; last && i < count; ++i)
        if (last == last_names[i]) return names[i];
    return NULL;
}

const char *cli_nearest_command(const char *word) {
    char group_name[32];
    const char *blank = strchr(word, ' ');
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; ++i)
        if (strcmp(word, other_names[i][0]) == 0) return other_names[i][1];
    snprintf(group_name, sizeof group_name, "%.*s", blank ? (int)(blank - word) : 0, word);
    const cli_command *group = blank ? cli_command_find(group_name) : NULL;
    if (group) return nearest_member(blank + 1, group, false);
    const char *suggestion = nearest_member(word, NULL, false);
    return suggestion ? suggestion : nearest_member(word, NULL, true);
}
