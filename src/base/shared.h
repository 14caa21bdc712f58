/* SPDX-License-Identifier: Apache-2.0 */
/* LEATI_SHARED marks a private function of the feed that libleat_feed.so exports for libleat.so.  The rooms base and tensor
 * need no mark: they are compiled with default visibility (SHARED in their CMakeLists.txt).  LEATI_HIDDEN marks those of
 * their functions that libleat_feed.so alone uses. */
#ifndef LEATI_BASE_SHARED_H
#define LEATI_BASE_SHARED_H

#if defined(__GNUC__)
#define LEATI_SHARED __attribute__((visibility("default")))
#define LEATI_HIDDEN __attribute__((visibility("hidden")))
#else
#define LEATI_SHARED
#define LEATI_HIDDEN
#endif

#endif
