/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels that do not know bf16 on bf16 tensors: their bf16 inputs are converted to f32 in scratch, and their f32
 * outputs in scratch are converted to bf16.  Room: engine. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/plan/plan_private.h"
#include "tensor/bfloat16.h"

/* The conversion of one bf16 argument. */
typedef struct conversion {
    int arg;
    bool out;
    leati_kernel cast;
    size_t offset; /* of the f32 copy in scratch */
} conversion;

typedef struct fallback {
    leati_kernel inside;
    int arg_count, conversion_count;
    size_t inside_offset;
    conversion conversions[];
} fallback;

static const leati_desc *desc_of(const leati_task *task, int arg) {
    return arg < task->input_count ? &task->inputs[arg] : &task->outputs[arg - task->input_count];
}

static bool is_bf16(const leati_desc *desc) {
    return desc->rank >= 0 && desc->dtype == LEATI_BF16;
}

static int count_bf16(const leati_task *task) {
    int count = 0;
    for (int i = 0; i < task->input_count + task->output_count; ++i) count += is_bf16(desc_of(task, i));
    return count;
}

bool leati_task_has_bf16(const leati_task *task) {
    return count_bf16(task) > 0;
}

static leati_desc as_f32(const leati_desc *desc) {
    leati_desc out = *desc;
    if (is_bf16(desc)) out.dtype = LEAT_F32;
    return out;
}

void leati_task_as_f32(const leati_task *task, leati_desc *inputs, leati_desc *outputs) {
    for (int i = 0; i < task->input_count; ++i) inputs[i] = as_f32(&task->inputs[i]);
    for (int i = 0; i < task->output_count; ++i) outputs[i] = as_f32(&task->outputs[i]);
}

static void destroy(void *state) {
    fallback *w = state;
    for (int i = 0; i < w->conversion_count; ++i)
        if (w->conversions[i].cast.destroy) w->conversions[i].cast.destroy(w->conversions[i].cast.state);
    if (w->inside.destroy) w->inside.destroy(w->inside.state);
    leati_free(w);
}

const leati_kernel *leati_kernel_inside(const leati_kernel *kernel) {
    return kernel->destroy == destroy ? &((const fallback *)kernel->state)->inside : kernel;
}

static leat_status run_fallback(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const fallback *w = kernel->state;
    unsigned char *scratch = run->scratch;
    void *inner[LEATI_MAX_INPUTS + LEATI_MAX_OUTPUTS];
    leati_run inside = *run;
    inside.scratch = scratch + w->inside_offset;
    memcpy(inner, args, (size_t)w->arg_count * sizeof *inner);
    for (int i = 0; i < w->conversion_count; ++i) {
        const conversion *p = &w->conversions[i];
        if (!args[p->arg]) continue;
        inner[p->arg] = scratch + p->offset;
        if (p->out) continue;
        void *const copied[] = {args[p->arg], inner[p->arg]};
        LEATI_TRY(p->cast.run(&p->cast, copied, run, err));
    }
    LEATI_TRY(w->inside.run(&w->inside, inner, &inside, err));
    for (int i = 0; i < w->conversion_count; ++i) {
        const conversion *p = &w->conversions[i];
        void *const copied[] = {inner[p->arg], args[p->arg]};
        if (p->out && args[p->arg]) LEATI_TRY(p->cast.run(&p->cast, copied, run, err));
    }
    return LEAT_OK;
}

static leat_status explain(const leati_kernel *kernel, uint64_t fault, leat_error *err) {
    const fallback *w = kernel->state;
    return w->inside.explain(&w->inside, fault, err);
}

/* Finds the kernel that converts one argument from or to f32. */
static leat_status choose_cast(const leati_backend *const *backends, const leati_task *task, conversion *p,
                               leat_error *err) {
    const leati_desc *bf16 = desc_of(task, p->arg);
    const leati_desc f32 = as_f32(bf16);
    leati_attrs attrs = {.cast = {.dtype = p->out ? LEATI_BF16 : LEAT_F32, .scale = 1}};
    leati_task cast = {.op = LEATI_OP_CAST,
                       .attrs = &attrs,
                       .input_count = 1,
                       .output_count = 1,
                       .inputs = p->out ? &f32 : bf16,
                       .outputs = p->out ? bf16 : &f32,
                       .threads = task->threads,
                       .deterministic = task->deterministic,
                       .present = task->present,
                       .device = task->device};
    leati_text declined = {0};
    leat_status status = LEAT_OK;
    for (; *backends && !p->cast.run && status == LEAT_OK; ++backends)
        status = leati_plan_ask(*backends, &cast, &p->cast, &declined, err);
    leati_text_fini(&declined);
    LEATI_TRY(status);
    return p->cast.run ? LEAT_OK : leati_fail(err, LEAT_ENOTSUP, "no backend can convert bfloat16");
}

static leat_status prepare(const leati_backend *const *backends, const leati_task *task, fallback *w,
                           leat_error *err) {
    w->arg_count = task->input_count + task->output_count;
    for (int i = 0; i < w->arg_count; ++i) {
        if (!is_bf16(desc_of(task, i))) continue;
        const leati_desc f32 = as_f32(desc_of(task, i));
        conversion *p = &w->conversions[w->conversion_count++];
        *p = (conversion){.arg = i, .out = i >= task->input_count, .offset = w->inside_offset};
        w->inside_offset += leati_align(leati_desc_bytes(&f32));
        LEATI_TRY(choose_cast(backends, task, p, err));
    }
    return LEAT_OK;
}

leat_status leati_plan_make_f32_fallback(const leati_backend *const *backends, const leati_task *task,
                                         leati_kernel *kernel, leat_error *err) {
    int count = count_bf16(task);
    size_t bytes = sizeof(fallback) + (size_t)count * sizeof(conversion);
    fallback *w = leati_calloc(1, bytes);
    if (!w) return leati_fail_memory(err, bytes, "a kernel");
    w->inside = *kernel;
    kernel->state = w;
    kernel->destroy = destroy;
    kernel->run = run_fallback;
    if (kernel->explain) kernel->explain = explain;
    LEATI_TRY(prepare(backends, task, w, err));
    snprintf(kernel->implementation, sizeof kernel->implementation, "%.50s as f32", w->inside.implementation);
    kernel->scratch_bytes += w->inside_offset;
    return LEAT_OK;
}
