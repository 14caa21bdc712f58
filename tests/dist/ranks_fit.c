/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a test of training: each net is trained by all ranks together, and by this process alone, and both must
 * end with the same weights and the same history: to 1e-6, with the option "exact" to the byte, and with the option
 * "bf16" nearly.  With the option "places" all ranks train together on the device that LEAT_DEVICE names, and then on
 * the CPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/dist.h"
#include "leat/rng.h"
#include "leat/train.h"

enum {
    SAMPLES = 50,
    BATCH = 16,
    EPOCHS = 5,
    EPOCHS_OF_GPUS = 2, /* simulated ones are slow */
    FEATURES = 36,
    CLASSES = 3
}; /* 4 steps per epoch, of 16, 16, 16, 2 */

typedef struct net {
    const char *name, *layers, *optimizer, *loss;
    bool weighted;    /* samples have weights */
    bool only_exact;  /* depends on how the batch is cut */
    bool is_tf_keras; /* a model of tf.keras 2.4, in which a frozen normalisation is fixed */
    enum { APART, MARKED, JOINED } norms; /* synchronized by the layers, or by the option of fit */
} net;

#define OUTPUT                                                                                               \
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"out\", \"units\": 3, \"activation\": "             \
    "\"softmax\"}}"

#define SYNCHRONIZED(option)                                                                                 \
    "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"r\", \"target_shape\": [6, 6, 1],"               \
    " \"batch_input_shape\": [null, 36]}},"                                                                  \
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 4, \"kernel_size\": [3, 3]}},"  \
    "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"b\", " option "}},"                   \
    "{\"class_name\": \"Activation\", \"config\": {\"name\": \"e\", \"activation\": \"relu\"}},"             \
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"g\", \"filters\": 5, \"kernel_size\": [2, 2]}},"  \
    "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"h\", " option "}},"                   \
    "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\"}}," OUTPUT,                                  \
        "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.01}}", "categorical_crossentropy"

static const net nets[] = {
    {"dense",
     "{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 16, \"activation\": \"tanh\","
     " \"kernel_regularizer\": {\"class_name\": \"L1L2\", \"config\": {\"l1\": 0.0, \"l2\": 0.01}},"
     " \"batch_input_shape\": [null, 36]}}," OUTPUT,
     "{\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.01, \"clipnorm\": 0.5}}",
     "categorical_crossentropy", false, false, false, APART},
    {"dense, sum of losses",
     "{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 8, \"activation\": \"relu\","
     " \"batch_input_shape\": [null, 36]}}," OUTPUT,
     "{\"class_name\": \"Adagrad\", \"config\": {\"learning_rate\": 0.01}}",
     "{\"class_name\": \"MeanSquaredError\", \"config\": {\"reduction\": \"sum\"}}", true, false, false,
     APART},
    {"several buckets of gradients",
     "{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 300, \"activation\": \"tanh\","
     " \"batch_input_shape\": [null, 36]}},"
     "{\"class_name\": \"Dense\", \"config\": {\"name\": \"b\", \"units\": 300, \"activation\": "
     "\"tanh\"}}," OUTPUT,
     "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.01}}", "categorical_crossentropy", false,
     false, false, APART},
    {"convolution, frozen normalisation",
     "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"r\", \"target_shape\": [6, 6, 1],"
     " \"batch_input_shape\": [null, 36]}},"
     "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 4, \"kernel_size\": [3, 3]}},"
     "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"b\", \"trainable\": false}},"
     "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\"}}," OUTPUT,
     "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.05, \"momentum\": 0.9, \"nesterov\": "
     "true}}",
     "categorical_crossentropy", true, false, true, APART},
    {"LSTM with masks",
     "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"r\", \"target_shape\": [9, 4],"
     " \"batch_input_shape\": [null, 36]}},"
     "{\"class_name\": \"Masking\", \"config\": {\"name\": \"m\", \"mask_value\": 0.0}},"
     "{\"class_name\": \"LSTM\", \"config\": {\"name\": \"l\", \"units\": 6}}," OUTPUT,
     "{\"class_name\": \"RMSprop\", \"config\": {\"learning_rate\": 0.01}}", "categorical_crossentropy",
     false, false, false, APART},
    {"normalisation and dropout",
     "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"r\", \"target_shape\": [6, 6, 1],"
     " \"batch_input_shape\": [null, 36]}},"
     "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 4, \"kernel_size\": [3, 3],"
     " \"use_bias\": false}},"
     "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"b\"}},"
     "{\"class_name\": \"Dropout\", \"config\": {\"name\": \"d\", \"rate\": 0.3}},"
     "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\"}}," OUTPUT,
     "{\"class_name\": \"Nadam\", \"config\": {\"learning_rate\": 0.01}}", "categorical_crossentropy", true,
     true, false, APART},
    {"normalisations that the layers synchronize", SYNCHRONIZED("\"synchronized\": true"), true, false, false,
     MARKED},
    {"a synchronized normalisation with a mask",
     "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"r\", \"target_shape\": [9, 4],"
     " \"batch_input_shape\": [null, 36]}},"
     "{\"class_name\": \"Masking\", \"config\": {\"name\": \"m\", \"mask_value\": 0.0}},"
     "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"b\", \"synchronized\": true,"
     " \"as_keras3\": true, \"momentum\": 0.8}},"
     "{\"class_name\": \"LSTM\", \"config\": {\"name\": \"l\", \"units\": 6}}," OUTPUT,
     "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.05}}", "categorical_crossentropy", true,
     false, false, MARKED},
    {"normalisations that the option synchronizes", SYNCHRONIZED("\"momentum\": 0.9"), false, false, false,
     JOINED},
};

static float features[SAMPLES * FEATURES], labels[SAMPLES * CLASSES], weights[SAMPLES];
static int rank;
static double tolerance = 1e-6;
static bool bf16, places;
static bool on_gpu; /* LEAT_DEVICE */
static int epochs = EPOCHS;

static void check(leat_status status, const leat_error *err) {
    if (status == LEAT_OK) return;
    fprintf(stderr, "failed: rank %d: %s\n", rank, err->message);
    _Exit(1);
}

static void make_data(void) {
    leat_rng rng = leat_rng_for(1, 2, 3);
    for (int i = 0; i < SAMPLES; ++i) {
        for (int j = 0; j < FEATURES; ++j) {
            float value = (float)leat_rng_uniform(&rng) - 0.5f;
            features[i * FEATURES + j] = j / 4 < i % 9 + 1 ? value : 0; /* later time steps are masked */
        }
        labels[i * CLASSES + i % CLASSES] = 1;
        weights[i] = 0.5f + (float)leat_rng_uniform(&rng);
    }
}

static leat_model *make(const net *n, bool exact) {
    char text[2048];
    leat_model *model = NULL;
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    snprintf(text, sizeof text,
             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [%s]}%s}", n->layers,
             n->is_tf_keras ? ", \"keras_version\": \"2.4.0\", \"backend\": \"tensorflow\"" : "");
    options.optimizer = n->optimizer;
    options.loss = n->loss;
    options.metrics = "accuracy,AUC";
    check(leat_model_from_json(&model, text, &err), &err);
    check(leat_model_initialize(model, 7, &err), &err);
    check(leat_model_compile(model, &options, &err), &err);
    leat_model_set_deterministic(model, exact);
    return model;
}

/* The results of one way to compute. */
typedef struct results {
    leat_history *history;
    leat_logs logs;
    leat_predictions *predictions;
} results;

/* Evaluates and predicts with the trained model. */
static void use(leat_model *model, const leat_arrays *arrays, leat_dist *dist, results *out) {
    leat_evaluate_options options = leat_evaluate_options_default();
    leat_error err = {0};
    options.threads = 1;
    options.dist = dist;
    check(leat_model_evaluate(model, arrays, BATCH, &options, &out->logs, &err), &err);
    check(leat_model_predict(model, arrays, BATCH, &options, &out->predictions, &err), &err);
}

static results train(leat_model *model, const net *n, leat_dist *dist) {
    results out = {0};
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, FEATURES}, features)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, CLASSES}, labels)};
    leat_array weight = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){SAMPLES}, weights)};
    const leat_arrays arrays = {.inputs = &input,
                                .input_count = 1,
                                .targets = &target,
                                .target_count = 1,
                                .sample_weights = n->weighted ? &weight : NULL,
                                .sample_weight_count = n->weighted};
    leat_sequence validation = {0};
    leat_source_options source = leat_source_options_default();
    leat_fit_options options = leat_fit_options_default();
    leat_error err = {0};
    source.batch_size = BATCH;
    check(leat_arrays_open(&validation, sizeof validation, &arrays, &source, &err), &err);
    options.epochs = epochs;
    options.verbose = 0;
    options.threads = 1;
    options.seed = 11;
    options.validation = &validation;
    options.bf16_gradients = bf16 && dist;
    options.sync_batch_norm = n->norms == JOINED;
    options.dist = dist;
    check(leat_model_fit(model, &arrays, BATCH, &options, &out.history, &err), &err);
    leat_sequence_destroy(&validation);
    use(model, &arrays, dist, &out);
    return out;
}

static void fail(const net *n, const char *what, int index, double together, double alone) {
    fprintf(stderr, "failed: %s: rank %d: %s, number %d: %.9g by all ranks, %.9g by one\n", n->name, rank,
            what, index, together, alone);
    _Exit(1);
}

static bool differs(double a, double b, bool exact) {
    return exact ? a != b : !(fabs(a - b) <= tolerance * (1 + fabs(b)));
}

static void compare_weights(const net *n, const leat_model *a, const leat_model *b, bool exact) {
    for (int i = 0; i < leat_model_weight_count(a); ++i) {
        leat_tensor x = leat_model_weight(a, i), y = leat_model_weight(b, i);
        const float *p = x.data, *q = y.data;
        for (int64_t j = 0; j < leat_tensor_count(&x); ++j)
            if (differs((double)p[j], (double)q[j], exact))
                fail(n, leat_model_weight_name(a, i), (int)j, (double)p[j], (double)q[j]);
    }
}

static void compare_histories(const net *n, const leat_history *a, const leat_history *b, bool exact) {
    if (leat_history_count(a) != leat_history_count(b) || leat_history_count(a) < 6)
        fail(n, "the number of series", 0, leat_history_count(a), leat_history_count(b));
    for (int i = 0; i < leat_history_count(a); ++i) {
        int count = 0, other = 0;
        const char *name = leat_history_name(a, i);
        const double *p = leat_history_values(a, name, &count), *q = leat_history_values(b, name, &other);
        if (count != other || count != epochs) fail(n, name, -1, count, other);
        for (int j = 0; j < count; ++j)
            if (differs(p[j], q[j], exact)) fail(n, name, j, p[j], q[j]);
    }
}

static void compare_results(const net *n, const results *a, const results *b, bool exact) {
    leat_tensor x = leat_predictions_get(a->predictions, 0), y = leat_predictions_get(b->predictions, 0);
    const float *p = x.data, *q = y.data;
    if (x.shape[0] != SAMPLES || y.shape[0] != SAMPLES)
        fail(n, "the number of predictions", 0, (double)x.shape[0], (double)y.shape[0]);
    for (int i = 0; i < SAMPLES * CLASSES; ++i)
        if (differs((double)p[i], (double)q[i], exact)) fail(n, "predictions", i, (double)p[i], (double)q[i]);
    if (a->logs.count != b->logs.count || a->logs.count != 3)
        fail(n, "the number of results", 0, a->logs.count, b->logs.count);
    for (int i = 0; i < a->logs.count; ++i)
        if (differs(a->logs.items[i].value, b->logs.items[i].value, exact))
            fail(n, a->logs.items[i].name, i, a->logs.items[i].value, b->logs.items[i].value);
}

static void free_results(results *r) {
    leat_history_destroy(&r->history);
    leat_predictions_destroy(&r->predictions);
}

/* The ranks of a host take its GPUs in turn. */
static void check_device(const net *n, const leat_model *model) {
    const char *gpus = getenv("LEAT_SIM_GPUS");
    char expected[16] = "cpu";
    if (on_gpu) snprintf(expected, sizeof expected, "cuda:%d", rank % (gpus ? atoi(gpus) : 1));
    if (strcmp(leat_model_device(model), expected) != 0) fail(n, leat_model_device(model), 0, on_gpu, rank);
}

static void try_net(const net *n, leat_dist *all, leat_dist *one, bool exact) {
    leat_model *together = make(n, exact), *alone = make(n, exact);
    leat_error err = {0};
    if (places) check(leat_model_set_device(alone, "cpu", &err), &err);
    results common = train(together, n, all), single = train(alone, n, places ? all : exact ? one : NULL);
    check_device(n, together);
    compare_weights(n, together, alone, exact);
    compare_histories(n, common.history, single.history, exact);
    compare_results(n, &common, &single, exact);
    free_results(&common);
    free_results(&single);
    leat_model_destroy(&together);
    leat_model_destroy(&alone);
}

/* On GPUs, several ranks refuse a synchronized normalization. */
static void refuse_net(const net *n, leat_dist *all) {
    leat_model *model = make(n, false);
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, FEATURES}, features)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, CLASSES}, labels)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_fit_options options = leat_fit_options_default();
    leat_error err = {0};
    options.verbose = 0;
    options.sync_batch_norm = n->norms == JOINED;
    options.dist = all;
    leat_status status = leat_model_fit(model, &arrays, BATCH, &options, NULL, &err);
    if (status != LEAT_ENOTSUP || !strstr(err.message, "'b'") || !strstr(err.message, "GPU")) {
        fprintf(stderr, "failed: %s: rank %d: not refused: %s\n", n->name, rank, err.message);
        _Exit(1);
    }
    leat_model_destroy(&model);
}

int main(int argc, char **argv) {
    leat_dist *all = NULL, *one = NULL;
    leat_error err = {0};
    leat_dist_options self = leat_dist_options_default();
    self.kind = LEAT_DIST_SELF;
    bool exact = argc > 1 && strcmp(argv[1], "exact") == 0;
    if (argc > 1 && strcmp(argv[1], "bf16") == 0) {
        bf16 = true;
        tolerance = 0.05;
    }
    places = argc > 1 && strcmp(argv[1], "places") == 0;
    if (places) tolerance = 1e-5;
    on_gpu = getenv("LEAT_DEVICE") && strcmp(getenv("LEAT_DEVICE"), "cpu") != 0;
    check(leat_dist_open(&all, NULL, &err), &err);
    check(leat_dist_open(&one, &self, &err), &err);
    rank = leat_dist_rank(all);
    if (on_gpu) epochs = EPOCHS_OF_GPUS;
    make_data();
    for (size_t i = 0; i < sizeof nets / sizeof *nets; ++i)
        if (on_gpu && nets[i].norms != APART)
            refuse_net(&nets[i], all);
        else if (exact ? nets[i].norms == APART : places || !nets[i].only_exact)
            try_net(&nets[i], all, one, exact);
    if (rank == 0) printf("%d ranks train as one does\n", leat_dist_size(all));
    leat_dist_close(&one);
    leat_dist_close(&all);
    return 0;
}
