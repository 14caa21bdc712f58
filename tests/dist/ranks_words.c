/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a test of models whose parts of a batch do not simply add up: tables whose gradients are lists of rows,
 * losses that are divided by what counts in the batch, metrics that compare samples, what AddLoss and AddMetric add.
 * Each case is trained and evaluated by all ranks together and by this process alone, with the same results: to 1e-6,
 * with the option "exact" to the byte.
 * Then a sequence that promises independent samples is asked for the samples of this rank's parts alone. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/custom.h"
#include "leat/dist.h"
#include "leat/rng.h"
#include "leat/train.h"

/* 5 steps per epoch, of 10, 10, 10, 10 and 3. */
enum { SAMPLES = 43, BATCH = 10, EPOCHS = 4, STEPS = 7, WORDS = 12, CLASSES = 3 };

typedef struct words_case {
    const char *name, *layers, *optimizer, *loss, *metrics, *arithmetic;
    int targets;   /* 0: one for each sample; 1: one for each step; 2: the number of each sample's class */
    bool weighted; /* samples have weights */
    bool shards;   /* the optimizer's slots are spread over the ranks */
} words_case;

#define TABLE(option)                                                                                        \
    "{\"class_name\": \"Embedding\", \"config\": {\"name\": \"words\", \"input_dim\": 12, \"output_dim\": "  \
    "5,"                                                                                                     \
    " \"batch_input_shape\": [null, 7]" option "}},"
#define MEAN "{\"class_name\": \"GlobalAveragePooling1D\", \"config\": {\"name\": \"mean\"}},"
#define OUT                                                                                                  \
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"out\", \"units\": 3, \"activation\": "             \
    "\"softmax\"}}"
#define LSTM(option)             "{\"class_name\": \"LSTM\", \"config\": {\"name\": \"lstm\", \"units\": 4" option "}},"
#define OPTIMIZER(name, options) "{\"class_name\": \"" name "\", \"config\": {" options "}}"
#define COMPARING                                                                                            \
    "[\"accuracy\", \"dice\", {\"class_name\": \"Tversky\", \"config\": {\"alpha\": 0.2}},"                  \
    " {\"class_name\": \"CosineSimilarity\", \"config\": {\"axis\": 0}}, \"Largest\", \"AUC\"]"
#define PENALIZED                                                                                            \
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"p\", \"units\": 4, \"activation\": \"tanh\","      \
    " \"kernel_regularizer\": {\"class_name\": \"L1L2\", \"config\": {\"l1\": 0.0, \"l2\": 0.01}},"          \
    " \"activity_regularizer\": {\"class_name\": \"L1L2\", \"config\": {\"l1\": 0.01, \"l2\": 0.02}}}},"
#define RMSPROP OPTIMIZER("RMSprop", "\"learning_rate\": 0.01")
#define SGD     OPTIMIZER("SGD", "\"learning_rate\": 0.02")
#define CIRCLE(options)                                                                                      \
    "{\"class_name\": \"Circle\", \"config\": {\"gamma\": 3.0, \"margin\": 0.3" options "}}"
#define CROSS "categorical_crossentropy"
#define ROWS(name, optimizer, arithmetic, shards)                                                            \
    { name, TABLE("") MEAN OUT, optimizer, CROSS, "accuracy", arithmetic, false, false, shards }

static const words_case cases[] = {
    ROWS("Adam", OPTIMIZER("Adam", "\"learning_rate\": 0.05"), "keras3", false),
    ROWS("Adam, spread", OPTIMIZER("Adam", "\"learning_rate\": 0.05"), "keras3", true),
    ROWS("Adam, 2.3.1", OPTIMIZER("Adam", "\"learning_rate\": 0.05"), "keras2", true),
    ROWS("clipnorm", OPTIMIZER("Adam", "\"learning_rate\": 0.05, \"clipnorm\": 0.02"), "keras3", false),
    ROWS("global_clipnorm", OPTIMIZER("Adam", "\"learning_rate\": 0.05, \"global_clipnorm\": 0.03"), "keras3",
         true),
    ROWS("clipvalue", OPTIMIZER("RMSprop", "\"learning_rate\": 0.05, \"clipvalue\": 0.002"), "keras3", true),
    ROWS("clipvalue, 2.3.1", OPTIMIZER("Adam", "\"learning_rate\": 0.05, \"clipvalue\": 0.002"), "keras2",
         false),
    ROWS("Adamax", OPTIMIZER("Adamax", "\"learning_rate\": 0.05, \"clipnorm\": 0.05"), "keras3", true),
    ROWS("SGD, clipnorm", OPTIMIZER("SGD", "\"learning_rate\": 0.5, \"clipnorm\": 0.02"), "keras3", false),
    ROWS("Lamb", OPTIMIZER("Lamb", "\"learning_rate\": 0.05"), "keras3", true),
    ROWS("Ftrl", OPTIMIZER("Ftrl", "\"learning_rate\": 0.05"), "keras3", true),
    ROWS("a moving average", OPTIMIZER("AdamW", "\"learning_rate\": 0.05, \"use_ema\": true"), "keras3",
         true),
    ROWS("a sum over batches",
         OPTIMIZER("Adam", "\"learning_rate\": 0.01, \"gradient_accumulation_steps\": 2"), "keras3", false),
    {"a mask", TABLE(", \"mask_zero\": true") LSTM(", \"return_sequences\": true") OUT, RMSPROP, CROSS,
     "accuracy", "keras3", true, false, false},
    {"a mask and weights", TABLE(", \"mask_zero\": true") LSTM(", \"return_sequences\": true") OUT, RMSPROP,
     CROSS, "accuracy", "keras3", true, true, false},
    {"a mask, 2.3.1", TABLE(", \"mask_zero\": true") LSTM(", \"return_sequences\": true") OUT, RMSPROP, CROSS,
     "accuracy", "keras2", true, false, false},
    {"a mean by weights", TABLE("") MEAN OUT, RMSPROP,
     "{\"class_name\": \"MeanSquaredError\", \"config\": {\"reduction\": \"mean_with_sample_weight\"}}",
     "accuracy", "keras3", false, true, false},
    {"a sum by weights", TABLE("") MEAN OUT, RMSPROP,
     "{\"class_name\": \"MeanSquaredError\", \"config\": {\"reduction\": \"sum\"}}", "accuracy", "keras3",
     false, true, false},
    {"dice", TABLE("") MEAN OUT, RMSPROP, "Dice", "accuracy", "keras3", false, false, false},
    {"dice with weights", TABLE("") MEAN OUT, RMSPROP, "Dice", "accuracy", "keras3", false, true, false},
    {"dice of each class", TABLE("") MEAN OUT, RMSPROP,
     "{\"class_name\": \"Dice\", \"config\": {\"axis\": [0]}}", "accuracy", "keras3", false, false, false},
    {"dice of each sample", TABLE("") MEAN OUT, RMSPROP,
     "{\"class_name\": \"Dice\", \"config\": {\"axis\": [1]}}", "accuracy", "keras3", false, true, false},
    {"tversky, summed", TABLE("") MEAN OUT, RMSPROP,
     "{\"class_name\": \"Tversky\", \"config\": {\"alpha\": 0.3, \"beta\": 0.7, \"reduction\": \"sum\"}}",
     "accuracy", "keras3", false, false, false},
    {"circle", TABLE("") MEAN OUT, SGD, CIRCLE(""), NULL, "keras3", 2, false, false},
    {"circle with weights", TABLE("") MEAN OUT, SGD, CIRCLE(", \"remove_diagonal\": false"), NULL, "keras3",
     2, true, false},
    {"circle, summed", TABLE("") MEAN OUT, SGD, CIRCLE(", \"reduction\": \"sum\""), NULL, "keras3", 2, true,
     false},
    {"penalties of outputs, 2.3.1", TABLE("") MEAN PENALIZED OUT, RMSPROP, CROSS, "accuracy", "keras2", false,
     false, false},
    {"penalties of outputs", TABLE("") MEAN PENALIZED OUT, RMSPROP, CROSS, "accuracy", "keras3", false, false,
     false},
    {"metrics of the batch", TABLE("") MEAN OUT, RMSPROP, CROSS, COMPARING, "keras3", false, false, false},
    {"metrics of the batch, by step", TABLE(", \"mask_zero\": true") LSTM(", \"return_sequences\": true") OUT,
     RMSPROP, CROSS, "[\"accuracy\", \"Largest\"]", "keras3", true, true, false},
    {"a loss of a file", NULL, NULL, NULL, NULL, "tf215_added.h5", false, false, false},
    {"losses of a file", NULL, NULL, NULL, NULL, "tf215_vae.h5", false, false, false},
};

static float labels[SAMPLES * CLASSES], step_labels[SAMPLES * STEPS * CLASSES], weights[SAMPLES],
    classes[SAMPLES];
static int32_t words[SAMPLES * STEPS];
static int rank;
static bool exact;

static bool on_gpu(void) {
    const char *device = getenv("LEAT_DEVICE");
    return device && strcmp(device, "cpu") != 0;
}

static void check(leat_status status, const leat_error *err, const char *name) {
    if (status == LEAT_OK) return;
    fprintf(stderr, "failed: %s: rank %d: %s\n", name, rank, err->message);
    _Exit(1);
}

/* Sentences of different lengths, in which words repeat; word 0 is padding. */
static void make_data(void) {
    leat_rng rng = leat_rng_for(5, 6, 7);
    for (int i = 0; i < SAMPLES; ++i) {
        for (int j = 0; j < STEPS; ++j) {
            const int word = j <= i % STEPS ? 1 + (int)leat_rng_below(&rng, WORDS - 1) : 0;
            words[i * STEPS + j] = word;
            step_labels[(i * STEPS + j) * CLASSES + (word + i) % CLASSES] = 1;
        }
        classes[i] = (float)(words[i * STEPS] % CLASSES);
        labels[i * CLASSES + words[i * STEPS] % CLASSES] = 1;
        weights[i] = 0.25f + (float)leat_rng_uniform(&rng);
    }
}

/* ---- A metric with a state that does not add up: the largest error, and the errors' number ---- */

static leat_registry *registry;

static leat_status add_largest(const leat_metric_call *call, leat_error *err) {
    const float *t = call->y_true->data, *p = call->y_pred->data;
    (void)err;
    for (int64_t i = 0; i < leat_tensor_count(call->y_pred); ++i) {
        const float weight = call->sample_weight ? ((const float *)call->sample_weight->data)[i] : 1.0f;
        call->state[0] = fmax(call->state[0], fabs((double)(weight * (t[i] - p[i]))));
        call->state[1] = 0.5 * call->state[1] + (double)p[i]; /* depends on the order */
    }
    return LEAT_OK;
}

static double largest(const void *config, const double *state, int64_t count, void *user) {
    (void)config, (void)count, (void)user;
    return state[0] + state[1];
}

static void register_metric(void) {
    leat_metric_definition definition = leat_metric_definition_default();
    leat_error err = {0};
    definition.name = "Largest";
    definition.state_count = 2;
    definition.update = add_largest;
    definition.result = largest;
    check(leat_registry_create(&registry, &err), &err, "the registry");
    check(leat_registry_add_metric(registry, &definition, &err), &err, "the metric");
}

/* ---- Models ---- */

/* A model of tf.keras with AddLoss and AddMetric layers, which is compiled already. */
static leat_model *load(const words_case *c) {
    char path[512];
    leat_model *model = NULL;
    leat_error err = {0};
    snprintf(path, sizeof path, LEAT_SOURCE_DIR "/tests/golden/files/%s", c->arithmetic);
    check(leat_model_load(&model, path, &err), &err, c->name);
    leat_model_set_deterministic(model, exact);
    return model;
}

static leat_model *make(const words_case *c) {
    char text[2048];
    leat_model *model = NULL;
    leat_error err = {0};
    if (!c->layers) return load(c);
    leat_compile_options options = leat_compile_options_default();
    snprintf(text, sizeof text,
             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [%s]}}", c->layers);
    options.optimizer = c->optimizer;
    options.arithmetic = c->arithmetic;
    options.loss = c->loss;
    if (c->weighted)
        options.weighted_metrics = c->metrics;
    else
        options.metrics = c->metrics;
    check(leat_model_from_json_with(&model, text, registry, &err), &err, c->name);
    check(leat_model_initialize(model, 7, &err), &err, c->name);
    check(leat_model_compile(model, &options, &err), &err, c->name);
    leat_model_set_deterministic(model, exact);
    return model;
}

/* The results of one way to compute. */
typedef struct results {
    leat_history *history;
    leat_logs logs;
} results;

static results train_on(leat_model *model, const words_case *c, const leat_arrays *arrays, leat_dist *dist) {
    results out = {0};
    leat_fit_options options = leat_fit_options_default();
    leat_evaluate_options evaluation = leat_evaluate_options_default();
    leat_error err = {0};
    options.epochs = EPOCHS;
    options.verbose = 0;
    options.threads = evaluation.threads = 1;
    options.seed = 11;
    options.shard_optimizer = c->shards && dist && !on_gpu(); /* GPUs keep their slots whole */
    options.dist = evaluation.dist = dist;
    check(leat_model_fit(model, arrays, BATCH, &options, &out.history, &err), &err, c->name);
    check(leat_model_evaluate(model, arrays, BATCH, &evaluation, &out.logs, &err), &err, c->name);
    return out;
}

/* The files have an input of 4 or 5 numbers, and one has an output with a loss of its own. */
static results train_file(leat_model *model, const words_case *c, leat_dist *dist) {
    const int64_t width = strstr(c->arithmetic, "vae") ? 5 : 4;
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, width}, step_labels)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 2}, labels)};
    const leat_arrays arrays = {.inputs = &input,
                                .input_count = 1,
                                .targets = width == 4 ? &target : NULL,
                                .target_count = width == 4};
    return train_on(model, c, &arrays, dist);
}

static results train(leat_model *model, const words_case *c, leat_dist *dist) {
    leat_array input = {.tensor = leat_tensor_view(LEAT_I32, 2, (int64_t[]){SAMPLES, STEPS}, words)};
    leat_array target = {
        .tensor = c->targets == 2 ? leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, classes)
                  : c->targets == 1
                      ? leat_tensor_view(LEAT_F32, 3, (int64_t[]){SAMPLES, STEPS, CLASSES}, step_labels)
                      : leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, CLASSES}, labels)};
    leat_array weight = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){SAMPLES}, weights)};
    const leat_arrays arrays = {.inputs = &input,
                                .input_count = 1,
                                .targets = &target,
                                .target_count = 1,
                                .sample_weights = c->weighted ? &weight : NULL,
                                .sample_weight_count = c->weighted};
    return train_on(model, c, &arrays, dist);
}

static void compare(const words_case *c, const char *what, int index, double together, double alone) {
    if (exact ? together == alone : fabs(together - alone) <= 1e-6 * (1 + fabs(alone))) return;
    fprintf(stderr, "failed: %s: rank %d: %s, number %d: %.9g by all ranks, %.9g by one\n", c->name, rank,
            what, index, together, alone);
    _Exit(1);
}

static void compare_weights(const words_case *c, const leat_model *a, const leat_model *b) {
    for (int i = 0; i < leat_model_weight_count(a); ++i) {
        leat_tensor x = leat_model_weight(a, i), y = leat_model_weight(b, i);
        const float *p = x.data, *q = y.data;
        for (int64_t j = 0; j < leat_tensor_count(&x); ++j)
            compare(c, leat_model_weight_name(a, i), (int)j, (double)p[j], (double)q[j]);
    }
}

static void compare_results(const words_case *c, const results *a, const results *b) {
    compare(c, "the number of series", 0, leat_history_count(a->history), leat_history_count(b->history));
    for (int i = 0; i < leat_history_count(a->history); ++i) {
        int count = 0, other = 0;
        const char *name = leat_history_name(a->history, i);
        const double *p = leat_history_values(a->history, name, &count),
                     *q = leat_history_values(b->history, name, &other);
        compare(c, name, -1, count, other);
        for (int j = 0; j < count; ++j) compare(c, name, j, p[j], q[j]);
    }
    compare(c, "the number of results", 0, a->logs.count, b->logs.count);
    for (int i = 0; i < a->logs.count; ++i)
        compare(c, a->logs.items[i].name, i, a->logs.items[i].value, b->logs.items[i].value);
}

static void try_case(const words_case *c, leat_dist *all, leat_dist *one) {
    leat_model *together = make(c), *alone = make(c);
    results (*fit)(leat_model *, const words_case *, leat_dist *) = c->layers ? train : train_file;
    results common = fit(together, c, all), single = fit(alone, c, exact ? one : NULL);
    compare_weights(c, together, alone);
    compare_results(c, &common, &single);
    leat_history_destroy(&common.history);
    leat_history_destroy(&single.history);
    leat_model_destroy(&together);
    leat_model_destroy(&alone);
}

/* ---- A sequence that counts the samples that it makes ---- */

static _Atomic int64_t made;
static int fails_at = -1; /* the sample that cannot be made */

static int64_t length(void *user) {
    (void)user;
    return (SAMPLES + BATCH - 1) / BATCH;
}

static int64_t samples(void *user) {
    (void)user;
    return SAMPLES;
}

/* The words are replaced by others, which depend on the pass and the sample. */
static leat_status get_samples(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                               leat_batch *batch, leat_error *err) {
    (void)user;
    for (int64_t i = 0; i < count; ++i) {
        if (numbers[i] == fails_at) return leat_error_set(err, LEAT_EUSER, "this sample is broken");
        leat_rng own = leat_rng_for(rng->key, 0, (uint64_t)numbers[i]);
        int32_t *x = (int32_t *)batch->tensors[0].data + i * STEPS;
        for (int j = 0; j < STEPS; ++j)
            x[j] = (words[numbers[i] * STEPS + j] + (int32_t)leat_rng_below(&own, 2)) % WORDS;
        memcpy((float *)batch->tensors[1].data + i * CLASSES, labels + numbers[i] * CLASSES,
               CLASSES * sizeof *labels);
    }
    batch->size = count;
    made += count;
    return LEAT_OK;
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    int64_t numbers[BATCH], count = 0;
    while (count < BATCH && index * BATCH + count < SAMPLES) {
        numbers[count] = index * BATCH + count;
        ++count;
    }
    return get_samples(user, numbers, count, rng, batch, err);
}

static leat_sequence counting(bool promises) {
    leat_sequence s = leat_sequence_default();
    leat_error err = {0};
    s.spec.batch_size = BATCH;
    check(leat_batch_spec_add(&s.spec, LEAT_PART_INPUT, NULL, LEAT_I32, 1, (int64_t[]){STEPS}, &err), &err,
          "x");
    check(leat_batch_spec_add(&s.spec, LEAT_PART_TARGET, NULL, LEAT_F32, 1, (int64_t[]){CLASSES}, &err), &err,
          "y");
    s.length = length;
    s.get = get;
    s.samples = samples;
    s.get_samples = get_samples;
    s.independent_samples = promises;
    return s;
}

/* Returns the samples that a rank has in a pass: those of its parts of each batch, or one where it has none. */
static int64_t own_samples(int ranks, int64_t total) {
    const int parts = exact ? 8 : ranks, first = rank * parts / ranks, end = (rank + 1) * parts / ranks;
    int64_t own = 0;
    for (int64_t at = 0; at < total; at += BATCH) {
        const int64_t size = total - at < BATCH ? total - at : BATCH;
        const int64_t count = end * size / parts - first * size / parts;
        own += count > 0 ? count : 1;
    }
    return own;
}

/* Trains with 3 of the 5 batches as validation data; returns the samples that were made. */
static int64_t train_counting(leat_model *model, leat_dist *dist, bool promises, leat_shuffle shuffle) {
    leat_sequence data = counting(promises), validation = counting(promises);
    leat_fit_options options = leat_fit_options_default();
    leat_error err = {0};
    options.epochs = EPOCHS;
    options.verbose = 0;
    options.threads = 1;
    options.seed = 3;
    options.shuffle = shuffle;
    options.validation = &validation;
    options.validation_steps = 3;
    options.workers = 0; /* nothing is made ahead that is not used */
    options.dist = dist;
    made = 0;
    check(leat_model_fit_generator(model, &data, &options, NULL, &err), &err, "counting");
    return made;
}

static void the_work_is_divided(leat_dist *all) {
    static const leat_shuffle orders[] = {LEAT_SHUFFLE_NONE, LEAT_SHUFFLE_BATCHES, LEAT_SHUFFLE_SAMPLES};
    const int ranks = leat_dist_size(all);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; ++i) {
        leat_model *divided = make(&cases[0]), *whole = make(&cases[0]);
        const int64_t few = train_counting(divided, all, true, orders[i]);
        const int64_t many = train_counting(whole, all, false, orders[i]);
        if (few != EPOCHS * (own_samples(ranks, SAMPLES) + own_samples(ranks, 3 * BATCH)) ||
            many != EPOCHS * (SAMPLES + 3 * BATCH)) {
            fprintf(stderr, "failed: rank %d makes %lld and %lld samples\n", rank, (long long)few,
                    (long long)many);
            _Exit(1);
        }
        compare_weights(&cases[0], divided, whole);
        leat_model_destroy(&divided);
        leat_model_destroy(&whole);
    }
}

/* A sample that one rank cannot make, in the first batch or later, ends all ranks with the words of that rank, also
 * where the ranks tell each other sums in front of a step. */
static void a_broken_sample_ends_all(leat_dist *all) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        if (strcmp(cases[i].name, "dice") != 0 && strcmp(cases[i].name, "Adam") != 0) continue;
        for (fails_at = 0; fails_at < 30; fails_at += 25) {
            leat_model *model = make(&cases[i]);
            leat_sequence data = counting(true);
            leat_fit_options options = leat_fit_options_default();
            leat_error err = {0};
            options.verbose = 0;
            options.threads = 1;
            options.shuffle = LEAT_SHUFFLE_NONE;
            options.dist = all;
            if (leat_model_fit_generator(model, &data, &options, NULL, &err) != LEAT_EUSER ||
                !strstr(err.message, "this sample is broken") || !strstr(err.message, "rank "))
                check(LEAT_EINVAL, &err, "a broken sample");
            leat_model_destroy(&model);
        }
        fails_at = -1;
    }
}

/* Simulated GPUs are slow: they try each third case.  Otherwise each is tried exactly with any number of ranks, and
 * inexactly with one of 2, 3 and 4 ranks, or with all if LEAT_TEST_ALL is set. */
static bool is_tried(size_t index, int ranks) {
    if (on_gpu()) return index % 3 == 0;
    return exact || getenv("LEAT_TEST_ALL") || ranks == 2 + (int)(index % 3);
}

int main(int argc, char **argv) {
    leat_dist *all = NULL, *one = NULL;
    leat_error err = {0};
    leat_dist_options self = leat_dist_options_default();
    self.kind = LEAT_DIST_SELF;
    exact = argc > 1 && strcmp(argv[1], "exact") == 0;
    check(leat_dist_open(&all, NULL, &err), &err, "the communicator");
    check(leat_dist_open(&one, &self, &err), &err, "the communicator");
    rank = leat_dist_rank(all);
    make_data();
    register_metric();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        if (is_tried(i, leat_dist_size(all))) try_case(&cases[i], all, one);
    the_work_is_divided(all);
    a_broken_sample_ends_all(all);
    if (rank == 0) printf("%d ranks train as one does\n", leat_dist_size(all));
    leat_registry_destroy(&registry);
    leat_dist_close(&one);
    leat_dist_close(&all);
    return 0;
}
