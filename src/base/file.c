/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files, and files replaced atomically.  Layer: base. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

static leat_status map_descriptor(leati_map *out, int fd, const char *path, leat_error *err) {
    struct stat about;
    if (fstat(fd, &about) != 0) return leati_fail_errno(err, LEAT_EIO, errno, "cannot look at '%s'", path);
    if (!S_ISREG(about.st_mode))
        return leati_fail(err, LEAT_EINVAL, "'%s' is %s, expected a regular file", path,
                          S_ISDIR(about.st_mode) ? "a directory" : "a pipe, socket or device");
    *out = (leati_map){.data = (const unsigned char *)"",
                       .size = (size_t)about.st_size,
                       .device = about.st_dev,
                       .inode = about.st_ino};
    if (out->size == 0) return LEAT_OK;
    void *data = mmap(NULL, out->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        *out = (leati_map){0};
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot map '%s'", path);
    }
    out->data = data;
    return LEAT_OK;
}

leat_status leati_map_open(leati_map *out, const char *path, leat_error *err) {
    *out = (leati_map){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not hang */
    if (fd < 0)
        return leati_fail_errno(err, errno == ENOENT ? LEAT_ENOTFOUND : LEAT_EIO, errno, "cannot open '%s'",
                                path);
    leat_status status = map_descriptor(out, fd, path, err);
    close(fd);
    return status;
}

leat_status leati_map_open_guarded(leati_map *out, const char *path, leat_error *err) {
    LEATI_TRY(leati_map_open(out, path, err));
    if (out->size == 0) return LEAT_OK;
    out->path = leati_strdup(path);
    if (!out->path) {
        leati_map_close(out);
        return leati_fail_memory(err, strlen(path), "a file name");
    }
    out->guard = leati_guard_begin(out->data, out->size);
    return LEAT_OK;
}

/* How long the file is now; -1 when nobody knows, since it has no longer the name under which it was opened. */
static int64_t length_now(const leati_map *map) {
    struct stat about;
    bool known = stat(map->path, &about) == 0 && about.st_dev == map->device && about.st_ino == map->inode;
    return known ? (int64_t)about.st_size : -1;
}

/* Bytes that are missing within a file's last page raise no signal. */
static bool touches_last_page(const leati_map *map, const void *from, size_t bytes) {
    size_t last = (map->size - 1) / leati_page_bytes() * leati_page_bytes();
    return (uintptr_t)from + bytes > (uintptr_t)map->data + last;
}

leat_status leati_map_check(const leati_map *map, const void *from, size_t bytes, leat_error *err) {
    size_t offset = 0;
    if (!map || !map->guard) return LEAT_OK;
    bool hit = leati_guard_was_hit(map->guard, &offset);
    if (!hit && !touches_last_page(map, from, bytes)) return LEAT_OK;
    int64_t now = length_now(map);
    if (now >= 0 && now < (int64_t)map->size)
        return leati_fail(
            err, LEAT_EIO,
            "'%s' was shortened to %lld bytes while it was in use; it had %zu when it was opened.  "
            "Give new data a file of its own, or rename a complete file over the old one",
            map->path, (long long)now, map->size);
    if (!hit) return LEAT_OK;
    return leati_fail(
        err, LEAT_EIO,
        "'%s' could not be read from byte %zu of %zu on: it was shortened while it was in use, or "
        "its device failed",
        map->path, offset, map->size);
}

void leati_map_close(leati_map *map) {
    leati_guard_end(map->guard);
    leati_free(map->path);
    if (map->size) munmap((void *)(uintptr_t)map->data, map->size);
    *map = (leati_map){0};
}

/* Opens a new file beside `path`; the name holds the process, and a number where that is taken. */
static leat_status open_beside(leati_replacement *file, leat_error *err) {
    size_t bytes = strlen(file->path) + 40;
    file->temporary = leati_calloc(bytes, 1);
    if (!file->temporary) return leati_fail_memory(err, bytes, "a file name");
    for (int attempt = 0; attempt < 100; ++attempt) {
        snprintf(file->temporary, bytes, "%s.%ld-%d.tmp", file->path, (long)getpid(), attempt);
        file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0) return LEAT_OK;
        if (errno != EEXIST) break;
    }
    return leati_fail_errno(err, LEAT_EIO, errno, "cannot create '%s'", file->path);
}

static void forget(leati_replacement *file) {
    leati_free(file->path);
    leati_free(file->temporary);
    *file = (leati_replacement){.fd = -1};
}

leat_status leati_replace_begin(leati_replacement *out, const char *path, leat_error *err) {
    *out = (leati_replacement){.fd = -1, .path = leati_strdup(path)};
    leat_status status =
        out->path ? open_beside(out, err) : leati_fail_memory(err, strlen(path), "a file name");
    if (status != LEAT_OK) forget(out);
    return status;
}

leat_status leati_replace_write(leati_replacement *file, const void *data, size_t bytes, leat_error *err) {
    const char *next = data;
    while (bytes > 0) {
        ssize_t written = write(file->fd, next, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return leati_fail_errno(err, LEAT_EIO, errno, "cannot write '%s'", file->path);
        next += written;
        bytes -= (size_t)written;
    }
    return LEAT_OK;
}

/* Makes the rename last through a power cut.  Some file systems refuse to sync a directory; that is no failure. */
static void sync_directory(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = leati_strdup(slash && slash != path ? path : slash ? "/" : ".");
    if (!folder) return;
    if (slash && slash != path) folder[slash - path] = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    leati_free(folder);
}

leat_status leati_replace_commit(leati_replacement *file, leat_error *err) {
    leat_status status = LEAT_OK;
    if (fsync(file->fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        status = leati_fail_errno(err, LEAT_EIO, errno, "cannot flush '%s'", file->path);
    if (close(file->fd) != 0 && status == LEAT_OK)
        status = leati_fail_errno(err, LEAT_EIO, errno, "cannot close '%s'", file->path);
    file->fd = -1;
    if (status == LEAT_OK && rename(file->temporary, file->path) != 0)
        status =
            leati_fail_errno(err, LEAT_EIO, errno, "cannot rename '%s' to '%s'", file->temporary, file->path);
    if (status == LEAT_OK)
        sync_directory(file->path);
    else
        unlink(file->temporary);
    forget(file);
    return status;
}

void leati_replace_abandon(leati_replacement *file) {
    if (!file->temporary) return;
    if (file->fd >= 0) close(file->fd);
    unlink(file->temporary);
    forget(file);
}
