/* SPDX-License-Identifier: Apache-2.0 */
/* ATTENTION and ATTENTION_BWD: threads share the key heads of all samples, forward also the blocks of queries where
 * there are fewer key heads than threads.  Nothing depends on the number of threads.  Room: backends/native. */
#include <stdio.h>

#include "backends/native/attention/jobs.h"
#include "backends/native/ops.h"
#include "backends/native/simd/isa.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"

#define FETCHED_FLOATS                                                                                       \
    (48 * 1024)  /* operands of a key head that are fetched into the L2 cache early, at most */
#define TASKS 8  /* per thread, at most */
#define WORK  40 /* operations that a weight costs beside its products */

typedef struct attention_state {
    leati_attention_sizes sizes;
    leati_attention_layout layout;
    leati_attrs attrs;
    const leati_native_isa *isa;
    int threads;
    int64_t parts; /* of a key head of a sample */
    int64_t tasks; /* each has consecutive parts */
    bool backward, fetches;
} attention_state;

typedef struct attention_run {
    const attention_state *s;
    const leati_attention_job *job;
    float *scratch;
} attention_run;

static int64_t parts_of_all_heads(const attention_state *s) {
    return s->sizes.batch * s->sizes.key_heads * s->parts;
}

/* Computes some parts of key heads, one after the other. */
static void run_parts(void *of, int64_t task, int member) {
    const attention_run *r = of;
    const attention_state *s = r->s;
    const int64_t all = parts_of_all_heads(s), last = all * (task + 1) / s->tasks;
    leati_attention_job job = *r->job;
    job.scratch = r->scratch + member * s->layout.floats;
    for (int64_t i = all * task / s->tasks; i < last; i++) {
        job.part = i % s->parts;
        job.key_head = i / s->parts % s->sizes.key_heads;
        job.sample = i / s->parts / s->sizes.key_heads;
        job.goes_on = s->fetches && i + 1 < last;
        (s->backward ? s->isa->attention_backward : s->isa->attention_forward)(&job);
    }
}

static leat_status run(const leati_kernel *kernel, void *const *args, const leati_run *run, leat_error *err) {
    const attention_state *s = kernel->state;
    leati_attention_job job = {.sizes = s->sizes,
                               .layout = &s->layout,
                               .scale = s->attrs.attention.scale,
                               .rate = s->attrs.attention.rate,
                               .key = leati_mix(run->seed, run->step),
                               .stream = s->attrs.attention.stream,
                               .parts = s->parts,
                               .q = args[LEATI_ATTENTION_Q],
                               .k = args[LEATI_ATTENTION_K],
                               .v = args[LEATI_ATTENTION_V],
                               .mask = args[LEATI_ATTENTION_MASK]};
    (void)err;
    if (s->backward) {
        job.saved_y = args[LEATI_ATTENTION_BWD_Y];
        job.saved_log_sums = args[LEATI_ATTENTION_BWD_LOG_SUMS];
        job.diff_y = args[LEATI_ATTENTION_BWD_DIFF_Y];
        void *const *out = args + LEATI_ATTENTION_BWD_INPUTS;
        job.diff_q = out[LEATI_ATTENTION_Q];
        job.diff_k = out[LEATI_ATTENTION_K];
        job.diff_v = out[LEATI_ATTENTION_V];
    } else {
        job.y = args[LEATI_ATTENTION_INPUTS + LEATI_ATTENTION_Y];
        if (s->attrs.attention.training)
            job.log_sums = args[LEATI_ATTENTION_INPUTS + LEATI_ATTENTION_LOG_SUMS];
    }
    attention_run r = {.s = s, .job = &job, .scratch = run->scratch};
    leati_thread_pool_share(run->pool, s->threads, s->tasks, run_parts, &r);
    return LEAT_OK;
}

/* Cuts key heads into parts where whole ones would leave threads idle.  Each part packs the keys and values.  A task
 * has several parts where there are enough, since a part fetches the operands of the next one. */
static void choose_parts(attention_state *s) {
    const int64_t heads = s->sizes.batch * s->sizes.key_heads, share = s->sizes.heads / s->sizes.key_heads,
                  blocks = s->layout.blocks * share;
    s->parts = 1;
    if (!s->backward && heads % s->threads != 0 && heads < 4 * s->threads)
        s->parts = blocks < 1 ? 1 : blocks < s->threads ? blocks : s->threads;
    s->fetches = s->parts == 1 && s->sizes.keys * (s->sizes.depth + s->sizes.width) +
                                          s->sizes.queries * share *
                                              (s->sizes.depth + (s->backward ? 2 * s->sizes.width : 0)) <=
                                      FETCHED_FLOATS;
    s->tasks = parts_of_all_heads(s);
    if (s->tasks > TASKS * s->threads) s->tasks = TASKS * s->threads;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, bool backward, leat_error *err) {
    attention_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "attention");
    s->sizes = leati_attention_sizes_of(task->inputs);
    s->attrs = *task->attrs;
    s->isa = leati_native_isa_of();
    s->backward = backward;
    s->layout = leati_attention_layout_of(&s->sizes, s->isa->lanes, backward);
    const double weights =
        (double)(s->sizes.batch * s->sizes.heads * s->sizes.queries) * (double)s->sizes.keys;
    const double sums = backward ? (double)(6 * s->sizes.depth + 4 * s->sizes.width)
                                 : (double)(2 * s->sizes.depth + 2 * s->sizes.width);
    s->threads = leati_worthwhile_threads(task, weights * (sums + WORK));
    choose_parts(s);
    kernel->run = run;
    kernel->scratch_bytes = (size_t)(s->threads * s->layout.floats) * sizeof(float);
    kernel->state = s;
    kernel->destroy = leati_free;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", s->isa->name);
    return LEAT_OK;
}

leat_status leati_native_attention(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    return prepare(task, kernel, false, err);
}

leat_status leati_native_attention_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err) {
    (void)why;
    return prepare(task, kernel, true, err);
}
