/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the fastest kernel of a matrix product or a convolution in the tuning cache, or by measuring.  The default
 * kernel is compared with all other kernels that support the task, on artificial data of its shapes.  The kernels run
 * in turns, so that other load on the machine slows all of them down alike.  Room: engine. */
#include <stdio.h>
#include <string.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/plan/tuning_cache.h"
#include "engine/plan/plan_private.h"

/* Measuring a task takes at most TASK_NS, or two runs of each candidate if that is longer.  After PLAN_NS for one plan,
 * its other tasks keep their default kernels. */
#define TASK_NS INT64_C(50000000)
#define PLAN_NS INT64_C(10000000000)
/* A task with fewer operations is not worth measuring. */
#define LEAST_OPERATIONS 3e5

enum { MOST_CANDIDATES = 12, MOST_TURNS = 20, ARGS = LEATI_MAX_INPUTS + LEATI_MAX_OUTPUTS };

typedef struct candidate {
    leati_kernel kernel;
    int threads; /* 0: the default kernel, with its own number of threads */
    void *pack;
    int64_t least_ns;
    bool out; /* the kernel failed or is too slow, and is not measured any more */
} candidate;

typedef struct measurement {
    leati_task task;
    leati_thread_pool *pool;
    bool keeps_packed; /* packed weights are kept between runs */
    int count;
    candidate candidates[MOST_CANDIDATES]; /* the first is the default kernel */
    void *args[ARGS];
    unsigned char *memory, *scratch;
} measurement;

/* ---- Names ---- */

/* Writes the key of a task: "conv+relu 8x56x56x64,3x3x64x64,64 > 8x56x56x64 1/1/1+1 1/1/1+1 groups 1 threads 2"; for
 * each spatial axis stride/dilation/padding before+after.  Returns false if the key is too long. */
static bool name_task(char out[LEATI_TUNED_NAME_BYTES], const leati_task *task, bool keeps_packed) {
    char fused[LEATI_POST_TEXT_BYTES];
    leati_text t = {0};
    leati_text_add(&t, "%s%s%s ", leati_op_descriptor_of(task->op)->name, task->attrs->post.kinds ? "+" : "",
                   leati_post_text(fused, task->attrs));
    for (int i = 0; i < task->input_count + task->output_count; ++i) {
        int o = i - task->input_count;
        const leati_desc *desc = o < 0 ? &task->inputs[i] : &task->outputs[o];
        leati_text_add(&t, "%s", o == 0 ? " > " : i ? "," : "");
        for (int k = 0; k < desc->rank; ++k)
            leati_text_add(&t, "%s%lld", k ? "x" : "", (long long)desc->shape[k]);
    }
    if (task->op == LEATI_OP_MATMUL) {
        leati_text_add(&t, "%s%s", task->attrs->matmul.transpose_a ? " ta" : "",
                       task->attrs->matmul.transpose_b ? " tb" : "");
    } else {
        const leati_window *w = &task->attrs->conv.window;
        for (int i = 0; i < w->spatial; ++i)
            leati_text_add(&t, " %lld/%lld/%lld+%lld", (long long)w->stride[i], (long long)w->dilation[i],
                           (long long)w->pad_before[i], (long long)w->pad_after[i]);
        leati_text_add(&t, " groups %lld", (long long)task->attrs->conv.groups);
    }
    leati_text_add(&t, " threads %d%s%s", task->threads, keeps_packed ? " packed" : "",
                   task->unused ? " part" : "");
    bool fits = !t.failed && t.length < LEATI_TUNED_NAME_BYTES;
    if (fits) memcpy(out, t.data, t.length + 1);
    leati_text_fini(&t);
    return fits;
}

static void destroy_kernel(leati_kernel *kernel) {
    if (kernel->destroy) kernel->destroy(kernel->state);
    *kernel = (leati_kernel){0};
}

/* Prepares one implementation with `threads` threads; kernel->run stays NULL if it refuses or fails. */
static void prepare(const leati_implementation *implementation, leati_task task, int threads,
                    leati_kernel *kernel) {
    char why[LEATI_REASON_BYTES] = "";
    *kernel = (leati_kernel){0};
    if (implementation->op != task.op || task.attrs->post.kinds & ~implementation->fuses) return;
    task.measured = true;
    task.threads = threads;
    if (implementation->prepare(&task, kernel, why, NULL) != LEAT_OK || !kernel->run) destroy_kernel(kernel);
}

/* Replaces *kernel by the tuning cache's choice.  Returns false if that is the default kernel, or not available now. */
static bool take_from_cache(const leati_backend *const *backends, const leati_task *task,
                            const leati_tuned_kernel *choice, leati_kernel *kernel) {
    leati_kernel found = {0};
    if (choice->threads < 1 || choice->threads > task->threads) return false;
    for (; *backends; ++backends) {
        size_t length = strlen((*backends)->name);
        if (strncmp(choice->implementation, (*backends)->name, length) != 0) continue;
        for (size_t i = 0; i < (*backends)->count; ++i) {
            prepare(&(*backends)->implementations[i], *task, choice->threads, &found);
            if (found.run && strcmp(found.implementation, choice->implementation) == 0) {
                destroy_kernel(kernel);
                *kernel = found;
                return true;
            }
            destroy_kernel(&found);
        }
    }
    return false;
}

/* ---- Candidates ---- */

/* Returns true if the kernel is certainly the default kernel again.  With little work the default kernel may use fewer
 * threads than the task has, so only tasks with one thread or much work are certain. */
static bool is_default_again(const measurement *r, const leati_kernel *kernel, int threads,
                             double operations) {
    return threads == r->task.threads && (threads == 1 || operations >= LEATI_THREAD_OPERATIONS) &&
           strcmp(kernel->implementation, r->candidates[0].kernel.implementation) == 0;
}

/* Adds all implementations of all backends except the last, which is `ref`.  If the work is small, an implementation is
 * tried with fewer threads, too. */
static void add_candidates(measurement *r, const leati_backend *const *backends, double operations) {
    for (; backends[0] && backends[1]; ++backends)
        for (size_t i = 0; i < (*backends)->count; ++i)
            for (int threads = r->task.threads; threads > 0; threads = threads == 1 ? 0 : (threads + 3) / 4) {
                candidate *t = &r->candidates[r->count];
                if (r->count == MOST_CANDIDATES) return;
                prepare(&(*backends)->implementations[i], r->task, threads, &t->kernel);
                if (!t->kernel.run) break;
                t->threads = threads;
                if (is_default_again(r, &t->kernel, threads, operations))
                    destroy_kernel(&t->kernel);
                else
                    ++r->count;
                if (operations > LEATI_THREAD_OPERATIONS * threads) break;
            }
}

static size_t bytes_of(const measurement *r, int arg) {
    int o = arg - r->task.input_count;
    size_t most = 0;
    if (o < 0) return r->task.inputs[arg].rank < 0 ? 0 : leati_desc_bytes(&r->task.inputs[arg]);
    if (r->task.unused >> o & 1u) return 0;
    for (int i = 0; i < r->count; ++i)
        if (r->candidates[i].kernel.output_bytes[o] > most) most = r->candidates[i].kernel.output_bytes[o];
    return most ? most : leati_desc_bytes(&r->task.outputs[o]);
}

/* Fills data with numbers in [0.5, 1), which are valid for every argument, also for a variance. */
static void fill(float *data, size_t count) {
    for (size_t i = 0; i < count; ++i) data[i] = 0.5f + (float)(i % 61) / 128;
}

/* Allocates one block for the arguments and the scratch, and a separate one for each kernel's packed weights. */
static bool reserve(measurement *r) {
    size_t bytes = 0, scratch = 0;
    for (int i = 0; i < r->task.input_count + r->task.output_count; ++i) bytes += leati_align(bytes_of(r, i));
    for (int i = 0; i < r->count; ++i) {
        leati_kernel *k = &r->candidates[i].kernel;
        if (k->scratch_bytes > scratch) scratch = k->scratch_bytes;
        if (!r->keeps_packed || k->pack_bytes == 0 || k->pack_inputs == 0) continue;
        r->candidates[i].pack = leati_calloc_aligned(k->pack_bytes);
        if (!r->candidates[i].pack) return false;
    }
    r->memory = leati_calloc_aligned(bytes + scratch + LEATI_ALIGNMENT);
    if (!r->memory) return false;
    fill((float *)(void *)r->memory, bytes / sizeof(float));
    r->scratch = r->memory + bytes;
    bytes = 0;
    for (int i = 0; i < r->task.input_count + r->task.output_count; ++i) {
        size_t arg_bytes = leati_align(bytes_of(r, i));
        if (arg_bytes) r->args[i] = r->memory + bytes;
        bytes += arg_bytes;
    }
    return true;
}

static void release_candidates(measurement *r) {
    for (int i = 0; i < r->count; ++i) {
        destroy_kernel(&r->candidates[i].kernel);
        leati_free(r->candidates[i].pack);
    }
    leati_free(r->memory);
}

/* ---- Measuring ---- */

static void run_one(measurement *r, candidate *t, bool counts) {
    leati_run run = {
        .seed = 1, .scratch = r->scratch, .pack = t->pack, .packed = t->pack && counts, .pool = r->pool};
    int64_t before = leati_now_ns();
    if (t->kernel.run(&t->kernel, r->args, &run, NULL) != LEAT_OK) t->out = true;
    int64_t took = leati_now_ns() - before;
    if (counts && took < t->least_ns) t->least_ns = took;
}

/* Runs the kernels in turns.  The first turn does not count, because the caches are cold and the weights are packed
 * then.  A kernel that is 1.5 times slower than the best one runs no more. */
static void run_candidates(measurement *r) {
    int64_t start = leati_now_ns(), best = INT64_MAX;
    for (int i = 0; i < r->count; ++i) r->candidates[i].least_ns = INT64_MAX;
    for (int turn = 0; turn <= MOST_TURNS; ++turn)
        for (int i = 0; i < r->count; ++i) {
            candidate *t = &r->candidates[i];
            if (turn > 1 && leati_now_ns() - start > TASK_NS) return;
            if (turn > 2 && t->least_ns / 3 > best / 2) t->out = true;
            if (!t->out) run_one(r, t, turn > 0);
            if (!t->out && t->least_ns < best) best = t->least_ns;
        }
}

/* Returns the fastest kernel if it is at least a tenth faster than the default kernel, otherwise the default kernel:
 * smaller differences may be chance. */
static candidate *fastest(measurement *r) {
    candidate *best = &r->candidates[0];
    for (int i = 1; i < r->count; ++i) {
        candidate *t = &r->candidates[i];
        if (!t->out && t->least_ns < best->least_ns && t->least_ns < r->candidates[0].least_ns / 10 * 9)
            best = t;
    }
    return best;
}

/* ---- Interface to the plan ---- */

static bool is_heavy(const leati_plan *plan, const leati_task *task) {
    leati_op op = task->op;
    bool heavy = op == LEATI_OP_MATMUL || op == LEATI_OP_CONV || op == LEATI_OP_CONV_BWD_DATA ||
                 op == LEATI_OP_CONV_BWD_WEIGHTS;
    return heavy && plan->options.recalls && !plan->options.deterministic && !leati_task_has_bf16(task);
}

/* Measures the candidates, replaces *kernel by the fastest, and adds it to the tuning cache. */
static void measure_candidates(leati_plan *plan, const leati_task *task, bool keeps_packed, double operations,
                               const char *key, leati_kernel *kernel) {
    leati_arena *arena = plan->options.arena;
    measurement r = {.task = *task,
                     .pool = arena->pool,
                     .keeps_packed = keeps_packed,
                     .count = 1,
                     .candidates[0].kernel = *kernel};
    candidate *best = &r.candidates[0];
    add_candidates(&r, plan->options.backends, operations);
    if (r.count > 1 && reserve(&r)) {
        leati_tuned_kernel choice = {0};
        run_candidates(&r);
        best = fastest(&r);
        choice.threads = best->threads;
        memcpy(choice.implementation, best->kernel.implementation, sizeof choice.implementation);
        leati_tuning_cache_add(arena->choices, key, &choice);
    }
    *kernel = best->kernel;
    best->kernel = (leati_kernel){0};
    release_candidates(&r);
}

void leati_plan_tune(leati_plan *plan, const leati_node *node, const leati_task *task, leati_work *work) {
    leati_arena *arena = plan->options.arena;
    char key[LEATI_TUNED_NAME_BYTES];
    if (leati_plan_device(plan) || task->weights_format || !is_heavy(plan, task)) return;
    double operations = leati_plan_operations(plan, node);
    bool keeps_packed =
        node->op == LEATI_OP_MATMUL ? task->weights_stay : leati_plan_stays(plan, node->inputs[1]);
    if (operations < LEAST_OPERATIONS || !name_task(key, task, keeps_packed)) return;
    if (!arena->choices) arena->choices = leati_tuning_cache_open(plan->options.backends);
    if (!arena->choices) return;
    const leati_tuned_kernel *known = leati_tuning_cache_find(arena->choices, key);
    if (!known && plan->options.measures && plan->tuned_ns < PLAN_NS) {
        int64_t before = leati_now_ns();
        if (arena->pool) leati_thread_pool_limit(arena->pool, plan->options.threads);
        measure_candidates(plan, task, keeps_packed, operations, key, &work->kernel);
        plan->tuned_ns += leati_now_ns() - before;
        work->measured = leati_tuning_cache_find(arena->choices, key) != NULL;
    } else if (known) {
        work->measured =
            known->threads == 0 || take_from_cache(plan->options.backends, task, known, &work->kernel);
    }
}
