/* SPDX-License-Identifier: Apache-2.0 */
/* Text on a terminal: characters that are safe to print, and the columns that they take.  This room needs libc alone:
 * the library and the command, which sees no other private header, each compile it. */
#ifndef LEATI_BASE_SCREEN_SCREEN_H
#define LEATI_BASE_SCREEN_SCREEN_H

#include <stddef.h>

/* Returns the number of bytes of the UTF-8 character at `at`: 0 at the end of the string, 1 for a byte that is not part
 * of a valid character.  *columns receives the columns of the character: 2 for East Asian wide characters and emoji,
 * 0 for combining characters, 1 for others; -1 for a character that must not be printed: a control character (C0, DEL
 * or C1) or an invalid byte. */
size_t leati_screen_character(const char *at, int *columns);

/* Replaces the bytes of control characters, except line breaks and tabs, and bytes that are not UTF-8 by '?'. */
void leati_screen_clean(char *text);

/* Like leati_screen_clean(), but replaces line breaks and tabs, too: for a name or a path inside a line. */
void leati_screen_clean_name(char *text);

/* Returns the columns of a clean text without line breaks. */
int leati_screen_columns(const char *text);

/* Returns the number of bytes of the longest beginning of `text` that takes at most `columns` columns. */
size_t leati_screen_cut(const char *text, int columns);

/* Returns the number of columns of the terminal `fd`: what the terminal says; otherwise the environment variable
 * COLUMNS; otherwise 80. */
int leati_screen_width(int fd);

#endif
