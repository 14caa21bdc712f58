/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the weights of layers in Keras's HDF5 layout.  Room: formats. */
#include "formats/keras_h5.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "formats/cudnn_weights.h"

enum { path_bytes = 1024 };

leat_status leati_keras_h5_is_modern(leati_h5 *file, bool *modern, leat_error *err) {
    LEATI_TRY(leati_h5_exists(file, "layers", modern, err));
    return *modern ? LEAT_OK : leati_h5_exists(file, "_layer_checkpoint_dependencies", modern, err);
}

leat_status leati_keras_h5_find(leati_h5 *file, const char **group, leat_error *err) {
    bool in_group = false;
    LEATI_TRY(leati_h5_exists(file, "model_weights", &in_group, err));
    if (in_group)
        *group = "model_weights";
    else if (leati_h5_has_attribute(file, "/", "layer_names") ||
             leati_h5_has_attribute(file, "/", "layer_names0"))
        *group = "/";
    else
        return leati_fail(err, LEAT_EFORMAT,
                          "expected the group 'model_weights' or the attribute 'layer_names' of a Keras "
                          "model, found neither");
    return LEAT_OK;
}

static void member_path(char *out, const char *group, const char *name) {
    snprintf(out, path_bytes, "%s%s%s", group, strcmp(group, "/") == 0 ? "" : "/", name);
}

/* The weights that a file lists for one layer. */
typedef struct stored_layer {
    char path[path_bytes];
    leati_h5_strings weights;
    const leati_matching *matching;
} stored_layer;

static leat_status read_stored(leati_h5 *file, const char *group, const char *name,
                               const leati_matching *matching, stored_layer *out, leat_error *err) {
    *out = (stored_layer){.matching = matching};
    member_path(out->path, group, name);
    return leati_h5_read_strings(file, out->path, "weight_names", &out->weights, err);
}

static leat_tensor weight_view(const leat_model *model, const leati_weight *weight) {
    char *slab = leati_weights_slab(&model->weights, LEATI_SLAB_WEIGHTS);
    return leat_tensor_view(weight->desc.dtype, weight->desc.rank, weight->desc.shape,
                            slab + weight->offset_bytes);
}

leat_status leati_keras_h5_read_matching(leati_h5 *file, const char *path, leat_tensor *tensor,
                                         const leati_matching *matching, leat_error *err) {
    leat_tensor found;
    if (!matching->reshape && !matching->skip_mismatch) return leati_h5_read(file, path, tensor, err);
    LEATI_TRY(leati_h5_describe(file, path, &found, err));
    bool same = found.rank == tensor->rank;
    for (int i = 0; same && i < found.rank; ++i) same = found.shape[i] == tensor->shape[i];
    if (!same && matching->reshape && leat_tensor_count(&found) == leat_tensor_count(tensor)) {
        leat_tensor reshaped = leat_tensor_view(tensor->dtype, found.rank, found.shape, tensor->data);
        return leati_h5_read(file, path, &reshaped, err);
    }
    if (!same && matching->skip_mismatch) {
        leati_log(LEAT_LOG_WARNING, "'%s': skipped, because the model's weight has another shape", path);
        return LEAT_OK;
    }
    return leati_h5_read(file, path, tensor, err);
}

static leat_status read_weight(leati_h5 *file, const leat_model *model, int member,
                               const stored_layer *stored, int index, leat_error *err) {
    char path[path_bytes];
    leat_tensor tensor = weight_view(model, leati_member_weight(model, member, index));
    member_path(path, stored->path, stored->weights.items[index]);
    return leati_keras_h5_read_matching(file, path, &tensor, stored->matching, err);
}

/* Reads the kernel, the recurrent kernel and the bias, which are the weights from `first` on, and converts them
 * from the other one of Keras's two layouts. */
static leat_status read_converted(leati_h5 *file, const leat_model *model, int member,
                                  const stored_layer *stored, int first, leati_conversion conversion,
                                  leat_tensor bias, leat_error *err) {
    const leati_desc *recurrent = &leati_member_weight(model, member, first + 1)->desc;
    const int64_t units = recurrent->shape[0], gates = recurrent->shape[1] / units;
    char path[path_bytes];
    for (int i = first; i < first + 2; ++i) {
        const leati_weight *weight = leati_member_weight(model, member, i);
        leat_tensor view = weight_view(model, weight);
        LEATI_TRY(read_weight(file, model, member, stored, i, err));
        LEATI_TRY(leati_cudnn_kernel(conversion, view.data, weight->desc.shape[0], gates, units, err));
    }
    leat_tensor target = weight_view(model, leati_member_weight(model, member, first + 2));
    bias.dtype = LEAT_F32;
    bias.data = leati_calloc((size_t)leat_tensor_count(&bias), sizeof(float));
    if (!bias.data) return leati_fail_memory(err, leat_tensor_bytes(&bias), "a bias");
    member_path(path, stored->path, stored->weights.items[first + 2]);
    leat_status status = leati_h5_read(file, path, &bias, err);
    if (status == LEAT_OK) leati_cudnn_bias(conversion, bias.data, gates, units, target.data);
    leati_free(bias.data);
    return status;
}

/* Reads weight *index, or, if they need a conversion, the three weights of a recurrent layer that begin there.
 * *index becomes the index of the next weight to read. */
static leat_status read_next_weights(leati_h5 *file, const leat_model *model, int member,
                                     const stored_layer *stored, int *index, leat_error *err) {
    int first = *index;
    if (first + 2 < leati_member_weight_count(model, member)) {
        char path[path_bytes];
        leat_tensor bias;
        member_path(path, stored->path, stored->weights.items[first + 2]);
        LEATI_TRY(leati_h5_describe(file, path, &bias, err));
        leati_conversion conversion =
            leati_cudnn_conversion(leati_member_weight(model, member, first),
                                   leati_member_weight(model, member, first + 1),
                                   leati_member_weight(model, member, first + 2), &bias);
        if (conversion != LEATI_NO_CONVERSION) {
            *index += 3;
            return read_converted(file, model, member, stored, first, conversion, bias, err);
        }
    }
    ++*index;
    return read_weight(file, model, member, stored, first, err);
}

static leat_status read_layer(leati_h5 *file, const leat_model *model, int member, const stored_layer *stored,
                              leat_error *err) {
    const char *name = leati_member_name(model, member);
    int count = leati_member_weight_count(model, member);
    if (stored->weights.count != (size_t)count && stored->matching->skip_mismatch) {
        leati_log(LEAT_LOG_WARNING, "layer '%s': skipped, because '%s' has another number of weights", name,
                  stored->path);
        return LEAT_OK;
    }
    if (stored->weights.count != (size_t)count)
        return leati_fail(err, LEAT_EFORMAT, "layer '%s': expected %d weights, '%s' has %zu", name, count,
                          stored->path, stored->weights.count);
    for (int i = 0; i < count;) {
        leat_status status = read_next_weights(file, model, member, stored, &i, err);
        LEATI_TRY(leati_prefix(status, err, "layer '%s'", name));
    }
    return LEAT_OK;
}

/* Returns the first member from `from` on that has weights; model->member_count if there is none. */
static int next_weighted(const leat_model *model, int from) {
    while (from < model->member_count && leati_member_weight_count(model, from) == 0) ++from;
    return from;
}

static leat_status read_by_order(leati_h5 *file, const char *group, leat_model *model,
                                 const leati_h5_strings *names, const leati_matching *matching,
                                 leat_error *err) {
    int member = next_weighted(model, 0);
    for (size_t i = 0; i < names->count; ++i) {
        stored_layer stored;
        leat_status status = read_stored(file, group, names->items[i], matching, &stored, err);
        if (status == LEAT_OK && stored.weights.count > 0) {
            status = member < model->member_count
                         ? read_layer(file, model, member, &stored, err)
                         : leati_fail(err, LEAT_EFORMAT,
                                      "layer '%s' of the file has weights, but the model has no "
                                      "further layer with weights",
                                      names->items[i]);
            member = next_weighted(model, member + 1);
        }
        leati_h5_strings_fini(&stored.weights);
        LEATI_TRY(status);
    }
    if (member < model->member_count)
        return leati_fail(err, LEAT_EFORMAT, "the file has no weights for layer '%s' and those after it",
                          leati_member_name(model, member));
    return LEAT_OK;
}

static leat_status read_by_name(leati_h5 *file, const char *group, leat_model *model,
                                const leati_h5_strings *names, const leati_matching *matching, bool all,
                                leat_error *err) {
    for (int member = next_weighted(model, 0); member < model->member_count;
         member = next_weighted(model, member + 1)) {
        bool found = false;
        for (size_t i = 0; i < names->count; ++i) {
            if (strcmp(names->items[i], leati_member_name(model, member)) != 0) continue;
            stored_layer stored;
            leat_status status = read_stored(file, group, names->items[i], matching, &stored, err);
            if (status == LEAT_OK) status = read_layer(file, model, member, &stored, err);
            leati_h5_strings_fini(&stored.weights);
            LEATI_TRY(status);
            found = true;
        }
        if (all && !found)
            return leati_fail(err, LEAT_EFORMAT, "the file has no weights for layer '%s'",
                              leati_member_name(model, member));
    }
    return LEAT_OK;
}

leat_status leati_keras_h5_read_all(leati_h5 *file, const char *group, leat_model *model, leat_error *err) {
    leati_h5_strings names;
    LEATI_TRY(leati_h5_read_strings(file, group, "layer_names", &names, err));
    const leati_matching matching = {.by_name = true};
    leat_status status = read_by_name(file, group, model, &names, &matching, true, err);
    leati_h5_strings_fini(&names);
    return status;
}

leat_status leati_keras_h5_read_weights(leati_h5 *file, const char *group, leat_model *model,
                                        const leati_matching *matching, leat_error *err) {
    leati_h5_strings names;
    LEATI_TRY(leati_h5_read_strings(file, group, "layer_names", &names, err));
    leat_status status = matching->by_name ? read_by_name(file, group, model, &names, matching, false, err)
                                           : read_by_order(file, group, model, &names, matching, err);
    leati_h5_strings_fini(&names);
    return status;
}

/* Writes one weight of a layer as a dataset of that name in the group `path`. */
static leat_status write_weight(leati_h5 *file, const char *path, const char *name, const leat_model *model,
                                int member, int index, leat_error *err) {
    char dataset[path_bytes];
    leat_tensor tensor = weight_view(model, leati_member_weight(model, member, index));
    member_path(dataset, path, name);
    return leati_h5_write(file, dataset, &tensor, err);
}

/* Copies the names of a layer's weights; without ":0" for current Keras. */
static leat_status copy_names(const leat_model *model, int member, bool current, char **names,
                              leat_error *err) {
    for (int i = 0; i < leati_member_weight_count(model, member); ++i) {
        names[i] = leati_strdup(leati_member_weight_name(model, member, i));
        if (!names[i]) return leati_fail_memory(err, path_bytes, "names");
        size_t length = strlen(names[i]);
        if (current && length > 2 && strcmp(names[i] + length - 2, ":0") == 0) names[i][length - 2] = '\0';
    }
    return LEAT_OK;
}

/* Writes the group of a layer, with a dataset for each weight.  The name of a dataset is the name of the weight in
 * Keras, "dense_1/kernel:0"; in a nested model it begins with the name of the inner layer. */
static leat_status write_layer(leati_h5 *file, const char *path, bool current, const leat_model *model,
                               int member, leat_error *err) {
    int count = leati_member_weight_count(model, member);
    char **names = leati_calloc((size_t)count + 1, sizeof *names);
    if (!names) return leati_fail_memory(err, (size_t)count * sizeof *names, "names");
    leat_status status = copy_names(model, member, current, names, err);
    if (status == LEAT_OK) status = leati_h5_write_group(file, path, err);
    if (status == LEAT_OK)
        status = leati_h5_write_strings(file, path, "weight_names", (const char *const *)names, (size_t)count,
                                        err);
    for (int i = 0; status == LEAT_OK && i < count; ++i)
        status = write_weight(file, path, names[i], model, member, i, err);
    for (int i = 0; i < count; ++i) leati_free(names[i]);
    leati_free(names);
    return status;
}

static leat_status write_names(leati_h5 *file, const char *group, const leat_model *model, leat_error *err) {
    const char **names = leati_calloc((size_t)model->member_count, sizeof *names);
    if (!names) return leati_fail_memory(err, (size_t)model->member_count * sizeof *names, "names");
    for (int i = 0; i < model->member_count; ++i) names[i] = leati_member_name(model, i);
    leat_status status =
        leati_h5_write_strings(file, group, "layer_names", names, (size_t)model->member_count, err);
    leati_free(names);
    return status;
}

leat_status leati_keras_h5_write_weights(leati_h5 *file, const char *group, const char *version,
                                         const leat_model *model, leat_error *err) {
    if (strcmp(group, "/") != 0) LEATI_TRY(leati_h5_write_group(file, group, err));
    LEATI_TRY(write_names(file, group, model, err));
    LEATI_TRY(leati_h5_write_string(file, group, "backend", "tensorflow", err));
    LEATI_TRY(leati_h5_write_string(file, group, "keras_version", version, err));
    for (int i = 0; i < model->member_count; ++i) {
        char path[path_bytes];
        member_path(path, group, leati_member_name(model, i));
        LEATI_TRY(write_layer(file, path, version[0] >= '3', model, i, err));
    }
    return LEAT_OK;
}
