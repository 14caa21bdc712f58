/* SPDX-License-Identifier: Apache-2.0 */
/* The position of a fit, and the messages about a run that can be continued.  Room: cli. */
#include "cli/commands/interrupt.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/screen/screen.h"
#include "cli/options/parse.h"
#include "cli/run/session.h"
#include "cli/text/say.h"
#include "leat/checkpoint.h"

/* ---- The position ---- */

static leat_status epoch_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    cli_position *position = user;
    (void)logs, (void)err;
    position->epoch = index;
    position->finished = index;
    position->step = 0;
    position->steps = leat_training_params_get(training)->steps;
    return LEAT_OK;
}

static leat_status step_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                            leat_error *err) {
    cli_position *position = user;
    double loss = 0;
    (void)err;
    position->step = index + 1;
    /* Stop requests that came before the fit began were dropped, so ask again. */
    if (cli_signal_code()) leat_model_stop_training(leat_training_model(training));
    if (!position->stops_on_nan || !leat_logs_get(logs, "loss", &loss) || isfinite(loss)) return LEAT_OK;
    position->nan_step = index + 1;
    leat_training_stop(training, "the loss is not finite");
    return LEAT_OK;
}

/* Without an interrupt an epoch is finished even with fewer steps than expected, since bad batches may have been
 * skipped. */
static leat_status epoch_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    cli_position *position = user;
    (void)training, (void)logs, (void)err;
    if (position->step == position->steps || !cli_signal_code()) position->finished = index + 1;
    return LEAT_OK;
}

static leat_status save_state(void *user, leat_training *training, leat_state *state, leat_error *err) {
    const cli_position *position = user;
    const int64_t numbers[] = {position->epoch, position->finished, position->step, position->steps};
    (void)training;
    return leat_state_put(state, "position", numbers, sizeof numbers, err);
}

static leat_status load_state(void *user, leat_training *training, leat_state *state, leat_error *err) {
    cli_position *position = user;
    int64_t numbers[4] = {0};
    (void)training;
    leat_status status = leat_state_get(state, "position", numbers, sizeof numbers, err);
    position->epoch = numbers[0];
    position->finished = numbers[1];
    position->step = numbers[2];
    position->steps = numbers[3];
    return status;
}

leat_callback cli_position_callback(cli_position *position) {
    return (leat_callback){.size = sizeof(leat_callback),
                           .user = position,
                           .save_state = save_state,
                           .load_state = load_state,
                           .on_epoch_begin = epoch_begin,
                           .on_train_batch_end = step_end,
                           .on_epoch_end = epoch_end};
}

/* ---- The command that continues ---- */

static bool has_control(const char *word) {
    int columns = 0;
    for (size_t bytes; (bytes = leati_screen_character(word, &columns)) > 0; word += bytes)
        if (columns < 0) return true;
    return false;
}

/* Prints a word with control characters in the quotes $'...', in which a shell replaces \033 by the character. */
static void print_escaped(const char *word) {
    cli_say(" $'");
    for (; *word; ++word)
        if (*word == '\'' || *word == '\\')
            cli_say("\\%c", *word);
        else if (*word >= ' ' && *word < 0x7F)
            fputc(*word, stderr);
        else
            cli_say("\\%03o", (unsigned)(unsigned char)*word);
    fputc('\'', stderr);
}

/* Prints one word of a command line, quoted if a shell would change it. */
static void print_word(const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (*word && strspn(word, plain) == strlen(word)) {
        cli_say(" %s", word);
        return;
    }
    if (has_control(word)) {
        print_escaped(word);
        return;
    }
    cli_say(" '");
    for (; *word; ++word)
        if (*word == '\'')
            cli_say("'\\''");
        else
            fputc(*word, stderr);
    fputc('\'', stderr);
}

static void print_command(const cli_folder *folder) {
    cli_say("leat fit --resume");
    print_word(folder->name);
    fputc('\n', stderr);
}

/* Finds the newest checkpoint of the run; returns false if there is none. */
static bool find_checkpoint(const cli_folder *folder, leat_checkpoint_info *out) {
    char path[CLI_PATH_BYTES];
    cli_folder_path(path, folder, "checkpoints");
    return *folder->path && leat_checkpoint_find(path, out, sizeof *out, NULL) == LEAT_OK;
}

/* ---- The messages ---- */

static void print_position(const cli_position *position, int64_t epochs) {
    if (position->finished > position->epoch)
        cli_say("leat fit: interrupted after epoch %" PRId64 " of %" PRId64, position->finished, epochs);
    else
        cli_say("leat fit: interrupted in epoch %" PRId64 " of %" PRId64 ", after step %" PRId64
                " of %" PRId64,
                position->epoch + 1, epochs, position->step, position->steps);
}

void cli_print_interrupt(const cli_session *session, const cli_position *position, const cli_folder *folder,
                         bool saved) {
    leat_checkpoint_info info;
    int64_t epochs = cli_number(session->arguments, CLI_EPOCHS, 1);
    print_position(position, epochs);
    if (!*folder->path) {
        cli_say("; nothing was saved: give --out DIR to save the model\n");
        return;
    }
    bool found = find_checkpoint(folder, &info);
    if (found) cli_say("; the state after step %" PRId64 " of the run is saved", info.steps);
    cli_say("; %s/model.h5 %s\n", folder->name,
            saved ? "has the weights after that step" : "was not written");
    if (found && info.ended) return;
    cli_say("to continue: ");
    print_command(folder);
}

void cli_print_failure(const cli_folder *folder) {
    leat_checkpoint_info info;
    if (!find_checkpoint(folder, &info)) return;
    cli_say("the state after step %" PRId64 " of the run is saved; to continue, when the cause is gone: ",
            info.steps);
    print_command(folder);
}

int cli_print_nan(const cli_position *position, const cli_folder *folder) {
    leat_checkpoint_info info;
    cli_say(
        "leat fit: the loss is not finite after step %" PRId64 " of epoch %" PRId64
        ": training was stopped, and model.h5 was not written\n"
        "look at: NaN in the data (--check-finite names the batch), a learning rate that is too high "
        "(--optimizer), exploding gradients (clipnorm of the optimizer), a loss that does not fit the last "
        "activation\n",
        position->nan_step, position->epoch + 1);
    if (find_checkpoint(folder, &info))
        cli_say("the last checkpoint, after step %" PRId64 ", is '%s'\n", info.steps, info.path);
    return CLI_FAILURE;
}
