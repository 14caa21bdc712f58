/* SPDX-License-Identifier: Apache-2.0 */
/* A device: a processor with memory of its own, which the host cannot read or write.  A leati_device is one queue of
 * work on one device: what is given to the queue happens later, in the order in which it was given.  A plan has a
 * device or none.  With a device, all its arguments, its arena and its scratch are in the device's memory.
 * Externally synchronised.  Backends make devices; docs/decisions/0400-a-plan-has-a-place.md has the reasons. */
#ifndef LEATI_ENGINE_DEVICE_H
#define LEATI_ENGINE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

struct leati_backend;
typedef struct leati_device leati_device;
typedef struct leati_recording leati_recording; /* work that was recorded, and can be repeated as a whole */

/* Moments of a run that are noted to measure it: `beside` are those of copy_beside. */
typedef enum leati_mark {
    LEATI_MARK_BEGIN,        /* all earlier work has ended */
    LEATI_MARK_COPIED,       /* the inputs are there */
    LEATI_MARK_END,          /* the results are back */
    LEATI_MARK_BESIDE_BEGIN, /* the copies of the next inputs begin */
    LEATI_MARK_BESIDE_END,
    LEATI_MARK_COUNT
} leati_mark;

/* What the device does.  Every function that returns a status may also report the failure of earlier work, because
 * the queue runs behind the host: LEAT_EIO a kernel or the driver failed.  Errors of allocations: LEAT_ENOMEM. */
typedef struct leati_device_class {
    /* Allocates zeroed memory of the device, aligned to 256 bytes. */
    leat_status (*allocate)(leati_device *device, size_t bytes, void **out, leat_error *err);
    /* Frees memory after the work that was given before has ended.  NULL is allowed. */
    void (*release)(leati_device *device, void *memory);
    /* Allocates zeroed memory of the host that the device reads and writes directly (pinned memory).  The addresses on
     * the host and on the device are equal. */
    leat_status (*allocate_host)(leati_device *device, size_t bytes, void **out, leat_error *err);
    void (*release_host)(leati_device *device, void *memory);

    /* These add work to the queue.  Memory of the host that they use must stay until the work has ended.  copy_in and
     * copy_out copy from the host to the device and back, fill writes `bytes` equal bytes, call runs a function on
     * the host.  The function may not use the device. */
    leat_status (*copy_in)(leati_device *device, void *to, const void *from, size_t bytes, leat_error *err);
    leat_status (*copy_out)(leati_device *device, void *to, const void *from, size_t bytes, leat_error *err);
    leat_status (*copy)(leati_device *device, void *to, const void *from, size_t bytes, leat_error *err);
    leat_status (*fill)(leati_device *device, void *to, int byte, size_t bytes, leat_error *err);
    leat_status (*call)(leati_device *device, void (*function)(void *user), void *user, leat_error *err);
    /* Adds a time stamp, of the moment at which the work before it has ended. */
    leat_status (*stamp)(leati_device *device, int index, leat_error *err);

    /* Like copy_in, but beside the queue, at once; join makes the later work of the queue wait for these copies. */
    leat_status (*copy_beside)(leati_device *device, void *to, const void *from, size_t bytes,
                               leat_error *err);
    leat_status (*join)(leati_device *device, leat_error *err);
    /* Returns true if copies beside the queue have not ended, so that join would make the queue wait. */
    bool (*is_copying)(leati_device *device);
    /* Lets the device read the host's memory directly, which makes copies from it faster; unpin must follow before the
     * memory is freed.  A failure does no harm: copies are slower. */
    leat_status (*pin)(leati_device *device, void *memory, size_t bytes, leat_error *err);
    void (*unpin)(leati_device *device, void *memory);

    /* Waits until all work has ended.  is_idle says whether it has ended. */
    leat_status (*wait)(leati_device *device, leat_error *err);
    bool (*is_idle)(leati_device *device);
    /* Reads the nanoseconds between time stamps 0 and 1, 1 and 2, and so on: count - 1 numbers.  Waits. */
    leat_status (*read_stamps)(leati_device *device, int count, int64_t *ns, leat_error *err);

    /* Adds a mark to the queue, or for marks of BESIDE to the copies beside it; not while recording.  `between` gives
     * the ns from one mark to another, or -1 if one of them was not set or has not happened yet; it does not wait. */
    leat_status (*mark)(leati_device *device, leati_mark mark, leat_error *err);
    leat_status (*between)(leati_device *device, leati_mark from, leati_mark to, int64_t *ns,
                           leat_error *err);

    /* From `record` to `end_record`, what is given to the queue is recorded, and does not run.  If end_record fails, or
     * *out is NULL after an earlier failure, nothing is recorded any more. */
    leat_status (*record)(leati_device *device, leat_error *err);
    leat_status (*end_record)(leati_device *device, leati_recording **out, leat_error *err);
    leat_status (*replay)(leati_device *device, leati_recording *recording, leat_error *err);
    void (*destroy_recording)(leati_device *device, leati_recording **recording);

    void (*close)(leati_device *device);
} leati_device_class;

struct leati_device {
    const leati_device_class *class;
    const struct leati_backend *const *backends; /* NULL-terminated, best first; they know no other device */
    char name[16];                               /* "cuda:0" */
    char description[96];                        /* "NVIDIA H100 80GB HBM3, driver 13.0, cuDNN 9.13" */
    unsigned char id[16];                        /* no other processor has it */
    const struct leati_group_class *groups;      /* engine/device_group.h; NULL: it adds up alone */
    bool has_tf32; /* the device can multiply numbers of f32 that are rounded to 10 bits of the mantissa */
    bool tf32;     /* products of f32 are computed so; set before plans are created, only with has_tf32 */
};

/* Opens the device with a name: "cuda" or "cuda:<number>".  The GPUs are dealt out to the processes of a host: without
 * a number, process `place` of the host, from 0, gets GPU `place` modulo the number of GPUs.  src/leat.c defines the
 * function, like the table of backends.
 * Errors: LEAT_EINVAL the name is not known; LEAT_ENOTSUP this build or this machine does not have the device; the
 * message says what is missing. */
leat_status leati_device_open(const char *name, int place, leati_device **out, leat_error *err);

/* Returns the bytes of a block that is followed by another block at an aligned address. */
#define LEATI_DEVICE_ALIGNMENT 256
static inline size_t leati_device_align(size_t bytes) {
    return (bytes + LEATI_DEVICE_ALIGNMENT - 1) / LEATI_DEVICE_ALIGNMENT * LEATI_DEVICE_ALIGNMENT;
}

static inline void leati_device_close(leati_device **device) {
    if (*device) (*device)->class->close(*device);
    *device = NULL;
}

#endif
