/* SPDX-License-Identifier: Apache-2.0 */
/* Text on a terminal: columns, control characters, invalid bytes. */
#define _XOPEN_SOURCE 700 /* setenv, posix_openpt */
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/screen/screen.h"

static void columns_are_counted(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int columns;
    } cases[] = {{"", 0},
                 {"loss", 4},
                 {"\xC3\xA9", 1},                 /* e with acute accent, one character */
                 {"e\xCC\x81", 1},                /* e and a combining acute accent */
                 {"\xE6\x90\x8D\xE5\xA4\xB1", 4}, /* two CJK ideographs */
                 {"\xF0\x9F\x98\x80", 2},         /* an emoji */
                 {"a\xE2\x80\x8B"
                  "b",
                  2},                  /* zero width space */
                 {"\xEF\xBC\xA1", 2},  /* fullwidth A */
                 {"\xE2\x82\xAC", 1},  /* the euro sign */
                 {"\xEA\xB0\x80", 2}}; /* a Hangul syllable */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        assert_int_equal(leati_screen_columns(cases[i].text), cases[i].columns);
}

static void cleaned(const char *text, const char *lines, const char *name) {
    char copy[64];
    strcpy(copy, text);
    leati_screen_clean(copy);
    assert_string_equal(copy, lines);
    strcpy(copy, text);
    leati_screen_clean_name(copy);
    assert_string_equal(copy, name);
}

static void what_must_not_be_printed_becomes_a_question_mark(void **state) {
    (void)state;
    cleaned("plain \xC3\xA9", "plain \xC3\xA9", "plain \xC3\xA9");
    cleaned("\x1b[31mred\x7f", "?[31mred?", "?[31mred?");
    cleaned("a\nb\tc\rd", "a\nb\tc?d", "a?b?c?d");
    cleaned("\xC2\x9B"
            "2J\xC2\xA0",
            "??2J\xC2\xA0", "??2J\xC2\xA0"); /* CSI of C1; a no-break space stays */
    cleaned("\x9B"
            "2J",
            "?2J", "?2J");     /* C1 in one byte */
    cleaned("\xC3", "?", "?"); /* cut characters */
    cleaned("\xE6\x90", "??", "??");
    cleaned("\xE6\x90 ", "?? ", "?? ");
    cleaned("\xC0\x9B", "??", "??");             /* ESC as two bytes */
    cleaned("\xE0\x82\x9B", "???", "???");       /* C1 as three bytes */
    cleaned("\xED\xA0\x80", "???", "???");       /* a surrogate */
    cleaned("\xF4\x90\x80\x80", "????", "????"); /* beyond Unicode */
}

static void a_text_is_cut_between_characters(void **state) {
    (void)state;
    assert_int_equal(leati_screen_cut("loss", 3), 3);
    assert_int_equal(leati_screen_cut("loss", 9), 4);
    assert_int_equal(leati_screen_cut("\xE6\x90\x8D\xE5\xA4\xB1", 3), 3);
    assert_int_equal(leati_screen_cut("e\xCC\x81"
                                      "f",
                                      1),
                     3);
    assert_int_equal(leati_screen_cut("x", 0), 0);
    assert_int_equal(leati_screen_cut("x", -5), 0);
}

static void the_width_comes_from_the_terminal_or_columns(void **state) {
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    struct winsize size = {.ws_col = 57};
    assert_true(master >= 0);
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
    setenv("COLUMNS", "99", 1);
    assert_int_equal(leati_screen_width(master), 57);
    size.ws_col = 0;
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
    assert_int_equal(leati_screen_width(master), 99);
    setenv("COLUMNS", "many", 1);
    assert_int_equal(leati_screen_width(master), 80);
    unsetenv("COLUMNS");
    assert_int_equal(leati_screen_width(master), 80);
    assert_int_equal(leati_screen_width(-1), 80);
    close(master);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_counted),
        cmocka_unit_test(what_must_not_be_printed_becomes_a_question_mark),
        cmocka_unit_test(a_text_is_cut_between_characters),
        cmocka_unit_test(the_width_comes_from_the_terminal_or_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
