/* SPDX-License-Identifier: Apache-2.0 */
/* Accumulates loss and metrics over an epoch.  Room: train. */
#include "train/step/meter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "leat/train.h"

static int64_t states_of(const leat_model *model) {
    int64_t count = 0;
    for (int i = 0; i < model->compiled.metric_count; ++i) count += model->compiled.metrics[i].state_count;
    return count;
}

leat_status leati_meter_init(leati_meter *meter, const leat_model *model, leat_error *err) {
    *meter = (leati_meter){.state_count = states_of(model)};
    if (meter->state_count == 0) return LEAT_OK;
    meter->states = leati_calloc((size_t)meter->state_count, sizeof(double));
    if (!meter->states)
        return leati_fail_memory(err, (size_t)meter->state_count * sizeof(double), "the metrics' sums");
    return LEAT_OK;
}

void leati_meter_fini(leati_meter *meter) {
    leati_free(meter->states);
    *meter = (leati_meter){0};
}

void leati_meter_reset(leati_meter *meter) {
    double *states = meter->states;
    int64_t count = meter->state_count;
    if (states) memset(states, 0, (size_t)count * sizeof(double));
    *meter = (leati_meter){.states = states, .state_count = count};
}

static double scalar(const leati_compiled_step *step, leati_value value) {
    leat_tensor tensor = leati_plan_output(step->plan, value);
    return tensor.data ? (double)*(const float *)tensor.data : 0;
}

/* Returns the tensor of a value, or NULL if the value is LEATI_NONE. */
static const leat_tensor *tensor_of(const leati_compiled_step *step, leati_value value, leat_tensor *out) {
    if (value == LEATI_NONE) return NULL;
    *out = leati_plan_output(step->plan, value);
    return out;
}

static leat_status check_states(const leati_meter *meter, const leat_model *model, leat_error *err) {
    if (states_of(model) == meter->state_count) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "the model was compiled again with other metrics during a run");
}

static leat_status add_metrics(double *state, const leat_model *model, const leati_compiled_step *step,
                               leat_error *err) {
    for (int i = 0; i < model->compiled.metric_count; ++i) {
        const leati_metric *metric = &model->compiled.metrics[i];
        leat_tensor tensors[3];
        const leati_metric_batch batch = {.values = tensor_of(step, step->program.metrics[i], &tensors[0]),
                                          .targets =
                                              tensor_of(step, step->program.metric_targets[i], &tensors[1]),
                                          .weights =
                                              tensor_of(step, step->program.metric_weights[i], &tensors[2])};
        if (!step->program.metric_is_whole[i]) LEATI_TRY(leati_metric_add(metric, state, &batch, err));
        state += metric->state_count;
    }
    return LEAT_OK;
}

leat_status leati_meter_add(leati_meter *meter, const leat_model *model, const leati_compiled_step *step,
                            int64_t size, leat_error *err) {
    meter->last_loss = scalar(step, step->program.loss);
    meter->loss += meter->last_loss * (double)size;
    meter->samples += size;
    if (model->output_count > 1)
        for (int i = 0; i < model->output_count; ++i)
            if (step->program.output_losses[i] >= 0)
                meter->output_losses[i] += scalar(step, step->program.output_losses[i]) * (double)size;
    LEATI_TRY(check_states(meter, model, err));
    return add_metrics(meter->states, model, step, err);
}

/* The loss, the losses of the outputs, the states of the metrics. */
int64_t leati_meter_width(const leat_model *model) {
    return 1 + model->output_count + states_of(model);
}

leat_status leati_meter_measure(const leat_model *model, const leati_compiled_step *step, double *out,
                                leat_error *err) {
    out[0] = scalar(step, step->program.loss);
    for (int i = 0; i < model->output_count; ++i)
        if (step->program.output_losses[i] >= 0) out[1 + i] = scalar(step, step->program.output_losses[i]);
    return add_metrics(out + 1 + model->output_count, model, step, err);
}

leat_status leati_meter_add_sums(leati_meter *meter, const leat_model *model, const double *sums,
                                 const leati_metric_batch *const *whole, int64_t size, leat_error *err) {
    LEATI_TRY(check_states(meter, model, err));
    meter->last_loss = sums[0];
    meter->loss += sums[0] * (double)size;
    meter->samples += size;
    for (int i = 0; model->output_count > 1 && i < model->output_count; ++i)
        meter->output_losses[i] += sums[1 + i] * (double)size;
    double *state = meter->states;
    const double *added = sums + 1 + model->output_count;
    for (int i = 0; i < model->compiled.metric_count; ++i) {
        const leati_metric *metric = &model->compiled.metrics[i];
        if (whole[i])
            LEATI_TRY(leati_metric_add(metric, state, whole[i], err));
        else
            for (int64_t k = 0; k < metric->state_count; ++k) state[k] += added[k];
        state += metric->state_count;
        added += metric->state_count;
    }
    return LEAT_OK;
}

static void log_as(leat_logs *logs, const char *prefix, const char *name, double value) {
    char full[LEAT_LOG_NAME_BYTES];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    leat_logs_set(logs, full, value);
}

static void output_loss_name(const leat_model *model, int output, char out[LEAT_LOG_NAME_BYTES]) {
    snprintf(out, LEAT_LOG_NAME_BYTES, "%s_loss", leati_model_output_name(model, output));
}

static void log_metric(const leati_metric *metric, const double *state, const char *prefix, leat_logs *logs) {
    double results[LEATI_PROGRAM_MAX_METRICS];
    char name[LEAT_LOG_NAME_BYTES];
    leati_metric_results(metric, state, results);
    for (int i = 0; i < metric->result_count; ++i) {
        leati_metric_result_name(metric, i, name, sizeof name);
        log_as(logs, prefix, name, results[i]);
    }
}

void leati_meter_logs(const leati_meter *meter, const leat_model *model, const char *prefix,
                      leat_logs *logs) {
    double samples = meter->samples > 0 ? (double)meter->samples : NAN;
    char name[LEAT_LOG_NAME_BYTES];
    log_as(logs, prefix, "loss", meter->loss / samples);
    if (model->output_count > 1)
        for (int i = 0; i < model->output_count; ++i) {
            if (!model->compiled.losses[i].type) continue;
            output_loss_name(model, i, name);
            log_as(logs, prefix, name, meter->output_losses[i] / samples);
        }
    const double *state = meter->states;
    if (states_of(model) != meter->state_count) return;
    for (int i = 0; i < model->compiled.metric_count; ++i) {
        log_metric(&model->compiled.metrics[i], state, prefix, logs);
        state += model->compiled.metrics[i].state_count;
    }
}

leat_status leati_meter_save(const leati_meter *meter, leat_state *state, leat_error *err) {
    const size_t bytes = (size_t)meter->state_count * sizeof(double);
    LEATI_TRY(leat_state_put(state, "loss", &meter->loss, sizeof meter->loss, err));
    LEATI_TRY(leat_state_put(state, "output_losses", meter->output_losses, sizeof meter->output_losses, err));
    LEATI_TRY(leati_state_put_i64(state, "samples", meter->samples, err));
    return leat_state_put(state, "metrics", meter->states, bytes, err);
}

/* A build that allowed fewer outputs has written fewer losses. */
static leat_status load_output_losses(leati_meter *meter, const leat_state *state, leat_error *err) {
    size_t bytes = 0;
    const void *losses = leat_state_find(state, "output_losses", &bytes);
    if (!losses || bytes > sizeof meter->output_losses) bytes = sizeof meter->output_losses;
    memset(meter->output_losses, 0, sizeof meter->output_losses);
    return leat_state_get(state, "output_losses", meter->output_losses, bytes, err);
}

leat_status leati_meter_load(leati_meter *meter, const leat_state *state, leat_error *err) {
    const size_t bytes = (size_t)meter->state_count * sizeof(double);
    LEATI_TRY(leat_state_get(state, "loss", &meter->loss, sizeof meter->loss, err));
    LEATI_TRY(load_output_losses(meter, state, err));
    LEATI_TRY(leati_state_get_i64(state, "samples", &meter->samples, err));
    return leat_state_get(state, "metrics", meter->states, bytes, err);
}

int leati_meter_names(const leat_model *model, char (*names)[LEAT_LOG_NAME_BYTES], int most) {
    int count = 0;
    if (count < most) snprintf(names[count], LEAT_LOG_NAME_BYTES, "loss");
    count += 1;
    for (int i = 0; model->output_count > 1 && i < model->output_count; ++i) {
        if (!model->compiled.losses[i].type) continue;
        if (count < most) output_loss_name(model, i, names[count]);
        count += 1;
    }
    for (int i = 0; i < model->compiled.metric_count; ++i) {
        const leati_metric *metric = &model->compiled.metrics[i];
        for (int j = 0; j < metric->result_count; ++j, ++count)
            if (count < most) leati_metric_result_name(metric, j, names[count], LEAT_LOG_NAME_BYTES);
    }
    return count;
}

int leat_model_metric_count(const leat_model *model) {
    return model && model->compiled.ready ? leati_meter_names(model, NULL, 0) : 0;
}

leat_status leat_model_metric_name(const leat_model *model, int index, char *out, leat_error *err) {
    char names[1 + LEATI_PROGRAM_MAX_OUTPUTS + LEATI_PROGRAM_MAX_METRICS][LEAT_LOG_NAME_BYTES];
    const int room = sizeof names / sizeof names[0];
    LEATI_GIVEN(out, err);
    out[0] = '\0';
    LEATI_GIVEN(model, err);
    int count = leat_model_metric_count(model);
    if (index < 0 || index >= count || index >= room) return leati_fail_index(err, "metric", index, count);
    leati_meter_names(model, names, room);
    snprintf(out, LEAT_LOG_NAME_BYTES, "%s", names[index]);
    return LEAT_OK;
}
