/* SPDX-License-Identifier: Apache-2.0 */
/* The report: one HTML file that holds a run's numbers and what draws them.  It loads nothing from elsewhere. */
#ifndef LEAT_CLI_REPORT_PAGE_H
#define LEAT_CLI_REPORT_PAGE_H

/* report.html as the build embeds it, NUL-terminated. */
extern const char cli_report_template[];

/* Replaces the file `output` by the report on the run whose numbers are in the file `history`.  Like a command it says
 * what went wrong, as `leat COMMAND: ...`, and returns an exit code. */
int cli_report_write(const char *command, const char *history, const char *output);

#endif
