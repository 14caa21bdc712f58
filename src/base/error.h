/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with which leat's own code creates errors and adds context to them on the way up to the caller. */
#ifndef LEATI_BASE_ERROR_H
#define LEATI_BASE_ERROR_H

#include <stdarg.h>
#include <stddef.h>

#include "leat/error.h"

/* Fills *err (NULL allowed) and returns code: `return leati_fail(err, LEAT_ESHAPE, "expected ..., got ...")`. */
#define leati_fail leat_error_set

/* Like leati_fail, but also stores the error code of another library. */
leat_status leati_fail_origin(leat_error *err, leat_status code, leat_origin origin, int64_t origin_code,
                              const char *format, ...) LEAT_PRINTF(5, 6);

/* Like leati_fail, but stores errno's value `number` and appends its text: "cannot open 'x': No such file or
 * directory". */
leat_status leati_fail_errno(leat_error *err, leat_status code, int number, const char *format, ...)
    LEAT_PRINTF(4, 5);

/* Like leati_fail, for an error in one sample of a batch: stores the sample's `place` in the batch for
 * leati_error_place.  The format must contain "sample %lld of the batch" itself; a caller that knows the sample's
 * number in the data adds it with leati_prefix. */
leat_status leati_fail_sample(leat_error *err, leat_status code, int64_t place, const char *format, ...)
    LEAT_PRINTF(4, 5);

/* Returns the place in the batch that leati_fail_sample stored; -1 if the error does not concern one sample. */
int64_t leati_error_place(const leat_error *err);

/* Adds `samples` to the place that leati_fail_sample stored, and to its text: an error in a part of a batch becomes one
 * of the batch.  Does nothing to other errors. */
void leati_error_move_place(leat_error *err, int64_t samples);

/* LEAT_ENOMEM: "no memory for WHAT (BYTES bytes)". */
leat_status leati_fail_memory(leat_error *err, size_t bytes, const char *what);

/* LEAT_EINVAL for an index out of range; `what` is the noun ("weight") and `count` the number of these objects:
 * "expected the index of a weight from 0 to 5, received 7". */
leat_status leati_fail_index(leat_error *err, const char *what, int64_t index, int64_t count);

/* Puts the formatted text and ": " in front of err's message, unless status is LEAT_OK.  Returns status, for
 * `return leati_prefix(status, err, "layer '%s'", name)`. */
leat_status leati_prefix(leat_status status, leat_error *err, const char *format, ...) LEAT_PRINTF(3, 4);

/* Evaluates a call that returns leat_status; if the call fails, returns its status from the enclosing function. */
#define LEATI_TRY(call)                                                                                      \
    do {                                                                                                     \
        leat_status leati_try_status = (call);                                                               \
        if (leati_try_status != LEAT_OK) return leati_try_status;                                            \
    } while (0)

/* Checks, at the beginning of a public function, that a pointer argument is not NULL: `LEATI_GIVEN(model, err);` */
#define LEATI_GIVEN(argument, err)                                                                           \
    do {                                                                                                     \
        if (!(argument)) return leati_fail((err), LEAT_EINVAL, "%s: " #argument " is NULL", __func__);       \
    } while (0)

/* clang's analyzer sees one file at a time.  Without these macros it assumes that the functions may return LEAT_OK,
 * and then reports out parameters that are not set. */
#if defined(__clang_analyzer__) && !defined(LEATI_DEFINES_ERRORS)
#undef leati_fail
#define leati_fail_sample(err, code, ...) (leati_fail_sample((err), (code), __VA_ARGS__), (code))
#define leati_fail(err, code, ...)        (leat_error_set((err), (code), __VA_ARGS__), (code))
#define leati_fail_origin(err, code, ...) (leati_fail_origin((err), (code), __VA_ARGS__), (code))
#define leati_fail_errno(err, code, ...)  (leati_fail_errno((err), (code), __VA_ARGS__), (code))
#define leati_fail_memory(...)            (leati_fail_memory(__VA_ARGS__), LEAT_ENOMEM)
#define leati_fail_index(...)             (leati_fail_index(__VA_ARGS__), LEAT_EINVAL)
#define leati_prefix(status, err, ...)    (leati_prefix((status), (err), __VA_ARGS__), (status))
#endif

#endif
