/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a sequence that all combinations have, and calls of their parts.  Room: data. */
#include "data/combine/combine.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/text.h"
#include "tensor/sequence.h"

int64_t leati_part_samples(const leat_sequence *part) {
    return part->samples(part->user);
}

uint64_t leati_key_of_part(uint64_t key, uint64_t index) {
    return index == 0 ? key : leati_mix(key, index);
}

leati_draws leati_draws_of_part(const leati_draws *draws, uint64_t index) {
    leati_draws made = *draws;
    if (index == 0) return made;
    made.rng = leat_rng_for(0, 0, draws->rng.counter[1]);
    made.rng.key = leati_key_of_part(draws->rng.key, index);
    return made;
}

/* ---- Making samples of a part ---- */

/* Memory for one call of a part: a batch whose tensors are where the samples belong, or, if that place is not aligned
 * as `get` may expect, in the scratch memory. */
typedef struct sub_batch {
    leat_batch batch;
    bool moved[LEAT_BATCH_MAX_TENSORS];
} sub_batch;

static leat_status get_scratch(const leat_sequence *part, int64_t count, leati_target *target,
                               leat_error *err) {
    size_t bytes = 0;
    for (int i = 0; i < part->spec.tensor_count; ++i)
        bytes += leati_align(leati_count_bytes(count, leati_sample_bytes(&part->spec.tensors[i])));
    if (bytes <= target->scratch_bytes) return LEAT_OK;
    leati_free(target->scratch);
    target->scratch = leati_calloc_aligned(bytes);
    target->scratch_bytes = target->scratch ? bytes : 0;
    return target->scratch ? LEAT_OK : leati_fail_memory(err, bytes, "samples of a part");
}

static leat_status begin_call(sub_batch *out, const leat_sequence *part, int64_t count, leati_target *target,
                              int64_t made, leat_error *err) {
    size_t offset = 0;
    bool moves = false;
    out->batch = (leat_batch){.size = count, .tensor_count = part->spec.tensor_count};
    for (int i = 0; i < part->spec.tensor_count; ++i) {
        const leat_tensor_spec *spec = &part->spec.tensors[i];
        int64_t shape[LEAT_MAX_RANK] = {count};
        unsigned char *data = target->data[i] + (size_t)made * leati_sample_bytes(spec);
        memcpy(shape + 1, spec->shape, (size_t)spec->rank * sizeof *shape);
        out->batch.tensors[i] = leat_tensor_view(spec->dtype, spec->rank + 1, shape, data);
        out->moved[i] = (uintptr_t)data % LEATI_ALIGNMENT != 0;
        moves = moves || out->moved[i];
    }
    if (!moves) return LEAT_OK;
    LEATI_TRY(get_scratch(part, count, target, err));
    for (int i = 0; i < part->spec.tensor_count; ++i) {
        if (out->moved[i]) out->batch.tensors[i].data = (unsigned char *)target->scratch + offset;
        offset += leati_align(leati_count_bytes(count, leati_sample_bytes(&part->spec.tensors[i])));
    }
    return LEAT_OK;
}

/* Moves the samples of a call to their place. */
static leat_status end_call(const sub_batch *in, const leat_sequence *part, leati_target *target,
                            int64_t made, leat_error *err) {
    for (int i = 0; i < part->spec.tensor_count; ++i) {
        const leat_tensor_spec *spec = &part->spec.tensors[i];
        const leat_tensor *tensor = &in->batch.tensors[i];
        const size_t bytes = leati_sample_bytes(spec);
        unsigned char *data = target->data[i] + (size_t)made * bytes;
        if (memcmp(tensor->shape + 1, spec->shape, (size_t)spec->rank * sizeof *spec->shape) != 0)
            return leati_fail(err, LEAT_ENOTSUP,
                              "a combination needs samples of one shape, but these samples vary in shape");
        if (tensor->data != data) memcpy(data, tensor->data, (size_t)in->batch.size * bytes);
    }
    return LEAT_OK;
}

leat_status leati_part_make(const leat_sequence *part, const int64_t *numbers, int64_t count,
                            leati_draws *draws, leati_target *target, int64_t *made, leat_error *err) {
    const bool is_plain = draws->is_plain && part->get_plain;
    for (int64_t done = 0, n = 0; done < count; done += n) {
        sub_batch call;
        leat_error skipped = {0};
        n = count - done < part->spec.batch_size ? count - done : part->spec.batch_size;
        LEATI_TRY(begin_call(&call, part, n, target, *made, err));
        const leat_status status =
            (is_plain ? part->get_plain : part->get_samples)(part->user, numbers + done, n, &draws->rng,
                                                             &call.batch, &skipped);
        if (status == LEAT_ESKIPPED) continue;
        if (status != LEAT_OK) {
            if (err) *err = skipped;
            return status;
        }
        if (call.batch.size < 1 || call.batch.size > n)
            return leati_fail(err, LEAT_ESHAPE, "get_samples made %lld samples, expected 1 to %lld",
                              (long long)call.batch.size, (long long)n);
        LEATI_TRY(end_call(&call, part, target, *made, err));
        *made += call.batch.size;
    }
    return LEAT_OK;
}

leat_status leati_batch_finish(leat_batch *batch, int64_t made, leat_error *err) {
    if (made == 0) return leati_fail(err, LEAT_ESKIPPED, "all samples of the batch were left out");
    batch->size = made;
    for (int i = 0; i < batch->tensor_count; ++i) batch->tensors[i].shape[0] = made;
    return LEAT_OK;
}

/* ---- The sequence ---- */

/* ---- Where samples come from ---- */

const leat_sequence *leati_combined_locate(const leat_sequence *whole, int64_t *number, uint64_t key) {
    const leati_combined *c = leati_combined_of(whole);
    for (int i = 0; c && i < c->part_count; ++i) {
        uint64_t of_part = key;
        const int64_t inner = c->locate(c, *number, &of_part, i);
        if (inner < 0) continue;
        *number = inner;
        return leati_combined_locate(&c->parts[i], number, of_part);
    }
    return whole;
}

/* Copies the size that a part has noted of the first picture of a sample. */
static void copy_size(const leati_combined *c, int64_t number, uint64_t key) {
    for (int i = 0; i < c->part_count; ++i) {
        uint64_t of_part = key;
        const int64_t inner = c->part_sizes[i] ? c->locate(c, number, &of_part, i) : -1;
        if (inner < 0 || c->part_sizes[i][2 * inner] == 0) continue;
        memcpy(c->sizes + 2 * number, c->part_sizes[i] + 2 * inner, 2 * sizeof *c->sizes);
        return;
    }
}

static void free_sizes(leati_combined *c) {
    for (int i = 0; c->part_sizes && i < c->part_count; ++i) leati_free(c->part_sizes[i]);
    leati_free(c->part_sizes);
    c->part_sizes = NULL;
    c->sizes = NULL;
}

static leat_status ask_parts(leati_combined *c, leat_error *err) {
    bool any = false;
    c->part_sizes = leati_calloc((size_t)c->part_count, sizeof *c->part_sizes);
    if (!c->part_sizes) return leati_fail_memory(err, sizeof *c->part_sizes, "sizes of pictures");
    for (int i = 0; i < c->part_count; ++i) {
        const int64_t samples = leati_part_samples(&c->parts[i]);
        c->part_sizes[i] = leati_calloc((size_t)samples, 2 * sizeof *c->sizes);
        if (!c->part_sizes[i]) return leati_fail_memory(err, (size_t)samples, "sizes of pictures");
        const leat_status status = leat_source_note_sizes(&c->parts[i], c->part_sizes[i], err);
        any = any || status == LEAT_OK;
        if (status == LEAT_OK) continue;
        leati_free(c->part_sizes[i]);
        c->part_sizes[i] = NULL;
        if (status != LEAT_ENOTSUP) return status;
    }
    return any ? LEAT_OK
               : leati_fail(err, LEAT_ENOTSUP,
                            "no source of the combination has pictures whose sizes are known");
}

leat_status leati_combined_note_sizes(leati_combined *c, int64_t *sizes, leat_error *err) {
    for (int i = 0; c->part_sizes && i < c->part_count; ++i)
        if (c->part_sizes[i]) LEATI_TRY(leat_source_note_sizes(&c->parts[i], NULL, err));
    free_sizes(c);
    if (!sizes) return LEAT_OK;
    const leat_status status = ask_parts(c, err);
    if (status != LEAT_OK) free_sizes(c);
    if (status == LEAT_OK) c->sizes = sizes;
    return status;
}

/* ---- The functions of the sequence ---- */

static leat_status make_as(leati_combined *c, const int64_t *numbers, int64_t count, leat_rng *rng,
                           bool is_plain, leat_batch *batch, leat_error *err) {
    if (!rng)
        return leati_fail(err, LEAT_EINVAL,
                          "rng is NULL: a combination chooses its samples by it; leat_rng_for makes one");
    leati_draws draws = {*rng, is_plain};
    const uint64_t key = rng->key;
    const leat_status status = c->make(c, numbers, count, &draws, batch, err);
    *rng = draws.rng;
    for (int64_t i = 0; c->sizes && i < count; ++i) copy_size(c, numbers[i], key);
    return status;
}

static leat_status make(leati_numbered *own, const int64_t *numbers, int64_t count, leat_rng *rng,
                        leat_batch *batch, leat_error *err) {
    return make_as((leati_combined *)own, numbers, count, rng, false, batch, err);
}

static leat_status get_plain(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                             leat_batch *batch, leat_error *err) {
    return make_as(user, numbers, count, rng, true, batch, err);
}

int64_t leati_locate_same(const leati_combined *c, int64_t number, uint64_t *key, int part) {
    (void)c;
    (void)key;
    (void)part;
    return number;
}

static void trace(const leati_combined *c, int part, const unsigned char *own_wanted, unsigned char *wanted) {
    if (c->trace) {
        c->trace(c, part, own_wanted, wanted);
        return;
    }
    for (int64_t i = 0; i < c->own.samples; ++i) {
        uint64_t key = 0;
        const int64_t number = own_wanted[i] ? c->locate(c, i, &key, part) : -1;
        if (number >= 0) wanted[number] = 1;
    }
}

leati_combined *leati_combined_of(const leat_sequence *sequence) {
    return (leati_combined *)leati_numbered_of(sequence, make);
}

void leati_sequence_fix(const leat_sequence *sequence) {
    leati_combined *c = leati_combined_of(sequence);
    if (c && c->fix) c->fix(c);
    for (int i = 0; c && i < c->part_count; ++i) leati_sequence_fix(&c->parts[i]);
}

static void fini_workers(leati_combined *c, int worker, int count) {
    while (--count >= 0)
        if (c->parts[count].worker_fini) c->parts[count].worker_fini(c->parts[count].user, worker);
}

static leat_status worker_init(void *user, int worker, leat_error *err) {
    leati_combined *c = user;
    for (int i = 0; i < c->part_count; ++i) {
        const leat_sequence *part = &c->parts[i];
        const leat_status status = part->worker_init ? part->worker_init(part->user, worker, err) : LEAT_OK;
        if (status == LEAT_OK) continue;
        fini_workers(c, worker, i);
        return status;
    }
    return LEAT_OK;
}

static void worker_fini(void *user, int worker) {
    leati_combined *c = user;
    fini_workers(c, worker, c->part_count);
}

static void destroy(leati_numbered *own) {
    leati_combined *c = (leati_combined *)own;
    if (c->fini) c->fini(c);
    for (int i = 0; i < c->part_count; ++i) leat_sequence_destroy(&c->parts[i]);
    free_sizes(c);
    leati_free(c->parts);
    leati_free(c);
}

leat_status leati_combined_visit(const leat_sequence *whole, const unsigned char *wanted,
                                 leat_status (*visit)(const leat_sequence *source,
                                                      const unsigned char *wanted,
                                                      const leat_source_options *options, leat_error *err),
                                 const leat_source_options *options, leat_error *err) {
    const leati_combined *c = leati_combined_of(whole);
    if (!c) return visit(whole, wanted, options, err);
    for (int i = 0; i < c->part_count; ++i) {
        const size_t samples = (size_t)leati_part_samples(&c->parts[i]);
        unsigned char *of_part = leati_calloc(samples, 1);
        if (!of_part) return leati_fail_memory(err, samples, "the samples for statistics");
        trace(c, i, wanted, of_part);
        const leat_status status = leati_combined_visit(&c->parts[i], of_part, visit, options, err);
        leati_free(of_part);
        LEATI_TRY(status);
    }
    return LEAT_OK;
}

/* ---- Creating ---- */

static leat_status check_part(const leat_sequence *part, leat_error *err) {
    if (!part->get_samples || !part->samples)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "expected a sequence that has get_samples, like arrays and leat's sources; this is %s",
            part->next ? "a generator" : "a sequence of batches alone");
    if (part->on_epoch_end) return leati_fail(err, LEAT_ENOTSUP, "expected a sequence without on_epoch_end");
    if (leati_part_samples(part) < 1) return leati_fail(err, LEAT_EINVAL, "the sequence has no samples");
    return LEAT_OK;
}

static leat_status read_parts(leati_combined *c, leat_sequence *const *parts, int count, leat_error *err) {
    for (int i = 0; i < count; ++i) {
        if (!parts[i]) return leati_fail(err, LEAT_EINVAL, "part %d is NULL", i);
        for (int k = 0; k < i; ++k)
            if (parts[k] == parts[i])
                return leati_fail(err, LEAT_EINVAL, "parts %d and %d are the same struct", k, i);
        LEATI_TRY(leati_sequence_read(parts[i], &c->parts[i], err));
        LEATI_TRY(leati_prefix(check_part(&c->parts[i], err), err, "part %d", i));
    }
    return LEAT_OK;
}

leat_status leati_combined_create(void *out, size_t bytes, leat_sequence *const *parts, int count,
                                  leat_error *err) {
    if (count < 1 || count > LEAT_COMBINE_MAX_PARTS)
        return leati_fail(err, LEAT_EINVAL, "expected 1 to %d sequences, received %d", LEAT_COMBINE_MAX_PARTS,
                          count);
    leati_combined *c = leati_calloc(1, bytes);
    if (!c) return leati_fail_memory(err, bytes, "a combination of sequences");
    c->part_count = count;
    c->parts = leati_calloc((size_t)count, sizeof *c->parts);
    leat_status status =
        c->parts ? read_parts(c, parts, count, err)
                 : leati_fail_memory(err, (size_t)count * sizeof *c->parts, "the parts of a combination");
    if (status != LEAT_OK) {
        leati_combined_free(c);
        return status;
    }
    c->own.spec = c->parts[0].spec;
    for (int i = 1; i < count; ++i)
        if (c->parts[i].spec.batch_size > c->own.spec.batch_size)
            c->own.spec.batch_size = c->parts[i].spec.batch_size;
    *(void **)out = c;
    return LEAT_OK;
}

void leati_combined_free(leati_combined *c) {
    if (c->fini) c->fini(c);
    leati_free(c->parts);
    leati_free(c);
}

static bool needs_workers(const leati_combined *c) {
    for (int i = 0; i < c->part_count; ++i)
        if (c->parts[i].worker_init || c->parts[i].worker_fini) return true;
    return false;
}

static bool has_plain(const leati_combined *c) {
    for (int i = 0; i < c->part_count; ++i)
        if (c->parts[i].get_plain) return true;
    return false;
}

leat_status leati_combined_finish(leati_combined *c, leat_status status, leat_sequence *const *parts,
                                  leat_sequence *out, size_t size) {
    if (status != LEAT_OK) {
        leati_combined_free(c);
        return status;
    }
    for (int i = 0; i < c->part_count; ++i)
        c->own.depends = c->own.depends || !c->parts[i].independent_samples;
    c->own.make = make;
    c->own.destroy = destroy;
    leat_sequence made = leati_numbered_sequence(&c->own);
    if (c->block_samples == 0) leati_combined_choose_blocks(c);
    made.block_samples = c->block_samples;
    made.blocks_at_once = c->blocks_at_once;
    if (has_plain(c)) made.get_plain = get_plain;
    if (needs_workers(c)) {
        made.worker_init = worker_init;
        made.worker_fini = worker_fini;
    }
    for (int i = 0; i < c->part_count; ++i) memset(parts[i], 0, parts[i]->size);
    leati_sequence_write(&made, out, size);
    return LEAT_OK;
}

void leati_combined_set_batch_size(leat_sequence *combination, int64_t batch_size) {
    leati_combined *c = combination->user;
    c->own.spec.batch_size = batch_size < c->own.samples ? batch_size : c->own.samples;
    combination->spec.batch_size = c->own.spec.batch_size;
}

leat_status leati_combined_check_equal(const leati_combined *c, leat_error *err) {
    const leat_batch_spec *first = &c->parts[0].spec;
    for (int i = 1; i < c->part_count; ++i) {
        const leat_batch_spec *spec = &c->parts[i].spec;
        if (spec->tensor_count != first->tensor_count)
            return leati_fail(err, LEAT_ESHAPE, "part 0 has %d tensors, part %d has %d", first->tensor_count,
                              i, spec->tensor_count);
        for (int k = 0; k < first->tensor_count; ++k) {
            const leat_tensor_spec *a = &first->tensors[k], *b = &spec->tensors[k];
            char left[96], right[96];
            if (a->part == b->part && a->dtype == b->dtype && a->rank == b->rank &&
                memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0)
                continue;
            return leati_fail(err, LEAT_ESHAPE, "tensor %d is %s %s in part 0 and %s %s in part %d", k,
                              leat_dtype_name(a->dtype),
                              leati_shape_text(left, sizeof left, a->rank, a->shape),
                              leat_dtype_name(b->dtype),
                              leati_shape_text(right, sizeof right, b->rank, b->shape), i);
        }
    }
    return LEAT_OK;
}
