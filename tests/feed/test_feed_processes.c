/* SPDX-License-Identifier: Apache-2.0 */
/* The feed's contract with worker processes, compared with the stream that is made without workers. */
#include "feed/cases.h"

const feed_mode modes[] = {{1, true}, {2, true}, {4, true}};
const int mode_count = sizeof modes / sizeof *modes;

int main(void) {
    const struct CMUnitTest tests[] = {
#define FEED_CASE_TEST(name) cmocka_unit_test(name),
        FEED_CASES(FEED_CASE_TEST)
#undef FEED_CASE_TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
