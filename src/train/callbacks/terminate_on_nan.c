/* SPDX-License-Identifier: Apache-2.0 */
/* TerminateOnNaN: stops after a batch whose loss is not finite.  Room: train. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "train/hooks/callback.h"
#include "train/hooks/training.h"

static leat_status batch_end(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                             leat_error *err) {
    (void)user, (void)err;
    double loss = 0;
    if (!leat_logs_get(logs, "loss", &loss) || isfinite(loss)) return LEAT_OK;
    char reason[128];
    snprintf(reason, sizeof reason, "Batch %" PRId64 ": invalid loss, terminating training", batch);
    leati_training_log(training, LEAT_LOG_WARNING, "%s", reason);
    leat_training_stop(training, reason);
    return LEAT_OK;
}

leat_status leat_terminate_on_nan_create(leat_callback *out, size_t size, leat_error *err) {
    LEATI_GIVEN(out, err);
    const leat_callback made = {.on_train_batch_end = batch_end};
    LEATI_TRY(leati_callback_begin(out, size, err));
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}
