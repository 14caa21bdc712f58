/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the functions of NVIDIA's libraries at run time.  The libraries stay open until the process ends, because
 * they leave threads and exit handlers behind.  Room: backends/cuda. */
#include <dlfcn.h>

#include "backends/cuda/driver/api.h"
#include "backends/cuda/driver/nccl.h"
#include "base/error.h"

/* The place of a function in the table. */
typedef struct entry {
    const char *name;
    void **place;
} entry;

/* A later #define of a header may give a function another name, cuMemAlloc_v2 for example: the macros expand the
 * argument before they make a string of it. */
#define NAME(function)  #function
#define ENTRY(function) {NAME(function), (void **)(void *)&api->function},

/* Opens the first of `files`, a list that ends with NULL, and fills `count` entries. */
static leat_status load(const char *const *files, const char *what, const char *where, const entry *entries,
                        size_t count, leat_error *err) {
    void *library = NULL;
    for (int i = 0; files[i] && !library; ++i) library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return leati_fail(err, LEAT_ENOTSUP, "%s was not found: the library %s is missing; %s", what,
                          files[0], where);
    for (size_t i = 0; i < count; ++i) {
        *entries[i].place = dlsym(library, entries[i].name);
        if (!*entries[i].place)
            return leati_fail(err, LEAT_ENOTSUP, "%s is too old: %s has no function %s; %s", what, files[0],
                              entries[i].name, where);
    }
    return LEAT_OK;
}

leat_status leati_cuda_load_driver(leati_cuda_api *api, leat_error *err) {
    static const char *const files[] = {"libcuda.so.1", NULL};
    const entry entries[] = {LEATI_CUDA_DRIVER_FUNCTIONS(ENTRY)};
    return load(files, "NVIDIA's driver", "install a driver for CUDA 13 or newer", entries,
                sizeof entries / sizeof *entries, err);
}

leat_status leati_cuda_load_nccl(leati_nccl_api *api, leat_error *err) {
    static const char *const files[] = {"libnccl.so.2", "libnccl.so", NULL};
#define MEMBER(result, member, arguments, function) {#function, (void **)(void *)&api->member},
    const entry entries[] = {LEATI_NCCL_FUNCTIONS(MEMBER)};
#undef MEMBER
    return load(files, "NCCL", "install NCCL 2 and put its folder into LD_LIBRARY_PATH", entries,
                sizeof entries / sizeof *entries, err);
}

leat_status leati_cuda_load_blas(leati_cuda_api *api, leat_error *err) {
    static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so", NULL};
    const entry entries[] = {LEATI_CUDA_BLAS_FUNCTIONS(ENTRY)};
    return load(files, "cuBLASLt", "install cuBLAS 13 and put its folder into LD_LIBRARY_PATH", entries,
                sizeof entries / sizeof *entries, err);
}

leat_status leati_cuda_load_dnn(leati_cuda_api *api, leat_error *err) {
    static const char *const files[] = {"libcudnn.so.9", "libcudnn.so", NULL};
    const entry entries[] = {LEATI_CUDA_DNN_FUNCTIONS(ENTRY)};
    return load(files, "cuDNN", "install cuDNN 9 and put its folder into LD_LIBRARY_PATH", entries,
                sizeof entries / sizeof *entries, err);
}
