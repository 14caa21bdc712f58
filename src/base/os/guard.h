/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files that somebody may shorten.  A page that is missing raises SIGBUS, which ends the program; in a guarded mapping
 * that page and those behind it read as zeros instead, and whoever reads asks afterwards whether that happened. */
#ifndef LEATI_BASE_OS_GUARD_H
#define LEATI_BASE_OS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Opaque: one guarded mapping. */
typedef struct leati_guard leati_guard;

/* Guards a mapping of whole pages, of which `bytes` are in use.  The first call installs a handler of SIGBUS for the rest of
 * the process's life, which hands all that is not its own to the handler, or the default, that was there before.  NULL when
 * more mappings are guarded than there is room for: this one stays as it is.  Threads: any. */
leati_guard *leati_guard_begin(const void *data, size_t bytes);

/* Before the mapping is unmapped; NULL is fine. */
void leati_guard_end(leati_guard *guard);

/* Whether a page was missing; *offset is that of the first that was met. */
bool leati_guard_was_hit(const leati_guard *guard, size_t *offset);

size_t leati_page_bytes(void);

#endif
