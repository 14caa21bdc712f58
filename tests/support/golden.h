/* SPDX-License-Identifier: Apache-2.0 */
/* Golden cases of a group: names, metadata, and the comparison of arrays.  A group is a folder of
 * tests/golden/keras-2.3.1; "keras-3/layers" is a group of current Keras.  Link the rooms data and zip,
 * support/npz.c, and jansson. */
#ifndef LEAT_TESTS_SUPPORT_GOLDEN_H
#define LEAT_TESTS_SUPPORT_GOLDEN_H

#include <jansson.h>

#include "support/npz.h"

#define GOLDEN_TOLERANCE 1e-5

typedef struct golden {
    char name[128];
    leat_npz *npz;
    json_t *meta;
    double *worst; /* golden_compare updates the largest distance here; NULL (after golden_open): nowhere */
} golden;

/* Calls visit for every case of a group in the order of their names.  Returns the number of cases. */
int golden_each(const char *group, void (*visit)(const char *name, void *user), void *user);

/* Opens a case.  A failure fails the test. */
void golden_open(golden *out, const char *group, const char *name);
void golden_close(golden *g);

/* Returns meta[key] as text, or "" if there is none. */
const char *golden_text(const golden *g, const char *key);

/* Returns a new reference to the JSON in a member of the file ("config"). */
json_t *golden_json(const golden *g, const char *member);

/* Gives the member "<prefix><index>" of the file.  Returns false if there is none. */
int golden_member(const golden *g, const char *prefix, int index, leat_tensor *out);

/* Returns the distance of two arrays: the largest |a - b| / (|b| + the root mean square of b).  The divisor is at
 * least 2e-3, since rounding errors of terms near 1 remain where the terms cancel.  The distance of equal elements is
 * 0; it is infinite if an element is not finite and the other is different. */
double golden_distance(const float *a, const float *b, int64_t count);

/* Fails the test with the names of case and array if the distance exceeds tolerance. */
void golden_compare(const golden *g, const char *what, const float *a, const float *b, int64_t count,
                    double tolerance);

#endif
