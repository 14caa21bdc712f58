/* SPDX-License-Identifier: Apache-2.0 */
/* Computes with a model that Keras has saved, and writes the results for tools/applications to compare:
 *     bench_application layers MODEL.h5 DATA.npz FOLDER
 *     bench_application step MODEL.h5 DATA.npz FOLDER [REPEATS]
 * DATA has a batch: x and t.  `layers` writes summary.txt, config.json, predict.npy and layers.npz (every layer's
 * output) to FOLDER.  `step` makes one training step, writes weights.npz and prints the loss; with REPEATS it also
 * prints the median times of so many further steps and predictions.  As in Keras, a layer's output comes from another
 * model of the same layers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "leat/leat.h"
#include "leat/npz.h"

enum { outputs_at_once = 16 };

typedef struct application {
    const char *folder;
    leat_registry *registry;
    leat_model *model;
    leat_npz *data;
    leat_array x, t;
    leat_arrays batch;
} application;

/* Arrays for an .npz file; each owns its memory. */
typedef struct collection {
    int count;
    char **names;
    leat_tensor *tensors;
} collection;

static leat_status no_memory(leat_error *err) {
    return leat_error_set(err, LEAT_ENOMEM, "no memory");
}

static leat_status collection_init(collection *c, size_t most, leat_error *err) {
    c->names = calloc(most + 1, sizeof *c->names);
    c->tensors = calloc(most + 1, sizeof *c->tensors);
    return c->names && c->tensors ? LEAT_OK : no_memory(err);
}

static void collection_fini(collection *c) {
    for (int i = 0; i < c->count; ++i) {
        free(c->names[i]);
        free(c->tensors[i].data);
    }
    free(c->names);
    free(c->tensors);
}

static leat_status collect(collection *c, const char *name, const leat_tensor *tensor, leat_error *err) {
    size_t bytes = leat_tensor_bytes(tensor);
    char *copy = malloc(strlen(name) + 1);
    void *data = malloc(bytes + 1);
    if (!copy || !data) {
        free(copy);
        free(data);
        return no_memory(err);
    }
    memcpy(copy, name, strlen(name) + 1);
    memcpy(data, tensor->data, bytes);
    c->names[c->count] = copy;
    c->tensors[c->count] = *tensor;
    c->tensors[c->count++].data = data;
    return LEAT_OK;
}

static void path_in(char out[4096], const application *a, const char *name) {
    snprintf(out, 4096, "%s/%s", a->folder, name);
}

static leat_status write_collection(const application *a, const char *name, const collection *c,
                                    leat_error *err) {
    char path[4096];
    path_in(path, a, name);
    return leat_npz_write(path, (const char *const *)c->names, c->tensors, c->count, err);
}

/* Writes the text to a file of the folder, and frees the text. */
static leat_status write_text(const application *a, const char *name, char *text, leat_error *err) {
    char path[4096];
    path_in(path, a, name);
    FILE *file = fopen(path, "w");
    bool written = file && fputs(text, file) >= 0;
    if (file) written = fclose(file) == 0 && written;
    leat_string_free(text);
    return written ? LEAT_OK : leat_error_set(err, LEAT_EIO, "cannot write %s", path);
}

static leat_status write_words(const application *a, leat_error *err) {
    char *text = NULL;
    leat_status status = leat_model_summary(a->model, &text, err);
    if (status == LEAT_OK) status = write_text(a, "summary.txt", text, err);
    if (status == LEAT_OK) status = leat_model_to_json(a->model, &text, err);
    if (status == LEAT_OK) status = write_text(a, "config.json", text, err);
    return status;
}

/* ---- InceptionResNetV2 ---- */

/* Its Lambda layers, such as block35_1, compute x + scale * residual. */
enum { blocks = 20, block_name_bytes = 16 };

typedef struct scaled_sum {
    double scale;
} scaled_sum;

static const leat_layer_key scaled_sum_keys[] = {
    {.key = "scale", .kind = LEAT_KEY_FLOAT, .offset = offsetof(scaled_sum, scale)}, {.key = NULL}};

static leat_status scaled_sum_forward(const leat_layer_call *call, leat_error *err) {
    const float scale = (float)((const scaled_sum *)call->config)->scale;
    const float *x = call->inputs[0].data, *residual = call->inputs[1].data;
    float *y = call->outputs[0].data;
    (void)err;
    for (int64_t i = 0; i < leat_tensor_count(&call->outputs[0]); ++i) y[i] = x[i] + residual[i] * scale;
    return LEAT_OK;
}

static leat_status scaled_sum_backward(const leat_layer_call *call, leat_error *err) {
    const float scale = (float)((const scaled_sum *)call->config)->scale;
    const float *diff_y = call->diff_outputs[0].data;
    float *diff_x = call->diff_inputs[0].data, *diff_residual = call->diff_inputs[1].data;
    (void)err;
    for (int64_t i = 0; i < leat_tensor_count(&call->outputs[0]); ++i) {
        if (diff_x) diff_x[i] = diff_y[i];
        if (diff_residual) diff_residual[i] = diff_y[i] * scale;
    }
    return LEAT_OK;
}

static leat_status register_blocks(leat_registry *registry, leat_error *err) {
    static char names[3 * blocks][block_name_bytes];
    static const int sizes[] = {35, 17, 8};
    leat_layer_definition definition = leat_layer_definition_default();
    definition.keys = scaled_sum_keys;
    definition.config_bytes = sizeof(scaled_sum);
    definition.min_inputs = definition.max_inputs = 2;
    definition.forward = scaled_sum_forward;
    definition.backward = scaled_sum_backward;
    leat_status status = LEAT_OK;
    for (int i = 0; status == LEAT_OK && i < 3 * blocks; ++i) {
        snprintf(names[i], block_name_bytes, "block%d_%d", sizes[i / blocks], i % blocks + 1);
        definition.class_name = names[i];
        status = leat_registry_add(registry, &definition, err);
    }
    return status;
}

/* ---- Every layer's output ---- */

static leat_status copy_weights(leat_model *to, const leat_model *from, leat_error *err) {
    int count = leat_model_weight_count(from), next = 0;
    for (int i = 0; i < leat_model_weight_count(to); ++i) {
        const char *name = leat_model_weight_name(to, i);
        int tries = 0;
        while (tries++ < count && strcmp(leat_model_weight_name(from, next), name) != 0)
            next = (next + 1) % count;
        leat_tensor source = leat_model_weight(from, next), target = leat_model_weight(to, i);
        if (strcmp(leat_model_weight_name(from, next), name) != 0 ||
            leat_tensor_bytes(&source) != leat_tensor_bytes(&target))
            return leat_error_set(err, LEAT_EINVAL, "the model has no weight like '%s'", name);
        memcpy(target.data, source.data, leat_tensor_bytes(&source));
    }
    return LEAT_OK;
}

/* Creates the model whose outputs are those of layers first, first + 1, ... of the list. */
static leat_status probe_create(leat_model **out, const application *a, json_t *root, size_t first,
                                size_t count, leat_error *err) {
    json_t *config = json_object_get(root, "config"), *outputs = json_array();
    for (size_t i = first; i < first + count; ++i) {
        const json_t *layer = json_array_get(json_object_get(config, "layers"), i);
        const char *name = json_string_value(json_object_get(layer, "name"));
        /* A nested model was already called once, when it was created. */
        bool nested = json_object_get(json_object_get(layer, "config"), "layers");
        json_array_append_new(outputs, json_pack("[s,i,i]", name, nested ? 1 : 0, 0));
    }
    char *text = json_object_set_new(config, "output_layers", outputs) == 0 ? json_dumps(root, 0) : NULL;
    leat_status status = text ? leat_model_from_json_with(out, text, a->registry, err) : no_memory(err);
    free(text);
    return status;
}

static leat_status probe(const application *a, json_t *root, size_t first, size_t count, collection *c,
                         leat_error *err) {
    leat_tensor outputs[outputs_at_once];
    leat_model *model = NULL;
    leat_status status = probe_create(&model, a, root, first, count, err);
    if (status == LEAT_OK) status = copy_weights(model, a->model, err);
    if (status == LEAT_OK) leat_model_set_threads(model, 1);
    if (status == LEAT_OK) status = leat_model_predict_on_batch(model, &a->batch, outputs, err);
    for (int i = 0; status == LEAT_OK && i < (int)count; ++i)
        status = collect(c, leat_model_output_name(model, i), &outputs[i], err);
    leat_model_destroy(&model);
    return status;
}

static leat_status write_layers(const application *a, leat_error *err) {
    char *text = NULL;
    collection c = {0};
    leat_status status = leat_model_to_json(a->model, &text, err);
    if (status != LEAT_OK) return status;
    json_t *root = json_loads(text, 0, NULL);
    leat_string_free(text);
    size_t layers = json_array_size(json_object_get(json_object_get(root, "config"), "layers"));
    status = collection_init(&c, layers, err);
    for (size_t i = 0; status == LEAT_OK && i < layers; i += outputs_at_once)
        status = probe(a, root, i, layers - i < outputs_at_once ? layers - i : outputs_at_once, &c, err);
    json_decref(root);
    if (status == LEAT_OK) status = write_collection(a, "layers.npz", &c, err);
    collection_fini(&c);
    return status;
}

/* ---- The model itself ---- */

static leat_status predict(const application *a, leat_error *err) {
    leat_tensor output;
    char path[4096];
    leat_status status = leat_model_predict_on_batch(a->model, &a->batch, &output, err);
    if (status != LEAT_OK) return status;
    path_in(path, a, "predict.npy");
    return leat_npy_write(path, &output, err);
}

static leat_status train(const application *a, leat_error *err) {
    leat_logs logs = {0};
    collection c = {0};
    leat_status status = leat_model_train_on_batch(a->model, &a->batch, &logs, err);
    if (status != LEAT_OK) return status;
    printf("loss %.9g\n", logs.items[0].value);
    int count = leat_model_weight_count(a->model);
    status = collection_init(&c, (size_t)count, err);
    for (int i = 0; status == LEAT_OK && i < count; ++i) {
        leat_tensor weight = leat_model_weight(a->model, i);
        status = collect(&c, leat_model_weight_name(a->model, i), &weight, err);
    }
    if (status == LEAT_OK) status = write_collection(a, "weights.npz", &c, err);
    collection_fini(&c);
    return status;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints the median time of a prediction or a training step. */
static leat_status measure(const application *a, bool training, int repeats, leat_error *err) {
    double times[64];
    leat_tensor output;
    if (repeats > 64) repeats = 64;
    for (int i = 0; i < repeats; ++i) {
        double start = seconds();
        leat_status status = training ? leat_model_train_on_batch(a->model, &a->batch, NULL, err)
                                      : leat_model_predict_on_batch(a->model, &a->batch, &output, err);
        if (status != LEAT_OK) return status;
        times[i] = seconds() - start;
    }
    if (repeats < 1) return LEAT_OK;
    qsort(times, (size_t)repeats, sizeof times[0], by_value);
    printf("%s_seconds %.6f\n", training ? "train" : "predict", times[repeats / 2]);
    return LEAT_OK;
}

static leat_status open_all(application *a, char **argv, leat_error *err) {
    leat_status status = leat_registry_create(&a->registry, err);
    if (status == LEAT_OK) status = register_blocks(a->registry, err);
    if (status == LEAT_OK) status = leat_model_load_with(&a->model, argv[2], a->registry, err);
    if (status == LEAT_OK) status = leat_npz_open(&a->data, argv[3], err);
    if (status == LEAT_OK) status = leat_npz_get(a->data, "x", &a->x.tensor, err);
    if (status == LEAT_OK) status = leat_npz_get(a->data, "t", &a->t.tensor, err);
    a->folder = argv[4];
    a->batch = (leat_arrays){.inputs = &a->x, .targets = &a->t, .input_count = 1, .target_count = 1};
    return status;
}

static leat_status run_layers(application *a, leat_error *err) {
    leat_status status = write_words(a, err);
    if (status == LEAT_OK) status = write_layers(a, err);
    if (status == LEAT_OK) status = predict(a, err);
    return status;
}

static leat_status run_step(application *a, int repeats, leat_error *err) {
    leat_status status = train(a, err);
    if (status == LEAT_OK) status = measure(a, true, repeats, err);
    if (status == LEAT_OK) status = measure(a, false, repeats, err);
    return status;
}

int main(int argc, char **argv) {
    bool step = argc > 4 && strcmp(argv[1], "step") == 0;
    if (!step && (argc != 5 || strcmp(argv[1], "layers") != 0)) {
        fputs("usage: bench_application layers|step MODEL.h5 DATA.npz FOLDER [REPEATS]\n", stderr);
        return 2;
    }
    application a = {0};
    leat_error err = {0};
    leat_status status = open_all(&a, argv, &err);
    /* One thread unless times are measured: it is not slowed down by other programs on the machine. */
    if (status == LEAT_OK && argc < 6) leat_model_set_threads(a.model, 1);
    if (status == LEAT_OK)
        status =
            step ? run_step(&a, argc > 5 ? (int)strtol(argv[5], NULL, 10) : 0, &err) : run_layers(&a, &err);
    if (status != LEAT_OK) fprintf(stderr, "bench_application: %s\n", err.message);
    leat_npz_close(&a.data);
    leat_model_destroy(&a.model);
    leat_registry_destroy(&a.registry);
    return status == LEAT_OK ? 0 : 1;
}
