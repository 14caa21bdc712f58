/* SPDX-License-Identifier: Apache-2.0 */
/* LEATI_SHARED marks a private function of src/feed that libleat_feed.so exports for libleat.so.  Functions of
 * src/base and src/tensor need no mark: these rooms are compiled with default visibility (SHARED in their
 * CMakeLists.txt). */
#ifndef LEATI_BASE_SHARED_H
#define LEATI_BASE_SHARED_H

#if defined(__GNUC__)
#define LEATI_SHARED __attribute__((visibility("default")))
#else
#define LEATI_SHARED
#endif

#endif
