/* SPDX-License-Identifier: Apache-2.0 */
/* Decides with all ranks whether their GPUs add up gradients themselves (decision 0708).  Room: train. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "train/parallel/parallel.h"
#include "train/parallel/values.h"

/* What a rank tells of its GPU. */
typedef struct gpu {
    unsigned char id[16];
    int32_t version; /* of the library that adds up; 0: it has none */
    int32_t reserved;
} gpu;

/* Returns a rank without the library; -1: all have it. */
static int find_without(const leat_dist *dist, const gpu *all) {
    for (int i = 0; i < dist->size; ++i)
        if (all[i].version == 0) return i;
    return -1;
}

static int count_gpus(const leat_dist *dist, const gpu *all) {
    int count = 0;
    for (int i = 0; i < dist->size; ++i) {
        int first = 0;
        while (memcmp(all[first].id, all[i].id, sizeof all[i].id) != 0) ++first;
        count += first == i;
    }
    return count;
}

static void note_host(leati_values *v, const char *why) {
    snprintf(v->note, sizeof v->note, "gradients are added up in the host's memory: %s", why);
}

/* Returns true if the GPUs can form a group; all ranks get the same answer. */
static bool can_join(leati_values *v, const leat_dist *dist, const gpu *all, const leat_error *why) {
    char text[160];
    const int without = find_without(dist, all), gpus = count_gpus(dist, all);
    if (without >= 0 && without == dist->rank) {
        note_host(v, why->message);
    } else if (without >= 0) {
        snprintf(text, sizeof text, "rank %d (host %.64s) has no NCCL", without, dist->peers[without].host);
        note_host(v, text);
    } else if (gpus < dist->size) {
        snprintf(text, sizeof text, "%d ranks share %d GPU%s", dist->size, gpus, gpus == 1 ? "" : "s");
        note_host(v, text);
    }
    return without < 0 && gpus == dist->size;
}

/* Fails if the communicator has noticed that a rank is lost; its own call has the message. */
static leat_status check_ranks(void *user, leat_error *err) {
    leat_dist *dist = user;
    return dist->class->is_broken(dist) ? leati_dist_barrier(dist, err) : LEAT_OK;
}

/* Rank 0 names the group; a failure there is told by the agreement. */
static leat_status join(const leati_values *v, leat_dist *dist, leat_error *err) {
    leati_group_options options = {.rank = dist->rank,
                                   .size = dist->size,
                                   .check = check_ranks,
                                   .user = dist};
    leat_status status = LEAT_OK;
    if (dist->rank == 0) status = v->device->groups->make_name(v->device, &options.name, err);
    LEATI_TRY(leati_parallel_agree(dist, status, err));
    LEATI_TRY(leati_dist_broadcast(dist, &options.name, sizeof options.name, 0, err));
    return leati_parallel_agree(dist, v->device->groups->join(v->device, &options, err), err);
}

static void note_group(leati_values *v, int version) {
    snprintf(v->note, sizeof v->note, "gradients are added up on the GPUs by NCCL %d.%d.%d", version / 10000,
             version / 100 % 100, version % 100);
}

leat_status leati_values_join(leati_values *v, leat_dist *dist, bool wanted, leat_error *err) {
    if (!v->device || dist->size == 1) return LEAT_OK;
    if (!wanted) {
        note_host(v, "the order of the additions is leat's own");
        return LEAT_OK;
    }
    leat_error why = {0};
    gpu mine = {0}, *all = leati_calloc((size_t)dist->size, sizeof *all);
    int version = 0;
    if (!all) return leati_fail_memory(err, (size_t)dist->size * sizeof *all, "the GPUs of the ranks");
    memcpy(mine.id, v->device->id, sizeof mine.id);
    if (v->device->groups->find(v->device, &version, &why) == LEAT_OK) mine.version = version;
    leat_status status = leati_dist_all_gather(dist, &mine, sizeof mine, all, err);
    const bool joins = status == LEAT_OK && can_join(v, dist, all, &why);
    leati_free(all);
    if (!joins) return status;
    status = join(v, dist, &why);
    v->in_group = status == LEAT_OK;
    if (v->in_group) {
        note_group(v, version);
        v->device->class->release_host(v->device, v->gradients);
        v->gradients = NULL;
    } else {
        note_host(v, why.message);
        v->device->groups->leave(v->device);
    }
    if (status == LEAT_OK || !dist->class->is_broken(dist)) return LEAT_OK;
    if (err) *err = why;
    return status;
}
