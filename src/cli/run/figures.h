/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers formatted for people. */
#ifndef LEAT_CLI_RUN_FIGURES_H
#define LEAT_CLI_RUN_FIGURES_H

enum { CLI_TIME_BYTES = 32 };

/* Writes a time with a suitable unit: "0.41 us", "12.3 ms", "5.20 s".  Returns out. */
const char *cli_time_text(char out[CLI_TIME_BYTES], double ns);

#endif
