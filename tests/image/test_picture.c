/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding and resizing give the bytes of Pillow, as tests/interop/check_pictures.py recorded them; the vectorized
 * kernels give those of the plain ones; damaged files are refused. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/os/cpu.h"
#include "base/os/file.h"
#include "image/filter.h"
#include "image/picture.h"

#define FOLDER LEAT_SOURCE_DIR "/tests/golden/pictures/"

static const leati_picture_options rgb = {.color = LEATI_COLOR_RGB};

static int find(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; ++i)
        if (strcmp(names[i], name) == 0) return i;
    fail_msg("unknown word '%s'", name);
    return -1;
}

static leati_map map_file(const char *name) {
    char path[1024];
    leat_error err = {0};
    leati_map map;
    snprintf(path, sizeof path, FOLDER "%s", name);
    if (leati_map_open(&map, path, &err) != LEAT_OK) fail_msg("%s", err.message);
    return map;
}

static leati_picture decoded(const char *name, leati_picture_color color) {
    leat_error err = {0};
    leati_map map = map_file(name);
    leati_picture out;
    if (leati_picture_decode(&out, map.data, map.size, &(leati_picture_options){.color = color}, &err) !=
        LEAT_OK)
        fail_msg("%s: %s", name, err.message);
    leati_map_close(&map);
    return out;
}

static void check_line(const char *line) {
    char name[64], color[16], filter[16], fit[16];
    long long width = 0, height = 0, expected_width = 0, expected_height = 0;
    unsigned long crc = 0;
    leat_error err = {0};
    assert_int_equal(sscanf(line, "%63s %15s %lld %lld %15s %15s %lld %lld %lx", name, color, &width, &height,
                            filter, fit, &expected_width, &expected_height, &crc),
                     9);
    leati_picture picture = decoded(name, *color == 'g'                ? LEATI_COLOR_GRAYSCALE
                                          : strcmp(color, "rgba") == 0 ? LEATI_COLOR_RGBA
                                                                       : LEATI_COLOR_RGB);
    if (width > 0) {
        leati_picture resized;
        assert_int_equal(leati_picture_create(&resized, width, height, picture.channels, &err), LEAT_OK);
        const leat_status status =
            leati_picture_fit(&resized, &picture,
                              (leati_filter)find(leati_filter_names, LEATI_FILTER_COUNT, filter),
                              (leati_fit)find(leati_fit_names, LEATI_FIT_COUNT, fit), &err);
        if (status != LEAT_OK) fail_msg("%s: %s", line, err.message);
        leati_picture_fini(&picture);
        picture = resized;
    }
    const size_t bytes = (size_t)(picture.width * picture.height * picture.channels);
    if (picture.width != expected_width || picture.height != expected_height ||
        crc32(0, picture.pixels, (unsigned)bytes) != crc)
        fail_msg("differs from Pillow: %s", line);
    leati_picture_fini(&picture);
}

static void test_equals_pillow(void **state) {
    (void)state;
    char line[256];
    int lines = 0;
    FILE *results = fopen(FOLDER "results.txt", "r");
    assert_non_null(results);
    for (; fgets(line, sizeof line, results); ++lines) check_line(line);
    fclose(results);
    assert_true(lines > 300);
}

/* ---- Kernels ---- */

static unsigned next_random(unsigned *seed) {
    return *seed = *seed * 1664525u + 1013904223u;
}

static leati_picture noise(int64_t width, int64_t height, int channels) {
    leat_error err = {0};
    leati_picture out;
    unsigned seed = (unsigned)(width * 31 + height * 7 + channels);
    assert_int_equal(leati_picture_create(&out, width, height, channels, &err), LEAT_OK);
    for (int64_t i = 0; i < width * height * channels; ++i) {
        const unsigned value = next_random(&seed) >> 24;
        out.pixels[i] = (unsigned char)(value < 60 ? 0 : value > 190 ? 255 : value);
    }
    return out;
}

/* Resizes with the kernels of one instruction set. */
static leati_picture resized(const leati_picture *in, int64_t width, int64_t height, leati_filter filter,
                             const char *isa) {
    leat_error err = {0};
    leati_picture out;
    if (isa)
        setenv("LEAT_MAX_ISA", isa, 1);
    else
        unsetenv("LEAT_MAX_ISA");
    assert_int_equal(leati_picture_create(&out, width, height, in->channels, &err), LEAT_OK);
    if (leati_picture_resize(&out, in, filter, NULL, &err) != LEAT_OK) fail_msg("%s", err.message);
    unsetenv("LEAT_MAX_ISA");
    return out;
}

static void test_kernels_agree(void **state) {
    (void)state;
    static const int64_t sizes[][4] = {{1, 1, 5, 3},       {37, 21, 16, 40},  {64, 50, 7, 7},
                                       {13, 90, 13, 8},    {90, 13, 200, 13}, {33, 2, 1, 1},
                                       {500, 75, 224, 45}, {301, 40, 9, 37},  {700, 3, 5, 2},
                                       {101, 35, 100, 33}, {200, 18, 33, 17}, {2000, 2, 3, 1}};
    static const char *const isas[] = {"avx2", NULL};
    static const int channels[] = {1, 3, 4};
    setenv("LEAT_MAX_ISA", "base", 1);
    assert_ptr_equal(leati_pass_vertical(), leati_pass_vertical_plain);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s)
        for (int c = 0; c < 3; ++c)
            for (int f = 0; f < LEATI_FILTER_COUNT; ++f) {
                leati_picture in = noise(sizes[s][0], sizes[s][1], channels[c]);
                leati_picture a = resized(&in, sizes[s][2], sizes[s][3], (leati_filter)f, "base");
                for (int i = 0; i < 2; ++i) {
                    leati_picture b = resized(&in, sizes[s][2], sizes[s][3], (leati_filter)f, isas[i]);
                    assert_memory_equal(a.pixels, b.pixels, (size_t)(a.width * a.height * a.channels));
                    leati_picture_fini(&b);
                }
                leati_picture_fini(&in);
                leati_picture_fini(&a);
            }
}

/* Checks that a resize leaves the 64 bytes behind its result alone. */
static void check_behind(int64_t width, int64_t height, int channels, const char *isa) {
    const leati_picture in = noise(40, 31, channels);
    const size_t count = (size_t)(width * height * channels);
    unsigned char *memory = malloc(count + 64);
    assert_non_null(memory);
    memset(memory, 0xa5, count + 64);
    leati_picture out = {width, height, channels, memory}, freed = in;
    setenv("LEAT_MAX_ISA", isa, 1);
    assert_int_equal(leati_picture_resize(&out, &in, LEATI_FILTER_BILINEAR, NULL, NULL), LEAT_OK);
    unsetenv("LEAT_MAX_ISA");
    for (size_t i = count; i < count + 64; ++i) assert_int_equal(memory[i], 0xa5);
    free(memory);
    leati_picture_fini(&freed);
}

/* A result in a batch has the next sample behind it. */
static void test_kernels_write_no_more(void **state) {
    (void)state;
    static const char *const isas[] = {"base", "avx2", "avx512"};
    for (int i = 0; i < 3; ++i)
        for (int64_t width = 1; width < 20; ++width)
            for (int channels = 1; channels < 5; channels += channels == 1 ? 2 : 1) {
                check_behind(width, 31, channels, isas[i]); /* the horizontal pass alone */
                check_behind(width, 13, channels, isas[i]);
                check_behind(40, width, channels, isas[i]); /* the vertical pass alone */
            }
}

/* ---- What is refused ---- */

static void refused(const void *data, size_t bytes, const leati_picture_options *options, leat_status status,
                    const char *text) {
    leat_error err = {0};
    leati_picture out;
    void *copy = malloc(bytes ? bytes : 1); /* so that a sanitizer sees reads behind the end */
    assert_non_null(copy);
    if (bytes) memcpy(copy, data, bytes);
    assert_int_equal(leati_picture_decode(&out, copy, bytes, options, &err), status);
    assert_null(out.pixels);
    if (!strstr(err.message, text)) fail_msg("expected '%s' in '%s'", text, err.message);
    free(copy);
}

static void test_no_picture(void **state) {
    (void)state;
    refused("", 0, &rgb, LEAT_EFORMAT, "the file is empty");
    refused("hello, world", 12, &rgb, LEAT_EFORMAT, "begins with 68 65 6c 6c");
    refused("\xff\xd8\xff\xe0", 4, &rgb, LEAT_EFORMAT, "JPEG: the file is truncated");
    refused("P6 0 5 255\n", 11, &rgb, LEAT_EFORMAT, "PPM: the header gives the size 0 x 5");
    refused("BM", 2, &rgb, LEAT_EFORMAT, "BMP: the file is truncated");
}

static void test_limit_of_pixels(void **state) {
    (void)state;
    leati_map map = map_file("p00001.jpg");
    refused(map.data, map.size, &(leati_picture_options){.color = LEATI_COLOR_RGB, .max_pixels = 560},
            LEAT_ESHAPE, "JPEG: the picture has 17 x 33 pixels, more than the limit of 560 pixels");
    leati_map_close(&map);
    refused("P6 100000 100000 255\n", 21, &rgb, LEAT_ESHAPE, "more than the limit of 89478485 pixels");
}

/* Each beginning of a file is refused, or is decoded to a picture of the same size, as long as nothing is read behind
 * its end: libraries differ in what they need of the last bytes. */
static void test_truncated(void **state) {
    (void)state;
    char line[256], name[64], last[64] = "";
    FILE *results = fopen(FOLDER "results.txt", "r");
    assert_non_null(results);
    while (fgets(line, sizeof line, results)) {
        assert_int_equal(sscanf(line, "%63s", name), 1);
        if (strcmp(name, last) == 0) continue;
        strcpy(last, name);
        leati_map map = map_file(name);
        for (size_t bytes = 0; bytes < map.size * 3 / 4; bytes += map.size / 23 + 1) {
            leat_error err = {0};
            leati_picture out;
            unsigned char *copy = malloc(bytes + 1);
            assert_non_null(copy);
            memcpy(copy, map.data, bytes);
            if (leati_picture_decode(&out, copy, bytes, &rgb, &err) != LEAT_OK) assert_null(out.pixels);
            leati_picture_fini(&out);
            free(copy);
        }
        leati_map_close(&map);
    }
    fclose(results);
}

static void test_truncated_is_refused(void **state) {
    (void)state;
    static const char *const names[] = {"p00001.jpg", "p00009.jpg"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        leati_map map = map_file(names[i]);
        refused(map.data, map.size / 2, &rgb, LEAT_EFORMAT, "truncated");
        leati_map_close(&map);
    }
}

static void test_scaled_decoding(void **state) {
    (void)state;
    leat_error err = {0};
    leati_picture out;
    leati_map map = map_file("p00001.jpg"); /* 17 x 33 */
    const leati_picture_options options = {.color = LEATI_COLOR_RGB, .scaled_width = 4, .scaled_height = 8};
    assert_int_equal(leati_picture_decode(&out, map.data, map.size, &options, &err), LEAT_OK);
    assert_int_equal(out.width, 5);
    assert_int_equal(out.height, 9);
    leati_picture_fini(&out);
    leati_map_close(&map);
}

static void test_box_is_checked(void **state) {
    (void)state;
    leat_error err = {0};
    leati_picture in = noise(4, 4, 3), out = noise(2, 2, 3);
    const leati_box boxes[] = {{0, 0, 5, 4}, {-1, 0, 2, 2}, {2, 0, 2, 2}, {0, 3, 2, 3}};
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; ++i)
        assert_int_equal(leati_picture_resize(&out, &in, LEATI_FILTER_BOX, &boxes[i], &err), LEAT_ESHAPE);
    leati_picture_fini(&in);
    leati_picture_fini(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_pillow),         cmocka_unit_test(test_kernels_agree),
        cmocka_unit_test(test_kernels_write_no_more), cmocka_unit_test(test_no_picture),
        cmocka_unit_test(test_limit_of_pixels),       cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_truncated_is_refused),  cmocka_unit_test(test_scaled_decoding),
        cmocka_unit_test(test_box_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
