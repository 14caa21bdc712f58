/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 files are written into a buffer in memory and read from borrowed bytes. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "h5/h5.h"

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

/* Writes the attribute 'text' and a dataset of the integers from `first` to `first + count - 1`. */
static leat_status fill(leati_h5 *file, const char *text, int32_t first, int64_t count, leat_error *err) {
    int32_t *numbers = leati_calloc((size_t)count, sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; ++i) numbers[i] = first + (int32_t)i;
    leat_tensor tensor = leat_tensor_view(LEAT_I32, 1, &count, numbers);
    leat_status status = leati_h5_write_string(file, "/", "text", text, err);
    if (status == LEAT_OK) status = leati_h5_write(file, "numbers", &tensor, err);
    leati_free(numbers);
    return status;
}

static leati_h5_buffer make_file(const char *text, int32_t first, int64_t count) {
    leat_error err = {0};
    leati_h5 *file = NULL;
    leati_h5_buffer buffer = {0};
    must(leati_h5_create_in_memory(&file, "a file", &buffer, &err), &err);
    must(fill(file, text, first, count, &err), &err);
    must(leati_h5_close(&file, &err), &err);
    return buffer;
}

static void check_content(leati_h5 *file, const char *text, int32_t first, int64_t count) {
    leat_error err = {0};
    char *read = NULL;
    int32_t *numbers = leati_calloc((size_t)count, sizeof *numbers);
    assert_non_null(numbers);
    must(leati_h5_read_string(file, "/", "text", &read, &err), &err);
    assert_string_equal(read, text);
    leat_tensor tensor = leat_tensor_view(LEAT_I32, 1, &count, numbers);
    must(leati_h5_read(file, "numbers", &tensor, &err), &err);
    for (int64_t i = 0; i < count; ++i) assert_int_equal(numbers[i], first + i);
    leati_free(numbers);
    leati_free(read);
}

static void a_file_in_memory_has_the_bytes_of_one_on_disk(void **state) {
    (void)state;
    static unsigned char on_disk[1 << 20];
    leat_error err = {0};
    char path[] = "/tmp/leat-h5-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    leati_h5 *file = NULL;
    must(leati_h5_create(&file, path, fd, &err), &err);
    must(fill(file, "one", 7, 50000, &err), &err);
    must(leati_h5_close(&file, &err), &err);
    leati_h5_buffer buffer = make_file("one", 7, 50000);
    assert_int_equal(pread(fd, on_disk, sizeof on_disk, 0), buffer.count);
    assert_memory_equal(on_disk, buffer.data, buffer.count);
    leati_free(buffer.data);
    close(fd);
    unlink(path);
}

static void bytes_are_read_at_any_address(void **state) {
    (void)state;
    leati_h5_buffer buffer = make_file("odd", 1, 1000);
    for (size_t offset = 0; offset < 9; ++offset) {
        leat_error err = {0};
        leati_h5 *file = NULL;
        unsigned char *moved = malloc(buffer.count + offset);
        assert_non_null(moved);
        memcpy(moved + offset, buffer.data, buffer.count);
        must(leati_h5_open_bytes(&file, "odd", moved + offset, buffer.count, &err), &err);
        check_content(file, "odd", 1, 1000);
        must(leati_h5_close(&file, &err), &err);
        free(moved);
    }
    leati_free(buffer.data);
}

/* All .keras archives have a member of the same name, and two threads may load two archives at the same time. */
static void files_of_one_label_are_two_files(void **state) {
    (void)state;
    leat_error err = {0};
    leati_h5_buffer first = make_file("first", 100, 10), second = make_file("second", 200, 10);
    leati_h5 *a = NULL, *b = NULL;
    must(leati_h5_open_bytes(&a, "model.weights.h5", first.data, first.count, &err), &err);
    must(leati_h5_open_bytes(&b, "model.weights.h5", second.data, second.count, &err), &err);
    check_content(a, "first", 100, 10);
    check_content(b, "second", 200, 10);
    must(leati_h5_close(&a, &err), &err);
    check_content(b, "second", 200, 10);
    must(leati_h5_close(&b, &err), &err);
    leati_free(first.data);
    leati_free(second.data);
}

static void truncated_bytes_are_refused(void **state) {
    (void)state;
    leati_h5_buffer buffer = make_file("short", 1, 4);
    for (size_t bytes = 0; bytes < buffer.count; ++bytes) {
        leat_error err = {0};
        leati_h5 *file = NULL;
        unsigned char *exact = bytes ? leati_memdup(buffer.data, bytes) : NULL;
        if (leati_h5_open_bytes(&file, "short", exact, bytes, &err) != LEAT_EFORMAT)
            fail_msg("%zu bytes of %zu were opened", bytes, buffer.count);
        assert_null(file);
        assert_non_null(strstr(err.message, "short"));
        leati_free(exact);
    }
    leati_free(buffer.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_in_memory_has_the_bytes_of_one_on_disk),
        cmocka_unit_test(bytes_are_read_at_any_address),
        cmocka_unit_test(files_of_one_label_are_two_files),
        cmocka_unit_test(truncated_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
