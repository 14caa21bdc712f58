/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library that the program runs with.  Room: base. */
#include "leat/version.h"

const char *leat_version(void) {
    return LEAT_VERSION_STRING;
}

int leat_version_number(void) {
    return LEAT_VERSION_NUMBER;
}
