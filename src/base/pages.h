/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of memory. */
#ifndef LEATI_BASE_PAGES_H
#define LEATI_BASE_PAGES_H

#include <stddef.h>

/* Gives the pages that lie wholly inside this heap memory back to the system.  The memory stays allocated, and is
 * resident again when it is written; its content is lost. */
void leati_pages_drop(void *memory, size_t bytes);

/* Makes the pages that lie wholly inside this memory resident, which keep their content, where the system can do so
 * at once (Linux 5.14).  A zeroed page that is read before it is written has two page faults, and the second one
 * interrupts all threads of the process. */
void leati_pages_populate(void *memory, size_t bytes);

/* Asks for huge pages: a few page faults then map what thousands would, and the processor finds more of the addresses
 * in its TLB. */
void leati_pages_prefer_huge(void *memory, size_t bytes);

#endif
