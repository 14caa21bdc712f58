/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects with reference counts.  Room: base. */
#define _GNU_SOURCE /* RTLD_NODELETE */
#include "base/os/library.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

struct leati_library {
    void *object;
    atomic_int holders;
    char path[]; /* as the caller gave it */
};

static leat_status fail_to_load(const leati_library *library, leat_status code, leat_error *err) {
    const char *reason = dlerror();
    return leati_fail(err, code, "cannot load '%s': %s", library->path, reason ? reason : "no reason given");
}

static leat_status load(leati_library *library, leat_error *err) {
    size_t bytes = strlen(library->path) + 3;
    char *full = leati_calloc(bytes, 1);
    if (!full) return leati_fail_memory(err, bytes, "a file name");
    snprintf(full, bytes, "%s%s", strchr(library->path, '/') ? "" : "./", library->path);
    library->object = dlopen(full, RTLD_NOW | RTLD_LOCAL);
    leati_free(full);
    return library->object ? LEAT_OK : fail_to_load(library, LEAT_EIO, err);
}

static leat_status load_of_system(leati_library *library, leat_error *err) {
    library->object = dlopen(library->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library->object ? LEAT_OK : fail_to_load(library, LEAT_ENOTFOUND, err);
}

static leat_status open_with(leat_status (*load_object)(leati_library *library, leat_error *err),
                             leati_library **out, const char *path, leat_error *err) {
    size_t length = strlen(path);
    leati_library *library = leati_calloc(1, sizeof *library + length + 1);
    *out = NULL;
    if (!library) return leati_fail_memory(err, sizeof *library + length + 1, "a shared object");
    memcpy(library->path, path, length + 1);
    atomic_init(&library->holders, 1);
    leat_status status = load_object(library, err);
    if (status == LEAT_OK)
        *out = library;
    else
        leati_free(library);
    return status;
}

leat_status leati_library_open(leati_library **out, const char *path, leat_error *err) {
    return open_with(load, out, path, err);
}

leat_status leati_library_open_system(leati_library **out, const char *name, leat_error *err) {
    return open_with(load_of_system, out, name, err);
}

leati_library *leati_library_hold(leati_library *library) {
    if (library) atomic_fetch_add(&library->holders, 1);
    return library;
}

void leati_library_close(leati_library **library) {
    leati_library *held = *library;
    *library = NULL;
    if (!held || atomic_fetch_sub(&held->holders, 1) > 1) return;
    dlclose(held->object);
    leati_free(held);
}

leat_status leati_library_function(const leati_library *library, const char *name, void *out, size_t bytes,
                                   leat_error *err) {
    void *symbol = dlsym(library->object, name);
    if (!symbol) return leati_fail(err, LEAT_ENOTFOUND, "'%s' does not define %s", library->path, name);
    memcpy(out, &symbol, bytes); /* ISO C does not convert object pointers to function pointers */
    return LEAT_OK;
}
