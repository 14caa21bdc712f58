/* SPDX-License-Identifier: Apache-2.0 */
/* Runs single ops without a graph: a task with its buffers, on one implementation. */
#ifndef LEAT_TESTS_OPS_TASK_H
#define LEAT_TESTS_OPS_TASK_H

#include "engine/backend.h"
#include "leat/rng.h"

#define DIMS(...)                                                                                            \
    {                                                                                                        \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .shape = { __VA_ARGS__ }                 \
    }
#define ABSENT                                                                                               \
    { .rank = -1 }

#define TEST_ARGS (LEATI_MAX_INPUTS + LEATI_MAX_OUTPUTS)

/* An op at given shapes.  Buffers belong to it; those of absent inputs and unused outputs are NULL. */
typedef struct test_task {
    leati_task task;
    leati_attrs attrs;
    leati_desc inputs[LEATI_MAX_INPUTS], outputs[LEATI_MAX_OUTPUTS];
    float *args[TEST_ARGS];
    char implementation[64]; /* of the last run */
} test_task;

/* Infers the outputs and makes zeroed buffers. */
void test_task_init(test_task *t, leati_op op, const leati_attrs *attrs, int input_count,
                    const leati_desc *inputs, uint32_t unused, int threads);
void test_task_fini(test_task *t);

/* Numbers in [low, high). */
void test_fill(float *to, int64_t count, float low, float high, leat_rng *rng);
void test_fill_inputs(test_task *t, float low, float high, leat_rng *rng);

/* Runs on an implementation; false (with the reason) where it declines.  forward: see leati_task.  keep: receives the
 * kernel, to be passed as a later task's forward, instead of destroying it (may be NULL). */
bool test_run(test_task *t, const leati_implementation *implementation, char *why, leati_kernel *keep);
void test_run_ref(test_task *t);

/* Output i on ref, and the largest difference from it relative to the largest value. */
float *test_output(test_task *t, int i);
int64_t test_output_count(const test_task *t, int i);
double test_distance(const float *a, const float *b, int64_t count);

extern const leati_backend *const test_backends[]; /* all that are built, ref last, NULL at the end */

#endif
