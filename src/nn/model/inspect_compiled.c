/* SPDX-License-Identifier: Apache-2.0 */
/* Public functions that show what a model was compiled with, and the optimizer's state.  Room: nn. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "json/json.h"
#include "leat/inspect.h"
#include "nn/model/model.h"

_Static_assert(LEAT_OPTIMIZER_NAME_BYTES >= sizeof((leati_optimizer_weight){0}.name),
               "a caller's room for a name is what a name takes");

static leat_status require_compiled(const leat_model *model, leat_error *err) {
    if (model->compiled.ready) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "model '%s' is not compiled: call leat_model_compile first",
                      model->name);
}

static leat_status write_and_free(json_t *value, char **out, leat_error *err) {
    leat_status status = leati_json_write(value, out, err);
    json_decref(value);
    return status;
}

leat_status leat_model_optimizer_config(const leat_model *model, char **out, leat_error *err) {
    json_t *value = NULL;
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    LEATI_TRY(require_compiled(model, err));
    LEATI_TRY(leati_optimizer_write(model->compiled.optimizer, &value, err));
    return write_and_free(value, out, err);
}

leat_status leat_model_training_config(const leat_model *model, char **out, leat_error *err) {
    json_t *value = NULL;
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    if (!model->compiled.ready && model->file_compilation)
        return leati_json_write(model->file_compilation, out, err);
    LEATI_TRY(require_compiled(model, err));
    LEATI_TRY(leati_model_training_config(model, &value, err));
    return write_and_free(value, out, err);
}

int leat_model_optimizer_weight_count(const leat_model *model) {
    return model ? leati_optimizer_weight_count(model) : 0;
}

static leat_status describe(const leat_model *model, int index, leati_optimizer_weight *out,
                            leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_TRY(require_compiled(model, err));
    int count = leati_optimizer_weight_count(model);
    if (index < 0 || index >= count) return leati_fail_index(err, "weight of the optimizer", index, count);
    *out = leati_optimizer_weight_at(model, index);
    return LEAT_OK;
}

leat_status leat_model_optimizer_weight_shape(const leat_model *model, int index, leat_tensor *out,
                                              char *name, leat_error *err) {
    leati_optimizer_weight weight;
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    if (name) name[0] = '\0';
    LEATI_TRY(describe(model, index, &weight, err));
    *out = leat_tensor_view(weight.desc.dtype, weight.desc.rank, weight.desc.shape, NULL);
    if (name) snprintf(name, LEAT_OPTIMIZER_NAME_BYTES, "%s", weight.name);
    return LEAT_OK;
}

static leat_status check_room(const leati_optimizer_weight *weight, const leat_tensor *out, leat_error *err) {
    char want[96], got[96];
    if (!out->data)
        return leati_fail(err, LEAT_EINVAL,
                          "optimizer weight '%s': expected memory to copy it to, data is "
                          "NULL",
                          weight->name);
    if (out->dtype != weight->desc.dtype)
        return leati_fail(err, LEAT_EDTYPE, "optimizer weight '%s': expected %s, received %s", weight->name,
                          leat_dtype_name(weight->desc.dtype), leat_dtype_name(out->dtype));
    bool same = out->rank == weight->desc.rank;
    for (int i = 0; same && i < out->rank; ++i) same = out->shape[i] == weight->desc.shape[i];
    if (same) return LEAT_OK;
    return leati_fail(err, LEAT_ESHAPE, "optimizer weight '%s': expected shape %s, received %s", weight->name,
                      leati_shape_text(want, sizeof want, weight->desc.rank, weight->desc.shape),
                      leati_shape_text(got, sizeof got,
                                       out->rank < 0 || out->rank > LEAT_MAX_RANK ? 0 : out->rank,
                                       out->shape));
}

leat_status leat_model_optimizer_weight_get(const leat_model *model, int index, const leat_tensor *out,
                                            leat_error *err) {
    leati_optimizer_weight weight;
    LEATI_GIVEN(out, err);
    LEATI_TRY(describe(model, index, &weight, err));
    LEATI_TRY(check_room(&weight, out, err));
    return leati_optimizer_weight_copy(model, index, out->data, err);
}

leat_status leat_model_optimizer_weight_set(leat_model *model, int index, const leat_tensor *value,
                                            leat_error *err) {
    leati_optimizer_weight weight;
    LEATI_GIVEN(value, err);
    LEATI_TRY(describe(model, index, &weight, err));
    bool counter = index == 0 && leat_dtype_bytes(value->dtype) > 0 && value->rank == 0;
    if (!counter) LEATI_TRY(check_room(&weight, value, err));
    LEATI_GIVEN(value->data, err);
    return leati_optimizer_weight_set(model, index, value, err);
}
