/* SPDX-License-Identifier: Apache-2.0 */
/* The composition root: the one file that names backends. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef LEAT_WITH_CUDA
#include "backends/cuda/backend.h"
#endif
#include "backends/native/backend.h"
#include "backends/ref/ref.h"
#include "base/error.h"
#include "engine/backend.h"
#include "engine/device.h"
#ifdef LEAT_WITH_ONEDNN
#include "backends/onednn/backend.h"
#endif

const leati_backend *const leati_backends[] = {
    &leati_backend_native,
#ifdef LEAT_WITH_ONEDNN
    &leati_backend_onednn,
#endif
    &leati_backend_ref,
    NULL,
};

/* Reads the number of "cuda:<number>"; that of "cuda" is 0.  Returns -1 for any other text. */
static int number_of(const char *name) {
    char *end = NULL;
    if (strcmp(name, "cuda") == 0) return 0;
    if (strncmp(name, "cuda:", 5) != 0 || name[5] < '0' || name[5] > '9') return -1;
    long number = strtol(name + 5, &end, 10);
    return *end == '\0' && number < 1024 ? (int)number : -1;
}

leat_status leati_device_open(const char *name, int place, leati_device **out, leat_error *err) {
    int number = number_of(name);
    *out = NULL;
    if (number < 0)
        return leati_fail(
            err, LEAT_EINVAL,
            "there is no device '%s': expected \"cpu\", \"auto\", \"cuda\" or \"cuda:<number>\"", name);
#ifdef LEAT_WITH_CUDA
    return strchr(name, ':') ? leati_cuda_open(number, out, err) : leati_cuda_open_any(place, out, err);
#else
    (void)place;
    return leati_fail(err, LEAT_ENOTSUP,
                      "device '%s': this leat was built without CUDA; build it with -DLEAT_CUDA=ON", name);
#endif
}
