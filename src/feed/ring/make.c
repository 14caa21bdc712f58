/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one batch: calls the sequence, checks its result and retries.  Room: feed. */
#include "feed/ring/make.h"

#include <math.h>
#include <string.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "feed/ring/copy.h"
#include "tensor/finite.h"
#include "tensor/number.h"

#define CACHE_BYTES      ((size_t)32 << 20) /* a common size of the last-level cache */
#define LARGE_SLOT_BYTES ((size_t)1 << 20)

/* The batch that this thread is making, for leat_batch_reserve: functions of the sequence do not receive the maker.
 * With the initial-exec model the library needs nothing of the dynamic linker for it. */
__attribute__((tls_model("initial-exec"))) static _Thread_local struct {
    const leati_maker *maker;
    const leati_slot *slot;
} being_made;

/* Enters the pages of a large batch into this process's page tables.  Another worker may have allocated them, and a
 * page fault for each of them takes about three times as long as entering all at once. */
static leat_status enter_pages(const leati_maker *maker, uint32_t place, size_t bytes, leat_error *err) {
    const leati_ring *ring = &maker->service->ring;
    bool known = false;
    if (!maker->entered || !ring->backed_by_worker || bytes < LARGE_SLOT_BYTES ||
        bytes <= maker->entered[place])
        return LEAT_OK;
    LEATI_TRY(leati_mapping_back(ring->data + (size_t)place * ring->slot_bytes, bytes, &known, err));
    maker->entered[place] = bytes;
    return LEAT_OK;
}

leat_status leat_batch_reserve(const leat_batch *batch, size_t bytes, leat_error *err) {
    LEATI_GIVEN(batch, err);
    if (!being_made.slot || batch != &being_made.slot->batch)
        return leati_fail(err, LEAT_EINVAL, "batch: expected the batch that this thread is making, in get");
    const leati_ring *ring = &being_made.maker->service->ring;
    if (bytes > ring->slot_bytes)
        return leati_fail(err, LEAT_ESHAPE, "a batch needs %zu bytes, the specification allows at most %zu",
                          bytes, ring->slot_bytes);
    uint32_t place = leati_ring_place(ring, being_made.slot);
    bool backed = atomic_load_explicit(&ring->backed[place], memory_order_relaxed) >= bytes;
    LEATI_TRY(leati_service_back(ring, place, bytes, err));
    return backed ? enter_pages(being_made.maker, place, bytes, err) : LEAT_OK;
}

leat_status leati_maker_init(leati_maker *maker, leati_service *service, leat_error *err) {
    *maker = (leati_maker){.service = service};
    const leati_ring *ring = &service->ring;
    if (ring->elastic && ring->table->between_processes) {
        maker->entered = leati_calloc((size_t)ring->place_count, sizeof *maker->entered);
        if (!maker->entered)
            return leati_fail_memory(err, (size_t)ring->place_count * sizeof *maker->entered,
                                     "a worker's places");
    }
    if (!service->rule.by_samples && service->parts == 0) return LEAT_OK;
    size_t count = (size_t)service->sequence.spec.batch_size;
    maker->numbers = leati_calloc(count, sizeof *maker->numbers);
    if (maker->numbers) return LEAT_OK;
    leati_maker_fini(maker);
    return leati_fail_memory(err, count * sizeof *maker->numbers, "the numbers of a batch's samples");
}

void leati_maker_fini(leati_maker *maker) {
    leati_free(maker->numbers);
    leati_free(maker->entered);
    maker->numbers = NULL;
    maker->entered = NULL;
}

/* Sets up a full batch, as the documentation of leat_sequence promises. */
static void set_up_batch(const leati_ring *ring, const leat_batch_spec *spec, leati_slot *slot) {
    slot->batch.size = spec->batch_size;
    slot->batch.tensor_count = spec->tensor_count;
    for (int i = 0; i < spec->tensor_count; ++i) {
        leat_tensor *tensor = &slot->batch.tensors[i];
        const leat_tensor_spec *expected_spec = &spec->tensors[i];
        tensor->dtype = expected_spec->dtype;
        tensor->rank = expected_spec->rank + 1;
        tensor->shape[0] = spec->batch_size;
        for (int d = 0; d < expected_spec->rank; ++d) tensor->shape[d + 1] = expected_spec->shape[d];
        tensor->data = leati_ring_tensor(ring, slot, i);
    }
}

/* ---- checking a batch ---- */

static leat_status wrong_shape(const leat_batch_spec *spec, const leat_batch *batch, int i, leat_error *err) {
    const leat_tensor_spec *expected_spec = &spec->tensors[i];
    const leat_tensor *tensor = &batch->tensors[i];
    int64_t most[LEAT_MAX_RANK] = {batch->size};
    for (int d = 0; d < expected_spec->rank; ++d) most[d + 1] = expected_spec->shape[d];
    char got[160], expected[160];
    if (!tensor->data)
        return leati_fail(
            err, LEAT_ESHAPE,
            "get set the data of tensor %d ('%s') to NULL; expected the memory that it received, "
            "or its own memory",
            i, expected_spec->name);
    int rank = tensor->rank < 0 || tensor->rank > LEAT_MAX_RANK ? 0 : tensor->rank;
    return leati_fail(
        err, LEAT_ESHAPE,
        "get set tensor %d ('%s') to shape %s, rank %d, %s; the specification allows at most %s, %s", i,
        expected_spec->name, leati_shape_text(got, sizeof got, rank, tensor->shape), (int)tensor->rank,
        leat_dtype_name(tensor->dtype),
        leati_shape_text(expected, sizeof expected, expected_spec->rank + 1, most),
        leat_dtype_name(expected_spec->dtype));
}

/* Shortens the tensors to the size of the batch, and checks the batch against the specification. */
static leat_status check_batch(const leat_batch_spec *spec, leat_batch *batch, leat_error *err) {
    if (batch->size < 1 || batch->size > spec->batch_size)
        return leati_fail(err, LEAT_ESHAPE,
                          "get set a size of %lld samples, the specification allows 1 to %lld",
                          (long long)batch->size, (long long)spec->batch_size);
    if (batch->tensor_count != spec->tensor_count)
        return leati_fail(err, LEAT_ESHAPE, "get set %d tensors, the specification has %d",
                          (int)batch->tensor_count, (int)spec->tensor_count);
    for (int i = 0; i < spec->tensor_count; ++i) {
        leat_tensor *tensor = &batch->tensors[i];
        const leat_tensor_spec *expected_spec = &spec->tensors[i];
        bool fits =
            tensor->rank == expected_spec->rank + 1 && tensor->dtype == expected_spec->dtype && tensor->data;
        if (fits && tensor->shape[0] == spec->batch_size) tensor->shape[0] = batch->size;
        fits = fits && tensor->shape[0] == batch->size;
        for (int d = 0; fits && d < expected_spec->rank; ++d)
            fits = tensor->shape[d + 1] >= 1 && tensor->shape[d + 1] <= expected_spec->shape[d];
        if (!fits) return wrong_shape(spec, batch, i, err);
    }
    return LEAT_OK;
}

/* As leati_all_finite, for other types. */
static bool run_is_finite_f64(const double *x, int64_t count) {
    uint64_t found = 0;
    for (int64_t i = 0; i < count; ++i) {
        uint64_t bits = 0;
        memcpy(&bits, &x[i], sizeof bits);
        found |= (bits & 0x7ff0000000000000u) == 0x7ff0000000000000u;
    }
    return !found;
}

static bool run_is_finite_f16(const uint16_t *x, int64_t count) {
    uint32_t found = 0;
    for (int64_t i = 0; i < count; ++i) found |= (x[i] & 0x7c00u) == 0x7c00u;
    return !found;
}

static bool run_is_finite(const leat_tensor *tensor, int64_t first, int64_t count) {
    if (tensor->dtype == LEAT_F32)
        return leati_all_finite((const float *)tensor->data + first, (size_t)count);
    if (tensor->dtype == LEAT_F64) return run_is_finite_f64((const double *)tensor->data + first, count);
    if (tensor->dtype == LEAT_F16) return run_is_finite_f16((const uint16_t *)tensor->data + first, count);
    return true;
}

/* Returns the index of the first element that is NaN or infinite, or the number of elements. */
static int64_t find_not_finite(const leat_tensor *tensor) {
    enum { run = 1024 };
    int64_t count = leat_tensor_count(tensor), i = 0;
    while (i < count && run_is_finite(tensor, i, count - i < run ? count - i : run)) i += run;
    while (i < count && run_is_finite(tensor, i, 1)) ++i;
    return i < count ? i : count;
}

/* Fails because element `at` of tensor i is not finite. */
static leat_status not_finite(const leati_service *service, const leati_slot *slot, int i, int64_t at,
                              leat_error *err) {
    const leat_tensor *tensor = &slot->batch.tensors[i];
    const int64_t each = leat_tensor_count(tensor) / slot->batch.size, place = at / each;
    const int64_t number = leati_service_sample(service, &slot->job, place);
    const double value = leati_number_at(tensor->dtype, tensor->data, at);
    leati_fail(err, LEAT_EUSER, "tensor %d ('%s') holds %s in element %lld of sample %lld of the batch", i,
               service->sequence.spec.tensors[i].name, isnan(value) ? "NaN" : "an infinity",
               (long long)(at % each), (long long)place);
    if (number < 0) return LEAT_EUSER;
    return leati_prefix(LEAT_EUSER, err, "sample %lld of the data", (long long)number);
}

static leat_status check_finite(const leati_service *service, const leati_slot *slot, leat_error *err) {
    const leat_batch_spec *spec = &service->sequence.spec;
    for (int i = 0; i < spec->tensor_count; ++i) {
        const leat_tensor *tensor = &slot->batch.tensors[i];
        int64_t at = find_not_finite(tensor);
        if (at < leat_tensor_count(tensor)) return not_finite(service, slot, i, at, err);
    }
    return LEAT_OK;
}

/* Returns true if the ring is so large that a batch has left the caches before its slot is read, or written again. */
static bool is_out_of_caches(const leati_ring *ring) {
    return ring->slot_bytes >= LARGE_SLOT_BYTES && ring->slot_bytes > CACHE_BYTES / ring->slot_count;
}

static bool overlap(const unsigned char *a, const unsigned char *b, size_t bytes) {
    return (uintptr_t)a < (uintptr_t)b + bytes && (uintptr_t)b < (uintptr_t)a + bytes;
}

/* Copies tensors that the sequence has pointed at its own memory into the slot, because other processes cannot see that
 * memory. */
static leat_status copy_into_slot(const leati_ring *ring, leati_slot *slot, leat_error *err) {
    for (int i = 0; i < slot->batch.tensor_count; ++i) {
        leat_tensor *tensor = &slot->batch.tensors[i];
        unsigned char *slot_memory = leati_ring_tensor(ring, slot, i);
        size_t bytes = leat_tensor_bytes(tensor);
        if (tensor->data == slot_memory) continue;
        if (ring->elastic) LEATI_TRY(leati_service_back(ring, leati_ring_place(ring, slot), bytes, err));
        if (is_out_of_caches(ring) && !overlap(slot_memory, tensor->data, bytes))
            leati_copy_past_caches(slot_memory, tensor->data, bytes);
        else
            memmove(slot_memory, tensor->data, bytes);
        tensor->data = slot_memory;
    }
    return LEAT_OK;
}

/* ---- calling the sequence ---- */

static void follow_state(leati_maker *maker) {
    const leat_sequence *sequence = &maker->service->sequence;
    const leati_ring *ring = &maker->service->ring;
    uint64_t version = atomic_load(&ring->shared->state_version);
    if (version == maker->state_version) return;
    if (sequence->state_bytes) memcpy(sequence->state, ring->state, sequence->state_bytes);
    maker->state_version = version;
}

static leat_status get_samples(leati_maker *maker, leati_slot *slot, leat_rng *rng, leat_error *err) {
    static const leati_order_rule in_order = {.shuffle = LEAT_SHUFFLE_NONE};
    const leati_service *service = maker->service;
    const leat_sequence *sequence = &service->sequence;
    const leati_job *job = &slot->job;
    if (maker->pass != job->position.pass || maker->samples != job->samples) {
        const leati_order_rule *rule = service->rule.by_samples ? &service->rule : &in_order;
        leati_permutation_init(&maker->permutation, rule, job->position.pass, job->samples);
        maker->pass = job->position.pass;
        maker->samples = job->samples;
    }
    const leati_extent extent = leati_service_extent(service, job);
    slot->batch.size = extent.count;
    for (int i = 0; i < slot->batch.tensor_count; ++i) slot->batch.tensors[i].shape[0] = slot->batch.size;
    leati_permutation_range(&maker->permutation, job->position.index * service->batch_size + extent.first,
                            extent.count, maker->numbers);
    return sequence->get_samples(sequence->user, maker->numbers, slot->batch.size, rng, &slot->batch, err);
}

static leat_status call_sequence(leati_maker *maker, leati_slot *slot, leat_error *err) {
    const leat_sequence *sequence = &maker->service->sequence;
    const leat_feed_position *at = &slot->job.position;
    leat_rng rng = leat_rng_for(maker->service->rule.seed, (uint64_t)at->pass, (uint64_t)at->index);
    being_made.maker = maker;
    being_made.slot = slot;
    leat_status status = sequence->next ? sequence->next(sequence->user, &rng, &slot->batch, err)
                         : slot->job.samples
                             ? get_samples(maker, slot, &rng, err)
                             : sequence->get(sequence->user, at->index, &rng, &slot->batch, err);
    being_made.slot = NULL;
    if (status == LEAT_OK) return LEAT_OK;
    if (!err->message[0])
        leati_fail(err, status, "%s failed without a message: %s", sequence->next ? "next" : "get",
                   leat_status_text(status));
    err->message[sizeof err->message - 1] = '\0';
    err->code = (int32_t)status;
    return status;
}

/* Makes the batch once, without a retry. */
static leat_status make_once(leati_maker *maker, leati_slot *slot, leat_error *err) {
    leati_service *service = maker->service;
    const leat_batch_spec *spec = &service->sequence.spec;
    err->code =
        0; /* These four members suffice; clearing all 512 bytes would cost more than a small batch. */
    err->origin = 0;
    err->origin_code = 0;
    err->message[0] = '\0';
    set_up_batch(&service->ring, spec, slot);
    LEATI_TRY(call_sequence(maker, slot, err));
    if (service->sequence.next && slot->batch.size == 0) {
        maker->ended = true;
        return LEAT_OK;
    }
    LEATI_TRY(check_batch(spec, &slot->batch, err));
    return service->faults.check_finite ? check_finite(service, slot, err) : LEAT_OK;
}

static leat_status make_with_retries(leati_maker *maker, leati_slot *slot) {
    leati_service *service = maker->service;
    if (maker->ended) { /* This ticket was issued before the generator ended. */
        slot->batch.size = 0;
        return LEAT_OK;
    }
    const leati_ring *ring = &service->ring;
    if (!ring->elastic)
        LEATI_TRY(leati_service_back(ring, leati_ring_place(ring, slot), ring->slot_bytes, &slot->error));
    if (ring->table->between_processes) follow_state(maker);
    leat_status status = make_once(maker, slot, &slot->error);
    while (status != LEAT_OK && status != LEAT_ESKIPPED && slot->retries < service->faults.retries) {
        ++slot->retries;
        status = make_once(maker, slot, &slot->error);
    }
    if (status == LEAT_OK && !maker->ended && ring->table->between_processes)
        status = copy_into_slot(ring, slot, &slot->error);
    return status;
}

void leati_maker_make(leati_maker *maker, leati_slot *slot, int worker) {
    int64_t start = leati_now_ns();
    if (atomic_load_explicit(&slot->discarded, memory_order_relaxed)) {
        slot->worker = worker;
        slot->retries = 0;
        slot->status = LEAT_ESKIPPED;
        slot->ended_ns = start;
        slot->get_ns = 0;
        return;
    }
    atomic_store_explicit(&slot->started_ns, start, memory_order_relaxed);
    slot->worker = worker;
    slot->retries = 0;
    slot->status = (int32_t)make_with_retries(maker, slot);
    slot->ended_ns = leati_now_ns();
    slot->get_ns = slot->ended_ns - start;
}
