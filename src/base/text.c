/* SPDX-License-Identifier: Apache-2.0 */
/* Growing strings, shapes in words, nearest names.  Layer: base. */
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static bool reserve(leati_text *text, size_t more) {
    size_t need = text->length + more + 1;
    if (need <= text->capacity) return true;
    size_t capacity = text->capacity ? text->capacity : 64;
    while (capacity < need) capacity *= 2;
    char *data = leati_realloc(text->data, capacity, 1);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

size_t leati_control_bytes(const char *at) {
    const unsigned char *byte = (const unsigned char *)at;
    if (byte[0] == '\0') return 0;
    if (byte[0] < 0x20 || byte[0] == 0x7F) return 1;
    return byte[0] == 0xC2 && byte[1] >= 0x80 && byte[1] <= 0x9F ? 2 : 0;
}

bool leati_has_control(const char *text) {
    for (; *text; ++text)
        if (leati_control_bytes(text)) return true;
    return false;
}

void leati_text_add(leati_text *text, const char *format, ...) {
    if (text->failed) return;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        text->failed = true;
    else if (reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void leati_text_fini(leati_text *text) {
    leati_free(text->data);
    *text = (leati_text){0};
}

void leati_decimal_point(char *number) {
    char *separator = number + strspn(number, " +-0123456789");
    bool other = *separator == ',' || (unsigned char)*separator >= 0x80;
    if (!other) return;
    char *rest = separator + 1;
    while ((unsigned char)*rest >= 0x80) ++rest;
    *separator = '.';
    memmove(separator + 1, rest, strlen(rest) + 1);
}

static bool same(char a, char b, bool fold) {
    const bool letters = (a >= 'A' && a <= 'Z') || (a >= 'a' && a <= 'z');
    return a == b || (fold && letters && (a ^ b) == ('a' ^ 'A'));
}

/* How many letters must be put in, left out, replaced or swapped with their neighbour to turn one word into the other
 * (optimal string alignment: Damerau and Levenshtein's distance without edits inside a swapped pair), upper and lower case
 * taken as the same where `fold` is set; `most` for words that are longer than `most`. */
static size_t distance(const char *a, const char *b, bool fold) {
    enum { most = 48 };
    size_t rows[3][most + 1], length = strlen(b);
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    if (strlen(a) > most || length > most) return most;
    for (size_t j = 0; j <= length; ++j) above[j] = j;
    for (size_t i = 0; a[i]; ++i) {
        row[0] = i + 1;
        for (size_t j = 0; j < length; ++j) {
            size_t cost = above[j] + !same(a[i], b[j], fold);
            if (above[j + 1] + 1 < cost) cost = above[j + 1] + 1;
            if (row[j] + 1 < cost) cost = row[j] + 1;
            const bool swapped = i > 0 && j > 0 && same(a[i], b[j - 1], fold) && same(a[i - 1], b[j], fold);
            if (swapped && before[j - 1] + 1 < cost) cost = before[j - 1] + 1;
            row[j + 1] = cost;
        }
        size_t *spent = before;
        before = above, above = row, row = spent;
    }
    return above[length];
}

/* A slip of the fingers is one letter of a short word, one of three in a long one; what differs more is another word. */
static size_t slips(const char *word) {
    const size_t letters = strlen(word + strspn(word, "-"));
    return letters < 2 ? 0 : letters < 6 ? 1 : letters / 3;
}

const char *leati_nearest(const char *word, const char *const *names, size_t count) {
    size_t best = slips(word) + 1, best_as_is = 0;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; ++i) {
        const size_t d = distance(word, names[i], true), as_is = distance(word, names[i], false);
        if (d > best || (d == best && (!nearest || as_is >= best_as_is))) continue;
        best = d, best_as_is = as_is;
        nearest = names[i];
    }
    return nearest;
}

const char *leati_shape_text(char *out, size_t bytes, int rank, const int64_t *shape) {
    size_t used = (size_t)snprintf(out, bytes, "(");
    for (int i = 0; i < rank && used < bytes; ++i) {
        const char *comma = i + 1 < rank ? ", " : rank == 1 ? "," : "";
        int n = shape[i] < 0 ? snprintf(out + used, bytes - used, "None%s", comma)
                             : snprintf(out + used, bytes - used, "%" PRId64 "%s", shape[i], comma);
        used += (size_t)n;
    }
    if (used < bytes) snprintf(out + used, bytes - used, ")");
    return out;
}
