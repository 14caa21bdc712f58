/* SPDX-License-Identifier: Apache-2.0 */
/* Maps memory for rings and worker tables, and reports a lack of memory as an error.  Room: feed.
 *
 * Worker processes share anonymous memory, so that nothing is left when processes are killed.  The kernel normally
 * reports a lack of shared memory by SIGBUS at the first access.  Here the pages are allocated before, with an
 * error. */
#define _GNU_SOURCE /* memfd_create, madvise */
#include "feed/ring/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/fork.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Allocates pages.  Returns 0 or an errno; EINVAL: the kernel does not know MADV_POPULATE_WRITE. */
static int populate(void *memory, size_t bytes) {
    int tries = 0, failed = 0;
    do failed = madvise(memory, bytes, MADV_POPULATE_WRITE) != 0 ? errno : 0;
    while ((failed == EINTR || failed == EAGAIN) && ++tries < 100);
    return failed;
}

static leat_status cannot_share(size_t bytes, int failed, leat_error *err) {
    return leati_fail_errno(err, failed == ENOMEM || failed == ENOSPC ? LEAT_ENOMEM : LEAT_EIO, failed,
                            "cannot map %zu bytes of shared memory for the feed's ring", bytes);
}

/* Sets the size of the memory file, allocates its pages unless they are elastic, seals it and maps it.  Returns 0 or an
 * errno. */
static int map_file(const leati_mapping_request *request, int fd, void **out) {
    if (ftruncate(fd, (off_t)request->bytes) != 0) return errno;
    size_t needed = request->elastic ? request->control : request->bytes;
    int failed = posix_fallocate(fd, 0, (off_t)needed);
    if (failed) return failed;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return errno;
    void *memory = mmap(NULL, request->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return errno;
    *out = memory;
    return 0;
}

/* Maps a memfd, for another program, or because before Linux 5.14 only the pages of a file can be allocated in such a
 * way that a lack of memory is an error.  The limit of file sizes applies to a memfd, and a program that exceeds it is
 * killed by SIGXFSZ, so the limit is checked first. */
static leat_status map_memfd(leati_mapping *out, const leati_mapping_request *request, leat_error *err) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < request->bytes)
        return leati_fail(
            err, LEAT_EIO,
            "the feed's ring needs %zu bytes of shared memory; before Linux 5.14, and for workers of another "
            "program, the limit of file sizes applies to it, which is %llu bytes here: raise that (ulimit "
            "-f, RLIMIT_FSIZE), or lower max_queue_size or the batch size",
            request->bytes, (unsigned long long)limit.rlim_cur);
    int fd = memfd_create("leat-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return leati_fail_errno(err, LEAT_EIO, errno, "cannot make the feed's shared memory");
    void *memory = NULL;
    int failed = map_file(request, fd, &memory);
    if (!failed) out->memory = memory;
    if (!failed && request->by_descriptor)
        out->fd = fd;
    else
        close(fd);
    out->backed = !request->elastic;
    return failed ? cannot_share(request->bytes, failed, err) : LEAT_OK;
}

/* Maps shared memory and allocates the pages of its control part.  The memory has no name and no descriptor, so that no
 * limit of files or descriptors applies. */
static leat_status map_shared(leati_mapping *out, const leati_mapping_request *request, leat_error *err) {
    int flags = MAP_SHARED | MAP_ANONYMOUS | (request->elastic ? MAP_NORESERVE : 0);
    void *memory = mmap(NULL, request->bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) return cannot_share(request->bytes, errno, err);
    int failed = populate(memory, request->control);
    out->memory = memory;
    if (!failed) return LEAT_OK;
    out->memory = NULL;
    munmap(memory, request->bytes);
    return failed == EINVAL ? map_memfd(out, request, err)
                            : cannot_share(request->bytes, failed == EFAULT ? ENOMEM : failed, err);
}

static leat_status map_private(leati_mapping *out, const leati_mapping_request *request, leat_error *err) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (request->elastic ? MAP_NORESERVE : 0);
    void *memory = mmap(NULL, request->bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED)
        return leati_fail_errno(err, LEAT_ENOMEM, errno, "cannot map %zu bytes for the feed's ring",
                                request->bytes);
    out->memory = memory;
    return LEAT_OK;
}

leat_status leati_mapping_create(leati_mapping *out, const leati_mapping_request *request, leat_error *err) {
    *out = (leati_mapping){.bytes = request->bytes,
                           .fd = -1,
                           .between_processes = request->between_processes,
                           .inherited = request->inherited,
                           .fork_depth = leati_fork_depth()};
    if (!request->between_processes) return map_private(out, request, err);
    return request->by_descriptor ? map_memfd(out, request, err) : map_shared(out, request, err);
}

leat_status leati_mapping_attach(leati_mapping *out, leat_error *err) {
    void *memory = mmap(NULL, out->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, out->fd, 0);
    int failed = memory == MAP_FAILED ? errno : 0;
    if (failed) {
        leati_mapping_release(out);
        return cannot_share(out->bytes, failed, err);
    }
    fcntl(out->fd, F_SETFD, FD_CLOEXEC);
    out->memory = memory;
    out->inherited = true;
    return LEAT_OK;
}

void leati_mapping_release(leati_mapping *mapping) {
    if (mapping->fd >= 0) close(mapping->fd);
    mapping->fd = -1;
}

void leati_mapping_destroy(leati_mapping *mapping) {
    bool here =
        !mapping->between_processes || mapping->inherited || mapping->fork_depth == leati_fork_depth();
    if (mapping->memory && here) munmap(mapping->memory, mapping->bytes);
    if (mapping->memory && mapping->fd >= 0) close(mapping->fd);
    *mapping = (leati_mapping){.fd = -1};
}

leat_status leati_mapping_back(void *memory, size_t bytes, bool *known, leat_error *err) {
    int failed = populate(memory, bytes);
    *known = failed != EINVAL;
    if (!failed || failed == EINVAL) return LEAT_OK;
    return leati_fail_errno(err, LEAT_ENOMEM, failed, "no memory for a slot of %zu bytes", bytes);
}

void leati_mapping_inherit(const leati_mapping *mapping, bool inherit) {
    if (!mapping->inherited) madvise(mapping->memory, mapping->bytes, inherit ? MADV_DOFORK : MADV_DONTFORK);
}
