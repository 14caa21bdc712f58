/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/model_case.h"

#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"

static void compile(model_case *c) {
    static const char *const keys[] = {"loss", "metrics", "weighted_metrics", "sample_weight_mode",
                                       "loss_weights"};
    leat_error err = {0};
    json_t *config = json_object();
    assert_int_equal(json_object_set(config, "optimizer_config", json_object_get(c->g.meta, "optimizer")), 0);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i) {
        json_t *value = json_object_get(c->g.meta, keys[i]);
        if (value) json_object_set(config, keys[i], value);
    }
    const char *version = json_string_value(json_object_get(c->g.meta, "keras"));
    if (version && version[0] == '3') json_object_set_new(config, "arithmetic", json_string("keras3"));
    assert_ok(leati_model_compile_config(c->model, config, &err), &err);
    json_decref(config);
}

static void set_weights(model_case *c) {
    const json_t *names = json_object_get(c->g.meta, "weights");
    assert_int_equal(leat_model_weight_count(c->model), json_array_size(names));
    for (int i = 0; i < leat_model_weight_count(c->model); ++i) {
        leat_tensor value, weight = leat_model_weight(c->model, i);
        assert_true(golden_member(&c->g, "w", i, &value));
        assert_int_equal(leat_tensor_count(&weight), leat_tensor_count(&value));
        memcpy(weight.data, value.data, leat_tensor_bytes(&value));
    }
}

void model_case_open(model_case *c, const char *group, const char *name, const run_backend *backend) {
    leat_error err = {0};
    *c = (model_case){.backend = backend};
    golden_open(&c->g, group, name);
    snprintf(c->g.name, sizeof c->g.name, "%s/%s on %s", group, name, backend->name);
    json_t *config = golden_json(&c->g, "config");
    if (leati_model_from_config(&c->model, config, &err) != LEAT_OK)
        fail_msg("%s: %s", c->g.name, err.message);
    json_decref(config);
    if (json_object_get(c->g.meta, "optimizer")) compile(c);
    set_weights(c);
    run_slabs_open(&c->slabs, c->model);
    assert_ok(leati_arena_create_on(&c->arena, run_device(), &err), &err);
}

void model_case_close(model_case *c) {
    run_slabs_close(&c->slabs);
    leat_model_destroy(&c->model);
    leati_arena_destroy(&c->arena);
    golden_close(&c->g);
}

/* Describes and binds member <prefix><index>; rank -1 if it does not exist. */
static leati_desc bind(model_stage *s, const char *prefix, int index, int *bound) {
    leat_tensor array;
    leati_desc desc = {.rank = -1};
    if (!golden_member(&s->of->g, prefix, index, &array)) return desc;
    assert_true(*bound < RUN_MAX_INPUTS);
    s->inputs[(*bound)++] = array.data;
    return leati_desc_make(array.dtype, array.rank, array.shape);
}

/* Returns the class that a target row stands for: its number, or the index of its 1. */
static int class_of(const leat_tensor *targets, int64_t sample) {
    int64_t width = leat_tensor_count(targets) / targets->shape[0];
    if (targets->dtype == LEAT_I32) return ((const int32_t *)targets->data)[sample * width];
    const float *row = (const float *)targets->data + sample * width;
    int best = 0;
    for (int64_t i = 1; i < width; ++i)
        if (row[i] > row[best]) best = (int)i;
    return best;
}

/* Binds the sample weights of output 0 in training if the case has class weights. */
static leati_desc bind_class_weights(model_stage *s, int *bound) {
    const json_t *weights = json_object_get(s->of->g.meta, "class_weight");
    leat_tensor targets, samples;
    if (s->mode != LEATI_TRAIN || !json_is_object(weights)) return bind(s, "sw", 0, bound);
    assert_true(golden_member(&s->of->g, "t", 0, &targets));
    bool weighted = golden_member(&s->of->g, "sw", 0, &samples);
    assert_true(targets.shape[0] <= CASE_MAX_SAMPLES);
    for (int64_t i = 0; i < targets.shape[0]; ++i) {
        char key[16];
        snprintf(key, sizeof key, "%d", class_of(&targets, i));
        s->class_weights[i] = (float)json_number_value(json_object_get(weights, key));
        if (weighted) s->class_weights[i] *= ((const float *)samples.data)[i];
    }
    s->inputs[(*bound)++] = s->class_weights;
    return leati_desc_make(LEAT_F32, 1, targets.shape);
}

void model_stage_open(model_stage *s, model_case *c, leati_mode mode) {
    leat_error err = {0};
    *s = (model_stage){.of = c, .mode = mode};
    leat_model *model = c->model;
    leati_program_spec spec = {.mode = mode,
                               .phase = leati_program_phase(model, mode),
                               .on_host = !run_device(),
                               .input_count = model->input_count};
    int bound = 0;
    for (int i = 0; i < model->input_count; ++i) {
        spec.inputs[i] = bind(s, "x", i, &bound);
    }
    if (mode != LEATI_PREDICT) {
        spec.target_count = model->output_count;
        for (int i = 0; i < model->output_count; ++i) {
            spec.targets[i] = bind(s, "t", i, &bound);
        }
        for (int i = 0; i < model->output_count; ++i) {
            spec.weights[i] = i == 0 ? bind_class_weights(s, &bound) : bind(s, "sw", i, &bound);
        }
    }
    if (leati_program_build(model, &spec, &s->program, &err) != LEAT_OK)
        fail_msg("%s: %s", c->g.name, err.message);
    assert_int_equal(s->program.binding_count, bound);
    leati_plan_options options = {.threads = 1, .backends = c->backend->list, .arena = c->arena};
    run_slabs_bind(&c->slabs, options.slabs);
    if (leati_plan_create(&s->plan, &s->program.graph, &options, &err) != LEAT_OK) {
        fail_msg("%s: %s", c->g.name, err.message);
    }
}

void model_stage_run(model_stage *s) {
    leat_error err = {0};
    leat_model *model = s->of->model;
    if (s->mode == LEATI_TRAIN) {
        leati_optimizer_scalars(model->compiled.optimizer, model->iterations,
                                model->weights.slab[LEATI_SLAB_SCALARS]);
    }
    void *slabs[LEATI_SLAB_COUNT];
    run_slabs_bind(&s->of->slabs, slabs); /* the case may have set weights */
    assert_ok(leati_plan_run(s->plan, s->inputs, 0, (uint64_t)model->iterations, &err), &err);
    run_slabs_ran(&s->of->slabs, s->mode == LEATI_TRAIN);
    if (s->mode == LEATI_TRAIN) model->iterations += 1;
}

void model_stage_close(model_stage *s) {
    leati_plan_destroy(&s->plan);
    leati_graph_destroy(&s->program.graph);
}

static float scalar_of(const model_stage *s, leati_value value) {
    leat_tensor tensor = leati_plan_output(s->plan, value);
    assert_int_equal(leat_tensor_count(&tensor), 1);
    return *(const float *)tensor.data;
}

static double metric_of(const model_stage *s, int index) {
    const leati_metric *metric = &s->of->model->compiled.metrics[index];
    const leati_value handles[] = {s->program.metrics[index], s->program.metric_targets[index],
                                   s->program.metric_weights[index]};
    leat_tensor tensors[3];
    leat_error err = {0};
    double result, *state = calloc((size_t)metric->state_count, sizeof(double));
    assert_non_null(state);
    assert_int_equal(metric->result_count, 1);
    for (int i = 0; i < 3; ++i)
        if (handles[i] != LEATI_NONE) tensors[i] = leati_plan_output(s->plan, handles[i]);
    const leati_metric_batch batch = {&tensors[0], handles[1] == LEATI_NONE ? NULL : &tensors[1],
                                      handles[2] == LEATI_NONE ? NULL : &tensors[2]};
    assert_ok(leati_metric_add(metric, state, &batch, &err), &err);
    leati_metric_results(metric, state, &result);
    free(state);
    return result;
}

int model_stage_outputs(const model_stage *s, float *out) {
    const leati_compiled *compiled = &s->of->model->compiled;
    int count = 0;
    out[count++] = scalar_of(s, s->program.loss);
    for (int i = 0; compiled->output_count > 1 && i < compiled->output_count; ++i) {
        if (compiled->losses[i].type) out[count++] = scalar_of(s, s->program.output_losses[i]);
    }
    for (int i = 0; i < compiled->metric_count; ++i) {
        assert_true(count < CASE_MAX_OUTPUTS);
        out[count++] = (float)metric_of(s, i);
    }
    return count;
}

static void compare(const golden *g, const char *prefix, int index, const leat_tensor *got,
                    double tolerance) {
    leat_tensor expected;
    char what[64];
    snprintf(what, sizeof what, "%s%d", prefix, index);
    assert_true(golden_member(g, prefix, index, &expected));
    if (leat_tensor_count(got) != leat_tensor_count(&expected))
        fail_msg("%s: '%s' has another size", g->name, what);
    golden_compare(g, what, got->data, expected.data, leat_tensor_count(got), tolerance);
}

void model_stage_compare_predictions(const model_stage *s, const char *prefix, double tolerance) {
    for (int i = 0; i < s->of->model->output_count; ++i) {
        const leat_tensor got = leati_plan_output(s->plan, s->program.predictions[i]);
        compare(&s->of->g, prefix, i, &got, tolerance);
    }
}

void model_stage_compare_outputs(const model_stage *s, const char *member, int64_t row, double tolerance) {
    float got[CASE_MAX_OUTPUTS];
    int count = model_stage_outputs(s, got);
    leat_tensor all = test_npz_get(s->of->g.npz, member);
    assert_int_equal(all.shape[all.rank - 1], count);
    golden_compare(&s->of->g, member, got, (const float *)all.data + row * count, count, tolerance);
}

void model_case_compare_prediction(model_case *c, const char *prefix, double tolerance) {
    model_stage s;
    model_stage_open(&s, c, LEATI_PREDICT);
    model_stage_run(&s);
    model_stage_compare_predictions(&s, prefix, tolerance);
    model_stage_close(&s);
}

void model_case_compare_evaluation(model_case *c, double tolerance) {
    model_stage s;
    model_stage_open(&s, c, LEATI_TEST);
    model_stage_run(&s);
    model_stage_compare_outputs(&s, "test0", 0, tolerance);
    model_stage_close(&s);
}

void model_case_compare_weights(const model_case *c, const char *prefix, double tolerance) {
    for (int i = 0; i < leat_model_weight_count(c->model); ++i) {
        const leat_tensor got = leat_model_weight(c->model, i);
        compare(&c->g, prefix, i, &got, tolerance);
    }
}

/* The trainable entries are in Keras's order, like meta.trainable. */
void model_case_compare_gradients(const model_case *c, double tolerance) {
    const leati_weights *weights = &c->model->weights;
    assert_int_equal(weights->trainable_count, json_array_size(json_object_get(c->g.meta, "trainable")));
    for (int i = 0; i < weights->trainable_count; ++i) {
        const leati_weight *weight = weights->entries[i];
        char *data = (char *)weights->slab[LEATI_SLAB_GRADIENTS] + weight->offset_bytes;
        const leat_tensor got = leat_tensor_view(LEAT_F32, weight->desc.rank, weight->desc.shape, data);
        compare(&c->g, "g", i, &got, tolerance);
    }
}
