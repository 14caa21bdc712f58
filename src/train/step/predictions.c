/* SPDX-License-Identifier: Apache-2.0 */
/* Appends the predictions of batches to one tensor per output.  Room: train. */
#include "train/step/predictions.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

struct leat_predictions {
    int count;
    leat_tensor outputs[LEATI_PROGRAM_MAX_OUTPUTS];
    size_t capacity[LEATI_PROGRAM_MAX_OUTPUTS]; /* bytes */
    bool is_callers_memory; /* the caller owns the memory; data is NULL for an unwanted output */
    int64_t room[LEATI_PROGRAM_MAX_OUTPUTS]; /* size of the caller's memory in samples */
};

leat_status leati_predictions_create(leat_predictions **out, int output_count, leat_error *err) {
    *out = NULL;
    if (output_count > LEATI_PROGRAM_MAX_OUTPUTS)
        return leati_fail(err, LEAT_ENOTSUP, "expected a model with at most %d outputs, received %d",
                          LEATI_PROGRAM_MAX_OUTPUTS, output_count);
    *out = leati_calloc(1, sizeof **out);
    if (!*out) return leati_fail_memory(err, sizeof **out, "predictions");
    (*out)->count = output_count;
    return LEAT_OK;
}

static leat_status fail_room(int i, leat_dtype dtype, const leat_tensor *needed, const leat_tensor *given,
                             leat_error *err) {
    char want[96], got[96];
    int rank = given->rank < 0 || given->rank > LEAT_MAX_RANK ? 0 : given->rank;
    return leati_fail(err, dtype == given->dtype ? LEAT_ESHAPE : LEAT_EDTYPE,
                      "output %d: expected memory for %s of shape %s, received %s of shape %s", i,
                      leat_dtype_name(dtype),
                      leati_shape_text(want, sizeof want, needed->rank, needed->shape),
                      leat_dtype_name(given->dtype), leati_shape_text(got, sizeof got, rank, given->shape));
}

/* Returns true if memory of shape `given` has room for shape `needed`, in which -1 matches any dimension. */
static bool has_room(const leat_tensor *given, const leat_tensor *needed) {
    bool fits = given->rank == needed->rank && given->rank > 0 && given->shape[0] >= needed->shape[0];
    for (int i = 1; fits && i < given->rank; ++i)
        fits = given->shape[i] == needed->shape[i] || needed->shape[i] < 0;
    return fits;
}

leat_status leati_predictions_create_in(leat_predictions **out, const leat_model *model,
                                        const leat_tensor *outputs, int64_t samples, leat_error *err) {
    LEATI_TRY(leati_predictions_create(out, model->output_count, err));
    leat_status status = LEAT_OK;
    (*out)->is_callers_memory = true;
    for (int i = 0; status == LEAT_OK && i < model->output_count; ++i) {
        leat_tensor needed = leat_model_output_shape(model, i);
        needed.shape[0] = samples;
        (*out)->outputs[i] = outputs[i];
        if (!outputs[i].data) continue;
        if (!has_room(&outputs[i], &needed)) {
            status = fail_room(i, outputs[i].dtype, &needed, &outputs[i], err);
            continue;
        }
        (*out)->room[i] = outputs[i].shape[0];
        (*out)->outputs[i].shape[0] = 0;
    }
    if (status != LEAT_OK) leat_predictions_destroy(out);
    return status;
}

/* Appends a batch of output i in the caller's memory. */
static leat_status append_to_callers_memory(leat_predictions *p, int i, const leat_tensor *more,
                                            leat_error *err) {
    leat_tensor *all = &p->outputs[i], given = *all, needed = *more;
    if (!all->data) return LEAT_OK;
    given.shape[0] = p->room[i];
    needed.shape[0] += all->shape[0];
    if (given.dtype != more->dtype || !has_room(&given, &needed))
        return fail_room(i, more->dtype, &needed, &given, err);
    memcpy((char *)all->data + leat_tensor_bytes(all), more->data, leat_tensor_bytes(more));
    all->shape[0] = needed.shape[0];
    return LEAT_OK;
}

static leat_status check_samples(const leat_tensor *old, const leat_tensor *more, leat_error *err) {
    bool same = old->rank == more->rank;
    for (int i = 1; same && i < old->rank; ++i) same = old->shape[i] == more->shape[i];
    if (same) return LEAT_OK;
    return leati_fail(
        err, LEAT_ESHAPE,
        "predictions of different shapes cannot be joined: expected batches whose samples have one "
        "shape; predict each shape by itself");
}

static leat_status reserve(leat_predictions *p, int i, size_t bytes, leat_error *err) {
    if (bytes <= p->capacity[i]) return LEAT_OK;
    size_t capacity = p->capacity[i] ? p->capacity[i] : bytes;
    while (capacity < bytes) capacity *= 2;
    void *data = leati_realloc(p->outputs[i].data, capacity, 1);
    if (!data) return leati_fail_memory(err, capacity, "predictions");
    p->outputs[i].data = data;
    p->capacity[i] = capacity;
    return LEAT_OK;
}

static leat_status append(leat_predictions *p, int i, const leat_tensor *more, leat_error *err) {
    leat_tensor *all = &p->outputs[i];
    size_t used = 0;
    if (p->capacity[i]) {
        LEATI_TRY(check_samples(all, more, err));
        used = leat_tensor_bytes(all);
    }
    LEATI_TRY(reserve(p, i, used + leat_tensor_bytes(more), err));
    memcpy((char *)all->data + used, more->data, leat_tensor_bytes(more));
    int64_t samples = used ? all->shape[0] : 0;
    *all = leat_tensor_view(more->dtype, more->rank, more->shape, all->data);
    all->shape[0] += samples;
    return LEAT_OK;
}

leat_status leati_predictions_append_samples(leat_predictions *predictions, int i, const leat_tensor *samples,
                                             leat_error *err) {
    return predictions->is_callers_memory ? append_to_callers_memory(predictions, i, samples, err)
                                          : append(predictions, i, samples, err);
}

leat_status leati_predictions_check(int i, const leat_tensor *samples, int64_t size, leat_error *err) {
    if (samples->rank >= 1 && samples->shape[0] == size) return LEAT_OK;
    return leati_fail(err, LEAT_ESHAPE, "output %d: expected %lld samples along the first dimension", i,
                      (long long)size);
}

leat_status leati_predictions_append(leat_predictions *predictions, const leati_compiled_step *step,
                                     int64_t size, leat_error *err) {
    for (int i = 0; i < predictions->count; ++i) {
        leat_tensor output = leati_plan_output(step->plan, step->program.predictions[i]);
        LEATI_TRY(leati_predictions_check(i, &output, size, err));
        LEATI_TRY(leati_predictions_append_samples(predictions, i, &output, err));
    }
    return LEAT_OK;
}

int leat_predictions_count(const leat_predictions *predictions) {
    return predictions ? predictions->count : 0;
}

leat_tensor leat_predictions_get(const leat_predictions *predictions, int output) {
    return !predictions || output < 0 || output >= predictions->count ? (leat_tensor){0}
                                                                      : predictions->outputs[output];
}

leat_status leat_predictions_get_into(const leat_predictions *predictions, int output, leat_tensor *out,
                                      leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    LEATI_GIVEN(predictions, err);
    if (output < 0 || output >= predictions->count)
        return leati_fail_index(err, "output", output, predictions->count);
    *out = predictions->outputs[output];
    return LEAT_OK;
}

void leat_predictions_destroy(leat_predictions **predictions) {
    if (!predictions || !*predictions) return;
    for (int i = 0; !(*predictions)->is_callers_memory && i < (*predictions)->count; ++i)
        leati_free((*predictions)->outputs[i].data);
    leati_free(*predictions);
    *predictions = NULL;
}
