/* SPDX-License-Identifier: Apache-2.0 */
/* One check that every layer must pass, on every list of backends.  The configuration survives a round trip.  The
 * outputs have the inferred shapes and types, for batches of no, one and several samples.  A training step changes
 * all trainable weights and nothing that is frozen; all numbers stay finite. */
#define _GNU_SOURCE /* feenableexcept */
#include "cmocka_all.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "leat/rng.h"
#include "nn/examples.h"
#include "nn/layers/types.h"
#include "nn/model/model.h"
#include "nn/program/program.h"
#include "nn/run.h"

enum { BATCH = EXAMPLE_BATCH /* largest number of samples */, MOST_ELEMENTS = 4096, MOST_WEIGHTS = 32 };

/* The model of an example, and the arrays that are bound to its step. */
typedef struct bench {
    const example *e;
    leat_model *model;
    leati_program_spec spec;
    float *arrays[2 * LEATI_PROGRAM_MAX_OUTPUTS];
    int array_count;
} bench;

/* ---- Configurations ---- */

/* Creates a layer from the example's configuration, with a name. */
static leati_layer *layer_of(const char *class_name, const char *config) {
    leat_error err = {0};
    const leati_layer_reader reader = leati_layer_reader_for(NULL);
    leati_layer *layer = NULL;
    json_t *value = NULL;
    char text[4096];
    snprintf(text, sizeof text, "{\"name\": \"it\"%s%s}", config[0] ? ", " : "", config);
    const leati_layer_type *type = leati_layer_find(class_name);
    if (!type) fail_msg("no layer %s", class_name);
    assert_ok(leati_json_parse(&value, text, strlen(text), &err), &err);
    assert_ok(leati_layer_create(&layer, type, value, &reader, &err), &err);
    json_decref(value);
    return layer;
}

static json_t *config_of(const leati_layer *layer) {
    leat_error err = {0};
    json_t *config = NULL;
    assert_ok(leati_layer_config(layer, &config, &err), &err);
    return config;
}

static void check_config(const example *e) {
    leat_error err = {0};
    const leati_layer_reader reader = leati_layer_reader_for(NULL);
    leati_layer *layer = layer_of(e->class_name, e->config), *again = NULL;
    json_t *config = config_of(layer);
    assert_ok(leati_layer_create(&again, layer->type, config, &reader, &err), &err);
    json_t *config_again = config_of(again);
    if (!json_equal(config, config_again))
        fail_msg("%s {%s}: another configuration comes back", e->class_name, e->config);
    for (const leati_field *field = layer->type->fields; field->key; ++field)
        if (!field->hidden && !field->later && !json_object_get(config, field->key))
            fail_msg("%s: '%s' is not written", e->class_name, field->key);
    json_decref(config);
    json_decref(config_again);
    leati_layer_destroy(&layer);
    leati_layer_destroy(&again);
}

/* ---- Training ---- */

static leati_desc describe(const leati_shape *shape) {
    leati_desc desc = leati_desc_make(LEAT_F32, shape->rank, shape->dims);
    desc.shape[0] = BATCH;
    return desc;
}

static void bind(bench *b, const leati_desc *desc, uint64_t stream, int whole) {
    leat_rng rng = leat_rng_for(1, 2, stream);
    int64_t count = leati_desc_count(desc);
    assert_true(count <= MOST_ELEMENTS);
    float *array = calloc((size_t)count, sizeof *array);
    for (int64_t i = 0; i < count; ++i)
        array[i] = whole ? (float)leat_rng_below(&rng, (uint64_t)whole) : (float)leat_rng_normal(&rng);
    b->arrays[b->array_count++] = array;
}

static void open_bench(bench *b, const example *e, bool trainable) {
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    char json[EXAMPLE_MODEL_BYTES];
    *b = (bench){.e = e};
    example_model(json, e, trainable);
    assert_ok(leat_model_from_json(&b->model, json, &err), &err);
    options.optimizer = "{\"class_name\": \"SGD\", \"config\": {\"lr\": 0.125}}";
    options.loss = "mse";
    assert_ok(leat_model_compile(b->model, &options, &err), &err);
    b->spec.input_count = b->model->input_count;
    for (int i = 0; i < b->model->input_count; ++i) {
        leati_shape shape = leati_model_input_shape(b->model, i);
        b->spec.inputs[i] = describe(&shape);
        bind(b, &b->spec.inputs[i], (uint64_t)i, example_classes(e, i));
    }
    for (int i = 0; i < b->model->output_count; ++i) {
        leati_shape shape = leati_model_output_shape(b->model, i);
        b->spec.targets[i] = describe(&shape);
        b->spec.weights[i].rank = -1;
        bind(b, &b->spec.targets[i], (uint64_t)i + 100, 0);
    }
}

static void close_bench(bench *b) {
    for (int i = 0; i < b->array_count; ++i) free(b->arrays[i]);
    leat_model_destroy(&b->model);
}

/* Sets the number of samples of further runs, at most the number that was bound.  Returns false if the layer fixes
 * the batch size. */
static bool set_batch(bench *b, int64_t samples) {
    for (int i = 0; i < b->model->input_count; ++i) {
        if (leati_model_input_shape(b->model, i).dims[0] >= 0) return false;
        b->spec.inputs[i].shape[0] = samples;
    }
    for (int i = 0; i < b->model->output_count; ++i) b->spec.targets[i].shape[0] = samples;
    return true;
}

static void check_predictions(const bench *b, const leati_plan *plan, const leati_program *program) {
    for (int i = 0; i < b->model->output_count; ++i) {
        leat_tensor y = leati_plan_output(plan, program->predictions[i]);
        const leati_desc *promised = &b->spec.targets[i];
        assert_int_equal(y.rank, promised->rank);
        assert_int_equal(y.dtype, LEAT_F32);
        for (int j = 0; j < y.rank; ++j)
            if (y.shape[j] != promised->shape[j])
                fail_msg("%s {%s}: axis %d of output %d is %d, %d was promised", b->e->class_name,
                         b->e->config, j, i, (int)y.shape[j], (int)promised->shape[j]);
        for (int64_t j = 0; j < leat_tensor_count(&y); ++j)
            if (!isfinite(((const float *)y.data)[j]))
                fail_msg("%s {%s}: element %d is not finite", b->e->class_name, b->e->config, (int)j);
    }
}

static void run_once(bench *b, const run_backend *backend, leati_mode mode) {
    leat_error err = {0};
    leati_program program = {0};
    leati_arena *arena = NULL;
    leati_plan *plan = NULL;
    leati_program_spec spec = b->spec;
    spec.mode = mode;
    spec.on_host = !run_device();
    spec.target_count = mode == LEATI_PREDICT ? 0 : b->model->output_count;
    if (leati_program_build(b->model, &spec, &program, &err) != LEAT_OK)
        fail_msg("%s {%s}: %s", b->e->class_name, b->e->config, err.message);
    for (int i = 0; i < b->model->output_count; ++i) leati_graph_keep(program.graph, program.predictions[i]);
    assert_ok(leati_arena_create_on(&arena, run_device(), &err), &err);
    leati_plan_options options = {.threads = 1, .backends = backend->list, .arena = arena};
    run_slabs slabs;
    run_slabs_open(&slabs, b->model);
    run_slabs_bind(&slabs, options.slabs);
    if (leati_plan_create(&plan, &program.graph, &options, &err) != LEAT_OK)
        fail_msg("%s {%s}: %s", b->e->class_name, b->e->config, err.message);
    leati_optimizer_scalars(b->model->compiled.optimizer, 0, b->model->weights.slab[LEATI_SLAB_SCALARS]);
    const void *inputs[2 * LEATI_PROGRAM_MAX_OUTPUTS] = {0};
    for (int i = 0; i < b->array_count; ++i) inputs[i] = b->arrays[i];
    assert_ok(leati_plan_run(plan, inputs, 1, 0, &err), &err);
    if (mode == LEATI_PREDICT) check_predictions(b, plan, &program); /* predictions exist only in this mode */
    run_slabs_ran(&slabs, mode == LEATI_TRAIN);
    leati_plan_destroy(&plan);
    run_slabs_close(&slabs);
    leati_arena_destroy(&arena);
}

static bool is_finite_weight(const leat_tensor *w) {
    for (int64_t i = 0; i < leat_tensor_count(w); ++i)
        if (!isfinite(((const float *)w->data)[i])) return false;
    return true;
}

/* True if a training step with the example changes weights. */
static bool trains(const example *e) {
    return !example_stops_gradients(e);
}

/* Trains on a batch of one sample, and runs a batch without samples. */
static void check_small_batches(bench *b, const run_backend *backend) {
    if (!set_batch(b, 1)) return;
    run_once(b, backend, trains(b->e) ? LEATI_TRAIN : LEATI_TEST);
    run_once(b, backend, LEATI_PREDICT);
    set_batch(b, 0);
    (void)fedisableexcept(FE_INVALID); /* the mean of no samples is 0 / 0 */
    run_once(b, backend, LEATI_TEST);
    run_once(b, backend, LEATI_PREDICT);
    (void)feclearexcept(FE_INVALID);
    if (!run_device()) (void)feenableexcept(FE_INVALID);
}

/* True for a weight that a training step changes though its layer is frozen: as in Keras, a frozen
 * SpectralNormalization normalises its kernel. */
static bool changes_frozen(const example *e, const char *name) {
    return strcmp(e->class_name, "SpectralNormalization") == 0 && !strstr(name, "bias");
}

/* True for a weight whose gradient is 0 but for roundings: the bias of a key, which adds the same to all scores. */
static bool cancels(const example *e, const char *name) {
    return strstr(e->class_name, "keras_hub>Transformer") && strstr(name, "/key/bias");
}

/* Checks that a training step changes exactly the weights that train, and the moving averages of layers that
 * train. */
static void check_step(const example *e, const run_backend *backend, bool trainable) {
    bench b;
    float *before[MOST_WEIGHTS];
    open_bench(&b, e, trainable);
    int count = leat_model_weight_count(b.model);
    assert_in_range(count, 1, MOST_WEIGHTS);
    for (int i = 0; i < count; ++i) {
        leat_tensor w = leat_model_weight(b.model, i);
        before[i] = malloc(leat_tensor_bytes(&w));
        memcpy(before[i], w.data, leat_tensor_bytes(&w));
    }
    if (trains(e)) run_once(&b, backend, LEATI_TRAIN);
    for (int i = 0; i < count; ++i) {
        leat_tensor w = leat_model_weight(b.model, i);
        const char *name = leat_model_weight_name(b.model, i);
        bool own = strncmp(name, "it/", 3) == 0,
             changed = memcmp(before[i], w.data, leat_tensor_bytes(&w)) != 0;
        if (!is_finite_weight(&w)) fail_msg("%s {%s}: '%s' is not finite", e->class_name, e->config, name);
        if (!cancels(e, name) && changed != (trains(e) && (!own || trainable || changes_frozen(e, name))))
            fail_msg("%s {%s}, %s, %s: '%s' has %schanged", e->class_name, e->config, backend->name,
                     trainable ? "trainable" : "frozen", name, changed ? "" : "not ");
        free(before[i]);
    }
    run_once(&b, backend, LEATI_TEST);
    run_once(&b, backend, LEATI_PREDICT);
    check_small_batches(&b, backend);
    close_bench(&b);
}

/* Invalid floating-point operations trap on the host: finite data must not cause one. */
static void test_layers(void **state) {
    (void)state;
    if (!run_device()) (void)feenableexcept(FE_INVALID);
    for (const example *e = examples; e->class_name; ++e) {
        check_config(e);
        if (example_is_input_layer(e)) continue; /* every example's model has one */
        for (int i = 0; run_backends[i].name; ++i) {
            check_step(e, &run_backends[i], true);
            check_step(e, &run_backends[i], false);
        }
    }
    (void)fedisableexcept(FE_INVALID);
}

static void test_every_type_has_an_example(void **state) {
    (void)state;
    for (int i = 0; leati_layer_types[i]; ++i) {
        const char *class_name = leati_layer_types[i]->class_name;
        const example *e = examples;
        while (e->class_name && strcmp(e->class_name, class_name) != 0) ++e;
        if (!e->class_name) fail_msg("no example of %s in tests/nn/examples.c", class_name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_has_an_example),
        cmocka_unit_test(test_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
