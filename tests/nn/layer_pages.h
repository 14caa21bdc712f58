/* SPDX-License-Identifier: Apache-2.0 */
/* docs/layers.md: the registered layer types, and what the golden cases cover of each. */
#ifndef LEAT_TESTS_NN_LAYER_PAGES_H
#define LEAT_TESTS_NN_LAYER_PAGES_H

#include <jansson.h>

#include "base/text.h"

/* What the cases cover, by class name: {"Dense": {"cases": 36, "later": 0, "worst": 3e-7, "keys": {"units": [4,
 * 3]}}}. */
typedef struct layer_pages {
    json_t *seen;
} layer_pages;

void layer_pages_open(layer_pages *pages);
void layer_pages_close(layer_pages *pages);

/* Adds a golden case: the layer that it tests, its model, and the largest distance from Keras on any backend;
 * `later`: the case is from current Keras. */
void layer_pages_add(layer_pages *pages, const char *about, const json_t *model, double worst, bool later);

/* Writes the whole file. */
void layer_pages_write(const layer_pages *pages, leati_text *out);

/* Returns the number of types that no case tests; adds their names to out. */
int layer_pages_without_case(const layer_pages *pages, leati_text *out);

#endif
