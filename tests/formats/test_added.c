/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tf.keras with add_loss and add_metric: leat computes them in fit and evaluate as tf.keras does, from the
 * file, from a clone and from a copy of the file; what it cannot compute is left out, and the reason is told. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/train.h"
#include "support/npz.h"

#define FILES LEAT_SOURCE_DIR "/tests/golden/files/"

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

/* What tf.keras recorded of a model. */
typedef struct vectors {
    leat_npz *npz;
    leat_array input, target;
    leat_arrays arrays;
} vectors;

static void open_vectors(vectors *v, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "files/%s.npz", name);
    *v = (vectors){.npz = test_npz_open(path)};
    v->input.tensor = test_npz_get(v->npz, "x0");
    v->arrays = (leat_arrays){.inputs = &v->input, .input_count = 1};
    if (!test_npz_has(v->npz, "t0")) return;
    v->target.tensor = test_npz_get(v->npz, "t0");
    v->arrays.targets = &v->target;
    v->arrays.target_count = 1;
}

static void check_near(const leat_tensor *got, const leat_tensor *want, const char *what) {
    const float *a = got->data, *b = want->data;
    double difference = 0, scale = 1e-30;
    assert_int_equal(leat_tensor_count(got), leat_tensor_count(want));
    for (int64_t i = 0; i < leat_tensor_count(want); ++i) {
        difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
        scale = fmax(scale, fabs((double)b[i]));
    }
    if (difference > 1e-5 * scale) fail_msg("%s: off by %g of the scale", what, difference / scale);
}

/* Compares the loss and the metrics, in their order, with those of test_on_batch. */
static void check_results(leat_model *model, const vectors *v) {
    leat_error err = {0};
    leat_logs logs = {0};
    const leat_tensor want = test_npz_get(v->npz, "test"), names = test_npz_get(v->npz, "names");
    char text[256], name[LEAT_LOG_NAME_BYTES + 2];
    snprintf(text, sizeof text, "%.*s", (int)leat_tensor_count(&names), (const char *)names.data);
    must(leat_model_test_on_batch(model, &v->arrays, &logs, &err), &err);
    assert_int_equal(logs.count, leat_tensor_count(&want));
    const char *before = text;
    for (int i = 0; i < logs.count; ++i) {
        const double expected = (double)((const float *)want.data)[i];
        snprintf(name, sizeof name, "\"%s\"", logs.items[i].name);
        const char *found = strstr(text, name);
        assert_true(found && found > before); /* the order of metrics_names */
        before = found;
        if (fabs(logs.items[i].value - expected) > 1e-5 * fabs(expected))
            fail_msg("%s: expected %.8g, received %.8g", name, expected, logs.items[i].value);
    }
}

static void check_model(leat_model *model, const vectors *v) {
    leat_error err = {0};
    leat_tensor output;
    const leat_arrays inputs = {.inputs = v->arrays.inputs, .input_count = 1};
    const leat_tensor want = test_npz_get(v->npz, "y0");
    must(leat_model_predict_on_batch(model, &inputs, &output, &err), &err);
    check_near(&output, &want, "prediction");
    check_results(model, v);
    for (int step = 1; step <= 10; ++step) {
        must(leat_model_train_on_batch(model, &v->arrays, NULL, &err), &err);
        for (int i = 0; i < leat_model_weight_count(model); ++i) {
            char name[32];
            snprintf(name, sizeof name, "s%d_w%d", step, i);
            if (!test_npz_has(v->npz, name)) continue;
            const leat_tensor expected = test_npz_get(v->npz, name), got = leat_model_weight(model, i);
            check_near(&got, &expected, leat_model_weight_name(model, i));
        }
    }
}

static void check_file(const char *name, const char *suffix) {
    leat_error err = {0};
    leat_model *model = NULL, *copy = NULL;
    vectors v;
    char path[256], written[] = "/tmp/leat-added-XXXXXX";
    snprintf(path, sizeof path, FILES "%s%s", name, suffix);
    close(mkstemp(written));
    open_vectors(&v, name);
    must(leat_model_load(&model, path, &err), &err);
    must(leat_model_save(model, written, true, &err), &err);
    must(leat_model_load(&copy, written, &err), &err);
    check_model(model, &v);
    check_model(copy, &v);
    leat_model_destroy(&copy);
    leat_model_destroy(&model);
    leat_npz_close(&v.npz);
    unlink(written);
}

static void losses_and_metrics_are_those_of_tf_keras(void **state) {
    (void)state;
    check_file("tf215_added", ".h5");
    check_file("tf215_added", ".keras");
    check_file("tf215_vae", ".h5");
    check_file("tf215_vae", ".keras");
}

static void a_clone_has_the_loss(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = NULL, *clone = NULL;
    leat_logs with = {0}, same = {0};
    vectors v;
    leat_compile_options compile = leat_compile_options_default();
    open_vectors(&v, "tf215_vae");
    must(leat_model_load(&model, FILES "tf215_vae.h5", &err), &err);
    must(leat_model_clone(&clone, model, true, &err), &err);
    compile.optimizer = "SGD(learning_rate=0.0)";
    must(leat_model_compile(clone, &compile, &err), &err);
    must(leat_model_test_on_batch(model, &v.arrays, &with, &err), &err);
    must(leat_model_test_on_batch(clone, &v.arrays, &same, &err), &err);
    assert_int_equal(same.count, 3);
    for (int i = 0; i < 3; ++i) assert_true(with.items[i].value == same.items[i].value);
    leat_model_destroy(&clone);
    leat_model_destroy(&model);
    leat_npz_close(&v.npz);
}

/* Current Keras has neither layer: an archive has the model without them, or is refused. */
static void an_archive_has_no_added_loss(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = NULL, *saved = NULL;
    leat_tensor output;
    vectors v;
    leat_model_load_options options = leat_model_load_options_default();
    leat_compile_options compile = leat_compile_options_default();
    static const char path[] = "leat_added_test.keras";
    open_vectors(&v, "tf215_added");
    must(leat_model_load(&model, FILES "tf215_added.h5", &err), &err);
    assert_int_equal(leat_model_save(model, path, true, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "current Keras has no add_loss and add_metric"));
    leat_model_destroy(&model);
    options.compile = false;
    must(leat_model_load_using(&model, FILES "tf215_added.h5", &options, &err), &err);
    must(leat_model_save(model, path, true, &err), &err);
    must(leat_model_load_using(&saved, path, &options, &err), &err);
    compile.loss = "mse";
    must(leat_model_compile(saved, &compile, &err), &err);
    assert_int_equal(leat_model_metric_count(saved), 1);
    must(leat_model_predict_on_batch(saved, &(leat_arrays){.inputs = &v.input, .input_count = 1}, &output,
                                     &err),
         &err);
    const leat_tensor want = test_npz_get(v.npz, "y0");
    check_near(&output, &want, "prediction");
    leat_model_destroy(&saved);
    leat_model_destroy(&model);
    leat_npz_close(&v.npz);
    unlink(path);
}

/* A loss that is not one number is left out of predictions, and refused where it would count. */
static void what_leat_cannot_compute_is_named(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = NULL;
    leat_compile_options compile = leat_compile_options_default();
    const char *text =
        "{\"class_name\": \"Functional\", \"keras_version\": \"2.15.0\", \"config\": {\"name\": \"m\", "
        "\"layers\": ["
        "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"config\": {\"batch_input_shape\": [null, 3], "
        "\"name\": "
        "\"x\"}, \"inbound_nodes\": []}, {\"class_name\": \"Dense\", \"name\": \"d\", \"config\": {\"name\": "
        "\"d\", "
        "\"units\": 2}, \"inbound_nodes\": [[[\"x\", 0, 0, {}]]]}, {\"class_name\": \"AddLoss\", \"name\": "
        "\"kept\", \"config\": {\"name\": \"kept\", \"unconditional\": false}, \"inbound_nodes\": [[[\"d\", "
        "0, 0, "
        "{}]]]}], \"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"d\", 0, 0]]}}";
    must(leat_model_from_json(&model, text, &err), &err);
    compile.loss = "mse";
    assert_int_equal(leat_model_compile(model, &compile, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "layer 'kept' (AddLoss) of the file adds a loss to the model"));
    assert_non_null(strstr(err.message, "expected one number for a batch"));
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_metrics_are_those_of_tf_keras),
        cmocka_unit_test(a_clone_has_the_loss),
        cmocka_unit_test(an_archive_has_no_added_loss),
        cmocka_unit_test(what_leat_cannot_compute_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
