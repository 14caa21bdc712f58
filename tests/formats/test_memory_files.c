/* SPDX-License-Identifier: Apache-2.0 */
/* Models and weights saved to memory have the bytes of a file and can be loaded; hostile bytes are refused. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "leat/layer.h"
#include "leat/model.h"
#include "nn/custom_layers.h"
#include "support/memory_failing.h"

#define FILES LEAT_SOURCE_DIR "/tests/golden/files/"

typedef struct content {
    void *data;
    size_t bytes;
} content;

static const char *const model_files[] = {
    "cnn_adam.h5",       "cnn_uncompiled.h5",      "lstm_nadam.h5",        "split_attributes.h5",
    "wrapped_sgd.h5",    "two_inputs_rmsprop.h5",  "keras3_functional.h5", "keras3_functional.keras",
    "keras3_lstm.keras", "keras3_adafactor.keras", "cnn_weights.json",     "two_inputs_weights.json",
};
enum { model_file_count = sizeof model_files / sizeof *model_files };

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static leat_model *load(const char *path) {
    leat_error err = {0};
    leat_model *model = NULL;
    must(leat_model_load(&model, path, &err), &err);
    return model;
}

static leat_model *load_golden(const char *name) {
    char path[256];
    snprintf(path, sizeof path, FILES "%s", name);
    return load(path);
}

static content read_file(const char *path) {
    struct stat about;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &about), 0);
    content out = {malloc((size_t)about.st_size + 1), (size_t)about.st_size};
    assert_non_null(out.data);
    assert_int_equal(fread(out.data, 1, out.bytes, file), out.bytes);
    fclose(file);
    return out;
}

static content read_golden(const char *name) {
    char path[256];
    snprintf(path, sizeof path, FILES "%s", name);
    return read_file(path);
}

static content save_to_memory(const leat_model *model, bool include_optimizer) {
    leat_error err = {0};
    content out = {0};
    must(leat_model_save_memory(model, LEAT_MODEL_FORMAT_H5, include_optimizer, &out.data, &out.bytes, &err),
         &err);
    return out;
}

static void expect_file(const char *path, const content *expected) {
    content file = read_file(path);
    assert_int_equal(file.bytes, expected->bytes);
    assert_memory_equal(file.data, expected->data, expected->bytes);
    free(file.data);
}

static void memory_has_the_bytes_of_the_file(void **state) {
    (void)state;
    char path[] = "/tmp/leat-memory-XXXXXX";
    close(mkstemp(path));
    for (int i = 0; i < model_file_count; ++i) {
        leat_error err = {0};
        leat_model *model = load_golden(model_files[i]);
        for (int with_optimizer = 0; with_optimizer < 2; ++with_optimizer) {
            content saved = save_to_memory(model, with_optimizer);
            must(leat_model_save(model, path, with_optimizer, &err), &err);
            expect_file(path, &saved);
            leat_bytes_free(saved.data);
        }
        content weights = {0};
        must(leat_model_save_weights_memory(model, LEAT_MODEL_FORMAT_H5, &weights.data, &weights.bytes, &err),
             &err);
        must(leat_model_save_weights(model, path, &err), &err);
        expect_file(path, &weights);
        leat_bytes_free(weights.data);
        leat_model_destroy(&model);
    }
    unlink(path);
}

static void expect_same_model(const leat_model *model, const leat_model *expected) {
    content a = save_to_memory(model, true), b = save_to_memory(expected, true);
    assert_int_equal(leat_model_is_compiled(model), leat_model_is_compiled(expected));
    assert_int_equal(a.bytes, b.bytes);
    assert_memory_equal(a.data, b.data, a.bytes);
    leat_bytes_free(a.data);
    leat_bytes_free(b.data);
}

/* The bytes have any alignment, and are freed before the model is used. */
static void every_format_is_loaded_as_from_its_file(void **state) {
    (void)state;
    for (int i = 0; i < model_file_count; ++i) {
        leat_error err = {0};
        content file = read_golden(model_files[i]);
        leat_model *model = NULL, *expected = load_golden(model_files[i]);
        size_t offset = (size_t)i % 8;
        char *moved = malloc(file.bytes + offset);
        assert_non_null(moved);
        memcpy(moved + offset, file.data, file.bytes);
        must(leat_model_load_memory(&model, moved + offset, file.bytes, NULL, &err), &err);
        free(moved);
        free(file.data);
        expect_same_model(model, expected);
        leat_model_destroy(&model);
        leat_model_destroy(&expected);
    }
}

static void weights_are_loaded_as_from_their_file(void **state) {
    (void)state;
    static const char *const names[] = {"cnn_weights", "two_inputs_weights"};
    for (int i = 0; i < 4; ++i) {
        leat_error err = {0};
        char json[64], h5[64], path[256];
        snprintf(json, sizeof json, "%s.json", names[i / 2]);
        snprintf(h5, sizeof h5, "%s.h5", names[i / 2]);
        snprintf(path, sizeof path, FILES "%s", h5);
        leat_model *model = load_golden(json), *expected = load_golden(json);
        content file = read_golden(h5);
        must(leat_model_load_weights_memory(model, file.data, file.bytes, i % 2, &err), &err);
        free(file.data);
        must(leat_model_load_weights(expected, path, i % 2, &err), &err);
        expect_same_model(model, expected);
        leat_model_destroy(&model);
        leat_model_destroy(&expected);
    }
}

static void custom_layers_are_loaded_by_a_registry(void **state) {
    (void)state;
    static const char json[] = "{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"times\", "
                               "\"config\": {\"name\": \"t\", \"batch_input_shape\": [null, 4]}}]}";
    leat_error err = {0};
    leat_registry *registry = custom_registry();
    leat_model *model = NULL, *again = NULL;
    must(leat_model_load_memory(&model, json, sizeof json - 1, registry, &err), &err);
    content saved = save_to_memory(model, true);
    assert_int_equal(leat_model_load_memory(&again, saved.data, saved.bytes, NULL, &err), LEAT_ENOTSUP);
    assert_null(again);
    must(leat_model_load_memory(&again, saved.data, saved.bytes, registry, &err), &err);
    leat_bytes_free(saved.data);
    expect_same_model(again, model);
    leat_model_destroy(&model);
    leat_model_destroy(&again);
    leat_registry_destroy(&registry);
}

/* ---- Bytes that are not a model ---- */

/* Loads a copy in a block of exactly that size, so that the address sanitizer sees reads beyond the end. */
static leat_status load_exactly(const void *data, size_t bytes, leat_error *err) {
    leat_model *model = NULL;
    char *exact = malloc(bytes ? bytes : 1);
    assert_non_null(exact);
    memcpy(exact, data, bytes);
    leat_status status = leat_model_load_memory(&model, exact, bytes, NULL, err);
    free(exact);
    assert_int_equal(status == LEAT_OK, model != NULL);
    leat_model_destroy(&model);
    return status;
}

static void expect_truncations_refused(const content *file, size_t step) {
    for (size_t bytes = 0; bytes < file->bytes; bytes += step) {
        leat_error err = {0};
        if (load_exactly(file->data, bytes, &err) == LEAT_OK)
            fail_msg("%zu bytes of %zu were loaded", bytes, file->bytes);
        assert_non_null(strstr(err.message, "<memory>"));
    }
}

static void truncated_bytes_are_refused(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = NULL;
    static const char json[] = "{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"Dense\", "
                               "\"config\": {\"units\": 1, \"batch_input_shape\": [null, 1]}}]}";
    content text = {(void *)(uintptr_t)json, sizeof json - 1};
    must(leat_model_load_memory(&model, text.data, text.bytes, NULL, &err), &err);
    content h5 = save_to_memory(model, true), archive = read_golden("keras3_adafactor.keras");
    expect_truncations_refused(&text, 1);
    expect_truncations_refused(&h5, 11); /* test_h5_memory.c has every length */
    expect_truncations_refused(&archive, 1);
    for (size_t bytes = 0; bytes < h5.bytes; bytes += 23) {
        if (leat_model_load_weights_memory(model, h5.data, bytes, false, &err) == LEAT_OK)
            fail_msg("the weights of %zu bytes of %zu were loaded", bytes, h5.bytes);
        assert_non_null(strstr(err.message, "<memory>"));
    }
    leat_bytes_free(h5.data);
    free(archive.data);
    leat_model_destroy(&model);
}

static void foreign_bytes_are_named_as_such(void **state) {
    (void)state;
    leat_error err = {0};
    assert_int_equal(load_exactly("", 0, &err), LEAT_EFORMAT);
    assert_int_equal(load_exactly("#!/bin/sh", 9, &err), LEAT_EFORMAT);
    assert_non_null(
        strstr(err.message,
               "'<memory>': expected a Keras .h5 or .keras file, an ONNX file, or a JSON architecture"));
    assert_int_equal(load_exactly("{}\0", 3, &err), LEAT_EFORMAT);
    content archive = read_golden("keras3_adafactor.keras"), weights = read_golden("cnn_weights.h5");
    leat_model *model = load_golden("cnn_adam.h5");
    assert_int_equal(leat_model_load_weights_memory(model, archive.data, archive.bytes, false, &err),
                     LEAT_EFORMAT);
    assert_int_equal(load_exactly(weights.data, weights.bytes, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "the file has weights only"));
    leat_model_destroy(&model);
    free(archive.data);
    free(weights.data);
}

/* Each byte in turn has all of its bits inverted: the result is a model, or an error with a message.  Not for .h5
 * files, whose structures HDF5 1.10 does not check well enough (docs/caveats.md); the members of this archive are
 * deflated. */
static void changed_archives_do_no_harm(void **state) {
    (void)state;
    content archive = read_golden("keras3_adafactor.keras");
    for (size_t at = 0; at < archive.bytes; ++at) {
        leat_error err = {0};
        unsigned char *byte = (unsigned char *)archive.data + at;
        *byte ^= 0xff;
        leat_status status = load_exactly(archive.data, archive.bytes, &err);
        *byte ^= 0xff;
        assert_true(status != LEAT_EINTERNAL);
        if (status != LEAT_OK) assert_true(err.message[0] != '\0');
    }
    free(archive.data);
}

static void formats_beyond_the_list_are_refused(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = load_golden("cnn_adam.h5");
    content out = {&err, 5};
    assert_int_equal(leat_model_save_memory(model, (leat_model_format)99, true, &out.data, &out.bytes, &err),
                     LEAT_EINVAL);
    assert_non_null(strstr(err.message, "LEAT_MODEL_FORMAT_H5"));
    assert_null(out.data);
    assert_int_equal(out.bytes, 0);
    leat_model_destroy(&model);
}

/* ---- Memory runs out ---- */

static leat_status save_and_load(const leat_model *model, leat_model_format format, leat_error *err) {
    content saved = {0}, weights = {0};
    leat_model *again = NULL;
    leat_status status = leat_model_save_memory(model, format, true, &saved.data, &saved.bytes, err);
    if (status == LEAT_OK) status = leat_model_load_memory(&again, saved.data, saved.bytes, NULL, err);
    if (status == LEAT_OK)
        status = leat_model_save_weights_memory(again, format, &weights.data, &weights.bytes, err);
    if (status == LEAT_OK)
        status = leat_model_load_weights_memory(again, weights.data, weights.bytes,
                                                format == LEAT_MODEL_FORMAT_H5, err);
    assert_int_equal(saved.data != NULL, saved.bytes > 0);
    leat_bytes_free(saved.data);
    leat_bytes_free(weights.data);
    leat_model_destroy(&again);
    return status;
}

static void check_allocations(const char *name, leat_model_format format) {
    leat_model *model = load_golden(name);
    bool more = true;
    for (int64_t n = 1; more; ++n) {
        leat_error err = {0};
        int64_t live = memory_live();
        memory_fail_at(n);
        leat_status status = save_and_load(model, format, &err);
        more = memory_failed();
        memory_fail_at(0);
        if (status != LEAT_OK && status != LEAT_ENOMEM) fail_msg("allocation %d: %s", (int)n, err.message);
        if (!more) assert_int_equal(status, LEAT_OK);
        assert_int_equal(memory_live(), live);
    }
    leat_model_destroy(&model);
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    check_allocations("lstm_sgd.h5", LEAT_MODEL_FORMAT_H5);
    check_allocations("keras3_lstm.h5", LEAT_MODEL_FORMAT_H5);
    check_allocations("keras3_lstm.keras", LEAT_MODEL_FORMAT_KERAS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_has_the_bytes_of_the_file),
        cmocka_unit_test(every_format_is_loaded_as_from_its_file),
        cmocka_unit_test(weights_are_loaded_as_from_their_file),
        cmocka_unit_test(custom_layers_are_loaded_by_a_registry),
        cmocka_unit_test(truncated_bytes_are_refused),
        cmocka_unit_test(foreign_bytes_are_named_as_such),
        cmocka_unit_test(changed_archives_do_no_harm),
        cmocka_unit_test(formats_beyond_the_list_are_refused),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
