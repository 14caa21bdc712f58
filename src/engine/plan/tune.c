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

enum { MOST_TRIALS = 12, MOST_ROUNDS = 20, ARGS = LEATI_MAX_INPUTS + LEATI_MAX_OUTPUTS };

typedef struct trial {
    leati_kernel kernel;
    int threads; /* 0: the default kernel, with its own number of threads */
    void *pack;
    int64_t least_ns;
    bool out; /* the kernel failed or is too slow: it runs no more */
} trial;

typedef struct race {
    leati_task task;
    leati_thread_pool *pool;
    bool keeps; /* packed weights are kept between runs */
    int count;
    trial trials[MOST_TRIALS]; /* the first is the default kernel */
    void *args[ARGS];
    unsigned char *memory, *scratch;
} race;

/* ---- Names ---- */

/* Writes the key of a task: "conv+relu 8x56x56x64,3x3x64x64,64 > 8x56x56x64 1/1/1+1 1/1/1+1 groups 1 threads 2"; for
 * each spatial axis stride/dilation/padding before+after.  Returns false if the key is too long. */
static bool name_task(char out[LEATI_TUNED_NAME_BYTES], const leati_task *task, bool keeps) {
    char fused[LEATI_POST_TEXT_BYTES];
    leati_text t = {0};
    leati_text_add(&t, "%s%s%s ", leati_op_row_of(task->op)->name, task->attrs->post.kinds ? "+" : "",
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
    leati_text_add(&t, " threads %d%s%s", task->threads, keeps ? " packed" : "", task->unused ? " part" : "");
    bool fits = !t.failed && t.length < LEATI_TUNED_NAME_BYTES;
    if (fits) memcpy(out, t.data, t.length + 1);
    leati_text_fini(&t);
    return fits;
}

static void drop(leati_kernel *kernel) {
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
    if (implementation->prepare(&task, kernel, why, NULL) != LEAT_OK || !kernel->run) drop(kernel);
}

/* Replaces *kernel by the tuning cache's choice.  Returns false if that is the default kernel, or not available now. */
static bool recall(const leati_backend *const *backends, const leati_task *task,
                   const leati_tuned_kernel *choice, leati_kernel *kernel) {
    leati_kernel found = {0};
    if (choice->threads < 1 || choice->threads > task->threads) return false;
    for (; *backends; ++backends) {
        size_t length = strlen((*backends)->name);
        if (strncmp(choice->implementation, (*backends)->name, length) != 0) continue;
        for (size_t i = 0; i < (*backends)->count; ++i) {
            prepare(&(*backends)->implementations[i], *task, choice->threads, &found);
            if (found.run && strcmp(found.implementation, choice->implementation) == 0) {
                drop(kernel);
                *kernel = found;
                return true;
            }
            drop(&found);
        }
    }
    return false;
}

/* ---- Candidates ---- */

/* Returns true if the kernel is certainly the default kernel again.  With little work the default kernel may use fewer
 * threads than the task has, so only tasks with one thread or much work are certain. */
static bool is_known(const race *r, const leati_kernel *kernel, int threads, double operations) {
    return threads == r->task.threads && (threads == 1 || operations >= LEATI_THREAD_OPERATIONS) &&
           strcmp(kernel->implementation, r->trials[0].kernel.implementation) == 0;
}

/* Adds all implementations of all backends except the last, which is `ref`.  If the work is small, an implementation is
 * tried with fewer threads, too. */
static void enter(race *r, const leati_backend *const *backends, double operations) {
    for (; backends[0] && backends[1]; ++backends)
        for (size_t i = 0; i < (*backends)->count; ++i)
            for (int threads = r->task.threads; threads > 0; threads = threads == 1 ? 0 : (threads + 3) / 4) {
                trial *t = &r->trials[r->count];
                if (r->count == MOST_TRIALS) return;
                prepare(&(*backends)->implementations[i], r->task, threads, &t->kernel);
                if (!t->kernel.run) break;
                t->threads = threads;
                if (is_known(r, &t->kernel, threads, operations))
                    drop(&t->kernel);
                else
                    ++r->count;
                if (operations > LEATI_THREAD_OPERATIONS * threads) break;
            }
}

static size_t bytes_of(const race *r, int arg) {
    int o = arg - r->task.input_count;
    size_t most = 0;
    if (o < 0) return r->task.inputs[arg].rank < 0 ? 0 : leati_desc_bytes(&r->task.inputs[arg]);
    if (r->task.unused >> o & 1u) return 0;
    for (int i = 0; i < r->count; ++i)
        if (r->trials[i].kernel.output_bytes[o] > most) most = r->trials[i].kernel.output_bytes[o];
    return most ? most : leati_desc_bytes(&r->task.outputs[o]);
}

/* Fills data with numbers in [0.5, 1), which are valid for every argument, also for a variance. */
static void fill(float *data, size_t count) {
    for (size_t i = 0; i < count; ++i) data[i] = 0.5f + (float)(i % 61) / 128;
}

/* Allocates one block for the arguments and the scratch, and a separate one for each kernel's packed weights. */
static bool reserve(race *r) {
    size_t bytes = 0, scratch = 0;
    for (int i = 0; i < r->task.input_count + r->task.output_count; ++i) bytes += leati_align(bytes_of(r, i));
    for (int i = 0; i < r->count; ++i) {
        leati_kernel *k = &r->trials[i].kernel;
        if (k->scratch_bytes > scratch) scratch = k->scratch_bytes;
        if (!r->keeps || k->pack_bytes == 0 || k->pack_inputs == 0) continue;
        r->trials[i].pack = leati_calloc_aligned(k->pack_bytes);
        if (!r->trials[i].pack) return false;
    }
    r->memory = leati_calloc_aligned(bytes + scratch + LEATI_ALIGNMENT);
    if (!r->memory) return false;
    fill((float *)(void *)r->memory, bytes / sizeof(float));
    r->scratch = r->memory + bytes;
    bytes = 0;
    for (int i = 0; i < r->task.input_count + r->task.output_count; ++i) {
        size_t own = leati_align(bytes_of(r, i));
        if (own) r->args[i] = r->memory + bytes;
        bytes += own;
    }
    return true;
}

static void leave(race *r) {
    for (int i = 0; i < r->count; ++i) {
        drop(&r->trials[i].kernel);
        leati_free(r->trials[i].pack);
    }
    leati_free(r->memory);
}

/* ---- The race ---- */

static void run_one(race *r, trial *t, bool counts) {
    leati_run run = {
        .seed = 1, .scratch = r->scratch, .pack = t->pack, .packed = t->pack && counts, .pool = r->pool};
    int64_t before = leati_now_ns();
    if (t->kernel.run(&t->kernel, r->args, &run, NULL) != LEAT_OK) t->out = true;
    int64_t took = leati_now_ns() - before;
    if (counts && took < t->least_ns) t->least_ns = took;
}

/* Runs the kernels in turns.  The first turn does not count, because the caches are cold and the weights are packed
 * then.  A kernel that is 1.5 times slower than the best one runs no more. */
static void run_all(race *r) {
    int64_t start = leati_now_ns(), best = INT64_MAX;
    for (int i = 0; i < r->count; ++i) r->trials[i].least_ns = INT64_MAX;
    for (int round = 0; round <= MOST_ROUNDS; ++round)
        for (int i = 0; i < r->count; ++i) {
            trial *t = &r->trials[i];
            if (round > 1 && leati_now_ns() - start > TASK_NS) return;
            if (round > 2 && t->least_ns / 3 > best / 2) t->out = true;
            if (!t->out) run_one(r, t, round > 0);
            if (!t->out && t->least_ns < best) best = t->least_ns;
        }
}

/* Returns the fastest kernel if it is at least a tenth faster than the default kernel, otherwise the default kernel:
 * smaller differences may be chance. */
static trial *winner(race *r) {
    trial *best = &r->trials[0];
    for (int i = 1; i < r->count; ++i) {
        trial *t = &r->trials[i];
        if (!t->out && t->least_ns < best->least_ns && t->least_ns < r->trials[0].least_ns / 10 * 9) best = t;
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
static void hold_race(leati_plan *plan, const leati_task *task, bool keeps, double operations,
                      const char *key, leati_kernel *kernel) {
    leati_arena *arena = plan->options.arena;
    race r = {.task = *task, .pool = arena->pool, .keeps = keeps, .count = 1, .trials[0].kernel = *kernel};
    trial *best = &r.trials[0];
    enter(&r, plan->options.backends, operations);
    if (r.count > 1 && reserve(&r)) {
        leati_tuned_kernel choice = {0};
        run_all(&r);
        best = winner(&r);
        choice.threads = best->threads;
        memcpy(choice.implementation, best->kernel.implementation, sizeof choice.implementation);
        leati_tuning_cache_add(arena->choices, key, &choice);
    }
    *kernel = best->kernel;
    best->kernel = (leati_kernel){0};
    leave(&r);
}

void leati_plan_tune(leati_plan *plan, const leati_node *node, const leati_task *task, leati_work *work) {
    leati_arena *arena = plan->options.arena;
    char key[LEATI_TUNED_NAME_BYTES];
    if (!is_heavy(plan, task)) return;
    double operations = leati_plan_operations(plan, node);
    bool keeps = leati_plan_stays(plan, node->inputs[1]);
    if (operations < LEAST_OPERATIONS || !name_task(key, task, keeps)) return;
    if (!arena->choices) arena->choices = leati_tuning_cache_open(plan->options.backends);
    if (!arena->choices) return;
    const leati_tuned_kernel *known = leati_tuning_cache_find(arena->choices, key);
    if (!known && plan->options.measures && plan->tuned_ns < PLAN_NS) {
        int64_t before = leati_now_ns();
        if (arena->pool) leati_thread_pool_limit(arena->pool, plan->options.threads);
        hold_race(plan, task, keeps, operations, key, &work->kernel);
        plan->tuned_ns += leati_now_ns() - before;
        work->measured = leati_tuning_cache_find(arena->choices, key) != NULL;
    } else if (known) {
        work->measured = known->threads == 0 || recall(plan->options.backends, task, known, &work->kernel);
    }
}
