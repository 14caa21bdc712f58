/* SPDX-License-Identifier: Apache-2.0 */
/* A plan that was compiled for made-up data, with the times of its steps, for printing.  Room: train. */
#ifndef LEATI_TRAIN_INSPECT_PLAN_VIEW_H
#define LEATI_TRAIN_INSPECT_PLAN_VIEW_H

#include "leat/train.h"
#include "train/step/trainer.h"

typedef struct leati_plan_view {
    const leat_model *model;
    const leati_compiled_step *step;
    leat_plan_options options;
    int32_t count;     /* steps of the plan */
    int32_t grouped;   /* the first of them, which are computed for groups of samples */
    double *step_ns;   /* median time of each step; NULL if not measured */
    double total_ns;   /* sum of step_ns */
    double operations; /* floating-point operations of all steps */
    int32_t measured;  /* steps whose kernel was chosen by measuring */
    int reorders;      /* layout conversions of all steps */
    size_t reorder_bytes, kept_bytes;
} leati_plan_view;

/* Write the plan as a table, and as one JSON object.  The caller frees *out with leati_free. */
leat_status leati_plan_table(const leati_plan_view *view, char **out, leat_error *err);
leat_status leati_plan_json(const leati_plan_view *view, char **out, leat_error *err);

/* Writes a shape such as "8x56x56x64", or "scalar", to out and returns out. */
#define LEATI_SHORT_SHAPE_BYTES 96
const char *leati_short_shape(char out[LEATI_SHORT_SHAPE_BYTES], const leati_desc *desc);

#endif
