/* SPDX-License-Identifier: Apache-2.0 */
/* Masks that current Keras treats in another way than the model: saving refuses them where they have an effect. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/model.h"

static char folder[] = "/tmp/leat_masks_XXXXXX";

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

#define MASKING                                                                                              \
    "{\"class_name\": \"Masking\", \"config\": {\"name\": \"m\", \"batch_input_shape\": [null, 4, 3]}}, "
#define TWO_WAYS                                                                                             \
    MASKING "{\"class_name\": \"Bidirectional\", \"config\": {\"name\": \"b\", \"layer\": {\"class_name\": " \
            "\"GRU\", "                                                                                      \
            "\"config\": {\"name\": \"g\", \"units\": 2, \"recurrent_activation\": \"sigmoid\", "            \
            "\"return_sequences\": true}}}}"
#define NODE(name_, class_, config_, inbound_)                                                               \
    "{\"name\": \"" name_ "\", \"class_name\": \"" class_ "\", \"config\": {\"name\": \"" name_ "\"" config_ \
    "}, \"inbound_nodes\": [" inbound_ "]}"
#define FROM(name_) "[\"" name_ "\", 0, 0, {}]"

/* Returns the message of saving a model for current Keras, or "". */
static void saved_message(const char *text, char out[LEAT_ERROR_MESSAGE_BYTES]) {
    leat_error err = {0};
    leat_model *model = NULL;
    char path[64];
    snprintf(path, sizeof path, "%s/m.keras", folder);
    must(leat_model_from_json(&model, text, &err), &err);
    leat_status status = leat_model_save(model, path, true, &err);
    assert_true(status == LEAT_OK || status == LEAT_ENOTSUP);
    snprintf(out, LEAT_ERROR_MESSAGE_BYTES, "%s", status == LEAT_OK ? "" : err.message);
    leat_model_destroy(&model);
    if (status == LEAT_OK) remove(path);
}

static void test_masks_of_stacks(void **state) {
    (void)state;
    static const struct {
        const char *layers, *message; /* "": the model is written */
    } cases[] = {
        {TWO_WAYS, "layer 'b': current Keras gives its outputs other values at masked steps"},
        {TWO_WAYS ", {\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\"}}",
         "and 'f' uses these steps"},
        {TWO_WAYS ", {\"class_name\": \"LSTM\", \"config\": {\"name\": \"l\", \"units\": 2, "
                  "\"recurrent_activation\": \"sigmoid\"}}",
         ""},
        {TWO_WAYS ", {\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 2}}, "
                  "{\"class_name\": \"GlobalAveragePooling1D\", \"config\": {\"name\": \"p\"}}",
         ""},
        {MASKING "{\"class_name\": \"Softmax\", \"config\": {\"name\": \"s\"}}",
         "layer 's' (Softmax): its input has a mask"},
        {MASKING
         "{\"class_name\": \"Activation\", \"config\": {\"name\": \"s\", \"activation\": \"softmax\"}}",
         ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char text[2048], message[LEAT_ERROR_MESSAGE_BYTES];
        snprintf(
            text, sizeof text,
            "{\"class_name\": \"Sequential\", \"keras_version\": \"2.3.1\", \"config\": {\"name\": \"s\", "
            "\"layers\": [%s]}}",
            cases[i].layers);
        saved_message(text, message);
        if (cases[i].message[0] ? !strstr(message, cases[i].message) : message[0])
            fail_msg("case %zu: expected '%s', received '%s'", i, cases[i].message, message);
    }
}

static void test_masks_of_graphs(void **state) {
    (void)state;
    static const struct {
        const char *first, *last, *message;
    } cases[] = {
        /* Masks of two inputs: the layers after it decide if the difference has an effect. */
        {NODE("j", "Add", "", "[" FROM("a") ", " FROM("b") "]"),
         NODE("l", "SimpleRNN", ", \"units\": 3", "[" FROM("j") "]"),
         "layer 'j': current Keras treats the masks of its inputs in another way than Keras 2.3.1, and 'l' "
         "uses"},
        {NODE("j", "Add", "", "[" FROM("a") ", " FROM("b") "]"), NODE("l", "Flatten", "", "[" FROM("j") "]"),
         ""},
        {NODE("j", "Add", "", "[" FROM("a") ", " FROM("a") "]"),
         NODE("l", "SimpleRNN", ", \"units\": 3", "[" FROM("j") "]"), ""},
        {NODE("j", "Multiply", "", "[" FROM("a") ", " FROM("y") "]"),
         NODE("l", "GlobalAveragePooling1D", "", "[" FROM("j") "]"),
         "layer 'j' (Multiply): its inputs have different masks"},
        {NODE("j", "GlobalMaxPooling1D", "", "[" FROM("y") "]"),
         NODE("l", "SimpleRNN", ", \"units\": 3", "[" FROM("a") ", " FROM("j") "]"),
         "layer 'l' (SimpleRNN): its input has a mask, which current Keras ignores in a call with initial "
         "states"},
        {NODE("j", "GlobalMaxPooling1D", "", "[" FROM("x") "]"),
         NODE("l", "SimpleRNN", ", \"units\": 3", "[" FROM("y") ", " FROM("j") "]"), ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char text[4096], message[LEAT_ERROR_MESSAGE_BYTES];
        snprintf(text, sizeof text,
                 "{\"class_name\": \"Model\", \"keras_version\": \"2.3.1\", \"config\": {\"name\": \"s\", "
                 "\"layers\": ["
                 "%s, %s, %s, %s, %s, %s], \"input_layers\": [[\"x\", 0, 0], [\"y\", 0, 0]], "
                 "\"output_layers\": [[\"l\", 0, 0], [\"b\", 0, 0]]}}",
                 NODE("x", "InputLayer", ", \"batch_input_shape\": [null, 4, 3]", ""),
                 NODE("y", "InputLayer", ", \"batch_input_shape\": [null, 4, 3]", ""),
                 NODE("a", "Masking", "", "[" FROM("x") "]"), NODE("b", "Masking", "", "[" FROM("y") "]"),
                 cases[i].first, cases[i].last);
        saved_message(text, message);
        if (cases[i].message[0] ? !strstr(message, cases[i].message) : message[0])
            fail_msg("case %zu: expected '%s', received '%s'", i, cases[i].message, message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_of_stacks),
        cmocka_unit_test(test_masks_of_graphs),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
