/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and destroys groups of feeds.  Room: feed. */
#include "feed/group.h"

#include "base/os/clock.h"
#include "base/error.h"
#include "base/os/fork.h"
#include "base/memory.h"
#include "feed/stream.h"

bool leati_group_is_inherited(const leati_group *group) {
    return group->fork_depth != leati_fork_depth();
}

static void free_group(void *pointer) {
    leati_group *group = pointer;
    for (int i = 0; i < group->feed_count; ++i) leati_worker_fini(&group->feeds[i].inline_worker);
    leati_worker_pool_fini(&group->pool);
    for (int i = 0; i < group->feed_count; ++i) leati_service_unmap(&group->feeds[i].service);
    leati_worker_table_fini(&group->work.table);
    leati_worker_table_fini(&group->no_workers);
    leati_free(group->services);
    leati_free(group->feeds);
    leati_free(group);
}

leat_status leati_group_create(leati_group **out, int count, leat_error *err) {
    *out = NULL;
    leati_group *group = leati_calloc(1, sizeof *group);
    if (!group) return leati_fail_memory(err, sizeof *group, "a group of feeds");
    group->fork_depth = leati_fork_depth();
    group->pool.work = &group->work;
    group->pool.threads.release = free_group;
    group->pool.threads.owner = group;
    atomic_store(&group->pool.threads.holders, 1);
    group->opened_ns = leati_now_ns();
    group->patience_ns = -1;
    group->feeds = leati_calloc((size_t)count, sizeof *group->feeds);
    group->services = leati_calloc((size_t)count, sizeof(leati_service *));
    group->work.services = group->services;
    if (!group->feeds || !group->services) {
        free_group(group);
        return leati_fail_memory(err, (size_t)count * sizeof *group->feeds, "feeds");
    }
    group->feed_count = count;
    *out = group;
    return LEAT_OK;
}

leat_status leati_group_renew(leati_group *group, leat_error *err) {
    leat_error why = {0};
    leat_status status = leati_worker_pool_renew(&group->pool, &why);
    if (status == LEAT_OK) return LEAT_OK;
    leati_pool_work_fail(&group->work, &why); /* The other feeds of the group have no workers now, either. */
    if (err) *err = why;
    return status;
}

int leati_group_destroy(leati_group *group) {
    if (leati_group_is_inherited(group)) { /* The workers belong to the parent. */
        free_group(group);
        return 0;
    }
    for (int i = 0; i < group->feed_count; ++i)
        if (group->feeds[i].service.ring.shared) leati_ring_stop(&group->feeds[i].service.ring);
    int left = leati_worker_pool_stop(&group->pool, group->patience_ns);
    for (int i = 0; i < group->feed_count; ++i)
        if (group->feeds[i].inline_begun) leati_worker_end(&group->feeds[i].inline_worker);
    if (leati_threads_let_go(&group->pool.threads)) free_group(group);
    return left;
}
