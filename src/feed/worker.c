/* SPDX-License-Identifier: Apache-2.0 */
/* A batch, from the slot as it is found to the slot that may be trained from.  Layer: feed. */
#include "feed/worker.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "feed/ring_map.h"

static unsigned char *tensor_memory(const leati_ring *ring, const leati_slot *slot, int i) {
    return ring->data + (size_t)(slot - ring->slots) * ring->slot_bytes + ring->tensor_offset[i];
}

/* The full batch, as `get` is promised to find it. */
static void prepare(const leati_ring *ring, const leat_batch_spec *spec, leati_slot *slot) {
    slot->batch.size = spec->batch_size;
    slot->batch.tensor_count = spec->tensor_count;
    for (int i = 0; i < spec->tensor_count; ++i) {
        leat_tensor *tensor = &slot->batch.tensors[i];
        const leat_tensor_spec *wanted = &spec->tensors[i];
        tensor->dtype = wanted->dtype;
        tensor->rank = wanted->rank + 1;
        tensor->shape[0] = spec->batch_size;
        for (int d = 0; d < wanted->rank; ++d) tensor->shape[d + 1] = wanted->shape[d];
        tensor->data = tensor_memory(ring, slot, i);
    }
}

static leat_status wrong_shape(const leat_batch_spec *spec, const leat_batch *batch, int i, leat_error *err) {
    const leat_tensor_spec *wanted = &spec->tensors[i];
    const leat_tensor *tensor = &batch->tensors[i];
    int64_t most[LEAT_MAX_RANK] = {batch->size};
    for (int d = 0; d < wanted->rank; ++d) most[d + 1] = wanted->shape[d];
    char got[160], expected[160];
    int rank = tensor->rank < 0 || tensor->rank > LEAT_MAX_RANK ? 0 : tensor->rank;
    return leati_fail(
        err, LEAT_ESHAPE,
        "get set tensor %d ('%s') to shape %s, rank %d, %s; the specification allows at most %s, %s", i,
        wanted->name, leati_shape_text(got, sizeof got, rank, tensor->shape), (int)tensor->rank,
        leat_dtype_name(tensor->dtype), leati_shape_text(expected, sizeof expected, wanted->rank + 1, most),
        leat_dtype_name(wanted->dtype));
}

/* Shortens the tensors to the batch's size and checks what get has set against the specification. */
static leat_status settle(const leat_batch_spec *spec, leat_batch *batch, leat_error *err) {
    if (batch->size < 1 || batch->size > spec->batch_size)
        return leati_fail(err, LEAT_ESHAPE,
                          "get set a size of %lld samples, the specification allows 1 to %lld",
                          (long long)batch->size, (long long)spec->batch_size);
    if (batch->tensor_count != spec->tensor_count)
        return leati_fail(err, LEAT_ESHAPE, "get set %d tensors, the specification has %d",
                          (int)batch->tensor_count, (int)spec->tensor_count);
    for (int i = 0; i < spec->tensor_count; ++i) {
        leat_tensor *tensor = &batch->tensors[i];
        const leat_tensor_spec *wanted = &spec->tensors[i];
        bool fits = tensor->rank == wanted->rank + 1 && tensor->dtype == wanted->dtype && tensor->data;
        if (fits && tensor->shape[0] == spec->batch_size) tensor->shape[0] = batch->size;
        fits = fits && tensor->shape[0] == batch->size;
        for (int d = 0; fits && d < wanted->rank; ++d)
            fits = tensor->shape[d + 1] >= 1 && tensor->shape[d + 1] <= wanted->shape[d];
        if (!fits) return wrong_shape(spec, batch, i, err);
    }
    return LEAT_OK;
}

/* Tensors that get pointed at memory of its own: no other process can see that, so they move into the slot. */
static void bring_home(const leati_ring *ring, leati_slot *slot) {
    for (int i = 0; i < slot->batch.tensor_count; ++i) {
        leat_tensor *tensor = &slot->batch.tensors[i];
        unsigned char *home = tensor_memory(ring, slot, i);
        if (tensor->data == home) continue;
        memmove(home, tensor->data, leat_tensor_bytes(tensor));
        tensor->data = home;
    }
}

static void follow_state(leati_worker *worker) {
    const leat_sequence *sequence = worker->sequence;
    uint64_t version = atomic_load(&worker->ring->shared->state_version);
    if (version == worker->state_version) return;
    if (sequence->state_bytes) memcpy(sequence->state, worker->ring->state, sequence->state_bytes);
    worker->state_version = version;
}

static leat_status call_get(leati_worker *worker, leati_slot *slot, leat_error *err) {
    const leat_sequence *sequence = worker->sequence;
    const leat_feed_position *at = &slot->job.position;
    leat_rng rng = leat_rng_for(worker->seed, (uint64_t)at->pass, (uint64_t)at->index);
    int64_t start = leati_now_ns();
    leat_status status = sequence->get(sequence->user, at->index, &rng, &slot->batch, err);
    slot->get_ns = leati_now_ns() - start;
    if (status == LEAT_OK) return settle(&sequence->spec, &slot->batch, err);
    if (!err->message[0])
        leati_fail(err, status, "get failed without a message: %s", leat_status_text(status));
    err->message[sizeof err->message - 1] = '\0';
    err->code = (int32_t)status;
    return status;
}

void leati_worker_make(leati_worker *worker, leati_slot *slot) {
    slot->get_ns = 0;
    slot->error.code =
        0; /* enough for a fresh error: clearing its 512 bytes would cost more than a small batch */
    slot->error.origin = 0;
    slot->error.origin_code = 0;
    slot->error.message[0] = '\0';
    leat_status status = leati_ring_back_slot(worker->ring, slot, &slot->error);
    if (status == LEAT_OK) {
        prepare(worker->ring, &worker->sequence->spec, slot);
        status = call_get(worker, slot, &slot->error);
    }
    if (status == LEAT_OK && worker->ring->between_processes) bring_home(worker->ring, slot);
    slot->status = (int32_t)status;
}

leat_status leati_worker_begin(const leati_worker *worker, leat_error *err) {
    const leat_sequence *sequence = worker->sequence;
    if (!sequence->worker_init) return LEAT_OK;
    leat_error why = {0};
    leat_status status = sequence->worker_init(sequence->user, worker->number, &why);
    if (status == LEAT_OK) return LEAT_OK;
    why.message[sizeof why.message - 1] = '\0';
    leati_fail_origin(err, status, (leat_origin)why.origin, why.origin_code, "worker_init of worker %d: %s",
                      worker->number, why.message[0] ? why.message : leat_status_text(status));
    return status;
}

void leati_worker_end(const leati_worker *worker) {
    if (worker->sequence->worker_fini) worker->sequence->worker_fini(worker->sequence->user, worker->number);
}

leat_status leati_worker_run(leati_worker *worker, leat_error *err) {
    leati_ring *ring = worker->ring;
    leati_worker_entry *entry = &ring->workers[worker->number];
    LEATI_TRY(leati_worker_begin(worker, err));
    atomic_store(&entry->phase, LEATI_WORKER_RUNNING);
    leati_slot *slot = ring->between_processes ? leati_ring_claimed_by(ring, worker->number) : NULL;
    if (!slot) slot = leati_ring_claim(ring, worker->number, worker->generation);
    for (; slot; slot = leati_ring_claim(ring, worker->number, worker->generation)) {
        if (ring->between_processes) follow_state(worker);
        leati_worker_make(worker, slot);
        leati_ring_publish(ring, slot);
    }
    leati_worker_end(worker);
    return LEAT_OK;
}
