/* SPDX-License-Identifier: Apache-2.0 */
/* The driver through which HDF5 writes a new file: into a descriptor, and without a failure that HDF5 could see.
 *
 * HDF5 1.10 cannot close a file whose last blocks it could not write (a full disk): H5Fclose fails, descriptor and memory
 * are lost, and HDF5's own cleaning up, when the program exits, crashes.  So this driver notes the first error, drops
 * what cannot be written, and says that all is well; leati_h5_close returns the error once HDF5 has closed the file.  Room: h5. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/memory.h"
#include "base/os/signals.h"
#include "h5/private.h"
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

typedef struct sink {
    H5FD_t base; /* HDF5's own; first */
    leati_h5 *file;
    haddr_t allocated, end; /* of the file's addresses; of what was written */
} sink;

enum { largest_transfer = 1 << 30 };

static H5FD_t *sink_open(const char *name, unsigned flags, hid_t access, haddr_t limit) {
    (void)name, (void)flags, (void)limit;
    leati_h5 *const *file = H5Pget_driver_info(access);
    if (!file) return NULL;
    sink *self = leati_calloc(1, sizeof *self);
    if (!self) {
        (*file)->write_error = ENOMEM;
        return NULL;
    }
    self->file = *file;
    return &self->base;
}

static herr_t sink_close(H5FD_t *base) {
    leati_free((sink *)base);
    return 0;
}

/* The same as of HDF5's usual driver, so that the files have the same bytes. */
static herr_t sink_query(const H5FD_t *base, unsigned long *flags) {
    (void)base;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

static haddr_t sink_get_allocated(const H5FD_t *base, H5FD_mem_t type) {
    (void)type;
    return ((const sink *)base)->allocated;
}

static herr_t sink_set_allocated(H5FD_t *base, H5FD_mem_t type, haddr_t address) {
    (void)type;
    ((sink *)base)->allocated = address;
    return 0;
}

static haddr_t sink_get_end(const H5FD_t *base, H5FD_mem_t type) {
    (void)type;
    return ((const sink *)base)->end;
}

/* What was never written, or could not be, reads as zeros. */
static herr_t sink_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes,
                        void *data) {
    (void)type, (void)transfer;
    const sink *self = (const sink *)base;
    char *next = data;
    while (bytes > 0) {
        ssize_t got =
            pread(self->file->fd, next, bytes < largest_transfer ? bytes : largest_transfer, (off_t)address);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && self->file->write_error == 0) self->file->write_error = errno;
        if (got <= 0) break;
        next += got;
        address += (haddr_t)got;
        bytes -= (size_t)got;
    }
    memset(next, 0, bytes);
    return 0;
}

static herr_t sink_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes,
                         const void *data) {
    (void)type, (void)transfer;
    sink *self = (sink *)base;
    if (self->file->write_error == 0)
        self->file->write_error = leati_write_all(self->file->fd, data, bytes, (int64_t)address);
    if (address + bytes > self->end) self->end = address + bytes;
    return 0;
}

/* The file ends where HDF5's addresses end, also where nothing was written there. */
static herr_t sink_truncate(H5FD_t *base, hid_t transfer, hbool_t closing) {
    (void)transfer, (void)closing;
    sink *self = (sink *)base;
    leati_size_signal held;
    if (self->allocated == self->end) return 0;
    leati_size_signal_hold(&held);
    bool failed = self->file->write_error == 0 && ftruncate(self->file->fd, (off_t)self->allocated) != 0;
    if (failed) self->file->write_error = errno;
    leati_size_signal_release(&held);
    self->end = self->allocated;
    return 0;
}

static const H5FD_class_t sink_class = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = 511, /* of those that HDF5 leaves to everyone, 256 to 511 */
#endif
    .name = "leat_sink",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(leati_h5 *),
    .open = sink_open,
    .close = sink_close,
    .query = sink_query,
    .get_eoa = sink_get_allocated,
    .set_eoa = sink_set_allocated,
    .get_eof = sink_get_end,
    .read = sink_read,
    .write = sink_write,
    .truncate = sink_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t leati_h5_sink_create(leati_h5 *file) {
    hid_t driver = H5FDregister(&sink_class), access = H5Pcreate(H5P_FILE_ACCESS), id = H5I_INVALID_HID;
    if (driver >= 0 && access >= 0 && H5Pset_driver(access, driver, &file) >= 0)
        id = H5Fcreate(file->path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (access >= 0) H5Pclose(access);
    if (driver >= 0) H5FDunregister(driver); /* the open file keeps it */
    return id;
}
