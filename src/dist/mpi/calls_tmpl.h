/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of MPI for one ABI.  The including file defines: handle, the type of MPI's handles; IN_PLACE and
 * IGNORED, the addresses that stand for MPI_IN_PLACE and MPI_STATUS_IGNORE; find_constants, which fills
 * mpi->constants.  Room: dist. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Every function: name, and the types of its arguments, as in the standard MPI 3.1. */
#define FUNCTIONS(X)                                                                                         \
    X(Initialized, (int *))                                                                                  \
    X(Query_thread, (int *))                                                                                 \
    X(Init_thread, (int *, char ***, int, int *))                                                            \
    X(Comm_free, (handle *))                                                                                 \
    X(Comm_dup, (handle, handle *))                                                                          \
    X(Comm_set_errhandler, (handle, handle))                                                                 \
    X(Comm_rank, (handle, int *))                                                                            \
    X(Comm_size, (handle, int *))                                                                            \
    X(Iallreduce, (const void *, void *, int, handle, handle, handle, handle *))                             \
    X(Iallgather, (const void *, int, handle, void *, int, handle, handle, handle *))                        \
    X(Ialltoall, (const void *, int, handle, void *, int, handle, handle, handle *))                         \
    X(Ibcast, (void *, int, handle, int, handle, handle *))                                                  \
    X(Ibarrier, (handle, handle *))                                                                          \
    X(Isend, (const void *, int, handle, int, int, handle, handle *))                                        \
    X(Irecv, (void *, int, handle, int, int, handle, handle *))                                              \
    X(Test, (handle *, int *, void *))                                                                       \
    X(Abort, (handle, int))                                                                                  \
    X(Finalize, (void))                                                                                      \
    X(Error_string, (int, char *, int *))

#define DECLARE(name, types) typedef int(*name##_function) types;
FUNCTIONS(DECLARE)

#define NUMBER(name, types) name##_number,
enum { FUNCTIONS(NUMBER) function_count };
_Static_assert((int)function_count <= (int)LEATI_MPI_FUNCTIONS, "the table of functions is too small");

#define NAME(name, types) "MPI_" #name,
static const char *const names[] = {FUNCTIONS(NAME)};

enum { WORLD, FLOAT, BYTE, SUM, ERRORS_RETURN };

static leat_status find_constants(leati_mpi *mpi, leat_error *err);

static leat_status load(leati_mpi *mpi, leat_error *err) {
    for (int i = 0; i < function_count; ++i)
        LEATI_TRY(leati_library_function(mpi->library, names[i], &mpi->functions[i], sizeof mpi->functions[i],
                                         err));
    return find_constants(mpi, err);
}

/* ISO C does not convert object pointers to function pointers. */
#define CALL(name)                                                                                           \
    (*(name##_function *)memcpy(&(name##_function){0}, &mpi->functions[name##_number],                       \
                                sizeof(name##_function)))

static handle handle_of(uint64_t bits) {
    handle out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

static void keep(uint64_t *bits, handle value) {
    *bits = 0;
    memcpy(bits, &value, sizeof value);
}

static handle constant(const leati_mpi *mpi, int which) {
    return handle_of(mpi->constants[which]);
}

static int initialized(leati_mpi *mpi, bool *yes, int *level) {
    int flag = 0;
    *level = 0;
    int code = CALL(Initialized)(&flag);
    *yes = flag != 0;
    return code == 0 && flag ? CALL(Query_thread)(level) : code;
}

static int init(leati_mpi *mpi, int *level) {
    return CALL(Init_thread)(NULL, NULL, LEATI_MPI_SERIALIZED, level);
}

static int connect(leati_mpi *mpi, int *rank, int *size) {
    handle comm;
    handle parent = constant(mpi, WORLD);
    if (mpi->parent) memcpy(&parent, mpi->parent, sizeof parent);
    int code = CALL(Comm_dup)(parent, &comm);
    if (code) return code;
    keep(&mpi->comm, comm);
    code = CALL(Comm_set_errhandler)(comm, constant(mpi, ERRORS_RETURN));
    if (code == 0) code = CALL(Comm_rank)(comm, rank);
    return code ? code : CALL(Comm_size)(comm, size);
}

static int all_reduce(leati_mpi *mpi, float *values, int count, leati_mpi_request *request) {
    handle out;
    int code = CALL(Iallreduce)(IN_PLACE, values, count, constant(mpi, FLOAT), constant(mpi, SUM),
                                handle_of(mpi->comm), &out);
    keep(&request->handle, out);
    return code;
}

static int all_gather(leati_mpi *mpi, const void *mine, int bytes, void *all, leati_mpi_request *request) {
    handle out, byte = constant(mpi, BYTE);
    int code =
        CALL(Iallgather)(mine ? mine : IN_PLACE, bytes, byte, all, bytes, byte, handle_of(mpi->comm), &out);
    keep(&request->handle, out);
    return code;
}

static int all_to_all(leati_mpi *mpi, const void *mine, int bytes, void *all, leati_mpi_request *request) {
    handle out, byte = constant(mpi, BYTE);
    int code = CALL(Ialltoall)(mine, bytes, byte, all, bytes, byte, handle_of(mpi->comm), &out);
    keep(&request->handle, out);
    return code;
}

static int broadcast(leati_mpi *mpi, void *data, int bytes, int root, leati_mpi_request *request) {
    handle out;
    int code = CALL(Ibcast)(data, bytes, constant(mpi, BYTE), root, handle_of(mpi->comm), &out);
    keep(&request->handle, out);
    return code;
}

static int barrier(leati_mpi *mpi, leati_mpi_request *request) {
    handle out;
    int code = CALL(Ibarrier)(handle_of(mpi->comm), &out);
    keep(&request->handle, out);
    return code;
}

static int send(leati_mpi *mpi, const void *data, int bytes, int to, int tag, leati_mpi_request *request) {
    handle out;
    int code = CALL(Isend)(data, bytes, constant(mpi, BYTE), to, tag, handle_of(mpi->comm), &out);
    keep(&request->handle, out);
    return code;
}

static int receive(leati_mpi *mpi, void *data, int bytes, int from, int tag, leati_mpi_request *request) {
    handle out;
    int code = CALL(Irecv)(data, bytes, constant(mpi, BYTE), from, tag, handle_of(mpi->comm), &out);
    keep(&request->handle, out);
    return code;
}

static int test(leati_mpi *mpi, leati_mpi_request *request, bool *done) {
    handle value = handle_of(request->handle);
    int flag = 0;
    int code = CALL(Test)(&value, &flag, IGNORED);
    keep(&request->handle, value);
    *done = flag != 0;
    return code;
}

static int abort_all(leati_mpi *mpi, int code) {
    return CALL(Abort)(constant(mpi, WORLD), code);
}

static int disconnect(leati_mpi *mpi) {
    handle comm = handle_of(mpi->comm);
    return CALL(Comm_free)(&comm);
}

static int finalize(leati_mpi *mpi) {
    return CALL(Finalize)();
}

static void explain(leati_mpi *mpi, int code, char *out, size_t bytes) {
    char text[1024] = ""; /* MPI_MAX_ERROR_STRING is at most 512 */
    int length = 0;
    if (CALL(Error_string)(code, text, &length) != 0) snprintf(text, sizeof text, "error %d", code);
    snprintf(out, bytes, "%s", text);
}

#define LEATI_MPI_CALLS(its_name, its_title, its_file)                                                       \
    {                                                                                                        \
        its_name, its_title, its_file, load, initialized, init, connect, all_reduce, all_gather, all_to_all, \
            broadcast, barrier, send, receive, test, abort_all, finalize, disconnect, explain                \
    }
