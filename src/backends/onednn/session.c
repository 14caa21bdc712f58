/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: engine, memories and primitives of one kernel (session.h).  Room: backends/onednn. */
#include "backends/onednn/session.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backends/onednn/openmp.h"
#include "base/os/cpu.h"
#include "base/error.h"
#include "base/os/fork.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/bfloat16.h"

leat_status leati_dnnl_fail(leat_error *err, dnnl_status_t status, const char *action) {
    leat_status code = status == dnnl_out_of_memory ? LEAT_ENOMEM : LEAT_EBACKEND;
    return leati_fail_origin(err, code, LEAT_ORIGIN_ONEDNN, status, "oneDNN failed in %s with status %d",
                             action, (int)status);
}

const char *leati_dnnl_name(const_dnnl_primitive_desc_t pd) {
    const char *name = NULL;
    if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) != dnnl_success || !name)
        return "?";
    return name;
}

static void destroy(void *state) {
    leati_session *s = state;
    if (!s) return;
    for (int i = 0; i < s->call_count; i++) dnnl_primitive_destroy(s->calls[i].primitive);
    for (int i = 0; i < s->memory_count; i++) dnnl_memory_destroy(s->memories[i].memory);
    for (int i = 0; i < s->part_count; i++) dnnl_stream_destroy(s->streams[i]);
    if (s->attr) dnnl_primitive_attr_destroy(s->attr);
    if (s->plain) dnnl_primitive_attr_destroy(s->plain);
    if (s->engine) dnnl_engine_destroy(s->engine);
    leati_free(s->calls);
    leati_free(s->memories);
    leati_free(s->streams);
    leati_free(s->data);
    leati_free(s);
}

/* Makes room for one more element in an array of `count`, which grows to powers of two. */
static leat_status reserve(void **array, int count, size_t size, leat_error *err) {
    if (count & (count - 1)) return LEAT_OK;
    size_t room = count > 0 ? 2 * (size_t)count : 1;
    void *larger = leati_realloc(*array, room, size);
    if (!larger) return leati_fail_memory(err, room * size, "a oneDNN session");
    *array = larger;
    return LEAT_OK;
}

leat_status leati_session_next_part(leati_session *s, leat_error *err) {
    void *streams = s->streams;
    leat_status status = reserve(&streams, s->part_count, sizeof *s->streams, err);
    s->streams = streams;
    LEATI_TRY(status);
    LEATI_DNNL_TRY(dnnl_stream_create(&s->streams[s->part_count], s->engine, dnnl_stream_default_flags),
                   "stream creation");
    s->part_count++;
    return LEAT_OK;
}

static leat_status begin(leati_session **out, leati_dnnl_sharing sharing, leati_kernel *kernel,
                         leat_error *err) {
    leati_session *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a oneDNN session");
    kernel->state = s;
    kernel->destroy = destroy;
    s->sharing = sharing;
    if (sharing.openmp > 1) leati_openmp_sleep_soon();
    LEATI_DNNL_TRY(dnnl_engine_create(&s->engine, dnnl_cpu, 0), "engine creation");
    LEATI_DNNL_TRY(dnnl_primitive_attr_create(&s->attr), "attribute creation");
    LEATI_DNNL_TRY(dnnl_primitive_attr_set_scratchpad_mode(s->attr, dnnl_scratchpad_mode_user),
                   "scratchpad mode");
    LEATI_TRY(leati_session_next_part(s, err));
    *out = s;
    return LEAT_OK;
}

leat_status leati_session_argument(leati_session *s, leati_md md, leati_dnnl_place place, int *out,
                                   leat_error *err) {
    void *memories = s->memories;
    leat_status status = reserve(&memories, s->memory_count, sizeof *s->memories, err);
    s->memories = memories;
    LEATI_TRY(status);
    leati_dnnl_memory *m = &s->memories[s->memory_count];
    *m = (leati_dnnl_memory){.place = place};
    LEATI_DNNL_TRY(dnnl_memory_create(&m->memory, md, s->engine, DNNL_MEMORY_NONE), "memory creation");
    *out = s->memory_count++;
    return LEAT_OK;
}

leat_status leati_session_scratch(leati_session *s, leati_kernel *kernel, leati_md md, int *out,
                                  leat_error *err) {
    size_t offset = kernel->scratch_bytes;
    kernel->scratch_bytes += leati_align(dnnl_memory_desc_get_size(md));
    return leati_session_argument(s, md, leati_dnnl_arg_at(LEATI_DNNL_SCRATCH, offset), out, err);
}

leat_status leati_session_pack(leati_session *s, leati_md md, int *out, leat_error *err) {
    size_t offset = s->pack_bytes;
    s->pack_bytes += leati_align(dnnl_memory_desc_get_size(md));
    return leati_session_argument(s, md, leati_dnnl_arg_at(LEATI_DNNL_PACK, offset), out, err);
}

static leat_status add_reorder(leati_session *s, leati_kernel *kernel, leati_md from, int from_memory,
                               leati_md to, int to_memory, leat_error *err) {
    dnnl_primitive_desc_t pd = NULL;
    LEATI_DNNL_TRY(dnnl_reorder_primitive_desc_create(&pd, from, s->engine, to, s->engine, s->plain),
                   "reorder description");
    const leati_dnnl_arg args[] = {{DNNL_ARG_FROM, from_memory}, {DNNL_ARG_TO, to_memory}};
    leat_status status = leati_session_call(s, kernel, pd, 2, args, false, err);
    dnnl_primitive_desc_destroy(pd);
    if (s->part_count == 1) *(s->packing ? &kernel->pack_reorders : &kernel->reorders) += 1;
    *(s->packing ? &kernel->pack_reorder_bytes : &kernel->reorder_bytes) += dnnl_memory_desc_get_size(to);
    return status;
}

leat_status leati_session_packed(leati_session *s, leati_kernel *kernel, leati_md from, int from_memory,
                                 leati_md to, int *out, leat_error *err) {
    *out = from_memory;
    if (dnnl_memory_desc_equal(from, to)) return LEAT_OK;
    LEATI_TRY(leati_session_pack(s, to, out, err));
    s->packing = true;
    leat_status status = add_reorder(s, kernel, from, from_memory, to, *out, err);
    s->packing = false;
    return status;
}

leat_status leati_session_input(leati_session *s, leati_kernel *kernel, leati_md plain, leati_md wanted,
                                leati_dnnl_place place, int *out, leat_error *err) {
    int argument = 0;
    LEATI_TRY(leati_session_argument(s, plain, place, &argument, err));
    *out = argument;
    if (dnnl_memory_desc_equal(plain, wanted)) return LEAT_OK;
    LEATI_TRY(leati_session_scratch(s, kernel, wanted, out, err));
    return add_reorder(s, kernel, plain, argument, wanted, *out, err);
}

leat_status leati_session_target(leati_session *s, leati_kernel *kernel, leati_md plain, leati_md wanted,
                                 leati_dnnl_place place, int *out, leat_error *err) {
    if (dnnl_memory_desc_equal(plain, wanted)) return leati_session_argument(s, plain, place, out, err);
    return leati_session_scratch(s, kernel, wanted, out, err);
}

leat_status leati_session_output(leati_session *s, leati_kernel *kernel, leati_md plain, leati_md made,
                                 int memory, leati_dnnl_place place, leat_error *err) {
    int argument = 0;
    if (dnnl_memory_desc_equal(plain, made)) return LEAT_OK;
    LEATI_TRY(leati_session_argument(s, plain, place, &argument, err));
    return add_reorder(s, kernel, made, memory, plain, argument, err);
}

leat_status leati_session_call(leati_session *s, leati_kernel *kernel, dnnl_primitive_desc_t pd, int count,
                               const leati_dnnl_arg *args, bool named, leat_error *err) {
    if (count >= LEATI_DNNL_ARGS)
        return leati_fail(err, LEAT_EINTERNAL, "a call of oneDNN has too many arguments");
    void *calls = s->calls;
    leat_status status = reserve(&calls, s->call_count, sizeof *s->calls, err);
    s->calls = calls;
    LEATI_TRY(status);
    leati_dnnl_call *call = &s->calls[s->call_count];
    *call = (leati_dnnl_call){.part = s->packing ? LEATI_DNNL_PACKING : s->part_count - 1};
    LEATI_DNNL_TRY(dnnl_primitive_create(&call->primitive, pd), "primitive creation");
    s->call_count++;
    for (int i = 0; i < count; i++)
        call->args[call->count++] = (dnnl_exec_arg_t){args[i].arg, s->memories[args[i].memory].memory};
    leati_md pad = leati_pd_md(pd, dnnl_query_scratchpad_md);
    if (pad && dnnl_memory_desc_get_size(pad) > 0) {
        int memory = 0;
        LEATI_TRY(leati_session_scratch(s, kernel, pad, &memory, err));
        call->args[call->count++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, s->memories[memory].memory};
    }
    if (named && s->part_count == 1)
        snprintf(kernel->implementation, sizeof kernel->implementation, "onednn %s", leati_dnnl_name(pd));
    kernel->run = leati_session_run;
    return LEAT_OK;
}

void *leati_session_at(const leati_session *s, int memory, void *const *args, const leati_run *run,
                       unsigned char *pack) {
    leati_dnnl_place place = s->memories[memory].place;
    unsigned char *base =
        place.arg >= 0 ? args[place.arg] : (place.arg == LEATI_DNNL_PACK ? pack : run->scratch);
    return base ? base + place.offset : NULL;
}

static dnnl_status_t set_memories(leati_session *s, void *const *args, const leati_run *run,
                                  unsigned char *pack) {
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < s->memory_count && status == dnnl_success; i++) {
        leati_dnnl_memory *m = &s->memories[i];
        void *to = leati_session_at(s, i, args, run, pack);
        if (to == m->now) continue;
        status = dnnl_memory_set_data_handle(m->memory, to);
        m->now = to;
    }
    return status;
}

/* Executes the calls of a part, on the thread that calls this. */
static dnnl_status_t execute(const leati_session *s, int part) {
    dnnl_status_t status = dnnl_success;
    dnnl_stream_t stream = s->streams[part == LEATI_DNNL_PACKING ? 0 : part];
    int before = leati_openmp_enter(s->sharing.openmp);
    for (int i = 0; i < s->call_count && status == dnnl_success; i++)
        if (s->calls[i].part == part)
            status =
                dnnl_primitive_execute(s->calls[i].primitive, stream, s->calls[i].count, s->calls[i].args);
    leati_openmp_leave(before);
    return status;
}

/* A run of a session's parts. */
typedef struct execution {
    const leati_session *session;
    atomic_int failed; /* the status of a part that failed */
} execution;

static void execute_part(void *of, int64_t part, int member) {
    execution *e = of;
    (void)member;
    dnnl_status_t status = execute(e->session, (int)part);
    if (status != dnnl_success) atomic_store(&e->failed, (int)status);
}

leat_status leati_session_run(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    leati_session *s = kernel->state;
    unsigned char *pack = run->pack;
    bool packed = pack && run->packed;
    execution e = {.session = s};
    if (!pack && kernel->pack_bytes)
        pack = (unsigned char *)run->scratch + (kernel->scratch_bytes - kernel->pack_bytes);
    dnnl_status_t status = set_memories(s, args, run, pack);
    if (status == dnnl_success && !packed && s->before) s->before(s, args, run, pack);
    if (status == dnnl_success && !packed) status = execute(s, LEATI_DNNL_PACKING);
    if (status == dnnl_success) {
        leati_thread_pool_share(run->pool, s->sharing.parts, s->part_count, execute_part, &e);
        status = (dnnl_status_t)atomic_load(&e.failed);
    }
    if (status == dnnl_success && s->after) s->after(s, args, run);
    if (status != dnnl_success) return leati_dnnl_fail(err, status, kernel->implementation);
    return LEAT_OK;
}

leat_status leati_session_accept(dnnl_status_t status, dnnl_primitive_desc_t *pd, char *why,
                                 leat_error *err) {
    if (status == dnnl_out_of_memory) return leati_dnnl_fail(err, status, "primitive description");
    if (status != dnnl_success) {
        *pd = NULL; /* not implemented, or arguments that oneDNN does not support */
        snprintf(why, LEATI_REASON_BYTES, "oneDNN does not support it (status %d)", (int)status);
        return LEAT_OK;
    }
    const char *name = leati_dnnl_name(*pd);
    if (strncmp(name, "ref", 3) != 0 && !strstr(name, ":ref")) return LEAT_OK;
    snprintf(why, LEATI_REASON_BYTES, "oneDNN has only '%s' for it on this CPU", name);
    dnnl_primitive_desc_destroy(*pd);
    *pd = NULL;
    return LEAT_OK;
}

dnnl_data_type_t leati_dnnl_type(const leati_desc *desc) {
    return desc->dtype == LEATI_BF16 ? dnnl_bf16 : dnnl_f32;
}

static bool is_bf16(const leati_desc *desc) {
    return desc->rank >= 0 && desc->dtype == LEATI_BF16;
}

bool leati_dnnl_takes(const leati_task *task, uint32_t must, uint32_t may, char *why) {
    bool any = false, fits = true;
    int addend = task->attrs->post.kinds & LEATI_POST_ADD ? leati_op_inputs(task) + LEATI_POST_ADDEND : -1;
    for (int i = 0; i < task->input_count + task->output_count; ++i) {
        bool bf16 = is_bf16(i < task->input_count ? &task->inputs[i] : &task->outputs[i - task->input_count]);
        any = any || bf16;
        if (i == addend)
            fits = fits && bf16 == is_bf16(&task->outputs[0]);
        else
            fits = fits && (bf16 ? (must | may) >> i & 1u : !(must >> i & 1u));
    }
    if (!any || (fits && leati_cpu_has_bfloat16())) return true;
    snprintf(why, LEATI_REASON_BYTES,
             fits ? "float32 is faster than bfloat16 on this CPU"
                  : "an unsupported mix of bfloat16 and float32");
    return false;
}

leati_dnnl_sharing leati_share_parts(const leati_task *task, double operations) {
    return (leati_dnnl_sharing){.parts = leati_worthwhile_threads(task, operations), .openmp = 1};
}

leati_dnnl_sharing leati_share_sums(const leati_task *task, double operations) {
    int threads = task->deterministic ? 1 : leati_worthwhile_threads(task, operations);
    return (leati_dnnl_sharing){.parts = 1, .openmp = threads};
}

/* Sets oneDNN's algorithm and parameters for a function; returns false where oneDNN has none that is equal. */
static bool algorithm_of(const leati_eltwise *f, dnnl_alg_kind_t *alg, float *alpha, float *beta) {
    *alpha = f->a;
    *beta = 0;
    switch (f->function) {
    case LEATI_FN_TANH: *alg = dnnl_eltwise_tanh; return true;
    case LEATI_FN_SIGMOID: *alg = dnnl_eltwise_logistic; return true;
    case LEATI_FN_LINEAR:
        *alg = dnnl_eltwise_linear;
        *beta = f->b;
        return true;
    case LEATI_FN_SILU:
        *alg = dnnl_eltwise_swish;
        *alpha = 1;
        return true;
    case LEATI_FN_HARD_SWISH: /* oneDNN 2 ignores the numbers */
        *alg = dnnl_eltwise_hardswish;
        *alpha = 1.0f / 6;
        *beta = 0.5f;
        return true;
    case LEATI_FN_RELU:
        if (f->c != 0 || (!isinf(f->b) && f->a != 0)) return false;
        *alg = isinf(f->b) ? dnnl_eltwise_relu : dnnl_eltwise_clip;
        if (!isinf(f->b)) *alpha = 0;
        if (!isinf(f->b)) *beta = f->b;
        return true;
    default: return false;
    }
}

leat_status leati_session_fuse(leati_session *s, const leati_task *task, leati_md dst, bool *fused, char *why,
                               leat_error *err) {
    uint32_t kinds = task->attrs->post.kinds;
    dnnl_post_ops_t post = NULL;
    dnnl_alg_kind_t alg = dnnl_eltwise_relu;
    float alpha = 0, beta = 0;
    *fused = !(kinds & LEATI_POST_FUNCTION) || algorithm_of(&task->attrs->post.function, &alg, &alpha, &beta);
    if (!*fused) snprintf(why, LEATI_REASON_BYTES, "not fused");
    if (!*fused || !(kinds & (LEATI_POST_ADD | LEATI_POST_FUNCTION))) return LEAT_OK;
    LEATI_DNNL_TRY(dnnl_post_ops_create(&post), "post-ops creation");
    dnnl_status_t status = dnnl_success;
    if (kinds & LEATI_POST_ADD) status = dnnl_post_ops_append_binary(post, dnnl_binary_add, dst);
    if (status == dnnl_success && kinds & LEATI_POST_FUNCTION)
        status = leati_post_eltwise(post, alg, alpha, beta);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(s->attr, post);
    dnnl_post_ops_destroy(post);
    return status == dnnl_success ? LEAT_OK : leati_dnnl_fail(err, status, "post-ops");
}

/* True if an input has no elements: oneDNN 2.6 divides by the size of the batch. */
static bool is_empty(const leati_task *task) {
    for (int i = 0; i < task->input_count; ++i)
        if (task->inputs[i].rank >= 0 && leati_desc_count(&task->inputs[i]) == 0) return true;
    return false;
}

leat_status leati_session_addend(leati_session *s, const leati_task *task, leati_md dst, size_t offset,
                                 leati_dnnl_arg *args, int *count, leat_error *err) {
    if (!(task->attrs->post.kinds & LEATI_POST_ADD)) return LEAT_OK;
    leati_dnnl_place place = leati_dnnl_arg_at(leati_op_inputs(task) + LEATI_POST_ADDEND, offset);
    args[*count].arg = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;
    return leati_session_argument(s, dst, place, &args[(*count)++].memory, err);
}

leat_status leati_session_prepare(const leati_task *task, leati_dnnl_sharing sharing, leati_kernel *kernel,
                                  char *why, leat_error *err, leati_session_describe describe) {
    leati_session *s = NULL;
    if (is_empty(task)) {
        snprintf(why, LEATI_REASON_BYTES, "an empty tensor");
        return LEAT_OK;
    }
    leati_fork_hold(); /* no fork meanwhile: oneDNN's cache of primitives has locks */
    int before = leati_openmp_enter(sharing.openmp);
    leat_status status = begin(&s, sharing, kernel, err);
    if (status == LEAT_OK) status = describe(s, task, kernel, why, err);
    leati_openmp_leave(before);
    leati_fork_release();
    kernel->pack_bytes = s ? s->pack_bytes : 0;
    kernel->scratch_bytes += kernel->pack_bytes;
    bool indivisible = status == LEAT_OK && s->indivisible;
    if (status == LEAT_OK && !indivisible && s->call_count > 0) return LEAT_OK;
    destroy(kernel->state);
    memset(kernel, 0, sizeof *kernel);
    if (!indivisible) return status;
    leati_dnnl_sharing whole = {.parts = 1, .openmp = task->deterministic ? 1 : sharing.parts};
    return leati_session_prepare(task, whole, kernel, why, err, describe);
}

/* Returns the axis at `position` in the order of memory: from the largest stride to the smallest, and where strides
 * are equal from the largest dimension to the smallest. */
static int axis_at(const leati_md_blocking *b, int position) {
    for (int axis = 0; axis < b->rank; axis++) {
        int before = 0;
        for (int other = 0; other < b->rank; other++) {
            bool first = b->strides[other] > b->strides[axis];
            if (b->strides[other] == b->strides[axis])
                first = b->dims[other] > b->dims[axis] || (b->dims[other] == b->dims[axis] && other < axis);
            before += first && other != axis;
        }
        if (before == position) return axis;
    }
    return 0;
}

/* Adds the name of a layout, such as "nChw8c", made of the axes' letters: capitals for axes that are divided into
 * blocks, with the blocks at the end. */
static void name_layout(leati_md md, const char *letters, leati_text *text) {
    leati_md_blocking b;
    if (!leati_md_blocking_of(md, &b)) {
        leati_text_add(text, "opaque");
        return;
    }
    for (int position = 0; position < b.rank; position++) {
        int axis = axis_at(&b, position);
        bool blocked = false;
        for (int i = 0; i < b.blocks; i++) blocked |= b.block_axes[i] == axis;
        leati_text_add(text, "%c", blocked ? letters[axis] - 'a' + 'A' : letters[axis]);
    }
    for (int i = 0; i < b.blocks; i++)
        leati_text_add(text, "%d%c", (int)b.block_sizes[i], letters[b.block_axes[i]]);
}

void leati_session_layout(leati_kernel *kernel, leati_md data, leati_md weights) {
    static const char *const images[] = {"a", "ab", "ncw", "nchw", "ncdhw"};
    static const char *const plain[] = {"a", "ab", "oiw", "oihw", "oidhw"};
    static const char *const grouped[] = {"a", "ab", "goi", "goiw", "goihw", "goidhw"};
    leati_md_blocking b = {0}, w = {0};
    leati_text text = {0};
    if (leati_md_blocking_of(data, &b) && b.rank >= 1 && b.rank <= 5)
        name_layout(data, images[b.rank - 1], &text);
    if (weights) {
        leati_text_add(&text, "%sweights ", text.length ? " " : "");
        bool of_groups = leati_md_blocking_of(weights, &w) && w.rank == b.rank + 1;
        int rank = w.rank >= 1 && w.rank <= 6 ? w.rank : b.rank;
        name_layout(weights, of_groups ? grouped[rank - 1] : plain[rank - 1], &text);
    }
    if (text.data && !text.failed) snprintf(kernel->layout, sizeof kernel->layout, "%s", text.data);
    leati_text_fini(&text);
}
