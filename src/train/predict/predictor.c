/* SPDX-License-Identifier: Apache-2.0 */
/* A predictor: runs its own plan on a copy of the model's weights.  Room: train. */
#include "leat/predictor.h"

#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "base/text.h"
#include "dist/launcher.h"
#include "leat/train.h"
#include "train/predict/predictor.h"
#include "train/step/trainer.h"

static const leat_predictor_options defaults = {.batch_size = 1, .threads = 1};
static const leati_growing options_type = LEATI_GROWING(leat_predictor_options, batch_size, &defaults);

_Static_assert((int)LEAT_WEIGHTS_F32 == (int)LEATI_WEIGHTS_F32 &&
                   (int)LEAT_WEIGHTS_BF16 == (int)LEATI_WEIGHTS_BF16 &&
                   (int)LEAT_WEIGHTS_INT8 == (int)LEATI_WEIGHTS_INT8,
               "the public formats are those of the engine");

leat_status leat_weights_format_parse(leat_weights_format *out, const char *name, leat_error *err) {
    static const char *const names[] = {"f32", "bf16", "int8"};
    LEATI_GIVEN(out, err);
    *out = LEAT_WEIGHTS_F32;
    LEATI_GIVEN(name, err);
    for (int i = 0; i < (int)(sizeof names / sizeof *names); ++i)
        if (strcmp(names[i], name) == 0) {
            *out = (leat_weights_format)i;
            return LEAT_OK;
        }
    return leati_fail(err, LEAT_EINVAL, "format of weights: expected f32, bf16 or int8, received '%s'", name);
}

void leat_predictor_options_init(leat_predictor_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

/* ---- Inputs ---- */

static leat_status input_shape(const leat_predictor *p, const leat_predictor_options *options,
                               const bool *sequence, int i, leati_desc *out, leat_error *err) {
    leati_shape shape = leati_model_input_shape(p->model, i);
    if (options->inputs) {
        const leat_tensor *given = &options->inputs[i];
        *out = leati_desc_make(given->dtype, given->rank, given->shape);
    } else {
        shape.dims[0] = options->batch_size;
        if (options->streaming && sequence[i]) shape.dims[1] = 1;
        *out = leati_desc_make(LEAT_F32, shape.rank, shape.dims);
    }
    if (leat_dtype_bytes(out->dtype) == 0)
        return leati_fail(err, LEAT_EDTYPE, "input '%s': unknown data type %d",
                          leati_model_input_name(p->model, i), (int)out->dtype);
    bool known = out->rank > 0 && out->rank <= LEAT_MAX_RANK;
    for (int j = 0; known && j < out->rank; ++j) known = out->shape[j] > 0;
    known = known && out->shape[0] == options->batch_size;
    if (known && options->streaming && sequence[i]) known = out->rank > 1 && out->shape[1] == 1;
    if (known) return LEAT_OK;
    char text[LEATI_SHAPE_TEXT_BYTES];
    return leati_fail(err, LEAT_ESHAPE,
                      "input '%s': expected a complete shape with first dimension %lld%s, received %s%s",
                      leati_model_input_name(p->model, i), (long long)options->batch_size,
                      options->streaming && sequence[i] ? " and one step" : "",
                      leati_shape_text(text, sizeof text, out->rank, out->shape),
                      options->inputs ? "" : ": give the shape in the options' inputs");
}

static bool is_countable(const leati_desc *desc) {
    int64_t room = INT64_MAX / 8; /* 8: bytes of the largest type */
    for (int i = 0; i < desc->rank; ++i) room /= desc->shape[i];
    return room > 0;
}

static leat_status describe_inputs(leat_predictor *p, const leat_predictor_options *options, bool *sequence,
                                   leat_error *err) {
    p->spec = (leati_program_spec){.mode = LEATI_PREDICT, .input_count = p->input_count};
    if (options->streaming) LEATI_TRY(leati_stepwise_inputs(p->model, sequence, err));
    for (int i = 0; i < p->input_count; ++i) {
        leati_desc *desc = &p->spec.inputs[i];
        LEATI_TRY(input_shape(p, options, sequence, i, desc, err));
        p->input_bytes[i] = is_countable(desc) ? leati_desc_bytes(desc) : SIZE_MAX;
        LEATI_TRY(leati_prefix(leati_predictor_allocate(p, p->input_bytes[i], &p->inputs[i], err), err,
                               "input '%s'", leati_model_input_name(p->model, i)));
    }
    return LEAT_OK;
}

/* ---- Creating ---- */

static leat_status compile(leat_predictor *p, const leat_predictor_options *options, leat_error *err) {
    bool sequence[LEATI_PROGRAM_MAX_OUTPUTS] = {0};
    leati_plan_options plan_options = leati_plan_options_of(p->model, options->threads, p->arena);
    plan_options.weights_format = (leati_weights_format)options->weights_format;
    plan_options.samples = options->batch_size;
    LEATI_TRY(describe_inputs(p, options, sequence, err));
    p->spec.on_host = !p->device;
    LEATI_TRY(leati_program_build_carrying(p->model, &p->spec, &p->carry, sequence, &p->program, err));
    void *states = NULL;
    LEATI_TRY(leati_predictor_allocate(p, 2 * p->carry.bytes, &states, err));
    p->states = states;
    plan_options.slabs[LEATI_SLAB_WEIGHTS] = p->copy->weights;
    plan_options.slabs[LEATI_SLAB_STATES] = p->states;
    if (p->device) LEATI_TRY(leati_predictor_place_slabs(p, plan_options.slabs, err));
    return leati_plan_create(&p->plan, &p->program.graph, &plan_options, err);
}

static void find_outputs(leat_predictor *p) {
    p->aliases_inputs = false;
    for (int i = 0; i < p->output_count; ++i) {
        p->outputs[i] = leati_plan_output(p->plan, p->program.predictions[i]);
        for (int j = 0; j < p->input_count; ++j)
            p->aliases_inputs = p->aliases_inputs || p->outputs[i].data == p->inputs[j];
    }
}

/* Packing may overwrite the states, so they are saved in the second half of their memory and restored afterwards. */
static leat_status adopt(leat_predictor *p, leati_copy *copy, leat_error *err) {
    unsigned char *kept = p->states + p->carry.bytes;
    const void *inputs[LEATI_PROGRAM_MAX_OUTPUTS];
    for (int i = 0; i < p->input_count; ++i) inputs[i] = p->inputs[i];
    leat_status status = LEAT_OK;
    memcpy(kept, p->states, p->carry.bytes);
    if (p->device) {
        status = leati_predictor_adopt_on_device(p, copy, inputs, err);
    } else {
        leati_publication_lock(&copy->packing);
        status = leati_plan_adopt(p->plan, copy->weights, copy->packs, copy->number, inputs, err);
        leati_publication_unlock(&copy->packing);
    }
    memcpy(p->states, kept, p->carry.bytes);
    find_outputs(p);
    return status;
}

static leat_status check(const leat_model *model, const leat_predictor_options *options, leat_error *err) {
    if (options->batch_size < 1)
        return leati_fail(err, LEAT_EINVAL, "batch_size: expected at least 1, received %lld",
                          (long long)options->batch_size);
    if (options->threads < 1)
        return leati_fail(err, LEAT_EINVAL, "threads: expected at least 1, received %d", options->threads);
    if ((int)options->weights_format < LEAT_WEIGHTS_F32 || options->weights_format > LEAT_WEIGHTS_INT8)
        return leati_fail(err, LEAT_EINVAL,
                          "weights_format: expected LEAT_WEIGHTS_F32, _BF16 or _INT8, received %d",
                          (int)options->weights_format);
    return leati_network_check_counts(model, err);
}

/* Opens the device with a name; NULL or "cpu": none. */
static leat_status open_device(leat_predictor *p, const leat_predictor_options *options, const char *name,
                               leat_error *err) {
    if (!name || strcmp(name, "cpu") == 0) return LEAT_OK;
    LEATI_TRY(leati_device_open(name, leati_launcher_place(), &p->device, err));
    p->device->tf32 = p->model->tf32 && p->device->has_tf32;
    if (options->weights_format == LEAT_WEIGHTS_F32) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP, "weights_format: a predictor on a GPU keeps its weights in f32");
}

static leat_status create(leat_predictor *p, leat_model *model, const leat_predictor_options *options,
                          const char *device, leat_error *err) {
    LEATI_TRY(check(model, options, err));
    atomic_fetch_add(&model->holders, 1);
    p->model = model;
    p->batch_size = options->batch_size;
    p->input_count = model->input_count;
    p->output_count = model->output_count;
    LEATI_TRY(leati_publication_of(model, &p->publication, err));
    p->copy = leati_publication_newest(p->publication);
    LEATI_TRY(open_device(p, options, device, err));
    LEATI_TRY(leati_arena_create_on(&p->arena, p->device, err));
    LEATI_TRY(compile(p, options, err));
    LEATI_TRY(adopt(p, p->copy, err));
    for (int i = 0; i < p->output_count; ++i) p->output_bytes[i] = leat_tensor_bytes(&p->outputs[i]);
    return LEAT_OK;
}

leat_status leati_predictor_make(leat_predictor **out, leat_model *model,
                                 const leat_predictor_options *options, const char *device, leat_error *err) {
    leat_predictor *p = leati_calloc(1, sizeof *p);
    if (!p) return leati_fail_memory(err, sizeof *p, "a predictor");
    leat_status status = create(p, model, options, device, err);
    if (status != LEAT_OK) {
        leat_predictor_destroy(&p);
        return leati_prefix(status, err, "model '%s'", model->name);
    }
    *out = p;
    return LEAT_OK;
}

leat_status leat_predictor_create(leat_predictor **out, leat_model *model,
                                  const leat_predictor_options *options, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    leat_predictor_options all;
    LEATI_TRY(leati_growing_read(&options_type, options, &all, err));
    if (all.device && strcmp(all.device, "auto") == 0)
        return leati_predictor_make_faster(out, model, &all, err);
    return leati_predictor_make(out, model, &all, all.device, err);
}

const char *leat_predictor_device(const leat_predictor *predictor) {
    if (!predictor) return NULL;
    return predictor->device ? predictor->device->name : "cpu";
}

void leat_predictor_destroy(leat_predictor **predictor) {
    if (!predictor || !*predictor) return;
    leat_predictor *p = *predictor;
    leati_plan_destroy(&p->plan);
    leati_graph_destroy(&p->program.graph);
    leati_arena_destroy(&p->arena);
    leati_carry_fini(&p->carry);
    if (p->copy) leati_publication_release(p->publication, p->copy);
    for (int i = 0; i < p->input_count; ++i) leati_predictor_release(p, p->inputs[i]);
    leati_predictor_release(p, p->states);
    leati_predictor_leave_device(p);
    leat_model_destroy(&p->model);
    leati_free(p);
    *predictor = NULL;
}

/* ---- Running ---- */

leat_tensor leat_predictor_input(const leat_predictor *predictor, int index) {
    if (!predictor || index < 0 || index >= predictor->input_count) return (leat_tensor){0};
    const leati_desc *desc = &predictor->spec.inputs[index];
    return leat_tensor_view(desc->dtype, desc->rank, desc->shape, predictor->inputs[index]);
}

leat_tensor leat_predictor_output(const leat_predictor *predictor, int index) {
    return !predictor || index < 0 || index >= predictor->output_count ? (leat_tensor){0}
                                                                       : predictor->outputs[index];
}

leat_status leat_predictor_input_into(const leat_predictor *predictor, int index, leat_tensor *out,
                                      leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    LEATI_GIVEN(predictor, err);
    if (index < 0 || index >= predictor->input_count)
        return leati_fail_index(err, "predictor's input", index, predictor->input_count);
    *out = leat_predictor_input(predictor, index);
    return LEAT_OK;
}

leat_status leat_predictor_output_into(const leat_predictor *predictor, int index, leat_tensor *out,
                                       leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    LEATI_GIVEN(predictor, err);
    if (index < 0 || index >= predictor->output_count)
        return leati_fail_index(err, "predictor's output", index, predictor->output_count);
    *out = leat_predictor_output(predictor, index);
    return LEAT_OK;
}

leat_status leat_predictor_run(leat_predictor *predictor, const void *const *inputs, void *const *outputs,
                               leat_error *err) {
    LEATI_GIVEN(predictor, err);
    const void *bound[LEATI_PROGRAM_MAX_OUTPUTS];
    for (int i = 0; i < predictor->input_count; ++i)
        bound[i] = inputs && inputs[i] ? inputs[i] : predictor->inputs[i];
    LEATI_TRY(predictor->device ? leati_predictor_run_on_device(predictor, bound, err)
                                : leati_plan_run(predictor->plan, bound, 0, 0, err));
    for (int i = 0; predictor->aliases_inputs && i < predictor->output_count; ++i)
        predictor->outputs[i] = leati_plan_output(predictor->plan, predictor->program.predictions[i]);
    for (int i = 0; outputs && i < predictor->output_count; ++i)
        if (outputs[i]) memcpy(outputs[i], predictor->outputs[i].data, predictor->output_bytes[i]);
    return LEAT_OK;
}

static leat_status check_tensor(const char *side, int i, const leat_tensor *want, const leat_tensor *given,
                                leat_error *err) {
    char expected[96], received[96];
    int rank = given->rank < 0 || given->rank > LEAT_MAX_RANK ? 0 : given->rank;
    bool same = given->rank == want->rank;
    for (int j = 0; same && j < rank; ++j) same = given->shape[j] == want->shape[j];
    if (same && given->dtype == want->dtype) return LEAT_OK;
    return leati_fail(err, given->dtype == want->dtype ? LEAT_ESHAPE : LEAT_EDTYPE,
                      "%s %d: expected %s of shape %s, received %s of shape %s", side, i,
                      leat_dtype_name(want->dtype),
                      leati_shape_text(expected, sizeof expected, want->rank, want->shape),
                      leat_dtype_name(given->dtype),
                      leati_shape_text(received, sizeof received, rank, given->shape));
}

leat_status leat_predictor_run_into(leat_predictor *predictor, const leat_tensor *inputs,
                                    const leat_tensor *outputs, leat_error *err) {
    LEATI_GIVEN(predictor, err);
    const void *in[LEATI_PROGRAM_MAX_OUTPUTS] = {0};
    void *out[LEATI_PROGRAM_MAX_OUTPUTS] = {0};
    for (int i = 0; inputs && i < predictor->input_count; ++i) {
        const leat_tensor want = leat_predictor_input(predictor, i);
        in[i] = inputs[i].data;
        if (in[i]) LEATI_TRY(check_tensor("input", i, &want, &inputs[i], err));
    }
    for (int i = 0; outputs && i < predictor->output_count; ++i) {
        out[i] = outputs[i].data;
        if (out[i]) LEATI_TRY(check_tensor("output", i, &predictor->outputs[i], &outputs[i], err));
    }
    return leat_predictor_run(predictor, in, out, err);
}

/* ---- Weights ---- */

leat_status leat_predictor_sync(leat_predictor *predictor, leat_error *err) {
    LEATI_GIVEN(predictor, err);
    if (atomic_load_explicit(&predictor->publication->number, memory_order_acquire) ==
        predictor->copy->number)
        return LEAT_OK;
    leati_copy *newest = leati_publication_newest(predictor->publication), *before = predictor->copy;
    leat_status status = LEAT_OK;
    if (newest->layout != before->layout)
        status = leati_fail(err, LEAT_EINVAL,
                            "model '%s' was compiled again with other layers frozen: create the predictor "
                            "again",
                            predictor->model->name);
    if (status == LEAT_OK) {
        status = adopt(predictor, newest, err);
        if (status != LEAT_OK) adopt(predictor, before, NULL); /* its weights are already packed */
    }
    if (status == LEAT_OK) predictor->copy = newest;
    leati_publication_release(predictor->publication, status == LEAT_OK ? before : newest);
    return status;
}

uint64_t leat_predictor_version(const leat_predictor *predictor) {
    return predictor ? predictor->copy->number : 0;
}

int64_t leat_predictor_narrow_weights(const leat_predictor *predictor) {
    return predictor ? leati_plan_narrow_weights(predictor->plan) : 0;
}

/* ---- States ---- */

void leat_predictor_reset(leat_predictor *predictor) {
    if (!predictor) return;
    memset(predictor->states, 0, predictor->carry.bytes);
}

void leat_predictor_reset_sample(leat_predictor *predictor, int64_t sample) {
    if (!predictor || sample < 0 || sample >= predictor->batch_size) return;
    for (int32_t i = 0; i < predictor->carry.count; ++i) {
        const leati_carried *state = &predictor->carry.items[i];
        size_t bytes = leati_desc_bytes(&state->desc) / (size_t)predictor->batch_size;
        memset(predictor->states + state->offset_bytes + (size_t)sample * bytes, 0, bytes);
    }
}

size_t leat_predictor_state_bytes(const leat_predictor *predictor) {
    return predictor ? predictor->carry.bytes : 0;
}

void leat_predictor_save(const leat_predictor *predictor, void *state) {
    if (!predictor || !state) return;
    memcpy(state, predictor->states, predictor->carry.bytes);
}

void leat_predictor_restore(leat_predictor *predictor, const void *state) {
    if (!predictor || !state) return;
    memcpy(predictor->states, state, predictor->carry.bytes);
}

leat_tensor leat_predictor_state(const leat_predictor *predictor, const char *layer, int index) {
    if (!predictor || !layer) return (leat_tensor){0};
    for (int32_t i = 0; i < predictor->carry.count; ++i) {
        const leati_carried *state = &predictor->carry.items[i];
        if (state->index == index && strcmp(state->layer->name, layer) == 0)
            return leat_tensor_view(LEAT_F32, state->desc.rank, state->desc.shape,
                                    predictor->states + state->offset_bytes);
    }
    return (leat_tensor){0};
}

leat_status leat_predictor_state_into(const leat_predictor *predictor, const char *layer, int index,
                                      leat_tensor *out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    LEATI_GIVEN(predictor, err);
    LEATI_GIVEN(layer, err);
    *out = leat_predictor_state(predictor, layer, index);
    return out->data ? LEAT_OK : leati_fail(err, LEAT_ENOTFOUND, "layer '%s' has no state %d", layer, index);
}
