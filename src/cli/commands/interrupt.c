/* SPDX-License-Identifier: Apache-2.0 */
/* The position of a fit, and the message after an interrupt.  Room: cli. */
#include "cli/commands/interrupt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/screen/screen.h"
#include "cli/options/parse.h"
#include "cli/run/session.h"
#include "cli/text/say.h"

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
    (void)logs, (void)err;
    ((cli_position *)user)->step = index + 1;
    /* Stop requests that came before the fit began were dropped, so ask again. */
    if (cli_signal_code()) leat_training_stop(training, "a signal came");
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

leat_callback cli_position_callback(cli_position *position) {
    return (leat_callback){.size = sizeof(leat_callback),
                           .user = position,
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
    fputs(" $'", stderr);
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
    fputs(" '", stderr);
    for (; *word; ++word)
        if (*word == '\'')
            fputs("'\\''", stderr);
        else
            fputc(*word, stderr);
    fputc('\'', stderr);
}

/* Returns true for options that the new command must not repeat: model.h5 contains them, or the value has changed. */
static bool must_not_repeat(cli_option_id id) {
    return id == CLI_OPTIMIZER || id == CLI_LOSS || id == CLI_METRICS || id == CLI_DTYPE_POLICY ||
           id == CLI_INITIAL_EPOCH;
}

static void print_command(const cli_session *session, int64_t epochs_done) {
    const cli_arguments *a = session->arguments;
    const char *folder = a->text[CLI_OUT];
    char path[4200];
    snprintf(path, sizeof path, "%s%s/model.h5", folder[0] == '-' ? "./" : "", folder);
    print_word(a->program);
    fputs(" fit", stderr);
    print_word(path);
    if (epochs_done > 0) cli_say(" --initial-epoch %" PRId64, epochs_done);
    for (int id = 0; id < CLI_OPTION_COUNT; ++id) {
        if (!a->text[id] || must_not_repeat((cli_option_id)id)) continue;
        cli_say(" %s", cli_options[id].name);
        if (cli_options[id].value != CLI_FLAG) print_word(a->text[id]);
    }
    fputc('\n', stderr);
}

/* ---- The message ---- */

static void print_position(const cli_position *position, int64_t epochs) {
    if (position->finished > position->epoch)
        cli_say("leat fit: interrupted after epoch %" PRId64 " of %" PRId64, position->finished, epochs);
    else
        cli_say("leat fit: interrupted in epoch %" PRId64 " of %" PRId64 ", after step %" PRId64
                " of %" PRId64,
                position->epoch + 1, epochs, position->step, position->steps);
}

void cli_print_interrupt(const cli_session *session, const cli_position *position, const char *folder,
                         bool saved) {
    int64_t epochs = cli_number(session->arguments, CLI_EPOCHS, 1);
    print_position(position, epochs);
    if (!folder) {
        fputs("; nothing was saved: give --out DIR to save the model\n", stderr);
        return;
    }
    if (!saved) {
        cli_say("; %s/model.h5 was not written\n", folder);
        return;
    }
    cli_say("; %s/model.h5 contains the weights and the optimizer's state after that step\n", folder);
    if (position->finished >= epochs) return;
    cli_say("to continue with epoch %" PRId64 "%s:", position->finished + 1,
            position->finished == position->epoch ? ", from its first step" : "");
    print_command(session, position->finished);
}
