/* SPDX-License-Identifier: Apache-2.0 */
/* A check that a text is JSON (RFC 8259), before it becomes part of a page, and access to its members. */
#ifndef LEAT_CLI_REPORT_CHECK_H
#define LEAT_CLI_REPORT_CHECK_H

/* Returns NULL if the text is one JSON object in UTF-8; otherwise what was expected, and *at points to where. */
const char *cli_report_check(const char *text, const char **at);

/* Returns the value of the member `key` of a JSON object, a pointer into the text; NULL if there is no such member, or
 * json is NULL or no object.  The text must have passed cli_report_check; `key` needs no escape sequence in JSON. */
const char *cli_report_member(const char *json, const char *key);

/* Returns the number of elements of an array and the last of them in *last; 0 and NULL if json is NULL or no array. */
int cli_report_elements(const char *json, const char **last);

#endif
