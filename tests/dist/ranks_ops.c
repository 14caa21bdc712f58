/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a test of the communicator's requests; test_ranks starts several (run-ranks). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/dist.h"
#include "tensor/bfloat16.h"

static void require(bool is_right, const char *what) {
    if (is_right) return;
    fprintf(stderr, "failed: %s\n", what);
    exit(1);
}

static void check(leat_status status, const leat_error *err) {
    if (status == LEAT_OK) return;
    fprintf(stderr, "failed: %s\n", err->message);
    exit(1);
}

static void reduce(leat_dist *dist, size_t count) {
    leat_error err = {0};
    const int size = leat_dist_size(dist), rank = leat_dist_rank(dist);
    float *values = malloc((count + 1) * sizeof *values);
    require(values != NULL, "memory");
    for (size_t i = 0; i < count; ++i) values[i] = (float)((int)(i % 100) + rank);
    values[count] = -1.0f;
    check(leati_dist_all_reduce(dist, values, count, &err), &err);
    for (size_t i = 0; i < count; ++i)
        require(values[i] == (float)(size * (int)(i % 100) + size * (size - 1) / 2), "the sum");
    require(values[count] == -1.0f, "the end of the sum");
    free(values);
}

/* All ranks get the same bytes of sums that depend on the order of the ranks. */
static void reduce_alike(leat_dist *dist, size_t count) {
    leat_error err = {0};
    const int size = leat_dist_size(dist), rank = leat_dist_rank(dist);
    float *values = malloc(count * sizeof *values), *all = malloc((size_t)size * count * sizeof *values);
    require(values && all, "memory");
    for (size_t i = 0; i < count; ++i)
        values[i] = (float)((i * 2654435761u + (size_t)rank * 40503u) % 100003) / 317.0f;
    check(leati_dist_all_reduce(dist, values, count, &err), &err);
    check(leati_dist_all_gather(dist, values, count * sizeof *values, all, &err), &err);
    for (int r = 0; r < size; ++r)
        require(memcmp(all + (size_t)r * count, values, count * sizeof *values) == 0,
                "sums of the same bytes");
    free(values);
    free(all);
}

static float rounded(float x) {
    return leati_bfloat16_to_float(leati_bfloat16_of_float(x));
}

/* The value number i of a rank, which bfloat16 does not hold exactly. */
static float value_of(size_t i, int rank) {
    return (float)((int)(i * 7919 % 2003) - 1000) / 317.0f * (float)(rank + 1);
}

/* Every rank gets the bytes that the rounded values, added in the order of the ranks, give after rounding. */
static void reduce_bf16(leat_dist *dist, size_t count) {
    leat_error err = {0};
    const int size = leat_dist_size(dist), rank = leat_dist_rank(dist);
    float *values = malloc((count + 1) * sizeof *values);
    require(values != NULL, "memory");
    for (size_t i = 0; i < count; ++i) values[i] = value_of(i, rank);
    values[count] = -1.0f;
    check(leati_dist_all_reduce_bf16(dist, values, count, &err), &err);
    for (size_t i = 0; i < count; ++i) {
        float sum = 0, exact = 0, sizes = 0;
        for (int r = 0; r < size; ++r) {
            sum += rounded(value_of(i, r));
            exact += value_of(i, r);
            sizes += value_of(i, r) < 0 ? -value_of(i, r) : value_of(i, r);
        }
        require(values[i] == rounded(sum), "the sum in bfloat16");
        const float error = values[i] - exact, bound = sizes / 127.0f;
        require(-bound <= error && error <= bound, "the error of a sum in bfloat16");
    }
    require(values[count] == -1.0f, "the end of the sum in bfloat16");
    free(values);
}

/* Requests of several kinds are begun before the first is waited for: more than are under way at the same time. */
static void overlap(leat_dist *dist) {
    enum { requests = 24, floats = 64 };
    static const leati_dist_op ops[] = {LEATI_DIST_ALL_REDUCE, LEATI_DIST_ALL_REDUCE, LEATI_DIST_ALL_GATHER,
                                        LEATI_DIST_ALL_REDUCE_BF16};
    const int size = leat_dist_size(dist), rank = leat_dist_rank(dist);
    float *values = calloc((size_t)requests * floats * (size_t)size, sizeof *values);
    leati_dist_request all[requests];
    leat_error err = {0};
    require(values != NULL, "memory");
    for (int i = 0; i < requests; ++i) {
        float *data = values + (size_t)i * floats * (size_t)size;
        const leati_dist_op op = ops[i % 4];
        float *mine = data + (op == LEATI_DIST_ALL_GATHER ? rank * floats : 0);
        for (int j = 0; j < floats; ++j) mine[j] = (float)(i + rank);
        all[i] = (leati_dist_request){.op = op, .data = data, .bytes = floats * sizeof *data};
        dist->class->start(dist, &all[i]);
    }
    for (int i = requests - 1; i >= 0; --i) {
        const float *data = values + (size_t)i * floats * (size_t)size;
        check(dist->class->wait(dist, &all[i], &err), &err);
        for (int r = 0; r < size && ops[i % 4] == LEATI_DIST_ALL_GATHER; ++r)
            require(data[r * floats + floats - 1] == (float)(i + r), "values gathered beside other requests");
        const float sum = (float)(size * i + size * (size - 1) / 2);
        if (ops[i % 4] != LEATI_DIST_ALL_GATHER)
            require(data[floats - 1] == (ops[i % 4] == LEATI_DIST_ALL_REDUCE ? sum : rounded(sum)),
                    "a sum beside others");
    }
    free(values);
}

static void exchange(leat_dist *dist) {
    leat_error err = {0};
    const int size = leat_dist_size(dist), rank = leat_dist_rank(dist);
    int all[16] = {0}, from_last = rank == size - 1 ? 42 : 0, passed = 0;
    require(size <= 16, "at most 16 ranks");
    check(leati_dist_all_gather(dist, &rank, sizeof rank, all, &err), &err);
    for (int i = 0; i < size; ++i) require(all[i] == i, "what was gathered");
    check(leati_dist_broadcast(dist, &from_last, sizeof from_last, size - 1, &err), &err);
    require(from_last == 42, "the broadcast");
    if (rank > 0) check(leati_dist_receive(dist, &passed, sizeof passed, rank - 1, &err), &err);
    require(passed == rank, "what was passed on");
    ++passed;
    if (rank < size - 1) check(leati_dist_send(dist, &passed, sizeof passed, rank + 1, &err), &err);
    check(leati_dist_barrier(dist, &err), &err);
}

int main(int argc, char **argv) {
    leat_dist *dist = NULL;
    leat_error err = {0};
    require(argc == 2, "usage: ranks_ops RANKS");
    require(leat_dist_is_launched(), "the launcher is recognized");
    check(leat_dist_open(&dist, NULL, &err), &err);
    require(leat_dist_size(dist) == atoi(argv[1]), "the number of ranks");
    require(leat_dist_host(dist, 0) && leat_dist_host(dist, 0)[0], "the name of a host");
    reduce(dist, 1);
    reduce(dist, 1000);
    reduce(dist, 300000);
    reduce(dist, 8191); /* around the size from which parts are exchanged instead of whole values */
    reduce(dist, 8193);
    reduce(dist, 65537); /* two pieces, one of them of a single value */
    reduce_alike(dist, 1);
    reduce_alike(dist, 999);
    reduce_alike(dist, 70001);
    reduce_bf16(dist, 1);
    reduce_bf16(dist, 1001);
    reduce_bf16(dist, (1 << 22) + 5); /* more than one piece */
    overlap(dist);
    exchange(dist);
    if (leat_dist_rank(dist) == 0) puts("all requests are right");
    leat_dist_close(&dist);
    require(dist == NULL, "closed");
    return 0;
}
