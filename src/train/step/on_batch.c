/* SPDX-License-Identifier: Apache-2.0 */
/* train_on_batch, test_on_batch, predict_on_batch: one step on arrays in the caller's memory.  Room: train. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "leat/train.h"
#include "tensor/strided.h"
#include "train/step/binding.h"
#include "train/step/meter.h"
#include "train/step/predictions.h"
#include "train/step/trainer.h"

static const leat_on_batch_options defaults = {.reset_metrics = true};
static const leati_growing options_type = LEATI_GROWING(leat_on_batch_options, unused, &defaults);

void leat_on_batch_options_init(leat_on_batch_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

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

static leat_status run_bound(leat_model *model, leati_binding *binding, const leat_arrays *arrays,
                             leat_batch *batch, const leati_compiled_step **step, leat_error *err) {
    leati_trainer *trainer = NULL;
    leati_program_spec shapes;
    const void *pointers[3 * LEATI_PROGRAM_MAX_OUTPUTS];
    LEATI_TRY(leati_trainer_of(model, &trainer, err));
    LEATI_TRY(gather(arrays, trainer, batch, err));
    LEATI_TRY(leati_binding_apply(binding, batch, &shapes, pointers, err));
    LEATI_TRY(leati_trainer_step(trainer, &shapes, leati_trainer_threads(trainer), step, err));
    return leati_trainer_run(trainer, *step, pointers, model->seed, err);
}

/* `classes` NULL: no class has a weight of its own. */
static leat_status run(leat_model *model, leati_mode mode, const leat_arrays *arrays,
                       const leati_class_weights *classes, const leati_compiled_step **step, int64_t *size,
                       leat_error *err) {
    leat_batch_spec spec = {0};
    leat_batch batch = {0};
    leati_binding binding;
    LEATI_TRY(describe(arrays, &spec, &batch, err));
    LEATI_TRY(leati_binding_init(&binding, model, &spec, mode, err));
    leat_status status = classes ? leati_binding_set_class_weights(&binding, &spec, classes, err) : LEAT_OK;
    if (status == LEAT_OK) status = run_bound(model, &binding, arrays, &batch, step, err);
    if (status == LEAT_OK) *size = batch.size;
    leati_binding_fini(&binding);
    return status;
}

/* ---- Metrics ---- */

/* The sums of the metrics since the last reset.  They are those of one version of the compiled model. */
typedef struct running {
    leati_meter meter;
    uint64_t version;
} running;

static void running_destroy(void *data) {
    running *r = data;
    leati_meter_fini(&r->meter);
    leati_free(r);
}

static void forget(leati_kept *kept) {
    if (kept->data) kept->destroy(kept->data);
    *kept = (leati_kept){0};
}

/* Gets the model's sums; they begin anew if the model has been compiled again. */
static leat_status running_of(leat_model *model, running **out, leat_error *err) {
    leati_trainer *trainer = NULL;
    LEATI_TRY(leati_trainer_of(model, &trainer, err));
    leati_kept *kept = leati_trainer_kept(trainer);
    running *r = kept->data;
    if (r && r->version != model->version) forget(kept);
    if (!kept->data) {
        r = leati_calloc(1, sizeof *r);
        if (!r) return leati_fail_memory(err, sizeof *r, "the metrics' sums");
        *kept = (leati_kept){r, running_destroy};
        r->version = model->version;
        LEATI_TRY(leati_meter_init(&r->meter, model, err));
    }
    *out = kept->data;
    return LEAT_OK;
}

void leat_model_reset_metrics(leat_model *model) {
    if (!model || !model->session) return;
    leati_kept *kept = leati_trainer_kept(model->session);
    running *r = kept->data;
    if (r) leati_meter_reset(&r->meter);
}

/* Adds the batch to the sums and writes the logs.  In Keras 2.3.1 the means of losses are over batches, and the whole
 * loss is that of the batch; in current Keras all are means over samples. */
static leat_status log_batch(leat_model *model, const leati_compiled_step *step, int64_t size, bool resets,
                             leat_logs *logs, leat_error *err) {
    const bool modern = model->compiled.as_keras3;
    running *r = NULL;
    LEATI_TRY(running_of(model, &r, err));
    leat_status status = leati_meter_add(&r->meter, model, step, modern ? size : 1, err);
    if (status == LEAT_OK && logs) {
        leati_meter_logs(&r->meter, model, "", logs);
        if (!modern) leat_logs_set(logs, "loss", r->meter.last_loss);
    }
    if (resets || status != LEAT_OK) leati_meter_reset(&r->meter);
    return status;
}

static leat_status measure(leat_model *model, leati_mode mode, const leat_arrays *arrays,
                           const leat_on_batch_options *given, leat_logs *logs, leat_error *err) {
    const leati_compiled_step *step = NULL;
    leat_on_batch_options options;
    int64_t size = 0;
    if (logs) *logs = (leat_logs){0};
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(arrays, err);
    LEATI_TRY(leati_growing_read(&options_type, given, &options, err));
    if (!model->compiled.ready)
        return leati_fail(err, LEAT_EINVAL, "the model must be compiled before training: leat_model_compile");
    const leati_class_weights classes = {options.class_weight, options.class_weight_count,
                                         options.output_class_weights, options.output_class_weight_count};
    if (mode == LEATI_TEST && (classes.count > 0 || classes.output_count > 0))
        return leati_fail(err, LEAT_EINVAL,
                          "class_weight: expected none, since class weights are for training only; sample "
                          "weights also have an effect in an evaluation");
    LEATI_TRY(run(model, mode, arrays, &classes, &step, &size, err));
    if (!logs && options.reset_metrics) {
        leat_model_reset_metrics(model);
        return LEAT_OK;
    }
    return log_batch(model, step, size, options.reset_metrics, logs, err);
}

leat_status leat_model_train_on_batch(leat_model *model, const leat_arrays *arrays, leat_logs *logs,
                                      leat_error *err) {
    return measure(model, LEATI_TRAIN, arrays, NULL, logs, err);
}

leat_status leat_model_train_on_batch_using(leat_model *model, const leat_arrays *arrays,
                                            const leat_on_batch_options *options, leat_logs *logs,
                                            leat_error *err) {
    return measure(model, LEATI_TRAIN, arrays, options, logs, err);
}

leat_status leat_model_test_on_batch(leat_model *model, const leat_arrays *arrays, leat_logs *logs,
                                     leat_error *err) {
    return measure(model, LEATI_TEST, arrays, NULL, logs, err);
}

leat_status leat_model_test_on_batch_using(leat_model *model, const leat_arrays *arrays,
                                           const leat_on_batch_options *options, leat_logs *logs,
                                           leat_error *err) {
    return measure(model, LEATI_TEST, arrays, options, logs, err);
}

/* ---- Predictions ---- */

leat_status leat_model_predict_on_batch(leat_model *model, const leat_arrays *arrays, leat_tensor *outputs,
                                        leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(arrays, err);
    LEATI_GIVEN(outputs, err);
    const leati_compiled_step *step = NULL;
    int64_t size = 0;
    leat_arrays inputs = {.inputs = arrays->inputs, .input_count = arrays->input_count};
    LEATI_TRY(run(model, LEATI_PREDICT, &inputs, NULL, &step, &size, err));
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
    leat_status status = run(model, LEATI_PREDICT, &inputs, NULL, &step, &size, err);
    if (status == LEAT_OK) status = leati_predictions_append(made, step, size, err);
    for (int i = 0; status == LEAT_OK && i < model->output_count; ++i)
        if (outputs[i].data) outputs[i].shape[0] = size;
    leat_predictions_destroy(&made);
    return status;
}
