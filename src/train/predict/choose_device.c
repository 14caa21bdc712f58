/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses by measuring where a predictor with the device "auto" computes.  Room: train. */
#include <inttypes.h>

#include "base/error.h"
#include "base/log.h"
#include "base/os/clock.h"
#include "train/predict/predictor.h"
#include "train/step/snapshot.h"

enum { most_runs = 21, least_runs = 5, enough_ns = 100000000, hopeless = 10 };

/* Gives the median time of a prediction of zeros.  The first two runs touch new memory, and on a device the second one
 * is recorded.  One run over the limit is enough (0: no limit). */
static leat_status measure(leat_predictor *p, int64_t limit_ns, int64_t *ns, leat_error *err) {
    int64_t times[most_runs], sum = 0;
    int count = 0;
    for (int run = -2; run < most_runs && (count < least_runs || sum < enough_ns); ++run) {
        int64_t start = leati_now_ns();
        LEATI_TRY(leat_predictor_run(p, NULL, NULL, err));
        *ns = leati_now_ns() - start;
        if (run == -2) continue;
        if (limit_ns > 0 && *ns > limit_ns) return LEAT_OK;
        if (run < 0) continue;
        times[count++] = *ns;
        sum += *ns;
    }
    *ns = leati_step_median(times, count);
    return LEAT_OK;
}

/* Measures both and keeps the faster one in *device; the other one is destroyed. */
static leat_status keep_faster(leat_predictor **device, leat_predictor **host, leat_error *err) {
    int64_t device_ns = 0, host_ns = 0;
    LEATI_TRY(measure(*device, 0, &device_ns, err));
    LEATI_TRY(measure(*host, hopeless * device_ns, &host_ns, err));
    bool on_host = host_ns <= device_ns;
    leat_predictor_reset(*device);
    leat_predictor_reset(*host);
    leati_log(LEAT_LOG_INFO,
              "leat: '%s': a predictor of batch %" PRId64
              " runs on %s: a prediction takes %.4g us on %s and %.4g us on the CPU",
              (*host)->model->name, (*host)->batch_size, on_host ? "the CPU" : leat_predictor_device(*device),
              (double)device_ns / 1e3, leat_predictor_device(*device), (double)host_ns / 1e3);
    if (on_host) {
        leat_predictor *slower = *device;
        *device = *host;
        *host = slower;
    }
    return LEAT_OK;
}

leat_status leati_predictor_make_faster(leat_predictor **out, leat_model *model,
                                        const leat_predictor_options *options, leat_error *err) {
    leat_predictor *host = NULL;
    leat_error why = {0};
    leat_status status = leati_predictor_make(out, model, options, "cuda", &why);
    if (status == LEAT_ENOTSUP) {
        leati_log(LEAT_LOG_INFO, "leat: a predictor of '%s' computes on the CPU: %s", model->name,
                  why.message);
        return leati_predictor_make(out, model, options, NULL, err);
    }
    if (status != LEAT_OK && err) *err = why;
    if (status == LEAT_OK) status = leati_predictor_make(&host, model, options, NULL, err);
    if (status == LEAT_OK) status = keep_faster(out, &host, err);
    leat_predictor_destroy(&host);
    if (status != LEAT_OK) leat_predictor_destroy(out);
    return status;
}
