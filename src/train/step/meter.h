/* SPDX-License-Identifier: Apache-2.0 */
/* A meter computes the mean loss and the metrics of an epoch: batches are weighted by their samples, sums are in
 * double.  Room: train. */
#ifndef LEATI_TRAIN_STEP_METER_H
#define LEATI_TRAIN_STEP_METER_H

#include "checkpoint/state.h"
#include "leat/callback.h"
#include "train/step/trainer.h"

/* Several meters (training, validation) share the model's metrics; each meter has its own states of the metrics. */
typedef struct leati_meter {
    double loss;      /* sum over samples, like output_losses */
    double last_loss; /* of the batch added last */
    double output_losses[LEATI_PROGRAM_MAX_OUTPUTS];
    int64_t samples;
    double *states; /* owned: the states of all metrics in order; NULL without metrics */
    int64_t state_count;
} leati_meter;

/* Initializes a meter to zero for the metrics with which the model is compiled.  Errors: LEAT_ENOMEM. */
leat_status leati_meter_init(leati_meter *meter, const leat_model *model, leat_error *err);
/* Accepts a zeroed meter. */
void leati_meter_fini(leati_meter *meter);
void leati_meter_reset(leati_meter *meter);

/* Adds the loss and metrics of the step's last run, which had `size` samples.  Errors: LEAT_EINVAL a metric does
 * not accept a value, or the model has been compiled again with other metrics. */
leat_status leati_meter_add(leati_meter *meter, const leat_model *model, const leati_compiled_step *step,
                            int64_t size, leat_error *err);
/* leati_meter_add() in two functions, for batches that are computed in parts.  leati_meter_measure writes what one part
 * adds, as leati_meter_width doubles that are zero before; leati_meter_add_sums takes their sums over the parts.
 * Metrics that do not add up (leati_program.metric_is_whole) are not measured: whole[i] has the tensors of the whole
 * batch for metric i, or is NULL if the metric adds up. */
int64_t leati_meter_width(const leat_model *model);
leat_status leati_meter_measure(const leat_model *model, const leati_compiled_step *step, double *out,
                                leat_error *err);
leat_status leati_meter_add_sums(leati_meter *meter, const leat_model *model, const double *sums,
                                 const leati_metric_batch *const *whole, int64_t size, leat_error *err);
/* Sets the means so far in the logs, with Keras's names (model.metrics_names) and `prefix` in front of each name. */
void leati_meter_logs(const leati_meter *meter, const leat_model *model, const char *prefix, leat_logs *logs);

/* Save and load the sums.  Errors of loading: LEAT_EFORMAT the checkpoint has other metrics. */
leat_status leati_meter_save(const leati_meter *meter, leat_state *state, leat_error *err);
leat_status leati_meter_load(leati_meter *meter, const leat_state *state, leat_error *err);

/* Writes at most `most` of the names that leati_meter_logs uses, without prefix.  Returns the number of all names. */
int leati_meter_names(const leat_model *model, char (*names)[LEAT_LOG_NAME_BYTES], int most);

#endif
