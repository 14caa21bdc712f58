/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is no plugin. */
int leat_test_nothing(void);

int leat_test_nothing(void) {
    return 0;
}
