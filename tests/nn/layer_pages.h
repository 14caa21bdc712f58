/* SPDX-License-Identifier: Apache-2.0 */
/* docs/layers.md: what the registry says of each layer, and what the golden cases have seen of it. */
#ifndef LEAT_TESTS_NN_LAYER_PAGES_H
#define LEAT_TESTS_NN_LAYER_PAGES_H

#include <jansson.h>

#include "base/text.h"

/* What was seen, by class name: {"Dense": {"cases": 36, "later": 0, "worst": 3e-7, "keys": {"units": [4, 3]}}}. */
typedef struct layer_pages {
    json_t *seen;
} layer_pages;

void layer_pages_open(layer_pages *pages);
void layer_pages_close(layer_pages *pages);

/* A golden case: the layer that it is about, its model, the largest distance from Keras on any backend; `later`: of
 * current Keras. */
void layer_pages_add(layer_pages *pages, const char *about, const json_t *model, double worst, bool later);

/* The whole file. */
void layer_pages_write(const layer_pages *pages, leati_text *out);

/* How many types no case is about; adds their names. */
int layer_pages_without_case(const layer_pages *pages, leati_text *out);

#endif
