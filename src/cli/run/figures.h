/* SPDX-License-Identifier: Apache-2.0 */
/* Figures as people read them. */
#ifndef LEAT_CLI_RUN_FIGURES_H
#define LEAT_CLI_RUN_FIGURES_H

enum { CLI_TIME_BYTES = 32 };

/* "0.41 us", "12.3 ms", "5.2 s".  Returns out. */
const char *cli_time_text(char out[CLI_TIME_BYTES], double ns);

#endif
