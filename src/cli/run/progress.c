/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line, shown only if standard error is a terminal.  Room: cli. */
#define _GNU_SOURCE /* CLOCK_MONOTONIC_COARSE */
#include "cli/run/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/screen/screen.h"

enum { bar_width = 30, least_bar_width = 8, text_bytes = 512, redraw_ns = 100000000, delay_ns = 500000000 };

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

/* Writes "[====>.....] " with a bar of `width` columns. */
static void format_bar(char *out, double share, int width) {
    int filled = (int)(share * width);
    *out++ = '[';
    for (int i = 0; i < width; ++i) *out++ = i < filled ? '=' : i == filled ? '>' : '.';
    memcpy(out, "] ", sizeof "] ");
}

/* Writes the text and the time.  Returns their columns. */
static int format_text(char out[text_bytes], double share, const char *text, double seconds) {
    if (share > 0.02)
        snprintf(out, text_bytes, "%s - ETA: %.0fs", text, seconds * (1 - share) / share);
    else
        snprintf(out, text_bytes, "%s - %.0fs", text, seconds);
    leati_screen_clean_name(out);
    return leati_screen_columns(out);
}

void cli_progress_draw(cli_progress *progress, double share, const char *text) {
    if (!progress->shown) return;
    int64_t now = cli_coarse_ns();
    if (now - progress->drawn_ns < redraw_ns) return;
    progress->drawn_ns = now;
    const int brackets = 3, room = leati_screen_width(STDERR_FILENO) - 1;
    char bar[bar_width + 4] = "", words[text_bytes];
    if (share > 1) share = 1;
    int width = format_text(words, share, text, (double)(now - progress->start_ns) / 1e9);
    int left = room - width - brackets;
    if (share >= 0 && left >= least_bar_width) {
        format_bar(bar, share, left < bar_width ? left : bar_width);
        width += (int)strlen(bar);
    }
    if (width > room) {
        words[leati_screen_cut(words, room)] = '\0';
        width = room;
    }
    int erased = progress->width < room ? progress->width : room;
    fprintf(stderr, "\r%s%s%*s", bar, words, erased > width ? erased - width : 0, "");
    progress->width = width;
    fflush(stderr);
}

void cli_progress_end(cli_progress *progress) {
    int room = leati_screen_width(STDERR_FILENO) - 1;
    if (progress->width > 0) fprintf(stderr, "\r%*s\r", progress->width < room ? progress->width : room, "");
    fflush(stderr);
    progress->width = 0;
}
