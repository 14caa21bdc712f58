/* SPDX-License-Identifier: Apache-2.0 */
/* Valid values for the parameters of the public functions, found by the parameter's type and name and by the
 * function. */
#include "arguments/values.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint/state.h"
#include "cmocka_all.h"
#include "nn/custom_layers.h"
#include "nn/custom_parts.h"
#include "train/support.h"

enum { SAMPLES = 8, FEATURES = 4, CLASSES = 3 };

/* All objects that arguments point to.  Objects that functions fill in are zeroed initially. */
static struct {
    float x[SAMPLES][FEATURES], y[SAMPLES][CLASSES], weights[SAMPLES];
    char state[4096];
    leat_array input, target, weight;
    leat_arrays arrays;
    clusters clusters, held_back, sampled;
    leat_sequence sequence, validation, opened_sequence, splittable, last_sequence, pictures;
    leat_sequence *parts[1];
    double mix_weights[1];
    leat_window_options windowing;
    leat_cache_options caching;
    leat_batch_spec spec;
    const leat_batch *batch;
    leat_model *model, *other, *stateful, *new_model;
    leat_registry *registry, *new_registry;
    leat_layer_definition definition, cell;
    leat_loss_definition custom_loss;
    leat_metric_definition custom_metric;
    leat_activation_definition custom_activation;
    leat_initializer_definition custom_initializer;
    leat_regularizer_definition custom_regularizer;
    leat_constraint_definition custom_constraint;
    leat_optimizer_definition custom_optimizer;
    leat_layer_key keys[2];
    leat_layer_weight layer_weight;
    char elsewhere; /* placeholder for an object that exists only in a callback; call_with replaces it */
    leat_builder *builder, *new_builder, *grown;
    leat_node *node, *nodes[2], *made[1], *image, *steps;
    leat_callback callback, new_callback;
    leat_callback *callbacks[1];
    leat_logs logs;
    leat_history *history, *new_history;
    leat_predictions *predictions, *new_predictions;
    leat_predictor *predictor, *recurrent, *new_predictor;
    leat_feed *feed, *new_feed;
    leat_feed_config plan;
    leat_feed_position position;
    leat_feed_depth depth;
    leat_trace *trace, *new_trace;
    leat_dist *dist, *new_dist;
    leat_npz *npz, *new_npz;
    leat_rng rng;
    leat_class_weight class_weight[CLASSES];
    leat_tensor tensor, new_tensor, shape, step, prediction, row, predicted, kernel;
    float kernel_numbers[1024];
    leat_feed_making making;
    leat_layer_source layer_source;
    int64_t strides[LEAT_MAX_RANK], steps_done;
    float pair[2][FEATURES], results[SAMPLES][CLASSES];
    leat_dtype dtype;
    leat_error err;
    leat_compile_options compile;
    leat_model_load_options load;
    leat_load_weights_options matching;
    leat_on_batch_options on_batch;
    leat_dist_options connecting;
    leat_fit_options fit;
    leat_evaluate_options evaluate;
    leat_feed_options feeding;
    leat_plan_options plans;
    leat_predictor_options predicting;
    leat_weights_format weights_format;
    leat_source_options source;
    leat_model_checkpoint_options checkpoint;
    leat_early_stopping_options stopping;
    leat_reduce_lr_options reducing;
    leat_remote_monitor_options monitoring;
    leat_open_metrics_options metrics;
    leat_tensorboard_options boarding;
    leat_feed_stats stats;
    leat_verdict verdict;
    leat_checkpoint_options checkpoints;
    leat_checkpoint_info found;
    leati_snapshot snapshot;
    leati_image stored;
    leat_state saving, loading;
    char *string, *new_string;
    char *recorded; /* the fingerprint of nonsense.npy */
    leat_lock *lock, *new_lock;
    char file[1 << 17]; /* a .h5 file in memory, and zeros behind it, which HDF5 does not read */
    void *content, *new_content;
    size_t content_bytes;
    void *inputs[1], *outputs[1];
    const char *names[1];
    const char *layers[1];
    int64_t shapes[LEAT_MAX_RANK + 1], epochs[1]; /* long enough for the largest rank that is tested */
    int count;
    double real;
    bool more;
    leat_picture picture, new_picture;
    leat_picture_options decoding;
    leat_augment *augment, *new_augment;
    unsigned char pixels[4 * 4 * 3], augmented[4 * 4 * 3];
    float augmented_floats[4 * 4 * 3];
} all;

/* ---- Creating the objects ---- */

static void make_arrays(void) {
    all.input.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, FEATURES}, all.x);
    all.target.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, CLASSES}, all.y);
    all.weight.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){SAMPLES}, all.weights);
    for (int i = 0; i < SAMPLES; ++i) all.y[i][i % CLASSES] = all.weights[i] = 1;
    all.arrays = (leat_arrays){.inputs = &all.input,
                               .targets = &all.target,
                               .sample_weights = &all.weight,
                               .input_count = 1,
                               .target_count = 1,
                               .sample_weight_count = 1};
    all.clusters = clusters_of(SAMPLES, 4), all.held_back = clusters_of(SAMPLES, 4);
    all.sequence = clusters_sequence(&all.clusters), all.validation = clusters_sequence(&all.held_back);
    all.sampled = clusters_of(SAMPLES, 4), all.sampled.sampled = true;
    all.splittable = clusters_sequence(&all.sampled), all.splittable.on_epoch_end = NULL;
    all.parts[0] = &all.splittable;
    expect_ok(leat_source_open(&all.pictures, sizeof all.pictures,
                               "images:" LEAT_SOURCE_DIR "/tests/golden/pictures?labels=none", NULL,
                               &all.err),
              &all.err);
    all.mix_weights[0] = 1;
    all.tensor = all.input.tensor;
    all.shape = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, FEATURES}, NULL);
    all.step = leat_tensor_view(LEAT_I64, 0, NULL, &all.steps_done);
    all.prediction = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, CLASSES}, all.results);
    all.strides[0] = sizeof all.x[0], all.strides[1] = sizeof all.x[0][0];
    all.rng = leat_rng_for(1, 2, 3);
    all.inputs[0] = all.x, all.outputs[0] = all.y;
    all.names[0] = "a";
    all.shapes[0] = all.shapes[1] = FEATURES;
    all.epochs[0] = 1;
    leat_logs_set(&all.logs, "loss", 1);
}

static void make_options(void) {
    for (int i = 0; i < CLASSES; ++i) all.class_weight[i] = (leat_class_weight){i, 1};
    all.callback = leat_callback_default();
    all.callbacks[0] = &all.callback;
    all.compile = leat_compile_options_default();
    all.load = leat_model_load_options_default();
    all.matching = leat_load_weights_options_default();
    all.on_batch = leat_on_batch_options_default();
    all.layers[0] = "hidden";
    all.compile.loss = "categorical_crossentropy", all.compile.metrics = "accuracy";
    all.compile.weighted_metrics = "accuracy", all.compile.loss_weights = "[1]";
    all.fit = quiet_fit_with(1, all.callbacks, 1);
    all.fit.validation = &all.validation;
    all.fit.validation_epochs = all.epochs, all.fit.validation_epoch_count = 1;
    all.fit.class_weight = all.class_weight, all.fit.class_weight_count = CLASSES;
    all.evaluate = leat_evaluate_options_default();
    all.evaluate.callbacks = all.callbacks, all.evaluate.callback_count = 1, all.evaluate.threads = 1;
    all.feeding = leat_feed_options_default();
    all.feeding.trace = all.trace;
    all.plan = (leat_feed_config){.sequence = &all.sequence, .options = &all.feeding};
    all.plans = leat_plan_options_default();
    all.plans.threads = 1;
    all.predicting = leat_predictor_options_default();
    all.predicting.inputs = &all.shape, all.predicting.batch_size = 2;
    all.source = leat_source_options_default();
    all.windowing = leat_window_options_default();
    all.windowing.length = 2;
    all.caching = leat_cache_options_default();
    all.checkpoint = leat_model_checkpoint_options_default(),
    all.checkpoint.filepath = "nonsense-checkpoint.h5";
    all.stopping = leat_early_stopping_options_default();
    all.reducing = leat_reduce_lr_options_default();
    all.monitoring = leat_remote_monitor_options_default();
    all.metrics = leat_open_metrics_options_default();
    all.metrics.path = "nonsense.prom";
    all.checkpoints = leat_checkpoint_options_default();
    all.checkpoints.folder = "nonsense-checkpoints";
    all.boarding = leat_tensorboard_options_default();
    all.boarding.log_dir = "nonsense-logs";
}

static void make_models(void) {
    all.model = make_classifier(1), all.other = make_classifier(2);
    expect_ok(leat_model_weight_shape(all.model, 0, &all.kernel, &all.err), &all.err);
    assert_in_range(leat_tensor_count(&all.kernel), 1, 1024);
    all.kernel.data = all.kernel_numbers;
    leat_builder *builder = NULL;
    leat_node *in, *out;
    expect_ok(leat_builder_create(&builder, &all.err), &all.err);
    in = leat_batch_input(builder, (int64_t[]){2, 3, 2}, 3);
    out = leat_layer(in, "LSTM", "{'units': 2, 'stateful': true, 'name': 'memory'}");
    expect_ok(leat_model_create(&all.stateful, &builder, &in, 1, &out, 1, &all.err), &all.err);

    expect_ok(leat_builder_create_from(&all.grown, all.model, &all.err), &all.err);
    expect_ok(leat_builder_create(&all.builder, &all.err), &all.err);
    all.node = leat_input(all.builder, (int64_t[]){FEATURES}, 1);
    all.made[0] = leat_dense(all.node, FEATURES, "relu");
    all.nodes[0] = all.node, all.nodes[1] = all.made[0];
    all.image = leat_input(all.builder, (int64_t[]){8, 8, 3}, 3);
    all.steps = leat_input(all.builder, (int64_t[]){3, 2}, 2);

    all.keys[0] = (leat_layer_key){.key = "factor", .kind = LEAT_KEY_FLOAT, .preset = "2"};
    all.definition = custom_times();
    all.cell = custom_lstm_cell();
    all.cell.keys = all.keys;
    all.custom_loss = custom_mse();
    all.custom_metric = custom_error();
    all.custom_activation = custom_tanh();
    all.custom_initializer = custom_uniform();
    all.custom_regularizer = custom_l2();
    all.custom_constraint = custom_max_norm();
    all.custom_optimizer = custom_normalized();
    all.custom_optimizer.keys = all.keys;
    all.custom_optimizer.config_bytes = sizeof(double);
    all.custom_loss.keys = all.keys;
    all.custom_metric.keys = all.keys;
    all.custom_initializer.keys = all.keys;
    all.custom_regularizer.keys = all.keys;
    all.custom_constraint.keys = all.keys;
    all.definition.keys = all.keys;
    all.layer_weight =
        (leat_layer_weight){.size = sizeof(leat_layer_weight), .name = "w", .rank = 1, .shape = {FEATURES}};
    expect_ok(leat_registry_create(&all.registry, &all.err), &all.err);
}

static void make_results(void) {
    const leat_fit_options fit = quiet_fit(1);
    leat_predictor_options options = leat_predictor_options_default();
    expect_ok(leat_model_fit_generator(all.model, &all.sequence, &fit, &all.history, &all.err), &all.err);
    expect_ok(leat_model_predict_generator(all.model, &all.sequence, &all.evaluate, &all.predictions,
                                           &all.err),
              &all.err);
    expect_ok(leat_predictor_create(&all.predictor, all.model, &options, &all.err), &all.err);
    expect_ok(leat_predictor_create(&all.recurrent, all.stateful, NULL, &all.err), &all.err);
    assert_true(leat_predictor_state_bytes(all.predictor) <= sizeof all.state);
    all.row = leat_predictor_input(all.predictor, 0), all.predicted = leat_predictor_output(all.predictor, 0);
    expect_ok(leat_model_to_json(all.model, &all.string, &all.err), &all.err);
    expect_ok(leat_model_save(all.model, "nonsense.h5", true, &all.err), &all.err);
    expect_ok(leat_model_save_memory(all.model, LEAT_MODEL_FORMAT_H5, true, &all.content, &all.content_bytes,
                                     &all.err),
              &all.err);
    assert_true(all.content_bytes <= sizeof all.file);
    memcpy(all.file, all.content, all.content_bytes);
    expect_ok(leat_npz_write("nonsense.npz", all.names, &all.tensor, 1, &all.err), &all.err);
    expect_ok(leat_npz_open(&all.npz, "nonsense.npz", &all.err), &all.err);
    expect_ok(leat_npy_write("nonsense.npy", &all.tensor, &all.err), &all.err);
    expect_ok(leat_source_fingerprint("npy:nonsense.npy", &all.recorded, &all.err), &all.err);
}

/* A checkpoint in a folder, and the states that save_state and load_state of a callback receive. */
static void make_checkpoint(void) {
    static const char path[] = "nonsense-checkpoint-folder/step-000000000001.leat";
    const double loss[2] = {1, 2};
    const int64_t none = 0;
    expect_ok(leati_snapshot_begin(&all.snapshot, &all.err), &all.err);
    all.saving = (leat_state){.snapshot = &all.snapshot, .prefix = "fit/"};
    const char *const numbers[] = {"epoch", "step", "steps", "ended", "a file"};
    for (int i = 0; i < 5; ++i)
        expect_ok(leat_state_put(&all.saving, numbers[i], &none, sizeof none, &all.err), &all.err);
    expect_ok(leat_state_put(&all.saving, "loss", loss, sizeof loss, &all.err), &all.err);
    leati_snapshot_finish(&all.snapshot);
    (void)mkdir("nonsense-checkpoint-folder", 0777);
    expect_ok(leat_file_replace(path, all.snapshot.data, all.snapshot.bytes, &all.err), &all.err);
    expect_ok(leati_image_open(&all.stored, path, &all.err), &all.err);
    all.loading = (leat_state){.image = &all.stored, .prefix = "fit/"};
    expect_ok(leati_snapshot_begin(&all.snapshot, &all.err), &all.err);
}

static void make_pictures(void) {
    memcpy(all.pixels, "P6 2 2 255\n", 11);
    all.decoding = leat_picture_options_default();
    expect_ok(leat_picture_decode(&all.picture, all.pixels, sizeof all.pixels, NULL, &all.err), &all.err);
    expect_ok(leat_augment_create(&all.augment, "flip", 4, 4, 3, &all.err), &all.err);
}

void make_values(void) {
    make_pictures();
    make_arrays();
    all.connecting = leat_dist_options_default();
    all.connecting.kind = LEAT_DIST_SELF;
    expect_ok(leat_dist_open(&all.dist, &all.connecting, &all.err), &all.err);
    expect_ok(leat_trace_open(&all.trace, "nonsense-trace.json", &all.err), &all.err);
    make_options();
    make_models();
    make_results();
    make_checkpoint();
}

/* ---- Finding a value ---- */

/* The value of a pointer parameter: HELD(member) is the pointer in a member of `all`, IN(member) the member's
 * address. */
typedef struct rule {
    const char *type, *name, *function; /* NULL: any */
    void *place;
    bool held;
} rule;

#define HELD(member) &all.member, true
#define IN(member)   &all.member, false

static const rule objects[] = {
    {"const leat_augment *", NULL, NULL, HELD(augment)},
    {"leat_augment **", "out", NULL, IN(new_augment)},
    {"leat_augment **", NULL, NULL, IN(augment)},
    {"const leat_picture *", NULL, NULL, IN(picture)},
    {"leat_picture *", "out", NULL, IN(new_picture)},
    {"leat_picture *", NULL, NULL, IN(picture)},
    {"const leat_picture_options *", NULL, NULL, IN(decoding)},
    {"leat_picture_options *", NULL, NULL, IN(decoding)},
    {"const leat_rng *", NULL, NULL, IN(rng)},
    {"const uint8_t *", "src", NULL, IN(pixels)},
    {"uint8_t *", "dst", NULL, IN(augmented)},
    {"void *", "dst", "leat_augment_apply", IN(augmented)},
    {"float *", "dst", "leat_augment_apply_floats", IN(augmented_floats)},
    {"int64_t *", "height", "leat_augment_output", IN(steps_done)},
    {"int64_t *", "width", "leat_augment_output", IN(strides)},
    {"int64_t *", "sizes", "leat_source_note_sizes", IN(strides)},
    {"int64_t *", "first", "leat_feed_whole", IN(steps_done)},
    {"bool *", "is_float", NULL, IN(more)},
    {"const void *", "data", "leat_picture_decode", IN(pixels)},
    {"bool *", NULL, NULL, IN(more)},
    {"char *", "string", NULL, HELD(string)},
    {"char **", "out", NULL, IN(new_string)},
    {"const char *const *", "names", NULL, IN(names)},
    {"const char *const *", "inputs", NULL, IN(layers)},
    {"const char *const *", "outputs", NULL, IN(layers)},
    {"const int64_t *", "strides", NULL, IN(strides)},
    {"const int64_t *", NULL, NULL, IN(shapes)},
    {"const leat_arrays *", NULL, NULL, IN(arrays)},
    {"const leat_batch **", NULL, NULL, IN(batch)},
    {"const leat_batch_spec *", NULL, NULL, IN(sequence.spec)},
    {"const leat_compile_options *", NULL, NULL, IN(compile)},
    {"const leat_model_load_options *", NULL, NULL, IN(load)},
    {"const leat_load_weights_options *", NULL, NULL, IN(matching)},
    {"const leat_on_batch_options *", NULL, NULL, IN(on_batch)},
    {"const leat_dist *", NULL, NULL, HELD(dist)},
    {"const leat_dist_options *", NULL, NULL, IN(connecting)},
    {"const leat_early_stopping_options *", NULL, NULL, IN(stopping)},
    {"const leat_evaluate_options *", NULL, NULL, IN(evaluate)},
    {"const leat_feed *", NULL, NULL, HELD(feed)},
    {"const leat_feed_options *", NULL, NULL, IN(feeding)},
    {"const leat_feed_config *", NULL, NULL, IN(plan)},
    {"const leat_feed_position *", NULL, NULL, IN(position)},
    {"const leat_fit_options *", NULL, NULL, IN(fit)},
    {"const leat_history *", NULL, NULL, HELD(history)},
    {"const leat_layer_definition *", NULL, "leat_registry_add_cell", IN(cell)},
    {"const leat_layer_definition *", NULL, NULL, IN(definition)},
    {"const leat_loss_definition *", NULL, NULL, IN(custom_loss)},
    {"const leat_metric_definition *", NULL, NULL, IN(custom_metric)},
    {"const leat_activation_definition *", NULL, NULL, IN(custom_activation)},
    {"const leat_initializer_definition *", NULL, NULL, IN(custom_initializer)},
    {"const leat_regularizer_definition *", NULL, NULL, IN(custom_regularizer)},
    {"const leat_constraint_definition *", NULL, NULL, IN(custom_constraint)},
    {"const leat_optimizer_definition *", NULL, NULL, IN(custom_optimizer)},
    {"const leat_layer_weight *", NULL, NULL, IN(layer_weight)},
    {"const leat_logs *", NULL, NULL, IN(logs)},
    {"const leat_model *", "from", NULL, HELD(other)},
    {"const leat_model *", NULL, "leat_model_state", HELD(stateful)},
    {"const leat_model *", NULL, "leat_model_state_into", HELD(stateful)},
    {"const leat_model *", NULL, NULL, HELD(model)},
    {"const leat_model_checkpoint_options *", NULL, NULL, IN(checkpoint)},
    {"const leat_state *", NULL, NULL, IN(loading)},
    {"const leat_remote_monitor_options *", NULL, NULL, IN(monitoring)},
    {"const leat_open_metrics_options *", NULL, NULL, IN(metrics)},
    {"const leat_npz *", NULL, NULL, HELD(npz)},
    {"const leat_plan_options *", NULL, NULL, IN(plans)},
    {"const leat_predictions *", NULL, NULL, HELD(predictions)},
    {"const leat_predictor *", NULL, "leat_predictor_state_into", HELD(recurrent)},
    {"const leat_predictor *", NULL, NULL, HELD(predictor)},
    {"const leat_predictor_options *", NULL, NULL, IN(predicting)},
    {"const leat_reduce_lr_options *", NULL, NULL, IN(reducing)},
    {"const leat_registry *", NULL, NULL, HELD(registry)},
    {"const leat_sequence *", NULL, "leat_source_note_sizes", IN(pictures)},
    {"const leat_sequence *", NULL, "leat_source_sample_name", IN(pictures)},
    {"const leat_sequence *", NULL, NULL, IN(sequence)},
    {"const leat_source_options *", NULL, NULL, IN(source)},
    {"const leat_window_options *", NULL, NULL, IN(windowing)},
    {"const leat_cache_options *", NULL, NULL, IN(caching)},
    {"const double *", "weights", NULL, IN(mix_weights)},
    {"const leat_tensorboard_options *", NULL, NULL, IN(boarding)},
    {"const leat_tensor *", "shapes", NULL, IN(shape)},
    {"const leat_tensor *", NULL, "leat_model_weight_get", IN(kernel)},
    {"const leat_tensor *", NULL, "leat_model_weight_set", IN(kernel)},
    {"const leat_tensor *", NULL, "leat_model_optimizer_weight_get", IN(step)},
    {"const leat_tensor *", NULL, "leat_model_optimizer_weight_set", IN(step)},
    {"const leat_tensor *", "inputs", "leat_predictor_run_into", IN(row)},
    {"const leat_tensor *", "outputs", "leat_predictor_run_into", IN(predicted)},
    {"const leat_tensor *", NULL, NULL, IN(tensor)},
    {"const leat_training *", NULL, NULL, IN(elsewhere)},
    {"char *", NULL, NULL, IN(state)},
    {"const void *", "data", "leat_model_load_memory", IN(file)},
    {"const void *", "data", "leat_model_load_memory_using", IN(file)},
    {"const void *", "data", "leat_model_load_weights_memory", IN(file)},
    {"const void *", NULL, NULL, IN(state)},
    {"const void *const *", "inputs", NULL, IN(inputs)},
    {"double *", NULL, NULL, IN(real)},
    {"int *", "count", NULL, IN(count)},
    {"leat_batch_spec *", NULL, NULL, IN(spec)},
    {"leat_builder *", NULL, "leat_builder_input", HELD(grown)},
    {"leat_builder *", NULL, "leat_builder_output", HELD(grown)},
    {"leat_builder *", NULL, "leat_builder_layer", HELD(grown)},
    {"leat_builder *", NULL, NULL, HELD(builder)},
    {"leat_builder **", "out", NULL, IN(new_builder)},
    {"leat_builder **", NULL, NULL, IN(builder)},
    {"leat_checkpoint_info *", NULL, NULL, IN(found)},
    {"leat_checkpoint_options *", NULL, NULL, IN(checkpoints)},
    {"leat_state *", NULL, NULL, IN(saving)},
    {"leat_callback *", "out", NULL, IN(new_callback)},
    {"leat_callback *", NULL, NULL, IN(callback)},
    {"leat_compile_options *", NULL, NULL, IN(compile)},
    {"leat_model_load_options *", NULL, NULL, IN(load)},
    {"leat_load_weights_options *", NULL, NULL, IN(matching)},
    {"leat_on_batch_options *", NULL, NULL, IN(on_batch)},
    {"leat_dist *", NULL, NULL, HELD(dist)},
    {"leat_dist **", "out", NULL, IN(new_dist)},
    {"leat_dist **", NULL, NULL, IN(dist)},
    {"leat_dist_options *", NULL, NULL, IN(connecting)},
    {"leat_dtype *", NULL, NULL, IN(dtype)},
    {"leat_weights_format *", NULL, NULL, IN(weights_format)},
    {"leat_early_stopping_options *", NULL, NULL, IN(stopping)},
    {"leat_error *", NULL, NULL, IN(err)},
    {"leat_evaluate_options *", NULL, NULL, IN(evaluate)},
    {"leat_feed *", NULL, NULL, HELD(feed)},
    {"leat_feed **", "out", NULL, IN(new_feed)},
    {"leat_feed **", NULL, NULL, IN(feed)},
    {"leat_feed_depth *", NULL, NULL, IN(depth)},
    {"leat_feed_making *", NULL, NULL, IN(making)},
    {"leat_feed_options *", NULL, NULL, IN(feeding)},
    {"leat_feed_position *", NULL, NULL, IN(position)},
    {"leat_feed_stats *", NULL, NULL, IN(stats)},
    {"leat_fit_options *", NULL, NULL, IN(fit)},
    {"leat_history **", NULL, "leat_history_destroy", IN(history)},
    {"leat_history **", NULL, NULL, IN(new_history)},
    {"leat_layer_definition *", NULL, NULL, IN(definition)},
    {"leat_loss_definition *", NULL, NULL, IN(custom_loss)},
    {"leat_metric_definition *", NULL, NULL, IN(custom_metric)},
    {"leat_activation_definition *", NULL, NULL, IN(custom_activation)},
    {"leat_initializer_definition *", NULL, NULL, IN(custom_initializer)},
    {"leat_regularizer_definition *", NULL, NULL, IN(custom_regularizer)},
    {"leat_constraint_definition *", NULL, NULL, IN(custom_constraint)},
    {"leat_optimizer_definition *", NULL, NULL, IN(custom_optimizer)},
    {"leat_layer_source *", NULL, NULL, IN(layer_source)},
    {"leat_layer_weight *", NULL, NULL, IN(layer_weight)},
    {"leat_layer_weights *", NULL, NULL, IN(elsewhere)},
    {"leat_lock **", "out", NULL, IN(new_lock)},
    {"leat_lock **", NULL, NULL, IN(lock)},
    {"leat_logs *", NULL, NULL, IN(logs)},
    {"leat_model *", NULL, NULL, HELD(model)},
    {"leat_model **", "out", NULL, IN(new_model)},
    {"leat_model **", NULL, NULL, IN(model)},
    {"leat_model_checkpoint_options *", NULL, NULL, IN(checkpoint)},
    {"leat_remote_monitor_options *", NULL, NULL, IN(monitoring)},
    {"leat_open_metrics_options *", NULL, NULL, IN(metrics)},
    {"leat_node *", NULL, "leat_conv2d", HELD(image)},
    {"leat_node *", NULL, "leat_max_pooling2d", HELD(image)},
    {"leat_node *", NULL, "leat_average_pooling2d", HELD(image)},
    {"leat_node *", NULL, "leat_flatten", HELD(image)},
    {"leat_node *", NULL, "leat_lstm", HELD(steps)},
    {"leat_node *", "made", NULL, HELD(made[0])},
    {"leat_node *", NULL, NULL, HELD(node)},
    {"leat_node *const *", "outputs", NULL, IN(made)},
    {"leat_node *const *", NULL, NULL, IN(nodes)},
    {"leat_npz *", NULL, NULL, HELD(npz)},
    {"leat_npz **", "out", NULL, IN(new_npz)},
    {"leat_npz **", NULL, NULL, IN(npz)},
    {"leat_plan_options *", NULL, NULL, IN(plans)},
    {"leat_predictions **", "out", NULL, IN(new_predictions)},
    {"leat_predictions **", NULL, NULL, IN(predictions)},
    {"leat_predictor *", NULL, NULL, HELD(predictor)},
    {"leat_predictor **", "out", NULL, IN(new_predictor)},
    {"leat_predictor **", NULL, NULL, IN(predictor)},
    {"leat_predictor_options *", NULL, NULL, IN(predicting)},
    {"leat_reduce_lr_options *", NULL, NULL, IN(reducing)},
    {"leat_registry *", NULL, NULL, HELD(registry)},
    {"leat_registry **", "out", NULL, IN(new_registry)},
    {"leat_registry **", NULL, NULL, IN(registry)},
    {"leat_rng *", NULL, NULL, IN(rng)},
    {"leat_sequence *", "out", NULL, IN(opened_sequence)},
    {"leat_sequence *", "first", NULL, IN(opened_sequence)},
    {"leat_sequence *", "last", NULL, IN(last_sequence)},
    {"leat_sequence *", "whole", NULL, IN(splittable)},
    {"leat_sequence *const *", "parts", NULL, IN(parts)},
    {"leat_window_options *", NULL, NULL, IN(windowing)},
    {"leat_cache_options *", NULL, NULL, IN(caching)},
    {"leat_sequence *", NULL, NULL, IN(sequence)},
    {"leat_source_options *", NULL, NULL, IN(source)},
    {"leat_tensorboard_options *", NULL, NULL, IN(boarding)},
    {"leat_tensor *", "outputs", NULL, IN(prediction)},
    {"leat_tensor *", NULL, NULL, IN(new_tensor)},
    {"leat_trace **", "out", NULL, IN(new_trace)},
    {"leat_trace **", NULL, NULL, IN(trace)},
    {"leat_training *", NULL, NULL, IN(elsewhere)},
    {"size_t *", NULL, NULL, IN(content_bytes)},
    {"void *", NULL, "leat_bytes_free", HELD(content)},
    {"leat_verdict *", NULL, NULL, IN(verdict)},
    {"void *", NULL, NULL, IN(state)},
    {"void **", "out", NULL, IN(new_content)},
    {"void *const *", "outputs", NULL, IN(outputs)},
};

typedef struct text {
    const char *name, *function, *text; /* NULL: any */
} text;

static const text texts[] = {
    {"steps", NULL, "flip"},
    {"interpolation", NULL, "bilinear"},
    {"aspect", NULL, "crop"},
    {"activation", NULL, "relu"},
    {"class_name", "leat_merge", "Add"},
    {"class_name", "leat_mergef", "Add"},
    {"class_name", "leat_layer", "BatchNormalization"},
    {"class_name", NULL, "Dense"},
    {"config", "leat_layer", "{'momentum': 0.5}"},
    {"config", NULL, "{}"},
    {"folder", "leat_checkpoint_find", "nonsense-checkpoint-folder"},
    {"folder", "leat_folder_lock", "."},
    {"folder", "leat_folder_clean", "."},
    {"format", "leat_layerf", "{'units': 2}"},
    {"format", NULL, "{}"},
    {"json", NULL,
     "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"line\", \"layers\": [{\"class_name\": "
     "\"Dense\", \"config\": {\"units\": 1, \"batch_input_shape\": [null, 1]}}]}}"},
    {"layer", "leat_model_set_trainable", "hidden"},
    {"layer", NULL, "memory"},
    {"message", NULL, "a message"},
    {"pattern", NULL, "hid*"},
    {"name", "leat_builder_layer", "hidden"},
    {"name", "leat_dtype_parse", "float32"},
    {"name", "leat_weights_format_parse", "bf16"},
    {"name", "leat_model_find_layer", "hidden"},
    {"name", "leat_model_find_weight", "hidden/kernel"},
    {"name", "leat_model_set_device", "cpu"},
    {"name", "leat_npz_get", "a"},
    {"name", "leat_state_restore_file", "a file"},
    {"name", NULL, "loss"},
    {"path", "leat_model_load", "nonsense.h5"},
    {"path", "leat_model_load_with", "nonsense.h5"},
    {"path", "leat_model_load_using", "nonsense.h5"},
    {"path", "leat_model_load_weights", "nonsense.h5"},
    {"path", "leat_model_load_weights_using", "nonsense.h5"},
    {"path", "leat_npz_open", "nonsense.npz"},
    {"path", "leat_registry_load", LEAT_PLUGIN_LAYERS},
    {"path", NULL, "nonsense-written"},
    {"policy", NULL, "float32"},
    {"reason", NULL, "enough"},
    {"separator", NULL, ","},
    {"spec", "leat_source_files", "images:" LEAT_SOURCE_DIR "/tests/golden/pictures?labels=none"},
    {"spec", NULL, "npy:nonsense.npy"},
    {"text", "leat_callback_from_text", "EarlyStopping(patience=2)"},
    {"text", NULL, "a text"},
};

typedef struct number {
    const char *name, *function;
    double number;
} number;

static const number numbers[] = {
    {"height", NULL, 4},
    {"width", NULL, 4},
    {"channels", NULL, 3},
    {"sample_number", NULL, 0},
    {"scale", NULL, 1},
    {"rank", "leat_batch_input", 2},
    {"rank", "leat_dist_host", 0},
    {"rank", "leat_dist_cores", 0},
    {"rank", "leat_dist_sharers", 0},
    {"rank", "leat_tensor_view", 2},
    {"rank", "leat_tensor_view_into", 2},
    {"rank", NULL, 1},
    {"code", NULL, LEAT_EUSER},
    {"status", NULL, LEAT_EUSER},
    {"count", "leat_merge", 2},
    {"count", "leat_mergef", 2},
    {"count", NULL, 1},
    {"input_count", NULL, 1},
    {"output_count", NULL, 1},
    {"capacity", NULL, 1},
    {"timeout_ms", NULL, 60000},
    {"batch_size", NULL, 4},
    {"filters", NULL, 2},
    {"kernel_size", NULL, 3},
    {"pool_size", NULL, 2},
    {"units", NULL, 2},
    {"rate", NULL, 0.5},
    {"threads", NULL, 1},
    {"bound", NULL, 10},
    {"learning_rate", NULL, 0.1},
    {"value", NULL, 1},
    {"index", NULL, 0},
    {"layer", NULL, 1},
    {"call", NULL, 0},
    {"kind", NULL, LEAT_NAMES_LOSSES},
    {"bytes", "leat_model_load_memory", sizeof all.file},
    {"bytes", "leat_model_load_memory_using", sizeof all.file},
    {"bytes", "leat_model_load_weights_memory", sizeof all.file},
    {"bytes", "leat_picture_decode", sizeof all.pixels},
    {"bytes", NULL, 16},
    {"format", NULL, LEAT_MODEL_FORMAT_H5},
    {"output", NULL, 0},
    {"worker", NULL, 0},
    {"sample", NULL, 0},
    {"level", NULL, LEAT_LOG_INFO},
    {"verbose", "leat_progbar_logger_create", 1},
    {"verbose", NULL, 0},
    {"seed", NULL, 0},
    {"share", NULL, 0.5},
    {"samples", NULL, 4},
    {"times", NULL, 2},
    {"start", NULL, 0},
    {"stop", NULL, 4},
    {"step", NULL, 2},
    {"pass", NULL, 0},
    {"part", NULL, LEAT_PART_INPUT},
    {"dtype", NULL, LEAT_F32},
    {"tuning", NULL, LEAT_TUNE_OFF},
};

static bool fits(const char *pattern, const char *word) {
    return !pattern || strcmp(pattern, word) == 0;
}

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static bool find_object(const function *f, const parameter *p, value *out) {
    for (size_t i = 0; i < COUNT(objects); ++i) {
        const rule *r = &objects[i];
        if (!fits(r->type, p->type) || !fits(r->name, p->name) || !fits(r->function, f->name)) continue;
        out->pointer = r->held ? *(void **)r->place : r->place;
        return true;
    }
    return false;
}

static bool find_text(const function *f, const parameter *p, value *out) {
    if (strcmp(p->name, "recorded") == 0) {
        out->pointer = all.recorded;
        return true;
    }
    for (size_t i = 0; i < COUNT(texts); ++i) {
        if (!fits(texts[i].name, p->name) || !fits(texts[i].function, f->name)) continue;
        out->pointer = (void *)(uintptr_t)texts[i].text;
        return true;
    }
    return false;
}

static bool find_number(const function *f, const parameter *p, value *out) {
    for (size_t i = 0; i < COUNT(numbers); ++i) {
        if (!fits(numbers[i].name, p->name) || !fits(numbers[i].function, f->name)) continue;
        if (p->kind == KIND_REAL)
            out->real = numbers[i].number;
        else
            out->integer = (int64_t)numbers[i].number;
        return true;
    }
    return strcmp(p->type, "bool") == 0;
}

#define SIZE_OF(type)                                                                                        \
    { #type " *", sizeof(type) }

static const struct size {
    const char *type;
    size_t bytes;
} sizes[] = {
    SIZE_OF(leat_callback),
    SIZE_OF(leat_checkpoint_info),
    SIZE_OF(leat_checkpoint_options),
    SIZE_OF(leat_compile_options),
    SIZE_OF(leat_model_load_options),
    SIZE_OF(leat_load_weights_options),
    SIZE_OF(leat_on_batch_options),
    SIZE_OF(leat_dist_options),
    SIZE_OF(leat_early_stopping_options),
    SIZE_OF(leat_evaluate_options),
    SIZE_OF(leat_feed_options),
    SIZE_OF(leat_feed_stats),
    SIZE_OF(leat_fit_options),
    SIZE_OF(leat_layer_definition),
    SIZE_OF(leat_loss_definition),
    SIZE_OF(leat_metric_definition),
    SIZE_OF(leat_activation_definition),
    SIZE_OF(leat_initializer_definition),
    SIZE_OF(leat_regularizer_definition),
    SIZE_OF(leat_constraint_definition),
    SIZE_OF(leat_optimizer_definition),
    SIZE_OF(leat_layer_weight),
    SIZE_OF(leat_model_checkpoint_options),
    SIZE_OF(leat_remote_monitor_options),
    SIZE_OF(leat_open_metrics_options),
    SIZE_OF(leat_picture_options),
    SIZE_OF(leat_plan_options),
    SIZE_OF(leat_predictor_options),
    SIZE_OF(leat_reduce_lr_options),
    SIZE_OF(leat_sequence),
    SIZE_OF(leat_source_options),
    SIZE_OF(leat_tensorboard_options),
    SIZE_OF(leat_window_options),
    SIZE_OF(leat_cache_options),
    SIZE_OF(leat_verdict),
};

/* The parameter `size` is the size of the struct that the parameter before it points to. */
static bool find_size(const parameter *p, value *out) {
    for (size_t i = 0; i < COUNT(sizes); ++i) {
        if (strcmp(p[-1].type, sizes[i].type) != 0) continue;
        out->integer = (int64_t)sizes[i].bytes;
        return true;
    }
    return false;
}

static double halve(void *user, int64_t epoch, double learning_rate) {
    (void)user, (void)epoch;
    return learning_rate / 2;
}

static void look_on(void *user, double share) {
    (void)user, (void)share;
}

static void read_log(void *user, leat_log_level level, const char *message) {
    (void)user, (void)level, (void)message;
}

static bool find_callback(const parameter *p, value *out) {
    if (strcmp(p->type, "leat_schedule") == 0)
        out->callback = (void (*)(void))halve;
    else if (strcmp(p->type, "leat_progress") == 0)
        out->callback = (void (*)(void))look_on;
    else if (strcmp(p->type, "leat_log_function") == 0)
        out->callback = (void (*)(void))read_log;
    else
        return false;
    return true;
}

/* Opens a feed or takes a lock, since both work only in the process that did this. */
void prepare_call(const function *f) {
    if (strcmp(f->name, "leat_folder_unlock") == 0)
        expect_ok(leat_folder_lock(&all.lock, ".", &all.err), &all.err);
    if (strncmp(f->name, "leat_feed_", 10) != 0) return;
    expect_ok(leat_feed_open(&all.feed, &all.sequence, NULL, &all.err), &all.err);
}

bool valid_value(const function *f, const parameter *p, value *out) {
    *out = (value){0};
    switch (p->kind) {
    case KIND_POINTER:
        return strcmp(p->type, "const char *") == 0 ? find_text(f, p, out) : find_object(f, p, out);
    case KIND_CALLBACK: return find_callback(p, out);
    default:
        return p > f->parameters && strcmp(p->name, "size") == 0 ? find_size(p, out) : find_number(f, p, out);
    }
}

/* ---- Calling ---- */

/* A call to be made inside a training callback or a layer's build, where its first argument is valid. */
typedef struct postponed {
    const function *f;
    value *arguments;
    answer *to;
    bool done;
} postponed;

static leat_status call_in_training(void *user, leat_training *training, int64_t index, leat_logs *logs,
                                    leat_error *err) {
    postponed *p = user;
    (void)index, (void)logs, (void)err;
    if (p->arguments[0].pointer) p->arguments[0].pointer = training;
    p->f->call(p->arguments, p->to);
    p->done = true;
    return LEAT_OK;
}

static leat_status call_in_build(const void *config, int count, const leat_tensor *inputs,
                                 leat_layer_weights *weights, leat_error *err) {
    postponed *p = all.definition.user;
    (void)config, (void)count, (void)inputs, (void)err;
    if (p->done) return LEAT_OK;
    if (p->arguments[0].pointer) p->arguments[0].pointer = weights;
    p->f->call(p->arguments, p->to);
    p->done = true;
    return LEAT_OK;
}

static void train_and_call(postponed *p) {
    leat_callback callback = {.size = sizeof(leat_callback), .user = p, .on_train_begin = call_in_training},
                  *callbacks[] = {&callback};
    leat_fit_options fit = quiet_fit_with(1, callbacks, 1);
    fit.validation = &all.validation;
    leat_status status = leat_model_fit_generator(all.model, &all.sequence, &fit, NULL, NULL);
    (void)status; /* the call may stop training */
}

static void build_and_call(postponed *p) {
    leat_node *x, *y;
    all.definition.user = p;
    all.definition.build = call_in_build;
    expect_ok(leat_registry_add(all.registry, &all.definition, &all.err), &all.err);
    leat_builder_use(all.builder, all.registry);
    x = leat_input(all.builder, all.shapes, 1);
    y = leat_layer(x, all.definition.class_name, NULL);
    leat_status status = leat_model_create(&all.new_model, &all.builder, &x, 1, &y, 1, NULL);
    (void)status; /* the layer's weight may be refused */
}

void call_with(const function *f, value *arguments, answer *to) {
    postponed p = {.f = f, .arguments = arguments, .to = to, .done = false};
    const char *first = f->count ? f->parameters[0].type : "";
    const bool training = strstr(first, "leat_training *") != NULL;
    const bool weights = strcmp(first, "leat_layer_weights *") == 0;
    if (!training && !weights) {
        f->call(arguments, to);
        return;
    }
    if (training) train_and_call(&p);
    if (weights) build_and_call(&p);
    if (!p.done) fail_msg("%s was not called", f->name);
}
