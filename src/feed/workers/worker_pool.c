/* SPDX-License-Identifier: Apache-2.0 */
/* One interface for worker threads and worker processes.  Room: feed. */
#include "feed/workers/worker_pool.h"

#include "base/error.h"
#include "feed/workers/process.h"

leat_status leati_worker_pool_start(leati_worker_pool *pool, leat_error *err) {
    const leati_worker_table *table = &pool->work->table;
    if (table->count == 0) return LEAT_OK;
    if (!table->between_processes) return leati_threads_start(&pool->threads, pool->work, err);
    return leati_processes_start(&pool->helper, pool->work, err);
}

leat_status leati_worker_pool_check(leati_worker_pool *pool, leat_error *err) {
    return pool->work->table.between_processes ? leati_processes_check(&pool->helper, err) : LEAT_OK;
}

int leati_worker_pool_stop(leati_worker_pool *pool, int64_t patience_ns) {
    if (!pool->work || pool->work->table.count == 0 || !pool->work->table.shared) return 0;
    leati_worker_table_retire(&pool->work->table);
    leati_processes_dismiss(&pool->helper, &pool->work->table);
    return leati_threads_join(&pool->threads, patience_ns);
}

leat_status leati_worker_pool_renew(leati_worker_pool *pool, leat_error *err) {
    if (pool->work->table.between_processes && leati_processes_renew(&pool->helper, pool->work))
        return LEAT_OK;
    leati_worker_pool_stop(pool, -1);
    return leati_worker_pool_start(pool, err);
}

void leati_worker_pool_fini(leati_worker_pool *pool) {
    leati_threads_fini(&pool->threads);
    leati_processes_fini(&pool->helper);
}
