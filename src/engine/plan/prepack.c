/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps packed weights, which are weights in the kernels' own layouts, between runs, and shares them between the plans
 * of one arena.  The weights are packed again when the version of the arena's weights changes, or when a plan has
 * written them.  Room: engine. */
#include <assert.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "engine/plan/plan_private.h"

leat_status leati_prepacked_set_create(leati_prepacked_set **out, leat_error *err) {
    *out = leati_calloc(1, sizeof **out);
    if (!*out) return leati_fail_memory(err, sizeof **out, "packed weights");
    (*out)->keeps = true;
    return LEAT_OK;
}

static void free_pack(const leati_prepacked_set *packs, leati_prepacked *pack) {
    if (packs->device)
        packs->device->class->release(packs->device, pack->memory);
    else
        leati_free(pack->memory);
    leati_free(pack);
}

void leati_prepacked_set_destroy(leati_prepacked_set **packs) {
    if (!*packs) return;
    while ((*packs)->first) {
        leati_prepacked *pack = (*packs)->first;
        (*packs)->first = pack->next;
        free_pack(*packs, pack);
    }
    leati_free(*packs);
    *packs = NULL;
}

void leati_arena_set_version(leati_arena *arena, uint64_t version) {
    arena->version = version;
}

bool leati_plan_stays(const leati_plan *plan, leati_value value) {
    const leati_value_info *info = leati_plan_value(plan, leati_plan_root(plan, value));
    if (info->storage == LEATI_IN_CONSTANT) return true;
    return info->storage == LEATI_IN_SLAB && info->where.slab == LEATI_SLAB_WEIGHTS &&
           !leati_plan_is_written(plan, value, 0, plan->node_count);
}

static leati_memory memory_of(const leati_plan *plan, leati_value value) {
    const leati_value_info *info = leati_plan_value(plan, leati_plan_root(plan, value));
    size_t bytes = leati_desc_bytes(&info->desc);
    if (info->storage == LEATI_IN_CONSTANT) return (leati_memory){info->where.constant, bytes};
    const unsigned char *slab = plan->options.slabs[info->where.slab];
    return (leati_memory){slab + info->where.offset_bytes, bytes};
}

/* ---- Weights that a plan writes ---- */

static bool is_weights(const leati_plan *plan, leati_value value) {
    const leati_value_info *info = leati_plan_value(plan, leati_plan_root(plan, value));
    return info->storage == LEATI_IN_SLAB && info->where.slab == LEATI_SLAB_WEIGHTS;
}

/* Lists the weights that one node writes.  Returns their number; with `to` NULL it only counts. */
static int32_t list_written(const leati_plan *plan, int32_t n, leati_memory *to) {
    const leati_node *node = leati_plan_node(plan, n);
    uint32_t writes = leati_plan_writes(plan, n);
    int32_t count = 0;
    if (!plan->work[n].needed || plan->work[n].virtual) return 0;
    for (int i = 0; i < node->input_count + node->output_count; ++i) {
        bool out = i >= node->input_count;
        leati_value value = out ? node->outputs[i - node->input_count] : node->inputs[i];
        if (value < 0 || !(out || (i < 32 && writes >> i & 1u)) || !is_weights(plan, value)) continue;
        if (to) to[count] = memory_of(plan, value);
        ++count;
    }
    return count;
}

static leat_status note_written(leati_plan *plan, leat_error *err) {
    int32_t count = 0, at = 0;
    for (int32_t n = 0; n < plan->node_count; ++n) count += list_written(plan, n, NULL);
    if (count == 0) return LEAT_OK;
    plan->written = leati_calloc((size_t)count, sizeof *plan->written);
    if (!plan->written)
        return leati_fail_memory(err, (size_t)count * sizeof *plan->written, "a plan's weights");
    for (int32_t n = 0; n < plan->node_count; ++n) at += list_written(plan, n, plan->written + at);
    plan->written_count = count;
    return LEAT_OK;
}

bool leati_plan_written_get(const leati_plan *plan, int32_t index, size_t *offset_bytes, size_t *bytes) {
    if (index < 0 || index >= plan->written_count) return false;
    const unsigned char *slab = plan->options.slabs[LEATI_SLAB_WEIGHTS];
    *offset_bytes = (size_t)(plan->written[index].data - slab);
    *bytes = plan->written[index].bytes;
    return true;
}

static bool is_written(const leati_plan *plan, const leati_memory *m) {
    for (int32_t i = 0; m->bytes && i < plan->written_count; ++i)
        if (m->data < plan->written[i].data + plan->written[i].bytes &&
            plan->written[i].data < m->data + m->bytes)
            return true;
    return false;
}

void leati_plan_invalidate_prepacked(const leati_plan *plan) {
    if (plan->written_count == 0) return;
    for (leati_prepacked *pack = plan->options.arena->packs.first; pack; pack = pack->next)
        for (int i = 0; i < 32 && pack->version; ++i)
            if (is_written(plan, &pack->from[i])) pack->version = 0;
}

/* ---- Packed weights ---- */

/* Describes what the kernel of node n packs.  Returns false if it packs nothing, or inputs that may change within a
 * run. */
static bool describe_pack(const leati_plan *plan, int32_t n, leati_prepacked *wanted) {
    const leati_kernel *kernel = &plan->work[n].kernel;
    const leati_node *node = leati_plan_node(plan, n);
    *wanted = (leati_prepacked){.bytes = kernel->pack_bytes};
    memcpy(wanted->key, kernel->pack_key, sizeof wanted->key);
    if (kernel->pack_bytes == 0 || kernel->pack_inputs == 0) return false;
    for (int i = 0; i < node->input_count && i < 32; ++i) {
        if (!(kernel->pack_inputs >> i & 1u) || node->inputs[i] < 0) continue;
        if (!leati_plan_stays(plan, node->inputs[i])) return false;
        wanted->from[i] = memory_of(plan, node->inputs[i]);
    }
    return true;
}

static leati_prepacked *find_pack(leati_prepacked *packs, const leati_prepacked *wanted) {
    for (leati_prepacked *pack = packs; pack; pack = pack->next)
        if (pack->bytes == wanted->bytes && strcmp(pack->key, wanted->key) == 0 &&
            memcmp(pack->from, wanted->from, sizeof pack->from) == 0)
            return pack;
    return NULL;
}

static leat_status make_pack(const leati_prepacked_set *packs, const leati_prepacked *wanted,
                             leati_prepacked **out, leat_error *err) {
    leati_prepacked *pack = leati_calloc(1, sizeof *pack);
    if (!pack) return leati_fail_memory(err, sizeof *pack, "packed weights");
    *pack = *wanted;
    leat_status status = LEAT_OK;
    if (packs->device)
        status = packs->device->class->allocate(packs->device, wanted->bytes, &pack->memory, err);
    else if (!(pack->memory = leati_calloc_aligned(wanted->bytes)))
        status = leati_fail_memory(err, wanted->bytes, "packed weights");
    if (status != LEAT_OK) leati_free(pack);
    *out = pack;
    return status;
}

static leat_status use_pack(leati_prepacked_set *packs, const leati_prepacked *wanted, leati_prepacked **out,
                            leat_error *err) {
    leati_prepacked *pack = find_pack(packs->first, wanted);
    if (!pack) {
        LEATI_TRY(make_pack(packs, wanted, &pack, err));
        pack->next = packs->first;
        packs->first = pack;
    }
    if (!packs->keeps)
        ++pack->users; /* A set that keeps its entries is shared by threads, and does not count users. */
    *out = pack;
    return LEAT_OK;
}

/* Returns true if the kernel packs a constant.  Constants belong to one plan, so no other plan can have packed them. */
static bool has_constant(const leati_plan *plan, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    for (int i = 0; i < node->input_count && i < 32; ++i)
        if (plan->work[n].kernel.pack_inputs >> i & 1u && node->inputs[i] >= 0 &&
            leati_plan_value(plan, leati_plan_root(plan, node->inputs[i]))->storage == LEATI_IN_CONSTANT)
            return true;
    return false;
}

leat_status leati_plan_find_prepacked(leati_plan *plan, leati_prepacked_set *packs, leat_error *err) {
    for (int32_t n = 0; n < plan->node_count; ++n) {
        leati_work *work = &plan->work[n];
        leati_prepacked wanted;
        if (!work->needed || work->virtual || !describe_pack(plan, n, &wanted)) continue;
        work->next_packs = has_constant(plan, n) ? &plan->options.arena->packs : packs;
        LEATI_TRY(use_pack(work->next_packs, &wanted, &work->next_pack, err));
    }
    return LEAT_OK;
}

static void release_pack(leati_prepacked_set *packs, leati_prepacked *pack) {
    if (!pack || packs->keeps) return;
    assert(pack->users > 0);
    if (--pack->users > 0) return;
    leati_prepacked **link = &packs->first;
    while (*link != pack) link = &(*link)->next;
    *link = pack->next;
    free_pack(packs, pack);
}

void leati_plan_take_prepacked(leati_plan *plan) {
    for (int32_t n = 0; n < plan->node_count; ++n) {
        leati_work *work = &plan->work[n];
        release_pack(work->packs, work->pack);
        work->pack = work->next_pack;
        work->packs = work->next_packs;
        work->next_pack = NULL;
    }
}

void leati_plan_drop_found_prepacked(leati_plan *plan) {
    for (int32_t n = 0; plan->work && n < plan->node_count; ++n) {
        release_pack(plan->work[n].next_packs, plan->work[n].next_pack);
        plan->work[n].next_pack = NULL;
    }
}

leat_status leati_plan_prepack(leati_plan *plan, leat_error *err) {
    LEATI_TRY(note_written(plan, err));
    leati_arena *arena = plan->options.arena;
    LEATI_TRY(leati_plan_find_prepacked(plan, arena->lent ? arena->lent : &arena->packs, err));
    leati_plan_take_prepacked(plan);
    return LEAT_OK;
}

void leati_plan_release_prepacked(leati_plan *plan) {
    leati_plan_drop_found_prepacked(plan);
    for (int32_t n = 0; plan->work && n < plan->node_count; ++n)
        release_pack(plan->work[n].packs, plan->work[n].pack);
    leati_free(plan->written);
}
