/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of several processes that add up values in their memories, without the host: with CUDA by NCCL (decision
 * 0708).  A process has one device in a group.  Room: engine. */
#ifndef LEATI_ENGINE_DEVICE_GROUP_H
#define LEATI_ENGINE_DEVICE_GROUP_H

#include "engine/device.h"

typedef struct leati_group leati_group; /* of one device: at most one, until it is left */

/* By its name the processes of a group find each other.  One of them makes the name, and tells the others. */
typedef struct leati_group_name {
    char bytes[128];
} leati_group_name;

/* What a process of a group knows, and how it notices that another one is lost: `check` is asked again and again while
 * the process waits, and returns an error that says which one. */
typedef struct leati_group_options {
    leati_group_name name;
    int rank, size;
    leat_status (*check)(void *user, leat_error *err);
    void *user;
} leati_group_options;

typedef struct leati_group_class {
    /* Finds the library that adds up; *version is 0 with an error.  Errors: LEAT_ENOTSUP it is missing or too old. */
    leat_status (*find)(leati_device *device, int *version, leat_error *err);
    leat_status (*make_name)(leati_device *device, leati_group_name *out, leat_error *err);
    /* All processes make this call, and each waits for the others.  Errors: LEAT_EIO the library failed; that of
     * `check`. */
    leat_status (*join)(leati_device *device, const leati_group_options *options, leat_error *err);
    /* Adds work to the queue: replaces floats in the device's memory by their sums over the group.  All processes get
     * the same bytes, and make the same calls in the same order.  Not while recording.  While such work has not ended,
     * the device's `wait` fails if `check` does, or the library. */
    leat_status (*sum)(leati_device *device, float *values, size_t count, leat_error *err);
    /* Ends the sums that have not ended, whose values are then undefined: something has failed, and not all processes
     * will make their part.  Afterwards sums are no longer possible, but everything else is. */
    void (*give_up)(leati_device *device);
    /* Leaves the group; without a group nothing happens.  close does it, too. */
    void (*leave)(leati_device *device);
} leati_group_class;

#endif
