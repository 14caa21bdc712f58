/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads the fields of CSV.  Room: train. */
#include "train/callbacks/csv_text.h"

#include <string.h>

void leati_csv_add(leati_text *text, const char *field, const char *separator) {
    if (!strstr(field, separator) && !strpbrk(field, "\"\r\n")) {
        leati_text_add(text, "%s", field);
        return;
    }
    leati_text_add(text, "\"");
    for (; *field; ++field) leati_text_add(text, "%s%c", *field == '"' ? "\"" : "", *field);
    leati_text_add(text, "\"");
}

bool leati_csv_next(const char **at, const char *end, const char *separator, leati_text *out) {
    const char *c = *at;
    const size_t length = strlen(separator);
    bool quoted = c < end && *c == '"', more = false;
    out->length = 0;
    leati_text_add(out, "%s", ""); /* allocates the text of an empty field */
    for (c += quoted; c < end; ++c) {
        bool pair = quoted && *c == '"' && c + 1 < end && c[1] == '"';
        if (quoted && *c == '"' && !pair) {
            quoted = false;
            continue;
        }
        more = !quoted && (size_t)(end - c) >= length && memcmp(c, separator, length) == 0;
        if (more || (!quoted && (*c == '\r' || *c == '\n'))) break;
        c += pair;
        leati_text_add(out, "%c", *c);
    }
    *at = more ? c + length : c;
    return more;
}
