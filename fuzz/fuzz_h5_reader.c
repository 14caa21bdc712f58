/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of HDF5 files: reads datasets and attributes with the names that
 * tests/golden/record_h5_features.py gives them. */
#include <stdlib.h>

#include "base/memory.h"
#include "fuzz.h"
#include "h5/h5.h"

enum { most_bytes = 1 << 20 };

static void check(leat_status status, const leat_error *err) {
    if (status == LEAT_EINTERNAL || (status != LEAT_OK && err->message[0] == '\0')) abort();
}

static void read_dataset(leati_h5 *file, const char *name) {
    leat_tensor tensor;
    leat_error err = {0};
    leat_status status = leati_h5_describe(file, name, &tensor, &err);
    check(status, &err);
    size_t bytes = leat_dtype_bytes(tensor.dtype);
    for (int i = 0; i < tensor.rank; ++i)
        if (!leati_mul_size(bytes, (size_t)tensor.shape[i], &bytes) || bytes > most_bytes) return;
    if (status != LEAT_OK) return;
    tensor.data =
        leati_calloc(1, bytes ? bytes : 1); /* no spare bytes: a sanitizer detects writes beyond the end */
    if (tensor.data) check(leati_h5_read(file, name, &tensor, &err), &err);
    leati_free(tensor.data);
}

static void read_attribute(leati_h5 *file, const char *object, const char *name) {
    leati_h5_strings strings;
    leat_error err = {0};
    leat_status status = leati_h5_read_strings(file, object, name, &strings, &err);
    check(status, &err);
    if (status == LEAT_OK) leati_h5_strings_fini(&strings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const datasets[] = {"contiguous",   "scalar",   "half",           "double",
                                           "int8",         "int64",    "empty",          "unwritten",
                                           "one_chunk",    "chunks",   "sparse",         "growing",
                                           "compact",      "shuffled", "many_chunks",    "group/deep/er/data",
                                           "plain_chunks", "soft",     "outside",        "virtual",
                                           "lzf",          "data",     "stored_outside", "of_named_type"};
    static const char *const attributes[][2] = {{"/", "text"},           {"/", "fixed"},
                                                {"/", "list"},           {"/", "variable"},
                                                {"/", "empty"},          {"/", "number"},
                                                {"group", "long"},       {"group", "attribute_"},
                                                {"group", "attribute_7"}};
    leati_h5 *file = NULL;
    leat_error err = {0};
    if (!data) return 0;
    leat_status status = leati_h5_open_bytes(&file, "a file", data, size, &err);
    check(status, &err);
    if (status != LEAT_OK) return 0;
    for (size_t i = 0; i < sizeof datasets / sizeof *datasets; ++i) read_dataset(file, datasets[i]);
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; ++i)
        read_attribute(file, attributes[i][0], attributes[i][1]);
    leati_h5_has_object(file, "group/member_3");
    leati_h5_close(&file, NULL);
    return 0;
}
