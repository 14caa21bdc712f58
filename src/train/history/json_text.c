/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces bytes that are not UTF-8.  Room: train. */
#include "train/history/json_text.h"

#include <string.h>

#include "base/memory.h"

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Returns the number of bytes of the UTF-8 character at `p`; 0 if there is none (RFC 3629). */
static size_t utf8_bytes(const unsigned char *p) {
    if (p[0] < 0x80) return 1;
    size_t bytes = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    for (size_t i = 1; i < bytes; ++i)
        if ((p[i] & 0xC0) != 0x80) return 0;
    bool is_overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    bool is_out_of_range = (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF4 && p[1] > 0x8F);
    return is_overlong || is_out_of_range ? 0 : bytes;
}

/* Returns the text in UTF-8 for leati_free; NULL without memory. */
static char *to_utf8(const char *text) {
    char *out = leati_calloc(3 * strlen(text) + 1, 1), *end = out;
    while (out && *text) {
        size_t bytes = utf8_bytes((const unsigned char *)text);
        if (bytes == 0) {
            memcpy(end, replacement, 3);
            end += 3;
            ++text;
        } else {
            memcpy(end, text, bytes);
            end += bytes;
            text += bytes;
        }
    }
    return out;
}

json_t *leati_json_text(const char *text) {
    char *utf8 = to_utf8(text);
    json_t *string = utf8 ? json_string(utf8) : NULL;
    leati_free(utf8);
    return string;
}

bool leati_json_add(json_t *object, const char *key, json_t *value) {
    char *utf8 = to_utf8(key);
    if (!utf8) {
        json_decref(value);
        return false;
    }
    bool added = json_object_set_new(object, utf8, value) == 0;
    leati_free(utf8);
    return added;
}
