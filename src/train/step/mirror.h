/* SPDX-License-Identifier: Apache-2.0 */
/* The copy of a model's slabs on a device.  Steps read and write the copy; the host's slabs get the new values when
 * somebody reads them (leati_weights_slab).  Room: train. */
#ifndef LEATI_TRAIN_STEP_MIRROR_H
#define LEATI_TRAIN_STEP_MIRROR_H

#include "engine/device.h"
#include "nn/network/network.h"

typedef struct leati_device_slabs leati_device_slabs;

leat_status leati_device_slabs_create(leati_device_slabs **out, leati_device *device, leat_error *err);
/* Copies what is newer on the device to the host, unless `model` is NULL, and frees the copy. */
void leati_device_slabs_destroy(leati_device_slabs **slabs, leat_model *model);

/* Allocates what is missing, and copies to the device what is newer on the host.  *moved is true if a slab has a new
 * address, so that older plans are invalid.  Errors: LEAT_ENOMEM; LEAT_EIO the device failed, now or since the last
 * call. */
leat_status leati_device_slabs_update(leati_device_slabs *slabs, leat_model *model, bool *moved,
                                      leat_error *err);
/* Returns the addresses on the device; those of the scalars are the host's (engine/plan/plan.h). */
void leati_device_slabs_addresses(const leati_device_slabs *slabs, void *out[LEATI_SLAB_COUNT]);

/* Must be called after a run of a step: notes which slabs the step has written.  If the caller of the library has a
 * view of the weights, copies them to the host. */
void leati_device_slabs_ran(leati_device_slabs *slabs, const leat_model *model, bool trained);
/* Must be called after something else has written a slab on the device. */
void leati_device_slabs_wrote(leati_device_slabs *slabs, const leat_model *model, leati_slab slab);
/* Must be called after a step that ran on the host beside a device: the device's copy is then older. */
void leati_weights_ran(const leati_weights *weights, bool trained);

#endif
