/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every case of every family on every backend.  `test_ops [WORD]` runs the cases whose name contains WORD. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "ops/harness.h"
#include "backends/native/backend.h"
#if LEAT_ONEDNN
#include "backends/onednn/backend.h"
#endif

static const leati_backend *const backends[] = {
    &leati_backend_ref,
    &leati_backend_native,
#if LEAT_ONEDNN
    &leati_backend_onednn,
#endif
};
enum { backend_count = sizeof backends / sizeof *backends, most_tests = 4096 };

typedef struct assignment {
    char name[128];
    const op_case *c;
    const leati_backend *backend;
} assignment;

static void check(void **state) {
    const assignment *a = *state;
    op_check(a->c, a->backend, a->backend == &leati_backend_ref ? 1 : 2);
}

static void check_bf16(void **state) {
    const assignment *a = *state;
    op_check_bf16(a->c, a->backend, a->backend == &leati_backend_ref ? 1 : 2);
}

/* ---- Completeness of the cases and of docs/backends.md ---- */

static bool has_case(leati_op op, bool differences) {
    static const op_case *const families[] = {
#define FAMILY(family) cases_##family,
        OP_FAMILY_LIST(FAMILY)
#undef FAMILY
    };
    for (size_t f = 0; f < sizeof families / sizeof *families; ++f)
        for (const op_case *c = families[f]; c->name; ++c)
            for (int i = 0; c->op == op && i < c->input_count; ++i) {
                bool real = c->inputs[i].desc.dtype == LEAT_F32 && !(c->constant >> i & 1u);
                if (!differences || (real && !c->bends && c->inputs[i].desc.rank >= 0)) return true;
            }
    return false;
}

/* Gradient ops are compared with their forward ops; plans elide STORE (tests/engine), and CALL runs a function from
 * outside of the library (tests/nn). */
static void every_op_has_a_case(void **state) {
    (void)state;
    for (int op = 0; op < LEATI_OP_COUNT; ++op) {
        const leati_op_descriptor *descriptor = leati_op_descriptor_of((leati_op)op);
        if (op == LEATI_OP_STORE || op == LEATI_OP_CALL) continue;
        bool of_gradient = strstr(descriptor->name, "_bwd") && !descriptor->gradient;
        if (!of_gradient && !has_case((leati_op)op, false)) fail_msg("op %s has no case", descriptor->name);
        if (descriptor->gradient && !has_case((leati_op)op, true))
            fail_msg("no case checks the gradient of op %s by differences", descriptor->name);
    }
}

#if LEAT_ONEDNN
static bool serves(const leati_backend *backend, leati_op op) {
    for (size_t i = 0; i < backend->count; ++i)
        if (backend->implementations[i].op == op) return true;
    return false;
}

/* docs/backends.md has a row for each op, in the order of the op table, and no other row.  test_cuda_ops checks the
 * column of the CUDA backend. */
static void the_page_says_who_serves(void **state) {
    static char page[65536];
    (void)state;
    FILE *file = fopen(LEAT_SOURCE_DIR "/docs/backends.md", "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    (void)fclose(file);
    char *at = strstr(page, "|---|---|---|---|---|\n"), row[512];
    assert_non_null(at);
    at += strlen("|---|---|---|---|---|\n");
    for (int op = 0; op < LEATI_OP_COUNT; ++op) {
        bool native = serves(&leati_backend_native, (leati_op)op),
             onednn = serves(&leati_backend_onednn, (leati_op)op);
        assert_true(serves(&leati_backend_ref, (leati_op)op));
        snprintf(row, sizeof row, "| %s | %s | %s |", leati_op_descriptor_of((leati_op)op)->name,
                 native ? "yes" : "", onednn ? "yes" : "");
        if (strncmp(at, row, strlen(row)) != 0) fail_msg("expected '%s', found '%.40s'", row, at);
        at = strchr(at, '\n') + 1;
    }
    assert_int_equal(*at, '\n');
}
#endif

int main(int argc, char **argv) {
    static const op_case *const families[] = {
#define FAMILY(family) cases_##family,
        OP_FAMILY_LIST(FAMILY)
#undef FAMILY
    };
    static assignment assignments[most_tests];
    static struct CMUnitTest tests[most_tests];
    size_t count = 0;
    for (size_t f = 0; f < sizeof families / sizeof *families; ++f)
        for (const op_case *c = families[f]; c->name; ++c)
            for (size_t b = 0; b < 2 * backend_count && count < most_tests; ++b) {
                assignment *a = &assignments[count];
                const leati_backend *backend = backends[b / 2];
                *a = (assignment){.c = c, .backend = backend};
                snprintf(a->name, sizeof a->name, "%s: %s%s", backend->name, c->name, b % 2 ? ", bf16" : "");
                if (argc > 1 && !strstr(a->name, argv[1])) continue;
                tests[count++] = (struct CMUnitTest){.name = a->name,
                                                     .test_func = b % 2 ? check_bf16 : check,
                                                     .initial_state = a};
            }
    if (argc == 1 && count + 2 < most_tests) {
        tests[count++] = (struct CMUnitTest)cmocka_unit_test(every_op_has_a_case);
#if LEAT_ONEDNN
        tests[count++] = (struct CMUnitTest)cmocka_unit_test(the_page_says_who_serves);
#endif
    }
    if (count == 0 || count == most_tests) {
        fprintf(stderr, "%zu cases: none, or more than the table holds\n", count);
        return 2;
    }
    return _cmocka_run_group_tests("ops", tests, count, NULL, NULL);
}
