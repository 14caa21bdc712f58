/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th allocation fails, for every n, while a model is read, built, written, summarised, initialised or
 * frozen: the status is LEAT_ENOMEM, and no memory leaks.  jansson's allocations for values are counted; those of
 * its parser are not, because jansson 2.14 does not survive their failure. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/memory.h"
#include "nn/model/model.h"
#include "nn/custom_layers.h"
#include "nn/custom_parts.h"
#include "nn/run.h"
#include "support/memory_failing.h"

/* Every kind of layer that owns memory, a nested model, a shared layer, defaults of an older version, a NaN. */
static const char network[] =
    "{\"class_name\": \"Model\", \"keras_version\": \"2.2.4\", \"config\": {\"name\": \"m\", \"layers\": ["
    "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"config\": {\"name\": \"x\", \"batch_input_shape\": "
    "[null, 4, 3]}, \"inbound_nodes\": []},"
    "{\"class_name\": \"LSTM\", \"name\": \"lstm\", \"config\": {\"name\": \"lstm\", \"units\": 3, "
    "\"dropout\": NaN, "
    "\"recurrent_initializer\": \"orthogonal\", \"kernel_regularizer\": \"l2\", \"bias_constraint\": "
    "\"max_norm\"}, "
    "\"inbound_nodes\": [[[\"x\", 0, 0, {}]]]},"
    "{\"class_name\": \"Sequential\", \"name\": \"s\", \"config\": {\"name\": \"s\", \"layers\": "
    "[{\"class_name\": "
    "\"Dense\", \"config\": {\"name\": \"d\", \"units\": 3}}, {\"class_name\": \"BatchNormalization\", "
    "\"config\": {}}]}, "
    "\"inbound_nodes\": [[[\"lstm\", 0, 0, {}]], [[\"s\", 1, 0, {}]]]}],"
    "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"s\", 2, 0], [\"lstm\", 0, 0]]}}";

/* Runs `step` with the n-th allocation failing, for n = 1, 2, ..., until none fails; destroys its model if there
 * is one. */
static void sweep(leat_status (*step)(leat_model **model, leat_error *err), bool with_model,
                  int64_t at_least) {
    int64_t n = 0;
    for (bool more = true; more;) {
        leat_error err = {0};
        leat_model *model = NULL;
        int64_t before = memory_live();
        if (with_model) assert_ok(leat_model_from_json(&model, network, &err), &err);
        memory_fail_at(++n);
        leat_status status = step(&model, &err);
        more = memory_failed();
        memory_fail_at(0);
        if (status != (more ? LEAT_ENOMEM : LEAT_OK))
            fail_msg("allocation %d: status %d: %s", (int)n, status, err.message);
        if (more) assert_true(err.message[0] != '\0');
        leat_model_destroy(&model);
        assert_int_equal(memory_live(), before);
    }
    if (n < at_least) fail_msg("only %d allocations", (int)n);
}

static leat_status read_json(leat_model **model, leat_error *err) {
    return leat_model_from_json(model, network, err);
}

static leat_status write_json(leat_model **model, leat_error *err) {
    char *text = NULL;
    leat_status status = leat_model_to_json(*model, &text, err);
    assert_int_equal(text != NULL, status == LEAT_OK);
    leat_string_free(text);
    return status;
}

/* Cuts the model at a layer of its nested model, which is called twice, and at another input. */
static leat_status cut(leat_model **model, leat_error *err) {
    const char *inputs[] = {"s:0"}, *outputs[] = {"s:1/d", "s:1"};
    leat_model *part = NULL;
    leat_status status = leat_model_cut(&part, *model, inputs, 1, outputs, 2, err);
    assert_int_equal(part != NULL, status == LEAT_OK);
    leat_model_destroy(&part);
    return status;
}

static leat_status grow(leat_model **model, leat_error *err) {
    leat_builder *builder = NULL;
    leat_model *made = NULL;
    leat_status status = leat_builder_create_from(&builder, *model, err);
    if (status != LEAT_OK) return status;
    leat_node *input = leat_builder_input(builder, 0);
    leat_node *output = leat_dense(leat_builder_layer(builder, "lstm"), 2, NULL);
    status = leat_model_create(&made, &builder, &input, 1, &output, 1, err);
    assert_int_equal(made != NULL, status == LEAT_OK);
    leat_model_destroy(&made);
    return status;
}

static leat_status freeze_matching(leat_model **model, leat_error *err) {
    int count = -1;
    leat_status status = leat_model_set_trainable_matching(*model, "s/*", false, &count, err);
    assert_int_equal(count, status == LEAT_OK ? 2 : 0);
    return status;
}

static leat_status summarise(leat_model **model, leat_error *err) {
    char *text = NULL;
    leat_status status = leat_model_summary(*model, &text, err);
    assert_int_equal(text != NULL, status == LEAT_OK);
    leat_string_free(text);
    return status;
}

static leat_status summarise_json(leat_model **model, leat_error *err) {
    char *text = NULL;
    leat_status status = leat_model_summary_json(*model, &text, err);
    assert_int_equal(text != NULL, status == LEAT_OK);
    leat_string_free(text);
    return status;
}

static leat_status initialise(leat_model **model, leat_error *err) {
    return leat_model_initialize(*model, 5, err);
}

/* A failure leaves the order of weights unchanged. */
static leat_status freeze(leat_model **model, leat_error *err) {
    leat_status status = leat_model_set_trainable(*model, "d", false, err);
    bool frozen = strcmp(leat_model_weight_name(*model, 3), "s/batch_normalization_1/gamma:0") == 0;
    assert_int_equal(frozen, status == LEAT_OK);
    return status;
}

static leat_status clone(leat_model **model, leat_error *err) {
    leat_model *made = NULL;
    leat_status status = leat_model_clone(&made, *model, true, err);
    assert_int_equal(made != NULL, status == LEAT_OK);
    leat_model_destroy(&made);
    return status;
}

static leat_status build(leat_model **model, leat_error *err) {
    leat_builder *b = NULL, *inner_b = NULL;
    leat_model *inner = NULL;
    leat_status status = leat_builder_create(&inner_b, err);
    if (status != LEAT_OK) return status;
    leat_node *i = leat_input(inner_b, (const int64_t[]){6}, 1), *o = leat_dense(i, 3, "relu");
    status = leat_model_create(&inner, &inner_b, &i, 1, &o, 1, err);
    if (status != LEAT_OK) return status;
    status = leat_builder_create(&b, err);
    if (status != LEAT_OK) {
        leat_model_destroy(&inner);
        return status;
    }
    leat_node *in = leat_input(b, (const int64_t[]){6}, 1);
    leat_node *x = leat_dropout(leat_layerf(in, "Dense", "{'units': %d}", 6), 0.5),
              *y = leat_call_model(&inner, &x, 1);
    leat_node *both = leat_merge((leat_node *[]){x, y}, 2, "Concatenate", NULL);
    assert_null(inner);
    return leat_model_create(model, &b, &in, 1, &both, 1, err);
}

static void test_read(void **state) {
    (void)state;
    sweep(read_json, false, 80);
}

/* Custom layers: registers them, reads models with them, once for a Lambda, and checks a gradient. */
static leat_status use_custom_layers(leat_model **model, leat_error *err) {
    static const char json[] =
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [{\"class_name\": "
        "\"Product\", "
        "\"config\": {\"batch_input_shape\": [null, 4], \"units\": 3}}, {\"class_name\": \"Lambda\", "
        "\"config\": "
        "{\"name\": \"times\", \"function\": \"f\", \"arguments\": {\"factor\": 3.0}}}]}}";
    const leat_layer_definition product = custom_product(), times = custom_times();
    const leat_tensor shape = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 3}, NULL);
    leat_registry *registry = NULL;
    double worst;
    leat_status status = leat_registry_create(&registry, err);
    if (status == LEAT_OK) status = leat_registry_add(registry, &product, err);
    if (status == LEAT_OK) status = leat_registry_add(registry, &times, err);
    if (status == LEAT_OK) status = leat_model_from_json_with(model, json, registry, err);
    if (status == LEAT_OK)
        status = leat_layer_check_gradient(&product, "{\"units\": 2}", 1, &shape, &worst, err);
    leat_registry_destroy(&registry);
    return status == LEAT_OK ? clone(model, err) : status;
}

#define TRY_ADD(kind, definition_)                                                                           \
    do {                                                                                                     \
        const leat_##kind##_definition definition = (definition_);                                           \
        if (status == LEAT_OK) status = leat_registry_add_##kind(registry, &definition, err);                \
    } while (0)

/* Custom parts: registers them, reads a model with them, compiles it, writes and clones it. */
static leat_status use_custom_parts(leat_model **model, leat_error *err) {
    static const char json[] =
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [{\"class_name\": "
        "\"Dense\", "
        "\"config\": {\"batch_input_shape\": [null, 4], \"units\": 3, \"activation\": \"my_tanh\", "
        "\"kernel_initializer\": {\"class_name\": \"MyUniform\", \"config\": {\"seed\": 3}}, "
        "\"kernel_regularizer\": "
        "\"MyL2\", \"kernel_constraint\": \"MyMaxNorm\"}}]}}";
    leat_registry *registry = NULL;
    leat_compile_options compile = leat_compile_options_default();
    leat_status status = leat_registry_create(&registry, err);
    TRY_ADD(activation, custom_tanh());
    TRY_ADD(initializer, custom_uniform());
    TRY_ADD(regularizer, custom_l2());
    TRY_ADD(constraint, custom_max_norm());
    TRY_ADD(loss, custom_mse());
    TRY_ADD(metric, custom_error());
    TRY_ADD(optimizer, custom_adam());
    if (status == LEAT_OK) status = leat_model_from_json_with(model, json, registry, err);
    compile.loss = "MyMse";
    compile.metrics = "MyError,MyMse";
    compile.optimizer = "MyAdam";
    if (status == LEAT_OK) status = leat_model_compile(*model, &compile, err);
    leat_registry_destroy(&registry);
    return status == LEAT_OK ? clone(model, err) : status;
}

static void *allocate(size_t bytes) {
    return leati_calloc(bytes, 1);
}

static void test_use(void **state) {
    (void)state;
    json_set_alloc_funcs(allocate, leati_free);
    sweep(write_json, true, 50);
    sweep(summarise, true, 10);
    sweep(summarise_json, true, 10);
    sweep(initialise, true, 10);
    sweep(freeze, true, 5);
    json_set_alloc_funcs(malloc, free);
}

static void test_build(void **state) {
    (void)state;
    sweep(build, false, 100);
    sweep(use_custom_layers, false, 20);
    sweep(use_custom_parts, false, 60);
    sweep(clone, true, 50);
    sweep(cut, true, 60);
    sweep(grow, true, 60);
    sweep(freeze_matching, true, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_use),
        cmocka_unit_test(test_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
