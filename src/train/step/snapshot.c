/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of what a step changes.  Room: train. */
#include "train/step/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static size_t bytes_of(const leat_model *model, int slab, bool trains) {
    if (slab == LEATI_SLAB_STATES) return leati_states_bytes(model);
    if (!trains || slab == LEATI_SLAB_GRADIENTS) return 0;
    return slab == LEATI_SLAB_WEIGHTS ? model->weights.bytes : model->weights.trainable_bytes;
}

leat_status leati_step_snapshot_take(leati_step_snapshot *k, const leat_model *model, bool trains,
                                     leat_error *err) {
    *k = (leati_step_snapshot){.iterations = model->iterations};
    if (trains) k->scale = model->compiled.optimizer->scale;
    for (int i = 0; i < LEATI_SLAB_SCALARS; ++i) {
        k->bytes[i] = model->weights.slab[i] ? bytes_of(model, i, trains) : 0;
        if (k->bytes[i] == 0) continue;
        k->copies[i] = leati_memdup(leati_weights_slab(&model->weights, (leati_slab)i), k->bytes[i]);
        if (!k->copies[i]) return leati_fail_memory(err, k->bytes[i], "a copy of the weights");
    }
    return LEAT_OK;
}

void leati_step_snapshot_restore(const leati_step_snapshot *k, leat_model *model) {
    for (int i = 0; i < LEATI_SLAB_SCALARS; ++i)
        if (k->copies[i]) {
            memcpy(leati_weights_slab(&model->weights, (leati_slab)i), k->copies[i], k->bytes[i]);
            leati_weights_changed(&model->weights, (leati_slab)i);
        }
    model->iterations = k->iterations;
    if (model->compiled.ready && k->scale.growth_steps > 0) model->compiled.optimizer->scale = k->scale;
    if (k->copies[LEATI_SLAB_WEIGHTS]) leati_model_weights_changed(model);
}

void leati_step_snapshot_fini(leati_step_snapshot *k) {
    for (int i = 0; i < LEATI_SLAB_SCALARS; ++i) leati_free(k->copies[i]);
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

int64_t leati_step_median(int64_t *times, int count) {
    qsort(times, (size_t)count, sizeof *times, by_value);
    return times[count / 2];
}
