/* SPDX-License-Identifier: Apache-2.0 */
/* Epoch means.  Layer: train. */
#include "train/meter.h"

#include <math.h>
#include <stdio.h>

void leati_meter_reset(leati_meter *meter) {
    *meter = (leati_meter){0};
}

/* A metric with this meter's sums: several meters (training, validation) share the model's metrics. */
static leati_metric metric_of(const leati_meter *meter, const leat_model *model, int index) {
    leati_metric metric = model->compiled.metrics[index];
    metric.total = meter->totals[index];
    metric.count = meter->counts[index];
    return metric;
}

static double scalar(const leati_compiled_step *step, leati_value value) {
    leat_tensor tensor = leati_plan_output(step->plan, value);
    return tensor.data ? (double)*(const float *)tensor.data : 0;
}

static void add_metric(leati_meter *meter, const leat_model *model, const leati_compiled_step *step,
                       int index) {
    leati_value weights = step->program.metric_weights[index];
    leat_tensor values = leati_plan_output(step->plan, step->program.metrics[index]);
    leat_tensor factors = {0};
    if (weights != LEATI_NONE) factors = leati_plan_output(step->plan, weights);
    leati_metric metric = metric_of(meter, model, index);
    leati_metric_accumulate(&metric, &values, weights == LEATI_NONE ? NULL : &factors);
    meter->totals[index] = metric.total;
    meter->counts[index] = metric.count;
}

void leati_meter_add(leati_meter *meter, const leat_model *model, const leati_compiled_step *step,
                     int64_t size) {
    meter->loss += scalar(step, step->program.loss) * (double)size;
    meter->samples += size;
    if (model->output_count > 1)
        for (int i = 0; i < model->output_count; ++i)
            if (step->program.output_losses[i] >= 0)
                meter->output_losses[i] += scalar(step, step->program.output_losses[i]) * (double)size;
    for (int i = 0; i < model->compiled.metric_count; ++i) add_metric(meter, model, step, i);
}

static void log_as(leat_logs *logs, const char *prefix, const char *name, double value) {
    char full[LEAT_LOG_NAME_BYTES];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    leat_logs_set(logs, full, value);
}

void leati_meter_logs(const leati_meter *meter, const leat_model *model, const char *prefix,
                      leat_logs *logs) {
    double samples = meter->samples > 0 ? (double)meter->samples : NAN;
    char name[LEAT_LOG_NAME_BYTES];
    log_as(logs, prefix, "loss", meter->loss / samples);
    if (model->output_count > 1)
        for (int i = 0; i < model->output_count; ++i) {
            if (!model->compiled.losses[i].type) continue;
            snprintf(name, sizeof name, "%s_loss", leati_model_output_name(model, i));
            log_as(logs, prefix, name, meter->output_losses[i] / samples);
        }
    for (int i = 0; i < model->compiled.metric_count; ++i) {
        leati_metric metric = metric_of(meter, model, i);
        log_as(logs, prefix, metric.name, leati_metric_result(&metric));
    }
}

int leati_meter_names(const leat_model *model, char (*names)[LEAT_LOG_NAME_BYTES], int most) {
    leati_meter empty;
    leat_logs logs = {0};
    leati_meter_reset(&empty);
    leati_meter_logs(&empty, model, "", &logs);
    for (int i = 0; i < logs.count && i < most; ++i)
        snprintf(names[i], LEAT_LOG_NAME_BYTES, "%s", logs.items[i].name);
    return logs.count;
}
