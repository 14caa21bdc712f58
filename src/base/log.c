/* SPDX-License-Identifier: Apache-2.0 */
/* The log.  Room: base. */
#include "base/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/screen/screen.h"

enum { MESSAGE_BYTES = 2048 };

/* The program's log function, for the whole process: messages come from calls that have no object in common.
 * Atomic, so that a reader never sees half a pointer; leat_set_log says when it may be called, so that the two
 * belong together. */
static _Atomic(leat_log_function) log_function;
static _Atomic(void *) log_user;

void leat_set_log(leat_log_function function, void *user) {
    atomic_store(&log_function, NULL);
    atomic_store(&log_user, user);
    atomic_store(&log_function, function);
}

/* Names in the message may contain control characters, which must not reach a terminal.  A long message is written in
 * pieces, which end between two characters. */
void leat_log_to_stderr(void *user, leat_log_level level, const char *message) {
    char piece[MESSAGE_BYTES + 2];
    (void)user, (void)level;
    if (!message) return;
    flockfile(stderr);
    for (bool more = true; more;) {
        size_t bytes = strnlen(message, MESSAGE_BYTES);
        more = message[bytes] != '\0';
        for (int i = 0; more && i < 3 && ((unsigned char)message[bytes] & 0xC0) == 0x80; ++i) --bytes;
        snprintf(piece, sizeof piece, "%.*s", (int)bytes, message);
        leati_screen_clean(piece);
        fprintf(stderr, "%s%s", piece, more ? "" : "\n");
        message += bytes;
    }
    funlockfile(stderr);
}

bool leati_log_is_set(void) {
    return atomic_load(&log_function) != NULL;
}

void leati_log_text(leat_log_level level, const char *text) {
    leat_log_function function = atomic_load(&log_function);
    if (function && text[0]) function(atomic_load(&log_user), level, text);
}

void leati_log_arguments(leat_log_level level, const char *format, va_list arguments) {
    char message[MESSAGE_BYTES];
    if (!leati_log_is_set()) return;
    int length = vsnprintf(message, sizeof message, format, arguments);
    size_t used = length < 0 ? 0 : strnlen(message, sizeof message);
    while (used > 0 && message[used - 1] == '\n') --used;
    message[used] = '\0';
    leati_log_text(level, message + strspn(message, "\n"));
}

void leati_log(leat_log_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    leati_log_arguments(level, format, arguments);
    va_end(arguments);
}
