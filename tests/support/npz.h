/* SPDX-License-Identifier: Apache-2.0 */
/* Golden vectors for tests: all arrays of an .npz file, by name.  Link the rooms data and zip, and PkgConfig::zlib. */
#ifndef LEAT_TESTS_SUPPORT_NPZ_H
#define LEAT_TESTS_SUPPORT_NPZ_H

#include "leat/npz.h"

/* Opens tests/golden/<path>, or an absolute path; a failure fails the test with its message. */
leat_npz *test_npz_open(const char *path);

/* The array of that name; a failure fails the test.  Borrowed until leat_npz_close(&npz). */
leat_tensor test_npz_get(leat_npz *npz, const char *name);

/* Whether there is one. */
int test_npz_has(const leat_npz *npz, const char *name);

#endif
