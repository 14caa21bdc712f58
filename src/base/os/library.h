/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects that are loaded while the program runs. */
#ifndef LEATI_BASE_OS_LIBRARY_H
#define LEATI_BASE_OS_LIBRARY_H

#include <stddef.h>

#include "leat/error.h"

/* Opaque; shared by those who hold it. */
typedef struct leati_library leati_library;

/* A name without a slash is a file of this folder, not one of the system's.  Errors: LEAT_EIO with the loader's reason. */
leat_status leati_library_open(leati_library **out, const char *path, leat_error *err);
leati_library *leati_library_hold(leati_library *library); /* one holder more; NULL is fine */
void leati_library_close(leati_library **library);         /* one less: the last unloads it; sets NULL */

/* Copies the address of a function into *out, a pointer to a function (`bytes` long).  Errors: LEAT_ENOTFOUND. */
leat_status leati_library_function(const leati_library *library, const char *name, void *out, size_t bytes,
                                   leat_error *err);

#endif
