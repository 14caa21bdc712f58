/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's memory: layout, mapping, and lack of it as an error.  Layer: feed.
 *
 * Between processes it is a memfd: unnamed, so that nothing stays behind whoever is killed, and sealed.  Shared memory
 * that cannot be had is normally told by SIGBUS at the first touch; here the kernel is asked for it beforehand. */
#define _GNU_SOURCE /* memfd_create, madvise */
#include "feed/ring_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static size_t round_up(size_t bytes, size_t unit) {
    return bytes > SIZE_MAX - unit ? SIZE_MAX : (bytes + unit - 1) / unit * unit;
}

static size_t page_bytes(void) {
    long bytes = sysconf(_SC_PAGESIZE);
    return bytes > 0 ? (size_t)bytes : 4096;
}

static leat_status lay_out_tensor(const leat_batch_spec *spec, int i, size_t *bytes, leat_error *err) {
    const leat_tensor_spec *tensor = &spec->tensors[i];
    size_t element = leat_dtype_bytes(tensor->dtype);
    if (element == 0)
        return leati_fail(err, LEAT_EDTYPE, "tensor %d ('%s'): unknown data type %d", i, tensor->name,
                          (int)tensor->dtype);
    if (tensor->rank < 0 || tensor->rank > LEAT_MAX_RANK - 1)
        return leati_fail(err, LEAT_ESHAPE, "tensor %d ('%s'): a sample has rank 0 to %d, got %d", i,
                          tensor->name, LEAT_MAX_RANK - 1, (int)tensor->rank);
    size_t size = 0;
    bool fits = leati_mul_size((size_t)spec->batch_size, element, &size);
    for (int d = 0; d < tensor->rank; ++d) {
        if (tensor->shape[d] < 1)
            return leati_fail(err, LEAT_ESHAPE,
                              "tensor %d ('%s'): dimension %d of a sample is %lld, expected at least 1", i,
                              tensor->name, d, (long long)tensor->shape[d]);
        fits = fits && leati_mul_size(size, (size_t)tensor->shape[d], &size);
    }
    if (!fits || leati_align(size) > SIZE_MAX / 4 - *bytes)
        return leati_fail(err, LEAT_ESHAPE,
                          "tensor %d ('%s'): a batch of %lld samples does not fit the address space", i,
                          tensor->name, (long long)spec->batch_size);
    *bytes += leati_align(size);
    return LEAT_OK;
}

static leat_status lay_out_slot(leati_ring *ring, const leat_batch_spec *spec, leat_error *err) {
    if (spec->batch_size < 1)
        return leati_fail(err, LEAT_ESHAPE, "the specification's batch_size is %lld, expected at least 1",
                          (long long)spec->batch_size);
    if (spec->tensor_count < 1 || spec->tensor_count > LEAT_BATCH_MAX_TENSORS)
        return leati_fail(err, LEAT_ESHAPE, "the specification has %d tensors, expected 1 to %d",
                          (int)spec->tensor_count, LEAT_BATCH_MAX_TENSORS);
    size_t bytes = 0;
    for (int i = 0; i < spec->tensor_count; ++i) {
        ring->tensor_offset[i] = bytes;
        LEATI_TRY(lay_out_tensor(spec, i, &bytes, err));
    }
    ring->slot_bytes = round_up(bytes, page_bytes());
    return LEAT_OK;
}

/* What this machine, or the container's limit, can give at most; SIZE_MAX when unknown. */
static size_t number_in(const char *path, const char *format, size_t unit) {
    FILE *file = fopen(path, "re");
    if (!file) return SIZE_MAX;
    char line[128];
    unsigned long long number = 0;
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) found = sscanf(line, format, &number) == 1;
    fclose(file);
    return found && number < SIZE_MAX / unit ? (size_t)number * unit : SIZE_MAX;
}

static size_t memory_available(void) {
    size_t machine = number_in("/proc/meminfo", "MemAvailable: %llu", 1024);
    size_t group = number_in("/sys/fs/cgroup/memory.max", "%llu", 1);
    return machine < group ? machine : group;
}

static leat_status check_available(const leati_ring *ring, leat_error *err) {
    size_t available = memory_available();
    if (ring->bytes <= available) return LEAT_OK;
    return leati_fail(
        err, LEAT_ENOMEM,
        "the feed's ring needs %zu MiB (%llu slots of %zu KiB), %zu MiB are available: lower max_queue_size "
        "or the batch size",
        ring->bytes >> 20, (unsigned long long)ring->slot_count, ring->slot_bytes >> 10, available >> 20);
}

/* Shared memory whose control part is there; `*backed_all` says whether the slots are too. */
static leat_status map_shared(leati_ring *ring, size_t control, void **out, bool *backed_all,
                              leat_error *err) {
    int fd = memfd_create("leat-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return leati_fail_errno(err, LEAT_EIO, errno, "cannot make the feed's shared memory");
    leat_status status = LEAT_OK;
    void *memory = MAP_FAILED;
    int failed = ftruncate(fd, (off_t)ring->bytes) != 0 ? errno : posix_fallocate(fd, 0, (off_t)control);
    if (!failed) {
        memory = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED) failed = errno;
    }
    if (!failed) {
        *backed_all = madvise(memory, control, MADV_POPULATE_WRITE) != 0;
        if (*backed_all) failed = posix_fallocate(fd, 0, (off_t)ring->bytes);
    }
    if (!failed && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) failed = errno;
    if (failed) {
        status = leati_fail_errno(err, failed == ENOMEM || failed == ENOSPC ? LEAT_ENOMEM : LEAT_EIO, failed,
                                  "cannot map %zu bytes of shared memory for the feed's ring", ring->bytes);
        if (memory != MAP_FAILED) munmap(memory, ring->bytes);
        memory = NULL;
    }
    close(fd);
    *out = memory;
    return status;
}

static leat_status map_private(const leati_ring *ring, void **out, leat_error *err) {
    void *memory = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return leati_fail_errno(err, LEAT_ENOMEM, errno, "cannot map %zu bytes for the feed's ring",
                                ring->bytes);
    if (ring->slot_bytes >= HUGE_PAGE_BYTES) madvise(memory, ring->bytes, MADV_HUGEPAGE); /* a bonus */
    *out = memory;
    return LEAT_OK;
}

leat_status leati_ring_init(leati_ring *ring, const leat_sequence *sequence, int slot_count, int worker_count,
                            bool between_processes, leat_error *err) {
    *ring = (leati_ring){.slot_count = (uint64_t)slot_count, .worker_count = worker_count};
    LEATI_TRY(lay_out_slot(ring, &sequence->spec, err));
    size_t workers = sizeof(leati_ring_shared);
    size_t slots = workers + (size_t)worker_count * sizeof(leati_worker_entry);
    size_t state = slots + (size_t)slot_count * sizeof(leati_slot);
    size_t control = round_up(state + leati_align(sequence->state_bytes), page_bytes());
    size_t data = 0;
    if (!leati_mul_size(ring->slot_bytes, (size_t)slot_count, &data) || data > SIZE_MAX / 4 ||
        control > SIZE_MAX / 4)
        return leati_fail(err, LEAT_ENOMEM, "%d slots of %zu bytes do not fit the address space", slot_count,
                          ring->slot_bytes);
    ring->bytes = control + data;
    ring->between_processes = between_processes;
    LEATI_TRY(check_available(ring, err));
    void *memory = NULL;
    bool backed_all = true;
    LEATI_TRY(between_processes ? map_shared(ring, control, &memory, &backed_all, err)
                                : map_private(ring, &memory, err));
    unsigned char *base = memory;
    ring->shared = memory; /* all zero, as the kernel gives it: every atomic and every slot starts so */
    ring->workers = (void *)(base + workers);
    ring->slots = (void *)(base + slots);
    ring->state = base + state;
    ring->data = base + control;
    ring->backed_by_worker = !backed_all;
    return LEAT_OK;
}

void leati_ring_fini(leati_ring *ring) {
    if (ring->shared) munmap(ring->shared, ring->bytes);
    *ring = (leati_ring){0};
}

leat_status leati_ring_back_slot(const leati_ring *ring, leati_slot *slot, leat_error *err) {
    if (!ring->backed_by_worker || slot->backed) return LEAT_OK;
    void *memory = ring->data + (size_t)(slot - ring->slots) * ring->slot_bytes;
    int tries = 0, failed = 0;
    do failed = madvise(memory, ring->slot_bytes, MADV_POPULATE_WRITE) != 0 ? errno : 0;
    while ((failed == EINTR || failed == EAGAIN) && ++tries < 100);
    if (failed)
        return leati_fail_errno(err, LEAT_ENOMEM, failed, "no memory for a slot of %zu bytes",
                                ring->slot_bytes);
    slot->backed = 1;
    return LEAT_OK;
}

void leati_ring_inherit(const leati_ring *ring, bool inherit) {
    madvise(ring->shared, ring->bytes, inherit ? MADV_DOFORK : MADV_DONTFORK);
}
