/* SPDX-License-Identifier: Apache-2.0 */
/* A pseudo-terminal that receives standard error, and a small emulator that counts the columns of each line. */
#ifndef LEAT_TESTS_SUPPORT_TERMINAL_H
#define LEAT_TESTS_SUPPORT_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

enum { terminal_max_lines = 64, terminal_line_bytes = 8192 };

typedef struct terminal {
    int master, slave, saved; /* saved: standard error of the test */
    int column, widest;       /* the cursor's column, and the largest one since clear_widest */
    int lines;                /* line breaks */
    int controls;             /* control characters except these */
    int redraws;              /* carriage returns that are not part of a line break */
    size_t used;
    char line[terminal_line_bytes]; /* text since the last carriage return or line break */
    char finished[terminal_max_lines]
                 [terminal_line_bytes]; /* text of the lines that ended with a line break */
} terminal;

/* Open a pseudo-terminal of this width in the place of standard error, and restore standard error. */
void terminal_open(terminal *t, int columns);
void terminal_close(terminal *t);

/* Changes the width of the window. */
void terminal_resize(terminal *t, int columns);

/* Receives what was written to standard error.  A terminal turns a line break into a carriage return and a line
 * break. */
void terminal_receive(terminal *t);

#endif
