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
    *out = (leati_map){.data = (const unsigned char *)"", .size = (size_t)about.st_size};
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

void leati_map_close(leati_map *map) {
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
    return leati_fail_errno(err, LEAT_EIO, errno, "cannot create '%s'", file->temporary);
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
        if (written < 0) return leati_fail_errno(err, LEAT_EIO, errno, "cannot write '%s'", file->temporary);
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
        status = leati_fail_errno(err, LEAT_EIO, errno, "cannot flush '%s'", file->temporary);
    if (close(file->fd) != 0 && status == LEAT_OK)
        status = leati_fail_errno(err, LEAT_EIO, errno, "cannot close '%s'", file->temporary);
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
