/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as pieces under way.  Room: dist. */
#include "dist/mpi/pipeline.h"

#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "tensor/bfloat16.h"

/* The largest piece of most requests, in bytes: MPI counts in int. */
enum { PIECE = 1 << 28, TAG = 1 };
/* The largest piece of a sum in bfloat16, in floats. */
enum { HALF_PIECE = 1 << 22 };

static leat_status fail(const leati_pipeline *p, int code, const char *call, leat_error *err) {
    char text[512];
    p->mpi->calls->explain(p->mpi, code, text, sizeof text);
    return leati_fail(err, LEAT_EIO, "%s: %s: %s", p->mpi->calls->title, call, text);
}

void leati_pipeline_init(leati_pipeline *p, leati_mpi *mpi, int rank, int size) {
    *p = (leati_pipeline){.mpi = mpi, .size = size};
    p->has_sums = leati_sums_init(&p->sums, mpi, rank, size);
}

void leati_pipeline_fini(leati_pipeline *p) {
    leati_sums_fini(&p->sums);
    leati_free(p->halves);
    p->halves = NULL;
}

void leati_pipeline_append(leati_pipeline *p, leati_dist_request *request) {
    request->next = NULL;
    if (p->next)
        p->last->next = request;
    else
        p->next = request;
    p->last = request;
}

/* ---- Sums in bfloat16 ---- */

/* The memory of a piece: the rounded values of this rank, the blocks of all ranks for this one, and their sums. */
typedef struct halves {
    size_t count, block; /* values of the piece; values that each rank adds up */
    uint16_t *mine, *theirs, *sums;
} halves;

static halves halves_of(const leati_pipeline *p, const leati_piece *piece) {
    const size_t ranks = (size_t)p->size, count = piece->bytes / sizeof(float),
                 block = (count + ranks - 1) / ranks;
    uint16_t *mine = p->halves, *theirs = mine + ranks * block;
    return (halves){count, block, mine, theirs, theirs + ranks * block};
}

static leat_status reserve_halves(leati_pipeline *p, size_t count, leat_error *err) {
    const size_t ranks = (size_t)p->size, room = (2 * ranks + 1) * ((count + ranks - 1) / ranks);
    if (room <= p->half_count) return LEAT_OK;
    leati_free(p->halves);
    p->half_count = 0;
    p->halves = leati_calloc(room, sizeof *p->halves);
    if (!p->halves) return leati_fail_memory(err, room * sizeof *p->halves, "sums in bfloat16");
    p->half_count = room;
    return LEAT_OK;
}

/* First, each rank gets one block of the rounded values of all ranks. */
static leat_status begin_halves(leati_pipeline *p, leati_piece *piece, leat_error *err) {
    const float *values = (const float *)(const void *)((char *)piece->request->data + piece->offset);
    LEATI_TRY(reserve_halves(p, piece->bytes / sizeof(float), err));
    const halves h = halves_of(p, piece);
    for (size_t i = 0; i < h.count; ++i) h.mine[i] = leati_bfloat16_of_float(values[i]);
    memset(h.mine + h.count, 0, ((size_t)p->size * h.block - h.count) * sizeof *h.mine);
    piece->call = "MPI_Ialltoall";
    int code =
        p->mpi->calls->all_to_all(p->mpi, h.mine, (int)(h.block * sizeof *h.mine), h.theirs, &piece->mpi);
    return code ? fail(p, code, piece->call, err) : LEAT_OK;
}

/* Then it adds up this block in the order of the ranks and rounds the sums, and all ranks gather the blocks. */
static leat_status add_halves(leati_pipeline *p, leati_piece *piece, leat_error *err) {
    const halves h = halves_of(p, piece);
    for (size_t i = 0; i < h.block; ++i) {
        float sum = 0;
        for (int rank = 0; rank < p->size; ++rank)
            sum += leati_bfloat16_to_float(h.theirs[(size_t)rank * h.block + i]);
        h.sums[i] = leati_bfloat16_of_float(sum);
    }
    piece->gathers = true;
    piece->call = "MPI_Iallgather";
    piece->mpi = (leati_mpi_request){0};
    int code =
        p->mpi->calls->all_gather(p->mpi, h.sums, (int)(h.block * sizeof *h.sums), h.mine, &piece->mpi);
    return code ? fail(p, code, piece->call, err) : LEAT_OK;
}

static void end_halves(const leati_pipeline *p, const leati_piece *piece) {
    float *values = (float *)(void *)((char *)piece->request->data + piece->offset);
    const halves h = halves_of(p, piece);
    for (size_t i = 0; i < h.count; ++i) values[i] = leati_bfloat16_to_float(h.mine[i]);
}

/* ---- Pieces ---- */

static leati_piece *piece_at(leati_pipeline *p, unsigned i) {
    return &p->pieces[(p->first + i) % LEATI_PIPELINE_PIECES];
}

static bool is_halves(const leati_dist_request *request) {
    return request->op == LEATI_DIST_ALL_REDUCE_BF16;
}

static size_t most_bytes(const leati_dist_request *request) {
    switch (request->op) {
    case LEATI_DIST_ALL_REDUCE: return leati_sums_most() * sizeof(float);
    case LEATI_DIST_ALL_REDUCE_BF16: return HALF_PIECE * sizeof(float);
    case LEATI_DIST_ALL_GATHER: return request->bytes;
    default: return PIECE;
    }
}

static leat_status begin_sum(leati_pipeline *p, leati_piece *piece, leat_error *err) {
    float *values = (float *)(void *)((char *)piece->request->data + piece->offset);
    int code = 0;
    leat_status status = LEAT_OK;
    if (p->has_sums && piece->bytes > 0) {
        piece->call = "MPI_Isend";
        status = leati_sum_begin(&p->sums, values, piece->bytes / sizeof *values, &piece->sum, &code, err);
    } else {
        piece->call = "MPI_Iallreduce";
        code = p->mpi->calls->all_reduce(p->mpi, values, (int)(piece->bytes / sizeof *values), &piece->mpi);
    }
    return code ? fail(p, code, piece->call, err) : status;
}

static leat_status call(leati_pipeline *p, leati_piece *piece, leat_error *err) {
    const leati_mpi_calls *calls = p->mpi->calls;
    leati_mpi *mpi = p->mpi;
    const leati_dist_request *r = piece->request;
    char *data = r->data ? (char *)r->data + piece->offset : NULL;
    const int bytes = (int)piece->bytes;
    int code = 0;
    switch (r->op) {
    case LEATI_DIST_ALL_REDUCE_BF16: return begin_halves(p, piece, err);
    case LEATI_DIST_ALL_REDUCE: return begin_sum(p, piece, err);
    case LEATI_DIST_ALL_GATHER:
        piece->call = "MPI_Iallgather";
        code = calls->all_gather(mpi, r->mine, bytes, data, &piece->mpi);
        break;
    case LEATI_DIST_BROADCAST:
        piece->call = "MPI_Ibcast";
        code = calls->broadcast(mpi, data, bytes, r->peer, &piece->mpi);
        break;
    case LEATI_DIST_SEND:
        piece->call = "MPI_Isend";
        code = calls->send(mpi, data, bytes, r->peer, TAG, &piece->mpi);
        break;
    case LEATI_DIST_RECEIVE:
        piece->call = "MPI_Irecv";
        code = calls->receive(mpi, data, bytes, r->peer, TAG, &piece->mpi);
        break;
    case LEATI_DIST_BARRIER:
        piece->call = "MPI_Ibarrier";
        code = calls->barrier(mpi, &piece->mpi);
        break;
    }
    return code ? fail(p, code, piece->call, err) : LEAT_OK;
}

static unsigned count_sums(leati_pipeline *p) {
    unsigned sums = 0;
    for (unsigned i = 0; i < p->count; ++i) sums += piece_at(p, i)->sum != NULL;
    return sums;
}

/* Sums in bfloat16 make two calls one after the other.  Between them no other piece may begin, since all ranks must
 * make all calls in the same order; nor may two of them share the memory. */
static bool may_begin(leati_pipeline *p) {
    if (!p->next || p->count == LEATI_PIPELINE_PIECES) return false;
    if (p->next->op == LEATI_DIST_ALL_REDUCE && count_sums(p) == LEATI_SUMS_SLOTS) return false;
    return p->count == 0 || (!is_halves(p->next) && !is_halves(p->pieces[p->first].request));
}

static leat_status begin_piece(leati_pipeline *p, leat_error *err) {
    leati_dist_request *request = p->next;
    leati_piece *piece = piece_at(p, p->count);
    const size_t rest = request->bytes - p->offset, most = most_bytes(request);
    if (request->op == LEATI_DIST_ALL_GATHER && request->bytes > INT_MAX)
        return leati_fail(err, LEAT_ENOTSUP, "at most %d bytes of each rank can be gathered", INT_MAX);
    if (p->offset == 0) request->begun_ns = leati_now_ns();
    *piece = (leati_piece){.request = request, .offset = p->offset, .bytes = rest < most ? rest : most};
    piece->is_last = piece->bytes == rest;
    p->offset = piece->is_last ? 0 : p->offset + piece->bytes;
    if (piece->is_last) p->next = request->next;
    ++p->count;
    return call(p, piece, err);
}

/* The time of a request is that for which it alone kept the communicator busy. */
static void finish(leati_pipeline *p, leati_dist_request *request) {
    const int64_t now = leati_now_ns(), since = request->begun_ns;
    request->busy_ns = now - (since > p->freed_ns ? since : p->freed_ns);
    p->freed_ns = now;
    atomic_store_explicit(&request->done, true, memory_order_release);
}

/* Looks whether a piece is done, and what follows in it. */
static leat_status advance_piece(leati_pipeline *p, leati_piece *piece, bool *moved, leat_error *err) {
    int code = 0;
    if (piece->is_done) return LEAT_OK;
    if (piece->sum)
        code = leati_sum_advance(&p->sums, piece->sum, moved, &piece->is_done);
    else
        code = p->mpi->calls->test(p->mpi, &piece->mpi, &piece->is_done);
    if (code) return fail(p, code, piece->call, err);
    if (!piece->is_done || !is_halves(piece->request)) return LEAT_OK;
    if (piece->gathers) {
        end_halves(p, piece);
        return LEAT_OK;
    }
    piece->is_done = false;
    return add_halves(p, piece, err);
}

/* Ends the oldest pieces, if they are done. */
static void end_pieces(leati_pipeline *p, bool *moved, int *finished) {
    while (p->count > 0 && p->pieces[p->first].is_done) {
        const leati_piece *piece = &p->pieces[p->first];
        p->first = (p->first + 1) % LEATI_PIPELINE_PIECES;
        --p->count;
        *moved = true;
        if (!piece->is_last) continue;
        finish(p, piece->request);
        ++*finished;
    }
}

leat_status leati_pipeline_advance(leati_pipeline *p, bool *moved, int *finished, leat_error *err) {
    *moved = false;
    *finished = 0;
    for (unsigned i = 0; i < p->count; ++i) LEATI_TRY(advance_piece(p, piece_at(p, i), moved, err));
    end_pieces(p, moved, finished);
    while (may_begin(p)) {
        *moved = true;
        LEATI_TRY(begin_piece(p, err));
    }
    return LEAT_OK;
}

void leati_pipeline_drop(leati_pipeline *p) {
    for (; p->count > 0; --p->count, p->first = (p->first + 1) % LEATI_PIPELINE_PIECES) {
        const leati_piece *piece = &p->pieces[p->first];
        if (piece->is_last) atomic_store_explicit(&piece->request->done, true, memory_order_release);
    }
    for (leati_dist_request *next = NULL; p->next; p->next = next) {
        next = p->next->next;
        atomic_store_explicit(&p->next->done, true, memory_order_release);
    }
}
