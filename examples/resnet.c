/* SPDX-License-Identifier: Apache-2.0 */
/* ResNet-50, 101 and 152 by one function: the models of keras.applications.resnet with the same names, so that weights
 * that Keras saved can be loaded.  Without --train the program trains for some seconds on images that it draws itself.
 *
 *     cc resnet.c -o resnet $(pkg-config --cflags --libs leat) -lm
 *     ./resnet --depth 50 --pixels 224 --classes 10 --train 'npz:photos.npz' --epochs 5 --save resnet50.h5
 *
 * --weights FILE starts from these weights; --summary and --json print the model and exit.  He et al. 2015, table 1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/leat.h"

/* ---- The network ---- */

static leat_node *convolution(leat_node *x, int filters, int size, int stride, const char *block,
                              const char *part) {
    return leat_layerf(
        x, "Conv2D",
        "{'filters': %d, 'kernel_size': %d, 'strides': %d, 'padding': '%s', 'name': '%s_%s_conv'}", filters,
        size, stride, size == 3 ? "same" : "valid", block, part);
}

static leat_node *normalisation(leat_node *x, const char *block, const char *part) {
    return leat_layerf(x, "BatchNormalization", "{'axis': 3, 'epsilon': 1.001e-05, 'name': '%s%s_bn'}", block,
                       part);
}

static leat_node *relu(leat_node *x, const char *block, const char *part) {
    return leat_layerf(x, "Activation", "{'activation': 'relu', 'name': '%s_%s'}", block, part);
}

/* A 1x1 convolution to `filters` channels, a 3x3, and a 1x1 to four times as many, added to the input or, with project,
 * to a projection of the input. */
static leat_node *bottleneck(leat_node *x, int filters, int stride, bool project, const char *name) {
    leat_node *joined[2] = {x};
    if (project) joined[0] = normalisation(convolution(x, 4 * filters, 1, stride, name, "0"), name, "_0");
    x = relu(normalisation(convolution(x, filters, 1, stride, name, "1"), name, "_1"), name, "1_relu");
    x = relu(normalisation(convolution(x, filters, 3, 1, name, "2"), name, "_2"), name, "2_relu");
    joined[1] = normalisation(convolution(x, 4 * filters, 1, 1, name, "3"), name, "_3");
    return relu(leat_mergef(joined, 2, "Add", "{'name': '%s_add'}", name), name, "out");
}

static leat_node *stage(leat_node *x, int number, int blocks) {
    char name[32];
    for (int i = 1; i <= blocks; ++i) {
        snprintf(name, sizeof name, "conv%d_block%d", number, i);
        x = bottleneck(x, 32 << (number - 1), i == 1 && number > 2 ? 2 : 1, i == 1, name);
    }
    return x;
}

static leat_node *stem(leat_node *x) {
    x = leat_layer(x, "ZeroPadding2D", "{'padding': 3, 'name': 'conv1_pad'}");
    x = leat_layer(x, "Conv2D", "{'filters': 64, 'kernel_size': 7, 'strides': 2, 'name': 'conv1_conv'}");
    x = relu(normalisation(x, "conv1", ""), "conv1", "relu");
    x = leat_layer(x, "ZeroPadding2D", "{'padding': 1, 'name': 'pool1_pad'}");
    return leat_layer(x, "MaxPooling2D", "{'pool_size': 3, 'strides': 2, 'name': 'pool1_pool'}");
}

static leat_status build(leat_model **out, int depth, int64_t pixels, int classes, leat_error *err) {
    static const int depths[3][5] = {{50, 3, 4, 6, 3}, {101, 3, 4, 23, 3}, {152, 3, 8, 36, 3}};
    const int *blocks = depths[0];
    leat_builder *builder = NULL;
    while (blocks < depths[2] && blocks[0] != depth) blocks += 5;
    if (blocks[0] != depth)
        return leat_error_set(err, LEAT_EINVAL, "expected a depth of 50, 101 or 152, received %d", depth);
    leat_status status = leat_builder_create(&builder, err);
    if (status != LEAT_OK) return status;
    char name[16];
    snprintf(name, sizeof name, "resnet%d", depth);
    leat_builder_set_name(builder, name);
    leat_node *input = leat_input(builder, (int64_t[]){pixels, pixels, 3}, 3);
    leat_node *x = stem(input);
    for (int number = 2; number <= 5; ++number) x = stage(x, number, blocks[number - 1]);
    x = leat_layer(x, "GlobalAveragePooling2D", "{'name': 'avg_pool'}");
    x = leat_layerf(x, "Dense", "{'units': %d, 'activation': 'softmax', 'name': 'probs'}", classes);
    return leat_model_create(out, &builder, &input, 1, &x, 1, err);
}

/* ---- Drawn images: stripes, whose direction is the class ---- */

typedef struct stripes {
    int64_t batches, pixels;
    int classes;
} stripes;

static int64_t stripes_length(void *user) {
    const stripes *s = user;
    return s->batches;
}

static void draw(const stripes *s, int label, leat_rng *rng, float *image) {
    const double pi = 3.14159265358979;
    double angle = pi * label / s->classes, phase = 2 * pi * leat_rng_uniform(rng);
    double step = 2 * pi * 8 / (double)s->pixels;
    for (int64_t row = 0; row < s->pixels; ++row)
        for (int64_t column = 0; column < s->pixels; ++column)
            for (int c = 0; c < 3; ++c)
                *image++ =
                    (float)(sin(phase + step * ((double)row * sin(angle) + (double)column * cos(angle))) +
                            0.3 * leat_rng_normal(rng));
}

static leat_status stripes_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    const stripes *s = user;
    float *images = batch->tensors[0].data; /* (size, pixels, pixels, 3) */
    float *labels = batch->tensors[1].data; /* (size, classes) */
    (void)index;
    (void)err;
    memset(labels, 0, (size_t)(batch->size * s->classes) * sizeof *labels);
    for (int64_t i = 0; i < batch->size; ++i) {
        int label = (int)leat_rng_below(rng, (uint64_t)s->classes);
        labels[i * s->classes + label] = 1;
        draw(s, label, rng, images + i * s->pixels * s->pixels * 3);
    }
    return LEAT_OK;
}

static leat_status stripes_open(leat_sequence *out, stripes *s, int64_t batch_size, leat_error *err) {
    *out = leat_sequence_default();
    out->user = s;
    out->length = stripes_length;
    out->get = stripes_get;
    out->spec.batch_size = batch_size;
    leat_status status = leat_batch_spec_add(&out->spec, LEAT_PART_INPUT, NULL, LEAT_F32, 3,
                                             (int64_t[]){s->pixels, s->pixels, 3}, err);
    if (status != LEAT_OK) return status;
    return leat_batch_spec_add(&out->spec, LEAT_PART_TARGET, NULL, LEAT_F32, 1, (int64_t[]){s->classes}, err);
}

/* ---- The program ---- */

typedef struct arguments {
    int64_t depth, classes, epochs, pixels, steps, batch_size;
    const char *train, *weights, *save;
    bool summary, json;
} arguments;

/* An option of the command line; its value is stored in the pointer that is not NULL. */
typedef struct option {
    const char *word;
    int64_t *number;
    const char **text;
    bool *flag;
} option;

static bool take(const option *o, const char *value) {
    char *end = NULL;
    if (!value) return false;
    if (o->text) *o->text = value;
    if (o->text) return true;
    *o->number = strtoll(value, &end, 10);
    return end != value && *end == '\0' && *o->number > 0 && *o->number < 1000000;
}

static bool parse(arguments *a, int argc, char **argv) {
    const option options[] = {
        {.word = "--depth", .number = &a->depth},   {.word = "--classes", .number = &a->classes},
        {.word = "--pixels", .number = &a->pixels}, {.word = "--epochs", .number = &a->epochs},
        {.word = "--steps", .number = &a->steps},   {.word = "--batch-size", .number = &a->batch_size},
        {.word = "--train", .text = &a->train},     {.word = "--weights", .text = &a->weights},
        {.word = "--save", .text = &a->save},       {.word = "--summary", .flag = &a->summary},
        {.word = "--json", .flag = &a->json},
    };
    const size_t count = sizeof options / sizeof options[0];
    for (int i = 1; i < argc; ++i) {
        size_t k = 0;
        while (k < count && strcmp(argv[i], options[k].word) != 0) ++k;
        if (k == count) return false;
        if (options[k].flag) {
            *options[k].flag = true;
        } else {
            ++i;
            if (!take(&options[k], i < argc ? argv[i] : NULL)) return false;
        }
    }
    return true;
}

static leat_status show(const arguments *a, const leat_model *model, leat_error *err) {
    char *text = NULL, *json = NULL;
    leat_status status = leat_model_summary(model, &text, err);
    if (status == LEAT_OK && a->json) status = leat_model_to_json(model, &json, err);
    if (text && (a->summary || !a->json)) fputs(text, stdout);
    if (json) puts(json);
    leat_string_free(text);
    leat_string_free(json);
    return status;
}

static leat_status open_data(leat_sequence *out, const arguments *a, stripes *drawn, leat_error *err) {
    leat_source_options options = leat_source_options_default();
    options.batch_size = a->batch_size;
    *drawn = (stripes){.batches = a->steps, .pixels = a->pixels, .classes = (int)a->classes};
    return a->train ? leat_source_open(out, sizeof *out, a->train, &options, err)
                    : stripes_open(out, drawn, a->batch_size, err);
}

static leat_status train(const arguments *a, leat_model *model, leat_error *err) {
    stripes drawn;
    leat_sequence data = {0};
    leat_compile_options compile = leat_compile_options_default();
    compile.optimizer = "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.02, \"momentum\": 0.9}}";
    compile.loss = "categorical_crossentropy";
    compile.metrics = "accuracy";
    leat_fit_options fit = leat_fit_options_default();
    fit.epochs = a->epochs;
    leat_status status = leat_model_compile(model, &compile, err);
    if (status == LEAT_OK) status = open_data(&data, a, &drawn, err);
    if (status == LEAT_OK) status = leat_model_fit_generator(model, &data, &fit, NULL, err);
    if (status == LEAT_OK && a->save) status = leat_model_save(model, a->save, true, err);
    leat_sequence_destroy(&data);
    return status;
}

int main(int argc, char **argv) {
    arguments a = {.depth = 50, .classes = 4, .epochs = 3, .pixels = 64, .steps = 8, .batch_size = 16};
    leat_model *model = NULL;
    leat_error err = {0};
    leat_set_log(leat_log_to_stderr, NULL); /* says what bounds the training, and warns */
    if (!parse(&a, argc, argv)) {
        fputs("usage: resnet [--depth 50|101|152] [--pixels N] [--classes N] [--train SPEC] [--epochs N]\n"
              "              [--steps N] [--batch-size N] [--weights FILE] [--save FILE] [--summary] "
              "[--json]\n",
              stderr);
        return 2;
    }
    leat_status status = build(&model, (int)a.depth, a.pixels, (int)a.classes, &err);
    if (status == LEAT_OK && a.weights) status = leat_model_load_weights(model, a.weights, false, &err);
    if (status == LEAT_OK) status = show(&a, model, &err);
    if (status == LEAT_OK && !a.summary && !a.json) status = train(&a, model, &err);
    if (status != LEAT_OK) fprintf(stderr, "resnet: %s\n", err.message);
    leat_model_destroy(&model);
    return status == LEAT_OK ? 0 : 1;
}
