/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of every data type to every other one, compared with the rules of leat_tensor_copy in long double; all
 * float16. */
#include "cmocka_all.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/os/denormals.h"
#include "leat/rng.h"
#include "leat/tensor.h"
#include "tensor/convert.h"
#include "tensor/number.h"

#define DTYPE(name, value, text, bytes) name,
static const leat_dtype dtypes[] = {LEAT_DTYPE_LIST(DTYPE)};
#undef DTYPE
enum { dtype_count = sizeof dtypes / sizeof *dtypes };

/* The smallest and the largest number of each integer type. */
static void range_of(leat_dtype dtype, long double *least, long double *most) {
    static const struct {
        leat_dtype dtype;
        long double least, most;
    } ranges[] = {{LEAT_BOOL, 0, 1},
                  {LEAT_I8, -128, 127},
                  {LEAT_U8, 0, 255},
                  {LEAT_I16, -32768, 32767},
                  {LEAT_U16, 0, 65535},
                  {LEAT_I32, -2147483648.0L, 2147483647},
                  {LEAT_U32, 0, 4294967295.0L},
                  {LEAT_I64, -0x1p63L, 0x1p63L - 1},
                  {LEAT_U64, 0, 0x1p64L - 1}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; ++i)
        if (ranges[i].dtype == dtype) *least = ranges[i].least, *most = ranges[i].most;
}

static bool is_real(leat_dtype dtype) {
    return dtype == LEAT_F32 || dtype == LEAT_F64 || dtype == LEAT_F16;
}

/* Returns the number that 16 bits stand for, by the definition of binary16. */
static double value_of_f16(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                   : exponent     ? ldexp(fraction + 1024, exponent - 25)
                                  : ldexp(fraction, -24);
    return bits >> 15 ? -value : value;
}

/* Returns the binary16 nearest to a number, ties to even, by trying all finite ones; infinity from 65520 on. */
static uint16_t nearest_f16(double x) {
    if (isnan(x)) return 0x7e00;
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (fabs(x) >= 65520) return sign | 0x7c00;
    uint16_t best = 0;
    for (uint16_t h = 1; h < 0x7c00; ++h) {
        double now = fabs(value_of_f16(h) - fabs(x)), before = fabs(value_of_f16(best) - fabs(x));
        if (now < before || (now == before && h % 2 == 0)) best = h;
    }
    return sign | best;
}

static long double read_one(leat_dtype dtype, const void *data, int64_t i) {
    switch (dtype) {
    case LEAT_F32: return (long double)((const float *)data)[i];
    case LEAT_F64: return (long double)((const double *)data)[i];
    case LEAT_F16: return (long double)value_of_f16(((const uint16_t *)data)[i]);
    case LEAT_I8: return ((const int8_t *)data)[i];
    case LEAT_I16: return ((const int16_t *)data)[i];
    case LEAT_I32: return ((const int32_t *)data)[i];
    case LEAT_I64: return (long double)((const int64_t *)data)[i];
    case LEAT_U8: return ((const uint8_t *)data)[i];
    case LEAT_U16: return ((const uint16_t *)data)[i];
    case LEAT_U32: return ((const uint32_t *)data)[i];
    case LEAT_U64: return (long double)((const uint64_t *)data)[i];
    case LEAT_BOOL: return ((const uint8_t *)data)[i] != 0;
    }
    return -1;
}

static bool same(long double a, long double b) {
    return (isnan(a) && isnan(b)) || a == b;
}

static bool is_expected(leat_dtype to, long double from, const void *dst, int64_t i) {
    const long double got = read_one(to, dst, i);
    long double least = 0, most = 0;
    if (to == LEAT_BOOL) return ((const uint8_t *)dst)[i] == (from != 0);
    if (to == LEAT_F32) return same(got, (long double)(float)from);
    if (to == LEAT_F64) return same(got, (long double)(double)from);
    if (to == LEAT_F16) return same(got, (long double)value_of_f16(nearest_f16((double)from)));
    range_of(to, &least, &most);
    if (isnan(from)) return got == 0;
    return got == (from < least ? least : from > most ? most : truncl(from));
}

static const double specials[] = {0,       -0.0,         0.5,           -0.99,    1,
                                  -1,      127.5,        -128.5,        255.9,    256,
                                  32767.5, -32769,       65504,         65519.99, 65520,
                                  65535.5, 65536,        0x1p-24,       0x1p-25,  0x1.8p-25,
                                  0x1p-14, 2147483647.5, -2147483649.0, 0x1p32,   -0x1p63,
                                  0x1p63,  0x1p64,       1e300,         -1e300,   1e-300};
enum {
    special_count = sizeof specials / sizeof *specials,
    random_count = 67,
    count = special_count + 3 + random_count
};

/* Fills in elements of a type from numbers of all sizes, without the function under test. */
static void fill(leat_dtype dtype, unsigned char *data) {
    leat_rng rng = leat_rng_for(1, 2, (uint64_t)dtype);
    const size_t bytes = leat_dtype_bytes(dtype);
    for (int i = 0; i < count; ++i) {
        uint64_t bits = leat_rng_u64(&rng);
        double value = i < special_count        ? specials[i]
                       : i == special_count     ? (double)NAN
                       : i == special_count + 1 ? (double)INFINITY
                       : i == special_count + 2 ? (double)-INFINITY
                                                : ldexp((double)(int64_t)bits, -(int)(bits % 90));
        const float single = (float)value;
        const uint16_t half = nearest_f16(value);
        if (dtype == LEAT_F64) memcpy(data + (size_t)i * bytes, &value, bytes);
        if (dtype == LEAT_F32) memcpy(data + (size_t)i * bytes, &single, bytes);
        if (dtype == LEAT_F16) memcpy(data + (size_t)i * bytes, &half, bytes);
        if (is_real(dtype)) continue;
        if (i < 4) bits = i == 0 ? 0 : i == 1 ? UINT64_MAX : (uint64_t)1 << (8 * bytes - 1);
        if (i == 3) --bits;                             /* the largest of a signed type */
        memcpy(data + (size_t)i * bytes, &bits, bytes); /* little-endian: the low bytes */
    }
}

static void every_pair_follows_the_rules(void **state) {
    (void)state;
    static uint64_t src[count], dst[count];
    for (int f = 0; f < dtype_count; ++f) {
        fill(dtypes[f], (unsigned char *)src);
        for (int t = 0; t < dtype_count; ++t) {
            memset(dst, 0xa5, sizeof dst);
            leati_convert(dtypes[t], dst, dtypes[f], src, count);
            for (int i = 0; i < count; ++i) {
                const long double from = read_one(dtypes[f], src, i);
                if (dtypes[f] == dtypes[t]) continue;
                if (!is_expected(dtypes[t], from, dst, i))
                    fail_msg("%s to %s: %Lg became %Lg", leat_dtype_name(dtypes[f]),
                             leat_dtype_name(dtypes[t]), from, read_one(dtypes[t], dst, i));
            }
            const size_t end = count * leat_dtype_bytes(dtypes[t]);
            for (size_t i = end; i < sizeof dst; ++i) assert_int_equal(((unsigned char *)dst)[i], 0xa5);
            if (f == t) assert_memory_equal(src, dst, end);
        }
        for (int i = 0; i < count; ++i) {
            const long double x = read_one(dtypes[f], src, i);
            assert_true(same((long double)leati_number_at(dtypes[f], src, i), (long double)(double)x));
            long double whole = isnan(x)          ? 0
                                : x < -0x1p63L    ? -0x1p63L
                                : x > 0x1p63L - 1 ? 0x1p63L - 1
                                                  : truncl(x);
            assert_true((long double)leati_integer_at(dtypes[f], src, i) == whole);
        }
    }
}

static void check_every_float16(void) {
    static uint16_t src[65536], back[65536];
    static float dst[65536];
    for (int i = 0; i < 65536; ++i) src[i] = (uint16_t)i;
    leati_convert(LEAT_F32, dst, LEAT_F16, src, 65536);
    leati_convert(LEAT_F16, back, LEAT_F32, dst, 65536);
    for (int i = 0; i < 65536; ++i) {
        const double value = value_of_f16(src[i]);
        if (isnan(value)) {
            assert_true(isnan(dst[i]));
            assert_true((back[i] & 0x7c00) == 0x7c00 && (back[i] & 0x3ff));
            continue;
        }
        if ((double)dst[i] != value || !signbit(dst[i]) != !signbit(value))
            fail_msg("%04x: %g", i, (double)dst[i]);
        assert_int_equal(back[i], src[i]);
    }
}

static void every_float16_is_exact(void **state) {
    (void)state;
    check_every_float16();
}

/* Worker threads flush denormal numbers of float32; denormal numbers of float16 must still be exact. */
static void every_float16_is_exact_where_denormals_are_flushed(void **state) {
    (void)state;
    leati_float_mode before = leati_flush_denormals();
    check_every_float16();
    leati_set_float_mode(before);
}

/* The middle between two neighbouring numbers, and the doubles next to it. */
static void float16_is_rounded_to_the_nearest(void **state) {
    (void)state;
    for (int i = 0; i < 0x7bff; ++i) {
        const double low = value_of_f16((uint16_t)i), high = value_of_f16((uint16_t)(i + 1));
        const double middle = (low + high) / 2;
        assert_int_equal(leati_float16_of_double(middle), i % 2 ? i + 1 : i);
        assert_int_equal(leati_float16_of_double(nextafter(middle, 0)), i);
        assert_int_equal(leati_float16_of_double(-nextafter(middle, 1e9)), (i + 1) | 0x8000);
    }
    assert_int_equal(leati_float16_of_double(nextafter(65520, 0)), 0x7bff);
    assert_int_equal(leati_float16_of_double(65520), 0x7c00);
    assert_int_equal(leati_float16_of_double(-1e300), 0xfc00);
    assert_int_equal(leati_float16_of_double(1e-320), 0);
}

static void names_and_sizes_are_numpy_s(void **state) {
    (void)state;
    for (int i = 0; i < dtype_count; ++i) {
        leat_dtype back;
        assert_int_equal(leat_dtype_parse(&back, leat_dtype_name(dtypes[i]), NULL), LEAT_OK);
        assert_int_equal(back, dtypes[i]);
        assert_int_equal(dtypes[i], i); /* the ABI: values are appended, never moved */
    }
    assert_int_equal(leat_dtype_bytes(LEAT_BOOL), 1);
    assert_int_equal(leat_dtype_bytes(LEAT_F16), 2);
    assert_int_equal(leat_dtype_bytes(LEAT_U64), 8);
    assert_int_equal(leat_dtype_bytes((leat_dtype)dtype_count), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_follows_the_rules),
        cmocka_unit_test(every_float16_is_exact),
        cmocka_unit_test(every_float16_is_exact_where_denormals_are_flushed),
        cmocka_unit_test(float16_is_rounded_to_the_nearest),
        cmocka_unit_test(names_and_sizes_are_numpy_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
