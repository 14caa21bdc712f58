/* SPDX-License-Identifier: Apache-2.0 */
/* Reads parts of a file.  Room: data. */
#include "data/archive/window.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

static leat_status check_file(leati_window *window, leat_error *err) {
    struct stat info;
    if (fstat(window->fd, &info) != 0)
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot read '%s'", window->label);
    if (!S_ISREG(info.st_mode))
        return leati_fail(err, LEAT_EINVAL, "expected a regular file, '%s' is something else", window->label);
    window->size = (uint64_t)info.st_size;
    window->buffer = leati_calloc(LEATI_WINDOW_BYTES, 1);
    return window->buffer ? LEAT_OK : leati_fail_memory(err, LEATI_WINDOW_BYTES, "a part of a file");
}

leat_status leati_window_open(leati_window *out, const char *path, leat_error *err) {
    const int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: for a FIFO without a writer */
    if (fd < 0)
        return leati_fail_errno(err, errno == ENOENT ? LEAT_ENOTFOUND : LEAT_EIO, errno, "cannot open '%s'",
                                path);
    *out = (leati_window){.label = path, .fd = fd};
    leat_status status = check_file(out, err);
    if (status != LEAT_OK) leati_window_close(out);
    return status;
}

leati_window leati_window_of(const void *data, size_t bytes, const char *label) {
    return (leati_window){.label = label, .fd = -1, .memory = data, .size = bytes};
}

void leati_window_close(leati_window *window) {
    if (window->fd >= 0) close(window->fd);
    leati_free(window->buffer);
    *window = (leati_window){.fd = -1};
}

leat_status leati_window_get(leati_window *window, uint64_t offset, size_t bytes, const unsigned char **out,
                             leat_error *err) {
    *out = NULL;
    if (offset > window->size || bytes > window->size - offset || bytes > LEATI_WINDOW_BYTES) return LEAT_OK;
    if (window->fd < 0) {
        *out = window->memory + offset;
        return LEAT_OK;
    }
    if (offset < window->begin || offset + bytes > window->begin + window->count) {
        window->begin = offset;
        window->count = 0;
        while (window->count < bytes) {
            const ssize_t count = pread(window->fd, window->buffer + window->count,
                                        LEATI_WINDOW_BYTES - window->count, (off_t)(offset + window->count));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return leati_fail_errno(err, LEAT_EIO, errno, "cannot read '%s'", window->label);
            if (count == 0)
                return leati_fail(err, LEAT_EIO, "'%s' was shortened while it was read", window->label);
            window->count += (size_t)count;
        }
    }
    *out = window->buffer + (offset - window->begin);
    return LEAT_OK;
}
