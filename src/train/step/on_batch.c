/* SPDX-License-Identifier: Apache-2.0 */
/* train_on_batch, test_on_batch, predict_on_batch: one step on arrays in the caller's memory.  Room: train. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "leat/train.h"
#include "tensor/strided.h"
#include "train/step/binding.h"
#include "train/step/meter.h"
#include "train/step/predictions.h"
#include "train/step/trainer.h"

static leat_status add_part(leat_batch_spec *spec, leat_batch *batch, leat_batch_part part,
                            const leat_array *arrays, int count, leat_error *err) {
    if (count < 0) return leati_fail(err, LEAT_EINVAL, "expected at least 0 arrays, received %d", count);
    if (!arrays && count > 0) return leati_fail(err, LEAT_EINVAL, "expected %d arrays, received NULL", count);
    for (int i = 0; i < count; ++i) {
        const leat_tensor *tensor = &arrays[i].tensor;
        if (!tensor->data)
            return leati_fail(err, LEAT_EINVAL,
                              "expected arrays with data, received an array whose data is NULL");
        if (tensor->rank < 1 || tensor->rank > LEAT_MAX_RANK || tensor->shape[0] < 1)
            return leati_fail(err, LEAT_ESHAPE,
                              "expected arrays with at least 1 sample along the first dimension");
        if (batch->size == 0) batch->size = tensor->shape[0];
        if (tensor->shape[0] != batch->size)
            return leati_fail(err, LEAT_ESHAPE,
                              "expected arrays with equal numbers of samples, received %lld and %lld",
                              (long long)batch->size, (long long)tensor->shape[0]);
        LEATI_TRY(leat_batch_spec_add(spec, part, arrays[i].name, tensor->dtype, tensor->rank - 1,
                                      tensor->shape + 1, err));
        batch->tensors[batch->tensor_count++] = *tensor;
    }
    return LEAT_OK;
}

static leat_status describe(const leat_arrays *arrays, leat_batch_spec *spec, leat_batch *batch,
                            leat_error *err) {
    LEATI_TRY(add_part(spec, batch, LEAT_PART_INPUT, arrays->inputs, arrays->input_count, err));
    LEATI_TRY(add_part(spec, batch, LEAT_PART_TARGET, arrays->targets, arrays->target_count, err));
    LEATI_TRY(add_part(spec, batch, LEAT_PART_SAMPLE_WEIGHT, arrays->sample_weights,
                       arrays->sample_weight_count, err));
    spec->batch_size = batch->size;
    return LEAT_OK;
}

/* Returns the array that tensor i of a batch was made from: inputs come first, then targets, then sample weights. */
static const leat_array *array_at(const leat_arrays *arrays, int i) {
    if (i < arrays->input_count) return &arrays->inputs[i];
    i -= arrays->input_count;
    return i < arrays->target_count ? &arrays->targets[i] : &arrays->sample_weights[i - arrays->target_count];
}

/* Returns true if a plan can read the array in the caller's memory: the array must be contiguous, row-major and
 * aligned. */
static bool is_readable(const leat_array *array) {
    const leat_tensor *tensor = &array->tensor;
    const size_t bytes = leat_dtype_bytes(tensor->dtype);
    const leati_strides strides = leati_strides_make(bytes, tensor->rank, tensor->shape, array->strides);
    return leati_strides_are_dense(&strides) && (uintptr_t)tensor->data % bytes == 0;
}

/* Replaces the tensors that a plan cannot read by copies in the trainer's memory. */
static leat_status gather(const leat_arrays *arrays, leati_trainer *trainer, leat_batch *batch,
                          leat_error *err) {
    size_t bytes = 0;
    for (int i = 0; i < batch->tensor_count; ++i)
        if (!is_readable(array_at(arrays, i))) bytes += leati_align(leat_tensor_bytes(&batch->tensors[i]));
    if (bytes == 0) return LEAT_OK;
    unsigned char *memory = NULL;
    LEATI_TRY(leati_trainer_reserve(trainer, bytes, &memory, err));
    for (int i = 0; i < batch->tensor_count; ++i) {
        const leat_array *array = array_at(arrays, i);
        if (is_readable(array)) continue;
        batch->tensors[i].data = memory;
        LEATI_TRY(leat_tensor_copy(&batch->tensors[i], &array->tensor, array->strides, err));
        memory += leati_align(leat_tensor_bytes(&batch->tensors[i]));
    }
    return LEAT_OK;
}

static leat_status run(leat_model *model, leati_mode mode, const leat_arrays *arrays,
                       const leati_compiled_step **step, int64_t *size, leat_error *err) {
    leat_batch_spec spec = {0};
    leat_batch batch = {0};
    leati_binding binding;
    leati_trainer *trainer = NULL;
    leati_program_spec shapes;
    const void *pointers[3 * LEATI_PROGRAM_MAX_OUTPUTS];
    LEATI_TRY(describe(arrays, &spec, &batch, err));
    LEATI_TRY(leati_binding_init(&binding, model, &spec, mode, err));
    LEATI_TRY(leati_trainer_of(model, &trainer, err));
    LEATI_TRY(gather(arrays, trainer, &batch, err));
    LEATI_TRY(leati_binding_apply(&binding, &batch, &shapes, pointers, err));
    LEATI_TRY(leati_trainer_step(trainer, &shapes, leati_trainer_threads(trainer), step, err));
    *size = batch.size;
    return leati_trainer_run(trainer, *step, pointers, model->seed, err);
}

static leat_status measure(leat_model *model, leati_mode mode, const leat_arrays *arrays, leat_logs *logs,
                           leat_error *err) {
    const leati_compiled_step *step = NULL;
    int64_t size = 0;
    if (logs) *logs = (leat_logs){0};
    if (!model->compiled.ready)
        return leati_fail(err, LEAT_EINVAL, "the model must be compiled before training: leat_model_compile");
    LEATI_TRY(run(model, mode, arrays, &step, &size, err));
    if (!logs) return LEAT_OK;
    leati_meter meter;
    leat_status status = leati_meter_init(&meter, model, err);
    if (status == LEAT_OK) status = leati_meter_add(&meter, model, step, size, err);
    if (status == LEAT_OK) leati_meter_logs(&meter, model, "", logs);
    leati_meter_fini(&meter);
    return status;
}

leat_status leat_model_train_on_batch(leat_model *model, const leat_arrays *arrays, leat_logs *logs,
                                      leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(arrays, err);
    return measure(model, LEATI_TRAIN, arrays, logs, err);
}

leat_status leat_model_test_on_batch(leat_model *model, const leat_arrays *arrays, leat_logs *logs,
                                     leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(arrays, err);
    return measure(model, LEATI_TEST, arrays, logs, err);
}

leat_status leat_model_predict_on_batch(leat_model *model, const leat_arrays *arrays, leat_tensor *outputs,
                                        leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(arrays, err);
    LEATI_GIVEN(outputs, err);
    const leati_compiled_step *step = NULL;
    int64_t size = 0;
    leat_arrays inputs = {.inputs = arrays->inputs, .input_count = arrays->input_count};
    LEATI_TRY(run(model, LEATI_PREDICT, &inputs, &step, &size, err));
    for (int i = 0; i < model->output_count; ++i)
        outputs[i] = leati_plan_output(step->plan, step->program.predictions[i]);
    return LEAT_OK;
}

leat_status leat_model_predict_on_batch_into(leat_model *model, const leat_arrays *arrays,
                                             leat_tensor *outputs, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(arrays, err);
    LEATI_GIVEN(outputs, err);
    const leati_compiled_step *step = NULL;
    leat_predictions *made = NULL;
    int64_t size = 0;
    leat_arrays inputs = {.inputs = arrays->inputs, .input_count = arrays->input_count};
    bool some = inputs.inputs && inputs.input_count > 0 && inputs.inputs[0].tensor.rank > 0;
    int64_t samples = some ? inputs.inputs[0].tensor.shape[0] : 0;
    LEATI_TRY(leati_predictions_create_in(&made, model, outputs, samples, err));
    leat_status status = run(model, LEATI_PREDICT, &inputs, &step, &size, err);
    if (status == LEAT_OK) status = leati_predictions_append(made, step, size, err);
    for (int i = 0; status == LEAT_OK && i < model->output_count; ++i)
        if (outputs[i].data) outputs[i].shape[0] = size;
    leat_predictions_destroy(&made);
    return status;
}
