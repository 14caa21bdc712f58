/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tf.train.Example: Features { map<string, Feature> }, where a Feature is a list of bytes, of floats
 * or of int64, in the
 * encoding of protocol buffers. */
#ifndef LEATI_DATA_SHARDS_EXAMPLE_H
#define LEATI_DATA_SHARDS_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum leati_feature_kind {
    LEATI_FEATURE_EMPTY,
    LEATI_FEATURE_BYTES = 1,
    LEATI_FEATURE_FLOATS = 2,
    LEATI_FEATURE_INTEGERS = 3
} leati_feature_kind;

/* A feature; `data` points into the example, to the list's message. */
typedef struct leati_feature {
    leati_feature_kind kind;
    const unsigned char *data;
    size_t bytes;
} leati_feature;

/* Finds a feature by its name.  *found is false if the example does not have it.  Returns false if the example is
 * damaged. */
bool leati_example_find(const void *example, size_t bytes, const char *name, leati_feature *out, bool *found);

/* Calls visit for the name of each feature.  Returns false if the example is damaged. */
bool leati_example_names(const void *example, size_t bytes,
                         void (*visit)(void *user, const char *name, size_t bytes), void *user);

/* Counts the values of a list.  Returns false if the list is damaged. */
bool leati_feature_count(const leati_feature *feature, int64_t *out);

/* Gives value 0 of a list of bytes.  Returns false if the list is damaged or empty. */
bool leati_feature_bytes(const leati_feature *feature, const unsigned char **out, size_t *bytes);

/* Write the values of a list, which has `count` of them. */
bool leati_feature_floats(const leati_feature *feature, float *out, int64_t count);
bool leati_feature_integers(const leati_feature *feature, int64_t *out, int64_t count);

#endif
