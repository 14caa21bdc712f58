/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of gradients in buckets.  Room: train. */
#include "train/parallel/buckets.h"

#include "base/error.h"
#include "base/os/clock.h"

/* A communicator needs a fixed time for each sum (latency) and a time for each byte.  Buckets of this size cost at most
 * a quarter more than one large sum. */
static size_t choose(const int64_t *ns, const size_t *sizes, int count) {
    const double best = (double)ns[count - 1] / (double)sizes[count - 1];
    for (int i = 0; i < count; ++i)
        if ((double)ns[i] / (double)sizes[i] <= 1.25 * best) return sizes[i];
    return sizes[count - 1];
}

leat_status leati_buckets_measure(leati_buckets *b, leat_dist *dist, float *values, size_t count,
                                  leat_error *err) {
    enum { most = 8, rounds = 3 };
    const size_t smallest = 16384, largest = 4194304; /* floats: 64 KiB and 16 MiB */
    int64_t ns[most] = {0};
    size_t sizes[most] = {0};
    int tried = 0;
    b->dist = dist;
    b->size = count;
    if (dist->size == 1 || count <= smallest) return LEAT_OK;
    for (size_t size = smallest; size <= count && size <= largest && tried < most; size *= 4) {
        for (size_t i = 0; i < size; ++i) values[i] = 0;
        for (int round = 0; round < rounds; ++round) {
            const int64_t start = leati_now_ns();
            LEATI_TRY(b->bf16 ? leati_dist_all_reduce_bf16(dist, values, size, err)
                              : leati_dist_all_reduce(dist, values, size, err));
            const int64_t time = leati_now_ns() - start;
            if (round == 0 || time < ns[tried]) ns[tried] = time;
        }
        sizes[tried++] = size;
    }
    uint64_t chosen = choose(ns, sizes, tried);
    LEATI_TRY(leati_dist_broadcast(dist, &chosen, sizeof chosen, 0, err));
    b->size = (size_t)chosen;
    return LEAT_OK;
}

void leati_buckets_begin(leati_buckets *b, float *values, size_t count) {
    const size_t least = (count + LEATI_BUCKETS_MAX - 1) / LEATI_BUCKETS_MAX;
    if (b->size < least) b->size = least;
    b->values = values;
    b->count = count;
    b->started = 0;
    b->total = count > 0 ? (int)((count + b->size - 1) / b->size) : 0;
}

void leati_buckets_ready(leati_buckets *b, size_t from) {
    while (b->started < b->total) {
        const size_t end = b->count - (size_t)b->started * b->size, start = end > b->size ? end - b->size : 0;
        if (start < from) return;
        leati_dist_request *request = &b->requests[b->started++];
        /* The gradients of the first layer are final at the end of the backward pass. */
        *request = (leati_dist_request){.op = b->bf16 ? LEATI_DIST_ALL_REDUCE_BF16 : LEATI_DIST_ALL_REDUCE,
                                        .data = b->values + start,
                                        .bytes = (end - start) * sizeof *b->values,
                                        .is_awaited = b->started == b->total};
        b->dist->class->start(b->dist, request);
    }
}

leat_status leati_buckets_finish(leati_buckets *b, leat_error *err) {
    leat_status status = LEAT_OK;
    for (int i = 0; i < b->started; ++i) {
        leat_status one = b->dist->class->wait(b->dist, &b->requests[i], status == LEAT_OK ? err : NULL);
        if (status == LEAT_OK) status = one;
        b->busy_ns += b->requests[i].busy_ns;
    }
    return status;
}
