/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a fit tell each other beside gradients.  Room: train. */
#include "train/loop/fit_parallel.h"

#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "train/hooks/sync.h"
#include "train/loop/fit_loop.h"
#include "train/parallel/traits.h"

leat_status leati_fit_agree(leati_fit_loop *loop, leat_status status, leat_error *err) {
    return leati_parallel_agree(loop->options->dist, status, err);
}

/* ---- What must be the same on all ranks ---- */

enum { trait_count = 23 };

static int64_t hash_classes(const leat_fit_options *options) {
    uint64_t hash = leati_hash_start;
    if (options->class_weight)
        hash = leati_hash_bytes(hash, options->class_weight,
                                (size_t)options->class_weight_count * sizeof *options->class_weight);
    for (int i = 0; options->output_class_weights && i < options->output_class_weight_count; ++i) {
        const leat_output_class_weight *of = &options->output_class_weights[i];
        if (of->weights) hash = leati_hash_bytes(hash, of->weights, (size_t)of->count * sizeof *of->weights);
    }
    return (int64_t)(hash >> 1);
}

static void list_traits(const leati_fit_loop *loop, leati_trait out[trait_count]) {
    const leat_fit_options *o = loop->options;
    const leat_sequence *data = &loop->train_sequence;
    const leati_trait all[trait_count] = {
        {"the model", leati_trait_model(loop->model), true},
        {"the compilation of the model", leati_trait_compilation(loop->model), true},
        {"the kind of device (--device)", strcmp(leat_model_device(loop->model), "cpu") != 0, true},
        {"--deterministic", loop->model->deterministic, false},
        {"--sync-batch-norm (sync_batch_norm)", o->sync_batch_norm != 0, false},
        {"--bf16-gradients (bf16_gradients)", o->bf16_gradients != 0, false},
        {"--shard-optimizer (shard_optimizer)", o->shard_optimizer != 0, false},
        {"the seed", (int64_t)o->seed, false},
        {"the number of epochs", o->epochs, false},
        {"initial_epoch", o->initial_epoch, false},
        {"steps_per_epoch", o->steps_per_epoch, false},
        {"the batch size", data->spec.batch_size, false},
        {"the number of batches of the training data", leati_trait_length(data), false},
        {"the samples of the training data", data->samples ? data->samples(data->user) : -1, false},
        {"validation data", o->validation != NULL, false},
        {"the number of batches of the validation data", leati_trait_length(o->validation), false},
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

leat_status leati_fit_meet(leati_fit_loop *loop, leat_error *err) {
    leat_dist *dist = loop->options->dist;
    leati_trait traits[trait_count];
    if (!dist || dist->size == 1) return LEAT_OK;
    list_traits(loop, traits);
    return leati_traits_compare(dist, traits, trait_count, err);
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

leat_status leati_fit_share_weights(leati_fit_loop *loop, leat_error *err) {
    leat_dist *dist = loop->options->dist;
    const leati_weights *weights = &loop->model->weights;
    if (!dist || dist->size == 1) return LEAT_OK;
    LEATI_TRY(leati_share_slab(dist, loop->model, LEATI_SLAB_WEIGHTS, weights->bytes, err));
    LEATI_TRY(leati_share_slab(dist, loop->model, LEATI_SLAB_STATES, weights->state_bytes, err));
    leati_shards *shards = &loop->parallel.shards;
    const leat_status slots = dist->rank == 0 ? leati_weights_check_slots(weights, err) : LEAT_OK;
    LEATI_TRY(leati_parallel_agree(dist, slots, err));
    LEATI_TRY(leati_shards_spread(shards, err));
    const int spread = shards->dist ? leati_optimizer_shared_slabs(loop->model->compiled.optimizer) : 0;
    for (int i = LEATI_SLAB_SLOT0 + spread; i < LEATI_SLAB_SCALARS; ++i)
        LEATI_TRY(leati_share_slab(dist, loop->model, (leati_slab)i, weights->trainable_bytes, err));
    if (!shards->dist) loop->model->weights.are_slots_spread = false;
    ++loop->model->weights_version;
    double rate = leat_model_learning_rate(loop->model);
    LEATI_TRY(leati_dist_broadcast(dist, &rate, sizeof rate, 0, err));
    leat_model_set_learning_rate(loop->model, rate);
    return leati_dist_broadcast(dist, &loop->model->iterations, sizeof loop->model->iterations, 0, err);
}

leat_status leati_fit_collect(leat_training *training, leat_error *err) {
    leati_fit_loop *loop = training->loop;
    return leati_shards_collect(&loop->parallel.shards, err);
}

leat_status leati_fit_collect_if(leati_fit_loop *loop, bool saves, leat_error *err) {
    if (!loop->parallel.shards.dist) return LEAT_OK;
    uint8_t told = saves;
    LEATI_TRY(leati_dist_broadcast(loop->options->dist, &told, sizeof told, 0, err));
    return told ? leati_shards_collect(&loop->parallel.shards, err) : LEAT_OK;
}
