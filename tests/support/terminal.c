/* SPDX-License-Identifier: Apache-2.0 */
/* A pseudo-terminal and an emulator for tests. */
#define _XOPEN_SOURCE 700 /* posix_openpt */
#include "support/terminal.h"

#include "cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void terminal_resize(terminal *t, int columns) {
    struct winsize size = {.ws_row = 25, .ws_col = (unsigned short)columns};
    assert_int_equal(ioctl(t->master, TIOCSWINSZ, &size), 0);
}

void terminal_open(terminal *t, int columns) {
    memset(t, 0, sizeof *t);
    t->master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(t->master >= 0 && grantpt(t->master) == 0 && unlockpt(t->master) == 0);
    t->slave = open(ptsname(t->master), O_RDWR | O_NOCTTY);
    assert_true(t->slave >= 0);
    assert_int_equal(fcntl(t->master, F_SETFL, O_NONBLOCK), 0);
    terminal_resize(t, columns);
    fflush(stderr);
    t->saved = dup(STDERR_FILENO);
    assert_true(t->saved >= 0 && dup2(t->slave, STDERR_FILENO) >= 0);
}

void terminal_close(terminal *t) {
    fflush(stderr);
    dup2(t->saved, STDERR_FILENO);
    close(t->saved);
    close(t->slave);
    close(t->master);
}

static bool is_wide(const char *at) {
    return (unsigned char)at[0] >= 0xE3 && (unsigned char)at[0] <= 0xED; /* CJK, the tests' wide characters */
}

static void receive(terminal *t, const char *at) {
    const unsigned char byte = (unsigned char)*at;
    if (byte == '\r' || byte == '\n') {
        t->redraws += byte == '\r' && at[1] != '\n';
        if (byte == '\n') {
            assert_true(t->lines < terminal_max_lines);
            memcpy(t->finished[t->lines++], t->line, terminal_line_bytes);
        }
        if (byte == '\n' || at[1] != '\n') t->used = 0, t->column = 0, t->line[0] = '\0';
        return;
    }
    if (byte < 0x20 || byte == 0x7F || (byte == 0xC2 && (unsigned char)at[1] < 0xA0)) ++t->controls;
    if (t->used + 1 < terminal_line_bytes) t->line[t->used++] = *at, t->line[t->used] = '\0';
    bool combines =
        byte == 0xCC || byte == 0xCD; /* U+0300 to U+036F, among others: the tests' combining characters */
    if ((byte & 0xC0) != 0x80) t->column += combines ? 0 : is_wide(at) ? 2 : 1;
    if (t->column > t->widest) t->widest = t->column;
}

void terminal_receive(terminal *t) {
    char bytes[1 << 16];
    size_t used = 0;
    fflush(stderr);
    for (ssize_t got; (got = read(t->master, bytes + used, sizeof bytes - 1 - used)) > 0;)
        used += (size_t)got;
    bytes[used] = '\0';
    for (size_t i = 0; i < used; ++i) receive(t, bytes + i);
}
