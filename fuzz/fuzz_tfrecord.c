/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes TFRecord files and the Examples in them; the whole input is read as an Example, too, since few inputs have
 * checksums that hold. */
#include <stdlib.h>

#include "base/memory.h"
#include "data/shards/example.h"
#include "data/shards/tfrecord.h"
#include "fuzz.h"

static void visit_name(void *user, const char *name, size_t bytes) {
    size_t *sum = user;
    for (size_t i = 0; i < bytes; ++i) *sum += (unsigned char)name[i];
}

static void read_example(const uint8_t *data, size_t size) {
    static const char *const names[] = {"x", "label", "image", ""};
    volatile size_t sum = 0;
    size_t names_sum = 0;
    const bool holds = leati_example_names(data, size, visit_name, &names_sum);
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        leati_feature feature;
        bool found = false;
        int64_t count = 0;
        const unsigned char *bytes = NULL;
        size_t length = 0;
        if (!leati_example_find(data, size, names[i], &feature, &found)) continue;
        if (!holds) abort();
        if (!found) continue;
        if (leati_feature_bytes(&feature, &bytes, &length))
            for (size_t k = 0; k < length; ++k) sum = sum + bytes[k];
        if (!leati_feature_count(&feature, &count)) continue;
        if (count < 0 || (uint64_t)count > size) abort();
        float *floats = leati_calloc((size_t)count + 1, sizeof *floats);
        int64_t *integers = leati_calloc((size_t)count + 1, sizeof *integers);
        if (floats && feature.kind == LEATI_FEATURE_FLOATS)
            (void)leati_feature_floats(&feature, floats, count);
        if (integers && feature.kind == LEATI_FEATURE_INTEGERS)
            (void)leati_feature_integers(&feature, integers, count);
        leati_free(floats);
        leati_free(integers);
    }
}

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static leat_status visit(void *user, uint64_t offset, uint32_t bytes, leat_error *err) {
    const input *in = user;
    (void)err;
    if (bytes < 4 || offset > in->size || bytes > in->size - offset) abort();
    read_example(in->data + offset, bytes - 4);
    return LEAT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    leat_error err = {0};
    input in = {data, size};
    leati_window file = leati_window_of(data, size, "fuzz.tfrecord");
    read_example(data, size);
    return leati_tfrecord_scan(&file, visit, &in, &err) != LEAT_OK && err.message[0] == '\0';
}
