/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX file above its limit has its large constants in a file beside it, which the ONNX file names. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/onnx/onnx.h"
#include "leat/model.h"

#define LIMIT 600

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

/* Returns the bytes of a file, for free. */
static char *content(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *data = malloc(1 << 20);
    assert_non_null(data);
    *bytes = fread(data, 1, 1 << 20, file);
    fclose(file);
    return data;
}

static bool has_text(const char *data, size_t bytes, const char *text) {
    const size_t length = strlen(text);
    for (size_t i = 0; i + length <= bytes; ++i)
        if (memcmp(data + i, text, length) == 0) return true;
    return false;
}

static void large_constants_are_beside_the_file(void **state) {
    (void)state;
    static const char path[] = "onnx_external.onnx", beside[] = "onnx_external.onnx.data";
    const char *text =
        "{\"class_name\": \"Sequential\", \"keras_version\": \"2.3.1\", \"config\": {\"name\": \"s\", "
        "\"layers\": "
        "[{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 19, \"batch_input_shape\": "
        "[null, 21]}}, {\"class_name\": \"Dense\", \"config\": {\"name\": \"b\", \"units\": 17}}]}}";
    leat_error err = {0};
    leat_model *model = NULL;
    size_t bytes = 0, data_bytes = 0;
    must(leat_model_from_json(&model, text, &err), &err);
    must(leati_onnx_save_within(model, path, LIMIT, &err), &err);
    char *file = content(path, &bytes), *data = content(beside, &data_bytes);
    const leat_tensor first = leat_model_weight(model, 0), second = leat_model_weight(model, 2);
    const size_t first_bytes = leat_tensor_bytes(&first), second_bytes = leat_tensor_bytes(&second);
    const size_t offset = (first_bytes + 63) / 64 * 64;
    char number[32];
    assert_true(has_text(file, bytes, beside)); /* without a folder */
    snprintf(number, sizeof number, "%zu", offset);
    assert_true(has_text(file, bytes, number));
    assert_true(data_bytes >= offset + second_bytes);
    assert_memory_equal(data, first.data, first_bytes);
    assert_memory_equal(data + offset, second.data, second_bytes);
    free(file);
    free(data);
    must(leati_onnx_save_within(model, path, 1 << 20, &err), &err); /* one file is enough */
    file = content(path, &bytes);
    assert_false(has_text(file, bytes, beside));
    assert_true(bytes > first_bytes + second_bytes);
    free(file);
    leat_model_destroy(&model);
    unlink(path);
    unlink(beside);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_constants_are_beside_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
