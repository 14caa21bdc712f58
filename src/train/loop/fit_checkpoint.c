/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the checkpoints of a fit.  fit_state.c has what they contain.  Room: train. */
#include "train/loop/fit_checkpoint.h"

#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "checkpoint/folder.h"
#include "checkpoint/state.h"
#include "leat/file.h"
#include "train/loop/fit_loop.h"
#include "train/loop/fit_state.h"
#include "train/state/model_state.h"

/* ---- Opening and closing ---- */

static leat_status refuse_other_run(const char *folder, leat_error *err) {
    leati_checkpoint_list list;
    LEATI_TRY(leati_checkpoint_list_read(&list, folder, err));
    leati_free(list.steps);
    if (list.count == 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL,
                      "the folder '%s' has checkpoints of another fit: set resume to continue that fit, or "
                      "choose another folder",
                      folder);
}

/* Removes newer checkpoints, which are damaged, so that they do not take the place of those that this fit writes. */
static leat_status open_newest(leati_fit_loop *loop, leat_error *err) {
    leati_fit_checkpoints *checkpoints = &loop->checkpoints;
    const char *folder = checkpoints->options.folder;
    leat_error why = {0};
    int damaged = 0;
    leat_status status =
        leati_checkpoint_open_newest(&checkpoints->image, folder, &checkpoints->path, &damaged, &why);
    if (status == LEAT_ENOTFOUND) return LEAT_OK;
    if (status != LEAT_OK) {
        if (err) *err = why;
        return status;
    }
    const leat_state state = {.image = &checkpoints->image, .prefix = "fit/"};
    int64_t steps = 0;
    LEATI_TRY(leati_state_get_i64(&state, "steps", &steps, err));
    return damaged > 0 ? leati_checkpoint_remove_after(folder, steps, err) : LEAT_OK;
}

/* Locks the folder, and removes what a killed fit has left unfinished there. */
static leat_status prepare_folder(leati_fit_loop *loop, leat_error *err) {
    leati_fit_checkpoints *checkpoints = &loop->checkpoints;
    const char *folder = checkpoints->options.folder;
    leat_error why = {0};
    LEATI_TRY(leati_checkpoint_folder_make(folder, err));
    leat_status status = leat_folder_lock(&checkpoints->lock, folder, &why);
    if (status == LEAT_ENOTSUP) {
        leati_training_log(&loop->training, LEAT_LOG_WARNING, "leat: checkpoints: %s", why.message);
    } else if (status != LEAT_OK) {
        if (err) *err = why;
        return status;
    }
    return leat_folder_clean(folder, err);
}

/* With several ranks, rank 0 has the folder; the others know only that there is one. */
static bool writes(const leati_fit_loop *loop) {
    return loop->checkpoints.options.folder && leat_dist_rank(loop->options->dist) == 0;
}

leat_status leati_fit_checkpoints_open(leati_fit_loop *loop, leat_error *err) {
    leati_fit_checkpoints *checkpoints = &loop->checkpoints;
    if (!loop->options->checkpoints) return LEAT_OK;
    LEATI_TRY(leati_checkpoint_options_read(loop->options->checkpoints, &checkpoints->options, err));
    if (!writes(loop)) return LEAT_OK;
    LEATI_TRY(prepare_folder(loop, err));
    checkpoints->started_ns = leati_now_ns();
    return checkpoints->options.resume ? open_newest(loop, err)
                                       : refuse_other_run(checkpoints->options.folder, err);
}

void leati_fit_checkpoints_close(leati_fit_loop *loop) {
    leati_fit_checkpoints *checkpoints = &loop->checkpoints;
    leati_writer_destroy(&checkpoints->writer);
    leati_image_close(&checkpoints->image);
    leati_free(checkpoints->path);
    checkpoints->path = NULL;
    leat_folder_unlock(&checkpoints->lock);
}

/* ---- Writing ---- */

/* Begins to write the state as it is now.  The writer must be idle. */
static leat_status begin(leati_fit_loop *loop, leat_error *err) {
    leati_fit_checkpoints *checkpoints = &loop->checkpoints;
    if (!checkpoints->writer)
        LEATI_TRY(leati_writer_create(&checkpoints->writer, checkpoints->options.folder,
                                      checkpoints->options.keep, err));
    LEATI_TRY(leati_prefix(leati_fit_state_save(loop, leati_writer_snapshot(checkpoints->writer), err), err,
                           "checkpoint after step %" PRId64, loop->position.steps));
    leati_writer_begin(checkpoints->writer, loop->position.steps);
    checkpoints->started_ns = leati_now_ns();
    checkpoints->due = false;
    return LEAT_OK;
}

/* Logs the failure of the checkpoint that was written last.  The fit goes on: the checkpoint before is still there. */
static void log_failure(leati_fit_loop *loop) {
    leati_writer *writer = loop->checkpoints.writer;
    leat_error why = {0};
    if (writer && leati_writer_result(writer, &why) != LEAT_OK)
        leati_training_log(&loop->training, LEAT_LOG_WARNING,
                           "leat: a checkpoint was not written, and training goes on: %s", why.message);
}

/* Returns false, and logs why, if a trained weight is infinite or NaN.  No fit can continue from such weights, even if
 * the loss, which was computed before the last step, is still finite: the checkpoint before stays the newest. */
static bool has_finite_weights(leati_fit_loop *loop) {
    if (leati_model_state_is_finite(loop->model)) return true;
    leati_training_log(&loop->training, LEAT_LOG_WARNING,
                       "leat: no checkpoint is written after step %" PRId64 ": a weight is not finite",
                       loop->position.steps);
    loop->checkpoints.due = false;
    return false;
}

/* What a process that writes no checkpoints does where rank 0 may write one. */
static leat_status follow_writer(leati_fit_loop *loop, leat_error *err) {
    return loop->checkpoints.options.folder ? leati_fit_collect_if(loop, false, err) : LEAT_OK;
}

/* Begins a checkpoint on rank 0 if one is due.  All ranks make this call. */
static leat_status begin_if_idle(leati_fit_loop *loop, leat_error *err) {
    leati_writer *writer = loop->checkpoints.writer;
    bool begins = loop->checkpoints.due && !(writer && !leati_writer_is_idle(writer));
    if (begins) log_failure(loop);
    begins = begins && has_finite_weights(loop);
    LEATI_TRY(leati_fit_collect_if(loop, begins, err));
    return begins ? begin(loop, err) : LEAT_OK;
}

leat_status leati_fit_checkpoint_step(leati_fit_loop *loop, leat_error *err) {
    leati_fit_checkpoints *checkpoints = &loop->checkpoints;
    const leat_checkpoint_options *options = &checkpoints->options;
    if (!writes(loop)) return follow_writer(loop, err);
    if (options->every_steps > 0 && loop->position.steps % options->every_steps == 0) checkpoints->due = true;
    if (options->every_ms > 0 && (leati_now_ns() - checkpoints->started_ns) / 1000000 >= options->every_ms)
        checkpoints->due = true;
    return begin_if_idle(loop, err);
}

leat_status leati_fit_checkpoint_epoch(leati_fit_loop *loop, leat_error *err) {
    const leat_checkpoint_options *options = &loop->checkpoints.options;
    if (!writes(loop)) return follow_writer(loop, err);
    if (options->every_epochs > 0 && loop->position.epoch % options->every_epochs == 0)
        loop->checkpoints.due = true;
    /* Otherwise a fit that continues from an older checkpoint would replace the best model by a worse one. */
    if (loop->training.improved) loop->checkpoints.due = true;
    loop->training.improved = false;
    return begin_if_idle(loop, err);
}

/* A callback that stops training because the loss is not finite leaves a model from which nothing can continue: the
 * checkpoint before stays the newest. */
static bool is_worth_saving(const leati_fit_loop *loop) {
    return !loop->training.stop || loop->position.suspended || isfinite(loop->meter.loss);
}

leat_status leati_fit_checkpoint_last(leati_fit_loop *loop, leat_error *err) {
    leati_fit_checkpoints *checkpoints = &loop->checkpoints;
    leat_error why = {0};
    if (!writes(loop)) return follow_writer(loop, err);
    if (checkpoints->writer) leati_writer_wait(checkpoints->writer);
    log_failure(loop);
    const bool begins = is_worth_saving(loop) && has_finite_weights(loop);
    LEATI_TRY(leati_fit_collect_if(loop, begins, err));
    if (!begins) return LEAT_OK;
    leat_status status = begin(loop, &why);
    if (status == LEAT_OK) status = leati_writer_result(checkpoints->writer, &why);
    if (status == LEAT_OK) return LEAT_OK;
    if (!loop->position.ended) {
        if (err) *err = why;
        return leati_prefix(status, err, "the last checkpoint was not written");
    }
    leati_training_log(&loop->training, LEAT_LOG_WARNING, "leat: the last checkpoint was not written: %s",
                       why.message);
    return LEAT_OK;
}
