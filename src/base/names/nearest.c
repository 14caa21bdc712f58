/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the name that a misspelt word means.  Layer: base/names. */
#include "base/names/nearest.h"

#include <stdbool.h>
#include <string.h>

static bool same(char a, char b, bool fold) {
    const bool letters = (a >= 'A' && a <= 'Z') || (a >= 'a' && a <= 'z');
    return a == b || (fold && letters && (a ^ b) == ('a' ^ 'A'));
}

/* Returns the edit distance of two words: the number of letters to insert, delete, replace or swap with the next one (optimal
 * string alignment: Damerau and Levenshtein's distance without edits inside a swapped pair).  With `fold`, upper and lower
 * case are equal.  Returns `most` if a word has more letters than that. */
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

/* Returns the largest distance at which a name still counts as misspelt: 1 for a short word, a third of the letters of a long
 * one. */
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
