/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line of the command fits its terminal. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "cli/run/progress.h"
#include "support/terminal.h"

static void draw(cli_progress *progress, terminal *t, double share, const char *text) {
    progress->drawn_ns = 0; /* as if the last drawing were long ago */
    t->widest = 0;
    cli_progress_draw(progress, share, text);
    terminal_receive(t);
}

static void the_line_is_narrower_than_the_terminal(void **state) {
    (void)state;
    static const int widths[] = {10, 20, 40, 60, 80, 120};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; ++i) {
        static terminal t;
        cli_progress progress;
        int widest = 0;
        terminal_open(&t, widths[i]);
        cli_progress_begin(&progress);
        for (double share = -1; share <= 1; share += 0.25) {
            draw(&progress, &t, share, "setting 3 of about 24, with a text that is longer than usual");
            widest = t.widest > widest ? t.widest : widest;
        }
        cli_progress_end(&progress);
        terminal_receive(&t);
        terminal_close(&t);
        assert_true(widest > 0 && widest < widths[i]);
        assert_int_equal(t.lines, 0);
        assert_string_equal(t.line, "");
    }
}

static void the_bar_shrinks_first(void **state) {
    (void)state;
    static terminal t;
    char wide[128], narrow[128];
    cli_progress progress;
    terminal_open(&t, 80);
    cli_progress_begin(&progress);
    draw(&progress, &t, 0.5, "measuring");
    snprintf(wide, sizeof wide, "%s", t.line);
    terminal_resize(&t, 40);
    draw(&progress, &t, 0.5, "measuring");
    snprintf(narrow, sizeof narrow, "%s", t.line);
    terminal_close(&t);
    assert_non_null(strstr(wide, "[===============>..............] measuring - ETA: "));
    assert_null(strstr(narrow, "[===============>..............]"));
    assert_non_null(strstr(narrow, ">"));
    assert_non_null(strstr(narrow, "] measuring - ETA: "));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_is_narrower_than_the_terminal),
        cmocka_unit_test(the_bar_shrinks_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
