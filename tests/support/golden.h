/* SPDX-License-Identifier: Apache-2.0 */
/* The golden cases of one group (tests/golden/keras-2.3.1/<group>/; "keras-3/layers": that of current Keras): their names, their meta, and comparison of arrays.
 * Link the rooms data and zip, support/npz.c, and jansson. */
#ifndef LEAT_TESTS_SUPPORT_GOLDEN_H
#define LEAT_TESTS_SUPPORT_GOLDEN_H

#include <jansson.h>

#include "support/npz.h"

#define GOLDEN_TOLERANCE 1e-5

typedef struct golden {
    char name[128];
    leat_npz *npz;
    json_t *meta;
    double *worst; /* where golden_compare keeps the largest distance so far; NULL after golden_open */
} golden;

/* Calls visit for every case of a group in the order of their names; returns how many. */
int golden_each(const char *group, void (*visit)(const char *name, void *user), void *user);

/* Opens a case; a failure fails the test. */
void golden_open(golden *out, const char *group, const char *name);
void golden_close(golden *g);

/* meta[key] as text; "" where there is none. */
const char *golden_text(const golden *g, const char *key);

/* A member that holds JSON text ("config"); a new reference. */
json_t *golden_json(const golden *g, const char *member);

/* The member "<prefix><index>"; false where there is none. */
int golden_member(const golden *g, const char *prefix, int index, leat_tensor *out);

/* How far apart two arrays are: the largest |a - b| over (|b| + root mean square of b, at least 1e-3: what float leaves of
 * terms near 1 where they cancel); 0 for equal ones, infinity where one is not finite and the other not the same. */
double golden_distance(const float *a, const float *b, int64_t count);

/* Fails the test, naming case and array, where the distance is larger than tolerance. */
void golden_compare(const golden *g, const char *what, const float *a, const float *b, int64_t count,
                    double tolerance);

#endif
