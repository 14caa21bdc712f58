/* SPDX-License-Identifier: Apache-2.0 */
/* Measures steps with inputs of zeros.  Room: train. */
#include "train/step/choose_place.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "train/step/snapshot.h"

enum { most_runs = 21, least_runs = 5, enough_ns = 200000000 };

static size_t largest_of(const leati_desc *descs, int32_t count, size_t largest) {
    for (int32_t i = 0; i < count; ++i) {
        size_t bytes = descs[i].rank < 0 ? 0 : leati_desc_bytes(&descs[i]);
        if (bytes > largest) largest = bytes;
    }
    return largest;
}

/* The first two runs are not counted: they touch new memory, and on a device the second one is recorded. */
static leat_status run_repeatedly(leati_trainer *trainer, leat_model *model, const leati_compiled_step *step,
                                  const void *const *data, const leati_step_snapshot *saved, int64_t limit_ns,
                                  int64_t *ns, leat_error *err) {
    int64_t times[most_runs], sum = 0;
    int count = 0;
    for (int run = -2; run < most_runs && (count < least_runs || sum < enough_ns); ++run) {
        int64_t start = leati_now_ns();
        LEATI_TRY(leati_trainer_run(trainer, step, data, 0, err));
        int64_t took = leati_now_ns() - start;
        leati_step_snapshot_restore(saved, model);
        if (limit_ns > 0 && took > limit_ns) {
            *ns = took;
            return LEAT_OK;
        }
        if (run < 0) continue;
        times[count++] = took;
        sum += took;
    }
    *ns = leati_step_median(times, count);
    return LEAT_OK;
}

leat_status leati_measure_step(leati_trainer *trainer, leat_model *model, const leati_compiled_step *step,
                               int64_t limit_ns, int64_t *ns, leat_error *err) {
    const leati_program_spec *spec = &step->spec;
    size_t bytes = largest_of(spec->inputs, spec->input_count, 64);
    bytes = largest_of(spec->targets, spec->target_count, bytes);
    bytes = largest_of(spec->weights, spec->target_count, bytes);
    leati_step_snapshot saved = {0};
    const void *data[3 * LEATI_PROGRAM_MAX_OUTPUTS];
    void *zeros = leati_calloc_aligned(bytes);
    if (!zeros) return leati_fail_memory(err, bytes, "inputs to measure a step");
    for (int i = 0; i < step->program.binding_count; ++i) data[i] = zeros;
    leat_status status = leati_step_snapshot_take(&saved, model, spec->mode == LEATI_TRAIN, err);
    if (status == LEAT_OK) status = run_repeatedly(trainer, model, step, data, &saved, limit_ns, ns, err);
    leati_step_snapshot_fini(&saved);
    leati_free(zeros);
    return status;
}

void leati_log_place(const leat_model *model, const leati_program_spec *spec, const char *device,
                     int64_t device_ns, int64_t host_ns) {
    static const char *const kinds[] = {
        [LEATI_TRAIN] = "training steps", [LEATI_TEST] = "test steps", [LEATI_PREDICT] = "predictions"};
    bool on_host = host_ns <= device_ns;
    int64_t samples = spec->inputs[0].rank > 0 ? spec->inputs[0].shape[0] : 1;
    leati_log(LEAT_LOG_INFO,
              "leat: '%s': %s of batch %" PRId64 " run on %s: they take %.4g us on %s and %.4g us on the CPU",
              model->name, kinds[spec->mode], samples, on_host ? "the CPU" : device, (double)device_ns / 1e3,
              device, (double)host_ns / 1e3);
}

void leati_log_iterations(const leat_model *model, const leati_program_spec *spec, const char *device,
                          double device_ns, double host_ns) {
    int64_t samples = spec->inputs[0].rank > 0 ? spec->inputs[0].shape[0] : 1;
    leati_log(LEAT_LOG_INFO,
              "leat: '%s': training steps of batch %" PRId64
              " run on %s: with the wait for the batch they take %.4g us on %s and %.4g us on the CPU",
              model->name, samples, host_ns <= device_ns ? "the CPU" : device, device_ns / 1e3, device,
              host_ns / 1e3);
}
