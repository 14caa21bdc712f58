/* SPDX-License-Identifier: Apache-2.0 */
/* Loss and metrics over an epoch, exactly: each batch counts by its samples, sums are kept in double. */
#ifndef LEATI_TRAIN_STEP_METER_H
#define LEATI_TRAIN_STEP_METER_H

#include "leat/callback.h"
#include "train/step/trainer.h"

/* Several meters (training, validation) share the model's metrics; each has their states. */
typedef struct leati_meter {
    double loss; /* sums over samples */
    double output_losses[LEATI_PROGRAM_MAX_OUTPUTS];
    int64_t samples;
    double *states; /* owned: of the metrics, one after another; NULL without metrics */
    int64_t state_count;
} leati_meter;

/* At zero, for the model's compilation.  Errors: LEAT_ENOMEM. */
leat_status leati_meter_init(leati_meter *meter, const leat_model *model, leat_error *err);
/* Zeroed is fine. */
void leati_meter_fini(leati_meter *meter);
void leati_meter_reset(leati_meter *meter);

/* Adds what the step's last run left.  Errors: LEAT_EINVAL a value that a metric cannot count. */
leat_status leati_meter_add(leati_meter *meter, const leat_model *model, const leati_compiled_step *step,
                            int64_t size, leat_error *err);
/* The means so far, named as Keras names them (model.metrics_names), each with `prefix` in front. */
void leati_meter_logs(const leati_meter *meter, const leat_model *model, const char *prefix, leat_logs *logs);

/* The names that leati_meter_logs gives without prefix: writes at most `most`, returns how many there are. */
int leati_meter_names(const leat_model *model, char (*names)[LEAT_LOG_NAME_BYTES], int most);

#endif
