/* SPDX-License-Identifier: Apache-2.0 */
/* Saves and loads the state of a fit.  Room: train. */
#include "train/loop/fit_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "checkpoint/state.h"
#include "nn/weights/weights.h"
#include "train/loop/fit_loop.h"
#include "train/state/model_state.h"

/* ---- Options that the result depends on ---- */

typedef struct choice {
    const char *name;
    int64_t value;
} choice;

enum { choice_count = 15 };

/* The number of workers, their kind and the number of threads do not belong to the list: they may change. */
static void list_choices(const leati_fit_loop *loop, choice out[choice_count]) {
    const leat_fit_options *options = loop->options;
    const leat_sequence *data = &loop->train_sequence;
    const choice all[choice_count] = {
        {"seed", (int64_t)options->seed},
        {"shuffle", options->shuffle},
        {"shuffle_window", options->shuffle_window},
        {"batch_size", data->spec.batch_size},
        {"steps_per_epoch", options->steps_per_epoch},
        {"initial_epoch", options->initial_epoch},
        {"validation", options->validation != NULL},
        {"validation_batch_size", options->validation ? options->validation->spec.batch_size : 0},
        {"validation_steps", options->validation_steps},
        {"validation_freq", options->validation_freq},
        {"validation_epoch_count", options->validation_epoch_count},
        {"validation_every", options->validation_every},
        {"class_weight_count", options->class_weight_count},
        {"faults.bad_batch", options->faults.bad_batch},
        {"faults.check_finite", options->faults.check_finite},
    };
    memcpy(out, all, sizeof all);
}

/* Writes the weights of the classes of each output as text, such as "a=0:0x1p+0;"; "" without them. */
static leat_status describe_classes(const leat_fit_options *options, leati_text *out, leat_error *err) {
    for (int i = 0; options->output_class_weights && i < options->output_class_weight_count; ++i) {
        const leat_output_class_weight *of = &options->output_class_weights[i];
        leati_text_add(out, "%s=", of->output ? of->output : "");
        for (int j = 0; of->weights && j < of->count; ++j)
            leati_text_add(out, "%" PRId64 ":%a,", of->weights[j].class_index, of->weights[j].weight);
        leati_text_add(out, ";");
    }
    return out->failed ? leati_fail_memory(err, 0, "class weights") : LEAT_OK;
}

static leat_status save_classes(leat_state *state, const leat_fit_options *options, leat_error *err) {
    leati_text text = {0};
    leat_status status = describe_classes(options, &text, err);
    if (status == LEAT_OK && text.length > 0)
        status = leat_state_put(state, "output_class_weights", text.data, text.length, err);
    leati_text_fini(&text);
    return status;
}

/* A checkpoint without the entry was written by a fit without these weights. */
static leat_status check_classes(const leat_state *state, const leat_fit_options *options, leat_error *err) {
    leati_text text = {0};
    size_t bytes = 0;
    leat_status status = describe_classes(options, &text, err);
    const void *then = leat_state_find(state, "output_class_weights", &bytes);
    if (!then) bytes = 0;
    if (status == LEAT_OK && (bytes != text.length || (bytes > 0 && memcmp(then, text.data, bytes) != 0)))
        status = leati_fail(err, LEAT_EINVAL,
                            "output_class_weights: the checkpoint was written with other values");
    leati_text_fini(&text);
    return status;
}

/* Writes the blocks of the data, from which LEAT_SHUFFLE_BLOCKS makes the order; nothing if there are none. */
static leat_status save_blocks(leat_state *state, const leat_sequence *data, leat_error *err) {
    const int64_t blocks[] = {data->block_samples, data->blocks_at_once};
    return blocks[0] > 0 ? leat_state_put(state, "blocks", blocks, sizeof blocks, err) : LEAT_OK;
}

static leat_status check_blocks(const leat_state *state, const leat_sequence *data, leat_error *err) {
    const int64_t blocks[] = {data->block_samples, data->blocks_at_once};
    const size_t expected = blocks[0] > 0 ? sizeof blocks : 0;
    size_t bytes = 0;
    const void *then = leat_state_find(state, "blocks", &bytes);
    if (!then) bytes = 0;
    if (bytes == expected && (bytes == 0 || memcmp(then, blocks, bytes) == 0)) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "blocks: the checkpoint was written with data in other chunks, or with another memory= of the "
        "SPEC, which would be another order of the samples");
}

static leat_status save_choices(const leati_fit_loop *loop, leati_snapshot *snapshot, leat_error *err) {
    leat_state state = {.snapshot = snapshot, .prefix = "options/"};
    const leat_fit_options *options = loop->options;
    choice choices[choice_count];
    list_choices(loop, choices);
    for (int i = 0; i < choice_count; ++i)
        LEATI_TRY(leati_state_put_i64(&state, choices[i].name, choices[i].value, err));
    LEATI_TRY(leat_state_put(&state, "validation_epochs", options->validation_epochs,
                             (size_t)options->validation_epoch_count * sizeof *options->validation_epochs,
                             err));
    LEATI_TRY(save_classes(&state, options, err));
    LEATI_TRY(save_blocks(&state, &loop->train_sequence, err));
    return leat_state_put(&state, "class_weight", options->class_weight,
                          (size_t)options->class_weight_count * sizeof *options->class_weight, err);
}

static leat_status check_list(const leat_state *state, const char *name, const void *now, int count,
                              size_t size, leat_error *err) {
    size_t bytes = 0;
    const void *then = leat_state_find(state, name, &bytes);
    if (then && bytes == (size_t)count * size && (bytes == 0 || memcmp(then, now, bytes) == 0))
        return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "%s: the checkpoint was written with other values", name);
}

static leat_status check_choices(const leati_fit_loop *loop, leat_error *err) {
    const leat_state state = {.image = &loop->checkpoints.image, .prefix = "options/"};
    const leat_fit_options *options = loop->options;
    choice choices[choice_count];
    list_choices(loop, choices);
    for (int i = 0; i < choice_count; ++i) {
        int64_t then = 0;
        LEATI_TRY(leati_state_get_i64(&state, choices[i].name, &then, err));
        if (then != choices[i].value)
            return leati_fail(err, LEAT_EINVAL,
                              "%s: the checkpoint was written with %" PRId64 ", this fit has %" PRId64,
                              choices[i].name, then, choices[i].value);
    }
    LEATI_TRY(check_list(&state, "validation_epochs", options->validation_epochs,
                         options->validation_epoch_count, sizeof *options->validation_epochs, err));
    LEATI_TRY(check_classes(&state, options, err));
    LEATI_TRY(check_blocks(&state, &loop->train_sequence, err));
    return check_list(&state, "class_weight", options->class_weight, options->class_weight_count,
                      sizeof *options->class_weight, err);
}

/* ---- Feeds and sequences ---- */

static leat_status save_feed(const leati_fit_feed *feed, const leat_sequence *sequence, const char *name,
                             leati_snapshot *snapshot, leat_error *err) {
    leat_state state = {.snapshot = snapshot};
    snprintf(state.prefix, sizeof state.prefix, "%s/", name);
    LEATI_TRY(leati_state_put_i64(&state, "pass", feed->at.pass, err));
    LEATI_TRY(leati_state_put_i64(&state, "ordinal", feed->at.ordinal, err));
    LEATI_TRY(leati_state_put_i64(&state, "taken", feed->taken, err));
    return leat_state_put(&state, "sequence", sequence->state, sequence->state_bytes, err);
}

leati_fit_feed leati_fit_feed_of(const leati_runner *runner) {
    return (leati_fit_feed){leat_feed_next_position(runner->feed), runner->taken};
}

/* A validation that was interrupted will begin anew. */
static leat_status save_feeds(const leati_fit_loop *loop, leati_snapshot *snapshot, leat_error *err) {
    leati_fit_feed train = loop->train_start, validation = loop->validation_start;
    if (loop->train.feed) train = leati_fit_feed_of(&loop->train);
    if (loop->validation.feed && !loop->validation_interrupted)
        validation = leati_fit_feed_of(&loop->validation);
    LEATI_TRY(save_feed(&train, &loop->train_sequence, "train", snapshot, err));
    if (!loop->options->validation) return LEAT_OK;
    return save_feed(&validation, &loop->validation_sequence, "validation", snapshot, err);
}

static leat_status load_feed(const leat_state *state, leati_fit_feed *feed, leat_error *err) {
    LEATI_TRY(leati_state_get_i64(state, "pass", &feed->at.pass, err));
    LEATI_TRY(leati_state_get_i64(state, "ordinal", &feed->at.ordinal, err));
    return leati_state_get_i64(state, "taken", &feed->taken, err);
}

/* Brings a sequence into the state that it had at the checkpoint: by its declared state or, if on_epoch_end declares
 * none, by calling on_epoch_end for the passes before. */
static leat_status restore_sequence(const leati_fit_loop *loop, const leat_sequence *sequence,
                                    const char *name, leati_fit_feed *feed, leat_error *err) {
    leat_state state = {.image = &loop->checkpoints.image};
    snprintf(state.prefix, sizeof state.prefix, "%s/", name);
    LEATI_TRY(load_feed(&state, feed, err));
    if (sequence->state_bytes > 0)
        return leat_state_get(&state, "sequence", sequence->state, sequence->state_bytes, err);
    if (!sequence->on_epoch_end) return LEAT_OK;
    for (int64_t pass = 0; pass < feed->at.pass; ++pass)
        LEATI_TRY(leati_prefix(sequence->on_epoch_end(sequence->user, pass, err), err,
                               "on_epoch_end of pass %" PRId64, pass));
    return LEAT_OK;
}

static leat_status skip_batches(const leati_fit_loop *loop, leati_runner *runner, int64_t batches,
                                leat_error *err) {
    const leat_batch *batch = NULL;
    runner->taken = batches;
    if (runner->pace != LEATI_PACE_GENERATOR || batches == 0) return LEAT_OK;
    leati_training_log(&loop->training, LEAT_LOG_INFO,
                       "leat: the generator begins anew: the %" PRId64
                       " batches that the run had before are made and dropped",
                       batches);
    for (int64_t i = 0; i < batches; ++i) {
        LEATI_TRY(leat_feed_get(runner->feed, &batch, err));
        leat_feed_release(runner->feed);
    }
    return LEAT_OK;
}

leat_status leati_fit_state_skip(leati_fit_loop *loop, leat_error *err) {
    if (!loop->resumed) return LEAT_OK;
    LEATI_TRY(skip_batches(loop, &loop->train, loop->train_start.taken, err));
    if (!loop->options->validation) return LEAT_OK;
    return skip_batches(loop, &loop->validation, loop->validation_start.taken, err);
}

/* ---- The whole ---- */

/* A number of the fit's state and its name in the checkpoint. */
typedef struct number {
    const char *name;
    int64_t *value;
} number;

enum { number_count = 4 };

static void list_numbers(leati_fit_position *position, number out[number_count]) {
    const number all[number_count] = {
        {"epoch", &position->epoch},
        {"step", &position->step},
        {"steps", &position->steps},
        {"epoch_steps", &position->epoch_steps},
    };
    memcpy(out, all, sizeof all);
}

static leat_status save_position(leati_fit_loop *loop, leati_snapshot *snapshot, leat_error *err) {
    leat_state state = {.snapshot = snapshot, .prefix = "fit/"};
    number numbers[number_count];
    list_numbers(&loop->position, numbers);
    LEATI_TRY(leati_state_put_text(&state, "version", leat_version(), err));
    for (int i = 0; i < number_count; ++i)
        LEATI_TRY(leati_state_put_i64(&state, numbers[i].name, *numbers[i].value, err));
    LEATI_TRY(leati_state_put_i64(&state, "ended", loop->position.ended, err));
    LEATI_TRY(leati_state_put_i64(&state, "begun", loop->position.begun, err));
    LEATI_TRY(leati_state_put_i64(&state, "validation_due", loop->position.validation_due, err));
    LEATI_TRY(leati_state_put_i64(&state, "validation_ended", loop->validation_ended, err));
    /* A request to stop that came after the last step has ended nothing. */
    bool stop = loop->position.ended && loop->training.stop && !loop->training.stopped_on_request;
    LEATI_TRY(leati_state_put_i64(&state, "stop", stop, err));
    return leati_state_put_text(&state, "stop_reason", stop ? loop->training.stop_reason : "", err);
}

static leat_status load_position(leati_fit_loop *loop, leat_error *err) {
    const leat_state state = {.image = &loop->checkpoints.image, .prefix = "fit/"};
    number numbers[number_count];
    int64_t begun = 0, validation_due = 0, validation_ended = 0, stop = 0;
    list_numbers(&loop->position, numbers);
    for (int i = 0; i < number_count; ++i) {
        LEATI_TRY(leati_state_get_i64(&state, numbers[i].name, numbers[i].value, err));
        bool counts = numbers[i].value != &loop->position.epoch_steps; /* steps are added to it */
        if (*numbers[i].value < 0 || (counts && *numbers[i].value > INT64_MAX / 2))
            return leati_fail(err, LEAT_EFORMAT,
                              "the checkpoint has %" PRId64 " as '%s', which is out of range",
                              *numbers[i].value, numbers[i].name);
    }
    LEATI_TRY(leati_state_get_i64(&state, "begun", &begun, err));
    LEATI_TRY(leati_state_get_i64(&state, "validation_due", &validation_due, err));
    LEATI_TRY(leati_state_get_i64(&state, "validation_ended", &validation_ended, err));
    LEATI_TRY(leati_state_get_i64(&state, "stop", &stop, err));
    loop->position.begun = begun != 0;
    loop->position.validation_due = validation_due != 0;
    loop->validation_ended = loop->validation_end_logged = validation_ended != 0;
    const char *reason = leati_state_find_text(&state, "stop_reason");
    loop->position.ended =
        stop != 0; /* a fit that a callback has ended does not run epochs, which set `ended` */
    if (stop) leat_training_stop(&loop->training, reason);
    return LEAT_OK;
}

/* Returns about how many bytes a checkpoint has: the slabs but for the gradients, and room for the rest. */
static size_t state_bytes(const leati_fit_loop *loop) {
    const leati_weights *weights = &loop->model->weights;
    return leati_weights_slab_bytes(weights) - weights->trainable_bytes + ((size_t)1 << 18);
}

leat_status leati_fit_state_save(leati_fit_loop *loop, leati_snapshot *snapshot, leat_error *err) {
    leat_state meter = {.snapshot = snapshot, .prefix = "meter/"};
    leat_state model = {.snapshot = snapshot, .prefix = "model/"};
    leat_state history = {.snapshot = snapshot, .prefix = "history/"};
    LEATI_TRY(leati_snapshot_begin(snapshot, err));
    LEATI_TRY(leati_snapshot_reserve(snapshot, state_bytes(loop), err));
    LEATI_TRY(save_position(loop, snapshot, err));
    LEATI_TRY(save_choices(loop, snapshot, err));
    LEATI_TRY(save_feeds(loop, snapshot, err));
    LEATI_TRY(leati_meter_save(&loop->meter, &meter, err));
    LEATI_TRY(leati_history_save(loop->history, &history, err));
    LEATI_TRY(leati_training_save_callbacks(&loop->training, snapshot, err));
    return leati_model_state_save(loop->model, &model, err);
}

static void log_resumption(const leati_fit_loop *loop) {
    const leati_fit_position *position = &loop->position;
    const leat_state state = {.image = &loop->checkpoints.image, .prefix = "fit/"};
    const char *version = leati_state_find_text(&state, "version");
    leati_training_log(&loop->training, LEAT_LOG_INFO,
                       "leat: continuing after step %" PRId64 " (epoch %" PRId64 ", step %" PRId64
                       "), from '%s'",
                       position->steps, position->epoch + 1, position->step, loop->checkpoints.path);
    if (version && strcmp(version, leat_version()) != 0)
        leati_training_log(
            &loop->training, LEAT_LOG_WARNING,
            "leat: the checkpoint was written by leat %s: with %s the results may differ in the "
            "last digits",
            version, leat_version());
}

leat_status leati_fit_state_load(leati_fit_loop *loop, leat_error *err) {
    const leati_image *image = &loop->checkpoints.image;
    const leat_state meter = {.image = image, .prefix = "meter/"};
    const leat_state model = {.image = image, .prefix = "model/"};
    const leat_state history = {.image = image, .prefix = "history/"};
    if (!image->map.data) return LEAT_OK;
    loop->resumed = loop->training.params.resumed = true;
    LEATI_TRY(check_choices(loop, err));
    LEATI_TRY(leati_model_state_check(loop->model, &model, err));
    LEATI_TRY(load_position(loop, err));
    LEATI_TRY(leati_meter_load(&loop->meter, &meter, err));
    LEATI_TRY(leati_history_load(loop->history, &history, err));
    LEATI_TRY(restore_sequence(loop, &loop->train_sequence, "train", &loop->train_start, err));
    if (loop->options->validation)
        LEATI_TRY(
            restore_sequence(loop, &loop->validation_sequence, "validation", &loop->validation_start, err));
    LEATI_TRY(leati_model_state_load(loop->model, &model, err));
    log_resumption(loop);
    return LEAT_OK;
}

leat_status leati_fit_state_load_callbacks(leati_fit_loop *loop, leat_error *err) {
    if (!loop->resumed) return LEAT_OK;
    if (leat_dist_rank(loop->options->dist) == 0)
        LEATI_TRY(leati_training_load_callbacks(&loop->training, &loop->checkpoints.image, err));
    leati_image_close(&loop->checkpoints.image);
    return LEAT_OK;
}
