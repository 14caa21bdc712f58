/* SPDX-License-Identifier: Apache-2.0 */
/* Error values: status texts, messages, context.  Room: base. */
#define LEATI_DEFINES_ERRORS
#include "base/error.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char *leat_status_text(leat_status status) {
    switch (status) {
#define STATUS_TEXT(name, value, text)                                                                       \
    case name: return text;
        LEAT_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

const char *leat_status_name(leat_status status) {
    switch (status) {
#define STATUS_NAME(name, value, text)                                                                       \
    case name: return #name;
        LEAT_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    }
    return "unknown status";
}

/* Replaces each control character by '?', except line breaks and tabs: messages quote files and are shown on
 * terminals. */
static void hide_controls(char *text) {
    for (size_t bytes; *text; text += bytes ? bytes : 1) {
        bytes = *text == '\n' || *text == '\t' ? 0 : leati_control_bytes(text);
        memset(text, '?', bytes);
    }
}

static void fill(leat_error *err, leat_status code, leat_origin origin, int64_t origin_code,
                 const char *format, va_list arguments) {
    if (!err) return;
    char text[LEAT_ERROR_MESSAGE_BYTES]; /* the arguments may point into err->message */
    if (format)
        vsnprintf(text, sizeof text, format, arguments);
    else
        snprintf(text, sizeof text, "%s", leat_status_text(code));
    hide_controls(text);
    memcpy(err->message, text, sizeof text);
    err->code = (int32_t)code;
    err->origin = (int32_t)origin;
    err->origin_code = origin_code;
}

leat_status leat_error_set(leat_error *err, leat_status code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(err, code, LEAT_ORIGIN_LEAT, 0, format, arguments);
    va_end(arguments);
    return code;
}

leat_status leat_error_set_text(leat_error *err, leat_status code, const char *text) {
    return leat_error_set(err, code, "%s", text ? text : leat_status_text(code));
}

leat_status leati_fail_origin(leat_error *err, leat_status code, leat_origin origin, int64_t origin_code,
                              const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(err, code, origin, origin_code, format, arguments);
    va_end(arguments);
    return code;
}

leat_status leati_fail_sample(leat_error *err, leat_status code, int64_t place, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(err, code, LEAT_ORIGIN_LEAT, 1 + place, format, arguments);
    va_end(arguments);
    return code;
}

int64_t leati_error_place(const leat_error *err) {
    return err && err->origin == LEAT_ORIGIN_LEAT ? err->origin_code - 1 : -1;
}

void leati_error_move_place(leat_error *err, int64_t samples) {
    const int64_t place = leati_error_place(err);
    char before[64], message[sizeof err->message];
    if (place < 0) return;
    err->origin_code += samples;
    snprintf(before, sizeof before, "sample %lld of the batch", (long long)place);
    const char *at = strstr(err->message, before);
    if (!at) return;
    snprintf(message, sizeof message, "%.*ssample %lld of the batch%s", (int)(at - err->message),
             err->message, (long long)(place + samples), at + strlen(before));
    memcpy(err->message, message, sizeof message);
}

leat_status leati_fail_errno(leat_error *err, leat_status code, int number, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(err, code, LEAT_ORIGIN_ERRNO, number, format, arguments);
    va_end(arguments);
    if (err) {
        char reason[128] = "";
        if (strerror_r(number, reason, sizeof reason) != 0)
            snprintf(reason, sizeof reason, "errno %d", number);
        size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof err->message - used, ": %s", reason);
    }
    return code;
}

leat_status leati_fail_memory(leat_error *err, size_t bytes, const char *what) {
    return leati_fail(err, LEAT_ENOMEM, "no memory for %s (%zu bytes)", what, bytes);
}

leat_status leati_fail_index(leat_error *err, const char *what, int64_t index, int64_t count) {
    if (count < 1)
        return leati_fail(err, LEAT_EINVAL, "received the index %lld of a %s: there is none",
                          (long long)index, what);
    return leati_fail(err, LEAT_EINVAL, "expected the index of a %s from 0 to %lld, received %lld", what,
                      (long long)count - 1, (long long)index);
}

leat_status leati_prefix(leat_status status, leat_error *err, const char *format, ...) {
    if (status == LEAT_OK || !err) return status;
    char text[LEAT_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t used = length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    snprintf(text + used, sizeof text - used, ": %s", err->message);
    hide_controls(text);
    memcpy(err->message, text, sizeof text);
    return status;
}
