/* SPDX-License-Identifier: Apache-2.0 */
/* Model files: bytes as a .h5 file, loaded as a model and as weights.  HDF5 reads from a file, so one is written. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuzz.h"
#include "leat/model.h"

static void check(leat_status status, const leat_error *err) {
    if (status == LEAT_EINTERNAL || (status != LEAT_OK && err->message[0] == '\0')) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[] = "/tmp/leat-fuzz-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    close(fd);
    leat_model *model = NULL;
    leat_error err = {0};
    leat_status status = leat_model_load(&model, path, &err);
    if ((status == LEAT_OK) != (model != NULL)) abort();
    check(status, &err);
    if (model) check(leat_model_load_weights(model, path, true, &err), &err);
    leat_model_destroy(&model);
    unlink(path);
    return 0;
}
