/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: the strings, starting with a control character, that stand for Python's tokens NaN, Infinity and -Infinity
 * in values. */
#ifndef LEATI_JSON_MARKS_H
#define LEATI_JSON_MARKS_H

enum { LEATI_JSON_MARK_NAN, LEATI_JSON_MARK_INFINITY, LEATI_JSON_MARK_MINUS_INFINITY, LEATI_JSON_MARK_COUNT };

typedef struct leati_json_mark {
    const char *token;  /* text in JSON */
    const char *string; /* string in the jansson value */
} leati_json_mark;

extern const leati_json_mark leati_json_marks[LEATI_JSON_MARK_COUNT];

#endif
