/* SPDX-License-Identifier: Apache-2.0 */
/* Every case of every family on every backend.  `test_ops [WORD]` runs the cases whose name has the word. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "ops/harness.h"
#if LEAT_ONEDNN
#include "backends/native/backend.h"
#include "backends/onednn/backend.h"
#endif

static const leati_backend *const backends[] = {
    &leati_backend_ref,
#if LEAT_ONEDNN
    &leati_backend_native,
    &leati_backend_onednn,
#endif
};
enum { backend_count = sizeof backends / sizeof *backends, most_tests = 2048 };

typedef struct assignment {
    char name[128];
    const op_case *c;
    const leati_backend *backend;
} assignment;

static void check(void **state) {
    const assignment *a = *state;
    op_check(a->c, a->backend, a->backend == &leati_backend_ref ? 1 : 2);
}

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
            for (size_t b = 0; b < backend_count && count < most_tests; ++b) {
                assignment *a = &assignments[count];
                *a = (assignment){.c = c, .backend = backends[b]};
                snprintf(a->name, sizeof a->name, "%s: %s", backends[b]->name, c->name);
                if (argc > 1 && !strstr(a->name, argv[1])) continue;
                tests[count++] = (struct CMUnitTest){.name = a->name, .test_func = check, .initial_state = a};
            }
    if (count == 0 || count == most_tests) {
        fprintf(stderr, "%zu cases: none, or more than the table holds\n", count);
        return 2;
    }
    return _cmocka_run_group_tests("ops", tests, count, NULL, NULL);
}
