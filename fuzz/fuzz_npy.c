/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes .npy headers, and the transposition of arrays in Fortran order. */
#include <stdlib.h>

#include "data/npy.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    leati_array array;
    leat_error err = {0};
    if (leati_npy_parse(&array, data, size, "fuzz.npy", &err) != LEAT_OK) return err.message[0] == '\0';
    void *copy = malloc(array.bytes ? array.bytes : 1);
    if (copy) leati_array_to_c_order(&array, copy);
    free(copy);
    return 0;
}
