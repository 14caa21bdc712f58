/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the name that a misspelt word means, for "did you mean".  It needs libc alone: the library and the
 * command, which sees no other private header, each compile it. */
#ifndef LEATI_BASE_NAMES_NEAREST_H
#define LEATI_BASE_NAMES_NEAREST_H

#include <stddef.h>

/* Returns the one of `count` names that `word` misspells, NULL if none is near enough.  A word of up to 5 letters may
 * have one slip, a longer one a slip for every three letters.  A slip is a letter too many, a missing letter, a wrong
 * letter, or two neighbours that are swapped.  Upper and lower case are equal, but of two names that are equally
 * near, the one with the same case wins. */
const char *leati_nearest(const char *word, const char *const *names, size_t count);

#endif
