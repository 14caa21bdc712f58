/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a predictor that its files share.  Room: train. */
#ifndef LEATI_TRAIN_PREDICT_PREDICTOR_H
#define LEATI_TRAIN_PREDICT_PREDICTOR_H

#include "engine/device.h"
#include "leat/predictor.h"
#include "nn/layers/carry.h"
#include "nn/program/program.h"
#include "train/predict/publication.h"

struct leat_predictor {
    leat_model *model; /* counted in model->holders, so the model outlives the predictor */
    leati_publication *publication;
    leati_copy *copy;
    leati_program_spec spec;
    leati_program program;
    leati_carry carry;
    leati_device *device;          /* owned; NULL: the predictor computes on the CPU */
    void *slabs[LEATI_SLAB_COUNT]; /* on the device: the weights of `copy`, and the states during a run */
    leati_arena *arena;
    leati_plan *plan;
    unsigned char *
        states; /* twice carry.bytes, on the host; the second half is for those that a run shall not change */
    int64_t batch_size;
    int32_t input_count, output_count;
    size_t input_bytes[LEATI_PROGRAM_MAX_OUTPUTS];
    void *inputs[LEATI_PROGRAM_MAX_OUTPUTS]; /* the predictor's own memory for inputs */
    leat_tensor outputs[LEATI_PROGRAM_MAX_OUTPUTS];
    size_t output_bytes[LEATI_PROGRAM_MAX_OUTPUTS];
    bool aliases_inputs; /* an output may be in the memory of an input */
};

/* Makes a predictor that computes on the device with this name; NULL or "cpu": on the CPU; not "auto". */
leat_status leati_predictor_make(leat_predictor **out, leat_model *model,
                                 const leat_predictor_options *options, const char *device, leat_error *err);

/* ---- On a device (on_device.c) ---- */

/* Memory of the host for inputs and states: of a predictor of a device pinned, so that it is copied directly. */
leat_status leati_predictor_allocate(const leat_predictor *p, size_t bytes, void **out, leat_error *err);
void leati_predictor_release(const leat_predictor *p, void *memory);
/* Allocates the slabs on the device, and gives their addresses to the plan. */
leat_status leati_predictor_place_slabs(leat_predictor *p, void *addresses[LEATI_SLAB_COUNT],
                                        leat_error *err);
/* Copies the weights of `copy` to the device, and runs the plan once, which packs them. */
leat_status leati_predictor_adopt_on_device(leat_predictor *p, const leati_copy *copy,
                                            const void *const *inputs, leat_error *err);
leat_status leati_predictor_run_on_device(leat_predictor *p, const void *const *inputs, leat_error *err);
/* Frees the slabs and the device, after the plan and the arena. */
void leati_predictor_leave_device(leat_predictor *p);

/* For the device "auto": makes a predictor for the GPU and one for the CPU, and keeps the faster (choose_device.c). */
leat_status leati_predictor_make_faster(leat_predictor **out, leat_model *model,
                                        const leat_predictor_options *options, leat_error *err);

#endif
