/* SPDX-License-Identifier: Apache-2.0 */
/* A custom layer with weights and a gradient: radial basis functions, y_j = exp(-widths_j |x - centers_j|^2).  The
 * program checks the layer's gradient against finite differences, trains a model with it to tell points inside a ring
 * from those outside, saves the model, and loads it again.
 *
 *     cc custom_layer.c -o custom_layer $(pkg-config --cflags --libs leat) -lm && ./custom_layer [FILE.h5]
 *
 * The same file can be compiled as a plugin, with which the command reads models that have such layers:
 *
 *     cc -shared -fPIC custom_layer.c -o custom_layer.so -lleat -lleat_feed -lm
 *     leat summary custom_layer.h5 --layers ./custom_layer.so */
#include <math.h>
#include <stdio.h>

#include "leat/leat.h"

/* ---- The layer ---- */

typedef struct radial {
    int64_t units;
    double width;
} radial;

/* The keys that get_config of a Python class would return. */
static const leat_layer_key keys[] = {
    {.key = "units", .kind = LEAT_KEY_INT, .offset = offsetof(radial, units), .minimum = 1, .limited = true},
    {.key = "width",
     .kind = LEAT_KEY_FLOAT,
     .offset = offsetof(radial, width),
     .preset = "1.0",
     .limited = true},
    {.key = "centers_initializer", .kind = LEAT_KEY_INITIALIZER, .preset = "\"random_uniform\""},
    {.key = NULL}};

static leat_status infer(const void *config, int input_count, const leat_tensor *inputs, leat_tensor *outputs,
                         leat_error *err) {
    const radial *c = config;
    (void)input_count;
    if (inputs[0].rank != 2)
        return leat_error_set(err, LEAT_ESHAPE, "expected an input (batch, features), received rank %d",
                              (int)inputs[0].rank);
    outputs[0].shape[1] = c->units;
    return LEAT_OK;
}

static leat_status build(const void *config, int input_count, const leat_tensor *inputs,
                         leat_layer_weights *weights, leat_error *err) {
    const radial *c = config;
    char constant[96];
    (void)input_count;
    snprintf(constant, sizeof constant, "{\"class_name\": \"Constant\", \"config\": {\"value\": %.17g}}",
             c->width);
    const leat_layer_weight centers = {.size = sizeof(leat_layer_weight),
                                       .name = "centers",
                                       .rank = 2,
                                       .shape = {c->units, inputs[0].shape[1]},
                                       .initializer = "centers_initializer"},
                            widths = {.size = sizeof(leat_layer_weight),
                                      .name = "widths",
                                      .rank = 1,
                                      .shape = {c->units},
                                      .initializer = constant,
                                      .constraint = "non_neg"};
    leat_status status = leat_layer_add_weight(weights, &centers, err);
    return status == LEAT_OK ? leat_layer_add_weight(weights, &widths, err) : status;
}

static float distance(const float *x, const float *center, int64_t features) {
    float sum = 0;
    for (int64_t f = 0; f < features; ++f) sum += (x[f] - center[f]) * (x[f] - center[f]);
    return sum;
}

static leat_status forward(const leat_layer_call *call, leat_error *err) {
    const int64_t samples = call->inputs[0].shape[0], features = call->inputs[0].shape[1];
    const int64_t units = call->weights[0].shape[0];
    const float *x = call->inputs[0].data;        /* (samples, features) */
    const float *centers = call->weights[0].data; /* (units, features) */
    const float *widths = call->weights[1].data;  /* (units) */
    float *y = call->outputs[0].data;             /* (samples, units) */
    (void)err;
    for (int64_t n = 0; n < samples; ++n)
        for (int64_t j = 0; j < units; ++j)
            y[n * units + j] =
                expf(-widths[j] * distance(x + n * features, centers + j * features, features));
    return LEAT_OK;
}

/* Adds the share of one output to the gradients.  With e = dy y it is -e |x - c|^2 for the width, 2 e w (x - c) for the
 * center, and -2 e w (x - c) for the input. */
static void add(const leat_layer_call *call, int64_t n, int64_t j) {
    const int64_t features = call->inputs[0].shape[1], place = n * call->weights[0].shape[0] + j;
    const float *x = (const float *)call->inputs[0].data + n * features;
    const float *center = (const float *)call->weights[0].data + j * features;
    const float width = ((const float *)call->weights[1].data)[j];
    const float e =
        ((const float *)call->diff_outputs[0].data)[place] * ((const float *)call->outputs[0].data)[place];
    float *diff_x = call->diff_inputs[0].data, *diff_centers = call->diff_weights[0].data;
    float *diff_widths = call->diff_weights[1].data; /* a gradient that is not needed is NULL */
    if (diff_widths) diff_widths[j] -= e * distance(x, center, features);
    for (int64_t f = 0; f < features; ++f) {
        const float slope = 2 * e * width * (x[f] - center[f]);
        if (diff_centers) diff_centers[j * features + f] += slope;
        if (diff_x) diff_x[n * features + f] -= slope;
    }
}

static leat_status backward(const leat_layer_call *call, leat_error *err) {
    (void)err;
    for (int64_t n = 0; n < call->inputs[0].shape[0]; ++n)
        for (int64_t j = 0; j < call->weights[0].shape[0]; ++j) add(call, n, j);
    return LEAT_OK;
}

static leat_layer_definition definition(void) {
    leat_layer_definition d = leat_layer_definition_default();
    d.class_name = "RadialBasis";
    d.keys = keys;
    d.config_bytes = sizeof(radial);
    d.infer = infer;
    d.build = build;
    d.forward = forward;
    d.backward = backward;
    return d;
}

LEAT_PLUGIN leat_status leat_plugin_register(leat_registry *registry, leat_error *err) {
    const leat_layer_definition d = definition();
    return leat_registry_add(registry, &d, err);
}

/* ---- A network with it ---- */

enum { SAMPLES = 512 };
static float points[SAMPLES][2], inside[SAMPLES][1];

/* Draws points of a square; inside is 1 for those in a ring. */
static void draw_points(void) {
    leat_rng rng = leat_rng_for(1, 0, 0);
    for (int i = 0; i < SAMPLES; ++i) {
        const double x = 4 * leat_rng_uniform(&rng) - 2, y = 4 * leat_rng_uniform(&rng) - 2;
        const double radius = sqrt(x * x + y * y);
        points[i][0] = (float)x;
        points[i][1] = (float)y;
        inside[i][0] = radius > 0.6 && radius < 1.5 ? 1.0f : 0.0f;
    }
}

static leat_status make(leat_model **out, const leat_registry *registry, leat_error *err) {
    leat_builder *builder = NULL;
    leat_status status = leat_builder_create(&builder, err);
    if (status != LEAT_OK) return status;
    leat_builder_use(builder, registry);
    leat_node *input = leat_input(builder, (int64_t[]){2}, 1);
    leat_node *x = leat_layer(input, "RadialBasis",
                              "{\"units\": 24, \"centers_initializer\": {\"class_name\": \"RandomUniform\", "
                              "\"config\": {\"minval\": -2.0, \"maxval\": 2.0, \"seed\": 3}}}");
    x = leat_dense(x, 1, "sigmoid");
    status = leat_model_create(out, &builder, &input, 1, &x, 1, err);
    if (status != LEAT_OK) return status;
    leat_compile_options compile = leat_compile_options_default();
    compile.optimizer = "{\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.05}}";
    compile.loss = "binary_crossentropy";
    compile.metrics = "accuracy";
    return leat_model_compile(*out, &compile, err);
}

/* Evaluates the model and prints loss and accuracy. */
static leat_status measure(leat_model *model, const char *when, const leat_arrays *data, leat_error *err) {
    leat_logs logs;
    leat_status status = leat_model_evaluate(model, data, 64, NULL, &logs, err);
    printf("%s:", when);
    for (int i = 0; status == LEAT_OK && i < logs.count; ++i)
        printf(" %s %.4f", logs.items[i].name, logs.items[i].value);
    printf("\n");
    return status;
}

static leat_status run(leat_registry *registry, const char *path, leat_error *err) {
    const leat_array x = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 2}, points)};
    const leat_array t = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, inside)};
    const leat_arrays data = {.inputs = &x, .targets = &t, .input_count = 1, .target_count = 1};
    leat_fit_options fit = leat_fit_options_default();
    leat_model *model = NULL, *loaded = NULL;
    fit.epochs = 60;
    fit.verbose = 0;
    draw_points();
    leat_status status = make(&model, registry, err);
    if (status == LEAT_OK) status = leat_model_fit(model, &data, 64, &fit, NULL, err);
    if (status == LEAT_OK) status = measure(model, "trained", &data, err);
    if (status == LEAT_OK) status = leat_model_save(model, path, true, err);
    if (status == LEAT_OK) status = leat_model_load_with(&loaded, path, registry, err);
    if (status == LEAT_OK) status = measure(loaded, "loaded again", &data, err);
    leat_model_destroy(&model);
    leat_model_destroy(&loaded);
    return status;
}

int main(int argc, char **argv) {
    const leat_tensor shape = leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 4}, NULL);
    const leat_layer_definition d = definition();
    leat_registry *registry = NULL;
    leat_error err = {0};
    double worst = 0;
    leat_status status = leat_layer_check_gradient(&d, "{\"units\": 5}", 1, &shape, &worst, &err);
    if (status == LEAT_OK) printf("gradient: differs by %.0e from finite differences\n", worst);
    if (status == LEAT_OK) status = leat_registry_create(&registry, &err);
    if (status == LEAT_OK) status = leat_registry_add(registry, &d, &err);
    if (status == LEAT_OK) status = run(registry, argc > 1 ? argv[1] : "custom_layer.h5", &err);
    if (status != LEAT_OK) fprintf(stderr, "custom_layer: %s\n", err.message);
    leat_registry_destroy(&registry);
    return status == LEAT_OK ? 0 : 1;
}
