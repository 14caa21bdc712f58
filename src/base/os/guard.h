/* SPDX-License-Identifier: Apache-2.0 */
/* Guards for mappings of files that another program may shorten.  Reading a page that the file no longer has raises
 * SIGBUS, which by default ends the program.  In a guarded mapping that page and the pages after it read as zeros
 * instead, and the reader asks afterwards whether this has happened. */
#ifndef LEATI_BASE_OS_GUARD_H
#define LEATI_BASE_OS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Opaque: one guarded mapping. */
typedef struct leati_guard leati_guard;

/* Guards a mapping that begins at a page and has `bytes` in use.  The first call installs a handler of SIGBUS for the
 * rest of the process's life; the handler passes signals that concern no guarded mapping to the handler, or the
 * default action, that was there before.  Returns NULL if the table of guards is full; the mapping is then not
 * guarded.  Threads: any. */
leati_guard *leati_guard_begin(const void *data, size_t bytes);

/* Ends the guard; call it before unmapping.  NULL is allowed. */
void leati_guard_end(leati_guard *guard);

/* Returns true if a missing page was read; *offset is then the lowest offset of such a page, in bytes from the
 * mapping's beginning. */
bool leati_guard_was_hit(const leati_guard *guard, size_t *offset);

size_t leati_page_bytes(void);

#endif
