/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings, atomic replacements and streams.  Room: base. */
#include "base/os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/signals.h"
#include "base/os/temporary.h"
#include "leat/file.h"

static const char *kind_of(mode_t mode) {
    if (S_ISREG(mode)) return "a regular file";
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a FIFO (named pipe)";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode)) return "a character device";
    return S_ISBLK(mode) ? "a block device" : "of an unknown kind";
}

static leat_status map_descriptor(leati_map *out, int fd, const char *path, leat_error *err) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot read the attributes of '%s'", path);
    if (!S_ISREG(info.st_mode))
        return leati_fail(err, LEAT_EINVAL, "'%s' is %s, expected a regular file", path,
                          kind_of(info.st_mode));
    *out = (leati_map){.data = (const unsigned char *)"",
                       .size = (size_t)info.st_size,
                       .device = info.st_dev,
                       .inode = info.st_ino};
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
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a FIFO that has no writer must not block */
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

/* Returns the file's current length; -1 if it is unknown, because the path now names another file or none. */
static int64_t length_now(const leati_map *map) {
    struct stat info;
    bool known = stat(map->path, &info) == 0 && info.st_dev == map->device && info.st_ino == map->inode;
    return known ? (int64_t)info.st_size : -1;
}

/* Returns true if the bytes reach into the mapping's last page: the kernel fills up a file's last page with zeros, so
 * that bytes which are missing there raise no signal. */
static bool touches_last_page(const leati_map *map, const void *from, size_t bytes) {
    size_t last = (map->size - 1) / leati_page_bytes() * leati_page_bytes();
    return (uintptr_t)from + bytes > (uintptr_t)map->data + last;
}

leat_status leati_map_check(const leati_map *map, const void *from, size_t bytes, leat_error *err) {
    size_t offset = 0;
    if (!map || !map->guard) return LEAT_OK;
    bool hit = leati_guard_was_hit(map->guard, &offset);
    if (!hit && !touches_last_page(map, from, bytes)) return LEAT_OK;
    int64_t current = length_now(map);
    if (current >= 0 && current < (int64_t)map->size)
        return leati_fail(
            err, LEAT_EIO,
            "'%s' was shortened to %lld bytes while it was in use; it had %zu when it was opened.  "
            "Give new data a file of its own, or rename a complete file over the old one",
            map->path, (long long)current, map->size);
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

/* ---- Writing ---- */

int leati_write_all(int fd, const void *data, size_t bytes, int64_t offset) {
    const char *next = data;
    int error_number = 0;
    leati_size_signal held;
    leati_size_signal_hold(&held);
    while (bytes > 0 && error_number == 0) {
        ssize_t written = offset < 0 ? write(fd, next, bytes) : pwrite(fd, next, bytes, offset);
        if (written < 0) {
            error_number = errno == EINTR ? 0 : errno;
            continue;
        }
        next += written;
        bytes -= (size_t)written;
        if (offset >= 0) offset += written;
    }
    leati_size_signal_release(&held);
    return error_number;
}

/* ---- The target of a path ---- */

/* Returns the path that the symbolic link at `path` names, for leati_free; a relative link is resolved against the
 * link's folder.  Returns NULL and sets errno on failure. */
static char *next_path(const char *path) {
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - path) : 0;
    char *next = leati_calloc(folder + PATH_MAX, 1);
    if (!next) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(next, path, folder);
    ssize_t length = readlink(path, next + folder, PATH_MAX);
    if (length >= 0 && length < PATH_MAX) {
        if (next[folder] == '/') memmove(next, next + folder, (size_t)length + 1);
        return next;
    }
    if (length >= 0) errno = ENAMETOOLONG;
    leati_free(next);
    return NULL;
}

/* Follows symbolic links: replaces *path (on the heap) by the link's target until that is not a link.  The target
 * need not exist. */
static leat_status follow_links(char **path, leat_error *err) {
    enum { max_links = 40 }; /* the limit of Linux */
    struct stat info;
    for (int links = 0; lstat(*path, &info) == 0 && S_ISLNK(info.st_mode); ++links) {
        errno = ELOOP;
        char *next = links < max_links ? next_path(*path) : NULL;
        if (!next) return leati_fail_errno(err, LEAT_EIO, errno, "cannot follow the link '%s'", *path);
        leati_free(*path);
        *path = next;
    }
    return LEAT_OK;
}

static leat_status fail_not_regular(const leati_replacement *out, const char *path, mode_t mode,
                                    leat_error *err) {
    static const char rule[] =
        "only regular files are replaced; give the path of a regular file or of a new file";
    if (strcmp(out->path, path) == 0)
        return leati_fail(err, LEAT_EINVAL, "cannot write '%s': it is %s; %s", path, kind_of(mode), rule);
    return leati_fail(err, LEAT_EINVAL, "cannot write '%s': it is a link to '%s', which is %s; %s", path,
                      out->path, kind_of(mode), rule);
}

/* Checks that the file at `path` may be replaced and stores its permissions and owner; without a file, out->replaces
 * stays false. */
static leat_status check_target(leati_replacement *out, const char *path, leat_error *err) {
    struct stat info, target;
    if (stat(path, &info) != 0) {
        if (errno == ENOENT) return LEAT_OK;
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot read the attributes of '%s'", path);
    }
    if (!S_ISREG(info.st_mode)) return fail_not_regular(out, path, info.st_mode, err);
    /* A link below /proc/self/fd opens a file that its text need not name. */
    if (stat(out->path, &target) != 0 || target.st_dev != info.st_dev || target.st_ino != info.st_ino)
        return leati_fail(err, LEAT_EINVAL,
                          "cannot write '%s': it is a link to a file that is not at '%s', so the file cannot "
                          "be replaced by its name; give the path of the file itself",
                          path, out->path);
    if (faccessat(AT_FDCWD, out->path, W_OK, AT_EACCESS) != 0)
        return leati_fail_errno(err, LEAT_EIO, errno,
                                "cannot write '%s': this user has no permission to write the file; "
                                "change its permissions or give another path",
                                path);
    out->replaces = true;
    out->mode = info.st_mode & 0777;
    out->owner = info.st_uid;
    out->group = info.st_gid;
    return LEAT_OK;
}

/* ---- Replacing ---- */

static leat_status fail_to_create(const leati_replacement *file, int error_number, leat_error *err) {
    bool no_permission = error_number == EACCES || error_number == EPERM || error_number == EROFS;
    if (!no_permission || !file->replaces)
        return leati_fail_errno(err, LEAT_EIO, error_number, "cannot write '%s'", file->path);
    return leati_fail_errno(
        err, LEAT_EIO, error_number,
        "cannot write '%s': the file is replaced by a new file in the same folder, and this "
        "user has no permission to create files there; make the folder writable or give a "
        "path in another folder",
        file->path);
}

/* Returns how many bytes of the path the temporary name begins with: all of them, or fewer so that the file name with
 * `added` more bytes is not longer than NAME_MAX. */
static size_t kept_bytes(const char *path, size_t added) {
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - path) : 0, name = strlen(path) - folder;
    return folder + (name + added > NAME_MAX ? NAME_MAX - added : name);
}

/* Creates the temporary file in the target's folder.  A file that will replace another one is private until it gets
 * that file's permissions.  The file is open for reading, too, since HDF5 reads back what it has written. */
static leat_status open_beside(leati_replacement *file, leat_error *err) {
    size_t bytes = strlen(file->path) + LEATI_TEMPORARY_SUFFIX_BYTES;
    size_t kept = kept_bytes(file->path, LEATI_TEMPORARY_SUFFIX_BYTES);
    file->temporary = leati_calloc(bytes, 1);
    if (!file->temporary) return leati_fail_memory(err, bytes, "a file name");
    for (int attempt = 0; attempt < LEATI_TEMPORARY_ATTEMPTS; ++attempt) {
        leati_temporary_name(file->temporary, file->path, kept, attempt);
        file->fd = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, file->replaces ? 0600 : 0666);
        if (file->fd >= 0) return LEAT_OK;
        if (errno != EEXIST) break;
    }
    return fail_to_create(file, errno, err);
}

static void free_paths(leati_replacement *file) {
    leati_free(file->path);
    leati_free(file->temporary);
    *file = (leati_replacement){.fd = -1};
}

leat_status leati_replace_begin(leati_replacement *out, const char *path, leat_error *err) {
    *out = (leati_replacement){.fd = -1};
    if (!path[0]) return leati_fail(err, LEAT_EINVAL, "the path of the file to write is empty");
    out->path = leati_strdup(path);
    leat_status status = out->path ? LEAT_OK : leati_fail_memory(err, strlen(path), "a file name");
    if (status == LEAT_OK) status = follow_links(&out->path, err);
    if (status == LEAT_OK) status = check_target(out, path, err);
    if (status == LEAT_OK) status = open_beside(out, err);
    if (status != LEAT_OK) free_paths(out);
    return status;
}

leat_status leati_replace_write(leati_replacement *file, const void *data, size_t bytes, leat_error *err) {
    int error_number = leati_write_all(file->fd, data, bytes, -1);
    if (error_number == 0) return LEAT_OK;
    return leati_fail_errno(err, LEAT_EIO, error_number, "cannot write '%s'", file->path);
}

/* Makes the rename survive a power failure.  Ignores errors, since some file systems cannot sync a directory. */
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

/* Gives the new file the permissions, group and owner of the old one.  Ignores errors, since some file systems have
 * no permissions; the file then keeps those with which it was created. */
static void keep_permissions(const leati_replacement *file) {
    struct stat current;
    mode_t mode = file->mode;
    if (!file->replaces || fstat(file->fd, &current) != 0) return;
    if (current.st_gid != file->group && fchown(file->fd, (uid_t)-1, file->group) != 0)
        mode = (mode & ~(mode_t)S_IRWXG) | (mode & S_IRWXO) << 3;
    if (current.st_uid != file->owner && fchown(file->fd, file->owner, (gid_t)-1) != 0)
        mode |= S_IRUSR | S_IWUSR; /* the process's user owns the file now */
    (void)fchmod(file->fd, mode);
}

leat_status leati_replace_commit(leati_replacement *file, leat_error *err) {
    leat_status status = LEAT_OK;
    keep_permissions(file);
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
    free_paths(file);
    return status;
}

void leati_replace_abandon(leati_replacement *file) {
    if (!file->temporary) return;
    if (file->fd >= 0) close(file->fd);
    unlink(file->temporary);
    free_paths(file);
}

leat_status leat_file_replace(const char *path, const void *data, size_t bytes, leat_error *err) {
    leati_replacement file;
    LEATI_GIVEN(path, err);
    if (bytes > 0) LEATI_GIVEN(data, err);
    LEATI_TRY(leati_replace_begin(&file, path, err));
    leat_status status = leati_replace_write(&file, data, bytes, err);
    if (status == LEAT_OK) return leati_replace_commit(&file, err);
    leati_replace_abandon(&file);
    return status;
}

/* ---- Streams ---- */

leat_status leati_stream_open(int *out, const char *path, bool append, leat_error *err) {
    struct stat info;
    *out = -1;
    bool exists = stat(path, &info) == 0;
    if (exists && !S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode))
        return leati_fail(
            err, LEAT_EINVAL,
            "cannot write '%s': it is %s, expected a regular file, a FIFO or a character device", path,
            kind_of(info.st_mode));
    int flags = append ? O_APPEND : exists && !S_ISREG(info.st_mode) ? 0 : O_TRUNC;
    *out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    return *out >= 0 ? LEAT_OK : leati_fail_errno(err, LEAT_EIO, errno, "cannot open '%s' for writing", path);
}
