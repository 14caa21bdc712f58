/* SPDX-License-Identifier: Apache-2.0 */
/* compile: arguments in all their forms, names of metrics, round trips of training_config, errors. */
#include "cmocka_all.h"

#include <string.h>

#include "nn/model/model.h"
#include "nn/optimizers/types.h"
#include "nn/run.h"
#include "nn/small_models.h"

static leat_model *make(const char *json) {
    leat_error err = {0};
    leat_model *model = NULL;
    assert_ok(leat_model_from_json(&model, json, &err), &err);
    return model;
}

static leat_status compile(leat_model *model, const char *loss, const char *metrics, const char *weighted,
                           leat_error *err) {
    leat_compile_options options = leat_compile_options_default();
    options.loss = loss;
    options.metrics = metrics;
    options.weighted_metrics = weighted;
    return leat_model_compile(model, &options, err);
}

/* Writes the names of a compiled model's metrics, separated by commas. */
static const char *names_of(const leat_model *model, char *out, size_t bytes) {
    out[0] = '\0';
    for (int i = 0; i < model->compiled.metric_count; ++i) {
        if (i > 0) strncat(out, ",", bytes - strlen(out) - 1);
        strncat(out, model->compiled.metrics[i].name, bytes - strlen(out) - 1);
    }
    return out;
}

/* Current Keras keeps the word for a metric, and names a weighted metric whose name is taken. */
static void test_metric_names_of_current_keras(void **state) {
    (void)state;
    static const struct {
        const char *model, *metrics, *weighted, *names;
    } rows[] = {
        {SMALL_ONE, "acc", "acc,mae", "acc,weighted_acc,mae"},
        {SMALL_ONE, "['AUC', 'mse']", "AUC()", "AUC,mse,auc"},
        {SMALL_TWO, "mse", "mse", "a_mse,a_weighted_mse,b_mse,b_weighted_mse"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        char names[256];
        leat_error err = {0};
        leat_model *model = make(rows[i].model);
        leat_compile_options options = leat_compile_options_default();
        options.loss = "mse";
        options.arithmetic = "keras3";
        options.metrics = rows[i].metrics;
        options.weighted_metrics = rows[i].weighted;
        assert_ok(leat_model_compile(model, &options, &err), &err);
        assert_string_equal(names_of(model, names, sizeof names), rows[i].names);
        leat_model_destroy(&model);
    }
}

static void test_metric_names(void **state) {
    (void)state;
    static const struct {
        const char *model, *metrics, *weighted, *names;
    } rows[] = {
        {SMALL_ONE, NULL, NULL, ""},
        {SMALL_ONE, "accuracy", NULL, "accuracy"},
        {SMALL_ONE, "acc, mse", NULL, "acc,mse"},
        {SMALL_ONE, "[\"acc\", \"acc\"]", NULL, "acc"},
        {SMALL_ONE, "['acc', 'mse']", "'mae'", "acc,mse,mae"},
        {SMALL_ONE, "'acc', \"mse\"", NULL, "acc,mse"},
        {SMALL_ONE, "{'y': 'acc'}", NULL, "acc"},
        {SMALL_ONE, "{'class_name': 'AUC', 'config': {'name': 'it\\'s'}}", NULL, "it's"},
        {SMALL_ONE, "acc", "acc,mae", "acc,acc_1,mae"},
        {SMALL_ONE, "{\"y\": \"acc\"}", NULL, "acc"},
        {SMALL_ONE, "AUC, AUC(curve=PR) ,Precision(thresholds=0.3)", "AUC", "auc,auc_1,precision,auc_2"},
        {SMALL_ONE, "Precision(thresholds=[0.3, 0.5], class_id=None), acc", NULL, "precision,acc"},
        {SMALL_ONE, "Recall(name='r', top_k=2),Recall(name=\"a,b\")", NULL, "r,a,b"},
        {SMALL_ONE, "AUC(multi_label=True, num_labels=3, from_logits=True, label_weights=[1, 2, 3])", NULL,
         "auc"},
        {SMALL_TWO, "AUC()", "Precision", "a_auc,a_precision,b_auc,b_precision"},
        {SMALL_ONE,
         "[{\"class_name\": \"TopKCategoricalAccuracy\", \"config\": {\"k\": 2, \"name\": \"top2\"}}]", NULL,
         "top2"},
        {SMALL_ONE, "[{\"class_name\": \"MeanSquaredError\", \"config\": {\"name\": \"loss\"}}]", NULL,
         "loss_1"},
        {SMALL_TWO, "accuracy", NULL, "a_accuracy,b_accuracy"},
        {SMALL_TWO, "[[\"acc\"], [\"acc\", \"mse\"]]", NULL, "a_acc,b_acc,b_mse"},
        {SMALL_TWO, "[\"mae\", [\"acc\", \"mse\"]]", NULL, "a_mae,b_acc,b_mse"},
        {SMALL_TWO, "{\"b\": [\"acc\"]}", "mse", "a_mse,b_acc,b_mse"},
        {SMALL_TWO, "[{\"class_name\": \"MeanSquaredError\", \"config\": {\"name\": \"loss\"}}]", NULL,
         "a_loss_1,b_loss_1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        char names[256];
        leat_error err = {0};
        leat_model *model = make(rows[i].model);
        assert_ok(compile(model, "mse", rows[i].metrics, rows[i].weighted, &err), &err);
        assert_string_equal(names_of(model, names, sizeof names), rows[i].names);
        leat_model_destroy(&model);
    }
}

/* An output without a loss has no metrics. */
static void test_losses_by_output(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make(SMALL_TWO);
    char names[256];
    assert_ok(compile(model, "mse, binary_crossentropy", "acc", NULL, &err), &err);
    assert_string_equal(model->compiled.losses[0].type->measure.name, "mean_squared_error");
    assert_string_equal(model->compiled.losses[1].type->measure.name, "binary_crossentropy");
    assert_ok(compile(model, "{\"b\": {\"class_name\": \"Huber\", \"config\": {\"delta\": 2.0}}}", "acc",
                      NULL, &err),
              &err);
    assert_null(model->compiled.losses[0].type);
    assert_true(model->compiled.losses[1].options.delta == 2.0);
    assert_string_equal(names_of(model, names, sizeof names), "b_acc");
    assert_ok(compile(model, "[null, \"mse\"]", NULL, NULL, &err), &err);
    assert_null(model->compiled.losses[0].type);
    leat_compile_options options = leat_compile_options_default();
    options.loss = "mse";
    options.loss_weights = "0.25, 2";
    assert_ok(leat_model_compile(model, &options, &err), &err);
    assert_true(model->compiled.losses[0].weight == 0.25 && model->compiled.losses[1].weight == 2.0);
    options.loss_weights = "{\"b\": 3}";
    assert_ok(leat_model_compile(model, &options, &err), &err);
    assert_true(model->compiled.losses[0].weight == 1.0 && model->compiled.losses[1].weight == 3.0);
    leat_model_destroy(&model);
}

static void test_temporal(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make(SMALL_SEQUENCE);
    leat_compile_options options = leat_compile_options_default();
    options.loss = "mse";
    options.sample_weight_mode = "temporal";
    assert_ok(leat_model_compile(model, &options, &err), &err);
    assert_true(model->compiled.losses[0].temporal);
    options.sample_weight_mode = "[null]";
    assert_ok(leat_model_compile(model, &options, &err), &err);
    assert_false(model->compiled.losses[0].temporal);
    options.sample_weight_mode = "daily";
    assert_int_equal(leat_model_compile(model, &options, &err), LEAT_EINVAL);
    leat_model_destroy(&model);
    model = make(SMALL_ONE);
    options.sample_weight_mode = "temporal";
    assert_int_equal(leat_model_compile(model, &options, &err), LEAT_ESHAPE);
    assert_non_null(strstr(err.message, "output 'y'"));
    leat_model_destroy(&model);
}

static void test_learning_rate(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make(SMALL_ONE);
    assert_false(leat_model_is_compiled(model));
    assert_true(leat_model_learning_rate(model) == 0.0);
    assert_ok(compile(model, "mse", NULL, NULL, &err), &err);
    assert_true(leat_model_is_compiled(model));
    assert_string_equal(model->compiled.optimizer->type->class_name, "RMSprop");
    assert_true(leat_model_learning_rate(model) == (double)0.001f);
    leat_model_set_learning_rate(model, 0.5);
    float scalars[LEATI_OPTIMIZER_MAX_SCALARS];
    leati_optimizer_scalars(model->compiled.optimizer, 0, scalars);
    assert_true(scalars[0] == 0.5f);
    leat_model_destroy(&model);
}

/* A failed compile leaves the model unchanged; a successful one resets the optimizer. */
static void test_again(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make(SMALL_ONE);
    assert_ok(compile(model, "mse", "mae", NULL, &err), &err);
    uint64_t version = model->version;
    model->iterations = 7;
    assert_int_equal(compile(model, "mse", "mea", NULL, &err), LEAT_ENOTFOUND);
    assert_true(leat_model_is_compiled(model));
    assert_int_equal(model->iterations, 7);
    assert_int_equal(model->version, version);
    assert_int_equal(model->compiled.metric_count, 1);
    assert_ok(compile(model, "mse", NULL, NULL, &err), &err);
    assert_int_equal(model->iterations, 0);
    assert_true(model->version != version);
    leat_model_destroy(&model);
}

/* Compiling from a training_config gives the same training_config. */
static void test_training_config(void **state) {
    (void)state;
    static const char *const configs[] = {
        "{\"optimizer_config\": {\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.5, \"momentum\": "
        "0.25,"
        " \"decay\": 0.0, \"nesterov\": false, \"clipvalue\": 0.5}}, \"loss\": \"mean_squared_error\", "
        "\"metrics\": "
        "[\"acc\"],"
        " \"weighted_metrics\": null, \"sample_weight_mode\": null, \"loss_weights\": null}",
        "{\"optimizer_config\": {\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.5, \"beta_1\": "
        "0.5,"
        " \"beta_2\": 0.75, \"decay\": 0.0, \"epsilon\": 1e-7, \"amsgrad\": true}}, \"loss\": {\"a\": "
        "{\"class_name\":"
        " \"CategoricalCrossentropy\", \"config\": {\"reduction\": \"sum\", \"name\": "
        "\"categorical_crossentropy\","
        " \"from_logits\": false, \"label_smoothing\": 0.5}}, \"b\": \"mean_squared_error\"}, \"metrics\": "
        "{\"a\": "
        "[\"acc\"]},"
        " \"weighted_metrics\": [\"mae\"], \"sample_weight_mode\": [null, null], \"loss_weights\": [1.0, "
        "0.5]}",
    };
    for (size_t i = 0; i < 2; ++i) {
        leat_error err = {0};
        leat_model *model = make(i == 0 ? SMALL_ONE : SMALL_TWO);
        json_t *config = json_loads(configs[i], 0, NULL), *written = NULL;
        assert_non_null(config);
        assert_ok(leati_model_compile_config(model, config, &err), &err);
        assert_ok(leati_model_training_config(model, &written, &err), &err);
        if (!json_equal(written, config)) fail_msg("%s", json_dumps(written, JSON_SORT_KEYS));
        json_decref(written);
        json_decref(config);
        leat_model_destroy(&model);
    }
}

/* Current Keras cannot open a file whose loss is called "mse". */
static void test_loss_names(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make(SMALL_ONE);
    json_t *written = NULL;
    assert_ok(compile(model, "mse", "[\"mse\"]", NULL, &err), &err);
    assert_ok(leati_model_training_config(model, &written, &err), &err);
    assert_string_equal(json_string_value(json_object_get(written, "loss")), "mean_squared_error");
    const json_t *metric = json_array_get(json_object_get(written, "metrics"), 0);
    assert_string_equal(json_string_value(metric), "mse");
    json_decref(written);
    leat_model_destroy(&model);
}

/* Objects of Keras 3 are written in a form that Keras 2.3.1 reads. */
static void test_keras3_config(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make(SMALL_ONE);
    json_t *written = NULL;
    assert_ok(
        compile(
            model,
            "{\"module\": \"keras.losses\", \"class_name\": \"CategoricalCrossentropy\", \"config\": "
            "{\"name\":"
            " \"x\", \"reduction\": \"sum_over_batch_size\", \"from_logits\": false, \"label_smoothing\": "
            "0.0,"
            " \"axis\": -1, \"dtype\": null}, \"registered_name\": null}",
            "[{\"module\": \"keras.metrics\", \"class_name\": \"MeanAbsoluteError\", \"config\": {\"name\":"
            " \"mean_absolute_error\", \"dtype\": null}, \"registered_name\": null}]",
            NULL, &err),
        &err);
    assert_ok(leati_model_training_config(model, &written, &err), &err);
    const json_t *loss = json_object_get(written, "loss");
    assert_int_equal(json_object_size(loss), 2);
    assert_null(json_object_get(json_object_get(loss, "config"), "axis"));
    const json_t *metric = json_array_get(json_object_get(written, "metrics"), 0);
    assert_string_equal(json_string_value(metric), "mean_absolute_error");
    json_decref(written);
    leat_model_destroy(&model);
}

static void compile_in(leat_model *model, const char *optimizer, const char *arithmetic) {
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = optimizer;
    options.loss = "mse";
    options.arithmetic = arithmetic;
    assert_ok(leat_model_compile(model, &options, &err), &err);
}

/* A model keeps its arithmetic until a compilation names another one, and so do its training_config and its clones. */
static void test_arithmetic(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make(SMALL_ONE), *other = make(SMALL_ONE), *clone = NULL;
    json_t *config = NULL;
    compile_in(model, "adagrad", NULL);
    assert_false(model->compiled.as_keras3);
    assert_true(model->compiled.optimizer->type == &leati_optimizer_adagrad);
    assert_float_equal(leat_model_learning_rate(model), 0.01, 1e-9);
    compile_in(model, "adagrad", "keras3");
    assert_true(model->compiled.optimizer->type == &leati_optimizer_adagrad_as_keras3);
    assert_float_equal(leat_model_learning_rate(model), 0.001, 1e-9);
    assert_float_equal(((const float *)model->weights.slab[LEATI_SLAB_SLOT0])[0], 0.1, 1e-9);
    compile_in(model, "rmsprop(momentum=0.5)", NULL);
    assert_true(model->compiled.optimizer->type == &leati_optimizer_rmsprop_as_keras3);
    assert_ok(leati_model_training_config(model, &config, &err), &err);
    assert_string_equal(json_string_value(json_object_get(config, "arithmetic")), "keras3");
    assert_ok(leati_model_compile_config(other, config, &err), &err);
    assert_true(other->compiled.as_keras3 && other->compiled.losses[0].options.as_keras3);
    assert_ok(leat_model_clone(&clone, other, true, &err), &err);
    compile_in(clone, "nadam", NULL);
    assert_true(clone->compiled.as_keras3);
    json_object_set_new(config, "arithmetic", json_string("keras4"));
    assert_int_equal(leati_model_compile_config(other, config, &err), LEAT_EINVAL);
    assert_non_null(
        strstr(err.message, "arithmetic: expected \"keras2\" or \"keras3\", received \"keras4\""));
    json_object_set_new(config, "arithmetic", json_true());
    assert_int_equal(leati_model_compile_config(other, config, &err), LEAT_EFORMAT);
    assert_true(other->compiled.as_keras3);
    json_decref(config);
    compile_in(model, "rmsprop", "keras2");
    assert_true(model->compiled.optimizer->type == &leati_optimizer_rmsprop);
    assert_ok(leati_model_training_config(model, &config, &err), &err);
    assert_null(json_object_get(config, "arithmetic"));
    json_decref(config);
    leat_model_destroy(&clone);
    leat_model_destroy(&other);
    leat_model_destroy(&model);
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *model, *loss, *metrics;
        leat_status status;
        const char *says;
    } rows[] = {
        {SMALL_ONE, "msee", NULL, LEAT_ENOTFOUND, "unknown loss 'msee'; did you mean 'mse'?"},
        {SMALL_ONE, "mse", "acuracy", LEAT_ENOTFOUND, "did you mean 'accuracy'?"},
        {SMALL_ONE, "mse,mae", NULL, LEAT_EINVAL, "expected one item for the model's 1 output, received 2"},
        {SMALL_ONE, "{\"z\": \"mse\"}", NULL, LEAT_ENOTFOUND,
         "the model has no output 'z'; its outputs are 'y'"},
        {SMALL_ONE, "{\"z\": ", NULL, LEAT_EINVAL, "expected a name or JSON"},
        {SMALL_ONE, "mse,,mae", NULL, LEAT_EINVAL, "between commas"},
        {SMALL_ONE, "mse", "AUC(", LEAT_EINVAL, "metrics: expected Name(key=value, ...), received 'AUC('"},
        {SMALL_ONE, "mse", "AUC(PR)", LEAT_EINVAL, "metrics: AUC(...): expected key=value, received 'PR'"},
        {SMALL_ONE, "mse", "AUC(curve=)", LEAT_EINVAL, "metrics: AUC(curve=...): expected a number"},
        {SMALL_ONE, "mse", "AUC(curve=[1)", LEAT_EINVAL, "metrics: AUC(curve=...): expected a number"},
        {SMALL_ONE, "mse", "AUC(curv=PR)", LEAT_ENOTSUP, "unknown key 'curv'; did you mean 'curve'?"},
        {SMALL_ONE, "mse", "Recall(class_id=3)", LEAT_EINVAL, "a class from 0 to 2, received 3"},
        {SMALL_ONE, "Huber(delta=0", NULL, LEAT_EINVAL, "loss: expected Name(key=value, ...)"},
        {SMALL_TWO, "mse", "[[\"acc\"]]", LEAT_EINVAL,
         "metrics: expected one item for each of the model's 2 outputs"},
        {SMALL_TWO, "mse", "{\"c\": \"acc\"}", LEAT_ENOTFOUND, "metrics: the model has no output 'c'"},
        {SMALL_TWO, "categorical_crossentropy", NULL, LEAT_ESHAPE, "binary_crossentropy"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        leat_error err = {0};
        leat_model *model = make(rows[i].model);
        assert_int_equal(compile(model, rows[i].loss, rows[i].metrics, NULL, &err), rows[i].status);
        if (!strstr(err.message, rows[i].says)) fail_msg("'%s' does not say '%s'", err.message, rows[i].says);
        assert_false(leat_model_is_compiled(model));
        leat_model_destroy(&model);
    }
    leat_error err = {0};
    leat_model *model = make(SMALL_ONE);
    json_t *config = json_object(), *written = NULL;
    assert_int_equal(leati_model_compile_config(model, config, &err), LEAT_EFORMAT);
    assert_int_equal(leati_model_training_config(model, &written, &err), LEAT_EINVAL);
    json_decref(config);
    leat_model_destroy(&model);
}

/* Single quotes, which a user can write inside double quotes in a shell. */
static void test_single_quotes(void **state) {
    static const char *const optimizers[] = {
        "{'class_name': 'SGD', 'config': {'learning_rate': 0.5}}",
        "{\"class_name\": 'SGD', 'config': {\"learning_rate\": 0.5}}",
        "SGD(learning_rate=0.5, name='it\\'s')",
        "'SGD'",
    };
    (void)state;
    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; ++i) {
        leat_error err = {0};
        leat_model *model = make(SMALL_ONE);
        const leat_compile_options options = {.size = sizeof options,
                                              .optimizer = optimizers[i],
                                              .loss = "'mse'",
                                              .loss_weights = "{'y': 1}"};
        if (leat_model_compile(model, &options, &err) != LEAT_OK)
            fail_msg("%s: %s", optimizers[i], err.message);
        assert_float_equal((float)leat_model_learning_rate(model), i < 3 ? 0.5F : 0.01F, 1e-6F);
        leat_model_destroy(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metric_names_of_current_keras),
        cmocka_unit_test(test_metric_names),
        cmocka_unit_test(test_losses_by_output),
        cmocka_unit_test(test_temporal),
        cmocka_unit_test(test_learning_rate),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_training_config),
        cmocka_unit_test(test_loss_names),
        cmocka_unit_test(test_keras3_config),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_single_quotes),
        cmocka_unit_test(test_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
