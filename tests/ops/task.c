/* SPDX-License-Identifier: Apache-2.0 */
/* Runs single ops without a graph (task.h). */
#include "ops/task.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

#include "backends/ref/ref.h"
#include "base/memory.h"
#include "backends/native/backend.h"
#if LEAT_ONEDNN
#include "backends/onednn/backend.h"
#endif

/* NaN bytes behind each buffer: a kernel may read them, but they must not change a result. */
#define GUARD_BYTES 256

const leati_backend *const test_backends[] = {&leati_backend_native,
#if LEAT_ONEDNN
                                              &leati_backend_onednn,
#endif
                                              &leati_backend_ref, NULL};

void test_task_init(test_task *t, leati_op op, const leati_attrs *attrs, int input_count,
                    const leati_desc *inputs, uint32_t unused, int threads) {
    const leati_op_descriptor *descriptor = leati_op_descriptor_of(op);
    leat_error err = {0};
    memset(t, 0, sizeof *t);
    t->attrs = *attrs;
    int given = input_count;
    if (descriptor->optional) input_count = descriptor->max_inputs; /* like the graph does */
    for (int i = 0; i < LEATI_MAX_INPUTS; i++) t->inputs[i] = i < given ? inputs[i] : (leati_desc)ABSENT;
    if (descriptor->infer(attrs, input_count, t->inputs, t->outputs, &err) != LEAT_OK)
        fail_msg("%s", err.message);
    t->task = (leati_task){.op = op,
                           .attrs = &t->attrs,
                           .input_count = input_count,
                           .output_count = descriptor->outputs,
                           .inputs = t->inputs,
                           .outputs = t->outputs,
                           .unused = unused,
                           .threads = threads};
    for (int i = 0; i < input_count + descriptor->outputs; i++) {
        const leati_desc *desc = i < input_count ? &t->inputs[i] : &t->outputs[i - input_count];
        if (desc->rank < 0 || (i >= input_count && unused >> (i - input_count) & 1)) continue;
        t->args[i] = leati_calloc_aligned(leati_desc_bytes(desc) + GUARD_BYTES);
        assert_non_null(t->args[i]);
        memset((char *)t->args[i] + leati_desc_bytes(desc), 0xff, GUARD_BYTES);
    }
}

void test_task_fini(test_task *t) {
    for (int i = 0; i < TEST_ARGS; i++) leati_free(t->args[i]);
}

void test_fill(float *to, int64_t count, float low, float high, leat_rng *rng) {
    for (int64_t i = 0; to && i < count; i++) to[i] = low + (high - low) * (float)leat_rng_uniform(rng);
}

void test_fill_inputs(test_task *t, float low, float high, leat_rng *rng) {
    for (int i = 0; i < t->task.input_count; i++)
        if (t->inputs[i].rank >= 0) test_fill(t->args[i], leati_desc_count(&t->inputs[i]), low, high, rng);
}

/* A kernel may say that an output is larger than its shape. */
static void grow_outputs(test_task *t, const leati_kernel *kernel) {
    for (int i = 0; i < t->task.output_count; i++) {
        float **arg = &t->args[t->task.input_count + i];
        if (!*arg || kernel->output_bytes[i] == 0) continue;
        leati_free(*arg);
        *arg = leati_calloc_aligned(kernel->output_bytes[i]);
        assert_non_null(*arg);
    }
}

bool test_run(test_task *t, const leati_implementation *implementation, char *why, leati_kernel *keep) {
    leati_kernel kernel = {0};
    leat_error err = {0};
    if (implementation->prepare(&t->task, &kernel, why, &err) != LEAT_OK) fail_msg("%s", err.message);
    if (!kernel.run) {
        assert_true(why[0] != '\0'); /* a refusal has a reason */
        return false;
    }
    grow_outputs(t, &kernel);
    leati_run run = {.seed = 1,
                     .step = 1,
                     .scratch = leati_calloc_aligned(kernel.scratch_bytes + GUARD_BYTES)};
    assert_non_null(run.scratch);
    /* the contents of scratch are undefined: NaN */
    memset(run.scratch, 0xff, kernel.scratch_bytes + GUARD_BYTES);
    void *args[TEST_ARGS];
    for (int i = 0; i < TEST_ARGS; i++) args[i] = t->args[i];
    for (int i = 0; i < 2; i++) /* the second run finds the scratch that the first left */
        if (kernel.run(&kernel, args, &run, &err) != LEAT_OK) fail_msg("%s", err.message);
    const unsigned char *behind = (const unsigned char *)run.scratch + kernel.scratch_bytes;
    for (int i = 0; i < GUARD_BYTES; i++)
        if (behind[i] != 0xff) fail_msg("'%s' writes behind its scratch", kernel.implementation);
    leati_free(run.scratch);
    memcpy(t->implementation, kernel.implementation, sizeof t->implementation);
    if (keep)
        *keep = kernel;
    else if (kernel.destroy)
        kernel.destroy(kernel.state);
    return true;
}

void test_run_ref(test_task *t) {
    char why[LEATI_REASON_BYTES] = "";
    for (size_t i = 0; i < leati_backend_ref.count; i++)
        if (leati_backend_ref.implementations[i].op == t->task.op) {
            assert_true(test_run(t, &leati_backend_ref.implementations[i], why, NULL));
            return;
        }
    fail_msg("ref has no %s", leati_op_descriptor_of(t->task.op)->name);
}

float *test_output(test_task *t, int i) {
    return t->args[t->task.input_count + i];
}

int64_t test_output_count(const test_task *t, int i) {
    return leati_desc_count(&t->outputs[i]);
}

double test_distance(const float *a, const float *b, int64_t count) {
    /* values are of the order of 1: a relative error is meaningless where all are nearly 0 */
    double size = 1e-3, distance = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= distance)) distance = isnan(d) ? INFINITY : d;
        if (fabs((double)b[i]) > size) size = fabs((double)b[i]);
    }
    return distance / size;
}
