/* SPDX-License-Identifier: Apache-2.0 */
/* One line that says how far a command is, while it works. */
#ifndef LEAT_CLI_RUN_PROGRESS_H
#define LEAT_CLI_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_progress {
    bool shown; /* standard error is a terminal */
    int64_t start_ns, drawn_ns;
    int width; /* columns drawn last, to be blanked */
} cli_progress;

void cli_progress_begin(cli_progress *progress);

/* `share` is done, 0 to 1, negative: who knows.  No more than ten times a second, and not in the first half second. */
void cli_progress_draw(cli_progress *progress, double share, const char *text);

/* Blanks the line. */
void cli_progress_end(cli_progress *progress);

/* Monotonic; coarse: to a few ms, for what is asked at every batch. */
int64_t cli_now_ns(void);
int64_t cli_coarse_ns(void);

#endif
