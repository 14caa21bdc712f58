/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rate schedules: the formulas of keras.optimizers.schedules (Keras 3), computed in double.  Room: train. */
#include "train/callbacks/schedule.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/config/field.h"
#include "nn/model/model.h"
#include "train/hooks/callback.h"

typedef struct schedule_config {
    double initial_learning_rate, decay_rate, end_learning_rate, power, alpha;
    double warmup_target; /* NAN: no warmup */
    int64_t decay_steps, warmup_steps;
    bool staircase, cycle;
    leati_reals boundaries, values; /* n and n + 1 numbers */
} schedule_config;

typedef struct schedule_type {
    const char *name;
    const leati_field *fields;
    /* Returns the learning rate of step number `step`, from 0. */
    double (*rate)(const schedule_config *c, double step);
} schedule_type;

typedef struct schedule {
    const schedule_type *type;
    schedule_config config;
} schedule;

#define SCHEDULE_FIELD(name, field_kind, ...)                                                                \
    { .key = #name, .kind = field_kind, .offset = offsetof(schedule_config, name), __VA_ARGS__ }
#define RATE_FIELD  SCHEDULE_FIELD(initial_learning_rate, LEATI_FIELD_FLOAT, .preset = NULL)
#define STEPS_FIELD SCHEDULE_FIELD(decay_steps, LEATI_FIELD_INT, .minimum = 1, .limited = true)
#define FIELDS_END                                                                                           \
    { .key = NULL }

static double fraction_of(const schedule_config *c, double step) {
    double fraction = step / (double)c->decay_steps;
    return c->staircase ? floor(fraction) : fraction;
}

static const leati_field decay_fields[] = {RATE_FIELD, STEPS_FIELD,
                                           SCHEDULE_FIELD(decay_rate, LEATI_FIELD_FLOAT, .preset = NULL),
                                           SCHEDULE_FIELD(staircase, LEATI_FIELD_BOOL, .preset = "false"),
                                           FIELDS_END};

static double exponential_rate(const schedule_config *c, double step) {
    return c->initial_learning_rate * pow(c->decay_rate, fraction_of(c, step));
}

static double inverse_time_rate(const schedule_config *c, double step) {
    return c->initial_learning_rate / (1 + c->decay_rate * fraction_of(c, step));
}

static const leati_field polynomial_fields[] = {RATE_FIELD,
                                                STEPS_FIELD,
                                                SCHEDULE_FIELD(end_learning_rate, LEATI_FIELD_FLOAT,
                                                               .preset = "0.0001"),
                                                SCHEDULE_FIELD(power, LEATI_FIELD_FLOAT, .preset = "1.0"),
                                                SCHEDULE_FIELD(cycle, LEATI_FIELD_BOOL, .preset = "false"),
                                                FIELDS_END};

/* With `cycle`, the rate rises again after each decay_steps steps: the decay then takes the next multiple of them. */
static double polynomial_rate(const schedule_config *c, double step) {
    double steps = (double)c->decay_steps;
    if (c->cycle)
        steps *= step > 0 ? ceil(step / steps) : 1;
    else
        step = fmin(step, steps);
    return (c->initial_learning_rate - c->end_learning_rate) * pow(1 - step / steps, c->power) +
           c->end_learning_rate;
}

static const leati_field cosine_fields[] = {RATE_FIELD,
                                            STEPS_FIELD,
                                            SCHEDULE_FIELD(alpha, LEATI_FIELD_FLOAT, .preset = "0.0"),
                                            SCHEDULE_FIELD(warmup_target, LEATI_FIELD_OPTIONAL_FLOAT,
                                                           .preset = "null"),
                                            SCHEDULE_FIELD(warmup_steps, LEATI_FIELD_INT, .preset = "0",
                                                           .minimum = 0, .limited = true),
                                            FIELDS_END};

static double cosine_rate(const schedule_config *c, double step) {
    const double pi = 3.14159265358979323846;
    double from = c->initial_learning_rate, warmup = (double)c->warmup_steps;
    if (!isnan(c->warmup_target)) {
        if (step < warmup) return (c->warmup_target - from) * (step / warmup) + from;
        from = c->warmup_target;
        step -= warmup;
    }
    double fraction = fmin(step / (double)c->decay_steps, 1);
    return from * ((1 - c->alpha) * 0.5 * (1 + cos(pi * fraction)) + c->alpha);
}

static const leati_field piecewise_fields[] = {SCHEDULE_FIELD(boundaries, LEATI_FIELD_REALS, .preset = NULL),
                                               SCHEDULE_FIELD(values, LEATI_FIELD_REALS, .preset = NULL),
                                               FIELDS_END};

static double piecewise_rate(const schedule_config *c, double step) {
    int32_t part = 0;
    while (part < c->boundaries.count && step > c->boundaries.values[part]) ++part;
    return c->values.values[part];
}

static const schedule_type types[] = {
    {"CosineDecay", cosine_fields, cosine_rate},
    {"ExponentialDecay", decay_fields, exponential_rate},
    {"InverseTimeDecay", decay_fields, inverse_time_rate},
    {"PiecewiseConstantDecay", piecewise_fields, piecewise_rate},
    {"PolynomialDecay", polynomial_fields, polynomial_rate},
};

enum { type_count = sizeof types / sizeof *types };

const char *leati_schedule_name_at(int index) {
    return index >= 0 && index < type_count ? types[index].name : NULL;
}

/* ---- The callback ---- */

static leat_status batch_begin(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                               leat_error *err) {
    (void)batch, (void)logs;
    const schedule *self = user;
    leat_model *model = leat_training_model(training);
    double rate = self->type->rate(&self->config, (double)model->iterations);
    if (!isfinite(rate))
        return leati_fail(err, LEAT_EINVAL,
                          "%s: the learning rate of step %" PRId64 " is %g, expected a finite number",
                          self->type->name, model->iterations, rate);
    leat_model_set_learning_rate(model, rate);
    return LEAT_OK;
}

static leat_status epoch_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    (void)user, (void)epoch, (void)err;
    leat_logs_set(logs, "lr", leat_model_learning_rate(leat_training_model(training)));
    return LEAT_OK;
}

static void destroy(void *user) {
    schedule *self = user;
    leati_fields_fini(self->type->fields, &self->config);
    leati_free(self);
}

static leat_status check_boundaries(const schedule_config *c, leat_error *err) {
    if (c->values.count != c->boundaries.count + 1)
        return leati_fail(err, LEAT_EINVAL,
                          "values: expected one number more than boundaries, which has %d; received %d",
                          (int)c->boundaries.count, (int)c->values.count);
    for (int32_t i = 1; i < c->boundaries.count; ++i)
        if (!(c->boundaries.values[i - 1] < c->boundaries.values[i]))
            return leati_fail(err, LEAT_EINVAL, "boundaries: expected numbers in ascending order");
    return LEAT_OK;
}

static leat_status read_config(schedule *self, const json_t *config, leat_error *err) {
    static const char *const ignored[] = {"name", NULL};
    LEATI_TRY(leati_fields_read(self->type->fields, ignored, config, &self->config, err));
    return self->type->rate == piecewise_rate ? check_boundaries(&self->config, err) : LEAT_OK;
}

leat_status leati_schedule_create(leat_callback *out, size_t size, const char *name, const json_t *config,
                                  leat_error *err) {
    LEATI_TRY(leati_callback_begin(out, size, err));
    const schedule_type *type = NULL;
    for (int i = 0; i < type_count; ++i)
        if (strcmp(types[i].name, name) == 0) type = &types[i];
    if (!type) return leati_fail(err, LEAT_ENOTFOUND, "unknown schedule '%s'", name);
    schedule *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "a schedule");
    self->type = type;
    leat_status status = read_config(self, config, err);
    if (status != LEAT_OK) {
        destroy(self);
        return status;
    }
    const leat_callback made = {.user = self,
                                .destroy = destroy,
                                .on_train_batch_begin = batch_begin,
                                .on_epoch_end = epoch_end};
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}
