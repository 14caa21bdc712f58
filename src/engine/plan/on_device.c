/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of memory of a plan of a device, and its runs.  A run copies a block of parameters to the device, runs the
 * kernels, and copies a block of results back.  The first run gives its work to the device's queue piece by
 * piece; the second one records it, and from then on each run repeats the recording.  Room: engine. */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "engine/plan/plan_private.h"

enum { clock_bytes = 2 * sizeof(uint64_t) };

/* ---- Layout ---- */

static bool is_output(const leati_plan *plan, leati_value v) {
    return leati_plan_value(plan, v)->output;
}

void leati_plan_mark_results(leati_plan *plan) {
    for (leati_value v = 0; v < plan->value_count; ++v) {
        leati_value root = leati_plan_root(plan, v);
        if (is_output(plan, v) && leati_plan_value(plan, root)->storage == LEATI_IN_ARENA)
            plan->place[root].is_result = true;
    }
}

/* Inputs of at least this size are copied from where they are, beside the run before; smaller ones are first copied
 * into the pinned block, which takes less time than a copy of their own. */
#define LARGE_INPUT ((size_t)64 * 1024)

static void measure_parameters(const leati_plan *plan, leati_blocks *b) {
    for (leati_value v = 0; v < plan->value_count; ++v) {
        const leati_value_info *info = leati_plan_value(plan, v);
        size_t bytes = leati_desc_bytes(&info->desc), end = info->where.offset_bytes + bytes;
        if (info->storage == LEATI_IN_INPUT && bytes > b->input_bytes[info->where.input])
            b->input_bytes[info->where.input] = bytes;
        if (info->storage == LEATI_IN_SLAB && info->where.slab == LEATI_SLAB_SCALARS &&
            end > b->scalars_bytes)
            b->scalars_bytes = end;
    }
}

static bool is_large(const leati_blocks *b, int32_t input) {
    return b->input_bytes[input] >= LARGE_INPUT;
}

/* Graph inputs that no value describes have no bytes. */
static void lay_out_parameters(const leati_plan *plan, leati_blocks *b) {
    measure_parameters(plan, b);
    b->scalars_offset = leati_device_align(clock_bytes);
    b->parameter_bytes = b->scalars_offset + leati_device_align(b->scalars_bytes);
    for (int large = 0; large < 2; ++large) {
        for (int32_t i = 0; i < b->input_count; ++i) {
            if (is_large(b, i) != large) continue;
            b->input_offset[i] = b->parameter_bytes;
            b->parameter_bytes += leati_device_align(b->input_bytes[i]);
        }
        if (!large) b->small_bytes = b->parameter_bytes;
    }
}

static void lay_out_results(leati_plan *plan, leati_blocks *b) {
    for (int32_t n = 0; n < plan->node_count; ++n) b->fault_of[n] = -1;
    for (int32_t s = 0; s < plan->step_count; ++s)
        if (plan->work[plan->steps[s]].kernel.explain) b->fault_of[plan->steps[s]] = b->fault_count++;
    b->result_bytes = leati_device_align((size_t)b->fault_count * sizeof(uint64_t));
    for (leati_value v = 0; v < plan->value_count; ++v) {
        leati_location *place = &plan->place[v];
        if (!place->is_result || place->root != v) continue;
        place->offset = b->result_bytes;
        b->result_bytes += leati_device_align(place->bytes);
    }
    b->host_bytes = b->result_bytes;
    for (leati_value v = 0; v < plan->value_count; ++v) {
        leati_value root = leati_plan_root(plan, v);
        if (!is_output(plan, v)) continue;
        if (plan->place[root].is_result) {
            b->host_offset[v] = plan->place[root].offset;
        } else if (leati_plan_value(plan, root)->storage == LEATI_IN_SLAB) {
            b->host_offset[v] = b->host_bytes;
            b->host_bytes += leati_device_align(leati_desc_bytes(&leati_plan_value(plan, v)->desc));
        }
    }
}

/* Copies all constants to the device in one block. */
static leat_status place_constants(leati_plan *plan, leati_blocks *b, leat_error *err) {
    leati_device *device = leati_plan_device(plan);
    size_t bytes = 0;
    void *host = NULL, *memory = NULL;
    for (leati_value v = 0; v < plan->value_count; ++v) {
        const leati_value_info *info = leati_plan_value(plan, v);
        if (info->storage != LEATI_IN_CONSTANT) continue;
        b->constant_offset[v] = bytes;
        bytes += leati_device_align(leati_desc_bytes(&info->desc));
    }
    if (bytes == 0) return LEAT_OK;
    LEATI_TRY(device->class->allocate(device, bytes, &memory, err));
    b->constants = memory;
    LEATI_TRY(device->class->allocate_host(device, bytes, &host, err));
    for (leati_value v = 0; v < plan->value_count; ++v) {
        const leati_value_info *info = leati_plan_value(plan, v);
        if (info->storage == LEATI_IN_CONSTANT)
            memcpy((unsigned char *)host + b->constant_offset[v], info->where.constant,
                   leati_desc_bytes(&info->desc));
    }
    leat_status status = device->class->copy_in(device, b->constants, host, bytes, err);
    if (status == LEAT_OK) status = device->class->wait(device, err);
    device->class->release_host(device, host);
    return status;
}

static leat_status allocate_tables(leati_plan *plan, leati_blocks *b, leat_error *err) {
    for (leati_value v = 0; v < plan->value_count; ++v) {
        const leati_value_info *info = leati_plan_value(plan, v);
        if (info->storage == LEATI_IN_INPUT && info->where.input >= b->input_count)
            b->input_count = info->where.input + 1;
    }
    size_t inputs = (size_t)b->input_count + 1, values = (size_t)plan->value_count + 1;
    b->input_offset = leati_calloc(inputs, sizeof *b->input_offset);
    b->input_bytes = leati_calloc(inputs, sizeof *b->input_bytes);
    b->host_offset = leati_calloc(values, sizeof *b->host_offset);
    b->constant_offset = leati_calloc(values, sizeof *b->constant_offset);
    b->fault_of = leati_calloc((size_t)plan->node_count + 1, sizeof *b->fault_of);
    if (!b->input_offset || !b->input_bytes || !b->host_offset || !b->constant_offset || !b->fault_of)
        return leati_fail(err, LEAT_ENOMEM, "no memory for a plan of %d nodes", plan->node_count);
    return LEAT_OK;
}

/* Allocates one block for the device and one for the host. */
static leat_status allocate_pair(leati_device *device, size_t bytes, size_t host_bytes,
                                 unsigned char **memory, unsigned char **host, leat_error *err) {
    void *pair[2] = {NULL};
    leat_status status = device->class->allocate(device, bytes, &pair[0], err);
    if (status == LEAT_OK) status = device->class->allocate_host(device, host_bytes, &pair[1], err);
    *memory = pair[0];
    *host = pair[1];
    return status;
}

leat_status leati_plan_place_blocks(leati_plan *plan, leat_error *err) {
    leati_device *device = leati_plan_device(plan);
    leati_blocks *b = plan->blocks = leati_calloc(1, sizeof *b);
    if (!b) return leati_fail_memory(err, sizeof *b, "a plan of a device");
    LEATI_TRY(allocate_tables(plan, b, err));
    lay_out_parameters(plan, b);
    lay_out_results(plan, b);
    for (int i = 0; i < 2; ++i) {
        leati_parameters *p = &b->parameters[i];
        LEATI_TRY(allocate_pair(device, b->parameter_bytes, b->small_bytes, &p->memory, &p->host, err));
    }
    LEATI_TRY(allocate_pair(device, b->result_bytes, b->host_bytes, &b->results, &b->results_host, err));
    LEATI_TRY(device->class->fill(device, b->results, 0xff, (size_t)b->fault_count * sizeof(uint64_t), err));
    return place_constants(plan, b, err);
}

void leati_plan_free_blocks(leati_plan *plan) {
    leati_blocks *b = plan->blocks;
    if (!b) return;
    leati_device *device = leati_plan_device(plan);
    for (int i = 0; i < 2; ++i) {
        device->class->destroy_recording(device, &b->parameters[i].recording);
        device->class->release(device, b->parameters[i].memory);
        device->class->release_host(device, b->parameters[i].host);
    }
    device->class->release(device, b->results);
    device->class->release_host(device, b->results_host);
    device->class->release(device, b->constants);
    leati_free(b->input_offset);
    leati_free(b->input_bytes);
    leati_free(b->host_offset);
    leati_free(b->constant_offset);
    leati_free(b->fault_of);
    leati_free(b);
    plan->blocks = NULL;
}

bool leati_plan_is_parameter(const leati_plan *plan, leati_value root, size_t *offset) {
    const leati_value_info *info = leati_plan_value(plan, root);
    const leati_blocks *b = plan->blocks;
    if (info->storage == LEATI_IN_INPUT) {
        *offset = b->input_offset[info->where.input];
        return true;
    }
    *offset = b->scalars_offset + info->where.offset_bytes;
    return info->storage == LEATI_IN_SLAB && info->where.slab == LEATI_SLAB_SCALARS;
}

void *leati_plan_address_on_device(const leati_plan *plan, leati_value root) {
    const leati_value_info *info = leati_plan_value(plan, root);
    const leati_blocks *b = plan->blocks;
    if (info->storage == LEATI_IN_CONSTANT) return b->constants + b->constant_offset[root];
    if (info->storage == LEATI_IN_SLAB)
        return (unsigned char *)plan->options.slabs[info->where.slab] + info->where.offset_bytes;
    assert(plan->place[root].is_result);
    return b->results + plan->place[root].offset;
}

/* ---- Runs ---- */

static leati_parameters *parameters_of(const leati_plan *plan) {
    return &plan->blocks->parameters[plan->blocks->current];
}

/* Fills the host's copy of the parameters of the next run. */
static void write_parameters(const leati_plan *plan, const void *const *inputs, uint64_t seed,
                             uint64_t step) {
    const leati_blocks *b = plan->blocks;
    unsigned char *host = parameters_of(plan)->host;
    const uint64_t clock[] = {seed, step};
    memcpy(host, clock, sizeof clock);
    if (b->scalars_bytes)
        memcpy(host + b->scalars_offset, plan->options.slabs[LEATI_SLAB_SCALARS], b->scalars_bytes);
    for (int32_t i = 0; i < b->input_count; ++i)
        if (b->input_bytes[i] && !is_large(b, i))
            memcpy(host + b->input_offset[i], inputs[i], b->input_bytes[i]);
}

/* Makes the arguments of the kernels point to the parameters of the next run. */
static void bind_parameters(leati_plan *plan) {
    unsigned char *memory = parameters_of(plan)->memory;
    for (int32_t i = 0; i < plan->input_patch_count; ++i)
        *plan->input_patches[i].arg = memory + plan->input_patches[i].offset;
}

static leat_status copy_results(const leati_plan *plan, leat_error *err) {
    leati_device *device = leati_plan_device(plan);
    const leati_blocks *b = plan->blocks;
    LEATI_TRY(device->class->copy_out(device, b->results_host, b->results, b->result_bytes, err));
    for (leati_value v = 0; v < plan->value_count; ++v) {
        leati_value root = leati_plan_root(plan, v);
        if (!is_output(plan, v) || leati_plan_value(plan, root)->storage != LEATI_IN_SLAB) continue;
        LEATI_TRY(device->class->copy_out(device, b->results_host + b->host_offset[v],
                                          leati_plan_address_on_device(plan, root),
                                          leati_desc_bytes(&leati_plan_value(plan, v)->desc), err));
    }
    return LEAT_OK;
}

/* Gives the work of a whole run to the queue.  With time stamps, stamp i is before step i. */
static leat_status enqueue(leati_plan *plan, bool stamps, leat_error *err) {
    leati_device *device = leati_plan_device(plan);
    const leati_blocks *b = plan->blocks;
    const leati_parameters *p = parameters_of(plan);
    leati_run run = {.run_number = plan->runs++,
                     .device = device,
                     .clock = (const uint64_t *)(const void *)p->memory};
    bind_parameters(plan);
    LEATI_TRY(device->class->copy_in(device, p->memory, p->host, b->small_bytes, err));
    for (int32_t s = 0; s < plan->step_count; ++s) {
        int32_t fault = b->fault_of[plan->steps[s]];
        run.fault = fault < 0 ? NULL : (uint64_t *)(void *)b->results + fault;
        if (stamps) LEATI_TRY(device->class->stamp(device, s, err));
        LEATI_TRY(leati_plan_run_step(plan, s, &run, err));
    }
    if (stamps) LEATI_TRY(device->class->stamp(device, plan->step_count, err));
    return copy_results(plan, err);
}

/* Returns true if a kernel will pack its inputs in this run, so that a recording would pack in each run. */
static bool will_pack(const leati_plan *plan) {
    uint64_t version = plan->options.arena->version;
    for (int32_t s = 0; s < plan->step_count; ++s) {
        const leati_prepacked *pack = plan->work[plan->steps[s]].pack;
        if (pack && (version == 0 || pack->version != version)) return true;
    }
    return false;
}

static leat_status record(leati_plan *plan, leat_error *err) {
    leati_device *device = leati_plan_device(plan);
    leati_parameters *p = parameters_of(plan);
    LEATI_TRY(device->class->record(device, err));
    leat_status status = enqueue(plan, false, err);
    leat_status ended = device->class->end_record(device, &p->recording, status == LEAT_OK ? err : NULL);
    if (status == LEAT_OK) status = ended;
    if (status != LEAT_OK) device->class->destroy_recording(device, &p->recording);
    p->recorded_for = plan->options.arena->memory;
    return status;
}

/* Returns the failure that the kernel of node n has left, and forgets it.  *faulted becomes true if the kernel has
 * reported a fault. */
static leat_status check_kernel(const leati_plan *plan, int32_t n, bool *faulted, leat_error *err) {
    const leati_blocks *b = plan->blocks;
    const uint64_t *faults = (const uint64_t *)(const void *)b->results_host;
    const leati_kernel *kernel = &plan->work[n].kernel;
    int32_t fault = b->fault_of[n];
    leat_status status = leati_host_fallback_status(kernel, err);
    if (status == LEAT_OK && fault >= 0 && faults[fault] != LEATI_NO_FAULT) {
        status = kernel->explain(kernel, faults[fault], err);
        *faulted = true;
    }
    if (status == LEAT_OK) return LEAT_OK;
    const leati_node *node = leati_plan_node(plan, n);
    return leati_prefix(status, err, "'%s': op %s", node->label ? node->label : "",
                        leati_op_descriptor_of(node->op)->name);
}

/* Returns the first failure that the kernels of the run have left, and forgets all of them. */
static leat_status check_kernels(leati_plan *plan, leat_error *err) {
    leati_device *device = leati_plan_device(plan);
    const leati_blocks *b = plan->blocks;
    leat_status first = LEAT_OK;
    bool faulted = false;
    for (int32_t s = 0; s < plan->step_count; ++s) {
        leat_status status = check_kernel(plan, plan->steps[s], &faulted, first == LEAT_OK ? err : NULL);
        if (first == LEAT_OK) first = status;
    }
    if (!faulted) return first;
    leat_status reset =
        device->class->fill(device, b->results, 0xff, (size_t)b->fault_count * sizeof(uint64_t), NULL);
    return first == LEAT_OK ? reset : first;
}

static leat_status run(leati_plan *plan, int64_t *step_ns, leat_error *err) {
    leati_device *device = leati_plan_device(plan);
    leati_parameters *p = parameters_of(plan);
    if (p->recording && p->recorded_for != plan->options.arena->memory)
        device->class->destroy_recording(device, &p->recording);
    leati_plan_resolve_arena(plan);
    leati_plan_invalidate_prepacked(plan);
    if (step_ns || plan->runs == 0 || will_pack(plan)) {
        LEATI_TRY(enqueue(plan, step_ns != NULL, err));
        return step_ns ? device->class->read_stamps(device, plan->step_count + 1, step_ns, err) : LEAT_OK;
    }
    if (!p->recording) LEATI_TRY(record(plan, err));
    return device->class->replay(device, p->recording, err);
}

/* Copies the large inputs into a block of parameters by `copy`: in the queue, or beside it. */
static leat_status copy_large(const leati_plan *plan, const leati_parameters *to, const void *const *inputs,
                              leat_status (*copy)(leati_device *device, void *to, const void *from,
                                                  size_t bytes, leat_error *err),
                              leat_error *err) {
    const leati_blocks *b = plan->blocks;
    for (int32_t i = 0; i < b->input_count; ++i)
        if (is_large(b, i))
            LEATI_TRY(copy(leati_plan_device(plan), to->memory + b->input_offset[i], inputs[i],
                           b->input_bytes[i], err));
    return LEAT_OK;
}

leat_status leati_plan_stage_on_device(leati_plan *plan, const void *const *inputs, leat_error *err) {
    leati_blocks *b = plan->blocks;
    assert(b->started && !b->staged);
    const bool watched = b->watched && !b->staging;
    leati_device *device = leati_plan_device(plan);
    if (b->small_bytes == b->parameter_bytes) return LEAT_OK;
    if (watched) LEATI_TRY(device->class->mark(device, LEATI_MARK_BESIDE_BEGIN, err));
    LEATI_TRY(copy_large(plan, &b->parameters[1 - b->current], inputs, device->class->copy_beside, err));
    if (watched) LEATI_TRY(device->class->mark(device, LEATI_MARK_BESIDE_END, err));
    b->staging = b->staging || watched;
    b->staged = true;
    return LEAT_OK;
}

static leat_status mark(const leati_plan *plan, leati_mark which, bool wanted, leat_error *err) {
    leati_device *device = leati_plan_device(plan);
    return wanted ? device->class->mark(device, which, err) : LEAT_OK;
}

/* Makes the run wait for copies beside the queue, and begins to measure if it has to wait.  A run whose inputs
 * have been staged in time has no marks. */
static leat_status join(leati_plan *plan, bool copied, leat_error *err) {
    leati_blocks *b = plan->blocks;
    leati_device *device = leati_plan_device(plan);
    bool is_copying = device->class->is_copying(device);
    b->waits = is_copying || (!copied && b->small_bytes < b->parameter_bytes);
    b->watched = b->watching;
    b->watching = false;
    if (b->watched) b->times = (leati_plan_times){.given_ns = leati_now_ns()};
    LEATI_TRY(mark(plan, LEATI_MARK_BEGIN, b->waits || b->watched, err));
    return device->class->join(device, err);
}

leat_status leati_plan_start_on_device(leati_plan *plan, const void *const *inputs, bool staged,
                                       uint64_t seed, uint64_t step, int64_t *step_ns, leat_error *err) {
    leati_blocks *b = plan->blocks;
    const leati_device_class *class = leati_plan_device(plan)->class;
    assert(!b->started);
    for (int32_t i = 0; i < plan->input_count; ++i) plan->bound[i] = inputs[i];
    bool copied = staged && b->staged;
    LEATI_TRY(join(plan, copied, err));
    b->staged = false;
    if (copied) b->current = 1 - b->current;
    b->started = true;
    write_parameters(plan, inputs, seed, step);
    leat_status status =
        copied ? LEAT_OK : copy_large(plan, parameters_of(plan), inputs, class->copy_in, err);
    if (status == LEAT_OK) status = mark(plan, LEATI_MARK_COPIED, b->waits || b->watched, err);
    if (status == LEAT_OK) status = run(plan, step_ns, err);
    if (status == LEAT_OK) status = mark(plan, LEATI_MARK_END, b->watched, err);
    if (b->watched) b->times.launched_ns = leati_now_ns();
    if (status == LEAT_OK) return LEAT_OK;
    (void)class->wait(leati_plan_device(plan), NULL);
    b->started = false;
    return status;
}

leat_status leati_plan_finish_on_device(leati_plan *plan, leat_error *err) {
    leati_device *device = leati_plan_device(plan);
    assert(plan->blocks->started);
    plan->blocks->started = false;
    LEATI_TRY(device->class->wait(device, err));
    LEATI_TRY(leati_plan_note_times(plan, err));
    return check_kernels(plan, err);
}
