/* SPDX-License-Identifier: Apache-2.0 */
/* A custom data source in four functions: a Sequence that makes points on two spirals, which a small network learns
 * to tell apart.  The noise of the points decreases from pass to pass: on_epoch_end changes it, and it is declared as
 * state, so that worker processes see the change too.
 *
 *     cc custom_sequence.c -o custom_sequence $(pkg-config --cflags --libs leat) -lm && ./custom_sequence [EPOCHS] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "leat/leat.h"

typedef struct spirals {
    int64_t batches;
    double noise; /* of the points; on_epoch_end changes it */
} spirals;

/* 1: Returns the number of batches of a pass. */
static int64_t spirals_length(void *user) {
    const spirals *s = user;
    return s->batches;
}

/* 2: Makes batch `index` directly in the memory that training reads.  All random choices come from rng, so that the
 * data is the same for any number and kind of workers. */
static leat_status spirals_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    const spirals *s = user;
    float *points = batch->tensors[0].data; /* (size, 2) */
    float *labels = batch->tensors[1].data; /* (size, 1) */
    (void)index;
    (void)err; /* to fail: return leat_error_set(err, LEAT_EUSER, "cannot read ..."); */
    for (int64_t i = 0; i < batch->size; ++i) {
        double turn = 0.5 + 5 * leat_rng_uniform(rng);
        int arm = (int)leat_rng_below(rng, 2);
        double angle = turn + 3.14159265358979 * arm;
        points[2 * i] = (float)(turn * cos(angle) / 3 + s->noise * leat_rng_normal(rng));
        points[2 * i + 1] = (float)(turn * sin(angle) / 3 + s->noise * leat_rng_normal(rng));
        labels[i] = (float)arm;
    }
    return LEAT_OK;
}

/* 3: Runs between two passes. */
static leat_status spirals_on_epoch_end(void *user, int64_t pass, leat_error *err) {
    spirals *s = user;
    (void)pass;
    (void)err;
    s->noise *= 0.8;
    return LEAT_OK;
}

/* 4: Describes a batch and sets the functions above. */
static leat_status spirals_open(leat_sequence *out, spirals *s, int64_t batch_size, leat_error *err) {
    *out = leat_sequence_default();
    out->user = s;
    out->length = spirals_length;
    out->get = spirals_get;
    out->on_epoch_end = spirals_on_epoch_end;
    out->state = &s->noise;
    out->state_bytes = sizeof s->noise;
    out->spec.batch_size = batch_size;
    leat_status status =
        leat_batch_spec_add(&out->spec, LEAT_PART_INPUT, NULL, LEAT_F32, 1, (int64_t[]){2}, err);
    if (status != LEAT_OK) return status;
    return leat_batch_spec_add(&out->spec, LEAT_PART_TARGET, NULL, LEAT_F32, 1, (int64_t[]){1}, err);
}

static leat_status build(leat_model **out, leat_error *err) {
    leat_builder *builder = NULL;
    leat_status status = leat_builder_create(&builder, err);
    if (status != LEAT_OK) return status;
    leat_node *input = leat_input(builder, (int64_t[]){2}, 1);
    leat_node *x = leat_dense(input, 64, "relu");
    x = leat_dense(x, 64, "relu");
    leat_node *output = leat_dense(x, 1, "sigmoid");
    status = leat_model_create(out, &builder, &input, 1, &output, 1, err);
    if (status != LEAT_OK) return status;
    leat_compile_options compile = leat_compile_options_default();
    compile.optimizer = "{\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.01}}";
    compile.loss = "binary_crossentropy";
    compile.metrics = "accuracy";
    return leat_model_compile(*out, &compile, err);
}

int main(int argc, char **argv) {
    spirals data = {.batches = 100, .noise = 0.3}, fresh = {.batches = 20, .noise = 0.02};
    leat_sequence train = {0}, test = {0};
    leat_model *model = NULL;
    leat_error err = {0};
    leat_fit_options fit = leat_fit_options_default();
    leat_evaluate_options evaluate = leat_evaluate_options_default();
    leat_set_log(leat_log_to_stderr, NULL); /* says what bounds the training, and warns */
    leat_logs logs = {0};
    fit.epochs = argc > 1 ? atoi(argv[1]) : 10;
    fit.workers = 2;
    fit.use_multiprocessing = true;
    leat_status status = build(&model, &err);
    if (status == LEAT_OK) status = spirals_open(&train, &data, 64, &err);
    if (status == LEAT_OK) status = spirals_open(&test, &fresh, 64, &err);
    if (status == LEAT_OK) status = leat_model_fit_generator(model, &train, &fit, NULL, &err);
    if (status == LEAT_OK) status = leat_model_evaluate_generator(model, &test, &evaluate, &logs, &err);
    for (int i = 0; status == LEAT_OK && i < logs.count; ++i)
        printf("%s: %.4f\n", logs.items[i].name, logs.items[i].value);
    if (status != LEAT_OK) fprintf(stderr, "custom_sequence: %s\n", err.message);
    leat_sequence_destroy(&train);
    leat_sequence_destroy(&test);
    leat_model_destroy(&model);
    return status == LEAT_OK ? 0 : 1;
}
