/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that a user writes as an argument, with strings in single or double quotes.  Room: json. */
#include "json/json.h"

#include "base/error.h"
#include "base/memory.h"

/* Writes the text to out with each string in double quotes, at most two bytes for each byte of the text.  Returns the
 * number of bytes. */
static size_t to_double_quotes(const char *text, size_t bytes, char *out) {
    char quote = '\0'; /* the quote that ends the current string; NUL outside of strings */
    size_t used = 0;
    for (size_t i = 0; i < bytes; ++i) {
        const char c = text[i];
        if (quote && c == '\\' && i + 1 < bytes) {
            const char escaped = text[++i];
            if (escaped != '\'') out[used++] = '\\'; /* JSON has no escape for a single quote */
            out[used++] = escaped;
        } else if (quote ? c == quote : c == '\'' || c == '"') {
            quote = quote ? '\0' : c;
            out[used++] = '"';
        } else {
            if (c == '"') out[used++] = '\\';
            out[used++] = c;
        }
    }
    return used;
}

leat_status leati_json_parse_argument(json_t **out, const char *text, size_t bytes, leat_error *err) {
    *out = NULL;
    if (bytes > LEATI_JSON_MAX_BYTES) return leati_json_parse(out, text, bytes, err);
    char *copy = leati_calloc(bytes + 1, 2);
    if (!copy) return leati_fail_memory(err, 2 * bytes + 2, "a JSON argument");
    leat_status status = leati_json_parse(out, copy, to_double_quotes(text, bytes, copy), err);
    leati_free(copy);
    return status;
}
