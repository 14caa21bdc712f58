/* SPDX-License-Identifier: Apache-2.0 */
/* leat_layer_check_gradient: compares a custom layer's backward with central differences of its forward.  The loss is
 * the sum of all output elements, each times its own random factor.  Room: nn. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "json/json.h"
#include "nn/custom/custom.h"

#define SEED UINT64_C(20261121)
#define STEP 1e-2f

typedef struct probe {
    leati_custom *custom;
    leati_layer *layer;
    int inputs, tensors, outputs; /* tensors: inputs plus weights */
    leati_desc in[LEATI_CALLEE_MAX_INPUTS], out[LEATI_CALLEE_MAX_OUTPUTS];
    void *args[LEATI_CALLEE_MAX_INPUTS], *diff_args[LEATI_CALLEE_MAX_INPUTS];
    void *results[LEATI_CALLEE_MAX_OUTPUTS], *factors[LEATI_CALLEE_MAX_OUTPUTS];
} probe;

static void fini(probe *p) {
    for (int i = 0; i < LEATI_CALLEE_MAX_INPUTS; ++i) {
        leati_free(p->args[i]);
        leati_free(p->diff_args[i]);
    }
    for (int i = 0; i < LEATI_CALLEE_MAX_OUTPUTS; ++i) {
        leati_free(p->results[i]);
        leati_free(p->factors[i]);
    }
    leati_layer_destroy(&p->layer);
    leati_custom_release(&p->custom);
}

static const leati_callee *callee_of(const probe *p) {
    return &((const leati_custom_config *)p->layer->config)->callee;
}

/* ---- Making ---- */

static leat_status make_layer(probe *p, const char *config, leat_error *err) {
    json_t *value = NULL;
    if (!config) config = "{}";
    LEATI_TRY(leati_json_parse_argument(&value, config, strlen(config), err));
    leat_status status = leati_layer_create(&p->layer, &p->custom->type, value, NULL, err);
    json_decref(value);
    return status;
}

static leat_status make_shapes(probe *p, int count, const leat_tensor *shapes, leat_error *err) {
    leati_shape in[LEATI_CUSTOM_MAX_INPUTS] = {0}, out[LEATI_LAYER_MAX_OUTPUTS];
    for (int i = 0; i < count && i < LEATI_CUSTOM_MAX_INPUTS; ++i) {
        if (shapes[i].dtype != LEAT_F32)
            return leati_fail(err, LEAT_EDTYPE, "input %d: expected float32, received %s", i,
                              leat_dtype_name(shapes[i].dtype));
        if (shapes[i].rank < 1 || shapes[i].rank > LEAT_MAX_RANK)
            return leati_fail(err, LEAT_ESHAPE, "input %d: expected a rank of 1 to %d", i, LEAT_MAX_RANK);
        in[i].rank = shapes[i].rank;
        memcpy(in[i].dims, shapes[i].shape, sizeof in[i].dims);
        p->in[i] = leati_desc_make(LEAT_F32, in[i].rank, in[i].dims);
    }
    LEATI_TRY(leati_layer_infer(p->layer, count, in, out, &p->outputs, err));
    LEATI_TRY(leati_layer_build(p->layer, count, in, err));
    p->inputs = count;
    p->tensors = count + p->layer->weight_count;
    for (int i = 0; i < p->layer->weight_count; ++i) p->in[count + i] = p->layer->weights[i].desc;
    return callee_of(p)->infer(callee_of(p), p->tensors, p->in, p->out, err);
}

static leat_status make_buffer(const leati_desc *desc, void **out, leat_error *err) {
    *out = leati_calloc_aligned(leati_desc_bytes(desc));
    return *out ? LEAT_OK : leati_fail_memory(err, leati_desc_bytes(desc), "a tensor");
}

/* Fills a buffer with random numbers in [-1, 1]. */
static void draw(const leati_desc *desc, uint64_t stream, float *out) {
    leat_rng rng = leat_rng_for(SEED, 0, stream);
    for (int64_t i = 0; i < leati_desc_count(desc); ++i) out[i] = (float)(2 * leat_rng_uniform(&rng) - 1);
}

static leat_status make_buffers(probe *p, leat_error *err) {
    for (int i = 0; i < p->tensors; ++i) {
        const leati_desc *desc = &p->in[i];
        LEATI_TRY(make_buffer(desc, &p->args[i], err));
        LEATI_TRY(make_buffer(desc, &p->diff_args[i], err));
        if (i < p->inputs)
            draw(desc, (uint64_t)i, p->args[i]);
        else
            LEATI_TRY(leati_initializer_draw(p->layer->weights[i - p->inputs].initializer, desc->rank,
                                             desc->shape, SEED, (uint64_t)i, p->args[i], err));
    }
    for (int i = 0; i < p->outputs; ++i) {
        LEATI_TRY(make_buffer(&p->out[i], &p->results[i], err));
        LEATI_TRY(make_buffer(&p->out[i], &p->factors[i], err));
        draw(&p->out[i], UINT64_C(1000) + (uint64_t)i, p->factors[i]);
    }
    return LEAT_OK;
}

/* ---- Comparing ---- */

static leati_callee_run run_of(probe *p, leat_rng *rng) {
    *rng = leat_rng_for(SEED, 1, 0);
    return (leati_callee_run){.input_count = p->tensors,
                              .output_count = p->outputs,
                              .inputs = p->in,
                              .outputs = p->out,
                              .args = p->args,
                              .results = p->results,
                              .training = true,
                              .rng = rng,
                              .diff_results = p->factors,
                              .diff_args = p->diff_args};
}

static leat_status loss(probe *p, double *out, leat_error *err) {
    leat_rng rng;
    const leati_callee_run run = run_of(p, &rng);
    LEATI_TRY(callee_of(p)->forward(callee_of(p), &run, err));
    *out = 0;
    for (int i = 0; i < p->outputs; ++i) {
        const float *result = p->results[i], *factor = p->factors[i];
        for (int64_t j = 0; j < leati_desc_count(&p->out[i]); ++j)
            *out += (double)result[j] * (double)factor[j];
    }
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

/* Compares the derivatives of one input or weight.  The error is the largest difference, relative to the largest
 * derivative. */
static leat_status compare(probe *p, int tensor, double *worst, leat_error *err) {
    float *x = p->args[tensor];
    const float *diff = p->diff_args[tensor];
    double apart = 0, largest = 1e-30;
    for (int64_t i = 0; i < leati_desc_count(&p->in[tensor]); ++i) {
        double expected = 0, by = fabs((double)diff[i]);
        LEATI_TRY(difference(p, &x[i], &expected, err));
        largest = fmax(largest, fmax(by, fabs(expected)));
        double distance = fabs((double)diff[i] - expected);
        apart = isfinite(distance) ? fmax(apart, distance) : (double)INFINITY;
    }
    *worst = fmax(*worst, apart / largest);
    return LEAT_OK;
}

static leat_status check(probe *p, double *worst, leat_error *err) {
    leat_rng rng;
    double ignored;
    LEATI_TRY(loss(p, &ignored, err)); /* backward may read the outputs */
    const leati_callee_run run = run_of(p, &rng);
    LEATI_TRY(callee_of(p)->backward(callee_of(p), &run, err));
    for (int i = 0; i < p->tensors; ++i) LEATI_TRY(compare(p, i, worst, err));
    return LEAT_OK;
}

leat_status leat_layer_check_gradient(const leat_layer_definition *definition, const char *config,
                                      int input_count, const leat_tensor *shapes, double *worst,
                                      leat_error *err) {
    LEATI_GIVEN(definition, err);
    LEATI_GIVEN(shapes, err);
    LEATI_GIVEN(worst, err);
    probe p = {.custom = NULL};
    *worst = 0;
    leat_status status = leati_custom_create(&p.custom, definition, NULL, err);
    if (status == LEAT_OK && !definition->backward)
        status = leati_fail(err, LEAT_ENOTSUP, "%s has no backward", definition->class_name);
    if (status == LEAT_OK) status = make_layer(&p, config, err);
    if (status == LEAT_OK) status = make_shapes(&p, input_count, shapes, err);
    if (status == LEAT_OK) status = make_buffers(&p, err);
    if (status == LEAT_OK) status = check(&p, worst, err);
    fini(&p);
    return status;
}
