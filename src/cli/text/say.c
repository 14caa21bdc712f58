/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people, without control characters.  Room: cli. */
#include "cli/text/say.h"

#include <stdarg.h>
#include <string.h>

#include "base/screen/screen.h"

enum { message_bytes = 16384 };

static void say(FILE *out, const char *format, va_list arguments) LEAT_PRINTF(2, 0);
static void say(FILE *out, const char *format, va_list arguments) {
    static const char ending[] = "...\n";
    char text[message_bytes];
    int length = vsnprintf(text, sizeof text, format, arguments);
    if (length < 0) return;
    if ((size_t)length >= sizeof text) memcpy(text + sizeof text - sizeof ending, ending, sizeof ending);
    cli_say_text(out, text);
}

void cli_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(stderr, format, arguments);
    va_end(arguments);
}

void cli_say_to(FILE *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(out, format, arguments);
    va_end(arguments);
}

void cli_say_text(FILE *out, char *text) {
    leati_screen_clean(text);
    fputs(text, out);
}
