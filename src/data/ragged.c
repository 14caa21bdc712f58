/* SPDX-License-Identifier: Apache-2.0 */
/* The source of samples that vary in length: pads and cuts them as Keras's pad_sequences does, and gathers samples of
 * similar lengths in batches.  Room: data. */
#include "data/ragged.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/shuffle.h"
#include "data/numbered/numbered.h"
#include "tensor/convert.h"
#include "tensor/number.h"

enum { ELEMENT_BYTES = 8 };

typedef struct ragged {
    leati_numbered numbered; /* first */
    leati_ragged_choices choices;
    const unsigned char *values; /* (offsets[samples], row) */
    const leati_map *map;        /* of the values; NULL: memory */
    int64_t *offsets;            /* (samples + 1) */
    int64_t row_count;           /* numbers of a time step */
    size_t row_bytes;            /* of a time step */
    unsigned char pad[ELEMENT_BYTES];
    leat_sequence rest; /* targets and sample weights; zeroed: there are none */
    char *path;
    /* Buckets: bucket b has the samples members[first[b]] to members[first[b + 1] - 1], in order, and the batches from
     * batch[b] on. */
    int64_t *members;
    int64_t first[LEATI_RAGGED_MAX_BUCKETS + 1], batch[LEATI_RAGGED_MAX_BUCKETS + 1];
    void *owner;
    void (*release)(void *owner);
} ragged;

/* ---- Samples ---- */

static void fill_pad(const ragged *r, unsigned char *dst, int64_t rows) {
    const size_t bytes = leat_dtype_bytes(r->numbered.spec.tensors[0].dtype),
                 count = (size_t)(rows * r->row_count);
    for (size_t i = 0; i < count; ++i) memcpy(dst + i * bytes, r->pad, bytes);
}

/* Writes a sample with `length` time steps. */
static void write_sample(const ragged *r, int64_t sample, int64_t length, unsigned char *dst) {
    const int64_t present = r->offsets[sample + 1] - r->offsets[sample];
    const int64_t kept = present < length ? present : length, padded = length - kept;
    const int64_t from = r->offsets[sample] + (r->choices.cut_after ? 0 : present - kept);
    const int64_t place = r->choices.pad_after ? 0 : padded;
    fill_pad(r, dst + (size_t)(r->choices.pad_after ? kept : 0) * r->row_bytes, padded);
    memcpy(dst + (size_t)place * r->row_bytes, r->values + (size_t)from * r->row_bytes,
           (size_t)kept * r->row_bytes);
}

static leat_status write_rest(const ragged *r, const int64_t *numbers, int64_t count, leat_rng *rng,
                              const leat_batch *batch, leat_error *err) {
    if (!r->rest.get_samples) return LEAT_OK;
    leat_batch rest = {.size = count, .tensor_count = batch->tensor_count - 1};
    for (int i = 0; i < rest.tensor_count; ++i) rest.tensors[i] = batch->tensors[i + 1];
    return r->rest.get_samples(r->rest.user, numbers, count, rng, &rest, err);
}

static leat_status make_batch(const ragged *r, const int64_t *numbers, int64_t count, int64_t length,
                              leat_rng *rng, leat_batch *batch, leat_error *err) {
    unsigned char *dst = batch->tensors[0].data;
    const size_t sample_bytes = (size_t)length * r->row_bytes;
    for (int64_t i = 0; i < count; ++i) write_sample(r, numbers[i], length, dst + (size_t)i * sample_bytes);
    batch->size = count;
    LEATI_TRY(
        leati_map_check(r->map, r->values, (size_t)r->offsets[r->numbered.samples] * r->row_bytes, err));
    return write_rest(r, numbers, count, rng, batch, err);
}

/* ---- The sequence without buckets ---- */

static leat_status make_padded(leati_numbered *source, const int64_t *numbers, int64_t count, leat_rng *rng,
                               leat_batch *batch, leat_error *err) {
    const ragged *r = (const ragged *)source;
    return make_batch(r, numbers, count, r->choices.maxlen, rng, batch, err);
}

const char *leati_ragged_path(const leat_sequence *sequence) {
    const ragged *r = (const ragged *)leati_numbered_of(sequence, make_padded);
    return r ? r->path : NULL;
}

/* ---- The sequence with buckets ---- */

static int64_t bucket_batches(void *user) {
    const ragged *r = user;
    return r->batch[r->choices.bucket_count];
}

/* Writes the numbers of the samples of a batch: the bucket's samples in the order of the pass. */
static void choose_samples(const ragged *r, int bucket, int64_t index, int64_t count, const leat_rng *rng,
                           int64_t *numbers) {
    const int64_t begin = (index - r->batch[bucket]) * r->numbered.spec.batch_size;
    const int64_t members = r->first[bucket + 1] - r->first[bucket];
    leati_shuffle order;
    if (r->choices.shuffled)
        leati_shuffle_init(&order, leati_mix(rng->key, (uint64_t)bucket + 0x6275636B), (uint64_t)members);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t place =
            r->choices.shuffled ? (int64_t)leati_shuffle_at(&order, (uint64_t)(begin + i)) : begin + i;
        numbers[i] = r->members[r->first[bucket] + place];
    }
}

static leat_status get_of_bucket(void *user, int64_t index, leat_rng *rng, leat_batch *batch,
                                 leat_error *err) {
    const ragged *r = user;
    int bucket = 0;
    while (index >= r->batch[bucket + 1]) ++bucket;
    const int64_t left =
        r->first[bucket + 1] - r->first[bucket] - (index - r->batch[bucket]) * r->numbered.spec.batch_size;
    const int64_t count = left < r->numbered.spec.batch_size ? left : r->numbered.spec.batch_size;
    leati_numbers numbers;
    LEATI_TRY(leati_numbers_init(&numbers, 0, count, err));
    choose_samples(r, bucket, index, count, rng, numbers.at);
    batch->tensors[0].shape[1] = r->choices.buckets[bucket];
    const leat_status status = make_batch(r, numbers.at, count, r->choices.buckets[bucket], rng, batch, err);
    leati_numbers_fini(&numbers);
    return status;
}

/* Returns the bucket of a sample; samples that are longer than all buckets are cut. */
static int bucket_of(const ragged *r, int64_t sample) {
    const int64_t present = r->offsets[sample + 1] - r->offsets[sample];
    int bucket = 0;
    while (bucket < r->choices.bucket_count - 1 && present > r->choices.buckets[bucket]) ++bucket;
    return bucket;
}

static leat_status fill_buckets(ragged *r, leat_error *err) {
    int64_t filled[LEATI_RAGGED_MAX_BUCKETS] = {0};
    const int buckets = r->choices.bucket_count;
    r->members = leati_calloc((size_t)r->numbered.samples, sizeof *r->members);
    if (!r->members)
        return leati_fail_memory(err, leati_count_bytes(r->numbered.samples, sizeof *r->members),
                                 "buckets of samples");
    for (int64_t i = 0; i < r->numbered.samples; ++i) ++r->first[bucket_of(r, i) + 1];
    for (int b = 0; b < buckets; ++b) {
        r->batch[b + 1] =
            r->batch[b] + (r->first[b + 1] + r->numbered.spec.batch_size - 1) / r->numbered.spec.batch_size;
        r->first[b + 1] += r->first[b];
        filled[b] = r->first[b];
    }
    for (int64_t i = 0; i < r->numbered.samples; ++i) r->members[filled[bucket_of(r, i)]++] = i;
    return LEAT_OK;
}

/* ---- Opening ---- */

static void destroy(leati_numbered *source) {
    ragged *r = (ragged *)source;
    leat_sequence_destroy(&r->rest);
    if (r->release) r->release(r->owner);
    leati_free(r->offsets);
    leati_free(r->members);
    leati_free(r->path);
    leati_free(r);
}

/* Copies the offsets and checks that each is at least as large as the one before. */
static leat_status read_offsets(ragged *r, const leati_array *offsets, int64_t rows, leat_error *err) {
    const size_t bytes = leat_dtype_bytes(offsets->dtype);
    if (offsets->rank != 1 || offsets->shape[0] < 2 || !leati_dtype_is_integer(offsets->dtype))
        return leati_fail(err, LEAT_ESHAPE,
                          "the offsets have type '%s' and rank %d, expected integers of shape (samples + 1,)",
                          leati_dtype_code(offsets->dtype), offsets->rank);
    r->numbered.samples = offsets->shape[0] - 1;
    r->offsets = leati_calloc((size_t)offsets->shape[0], sizeof *r->offsets);
    if (!r->offsets)
        return leati_fail_memory(err, leati_count_bytes(offsets->shape[0], sizeof *r->offsets), "offsets");
    for (int64_t i = 0; i <= r->numbered.samples; ++i) {
        uint64_t element; /* aligned for every type */
        memcpy(&element, offsets->data + (size_t)i * bytes, bytes);
        if (offsets->swapped) leati_swap_bytes(&element, bytes, 1);
        r->offsets[i] = leati_integer_at(offsets->dtype, &element, 0);
        if (r->offsets[i] < (i > 0 ? r->offsets[i - 1] : 0) || r->offsets[i] > rows)
            return leati_fail(
                err, LEAT_EFORMAT,
                "offset %lld is %lld, expected at least the offset before and at most %lld, the "
                "number of values",
                (long long)i, (long long)r->offsets[i], (long long)rows);
    }
    return leati_map_check(offsets->map, offsets->data, offsets->bytes, err);
}

/* Completes the lengths: maxlen is that of the longest sample, and the last bucket ends there. */
static leat_status choose_lengths(ragged *r, leat_error *err) {
    leati_ragged_choices *c = &r->choices;
    int64_t longest = 1;
    for (int64_t i = 0; i < r->numbered.samples; ++i)
        if (r->offsets[i + 1] - r->offsets[i] > longest) longest = r->offsets[i + 1] - r->offsets[i];
    if (c->maxlen == 0) c->maxlen = longest;
    while (c->bucket_count > 0 && c->buckets[c->bucket_count - 1] >= c->maxlen) --c->bucket_count;
    if (c->has_buckets) c->buckets[c->bucket_count++] = c->maxlen;
    return c->has_buckets ? fill_buckets(r, err) : LEAT_OK;
}

static leat_status describe(ragged *r, const leati_array *values, leat_error *err) {
    int64_t shape[LEAT_MAX_RANK] = {r->choices.maxlen};
    leat_batch_spec *spec = &r->numbered.spec;
    if (values->rank > LEAT_MAX_RANK - 1)
        return leati_fail(err, LEAT_ESHAPE, "the values have rank %d, expected at most %d", values->rank,
                          LEAT_MAX_RANK - 1);
    memcpy(shape + 1, values->shape + 1, (size_t)(values->rank - 1) * sizeof *shape);
    LEATI_TRY(leat_batch_spec_add(spec, LEAT_PART_INPUT, NULL, values->dtype, values->rank, shape, err));
    for (int i = 0; i < r->rest.spec.tensor_count; ++i) {
        const leat_tensor_spec *t = &r->rest.spec.tensors[i];
        LEATI_TRY(leat_batch_spec_add(spec, t->part, t->name, t->dtype, t->rank, t->shape, err));
    }
    return LEAT_OK;
}

static leat_status read_values(ragged *r, const leati_array *values, leat_error *err) {
    if (values->rank < 1)
        return leati_fail(err, LEAT_ESHAPE, "the values have rank 0, expected (values, ...)");
    if (values->dtype == LEAT_F64 || values->swapped)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "the values are float64 or of another byte order: store integers or float32 of this "
            "machine's byte order");
    r->values = values->data;
    r->map = values->map;
    r->row_count = leati_shape_count(values->rank - 1, values->shape + 1);
    r->row_bytes = leati_count_bytes(r->row_count, leat_dtype_bytes(values->dtype));
    leati_convert(values->dtype, r->pad, LEAT_F64, &r->choices.value, 1);
    return LEAT_OK;
}

static leat_status open_ragged(ragged *r, const leati_ragged_parts *parts, int64_t batch_size,
                               leat_error *err) {
    r->path = leati_strdup(parts->path);
    if (!r->path) return leati_fail_memory(err, strlen(parts->path), "the name of a file");
    LEATI_TRY(read_values(r, parts->values, err));
    LEATI_TRY(read_offsets(r, parts->offsets, parts->values->shape[0], err));
    if (r->rest.samples && r->rest.samples(r->rest.user) != r->numbered.samples)
        return leati_fail(err, LEAT_ESHAPE, "the targets have %lld samples, the offsets describe %lld",
                          (long long)r->rest.samples(r->rest.user), (long long)r->numbered.samples);
    r->numbered.spec.batch_size = batch_size < r->numbered.samples ? batch_size : r->numbered.samples;
    LEATI_TRY(choose_lengths(r, err));
    return describe(r, parts->values, err);
}

leat_status leati_ragged_open(leat_sequence *out, leati_ragged_parts *parts,
                              const leati_ragged_choices *choices, int64_t batch_size, leat_error *err) {
    ragged *r = leati_calloc(1, sizeof *r);
    if (!r) {
        leat_sequence_destroy(&parts->rest);
        parts->release(parts->owner);
        return leati_fail_memory(err, sizeof *r, "a source");
    }
    r->numbered.make = make_padded;
    r->numbered.destroy = destroy;
    r->choices = *choices;
    r->rest = parts->rest;
    r->owner = parts->owner;
    r->release = parts->release;
    const leat_status status = open_ragged(r, parts, batch_size, err);
    if (status != LEAT_OK) {
        destroy(&r->numbered);
        return status;
    }
    r->numbered.depends = r->rest.get_samples && !r->rest.independent_samples;
    *out = leati_numbered_sequence(&r->numbered);
    if (!choices->has_buckets) return LEAT_OK;
    out->length = bucket_batches;
    out->get = get_of_bucket;
    out->samples = NULL;
    out->get_samples = NULL;
    out->independent_samples = false;
    return LEAT_OK;
}
