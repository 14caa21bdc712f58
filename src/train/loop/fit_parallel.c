/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a fit tell each other beside gradients.  Room: train. */
#include "train/loop/fit_parallel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "leat/inspect.h"
#include "train/loop/fit_loop.h"

leat_status leati_fit_agree(leati_fit_loop *loop, leat_status status, leat_error *err) {
    return loop->options->dist ? leati_parallel_agree(loop->options->dist, status, err) : status;
}

/* A launcher that binds ranks to cores has divided the cores already. */
int leati_fit_threads(const leat_fit_options *options) {
    const leat_dist *dist = options->dist;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const leati_cores cores = leati_cores_get();
    int near = 1; /* this rank and the others of its host */
    if (options->threads > 0 || !dist || cores.affinity < online) return options->threads;
    for (int i = 0; i < dist->size; ++i)
        near += i != dist->rank && strcmp(dist->peers[i].host, dist->peers[dist->rank].host) == 0;
    return cores.count > near ? cores.count / near : 1;
}

/* ---- What must be the same on all ranks ---- */

/* A property of the fit, as a number. */
typedef struct trait {
    const char *name;
    int64_t value;
    bool is_hash; /* the value means nothing to people */
} trait;

enum { trait_count = 19 };

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return hash;
}

static const uint64_t hash_start = UINT64_C(0xcbf29ce484222325);

/* Returns a hash of a text that leat made, which is freed; 0 without a text. */
static int64_t hash_text(char *text) {
    int64_t hash = text ? (int64_t)(hash_bytes(hash_start, text, strlen(text)) >> 1) : 0;
    leat_string_free(text);
    return hash;
}

static int64_t hash_model(const leat_model *model) {
    char *text = NULL;
    return leat_model_to_json(model, &text, NULL) == LEAT_OK ? hash_text(text) : 0;
}

static int64_t hash_compilation(const leat_model *model) {
    char *text = NULL;
    return leat_model_training_config(model, &text, NULL) == LEAT_OK ? hash_text(text) : 0;
}

static int64_t length_of(const leat_sequence *sequence) {
    return sequence && sequence->length ? sequence->length(sequence->user) : -1;
}

static int64_t hash_classes(const leat_fit_options *options) {
    uint64_t hash = hash_start;
    if (options->class_weight)
        hash = hash_bytes(hash, options->class_weight,
                          (size_t)options->class_weight_count * sizeof *options->class_weight);
    for (int i = 0; options->output_class_weights && i < options->output_class_weight_count; ++i) {
        const leat_output_class_weight *of = &options->output_class_weights[i];
        if (of->weights) hash = hash_bytes(hash, of->weights, (size_t)of->count * sizeof *of->weights);
    }
    return (int64_t)(hash >> 1);
}

static void list_traits(const leati_fit_loop *loop, trait out[trait_count]) {
    const leat_fit_options *o = loop->options;
    const leat_sequence *data = &loop->train_sequence;
    const trait all[trait_count] = {
        {"the model", hash_model(loop->model), true},
        {"the compilation of the model", hash_compilation(loop->model), true},
        {"--deterministic", loop->model->deterministic, false},
        {"the seed", (int64_t)o->seed, false},
        {"the number of epochs", o->epochs, false},
        {"initial_epoch", o->initial_epoch, false},
        {"steps_per_epoch", o->steps_per_epoch, false},
        {"the batch size", data->spec.batch_size, false},
        {"the number of batches of the training data", length_of(data), false},
        {"the samples of the training data", data->samples ? data->samples(data->user) : -1, false},
        {"validation data", o->validation != NULL, false},
        {"the number of batches of the validation data", length_of(o->validation), false},
        {"validation_steps", o->validation_steps, false},
        {"validation_freq", o->validation_freq, false},
        {"validation_every", o->validation_every, false},
        {"the order of the data (shuffle)", o->shuffle, false},
        {"the window of shuffling", o->shuffle_window, false},
        {"checkpoints", o->checkpoints != NULL, false},
        {"the weights of the classes", hash_classes(o), true},
    };
    memcpy(out, all, sizeof all);
}

static leat_status compare(const leat_dist *dist, const trait *traits, const int64_t *all, leat_error *err) {
    for (int i = 0; i < trait_count; ++i)
        for (int rank = 1; rank < dist->size; ++rank) {
            const int64_t a = all[i], b = all[rank * trait_count + i];
            char values[64] = "";
            if (a == b) continue;
            if (!traits[i].is_hash) snprintf(values, sizeof values, ": %" PRId64 " and %" PRId64, a, b);
            return leati_fail(
                err, LEAT_EINVAL,
                "rank 0 (host %s) and rank %d (host %s) differ in %s%s: start all ranks with the same "
                "model, data and options",
                dist->peers[0].host, rank, dist->peers[rank].host, traits[i].name, values);
        }
    return LEAT_OK;
}

leat_status leati_fit_meet(leati_fit_loop *loop, leat_error *err) {
    leat_dist *dist = loop->options->dist;
    trait traits[trait_count];
    int64_t mine[trait_count];
    if (!dist || dist->size == 1) return LEAT_OK;
    int64_t *all = leati_calloc((size_t)dist->size, sizeof mine);
    if (!all) return leati_fail_memory(err, (size_t)dist->size * sizeof mine, "the options of the ranks");
    list_traits(loop, traits);
    for (int i = 0; i < trait_count; ++i) mine[i] = traits[i].value;
    leat_status status = leati_dist_all_gather(dist, mine, sizeof mine, all, err);
    if (status == LEAT_OK) status = compare(dist, traits, all, err);
    leati_free(all);
    return status;
}

/* ---- Checkpoints and weights ---- */

leat_status leati_fit_share_checkpoint(leati_fit_loop *loop, leat_error *err) {
    leat_dist *dist = loop->options->dist;
    leati_image *image = &loop->checkpoints.image;
    if (!dist || dist->size == 1) return LEAT_OK;
    const bool leads = dist->rank == 0;
    uint64_t bytes = leads && image->map.data ? image->map.size : 0;
    LEATI_TRY(leati_dist_broadcast(dist, &bytes, sizeof bytes, 0, err));
    if (bytes == 0) return LEAT_OK;
    void *data = leads ? (void *)(uintptr_t)image->map.data : leati_calloc(bytes, 1);
    leat_status status = data ? LEAT_OK : leati_fail_memory(err, bytes, "a checkpoint");
    status = leati_parallel_agree(dist, status, err);
    if (status == LEAT_OK) status = leati_dist_broadcast(dist, data, bytes, 0, err);
    if (status == LEAT_OK && !leads) status = leati_image_copy(image, data, bytes, err);
    if (!leads) leati_free(data);
    return status;
}

static leat_status share_slab(leati_fit_loop *loop, leati_slab slab, size_t bytes, leat_error *err) {
    const leati_weights *weights = &loop->model->weights;
    void *data = leati_weights_slab(weights, slab);
    if (!data || bytes == 0) return LEAT_OK;
    LEATI_TRY(leati_dist_broadcast(loop->options->dist, data, bytes, 0, err));
    leati_weights_changed(weights, slab);
    return LEAT_OK;
}

leat_status leati_fit_share_weights(leati_fit_loop *loop, leat_error *err) {
    leat_dist *dist = loop->options->dist;
    const leati_weights *weights = &loop->model->weights;
    if (!dist || dist->size == 1) return LEAT_OK;
    LEATI_TRY(share_slab(loop, LEATI_SLAB_WEIGHTS, weights->bytes, err));
    for (int i = LEATI_SLAB_SLOT0; i < LEATI_SLAB_SCALARS; ++i)
        LEATI_TRY(share_slab(loop, (leati_slab)i, weights->trainable_bytes, err));
    ++loop->model->weights_version;
    double rate = leat_model_learning_rate(loop->model);
    LEATI_TRY(leati_dist_broadcast(dist, &rate, sizeof rate, 0, err));
    leat_model_set_learning_rate(loop->model, rate);
    return leati_dist_broadcast(dist, &loop->model->iterations, sizeof loop->model->iterations, 0, err);
}

/* ---- After a hook ---- */

/* What a rank tells after a hook.  Of rank 0 all members count, of the others only status and requested. */
typedef struct news {
    double rate;
    uint64_t version; /* of the weights */
    int32_t status, requested, stop, on_request, lent;
    char reason[128];
} news;

static news news_of(const leati_fit_loop *loop, leat_status status) {
    const leat_training *training = &loop->training;
    news mine = {.rate = leat_model_learning_rate(loop->model),
                 .version = loop->model->weights_version,
                 .status = (int32_t)status,
                 .requested = atomic_load_explicit(&loop->model->stop_requested, memory_order_relaxed),
                 .stop = training->stop,
                 .on_request = training->stopped_on_request,
                 .lent = *loop->model->weights.lent};
    snprintf(mine.reason, sizeof mine.reason, "%s", training->stop_reason);
    return mine;
}

/* Applies what rank 0 has told. */
static void follow(leati_fit_loop *loop, const news *told) {
    leat_training *training = &loop->training;
    if (leat_model_learning_rate(loop->model) != told->rate) /* NaN, a schedule, is set by nobody */
        leat_model_set_learning_rate(loop->model, told->rate);
    if (!told->stop || training->stop) return;
    training->stop = true;
    training->stopped_on_request = told->on_request != 0;
    snprintf(training->stop_reason, sizeof training->stop_reason, "%s", told->reason);
}

/* Copies the weights of rank 0 if a hook has changed them there: their version then differs from that of the last
 * hook, or the program has a view through which it may have written. */
static leat_status share_changes(leati_fit_loop *loop, const news *told, leat_error *err) {
    bool changed = told->lent || told->version != loop->synced_version;
    loop->synced_version = told->version;
    if (!changed) return LEAT_OK;
    ++loop->model->weights_version;
    leat_status status = share_slab(loop, LEATI_SLAB_WEIGHTS, loop->model->weights.bytes, err);
    if (loop->options->dist->rank == 0) loop->model->weights_version = told->version;
    return status;
}

leat_status leati_fit_sync(leat_training *training, leat_status status, leat_error *err) {
    leati_fit_loop *loop = training->loop;
    leat_dist *dist = loop->options->dist;
    const news mine = news_of(loop, status);
    news *all = leati_calloc((size_t)dist->size, sizeof *all);
    if (!all) return leati_fail_memory(err, (size_t)dist->size * sizeof *all, "the states of the ranks");
    leat_error why = {0};
    bool failed = false;
    leat_status told = leati_dist_all_gather(dist, &mine, sizeof mine, all, &why);
    for (int i = 0; told == LEAT_OK && i < dist->size; ++i) {
        failed = failed || all[i].status != LEAT_OK;
        training->requested = training->requested || all[i].requested;
    }
    if (told == LEAT_OK && !failed && dist->rank != 0) follow(loop, &all[0]);
    if (told == LEAT_OK && !failed && dist->size > 1) told = share_changes(loop, &all[0], &why);
    leati_free(all);
    if (told == LEAT_OK) return failed ? leati_parallel_agree(dist, status, err) : LEAT_OK;
    if (err) *err = why;
    return told;
}
