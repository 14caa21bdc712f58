/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the options of sources of shards.  Room: data. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/shards/records.h"
#include "tensor/sequence.h"

/* Reads "28x28x1"; returns false for any other text. */
static bool read_shape(leati_field *field, const char *text) {
    for (field->rank = 0; field->rank < LEAT_MAX_RANK - 1; ++text) {
        int64_t dimension = 0;
        for (; *text >= '0' && *text <= '9' && dimension <= INT32_MAX; ++text)
            dimension = 10 * dimension + (*text - '0');
        if (dimension < 1 || dimension > INT32_MAX || (*text && *text != 'x')) return false;
        field->shape[field->rank++] = dimension;
        if (!*text) return true;
    }
    return false;
}

/* Reads what stands behind a name: ":TYPE" and ":SHAPE", in any order. */
static leat_status read_suffixes(leati_field *field, char *text, leat_error *err) {
    while (text) {
        char *next = strchr(text, ':');
        if (next) *next++ = '\0';
        if (*text >= '0' && *text <= '9') {
            if (!read_shape(field, text))
                return leati_fail(err, LEAT_EINVAL, "'%s:%s': expected a shape, such as 28x28x1", field->name,
                                  text);
        } else {
            LEATI_TRY(leat_dtype_parse(&field->dtype, text, err));
            field->has_dtype = true;
        }
        text = next;
    }
    return LEAT_OK;
}

leat_status leati_records_add_field(leati_records *records, char *name, leat_batch_part part,
                                    leat_error *err) {
    if (records->field_count == LEAT_BATCH_MAX_TENSORS) return leati_fail_tensors(err);
    leati_field *field = &records->fields[records->field_count++];
    *field = (leati_field){.name = name, .part = part, .rank = -1};
    char *suffixes = strchr(name, ':');
    if (suffixes) *suffixes++ = '\0';
    LEATI_TRY(leati_spec_decode(name, err));
    if (*name == '\0') return leati_fail(err, LEAT_EINVAL, "the name of a part is empty");
    return read_suffixes(field, suffixes, err);
}

/* Adds the fields of a list, whose commas become zero bytes. */
static leat_status add_list(leati_records *records, char **at, const char *list, leat_batch_part part,
                            leat_error *err) {
    char *text = *at;
    if (!list) return LEAT_OK;
    *at = text + strlen(list) + 1;
    memcpy(text, list, strlen(list) + 1);
    while (text) {
        char *comma = strchr(text, ',');
        if (comma) *comma = '\0';
        LEATI_TRY(leati_records_add_field(records, text, part, err));
        text = comma ? comma + 1 : NULL;
    }
    return LEAT_OK;
}

static size_t length_of(const char *text) {
    return text ? strlen(text) + 1 : 0;
}

static leat_status read_options(leati_records *records, const leati_spec *spec,
                                const leati_settings *settings, leat_error *err) {
    const char *inputs = leati_spec_value(spec, "inputs"), *targets = leati_spec_value(spec, "targets");
    LEATI_TRY(leati_image_choices_read(&records->choices, settings, err));
    records->onehot = settings->columns.onehot;
    records->texts = leati_calloc(length_of(inputs) + length_of(targets) + 1, 1);
    if (!records->texts) return leati_fail_memory(err, 1, "the names of fields");
    char *at = records->texts;
    LEATI_TRY(add_list(records, &at, inputs, LEAT_PART_INPUT, err));
    return add_list(records, &at, targets, LEAT_PART_TARGET, err);
}

leat_status leati_records_create(leati_records **out, const leati_spec *spec, const leati_settings *settings,
                                 leat_error *err) {
    *out = NULL;
    leati_records *records = leati_calloc(1, sizeof *records);
    if (!records) return leati_fail_memory(err, sizeof *records, "a source");
    leat_status status = read_options(records, spec, settings, err);
    records->bad = (leati_bad_samples){.skipped = records->choices.skip_bad, .what = "samples"};
    if (status == LEAT_OK)
        status = leati_path_list_expand(&records->shards, spec->paths, spec->path_count, err);
    if (status != LEAT_OK) {
        leati_records_destroy(records);
        return status;
    }
    *out = records;
    return LEAT_OK;
}
