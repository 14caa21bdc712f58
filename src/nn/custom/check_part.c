/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the gradients of custom losses, activations and regularizers with central differences.  Like the check of a
 * custom layer, the loss is the sum of all results, each times its own random factor.  Room: nn. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "json/json.h"
#include "nn/activations/activation.h"
#include "nn/custom/add_part.h"
#include "nn/losses/types.h"
#include "nn/regularizers/regularizer.h"

#define SEED UINT64_C(20261123)
#define STEP 1e-2f

enum { MAX_ARGUMENTS = 2 };

/* One call of an object's callee.  The derivatives are those with respect to the last argument. */
typedef struct probe {
    leati_part *part;
    leati_part_object *object;
    int count;
    leati_desc in[MAX_ARGUMENTS], out;
    void *args[MAX_ARGUMENTS], *diff_args[MAX_ARGUMENTS]; /* owned */
    void *result, *factors;                               /* owned */
} probe;

static void fini(probe *p) {
    const leati_part *part = p->part;
    for (int i = 0; i < MAX_ARGUMENTS; ++i) {
        leati_free(p->args[i]);
        leati_free(p->diff_args[i]);
    }
    leati_free(p->result);
    leati_free(p->factors);
    leati_part_object_destroy(&p->object);
    leati_part_release(&part);
}

/* ---- Making ---- */

static leat_status make_object(probe *p, const char *config, leat_error *err) {
    leati_object object = {.name = p->part->name};
    json_t *value = NULL;
    if (config) LEATI_TRY(leati_json_parse_argument(&value, config, strlen(config), err));
    object.config = value;
    leat_status status = leati_part_object_create(&p->object, p->part, &object, NULL, err);
    json_decref(value);
    return status;
}

static leat_status make_buffer(const leati_desc *desc, void **out, leat_error *err) {
    *out = leati_calloc_aligned(leati_desc_bytes(desc));
    return *out ? LEAT_OK : leati_fail_memory(err, leati_desc_bytes(desc), "a tensor");
}

static leat_status add_argument(probe *p, const leat_tensor *tensor, const char *name, leat_error *err) {
    leati_desc *desc = &p->in[p->count];
    if (tensor->dtype != LEAT_F32)
        return leati_fail(err, LEAT_EDTYPE, "%s: expected float32, received %s", name,
                          leat_dtype_name(tensor->dtype));
    if (tensor->rank < 1 || tensor->rank > LEAT_MAX_RANK || leat_tensor_count(tensor) < 1)
        return leati_fail(err, LEAT_ESHAPE, "%s: expected a rank of 1 to %d, and at least one element", name,
                          LEAT_MAX_RANK);
    if (!tensor->data) return leati_fail(err, LEAT_EINVAL, "%s: its data is NULL", name);
    *desc = leati_desc_make(LEAT_F32, tensor->rank, tensor->shape);
    LEATI_TRY(make_buffer(desc, &p->args[p->count], err));
    LEATI_TRY(make_buffer(desc, &p->diff_args[p->count], err));
    memcpy(p->args[p->count++], tensor->data, leati_desc_bytes(desc));
    return LEAT_OK;
}

static leat_status make_results(probe *p, leat_error *err) {
    const leati_callee *callee = &p->object->callee;
    LEATI_TRY(callee->infer(callee, p->count, p->in, &p->out, err));
    LEATI_TRY(make_buffer(&p->out, &p->result, err));
    LEATI_TRY(make_buffer(&p->out, &p->factors, err));
    leat_rng rng = leat_rng_for(SEED, 0, 0);
    for (int64_t i = 0; i < leati_desc_count(&p->out); ++i)
        ((float *)p->factors)[i] = (float)(0.5 + leat_rng_uniform(&rng));
    return LEAT_OK;
}

/* ---- Comparing ---- */

static leati_callee_run run_of(probe *p, leat_rng *rng) {
    *rng = leat_rng_for(SEED, 1, 0);
    return (leati_callee_run){.input_count = p->count,
                              .output_count = 1,
                              .inputs = p->in,
                              .outputs = &p->out,
                              .args = p->args,
                              .results = &p->result,
                              .training = true,
                              .rng = rng,
                              .diff_results = &p->factors,
                              .diff_args = p->diff_args};
}

static leat_status loss(probe *p, double *out, leat_error *err) {
    const leati_callee *callee = &p->object->callee;
    const float *result = p->result, *factors = p->factors;
    leat_rng rng;
    const leati_callee_run run = run_of(p, &rng);
    LEATI_TRY(callee->forward(callee, &run, err));
    *out = 0;
    for (int64_t i = 0; i < leati_desc_count(&p->out); ++i) *out += (double)result[i] * (double)factors[i];
    return LEAT_OK;
}

static leat_status difference(probe *p, float *x, double *out, leat_error *err) {
    const float before = *x, above = before + STEP, below = before - STEP;
    double high = 0, low = 0;
    *x = above;
    LEATI_TRY(loss(p, &high, err));
    *x = below;
    LEATI_TRY(loss(p, &low, err));
    *x = before;
    *out = (high - low) / ((double)above - (double)below);
    return LEAT_OK;
}

static leat_status compare(probe *p, double *worst, leat_error *err) {
    const leati_callee *callee = &p->object->callee;
    const int last = p->count - 1;
    float *x = p->args[last];
    const float *diff = p->diff_args[last];
    double apart = 0, largest = 1e-30, ignored = 0;
    leat_rng rng;
    const leati_callee_run run = run_of(p, &rng);
    LEATI_TRY(loss(p, &ignored, err)); /* the gradient may read the results */
    LEATI_TRY(callee->backward(callee, &run, err));
    for (int64_t i = 0; i < leati_desc_count(&p->in[last]); ++i) {
        double expected = 0;
        LEATI_TRY(difference(p, &x[i], &expected, err));
        largest = fmax(largest, fmax(fabs((double)diff[i]), fabs(expected)));
        const double distance = fabs((double)diff[i] - expected);
        apart = isfinite(distance) ? fmax(apart, distance) : (double)INFINITY;
    }
    *worst = apart / largest;
    return LEAT_OK;
}

static leat_status check(probe *p, double *worst, leat_error *err) {
    if (!p->object->callee.backward)
        return leati_fail(err, LEAT_ENOTSUP, "%s '%s' has no gradient", leati_part_noun(p->part->kind),
                          p->part->name);
    LEATI_TRY(make_results(p, err));
    return compare(p, worst, err);
}

/* ---- The kinds ---- */

leat_status leat_loss_check_gradient(const leat_loss_definition *definition, const char *config,
                                     const leat_tensor *y_true, const leat_tensor *y_pred, double *worst,
                                     leat_error *err) {
    LEATI_GIVEN(definition, err);
    LEATI_GIVEN(y_true, err);
    LEATI_GIVEN(y_pred, err);
    LEATI_GIVEN(worst, err);
    probe p = {.part = NULL};
    *worst = 0;
    leat_status status = leati_part_of_loss(&p.part, definition, NULL, err);
    if (status == LEAT_OK) status = make_object(&p, config, err);
    if (status == LEAT_OK) leati_custom_loss_prepare(p.object);
    if (status == LEAT_OK) status = add_argument(&p, y_true, "y_true", err);
    if (status == LEAT_OK) status = add_argument(&p, y_pred, "y_pred", err);
    if (status == LEAT_OK && y_true->shape[0] != y_pred->shape[0])
        status =
            leati_fail(err, LEAT_ESHAPE, "expected as many targets as predictions, received %lld and %lld",
                       (long long)y_true->shape[0], (long long)y_pred->shape[0]);
    if (status == LEAT_OK) status = check(&p, worst, err);
    fini(&p);
    return status;
}

leat_status leat_activation_check_gradient(const leat_activation_definition *definition, const char *config,
                                           const leat_tensor *x, double *worst, leat_error *err) {
    LEATI_GIVEN(definition, err);
    LEATI_GIVEN(x, err);
    LEATI_GIVEN(worst, err);
    probe p = {.part = NULL};
    *worst = 0;
    leat_status status = leati_part_of_activation(&p.part, definition, NULL, err);
    if (status == LEAT_OK) status = make_object(&p, config, err);
    if (status == LEAT_OK) leati_custom_activation_prepare(p.object);
    if (status == LEAT_OK) status = add_argument(&p, x, "x", err);
    if (status == LEAT_OK) status = check(&p, worst, err);
    fini(&p);
    return status;
}

leat_status leat_regularizer_check_gradient(const leat_regularizer_definition *definition, const char *config,
                                            const leat_tensor *x, double *worst, leat_error *err) {
    LEATI_GIVEN(definition, err);
    LEATI_GIVEN(x, err);
    LEATI_GIVEN(worst, err);
    probe p = {.part = NULL};
    *worst = 0;
    leat_status status = leati_part_of_regularizer(&p.part, definition, NULL, err);
    if (status == LEAT_OK) status = make_object(&p, config, err);
    if (status == LEAT_OK) leati_custom_regularizer_prepare(p.object);
    if (status == LEAT_OK) status = add_argument(&p, x, "x", err);
    if (status == LEAT_OK) status = check(&p, worst, err);
    fini(&p);
    return status;
}
