/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of golden .npz files by name, for tests.  Link the rooms data and zip, and PkgConfig::zlib. */
#ifndef LEAT_TESTS_SUPPORT_NPZ_H
#define LEAT_TESTS_SUPPORT_NPZ_H

#include "leat/npz.h"

/* Opens tests/golden/<path>, or an absolute path.  A failure fails the test with the error's message. */
leat_npz *test_npz_open(const char *path);

/* Returns the array of that name, which is borrowed until leat_npz_close(&npz).  A failure fails the test. */
leat_tensor test_npz_get(leat_npz *npz, const char *name);

/* Returns 1 if there is an array of that name. */
int test_npz_has(const leat_npz *npz, const char *name);

#endif
