/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a test of the loop of fit: several outputs, weights of classes and samples, gradient accumulation, early
 * stopping, and a learning rate that is reduced on a plateau.  All ranks together and this process alone must end with
 * the same weights, the same history and the same number of epochs: to 1e-6, with the option "exact" to the byte. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/dist.h"
#include "leat/rng.h"
#include "leat/train.h"

enum {
    SAMPLES = 45,
    BATCH = 14,
    EPOCHS = 12,
    FEATURES = 10,
    CLASSES = 3
}; /* batches of 14, 14, 14 and 3 samples */

typedef struct fit_case {
    const char *name, *optimizer, *arithmetic;
    bool class_weights, sample_weights, stops, reduces;
} fit_case;

static const fit_case cases[] = {
    {"several outputs", "{\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.01}}", "keras2", false,
     false, false, false},
    {"weights of classes and samples", "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.05}}",
     "keras2", true, true, false, false},
    {"gradient accumulation",
     "{\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.01, \"gradient_accumulation_steps\": 3}}",
     "keras3", false, true, false, false},
    {"early stopping", "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.3, \"momentum\": 0.5}}",
     "keras2", false, false, true, false},
    {"plateau", "{\"class_name\": \"RMSprop\", \"config\": {\"learning_rate\": 0.05}}", "keras3", true, false,
     true, true},
};

static const char model_text[] =
    "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": ["
    "{\"class_name\": \"InputLayer\", \"name\": \"in\", \"config\": {\"name\": \"in\", "
    "\"batch_input_shape\": [null, 10]},"
    " \"inbound_nodes\": []},"
    "{\"class_name\": \"Dense\", \"name\": \"h\", \"config\": {\"name\": \"h\", \"units\": 12, "
    "\"activation\": \"tanh\"},"
    " \"inbound_nodes\": [[[\"in\", 0, 0, {}]]]},"
    "{\"class_name\": \"Dense\", \"name\": \"kind\", \"config\": {\"name\": \"kind\", \"units\": 3, "
    "\"activation\": "
    "\"softmax\"}, \"inbound_nodes\": [[[\"h\", 0, 0, {}]]]},"
    "{\"class_name\": \"Dense\", \"name\": \"size\", \"config\": {\"name\": \"size\", \"units\": 1},"
    " \"inbound_nodes\": [[[\"h\", 0, 0, {}]]]}],"
    "\"input_layers\": [[\"in\", 0, 0]], \"output_layers\": [[\"kind\", 0, 0], [\"size\", 0, 0]]}}";

static float features[SAMPLES * FEATURES], labels[SAMPLES * CLASSES], sizes[SAMPLES], weights[SAMPLES];
static int rank;

static void check(leat_status status, const leat_error *err) {
    if (status == LEAT_OK) return;
    fprintf(stderr, "failed: rank %d: %s\n", rank, err->message);
    _Exit(1);
}

static void make_data(void) {
    leat_rng rng = leat_rng_for(4, 5, 6);
    for (int i = 0; i < SAMPLES; ++i) {
        float sum = 0;
        for (int j = 0; j < FEATURES; ++j)
            sum += features[i * FEATURES + j] = (float)leat_rng_uniform(&rng) - 0.5f;
        labels[i * CLASSES + (sum > 0.3f ? 2 : sum > -0.3f ? 1 : 0)] = 1;
        sizes[i] = sum + 0.1f * (float)leat_rng_uniform(&rng);
        weights[i] = 0.5f + (float)leat_rng_uniform(&rng);
    }
}

static leat_model *make(const fit_case *c, bool exact) {
    leat_model *model = NULL;
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = c->optimizer;
    options.arithmetic = c->arithmetic;
    options.loss = "{'kind': 'categorical_crossentropy', 'size': 'mse'}";
    options.loss_weights = "{'kind': 1.0, 'size': 0.3}";
    options.metrics = "{'kind': 'accuracy', 'size': 'mae'}";
    options.weighted_metrics = "{'kind': 'categorical_crossentropy', 'size': 'mse'}";
    check(leat_model_from_json(&model, model_text, &err), &err);
    check(leat_model_initialize(model, 3, &err), &err);
    check(leat_model_compile(model, &options, &err), &err);
    leat_model_set_deterministic(model, exact);
    return model;
}

/* Makes the callbacks of a case, and returns their number. */
static int make_callbacks(const fit_case *c, leat_callback out[2]) {
    int count = 0;
    leat_error err = {0};
    leat_early_stopping_options stopping = leat_early_stopping_options_default();
    leat_reduce_lr_options reduction = leat_reduce_lr_options_default();
    stopping.min_delta = c->reduces ? 0.01 : 0.05;
    stopping.patience = c->reduces ? 6 : 1;
    stopping.restore_best_weights = true;
    reduction.patience = 1;
    reduction.min_delta = 0.02;
    reduction.factor = 0.5;
    if (c->reduces)
        check(leat_reduce_lr_on_plateau_create(&out[count++], sizeof *out, &reduction, &err), &err);
    if (c->stops) check(leat_early_stopping_create(&out[count++], sizeof *out, &stopping, &err), &err);
    return count;
}

static leat_history *train(leat_model *model, const fit_case *c, leat_dist *dist) {
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, FEATURES}, features)};
    leat_array targets[] = {{.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, CLASSES}, labels)},
                            {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, sizes)}};
    leat_array sample_weights[] = {{.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){SAMPLES}, weights)},
                                   {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){SAMPLES}, weights)}};
    const leat_arrays arrays = {.inputs = &input,
                                .input_count = 1,
                                .targets = targets,
                                .target_count = 2,
                                .sample_weights = c->sample_weights ? sample_weights : NULL,
                                .sample_weight_count = c->sample_weights ? 2 : 0};
    const leat_class_weight classes[] = {{0, 0.5}, {1, 2.0}, {2, 1.5}};
    const leat_output_class_weight by_output = {"kind", classes, CLASSES, 0};
    leat_sequence validation = {0};
    leat_history *history = NULL;
    leat_callback callbacks[2], *const listed[] = {&callbacks[0], &callbacks[1]};
    leat_source_options source = leat_source_options_default();
    leat_fit_options options = leat_fit_options_default();
    leat_error err = {0};
    source.batch_size = BATCH;
    check(leat_arrays_open(&validation, sizeof validation, &arrays, &source, &err), &err);
    options.callback_count = make_callbacks(c, callbacks);
    options.callbacks = listed;
    options.epochs = EPOCHS;
    options.verbose = 0;
    options.threads = 1;
    options.seed = 5;
    options.validation = &validation;
    options.output_class_weights = c->class_weights ? &by_output : NULL;
    options.output_class_weight_count = c->class_weights;
    options.dist = dist;
    check(leat_model_fit(model, &arrays, BATCH, &options, &history, &err), &err);
    for (int i = 0; i < options.callback_count; ++i) leat_callback_destroy(&callbacks[i]);
    leat_sequence_destroy(&validation);
    return history;
}

static void fail(const fit_case *c, const char *what, int index, double together, double alone) {
    fprintf(stderr, "failed: %s: rank %d: %s, number %d: %.9g by all ranks, %.9g by one\n", c->name, rank,
            what, index, together, alone);
    _Exit(1);
}

static bool differs(double a, double b, bool exact) {
    return exact ? a != b : !(fabs(a - b) <= 1e-6 * (1 + fabs(b)));
}

static void compare_weights(const fit_case *c, const leat_model *a, const leat_model *b, bool exact) {
    for (int i = 0; i < leat_model_weight_count(a); ++i) {
        leat_tensor x = leat_model_weight(a, i), y = leat_model_weight(b, i);
        const float *p = x.data, *q = y.data;
        for (int64_t j = 0; j < leat_tensor_count(&x); ++j)
            if (differs((double)p[j], (double)q[j], exact))
                fail(c, leat_model_weight_name(a, i), (int)j, (double)p[j], (double)q[j]);
    }
}

/* Checks that the callbacks of a case had something to do, so that the comparison means something. */
static void check_callbacks(const fit_case *c, const leat_history *history) {
    int count = 0, rates = 0;
    (void)leat_history_values(history, "loss", &count);
    const double *rate = leat_history_values(history, "lr", &rates);
    if (c->stops && !c->reduces && (count < 2 || count >= EPOCHS)) fail(c, "epochs", 0, count, EPOCHS);
    if (c->reduces && (!rate || rates != count || !(rate[rates - 1] < rate[0])))
        fail(c, "rates", 0, rates, count);
}

static void compare_histories(const fit_case *c, const leat_history *a, const leat_history *b, bool exact) {
    if (leat_history_count(a) != leat_history_count(b) || leat_history_count(a) < 14)
        fail(c, "the number of series", 0, leat_history_count(a), leat_history_count(b));
    for (int i = 0; i < leat_history_count(a); ++i) {
        int count = 0, other = 0;
        const char *name = leat_history_name(a, i);
        const double *p = leat_history_values(a, name, &count), *q = leat_history_values(b, name, &other);
        if (count != other) fail(c, name, -1, count, other);
        for (int j = 0; j < count; ++j)
            if (differs(p[j], q[j], exact)) fail(c, name, j, p[j], q[j]);
    }
}

static void try_case(const fit_case *c, leat_dist *all, leat_dist *one, bool exact) {
    leat_model *together = make(c, exact), *alone = make(c, exact);
    leat_history *common = train(together, c, all), *single = train(alone, c, exact ? one : NULL);
    compare_weights(c, together, alone, exact);
    compare_histories(c, common, single, exact);
    check_callbacks(c, single);
    leat_history_destroy(&common);
    leat_history_destroy(&single);
    leat_model_destroy(&together);
    leat_model_destroy(&alone);
}

int main(int argc, char **argv) {
    leat_dist *all = NULL, *one = NULL;
    leat_error err = {0};
    leat_dist_options self = leat_dist_options_default();
    self.kind = LEAT_DIST_SELF;
    bool exact = argc > 1 && strcmp(argv[1], "exact") == 0;
    check(leat_dist_open(&all, NULL, &err), &err);
    check(leat_dist_open(&one, &self, &err), &err);
    rank = leat_dist_rank(all);
    make_data();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) try_case(&cases[i], all, one, exact);
    if (rank == 0) printf("%d ranks loop as one does\n", leat_dist_size(all));
    leat_dist_close(&one);
    leat_dist_close(&all);
    return 0;
}
