/* SPDX-License-Identifier: Apache-2.0 */
/* How leat's own code makes errors and adds context to them while it unwinds. */
#ifndef LEATI_BASE_ERROR_H
#define LEATI_BASE_ERROR_H

#include <stdarg.h>
#include <stddef.h>

#include "leat/error.h"

/* Fills *err (NULL allowed) and returns code: `return leati_fail(err, LEAT_ESHAPE, "expected ..., got ...")`. */
#define leati_fail leat_error_set

/* The same with a foreign code beside it. */
leat_status leati_fail_origin(leat_error *err, leat_status code, leat_origin origin, int64_t origin_code,
                              const char *format, ...) LEAT_PRINTF(5, 6);

/* The same for errno, whose text is appended: "cannot open 'x': No such file or directory". */
leat_status leati_fail_errno(leat_error *err, leat_status code, int number, const char *format, ...)
    LEAT_PRINTF(4, 5);

/* The same for what is wrong with one sample of a batch: `place` is kept for leati_error_place.  The message says "sample %lld of
 * the batch" itself; who knows the sample's number in the data puts that in front. */
leat_status leati_fail_sample(leat_error *err, leat_status code, int64_t place, const char *format, ...)
    LEAT_PRINTF(4, 5);

/* The place in the batch of the sample that is wrong; -1 where the error is of no sample. */
int64_t leati_error_place(const leat_error *err);

leat_status leati_fail_memory(leat_error *err, size_t bytes, const char *what);

/* LEAT_EINVAL for the index of a `what`, of which there are `count`: "expected a weight from 0 to 5, received 7". */
leat_status leati_fail_index(leat_error *err, const char *what, int64_t index, int64_t count);

/* Puts "format: " in front of the message and returns err's code given as status (so that it can end a return):
 * `return leati_prefix(status, err, "layer '%s'", name)`. */
leat_status leati_prefix(leat_status status, leat_error *err, const char *format, ...) LEAT_PRINTF(3, 4);

/* `LEATI_TRY(call)` inside a function that returns leat_status: passes a failure on as it is. */
#define LEATI_TRY(call)                                                                                      \
    do {                                                                                                     \
        leat_status leati_try_status = (call);                                                               \
        if (leati_try_status != LEAT_OK) return leati_try_status;                                            \
    } while (0)

/* At the beginning of a public function: what it cannot do without.  `LEATI_GIVEN(model, err);` */
#define LEATI_GIVEN(argument, err)                                                                           \
    do {                                                                                                     \
        if (!(argument)) return leati_fail((err), LEAT_EINVAL, "%s: " #argument " is NULL", __func__);       \
    } while (0)

/* clang's analyzer sees one file at a time; without this it takes a failure for LEAT_OK, and out parameters for set. */
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
