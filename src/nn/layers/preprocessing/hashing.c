/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing: integers as bins, by a hash of their decimal text.  HashedCrossing: combinations of integers as bins.
 * Source: keras.layers.Hashing, keras.layers.HashedCrossing. */
#include "base/error.h"
#include "nn/layers/preprocessing/categories.h"
#include "nn/layers/preprocessing/fingerprint.h"
#include "nn/layers/types.h"
#include "tensor/number.h"

/* ---- Hashing ---- */

typedef struct config {
    leati_categories categories;
    int64_t num_bins, mask_value;
    json_t *salt; /* a list of two integers */
    leati_salt key;
} config;

static const leati_field fields[] = {LEATI_INT_FIELD(config, num_bins, 1, NULL),
                                     LEATI_FIELD(config, mask_value, LEATI_FIELD_OPTIONAL_INT, "null"),
                                     LEATI_FIELD(config, salt, LEATI_FIELD_JSON, "null"),
                                     LEATI_CATEGORY_FIELDS(config, leati_category_modes, "\"int\""),
                                     {.key = NULL}};

/* Bin 0 is for the mask_value if there is one. */
static leat_status bin_of(const leati_categories *categories, const leati_callee_run *run, int64_t i,
                          int64_t *out, leat_error *err) {
    const config *c = (const void *)categories;
    const int64_t number = leati_integer_at(run->inputs[0].dtype, run->args[0], i);
    const bool masks = c->mask_value != INT64_MIN && c->num_bins > 1;
    const uint64_t bins = (uint64_t)c->num_bins - (masks ? 1 : 0);
    (void)err;
    *out = (int64_t)(leati_fingerprint(number, leati_salt_key(&c->key)) % bins);
    if (masks) *out = number == c->mask_value ? 0 : *out + 1;
    return LEAT_OK;
}

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    LEATI_TRY(leati_salt_read(&c->key, c->salt, err));
    if (c->categories.output_mode == LEATI_MODE_INT && layer->dtype == LEAT_F32) layer->dtype = LEAT_I64;
    return leati_categories_set(&c->categories, c->num_bins, bin_of, err);
}

LEATI_LAYER_TYPE(hashing, "Hashing", "hashing", config, fields, LEATI_ONE_INPUT, LEATI_CATEGORY_TYPE,
                 .check = check);

/* ---- HashedCrossing ---- */

typedef struct crossing_config {
    leati_categories categories;
    int64_t num_bins;
} crossing_config;

static const char *const crossing_modes[] = {"int", "one_hot", NULL};

static const leati_field crossing_fields[] = {LEATI_INT_FIELD(crossing_config, num_bins, 1, NULL),
                                              LEATI_CATEGORY_FIELDS(crossing_config, crossing_modes,
                                                                    "\"int\""),
                                              {.key = NULL}};

static leat_status crossing_bin(const leati_categories *categories, const leati_callee_run *run, int64_t i,
                                int64_t *out, leat_error *err) {
    const crossing_config *c = (const void *)categories;
    uint64_t hash = UINT64_C(0xDECAFCAFFE); /* TensorFlow's default key of SparseCross */
    (void)err;
    for (int input = 0; input < run->input_count; ++input) {
        int64_t number = leati_integer_at(run->inputs[input].dtype, run->args[input], i);
        hash = leati_fingerprint_join(hash, (uint64_t)number);
    }
    *out = (int64_t)(hash % (uint64_t)c->num_bins);
    return LEAT_OK;
}

static leat_status check_crossing(leati_layer *layer, leat_error *err) {
    crossing_config *c = layer->config;
    if (c->categories.output_mode == LEATI_MODE_INT && layer->dtype == LEAT_F32) layer->dtype = LEAT_I64;
    return leati_categories_set(&c->categories, c->num_bins, crossing_bin, err);
}

static leat_status infer_crossing(const leati_layer *layer, int input_count, const leati_shape *inputs,
                                  leati_shape *outputs, int *output_count, leat_error *err) {
    if (inputs[0].rank > 2 || (inputs[0].rank == 2 && inputs[0].dims[1] != 1))
        return leati_shape_unexpected(&inputs[0], "inputs (batch) or (batch, 1)", err);
    return leati_categories_infer(layer, input_count, inputs, outputs, output_count, err);
}

LEATI_LAYER_TYPE(hashed_crossing, "HashedCrossing", "hashed_crossing", crossing_config, crossing_fields,
                 .min_inputs = 2, .max_inputs = 2, .integers = true, .check = check_crossing,
                 .infer = infer_crossing, .lower = leati_categories_lower);
