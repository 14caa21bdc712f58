/* SPDX-License-Identifier: Apache-2.0 */
/* Sums by messages between pairs of ranks.  Room: dist. */
#include "dist/mpi/sums.h"

#include "base/error.h"
#include "base/memory.h"

/* In floats.  The memory of a large sum stays in the cache while the next sums are on the way.  Below the second number
 * a stage of whole values costs less than two stages of parts. */
enum { MOST = 1 << 16, SMALL = 1 << 13 };
enum { FIRST_TAG = 64 };

size_t leati_sums_most(void) {
    return MOST;
}

/* Groups of four: half as many stages as groups of two, and the same number of bytes in large sums. */
bool leati_sums_init(leati_sums *sums, leati_mpi *mpi, int rank, int size) {
    *sums = (leati_sums){.mpi = mpi, .rank = rank};
    static const int factors[] = {4, 2, 3, 5, 7, 11, LEATI_SUMS_FACTOR};
    int stride = 1;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; ++i)
        for (; size / stride % factors[i] == 0; stride *= factors[i]) {
            sums->factors[sums->stages] = factors[i];
            sums->strides[sums->stages++] = stride;
        }
    return stride == size;
}

void leati_sums_fini(leati_sums *sums) {
    for (int i = 0; i < LEATI_SUMS_SLOTS; ++i) leati_free(sums->received[i]);
    *sums = (leati_sums){0};
}

/* ---- A stage ---- */

typedef struct group {
    int factor, mine;  /* number of ranks, and of this rank in the group */
    int first, stride; /* the rank number `first + i stride` is that of number i */
} group;

static bool gathers(const leati_sums *s, const leati_sum *sum) {
    return sum->stage >= s->stages;
}

static int level_of(const leati_sums *s, const leati_sum *sum) {
    return gathers(s, sum) ? 2 * s->stages - 1 - sum->stage : sum->stage;
}

static group group_of(const leati_sums *s, const leati_sum *sum) {
    const int level = level_of(s, sum), factor = s->factors[level], stride = s->strides[level],
              mine = s->rank / stride % factor;
    return (group){factor, mine, s->rank - mine * stride, stride};
}

static leati_sum_range part(leati_sum_range whole, int i, int factor) {
    const size_t count = whole.end - whole.from;
    return (leati_sum_range){whole.from + count * (size_t)i / (size_t)factor,
                             whole.from + count * (size_t)(i + 1) / (size_t)factor};
}

static float *received_from(const leati_sums *s, const leati_sum *sum, const group *g, int i, size_t count) {
    return s->received[sum - s->slots] + count * (size_t)(i < g->mine ? i : i - 1);
}

/* Receives the `in` values of another rank of the group, and sends the `out` values to it. */
static int exchange(leati_sums *s, leati_sum *sum, int with, float *to, leati_sum_range in,
                    leati_sum_range out) {
    const leati_mpi_calls *calls = s->mpi->calls;
    const int tag = FIRST_TAG + (int)(sum - s->slots) * 2 * LEATI_SUMS_STAGES + sum->stage;
    int code = 0;
    if (in.end > in.from)
        code = calls->receive(s->mpi, to, (int)((in.end - in.from) * sizeof *to), with, tag,
                              &sum->messages[sum->open++]);
    if (code == 0 && out.end > out.from)
        code = calls->send(s->mpi, sum->values + out.from, (int)((out.end - out.from) * sizeof *to), with,
                           tag, &sum->messages[sum->open++]);
    return code;
}

static int begin_stage(leati_sums *s, leati_sum *sum) {
    const group g = group_of(s, sum);
    const leati_sum_range whole = sum->ranges[sum->is_small ? 0 : level_of(s, sum)],
                          mine = sum->is_small ? whole : part(whole, g.mine, g.factor);
    int code = 0;
    sum->open = 0;
    for (int turn = 1; turn < g.factor && code == 0; ++turn) {
        const int i = (g.mine + turn) % g.factor, with = g.first + i * g.stride;
        const leati_sum_range theirs = sum->is_small ? whole : part(whole, i, g.factor);
        if (gathers(s, sum) && !sum->is_small)
            code = exchange(s, sum, with, sum->values + theirs.from, theirs, mine);
        else
            code = exchange(s, sum, with, received_from(s, sum, &g, i, mine.end - mine.from), mine, theirs);
    }
    return code;
}

static void add(float *restrict to, const float *restrict from, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] += from[i];
}

/* Adds what the other ranks have sent in the order of the ranks, so that in a small sum all get the same bytes. */
static void end_stage(const leati_sums *s, leati_sum *sum) {
    const group g = group_of(s, sum);
    if (gathers(s, sum)) return;
    const leati_sum_range whole = sum->ranges[sum->is_small ? 0 : sum->stage],
                          mine = sum->is_small ? whole : part(whole, g.mine, g.factor);
    const size_t count = mine.end - mine.from;
    float *values = sum->values + mine.from;
    if (g.mine > 1) { /* the values of this rank are not among the first two, whose order does not matter */
        float *first = received_from(s, sum, &g, 0, count);
        for (int i = 1; i < g.mine; ++i) add(first, received_from(s, sum, &g, i, count), count);
        add(values, first, count);
    } else if (g.mine == 1) {
        add(values, received_from(s, sum, &g, 0, count), count);
    }
    for (int i = g.mine + 1; i < g.factor; ++i) add(values, received_from(s, sum, &g, i, count), count);
    sum->ranges[sum->stage + 1] = mine;
}

/* ---- Sums ---- */

leat_status leati_sum_begin(leati_sums *s, float *values, size_t count, leati_sum **out, int *code,
                            leat_error *err) {
    const size_t slot = s->begun++ % LEATI_SUMS_SLOTS;
    leati_sum *sum = &s->slots[slot];
    int most = 1;
    for (int i = 0; i < s->stages; ++i) most = s->factors[i] > most ? s->factors[i] : most;
    /* A small sum receives values of factor - 1 ranks, a large one less than its own size. */
    const size_t room = MOST > (size_t)(most - 1) * SMALL ? MOST : (size_t)(most - 1) * SMALL;
    *code = 0;
    if (!s->received[slot]) s->received[slot] = leati_calloc(room, sizeof *values);
    if (!s->received[slot]) return leati_fail_memory(err, room * sizeof *values, "sums of gradients");
    *sum = (leati_sum){.values = values, .count = count, .is_small = count <= SMALL};
    sum->ranges[0].end = count;
    *out = sum;
    *code = s->stages > 0 ? begin_stage(s, sum) : 0;
    return *code ? LEAT_EIO : LEAT_OK;
}

int leati_sum_advance(leati_sums *s, leati_sum *sum, bool *moved, bool *done) {
    const int last = sum->is_small ? s->stages : 2 * s->stages;
    *done = sum->stage == last;
    while (sum->open > 0) {
        bool passed = false;
        int code = s->mpi->calls->test(s->mpi, &sum->messages[sum->open - 1], &passed);
        if (code || !passed) return code;
        --sum->open;
    }
    if (*done) return 0;
    end_stage(s, sum);
    *moved = true;
    *done = ++sum->stage == last;
    return *done ? 0 : begin_stage(s, sum);
}
