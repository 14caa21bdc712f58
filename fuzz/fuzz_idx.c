/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes idx files, plain and compressed by gzip. */
#include "base/memory.h"
#include "data/idx.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    leati_array array;
    void *unpacked;
    leat_error err = {0};
    if (leati_idx_parse(&array, &unpacked, data, size, "fuzz.idx", &err) != LEAT_OK)
        return err.message[0] == '\0';
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < array.bytes; ++i) sum = (unsigned char)(sum + array.data[i]);
    leati_free(unpacked);
    return 0;
}
