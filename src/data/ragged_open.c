/* SPDX-License-Identifier: Apache-2.0 */
/* Opens sources of the kind ragged: reads their options and finds their arrays in an .npz file.  Room: data. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/kinds.h"
#include "data/npz.h"
#include "data/ragged.h"

/* ---- Options ---- */

/* Reads an integer from 1 to 2^31 - 1 at *text and moves *text behind it; returns 0 if there is none. */
static int64_t read_length(const char **text) {
    int64_t value = 0;
    for (; **text >= '0' && **text <= '9' && value <= INT32_MAX; ++*text) value = 10 * value + (**text - '0');
    return value <= INT32_MAX ? value : 0;
}

static leat_status read_side(bool *after, const char *key, const char *text, leat_error *err) {
    *after = text && strcmp(text, "post") == 0;
    if (!text || *after || strcmp(text, "pre") == 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "%s=%s: expected pre or post", key, text);
}

static leat_status read_maxlen(leati_ragged_choices *out, const char *text, leat_error *err) {
    const char *at = text;
    if (!text) return LEAT_OK;
    out->maxlen = read_length(&at);
    if (out->maxlen > 0 && !*at) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "maxlen=%s: expected a number of time steps", text);
}

/* Reads a decimal number with at most 15 digits, independently of the locale. */
static leat_status read_value(leati_ragged_choices *out, const char *text, leat_error *err) {
    double value = 0, place = 1;
    int digits = 0;
    if (!text) return LEAT_OK;
    const char *at = text + (*text == '-');
    for (; *at >= '0' && *at <= '9'; ++at, ++digits) value = 10 * value + (*at - '0');
    if (*at == '.')
        for (++at; *at >= '0' && *at <= '9'; ++at, ++digits) value += (*at - '0') * (place /= 10);
    if (digits == 0 || digits > 15 || *at)
        return leati_fail(err, LEAT_EINVAL, "value=%s: expected a number", text);
    out->value = *text == '-' ? -value : value;
    return LEAT_OK;
}

static leat_status read_buckets(leati_ragged_choices *out, const char *text, leat_error *err) {
    out->has_buckets = text != NULL;
    for (const char *at = text; at; ++at) {
        const int count = out->bucket_count;
        const int64_t length = read_length(&at);
        if (length < 1 || (*at && *at != ',') || (count > 0 && length <= out->buckets[count - 1]) ||
            count == LEATI_RAGGED_MAX_BUCKETS - 1)
            return leati_fail(
                err, LEAT_EINVAL,
                "buckets=%s: expected at most %d lengths in ascending order, with commas between them", text,
                LEATI_RAGGED_MAX_BUCKETS - 1);
        out->buckets[out->bucket_count++] = length;
        if (!*at) break;
    }
    return LEAT_OK;
}

static leat_status read_choices(leati_ragged_choices *out, const leati_ragged_texts *texts, leat_error *err) {
    *out = (leati_ragged_choices){.shuffled = true};
    LEATI_TRY(read_maxlen(out, texts->maxlen, err));
    LEATI_TRY(read_side(&out->pad_after, "padding", texts->padding, err));
    LEATI_TRY(read_side(&out->cut_after, "truncating", texts->truncating, err));
    LEATI_TRY(read_value(out, texts->value, err));
    LEATI_TRY(read_buckets(out, texts->buckets, err));
    if (!texts->within || strcmp(texts->within, "shuffled") == 0) return LEAT_OK;
    out->shuffled = false;
    if (strcmp(texts->within, "ordered") == 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "within=%s: expected shuffled or ordered", texts->within);
}

/* ---- Arrays ---- */

static void release(void *owner) {
    leat_npz *npz = owner;
    leat_npz_close(&npz);
}

static leat_status add_rest(leati_columns *columns, leat_npz *npz, const leati_settings *settings,
                            leat_error *err) {
    LEATI_TRY(leati_columns_add_members(columns, npz, settings->targets, "y", LEAT_PART_TARGET,
                                        &settings->columns, err));
    return leati_columns_add_members(columns, npz, settings->sample_weights, "sample_weight",
                                     LEAT_PART_SAMPLE_WEIGHT, &settings->columns, err);
}

/* Makes the sequence of targets and sample weights; *rest stays zeroed if there are none. */
static leat_status open_rest(leat_sequence *rest, leat_npz *npz, const leati_settings *settings,
                             const leat_source_options *options, leat_error *err) {
    leati_columns *columns = NULL;
    LEATI_TRY(leati_columns_create(&columns, options, NULL, NULL, err));
    const leat_status status = add_rest(columns, npz, settings, err);
    if (status == LEAT_OK && leati_columns_count(columns) > 0)
        leati_columns_finish_any(rest, columns);
    else
        leati_columns_destroy(columns);
    return status;
}

leat_status leati_open_ragged(leat_sequence *out, const leati_spec *spec, const char *text,
                              const leati_settings *settings, const leat_source_options *options,
                              leat_error *err) {
    leati_ragged_choices choices;
    leat_npz *npz = NULL;
    (void)text;
    LEATI_TRY(read_choices(&choices, &settings->ragged, err));
    LEATI_TRY(leati_npz_open_guarded(&npz, spec->paths[0], err));
    const char *values = settings->ragged.values, *offsets = settings->ragged.offsets;
    leati_ragged_parts parts = {.owner = npz, .release = release, .path = spec->paths[0]};
    leat_status status = leati_npz_array(npz, values ? values : "values", &parts.values, err);
    if (status == LEAT_OK) status = leati_npz_array(npz, offsets ? offsets : "offsets", &parts.offsets, err);
    if (status == LEAT_OK) status = open_rest(&parts.rest, npz, settings, options, err);
    if (status == LEAT_OK) return leati_ragged_open(out, &parts, &choices, options->batch_size, err);
    leat_npz_close(&npz);
    return status;
}
