/* SPDX-License-Identifier: Apache-2.0 */
/* Measures ranks, started by mpirun; bench/ranks.py runs this program:
 *     bench_ranks reduce leat|both [MAX_BYTES]
 *     bench_ranks step MODEL BATCH STEPS [--threads N] [--network GBIT_PER_S,MS] [--bulk]
 * `reduce` measures sums of floats over all ranks, of 1 KB and up: by leat's communicator, or by this and by
 * MPI_Allreduce in turns, so that both have the same moments of the machine.
 * `step` trains a model of bench_step with a batch of BATCH samples in all; without mpirun, alone.  --network lets each
 * request take the time of a network with this speed and latency; --bulk sums all gradients after the backward pass,
 * by the better one of a ring and of recursive doubling.
 * Rank 0 prints JSON: times in us.  first_at is the time of day, in s, of the end of the first step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/os/clock.h"
#include "base/os/library.h"
#include "dist/mpi/calls.h"
#include "emulated.h"
#include "models.h"

static void check(leat_status status, const leat_error *err) {
    if (status == LEAT_OK) return;
    fprintf(stderr, "bench_ranks: %s\n", err->message);
    _Exit(1);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- Sums ---- */

/* WORLD, FLOAT, SUM: constants of leati_mpi, in the order of calls_tmpl.h. */
enum { WORLD = 0, FLOAT = 1, SUM = 3, MOST = 512 };

/* MPI_Allreduce with handles that are addresses (Open MPI) and with handles that are numbers (MPICH). */
typedef int (*reduce_addresses)(const void *, void *, int, void *, void *, void *);
typedef int (*reduce_numbers)(const void *, void *, int, int, int, int);

typedef int (*init_function)(int *, char ***, int, int *);

typedef struct reducer {
    leat_dist *dist;
    leati_mpi mpi; /* of MPI_Allreduce; calls NULL: leat alone is measured */
    reduce_addresses addresses;
    reduce_numbers numbers;
} reducer;

static void *function_of(const reducer *r, const char *name) {
    leat_error err = {0};
    void *found = NULL;
    check(leati_library_function(r->mpi.library, name, &found, sizeof found, &err), &err);
    return found;
}

static void check_mpi(int code, const char *call) {
    if (code == 0) return;
    fprintf(stderr, "bench_ranks: %s: error %d\n", call, code);
    _Exit(1);
}

/* Initializes MPI, as a program does that gives leat a communicator: two threads may then call MPI. */
static void open_bare(reducer *r, leat_dist_options *options) {
    const char *name = getenv("LEAT_MPI");
    const bool is_mpich = name && strcmp(name, leati_mpi_mpich.name) == 0;
    leat_error err = {0};
    int level = 0, rank = 0, size = 0;
    r->mpi.calls = is_mpich ? &leati_mpi_mpich : &leati_mpi_open_mpi;
    check(leati_library_open_system(&r->mpi.library, r->mpi.calls->file, &err), &err);
    check(r->mpi.calls->load(&r->mpi, &err), &err);
    void *reduce = function_of(r, "MPI_Allreduce"), *init = function_of(r, "MPI_Init_thread");
    init_function begin;
    memcpy(&begin, &init, sizeof begin);
    if (is_mpich)
        memcpy(&r->numbers, &reduce, sizeof reduce);
    else
        memcpy(&r->addresses, &reduce, sizeof reduce);
    check_mpi(begin(NULL, NULL, LEATI_MPI_MULTIPLE, &level), "MPI_Init_thread");
    check_mpi(r->mpi.calls->connect(&r->mpi, &rank, &size), "MPI_Comm_dup");
    options->communicator = &r->mpi.constants[WORLD];
}

static void sum(reducer *r, bool bare, float *values, int count) {
    const leati_mpi *m = &r->mpi;
    leat_error err = {0};
    if (!bare)
        check(leati_dist_all_reduce(r->dist, values, (size_t)count, &err), &err);
    else if (r->numbers)
        check_mpi(r->numbers((const void *)-1, values, count, (int)m->constants[FLOAT],
                             (int)m->constants[SUM], (int)m->comm),
                  "MPI_Allreduce");
    else
        check_mpi(r->addresses((const void *)1, values, count, (void *)(uintptr_t)m->constants[FLOAT],
                               (void *)(uintptr_t)m->constants[SUM], (void *)(uintptr_t)m->comm),
                  "MPI_Allreduce");
}

/* Prints the median and the least time of sums of so many bytes. */
static void measure_size(reducer *r, float *values, size_t bytes, bool first) {
    double us[2][MOST];
    const int ways = r->mpi.calls ? 2 : 1;
    int rounds = (int)(400e6 / (double)bytes);
    rounds = rounds < 5 ? 5 : rounds > MOST ? MOST : rounds;
    for (int i = -2; i < rounds; ++i)
        for (int way = 0; way < ways; ++way) {
            const int64_t start = leati_now_ns();
            sum(r, way == 1, values, (int)(bytes / sizeof *values));
            if (i >= 0) us[way][i] = (double)(leati_now_ns() - start) / 1e3;
        }
    for (int way = 0; way < ways; ++way) qsort(us[way], (size_t)rounds, sizeof **us, by_value);
    if (leat_dist_rank(r->dist) != 0) return;
    printf("%s{\"bytes\": %zu, \"median_us\": %.1f, \"min_us\": %.1f", first ? "" : ", ", bytes,
           us[0][rounds / 2], us[0][0]);
    if (ways > 1) printf(", \"bare_us\": %.1f, \"bare_min_us\": %.1f", us[1][rounds / 2], us[1][0]);
    printf("}");
}

static int reduce(const char *by, size_t most) {
    reducer r = {0};
    leat_error err = {0};
    leat_dist_options options = leat_dist_options_default();
    if (strcmp(by, "both") == 0) open_bare(&r, &options);
    check(leat_dist_open(&r.dist, &options, &err), &err);
    float *values = calloc(most / sizeof *values + 1, sizeof *values);
    if (!values) return 1;
    const bool leads = leat_dist_rank(r.dist) == 0;
    if (leads) printf("{\"ranks\": %d, \"by\": \"%s\", \"sizes\": [", leat_dist_size(r.dist), by);
    for (size_t bytes = 1000; bytes <= most; bytes *= 10) measure_size(&r, values, bytes, bytes == 1000);
    if (leads) puts("]}");
    free(values);
    leat_dist_close(&r.dist);
    if (r.mpi.calls) (void)r.mpi.calls->finalize(&r.mpi);
    return 0;
}

/* ---- Steps ---- */

/* A sequence of the same batch, and the times of the ends of its steps. */
typedef struct same_batch {
    float *x, *y;
    int64_t steps, ends;
    double *end_us, first_at;
    leat_dist *emulated;
} same_batch;

static int64_t length(void *user) {
    return ((same_batch *)user)->steps;
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    same_batch *s = user;
    (void)index, (void)rng, (void)err;
    batch->tensors[0].data = s->x;
    batch->tensors[1].data = s->y;
    return LEAT_OK;
}

static leat_status note_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                            leat_error *err) {
    same_batch *s = user;
    (void)training, (void)index, (void)logs, (void)err;
    if (s->ends == 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        s->first_at = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    }
    if (s->ends == 1 && s->emulated)
        bench_profile_reset(s->emulated); /* the first steps compile and measure */
    s->end_us[s->ends++] = (double)leati_now_ns() / 1e3;
    return LEAT_OK;
}

typedef struct wishes {
    const char *model;
    int64_t batch, steps;
    int threads;
    bench_network network;
} wishes;

static void print_profile(const bench_profile *p) {
    const double steps = p->steps > 0 ? (double)p->steps : 1;
    printf(", \"tail_us\": %.1f, \"buckets\": [", p->tail_ns / steps / 1e3);
    for (int i = 0; i < p->buckets; ++i)
        printf("%s[%zu, %.1f]", i ? ", " : "", p->bytes[i], p->lead_ns[i] / steps / 1e3);
    printf("]");
}

static void print_steps(const wishes *w, const same_batch *s, const leat_verdict *v, int ranks) {
    double *us = calloc((size_t)s->ends + 1, sizeof *us);
    int count = 0;
    for (int64_t i = 2; us && i < s->ends; ++i) us[count++] = s->end_us[i] - s->end_us[i - 1];
    if (us) qsort(us, (size_t)count, sizeof *us, by_value);
    const double steps = v->steps > 0 ? (double)v->steps * 1e3 : 1;
    printf("{\"model\": \"%s\", \"batch\": %lld, \"ranks\": %d, \"threads\": %d, \"steps\": %lld, "
           "\"first_at\": %.4f, "
           "\"median_us\": %.1f, \"min_us\": %.1f, \"communication_us\": %.1f, \"exposed_us\": %.1f",
           w->model, (long long)w->batch, ranks, w->threads, (long long)s->ends, s->first_at,
           us && count ? us[count / 2] : 0, us && count ? us[0] : 0, (double)v->communication_ns / steps,
           (double)v->exposed_ns / steps);
    if (s->emulated) print_profile(bench_profile_of(s->emulated));
    puts("}");
    free(us);
}

static void make_batch(same_batch *s, const wishes *w, const leat_model *model, const bench_sample *sample,
                       leat_batch_spec *spec) {
    const int64_t classes = leat_model_output_shape(model, 0).shape[1];
    int64_t elements = 1;
    leat_error err = {0};
    for (int i = 0; i < sample->rank; ++i) elements *= sample->shape[i];
    s->x = bench_random_inputs(sample, (size_t)(w->batch * elements));
    s->y = bench_random_numbers((size_t)(w->batch * classes));
    s->end_us = calloc((size_t)w->steps + 1, sizeof *s->end_us);
    if (!s->x || !s->y || !s->end_us) _Exit(1);
    spec->batch_size = w->batch;
    check(leat_batch_spec_add(spec, LEAT_PART_INPUT, NULL, sample->words ? LEAT_I32 : LEAT_F32, sample->rank,
                              sample->shape, &err),
          &err);
    check(leat_batch_spec_add(spec, LEAT_PART_TARGET, NULL, LEAT_F32, 1, &classes, &err), &err);
}

static int step(const wishes *w) {
    leat_dist *dist = NULL;
    leat_model *model = NULL;
    leat_error err = {0};
    leat_history *history = NULL;
    bench_sample sample = {0};
    same_batch same = {.steps = w->steps};
    leat_sequence sequence = leat_sequence_default();
    leat_fit_options options = leat_fit_options_default();
    leat_callback ends = {.size = sizeof ends, .user = &same, .on_train_batch_end = note_end},
                  *list[] = {&ends};
    if (leat_dist_is_launched()) {
        check(leat_dist_open(&dist, NULL, &err), &err);
        check(bench_emulate(&dist, &w->network, &err), &err);
        same.emulated = dist;
    }
    check(bench_model(&model, w->model, NULL, &sample, &err), &err);
    make_batch(&same, w, model, &sample, &sequence.spec);
    sequence.user = &same;
    sequence.length = length;
    sequence.get = get;
    options.workers = 0;
    options.verbose = 0;
    options.threads = w->threads;
    options.callbacks = list;
    options.callback_count = 1;
    options.dist = dist;
    check(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    const leat_verdict verdict = leat_history_verdict(history);
    if (leat_dist_rank(dist) == 0) print_steps(w, &same, &verdict, dist ? leat_dist_size(dist) : 1);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
    leat_dist_close(&dist);
    free(same.x);
    free(same.y);
    free(same.end_us);
    return 0;
}

static int usage(void) {
    fprintf(stderr,
            "usage: bench_ranks reduce leat|both [MAX_BYTES]\n"
            "       bench_ranks step MODEL BATCH STEPS [--threads N] [--network GBIT_PER_S,MS] [--bulk]\n");
    return 2;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "reduce") == 0)
        return reduce(argv[2], argc > 3 ? strtoul(argv[3], NULL, 10) : 100000000);
    if (argc < 5 || strcmp(argv[1], "step") != 0) return usage();
    wishes w = {.model = argv[2], .batch = atoll(argv[3]), .steps = atoll(argv[4]), .threads = 1};
    for (int i = 5; i < argc; ++i) {
        double gbit = 0, ms = 0;
        if (strcmp(argv[i], "--bulk") == 0)
            w.network.bulk = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            w.threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--network") == 0 && i + 1 < argc &&
                 sscanf(argv[++i], "%lf,%lf", &gbit, &ms) == 2)
            w.network = (bench_network){gbit * 1e9 / 8, ms / 1e3, w.network.bulk};
        else
            return usage();
    }
    return step(&w);
}
