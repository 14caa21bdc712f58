/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object without leat_plugin_open. */
int leat_test_nothing(void);

int leat_test_nothing(void) {
    return 0;
}
