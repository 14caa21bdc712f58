/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with the headers that it wants before it. */
#ifndef LEAT_TESTS_CMOCKA_ALL_H
#define LEAT_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
