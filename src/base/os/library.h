/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects that are loaded while the program runs. */
#ifndef LEATI_BASE_OS_LIBRARY_H
#define LEATI_BASE_OS_LIBRARY_H

#include <stddef.h>

#include "leat/error.h"

/* Opaque and reference-counted: one shared object. */
typedef struct leati_library leati_library;

/* Loads a shared object.  A path without a slash is a file in the current folder, not a library of the system.
 * Errors: LEAT_EIO with the loader's reason; LEAT_ENOMEM. */
leat_status leati_library_open(leati_library **out, const char *path, leat_error *err);

/* Loads a shared object of the system by its name, such as "libcurl.so.4".  It stays in memory until the process ends,
 * because threads and handlers of exit() may belong to it.  Errors: LEAT_ENOTFOUND with the loader's reason;
 * LEAT_ENOMEM. */
leat_status leati_library_open_system(leati_library **out, const char *name, leat_error *err);

/* Adds a reference and returns library.  NULL is allowed. */
leati_library *leati_library_hold(leati_library *library);

/* Drops a reference and sets *library to NULL; unloads the object with the last reference. */
void leati_library_close(leati_library **library);

/* Copies the address of the function `name` to *out, a function pointer of `bytes` bytes.  Errors: LEAT_ENOTFOUND. */
leat_status leati_library_function(const leati_library *library, const char *name, void *out, size_t bytes,
                                   leat_error *err);

#endif
