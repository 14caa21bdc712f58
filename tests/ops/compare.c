/* SPDX-License-Identifier: Apache-2.0 */
/* Compares implementations with ref, and gradients with finite differences (compare.h). */
#include "ops/compare.h"

#include <math.h>
#include <string.h>

#include "cmocka_all.h"

#include "base/memory.h"

#define STEP            2e-3f /* of the finite differences */
#define SLOPE_TOLERANCE 1e-3

int test_compare_except(test_task *t, const char *name, double tolerance, uint32_t opaque) {
    float *expected[LEATI_MAX_OUTPUTS] = {0};
    int served = 0;
    test_run_ref(t);
    for (int i = 0; i < t->task.output_count; i++)
        if (test_output(t, i) && t->outputs[i].dtype == LEAT_F32 && !(opaque >> i & 1)) {
            expected[i] = leati_memdup(test_output(t, i), leati_desc_bytes(&t->outputs[i]) +
                                                              (leati_desc_bytes(&t->outputs[i]) == 0));
            assert_non_null(expected[i]);
        }
    for (size_t b = 0; test_backends[b]; b++)
        for (size_t k = 0; k < test_backends[b]->count; k++) {
            const leati_implementation *implementation = &test_backends[b]->implementations[k];
            char why[LEATI_REASON_BYTES] = "";
            if (implementation->op != t->task.op) continue;
            if (t->task.measured && !test_backends[b + 1]) continue;
            for (int i = 0; i < t->task.output_count; i++)
                if (expected[i]) memset(test_output(t, i), 0xff, leati_desc_bytes(&t->outputs[i]));
            if (!test_run(t, implementation, why, NULL)) continue;
            served++;
            for (int i = 0; i < t->task.output_count; i++) {
                if (!expected[i]) continue;
                double distance = test_distance(test_output(t, i), expected[i], test_output_count(t, i));
                if (!(distance <= tolerance))
                    fail_msg("%s: output %d of '%s' is %g from ref", name, i, t->implementation, distance);
            }
        }
    for (int i = 0; i < LEATI_MAX_OUTPUTS; i++) leati_free(expected[i]);
    return served;
}

int test_compare(test_task *t, const char *name, double tolerance) {
    t->task.measured = true;
    test_compare_except(t, name, tolerance, 0);
    t->task.measured = false;
    return test_compare_except(t, name, tolerance, 0);
}

/* Returns the sum over the outputs of output * weight, on ref; NULL weights count as 0. */
static double weighted(test_task *t, float *const *weights) {
    double sum = 0;
    test_run_ref(t);
    for (int i = 0; i < t->task.output_count; i++)
        for (int64_t j = 0; weights[i] && j < test_output_count(t, i); j++)
            sum += (double)test_output(t, i)[j] * (double)weights[i][j];
    return sum;
}

void test_check_gradient(test_task *forward, float *const *weights, int input, const float *gradient,
                         const char *name, const char *implementation, leat_rng *rng) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return; /* The differences repeat runs of ref, which show a sanitizer nothing new, and take most of the time. */
#endif
    float *values = forward->args[input];
    int64_t count = leati_desc_count(&forward->inputs[input]);
    float *before = leati_memdup(values, (size_t)count * sizeof *values);
    float *direction = leati_calloc((size_t)count, sizeof *direction);
    assert_non_null(before);
    assert_non_null(direction);
    for (int trial = 0; trial < 3; trial++) {
        double sums[2], expected, slope = 0, size = 0;
        test_fill(direction, count, -1, 1, rng);
        for (int side = 0; side < 2; side++) {
            for (int64_t j = 0; j < count; j++) values[j] = before[j] + (side ? STEP : -STEP) * direction[j];
            sums[side] = weighted(forward, weights);
        }
        expected = (sums[1] - sums[0]) / (2 * (double)STEP);
        for (int64_t j = 0; j < count; j++) {
            slope += (double)gradient[j] * (double)direction[j];
            size += fabs((double)gradient[j] * (double)direction[j]);
        }
        if (!(fabs(slope - expected) <= SLOPE_TOLERANCE * (size + 0.1)))
            fail_msg("%s: '%s' says that input %d has slope %g, differences say %g", name, implementation,
                     input, slope, expected);
    }
    memcpy(values, before, (size_t)count * sizeof *values);
    leati_free(before);
    leati_free(direction);
}

float *test_random_like(const leati_desc *desc, leat_rng *rng) {
    float *values = leati_calloc((size_t)leati_desc_count(desc) + 1, sizeof *values);
    assert_non_null(values);
    test_fill(values, leati_desc_count(desc), -1, 1, rng);
    return values;
}
