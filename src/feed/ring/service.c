/* SPDX-License-Identifier: Apache-2.0 */
/* Lays out the memory of the ring.  Room: feed. */
#define _GNU_SOURCE /* madvise */
#include "feed/ring/service.h"

#include <stdio.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/os/guard.h"
#include "base/memory.h"
#include "tensor/sequence.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static size_t round_up(size_t bytes, size_t unit) {
    return bytes > SIZE_MAX - unit ? SIZE_MAX : (bytes + unit - 1) / unit * unit;
}

static leat_status lay_out_tensor(const leat_batch_spec *spec, int i, size_t *bytes, leat_error *err) {
    const leat_tensor_spec *tensor = &spec->tensors[i];
    size_t size = 0;
    bool fits = leati_mul_size((size_t)spec->batch_size, leat_dtype_bytes(tensor->dtype), &size);
    for (int d = 0; d < tensor->rank; ++d)
        fits = fits && leati_mul_size(size, (size_t)tensor->shape[d], &size);
    if (!fits || leati_align(size) > SIZE_MAX / 4 - *bytes)
        return leati_fail(err, LEAT_ESHAPE,
                          "tensor %d ('%s'): a batch of %lld samples is too large for the address space", i,
                          tensor->name, (long long)spec->batch_size);
    *bytes += leati_align(size);
    return LEAT_OK;
}

static leat_status lay_out_slot(leati_ring *ring, const leat_batch_spec *spec, leat_error *err) {
    size_t bytes = 0;
    LEATI_TRY(leati_batch_spec_check(spec, err));
    for (int i = 0; i < spec->tensor_count; ++i) {
        ring->tensor_offset[i] = bytes;
        LEATI_TRY(lay_out_tensor(spec, i, &bytes, err));
    }
    ring->slot_bytes = round_up(bytes, leati_page_bytes());
    return LEAT_OK;
}

/* Returns the number in the line of a file that matches `format`, times `unit`; SIZE_MAX if no line matches. */
static size_t read_number(const char *path, const char *format, size_t unit) {
    FILE *file = fopen(path, "re");
    if (!file) return SIZE_MAX;
    char line[128];
    unsigned long long number = 0;
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) found = sscanf(line, format, &number) == 1;
    fclose(file);
    return found && number < SIZE_MAX / unit ? (size_t)number * unit : SIZE_MAX;
}

/* Returns the memory that the machine, or the limit of the container, can give at most; SIZE_MAX if it is not known. */
static size_t memory_available(void) {
    size_t machine = read_number("/proc/meminfo", "MemAvailable: %llu", 1024);
    size_t group = read_number("/sys/fs/cgroup/memory.max", "%llu", 1);
    return machine < group ? machine : group;
}

static leat_status check_available(const leati_ring *ring, leat_error *err) {
    size_t available = memory_available();
    if (ring->bytes <= available) return LEAT_OK;
    return leati_fail(
        err, LEAT_ENOMEM,
        "the feed's ring needs %zu MiB (%llu slots of %zu KiB), %zu MiB are available: lower max_queue_size, "
        "the feed's memory or the batch size",
        ring->bytes >> 20, (unsigned long long)ring->slot_count, ring->slot_bytes >> 10, available >> 20);
}

static leat_status too_little(const leati_service *service, size_t memory, leat_error *err) {
    size_t least = (2 + (size_t)service->kept_batches) *
                   (service->ring.slot_bytes + sizeof(leati_slot) + sizeof(size_t));
    return leati_fail(
        err, LEAT_EINVAL,
        "%zu bytes of memory hold less than two batches of %zu bytes, one in use and one ahead: expected "
        "at least %zu",
        memory, service->ring.slot_bytes, least);
}

/* Sets the numbers of slots and places. */
static leat_status choose_slots(leati_service *service, int workers, size_t memory, leat_error *err) {
    uint64_t slots = (uint64_t)service->max_queue_size + 1, kept = (uint64_t)service->kept_batches;
    if (memory) {
        slots = memory / (service->ring.slot_bytes + sizeof(leati_slot) + sizeof(size_t));
        slots = slots > kept ? slots - kept : 0;
        if (slots < 2) return too_little(service, memory, err);
        if (slots > LEATI_MAX_QUEUE_SIZE) slots = LEATI_MAX_QUEUE_SIZE;
        service->max_queue_size = (int)slots - 1;
    }
    service->ring.slot_count = workers > 0 ? slots : 1;
    service->ring.place_count = service->ring.slot_count + kept;
    return LEAT_OK;
}

/* Computes where the parts of the ring are in its mapping. */
static leat_status lay_out_ring(leati_service *service, leat_error *err) {
    leati_ring *ring = &service->ring;
    size_t slots = sizeof(leati_ring_shared);
    ring->state_offset = slots + ring->slot_count * sizeof(leati_slot);
    ring->backed_offset = ring->state_offset + leati_align(service->sequence.state_bytes);
    ring->data_offset =
        round_up(ring->backed_offset + ring->place_count * sizeof *ring->backed, leati_page_bytes());
    size_t data = 0;
    if (!leati_mul_size(ring->slot_bytes, ring->place_count, &data) || data > SIZE_MAX / 4 ||
        ring->data_offset > SIZE_MAX / 4)
        return leati_fail(err, LEAT_ENOMEM, "%llu slots of %zu bytes are too large for the address space",
                          (unsigned long long)ring->place_count, ring->slot_bytes);
    ring->bytes = ring->data_offset + data;
    return LEAT_OK;
}

void leati_service_point(leati_service *service, unsigned char *memory, const leati_worker_table *table) {
    leati_ring *ring = &service->ring;
    ring->table = table;
    ring->shared = (void *)memory;
    ring->slots = (void *)(memory + sizeof(leati_ring_shared));
    ring->state = memory + ring->state_offset;
    ring->backed = (void *)(memory + ring->backed_offset);
    ring->data = memory + ring->data_offset;
}

static leat_status map_ring(leati_service *service, bool by_descriptor, leat_error *err) {
    leati_ring *ring = &service->ring;
    leati_mapping_request request = {.bytes = ring->bytes,
                                     .control = ring->data_offset,
                                     .between_processes = ring->table->between_processes,
                                     .by_descriptor = by_descriptor,
                                     .elastic = ring->elastic,
                                     .inherited = service->kept_batches > 0};
    if (!ring->elastic) LEATI_TRY(check_available(ring, err));
    LEATI_TRY(
        leati_places_create(&ring->places, &request, (int)ring->slot_count, service->kept_batches, err));
    const leati_mapping *mapping = &ring->places->mapping;
    ring->backed_by_worker = !mapping->backed;
    leati_service_point(service, mapping->memory, ring->table);
    /* Huge pages are faster, but not necessary, so an error does not matter. */
    if (ring->slot_bytes >= HUGE_PAGE_BYTES && !ring->elastic)
        madvise(ring->data, ring->bytes - ring->data_offset, MADV_HUGEPAGE);
    return LEAT_OK;
}

leat_status leati_service_map(leati_service *service, const leati_worker_table *table,
                              const leat_feed_options *options, leat_error *err) {
    leati_ring *ring = &service->ring;
    *ring = (leati_ring){.table = table,
                         .owner = -1,
                         .elastic = options->elastic,
                         .batch_ns = LEATI_WAKE_UP_NS /* until a batch is delivered */};
    LEATI_TRY(lay_out_slot(ring, &service->sequence.spec, err));
    LEATI_TRY(choose_slots(service, table->count, options->memory, err));
    LEATI_TRY(lay_out_ring(service, err));
    LEATI_TRY(map_ring(service, options->helper_command != NULL && table->count > 0, err));
    return LEAT_OK;
}

void leati_service_unmap(leati_service *service) {
    leati_places_let_go(service->ring.places);
    service->ring = (leati_ring){0};
}

/* Part p of a batch of N samples begins at p * N / parts.  The largest number of samples is that of the division,
 * rounded up. */
void leati_service_cut(leati_service *service, const leat_feed_options *options) {
    service->batch_size = service->sequence.spec.batch_size;
    service->parts = options->parts;
    service->first_part = options->first_part;
    service->end_part = options->end_part;
    if (service->parts == 0 || service->batch_size < 1) return;
    const int64_t mine = (service->end_part - service->first_part) * service->batch_size;
    const int64_t most = (mine + service->parts - 1) / service->parts;
    service->sequence.spec.batch_size = most > 0 ? most : 1;
}

leati_extent leati_service_extent(const leati_service *service, const leati_job *job) {
    const int64_t left = job->samples - job->position.index * service->batch_size;
    leati_extent extent = {.whole = left < service->batch_size ? left : service->batch_size};
    extent.count = extent.whole;
    if (service->parts == 0) return extent;
    extent.first = service->first_part * extent.whole / service->parts;
    extent.count = service->end_part * extent.whole / service->parts - extent.first;
    if (extent.count > 0) return extent;
    if (extent.first == extent.whole) --extent.first;
    extent.count = 1;
    return extent;
}

int64_t leati_service_sample(const leati_service *service, const leati_job *job, int64_t place) {
    if (!service->sequence.get_samples) return -1;
    if (service->parts > 0) place += leati_service_extent(service, job).first;
    return leati_order_sample(&service->rule, job->position.pass, job->samples, service->batch_size,
                              job->position.index, place);
}

leat_status leati_service_back(const leati_ring *ring, uint32_t place, size_t bytes, leat_error *err) {
    bytes = round_up(bytes, leati_page_bytes());
    if (!ring->backed_by_worker || bytes <= atomic_load_explicit(&ring->backed[place], memory_order_relaxed))
        return LEAT_OK;
    bool known = false;
    LEATI_TRY(leati_mapping_back(ring->data + (size_t)place * ring->slot_bytes, bytes, &known, err));
    /* Private memory is otherwise allocated at the first access, and so are the pages of elastic slots. */
    if (!known && ring->table->between_processes && !ring->elastic)
        return leati_fail(err, LEAT_ENOMEM, "no memory for a slot of %zu bytes", ring->slot_bytes);
    atomic_store_explicit(&ring->backed[place], bytes, memory_order_relaxed);
    return LEAT_OK;
}

size_t leati_service_bytes(const leati_service *service) {
    const leati_ring *ring = &service->ring;
    size_t bytes = ring->data_offset;
    if (!ring->elastic) return ring->bytes;
    for (uint64_t i = 0; i < ring->place_count; ++i)
        bytes += atomic_load_explicit(&ring->backed[i], memory_order_relaxed);
    return bytes;
}

void leati_service_inherit(const leati_service *service, bool inherit) {
    leati_mapping_inherit(&service->ring.places->mapping, inherit);
}
