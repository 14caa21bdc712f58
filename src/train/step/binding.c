/* SPDX-License-Identifier: Apache-2.0 */
/* Matches the tensors of batches with a model, and applies class weights.  Room: train. */
#include "train/step/binding.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/number.h"
#include "train/step/check.h"

/* The side of the model that one part of a batch is matched with: its inputs, or its outputs with a loss. */
typedef struct side {
    leat_batch_part part;
    const char *noun, *nouns; /* "input", "inputs" */
    int32_t count;
    int32_t indices[LEATI_PROGRAM_MAX_OUTPUTS]; /* indices of the inputs or outputs in the model */
    const char *(*name)(const leat_model *model, int index);
} side;

static side inputs_of(const leat_model *model) {
    side s = {LEAT_PART_INPUT, "input", "inputs", model->input_count, {0}, leati_model_input_name};
    for (int32_t i = 0; i < model->input_count; ++i) s.indices[i] = i;
    return s;
}

static side outputs_of(const leat_model *model, leat_batch_part part) {
    side s = {part, "output with a loss", "outputs with a loss", 0, {0}, leati_model_output_name};
    for (int32_t i = 0; i < model->output_count; ++i)
        if (model->compiled.losses[i].type) s.indices[s.count++] = i;
    return s;
}

static int find_named(const leat_batch_spec *spec, int first, int count, const char *name) {
    for (int i = 0; i < count; ++i)
        if (strcmp(spec->tensors[first + i].name, name) == 0) return first + i;
    return -1;
}

/* Matches by name if the data has all of the model's names, by position if it has none.  It is an error if the
 * data has only some of the names, since either rule could then match the wrong tensors. */
static leat_status match(const leat_model *model, const side *s, const leat_batch_spec *spec,
                         int32_t *tensors, leat_error *err) {
    int first = leat_batch_spec_first(spec, s->part), count = leat_batch_spec_count(spec, s->part), found = 0;
    const char *missing = NULL;
    for (int i = 0; i < s->count; ++i) {
        const char *name = s->name(model, s->indices[i]);
        int at = find_named(spec, first, count, name);
        tensors[s->indices[i]] = at >= 0 ? at : first + i;
        if (at >= 0)
            ++found;
        else if (!missing)
            missing = name;
    }
    if (found == 0 || found == s->count) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "the data names only %d of its %d tensors as the model does, and '%s' is missing: name all of them "
        "as the model does, or none, and they are taken in the model's order",
        found, (int)s->count, missing);
}

static leat_status check_count(const side *s, const leat_batch_spec *spec, leat_error *err) {
    int count = leat_batch_spec_count(spec, s->part);
    if (count == s->count) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "the model has %d %s, the data gives %d", (int)s->count,
                      s->count == 1 ? s->noun : s->nouns, count);
}

/* Tells if a sample is one number: its shape is () or (1,), which Keras does not tell apart in data. */
static bool is_number(int rank, const int64_t *shape) {
    return rank == 0 || (rank == 1 && shape[0] == 1);
}

static leat_status check_input(const leat_model *model, int index, const leat_tensor_spec *tensor,
                               leat_error *err) {
    leati_shape want = leati_model_input_shape(model, index);
    if (is_number(want.rank - 1, want.dims + 1) && is_number(tensor->rank, tensor->shape)) return LEAT_OK;
    bool fits = want.rank == tensor->rank + 1;
    for (int i = 0; fits && i < tensor->rank; ++i)
        fits = want.dims[i + 1] < 0 || want.dims[i + 1] == tensor->shape[i];
    if (fits) return LEAT_OK;
    char expected[128], received[128];
    return leati_fail(err, LEAT_ESHAPE, "input '%s': expected samples of shape %s, received %s",
                      leati_model_input_name(model, index),
                      leati_shape_text(expected, sizeof expected, want.rank - 1, want.dims + 1),
                      leati_shape_text(received, sizeof received, tensor->rank, tensor->shape));
}

static leat_status bind_inputs(leati_binding *binding, const leat_model *model, const leat_batch_spec *spec,
                               leat_error *err) {
    side inputs = inputs_of(model);
    LEATI_TRY(check_count(&inputs, spec, err));
    LEATI_TRY(leati_prefix(match(model, &inputs, spec, binding->inputs, err), err, "inputs"));
    for (int i = 0; i < model->input_count; ++i)
        LEATI_TRY(check_input(model, i, &spec->tensors[binding->inputs[i]], err));
    binding->input_count = model->input_count;
    return LEAT_OK;
}

/* Matches the outputs that have a loss.  Data with a tensor for each output fits as well, as in Keras: those of the
 * outputs without a loss are not used. */
static leat_status bind_outputs(int32_t *tensors, const leat_model *model, leat_batch_part part,
                                const leat_batch_spec *spec, leat_error *err) {
    side with_loss = outputs_of(model, part), all = with_loss;
    if (with_loss.count == 0 || leat_batch_spec_count(spec, part) != model->output_count) {
        LEATI_TRY(check_count(&with_loss, spec, err));
        return match(model, &with_loss, spec, tensors, err);
    }
    all.count = model->output_count;
    for (int32_t i = 0; i < all.count; ++i) all.indices[i] = i;
    LEATI_TRY(match(model, &all, spec, tensors, err));
    for (int32_t i = 0; i < all.count; ++i)
        if (!model->compiled.losses[i].type) tensors[i] = -1;
    return LEAT_OK;
}

static leat_status bind_targets(leati_binding *binding, const leat_model *model, const leat_batch_spec *spec,
                                leat_error *err) {
    LEATI_TRY(
        leati_prefix(bind_outputs(binding->targets, model, LEAT_PART_TARGET, spec, err), err, "targets"));
    binding->target_count = model->output_count;
    if (leat_batch_spec_count(spec, LEAT_PART_SAMPLE_WEIGHT) == 0) return LEAT_OK;
    return leati_prefix(bind_outputs(binding->weights, model, LEAT_PART_SAMPLE_WEIGHT, spec, err), err,
                        "sample weights");
}

leat_status leati_binding_init(leati_binding *binding, const leat_model *model, const leat_batch_spec *spec,
                               leati_mode mode, leat_error *err) {
    *binding = (leati_binding){.mode = mode, .model = model, .batch_size = spec->batch_size};
    for (int i = 0; i < LEATI_PROGRAM_MAX_OUTPUTS; ++i) binding->targets[i] = binding->weights[i] = -1;
    LEATI_TRY(leati_network_check_counts(model, err));
    LEATI_TRY(bind_inputs(binding, model, spec, err));
    return mode == LEATI_PREDICT ? LEAT_OK : bind_targets(binding, model, spec, err);
}

/* Returns the number of classes that a target can have: the columns of a one-hot target or, if the target is a
 * class number, the units of the output.  Returns 0 if unknown: a target for an output of one unit may be any
 * number. */
static int64_t class_count(const leati_binding *binding, int output, const leat_tensor_spec *target) {
    const leati_shape shape = leati_model_output_shape(binding->model, output);
    const int64_t columns = target->rank == 1 ? target->shape[0] : 1;
    const int64_t width = shape.rank > 0 ? shape.dims[shape.rank - 1] : 1;
    if (columns > 1) return columns;
    return width > 1 ? width : 0;
}

static leat_status check_class_weight(const leati_binding *binding, int output,
                                      const leat_class_weight *weights, int count, int64_t classes,
                                      leat_error *err) {
    for (int i = 0; i < count; ++i) {
        const long long number = (long long)weights[i].class_index;
        if (classes > 0 && (number < 0 || number >= classes))
            return leati_fail(err, LEAT_EINVAL, "class_weight lists class %lld, output '%s' has 0 to %lld",
                              number, leati_model_output_name(binding->model, output),
                              (long long)classes - 1);
        if (!isfinite(weights[i].weight))
            return leati_fail(err, LEAT_EINVAL,
                              "class_weight: expected a finite weight for class %lld, received %g", number,
                              weights[i].weight);
        for (int j = 0; j < i; ++j)
            if (weights[j].class_index == number)
                return leati_fail(err, LEAT_EINVAL, "class_weight lists class %lld twice", number);
    }
    return LEAT_OK;
}

static leat_status set_classes(leati_binding *binding, int output, const leat_batch_spec *spec,
                               const leat_class_weight *weights, int count, leat_error *err) {
    leati_output_classes *classes = &binding->classes[output];
    LEATI_TRY(leati_check_list(weights, count, "class_weight", err));
    if (count == 0) return LEAT_OK;
    LEATI_TRY(check_class_weight(binding, output, weights, count,
                                 class_count(binding, output, &spec->tensors[binding->targets[output]]),
                                 err));
    if (!classes->factors)
        classes->factors = leati_calloc((size_t)binding->batch_size, sizeof *classes->factors);
    if (!classes->factors) return leati_fail_memory(err, (size_t)binding->batch_size * 4, "class weights");
    classes->weights = weights;
    classes->count = count;
    binding->has_classes = true;
    return LEAT_OK;
}

static leat_status find_output(const leati_binding *binding, const char *name, int *output, leat_error *err) {
    const char *names[LEATI_PROGRAM_MAX_OUTPUTS];
    if (!name)
        return leati_fail(err, LEAT_EINVAL, "class_weight: expected the name of an output, received NULL");
    for (*output = 0; *output < binding->target_count; ++*output) {
        names[*output] = leati_model_output_name(binding->model, *output);
        if (strcmp(names[*output], name) == 0 && binding->targets[*output] >= 0) return LEAT_OK;
    }
    const char *nearest = leati_nearest(name, names, (size_t)binding->target_count);
    return leati_fail(err, LEAT_EINVAL, "class_weight: the model has no output '%.80s' with a loss%s%s%s",
                      name, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

leat_status leati_binding_set_class_weights(leati_binding *binding, const leat_batch_spec *spec,
                                            const leati_class_weights *given, leat_error *err) {
    LEATI_TRY(leati_check_list(given->weights, given->count, "class_weight", err));
    LEATI_TRY(leati_check_list(given->outputs, given->output_count, "output_class_weights", err));
    if (given->count > 0 && given->output_count > 0)
        return leati_fail(err, LEAT_EINVAL, "expected class_weight or output_class_weights, received both");
    for (int i = 0; i < given->output_count; ++i) {
        const leat_output_class_weight *of = &given->outputs[i];
        int output = -1;
        LEATI_TRY(find_output(binding, of->output, &output, err));
        if (binding->classes[output].weights)
            return leati_fail(err, LEAT_EINVAL, "class_weight lists output '%.80s' twice", of->output);
        LEATI_TRY(leati_prefix(set_classes(binding, output, spec, of->weights, of->count, err), err,
                               "output '%s'", of->output));
    }
    if (given->count == 0) return LEAT_OK;
    if (binding->target_count != 1 || binding->targets[0] < 0)
        return leati_fail(
            err, LEAT_EINVAL,
            "class_weight: expected a model with one output, received a model with %d: give the "
            "weights of each output (output_class_weights; leat fit --class-weight "
            "'NAME=0:1,1:5;NAME=...')",
            (int)binding->target_count);
    return set_classes(binding, 0, spec, given->weights, given->count, err);
}

void leati_binding_fini(leati_binding *binding) {
    for (int i = 0; i < LEATI_PROGRAM_MAX_OUTPUTS; ++i) leati_free(binding->classes[i].factors);
    *binding = (leati_binding){0};
}

static double element(const leat_tensor *tensor, int64_t i) {
    return leati_number_at(tensor->dtype, tensor->data, i);
}

/* Returns the class of a target by Keras's rule: the argmax of a row of several columns, or the number in a single
 * column. */
static double class_of(const leat_tensor *target, int64_t sample, int64_t columns) {
    if (columns == 1) return element(target, sample);
    int64_t best = 0;
    for (int64_t c = 1; c < columns; ++c)
        if (element(target, sample * columns + c) > element(target, sample * columns + best)) best = c;
    return (double)best;
}

static leat_status weight_of(const leati_binding *binding, const leati_output_classes *classes,
                             double class_index, int64_t sample, double *weight, leat_error *err) {
    const bool modern = binding->model->compiled.as_keras3;
    const double number = modern ? nearbyint(class_index) : class_index;
    for (int i = 0; i < classes->count; ++i)
        if ((double)classes->weights[i].class_index == number) {
            *weight = classes->weights[i].weight;
            return LEAT_OK;
        }
    *weight = 1;
    if (modern) return LEAT_OK;
    return leati_fail_sample(err, LEAT_EINVAL, sample,
                             "class_weight must list all classes of the data: class %g is missing, which "
                             "sample %lld of the batch has",
                             class_index, (long long)sample);
}

static leat_status fill_class_factors(leati_binding *binding, int output, const leat_batch *batch,
                                      leat_error *err) {
    const leati_output_classes *classes = &binding->classes[output];
    const leat_tensor *target = &batch->tensors[binding->targets[output]];
    const leat_tensor *sample_weight =
        binding->weights[output] < 0 ? NULL : &batch->tensors[binding->weights[output]];
    if (target->rank > 2 || (sample_weight && sample_weight->rank != 1))
        return leati_fail(err, LEAT_ESHAPE,
                          "class_weight: expected targets of rank 1 or 2, and one sample weight per sample; "
                          "received targets of rank %d for output '%s'",
                          target->rank, leati_model_output_name(binding->model, output));
    int64_t columns = target->rank == 2 ? target->shape[1] : 1;
    for (int64_t i = 0; i < batch->size; ++i) {
        double weight = 0;
        LEATI_TRY(weight_of(binding, classes, class_of(target, i, columns), i, &weight, err));
        classes->factors[i] = (float)(sample_weight ? weight * element(sample_weight, i) : weight);
    }
    return LEAT_OK;
}

static leati_desc desc_of(const leat_tensor *tensor) {
    return leati_desc_make(tensor->dtype, tensor->rank, tensor->shape);
}

static leat_status check_target(const leati_binding *binding, int output, const leat_tensor *target,
                                leat_error *err) {
    const leati_shape shape = leati_model_output_shape(binding->model, output);
    const leati_output_loss *loss = &binding->model->compiled.losses[output];
    return leati_prefix(leati_loss_check_targets(loss, target, shape.dims[shape.rank - 1], err), err,
                        "target of output '%s'", leati_model_output_name(binding->model, output));
}

leat_status leati_binding_apply(leati_binding *binding, const leat_batch *batch, leati_program_spec *spec,
                                const void **pointers, leat_error *err) {
    memset(spec, 0, sizeof *spec); /* specs are compared as bytes, padding included */
    spec->mode = binding->mode;
    spec->input_count = binding->input_count;
    spec->target_count = binding->target_count;
    int bound = 0;
    for (int i = 0; i < binding->input_count; ++i) {
        spec->inputs[i] = desc_of(&batch->tensors[binding->inputs[i]]);
        if (leati_model_input_shape(binding->model, i).rank == 1) /* (N, 1) is (N) */
            spec->inputs[i] = leati_desc_make(spec->inputs[i].dtype, 1, spec->inputs[i].shape);
        pointers[bound++] = batch->tensors[binding->inputs[i]].data;
    }
    for (int i = 0; i < LEATI_PROGRAM_MAX_OUTPUTS; ++i) spec->targets[i].rank = spec->weights[i].rank = -1;
    for (int i = 0; i < binding->target_count; ++i) {
        if (binding->targets[i] < 0) continue;
        LEATI_TRY(check_target(binding, i, &batch->tensors[binding->targets[i]], err));
        spec->targets[i] = desc_of(&batch->tensors[binding->targets[i]]);
        pointers[bound++] = batch->tensors[binding->targets[i]].data;
    }
    for (int i = 0; i < binding->target_count; ++i) {
        if (binding->classes[i].count > 0) {
            LEATI_TRY(fill_class_factors(binding, i, batch, err));
            spec->weights[i] = leati_desc_make(LEAT_F32, 1, &batch->size);
            pointers[bound++] = binding->classes[i].factors;
            continue;
        }
        if (binding->weights[i] < 0) continue;
        spec->weights[i] = desc_of(&batch->tensors[binding->weights[i]]);
        pointers[bound++] = batch->tensors[binding->weights[i]].data;
    }
    return LEAT_OK;
}
