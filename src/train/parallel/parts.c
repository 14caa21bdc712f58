/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a batch into parts.  Room: train. */
#include "train/parallel/parts.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "nn/model/model.h"

int64_t leati_first_sample(const leati_parallel *p, int part, int64_t samples) {
    return part * samples / p->parts;
}

int64_t leati_samples_of(const leati_parallel *p, int rank, int64_t samples) {
    const int first = leati_first_part(rank, p->dist->size, p->parts),
              end = leati_first_part(rank + 1, p->dist->size, p->parts);
    return leati_first_sample(p, end, samples) - leati_first_sample(p, first, samples);
}

uint64_t leati_part_seed(uint64_t seed, int part) {
    return seed + (uint64_t)part * UINT64_C(0x9e3779b97f4a7c15);
}

bool leati_is_requested(const leati_parallel *p) {
    return atomic_load_explicit(&p->model->stop_requested, memory_order_relaxed);
}

leat_status leati_parts_bind(leati_parts *r, leat_error *err) {
    const leati_parallel_batch *b = r->batch;
    leat_status status = leati_binding_apply(b->binding, b->batch, &r->spec, r->pointers, err);
    r->samples = b->whole;
    r->from = b->from;
    return status == LEAT_OK ? LEAT_OK : b->name_sample(b->user, status, 0, err);
}

static void cut_desc(leati_desc *desc, const void **pointer, int64_t first, int64_t count) {
    const size_t bytes = leati_desc_bytes(desc) / (size_t)desc->shape[0];
    *pointer = (const char *)*pointer + (size_t)first * bytes;
    desc->shape[0] = count;
}

/* True if the program of a part depends on the place of its samples in the batch. */
static bool has_place(const leat_model *model) {
    bool has = model->weights.state_bytes > 0;
    for (int i = 0; i < model->output_count && model->compiled.ready; ++i) {
        const leati_loss_type *loss = model->compiled.losses[i].type;
        has = has || (loss && loss->compares);
    }
    return has;
}

void leati_parts_cut(const leati_parts *r, leati_program_spec *spec, const void **pointers, int64_t first,
                     int64_t count) {
    int at = 0;
    if (has_place(r->p->model)) {
        spec->first_sample = first;
        spec->most_samples = r->batch->binding->batch_size;
    }
    first -= r->from;
    memcpy(pointers, r->pointers, sizeof r->pointers);
    spec->whole_batch = r->samples;
    spec->norms = r->p->norms;
    if (spec->mode == LEATI_TRAIN) spec->part_of_step = LEATI_STEP_GRADIENTS;
    for (int i = 0; i < spec->input_count; ++i) cut_desc(&spec->inputs[i], &pointers[at++], first, count);
    for (int i = 0; i < spec->target_count; ++i)
        if (spec->targets[i].rank >= 0) cut_desc(&spec->targets[i], &pointers[at++], first, count);
    for (int i = 0; i < spec->target_count; ++i)
        if (spec->weights[i].rank >= 0) cut_desc(&spec->weights[i], &pointers[at++], first, count);
    for (int i = 0; i < r->p->totals.count; ++i)
        pointers[at + i] = r->p->totals.values + r->p->totals.offset[i];
}

leat_status leati_parts_join_states(leati_parts *r, leat_error *err) {
    leati_parallel *p = r->p;
    const leat_model *model = p->model;
    if (model->weights.state_bytes == 0 || p->dist->size == 1) return LEAT_OK;
    const int64_t shape[2] = {1, (int64_t)leati_states_width(model, r->samples)},
                  first = leati_first_sample(p, p->first, r->samples),
                  count = leati_samples_of(p, p->dist->rank, r->samples);
    const leat_tensor sample = leat_tensor_view(LEAT_U8, 2, shape, NULL);
    leat_tensor whole;
    LEATI_TRY(leati_rows_begin(&p->states, r, &sample, err));
    leati_states_pack(model, r->samples, first, count, p->states.memory);
    p->states.mine.shape[0] = count;
    LEATI_TRY(leati_rows_gather(&p->states, r, &whole, err));
    leati_states_unpack(model, r->samples, 0, r->samples, whole.data);
    return LEAT_OK;
}
