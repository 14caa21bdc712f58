/* SPDX-License-Identifier: Apache-2.0 */
/* Serves, in a plan of a device, an op for which the device has no kernel, a user's own function for example: the
 * arguments are copied to the host, the host's kernel runs there as a part of the device's queue, and what it wrote is
 * copied back.  The copies lie in pinned memory of the kernel's own.  Room: engine. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/denormals.h"
#include "engine/plan/plan_private.h"

typedef struct fallback {
    leati_kernel inside;
    leati_device *device;
    int input_count, arg_count;
    uint32_t writes;                                     /* bit i: the op changes input i */
    unsigned char *memory;                               /* pinned: copies of all arguments */
    size_t bytes[LEATI_MAX_INPUTS + LEATI_MAX_OUTPUTS];  /* 0: absent */
    size_t offset[LEATI_MAX_INPUTS + LEATI_MAX_OUTPUTS]; /* in `memory` */
    void *args[LEATI_MAX_INPUTS + LEATI_MAX_OUTPUTS];    /* of the kernel inside, for the present run */
    void *scratch;
    uint64_t *clock; /* pinned: the seed and the step */
    uint64_t run_number;
    /* The first failure of the kernel inside.  The plan reads it after it has waited for the device. */
    leat_status status;
    leat_error err;
} fallback;

static void destroy(void *state) {
    fallback *f = state;
    if (f->inside.destroy) f->inside.destroy(f->inside.state);
    f->device->class->release_host(f->device, f->memory);
    leati_free(f->scratch);
    leati_free(f);
}

const leati_kernel *leati_kernel_on_host(const leati_kernel *kernel) {
    return kernel->destroy == destroy ? &((const fallback *)kernel->state)->inside : NULL;
}

leat_status leati_host_fallback_status(const leati_kernel *kernel, leat_error *err) {
    if (kernel->destroy != destroy) return LEAT_OK;
    fallback *f = kernel->state;
    leat_status status = f->status;
    if (status != LEAT_OK && err) *err = f->err;
    f->status = LEAT_OK;
    return status;
}

/* Runs on a thread of the driver, in the order of the device's queue. */
static void run_inside(void *user) {
    fallback *f = user;
    const leati_run run = {.seed = f->clock[0],
                           .step = f->clock[1],
                           .run_number = f->run_number++,
                           .scratch = f->scratch};
    if (f->status != LEAT_OK) return;
    leati_float_mode mode = leati_flush_denormals();
    f->err = (leat_error){0};
    f->status = f->inside.run(&f->inside, f->args, &run, &f->err);
    leati_set_float_mode(mode);
}

static leat_status run_fallback(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    fallback *f = kernel->state;
    const leati_device_class *device = f->device->class;
    LEATI_TRY(device->copy_out(f->device, f->clock, run->clock, 2 * sizeof *f->clock, err));
    for (int i = 0; i < f->arg_count; ++i) {
        f->args[i] = args[i] ? f->memory + f->offset[i] : NULL;
        if (args[i] && i < f->input_count)
            LEATI_TRY(device->copy_out(f->device, f->args[i], args[i], f->bytes[i], err));
    }
    LEATI_TRY(device->call(f->device, run_inside, f, err));
    for (int i = 0; i < f->arg_count; ++i)
        if (args[i] && (i >= f->input_count || (i < 32 && f->writes >> i & 1u)))
            LEATI_TRY(device->copy_in(f->device, args[i], f->args[i], f->bytes[i], err));
    return LEAT_OK;
}

/* Finds memory for the copies of the arguments, and for the scratch of the kernel inside. */
static leat_status prepare(const leati_task *task, fallback *f, leat_error *err) {
    size_t used = leati_align(2 * sizeof *f->clock);
    for (int i = 0; i < f->arg_count; ++i) {
        bool out = i >= f->input_count;
        const leati_desc *desc = out ? &task->outputs[i - f->input_count] : &task->inputs[i];
        if (desc->rank < 0) continue;
        f->bytes[i] = leati_desc_bytes(desc);
        if (out && f->inside.output_bytes[i - f->input_count])
            f->bytes[i] = f->inside.output_bytes[i - f->input_count];
        f->offset[i] = used;
        used += leati_align(f->bytes[i]);
    }
    void *memory = NULL;
    LEATI_TRY(f->device->class->allocate_host(f->device, used, &memory, err));
    f->memory = memory;
    f->clock = memory;
    if (f->inside.scratch_bytes == 0) return LEAT_OK;
    f->scratch = leati_calloc_aligned(f->inside.scratch_bytes);
    return f->scratch ? LEAT_OK : leati_fail_memory(err, f->inside.scratch_bytes, "a kernel");
}

leat_status leati_plan_make_host_fallback(const leati_plan *plan, const leati_task *task,
                                          leati_kernel *kernel, leat_error *err) {
    fallback *f = leati_calloc(1, sizeof *f);
    if (!f) return leati_fail_memory(err, sizeof *f, "a kernel");
    f->inside = *kernel;
    f->device = leati_plan_device(plan);
    f->input_count = task->input_count;
    f->arg_count = task->input_count + task->output_count;
    f->writes = leati_op_descriptor_of(task->op)->writes;
    *kernel = (leati_kernel){.run = run_fallback, .destroy = destroy, .state = f};
    memcpy(kernel->output_bytes, f->inside.output_bytes, sizeof kernel->output_bytes);
    snprintf(kernel->implementation, sizeof kernel->implementation, "%.50s on the host",
             f->inside.implementation);
    return prepare(task, f, err);
}
