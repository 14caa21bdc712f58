/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin for the tests, whose batches hold their index and the first letter of the options.  Options: `fail`
 * gives an error, `old` another size of leat_sequence, `empty` a sequence without get, `hooks` hooks that change
 * the letter which get reads, `samples` a sequence with get_samples. */
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

static int64_t samples(void *user) {
    return 6 + *(const char *)user;
}

static leat_status get_samples(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                               leat_batch *batch, leat_error *err) {
    (void)rng, (void)err;
    float *x = batch->tensors[0].data;
    for (int64_t i = 0; i < count; ++i) x[i] = (float)(numbers[i] + *(const char *)user);
    return LEAT_OK;
}

static leat_status on_epoch_end(void *user, int64_t pass, leat_error *err) {
    if (pass < 0) return leat_error_set(err, LEAT_EUSER, "no such pass");
    *(char *)user = (char)('p' + pass);
    return LEAT_OK;
}

static leat_status worker_init(void *user, int worker, leat_error *err) {
    if (worker < 0) return leat_error_set(err, LEAT_EUSER, "no such worker");
    *(char *)user = (char)('a' + worker);
    return LEAT_OK;
}

static void worker_fini(void *user, int worker) {
    *(char *)user = (char)('A' + worker);
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
    if (strcmp(options, "hooks") == 0) {
        out->on_epoch_end = on_epoch_end;
        out->worker_init = worker_init;
        out->worker_fini = worker_fini;
    }
    if (strcmp(options, "samples") == 0) {
        out->samples = samples;
        out->get_samples = get_samples;
    }
    if (strcmp(options, "empty") == 0) out->get = NULL;
    if (strcmp(options, "old") == 0) {
        free(copy);
        out->destroy = NULL;
        out->size = 8;
    }
    return leat_batch_spec_add(&out->spec, LEAT_PART_INPUT, NULL, LEAT_F32, 1, (int64_t[]){1}, err);
}
