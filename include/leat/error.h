/* SPDX-License-Identifier: Apache-2.0 */
/* Errors are values: a code to branch on, and a message in memory that the caller owns.  The library never prints or
 * exits, and no data makes it abort. */
#ifndef LEAT_ERROR_H
#define LEAT_ERROR_H

#include <stdint.h>

#include "leat/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Rules that hold for all functions of leat.
 *
 *  Pointers: `err` may always be NULL, another argument only if the text of the function says so.  If any other
 *  argument is NULL, a function that returns a status returns LEAT_EINVAL and names the argument; a function that
 *  returns a value returns 0, NULL, false or a zeroed struct; a function that returns nothing does nothing.  An
 *  enumerator, a rank or a count that is out of range is an error, too.  A function that creates an object in
 *  *out sets *out to NULL on failure.
 *
 *  Structs: a struct whose first member is `size`, and a struct of results that a function fills up to a given
 *  size, may get more members at its end in later versions; a program that was compiled with an older header
 *  continues to work.  Initialize such a struct with its _init or _default function, or zero it and set `size` to
 *  its sizeof.  A function returns LEAT_EINVAL if the size is that of no version, or if a member is set that this
 *  version does not know.  All other structs are frozen: they never change.  See docs/decisions/0302.
 *
 *  Errors: the text of a function lists the codes that are specific to the function.  LEAT_EINVAL for a NULL
 *  argument is not repeated there.
 *
 *  Threads: "any" means that any thread may call the function at any time.  "Externally synchronised" means that
 *  one thread at a time may use the object, but different threads may use different objects at the same time.
 *  "Immutable" means that any number of threads may use the object at the same time.  A function without a line
 *  about threads follows the text of the object that it is called with.  "A call on the model" means that the
 *  function counts as a use of that externally synchronised model. */

/** All status codes, each with its name, value and text.  The values are part of the ABI and are never reused. */
#define LEAT_STATUS_LIST(X)                                                                                  \
    X(LEAT_OK, 0, "success")                                                                                 \
    X(LEAT_EINVAL, 1, "invalid argument")                                                                    \
    X(LEAT_ESHAPE, 2, "shapes do not agree")                                                                 \
    X(LEAT_EDTYPE, 3, "data types do not agree")                                                             \
    X(LEAT_ENOMEM, 4, "out of memory")                                                                       \
    X(LEAT_EIO, 5, "input or output failed")                                                                 \
    X(LEAT_EFORMAT, 6, "damaged or foreign file")                                                            \
    X(LEAT_ENOTFOUND, 7, "not found")                                                                        \
    X(LEAT_ENOTSUP, 8, "not supported")                                                                      \
    X(LEAT_EUSER, 9, "a user's function failed")                                                             \
    X(LEAT_EWORKER, 10, "a worker was lost")                                                                 \
    X(LEAT_ESTOPPED, 11, "stopped on request")                                                               \
    X(LEAT_EBACKEND, 12, "a compute library failed")                                                         \
    X(LEAT_EINTERNAL, 13, "leat's own mistake")                                                              \
    X(LEAT_ETIMEOUT, 14, "too late")                                                                         \
    X(LEAT_ESKIPPED, 15, "passed over")                                                                      \
    X(LEAT_EBUSY, 16, "in use already")

/** The result of a function: LEAT_OK, or the kind of its failure.  LEAT_STATUS_LIST defines the values. */
typedef enum leat_status {
#define LEAT_STATUS_ENUM(name, value, text) name = value,
    LEAT_STATUS_LIST(LEAT_STATUS_ENUM)
#undef LEAT_STATUS_ENUM
} leat_status;

/** The origin of leat_error.origin_code: leat itself, the C library (errno), oneDNN, HDF5, or a function of the
 *  user. */
typedef enum leat_origin {
    LEAT_ORIGIN_LEAT = 0,
    LEAT_ORIGIN_ERRNO = 1,
    LEAT_ORIGIN_ONEDNN = 2,
    LEAT_ORIGIN_HDF5 = 3,
    LEAT_ORIGIN_USER = 4
} leat_origin;

/** The size in bytes of an error's message, including the final zero byte; a longer message is cut. */
#define LEAT_ERROR_MESSAGE_BYTES 496

/** An error: its code, its origin, and a message that says what was expected, what was received, and where.
 *  Initialize it by `leat_error err = {0};`.  A function that succeeds does not change it.  The size (512 bytes)
 *  is part of the ABI.  A leat_error may be copied like any plain value. */
typedef struct leat_error {
    int32_t code;   /* a leat_status */
    int32_t origin; /* a leat_origin */
    /* The code of the origin: errno, dnnl_status_t, ...  For LEAT_ORIGIN_LEAT: 0, or 1 + the index in its batch of the
     * sample that is wrong. */
    int64_t origin_code;
    char message[LEAT_ERROR_MESSAGE_BYTES]; /* UTF-8, zero-terminated */
} leat_error;

/** Returns the fixed text of a status, "unknown status" for a value that is not in LEAT_STATUS_LIST.  Threads: any. */
LEAT_API const char *leat_status_text(leat_status status);

/** Returns the name of a status, such as "LEAT_ESHAPE".  Threads: any. */
LEAT_API const char *leat_status_name(leat_status status);

/** Writes the code and a printed message into *err, and returns `code`, so that a callback can
 *  `return leat_error_set(err, LEAT_EUSER, ...)`.  A message that is too long is cut.  A control character other than a
 *  line break or a tab becomes '?'.
 *  @param err  NULL allowed: only `code` is returned.
 *  @param format  A format of printf; format NULL: the fixed text of the status.
 *  Errors: none; the return value is `code`.  Threads: any. */
LEAT_API leat_status leat_error_set(leat_error *err, leat_status code, const char *format, ...)
    LEAT_PRINTF(3, 4);

/** Like leat_error_set, but with a finished text, in which no character is a conversion of printf.  It is for
 *  languages that cannot call a function with `...`.
 *  @param text  The message; text NULL: the fixed text of the status.
 *  Errors: none; the return value is `code`.  Threads: any. */
LEAT_API leat_status leat_error_set_text(leat_error *err, leat_status code, const char *text);

#ifdef __cplusplus
}
#endif
#endif
