/* SPDX-License-Identifier: Apache-2.0 */
/* A golden case with a model: built from Keras's config, compiled as in Keras, with Keras's weights; and its step
 * as a graph, compiled for one list of backends and run. */
#ifndef LEAT_TESTS_NN_MODEL_CASE_H
#define LEAT_TESTS_NN_MODEL_CASE_H

#include "nn/model/model.h"
#include "nn/program/program.h"
#include "nn/run.h"
#include "support/golden.h"

#define CASE_MAX_OUTPUTS 64
#define CASE_MAX_SAMPLES 64

typedef struct model_case {
    golden g;
    leat_model *model;
    leati_arena *arena;
    run_slabs slabs;
    const run_backend *backend;
} model_case;

/* The step in one mode, with the arrays x<i>, t<i>, sw<i> of the case. */
typedef struct model_stage {
    model_case *of;
    leati_mode mode;
    leati_program program;
    leati_plan *plan;
    const void *inputs[RUN_MAX_INPUTS];
    float class_weights[CASE_MAX_SAMPLES]; /* of meta.class_weight, times the sample weights */
} model_stage;

void model_case_open(model_case *c, const char *group, const char *name, const run_backend *backend);
void model_case_close(model_case *c);

void model_stage_open(model_stage *s, model_case *c, leati_mode mode);
/* Runs the step once; in train mode as step model->iterations, which it then increments. */
void model_stage_run(model_stage *s);
void model_stage_close(model_stage *s);

/* Writes the results of Keras's *_on_batch for the last run: the loss, the loss of each output if there are
 * several, the metrics. */
int model_stage_outputs(const model_stage *s, float *out);

/* Compare with the members <prefix>0, <prefix>1, ...: the predictions of the last run, the present weights, and
 * the gradients of the last run (of meta.trainable). */
void model_stage_compare_predictions(const model_stage *s, const char *prefix, double tolerance);
/* Compares the outputs of the last run with a row of the member. */
void model_stage_compare_outputs(const model_stage *s, const char *member, int64_t row, double tolerance);
/* Compare a prediction with the members <prefix>0, ..., and an evaluation with test0; each uses its own stage. */
void model_case_compare_prediction(model_case *c, const char *prefix, double tolerance);
void model_case_compare_evaluation(model_case *c, double tolerance);
void model_case_compare_weights(const model_case *c, const char *prefix, double tolerance);
void model_case_compare_gradients(const model_case *c, double tolerance);

#endif
