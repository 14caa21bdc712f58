/* SPDX-License-Identifier: Apache-2.0 */
/* Errors are values: a code to branch on, and a sentence in storage that the caller owns.
 * The library never prints, exits or asserts on data. */
#ifndef LEAT_ERROR_H
#define LEAT_ERROR_H

#include <stdint.h>

#include "leat/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Pointers: NULL is fine where a text says so, and for every `err`.  Given NULL elsewhere, a function that returns a status
 *  gives LEAT_EINVAL and names the argument, a function that returns something else returns 0, NULL, false or a zeroed struct,
 *  and a function that returns nothing does nothing.  An enumeration, a rank or a count that does not exist is an error too,
 *  and where a function makes something in *out, *out is NULL after a failure.
 *
 *  Structs: those whose first member is `size`, and those of results that a function fills by a size, may get more members at
 *  their ends in later versions; a program that was compiled against an older header goes on working.  Set them up with their
 *  _init or _default function, or zero them and set `size` to sizeof the struct.  LEAT_EINVAL: a size that no version
 *  has, or a member set that this version does not know.  All other structs are frozen.  docs/decisions/0302. */

/** Every status: name, value, text.  Values are part of the ABI and are never reused. */
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
    X(LEAT_ESKIPPED, 15, "passed over")

/** What a function returns: LEAT_OK, or the kind of its failure, by LEAT_STATUS_LIST. */
typedef enum leat_status {
#define LEAT_STATUS_ENUM(name, value, text) name = value,
    LEAT_STATUS_LIST(LEAT_STATUS_ENUM)
#undef LEAT_STATUS_ENUM
} leat_status;

/** Whose code `origin_code` is. */
typedef enum leat_origin {
    LEAT_ORIGIN_LEAT = 0,
    LEAT_ORIGIN_ERRNO = 1,
    LEAT_ORIGIN_ONEDNN = 2,
    LEAT_ORIGIN_HDF5 = 3,
    LEAT_ORIGIN_USER = 4
} leat_origin;

/** Bytes of an error's message with its final 0; a longer message is cut. */
#define LEAT_ERROR_MESSAGE_BYTES 496

/** What went wrong: expected, received, where.  Start from `leat_error err = {0};`.  A function that succeeds
 *  leaves it alone.  The size (512 bytes) is part of the ABI; the value may be copied freely. */
typedef struct leat_error {
    int32_t code;   /* a leat_status */
    int32_t origin; /* a leat_origin */
    int64_t
        origin_code; /* errno, dnnl_status_t, ...; LEAT_ORIGIN_LEAT: 0, or 1 + the place in its batch of a wrong sample */
    char message[LEAT_ERROR_MESSAGE_BYTES];
} leat_error;

/** The fixed text of a status, "unknown status" for any other number.  Threads: any. */
LEAT_API const char *leat_status_text(leat_status status);

/** The name of a status, "LEAT_ESHAPE".  Threads: any. */
LEAT_API const char *leat_status_name(leat_status status);

/** Fills *err (NULL allowed) and returns code, so that a user's function can `return leat_error_set(...)`.
 *  A message that does not fit is cut; a control character other than a line break or a tab becomes '?'.  format NULL: the status's fixed text.  Threads: any. */
LEAT_API leat_status leat_error_set(leat_error *err, leat_status code, const char *format, ...)
    LEAT_PRINTF(3, 4);

/** leat_error_set with a finished text, for languages that cannot call a function with `...`: no character of `text` is a
 *  format.  text NULL: the status's own text.  Threads: any. */
LEAT_API leat_status leat_error_set_text(leat_error *err, leat_status code, const char *text);

#ifdef __cplusplus
}
#endif
#endif
