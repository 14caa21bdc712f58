/* SPDX-License-Identifier: Apache-2.0 */
/* The version of leat's public interface, and the attribute that exports a function. */
#ifndef LEAT_VERSION_H
#define LEAT_VERSION_H

/** The version of the headers: three numbers, and a text. */
#define LEAT_VERSION_MAJOR  0
#define LEAT_VERSION_MINOR  1
#define LEAT_VERSION_PATCH  0
#define LEAT_VERSION_STRING "0.1.0"

/** A version as one integer; a newer version gives a larger integer: 0.1.0 is 100, 1.2.3 is 10203.  It is for
 *  conditions of the preprocessor, and for comparison with leat_version_number(). */
#define LEAT_VERSION_ENCODE(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))

/** The version of these headers, as LEAT_VERSION_ENCODE gives it. */
#define LEAT_VERSION_NUMBER LEAT_VERSION_ENCODE(LEAT_VERSION_MAJOR, LEAT_VERSION_MINOR, LEAT_VERSION_PATCH)

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

/** Returns the version of the linked library, such as "0.1.0".  LEAT_VERSION_STRING is the version of the headers.
 *  Threads: any. */
LEAT_API const char *leat_version(void);

/** Returns the version of the linked library as LEAT_VERSION_ENCODE(major, minor, patch).  LEAT_VERSION_NUMBER is
 *  the version of the headers.  A library works with a program that was compiled with older headers of the same
 *  major version.
 *  Threads: any. */
LEAT_API int leat_version_number(void);

#ifdef __cplusplus
}
#endif
#endif
