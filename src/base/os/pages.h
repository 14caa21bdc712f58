/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of memory. */
#ifndef LEATI_BASE_OS_PAGES_H
#define LEATI_BASE_OS_PAGES_H

#include <stddef.h>

/* Gives the pages that lie wholly inside this heap memory back to the system.  The memory stays allocated, and is
 * resident again when it is written; its content is lost. */
void leati_pages_drop(void *memory, size_t bytes);

#endif
