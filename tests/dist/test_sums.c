/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over ranks that exist in one process: messages lie in a list until they are received.  So any number of ranks
 * can be tried, and the ranks may advance in any order. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "dist/mpi/pipeline.h"

enum { MOST_RANKS = 40, MESSAGES = 8192 };

typedef struct message {
    int from, to, tag;
    const void *data; /* NULL: not sent yet */
    void *place;      /* NULL: no memory was given to receive it */
    int bytes;
    bool is_done;
} message;

/* A sum that MPI makes: all ranks give their values, and then all get the sum. */
typedef struct whole_sum {
    float *values[MOST_RANKS];
    int count, given;
} whole_sum;

typedef struct world {
    int size, messages, sums;
    message list[MESSAGES];
    whole_sum whole[64];
    int begun[MOST_RANKS]; /* whole sums by rank */
} world;

typedef struct member {
    leati_mpi mpi; /* the first member */
    world *world;
    int rank;
    leati_pipeline pipeline;
} member;

/* Finds the first message between two ranks that lacks its data (or its place), or appends one. */
static int find(world *w, int from, int to, int tag, bool sends) {
    for (int i = 0; i < w->messages; ++i) {
        const message *m = &w->list[i];
        if (m->from == from && m->to == to && m->tag == tag && !m->is_done && !(sends ? m->data : m->place))
            return i;
    }
    assert_true(w->messages < MESSAGES);
    w->list[w->messages] = (message){.from = from, .to = to, .tag = tag};
    return w->messages++;
}

static void pass(message *m, int bytes, leati_mpi_request *request, int number) {
    if (m->data && m->place) {
        assert_int_equal(m->bytes, bytes);
        memcpy(m->place, m->data, (size_t)bytes);
        m->is_done = true;
    }
    m->bytes = bytes;
    request->handle = 1 + (uint64_t)number;
}

static int send(leati_mpi *mpi, const void *data, int bytes, int to, int tag, leati_mpi_request *request) {
    member *m = (member *)mpi;
    const int number = find(m->world, m->rank, to, tag, true);
    m->world->list[number].data = data;
    pass(&m->world->list[number], bytes, request, number);
    return 0;
}

static int receive(leati_mpi *mpi, void *data, int bytes, int from, int tag, leati_mpi_request *request) {
    member *m = (member *)mpi;
    const int number = find(m->world, from, m->rank, tag, false);
    m->world->list[number].place = data;
    pass(&m->world->list[number], bytes, request, number);
    return 0;
}

static int all_reduce(leati_mpi *mpi, float *values, int count, leati_mpi_request *request) {
    member *m = (member *)mpi;
    whole_sum *sum = &m->world->whole[m->world->begun[m->rank]++];
    sum->values[m->rank] = values;
    sum->count = count;
    request->handle = MESSAGES + (uint64_t)(sum - m->world->whole);
    if (++sum->given < m->world->size) return 0;
    for (int i = 0; i < count; ++i) {
        float all = 0;
        for (int rank = 0; rank < m->world->size; ++rank) all += sum->values[rank][i];
        for (int rank = 0; rank < m->world->size; ++rank) sum->values[rank][i] = all;
    }
    ++m->world->sums;
    return 0;
}

static int test(leati_mpi *mpi, leati_mpi_request *request, bool *done) {
    const world *w = ((const member *)mpi)->world;
    *done = request->handle >= MESSAGES ? w->whole[request->handle - MESSAGES].given == w->size
                                        : w->list[request->handle - 1].is_done;
    return 0;
}

static const leati_mpi_calls calls = {
    .name = "test", .all_reduce = all_reduce, .send = send, .receive = receive, .test = test};

/* Makes sums of several sizes at once: `counts` ends with 0. */
static void sum_on(int size, const size_t *counts) {
    static member members[MOST_RANKS];
    leati_dist_request requests[MOST_RANKS][8];
    world *w = calloc(1, sizeof *w);
    leat_error err = {0};
    int kinds = 0, left = 0;
    assert_non_null(w);
    w->size = size;
    while (counts[kinds] > 0) ++kinds;
    for (int rank = 0; rank < size; ++rank) {
        member *m = &members[rank];
        *m = (member){.mpi.calls = &calls, .world = w, .rank = rank};
        leati_pipeline_init(&m->pipeline, &m->mpi, rank, size);
        for (int k = 0; k < kinds; ++k, ++left) {
            float *values = calloc(counts[k], sizeof *values);
            assert_non_null(values);
            for (size_t i = 0; i < counts[k]; ++i) values[i] = (float)(i % 101) + (float)rank / 3.0f;
            requests[rank][k] = (leati_dist_request){.op = LEATI_DIST_ALL_REDUCE,
                                                     .data = values,
                                                     .bytes = counts[k] * sizeof *values};
            leati_pipeline_append(&m->pipeline, &requests[rank][k]);
        }
    }
    for (unsigned turn = 0; left > 0; ++turn) {
        bool moved = false;
        int finished = 0,
            rank = (int)(turn * 2654435761u >> 8) % size; /* in any order, some more often than others */
        assert_int_equal(leati_pipeline_advance(&members[rank].pipeline, &moved, &finished, &err), LEAT_OK);
        left -= finished;
        assert_true(turn < 1u << 24);
    }
    for (int rank = size - 1; rank >= 0; --rank) {
        for (int k = 0; k < kinds; ++k) {
            float *values = requests[rank][k].data;
            for (size_t i = 0; i < counts[k]; ++i)
                assert_float_equal(values[i], (float)size * ((float)(i % 101) + (float)(size - 1) / 6.0f),
                                   0.01f);
            assert_memory_equal(values, requests[0][k].data, counts[k] * sizeof *values);
            free(values);
        }
        leati_pipeline_fini(&members[rank].pipeline);
    }
    assert_int_equal(w->sums > 0, size == 17 || size == 38);
    free(w);
}

static void any_number_of_ranks(void **state) {
    static const size_t counts[] = {1, 10, 8192, 8193, 9000, 0};
    static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 17, 24, 36, 38, 40};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) sum_on(sizes[i], counts);
}

/* More pieces than may be under way. */
static void many_pieces(void **state) {
    static const size_t counts[] = {1 << 19, 5, (1 << 18) + 1, 0};
    static const int sizes[] = {2, 3, 4, 6};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) sum_on(sizes[i], counts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_ranks),
        cmocka_unit_test(many_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
