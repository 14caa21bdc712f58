/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with the headers that it wants before it. */
#ifndef LEAT_TESTS_CMOCKA_ALL_H
#define LEAT_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Ends a test that cannot run here, saying why: tools/test fails on a skip without a reason. */
#define LEAT_SKIP(...)                                                                                       \
    do {                                                                                                     \
        print_message("skipped: " __VA_ARGS__);                                                              \
        print_message("\n");                                                                                 \
        skip();                                                                                              \
    } while (0)

#endif
