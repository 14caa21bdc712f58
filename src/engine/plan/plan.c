/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a graph into a plan, stage by stage, sets the arguments of every kernel, and runs the plan.  Room:
 * engine. */
#include "engine/plan/plan.h"

#include <assert.h>
#include "base/os/clock.h"
#include "base/os/cpu.h"
#include "base/os/denormals.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/plan/plan_private.h"

leat_status leati_arena_create_on(leati_arena **out, leati_device *device, leat_error *err) {
    *out = leati_calloc(1, sizeof **out);
    if (!*out) return leati_fail_memory(err, sizeof **out, "an arena");
    (*out)->device = (*out)->packs.device = device;
    return LEAT_OK;
}

leat_status leati_arena_create(leati_arena **out, leat_error *err) {
    return leati_arena_create_on(out, NULL, err);
}

static void free_memory(const leati_arena *arena) {
    if (arena->device)
        arena->device->class->release(arena->device, arena->memory);
    else
        leati_free(arena->memory);
}

void leati_arena_destroy(leati_arena **arena) {
    if (!*arena) return;
    leati_thread_pool_destroy(&(*arena)->pool);
    leati_tuning_cache_close(&(*arena)->choices);
    free_memory(*arena);
    leati_free(*arena);
    *arena = NULL;
}

size_t leati_arena_bytes(const leati_arena *arena) {
    return arena->bytes;
}

static leat_status arena_reserve(leati_arena *arena, size_t bytes, leat_error *err) {
    if (bytes <= arena->bytes) return LEAT_OK;
    void *memory = NULL;
    if (arena->device)
        LEATI_TRY(arena->device->class->allocate(arena->device, bytes, &memory, err));
    else if (!(memory = leati_calloc_aligned(bytes)))
        return leati_fail_memory(err, bytes, "activations");
    free_memory(arena);
    arena->memory = memory;
    arena->bytes = bytes;
    return LEAT_OK;
}

static leat_status arena_reserve_threads(leati_arena *arena, int threads, leat_error *err) {
    if (threads < 2) return LEAT_OK;
    if (!arena->pool) LEATI_TRY(leati_thread_pool_create(&arena->pool, err));
    return leati_thread_pool_reserve(arena->pool, threads, err);
}

static leat_status make_tables(leati_plan *plan, leat_error *err) {
    plan->node_count = leati_graph_node_count(plan->graph);
    plan->value_count = leati_graph_value_count(plan->graph);
    plan->work = leati_calloc((size_t)plan->node_count + 1, sizeof *plan->work);
    plan->place = leati_calloc((size_t)plan->value_count + 1, sizeof *plan->place);
    plan->steps = leati_calloc((size_t)plan->node_count + 1, sizeof *plan->steps);
    if (!plan->work || !plan->place || !plan->steps)
        return leati_fail(err, LEAT_ENOMEM, "no memory for a plan of %d nodes", plan->node_count);
    return LEAT_OK;
}

static void list_steps(leati_plan *plan) {
    for (int32_t n = 0; n < plan->node_count; ++n)
        if (plan->work[n].needed && !plan->work[n].virtual) plan->steps[plan->step_count++] = n;
}

bool leati_plan_is_left_out(const leati_plan *plan, const leati_node *node, leati_value output) {
    bool optional = leati_op_descriptor_of(node->op)->flags & LEATI_OP_OPTIONAL_OUTPUTS;
    return optional && plan->place[output].last_read < 0;
}

/* Lists the blocks of the arena: one for each value that has memory of its own, with the value in `owners`, and one for
 * the scratch of each step, with LEATI_NONE.  The value may be the output of a node that runs nothing: a concatenation
 * whose inputs are computed in its memory. */
static int32_t collect_blocks(leati_plan *plan, leati_block *blocks, leati_value *owners) {
    int32_t count = 0;
    for (int32_t n = 0; n < plan->node_count; ++n) {
        if (!plan->work[n].needed) continue;
        const leati_node *node = leati_plan_node(plan, n);
        for (int i = 0; i < node->output_count; ++i) {
            leati_value v = node->outputs[i];
            const leati_location *place = &plan->place[v];
            if (place->root != v || place->is_result || leati_plan_is_left_out(plan, node, v)) continue;
            owners[count] = v;
            blocks[count++] =
                (leati_block){.first = place->born, .last = place->dies, .bytes = leati_align(place->bytes)};
        }
        if (plan->work[n].virtual) continue;
        size_t scratch = leati_plan_scratch_bytes(&plan->work[n]);
        if (scratch == 0) continue;
        owners[count] = LEATI_NONE;
        blocks[count++] = (leati_block){.first = n, .last = n, .bytes = leati_align(scratch)};
    }
    return count;
}

static leat_status lay_out(leati_plan *plan, leat_error *err) {
    size_t most = (size_t)plan->node_count * (LEATI_MAX_OUTPUTS + 1) + 1;
    leati_block *blocks = leati_calloc(most, sizeof *blocks);
    leati_value *owners = leati_calloc(most, sizeof *owners);
    leat_status status = LEAT_ENOMEM;
    if (blocks && owners) {
        int32_t count = collect_blocks(plan, blocks, owners);
        status = leati_arena_lay_out(blocks, count, plan->node_count + 1, &plan->arena_bytes,
                                     &plan->bound_bytes, err);
        for (int32_t i = 0; status == LEAT_OK && i < count; ++i) {
            if (owners[i] == LEATI_NONE)
                plan->work[blocks[i].first].scratch_offset = blocks[i].offset;
            else
                plan->place[owners[i]].offset = blocks[i].offset;
        }
    } else {
        leati_fail(err, status, "no memory to lay out %d steps", plan->step_count);
    }
    leati_free(blocks);
    leati_free(owners);
    return status;
}

/* Sets an argument, or adds a patch that will set it. */
static void set_argument(leati_plan *plan, void **arg, leati_value value) {
    leati_value root = leati_plan_root(plan, value);
    const leati_value_info *info = leati_plan_value(plan, root);
    union {
        const void *constant;
        void *argument;
    } address;
    size_t offset = 0;
    if (plan->blocks && leati_plan_is_parameter(plan, root, &offset)) {
        plan->input_patches[plan->input_patch_count++] = (leati_patch){.arg = arg, .offset = offset};
        return;
    }
    if (plan->blocks && (info->storage != LEATI_IN_ARENA || plan->place[root].is_result)) {
        *arg = leati_plan_address_on_device(plan, root);
        return;
    }
    switch (info->storage) {
    case LEATI_IN_ARENA:
        plan->arena_patches[plan->arena_patch_count++] =
            (leati_patch){.arg = arg, .offset = plan->place[root].offset + leati_plan_shift(plan, value)};
        break;
    case LEATI_IN_INPUT:
        plan->input_patches[plan->input_patch_count++] =
            (leati_patch){.arg = arg, .input = info->where.input};
        break;
    case LEATI_IN_SLAB:
        *arg = (unsigned char *)plan->options.slabs[info->where.slab] + info->where.offset_bytes;
        if (info->where.slab == LEATI_SLAB_WEIGHTS)
            plan->weight_patches[plan->weight_patch_count++] =
                (leati_patch){.arg = arg, .offset = info->where.offset_bytes};
        break;
    case LEATI_IN_CONSTANT:
        address.constant = info->where.constant; /* Kernels do not write to constants. */
        *arg = address.argument;
        break;
    }
}

static leat_status make_arguments(leati_plan *plan, leat_error *err) {
    size_t count = 0;
    for (int32_t s = 0; s < plan->step_count; ++s) {
        const leati_node *node = leati_plan_node(plan, plan->steps[s]);
        count += (size_t)(node->input_count + node->output_count);
    }
    for (leati_value v = 0; v < plan->value_count; ++v) {
        const leati_value_info *info = leati_plan_value(plan, v);
        if (info->storage == LEATI_IN_INPUT && info->where.input >= plan->input_count)
            plan->input_count = info->where.input + 1;
    }
    plan->args = leati_calloc(count + 1, sizeof *plan->args);
    plan->arena_patches = leati_calloc(count + 1, sizeof *plan->arena_patches);
    plan->input_patches = leati_calloc(count + 1, sizeof *plan->input_patches);
    plan->weight_patches = leati_calloc(count + 1, sizeof *plan->weight_patches);
    plan->bound = leati_calloc((size_t)plan->input_count + 1, sizeof *plan->bound);
    if (!plan->args || !plan->arena_patches || !plan->input_patches || !plan->weight_patches || !plan->bound)
        return leati_fail(err, LEAT_ENOMEM, "no memory for the arguments of %d steps", plan->step_count);
    void **next = plan->args;
    for (int32_t s = 0; s < plan->step_count; ++s) {
        const leati_node *node = leati_plan_node(plan, plan->steps[s]);
        plan->work[plan->steps[s]].args = next;
        for (int i = 0; i < node->input_count; ++i, ++next)
            if (node->inputs[i] >= 0) set_argument(plan, next, node->inputs[i]);
        for (int i = 0; i < node->output_count; ++i, ++next)
            if (!leati_plan_is_left_out(plan, node, node->outputs[i]))
                set_argument(plan, next, node->outputs[i]);
    }
    return LEAT_OK;
}

#ifndef NDEBUG
/* Asserts that step n finds `value` in the arena: its memory was written before, holds it, and is not given to another
 * value before n has run. */
static void assert_in_arena(const leati_plan *plan, int32_t n, leati_value value, bool input) {
    leati_value root = leati_plan_root(plan, value);
    const leati_location *place = &plan->place[root];
    const leati_value_info *info = leati_plan_value(plan, value);
    const int32_t producer = info->producer;
    if (leati_plan_value(plan, root)->storage != LEATI_IN_ARENA) return;
    assert(producer >= 0 && plan->work[producer].needed);
    assert(place->born <= producer && (input ? producer < n : producer <= n));
    if (place->is_result) return;
    assert(place->dies >= n);
    assert(place->offset % LEATI_ALIGNMENT == 0 && place->offset + place->bytes <= plan->arena_bytes);
    assert(leati_plan_shift(plan, value) + leati_desc_bytes(&info->desc) <= place->bytes);
}

/* Asserts that each step has a kernel, finds its inputs, and has memory for its outputs and its scratch. */
static void assert_consistent(const leati_plan *plan) {
    for (int32_t s = 0; s < plan->step_count; ++s) {
        int32_t n = plan->steps[s];
        const leati_work *work = &plan->work[n];
        const leati_node *node = leati_plan_node(plan, n);
        assert(work->kernel.run && work->args);
        assert(work->scratch_offset + leati_plan_scratch_bytes(work) <= plan->arena_bytes);
        for (int i = 0; i < node->input_count; ++i)
            if (node->inputs[i] >= 0) assert_in_arena(plan, n, node->inputs[i], true);
        for (int i = 0; i < node->output_count; ++i)
            if (!leati_plan_is_left_out(plan, node, node->outputs[i]))
                assert_in_arena(plan, n, node->outputs[i], false);
    }
}
#else
static void assert_consistent(const leati_plan *plan) {
    (void)plan;
}
#endif

static leat_status compile(leati_plan *plan, leat_error *err) {
    LEATI_TRY(leati_cpu_check_isa(err));
    LEATI_TRY(leati_graph_check(plan->graph, err));
    LEATI_TRY(arena_reserve_threads(plan->options.arena, plan->options.threads, err));
    LEATI_TRY(leati_plan_group_samples(plan, err));
    LEATI_TRY(make_tables(plan, err));
    leati_plan_eliminate_dead_nodes(plan);
    LEATI_TRY(leati_plan_merge(plan, err));
    leati_plan_store_bf16(plan);
    leati_plan_fold_padding(plan);
    LEATI_TRY(leati_plan_choose(plan, err));
    LEATI_TRY(leati_plan_fold(plan, err));
    if (leati_plan_device(plan)) LEATI_TRY(leati_plan_fuse_averages(plan, err));
    LEATI_TRY(leati_plan_fuse_products(plan, err));
    if (leati_plan_device(plan))
        LEATI_TRY(leati_plan_fuse_elementwise(plan, err));
    else
        LEATI_TRY(leati_plan_fuse_separable(plan, err));
    leati_plan_alias(plan);
    LEATI_TRY(leati_plan_choose_rest(plan, err));
    LEATI_TRY(leati_plan_prepack(plan, err));
    list_steps(plan);
    if (leati_plan_device(plan)) leati_plan_mark_results(plan);
    LEATI_TRY(lay_out(plan, err));
    if (leati_plan_device(plan)) LEATI_TRY(leati_plan_place_blocks(plan, err));
    LEATI_TRY(make_arguments(plan, err));
    assert_consistent(plan);
    /* The arena is never empty, so that it has an address. */
    return arena_reserve(plan->options.arena, plan->arena_bytes + LEATI_ALIGNMENT, err);
}

leat_status leati_plan_create(leati_plan **out, leati_graph **graph, const leati_plan_options *options,
                              leat_error *err) {
    leati_plan *plan = leati_calloc(1, sizeof *plan);
    *out = NULL;
    if (!plan) {
        leati_graph_destroy(graph);
        return leati_fail_memory(err, sizeof *plan, "a plan");
    }
    plan->graph = *graph;
    *graph = NULL;
    plan->options = *options;
    leati_float_mode mode = leati_flush_denormals(); /* Constant folding and measuring run kernels. */
    leat_status status = compile(plan, err);
    leati_set_float_mode(mode);
    if (status != LEAT_OK)
        leati_plan_destroy(&plan);
    else
        *out = plan;
    return status;
}

void leati_plan_destroy(leati_plan **plan_pointer) {
    leati_plan *plan = *plan_pointer;
    if (!plan) return;
    leati_plan_free_front(plan);
    leati_plan_free_blocks(plan);
    leati_plan_release_prepacked(plan);
    for (int32_t n = 0; plan->work && n < plan->node_count; ++n) {
        leati_kernel *kernel = &plan->work[n].kernel;
        if (kernel->destroy) kernel->destroy(kernel->state);
        leati_text_fini(&plan->work[n].declined);
    }
    leati_free(plan->work);
    leati_free(plan->place);
    leati_free(plan->steps);
    leati_free(plan->args);
    leati_free(plan->arena_patches);
    leati_free(plan->input_patches);
    leati_free(plan->weight_patches);
    leati_free(plan->bound);
    leati_free(plan->final_from);
    leati_graph_destroy(&plan->graph);
    leati_free(plan);
    *plan_pointer = NULL;
}

void leati_plan_resolve_arena(leati_plan *plan) {
    unsigned char *memory = plan->options.arena->memory;
    assert(plan->arena_bytes <= plan->options.arena->bytes);
    if (plan->resolved_for == memory) return;
    for (int32_t i = 0; i < plan->arena_patch_count; ++i)
        *plan->arena_patches[i].arg = memory + plan->arena_patches[i].offset;
    plan->resolved_for = memory;
}

static void bind_arguments(leati_plan *plan, const void *const *inputs) {
    leati_plan_resolve_arena(plan);
    for (int32_t i = 0; i < plan->input_count; ++i) plan->bound[i] = inputs[i];
    for (int32_t i = 0; i < plan->input_patch_count; ++i) {
        union {
            const void *bound;
            void *argument;
        } address = {.bound = inputs[plan->input_patches[i].input]}; /* Kernels do not write to inputs. */
        *plan->input_patches[i].arg = address.argument;
    }
}

leat_status leati_plan_run_step(const leati_plan *plan, int32_t s, leati_run *run, leat_error *err) {
    const leati_work *work = &plan->work[plan->steps[s]];
    leati_prepacked *pack = work->pack;
    uint64_t version = plan->options.arena->version;
    run->scratch = leati_plan_scratch_bytes(work) ? plan->resolved_for + work->scratch_offset : NULL;
    run->pack = pack ? pack->memory : NULL;
    run->packed = pack && version != 0 && pack->version == version;
    leat_status status = work->kernel.run(&work->kernel, work->args, run, err);
    if (status == LEAT_OK && pack && !run->packed) pack->version = version;
    if (status == LEAT_OK) return LEAT_OK;
    const leati_node *node = leati_plan_node(plan, plan->steps[s]);
    return leati_prefix(status, err, "'%s': op %s", node->label ? node->label : "",
                        leati_op_descriptor_of(node->op)->name);
}

/* Returns the thread pool of the arena, limited to the threads of this plan: other plans may use more of them. */
static leati_thread_pool *pool_of(const leati_plan *plan) {
    leati_thread_pool *pool = plan->options.arena->pool;
    if (pool) leati_thread_pool_limit(pool, plan->options.threads);
    return pool;
}

static leat_status run_steps(const leati_plan *plan, leati_run *run, leat_error *err) {
    for (int32_t s = 0; s < plan->step_count; ++s) LEATI_TRY(leati_plan_run_step(plan, s, run, err));
    return LEAT_OK;
}

static leat_status run_steps_timed(const leati_plan *plan, leati_run *run, int64_t *step_ns,
                                   leat_error *err) {
    int64_t before = leati_now_ns();
    for (int32_t s = 0; s < plan->step_count; ++s) {
        LEATI_TRY(leati_plan_run_step(plan, s, run, err));
        int64_t now = leati_now_ns();
        step_ns[s] = now - before;
        before = now;
    }
    return LEAT_OK;
}

static leat_status run_steps_watched(const leati_plan *plan, leati_run *run, const leati_slab_watch *watch,
                                     leat_error *err) {
    size_t told = SIZE_MAX;
    for (int32_t s = 0; s < plan->step_count; ++s) {
        LEATI_TRY(leati_plan_run_step(plan, s, run, err));
        if (plan->final_from[s] == told) continue;
        told = plan->final_from[s];
        watch->finished(watch->user, told);
    }
    return LEAT_OK;
}

/* Prepares a run on the host. */
static leati_run begin_run(leati_plan *plan, const void *const *inputs, uint64_t seed, uint64_t step) {
    bind_arguments(plan, inputs);
    leati_plan_invalidate_prepacked(plan);
    return (leati_run){.seed = seed, .step = step, .run_number = plan->runs++, .pool = pool_of(plan)};
}

leat_status leati_plan_run_watched(leati_plan *plan, const void *const *inputs, uint64_t seed, uint64_t step,
                                   const leati_slab_watch *watch, leat_error *err) {
    assert(!plan->blocks && !plan->front);
    if (!plan->final_from || plan->final_slab != watch->slab)
        LEATI_TRY(leati_plan_watch(plan, watch->slab, err));
    leati_run run = begin_run(plan, inputs, seed, step);
    run.exchange = watch->exchange;
    leati_float_mode mode = leati_flush_denormals();
    leat_status status = run_steps_watched(plan, &run, watch, err);
    leati_set_float_mode(mode);
    return status;
}

leat_status leati_plan_run_timed(leati_plan *plan, const void *const *inputs, uint64_t seed, uint64_t step,
                                 int64_t *step_ns, leat_error *err) {
    if (plan->blocks) {
        LEATI_TRY(leati_plan_start_on_device(plan, inputs, false, seed, step, step_ns, err));
        return leati_plan_finish_on_device(plan, err);
    }
    if (plan->front) {
        LEATI_TRY(leati_plan_run_front(plan, inputs, seed, step, step_ns, err));
        inputs = leati_plan_rest_inputs(plan, inputs);
        if (step_ns) step_ns += plan->front->plan->step_count;
    }
    leati_run run = begin_run(plan, inputs, seed, step);
    leati_float_mode mode = leati_flush_denormals();
    leat_status status = step_ns ? run_steps_timed(plan, &run, step_ns, err) : run_steps(plan, &run, err);
    leati_set_float_mode(mode);
    return status;
}

leat_status leati_plan_run(leati_plan *plan, const void *const *inputs, uint64_t seed, uint64_t step,
                           leat_error *err) {
    return leati_plan_run_timed(plan, inputs, seed, step, NULL, err);
}

leat_status leati_plan_start(leati_plan *plan, const void *const *inputs, bool staged, uint64_t seed,
                             uint64_t step, leat_error *err) {
    if (plan->blocks) return leati_plan_start_on_device(plan, inputs, staged, seed, step, NULL, err);
    return leati_plan_run(plan, inputs, seed, step, err);
}

leat_status leati_plan_stage(leati_plan *plan, const void *const *inputs, leat_error *err) {
    return plan->blocks ? leati_plan_stage_on_device(plan, inputs, err) : LEAT_OK;
}

bool leati_plan_can_stage(const leati_plan *plan) {
    return plan->blocks && plan->blocks->small_bytes < plan->blocks->parameter_bytes;
}

leat_status leati_plan_finish(leati_plan *plan, leat_error *err) {
    return plan->blocks ? leati_plan_finish_on_device(plan, err) : LEAT_OK;
}

static void drop_found(leati_plan *plan, void *weights) {
    plan->options.slabs[LEATI_SLAB_WEIGHTS] = weights;
    leati_plan_drop_found_prepacked(plan);
}

/* Finds memory for the packed weights of the plan and of its front, or of neither. */
static leat_status find_prepacked(leati_plan *plan, void *weights, leati_prepacked_set *packs,
                                  leat_error *err) {
    void *before = plan->options.slabs[LEATI_SLAB_WEIGHTS];
    const leati_front *front = plan->front;
    int32_t lanes = front ? front->lane_count : 0, found = 0;
    leat_status status = LEAT_OK;
    while (status == LEAT_OK && found < lanes) {
        status = find_prepacked(front->lanes[found].plan, weights, packs, err);
        found += status == LEAT_OK;
    }
    if (status == LEAT_OK) {
        plan->options.slabs[LEATI_SLAB_WEIGHTS] = weights;
        status = leati_plan_find_prepacked(plan, packs, err);
        if (status == LEAT_OK) return status;
        drop_found(plan, before);
    }
    while (found > 0) drop_found(front->lanes[--found].plan, before);
    return status;
}

/* Takes the packed weights that were found, and packs those that no other plan has packed. */
static leat_status take_weights(leati_plan *plan, void *weights, uint64_t version, const void *const *inputs,
                                leat_error *err) {
    leat_status status = LEAT_OK;
    leati_plan_take_prepacked(plan);
    for (int32_t i = 0; i < plan->weight_patch_count; ++i)
        *plan->weight_patches[i].arg = (unsigned char *)weights + plan->weight_patches[i].offset;
    leati_arena_set_version(plan->options.arena, version);
    bind_arguments(plan, inputs);
    leati_run run = {.pool = pool_of(plan)};
    leati_float_mode mode = leati_flush_denormals();
    for (int32_t s = 0; s < plan->step_count && status == LEAT_OK; ++s) {
        const leati_prepacked *pack = plan->work[plan->steps[s]].pack;
        if (pack && pack->version != version) status = leati_plan_run_step(plan, s, &run, err);
    }
    leati_set_float_mode(mode);
    return status;
}

leat_status leati_plan_adopt(leati_plan *plan, void *weights, leati_prepacked_set *packs, uint64_t version,
                             const void *const *inputs, leat_error *err) {
    LEATI_TRY(find_prepacked(plan, weights, packs, err));
    leat_status status = LEAT_OK;
    for (int32_t i = 0; plan->front && i < plan->front->lane_count; ++i) {
        leat_status lane = take_weights(plan->front->lanes[i].plan, weights, version, inputs,
                                        status == LEAT_OK ? err : NULL);
        if (status == LEAT_OK) status = lane;
    }
    if (plan->front) inputs = leati_plan_rest_inputs(plan, inputs);
    leat_status rest = take_weights(plan, weights, version, inputs, status == LEAT_OK ? err : NULL);
    return status == LEAT_OK ? rest : status;
}

leat_tensor leati_plan_output(const leati_plan *plan, leati_value value) {
    const leati_desc *desc = leati_graph_desc(plan->graph, value);
    leati_value root = leati_plan_root(plan, value);
    const leati_value_info *info = leati_plan_value(plan, root);
    union {
        const void *borrowed;
        void *data;
    } address = {.data = NULL};
    if (plan->blocks && (info->storage == LEATI_IN_ARENA || info->storage == LEATI_IN_SLAB))
        return leat_tensor_view(desc->dtype, desc->rank, desc->shape,
                                plan->blocks->results_host + plan->blocks->host_offset[value]);
    switch (info->storage) {
    case LEATI_IN_ARENA:
        address.data = plan->options.arena->memory + plan->place[root].offset + leati_plan_shift(plan, value);
        break;
    case LEATI_IN_INPUT: address.borrowed = plan->bound[info->where.input]; break;
    case LEATI_IN_SLAB:
        address.data = (unsigned char *)plan->options.slabs[info->where.slab] + info->where.offset_bytes;
        break;
    case LEATI_IN_CONSTANT: address.borrowed = info->where.constant; break;
    }
    return leat_tensor_view(desc->dtype, desc->rank, desc->shape, address.data);
}

const leati_graph *leati_plan_graph(const leati_plan *plan) {
    return plan->graph;
}

size_t leati_plan_arena_bytes(const leati_plan *plan) {
    const leati_front *front = plan->front;
    if (!front) return plan->arena_bytes;
    size_t bytes =
        plan->arena_bytes > front->plan->arena_bytes ? plan->arena_bytes : front->plan->arena_bytes;
    for (int32_t i = 1; i < front->lane_count; ++i) bytes += front->lanes[i].plan->arena_bytes;
    for (int32_t i = 0; i < front->handed_count; ++i) bytes += front->handed[i].bytes * (size_t)front->groups;
    return bytes;
}

size_t leati_plan_bound_bytes(const leati_plan *plan) {
    size_t front = plan->front ? plan->front->plan->bound_bytes : 0;
    return plan->bound_bytes > front ? plan->bound_bytes : front;
}
