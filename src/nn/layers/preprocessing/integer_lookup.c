/* SPDX-License-Identifier: Apache-2.0 */
/* IntegerLookup: integers as their indices in a vocabulary, or the reverse; others get indices of their own.
 * Source: keras.layers.IntegerLookup. */
#include "nn/layers/preprocessing/integer_lookup.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/layers/preprocessing/categories.h"
#include "nn/layers/preprocessing/fingerprint.h"
#include "nn/layers/types.h"
#include "tensor/number.h"

/* A term of the vocabulary, and its place in the list without the special tokens. */
typedef struct term {
    int64_t token, place;
} term;

typedef struct config {
    leati_categories categories;
    int64_t max_tokens, num_oov_indices, mask_token, oov_token; /* INT64_MIN: null */
    bool invert, pad_to_max_tokens;
    int32_t vocabulary_dtype, oov_method;
    json_t *vocabulary, *idf_weights, *vocabulary_size, *salt, *has_input_vocabulary;
    leati_salt key;
    int64_t first, count; /* index of the first term, after those of the special tokens; number of terms */
    size_t skipped;       /* number of special tokens at the beginning of the vocabulary */
    term *terms;          /* owned; sorted by token, or with `invert` by place */
    float *idf;           /* owned; (categories.depth); NULL unless output_mode is tf_idf */
} config;

enum { FLOORMOD, FARMHASH };
static const char *const oov_methods[] = {"floormod", "farmhash", NULL};
static const char *const vocabulary_dtypes[] = {"int64", NULL};

static const leati_field fields[] = {LEATI_FIELD(config, invert, LEATI_FIELD_BOOL, "false"),
                                     LEATI_FIELD(config, max_tokens, LEATI_FIELD_OPTIONAL_INT, "null"),
                                     LEATI_INT_FIELD(config, num_oov_indices, 0, "1"),
                                     LEATI_FIELD(config, oov_token, LEATI_FIELD_OPTIONAL_INT, "-1"),
                                     LEATI_FIELD(config, mask_token, LEATI_FIELD_OPTIONAL_INT, "null"),
                                     LEATI_CATEGORY_FIELDS(config, leati_weighted_category_modes, "\"int\""),
                                     LEATI_FIELD(config, pad_to_max_tokens, LEATI_FIELD_BOOL, "false"),
                                     LEATI_CHOICE_FIELD(config, vocabulary_dtype, vocabulary_dtypes,
                                                        "\"int64\""),
                                     LEATI_FIELD(config, idf_weights, LEATI_FIELD_JSON, "null"),
                                     LEATI_FIELD(config, vocabulary, LEATI_FIELD_JSON, "null"),
                                     LEATI_FIELD(config, vocabulary_size, LEATI_FIELD_JSON, "null"),
                                     LEATI_CHOICE_FIELD(config, oov_method, oov_methods, "\"floormod\""),
                                     LEATI_FIELD(config, salt, LEATI_FIELD_JSON, "null"),
                                     {.key = "has_input_vocabulary", /* of tf.keras */
                                      .kind = LEATI_FIELD_JSON,
                                      .offset = offsetof(config, has_input_vocabulary),
                                      .preset = "null",
                                      .hidden = true},
                                     {.key = NULL}};

static bool has_mask(const config *c) {
    return c->mask_token != INT64_MIN;
}

/* ---- Looking up ---- */

static int compare_tokens(const void *a, const void *b) {
    int64_t first = ((const term *)a)->token, second = ((const term *)b)->token;
    return (first > second) - (first < second);
}

/* Returns the index for a token that the vocabulary does not have. */
static leat_status unknown_index(const config *c, int64_t token, int64_t *out, leat_error *err) {
    const int64_t start = c->first - c->num_oov_indices, count = c->num_oov_indices;
    if (count == 0)
        return leati_fail(err, LEAT_EINVAL,
                          "IntegerLookup: expected values of the vocabulary, because num_oov_indices is 0, "
                          "received %" PRId64,
                          token);
    if (c->oov_method == FARMHASH)
        *out = start + (int64_t)(leati_fingerprint(token, leati_salt_key(&c->key)) % (uint64_t)count);
    else
        *out = start + (token % count + count) % count;
    return LEAT_OK;
}

static leat_status index_of(const leati_categories *categories, const leati_callee_run *run, int64_t i,
                            int64_t *out, leat_error *err) {
    const config *c = (const void *)categories;
    const term wanted = {.token = leati_integer_at(run->inputs[0].dtype, run->args[0], i)};
    *out = categories->output_mode == LEATI_MODE_INT ? 0 : -1;
    if (has_mask(c) && wanted.token == c->mask_token) return LEAT_OK;
    const term *found = bsearch(&wanted, c->terms, (size_t)c->count, sizeof wanted, compare_tokens);
    if (!found) return unknown_index(c, wanted.token, out, err);
    *out = c->first + found->place;
    return LEAT_OK;
}

static leat_status token_of(const leati_categories *categories, const leati_callee_run *run, int64_t i,
                            int64_t *out, leat_error *err) {
    const config *c = (const void *)categories;
    const int64_t index = leati_integer_at(run->inputs[0].dtype, run->args[0], i);
    (void)err;
    *out = c->oov_token;
    if (index >= c->first && index < c->first + c->count) *out = c->terms[index - c->first].token;
    if (has_mask(c) && index == 0) *out = c->mask_token;
    return LEAT_OK;
}

/* ---- Configuration ---- */

/* True if the vocabulary begins with the special tokens: the mask if it has an index, then those for other values. */
static bool begins_specially(const config *c) {
    for (int64_t i = 0; i < c->first; ++i) {
        const json_t *item = json_array_get(c->vocabulary, (size_t)i);
        int64_t special = i < c->first - c->num_oov_indices ? c->mask_token : c->oov_token;
        if (!json_is_integer(item) || json_integer_value(item) != special) return false;
    }
    return true;
}

/* Reads the terms after the special tokens. */
static leat_status read_terms(config *c, leat_error *err) {
    const size_t skipped = c->skipped;
    c->count = (int64_t)(json_array_size(c->vocabulary) - skipped);
    c->terms = leati_calloc((size_t)c->count + 1, sizeof *c->terms);
    if (!c->terms) return leati_fail_memory(err, (size_t)c->count * sizeof *c->terms, "the vocabulary");
    for (int64_t i = 0; i < c->count; ++i) {
        const json_t *item = json_array_get(c->vocabulary, skipped + (size_t)i);
        if (!json_is_integer(item))
            return leati_fail(err, LEAT_EINVAL, "vocabulary: expected a list of integers");
        c->terms[i] = (term){.token = json_integer_value(item), .place = i};
        if ((has_mask(c) && c->terms[i].token == c->mask_token) ||
            (c->invert && c->terms[i].token == c->oov_token))
            return leati_fail(
                err, LEAT_EINVAL,
                "vocabulary: expected mask_token and oov_token in front of all terms or nowhere, "
                "received %" PRId64 " as term %" PRId64,
                c->terms[i].token, i);
    }
    if (c->invert) return LEAT_OK;
    qsort(c->terms, (size_t)c->count, sizeof *c->terms, compare_tokens);
    for (int64_t i = 1; i < c->count; ++i)
        if (c->terms[i - 1].token == c->terms[i].token)
            return leati_fail(err, LEAT_EINVAL,
                              "vocabulary: expected each term once, received %" PRId64 " twice",
                              c->terms[i].token);
    return LEAT_OK;
}

/* Reads the factors of tf_idf.  Special tokens that the vocabulary does not have get the mean of the factors.  Without
 * a list in the configuration, a file of weights has the factors. */
static leat_status read_factors(config *c, leat_error *err) {
    const size_t length = json_array_size(c->vocabulary), front = (size_t)c->first - c->skipped;
    double sum = 0;
    c->idf = leati_calloc((size_t)c->categories.depth, sizeof *c->idf);
    if (!c->idf) return leati_fail_memory(err, (size_t)c->categories.depth * sizeof *c->idf, "idf_weights");
    c->categories.weights = c->idf;
    if (!c->idf_weights) return LEAT_OK;
    if (json_array_size(c->idf_weights) != length)
        return leati_fail(err, LEAT_EINVAL,
                          "idf_weights: expected a list as long as the vocabulary (%zu numbers)", length);
    for (size_t i = 0; i < length; ++i) {
        const json_t *item = json_array_get(c->idf_weights, i);
        if (!json_is_number(item)) return leati_fail(err, LEAT_EINVAL, "idf_weights: expected numbers");
        sum += json_number_value(item);
        c->idf[front + i] = (float)json_number_value(item);
    }
    for (size_t i = 0; i < front; ++i) c->idf[i] = (float)(sum / (double)length);
    return LEAT_OK;
}

bool leati_integer_lookup_factors(const leati_layer *layer, leat_tensor *out) {
    if (layer->type != &leati_layer_integer_lookup) return false;
    config *c = layer->config;
    *out = leat_tensor_view(LEAT_F32, 1, &c->categories.depth, c->idf);
    return c->idf != NULL;
}

leat_status leati_integer_lookup_update(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    const size_t length = json_array_size(c->vocabulary), front = (size_t)c->first - c->skipped;
    json_t *list = json_array();
    bool complete = list != NULL;
    for (size_t i = 0; complete && i < length; ++i)
        complete = json_array_append_new(list, json_real((double)c->idf[front + i])) == 0;
    if (complete) {
        json_decref(c->idf_weights);
        c->idf_weights = list;
        return LEAT_OK;
    }
    json_decref(list);
    return leati_fail(err, LEAT_ENOMEM, "no memory for idf_weights");
}

static leat_status check_options(const config *c, leat_error *err) {
    const int32_t mode = c->categories.output_mode;
    if (c->max_tokens != INT64_MIN && c->max_tokens <= 1)
        return leati_fail(err, LEAT_EINVAL, "max_tokens: expected at least 2, or null, received %" PRId64,
                          c->max_tokens);
    if (c->pad_to_max_tokens && c->max_tokens == INT64_MIN)
        return leati_fail(err, LEAT_EINVAL,
                          "max_tokens: expected a number, because pad_to_max_tokens is true");
    if (c->num_oov_indices > INT32_MAX)
        return leati_fail(err, LEAT_EINVAL, "num_oov_indices: expected at most %d", INT32_MAX);
    if (c->invert && (mode != LEATI_MODE_INT || c->oov_token == INT64_MIN))
        return leati_fail(err, LEAT_EINVAL,
                          "invert: expected output_mode \"int\" and an oov_token together with true");
    if (c->salt && c->oov_method != FARMHASH)
        return leati_fail(err, LEAT_EINVAL, "salt: expected null unless oov_method is \"farmhash\"");
    if (c->idf_weights && mode != LEATI_MODE_TF_IDF)
        return leati_fail(err, LEAT_EINVAL, "idf_weights: expected null unless output_mode is \"tf_idf\"");
    if (json_array_size(c->vocabulary) > 0 && json_array_size(c->vocabulary) <= INT32_MAX) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "vocabulary: expected a list of integers; a layer that has learned its vocabulary by adapt() "
        "has it in a .keras file, and in other files only if it was set by set_vocabulary()");
}

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    const int32_t mode = c->categories.output_mode;
    LEATI_TRY(check_options(c, err));
    LEATI_TRY(leati_salt_read(&c->key, c->salt, err));
    c->first = (has_mask(c) && mode == LEATI_MODE_INT) + c->num_oov_indices;
    c->skipped = begins_specially(c) ? (size_t)c->first : 0;
    LEATI_TRY(read_terms(c, err));
    const int64_t size = c->first + c->count;
    if (c->max_tokens != INT64_MIN && size > c->max_tokens)
        return leati_fail(err, LEAT_EINVAL,
                          "vocabulary: expected at most max_tokens (%" PRId64
                          ") with the special tokens, received "
                          "%" PRId64,
                          c->max_tokens, size);
    LEATI_TRY(leati_categories_set(&c->categories, c->pad_to_max_tokens ? c->max_tokens : size,
                                   c->invert ? token_of : index_of, err));
    return mode == LEATI_MODE_TF_IDF ? read_factors(c, err) : LEAT_OK;
}

static void fini(void *config_) {
    config *c = config_;
    leati_free(c->terms);
    leati_free(c->idf);
}

LEATI_LAYER_TYPE(integer_lookup, "IntegerLookup", "integer_lookup", config, fields, LEATI_ONE_INPUT,
                 LEATI_CATEGORY_TYPE, .check = check, .fini = fini);
