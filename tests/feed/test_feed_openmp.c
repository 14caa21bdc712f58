/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes of a caller whose OpenMP pool and oneDNN primitives are already warm.  The workers use both, too.
 * If the parent's OpenMP threads are not ended before fork, the child waits for ever for threads that it does not have;
 * the alarm then ends the test. */
#include "cmocka_all.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed/source.h"

enum { side = 192 };

typedef struct computing {
    source source;
    _Atomic int64_t *threads; /* number of threads of a parallel region inside get; shared */
} computing;

static int threads_of_a_region(void) {
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads += 1;
    return threads;
}

/* Computes a ReLU of so many numbers that oneDNN starts a parallel region, and a matrix product. */
static bool run_primitives(float *out) {
    float *a = malloc(sizeof(float) * side * side), *b = malloc(sizeof(float) * side * side);
    if (!a || !b) return false;
    for (int i = 0; i < side * side; ++i) {
        a[i] = (float)(i % 7) - 3;
        b[i] = (float)(i % 5) - 2;
    }
    bool good = dnnl_sgemm('N', 'N', side, side, side, 1, a, side, b, side, 0, out, side) == dnnl_success;
#if DNNL_VERSION_MAJOR == 2
    dnnl_engine_t engine = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_memory_desc_t shape;
    dnnl_eltwise_desc_t eltwise;
    dnnl_primitive_desc_t descriptor = NULL;
    dnnl_primitive_t relu = NULL;
    dnnl_memory_t memory = NULL;
    dnnl_dims_t dims = {side, side};
    good = good && dnnl_engine_create(&engine, dnnl_cpu, 0) == dnnl_success &&
           dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&shape, 2, dims, dnnl_f32, dnnl_ab) == dnnl_success &&
           dnnl_eltwise_forward_desc_init(&eltwise, dnnl_forward_inference, dnnl_eltwise_relu, &shape, 0,
                                          0) == dnnl_success &&
           dnnl_primitive_desc_create(&descriptor, &eltwise, NULL, engine, NULL) == dnnl_success &&
           dnnl_primitive_create(&relu, descriptor) == dnnl_success &&
           dnnl_memory_create(&memory, &shape, engine, out) == dnnl_success;
    dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, memory}, {DNNL_ARG_DST, memory}};
    good = good && dnnl_primitive_execute(relu, stream, 2, arguments) == dnnl_success &&
           dnnl_stream_wait(stream) == dnnl_success;
    dnnl_memory_destroy(memory);
    dnnl_primitive_destroy(relu);
    dnnl_primitive_desc_destroy(descriptor);
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
#endif
    free(a);
    free(b);
    return good;
}

static leat_status computing_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch,
                                 leat_error *err) {
    computing *c = user;
    (void)rng;
    atomic_store(c->threads, threads_of_a_region());
    if (!run_primitives(batch->tensors[0].data)) return leat_error_set(err, LEAT_EUSER, "oneDNN failed");
    for (int64_t i = 0; i < batch->size; ++i) ((int64_t *)batch->tensors[1].data)[i] = index;
    return LEAT_OK;
}

static int64_t computing_length(void *user) {
    (void)user;
    return 6;
}

static leat_status hook(void *user, int64_t pass, leat_error *err) {
    (void)user;
    (void)pass;
    (void)err;
    return threads_of_a_region() > 0 ? LEAT_OK : LEAT_EINTERNAL;
}

static void workers_of_a_warm_pool_do_not_hang(void **state) {
    (void)state;
    computing c;
    source_init(&c.source, 6, side, side);
    c.threads = &c.source.counts->last_pid;
    leat_sequence sequence = source_sequence(&c.source);
    sequence.user = &c;
    sequence.length = computing_length;
    sequence.get = computing_get;
    sequence.on_epoch_end =
        hook; /* declares no state: new workers are forked after each pass, while the OpenMP pool is warm */
    sequence.worker_init = NULL;
    sequence.worker_fini = NULL;
    omp_set_num_threads(2);
    float *out = malloc(sizeof(float) * side * side);
    assert_non_null(out);
    for (int round = 0; round < 3; ++round) {
        assert_int_equal(threads_of_a_region(), 2);
        assert_true(run_primitives(out));
        leat_feed_options options = source_options((feed_mode){2, true});
        leat_feed *feed = source_open(&sequence, &options);
        assert_int_equal(threads_of_a_region(), 2); /* the caller's OpenMP pool works again */
        for (int i = 0; i < 20; ++i) {
            const leat_batch *batch = NULL;
            leat_error err = {0};
            assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
            assert_memory_equal(batch->tensors[0].data, out, sizeof(float) * side * side);
            leat_feed_release(feed);
            assert_true(run_primitives(out));
        }
        assert_int_equal(leat_feed_stats_get(feed).worker_deaths, 0);
        assert_int_equal(atomic_load(c.threads), 2);
        leat_feed_close(&feed);
    }
    free(out);
    source_fini(&c.source);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(workers_of_a_warm_pool_do_not_hang)};
    alarm(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
