/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a sequence whose samples have numbers.  Room: data. */
#include "data/numbered/numbered.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

leat_status leati_check_batch_size(int64_t batch_size, leat_error *err) {
    if (batch_size >= 1) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "batch size %lld, expected at least 1", (long long)batch_size);
}

size_t leati_sample_bytes(const leat_tensor_spec *spec) {
    return leati_count_bytes(leati_shape_count(spec->rank, spec->shape), leat_dtype_bytes(spec->dtype));
}

leat_status leati_numbers_init(leati_numbers *out, int64_t first, int64_t count, leat_error *err) {
    const int64_t few = sizeof out->few / sizeof *out->few;
    out->at = count <= few ? out->few : leati_calloc((size_t)count, sizeof *out->at);
    if (!out->at)
        return leati_fail_memory(err, leati_count_bytes(count, sizeof *out->at), "numbers of samples");
    for (int64_t i = 0; i < count; ++i) out->at[i] = first + i;
    return LEAT_OK;
}

void leati_numbers_fini(leati_numbers *numbers) {
    if (numbers->at != numbers->few) leati_free(numbers->at);
    numbers->at = NULL;
}

/* After so many warnings about bad samples, a process says no more. */
enum { MAX_WARNINGS = 20 };

leat_status leati_bad_sample(leati_bad_samples *rule, leat_status status, const leat_error *problem,
                             leat_error *err) {
    if (!rule->skipped || status == LEAT_ENOMEM) return leati_fail(err, status, "%s", problem->message);
    const int64_t before = atomic_fetch_add(&rule->skipped_count, 1);
    if (before < MAX_WARNINGS) leati_log(LEAT_LOG_WARNING, "left out: %s", problem->message);
    if (before == MAX_WARNINGS)
        leati_log(LEAT_LOG_WARNING, "left out: further %s, which are not named", rule->what);
    return LEAT_OK;
}

leat_status leati_bad_batch(const leati_bad_samples *rule, int64_t count, const leat_error *first,
                            leat_error *err) {
    if (count == 1) return leati_fail(err, LEAT_ESKIPPED, "%s", first->message);
    return leati_fail(err, LEAT_ESKIPPED, "all %lld %s of the batch are bad, the first: %s", (long long)count,
                      rule->what, first->message);
}

/* ---- The sequence ---- */

static int64_t length(void *user) {
    leati_numbered *source = user;
    if (source->before_pass) source->before_pass(source);
    return (source->samples - 1) / source->spec.batch_size + 1;
}

static int64_t samples(void *user) {
    return ((const leati_numbered *)user)->samples;
}

static leat_status get_samples(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                               leat_batch *batch, leat_error *err) {
    leati_numbered *source = user;
    return source->make(source, numbers, count, rng, batch, err);
}

static leat_status get_plain(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                             leat_batch *batch, leat_error *err) {
    leati_numbered *source = user;
    (void)rng;
    return source->make(source, numbers, count, NULL, batch, err);
}

leat_status leati_numbered_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    leati_numbered *source = user;
    const int64_t first = index * source->spec.batch_size, left = source->samples - first;
    const int64_t count = left < source->spec.batch_size ? left : source->spec.batch_size;
    leati_numbers numbers;
    LEATI_TRY(leati_numbers_init(&numbers, first, count, err));
    batch->size = count;
    const leat_status status = source->make(source, numbers.at, count, rng, batch, err);
    leati_numbers_fini(&numbers);
    return status;
}

static void destroy(void *user) {
    leati_numbered *source = user;
    source->destroy(source);
}

leat_sequence leati_numbered_sequence(leati_numbered *source) {
    leat_sequence made = leat_sequence_default();
    if (source->spec.batch_size > source->samples) source->spec.batch_size = source->samples;
    made.user = source;
    made.spec = source->spec;
    made.length = length;
    made.get = leati_numbered_get;
    made.samples = samples;
    made.get_samples = get_samples;
    made.get_plain = source->is_random ? get_plain : NULL;
    made.destroy = destroy;
    made.independent_samples = !source->depends;
    return made;
}

leati_numbered *leati_numbered_of(const leat_sequence *sequence,
                                  leat_status (*make)(leati_numbered *, const int64_t *, int64_t, leat_rng *,
                                                      leat_batch *, leat_error *)) {
    leati_numbered *source = sequence->get == leati_numbered_get ? sequence->user : NULL;
    return source && source->make == make ? source : NULL;
}
