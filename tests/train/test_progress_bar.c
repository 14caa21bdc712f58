/* SPDX-License-Identifier: Apache-2.0 */
/* The progress bar on a terminal: a pseudo-terminal of several widths receives it, and a small emulator counts the
 * columns of each line. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/screen/screen.h"
#include "leat/log.h"
#include "support/terminal.h"
#include "train/hooks/training.h"
#include "train/support.h"

/* ---- a fit of which only the progress bar is real ---- */

typedef struct fake_fit {
    leat_training training;
    leat_callback bar;
    leat_logs logs;
    terminal terminal;
} fake_fit;

static fake_fit *make_fit(int columns, int64_t steps, const char *const *names, int count) {
    leat_error err = {0};
    fake_fit *fit = calloc(1, sizeof *fit);
    assert_non_null(fit);
    fit->training.params =
        (leat_training_params){.epochs = 10, .steps = steps, .metric_count = count, .metrics = names};
    for (int i = 0; i < count; ++i) leat_logs_set(&fit->logs, names[i], 0.1234 + i);
    terminal_open(&fit->terminal, columns);
    expect_ok(leat_progbar_logger_create(&fit->bar, sizeof fit->bar, 1, &err), &err);
    return fit;
}

static void destroy_fit(fake_fit *fit) {
    leat_callback_destroy(&fit->bar);
    terminal_close(&fit->terminal);
    free(fit);
}

/* Fails the test with a message on the real standard error. */
static void tell(fake_fit *fit, const char *format, ...) LEAT_PRINTF(2, 3);
static void tell(fake_fit *fit, const char *format, ...) {
    static char message[2 * terminal_line_bytes];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    destroy_fit(fit);
    fail_msg("%s", message);
}

static void begin(fake_fit *fit) {
    leat_error err = {0};
    expect_ok(fit->bar.on_epoch_begin(fit->bar.user, &fit->training, 0, &fit->logs, &err), &err);
    terminal_receive(&fit->terminal);
    fit->terminal.widest = 0;
}

/* The first step after begin() is always drawn. */
static void step(fake_fit *fit, int64_t index) {
    leat_error err = {0};
    expect_ok(fit->bar.on_train_batch_end(fit->bar.user, &fit->training, index, &fit->logs, &err), &err);
    terminal_receive(&fit->terminal);
}

static void end(fake_fit *fit) {
    leat_error err = {0};
    expect_ok(fit->bar.on_epoch_end(fit->bar.user, &fit->training, 0, &fit->logs, &err), &err);
    terminal_receive(&fit->terminal);
}

static void expect_narrow(fake_fit *fit, int columns) {
    const terminal *t = &fit->terminal;
    if (t->widest >= columns) tell(fit, "%d columns on a terminal of %d: %s", t->widest, columns, t->line);
}

static const char *const names[] = {"loss", "accuracy", "top_k_categorical_accuracy", "val_loss",
                                    "val_accuracy"};
static const int widths[] = {40, 60, 80, 120};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void no_redraw_is_as_wide_as_the_terminal(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(widths); ++i)
        for (int count = 1; count <= (int)COUNT(names); ++count) {
            fake_fit *fit = make_fit(widths[i], 235, names, count);
            for (int64_t k = 0; k < 234; k += 13) {
                begin(fit);
                step(fit, k);
                expect_narrow(fit, widths[i]);
            }
            assert_int_equal(fit->terminal.lines, 18);   /* "Epoch 1/10" alone */
            assert_int_equal(fit->terminal.redraws, 18); /* each was drawn */
            destroy_fit(fit);
        }
}

static void a_line_that_has_room_is_that_of_keras(void **state) {
    (void)state;
    fake_fit *fit = make_fit(120, 235, names, 2);
    begin(fit);
    step(fit, 116);
    if (!strstr(fit->terminal.line, "117/235 [=============>................] - ETA: ") ||
        !strstr(fit->terminal.line, " - loss: 0.1234 - accuracy: 1.1234"))
        tell(fit, "%s", fit->terminal.line);
    destroy_fit(fit);
}

static void the_bar_shrinks_before_a_metric_is_dropped(void **state) {
    (void)state;
    fake_fit *fit = make_fit(80, 235, names, 2);
    begin(fit);
    step(fit, 100);
    if (!strstr(fit->terminal.line, "101/235 [") || !strstr(fit->terminal.line, " - accuracy: 1.1234") ||
        !strstr(fit->terminal.line, "[=========>...............] - ETA"))
        tell(fit, "%s", fit->terminal.line);
    destroy_fit(fit);
    fit = make_fit(60, 235, names, 5);
    begin(fit);
    step(fit, 100);
    const char *dots = strstr(fit->terminal.line, "34 ..."),
               *bar = strstr(fit->terminal.line, " [==>.....] - ETA");
    if (!dots || dots[6] || !bar) tell(fit, "%s", fit->terminal.line);
    destroy_fit(fit);
}

/* If the line is too long for the terminal, it is continued between two metrics. */
static void the_last_line_has_every_metric(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(widths); ++i) {
        fake_fit *fit = make_fit(widths[i], 235, names, (int)COUNT(names));
        begin(fit);
        step(fit, 100);
        end(fit);
        if (widths[i] > 40) expect_narrow(fit, widths[i]); /* at 40 columns a single metric is wider */
        for (size_t k = 0; k < COUNT(names); ++k) {
            char item[80];
            bool found = false;
            snprintf(item, sizeof item, " - %s: %.4f", names[k], 0.1234 + (double)k);
            for (int line = 1; line < fit->terminal.lines; ++line)
                found = found || strstr(fit->terminal.finished[line], item);
            if (!found) tell(fit, "%d columns: no '%s'", widths[i], item);
        }
        for (int line = 2; line < fit->terminal.lines; ++line)
            assert_memory_equal(fit->terminal.finished[line], "        - ", 10);
        destroy_fit(fit);
    }
}

/* What the last redraw has drawn at the right is erased, although the first of the last lines is shorter. */
static void the_last_line_erases_the_redraw(void **state) {
    (void)state;
    static const char *const two[] = {"a_name_of_some_length", "loss"};
    for (int columns = 50; columns < 120; ++columns) {
        fake_fit *fit = make_fit(columns, 235, two, 2);
        begin(fit);
        step(fit, 100);
        int drawn = fit->terminal.column;
        end(fit);
        assert_true(leati_screen_columns(fit->terminal.finished[1]) >= drawn);
        expect_narrow(fit, columns);
        destroy_fit(fit);
    }
}

static void a_window_that_changes_is_noticed(void **state) {
    (void)state;
    fake_fit *fit = make_fit(120, 235, names, 3);
    begin(fit);
    step(fit, 100);
    assert_true(fit->terminal.widest > 80);
    terminal_resize(&fit->terminal, 60);
    nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL); /* longer than the pause between two redraws */
    fit->terminal.widest = 0;
    step(fit, 101);
    assert_int_equal(fit->terminal.redraws, 2);
    expect_narrow(fit, 60);
    destroy_fit(fit);
}

static void names_count_in_columns(void **state) {
    (void)state;
    static const char *const foreign[] = {"erreur_carrée_élevée", "損失関数の値",
                                          "e\xCC\x81"
                                          "cart",
                                          "精度", "Größe"};
    for (int columns = 20; columns <= 130; ++columns) {
        fake_fit *fit = make_fit(columns, 235, foreign, (int)COUNT(foreign));
        begin(fit);
        step(fit, 77);
        expect_narrow(fit, columns);
        assert_int_equal(leati_screen_columns(fit->terminal.line), fit->terminal.column);
        destroy_fit(fit);
    }
}

static void control_characters_do_not_reach_the_terminal(void **state) {
    (void)state;
    static const char *const hostile[] = {"\x1b[2J", "a\nb\tc\rd",
                                          "\xC2\x9B"
                                          "31m",
                                          "\x7F\x9B"};
    fake_fit *fit = make_fit(120, 235, hostile, (int)COUNT(hostile));
    begin(fit);
    step(fit, 77);
    end(fit);
    assert_int_equal(fit->terminal.controls, 0);
    assert_int_equal(fit->terminal.lines, 2);
    assert_non_null(
        strstr(fit->terminal.finished[1], " - ?[2J: 0.1234 - a?b?c?d: 1.1234 - ??31m: 2.1234 - ??: 3.1234"));
    destroy_fit(fit);
}

/* A message of several pieces, with a character of three bytes at each place where a piece might end. */
static void log_messages_are_clean_and_complete(void **state) {
    (void)state;
    static terminal t;
    static char message[6200], expected[6200];
    for (int shift = 0; shift < 3; ++shift) {
        size_t used = (size_t)snprintf(message, sizeof message, "\x1b[2J%.*s", shift, "abc");
        while (used + 4 < sizeof message) used += (size_t)snprintf(message + used, 4, "値");
        snprintf(expected, sizeof expected, "?%s", message + 1);
        terminal_open(&t, 80);
        leat_log_to_stderr(NULL, LEAT_LOG_INFO, message);
        for (int i = 0; i < 3; ++i) terminal_receive(&t);
        terminal_close(&t);
        assert_int_equal(t.controls, 0);
        assert_int_equal(t.lines, 1);
        assert_string_equal(t.finished[0], expected);
    }
}

static void a_very_narrow_terminal_has_no_bar(void **state) {
    (void)state;
    for (int columns = 2; columns < 30; ++columns) {
        fake_fit *fit = make_fit(columns, 1000000, names, 2);
        begin(fit);
        step(fit, 500000);
        expect_narrow(fit, columns);
        destroy_fit(fit);
    }
}

/* Two million steps, of which one was made here, in at least 30 ms: the remaining million takes eight hours.  If the
 * steps before the resume were counted too, less than a second would remain. */
static void a_resumed_epoch_estimates_from_its_own_steps(void **state) {
    (void)state;
    fake_fit *fit = make_fit(120, 2000000, names, 1);
    begin(fit);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    step(fit, 999999);
    const char *eta = strstr(fit->terminal.line, "1000000/2000000 [==============>...............] - ETA: ");
    if (!eta) tell(fit, "%s", fit->terminal.line);
    long hours = strtol(strstr(eta, "ETA: ") + 5, NULL, 10);
    if (hours < 8 || !strchr(strstr(eta, "ETA: ") + 5, ':')) tell(fit, "%s", fit->terminal.line);
    end(fit);
    if (strstr(fit->terminal.finished[1], "us/step")) tell(fit, "%s", fit->terminal.finished[1]);
    destroy_fit(fit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_redraw_is_as_wide_as_the_terminal),
        cmocka_unit_test(a_line_that_has_room_is_that_of_keras),
        cmocka_unit_test(the_bar_shrinks_before_a_metric_is_dropped),
        cmocka_unit_test(the_last_line_has_every_metric),
        cmocka_unit_test(the_last_line_erases_the_redraw),
        cmocka_unit_test(a_window_that_changes_is_noticed),
        cmocka_unit_test(names_count_in_columns),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(log_messages_are_clean_and_complete),
        cmocka_unit_test(a_very_narrow_terminal_has_no_bar),
        cmocka_unit_test(a_resumed_epoch_estimates_from_its_own_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
