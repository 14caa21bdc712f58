/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors files: what leat writes, what it reads, and damaged headers.  tests/interop/check_safetensors.py compares
 * with Python's package. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/model.h"
#include "support/memory_failing.h"

static const char small[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [{\"class_name\": \"Dense\", "
    "\"config\": {\"name\": \"a\", \"units\": 2, \"batch_input_shape\": [null, 3]}}]}}";
static const char nested[] = "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": "
                             "[{\"class_name\": \"Sequential\", "
                             "\"config\": {\"name\": \"inner\", \"layers\": [{\"class_name\": \"Dense\", "
                             "\"config\": {\"name\": \"a\", "
                             "\"units\": 2, \"batch_input_shape\": [null, 3]}}]}}, {\"class_name\": "
                             "\"Dense\", \"config\": {\"name\": \"a\", "
                             "\"units\": 1}}]}}";

typedef struct content {
    void *data;
    size_t bytes;
} content;

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static leat_model *model_of(const char *json) {
    leat_error err = {0};
    leat_model *model = NULL;
    must(leat_model_from_json(&model, json, &err), &err);
    return model;
}

static content saved(const leat_model *model) {
    leat_error err = {0};
    content file = {0};
    must(leat_model_save_weights_memory(model, LEAT_MODEL_FORMAT_SAFETENSORS, &file.data, &file.bytes, &err),
         &err);
    return file;
}

/* Makes a file of a header and data; the caller frees its data. */
static content file_of(const char *header, const void *data, size_t bytes) {
    const size_t length = strlen(header);
    content file = {calloc(8 + length + bytes + 1, 1), 8 + length + bytes};
    unsigned char *to = file.data;
    assert_non_null(to);
    for (size_t i = 0; i < 8; ++i) to[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memcpy(to + 8, header, length);
    memcpy(to + 8 + length, data, bytes);
    return file;
}

static float *numbers(leat_model *model, int index) {
    return leat_model_weight(model, index).data;
}

static void the_file_is_the_formats(void **state) {
    (void)state;
    static const char expected[] =
        "{\"__metadata__\": {\"format\": \"keras\"}, \"a/kernel\": {\"dtype\": \"F32\", \"shape\": [3, 2], "
        "\"data_offsets\": [0, 24]}, \"a/bias\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [24, "
        "32]}}";
    leat_model *model = model_of(small);
    content file = saved(model);
    const unsigned char *bytes = file.data;
    const size_t length = bytes[0] + 256u * bytes[1];
    assert_int_equal(length % 8, 0);
    assert_int_equal(file.bytes, 8 + length + 32);
    assert_memory_equal(bytes + 8, expected, strlen(expected));
    for (size_t i = strlen(expected); i < length; ++i) assert_int_equal(bytes[8 + i], ' ');
    assert_memory_equal(bytes + 8 + length, numbers(model, 0), 24);
    leat_bytes_free(file.data);
    leat_model_destroy(&model);
}

static void weights_come_back_by_name(void **state) {
    (void)state;
    char folder[] = "/tmp/leat-safetensors-XXXXXX", path[64];
    leat_error err = {0};
    leat_model *model = model_of(nested), *other = model_of(nested);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w.safetensors", folder);
    for (int i = 0; i < 4; ++i) numbers(model, i)[0] = (float)i + 0.5f;
    must(leat_model_save_weights(model, path, &err), &err);
    must(leat_model_load_weights(other, path, false, &err), &err);
    content a = saved(model), b = saved(other);
    assert_int_equal(a.bytes, b.bytes);
    assert_memory_equal(a.data, b.data, a.bytes);
    assert_non_null(strstr((char *)a.data + 8, "\"inner/a/kernel\""));
    for (int i = 0; i < 4; ++i) assert_true(numbers(other, i)[0] == (float)i + 0.5f);
    leat_bytes_free(a.data);
    leat_bytes_free(b.data);
    unlink(path);
    rmdir(folder);
    leat_model_destroy(&model);
    leat_model_destroy(&other);
}

static leat_status load(leat_model *model, content file, bool by_name, leat_error *err) {
    leat_status status = leat_model_load_weights_memory(model, file.data, file.bytes, by_name, err);
    free(file.data);
    return status;
}

/* 1.5, -2 and 0.25 in each type, with the bias first in the file. */
static void other_types_are_converted(void **state) {
    (void)state;
    static const uint16_t f16[] = {0x3e00, 0xc000, 0x3400, 0, 0, 0},
                          bf16[] = {0x3fc0, 0xc000, 0x3e80, 0, 0, 0};
    static const double f64[] = {1.5, -2, 0.25, 0, 0, 0};
    static const struct {
        const char *name;
        const void *data;
        size_t bytes;
    } types[] = {{"F16", f16, 12}, {"BF16", bf16, 12}, {"F64", f64, 48}};
    for (size_t i = 0; i < 3; ++i) {
        char header[256];
        unsigned char data[64] = {0};
        leat_error err = {0};
        leat_model *model = model_of(small);
        memcpy(data + 8, types[i].data, types[i].bytes);
        snprintf(header, sizeof header,
                 "{\"a/kernel\":{\"dtype\":\"%s\",\"shape\":[3,2],\"data_offsets\":[8,%zu]},"
                 "\"a/bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
                 types[i].name, 8 + types[i].bytes);
        must(load(model, file_of(header, data, 8 + types[i].bytes), false, &err), &err);
        assert_true(numbers(model, 0)[0] == 1.5f && numbers(model, 0)[1] == -2 &&
                    numbers(model, 0)[2] == 0.25f);
        leat_model_destroy(&model);
    }
}

#define KERNEL "\"a/kernel\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]}"
#define BIAS   "\"a/bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}"

static void wrong_files_are_refused_with_the_cause(void **state) {
    (void)state;
    static const struct {
        const char *header;
        leat_status status;
        const char *message;
    } cases[] = {
        {"{" KERNEL "}", LEAT_EFORMAT, "the tensors end at byte 24 of the 32 bytes behind the header"},
        {"{" KERNEL, LEAT_EFORMAT, "'<memory>': the header: "},
        {"{" KERNEL ",\"a/bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]}}", LEAT_EFORMAT,
         "tensor 'a/bias': expected its data at byte 24, where those before it end; they begin at 16"},
        {"{" KERNEL ",\"a/bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[28,36]}}", LEAT_EFORMAT,
         "expected a range within the 32 bytes behind the header, found 28 to 36"},
        {"{" KERNEL ",\"a/bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[32,24]}}", LEAT_EFORMAT,
         "expected a range within"},
        {"{" KERNEL ",\"a/bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[24,32]}}", LEAT_EFORMAT,
         "tensor 'a/bias': expected 3 numbers of 4 bytes, found 8 bytes"},
        {"{" KERNEL
         ",\"a/bias\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[24,32]}}",
         LEAT_EFORMAT, "tensor 'a/bias': expected"},
        {"{" KERNEL ",\"a/bias\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[24,32]}}", LEAT_EFORMAT,
         "'shape': expected integers of at least 0"},
        {"{" KERNEL ",\"a/bias\":{\"shape\":[2],\"data_offsets\":[24,32]}}", LEAT_EFORMAT,
         "'dtype': expected a name"},
        {"{" KERNEL ",\"a/bias\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[24,32]}}", LEAT_EDTYPE,
         "tensor 'a/bias': expected the type F32, F64, F16 or BF16, found 'I32'"},
        {"{" KERNEL ",\"a/bias\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[24,32]}}", LEAT_ESHAPE,
         "tensor 'a/bias': expected shape (2,), found (2, 1)"},
        {"{" KERNEL ",\"a/biass\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}", LEAT_EFORMAT,
         "the file has no tensor 'a/bias', which the model has as a weight; did you mean 'a/biass'"},
        {"{" KERNEL "," BIAS ",\"b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[32,32]}}",
         LEAT_EFORMAT, "the model has no weight for tensor 'b' of the file; load by name to ignore it"},
    };
    static const float data[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    leat_model *model = model_of(small);
    const float before = numbers(model, 0)[0];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        leat_error err = {0};
        leat_status status = load(model, file_of(cases[i].header, data, sizeof data), false, &err);
        if (!strstr(err.message, cases[i].message)) fail_msg("case %zu: %s", i, err.message);
        assert_int_equal(status, cases[i].status);
        assert_true(numbers(model, 0)[0] == before);
    }
    leat_model_destroy(&model);
}

static void by_name_leaves_the_rest_as_it_is(void **state) {
    (void)state;
    static const float data[8] = {7, 7, 7, 7, 7, 7, 8, 8};
    leat_error err = {0};
    leat_model *model = model_of(nested);
    const float before = numbers(model, 0)[0];
    static const char header[] =
        "{\"x\":{\"dtype\":\"F8_E5M2\",\"shape\":[24],\"data_offsets\":[0,24]},"
        "\"inner/a/bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}";
    must(load(model, file_of(header, data, sizeof data), true, &err), &err);
    assert_true(numbers(model, 0)[0] == before);
    assert_true(numbers(model, 1)[0] == 8 && numbers(model, 1)[1] == 8);
    leat_model_destroy(&model);
}

static void truncated_files_are_refused(void **state) {
    (void)state;
    leat_model *model = model_of(small);
    content file = saved(model);
    for (size_t bytes = 0; bytes < file.bytes; ++bytes) {
        leat_error err = {0};
        content part = {malloc(bytes + 1), bytes};
        assert_non_null(part.data);
        memcpy(part.data, file.data, bytes);
        assert_int_not_equal(load(model, part, false, &err), LEAT_OK);
        assert_true(err.message[0] != '\0');
    }
    leat_bytes_free(file.data);
    leat_model_destroy(&model);
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    leat_model *model = model_of(nested);
    bool more = true;
    for (int64_t n = 1; more; ++n) {
        leat_error err = {0};
        content file = {0};
        const int64_t live = memory_live();
        memory_fail_at(n);
        leat_status status = leat_model_save_weights_memory(model, LEAT_MODEL_FORMAT_SAFETENSORS, &file.data,
                                                            &file.bytes, &err);
        if (status == LEAT_OK)
            status = leat_model_load_weights_memory(model, file.data, file.bytes, false, &err);
        more = memory_failed();
        memory_fail_at(0);
        if (status != (more ? LEAT_ENOMEM : LEAT_OK)) fail_msg("allocation %d: %s", (int)n, err.message);
        leat_bytes_free(file.data);
        assert_int_equal(memory_live(), live);
    }
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_is_the_formats),
        cmocka_unit_test(weights_come_back_by_name),
        cmocka_unit_test(other_types_are_converted),
        cmocka_unit_test(wrong_files_are_refused_with_the_cause),
        cmocka_unit_test(by_name_leaves_the_rest_as_it_is),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
