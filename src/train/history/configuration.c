/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the configuration of a fit when the fit begins.  Room: train. */
#include "train/history/configuration.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "json/json.h"
#include "leat/version.h"
#include "nn/model/model.h"
#include "nn/model/summary.h"
#include "train/history/history.h"
#include "train/history/json_text.h"
#include "train/history/machine.h"

/* Returns a copy (new reference) with null in place of the marks of numbers that are not finite, as everywhere in the
 * history; NULL without memory. */
static json_t *copy_finite(const json_t *value) { /* recursive, LEATI_JSON_MAX_DEPTH deep */
    double real = 0;
    if (json_is_string(value) && leati_json_number(value, &real)) return json_null();
    if (!json_is_object(value) && !json_is_array(value)) return json_deep_copy(value);
    json_t *copy = json_is_object(value) ? json_object() : json_array();
    bool complete = copy != NULL;
    for (size_t i = 0; complete && i < json_array_size(value); ++i)
        complete = json_array_append_new(copy, copy_finite(json_array_get(value, i))) == 0;
    void *at = json_is_object(value) ? json_object_iter((json_t *)value) : NULL;
    for (; complete && at; at = json_object_iter_next((json_t *)value, at))
        complete =
            json_object_set_new(copy, json_object_iter_key(at), copy_finite(json_object_iter_value(at))) == 0;
    if (complete) return copy;
    json_decref(copy);
    return NULL;
}

/* Returns the value if it is complete; otherwise releases it and returns NULL. */
static json_t *if_complete(bool complete, json_t *value) {
    if (complete) return value;
    json_decref(value);
    return NULL;
}

static json_t *model_json(const leat_model *model) {
    json_t *root = json_object();
    int64_t parameters = 0;
    for (int32_t i = 0; i < model->weights.count; ++i)
        parameters += leati_desc_count(&model->weights.entries[i]->desc);
    bool complete =
        root && leati_json_add(root, "name", leati_json_text(model->name)) &&
        leati_json_add(root, "class", leati_json_text(model->class_name)) &&
        leati_json_add(root, "layers", json_integer(model->member_count - leati_summary_first(model))) &&
        leati_json_add(root, "weights", json_integer(model->weights.count)) &&
        leati_json_add(root, "parameters", json_integer((json_int_t)parameters)) &&
        leati_json_add(root, "trainable_parameters",
                       json_integer((json_int_t)leati_summary_trainable_params(model)));
    return if_complete(complete, root);
}

static json_t *shuffle_json(const leat_fit_options *options) {
    static const char *const names[] = {
        [LEAT_SHUFFLE_NONE] = "none",       [LEAT_SHUFFLE_BATCHES] = "batches",
        [LEAT_SHUFFLE_SAMPLES] = "samples", [LEAT_SHUFFLE_WINDOW] = "window",
        [LEAT_SHUFFLE_AUTO] = "auto",       [LEAT_SHUFFLE_BLOCKS] = "blocks"};
    int how = (int)options->shuffle, count = (int)(sizeof names / sizeof *names);
    if (how == LEAT_SHUFFLE_WINDOW || (how == LEAT_SHUFFLE_BLOCKS && options->shuffle_window > 0))
        return json_pack("{s:s, s:I}", "how", names[how], "window", (json_int_t)options->shuffle_window);
    return json_pack("{s:s}", "how", how >= 0 && how < count ? names[how] : "unknown");
}

/* null: no validation. */
static json_t *validation_json(const leat_fit_options *options) {
    if (!options->validation) return json_null();
    json_t *root =
        json_pack("{s:I, s:I, s:I}", "batch_size", (json_int_t)options->validation->spec.batch_size, "steps",
                  (json_int_t)options->validation_steps, "every_steps",
                  (json_int_t)options->validation_every);
    bool complete = root != NULL;
    if (complete && !options->validation_epochs)
        return if_complete(leati_json_add(root, "freq", json_integer((json_int_t)options->validation_freq)),
                           root);
    json_t *epochs = json_array();
    complete = complete && epochs != NULL;
    for (int i = 0; complete && i < options->validation_epoch_count; ++i)
        complete =
            json_array_append_new(epochs, json_integer((json_int_t)options->validation_epochs[i])) == 0;
    complete = leati_json_add(root, "epochs", epochs) && complete;
    return if_complete(complete, root);
}

static json_t *weights_json(const leat_class_weight *weights, int count) {
    json_t *root = json_object();
    bool complete = root != NULL;
    for (int i = 0; complete && weights && i < count; ++i) {
        char key[24];
        snprintf(key, sizeof key, "%" PRId64, weights[i].class_index);
        double weight = weights[i].weight; /* not checked yet */
        complete = leati_json_add(root, key, isfinite(weight) ? json_real(weight) : json_null());
    }
    return if_complete(complete, root);
}

/* null: no class has a weight of its own.  With several outputs, an object by output. */
static json_t *class_weight_json(const leat_fit_options *options) {
    const leat_output_class_weight *outputs = options->output_class_weights;
    if (options->class_weight_count > 0 && options->class_weight)
        return weights_json(options->class_weight, options->class_weight_count);
    if (options->output_class_weight_count <= 0 || !outputs) return json_null();
    json_t *root = json_object();
    bool complete = root != NULL;
    for (int i = 0; complete && i < options->output_class_weight_count; ++i)
        if (outputs[i].output)
            complete =
                leati_json_add(root, outputs[i].output, weights_json(outputs[i].weights, outputs[i].count));
    return if_complete(complete, root);
}

/* Adds what compile has set, with Keras's names; keys that say nothing are left out. */
static bool add_compilation(json_t *root, const json_t *training_config) {
    static const char *const keys[] = {"loss", "metrics", "weighted_metrics", "loss_weights",
                                       "sample_weight_mode"};
    bool complete =
        leati_json_add(root, "optimizer", copy_finite(json_object_get(training_config, "optimizer_config")));
    for (size_t i = 0; complete && i < sizeof keys / sizeof *keys; ++i) {
        const json_t *value = json_object_get(training_config, keys[i]);
        if (value && !json_is_null(value)) complete = leati_json_add(root, keys[i], copy_finite(value));
    }
    return complete;
}

static bool add_switches(json_t *root, const leat_model *model) {
    static const char *const tunings[] = {
        [LEAT_TUNE_OFF] = "off", [LEAT_TUNE_KNOWN] = "known", [LEAT_TUNE_MEASURE] = "measure"};
    bool is_mixed = leati_model_count_mixed(model) > 0;
    return leati_json_add(root, "dtype_policy", json_string(is_mixed ? "mixed_bfloat16" : "float32")) &&
           leati_json_add(root, "deterministic", json_boolean(model->deterministic)) &&
           leati_json_add(root, "tf32", json_boolean(model->tf32)) &&
           leati_json_add(root, "folding", json_boolean(!model->unfolded)) &&
           leati_json_add(root, "tuning", json_string(tunings[model->tuning])) &&
           leati_json_add(root, "gradient_checkpointing", json_boolean(model->gradient_checkpointing));
}

/* seed: as text if it does not fit into the signed integers of jansson. */
static json_t *seed_json(uint64_t seed) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, seed);
    return seed <= INT64_MAX ? json_integer((json_int_t)seed) : json_string(text);
}

static json_t *training_json(const leat_model *model, const leat_sequence *sequence,
                             const leat_fit_options *options, const json_t *training_config) {
    json_t *root =
        json_pack("{s:I, s:I, s:I, s:I}", "batch_size", (json_int_t)sequence->spec.batch_size, "epochs",
                  (json_int_t)options->epochs, "initial_epoch", (json_int_t)options->initial_epoch,
                  "steps_per_epoch", (json_int_t)options->steps_per_epoch);
    bool complete = root && add_compilation(root, training_config) &&
                    leati_json_add(root, "validation", validation_json(options)) &&
                    leati_json_add(root, "seed", seed_json(options->seed)) &&
                    leati_json_add(root, "shuffle", shuffle_json(options)) &&
                    leati_json_add(root, "class_weight", class_weight_json(options)) &&
                    add_switches(root, model);
    return if_complete(complete, root);
}

static json_t *machine_json(const leat_fit_options *options) {
    int threads = options->threads > 0 ? options->threads : leati_core_count();
    return json_pack("{s:i, s:b, s:i, s:I, s:i}", "workers", options->workers, "use_multiprocessing",
                     options->use_multiprocessing, "max_queue_size", options->max_queue_size, "feed_memory",
                     (json_int_t)options->feed_memory, "threads", threads);
}

leat_status leati_history_configure(leat_history *history, const leat_model *model,
                                    const leat_sequence *sequence, const leat_fit_options *options,
                                    leat_error *err) {
    json_t *training_config = NULL, *root = json_object();
    leat_status status = leati_model_training_config(model, &training_config, err);
    bool complete =
        root && status == LEAT_OK && leati_json_add(root, "leat", leati_json_text(leat_version())) &&
        leati_json_add(root, "model", model_json(model)) &&
        leati_json_add(root, "training", training_json(model, sequence, options, training_config)) &&
        leati_json_add(root, "machine", machine_json(options));
    json_decref(training_config);
    history->configuration = if_complete(complete, root);
    history->progress.epochs = options->epochs;
    if (status == LEAT_OK && !complete) return leati_fail_memory(err, 0, "the history's configuration");
    return status;
}

json_t *leati_configuration_json(const json_t *configuration) {
    json_t *copy = json_deep_copy(configuration);
    bool complete = copy && leati_machine_add(json_object_get(copy, "machine"));
    return if_complete(complete, copy);
}
