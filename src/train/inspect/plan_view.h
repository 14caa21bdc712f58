/* SPDX-License-Identifier: Apache-2.0 */
/* A plan to look at: what was compiled for made-up data, and what its steps took. */
#ifndef LEATI_TRAIN_INSPECT_PLAN_VIEW_H
#define LEATI_TRAIN_INSPECT_PLAN_VIEW_H

#include "leat/train.h"
#include "train/step/trainer.h"

typedef struct leati_plan_view {
    const leat_model *model;
    const leati_compiled_step *step;
    leat_plan_options options;
    int32_t count;     /* steps of the plan */
    double *step_ns;   /* median of each; NULL: not measured */
    double total_ns;   /* their sum */
    double operations; /* of all */
    int32_t measured;  /* steps whose kernel was chosen by measuring */
    int reorders;      /* of all */
    size_t reorder_bytes, kept_bytes;
} leati_plan_view;

/* A table, or one JSON object; *out is for leati_free. */
leat_status leati_plan_table(const leati_plan_view *view, char **out, leat_error *err);
leat_status leati_plan_json(const leati_plan_view *view, char **out, leat_error *err);

/* "8x56x56x64", "scalar". */
#define LEATI_SHORT_SHAPE_BYTES 96
const char *leati_short_shape(char out[LEATI_SHORT_SHAPE_BYTES], const leati_desc *desc);

#endif
