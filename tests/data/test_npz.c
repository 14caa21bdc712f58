/* SPDX-License-Identifier: Apache-2.0 */
/* .npy and .npz files that leat writes are read back; damaged files are refused with a message. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/files.h"
#include "data/npy.h"
#include "data/npz.h"
#include "support/npz.h"
#include "tensor/number.h"

static bytes file;

/* Expects that an array is read in place, with the type and the bytes that were written. */
static void every_dtype_comes_back(void **state) {
    (void)state;
#define DTYPE(name, value, text, bytes) name,
    const leat_dtype dtypes[] = {LEAT_DTYPE_LIST(DTYPE)};
#undef DTYPE
    enum { count = sizeof dtypes / sizeof *dtypes };
    static uint64_t data[6] = {0x0100010000010001, 2, 0x3c00, UINT64_MAX, 0x7ff0000000000000, 1};
    const char *names[count];
    leat_tensor tensors[count];
    leat_error err = {0};
    for (int k = 0; k < count; ++k) {
        names[k] = k == 3 ? "a much longer name, with spaces" : leat_dtype_name(dtypes[k]);
        tensors[k] = leat_tensor_view(dtypes[k], 2, (int64_t[]){2, 3}, data);
    }
    assert_int_equal(leat_npz_write("all.npz", names, tensors, count, &err), LEAT_OK);
    char path[200];
    leat_npz *npz = test_npz_open(strcat(getcwd(path, 100), "/all.npz"));
    assert_int_equal(leat_npz_count(npz), count);
    for (int k = 0; k < count; ++k) {
        assert_string_equal(leat_npz_name(npz, k), names[k]);
        leat_tensor got = test_npz_get(npz, names[k]);
        assert_int_equal(got.dtype, dtypes[k]);
        assert_int_equal(got.rank, 2);
        assert_int_equal(got.shape[0], 2);
        assert_int_equal(got.shape[1], 3);
        assert_memory_equal(got.data, data, leat_tensor_bytes(&got));
        const leati_array *npy;
        assert_int_equal(leati_npz_array(npz, names[k], &npy, &err), LEAT_OK);
        assert_ptr_equal(npy->data, got.data);
    }
    assert_true(test_npz_has(npz, "float32"));
    assert_false(test_npz_has(npz, "g"));
    leat_npz_close(&npz);
    assert_null(npz);
}

static void stored_arrays_are_aligned_and_not_copied(void **state) {
    (void)state;
    float data[5] = {1, 2, 3, 4, 5};
    leat_tensor tensors[3];
    const char *names[] = {"a", "bc", "def"};
    leat_error err = {0};
    for (int k = 0; k < 3; ++k) tensors[k] = leat_tensor_view(LEAT_F32, 1, (int64_t[]){5}, data);
    assert_int_equal(leat_npz_write("aligned.npz", names, tensors, 3, &err), LEAT_OK);
    leat_npz *npz;
    assert_int_equal(leat_npz_open(&npz, "aligned.npz", &err), LEAT_OK);
    const char *base = NULL;
    for (int k = 0; k < 3; ++k) {
        leat_tensor got = test_npz_get(npz, names[k]);
        assert_int_equal((uintptr_t)got.data % 64, 0);
        const leati_array *npy;
        assert_int_equal(leati_npz_array(npz, names[k], &npy, &err), LEAT_OK);
        assert_ptr_equal(npy->data, got.data);
        if (base) assert_true((const char *)got.data - base < 1000); /* all arrays are in one mapping */
        base = got.data;
    }
    leat_npz_close(&npz);
}

static void the_same_data_makes_the_same_bytes(void **state) {
    (void)state;
    float data[5] = {1, 2, 3, 4, 5};
    leat_tensor tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){5}, data);
    const char *names[] = {"a"};
    static unsigned char first[2000], second[2000];
    assert_int_equal(leat_npz_write("same.npz", names, &tensor, 1, NULL), LEAT_OK);
    FILE *in = fopen("same.npz", "rb");
    size_t size = fread(first, 1, sizeof first, in);
    fclose(in);
    assert_int_equal(leat_npz_write("same.npz", names, &tensor, 1, NULL), LEAT_OK);
    in = fopen("same.npz", "rb");
    assert_int_equal(fread(second, 1, sizeof second, in), size);
    fclose(in);
    assert_memory_equal(first, second, size);
}

static void names_must_be_names(void **state) {
    (void)state;
    float data[1] = {1};
    leat_tensor tensors[2] = {leat_tensor_view(LEAT_F32, 0, NULL, data),
                              leat_tensor_view(LEAT_F32, 0, NULL, data)};
    leat_error err = {0};
    int before = files_count();
    assert_int_equal(leat_npz_write("bad.npz", (const char *[]){"a", "a"}, tensors, 2, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "'bad.npz'"));
    assert_int_equal(leat_npz_write("bad.npz", (const char *[]){""}, tensors, 1, &err), LEAT_EINVAL);
    assert_int_equal(files_count(), before);
}

/* Parses the array in `file` and returns the status. */
static leat_status parse(leati_array *npy, leat_error *err) {
    return leati_npy_parse(npy, file.data, file.size, "x.npy", err);
}

static void header(int version, const char *dict) {
    file.size = 0;
    bytes_add_npy_header(&file, version, dict);
}

static void headers_of_all_versions_are_read(void **state) {
    (void)state;
    leati_array npy;
    leat_error err = {0};
    for (int version = 1; version <= 3; ++version) {
        header(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }    \n");
        bytes_add_le(&file, 0, 24);
        assert_int_equal(parse(&npy, &err), LEAT_OK);
        assert_int_equal(npy.rank, 2);
        assert_int_equal(npy.shape[0], 3);
    }
    header(1, "{\"shape\":(5L,),\"fortran_order\":True,\"descr\":\"|u1\"}");
    bytes_add_le(&file, 0, 5);
    assert_int_equal(parse(&npy, &err), LEAT_OK);
    assert_int_equal(npy.rank, 1);
    assert_false(npy.fortran); /* C and Fortran order are equal for one dimension */
    header(1, "{'descr': '<i8', 'fortran_order': False, 'shape': ()}");
    bytes_add_le(&file, 7, 8);
    assert_int_equal(parse(&npy, &err), LEAT_OK);
    assert_int_equal(npy.rank, 0);
    header(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 99999999999999)}");
    assert_int_equal(parse(&npy, &err), LEAT_OK);
    assert_int_equal(leati_array_count(&npy), 0);
}

static void bad_headers_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *dict;
        leat_status status;
        const char *says;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False}", LEAT_EFORMAT, "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (2,)}", LEAT_EFORMAT, "each once"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", LEAT_EFORMAT, "each once"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}", LEAT_EFORMAT, "True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", LEAT_EFORMAT, "dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}", LEAT_EFORMAT, "','"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", LEAT_EFORMAT, "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} trailing", LEAT_EFORMAT,
         "end of the header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", LEAT_EFORMAT,
         "smaller"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904)}",
         LEAT_EFORMAT, "promises more"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", LEAT_EFORMAT, "promises more"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", LEAT_EFORMAT,
         "promises 4 bytes, but 8 follow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", LEAT_ENOTSUP,
         "dimensions"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", LEAT_ENOTSUP, "'<c8'"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", LEAT_ENOTSUP, "float16/32/64"},
        {"{'descr': '|V2', 'fortran_order': False, 'shape': (4,)}", LEAT_ENOTSUP, "'|V2'"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", LEAT_ENOTSUP, "Python objects"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", LEAT_ENOTSUP, "structured"},
        {"{'descr': '<f4", LEAT_EFORMAT, "string"},
        {"", LEAT_EFORMAT, "'{'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        leati_array npy;
        leat_error err = {0};
        header(1, cases[i].dict);
        bytes_add_le(&file, 0, 8);
        assert_int_equal(parse(&npy, &err), cases[i].status);
        if (!strstr(err.message, cases[i].says)) fail_msg("case %zu: '%s'", i, err.message);
        assert_non_null(strstr(err.message, "'x.npy'"));
    }
    leati_array npy;
    header(4, "{}");
    assert_int_equal(parse(&npy, NULL), LEAT_ENOTSUP);
    assert_int_equal(leati_npy_parse(&npy, "PK", 2, "x", NULL), LEAT_EFORMAT);
}

/* Loads the array in `file` through the public functions. */
static leat_tensor load(leat_npz **npz) {
    leat_error err = {0};
    leat_tensor tensor = {0};
    if (leati_npz_open_bytes(npz, file.data, file.size, "hand", &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_int_equal(leat_npz_count(*npz), 1);
    if (leat_npz_get(*npz, leat_npz_name(*npz, 0), &tensor, &err) != LEAT_OK) fail_msg("%s", err.message);
    return tensor;
}

static void every_element_type_is_read(void **state) {
    (void)state;
    static const struct {
        const char *descr;
        uint64_t bits;
        int size;
        leat_dtype dtype;
        double value;
    } cases[] = {
        {"<f2", 0xc500, 2, LEAT_F16, -5},
        {"<f2", 0x0001, 2, LEAT_F16, 0x1p-24},
        {"<f2", 0x7c00, 2, LEAT_F16, INFINITY},
        {">f2", 0x3c01, 2, LEAT_F16, 1 + 0x1p-10},
        {"<f4", 0x3fc00000, 4, LEAT_F32, 1.5},
        {">f4", 0x3fc00000, 4, LEAT_F32, 1.5},
        {"<f8", 0x3ff8000000000000, 8, LEAT_F64, 1.5},
        {">f8", 0x3ff8000000000001, 8, LEAT_F64, 1.5 + 0x1p-52},
        {"|b1", 7, 1, LEAT_BOOL, 1},
        {"|u1", 255, 1, LEAT_U8, 255},
        {"|i1", 255, 1, LEAT_I8, -1},
        {"<i2", 0xfffe, 2, LEAT_I16, -2},
        {">i2", 0x0102, 2, LEAT_I16, 258},
        {"<u2", 0xfffe, 2, LEAT_U16, 65534},
        {">u2", 0xfffe, 2, LEAT_U16, 65534},
        {"<i4", 0xfffffffe, 4, LEAT_I32, -2},
        {">i4", 0x01020304, 4, LEAT_I32, 16909060},
        {"<u4", 0xfffffffe, 4, LEAT_U32, 4294967294.0},
        {">u4", 0xfffffffe, 4, LEAT_U32, 4294967294.0},
        {"<i8", 0xfffffffffffffffe, 8, LEAT_I64, -2},
        {">i8", 0x0102, 8, LEAT_I64, 258},
        {"<u8", 0x8000000000000000, 8, LEAT_U64, 0x1p63},
        {">u8", 0x0102, 8, LEAT_U64, 258},
        {"=i4", 5, 4, LEAT_I32, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char dict[100];
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }",
                 cases[i].descr);
        header(1, dict);
        if (cases[i].descr[0] == '>')
            bytes_add_be(&file, cases[i].bits, cases[i].size);
        else
            bytes_add_le(&file, cases[i].bits, cases[i].size);
        leat_npz *npz;
        leat_tensor got = load(&npz);
        assert_int_equal(got.dtype, cases[i].dtype);
        const double value = leati_number_at(got.dtype, got.data, 0);
        if (value != cases[i].value) fail_msg("%s: %g", cases[i].descr, value);
        leat_npz_close(&npz);
    }
}

static void fortran_order_is_transposed(void **state) {
    (void)state;
    header(1, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3, 2), }");
    for (uint64_t k = 0; k < 2; ++k)
        for (uint64_t j = 0; j < 3; ++j)
            for (uint64_t i = 0; i < 2; ++i) bytes_add_be(&file, 100 * i + 10 * j + k, 2);
    leat_npz *npz;
    leat_tensor got = load(&npz);
    const int16_t *p = got.data;
    assert_int_equal(got.dtype, LEAT_I16);
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 2; ++k) assert_int_equal(*p++, 100 * i + 10 * j + k);
    leat_npz_close(&npz);
}

/* Makes a .npy file of 3 elements of type int32 in `file`. */
static void make_small(void) {
    header(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }");
    for (uint64_t i = 0; i < 3; ++i) bytes_add_le(&file, 40 + i, 4);
}

static void make_deflated(void) {
    static bytes inner;
    make_small();
    inner = file;
    file.size = 0;
    bytes_add_deflated_zip(&file, "x.npy", inner.data, inner.size);
}

static void deflated_members_are_unpacked(void **state) {
    (void)state;
    make_deflated();
    leat_npz *npz;
    leat_tensor got = load(&npz);
    assert_string_equal(leat_npz_name(npz, 0), "x");
    assert_int_equal(((int32_t *)got.data)[2], 42);
    leat_tensor again = test_npz_get(npz, "x");
    assert_ptr_equal(again.data, got.data);
    leat_npz_close(&npz);
}

static void an_unknown_name_lists_the_known_ones(void **state) {
    (void)state;
    make_deflated();
    leat_npz *npz;
    leat_tensor tensor;
    leat_error err = {0};
    assert_int_equal(leati_npz_open_bytes(&npz, file.data, file.size, "some.npz", &err), LEAT_OK);
    assert_int_equal(leat_npz_get(npz, "y", &tensor, &err), LEAT_ENOTFOUND);
    assert_string_equal(err.message, "'some.npz' has no array 'y'; it has: x");
    leat_npz_close(&npz);
}

/* Opens `file` and loads every array; any status is accepted, but no crash and no leak. */
static leat_status load_all(const unsigned char *data, size_t size) {
    leat_npz *npz;
    leat_status status = leati_npz_open_bytes(&npz, data, size, "part", NULL);
    for (int i = 0; npz && i < leat_npz_count(npz); ++i) {
        leat_tensor tensor;
        status = leat_npz_get(npz, leat_npz_name(npz, i), &tensor, NULL);
    }
    leat_npz_close(&npz);
    return status;
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    void (*const make[])(void) = {make_small, make_deflated};
    for (int k = 0; k < 2; ++k) {
        make[k]();
        assert_int_equal(load_all(file.data, file.size), LEAT_OK);
        for (size_t size = 0; size < file.size; ++size)
            assert_int_equal(load_all(file.data, size), LEAT_EFORMAT);
    }
}

static void no_damaged_byte_crashes(void **state) {
    (void)state;
    make_deflated();
    static bytes whole;
    whole = file;
    int refused = 0;
    for (size_t at = 0; at < whole.size; ++at)
        for (int value = 0; value < 256; value += 51) {
            file.data[at] = (unsigned char)(whole.data[at] ^ value);
            refused += load_all(file.data, file.size) != LEAT_OK;
            file.data[at] = whole.data[at];
        }
    assert_true(refused > 100);
}

static void a_checksum_that_does_not_match_is_seen(void **state) {
    (void)state;
    make_deflated();
    for (size_t at = 14; at < file.size; ++at) /* changes the checksum in the central header */
        if (memcmp(file.data + at, "PK\1\2", 4) == 0) file.data[at + 16] ^= 1;
    leat_npz *npz;
    leat_tensor tensor;
    leat_error err = {0};
    assert_int_equal(leati_npz_open_bytes(&npz, file.data, file.size, "a.npz", &err), LEAT_OK);
    assert_int_equal(leat_npz_get(npz, "x", &tensor, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "checksum"));
    leat_npz_close(&npz);
}

static void a_false_claim_asks_for_no_memory(void **state) {
    (void)state;
    make_deflated();
    for (size_t at = 14; at < file.size; ++at)
        if (memcmp(file.data + at, "PK\1\2", 4) == 0) memcpy(file.data + at + 24, "\xf0\xff\xff\xff", 4);
    leat_npz *npz;
    leat_error err = {0};
    assert_int_equal(leati_npz_open_bytes(&npz, file.data, file.size, "a.npz", &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "claims to unpack to more"));
    assert_null(npz);
}

/* The header is compared with the size of the member before all of the member is unpacked: the wrong checksum is not
 * noticed. */
static void a_member_longer_than_its_array_is_refused(void **state) {
    (void)state;
    static unsigned char long_member[4 << 20];
    make_small();
    memcpy(long_member, file.data, file.size);
    file.size = 0;
    bytes_add_deflated_zip(&file, "x.npy", long_member, sizeof long_member);
    for (size_t at = 14; at < file.size; ++at)
        if (memcmp(file.data + at, "PK\1\2", 4) == 0) file.data[at + 16] ^= 1;
    leat_npz *npz;
    leat_tensor tensor;
    leat_error err = {0};
    assert_int_equal(leati_npz_open_bytes(&npz, file.data, file.size, "a.npz", &err), LEAT_OK);
    assert_int_equal(leat_npz_get(npz, "x", &tensor, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "the header promises 12 bytes"));
    leat_npz_close(&npz);
}

static void a_damaged_stored_array_is_refused(void **state) {
    (void)state;
    static bytes saved;
    int32_t numbers[3] = {1, 2, 3};
    int64_t count = 3;
    leat_error err = {0};
    leat_tensor tensor = leat_tensor_view(LEAT_I32, 1, &count, numbers);
    const char *name = "x";
    assert_int_equal(leat_npz_write("stored.npz", &name, &tensor, 1, &err), LEAT_OK);
    FILE *stream = fopen("stored.npz", "rb");
    assert_non_null(stream);
    saved.size = fread(saved.data, 1, sizeof saved.data, stream);
    fclose(stream);
    for (int damaged = 0; damaged < 2; ++damaged) {
        leat_npz *npz;
        leat_tensor found;
        for (size_t at = 0; damaged && at + 12 < saved.size; ++at)
            if (memcmp(saved.data + at, numbers, sizeof numbers) == 0) saved.data[at] ^= 4;
        assert_int_equal(leati_npz_open_bytes(&npz, saved.data, saved.size, "a.npz", &err), LEAT_OK);
        assert_int_equal(leat_npz_get(npz, "x", &found, &err), damaged ? LEAT_EFORMAT : LEAT_OK);
        if (damaged) assert_non_null(strstr(err.message, "checksum"));
        leat_npz_close(&npz);
    }
    remove("stored.npz");
}

static void npy_files_open_as_one_array(void **state) {
    (void)state;
    double data[4] = {1, 2, 3, 4};
    leat_tensor tensor = leat_tensor_view(LEAT_F64, 2, (int64_t[]){2, 2}, data);
    leat_error err = {0};
    assert_int_equal(leat_npy_write("one.npy", &tensor, &err), LEAT_OK);
    leat_npz *npz;
    assert_int_equal(leat_npz_open(&npz, "one.npy", &err), LEAT_OK);
    leat_tensor got = test_npz_get(npz, "");
    assert_memory_equal(got.data, data, sizeof data);
    leat_npz_close(&npz);
    assert_int_equal(leat_npz_open(&npz, "absent.npz", &err), LEAT_ENOTFOUND);
    assert_null(npz);
    assert_int_equal(leat_npy_write("no/folder/x.npy", &tensor, &err), LEAT_EIO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_comes_back),
        cmocka_unit_test(stored_arrays_are_aligned_and_not_copied),
        cmocka_unit_test(the_same_data_makes_the_same_bytes),
        cmocka_unit_test(names_must_be_names),
        cmocka_unit_test(headers_of_all_versions_are_read),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(every_element_type_is_read),
        cmocka_unit_test(fortran_order_is_transposed),
        cmocka_unit_test(deflated_members_are_unpacked),
        cmocka_unit_test(an_unknown_name_lists_the_known_ones),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(no_damaged_byte_crashes),
        cmocka_unit_test(a_checksum_that_does_not_match_is_seen),
        cmocka_unit_test(a_false_claim_asks_for_no_memory),
        cmocka_unit_test(a_member_longer_than_its_array_is_refused),
        cmocka_unit_test(a_damaged_stored_array_is_refused),
        cmocka_unit_test(npy_files_open_as_one_array),
    };
    return cmocka_run_group_tests(tests, files_enter, files_leave);
}
