/* SPDX-License-Identifier: Apache-2.0 */
/* The HDF5 file driver for files that leat writes, to a descriptor or into memory.  HDF5's own drivers do not serve:
 * HDF5 1.10 cannot close a file whose last blocks could not be written (a full disk): H5Fclose fails, descriptor and
 * memory are lost, and HDF5's cleanup at exit crashes.  This driver therefore records the first error, drops what
 * cannot be written, and reports success; leati_h5_close returns the error once HDF5 has closed the file.  Room: h5. */
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

typedef struct driver {
    H5FD_t base; /* HDF5's own; first */
    leati_h5 *file;
    haddr_t allocated; /* the end of the addresses that HDF5 has allocated */
    haddr_t end;       /* the end of the bytes that were written, or that can be read */
} driver;

enum { largest_transfer = 1 << 30 };

/* ---- Where the bytes are ---- */

/* Makes the buffer `count` bytes long; added bytes are zero.  Returns 0, or ENOMEM. */
static int resize(leati_h5_buffer *buffer, size_t count) {
    if (count > buffer->capacity) {
        size_t capacity = count > buffer->capacity + buffer->capacity / 2 ? count : 2 * buffer->capacity;
        unsigned char *data = leati_realloc(buffer->data, capacity, 1);
        if (!data) return ENOMEM;
        buffer->data = data;
        buffer->capacity = capacity;
    }
    if (count > buffer->count) memset(buffer->data + buffer->count, 0, count - buffer->count);
    buffer->count = count;
    return 0;
}

static int store(leati_h5 *file, haddr_t address, const void *data, size_t bytes) {
    if (!file->buffer) return leati_write_all(file->fd, data, bytes, (int64_t)address);
    size_t end = (size_t)address + bytes;
    int number = end > file->buffer->count ? resize(file->buffer, end) : 0;
    if (number == 0 && bytes > 0) memcpy(file->buffer->data + address, data, bytes);
    return number;
}

static int set_length(leati_h5 *file, haddr_t length) {
    if (file->buffer) return resize(file->buffer, (size_t)length);
    leati_size_signal held;
    leati_size_signal_hold(&held);
    int number = ftruncate(file->fd, (off_t)length) == 0 ? 0 : errno;
    leati_size_signal_release(&held);
    return number;
}

/* Copies as many of the bytes at `address` as there are; returns their number. */
static size_t load_from_memory(const unsigned char *data, size_t size, haddr_t address, size_t bytes,
                               void *out) {
    if (address >= size) return 0;
    size_t present = size - (size_t)address < bytes ? size - (size_t)address : bytes;
    memcpy(out, data + address, present);
    return present;
}

static size_t load_from_descriptor(leati_h5 *file, haddr_t address, size_t bytes, void *out) {
    size_t present = 0;
    while (present < bytes) {
        size_t wanted = bytes - present < largest_transfer ? bytes - present : largest_transfer;
        ssize_t got = pread(file->fd, (char *)out + present, wanted, (off_t)(address + present));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && file->write_error == 0) file->write_error = errno;
        if (got <= 0) break;
        present += (size_t)got;
    }
    return present;
}

static size_t load(leati_h5 *file, haddr_t address, size_t bytes, void *out) {
    if (file->buffer) return load_from_memory(file->buffer->data, file->buffer->count, address, bytes, out);
    return load_from_descriptor(file, address, bytes, out);
}

/* ---- What HDF5 calls ---- */

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t limit) {
    (void)name, (void)flags, (void)limit;
    leati_h5 *const *file = H5Pget_driver_info(access);
    if (!file) return NULL;
    driver *self = leati_calloc(1, sizeof *self);
    if (!self) {
        (*file)->write_error = ENOMEM;
        return NULL;
    }
    self->file = *file;
    return &self->base;
}

static herr_t driver_close(H5FD_t *base) {
    leati_free((driver *)base);
    return 0;
}

/* The flags of HDF5's default driver, so that a written file has the same bytes as that driver would give. */
static herr_t driver_query(const H5FD_t *base, unsigned long *flags) {
    (void)base;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

static haddr_t driver_get_allocated(const H5FD_t *base, H5FD_mem_t type) {
    (void)type;
    return ((const driver *)base)->allocated;
}

static herr_t driver_set_allocated(H5FD_t *base, H5FD_mem_t type, haddr_t address) {
    (void)type;
    ((driver *)base)->allocated = address;
    return 0;
}

static haddr_t driver_get_end(const H5FD_t *base, H5FD_mem_t type) {
    (void)type;
    return ((const driver *)base)->end;
}

/* Bytes that were never written, or could not be written, read as zeros. */
static herr_t driver_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes,
                          void *data) {
    (void)type, (void)transfer;
    size_t present = load(((const driver *)base)->file, address, bytes, data);
    memset((char *)data + present, 0, bytes - present);
    return 0;
}

static herr_t driver_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes,
                           const void *data) {
    (void)type, (void)transfer;
    driver *self = (driver *)base;
    if (self->file->write_error == 0) self->file->write_error = store(self->file, address, data, bytes);
    if (address + bytes > self->end) self->end = address + bytes;
    return 0;
}

/* Makes the file as long as the addresses that HDF5 has allocated, even if nothing was written at their end. */
static herr_t driver_truncate(H5FD_t *base, hid_t transfer, hbool_t closing) {
    (void)transfer, (void)closing;
    driver *self = (driver *)base;
    if (self->allocated == self->end) return 0;
    if (self->file->write_error == 0) self->file->write_error = set_length(self->file, self->allocated);
    self->end = self->allocated;
    return 0;
}

static const H5FD_class_t driver_class = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = 511, /* one of those that HDF5 leaves to everyone, 256 to 511 */
#endif
    .name = "leat",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(leati_h5 *),
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = driver_get_allocated,
    .set_eoa = driver_set_allocated,
    .get_eof = driver_get_end,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t leati_h5_driver_open(leati_h5 *file) {
    hid_t class = H5FDregister(&driver_class), access = H5Pcreate(H5P_FILE_ACCESS), id = H5I_INVALID_HID;
    bool ready = class >= 0 && access >= 0 && H5Pset_driver(access, class, &file) >= 0;
    if (ready) id = H5Fcreate(file->path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (access >= 0) H5Pclose(access);
    file->driver = class;
    if (id < 0) leati_h5_driver_close(file);
    return id;
}

/* The class must outlive the file: while HDF5 closes a file, it reads the class after it has given up its reference. */
void leati_h5_driver_close(leati_h5 *file) {
    if (file->driver >= 0) H5FDunregister(file->driver);
    file->driver = H5I_INVALID_HID;
}
