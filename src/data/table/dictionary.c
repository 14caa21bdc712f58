/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a column, in a hash table with open addressing.  Room: data. */
#include "data/table/dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { FIRST_SLOTS = 64, MOST_WORDS = 1 << 24 };

/* Computes FNV-1a. */
static uint32_t hash_of(const char *text, size_t bytes) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; ++i) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return (uint32_t)(hash ^ hash >> 32);
}

/* Returns the slot that has the text or, if no slot has it, the empty slot for it. */
static int32_t *slot_of(const leati_dictionary *d, const char *text, size_t bytes) {
    for (uint32_t at = hash_of(text, bytes);; ++at) {
        int32_t *slot = &d->slots[at & (d->slot_count - 1)];
        const leati_word *word = *slot > 0 ? &d->words[*slot - 1] : NULL;
        if (!word || (word->bytes == bytes && memcmp(word->text, text, bytes) == 0)) return slot;
    }
}

int32_t leati_dictionary_find(const leati_dictionary *d, const char *text, size_t bytes) {
    return d->slot_count ? *slot_of(d, text, bytes) - 1 : -1;
}

static int grow(leati_dictionary *d) {
    const int32_t capacity = d->capacity ? 2 * d->capacity : FIRST_SLOTS / 2;
    if (capacity > MOST_WORDS) return -1;
    leati_word *words = leati_realloc(d->words, (size_t)capacity, sizeof *words);
    if (!words) return -1;
    d->words = words;
    int32_t *slots = leati_calloc(2 * (size_t)capacity, sizeof *slots);
    if (!slots) return -1;
    leati_free(d->slots);
    d->slots = slots;
    d->slot_count = 2 * (uint32_t)capacity;
    d->capacity = capacity;
    for (int32_t i = 0; i < d->count; ++i) *slot_of(d, words[i].text, words[i].bytes) = i + 1;
    return 0;
}

int32_t leati_dictionary_add(leati_dictionary *d, const char *text, size_t bytes, int64_t line) {
    const int32_t known = leati_dictionary_find(d, text, bytes);
    if (known >= 0) return known;
    if (d->count == d->capacity && grow(d) != 0) return -1;
    char *copy = leati_calloc(bytes + 1, 1);
    if (!copy) return -1;
    memcpy(copy, text, bytes);
    int32_t *slot = slot_of(d, text, bytes);
    d->words[d->count] = (leati_word){copy, bytes, line};
    *slot = ++d->count;
    return d->count - 1;
}

static int compare_words(const void *a, const void *b) {
    const leati_word *left = a, *right = b;
    const int order =
        memcmp(left->text, right->text, left->bytes < right->bytes ? left->bytes : right->bytes);
    return order ? order : left->bytes < right->bytes ? -1 : left->bytes > right->bytes;
}

void leati_dictionary_sort(leati_dictionary *d, int32_t *numbers) {
    for (int32_t i = 0; i < d->count; ++i) d->words[i].line = i;
    if (d->count > 0) qsort(d->words, (size_t)d->count, sizeof *d->words, compare_words);
    if (d->slot_count > 0) memset(d->slots, 0, d->slot_count * sizeof *d->slots);
    for (int32_t i = 0; i < d->count; ++i) {
        numbers[d->words[i].line] = i;
        *slot_of(d, d->words[i].text, d->words[i].bytes) = i + 1;
    }
}

void leati_dictionary_fini(leati_dictionary *d) {
    for (int32_t i = 0; i < d->count; ++i) leati_free(d->words[i].text);
    leati_free(d->words);
    leati_free(d->slots);
    *d = (leati_dictionary){0};
}
