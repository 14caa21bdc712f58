/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes files, and turns the reader's problems and HDF5's error stack into leat's errors.  Room: h5. */
#include "h5/private.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/fork.h"
#include "base/memory.h"

/* Guards HDF5, whose state belongs to the process: two threads must not be inside a build without thread safety. */
static pthread_mutex_t hdf5_lock = PTHREAD_MUTEX_INITIALIZER;

void leati_h5_enter(void) {
    leati_fork_hold();
    pthread_mutex_lock(&hdf5_lock);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void leati_h5_leave(void) {
    pthread_mutex_unlock(&hdf5_lock);
    leati_fork_release();
}

static herr_t keep_message(unsigned depth, const H5E_error2_t *entry, void *user) {
    (void)depth;
    char *reason = user;
    if (!reason[0] && entry->desc) snprintf(reason, 160, ": %s", entry->desc);
    return 0;
}

leat_status leati_h5_fail(leati_h5 *file, leat_status code, leat_error *err, const char *object,
                          const char *message) {
    char reason[160] = "";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_message, reason);
    H5Eclear2(H5E_DEFAULT);
    return leati_fail_origin(err, code, LEAT_ORIGIN_HDF5, -1, "'%s': '%s': %s%s", file->path, object, message,
                             reason);
}

leat_status leati_h5_report(const leati_h5 *file, leati_h5_reader *r, leat_error *err, const char *object) {
    leati_h5_reader_fini(r);
    switch (r->status) {
    case LEAT_OK: return LEAT_OK;
    case LEAT_ENOMEM: return leati_fail_memory(err, 0, "the structures of an HDF5 file");
    case LEAT_EFORMAT: break;
    case LEAT_ENOTSUP: return leati_fail(err, LEAT_EFORMAT, "'%s': '%s': %s", file->path, object, r->problem);
    default: return leati_fail(err, r->status, "'%s': '%s': %s", file->path, object, r->problem);
    }
    if (r->at == LEATI_H5_UNDEFINED)
        return leati_fail(err, LEAT_EFORMAT, "'%s': '%s': not an HDF5 file, or damaged: %s", file->path,
                          object, r->problem);
    return leati_fail(err, LEAT_EFORMAT, "'%s': '%s': not an HDF5 file, or damaged at byte %llu: %s",
                      file->path, object, (unsigned long long)r->at, r->problem);
}

static leat_status make_handle(leati_h5 **out, const char *path, leat_error *err) {
    *out = NULL;
    leati_h5 *file = leati_calloc(1, sizeof *file);
    if (!file) return leati_fail_memory(err, sizeof *file, "a file");
    file->file = H5I_INVALID_HID;
    file->fd = -1;
    file->image =
        (leati_h5_image){.fd = -1, .root = LEATI_H5_UNDEFINED, .offset_bytes = 8, .length_bytes = 8};
    file->path = leati_strdup(path);
    if (!file->path) {
        leati_free(file);
        return leati_fail_memory(err, strlen(path), "a file's name");
    }
    *out = file;
    return LEAT_OK;
}

static leat_status free_handle(leati_h5 **file, leat_status status) {
    leati_free((*file)->path);
    leati_free(*file);
    *file = NULL;
    return status;
}

/* Reads the superblock.  Closes the file on failure. */
static leat_status open_image(leati_h5 **out, leat_error *err) {
    leati_h5_reader r;
    leati_h5_reader_init(&r, &(*out)->image);
    leati_h5_read_superblock(&r, &(*out)->image);
    leat_status status = leati_h5_report(*out, &r, err, "/");
    if (status == LEAT_OK) return LEAT_OK;
    if ((*out)->image.fd >= 0) close((*out)->image.fd);
    return free_handle(out, status);
}

/* Opens a file for reading; does not wait for a FIFO's writer. */
static leat_status open_descriptor(leati_h5_image *image, const char *path, leat_error *err) {
    struct stat about;
    image->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (image->fd < 0) {
        leat_status code = errno == ENOENT ? LEAT_ENOTFOUND : LEAT_EIO;
        return leati_fail_errno(err, code, errno, "cannot open '%s'", path);
    }
    leat_status status = LEAT_OK;
    if (fstat(image->fd, &about) != 0)
        status = leati_fail_errno(err, LEAT_EIO, errno, "cannot read the attributes of '%s'", path);
    else if (!S_ISREG(about.st_mode))
        status = leati_fail(err, LEAT_EINVAL, "'%s' is not a regular file", path);
    else
        image->size = (uint64_t)about.st_size;
    if (status != LEAT_OK) close(image->fd);
    return status;
}

leat_status leati_h5_open(leati_h5 **out, const char *path, leat_error *err) {
    LEATI_TRY(make_handle(out, path, err));
    leat_status status = open_descriptor(&(*out)->image, path, err);
    return status == LEAT_OK ? open_image(out, err) : free_handle(out, status);
}

leat_status leati_h5_open_bytes(leati_h5 **out, const char *label, const void *data, size_t size,
                                leat_error *err) {
    LEATI_TRY(make_handle(out, label, err));
    (*out)->image.bytes = size > 0 ? data : (const unsigned char *)"";
    (*out)->image.size = size;
    return open_image(out, err);
}

/* Opens (*out)->file through leat's driver, where `out` says where the bytes are. */
static leat_status open_driver(leati_h5 **out, leat_status code, const char *message, leat_error *err) {
    leati_h5_enter();
    leat_status status = LEAT_OK;
    (*out)->file = leati_h5_driver_open(*out);
    if ((*out)->file < 0 && (*out)->write_error == ENOMEM)
        status = leati_fail_memory(err, sizeof(H5FD_t), "a file's driver");
    else if ((*out)->file < 0)
        status = leati_h5_fail(*out, code, err, "/", message);
    H5Eclear2(H5E_DEFAULT);
    leati_h5_leave();
    return status == LEAT_OK ? LEAT_OK : free_handle(out, status);
}

leat_status leati_h5_create(leati_h5 **out, const char *label, int fd, leat_error *err) {
    LEATI_TRY(make_handle(out, label, err));
    (*out)->fd = fd;
    return open_driver(out, LEAT_EIO, "cannot create the file", err);
}

leat_status leati_h5_create_in_memory(leati_h5 **out, const char *label, leati_h5_buffer *buffer,
                                      leat_error *err) {
    LEATI_TRY(make_handle(out, label, err));
    (*out)->buffer = buffer;
    return open_driver(out, LEAT_EIO, "cannot create the file", err);
}

/* The error of the first write that failed. */
static leat_status fail_write(const leati_h5 *file, leat_error *err) {
    if (file->buffer) return leati_fail_memory(err, file->buffer->count, "a file in memory");
    return leati_fail_errno(err, LEAT_EIO, file->write_error, "cannot write '%s'", file->path);
}

leat_status leati_h5_close(leati_h5 **file, leat_error *err) {
    if (!*file) return LEAT_OK;
    leat_status status = LEAT_OK;
    if ((*file)->file < 0) { /* a file that was read */
        if ((*file)->image.fd >= 0) close((*file)->image.fd);
        return free_handle(file, LEAT_OK);
    }
    leati_h5_enter();
    if (H5Fclose((*file)->file) < 0)
        status = leati_h5_fail(*file, LEAT_EIO, err, "/", "cannot write the file to its end");
    leati_h5_driver_close(*file);
    leati_h5_leave();
    if ((*file)->write_error != 0) status = fail_write(*file, err);
    return free_handle(file, status);
}

leat_status leati_h5_write_group(leati_h5 *file, const char *object, leat_error *err) {
    leati_h5_enter();
    leat_status status = LEAT_OK;
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    hid_t group = H5Gcreate2(file->file, object, links, H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0)
        status = leati_h5_fail(file, LEAT_EIO, err, object, "cannot create the group");
    else
        H5Gclose(group);
    H5Pclose(links);
    leati_h5_leave();
    return status;
}
