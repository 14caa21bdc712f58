/* SPDX-License-Identifier: Apache-2.0 */
/* A training step and a prediction of attention layers, with one op, as plans of the host compute them, and as a chain
 * of products, softmax and dropout: both give the same weights and the same outputs. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "leat/rng.h"
#include "nn/examples.h"
#include "nn/model/model.h"
#include "nn/program/program.h"
#include "nn/run.h"

enum { BATCH = 5, MOST_INPUTS = 2 * LEATI_PROGRAM_MAX_OUTPUTS };

#define DROPS "\"dropout\": 0.25"

/* `ops` is the number of attentions in the layer. */
static const struct {
    int ops;
    example e;
} cases[] = {
    {1, {"MultiHeadAttention", "\"num_heads\": 2, \"key_dim\": 3", {{2, {7, 4}}, {2, {9, 5}}}}},
    {1,
     {"MultiHeadAttention",
      "\"num_heads\": 3, \"key_dim\": 3, \"value_dim\": 2, \"use_causal_mask\": true, " DROPS,
      {{2, {7, 4}}, {2, {9, 5}}, {2, {9, 2}}}}},
    {1,
     {"MultiHeadAttention",
      "\"num_heads\": 2, \"key_dim\": 4, \"use_gate\": true, \"sliding_window\": 2, \"seed\": 5, "
      "\"activity_regularizer\": \"l2\", \"output_shape\": [2, 3], " DROPS,
      {{2, {6, 4}}, {2, {6, 4}}}}},
    {1, {"MultiHeadAttention", "\"num_heads\": 2, \"key_dim\": 3, " DROPS, {{3, {2, 3, 4}}, {3, {4, 2, 4}}}}},
    {0,
     {"MultiHeadAttention",
      "\"num_heads\": 2, \"key_dim\": 3, \"attention_axes\": [2]",
      {{3, {2, 3, 4}}, {3, {2, 5, 4}}}}},
    {0,
     {"MultiHeadAttention",
      "\"num_heads\": 2, \"key_dim\": 3, \"return_attention_scores\": true, " DROPS,
      {{2, {7, 4}}, {2, {9, 5}}}}},
    {1,
     {"GroupQueryAttention",
      "\"head_dim\": 3, \"num_query_heads\": 4, \"num_key_value_heads\": 2, \"use_causal_mask\": "
      "true, " DROPS,
      {{2, {7, 4}}, {2, {9, 5}}}}},
    {1,
     {"GroupQueryAttention",
      "\"head_dim\": 3, \"num_query_heads\": 6, \"num_key_value_heads\": 1",
      {{2, {7, 4}}, {2, {1, 5}}}}},
    {1,
     {"Attention",
      "\"use_scale\": true, \"use_causal_mask\": true, " DROPS,
      {{2, {4, 3}}, {2, {5, 2}}, {2, {5, 3}}}}},
    {1, {"Attention", "", {{2, {4, 3}}, {2, {5, 3}}}}},
    {0, {"Attention", "\"score_mode\": \"concat\"", {{2, {4, 3}}, {2, {5, 3}}}}},
    {0, {"AdditiveAttention", "", {{2, {4, 3}}, {2, {5, 3}}}}},
    {1,
     {"keras_hub>TransformerEncoder",
      "\"intermediate_dim\": 5, \"num_heads\": 2, \"padding_mask\": true, \"attention_mask\": true, " DROPS,
      {{2, {6, 4}}, {1, {6}}, {2, {6, 6}}}}},
    {2,
     {"keras_hub>TransformerDecoder",
      "\"intermediate_dim\": 5, \"num_heads\": 2, \"encoder_sequence\": true, \"encoder_padding_mask\": "
      "true, " DROPS,
      {{2, {6, 4}}, {2, {5, 3}}, {1, {5}}}}},
};

/* A query with a mask, whose value has none: the mask is the same for all of a query's keys. */
static const char masked_query[] =
    "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": ["
    "{\"class_name\": \"InputLayer\", \"name\": \"q\", \"config\": {\"name\": \"q\", \"batch_input_shape\": "
    "[null, 6, 4], \"dtype\": \"float32\"}, \"inbound_nodes\": []}, "
    "{\"class_name\": \"InputLayer\", \"name\": \"v\", \"config\": {\"name\": \"v\", \"batch_input_shape\": "
    "[null, 5, 4], \"dtype\": \"float32\"}, \"inbound_nodes\": []}, "
    "{\"class_name\": \"Masking\", \"name\": \"masking\", \"config\": {\"name\": \"masking\"}, "
    "\"inbound_nodes\": [[[\"q\", 0, 0, {}]]]}, "
    "{\"class_name\": \"MultiHeadAttention\", \"name\": \"it\", \"config\": {\"name\": \"it\", "
    "\"num_heads\": 2, "
    "\"key_dim\": 3}, \"inbound_nodes\": [[[\"masking\", 0, 0, {}], [\"v\", 0, 0, {}]]]}], "
    "\"input_layers\": [[\"q\", 0, 0], [\"v\", 0, 0]], \"output_layers\": [[\"it\", 0, 0]]}}";
static const example of_masked_query = {"MultiHeadAttention",
                                        "of a masked query",
                                        {{2, {6, 4}}, {2, {5, 4}}}};

typedef struct bench {
    const example *e;
    leat_model *model;
    leati_program_spec spec;
    float *arrays[MOST_INPUTS];
    int array_count;
} bench;

static void bind(bench *b, leati_desc *desc, const leati_shape *shape, int classes) {
    leat_rng rng = leat_rng_for(1, 2, (uint64_t)b->array_count);
    *desc = leati_desc_make(LEAT_F32, shape->rank, shape->dims);
    desc->shape[0] = BATCH;
    int64_t count = leati_desc_count(desc);
    float *array = calloc((size_t)count, sizeof *array);
    assert_non_null(array);
    for (int64_t i = 0; i < count; ++i)
        array[i] = classes ? (float)leat_rng_below(&rng, (uint64_t)classes) : (float)leat_rng_normal(&rng);
    b->arrays[b->array_count++] = array;
}

static void open_bench(bench *b, const example *e) {
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    char json[EXAMPLE_MODEL_BYTES];
    *b = (bench){.e = e};
    if (e != &of_masked_query) example_model(json, e, true);
    assert_ok(leat_model_from_json(&b->model, e == &of_masked_query ? masked_query : json, &err), &err);
    options.optimizer = "{\"class_name\": \"SGD\", \"config\": {\"lr\": 0.5}}";
    options.loss = "mse";
    assert_ok(leat_model_compile(b->model, &options, &err), &err);
    b->spec.input_count = b->model->input_count;
    for (int i = 0; i < b->model->input_count; ++i) {
        leati_shape shape = leati_model_input_shape(b->model, i);
        bind(b, &b->spec.inputs[i], &shape, example_classes(e, i));
    }
    for (int i = 0; i < b->model->output_count; ++i) {
        leati_shape shape = leati_model_output_shape(b->model, i);
        b->spec.weights[i].rank = -1;
        bind(b, &b->spec.targets[i], &shape, 0);
    }
}

static void close_bench(bench *b) {
    for (int i = 0; i < b->array_count; ++i) free(b->arrays[i]);
    leat_model_destroy(&b->model);
}

static int count_ops(const leati_graph *graph, leati_op op) {
    int count = 0;
    for (int32_t n = 0; n < leati_graph_node_count(graph); ++n)
        count += leati_graph_node_at(graph, n)->op == op;
    return count;
}

/* Runs a step.  Copies the first output into y (of a prediction), and returns the number of ATTENTION ops. */
static int run_step(bench *b, const run_backend *backend, leati_mode mode, bool on_host, float *y) {
    leat_error err = {0};
    leati_program program = {0};
    leati_arena *arena = NULL;
    leati_plan *plan = NULL;
    leati_program_spec spec = b->spec;
    spec.mode = mode;
    spec.on_host = on_host;
    spec.target_count = mode == LEATI_PREDICT ? 0 : b->model->output_count;
    assert_ok(leati_program_build(b->model, &spec, &program, &err), &err);
    const int ops = count_ops(program.graph, LEATI_OP_ATTENTION);
    if (mode == LEATI_TRAIN) assert_int_equal(count_ops(program.graph, LEATI_OP_ATTENTION_BWD), ops);
    assert_ok(leati_arena_create(&arena, &err), &err);
    leati_plan_options options = {.threads = 1, .backends = backend->list, .arena = arena};
    memcpy(options.slabs, b->model->weights.slab, sizeof options.slabs);
    assert_ok(leati_plan_create(&plan, &program.graph, &options, &err), &err);
    leati_optimizer_scalars(b->model->compiled.optimizer, 0, b->model->weights.slab[LEATI_SLAB_SCALARS]);
    const void *inputs[MOST_INPUTS] = {0};
    for (int i = 0; i < b->array_count; ++i) inputs[i] = b->arrays[i];
    assert_ok(leati_plan_run(plan, inputs, 3, 4, &err), &err);
    if (y) {
        leat_tensor output = leati_plan_output(plan, program.predictions[0]);
        memcpy(y, output.data, leat_tensor_bytes(&output));
    }
    leati_plan_destroy(&plan);
    leati_arena_destroy(&arena);
    return ops;
}

static void compare(const bench *b, const run_backend *backend, const char *what, const float *got,
                    const float *expected, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        if (!(fabsf(got[i] - expected[i]) <= 2e-5f * (1 + fabsf(expected[i]))))
            fail_msg("%s {%s}, %s, %s [%d]: %g as an op, %g as a chain", b->e->class_name, b->e->config,
                     backend->name, what, (int)i, (double)got[i], (double)expected[i]);
}

/* Both steps begin with the same weights. */
static void check_step(bench *b, const run_backend *backend, int ops) {
    const int count = leat_model_weight_count(b->model);
    float **first = calloc((size_t)count, sizeof *first), **chain = calloc((size_t)count, sizeof *chain);
    assert_non_null(first);
    assert_non_null(chain);
    for (int i = 0; i < count; ++i) {
        leat_tensor w = leat_model_weight(b->model, i);
        first[i] = malloc(leat_tensor_bytes(&w));
        chain[i] = malloc(leat_tensor_bytes(&w));
        memcpy(first[i], w.data, leat_tensor_bytes(&w));
    }
    assert_int_equal(run_step(b, backend, LEATI_TRAIN, false, NULL), 0);
    for (int i = 0; i < count; ++i) {
        leat_tensor w = leat_model_weight(b->model, i);
        memcpy(chain[i], w.data, leat_tensor_bytes(&w));
        memcpy(w.data, first[i], leat_tensor_bytes(&w));
    }
    assert_int_equal(run_step(b, backend, LEATI_TRAIN, true, NULL), ops);
    for (int i = 0; i < count; ++i) {
        leat_tensor w = leat_model_weight(b->model, i);
        compare(b, backend, leat_model_weight_name(b->model, i), w.data, chain[i], leat_tensor_count(&w));
        free(first[i]);
        free(chain[i]);
    }
    free(first);
    free(chain);
}

static void check_prediction(bench *b, const run_backend *backend, int ops) {
    const int64_t count = leati_desc_count(&b->spec.targets[0]);
    float *op = calloc((size_t)count, sizeof *op), *chain = calloc((size_t)count, sizeof *chain);
    assert_int_equal(run_step(b, backend, LEATI_PREDICT, true, op), ops);
    assert_int_equal(run_step(b, backend, LEATI_PREDICT, false, chain), 0);
    compare(b, backend, "prediction", op, chain, count);
    free(op);
    free(chain);
}

static void the_op_equals_the_chain(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        for (int k = 0; run_backends[k].name; ++k) {
            bench b;
            open_bench(&b, &cases[i].e);
            check_step(&b, &run_backends[k], cases[i].ops);
            check_prediction(&b, &run_backends[k], cases[i].ops);
            close_bench(&b);
        }
}

static void a_masked_query_is_uniform(void **state) {
    (void)state;
    for (int k = 0; run_backends[k].name; ++k) {
        bench b;
        open_bench(&b, &of_masked_query);
        for (int i = 0; i < BATCH * 6 * 4; ++i)
            if (i / 4 % 3 == 1) b.arrays[0][i] = 0;
        check_step(&b, &run_backends[k], 1);
        check_prediction(&b, &run_backends[k], 1);
        close_bench(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_op_equals_the_chain),
                                       cmocka_unit_test(a_masked_query_is_uniform)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
