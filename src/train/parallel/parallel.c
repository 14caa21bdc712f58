/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a batch in parts on several ranks.  Room: train. */
#include "train/parallel/parts.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "feed/stats/trace.h"
#include "leat/train.h"
#include "nn/model/model.h"

/* What each rank tells in front of the measures of its parts: its status, whether it was asked to stop, its wait for
 * the batch and its time of computing, in ns. */
enum { STATUS, REQUESTED, DATA, COMPUTE, HEAD };

/* ---- Making and freeing ---- */

/* With "auto" each rank would measure where its steps are faster, and the ranks would not compute the same. */
static leat_status check_device(const leati_parallel *p, bool shards, leat_error *err) {
    const char *device = leat_model_device(p->model);
    if (p->dist->size == 1 || strcmp(device, "cpu") == 0) return LEAT_OK;
    if (strcmp(device, "auto") == 0)
        return leati_fail(err, LEAT_ENOTSUP,
                          "device 'auto' is not supported with several ranks, which must all compute on the "
                          "same kind of device: choose 'cuda' or 'cpu'");
    if (shards)
        return leati_fail(err, LEAT_ENOTSUP,
                          "--shard-optimizer (shard_optimizer) is not supported on a GPU, in whose memory "
                          "the slots of the optimizer lie as a whole: leave it out, or train on the CPU");
    return LEAT_OK;
}

static leat_status check_model(const leati_parallel *p, leat_error *err) {
    if (p->deterministic && p->dist->size > LEATI_PARALLEL_PARTS)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "a deterministic model is trained by at most %d ranks, since each batch has %d parts; "
            "received %d ranks",
            LEATI_PARALLEL_PARTS, LEATI_PARALLEL_PARTS, p->dist->size);
    return LEAT_OK;
}

leat_status leati_parallel_init(leati_parallel *p, leat_dist *dist, leat_model *model, leati_mode mode,
                                const leati_parallel_options *options, leat_error *err) {
    *p = (leati_parallel){.dist = dist, .model = model, .deterministic = model->deterministic};
    p->parts = p->deterministic ? LEATI_PARALLEL_PARTS : dist->size;
    p->first = leati_first_part(dist->rank, dist->size, p->parts);
    p->end = leati_first_part(dist->rank + 1, dist->size, p->parts);
    if (mode == LEATI_TRAIN && p->parts > 1)
        p->norms = options->joins_norms ? LEATI_NORMS_JOINED : LEATI_NORMS_MARKED;
    leati_trainer *trainer = NULL;
    p->buckets.bf16 = options && options->bf16;
    if (p->deterministic && p->buckets.bf16)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "--bf16-gradients is not supported with --deterministic, which adds up the gradients of "
            "8 parts in float32, however many ranks have them: leave out one of both");
    LEATI_TRY(leati_trainer_of(model, &trainer, err));
    LEATI_TRY(leati_trainer_take_gpu(trainer, leati_dist_place(dist), err));
    LEATI_TRY(check_device(p, options && options->shards, err));
    LEATI_TRY(check_model(p, err));
    if (mode == LEATI_TRAIN) LEATI_TRY(leati_values_init(&p->values, model, trainer, err));
    p->width = leati_meter_width(model);
    const size_t block = (size_t)p->width * LEATI_PARALLEL_PARTS;
    p->mine = leati_calloc(HEAD + block, sizeof(double));
    p->all = leati_calloc((size_t)dist->size * (HEAD + block), sizeof(double));
    p->sums = leati_calloc((size_t)p->width, sizeof(double));
    p->times = leati_calloc((size_t)dist->size, sizeof *p->times);
    if (!p->mine || !p->all || !p->sums || !p->times)
        return leati_fail_memory(err, (size_t)dist->size * (HEAD + block) * sizeof(double),
                                 "the measures of the ranks");
    const bool shards = options && options->shards && dist->size > 1 && model->weights.trainable_bytes > 0 &&
                        leati_optimizer_shared_slabs(model->compiled.optimizer) > 0;
    return shards ? leati_shards_init(&p->shards, dist, model, err) : LEAT_OK;
}

void leati_parallel_fini(leati_parallel *p) {
    leati_tree_fini(&p->tree);
    leati_exchanges_fini(&p->exchanges);
    leati_batch_totals_fini(&p->totals);
    leati_shards_fini(&p->shards);
    leati_free(p->mine);
    leati_free(p->all);
    leati_free(p->sums);
    leati_free(p->times);
    leati_values_fini(&p->values);
    for (int i = 0; i < LEATI_PROGRAM_MAX_OUTPUTS; ++i) leati_rows_fini(&p->rows[i]);
    leati_whole_metrics_fini(&p->whole);
    leati_rows_fini(&p->states);
    *p = (leati_parallel){0};
}

/* ---- Parts ---- */

/* Returns the number of doubles that each rank tells: its head, and the measures of its parts. */
static size_t block_of(const leati_parallel *p) {
    int most = (p->parts + p->dist->size - 1) / p->dist->size;
    return HEAD + (size_t)most * (size_t)p->width;
}

/* ---- Sums over the rows of gradients, which parts add up beside the gradients ---- */

static float *rows_of(const leati_parallel *p) {
    return p->values.rows;
}

/* Finds out, when the model is new, which gradients are lists of rows, and makes room for their sums. */
static leat_status find_rows(leati_parts *r, const leati_program_spec *part, leat_error *err) {
    leati_parallel *p = r->p;
    leati_weights *weights = &p->model->weights;
    size_t bytes = 0;
    if (!p->knows_rows || p->rows_version != p->model->version) {
        bool *has_rows = leati_calloc((size_t)weights->trainable_count + 1, sizeof *has_rows);
        if (!has_rows)
            return leati_fail_memory(err, (size_t)weights->trainable_count, "the kinds of gradients");
        leat_status status = leati_program_find_rows(p->model, part, has_rows, &bytes, err);
        const leat_status made =
            leati_weights_set_rows(weights, has_rows, bytes, status == LEAT_OK ? err : NULL);
        LEATI_TRY(status == LEAT_OK ? made : status);
        LEATI_TRY(leati_values_resize_rows(&p->values, err));
        p->knows_rows = true;
        p->rows_version = p->model->version;
    }
    r->rows = weights->row_bytes / sizeof(float);
    return LEAT_OK;
}

/* ---- A batch ---- */

/* Adds the gradients and the written weights of a part to the sum.  Without determinism a rank has one part, and its
 * gradients stay in their slab. */
static leat_status collect(leati_parts *r, int part, const leati_plan *plan, float share, leat_error *err) {
    leati_parallel *p = r->p;
    if (!p->deterministic) {
        if (p->parts > 1) leati_values_weigh(&p->values, plan, share, p->values.moving);
        return LEAT_OK;
    }
    float *leaf = leati_tree_leaf(&p->tree, part);
    if (!leaf) return leati_fail_memory(err, p->tree.count * sizeof *leaf, "a sum of gradients");
    memcpy(leaf, p->values.gradients, r->gradients * sizeof *leaf);
    leati_values_weigh(&p->values, plan, share, leaf + r->gradients);
    if (rows_of(p)) memcpy(leaf + r->gradients + r->written, rows_of(p), r->rows * sizeof *leaf);
    leati_tree_add(&p->tree, part);
    return LEAT_OK;
}

/* Runs a part; without determinism, sums of gradients begin while it runs. */
static leat_status run_step(leati_parts *r, const leati_compiled_step *step, const void *const *pointers,
                            uint64_t seed, leat_error *err) {
    leati_exchanges *x = &r->p->exchanges;
    const leati_slab_watch watch = {.slab = LEATI_SLAB_GRADIENTS,
                                    .finished = leati_exchanges_finished,
                                    .user = x,
                                    .exchange = x->total > 0 ? &x->exchange : NULL};
    if (step->spec.mode == LEATI_TRAIN && r->p->values.device && r->p->parts > 1)
        return leati_values_run(&r->p->values, step, pointers, seed, err);
    if (step->spec.mode != LEATI_TRAIN || r->p->deterministic || r->p->values.device)
        return leati_trainer_run(r->batch->trainer, step, pointers, seed, err);
    leat_status status = leati_trainer_run_watched(r->batch->trainer, step, pointers, seed, &watch, err);
    if (status != LEAT_OK) leati_exchanges_complete(x);
    return status;
}

static leat_status run_part(leati_parts *r, int part, leat_error *err) {
    leati_parallel *p = r->p;
    const leati_parallel_batch *b = r->batch;
    const int64_t first = leati_first_sample(p, part, r->samples),
                  count = leati_first_sample(p, part + 1, r->samples) - first;
    const leati_compiled_step *step = NULL;
    const void *pointers[LEATI_MAX_BOUND];
    leati_program_spec spec = r->spec;
    if (count == 0) return LEAT_OK;
    leati_parts_cut(r, &spec, pointers, first, count);
    LEATI_TRY(leati_trainer_step(b->trainer, &spec, b->threads, &step, err));
    const bool trains = spec.mode == LEATI_TRAIN;
    if (trains && r->written > 0 && part > p->first)
        LEATI_TRY(leati_values_restore(&p->values, step->plan, err));
    leat_status status = run_step(r, step, pointers, leati_part_seed(b->seed, part), err);
    if (status != LEAT_OK) return b->name_sample(b->user, status, first - r->from, err);
    LEATI_TRY(leati_meter_measure(p->model, step, p->mine + HEAD + (part - p->first) * p->width, err));
    LEATI_TRY(leati_whole_metrics_take(&p->whole, r, step, count, err));
    return trains ? collect(r, part, step->plan, (float)count / (float)r->samples, err) : LEAT_OK;
}

/* A rank without samples makes the exchanges of the step, too: it runs the step on the first sample of the batch, which
 * does not count. */
static leat_status run_without_samples(leati_parts *r, leat_error *err) {
    leati_parallel *p = r->p;
    const leati_compiled_step *step = NULL;
    const void *pointers[LEATI_MAX_BOUND];
    leati_program_spec spec = r->spec;
    leati_parts_cut(r, &spec, pointers, r->from, 1);
    LEATI_TRY(leati_trainer_step(r->batch->trainer, &spec, r->batch->threads, &step, err));
    LEATI_TRY(run_step(r, step, pointers, r->batch->seed, err));
    if (rows_of(p)) memset(rows_of(p), 0, r->rows * sizeof(float));
    return LEAT_OK;
}

/* A rank without samples learns from the step of one sample which metrics are gathered, and their shapes. */
static leat_status learn_metrics(leati_parts *r, leat_error *err) {
    const leati_compiled_step *step = NULL;
    const void *pointers[LEATI_MAX_BOUND];
    leati_program_spec spec = r->spec;
    if (r->p->model->compiled.metric_count == 0) return LEAT_OK;
    leati_parts_cut(r, &spec, pointers, r->from, 1);
    LEATI_TRY(leati_trainer_step(r->batch->trainer, &spec, r->batch->threads, &step, err));
    return leati_whole_metrics_take(&r->p->whole, r, step, 0, err);
}

/* The parts of a batch that one rank computes one after the other cannot be normalized together, and the recorded step
 * of a GPU cannot wait for other ranks. */
static leat_status refuse_exchanges(const leati_parallel *p, const leati_plan *plan, leat_error *err) {
    int64_t doubles = 0;
    const char *label = NULL;
    if ((!p->deterministic && !p->values.device) || !leati_plan_exchange_get(plan, 0, &doubles, &label))
        return LEAT_OK;
    if (p->values.device)
        return leati_fail(err, LEAT_ENOTSUP,
                          "layer '%s': a synchronized BatchNormalization is not supported with several ranks "
                          "on GPUs: leave out the synchronization, or train on the CPU",
                          label);
    return leati_fail(err, LEAT_ENOTSUP,
                      "layer '%s': a synchronized BatchNormalization is not supported with several ranks and "
                      "--deterministic, which computes the parts of a batch one after the other: leave out "
                      "--deterministic, or the synchronization",
                      label);
}

/* Prepares sums of gradients, exchanges and written weights.  has_samples: this rank has some. */
static leat_status begin_parts(leati_parts *r, bool has_samples, leat_error *err) {
    leati_parallel *p = r->p;
    bool present[LEATI_TREE_LEAVES] = {0};
    LEATI_TRY(refuse_exchanges(p, r->plan, err));
    LEATI_TRY(leati_values_begin(&p->values, r->plan, &r->written, err));
    p->written = r->written;
    if (!p->deterministic) {
        if (!has_samples) LEATI_TRY(leati_values_clear(&p->values, err));
        return leati_exchanges_begin(&p->exchanges, p->dist, &p->buckets, r->plan, !has_samples, err);
    }
    for (int i = 0; i < p->parts; ++i)
        present[i] = leati_first_sample(p, i, r->samples) < leati_first_sample(p, i + 1, r->samples);
    leati_tree_begin(&p->tree, p->dist, r->gradients + r->written + r->rows, present);
    return LEAT_OK;
}

/* Compiles the first part of the step, to learn which weights it writes: on each rank, even if it has no samples. */
static leat_status begin_sums(leati_parts *r, leat_error *err) {
    leati_parallel *p = r->p;
    const leati_parallel_batch *b = r->batch;
    const leati_compiled_step *step = NULL;
    const void *pointers[LEATI_MAX_BOUND];
    leati_program_spec spec = r->spec;
    int part = p->first;
    while (part < p->end &&
           leati_first_sample(p, part, r->samples) == leati_first_sample(p, part + 1, r->samples))
        ++part;
    int64_t count =
        part < p->end ? leati_first_sample(p, part + 1, r->samples) - leati_first_sample(p, part, r->samples)
                      : 1;
    leati_parts_cut(r, &spec, pointers, r->from, count);
    LEATI_TRY(find_rows(r, &spec, err));
    LEATI_TRY(leati_trainer_step(b->trainer, &spec, b->threads, &step, err));
    r->plan = step->plan;
    return begin_parts(r, part < p->end, err);
}

/* Binds the batch, and prepares a training step. */
static leat_status begin_batch(leati_parts *r, leat_error *err) {
    LEATI_TRY(leati_parts_bind(r, err));
    return r->spec.mode == LEATI_TRAIN ? begin_sums(r, err) : LEAT_OK;
}

static leat_status run_parts(leati_parts *r, leat_error *err) {
    leati_parallel *p = r->p;
    const bool trains = r->batch->binding->mode == LEATI_TRAIN && !p->deterministic && p->dist->size > 1;
    memset(p->mine, 0, block_of(p) * sizeof(double));
    leat_status status = r->batch->taken == LEAT_OK ? begin_batch(r, err) : r->batch->taken;
    status = leati_batch_totals_sum(r, status, err);
    if (r->agreed_failure) return status;
    if (trains && (!p->knows_exchanges || p->exchanges_in_steps)) { /* no rank may begin exchanges alone */
        status = leati_parallel_agree(p->dist, status, err);
        r->agreed_failure = status != LEAT_OK;
        p->knows_exchanges = true;
        p->exchanges_in_steps = p->exchanges.total > 0;
    }
    if (status != LEAT_OK) return status;
    leati_whole_metrics_begin(&p->whole, p->model);
    if (leati_samples_of(p, p->dist->rank, r->samples) == 0) LEATI_TRY(learn_metrics(r, err));
    if (trains && p->exchanges.exchange.is_empty && p->exchanges.total > 0)
        return run_without_samples(r, err);
    for (int part = p->first; part < p->end; ++part) LEATI_TRY(run_part(r, part, err));
    return LEAT_OK;
}

/* Tells the measures of all parts to all ranks, and adds them in the order of the parts. */
static leat_status gather_measures(leati_parallel *p, leat_status status, leat_error *err) {
    const size_t block = block_of(p);
    bool all_fine = true, requested = false;
    leat_error why = {0};
    p->mine[STATUS] = (double)status;
    p->mine[REQUESTED] = leati_is_requested(p);
    leat_status told = leati_dist_all_gather(p->dist, p->mine, block * sizeof(double), p->all, &why);
    if (told != LEAT_OK) {
        if (err && status == LEAT_OK) *err = why;
        return status == LEAT_OK ? told : status;
    }
    memset(p->sums, 0, (size_t)p->width * sizeof(double));
    for (int rank = 0; rank < p->dist->size; ++rank) {
        const double *theirs = p->all + (size_t)rank * block;
        int count = leati_first_part(rank + 1, p->dist->size, p->parts) -
                    leati_first_part(rank, p->dist->size, p->parts);
        all_fine = all_fine && theirs[STATUS] == (double)LEAT_OK;
        requested = requested || theirs[REQUESTED] != 0;
        for (int part = 0; part < count; ++part)
            for (int64_t i = 0; i < p->width; ++i) p->sums[i] += theirs[HEAD + part * p->width + i];
    }
    if (!all_fine) return leati_parallel_agree(p->dist, status, err);
    *p->requested = *p->requested || requested;
    return LEAT_OK;
}

/* ---- Times ---- */

/* Notes how late the last rank was in this step, and returns the time for which this rank has waited for that rank. */
static double note_times(leati_parallel *p) {
    const size_t block = block_of(p);
    double last = 0, second = 0;
    int latest = 0;
    for (int rank = 0; rank < p->dist->size; ++rank) {
        const double *theirs = p->all + (size_t)rank * block, own = theirs[DATA] + theirs[COMPUTE];
        p->times[rank].data += theirs[DATA];
        p->times[rank].compute += theirs[COMPUTE];
        if (own > last) {
            second = last;
            last = own;
            latest = rank;
        } else if (own > second) {
            second = own;
        }
    }
    p->times[latest].late += last - second;
    return last - p->mine[DATA] - p->mine[COMPUTE];
}

/* Replaces the gradients by their sums over all ranks. */
static leat_status sum_gradients(leati_parts *r, leat_error *err) {
    leati_parallel *p = r->p;
    float *gradients = p->values.gradients, *moving = p->values.moving, *sum = NULL;
    if (!p->deterministic) {
        if (p->dist->size == 1) return LEAT_OK;
        leat_status status = leati_buckets_finish(&p->buckets, err);
        if (p->written && status == LEAT_OK) status = p->dist->class->wait(p->dist, &p->mixed, err);
        if (rows_of(p) && !p->values.in_group && status == LEAT_OK)
            status = p->dist->class->wait(p->dist, &p->row_sums, err);
        return status;
    }
    LEATI_TRY(leati_tree_finish(&p->tree, &sum, err));
    if (sum && r->gradients) memcpy(gradients, sum, r->gradients * sizeof *sum);
    if (sum && r->written) memcpy(moving, sum + r->gradients, r->written * sizeof *sum);
    if (sum && rows_of(p)) memcpy(rows_of(p), sum + r->gradients + r->written, r->rows * sizeof *sum);
    LEATI_TRY(leati_dist_broadcast(p->dist, gradients, r->gradients * sizeof *gradients, 0, err));
    if (rows_of(p)) LEATI_TRY(leati_dist_broadcast(p->dist, rows_of(p), r->rows * sizeof *sum, 0, err));
    if (r->written == 0) return LEAT_OK;
    return leati_dist_broadcast(p->dist, moving, r->written * sizeof *moving, 0, err);
}

/* Gives all ranks the weights that each has updated.  Only the function of a custom optimizer can fail on one rank. */
static leat_status join_weights(leati_parallel *p, leat_status status, leat_error *err) {
    if (!p->shards.dist) return status;
    if (p->model->compiled.optimizer->object) status = leati_parallel_agree(p->dist, status, err);
    LEATI_TRY(status);
    const int64_t start = leati_now_ns();
    ++*p->synced_version;
    LEATI_TRY(leati_shards_join(&p->shards, err));
    const int64_t end = leati_now_ns();
    p->exposed_ns += end - start;
    if (p->trace)
        leati_trace_span(p->trace, leati_trace_lane(p->trace, "training", "parts"), "gather weights", start,
                         end, -1, -1);
    return LEAT_OK;
}

/* Makes the update by the sum of the gradients: the same one on every rank, or each rank that of its share. */
static leat_status update(leati_parts *r, leat_error *err) {
    const leati_parallel_batch *b = r->batch;
    const leati_compiled_step *step = NULL;
    leati_program_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.mode = LEATI_TRAIN;
    spec.part_of_step = LEATI_STEP_UPDATE;
    if (r->gradients == 0) {
        ++r->p->model->iterations;
        return LEAT_OK;
    }
    if (leati_model_skips_update(r->p->model)) return LEAT_OK;
    spec.share = leati_shards_begin(&r->p->shards);
    LEATI_TRY(leati_trainer_step(b->trainer, &spec, b->threads, &step, err));
    return join_weights(r->p, leati_trainer_run(b->trainer, step, r->pointers, b->seed, err), err);
}

/* Every rank makes these requests, even if its part of the batch fails. */
static leat_status begin_buckets(const leati_parts *r, leat_error *err) {
    leati_parallel *p = r->p;
    float *gradients = p->values.gradients;
    if (r->batch->binding->mode != LEATI_TRAIN || p->deterministic || p->values.in_group) return LEAT_OK;
    if (p->buckets.size == 0)
        LEATI_TRY(leati_buckets_measure(&p->buckets, p->dist, gradients, r->gradients, err));
    leati_buckets_begin(&p->buckets, gradients, p->dist->size > 1 ? r->gradients : 0);
    return LEAT_OK;
}

/* Adds the computation of this rank to the trace, and its wait for the other ranks and the sums. */
static void trace_ranks(const leati_parallel *p, int64_t start, int64_t computed) {
    if (!p->trace || p->dist->size == 1) return;
    const int lane = leati_trace_lane(p->trace, "training", "parts");
    leati_trace_span(p->trace, lane, "compute", start, computed, -1, -1);
    leati_trace_span(p->trace, lane, "wait for sums", computed, leati_now_ns(), -1, -1);
}

/* Begins the remaining sums of a training step, in front of the measures, for which all ranks wait: then the sums are
 * there, too.  A rank whose part has failed makes the same requests. */
static void begin_last_sums(leati_parallel *p, leati_mode mode) {
    leati_buckets_ready(&p->buckets, 0);
    if (mode != LEATI_TRAIN || p->deterministic || p->dist->size == 1) return;
    if (p->written > 0) {
        p->mixed = (leati_dist_request){.op = LEATI_DIST_ALL_REDUCE,
                                        .data = p->values.moving,
                                        .bytes = p->written * sizeof(float),
                                        .is_awaited = true};
        p->dist->class->start(p->dist, &p->mixed);
    }
    if (rows_of(p) && !p->values.in_group) {
        p->row_sums = (leati_dist_request){.op = LEATI_DIST_ALL_REDUCE,
                                           .data = rows_of(p),
                                           .bytes = p->model->weights.row_bytes,
                                           .is_awaited = true};
        p->dist->class->start(p->dist, &p->row_sums);
    }
}

static leat_status run_batch(leati_parallel *p, const leati_parallel_batch *batch, leat_error *err) {
    leati_parts r = {.p = p, .batch = batch, .gradients = p->model->weights.trainable_bytes / sizeof(float)};
    LEATI_TRY(begin_buckets(&r, err));
    const int64_t start = leati_now_ns();
    leat_status status = run_parts(&r, err);
    const int64_t computed = leati_now_ns();
    if (r.agreed_failure) return status;
    if (status == LEAT_OK && p->values.in_group && r.spec.mode == LEATI_TRAIN)
        status = leati_values_sum(&p->values, err); /* a failure ends the sums of all ranks */
    begin_last_sums(p, batch->binding->mode);
    p->mine[DATA] = (double)batch->waited_ns;
    p->mine[COMPUTE] = (double)(computed - start);
    status = gather_measures(p, status, err);
    if (status != LEAT_OK && r.plan && r.written > 0)
        (void)leati_values_restore(&p->values, r.plan, NULL); /* as on the ranks that had no batch */
    if (status != LEAT_OK) return status;
    LEATI_TRY(leati_parts_join_states(&r, err));
    LEATI_TRY(leati_whole_metrics_gather(&p->whole, &r, err));
    if (r.spec.mode != LEATI_TRAIN) return LEAT_OK;
    LEATI_TRY(sum_gradients(&r, err));
    trace_ranks(p, start, computed);
    const double exposed = (double)(leati_now_ns() - computed) - note_times(p);
    if (exposed > 0) p->exposed_ns += (int64_t)exposed;
    if (!p->values.in_group) p->busy_ns = p->buckets.busy_ns;
    if (p->parts > 1) LEATI_TRY(leati_values_put(&p->values, r.plan, r.written > 0, err));
    return update(&r, err);
}

leat_status leati_parallel_run(leati_parallel *p, const leati_parallel_batch *batch, leat_error *err) {
    leat_status status = run_batch(p, batch, err);
    if (status != LEAT_OK) {
        leati_values_give_up(&p->values);
        return status;
    }
    const int64_t ns = leati_values_summed_ns(&p->values); /* nothing hides them */
    p->busy_ns += ns;
    p->exposed_ns += ns;
    return LEAT_OK;
}
