/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts a batch in parts on several ranks.  Room: train. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/model/model.h"
#include "train/parallel/parts.h"

/* Returns the number of samples of a rank in a batch. */
static int64_t samples_of(const leati_parallel *p, int rank, int64_t samples) {
    const int first = leati_first_part(rank, p->dist->size, p->parts),
              end = leati_first_part(rank + 1, p->dist->size, p->parts);
    return leati_first_sample(p, end, samples) - leati_first_sample(p, first, samples);
}

/* Returns the largest number of samples of a rank: the size of a block. */
static int64_t most_samples(const leati_parallel *p, int64_t samples) {
    int64_t most = 0;
    for (int rank = 0; rank < p->dist->size; ++rank) {
        const int64_t count = samples_of(p, rank, samples);
        if (count > most) most = count;
    }
    return most;
}

/* Makes room for an output of the batch; `part` is the output of some of its samples. */
static leat_status reserve_rows(leati_parts *r, int output, const leat_tensor *part, leat_error *err) {
    leati_rows *rows = &r->p->rows[output];
    leat_tensor one = *part;
    one.shape[0] = 1;
    rows->bytes = leat_tensor_bytes(&one);
    const size_t blocks = 1 + (size_t)r->p->dist->size,
                 bytes = blocks * (size_t)most_samples(r->p, r->samples) * rows->bytes;
    if (bytes > rows->memory_bytes) {
        leati_free(rows->memory);
        rows->memory_bytes = 0;
        rows->memory = leati_calloc(1, bytes);
        if (!rows->memory) return leati_fail_memory(err, bytes, "predictions");
        rows->memory_bytes = bytes;
    }
    rows->mine = leat_tensor_view(part->dtype, part->rank, part->shape, rows->memory);
    rows->mine.shape[0] = 0;
    return LEAT_OK;
}

/* Predicts the samples from `first`; `size` 0: only compiles the step, to learn the shapes of the outputs. */
static leat_status predict_part(leati_parts *r, int part, int64_t first, int64_t size, leat_error *err) {
    leati_parallel *p = r->p;
    const leati_parallel_batch *b = r->batch;
    const leati_compiled_step *step = NULL;
    const void *pointers[LEATI_MAX_BOUND];
    leati_program_spec spec = r->spec;
    leati_parts_cut(r, &spec, pointers, size ? first : r->from, size ? size : 1);
    LEATI_TRY(leati_trainer_step(b->trainer, &spec, b->threads, &step, err));
    leat_status status =
        size ? leati_trainer_run(b->trainer, step, pointers, leati_part_seed(b->seed, part), err) : LEAT_OK;
    if (status != LEAT_OK) return b->name_sample(b->user, status, first - r->from, err);
    for (int i = 0; i < p->model->output_count; ++i) {
        leati_rows *rows = &p->rows[i];
        leat_tensor output = leati_plan_output(step->plan, step->program.predictions[i]);
        LEATI_TRY(leati_predictions_check(i, &output, size ? size : 1, err));
        if (first == leati_first_sample(p, p->first, r->samples)) LEATI_TRY(reserve_rows(r, i, &output, err));
        if (size)
            memcpy(rows->memory + (size_t)rows->mine.shape[0] * rows->bytes, output.data,
                   (size_t)size * rows->bytes);
        rows->mine.shape[0] += size;
    }
    return LEAT_OK;
}

static leat_status predict_parts(leati_parts *r, leat_error *err) {
    leati_parallel *p = r->p;
    LEATI_TRY(leati_parts_bind(r, err));
    if (samples_of(p, p->dist->rank, r->samples) == 0)
        return predict_part(r, p->first, leati_first_sample(p, p->first, r->samples), 0, err);
    for (int part = p->first; part < p->end; ++part) {
        const int64_t first = leati_first_sample(p, part, r->samples),
                      size = leati_first_sample(p, part + 1, r->samples) - first;
        if (size) LEATI_TRY(predict_part(r, part, first, size, err));
    }
    return LEAT_OK;
}

/* Appends the samples of all ranks, in the order of the ranks. */
static leat_status gather_rows(leati_parts *r, int output, leat_predictions *predictions, leat_error *err) {
    const leati_parallel *p = r->p;
    const leati_rows *rows = &p->rows[output];
    const size_t block = (size_t)most_samples(p, r->samples) * rows->bytes;
    leat_tensor theirs = rows->mine;
    LEATI_TRY(leati_dist_all_gather(p->dist, rows->memory, block, rows->memory + block, err));
    for (int rank = 0; rank < p->dist->size; ++rank) {
        theirs.data = rows->memory + (size_t)(1 + rank) * block;
        theirs.shape[0] = samples_of(p, rank, r->samples);
        if (theirs.shape[0]) LEATI_TRY(leati_predictions_append_samples(predictions, output, &theirs, err));
    }
    return LEAT_OK;
}

leat_status leati_parallel_predict(leati_parallel *p, const leati_parallel_batch *batch,
                                   leat_predictions *predictions, leat_error *err) {
    leati_parts r = {.p = p, .batch = batch};
    bool requested = leati_is_requested(p);
    leat_status status = batch->taken == LEAT_OK ? predict_parts(&r, err) : batch->taken;
    LEATI_TRY(leati_parallel_agree_all(p->dist, status, &requested, err));
    *p->requested = *p->requested || requested;
    for (int i = 0; i < p->model->output_count; ++i) LEATI_TRY(gather_rows(&r, i, predictions, err));
    return LEAT_OK;
}
