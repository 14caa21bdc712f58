/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a step on the host and on a device, for the device "auto".  Room: train. */
#ifndef LEATI_TRAIN_STEP_CHOOSE_PLACE_H
#define LEATI_TRAIN_STEP_CHOOSE_PLACE_H

#include "train/step/trainer.h"

/* Runs `step` on made-up data until its time is known, and gives the median in ns.  The model does not change.  A step
 * that takes longer than `limit_ns` (0: no limit) is measured once. */
leat_status leati_measure_step(leati_trainer *trainer, leat_model *model, const leati_compiled_step *step,
                               int64_t limit_ns, int64_t *ns, leat_error *err);

/* Logs what was chosen and why: "training steps of batch 64 take 98 us on cuda:0 and 587 us on the CPU". */
void leati_log_place(const leat_model *model, const leati_program_spec *spec, const char *device,
                     int64_t device_ns, int64_t host_ns);

/* The same of whole iterations, with the wait for the batch. */
void leati_log_iterations(const leat_model *model, const leati_program_spec *spec, const char *device,
                          double device_ns, double host_ns);

#endif
