/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes .npz files: zip directories, deflated data, and the arrays in them. */
#include "data/npz.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    leat_npz *npz;
    leat_error err = {0};
    if (leati_npz_open_bytes(&npz, data, size, "fuzz.npz", &err) != LEAT_OK)
        return npz != NULL || err.message[0] == '\0';
    for (int i = 0; i < leat_npz_count(npz); ++i) {
        leat_tensor tensor;
        volatile unsigned char sum = 0;
        if (leat_npz_get(npz, leat_npz_name(npz, i), &tensor, &err) != LEAT_OK) continue;
        for (size_t k = 0; k < leat_tensor_bytes(&tensor); ++k)
            sum = (unsigned char)(sum + ((unsigned char *)tensor.data)[k]);
    }
    leat_npz_close(&npz);
    return 0;
}
