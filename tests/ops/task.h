/* SPDX-License-Identifier: Apache-2.0 */
/* Runs single ops without a graph: a task and its buffers, on one implementation. */
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

/* An op with given shapes.  The task owns its buffers; the buffers of absent inputs and unused outputs are NULL. */
typedef struct test_task {
    leati_task task;
    leati_attrs attrs;
    leati_desc inputs[LEATI_MAX_INPUTS], outputs[LEATI_MAX_OUTPUTS];
    float *args[TEST_ARGS];
    char implementation[64]; /* name of the implementation that ran last */
} test_task;

/* Infers the outputs and allocates zeroed buffers. */
void test_task_init(test_task *t, leati_op op, const leati_attrs *attrs, int input_count,
                    const leati_desc *inputs, uint32_t unused, int threads);
void test_task_fini(test_task *t);

/* Fill with random numbers in [low, high). */
void test_fill(float *to, int64_t count, float low, float high, leat_rng *rng);
void test_fill_inputs(test_task *t, float low, float high, leat_rng *rng);

/* Runs on an implementation; returns false, with the reason in why, where it declines.  forward: see leati_task.
 * keep (may be NULL) receives the kernel, which can be passed as a later task's forward; without it the kernel is
 * destroyed. */
bool test_run(test_task *t, const leati_implementation *implementation, char *why, leati_kernel *keep);
void test_run_ref(test_task *t);

/* Output i; and the largest difference between a and b relative to the largest value. */
float *test_output(test_task *t, int i);
int64_t test_output_count(const test_task *t, int i);
double test_distance(const float *a, const float *b, int64_t count);

extern const leati_backend *const test_backends[]; /* all backends of this build, ref last, NULL at the end */

#endif
