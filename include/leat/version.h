/* SPDX-License-Identifier: Apache-2.0 */
/* The version of leat's public interface, and the attribute that exports a function. */
#ifndef LEAT_VERSION_H
#define LEAT_VERSION_H

/** The version of the headers, as numbers and as text. */
#define LEAT_VERSION_MAJOR  0
#define LEAT_VERSION_MINOR  1
#define LEAT_VERSION_PATCH  0
#define LEAT_VERSION_STRING "0.1.0"

/** A version as one integer that grows with it: 0.1.0 is 100, 1.2.3 is 10203.  For the preprocessor's conditions, and to
 *  compare with leat_version_number(). */
#define LEAT_VERSION_ENCODE(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define LEAT_VERSION_NUMBER                      LEAT_VERSION_ENCODE(LEAT_VERSION_MAJOR, LEAT_VERSION_MINOR, LEAT_VERSION_PATCH)

#if defined(__GNUC__)
#define LEAT_API                 __attribute__((visibility("default")))
#define LEAT_CHECKED             __attribute__((warn_unused_result))
#define LEAT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define LEAT_API
#define LEAT_CHECKED
#define LEAT_PRINTF(text, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that is linked, as "0.1.0"; LEAT_VERSION_STRING is that of the headers.
 *  Threads: any. */
LEAT_API const char *leat_version(void);

/** The version of the library that is linked, as LEAT_VERSION_ENCODE(major, minor, patch); LEAT_VERSION_NUMBER is that of the
 *  headers.  A library of the same major version serves a program that was compiled with headers of an older one.
 *  Threads: any. */
LEAT_API int leat_version_number(void);

#ifdef __cplusplus
}
#endif
#endif
