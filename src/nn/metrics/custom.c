/* SPDX-License-Identifier: Apache-2.0 */
/* Custom metrics: the state is that of the user's functions, after a double that is 0 until the first batch.
 * Room: nn. */
#include <stdio.h>

#include "base/error.h"
#include "nn/losses/types.h"
#include "nn/metrics/types.h"

enum { MAX_STATES = 1 << 26 };

/* The type descriptor of a custom metric: a leati_measure, which begins it, and the name of the objects. */
typedef struct custom_metric {
    leati_measure measure;
    char name[LEAT_NAME_BYTES];
} custom_metric;

const size_t leati_custom_metric_bytes = sizeof(custom_metric);

static const leat_metric_definition *definition_of(const leati_metric *metric) {
    return metric->options.object->part->definition;
}

static void begin(const leati_metric *metric, double *state) {
    const leat_metric_definition *d = definition_of(metric);
    if (state[0] != 0) return;
    state[0] = 1;
    if (d->reset)
        d->reset(leati_part_settings(metric->options.object), state + 1, metric->state_count - 1, d->user);
}

static leat_status add(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                       leat_error *err) {
    const leat_metric_definition *d = definition_of(metric);
    const leat_metric_call call = {.size = sizeof call,
                                   .config = leati_part_settings(metric->options.object),
                                   .user = d->user,
                                   .y_true = batch->targets,
                                   .y_pred = batch->values,
                                   .sample_weight = batch->weights,
                                   .state = state + 1,
                                   .state_count = metric->state_count - 1};
    begin(metric, state);
    return d->update(&call, err);
}

static void results(const leati_metric *metric, const double *state, double *out) {
    const leat_metric_definition *d = definition_of(metric);
    const void *config = leati_part_settings(metric->options.object);
    out[0] = d->result(config, state + 1, metric->state_count - 1, d->user);
}

static const leati_tally tally = {.add = add, .results = results};

static leat_status count_states(leati_metric *out, int64_t last_dimension, leat_error *err) {
    const leat_metric_definition *d = definition_of(out);
    int64_t count = d->state_count;
    if (d->count_states)
        count = d->count_states(leati_part_settings(out->options.object), last_dimension, d->user);
    if (count < 1 || count > MAX_STATES)
        return leati_fail(err, LEAT_EINVAL, "metric '%s': expected a state of 1 to %d numbers, received %lld",
                          d->name, MAX_STATES, (long long)count);
    out->state_count = count + 1;
    return LEAT_OK;
}

leat_status leati_custom_metric_read(leati_metric *out, const leati_part *part, const leati_object *object,
                                     int64_t last_dimension, leat_error *err) {
    LEATI_TRY(leati_part_object_create(&out->options.object, part, object, leati_measure_common_keys, err));
    out->result_count = 1;
    if (part->kind == LEATI_PART_METRIC) {
        out->tally = &tally;
        return count_states(out, last_dimension, err);
    }
    leati_custom_loss_prepare(out->options.object);
    out->tally = &leati_tally_mean;
    out->lower = ((const leati_loss_type *)part->type)->measure.lower;
    out->state_count = 2;
    return LEAT_OK;
}

void leati_custom_metric_fill(leati_part *part) {
    custom_metric *type = part->type;
    const char *bare = leati_bare_name(part->name);
    leati_snake_name(bare, type->name);
    type->measure =
        (leati_measure){.name = type->name, .class_name = leati_is_class_name(bare) ? bare : NULL};
}
