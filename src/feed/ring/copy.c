/* SPDX-License-Identifier: Apache-2.0 */
/* Copies memory without filling the caches, with SSE2's streaming stores on x86-64 and memcpy elsewhere.  Room:
 * feed. */
#include "feed/ring/copy.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>

#define LINE  ((size_t)64)
#define AHEAD 1024 /* bytes; the distance of prefetching covers the latency of the memory */

static void copy_line(__m128i *to, const __m128i *from) {
    __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1), c = _mm_loadu_si128(from + 2),
            d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
}

void leati_copy_past_caches(void *to, const void *from, size_t bytes) {
    size_t lines = bytes / LINE, lines_ahead = AHEAD / LINE;
    unsigned char *out = to;
    const unsigned char *in = from;
    for (size_t i = 0; i < lines; ++i, in += LINE, out += LINE) {
        if (i + lines_ahead < lines) _mm_prefetch((const char *)(in + AHEAD), _MM_HINT_NTA);
        copy_line((__m128i *)out, (const __m128i *)in);
    }
    memcpy(out, in, bytes % LINE);
    _mm_sfence(); /* The release store that publishes the slot does not order streaming stores. */
}
#else
void leati_copy_past_caches(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}
#endif
