/* SPDX-License-Identifier: Apache-2.0 */
/* What the layers have in common that turn numbers into categories: IntegerLookup, Hashing, HashedCrossing,
 * Discretization.  Each computes an index for every element, and gives the indices, or vectors made of them. */
#ifndef LEATI_NN_LAYERS_PREPROCESSING_CATEGORIES_H
#define LEATI_NN_LAYERS_PREPROCESSING_CATEGORIES_H

#include "engine/graph/callee.h"
#include "nn/layers/common_fields.h"

/* Keras's output_mode. */
enum { LEATI_MODE_INT, LEATI_MODE_ONE_HOT, LEATI_MODE_MULTI_HOT, LEATI_MODE_COUNT, LEATI_MODE_TF_IDF };
extern const char *const leati_category_modes[];          /* without tf_idf */
extern const char *const leati_weighted_category_modes[]; /* with tf_idf */

/* Computes the index of element `i` of the inputs of a run; -1: the element counts for no category.  In the mode INT
 * the index may be any number, which becomes f32. */
typedef struct leati_categories leati_categories;
typedef leat_status leati_category_index(const leati_categories *categories, const leati_callee_run *run,
                                         int64_t i, int64_t *out, leat_error *err);

/* The first member of the configuration of each of these layers.  The fields set output_mode and sparse, check() sets
 * the rest through leati_categories_set(). */
struct leati_categories {
    leati_callee callee;
    int32_t output_mode;
    bool sparse;
    int64_t depth;        /* number of categories */
    const float *weights; /* TF_IDF: a factor for the count of each category; borrowed */
    leati_category_index *index;
};

#define LEATI_CATEGORY_FIELDS(config, modes_, preset_)                                                       \
    {.key = "output_mode",                                                                                   \
     .kind = LEATI_FIELD_CHOICE,                                                                             \
     .offset = offsetof(config, categories) + offsetof(leati_categories, output_mode),                       \
     .preset = preset_,                                                                                      \
     .choices = modes_},                                                                                     \
    {                                                                                                        \
        .key = "sparse", .kind = LEATI_FIELD_BOOL,                                                           \
        .offset = offsetof(config, categories) + offsetof(leati_categories, sparse), .preset = "false"       \
    }

/* For check: the number of categories, and the function that finds an element's category.
 * Errors: LEAT_ENOTSUP sparse is true; LEAT_EINVAL depth is too large. */
leat_status leati_categories_set(leati_categories *categories, int64_t depth, leati_category_index *index,
                                 leat_error *err);

/* The functions of the layer types. */
leat_status leati_categories_infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                                   leati_shape *outputs, int *output_count, leat_error *err);
void leati_categories_lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                            const leati_value *inputs, leati_value *outputs);

/* The key `salt` of Hashing and IntegerLookup: null, an integer, or a list of two. */
typedef struct leati_salt {
    bool present;
    uint64_t key[2];
} leati_salt;
/* Errors: LEAT_EINVAL another value. */
leat_status leati_salt_read(leati_salt *out, const json_t *value, leat_error *err);
/* Returns the key for leati_fingerprint(); NULL without a salt. */
static inline const uint64_t *leati_salt_key(const leati_salt *salt) {
    return salt->present ? salt->key : NULL;
}

/* Members of leati_layer_type. */
#define LEATI_CATEGORY_TYPE .integers = true, .infer = leati_categories_infer, .lower = leati_categories_lower

#endif
