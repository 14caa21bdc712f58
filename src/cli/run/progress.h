/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line: one line on standard error that shows how far a command has come.  Also the clocks. */
#ifndef LEAT_CLI_RUN_PROGRESS_H
#define LEAT_CLI_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_progress {
    bool shown; /* standard error is a terminal */
    int64_t start_ns, drawn_ns;
    int width; /* columns of the line that is shown; the next one overwrites them with blanks */
} cli_progress;

void cli_progress_begin(cli_progress *progress);

/* Draws the line: a bar for the share that is done (0 to 1; negative: unknown, no bar), text, and the time.  The
 * line fits on the terminal: the bar shrinks, then the text is cut.  Does nothing if the last drawing was less than
 * 0.1 s ago, or in the first 0.5 s. */
void cli_progress_draw(cli_progress *progress, double share, const char *text);

/* Erases the line. */
void cli_progress_end(cli_progress *progress);

/* Return monotonic time in ns.  The coarse clock is exact to a few ms and cheap enough to be read for every batch. */
int64_t cli_now_ns(void);
int64_t cli_coarse_ns(void);

#endif
