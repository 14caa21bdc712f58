/* SPDX-License-Identifier: Apache-2.0 */
/* The feed's contract without workers and with worker threads. */
#include "feed/cases.h"

const feed_mode modes[] = {{0, false}, {1, false}, {2, false}, {4, false}};
const int mode_count = sizeof modes / sizeof *modes;

int main(void) {
    const struct CMUnitTest tests[] = {
#define FEED_CASE_TEST(name) cmocka_unit_test(name),
        FEED_CASES(FEED_CASE_TEST)
#undef FEED_CASE_TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
