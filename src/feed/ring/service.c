/* SPDX-License-Identifier: Apache-2.0 */
/* Lays out and maps the memory of the ring, and reports a lack of memory as an error.  Room: feed.
 *
 * Worker processes share anonymous memory, so that nothing is left when processes are killed.  The kernel normally
 * reports a lack of shared memory by SIGBUS at the first access.  Here the pages are allocated before, with an
 * error. */
#define _GNU_SOURCE /* memfd_create, madvise */
#include "feed/ring/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/guard.h"
#include "base/memory.h"
#include "tensor/sequence.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

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

static leat_status cannot_share(const leati_ring *ring, int failed, leat_error *err) {
    return leati_fail_errno(err, failed == ENOMEM || failed == ENOSPC ? LEAT_ENOMEM : LEAT_EIO, failed,
                            "cannot map %zu bytes of shared memory for the feed's ring", ring->bytes);
}

/* Sets the size of the memory file, allocates its pages, seals it and maps it.  Returns 0 or an errno. */
static int map_file(const leati_ring *ring, int fd, void **out) {
    if (ftruncate(fd, (off_t)ring->bytes) != 0) return errno;
    int failed = posix_fallocate(fd, 0, (off_t)ring->bytes);
    if (failed) return failed;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return errno;
    void *memory = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return errno;
    *out = memory;
    return 0;
}

/* Maps a memfd.  Before Linux 5.14, only the pages of a file can be allocated in such a way that a lack of memory is an
 * error.  The limit of file sizes applies to a memfd, and a program that exceeds it is killed by SIGXFSZ, so the limit
 * is checked first. */
static leat_status map_memfd(const leati_ring *ring, void **out, leat_error *err) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < ring->bytes)
        return leati_fail(
            err, LEAT_EIO,
            "the feed's ring needs %zu bytes of shared memory; before Linux 5.14 the limit of file "
            "sizes applies to it, which is %llu bytes here: raise that (ulimit -f, RLIMIT_FSIZE), "
            "or lower max_queue_size or the batch size",
            ring->bytes, (unsigned long long)limit.rlim_cur);
    int fd = memfd_create("leat-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return leati_fail_errno(err, LEAT_EIO, errno, "cannot make the feed's shared memory");
    int failed = map_file(ring, fd, out);
    close(fd);
    return failed ? cannot_share(ring, failed, err) : LEAT_OK;
}

/* Maps shared memory and allocates the pages of its control part; `*backed_all` is set to true if the slots have pages,
 * too.  The memory has no name and no descriptor, so that no limit of files or descriptors applies. */
static leat_status map_shared(const leati_ring *ring, size_t control, void **out, bool *backed_all,
                              leat_error *err) {
    void *memory = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return cannot_share(ring, errno, err);
    int tries = 0, failed = 0;
    do failed = madvise(memory, control, MADV_POPULATE_WRITE) != 0 ? errno : 0;
    while ((failed == EINTR || failed == EAGAIN) && ++tries < 100);
    *backed_all = failed == EINVAL;
    *out = failed ? NULL : memory;
    if (!failed) return LEAT_OK;
    munmap(memory, ring->bytes);
    return *backed_all ? map_memfd(ring, out, err)
                       : cannot_share(ring, failed == EFAULT ? ENOMEM : failed, err);
}

static leat_status map_private(const leati_ring *ring, void **out, leat_error *err) {
    void *memory = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return leati_fail_errno(err, LEAT_ENOMEM, errno, "cannot map %zu bytes for the feed's ring",
                                ring->bytes);
    *out = memory;
    return LEAT_OK;
}

static leat_status too_little(const leati_service *service, size_t memory, leat_error *err) {
    size_t least = 2 * (service->ring.slot_bytes + sizeof(leati_slot));
    return leati_fail(
        err, LEAT_EINVAL,
        "%zu bytes of memory hold less than two batches of %zu bytes, one in use and one ahead: expected "
        "at least %zu",
        memory, service->ring.slot_bytes, least);
}

/* Sets the number of slots. */
static leat_status choose_slots(leati_service *service, int workers, size_t memory, leat_error *err) {
    uint64_t slots = (uint64_t)service->max_queue_size + 1;
    if (memory) {
        slots = memory / (service->ring.slot_bytes + sizeof(leati_slot));
        if (slots < 2) return too_little(service, memory, err);
        if (slots > LEATI_MAX_QUEUE_SIZE) slots = LEATI_MAX_QUEUE_SIZE;
        service->max_queue_size = (int)slots - 1;
    }
    service->ring.slot_count = workers > 0 ? slots : 1;
    return LEAT_OK;
}

static leat_status map_ring(leati_ring *ring, size_t control, void **memory, leat_error *err) {
    bool backed_all = false;
    LEATI_TRY(check_available(ring, err));
    LEATI_TRY(ring->table->between_processes ? map_shared(ring, control, memory, &backed_all, err)
                                             : map_private(ring, memory, err));
    ring->backed_by_worker = !backed_all;
    /* Huge pages are faster, but not necessary, so an error does not matter. */
    if (ring->slot_bytes >= HUGE_PAGE_BYTES)
        madvise((unsigned char *)*memory + control, ring->bytes - control, MADV_HUGEPAGE);
    return LEAT_OK;
}

leat_status leati_service_map(leati_service *service, const leati_worker_table *table, size_t memory,
                              leat_error *err) {
    leati_ring *ring = &service->ring;
    const leat_sequence *sequence = &service->sequence;
    *ring = (leati_ring){.table = table,
                         .owner = -1,
                         .batch_ns = LEATI_WAKE_UP_NS /* until a batch is delivered */};
    LEATI_TRY(lay_out_slot(ring, &sequence->spec, err));
    LEATI_TRY(choose_slots(service, table->count, memory, err));
    size_t slots = sizeof(leati_ring_shared);
    size_t state = slots + ring->slot_count * sizeof(leati_slot);
    size_t control = round_up(state + leati_align(sequence->state_bytes), leati_page_bytes());
    size_t data = 0;
    if (!leati_mul_size(ring->slot_bytes, ring->slot_count, &data) || data > SIZE_MAX / 4 ||
        control > SIZE_MAX / 4)
        return leati_fail(err, LEAT_ENOMEM, "%llu slots of %zu bytes are too large for the address space",
                          (unsigned long long)ring->slot_count, ring->slot_bytes);
    ring->bytes = control + data;
    void *mapped = NULL;
    LEATI_TRY(map_ring(ring, control, &mapped, err));
    unsigned char *base = mapped;
    ring->shared = mapped; /* The kernel has zeroed the mapping: all atomics and slots begin with 0. */
    ring->slots = (void *)(base + slots);
    ring->state = base + state;
    ring->data = base + control;
    return LEAT_OK;
}

void leati_service_unmap(leati_service *service) {
    if (service->ring.shared) munmap(service->ring.shared, service->ring.bytes);
    service->ring = (leati_ring){0};
}

int64_t leati_service_sample(const leati_service *service, const leati_job *job, int64_t place) {
    const leat_sequence *sequence = &service->sequence;
    if (!sequence->get_samples) return -1;
    return leati_order_sample(&service->rule, job->position.pass, job->samples, sequence->spec.batch_size,
                              job->position.index, place);
}

leat_status leati_service_back(leati_service *service, leati_slot *slot, leat_error *err) {
    const leati_ring *ring = &service->ring;
    if (!ring->backed_by_worker || atomic_load_explicit(&slot->backed, memory_order_relaxed)) return LEAT_OK;
    void *memory = ring->data + (size_t)(slot - ring->slots) * ring->slot_bytes;
    int tries = 0, failed = 0;
    do failed = madvise(memory, ring->slot_bytes, MADV_POPULATE_WRITE) != 0 ? errno : 0;
    while ((failed == EINTR || failed == EAGAIN) && ++tries < 100);
    /* An older kernel does not know MADV_POPULATE_WRITE; private memory is then allocated at the first access. */
    if (failed && (ring->table->between_processes || failed != EINVAL))
        return leati_fail_errno(err, LEAT_ENOMEM, failed, "no memory for a slot of %zu bytes",
                                ring->slot_bytes);
    atomic_store_explicit(&slot->backed, 1, memory_order_relaxed);
    return LEAT_OK;
}

void leati_service_inherit(const leati_service *service, bool inherit) {
    madvise(service->ring.shared, service->ring.bytes, inherit ? MADV_DOFORK : MADV_DONTFORK);
}
