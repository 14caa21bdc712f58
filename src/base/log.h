/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the log function that the program has set. */
#ifndef LEATI_BASE_LOG_H
#define LEATI_BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>

#include "leat/log.h"

/* True if a log function is set: whoever would have to compute a message asks first. */
bool leati_log_is_set(void);

/* Sends a message, without the line breaks at its beginning and its end.  A message that is too long is cut; an
 * empty one is dropped. */
void leati_log(leat_log_level level, const char *format, ...) LEAT_PRINTF(2, 3);
void leati_log_arguments(leat_log_level level, const char *format, va_list arguments) LEAT_PRINTF(2, 0);

/* Like leati_log(), for a finished text of any length, which is sent as it is. */
void leati_log_text(leat_log_level level, const char *text);

#endif
