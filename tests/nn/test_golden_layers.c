/* SPDX-License-Identifier: Apache-2.0 */
/* Layers and whole models: predictions, loss in test mode, gradients and some training steps agree with Keras
 * 2.3.1 (or with current Keras, for layers that only it has), on every list of backends.  Also checks
 * docs/layers.md, which describes these cases. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/layer_pages.h"
#include "nn/model_case.h"

#define PAGE            LEAT_SOURCE_DIR "/docs/layers.md"
#define MOST_PAGE_BYTES ((size_t)1 << 20)

/* Weights whose gradients are 0 except for rounding: a bias before a BatchNormalization, the bias of a key, or a
 * value that is added to all inputs of a Softmax, changes nothing.  Such a gradient must only be about as small as
 * Keras's, relative to the model's other gradients. */
static const char *const cancelling[] = {"batchnorm",
                                         "nested_batchnorm",
                                         "nested_functional",
                                         "groupnorm_instance",
                                         "layernorm_axis1",
                                         "mha",
                                         "gqa",
                                         "transformer",
                                         "layer_softmax_rank3_axis1"};
#define CANCELLED 1e-6

static bool cancels(const char *name) {
    for (size_t i = 0; i < sizeof cancelling / sizeof cancelling[0]; ++i)
        if (strncmp(name, cancelling[i], strlen(cancelling[i])) == 0) return true;
    return false;
}

static double largest(const float *values, int64_t count) {
    double most = 0;
    for (int64_t i = 0; i < count; ++i)
        if (fabs((double)values[i]) > most) most = fabs((double)values[i]);
    return most;
}

/* Returns the largest gradient of Keras in the case. */
static double largest_gradient(const golden *g) {
    double most = 0;
    leat_tensor gradient;
    for (int i = 0; golden_member(g, "g", i, &gradient); ++i) {
        double own = largest(gradient.data, leat_tensor_count(&gradient));
        if (own > most) most = own;
    }
    return most;
}

static void compare_gradients(const model_case *c, const char *name) {
    const leati_weights *weights = &c->model->weights;
    double negligible = cancels(name) ? CANCELLED * largest_gradient(&c->g) : 0;
    assert_int_equal(weights->trainable_count, json_array_size(json_object_get(c->g.meta, "trainable")));
    for (int i = 0; i < weights->trainable_count; ++i) {
        const leati_weight *weight = weights->entries[i];
        const float *got = (const float *)(const void *)((const char *)weights->slab[LEATI_SLAB_GRADIENTS] +
                                                         weight->offset_bytes);
        int64_t count = leati_desc_count(&weight->desc);
        char what[64];
        leat_tensor expected;
        snprintf(what, sizeof what, "g%d", i);
        assert_true(golden_member(&c->g, "g", i, &expected));
        if (largest(got, count) <= negligible && largest(expected.data, count) <= negligible) continue;
        golden_compare(&c->g, what, got, expected.data, count, GOLDEN_TOLERANCE);
    }
}

static void train(model_case *c, const char *name) {
    model_stage s;
    int64_t steps = json_integer_value(json_object_get(c->g.meta, "steps"));
    assert_true(steps > 0);
    model_stage_open(&s, c, LEATI_TRAIN);
    for (int64_t step = 0; step < steps; ++step) {
        model_stage_run(&s);
        model_stage_compare_outputs(&s, "train_outputs", step, GOLDEN_TOLERANCE);
        if (step == 0 && test_npz_has(c->g.npz, "g0")) compare_gradients(c, name);
    }
    model_case_compare_weights(c, "wt", GOLDEN_TOLERANCE);
    model_stage_close(&s);
    model_case_compare_prediction(c, "yt", GOLDEN_TOLERANCE);
}

typedef struct group {
    const char *name;
    int cases;
    bool later; /* the case is from current Keras */
    layer_pages *pages;
} group;

static void add_to_pages(const group *of, const char *name, double worst) {
    golden g;
    golden_open(&g, of->name, name);
    json_t *model = golden_json(&g, "config");
    layer_pages_add(of->pages, golden_text(&g, "class_name"), model, worst, of->later);
    json_decref(model);
    golden_close(&g);
}

/* Runs all checks of a case with these backends. */
static void run_case(const char *group_name, const char *name, const run_backend *backend, bool recompute,
                     double *worst) {
    model_case c;
    model_case_open(&c, group_name, name, backend);
    c.g.worst = worst;
    c.model->gradient_checkpointing = recompute;
    model_case_compare_prediction(&c, "y", GOLDEN_TOLERANCE);
    if (test_npz_has(c.g.npz, "loss0")) {
        model_case_compare_evaluation(&c, GOLDEN_TOLERANCE);
        train(&c, name);
    }
    model_case_close(&c);
}

static void check(const char *name, void *user) {
    group *of = user;
    double worst = 0;
    for (int i = 0; run_backends[i].name; ++i) run_case(of->name, name, &run_backends[i], false, &worst);
    add_to_pages(of, name, worst);
    ++of->cases;
}

static void check_recomputed(const char *name, void *user) {
    const run_backend *best = run_backends;
    double worst = 0;
    while (best[1].name) ++best;
    run_case(user, name, best, true, &worst);
}

static void test_layers(void **state) {
    group layers = {.name = "layers", .pages = *state};
    golden_each(layers.name, check, &layers);
    assert_true(layers.cases >= 400);
}

/* Tests the layers that only current Keras has. */
static void test_later_layers(void **state) {
    group layers = {.name = "keras-3/layers", .later = true, .pages = *state};
    golden_each(layers.name, check, &layers);
    assert_true(layers.cases >= 180);
}

static void check_loss(const char *name, void *user) {
    double worst = 0;
    for (int i = 0; run_backends[i].name; ++i)
        run_case("keras-3/losses", name, &run_backends[i], false, &worst);
    ++*(int *)user;
}

/* Tests current Keras's losses; crossentropies depend on the layers before them. */
static void test_later_losses(void **state) {
    int cases = 0;
    (void)state;
    golden_each("keras-3/losses", check_loss, &cases);
    assert_true(cases >= 50);
}

/* Recomputing values in the backward pass gives Keras's numbers too. */
static void test_gradient_checkpointing(void **state) {
    static char layers[] = "layers", later[] = "keras-3/layers";
    (void)state;
    golden_each(layers, check_recomputed, layers);
    golden_each(later, check_recomputed, later);
}

/* ---- docs/layers.md ---- */

static void test_every_layer_has_a_case(void **state) {
    leati_text missing = {0};
    if (layer_pages_without_case(*state, &missing) > 0) fail_msg("no golden case of %s", missing.data);
    leati_text_fini(&missing);
}

/* Removes the errors from a page, because they depend on the machine: the digits around "e-". */
static void strip_errors(char *text) {
    char *to = text;
    for (const char *at = text; *at;) {
        bool error =
            at[0] >= '0' && at[0] <= '9' && at[1] == 'e' && at[2] == '-' && strncmp(at + 4, " |\n", 3) == 0;
        if (error) assert_true(at[3] >= '6' || (at[3] == '5' && at[0] == '1')); /* GOLDEN_TOLERANCE */
        if (!error) *to++ = *at;
        at += error ? 4 : 1;
    }
    *to = '\0';
}

static char *read_page(void) {
    FILE *file = fopen(PAGE, "rb");
    if (!file) fail_msg("%s is missing: run tools/layer-pages", PAGE);
    char *text = calloc(1, MOST_PAGE_BYTES);
    assert_non_null(text);
    assert_in_range(fread(text, 1, MOST_PAGE_BYTES, file), 1, MOST_PAGE_BYTES - 1);
    fclose(file);
    return text;
}

static void write_page(const leati_text *page) {
    FILE *file = fopen(PAGE, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(page->data, 1, page->length, file), page->length);
    assert_int_equal(fclose(file), 0);
}

static void compare_page(char *page) {
    char *there = read_page();
    strip_errors(there);
    strip_errors(page);
    if (strcmp(there, page) != 0) {
        size_t same = 0;
        while (there[same] == page[same]) ++same;
        while (same > 0 && page[same - 1] != '\n') --same;
        fail_msg("%s is not current, run tools/layer-pages: expected '%.*s'", PAGE,
                 (int)strcspn(page + same, "\n"), page + same);
    }
    free(there);
}

/* tools/layer-pages makes this test write the page (LEAT_PAGES=write); the test layer_pages makes it compare the
 * page (LEAT_PAGES=check). */
static void test_page(void **state) {
    const char *what = getenv("LEAT_PAGES");
    leati_text page = {0};
    layer_pages_write(*state, &page);
    if (what && strcmp(what, "write") == 0) write_page(&page);
    if (what && strcmp(what, "check") == 0) compare_page(page.data);
    leati_text_fini(&page);
}

static int open_pages(void **state) {
    static layer_pages pages;
    layer_pages_open(&pages);
    *state = &pages;
    return 0;
}

static int close_pages(void **state) {
    layer_pages_close(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_later_layers),
        cmocka_unit_test(test_later_losses),
        cmocka_unit_test(test_gradient_checkpointing),
        cmocka_unit_test(test_every_layer_has_a_case),
        cmocka_unit_test(test_page),
    };
    return cmocka_run_group_tests(tests, open_pages, close_pages);
}
