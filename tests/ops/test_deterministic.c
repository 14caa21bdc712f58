/* SPDX-License-Identifier: Apache-2.0 */
/* Deterministic tasks: each implementation computes the same bytes with any number of threads.  The shapes are
 * those at which oneDNN is known to divide sums among threads, or native kernels work in parts. */
#include "cmocka_all.h"

#include <string.h>

#include "base/memory.h"
#include "engine/op_semantics/geometry.h"
#include "ops/task.h"

enum { MAX_THREADS = 3 /* threads */ };

typedef struct sum_case {
    const char *name;
    leati_op op;
    leati_attrs attrs;
    int input_count;
    leati_desc inputs[LEATI_RNN_BWD_INPUTS];
} sum_case;

#define WINDOW(axes, k, d, pad)                                                                              \
    .window = {.spatial = axes,                                                                              \
               .kernel = {k, k, k},                                                                          \
               .stride = {1, 1, 1},                                                                          \
               .dilation = {d, d, d},                                                                        \
               .pad_before = {pad, pad, pad}}
#define LSTM                                                                                                 \
    {                                                                                                        \
        .rnn =                                                                                               \
        {.activation = {LEATI_FN_TANH, 0, 0, 0},                                                             \
         .recurrent_activation = {LEATI_FN_SIGMOID, 0, 0, 0},                                                \
         .training = true }                                                                                  \
    }

static const sum_case cases[] = {
    {"dense", LEATI_OP_MATMUL, {0}, 3, {DIMS(64, 4096), DIMS(4096, 128), DIMS(128)}},
    {"dense, by its input",
     LEATI_OP_MATMUL,
     {.matmul = {.transpose_b = true}},
     2,
     {DIMS(1024, 128), DIMS(64, 128)}},
    {"dense, by its kernel",
     LEATI_OP_MATMUL,
     {.matmul = {.transpose_a = true}},
     2,
     {DIMS(1024, 64), DIMS(1024, 128)}},
    {"1x1, by its kernel",
     LEATI_OP_CONV_BWD_WEIGHTS,
     {.conv = {WINDOW(2, 1, 1, 0), .groups = 1}},
     2,
     {DIMS(8, 28, 28, 64), DIMS(8, 28, 28, 64)}},
    {"3x3, by its kernel",
     LEATI_OP_CONV_BWD_WEIGHTS,
     {.conv = {WINDOW(2, 3, 1, 0), .groups = 1}},
     2,
     {DIMS(16, 26, 26, 32), DIMS(16, 24, 24, 64)}},
    {"3x3 of one channel, by its kernel",
     LEATI_OP_CONV_BWD_WEIGHTS,
     {.conv = {WINDOW(2, 3, 1, 0), .groups = 1}},
     2,
     {DIMS(64, 28, 28, 1), DIMS(64, 26, 26, 32)}},
    {"three axes, by its kernel",
     LEATI_OP_CONV_BWD_WEIGHTS,
     {.conv = {WINDOW(3, 3, 1, 0), .groups = 1}},
     2,
     {DIMS(2, 12, 12, 12, 16), DIMS(2, 10, 10, 10, 32)}},
    {"causal",
     LEATI_OP_CONV,
     {.conv = {WINDOW(1, 2, 8, 8), .groups = 1}},
     2,
     {DIMS(16, 512, 64), DIMS(2, 64, 64)}},
    {"causal, by its input",
     LEATI_OP_CONV_BWD_DATA,
     {.conv = {WINDOW(1, 2, 8, 8), .groups = 1, .size = {512}}},
     2,
     {DIMS(16, 512, 64), DIMS(2, 64, 64)}},
    {"3x3",
     LEATI_OP_CONV,
     {.conv = {WINDOW(2, 3, 1, 0), .groups = 1}},
     2,
     {DIMS(4, 26, 26, 32), DIMS(3, 3, 32, 64)}},
    {"batch norm",
     LEATI_OP_BATCH_NORM,
     {.batch_norm = {1e-3f}},
     3,
     {DIMS(16, 24, 24, 64), DIMS(64), DIMS(64)}},
    {"batch norm, its gradient",
     LEATI_OP_BATCH_NORM_BWD,
     {.batch_norm = {1e-3f}},
     5,
     {DIMS(16, 24, 24, 64), DIMS(64), DIMS(64), DIMS(64), DIMS(16, 24, 24, 64)}},
    {"layer norm, its gradient",
     LEATI_OP_GROUP_NORM_BWD,
     {.group_norm = {1, 1e-3f, 64, 1}},
     5,
     {DIMS(4096, 64), DIMS(64), DIMS(4096, 1), DIMS(4096, 1), DIMS(4096, 64)}},
    {"sums", LEATI_OP_REDUCE, {.reduce = {LEATI_REDUCE_SUM, 1, false}}, 1, {DIMS(200000, 3)}},
    {"LSTM, its gradient",
     LEATI_OP_RNN_BWD,
     LSTM,
     LEATI_RNN_BWD_INPUTS,
     {DIMS(64, 6, 8), DIMS(8, 64), DIMS(16, 64), DIMS(64), ABSENT, ABSENT, ABSENT, ABSENT, ABSENT,
      DIMS(64, 6, 16), DIMS(6, 64, 80), DIMS(64, 6, 16), ABSENT, ABSENT}},
};

static void run_with(const sum_case *c, const leati_implementation *implementation, int present,
                     float **first) {
    test_task t;
    char why[LEATI_REASON_BYTES] = "";
    leat_rng rng = leat_rng_for(3, 1, 4);
    test_task_init(&t, c->op, &c->attrs, c->input_count, c->inputs, 0, LEATI_FIXED_PARTS);
    t.task.deterministic = true;
    t.task.present = present;
    test_fill_inputs(&t, 0.1f, 0.9f, &rng);
    bool served = test_run(&t, implementation, why, NULL);
    for (int i = 0; served && i < t.task.output_count; i++) {
        size_t bytes = leati_desc_bytes(&t.outputs[i]);
        if (!test_output(&t, i)) continue;
        if (present == 1)
            assert_non_null(first[i] = leati_memdup(test_output(&t, i), bytes + (bytes == 0)));
        else if (memcmp(first[i], test_output(&t, i), bytes) != 0)
            fail_msg("%s: output %d of '%s' differs with %d threads", c->name, i, t.implementation, present);
    }
    test_task_fini(&t);
}

static void threads_do_not_matter(void **state) {
    (void)state;
    /* without ref, which has one thread */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t b = 0; test_backends[b + 1]; b++)
            for (size_t k = 0; k < test_backends[b]->count; k++) {
                float *first[LEATI_MAX_OUTPUTS] = {0};
                if (test_backends[b]->implementations[k].op != cases[i].op) continue;
                for (int present = 1; present <= MAX_THREADS; present++)
                    run_with(&cases[i], &test_backends[b]->implementations[k], present, first);
                for (int j = 0; j < LEATI_MAX_OUTPUTS; j++) leati_free(first[j]);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_do_not_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
