/* SPDX-License-Identifier: Apache-2.0 */
/* Files that Keras wrote are read, predict as in Keras, continue training as in Keras, and are written and read
 * again; damaged files are refused. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "leat/train.h"
#include "support/npz.h"

#define FILES LEAT_SOURCE_DIR "/tests/golden/files/"

typedef struct saved {
    unsigned char bytes[1 << 20];
    size_t count;
} saved;

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static leat_model *load(const char *path) {
    leat_error err = {0};
    leat_model *model = NULL;
    must(leat_model_load(&model, path, &err), &err);
    return model;
}

/* Returns the largest difference, relative to the largest expected value. */
static double distance(const leat_tensor *got, const leat_tensor *want) {
    assert_int_equal(leat_tensor_count(got), leat_tensor_count(want));
    double difference = 0, scale = 1e-30;
    const float *a = got->data, *b = want->data;
    for (int64_t i = 0; i < leat_tensor_count(want); ++i) {
        difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
        scale = fmax(scale, fabs((double)b[i]));
    }
    return difference / scale;
}

typedef struct vectors {
    leat_npz *npz;
    leat_array inputs[8], targets[8], weights[8];
    leat_arrays arrays;
} vectors;

static int32_t gather(leat_npz *npz, const char *prefix, leat_array *out) {
    int32_t count = 0;
    char name[16];
    while (snprintf(name, sizeof name, "%s%d", prefix, (int)count), test_npz_has(npz, name))
        out[count++] = (leat_array){.tensor = test_npz_get(npz, name)};
    return count;
}

static void open_vectors(vectors *v, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "files/%s.npz", name);
    *v = (vectors){.npz = test_npz_open(path)};
    v->arrays = (leat_arrays){v->inputs, v->targets, v->weights, 0, 0, 0};
    v->arrays.input_count = gather(v->npz, "x", v->inputs);
    v->arrays.target_count = gather(v->npz, "t", v->targets);
    v->arrays.sample_weight_count = gather(v->npz, "sw", v->weights);
}

static void check_predictions(leat_model *model, const vectors *v, double tolerance) {
    leat_error err = {0};
    leat_tensor outputs[8];
    char name[16];
    must(leat_model_predict_on_batch(model, &v->arrays, outputs, &err), &err);
    for (int i = 0; i < leat_model_output_count(model); ++i) {
        snprintf(name, sizeof name, "y%d", i);
        leat_tensor want = test_npz_get(v->npz, name);
        double d = distance(&outputs[i], &want);
        if (d > tolerance) fail_msg("%s: off by %g of the scale", name, d);
    }
}

/* Trains ten steps and compares the weights after each step for which the vectors have weights. */
static void check_continuation(leat_model *model, const vectors *v, double tolerance) {
    leat_error err = {0};
    char name[32];
    for (int step = 1; step <= 10; ++step) {
        must(leat_model_train_on_batch(model, &v->arrays, NULL, &err), &err);
        for (int i = 0; i < leat_model_weight_count(model); ++i) {
            snprintf(name, sizeof name, "s%d_w%d", step, i);
            if (!test_npz_has(v->npz, name)) continue;
            leat_tensor want = test_npz_get(v->npz, name), got = leat_model_weight(model, i);
            double d = distance(&got, &want);
            if (d > tolerance) fail_msg("step %d, %s: off by %g", step, leat_model_weight_name(model, i), d);
        }
    }
}

static void copy_file(const char *from, const char *to, long bytes) {
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    for (int c = fgetc(in); c != EOF && bytes != 0; c = fgetc(in), --bytes) fputc(c, out);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static const struct {
    const char *name;
    double predict, train; /* tolerances */
} trained[] = {
    {"cnn_adam", 1e-5, 1e-5},     {"cnn_adam_amsgrad", 1e-5, 1e-5},   {"lstm_sgd", 1e-5, 1e-5},
    {"lstm_adagrad", 1e-5, 1e-5}, {"lstm_adadelta", 1e-5, 1e-5},      {"lstm_adamax", 1e-5, 1e-5},
    {"lstm_nadam", 1e-5, 1e-5},   {"two_inputs_rmsprop", 1e-5, 1e-5}, {"wrapped_sgd", 1e-5, 1e-5},
};

static void keras_files_go_on_as_in_keras(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof trained / sizeof *trained; ++i) {
        char path[256];
        vectors v;
        snprintf(path, sizeof path, FILES "%s.h5", trained[i].name);
        print_message("  %s\n", trained[i].name);
        leat_model *model = load(path);
        open_vectors(&v, trained[i].name);
        check_predictions(model, &v, trained[i].predict);
        check_continuation(model, &v, trained[i].train);
        leat_npz_close(&v.npz);
        leat_model_destroy(&model);
    }
}

static void what_leat_writes_goes_on_just_the_same(void **state) {
    (void)state;
    leat_error err = {0};
    char copy[] = "/tmp/leat-h5-XXXXXX";
    close(mkstemp(copy));
    for (size_t i = 0; i < sizeof trained / sizeof *trained; ++i) {
        char path[256];
        vectors v;
        snprintf(path, sizeof path, FILES "%s.h5", trained[i].name);
        leat_model *model = load(path);
        must(leat_model_save(model, copy, true, &err), &err);
        leat_model_destroy(&model);
        model = load(copy);
        open_vectors(&v, trained[i].name);
        check_predictions(model, &v, trained[i].predict);
        check_continuation(model, &v, trained[i].train);
        leat_npz_close(&v.npz);
        leat_model_destroy(&model);
    }
    unlink(copy);
}

static void save_and_read(const leat_model *model, const char *path, saved *out) {
    leat_error err = {0};
    must(leat_model_save(model, path, true, &err), &err);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    out->count = fread(out->bytes, 1, sizeof out->bytes, file);
    assert_true(out->count < sizeof out->bytes);
    fclose(file);
}

/* The bytes do not depend on the time, so that cmp can compare two runs. */
static void the_same_model_is_the_same_bytes(void **state) {
    (void)state;
    static saved first, second;
    char path[] = "/tmp/leat-h5-XXXXXX";
    leat_model *model = load(FILES "lstm_sgd.h5");
    close(mkstemp(path));
    save_and_read(model, path, &first);
    sleep(1); /* times in HDF5 files have a resolution of one second */
    save_and_read(model, path, &second);
    assert_int_equal(first.count, second.count);
    assert_memory_equal(first.bytes, second.bytes, first.count);
    leat_model_destroy(&model);
    unlink(path);
}

static void other_files_predict_as_in_keras(void **state) {
    (void)state;
    const char *names[] = {"cnn_uncompiled", "split_attributes"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        char path[256];
        vectors v;
        snprintf(path, sizeof path, FILES "%s.h5", names[i]);
        print_message("  %s\n", names[i]);
        leat_model *model = load(path);
        open_vectors(&v, names[i]);
        check_predictions(model, &v, 1e-5);
        leat_npz_close(&v.npz);
        leat_model_destroy(&model);
    }
}

/* Both .h5 and .keras files have the optimizer's state. */
static void files_of_current_keras_go_on_as_there(void **state) {
    (void)state;
    static const char *const files[][2] = {
        {"keras3_sequential", "h5"},    {"keras3_sequential", "keras"}, {"keras3_functional", "h5"},
        {"keras3_functional", "keras"}, {"keras3_lstm", "h5"},          {"keras3_lstm", "keras"},
        {"keras3_adafactor", "keras"},  {"keras3_average", "keras"},    {"keras3_places", "keras"},
        {"keras3_rmsprop", "keras"},    {"keras3_nadam", "keras"},      {"keras3_embedding", "keras"},
        {"keras3_muon", "keras"},       {"keras3_free", "keras"},       {"keras3_scaled", "keras"},
        {"keras3_float16", "keras"},    {"keras3_skipping", "keras"},   {"keras3_scores", "keras"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        char path[256];
        vectors v;
        snprintf(path, sizeof path, FILES "%s.%s", files[i][0], files[i][1]);
        print_message("  %s.%s\n", files[i][0], files[i][1]);
        leat_model *model = load(path);
        open_vectors(&v, files[i][0]);
        check_predictions(model, &v, 1e-5);
        assert_true(test_npz_has(v.npz, "s10_w0"));
        check_continuation(model, &v, 1e-5);
        leat_npz_close(&v.npz);
        leat_model_destroy(&model);
    }
}

/* A model of current Keras goes on with current Keras's arithmetic after leat has saved it. */
static void models_of_current_keras_go_on_from_leat_s_file(void **state) {
    (void)state;
    static const char *const names[] = {"keras3_rmsprop", "keras3_nadam",    "keras3_embedding",
                                        "keras3_muon",    "keras3_free",     "keras3_scaled",
                                        "keras3_float16", "keras3_skipping", "keras3_scores"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        char path[256];
        leat_error err = {0};
        void *bytes = NULL;
        size_t size = 0;
        vectors v;
        snprintf(path, sizeof path, FILES "%s.keras", names[i]);
        leat_model *model = load(path), *again = NULL;
        must(leat_model_save_memory(model, LEAT_MODEL_FORMAT_H5, true, &bytes, &size, &err), &err);
        must(leat_model_load_memory(&again, bytes, size, NULL, &err), &err);
        open_vectors(&v, names[i]);
        check_continuation(again, &v, 1e-5);
        leat_npz_close(&v.npz);
        leat_model_destroy(&again);
        leat_model_destroy(&model);
        leat_bytes_free(bytes);
    }
}

static void weights_files_fit_an_architecture(void **state) {
    (void)state;
    const char *names[] = {"cnn_weights", "two_inputs_weights"};
    leat_error err = {0};
    for (int by_name = 0; by_name < 2; ++by_name)
        for (size_t i = 0; i < 2; ++i) {
            char path[256];
            vectors v;
            snprintf(path, sizeof path, FILES "%s.json", names[i]);
            leat_model *model = load(path);
            snprintf(path, sizeof path, FILES "%s.h5", names[i]);
            must(leat_model_load_weights(model, path, by_name, &err), &err);
            open_vectors(&v, names[i]);
            check_predictions(model, &v, 1e-5);
            leat_npz_close(&v.npz);
            leat_model_destroy(&model);
        }
}

static void weights_files_are_written_and_read(void **state) {
    (void)state;
    leat_error err = {0};
    char copy[] = "/tmp/leat-h5-XXXXXX";
    vectors v;
    close(mkstemp(copy));
    leat_model *model = load(FILES "cnn_adam.h5");
    must(leat_model_save_weights(model, copy, &err), &err);
    must(leat_model_initialize(model, 5, &err), &err);
    must(leat_model_load_weights(model, copy, false, &err), &err);
    open_vectors(&v, "cnn_adam");
    check_predictions(model, &v, 1e-5);
    leat_npz_close(&v.npz);
    leat_model *none = NULL;
    assert_int_equal(leat_model_load(&none, copy, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "the file has weights only"));
    leat_model *other = load(FILES "lstm_sgd.h5");
    assert_int_equal(leat_model_load_weights(other, copy, false, &err), LEAT_EFORMAT);
    leat_model_destroy(&other);
    leat_model_destroy(&model);
    unlink(copy);
}

static void a_failed_save_leaves_the_old_file(void **state) {
    (void)state;
    leat_error err = {0};
    char folder[] = "/tmp/leat-h5-XXXXXX", path[64];
    struct stat before, after;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.h5", folder);
    leat_model *model = load(FILES "cnn_adam.h5");
    must(leat_model_save(model, path, true, &err), &err);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(leat_model_save(model, "/no/such/folder/m.h5", true, &err), LEAT_EIO);
    if (geteuid() != 0) {
        assert_int_equal(chmod(folder, 0500), 0);
        assert_int_equal(leat_model_save(model, path, true, &err), LEAT_EIO);
        assert_int_equal(chmod(folder, 0700), 0);
    }
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    leat_model_destroy(&model);
}

static void truncated_files_are_refused(void **state) {
    (void)state;
    char copy[] = "/tmp/leat-h5-XXXXXX";
    struct stat whole;
    close(mkstemp(copy));
    assert_int_equal(stat(FILES "cnn_adam.h5", &whole), 0);
    for (long bytes = 0; bytes < whole.st_size; bytes += whole.st_size / 97 + 1) {
        leat_error err = {0};
        leat_model *model = NULL;
        copy_file(FILES "cnn_adam.h5", copy, bytes);
        leat_status status = leat_model_load(&model, copy, &err);
        if (status == LEAT_OK) fail_msg("%ld bytes of %ld were loaded", bytes, (long)whole.st_size);
        assert_null(model);
        assert_non_null(strstr(err.message, copy));
    }
    unlink(copy);
}

static void foreign_files_are_named_as_such(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = NULL;
    assert_int_equal(leat_model_load(&model, "/no/such/file.h5", &err), LEAT_ENOTFOUND);
    assert_int_equal(leat_model_load(&model, LEAT_SOURCE_DIR "/LICENSE", &err), LEAT_EFORMAT);
    assert_non_null(
        strstr(err.message, "expected a Keras .h5 or .keras file, an ONNX file, or a JSON architecture"));
    assert_null(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keras_files_go_on_as_in_keras),
        cmocka_unit_test(what_leat_writes_goes_on_just_the_same),
        cmocka_unit_test(the_same_model_is_the_same_bytes),
        cmocka_unit_test(other_files_predict_as_in_keras),
        cmocka_unit_test(files_of_current_keras_go_on_as_there),
        cmocka_unit_test(models_of_current_keras_go_on_from_leat_s_file),
        cmocka_unit_test(weights_files_fit_an_architecture),
        cmocka_unit_test(weights_files_are_written_and_read),
        cmocka_unit_test(a_failed_save_leaves_the_old_file),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(foreign_files_are_named_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
