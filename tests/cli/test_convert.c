/* SPDX-License-Identifier: Apache-2.0 */
/* `leat convert`: every pair of formats that can be converted keeps the predictions; the others are refused. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "data/files.h"

static int leave(void **state) {
    if (system("rm -rf run") != 0) return -1;
    return files_leave(state);
}

/* Reads the predictions of a model for the data into memory; returns their size. */
static size_t predictions(const char *model, char *content, size_t room) {
    char line[256];
    snprintf(line, sizeof line, "predict %s --data npz:d.npz --output y.npy --verbose 0", model);
    runs(line);
    FILE *file = fopen("y.npy", "rb");
    assert_non_null(file);
    size_t count = fread(content, 1, room, file);
    fclose(file);
    remove("y.npy");
    return count;
}

static void train_model(void) {
    runs(FIT "--epochs 1 --out run --overwrite --verbose 0");
}

static void models_keep_their_predictions(void **state) {
    (void)state;
    static const char *const steps[] = {
        "convert run/model.h5 a.keras",
        "convert a.keras b.h5",
        "convert b.h5 c.keras",
        "convert c.keras c.weights.h5",
        "convert c.keras c.json",
        "convert c.weights.h5 d.keras --model c.json",
        "convert c.weights.h5 w.weights.h5 --model small.json",
        "convert c.keras c.safetensors",
        "convert c.safetensors e.keras --model c.json",
    };
    static const char *const models[] = {"a.keras", "b.h5", "c.keras", "d.keras", "e.keras"};
    static char before[1 << 16], after[1 << 16];
    train_model();
    size_t count = predictions("run/model.h5", before, sizeof before);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; ++i) runs(steps[i]);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; ++i) {
        assert_int_equal(predictions(models[i], after, sizeof after), count);
        assert_memory_equal(before, after, count);
        remove(models[i]);
    }
    remove("c.json");
    remove("c.safetensors");
    remove("c.weights.h5");
    remove("w.weights.h5");
    assert_int_equal(system("rm -f .out .err"), 0);
}

/* ModelProto begins with the version of the file (field 1) and that of the operators (field 8). */
static void onnx_files_are_written_and_read(void **state) {
    (void)state;
    static const unsigned char begin[] = {0x08, 8, 0x42, 4, 0x0a, 0, 0x10, 17};
    unsigned char found[sizeof begin] = {0};
    train_model();
    runs("convert run/model.h5 m.onnx");
    FILE *file = fopen("m.onnx", "rb");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, sizeof found, file), sizeof found);
    fclose(file);
    assert_memory_equal(found, begin, sizeof begin);
    runs("convert m.onnx back.keras");
    runs("convert m.onnx back.h5");
    runs("summary m.onnx");
    remove("m.onnx");
    remove("back.keras");
    remove("back.h5");
    assert_int_equal(system("rm -f .out .err"), 0);
}

static void what_is_missing_is_told(void **state) {
    (void)state;
    refused("convert small.json x.keras", "'small.json' has no weights, which a .keras file has");
    refused("convert small.json x.weights.h5", "'small.json' has no weights");
    refused("convert w.weights.h5 x.keras",
            "'w.weights.h5' has weights only; name the model that they belong to with --model");
    refused("convert small.json x.txt",
            "expected a file name that ends in one of .weights.h5, .h5, .keras, .json, .onnx, "
            ".safetensors");
    refused("convert w.safetensors x.h5", "'w.safetensors' has weights only; name the model");
    refused("convert small.json x.onnx", "'small.json' has no weights, which a .onnx file has");
    fails("convert nowhere.onnx x.h5", "nowhere.onnx");
    refused("convert small.txt x.h5", "'small.txt': expected a file name that ends in one of");
    refused("convert small.json", "IN OUT is missing");
    refused("convert a.h5 b.h5 c.h5", "unexpected argument 'c.h5'");
    fails("convert nowhere.h5 x.keras", "nowhere.h5");
    assert_int_not_equal(access("x.keras", F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_keep_their_predictions),
        cmocka_unit_test(onnx_files_are_written_and_read),
        cmocka_unit_test(what_is_missing_is_told),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
