/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line, shown only if standard error is a terminal.  Room: cli. */
#define _GNU_SOURCE /* CLOCK_MONOTONIC_COARSE */
#include "cli/run/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { bar_width = 30, redraw_ns = 100000000, delay_ns = 500000000 };

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t cli_now_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

int64_t cli_coarse_ns(void) {
    return read_clock(CLOCK_MONOTONIC_COARSE);
}

void cli_progress_begin(cli_progress *progress) {
    int64_t now = cli_coarse_ns();
    *progress = (cli_progress){.shown = isatty(STDERR_FILENO) == 1,
                               .start_ns = now,
                               .drawn_ns = now + delay_ns - redraw_ns};
}

void cli_progress_draw(cli_progress *progress, double share, const char *text) {
    if (!progress->shown) return;
    int64_t now = cli_coarse_ns();
    if (now - progress->drawn_ns < redraw_ns) return;
    progress->drawn_ns = now;
    double seconds = (double)(now - progress->start_ns) / 1e9;
    int width = fprintf(stderr, "\r");
    if (share >= 0) {
        share = share > 1 ? 1 : share;
        int filled = (int)(share * bar_width);
        width += fprintf(stderr, "[");
        for (int i = 0; i < bar_width; ++i)
            width += fprintf(stderr, "%c", i < filled ? '=' : i == filled ? '>' : '.');
        width += fprintf(stderr, "] ");
    }
    width += fprintf(stderr, "%s", text);
    if (share > 0.02)
        width += fprintf(stderr, " - ETA: %.0fs", seconds * (1 - share) / share);
    else
        width += fprintf(stderr, " - %.0fs", seconds);
    if (progress->width > width) fprintf(stderr, "%*s", progress->width - width, "");
    progress->width = width;
    fflush(stderr);
}

void cli_progress_end(cli_progress *progress) {
    if (progress->width > 0) fprintf(stderr, "\r%*s\r", progress->width, "");
    fflush(stderr);
    progress->width = 0;
}
