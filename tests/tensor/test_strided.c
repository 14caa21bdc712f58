/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over strided memory and leat_tensor_copy, compared with index arithmetic. */
#include "cmocka_all.h"

#include <string.h>

#include "leat/rng.h"
#include "leat/tensor.h"
#include "tensor/strided.h"

enum { memory_bytes = 1 << 16 };
static unsigned char memory[memory_bytes], out[memory_bytes], expected[memory_bytes];

/* The reference: computes each element's address from its indices, in row-major order. */
static int64_t gather_slowly(const unsigned char *data, size_t bytes, int rank, const int64_t *shape,
                             const int64_t *strides) {
    int64_t total = 1;
    for (int d = 0; d < rank; ++d) total *= shape[d];
    for (int64_t i = 0; i < total; ++i) {
        int64_t left = i, offset = 0;
        for (int d = rank; d-- > 0; left /= shape[d]) offset += left % shape[d] * strides[d];
        memcpy(expected + (size_t)i * bytes, data + offset, bytes);
    }
    return total;
}

static void check(const unsigned char *data, size_t bytes, int rank, const int64_t *shape,
                  const int64_t *strides) {
    const int64_t total = gather_slowly(data, bytes, rank, shape, strides);
    const leati_strides over = leati_strides_make(bytes, rank, shape, strides);
    for (int64_t piece = 1; piece <= 7; piece += 3) { /* taken in pieces of 1, 4 and 7 */
        leati_strided_walk walk = leati_strided_begin(&over, data);
        memset(out, 0xee, sizeof out);
        for (int64_t i = 0; i < total; i += piece)
            leati_strided_take(&walk, out + (size_t)i * bytes, total - i < piece ? total - i : piece);
        assert_memory_equal(out, expected, (size_t)total * bytes);
        assert_int_equal(out[(size_t)total * bytes], 0xee);
    }
}

static void fill(void) {
    leat_rng rng = leat_rng_for(7, 0, 0);
    for (int i = 0; i < memory_bytes; ++i) memory[i] = (unsigned char)leat_rng_u32(&rng);
}

static void random_strides_are_followed(void **state) {
    (void)state;
    fill();
    leat_rng rng = leat_rng_for(8, 0, 0);
    for (int round = 0; round < 2000; ++round) {
        const size_t bytes = (size_t)1 << leat_rng_below(&rng, 4);
        const int rank = (int)leat_rng_below(&rng, 5);
        int64_t shape[4], strides[4];
        for (int d = 0; d < rank; ++d) {
            shape[d] = 1 + (int64_t)leat_rng_below(&rng, 5);
            strides[d] = (int64_t)leat_rng_below(&rng, 401) - 200; /* also 0, negative and odd */
        }
        check(memory + memory_bytes / 2, bytes, rank, shape, strides);
    }
}

static void usual_views_are_followed(void **state) {
    (void)state;
    fill();
    const int64_t shape[] = {5, 4, 3};
    const struct {
        int64_t strides[3];
        bool dense;
    } views[] = {{{48, 12, 4}, true},   /* C order */
                 {{4, 20, 80}, false},  /* Fortran order */
                 {{-48, 12, 4}, false}, /* samples in reverse */
                 {{0, 12, 4}, false},   /* broadcast along the samples */
                 {{0, 0, 0}, false},    /* broadcast of one number */
                 {{48, 4, 16}, false},  /* channels first, seen as channels last */
                 {{96, 24, 8}, false},  /* a field of a record */
                 {{51, 13, 4}, false}}; /* not a multiple of the element size */
    for (size_t i = 0; i < sizeof views / sizeof *views; ++i) {
        const leati_strides over = leati_strides_make(4, 3, shape, views[i].strides);
        assert_int_equal(leati_strides_are_dense(&over), views[i].dense);
        check(memory + 4096, 4, 3, shape, views[i].strides);
    }
    const leati_strides plain = leati_strides_make(4, 3, shape, NULL);
    assert_true(leati_strides_are_dense(&plain));
    const int64_t thin[] = {1, 4, 1}, odd[] = {1000, 4, -7}; /* a stride that is never taken does not count */
    const leati_strides joined = leati_strides_make(4, 3, thin, odd);
    assert_true(leati_strides_are_dense(&joined));
}

static void a_copy_is_converted(void **state) {
    (void)state;
    int16_t src[6][5];
    float dst[5][6], longer[1500];
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 5; ++j) src[i][j] = (int16_t)(10 * i - j);
    leat_tensor from = leat_tensor_view(LEAT_I16, 2, (int64_t[]){5, 6}, src);
    leat_tensor to = leat_tensor_view(LEAT_F32, 2, (int64_t[]){5, 6}, dst);
    leat_error err = {0};
    assert_int_equal(leat_tensor_copy(&to, &from, (int64_t[]){2, 10}, &err), LEAT_OK);
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 5; ++j) assert_true(dst[j][i] == (float)src[i][j]);
    const uint8_t one = 3; /* more than one run of the buffer, all of one element */
    from = leat_tensor_view(LEAT_BOOL, 1, (int64_t[]){1500}, (void *)(uintptr_t)&one);
    to = leat_tensor_view(LEAT_F32, 1, (int64_t[]){1500}, longer);
    assert_int_equal(leat_tensor_copy(&to, &from, (int64_t[]){0}, &err), LEAT_OK);
    for (int i = 0; i < 1500; ++i) assert_true(longer[i] == 1);
    double value = 2.5;
    int32_t number = 0;
    from = leat_tensor_view(LEAT_F64, 0, NULL, &value);
    to = leat_tensor_view(LEAT_I32, 0, NULL, &number);
    assert_int_equal(leat_tensor_copy(&to, &from, NULL, &err), LEAT_OK);
    assert_int_equal(number, 2);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    float a[6], b[6];
    leat_tensor from = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 3}, a);
    leat_tensor to = leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 2}, b);
    leat_error err = {0};
    assert_int_equal(leat_tensor_copy(&to, &from, NULL, &err), LEAT_ESHAPE);
    assert_string_equal(err.message, "expected a source of the target's shape (3, 2), received (2, 3)");
    to = from;
    to.data = NULL;
    assert_int_equal(leat_tensor_copy(&to, &from, NULL, &err), LEAT_EINVAL);
    to.data = b;
    to.dtype = (leat_dtype)16;
    assert_int_equal(leat_tensor_copy(&to, &from, NULL, &err), LEAT_EDTYPE);
    to.dtype = LEAT_F32;
    from.rank = 9;
    assert_int_equal(leat_tensor_copy(&to, &from, NULL, &err), LEAT_ESHAPE);
    from.rank = 2;
    from.shape[1] = to.shape[1] = -3;
    assert_int_equal(leat_tensor_copy(&to, &from, NULL, &err), LEAT_ESHAPE);
    from.shape[1] = to.shape[1] = 0; /* nothing to copy */
    assert_int_equal(leat_tensor_copy(&to, &from, NULL, &err), LEAT_OK);
    assert_int_equal(leat_tensor_copy(NULL, &from, NULL, &err), LEAT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_strides_are_followed),
        cmocka_unit_test(usual_views_are_followed),
        cmocka_unit_test(a_copy_is_converted),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
