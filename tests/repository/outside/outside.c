/* SPDX-License-Identifier: Apache-2.0 */
/* A program outside of leat's tree: it checks that installed headers and library agree. */
#include <stdio.h>
#include <string.h>

#include <leat/error.h>
#include <leat/sequence.h>
#include <leat/tensor.h>
#include <leat/version.h>

int main(void) {
    leat_error err = {0};
    leat_sequence sequence = leat_sequence_default();
    sequence.spec.batch_size = 4;
    if (leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, "x", LEAT_F32, 1, (const int64_t[]){3}, &err) !=
        LEAT_OK) {
        printf("%s\n", err.message);
        return 1;
    }
    if (strcmp(leat_version(), LEAT_VERSION_STRING) != 0) {
        printf("headers %s, library %s\n", LEAT_VERSION_STRING, leat_version());
        return 1;
    }
#if LEAT_VERSION_NUMBER < LEAT_VERSION_ENCODE(0, 1, 0)
#error "this is an older header than the installed one"
#endif
    if (leat_version_number() != LEAT_VERSION_NUMBER) {
        printf("headers %d, library %d\n", LEAT_VERSION_NUMBER, leat_version_number());
        return 1;
    }
    leat_sequence_destroy(&sequence);
    printf("outside: leat %s\n", leat_version());
    return 0;
}
