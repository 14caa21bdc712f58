/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the model of an example as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "nn/examples.h"

bool example_stops_gradients(const example *e) {
    static const char *const classes[] = {"CategoryEncoding",
                                          "Discretization",
                                          "HashedCrossing",
                                          "Hashing",
                                          "IntegerLookup",
                                          "RandomPosterization",
                                          "keras_hub>SinePositionEncoding"};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; ++i)
        if (strcmp(e->class_name, classes[i]) == 0) return true;
    return false;
}

bool example_is_input_layer(const example *e) {
    return strcmp(e->class_name, "InputLayer") == 0;
}

int example_output_count(const example *e) {
    return strstr(e->config, "\"return_state\": true") ? 3 : 1;
}

static void add_text(char *json, const char *text) {
    size_t used = strlen(json);
    assert_true(used + strlen(text) < 8000);
    memcpy(json + used, text, strlen(text) + 1);
}

static void add_input(char *json, const example *e, int index, bool plain) {
    const example_input *input = &e->inputs[index];
    char text[1024], dims[128] = "null";
    if (strstr(e->config, "\"stateful\": true")) snprintf(dims, sizeof dims, "%d", EXAMPLE_BATCH);
    for (int i = 0; i < input->rank; ++i)
        snprintf(dims + strlen(dims), sizeof dims - strlen(dims), ", %d", (int)input->dims[i]);
    snprintf(text, sizeof text,
             "{\"class_name\": \"InputLayer\", \"name\": \"x%d\", \"config\": {\"name\": \"x%d\", "
             "\"batch_input_shape\": [%s]}, \"inbound_nodes\": []}, {\"class_name\": \"Dense\", \"name\": "
             "\"before%d\", "
             "\"config\": {\"name\": \"before%d\", \"units\": %d, \"use_bias\": false}, \"inbound_nodes\": "
             "[[[\"x%d\", 0, 0]]]}, ",
             index, index, dims, index, index, (int)input->dims[input->rank - 1], index);
    if (plain) strcpy(strstr(text, "{\"class_name\": \"Dense\""), "");
    add_text(json, text);
}

int example_input_count(const example *e) {
    int count = 0;
    while (count < EXAMPLE_MAX_INPUTS && e->inputs[count].rank > 0) ++count;
    return count;
}

int example_classes(const example *e, int input) {
    const char *classes = strstr(e->config, "\"input_dim\": ");
    bool masks = strstr(e->config, "_mask\": true") && strstr(e->class_name, "keras_hub>Transformer") &&
                 input > (strstr(e->config, "\"encoder_sequence\": true") ? 1 : 0);
    bool places = strstr(e->config, "\"positions\": true") || strstr(e->class_name, "MaskedLMHead");
    if (strstr(e->class_name, "PositionEmbedding")) return 2; /* nothing flows to what is before the layer */
    if (masks || (places && input > 0)) return 2;
    return classes ? atoi(classes + strlen("\"input_dim\": ")) : 0;
}

void example_model(char json[EXAMPLE_MODEL_BYTES], const example *e, bool trainable) {
    char text[4096];
    strcpy(json, "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": [");
    for (int i = 0; i < example_input_count(e); ++i) add_input(json, e, i, example_classes(e, i) > 0);
    snprintf(
        text, sizeof text,
        "{\"class_name\": \"%s\", \"name\": \"it\", \"config\": {\"name\": \"it\", \"trainable\": %s%s%s}, "
        "\"inbound_nodes\": [[",
        e->class_name, trainable ? "true" : "false", e->config[0] ? ", " : "", e->config);
    add_text(json, text);
    for (int i = 0; i < example_input_count(e); ++i) {
        snprintf(text, sizeof text, "%s[\"%s%d\", 0, 0]", i ? ", " : "",
                 example_classes(e, i) > 0 ? "x" : "before", i);
        add_text(json, text);
    }
    add_text(json, "]]}], \"input_layers\": [");
    for (int i = 0; i < example_input_count(e); ++i) {
        snprintf(text, sizeof text, "%s[\"x%d\", 0, 0]", i ? ", " : "", i);
        add_text(json, text);
    }
    add_text(json, "], \"output_layers\": [");
    for (int i = 0; i < example_output_count(e); ++i) {
        snprintf(text, sizeof text, "%s[\"it\", 0, %d]", i ? ", " : "", i);
        add_text(json, text);
    }
    add_text(json, "]}}");
}
