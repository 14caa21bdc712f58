/* SPDX-License-Identifier: Apache-2.0 */
/* How this room keeps Python's three tokens that are no JSON: as strings that start with a control character. */
#ifndef LEATI_JSON_MARKS_H
#define LEATI_JSON_MARKS_H

enum { LEATI_JSON_MARK_NAN, LEATI_JSON_MARK_INFINITY, LEATI_JSON_MARK_MINUS_INFINITY, LEATI_JSON_MARK_COUNT };

typedef struct leati_json_mark {
    const char *token;  /* in the text */
    const char *string; /* in the value */
} leati_json_mark;

extern const leati_json_mark leati_json_marks[LEATI_JSON_MARK_COUNT];

#endif
