/* SPDX-License-Identifier: Apache-2.0 */
/* The names of unfinished files: PATH.leat-PID-N.tmp.  Room: base. */
#ifndef LEATI_BASE_OS_TEMPORARY_H
#define LEATI_BASE_OS_TEMPORARY_H

#include <stddef.h>
#include <sys/types.h>

enum {
    LEATI_TEMPORARY_SUFFIX_BYTES = 40, /* room for the suffix, with a zero byte */
    LEATI_TEMPORARY_ATTEMPTS = 100     /* the numbers N are below this one */
};

/* Writes the name of an unfinished file of this process: the first `kept` bytes of the path, and the suffix.  `out` has
 * room for kept + LEATI_TEMPORARY_SUFFIX_BYTES bytes. */
void leati_temporary_name(char *out, const char *path, size_t kept, int attempt);

/* Returns the process that made the file of this name; 0 if it is not the name of an unfinished file. */
pid_t leati_temporary_owner(const char *name);

#endif
