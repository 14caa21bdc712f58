/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the name that a misspelt word means.  Room: base/names. */
#include "base/names/nearest.h"

#include <stdbool.h>
#include <string.h>

static bool same_letter(char a, char b, bool fold) {
    const bool letters = (a >= 'A' && a <= 'Z') || (a >= 'a' && a <= 'z');
    return a == b || (fold && letters && (a ^ b) == ('a' ^ 'A'));
}

/* Returns the edit distance of two words: the number of letters to insert, delete, replace or swap with the next one
 * (optimal string alignment: Damerau and Levenshtein's distance without edits inside a swapped pair).  With `fold`,
 * upper and lower case are equal.  Returns `max_length` if a word has more letters than that. */
static size_t distance(const char *a, const char *b, bool fold) {
    enum { max_length = 48 };
    size_t rows[3][max_length + 1], length = strlen(b);
    size_t *row_before_last = rows[0], *last_row = rows[1], *row = rows[2];
    if (strlen(a) > max_length || length > max_length) return max_length;
    for (size_t j = 0; j <= length; ++j) last_row[j] = j;
    for (size_t i = 0; a[i]; ++i) {
        row[0] = i + 1;
        for (size_t j = 0; j < length; ++j) {
            size_t cost = last_row[j] + !same_letter(a[i], b[j], fold);
            if (last_row[j + 1] + 1 < cost) cost = last_row[j + 1] + 1;
            if (row[j] + 1 < cost) cost = row[j] + 1;
            const bool swapped =
                i > 0 && j > 0 && same_letter(a[i], b[j - 1], fold) && same_letter(a[i - 1], b[j], fold);
            if (swapped && row_before_last[j - 1] + 1 < cost) cost = row_before_last[j - 1] + 1;
            row[j + 1] = cost;
        }
        size_t *oldest = row_before_last;
        row_before_last = last_row, last_row = row, row = oldest;
    }
    return last_row[length];
}

/* Returns the largest distance at which a name still counts as misspelt: 1 for a short word, a third of the letters
 * of a long one. */
static size_t max_distance(const char *word) {
    const size_t letters = strlen(word + strspn(word, "-"));
    return letters < 2 ? 0 : letters < 6 ? 1 : letters / 3;
}

const char *leati_nearest(const char *word, const char *const *names, size_t count) {
    size_t best = max_distance(word) + 1, best_exact = 0;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; ++i) {
        const size_t folded = distance(word, names[i], true), exact = distance(word, names[i], false);
        if (folded > best || (folded == best && (!nearest || exact >= best_exact))) continue;
        best = folded, best_exact = exact;
        nearest = names[i];
    }
    return nearest;
}
