/* SPDX-License-Identifier: Apache-2.0 */
/* The options that change the model of a command before the model is used.  Room: cli. */
#include "cli/run/surgery.h"

#include <stdlib.h>
#include <string.h>

#include "cli/text/say.h"

/* ---- Lists ---- */

/* The parts of a text between commas. */
typedef struct list {
    char *text; /* copy of the text, in which the commas are replaced by NULs */
    const char **items;
    int count;
} list;

static void list_free(list *l) {
    free(l->text);
    free(l->items);
}

/* Prints a message and returns CLI_USAGE if a part is empty. */
static int list_read(list *out, const cli_session *session, cli_option_id id) {
    const char *text = session->arguments->text[id];
    *out = (list){0};
    if (!text) return CLI_SUCCESS;
    out->text = malloc(strlen(text) + 1);
    out->items = calloc(strlen(text) + 1, sizeof *out->items);
    if (!out->text || !out->items) {
        cli_say("leat %s: no memory for %s\n", session->command, cli_options[id].name);
        return CLI_FAILURE;
    }
    memcpy(out->text, text, strlen(text) + 1);
    for (char *at = out->text, *comma = at; comma; at = comma + 1) {
        comma = strchr(at, ',');
        if (comma) *comma = '\0';
        out->items[out->count++] = at;
        if (*at) continue;
        cli_say("leat %s: %s '%.200s': expected names of layers with commas between them\n", session->command,
                cli_options[id].name, text);
        return CLI_USAGE;
    }
    return CLI_SUCCESS;
}

/* ---- Models that begin or end at inner layers ---- */

bool cli_is_cut(const cli_session *session) {
    const char *const *text = session->arguments->text;
    return text[CLI_INPUT_LAYER] || text[CLI_OUTPUT_LAYER];
}

static int replace_model(cli_session *session, const list *inputs, const list *outputs) {
    leat_model *cut = NULL;
    leat_error err = {0};
    leat_status status = leat_model_cut(&cut, session->model, inputs->items, inputs->count, outputs->items,
                                        outputs->count, &err);
    if (status != LEAT_OK) return cli_fail(session, &err);
    leat_model_destroy(&session->model);
    session->model = cut;
    return cli_apply_settings(session);
}

int cli_cut(cli_session *session) {
    list inputs = {0}, outputs = {0};
    if (!cli_is_cut(session)) return CLI_SUCCESS;
    int code = list_read(&inputs, session, CLI_INPUT_LAYER);
    if (code == CLI_SUCCESS) code = list_read(&outputs, session, CLI_OUTPUT_LAYER);
    if (code == CLI_SUCCESS) code = replace_model(session, &inputs, &outputs);
    list_free(&inputs);
    list_free(&outputs);
    return code;
}

/* ---- Freezing ---- */

static int set_trainable(cli_session *session, cli_option_id id, bool trainable) {
    list patterns = {0};
    leat_error err = {0};
    int code = list_read(&patterns, session, id);
    for (int i = 0; code == CLI_SUCCESS && i < patterns.count; ++i)
        if (leat_model_set_trainable_matching(session->model, patterns.items[i], trainable, NULL, &err) !=
            LEAT_OK) {
            cli_say("leat %s: %s: %s\n", session->command, cli_options[id].name, err.message);
            code = CLI_FAILURE;
        }
    list_free(&patterns);
    return code;
}

int cli_freeze(cli_session *session) {
    int code = set_trainable(session, CLI_FREEZE, false);
    return code == CLI_SUCCESS ? set_trainable(session, CLI_UNFREEZE, true) : code;
}
