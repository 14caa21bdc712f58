/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files, files replaced atomically, and files written bit by bit.  Layer: base. */
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
    struct stat about;
    if (fstat(fd, &about) != 0) return leati_fail_errno(err, LEAT_EIO, errno, "cannot look at '%s'", path);
    if (!S_ISREG(about.st_mode))
        return leati_fail(err, LEAT_EINVAL, "'%s' is %s, expected a regular file", path,
                          kind_of(about.st_mode));
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

/* ---- Writing ---- */

int leati_write_all(int fd, const void *data, size_t bytes, int64_t offset) {
    const char *next = data;
    int number = 0;
    leati_size_signal held;
    leati_size_signal_hold(&held);
    while (bytes > 0 && number == 0) {
        ssize_t written = offset < 0 ? write(fd, next, bytes) : pwrite(fd, next, bytes, offset);
        if (written < 0) {
            number = errno == EINTR ? 0 : errno;
            continue;
        }
        next += written;
        bytes -= (size_t)written;
        if (offset >= 0) offset += written;
    }
    leati_size_signal_release(&held);
    return number;
}

/* ---- What lies at a path ---- */

/* The path that the link at `path` names, for the heap: its text, which starts in the link's folder unless it is absolute.
 * NULL with errno. */
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

/* Replaces *path (on the heap) by what it leads to, until that is no link; the last name need not exist. */
static leat_status follow_links(char **path, leat_error *err) {
    enum { most_links = 40 }; /* as many as Linux follows */
    struct stat about;
    for (int links = 0; lstat(*path, &about) == 0 && S_ISLNK(about.st_mode); ++links) {
        errno = ELOOP;
        char *next = links < most_links ? next_path(*path) : NULL;
        if (!next) return leati_fail_errno(err, LEAT_EIO, errno, "cannot follow the link '%s'", *path);
        leati_free(*path);
        *path = next;
    }
    return LEAT_OK;
}

static leat_status refuse(const leati_replacement *out, const char *path, mode_t mode, leat_error *err) {
    static const char rule[] =
        "only regular files are replaced; give the path of a regular file or of a new one";
    if (strcmp(out->path, path) == 0)
        return leati_fail(err, LEAT_EINVAL, "cannot write '%s': it is %s; %s", path, kind_of(mode), rule);
    return leati_fail(err, LEAT_EINVAL, "cannot write '%s': it leads to '%s', which is %s; %s", path,
                      out->path, kind_of(mode), rule);
}

/* Sets what is known of the file at `path`; out->replaces stays false where there is none. */
static leat_status look_at(leati_replacement *out, const char *path, leat_error *err) {
    struct stat about, target;
    if (stat(path, &about) != 0) {
        if (errno == ENOENT) return LEAT_OK;
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot look at '%s'", path);
    }
    if (!S_ISREG(about.st_mode)) return refuse(out, path, about.st_mode, err);
    /* A link of /proc leads to an open file, whatever its text says. */
    if (stat(out->path, &target) != 0 || target.st_dev != about.st_dev || target.st_ino != about.st_ino)
        return leati_fail(err, LEAT_EINVAL,
                          "cannot write '%s': it leads to a file that is not at '%s', so that it cannot be "
                          "replaced by name; give the file's path",
                          path, out->path);
    if (faccessat(AT_FDCWD, out->path, W_OK, AT_EACCESS) != 0)
        return leati_fail_errno(err, LEAT_EIO, errno,
                                "cannot write '%s': this user may not write the file; "
                                "change its permissions or give another path",
                                path);
    out->replaces = true;
    out->mode = about.st_mode & 0777;
    out->owner = about.st_uid;
    out->group = about.st_gid;
    return LEAT_OK;
}

/* ---- Replacing ---- */

static leat_status fail_to_create(const leati_replacement *file, int number, leat_error *err) {
    bool refused = number == EACCES || number == EPERM || number == EROFS;
    if (!refused || !file->replaces)
        return leati_fail_errno(err, LEAT_EIO, number, "cannot write '%s'", file->path);
    return leati_fail_errno(err, LEAT_EIO, number,
                            "cannot write '%s': it may be written, but no file may be created beside it, "
                            "from where the new one is "
                            "renamed; make its folder writable or give a path in another folder",
                            file->path);
}

/* Bytes of the path that the temporary name begins with: all, unless the name would be too long with what is added. */
static size_t kept_bytes(const char *path, size_t added) {
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - path) : 0, name = strlen(path) - folder;
    return folder + (name + added > NAME_MAX ? NAME_MAX - added : name);
}

/* Opens a new file beside the target; its name holds the process, and a number where that is taken.  What replaces a file is
 * private until it has that file's permissions.  It can be read, since HDF5 reads what it has written. */
static leat_status open_beside(leati_replacement *file, leat_error *err) {
    enum { most_added = 40 };
    size_t bytes = strlen(file->path) + most_added;
    int kept = (int)kept_bytes(file->path, most_added);
    file->temporary = leati_calloc(bytes, 1);
    if (!file->temporary) return leati_fail_memory(err, bytes, "a file name");
    for (int attempt = 0; attempt < 100; ++attempt) {
        snprintf(file->temporary, bytes, "%.*s.%ld-%d.tmp", kept, file->path, (long)getpid(), attempt);
        file->fd = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, file->replaces ? 0600 : 0666);
        if (file->fd >= 0) return LEAT_OK;
        if (errno != EEXIST) break;
    }
    return fail_to_create(file, errno, err);
}

static void forget(leati_replacement *file) {
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
    if (status == LEAT_OK) status = look_at(out, path, err);
    if (status == LEAT_OK) status = open_beside(out, err);
    if (status != LEAT_OK) forget(out);
    return status;
}

leat_status leati_replace_write(leati_replacement *file, const void *data, size_t bytes, leat_error *err) {
    int number = leati_write_all(file->fd, data, bytes, -1);
    if (number == 0) return LEAT_OK;
    return leati_fail_errno(err, LEAT_EIO, number, "cannot write '%s'", file->path);
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

/* A file system without permissions refuses to set them; the file is then the process's own, and private if that is kept. */
static void keep_permissions(const leati_replacement *file) {
    struct stat now;
    mode_t mode = file->mode;
    if (!file->replaces || fstat(file->fd, &now) != 0) return;
    if (now.st_gid != file->group && fchown(file->fd, (uid_t)-1, file->group) != 0)
        mode = (mode & ~(mode_t)S_IRWXG) | (mode & S_IRWXO) << 3;
    if (now.st_uid != file->owner && fchown(file->fd, file->owner, (gid_t)-1) != 0)
        mode |= S_IRUSR | S_IWUSR; /* the writer owns the file now */
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
    forget(file);
    return status;
}

void leati_replace_abandon(leati_replacement *file) {
    if (!file->temporary) return;
    if (file->fd >= 0) close(file->fd);
    unlink(file->temporary);
    forget(file);
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
    struct stat about;
    *out = -1;
    bool there = stat(path, &about) == 0;
    if (there && !S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode) && !S_ISCHR(about.st_mode))
        return leati_fail(
            err, LEAT_EINVAL,
            "cannot write '%s': it is %s, expected a regular file, a FIFO or a character device", path,
            kind_of(about.st_mode));
    int flags = append ? O_APPEND : there && !S_ISREG(about.st_mode) ? 0 : O_TRUNC;
    *out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    return *out >= 0 ? LEAT_OK : leati_fail_errno(err, LEAT_EIO, errno, "cannot open '%s' to write", path);
}
