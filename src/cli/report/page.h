/* SPDX-License-Identifier: Apache-2.0 */
/* The report: one HTML file with a run's numbers and the script that draws them.  It loads nothing from elsewhere. */
#ifndef LEAT_CLI_REPORT_PAGE_H
#define LEAT_CLI_REPORT_PAGE_H

/* The file report.html, which the build embeds, as a string. */
extern const char cli_report_template[];

/* Writes the report on the run whose numbers are in the file `history` to the file `output`, which is replaced.  On
 * failure prints a message that begins with "leat COMMAND: ".  Returns an exit code. */
int cli_report_write(const char *command, const char *history, const char *output);

#endif
