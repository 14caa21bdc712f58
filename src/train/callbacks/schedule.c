/* SPDX-License-Identifier: Apache-2.0 */
/* The callback that sets the learning rate by a schedule before each step.  Room: train. */
#include "train/callbacks/schedule.h"

#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "nn/model/model.h"
#include "nn/optimizers/schedules/schedule.h"
#include "train/hooks/callback.h"

static leat_status batch_begin(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                               leat_error *err) {
    (void)batch, (void)logs;
    const leati_schedule *schedule = user;
    leat_model *model = leat_training_model(training);
    double rate = leati_schedule_rate(schedule, model->iterations);
    if (!isfinite(rate))
        return leati_fail(err, LEAT_EINVAL,
                          "%s: the learning rate of step %" PRId64 " is %g, expected a finite number",
                          leati_schedule_name(schedule), model->iterations, rate);
    return leati_prefix(leati_model_set_rate(model, rate, err), err, "%s", leati_schedule_name(schedule));
}

static leat_status epoch_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    (void)user, (void)epoch, (void)err;
    leat_logs_set(logs, "lr", leat_model_learning_rate(leat_training_model(training)));
    return LEAT_OK;
}

static void destroy(void *user) {
    leati_schedule *schedule = user;
    leati_schedule_destroy(&schedule);
}

leat_status leati_schedule_callback(leat_callback *out, size_t size, const char *name, const json_t *config,
                                    leat_error *err) {
    leati_schedule *schedule = NULL;
    LEATI_TRY(leati_callback_begin(out, size, err));
    LEATI_TRY(leati_schedule_create(&schedule, name, config, err));
    const leat_callback made = {.user = schedule,
                                .destroy = destroy,
                                .on_train_batch_begin = batch_begin,
                                .on_epoch_end = epoch_end};
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}
