/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rate schedules: the formulas of keras.optimizers.schedules (Keras 3), computed in double.  Room: nn. */
#include "nn/optimizers/schedules/schedule.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/config/field.h"
#include "nn/config/object.h"

typedef struct schedule_config {
    double initial_learning_rate, decay_rate, end_learning_rate, power, alpha;
    double warmup_target; /* NAN: no warmup */
    double t_mul, m_mul;
    int64_t decay_steps, warmup_steps, first_decay_steps;
    bool staircase, cycle;
    leati_reals boundaries, values; /* n and n + 1 numbers */
} schedule_config;

typedef struct schedule_type {
    const char *name;
    const leati_field *fields;
    /* Returns the learning rate of step number `step`, from 0. */
    double (*rate)(const schedule_config *c, double step);
} schedule_type;

struct leati_schedule {
    const schedule_type *type;
    schedule_config config;
};

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

static const leati_field restarts_fields[] = {RATE_FIELD,
                                              SCHEDULE_FIELD(first_decay_steps, LEATI_FIELD_INT, .minimum = 1,
                                                             .limited = true),
                                              SCHEDULE_FIELD(t_mul, LEATI_FIELD_FLOAT, .preset = "2.0"),
                                              SCHEDULE_FIELD(m_mul, LEATI_FIELD_FLOAT, .preset = "1.0"),
                                              SCHEDULE_FIELD(alpha, LEATI_FIELD_FLOAT, .preset = "0.0"),
                                              FIELDS_END};

/* Period i takes t_mul times as many steps as period i - 1, and begins at m_mul times the latter's rate.  Keras
 * computes the logarithms in float, which decides about the first step of a period. */
static double restarts_rate(const schedule_config *c, double step) {
    const double pi = 3.14159265358979323846;
    double fraction = step / (double)c->first_decay_steps, period;
    if (c->t_mul == 1.0) {
        period = floor(fraction);
        fraction -= period;
    } else {
        float ratio = (float)c->t_mul;
        period = floor((double)(logf(1.0f - (float)fraction * (1.0f - ratio)) / logf(ratio)));
        double before = (1.0 - pow(c->t_mul, period)) / (1.0 - c->t_mul);
        fraction = (fraction - before) / pow(c->t_mul, period);
    }
    double decayed = 0.5 * pow(c->m_mul, period) * (1.0 + cos(pi * fraction));
    return c->initial_learning_rate * ((1.0 - c->alpha) * decayed + c->alpha);
}

static const schedule_type types[] = {
    {"CosineDecay", cosine_fields, cosine_rate},
    {"CosineDecayRestarts", restarts_fields, restarts_rate},
    {"ExponentialDecay", decay_fields, exponential_rate},
    {"InverseTimeDecay", decay_fields, inverse_time_rate},
    {"PiecewiseConstantDecay", piecewise_fields, piecewise_rate},
    {"PolynomialDecay", polynomial_fields, polynomial_rate},
};

enum { type_count = sizeof types / sizeof *types };

const char *leati_schedule_name_at(int index) {
    return index >= 0 && index < type_count ? types[index].name : NULL;
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

static leat_status read_config(leati_schedule *schedule, const json_t *config, leat_error *err) {
    static const char *const ignored[] = {"name", NULL};
    LEATI_TRY(leati_fields_read(schedule->type->fields, ignored, config, &schedule->config, err));
    return schedule->type->rate == piecewise_rate ? check_boundaries(&schedule->config, err) : LEAT_OK;
}

leat_status leati_schedule_create(leati_schedule **out, const char *name, const json_t *config,
                                  leat_error *err) {
    const schedule_type *type = NULL;
    *out = NULL;
    for (int i = 0; i < type_count; ++i)
        if (strcmp(types[i].name, name) == 0) type = &types[i];
    if (!type) return leati_unknown_name(err, "schedule of the learning rate", name, leati_schedule_name_at);
    leati_schedule *schedule = leati_calloc(1, sizeof *schedule);
    if (!schedule) return leati_fail_memory(err, sizeof *schedule, "a schedule");
    schedule->type = type;
    leat_status status = read_config(schedule, config, err);
    if (status == LEAT_OK)
        *out = schedule;
    else
        leati_schedule_destroy(&schedule);
    return status;
}

leat_status leati_schedule_read(leati_schedule **out, const json_t *value, leat_error *err) {
    leati_object object;
    *out = NULL;
    LEATI_TRY(leati_object_read(&object, value, "learning_rate", err));
    json_t *none = object.config ? NULL : json_object();
    const json_t *config = object.config ? object.config : none;
    leat_status status = config ? leati_schedule_create(out, object.name, config, err)
                                : leati_fail(err, LEAT_ENOMEM, "no memory for a schedule");
    json_decref(none);
    return leati_prefix(status, err, "learning_rate '%s'", object.name);
}

leat_status leati_schedule_write(const leati_schedule *schedule, json_t **out, leat_error *err) {
    json_t *config = json_object();
    *out = NULL;
    leat_status status = config ? leati_fields_write(schedule->type->fields, &schedule->config, config, err)
                                : leati_fail(err, LEAT_ENOMEM, "no memory for a schedule");
    if (status == LEAT_OK) return leati_object_write(schedule->type->name, config, out, err);
    json_decref(config);
    return status;
}

double leati_schedule_rate(const leati_schedule *schedule, int64_t step) {
    return schedule->type->rate(&schedule->config, (double)step);
}

const char *leati_schedule_name(const leati_schedule *schedule) {
    return schedule->type->name;
}

void leati_schedule_destroy(leati_schedule **schedule) {
    if (!*schedule) return;
    leati_fields_fini((*schedule)->type->fields, &(*schedule)->config);
    leati_free(*schedule);
    *schedule = NULL;
}
