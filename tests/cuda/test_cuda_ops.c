/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every case of every family of ops on a GPU, or on the simulated one, and compares it with ref.
 * `test_cuda_ops [WORD]` runs the cases whose name contains WORD. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "backends/cuda/backend.h"
#include "ops/harness.h"

enum { most_tests = 4096 };

static leati_device *device;

static void check(void **state) {
    op_check_on(*state, device, false);
}

static void check_bf16(void **state) {
    op_check_on(*state, device, true);
}

/* Convolutions by cuDNN: with channels last, and first, and with 2 x 2 pixels in one. */
static void check_conv(void **state, int way, bool bf16) {
    leati_cuda_set_conv_way(device, way);
    op_check_on(*state, device, bf16);
    leati_cuda_set_conv_way(device, 0);
}

static void check_dnn(void **state) {
    check_conv(state, 2, false);
}

static void check_dnn_bf16(void **state) {
    check_conv(state, 2, true);
}

static void check_planes(void **state) {
    check_conv(state, 3, false);
}

static void check_folded(void **state) {
    check_conv(state, 4, true);
}

static bool serves(leati_op op) {
    for (size_t i = 0; i < leati_backend_cuda.count; ++i)
        if (leati_backend_cuda.implementations[i].op == op) return true;
    return false;
}

/* Returns the text behind the next n bars of a table's row. */
static const char *behind_bars(const char *row, int n) {
    for (; n > 0 && row; --n) {
        row = strchr(row, '|');
        if (row) ++row;
    }
    return row;
}

/* docs/backends.md says of each op whether the CUDA backend serves it. */
static void the_page_says_which_ops_a_gpu_serves(void **state) {
    static char page[65536];
    (void)state;
    FILE *file = fopen(LEAT_SOURCE_DIR "/docs/backends.md", "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    (void)fclose(file);
    for (int op = 0; op < LEATI_OP_COUNT; ++op) {
        char start[64];
        const char *name = leati_op_descriptor_of((leati_op)op)->name;
        snprintf(start, sizeof start, "\n| %s |", name);
        const char *row = strstr(page, start), *cell = row ? behind_bars(row, 4) : NULL;
        const char *expected = serves((leati_op)op) ? " yes |" : "  |";
        if (!cell || strncmp(cell, expected, strlen(expected)) != 0)
            fail_msg("docs/backends.md: the row of %s has not '%s' in the column cuda", name, expected);
    }
}

int main(int argc, char **argv) {
    static const op_case *const families[] = {
#define FAMILY(family) cases_##family,
        OP_FAMILY_LIST(FAMILY)
#undef FAMILY
    };
    static const struct {
        const char *name;
        void (*check)(void **state);
    } manners[] = {{"", check},
                   {", bf16", check_bf16},
                   {", cuDNN", check_dnn},
                   {", cuDNN, bf16", check_dnn_bf16},
                   {", planes", check_planes},
                   {", folded, bf16", check_folded}};
    static char names[most_tests][128];
    static struct CMUnitTest tests[most_tests + 1];
    size_t count = 0;
    leat_error err = {0};
    if (leati_cuda_open(0, &device, &err) != LEAT_OK) {
        fprintf(stderr, "skipped: %s\n", err.message);
        return 77;
    }
    for (size_t f = 0; f < sizeof families / sizeof *families; ++f)
        for (const op_case *c = families[f]; c->name; ++c)
            for (int i = 0; i < (families[f] == cases_conv ? 6 : 2) && count < most_tests; ++i) {
                snprintf(names[count], sizeof names[count], "%s%s", c->name, manners[i].name);
                if (argc > 1 && !strstr(names[count], argv[1])) continue;
                tests[count] = (struct CMUnitTest){.name = names[count],
                                                   .test_func = manners[i].check,
                                                   .initial_state = (void *)(uintptr_t)c};
                ++count;
            }
    if (argc == 1 && strcmp(LEAT_SOURCE_DIR, ".") != 0) /* tools/gpu-bundle leaves the page out */
        tests[count++] = (struct CMUnitTest)cmocka_unit_test(the_page_says_which_ops_a_gpu_serves);
    int failed = _cmocka_run_group_tests("cuda ops", tests, count, NULL, NULL);
    leati_device_close(&device);
    return failed != 0;
}
