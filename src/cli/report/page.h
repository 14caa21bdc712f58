/* SPDX-License-Identifier: Apache-2.0 */
/* The report: one HTML file with a run's numbers and the script that draws them.  It loads nothing from elsewhere. */
#ifndef LEAT_CLI_REPORT_PAGE_H
#define LEAT_CLI_REPORT_PAGE_H

#include <stdbool.h>

/* The file report.html, which the build embeds, as a string. */
extern const char cli_report_template[];

/* Writes the report on the run whose numbers are in the file `history` to the file `output`, which is replaced.  On
 * failure prints a message that begins with "leat COMMAND: ".  Returns an exit code.  If the folder of history.json
 * has a run.json, the record of the command, its content becomes part of the report. */
int cli_report_write(const char *command, const char *history, const char *output);

/* How a page is written. */
typedef struct cli_report_page {
    const char *command;          /* for messages */
    const char *history, *output; /* paths of the numbers and of the page */
    int reload_s;                 /* the page reloads itself after so many seconds; 0: never */
    bool died; /* the numbers say that the run is going on, but its process does not exist any more */
} cli_report_page;

/* Reads and checks the numbers; returns a string for free(), or NULL after a message. */
char *cli_report_read(const cli_report_page *page);
/* Writes the page with numbers that cli_report_read has returned. */
int cli_report_write_page(const cli_report_page *page, const char *numbers);

#endif
