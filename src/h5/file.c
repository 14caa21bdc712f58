/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes files and objects, and turns HDF5's error stack into leat's errors.  Room: h5. */
#include "h5/private.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
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

static leat_status make_handle(leati_h5 **out, const char *path, leat_error *err) {
    *out = NULL;
    leati_h5 *file = leati_calloc(1, sizeof *file);
    if (!file) return leati_fail_memory(err, sizeof *file, "a file");
    file->file = H5I_INVALID_HID;
    file->fd = -1;
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

leat_status leati_h5_open(leati_h5 **out, const char *path, leat_error *err) {
    LEATI_TRY(make_handle(out, path, err));
    if (access(path, R_OK) != 0) {
        leat_status code = errno == ENOENT ? LEAT_ENOTFOUND : LEAT_EIO;
        return free_handle(out, leati_fail_errno(err, code, errno, "cannot open '%s'", path));
    }
    leati_h5_enter();
    leat_status status = LEAT_OK;
    (*out)->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if ((*out)->file < 0)
        status = leati_h5_fail(*out, LEAT_EFORMAT, err, "/", "not an HDF5 file, or damaged");
    leati_h5_leave();
    return status == LEAT_OK ? LEAT_OK : free_handle(out, status);
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

leat_status leati_h5_open_bytes(leati_h5 **out, const char *label, const void *data, size_t size,
                                leat_error *err) {
    LEATI_TRY(make_handle(out, label, err));
    (*out)->bytes = size > 0 ? data : (const unsigned char *)"";
    (*out)->size = size;
    return open_driver(out, LEAT_EFORMAT, "not an HDF5 file, or damaged", err);
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
    leati_h5_enter();
    if (H5Fclose((*file)->file) < 0)
        status = leati_h5_fail(*file, LEAT_EIO, err, "/", "cannot write the file to its end");
    leati_h5_leave();
    if ((*file)->write_error != 0) status = fail_write(*file, err);
    return free_handle(file, status);
}

/* Checks that each link on the path is a hard link: soft and external links can lead out of the file. */
static leat_status check_links(leati_h5 *file, const char *object, leat_error *err) {
    char path[1024];
    if (strlen(object) >= sizeof path)
        return leati_h5_fail(file, LEAT_EFORMAT, err, object, "the name is too long");
    for (const char *end = object; *end;) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        snprintf(path, sizeof path, "%.*s", (int)(end - object), object);
        if (path[0] == '\0' || strcmp(path, "/") == 0) break;
        H5L_info_t info;
        if (H5Lexists(file->file, path, H5P_DEFAULT) <= 0)
            return leati_h5_fail(file, LEAT_ENOTFOUND, err, object, "the object does not exist");
        if (H5Lget_info(file->file, path, &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD)
            return leati_h5_fail(file, LEAT_EFORMAT, err, object,
                                 "the path has a soft or external link, which is not supported");
        end += strspn(end, "/");
    }
    return LEAT_OK;
}

leat_status leati_h5_open_object(leati_h5 *file, const char *object, hid_t *out, leat_error *err) {
    LEATI_TRY(check_links(file, object, err));
    *out = H5Oopen(file->file, object, H5P_DEFAULT);
    return *out >= 0 ? LEAT_OK : leati_h5_fail(file, LEAT_EFORMAT, err, object, "cannot open the object");
}

bool leati_h5_has_object(leati_h5 *file, const char *object) {
    leati_h5_enter();
    hid_t id = H5I_INVALID_HID;
    bool found = leati_h5_open_object(file, object, &id, NULL) == LEAT_OK;
    if (found) H5Oclose(id);
    H5Eclear2(H5E_DEFAULT);
    leati_h5_leave();
    return found;
}

bool leati_h5_has_attribute(leati_h5 *file, const char *object, const char *name) {
    leati_h5_enter();
    bool found = H5Aexists_by_name(file->file, object, name, H5P_DEFAULT) > 0;
    H5Eclear2(H5E_DEFAULT);
    leati_h5_leave();
    return found;
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
