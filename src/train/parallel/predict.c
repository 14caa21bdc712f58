/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts a batch in parts on several ranks.  Room: train. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/model/model.h"
#include "train/parallel/parts.h"

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
        if (first == leati_first_sample(p, p->first, r->samples))
            LEATI_TRY(leati_rows_begin(rows, r, &output, err));
        leati_rows_append(rows, &output, size);
    }
    return LEAT_OK;
}

static leat_status predict_parts(leati_parts *r, leat_error *err) {
    leati_parallel *p = r->p;
    LEATI_TRY(leati_parts_bind(r, err));
    if (leati_samples_of(p, p->dist->rank, r->samples) == 0)
        return predict_part(r, p->first, leati_first_sample(p, p->first, r->samples), 0, err);
    for (int part = p->first; part < p->end; ++part) {
        const int64_t first = leati_first_sample(p, part, r->samples),
                      size = leati_first_sample(p, part + 1, r->samples) - first;
        if (size) LEATI_TRY(predict_part(r, part, first, size, err));
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
    LEATI_TRY(leati_parts_join_states(&r, err));
    for (int i = 0; i < p->model->output_count; ++i) {
        leat_tensor whole;
        LEATI_TRY(leati_rows_gather(&p->rows[i], &r, &whole, err));
        LEATI_TRY(leati_predictions_append_samples(predictions, i, &whole, err));
    }
    return LEAT_OK;
}
