/* SPDX-License-Identifier: Apache-2.0 */
/* Reads golden .npz files with the public reader. */
#include "support/npz.h"

#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"

leat_npz *test_npz_open(const char *path) {
    char full[1024];
    leat_npz *npz = NULL;
    leat_error err = {0};
    snprintf(full, sizeof full, "%s%s", path[0] == '/' ? "" : LEAT_SOURCE_DIR "/tests/golden/", path);
    if (leat_npz_open(&npz, full, &err) != LEAT_OK) fail_msg("%s", err.message);
    return npz;
}

leat_tensor test_npz_get(leat_npz *npz, const char *name) {
    leat_tensor tensor = {0};
    leat_error err = {0};
    if (leat_npz_get(npz, name, &tensor, &err) != LEAT_OK) fail_msg("%s", err.message);
    return tensor;
}

int test_npz_has(const leat_npz *npz, const char *name) {
    for (int i = 0; i < leat_npz_count(npz); ++i)
        if (strcmp(leat_npz_name(npz, i), name) == 0) return 1;
    return 0;
}
