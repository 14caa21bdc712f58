/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about single samples of any source: where they come from, and the sizes of their pictures.
 * Room: data. */
#include "data/samples.h"

#include "base/error.h"
#include "base/text.h"
#include "data/columns.h"
#include "data/combine/combine.h"
#include "data/images.h"
#include "data/paths.h"
#include "data/ragged.h"
#include "json/json.h"
#include "leat/source.h"
#include "tensor/sequence.h"

leat_status leat_source_note_sizes(const leat_sequence *sequence, int64_t *sizes, leat_error *err) {
    LEATI_GIVEN(sequence, err);
    LEATI_TRY(leati_batch_spec_check(&sequence->spec, err));
    leati_combined *combined = leati_combined_of(sequence);
    if (combined) return leati_combined_note_sizes(combined, sizes, err);
    if (leati_is_records(sequence)) return leati_records_note_sizes(sequence, sizes, err);
    if (leati_is_images(sequence)) return leati_images_note_sizes(sequence, sizes, err);
    return leati_fail(err, LEAT_ENOTSUP, "expected a source of pictures, received another one");
}

/* Writes a path so that it can stand in a SPEC. */
static void add_path(leati_text *out, const char *path) {
    json_t *escaped = leati_path_json(path);
    if (escaped)
        leati_text_add(out, "%s", json_string_value(escaped));
    else
        out->failed = true;
    json_decref(escaped);
}

/* Tells which row of a file a sample is. */
static bool is_row(const leat_sequence *source, int64_t sample, leati_row_place *out) {
    const char *path = leati_ragged_path(source);
    if (!path) return leati_columns_place(source, sample, out);
    *out = (leati_row_place){path, false, sample};
    return true;
}

leat_status leat_source_sample_name(const leat_sequence *sequence, int64_t sample, const leat_rng *rng,
                                    char **out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(sequence, err);
    LEATI_TRY(leati_batch_spec_check(&sequence->spec, err));
    if (!sequence->samples || sample < 0 || sample >= sequence->samples(sequence->user))
        return leati_fail(err, LEAT_EINVAL, "there is no sample %lld", (long long)sample);
    if (leati_combined_of(sequence)) LEATI_GIVEN(rng, err);
    int64_t number = sample;
    const leat_sequence *source = leati_combined_locate(sequence, &number, rng ? rng->key : 0);
    const leati_image_list *list = leati_images_list(source);
    leati_text text = {0};
    leati_row_place place;
    if (list) {
        add_path(&text, list->files[number].path);
    } else if (leati_is_records(source)) {
        uint64_t offset = 0;
        add_path(&text, leati_records_place(source, number, &offset));
        leati_text_add(&text, ", offset %llu", (unsigned long long)offset);
    } else if (is_row(source, number, &place)) {
        add_path(&text, place.path);
        leati_text_add(&text, ", %s %lld", place.is_line ? "line" : "row", (long long)place.number);
    } else {
        return leati_fail(err, LEAT_ENOTSUP, "samples of this source have no name");
    }
    if (text.failed) {
        leati_text_fini(&text);
        return leati_fail_memory(err, 0, "the name of a sample");
    }
    *out = text.data;
    return LEAT_OK;
}
