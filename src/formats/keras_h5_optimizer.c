/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the optimizer's state in Keras's HDF5 layout.  Room: formats. */
#include "formats/keras_h5.h"

#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"

static const char group[] = "optimizer_weights";

leat_status leati_keras_h5_read_optimizer_weight(leati_h5 *file, const char *path, leat_model *model,
                                                 int index, leat_error *err) {
    leat_tensor tensor;
    LEATI_TRY(leati_h5_describe(file, path, &tensor, err));
    leati_optimizer_weight want = leati_optimizer_weight_at(model, index);
    if (leat_tensor_count(&tensor) != leati_desc_count(&want.desc))
        return leati_fail(err, LEAT_ESHAPE, "'%s': expected %lld numbers for '%s', found %lld", path,
                          (long long)leati_desc_count(&want.desc), want.name,
                          (long long)leat_tensor_count(&tensor));
    tensor.data = leati_calloc_aligned(leat_tensor_bytes(&tensor));
    if (!tensor.data) return leati_fail_memory(err, leat_tensor_bytes(&tensor), "the optimizer's state");
    leat_status status = leati_h5_read(file, path, &tensor, err);
    if (status == LEAT_OK) status = leati_optimizer_weight_set(model, index, &tensor, err);
    leati_free(tensor.data);
    return status;
}

static leat_status read_one(leati_h5 *file, leat_model *model, int index, const char *name, leat_error *err) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", group, name);
    return leati_keras_h5_read_optimizer_weight(file, path, model, index, err);
}

leat_status leati_keras_h5_read_optimizer(leati_h5 *file, leat_model *model, leat_error *err) {
    if (!leati_h5_has_object(file, group)) return LEAT_OK;
    leati_h5_strings names;
    LEATI_TRY(leati_h5_read_strings(file, group, "weight_names", &names, err));
    leat_status status = LEAT_OK;
    size_t count = (size_t)leati_optimizer_weight_count(model);
    if (names.count > 0 && names.count != count)
        status = leati_fail(err, LEAT_EFORMAT, "'%s': expected %zu weights of the optimizer, found %zu",
                            group, count, names.count);
    for (size_t i = 0; status == LEAT_OK && i < names.count; ++i)
        status = read_one(file, model, (int)i, names.items[i], err);
    leati_h5_strings_fini(&names);
    return status;
}

static leat_status write_one(leati_h5 *file, const leat_model *model, int index, leat_error *err) {
    leati_optimizer_weight weight = leati_optimizer_weight_at(model, index);
    size_t bytes = leati_desc_bytes(&weight.desc);
    void *data = leati_calloc_aligned(bytes);
    if (!data) return leati_fail_memory(err, bytes, "the optimizer's state");
    leat_tensor tensor = leat_tensor_view(weight.desc.dtype, weight.desc.rank, weight.desc.shape, data);
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", group, weight.name);
    leat_status status = leati_optimizer_weight_copy(model, index, data, err);
    if (status == LEAT_OK) status = leati_h5_write(file, path, &tensor, err);
    leati_free(data);
    return status;
}

static leat_status write_names(leati_h5 *file, const leat_model *model, int count, leat_error *err) {
    leati_optimizer_weight *weights = leati_calloc((size_t)count, sizeof *weights);
    const char **names = leati_calloc((size_t)count, sizeof *names);
    leat_status status = LEAT_OK;
    if (!weights || !names) status = leati_fail_memory(err, (size_t)count * sizeof *weights, "names");
    for (int i = 0; status == LEAT_OK && i < count; ++i) {
        weights[i] = leati_optimizer_weight_at(model, i);
        names[i] = weights[i].name;
    }
    if (status == LEAT_OK)
        status = leati_h5_write_strings(file, group, "weight_names", names, (size_t)count, err);
    leati_free(weights);
    leati_free(names);
    return status;
}

leat_status leati_keras_h5_write_optimizer(leati_h5 *file, const leat_model *model, leat_error *err) {
    int count = leati_optimizer_weight_count(model);
    LEATI_TRY(leati_h5_write_group(file, group, err));
    LEATI_TRY(write_names(file, model, count, err));
    for (int i = 0; i < count; ++i) LEATI_TRY(write_one(file, model, i, err));
    return LEAT_OK;
}
