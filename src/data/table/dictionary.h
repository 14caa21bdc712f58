/* SPDX-License-Identifier: Apache-2.0 */
/* A set of texts, each with a number in the order in which the texts were added. */
#ifndef LEATI_DATA_TABLE_DICTIONARY_H
#define LEATI_DATA_TABLE_DICTIONARY_H

#include <stddef.h>
#include <stdint.h>

typedef struct leati_word {
    char *text;
    size_t bytes;
    int64_t line; /* where the text was found first */
} leati_word;

/* Zeroed at first. */
typedef struct leati_dictionary {
    leati_word *words;
    int32_t count, capacity;
    int32_t *slots; /* (slot_count): number + 1 of the word in this slot of the hash table, 0: empty */
    uint32_t slot_count;
} leati_dictionary;

/* Returns the number of a text; -1 if the dictionary does not have it. */
int32_t leati_dictionary_find(const leati_dictionary *dictionary, const char *text, size_t bytes);

/* Returns the number of a text, which is added if it is new; -1 without memory. */
int32_t leati_dictionary_add(leati_dictionary *dictionary, const char *text, size_t bytes, int64_t line);

/* Sorts the words by their bytes.  `numbers` receives the new number of each old one. */
void leati_dictionary_sort(leati_dictionary *dictionary, int32_t *numbers);

void leati_dictionary_fini(leati_dictionary *dictionary);

#endif
