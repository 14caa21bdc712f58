/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and changes the scale of a LossScaleOptimizer.  Room: nn. */
#include "nn/optimizers/loss_scale.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "tensor/finite.h"

static leat_status read_numbers(leati_loss_scale *out, const json_t *config, leat_error *err) {
    const json_t *initial = json_object_get(config, "initial_scale");
    const json_t *steps = json_object_get(config, "dynamic_growth_steps");
    out->initial = initial && !json_is_null(initial) ? json_number_value(initial) : 32768.0;
    out->growth_steps = steps && !json_is_null(steps) ? json_integer_value(steps) : 2000;
    if (!(out->initial > 0.0) || !isfinite((float)out->initial))
        return leati_fail(err, LEAT_EINVAL, "initial_scale: expected a number above 0");
    if (out->growth_steps < 1)
        return leati_fail(err, LEAT_EINVAL, "dynamic_growth_steps: expected an integer of at least 1");
    out->value = (float)out->initial;
    return LEAT_OK;
}

/* Keras writes options of the base class with values that change nothing, and refuses others. */
static leat_status check_keys(const json_t *config, leat_error *err) {
    static const char *const known[] = {"name",
                                        "inner_optimizer",
                                        "initial_scale",
                                        "dynamic_growth_steps",
                                        "dynamic",
                                        "weight_decay",
                                        "clipnorm",
                                        "global_clipnorm",
                                        "clipvalue",
                                        "use_ema",
                                        "ema_momentum",
                                        "loss_scale_factor",
                                        "learning_rate",
                                        "jit_compile",
                                        "is_legacy_optimizer",
                                        "ema_overwrite_frequency",
                                        "gradient_accumulation_steps"};
    enum { count = sizeof known / sizeof known[0] };
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)config, key, value) {
        int at = 0;
        while (at < count && strcmp(known[at], key) != 0) ++at;
        if (at == count) return leati_fail(err, LEAT_EINVAL, "unknown key '%s'", key);
    }
    return LEAT_OK;
}

static leat_status read_config(leati_loss_scale *out, leati_object *object, leat_error *err) {
    const json_t *config = object->config;
    const json_t *inner = config ? json_object_get(config, "inner_optimizer") : NULL;
    if (!inner) return leati_fail(err, LEAT_EINVAL, "the key 'inner_optimizer' is missing");
    out->wraps = true;
    LEATI_TRY(check_keys(config, err));
    if (!json_is_false(json_object_get(config, "dynamic"))) LEATI_TRY(read_numbers(out, config, err));
    return leati_prefix(leati_object_read(object, inner, "optimizer", err), err, "inner_optimizer");
}

leat_status leati_loss_scale_read(leati_loss_scale *out, leati_object *object, leat_error *err) {
    *out = (leati_loss_scale){0};
    if (strcmp(object->name, "LossScaleOptimizer") != 0) return LEAT_OK;
    return leati_prefix(read_config(out, object, err), err, "optimizer 'LossScaleOptimizer'");
}

json_t *leati_loss_scale_config(const leati_loss_scale *scale, json_t *inner) {
    return json_pack("{s:s, s:o, s:f, s:I}", "name", "loss_scale_optimizer", "inner_optimizer", inner,
                     "initial_scale", scale->initial, "dynamic_growth_steps",
                     (json_int_t)scale->growth_steps);
}

bool leati_loss_scale_skips(leati_loss_scale *scale, const float *gradients, size_t count) {
    if (leati_all_finite(gradients, count)) return false;
    scale->counter = 0;
    scale->value *= 0.5f;
    return true;
}

void leati_loss_scale_count(leati_loss_scale *scale) {
    if (scale->growth_steps == 0) return;
    if (++scale->counter < scale->growth_steps) return;
    scale->counter = 0;
    scale->value *= 2.0f;
}
