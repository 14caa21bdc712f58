/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated NCCL: sums between processes of one machine, through shared memory.  A sum is two pieces of work in its
 * stream, which are held back like all others: one tells this process's values, the next one adds up the values of all
 * processes, once these are there.  LEAT_SIM_NCCL=none: the library is missing. */
#include "backends/cuda/driver/nccl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cuda/sim/calls.h"
#include "cuda/sim/memory.h"
#include "cuda/sim/queue.h"

namespace {

enum { success = 0, system_error = 2, invalid_argument = 4, invalid_usage = 5, in_progress = 7 };
constexpr int most_ranks = 8;
constexpr size_t piece = 16384; /* floats */

struct shared {
    std::atomic<int> joined;
    std::atomic<int> gpu[most_ranks];                          /* of a rank, from 1; 0: not joined */
    std::atomic<uint64_t> told[most_ranks], added[most_ranks]; /* pieces */
    float values[most_ranks][2][piece];
};

} // namespace

struct leati_nccl_comm {
    std::string name;
    shared *memory;
    int rank, size;
    uint64_t pieces = 0; /* that were given to streams */
    std::shared_ptr<bool> aborted = std::make_shared<bool>(false);
};

namespace {

int get_version(int *version) {
    *version = 22809;
    return success;
}

const char *error_string(int result) {
    switch (result) {
    case success: return "no error";
    case system_error: return "unhandled system error";
    case invalid_argument: return "invalid argument";
    case invalid_usage: return "invalid usage: two processes use one GPU";
    default: return "operation in progress";
    }
}

int get_id(leati_nccl_id *out) {
    static int count;
    snprintf(out->bytes, sizeof out->bytes, "/leat-sim-nccl-%d-%d", static_cast<int>(getpid()), count++);
    int file = shm_open(out->bytes, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0) return system_error;
    int result = ftruncate(file, sizeof(shared)) == 0 ? success : system_error;
    close(file);
    return result;
}

int init(leati_nccl_comm **out, int size, leati_nccl_id id, int rank, leati_nccl_config *config) {
    std::lock_guard<std::recursive_mutex> hold(sim_mutex());
    if (size < 1 || size > most_ranks || rank < 0 || rank >= size) return invalid_argument;
    if (config->magic != LEATI_NCCL_MAGIC || config->size != sizeof *config || config->blocking != 0)
        return invalid_argument;
    int file = shm_open(id.bytes, O_RDWR, 0600);
    if (file < 0) return system_error;
    void *memory = mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return system_error;
    *out = new leati_nccl_comm{id.bytes, static_cast<shared *>(memory), rank, size};
    (*out)->memory->gpu[rank] = 1 + sim_current_gpu();
    ++(*out)->memory->joined;
    return in_progress;
}

int state(leati_nccl_comm *comm, int *result) {
    std::lock_guard<std::recursive_mutex> hold(sim_mutex());
    const shared &m = *comm->memory;
    *result = m.joined < comm->size ? in_progress : success;
    if (*result == in_progress) return success;
    shm_unlink(comm->name.c_str());
    for (int i = 0; i < comm->size; ++i)
        for (int j = 0; j < i; ++j)
            if (m.gpu[i] == m.gpu[j]) *result = invalid_usage;
    return success;
}

/* ---- Sums ---- */

/* A process may tell the next piece when all have added up the one before the last, which was in the same place. */
bool can_tell(const leati_nccl_comm &comm, uint64_t number) {
    for (int i = 0; i < comm.size; ++i)
        if (number >= comm.memory->added[i] + 2) return false;
    return true;
}

bool can_add(const leati_nccl_comm &comm, uint64_t number) {
    for (int i = 0; i < comm.size; ++i)
        if (comm.memory->told[i] <= number) return false;
    return true;
}

void tell(const leati_nccl_comm &comm, uint64_t number, const float *from, size_t count) {
    memcpy(comm.memory->values[comm.rank][number % 2], from, count * sizeof *from);
    comm.memory->told[comm.rank] = number + 1;
}

void add_up(const leati_nccl_comm &comm, uint64_t number, float *to, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        float sum = 0;
        for (int rank = 0; rank < comm.size; ++rank) sum += comm.memory->values[rank][number % 2][i];
        to[i] = sum;
    }
    comm.memory->added[comm.rank] = number + 1;
}

CUresult add_piece(const leati_nccl_comm *comm, uint64_t number, const float *from, float *to, size_t count,
                   CUstream stream) {
    const leati_nccl_comm copy = *comm;
    sim_work telling, adding;
    telling.what = "ncclAllReduce, which reads its values";
    telling.ready = [=] { return *copy.aborted || can_tell(copy, number); };
    telling.run = [=] {
        if (!*copy.aborted) tell(copy, number, from, count);
    };
    adding.what = "ncclAllReduce, which writes the sums";
    adding.ready = [=] { return *copy.aborted || can_add(copy, number); };
    adding.run = [=] {
        if (!*copy.aborted) add_up(copy, number, to, count);
    };
    CUresult result = sim_stream_add(stream, telling);
    return result == CUDA_SUCCESS ? sim_stream_add(stream, adding) : result;
}

int all_reduce(const void *from, void *to, size_t count, int type, int op, leati_nccl_comm *comm,
               CUstream stream) {
    std::lock_guard<std::recursive_mutex> hold(sim_mutex());
    if (type != LEATI_NCCL_FLOAT32 || op != LEATI_NCCL_SUM || sim_is_capturing(stream))
        return invalid_argument;
    for (const void *memory : {from, static_cast<const void *>(to)}) {
        const sim_allocation *a = sim_find(reinterpret_cast<uintptr_t>(memory), count * sizeof(float));
        if (!a || a->kind != sim_on_device) sim_report("ncclAllReduce: an address is not in device memory");
    }
    for (size_t at = 0; at < count; at += piece)
        if (add_piece(comm, comm->pieces++, static_cast<const float *>(from) + at,
                      static_cast<float *>(to) + at, std::min(piece, count - at), stream) != CUDA_SUCCESS)
            return system_error;
    return success;
}

/* ---- The end ---- */

int finalize(leati_nccl_comm *) {
    return success;
}

/* Work of the communicator may still be pending: its memory stays mapped. */
int destroy(leati_nccl_comm *comm) {
    std::lock_guard<std::recursive_mutex> hold(sim_mutex());
    shm_unlink(comm->name.c_str());
    delete comm;
    return success;
}

int abort_sums(leati_nccl_comm *comm) {
    std::lock_guard<std::recursive_mutex> hold(sim_mutex());
    *comm->aborted = true;
    return destroy(comm);
}

} // namespace

extern "C" leat_status leati_cuda_load_nccl(leati_nccl_api *api, leat_error *err) {
    const char *text = getenv("LEAT_SIM_NCCL");
    if (text && strcmp(text, "none") == 0)
        return leati_fail(err, LEAT_ENOTSUP,
                          "NCCL was not found: the library libnccl.so.2 is missing; install NCCL 2");
    *api = {get_version, error_string, get_id, init, state, all_reduce, finalize, destroy, abort_sums};
    return LEAT_OK;
}
