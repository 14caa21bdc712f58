/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges of synchronized normalizations.  Room: train. */
#include "train/parallel/exchanges.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

int leati_exchanges_count(const leati_plan *plan) {
    int64_t doubles = 0;
    const char *label = NULL;
    int count = 0;
    while (leati_plan_exchange_get(plan, count, &doubles, &label)) ++count;
    return count;
}

static void start_sums(leati_exchanges *x, size_t from) {
    if (x->exchange.is_empty && from < x->cleared_from) {
        memset(x->buckets->values + from, 0, (x->cleared_from - from) * sizeof *x->buckets->values);
        x->cleared_from = from;
    }
    leati_buckets_ready(x->buckets, from);
}

/* Makes the next exchange.  In front of its values, each rank tells from where its gradients are final. */
static leat_status gather(void *user, const double *mine, int64_t count, const double **all,
                          leat_error *err) {
    leati_exchanges *x = user;
    double from = 0;
    x->mine[0] = (double)x->final_from;
    memmove(x->mine + 1, mine, (size_t)count * sizeof *mine);
    LEATI_TRY(leati_dist_all_gather(x->dist, x->mine, (size_t)(count + 1) * sizeof *mine, x->all, err));
    for (int rank = 0; rank < x->dist->size; ++rank) {
        const double *theirs = x->all + rank * (count + 1);
        if (theirs[0] > from) from = theirs[0];
        memmove(x->all + rank * count, theirs + 1, (size_t)count * sizeof *mine);
    }
    *all = x->all;
    ++x->done;
    start_sums(x, x->done == x->total ? x->final_from : (size_t)from);
    return LEAT_OK;
}

static leat_status reserve(leati_exchanges *x, int64_t room, leat_error *err) {
    if (room <= x->room) return LEAT_OK;
    const size_t ranks = (size_t)x->dist->size;
    leati_free(x->mine);
    leati_free(x->all);
    x->room = 0;
    x->mine = leati_calloc((size_t)room, sizeof *x->mine);
    x->all = leati_calloc(ranks * (size_t)room, sizeof *x->all);
    if (!x->mine || !x->all)
        return leati_fail_memory(err, (1 + ranks) * (size_t)room * sizeof *x->all, "the sums of the ranks");
    x->room = room;
    return LEAT_OK;
}

leat_status leati_exchanges_begin(leati_exchanges *x, leat_dist *dist, leati_buckets *buckets,
                                  const leati_plan *plan, bool is_empty, leat_error *err) {
    int64_t doubles = 0, most = 0;
    const char *label = NULL;
    x->exchange = (leati_exchange){.gather = gather, .user = x, .ranks = dist->size, .is_empty = is_empty};
    x->dist = dist;
    x->buckets = buckets;
    x->plan = plan;
    x->total = x->done = 0;
    x->final_from = x->cleared_from = buckets->count;
    while (leati_plan_exchange_get(plan, x->total, &doubles, &label)) {
        if (doubles > most) most = doubles;
        ++x->total;
    }
    return reserve(x, most + 1, err);
}

void leati_exchanges_finished(void *user, size_t from_bytes) {
    leati_exchanges *x = user;
    x->final_from = (from_bytes + sizeof(float) - 1) / sizeof(float);
    if (x->done == x->total) start_sums(x, x->final_from);
}

void leati_exchanges_complete(leati_exchanges *x) {
    const double *all = NULL;
    const char *label = NULL;
    int64_t doubles = 0;
    while (x->done < x->total && leati_plan_exchange_get(x->plan, x->done, &doubles, &label)) {
        memset(x->mine + 1, 0, (size_t)doubles * sizeof *x->mine);
        if (gather(x, x->mine + 1, doubles, &all, NULL) != LEAT_OK) return;
    }
}

void leati_exchanges_fini(leati_exchanges *x) {
    leati_free(x->mine);
    leati_free(x->all);
    *x = (leati_exchanges){0};
}
