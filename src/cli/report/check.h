/* SPDX-License-Identifier: Apache-2.0 */
/* A check that a text is JSON (RFC 8259), before it becomes part of a page. */
#ifndef LEAT_CLI_REPORT_CHECK_H
#define LEAT_CLI_REPORT_CHECK_H

/* Returns NULL if the text is one JSON object in UTF-8; otherwise what was expected, and *at points to where. */
const char *cli_report_check(const char *text, const char **at);

#endif
