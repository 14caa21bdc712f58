/* SPDX-License-Identifier: Apache-2.0 */
/* leati_copy_past_caches copies every byte, and writes no byte outside the destination. */
#include "cmocka_all.h"

#include <stdalign.h>
#include <string.h>

#include "feed/ring/copy.h"

enum { most = 5000, margin = 64 };

static alignas(64) unsigned char to[most + 2 * margin];
static unsigned char from[most + margin];

static void check(size_t offset, size_t bytes) {
    for (size_t i = 0; i < sizeof from; ++i) from[i] = (unsigned char)(i * 7 + bytes + 1);
    memset(to, 0xEE, sizeof to);
    leati_copy_past_caches(to + margin, from + offset, bytes);
    assert_memory_equal(to + margin, from + offset, bytes);
    for (size_t i = 0; i < margin; ++i) {
        assert_int_equal(to[i], 0xEE);
        assert_int_equal(to[margin + bytes + i], 0xEE);
    }
}

static void copies_every_length(void **state) {
    (void)state;
    for (size_t bytes = 0; bytes <= 300; ++bytes) check(0, bytes);
    check(0, 1024);
    check(0, 4096);
    check(0, most);
}

static void copies_from_any_address(void **state) {
    (void)state;
    for (size_t offset = 0; offset < margin; ++offset) check(offset, 2000 + offset * 13);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_every_length),
                                       cmocka_unit_test(copies_from_any_address)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
