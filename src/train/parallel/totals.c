/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the totals of the parts of a batch.  Room: train. */
#include "train/parallel/totals.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/model/model.h"
#include "train/parallel/parts.h"

/* Compiles the program of the totals for some samples of this rank. */
static leat_status step_of(leati_parts *r, int64_t first, int64_t count, const void **pointers,
                           const leati_compiled_step **step, leat_error *err) {
    leati_program_spec spec = r->spec;
    leati_parts_cut(r, &spec, pointers, first, count);
    spec.part_of_step = LEATI_STEP_TOTALS;
    return leati_trainer_step(r->batch->trainer, &spec, r->batch->threads, step, err);
}

/* What a rank tells: its status, and the sums of each of its parts. */
static size_t block_of(const leati_parallel *p) {
    const int most = (p->parts + p->dist->size - 1) / p->dist->size;
    return 1 + (size_t)most * (size_t)p->totals.width;
}

static leat_status reserve(leati_parallel *p, leat_error *err) {
    leati_batch_totals *t = &p->totals;
    const size_t block = block_of(p), ranks = (size_t)p->dist->size;
    leati_free(t->values);
    leati_free(t->mine);
    leati_free(t->all);
    t->values = leati_calloc((size_t)t->width, sizeof *t->values);
    t->mine = leati_calloc(block, sizeof *t->mine);
    t->all = leati_calloc(block * ranks, sizeof *t->all);
    if (t->values && t->mine && t->all) return LEAT_OK;
    return leati_fail_memory(err, block * (ranks + 1) * sizeof *t->all, "sums over a batch");
}

/* The totals of a loss that reads predictions need the forward pass, which would exchange statistics a second time. */
static leat_status refuse_exchanges(const leati_plan *plan, leat_error *err) {
    int64_t doubles = 0;
    const char *label = NULL;
    if (!leati_plan_exchange_get(plan, 0, &doubles, &label)) return LEAT_OK;
    return leati_fail(
        err, LEAT_ENOTSUP,
        "layer '%s': a synchronized BatchNormalization in front of a loss that adds up the batch, "
        "as Dice does, is not supported with several ranks",
        label);
}

/* Finds out which totals the losses have, by the first sample that this rank has. */
static leat_status find(leati_parts *r, leat_error *err) {
    leati_batch_totals *t = &r->p->totals;
    const leati_compiled_step *step = NULL;
    const void *pointers[LEATI_MAX_BOUND];
    LEATI_TRY(step_of(r, r->from, 1, pointers, &step, err));
    LEATI_TRY(refuse_exchanges(step->plan, err));
    t->count = step->program.total_count;
    t->width = 0;
    for (int i = 0; i < t->count; ++i) {
        const leat_tensor total = leati_plan_output(step->plan, step->program.totals[i]);
        t->offset[i] = t->width;
        t->width += leat_tensor_count(&total);
    }
    return t->count ? reserve(r->p, err) : LEAT_OK;
}

/* Computes the sums of a part. */
static leat_status sum_part(leati_parts *r, int part, double *out, leat_error *err) {
    const leati_parallel *p = r->p;
    const int64_t first = leati_first_sample(p, part, r->samples),
                  count = leati_first_sample(p, part + 1, r->samples) - first;
    const leati_compiled_step *step = NULL;
    const void *pointers[LEATI_MAX_BOUND];
    if (count == 0) return LEAT_OK;
    LEATI_TRY(step_of(r, first, count, pointers, &step, err));
    leat_status status =
        leati_trainer_run(r->batch->trainer, step, pointers, leati_part_seed(r->batch->seed, part), err);
    if (status != LEAT_OK) return r->batch->name_sample(r->batch->user, status, first - r->from, err);
    for (int i = 0; i < p->totals.count; ++i) {
        const leat_tensor total = leati_plan_output(step->plan, step->program.totals[i]);
        const float *values = total.data;
        for (int64_t k = 0; k < leat_tensor_count(&total); ++k)
            out[p->totals.offset[i] + k] = (double)values[k];
    }
    return LEAT_OK;
}

static leat_status sum_parts(leati_parts *r, leat_error *err) {
    leati_parallel *p = r->p;
    for (int part = p->first; part < p->end; ++part)
        LEATI_TRY(sum_part(r, part, p->totals.mine + 1 + (part - p->first) * p->totals.width, err));
    return LEAT_OK;
}

/* Adds the sums of all parts in their order; returns false if a rank has failed. */
static bool add_up(leati_parallel *p) {
    const leati_batch_totals *t = &p->totals;
    for (int64_t i = 0; i < t->width; ++i) {
        double sum = 0;
        for (int rank = 0; rank < p->dist->size; ++rank) {
            const double *theirs = t->all + (size_t)rank * block_of(p);
            const int count = leati_first_part(rank + 1, p->dist->size, p->parts) -
                              leati_first_part(rank, p->dist->size, p->parts);
            if (theirs[0] != (double)LEAT_OK) return false;
            for (int part = 0; part < count; ++part) sum += theirs[1 + part * t->width + i];
        }
        t->values[i] = (float)sum;
    }
    return true;
}

/* Lets all ranks know of a failure, which ends the batch. */
static leat_status agree(leati_parts *r, leat_status status, leat_error *err) {
    status = leati_parallel_agree(r->p->dist, status, err);
    r->agreed_failure = status != LEAT_OK;
    return status;
}

leat_status leati_batch_totals_sum(leati_parts *r, leat_status status, leat_error *err) {
    leati_parallel *p = r->p;
    leati_batch_totals *t = &p->totals;
    if (!t->is_known || t->version != p->model->version) {
        t->count = 0;
        if (status == LEAT_OK) status = find(r, err);
        LEATI_TRY(agree(r, status, err));
        t->is_known = true;
        t->version = p->model->version;
    }
    if (t->count == 0) return status;
    memset(t->mine, 0, block_of(p) * sizeof *t->mine);
    if (status == LEAT_OK) status = sum_parts(r, err);
    t->mine[0] = (double)status;
    leat_error why = {0};
    const leat_status told =
        leati_dist_all_gather(p->dist, t->mine, block_of(p) * sizeof *t->mine, t->all, &why);
    if (told != LEAT_OK) {
        if (err && status == LEAT_OK) *err = why;
        r->agreed_failure = true;
        return status == LEAT_OK ? told : status;
    }
    return add_up(p) ? LEAT_OK : agree(r, status, err);
}

void leati_batch_totals_fini(leati_batch_totals *t) {
    leati_free(t->values);
    leati_free(t->mine);
    leati_free(t->all);
    *t = (leati_batch_totals){0};
}
