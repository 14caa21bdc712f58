/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin for the tests: batches that hold their own index, and what its options said.  `fail` makes it fail, `old`
 * makes it claim another size of leat_sequence, `empty` leaves get out. */
#include "leat/plugin.h"

#include <stdlib.h>
#include <string.h>

static int64_t length(void *user) {
    (void)user;
    return 3;
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)rng;
    if (index == 2) return leat_error_set(err, LEAT_EUSER, "no third batch");
    float *x = batch->tensors[0].data;
    for (int64_t i = 0; i < batch->size; ++i) x[i] = (float)(100 * index + *(const char *)user);
    return LEAT_OK;
}

LEAT_PLUGIN leat_status leat_plugin_open(leat_sequence *out, const char *options, int64_t batch_size,
                                         leat_error *err) {
    if (strcmp(options, "fail") == 0) return leat_error_set(err, LEAT_EUSER, "asked to fail");
    char *copy = malloc(strlen(options) + 1);
    if (!copy) return leat_error_set(err, LEAT_ENOMEM, "no memory");
    out->user = strcpy(copy, options);
    out->length = length;
    out->get = get;
    out->destroy = free;
    out->spec.batch_size = batch_size;
    if (strcmp(options, "empty") == 0) out->get = NULL;
    if (strcmp(options, "old") == 0) {
        free(copy);
        out->destroy = NULL;
        out->struct_size = 8;
    }
    return leat_batch_spec_add(&out->spec, LEAT_PART_INPUT, NULL, LEAT_F32, 1, (int64_t[]){1}, err);
}
