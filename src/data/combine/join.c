/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences one after the other, and side by side.  Room: data. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/combine/combine.h"
#include "tensor/sequence.h"

/* ---- One after the other ---- */

typedef struct concat {
    leati_combined base;
    int64_t first[LEAT_COMBINE_MAX_PARTS + 1]; /* the number of the first sample of each part; then of all */
} concat;

static int part_of(const concat *c, int64_t number) {
    int part = 0;
    while (number >= c->first[part + 1]) ++part;
    return part;
}

static leat_status make_concat(leati_combined *base, const int64_t *numbers, int64_t count,
                               leati_draws *draws, leat_batch *batch, leat_error *err) {
    const concat *c = (const concat *)base;
    leati_target target = {0};
    leati_draws own[LEAT_COMBINE_MAX_PARTS];
    int64_t made = 0;
    leat_status status = LEAT_OK;
    leati_numbers inner;
    LEATI_TRY(leati_numbers_init(&inner, 0, count, err));
    for (int i = 0; i < base->part_count; ++i) own[i] = leati_draws_of_part(draws, (uint64_t)i);
    for (int k = 0; k < batch->tensor_count; ++k) target.data[k] = batch->tensors[k].data;
    for (int64_t i = 0, n = 0; i < count && status == LEAT_OK; i += n) {
        const int part = part_of(c, numbers[i]);
        for (n = 0; i + n < count && numbers[i + n] >= c->first[part] && numbers[i + n] < c->first[part + 1];
             ++n)
            inner.at[n] = numbers[i + n] - c->first[part];
        status = leati_part_make(&base->parts[part], inner.at, n, &own[part], &target, &made, err);
    }
    leati_free(target.scratch);
    leati_numbers_fini(&inner);
    return status == LEAT_OK ? leati_batch_finish(batch, made, err) : status;
}

static int64_t locate_in_concat(const leati_combined *base, int64_t number, uint64_t *key, int part) {
    const concat *c = (const concat *)base;
    if (part_of(c, number) != part) return -1;
    *key = leati_key_of_part(*key, (uint64_t)part);
    return number - c->first[part];
}

static leati_rows rows_of_concat(const leati_combined *base, int part) {
    return (leati_rows){-((const concat *)base)->first[part], 1, 1};
}

leat_status leat_sequence_concat(leat_sequence *const *parts, int count, leat_sequence *out, size_t size,
                                 leat_error *err) {
    concat *c = NULL;
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_sequence_begin(out, size, err));
    LEATI_GIVEN(parts, err);
    LEATI_TRY(leati_combined_create(&c, sizeof *c, parts, count, err));
    for (int i = 0; i < count; ++i) c->first[i + 1] = c->first[i] + leati_part_samples(&c->base.parts[i]);
    c->base.own.samples = c->first[count];
    c->base.make = make_concat;
    c->base.locate = locate_in_concat;
    c->base.rows = rows_of_concat;
    return leati_combined_finish(&c->base, leati_combined_check_equal(&c->base, err), parts, out, size);
}

/* ---- Side by side ---- */

typedef struct zip {
    leati_combined base;
    int tensor[LEAT_COMBINE_MAX_PARTS]
              [LEAT_BATCH_MAX_TENSORS]; /* the tensor of the batch for each of a part */
} zip;

/* Makes the same samples of all parts, behind the `made` samples that the batch has.  Sets *equal to false if a part
 * leaves out samples. */
static leat_status make_side_by_side(const zip *z, const int64_t *numbers, int64_t count,
                                     const leati_draws *draws, leat_batch *batch, int64_t made, bool *equal,
                                     leat_error *err) {
    *equal = true;
    for (int i = 0; i < z->base.part_count && *equal; ++i) {
        const leat_sequence *part = &z->base.parts[i];
        leati_target target = {0};
        leati_draws copy = *draws;
        int64_t reached = made;
        for (int k = 0; k < part->spec.tensor_count; ++k)
            target.data[k] = batch->tensors[z->tensor[i][k]].data;
        const leat_status status = leati_part_make(part, numbers, count, &copy, &target, &reached, err);
        leati_free(target.scratch);
        LEATI_TRY(status);
        *equal = reached == made + count;
    }
    return LEAT_OK;
}

static leat_status make_zip(leati_combined *base, const int64_t *numbers, int64_t count, leati_draws *draws,
                            leat_batch *batch, leat_error *err) {
    const zip *z = (const zip *)base;
    int64_t made = 0;
    bool equal = false;
    LEATI_TRY(make_side_by_side(z, numbers, count, draws, batch, 0, &equal, err));
    if (equal) return leati_batch_finish(batch, count, err);
    for (int64_t i = 0; i < count; ++i) { /* some part leaves out samples; find out which */
        LEATI_TRY(make_side_by_side(z, numbers + i, 1, draws, batch, made, &equal, err));
        made += equal;
    }
    return leati_batch_finish(batch, made, err);
}

/* Lists the tensors of all parts, the inputs of all of them first. */
static leat_status describe_zip(zip *z, leat_error *err) {
    z->base.own.spec.tensor_count = 0;
    for (int purpose = LEAT_PART_INPUT; purpose <= LEAT_PART_SAMPLE_WEIGHT; ++purpose)
        for (int i = 0; i < z->base.part_count; ++i) {
            const leat_batch_spec *spec = &z->base.parts[i].spec;
            for (int k = 0; k < spec->tensor_count; ++k) {
                const leat_tensor_spec *t = &spec->tensors[k];
                if ((int)t->part != purpose) continue;
                z->tensor[i][k] = z->base.own.spec.tensor_count;
                LEATI_TRY(leat_batch_spec_add(&z->base.own.spec, t->part, t->name, t->dtype, t->rank,
                                              t->shape, err));
            }
        }
    return LEAT_OK;
}

static leat_status check_lengths(const zip *z, leat_error *err) {
    for (int i = 1; i < z->base.part_count; ++i) {
        const int64_t samples = leati_part_samples(&z->base.parts[i]);
        if (samples != z->base.own.samples)
            return leati_fail(err, LEAT_ESHAPE,
                              "part 0 has %lld samples, part %d has %lld; take the same number of each",
                              (long long)z->base.own.samples, i, (long long)samples);
    }
    return LEAT_OK;
}

leat_status leat_sequence_zip(leat_sequence *const *parts, int count, leat_sequence *out, size_t size,
                              leat_error *err) {
    zip *z = NULL;
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_sequence_begin(out, size, err));
    LEATI_GIVEN(parts, err);
    LEATI_TRY(leati_combined_create(&z, sizeof *z, parts, count, err));
    z->base.own.samples = leati_part_samples(&z->base.parts[0]);
    z->base.make = make_zip;
    z->base.locate = leati_locate_same;
    leat_status status = check_lengths(z, err);
    if (status == LEAT_OK) status = describe_zip(z, err);
    return leati_combined_finish(&z->base, status, parts, out, size);
}
