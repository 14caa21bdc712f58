/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: every implementation is compared with ref, and the gradients with finite differences of ref along random
 * directions (compare.h).  ref is compared with the chain of products, softmax and dropout, computed here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"

#include "base/memory.h"
#include "engine/op_semantics/attention.h"
#include "engine/random.h"
#include "ops/compare.h"

typedef enum masking {
    NO_MASK,
    OF_KEYS,    /* (N, 1, S), as of padded sequences */
    CAUSAL,     /* (1, T, S) */
    OF_PAIRS,   /* (N, T, S), with rows in which no pair counts */
    OF_NOTHING, /* (1, 1, S): no pair counts */
    MASKINGS
} masking;

typedef struct attention_case {
    int64_t batch, queries, keys, heads, key_heads, depth, width;
    float rate;
} attention_case;

static const attention_case cases[] = {
    {2, 5, 5, 2, 2, 8, 8, 0},       {1, 1, 1, 1, 1, 1, 1, 0},          {3, 7, 11, 2, 2, 5, 3, 0},
    {2, 4, 1, 3, 3, 16, 16, 0},     {1, 1, 40, 4, 4, 32, 32, 0},       {2, 65, 65, 4, 4, 16, 16, 0},
    {2, 16, 64, 4, 2, 32, 32, 0},   {1, 33, 17, 6, 1, 24, 40, 0},      {2, 128, 128, 2, 2, 32, 32, 0},
    {1, 100, 300, 1, 1, 64, 64, 0}, {1, 3, 1000, 2, 2, 20, 20, 0},     {1, 50, 50, 1, 1, 130, 70, 0},
    {5, 13, 13, 3, 3, 7, 9, 0},     {0, 4, 4, 2, 2, 8, 8, 0},          {2, 0, 4, 2, 2, 8, 8, 0},
    {2, 5, 6, 2, 2, 8, 8, 0.5f},    {2, 17, 33, 4, 2, 16, 16, 0.1f},   {2, 65, 67, 4, 4, 16, 16, 0.25f},
    {1, 1, 5, 1, 1, 4, 4, 0.9f},    {3, 20, 64, 3, 3, 32, 48, 0.125f}, {1, 130, 257, 2, 1, 16, 16, 0.1f},
};
enum { case_count = sizeof cases / sizeof *cases };

static leati_desc mask_desc(const attention_case *c, masking m) {
    const leati_desc descs[MASKINGS] = {[NO_MASK] = ABSENT,
                                        [OF_KEYS] = DIMS(c->batch, 1, c->keys),
                                        [CAUSAL] = DIMS(1, c->queries, c->keys),
                                        [OF_PAIRS] = DIMS(c->batch, c->queries, c->keys),
                                        [OF_NOTHING] = DIMS(1, 1, c->keys)};
    return descs[m];
}

static void fill_mask(const attention_case *c, masking m, float *mask, leat_rng *rng) {
    const leati_desc desc = mask_desc(c, m);
    const int64_t count = m == NO_MASK ? 0 : leati_desc_count(&desc);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t key = i % c->keys, row = i / c->keys;
        mask[i] = m == OF_KEYS    ? key < 1 + row * c->keys / (c->batch + 1)
                  : m == CAUSAL   ? key <= row
                  : m == OF_PAIRS ? row % 5 != 3 && leat_rng_below(rng, 3) > 0
                                  : 0;
    }
}

static void start(test_task *t, const attention_case *c, masking m, leat_rng *rng) {
    const leati_desc in[] = {DIMS(c->batch, c->queries, c->heads, c->depth),
                             DIMS(c->batch, c->keys, c->key_heads, c->depth),
                             DIMS(c->batch, c->keys, c->key_heads, c->width), mask_desc(c, m)};
    const leati_attrs attrs = {.attention = {.scale = (float)(1 / sqrt((double)c->depth)),
                                             .rate = c->rate,
                                             .stream = 9,
                                             .training = true}};
    test_task_init(t, LEATI_OP_ATTENTION, &attrs, LEATI_ATTENTION_INPUTS, in, 0, 2);
    test_fill_inputs(t, -2, 2, rng);
    fill_mask(c, m, t->args[LEATI_ATTENTION_MASK], rng);
}

static void name_case(char *out, size_t bytes, const attention_case *c, masking m) {
    snprintf(out, bytes, "N %lld, T %lld, S %lld, H %lld, G %lld, D %lld, V %lld, rate %g, mask %d",
             (long long)c->batch, (long long)c->queries, (long long)c->keys, (long long)c->heads,
             (long long)c->key_heads, (long long)c->depth, (long long)c->width, (double)c->rate, (int)m);
}

/* ---- ref and the chain ---- */

/* Computes one row of y as the chain of ops does, which keeps all weights. */
static void row_by_chain(const test_task *t, int64_t n, int64_t query, int64_t head, double *y) {
    const leati_attention_sizes s = leati_attention_sizes_of(t->inputs);
    const int64_t group = head * s.key_heads / s.heads, row = (n * s.heads + head) * s.queries + query;
    const leati_run run = {.seed = 1, .step = 1};
    double weights[1024], sum = 0, largest = -INFINITY;
    for (int64_t k = 0; k < s.keys; ++k) {
        double product = 0, mask = 1;
        for (int64_t i = 0; i < s.depth; ++i)
            product += (double)t->args[0][((n * s.queries + query) * s.heads + head) * s.depth + i] *
                       (double)t->args[1][((n * s.keys + k) * s.key_heads + group) * s.depth + i];
        if (t->args[3]) mask = (double)t->args[3][n * s.mask_sample + query * s.mask_query + k];
        weights[k] = product * (double)t->attrs.attention.scale * mask + (mask * 1e9 - 1e9);
        largest = fmax(largest, weights[k]);
    }
    for (int64_t k = 0; k < s.keys; ++k) sum += weights[k] = exp(weights[k] - largest);
    for (int64_t i = 0; i < s.width; ++i) y[i] = 0;
    for (int64_t k = 0; k < s.keys; ++k) {
        const uint64_t element = (uint64_t)(row * s.keys + k);
        uint32_t words[4];
        leati_random_words(&run, t->attrs.attention.stream, element / 4, words);
        double kept = words[element % 4] >= leati_dropout_threshold(t->attrs.attention.rate) ? 1 : 0;
        for (int64_t i = 0; i < s.width; ++i)
            y[i] += kept * weights[k] / sum / (1 - (double)t->attrs.attention.rate) *
                    (double)t->args[2][((n * s.keys + k) * s.key_heads + group) * s.width + i];
    }
}

static void ref_equals_the_chain(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(8, 0, 0);
    for (int i = 0; i < case_count; ++i)
        for (masking m = NO_MASK; m < MASKINGS; ++m) {
            const attention_case *c = &cases[i];
            test_task t;
            double expected[256];
            start(&t, c, m, &rng);
            test_run_ref(&t);
            const float *y = test_output(&t, LEATI_ATTENTION_Y);
            for (int64_t row = 0; row < c->batch * c->queries * c->heads; ++row) {
                row_by_chain(&t, row / c->heads / c->queries, row / c->heads % c->queries, row % c->heads,
                             expected);
                for (int64_t k = 0; k < c->width; ++k)
                    assert_float_equal(y[row * c->width + k], expected[k], 2e-5);
            }
            test_task_fini(&t);
        }
}

/* ---- All implementations ---- */

/* Where only one key counts, diff_q and diff_k are 0: differences of equal numbers, of which rounding errors remain. */
static double gradient_tolerance(test_task *bwd) {
    double size = 0;
    test_run_ref(bwd);
    for (int i = 0; i < 2; ++i)
        for (int64_t j = 0; test_output(bwd, i) && j < test_output_count(bwd, i); ++j)
            size = fmax(size, fabs((double)test_output(bwd, i)[j]));
    return size < 1e-4 ? 1e-2 : TOLERANCE;
}

static void check_gradients(test_task *t, const char *name, bool small, leat_rng *rng) {
    leati_desc in[LEATI_ATTENTION_BWD_INPUTS];
    test_task bwd;
    memcpy(in, t->inputs, LEATI_ATTENTION_INPUTS * sizeof *in);
    in[LEATI_ATTENTION_BWD_Y] = in[LEATI_ATTENTION_BWD_DIFF_Y] = t->outputs[LEATI_ATTENTION_Y];
    in[LEATI_ATTENTION_BWD_LOG_SUMS] = t->outputs[LEATI_ATTENTION_LOG_SUMS];
    for (uint32_t unused = 0; unused < (small ? 7 : 1); ++unused) {
        const bool differences = small && unused == 0;
        test_task_init(&bwd, LEATI_OP_ATTENTION_BWD, &t->attrs, LEATI_ATTENTION_BWD_INPUTS, in, unused, 2);
        test_fill_inputs(&bwd, -1, 1, rng);
        for (int i = 0; i < LEATI_ATTENTION_INPUTS; ++i)
            if (t->args[i]) memcpy(bwd.args[i], t->args[i], leati_desc_bytes(&in[i]));
        test_run_ref(t);
        for (int i = 0; i < 2; ++i)
            memcpy(bwd.args[LEATI_ATTENTION_BWD_Y + i], test_output(t, i), leati_desc_bytes(&t->outputs[i]));
        test_compare(&bwd, name, gradient_tolerance(&bwd));
        float *weights[LEATI_MAX_OUTPUTS] = {bwd.args[LEATI_ATTENTION_BWD_DIFF_Y]};
        for (int i = 0; differences && i < LEATI_ATTENTION_MASK; ++i)
            test_check_gradient(t, weights, i, test_output(&bwd, i), name, bwd.implementation, rng);
        test_task_fini(&bwd);
    }
}

static void implementations_equal_ref(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(9, 0, 0);
    for (int i = 0; i < case_count; ++i)
        for (masking m = NO_MASK; m < MASKINGS; ++m) {
            const attention_case *c = &cases[i];
            char name[160];
            test_task t;
            name_case(name, sizeof name, c, m);
            start(&t, c, m, &rng);
            test_compare(&t, name, TOLERANCE);
            check_gradients(&t, name, c->batch * c->queries * c->keys * c->heads < 1000, &rng);
            test_task_fini(&t);
        }
}

/* Scores far apart: weights of 0, and the logarithm of a sum whose largest term is about e^1000. */
static void scores_may_be_large(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(10, 0, 0);
    for (masking m = NO_MASK; m < MASKINGS; ++m) {
        const attention_case c = {2, 19, 37, 2, 2, 16, 16, 0};
        test_task t;
        start(&t, &c, m, &rng);
        for (int i = 0; i < 2; ++i) test_fill(t.args[i], leati_desc_count(&t.inputs[i]), -40, 40, &rng);
        test_compare(&t, "large scores",
                     5e-4); /* half a unit in the last place of 1000 is 3e-5 of a weight */
        test_task_fini(&t);
    }
}

/* Runs the kernels of native forward with 1 thread, then with others, which must give the same bytes. */
static void threads_do_not_matter(void **state) {
    (void)state;
    for (int i = 0; i < case_count; ++i)
        for (masking m = NO_MASK; m < MASKINGS; ++m) {
            float *first = NULL;
            for (int threads = 1; threads < 6; threads += 2) {
                leat_rng rng = leat_rng_for(12, 0, 0);
                test_task t;
                char why[LEATI_REASON_BYTES] = "";
                start(&t, &cases[i], m, &rng);
                t.task.threads = threads;
                t.task.measured = true;
                for (size_t k = 0; k < test_backends[0]->count; ++k)
                    if (test_backends[0]->implementations[k].op == LEATI_OP_ATTENTION)
                        assert_true(test_run(&t, &test_backends[0]->implementations[k], why, NULL));
                const size_t bytes = leati_desc_bytes(&t.outputs[LEATI_ATTENTION_Y]);
                if (!first) assert_non_null(first = leati_memdup(test_output(&t, 0), bytes + (bytes == 0)));
                assert_memory_equal(first, test_output(&t, 0), bytes);
                test_task_fini(&t);
            }
            leati_free(first);
        }
}

static void predictions_have_no_log_sums(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(11, 0, 0);
    for (int i = 0; i < case_count; ++i) {
        test_task t;
        start(&t, &cases[i], OF_KEYS, &rng);
        leati_desc in[LEATI_ATTENTION_INPUTS];
        memcpy(in, t.inputs, sizeof in);
        test_task_fini(&t);
        const leati_attrs attrs = {.attention = {.scale = 0.3f}};
        for (int threads = 1; threads < 4; threads += 2) {
            test_task_init(&t, LEATI_OP_ATTENTION, &attrs, LEATI_ATTENTION_INPUTS, in, 0, threads);
            assert_int_equal(leati_desc_count(&t.outputs[LEATI_ATTENTION_LOG_SUMS]), 0);
            test_fill_inputs(&t, -2, 2, &rng);
            fill_mask(&cases[i], OF_KEYS, t.args[LEATI_ATTENTION_MASK], &rng);
            test_compare(&t, "a prediction", TOLERANCE);
            test_task_fini(&t);
        }
    }
}

static void wrong_shapes_are_refused(void **state) {
    (void)state;
    static const struct {
        leati_desc in[LEATI_ATTENTION_INPUTS];
        float rate;
        leat_status status;
        const char *says;
    } refusals[] = {
        {{DIMS(2, 5, 8), DIMS(2, 5, 1, 8), DIMS(2, 5, 1, 8), ABSENT},
         0,
         LEAT_ESHAPE,
         "q: expected 4 dimensions"},
        {{DIMS(2, 5, 1, 8), DIMS(2, 6, 1, 8), DIMS(2, 5, 1, 8), ABSENT},
         0,
         LEAT_ESHAPE,
         "k: expected (2, 5, 1, 8)"},
        {{DIMS(2, 5, 1, 8), DIMS(2, 6, 1, 8), DIMS(3, 6, 1, 8), ABSENT},
         0,
         LEAT_ESHAPE,
         "v: expected (2, 6, 1, 8)"},
        {{DIMS(2, 5, 3, 8), DIMS(2, 6, 2, 8), DIMS(2, 6, 2, 8), ABSENT},
         0,
         LEAT_ESHAPE,
         "q: expected a multiple of 2 key heads, received 3 heads"},
        {{DIMS(2, 5, 1, 8), DIMS(2, 0, 1, 8), DIMS(2, 0, 1, 8), ABSENT},
         0,
         LEAT_ESHAPE,
         "k: expected at least 1 step"},
        {{DIMS(2, 5, 1, 8), DIMS(2, 6, 1, 8), DIMS(2, 6, 1, 8), DIMS(2, 5, 1)},
         0,
         LEAT_ESHAPE,
         "mask: expected (2, 5, 6)"},
        {{DIMS(2, 5, 1, 8), DIMS(2, 6, 1, 8), DIMS(2, 6, 1, 8), ABSENT},
         1,
         LEAT_EINVAL,
         "expected a rate in [0, 1), received 1"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; ++i) {
        const leati_attrs attrs = {.attention = {.scale = 1, .rate = refusals[i].rate}};
        leati_desc out[LEATI_MAX_OUTPUTS];
        leat_error err = {0};
        assert_int_equal(leati_op_descriptor_of(LEATI_OP_ATTENTION)
                             ->infer(&attrs, LEATI_ATTENTION_INPUTS, refusals[i].in, out, &err),
                         refusals[i].status);
        if (!strstr(err.message, refusals[i].says))
            fail_msg("expected '%s' in '%s'", refusals[i].says, err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ref_equals_the_chain),         cmocka_unit_test(implementations_equal_ref),
        cmocka_unit_test(scores_may_be_large),          cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(predictions_have_no_log_sums), cmocka_unit_test(wrong_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
