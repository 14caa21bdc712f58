/* SPDX-License-Identifier: Apache-2.0 */
/* The version of leat's public interface, and the attribute that exports a function. */
#ifndef LEAT_VERSION_H
#define LEAT_VERSION_H

#define LEAT_VERSION_MAJOR  0
#define LEAT_VERSION_MINOR  1
#define LEAT_VERSION_PATCH  0
#define LEAT_VERSION_STRING "0.1.0"

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

#ifdef __cplusplus
}
#endif
#endif
