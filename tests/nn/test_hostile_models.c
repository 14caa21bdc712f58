/* SPDX-License-Identifier: Apache-2.0 */
/* Architectures that no user would write: absurd sizes, cycles, deep nesting, very many layers, and the models of
 * all examples with parts changed, removed or moved.  Each model is refused with a message, or works.  No
 * allocation is larger than the limit of fuzz/memory_limited.c.  Models that work are checked like in
 * fuzz/fuzz_model.c. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "json/json.h"
#include "leat/model.h"
#include "leat/rng.h"
#include "nn/examples.h"
#include "nn/layers/types.h"
#include "nn/network/network.h"

/* ---- Absurd models ---- */

#define SEQUENTIAL(...)                                                                                      \
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [" __VA_ARGS__ "]}}"
#define LAYER(class_name, ...) "{\"class_name\": \"" class_name "\", \"config\": {" __VA_ARGS__ "}}"
#define SHAPE(...)             "\"batch_input_shape\": [null, " __VA_ARGS__ "]"
#define MOST                   "2147483647"

static void refused(const char *json, const char *said) {
    leat_error err = {0};
    leat_model *model = NULL;
    assert_int_not_equal(leat_model_from_json(&model, json, &err), LEAT_OK);
    assert_null(model);
    if (!strstr(err.message, said)) fail_msg("expected '%s' in: %s", said, err.message);
}

static void test_sizes(void **state) {
    (void)state;
    refused(SEQUENTIAL(LAYER("Dense", SHAPE(MOST) ", \"units\": " MOST)), "for the shape of 'kernel'");
    refused(SEQUENTIAL(LAYER("Dense", SHAPE("1000000") ", \"units\": 1000000")), "weights");
    refused(SEQUENTIAL(LAYER("Dense", SHAPE("3") ", \"units\": 99999999999999999999")), "too big integer");
    refused(SEQUENTIAL(LAYER("Conv3D",
                             SHAPE("9, 9, 9, " MOST) ", \"filters\": " MOST ", \"kernel_size\": " MOST
                                                     ", \"padding\": \"same\"")),
            "for the shape of 'kernel'");
    refused(SEQUENTIAL(LAYER("Flatten", SHAPE(MOST ", " MOST ", " MOST))), "(None, 2147483647");
    refused(SEQUENTIAL(LAYER("Embedding", SHAPE("3") ", \"input_dim\": " MOST ", \"output_dim\": " MOST)),
            "for the shape of 'embeddings'");
    refused(SEQUENTIAL(LAYER("LSTM", SHAPE("3, 3") ", \"units\": " MOST)), "units: expected at most");
    refused(SEQUENTIAL(LAYER("Reshape", SHAPE("4") ", \"target_shape\": [" MOST ", " MOST ", " MOST "]")),
            "target_shape: expected a shape with the 4 elements");
    refused(SEQUENTIAL(LAYER("Dense", SHAPE("1, 1, 1, 1, 1, 1, 1, 1") ", \"units\": 1")),
            "at most 8 dimensions");
    refused(SEQUENTIAL(LAYER("RepeatVector", SHAPE("4") ", \"n\": " MOST) ", " LAYER(
                "Flatten", "") ", " LAYER("Dense", "\"units\": " MOST)),
            "expected fewer than 2147483648 elements");
}

/* Returns `count` copies of `piece` between two other texts; the caller frees it. */
static char *repeated(const char *before, const char *piece, int count, const char *between,
                      const char *after) {
    size_t bytes = strlen(before) + (size_t)count * (strlen(piece) + strlen(between)) + strlen(after) + 1;
    char *text = malloc(bytes), *to = text;
    assert_non_null(text);
    to += sprintf(to, "%s", before);
    for (int i = 0; i < count; ++i) to += sprintf(to, "%s%s", i > 0 ? between : "", piece);
    sprintf(to, "%s", after);
    return text;
}

static void test_masses(void **state) {
    (void)state;
    char *text = repeated("{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [",
                          LAYER("Flatten", ""), 20000, ", ", "]}}");
    refused(text, "layers");
    free(text);
    text = repeated("{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [", "0",
                    1000000, ",", "]}}");
    refused(text, "expected an object with a \"class_name\"");
    free(text);
    text = repeated("", "[", 1000000, "", "");
    refused(text, "deep");
    free(text);
    text = repeated("", "{\"class_name\": \"Sequential\", \"config\": {\"layers\": [", 400, "", "");
    refused(text, "deep");
    free(text);
}

/* 60 wrappers, one within the other, and as many models. */
/* Names are printed to a terminal in summaries and progress lines. */
static void test_control_characters(void **state) {
    (void)state;
    refused(SEQUENTIAL(LAYER("Dense", "\"name\": \"d\\u001b[31m\", \"units\": 2, " SHAPE("3"))),
            "name: control character");
    refused(SEQUENTIAL(LAYER("Dense", "\"name\": \"d\\u009b2J\", \"units\": 2, " SHAPE("3"))),
            "name: control character");
    refused("{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\\n\", \"layers\": []}}",
            "name: control character");
    refused(SEQUENTIAL(LAYER("D\\u001b[2J", "\"units\": 2, " SHAPE("3"))), "(D?[2J)");
}

static void refused_name(const char *name, const char *said) {
    char json[512];
    snprintf(json, sizeof json, SEQUENTIAL(LAYER("Dense", "\"name\": \"%s\", \"units\": 2, " SHAPE("3"))),
             name);
    refused(json, said);
    snprintf(json, sizeof json,
             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"%s\", \"layers\": [" LAYER(
                 "Dense", "\"units\": 2, " SHAPE("3")) "]}}",
             name);
    refused(json, said);
}

/* Names are paths in HDF5 files, in which "a/" and "a/." are the path of "a". */
static void test_names_that_are_no_paths(void **state) {
    (void)state;
    const char *const wrong[] = {".", "/", "//", "a/", "/a", "a//b", "a/./b", "./a", "a/."};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i)
        refused_name(wrong[i],
                     "cannot be a path in an HDF5 file: expected a name that does not begin or end with");
    refused_name("", "name: expected a text of 1 to 63 bytes, received ''");
    refused_name("1234567890123456789012345678901234567890123456789012345678901234",
                 "name: expected at most 63");
    refused_name("a\\u0000b", "expected a text without \\u0000");
}

static void test_depth(void **state) {
    (void)state;
    char *text =
        repeated("{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [",
                 "{\"class_name\": \"TimeDistributed\", \"config\": {" SHAPE("3, 4") ", \"layer\": ", 60, "",
                 LAYER("Dense", "\"units\": 2"));
    char *closed = repeated(text, "}}", 60, "", "]}}");
    leat_model *model = NULL;
    leat_error err = {0};
    assert_int_not_equal(leat_model_from_json(&model, closed, &err), LEAT_OK);
    assert_true(err.message[0] != '\0');
    free(text);
    free(closed);
}

static void test_cycles(void **state) {
    (void)state;
    refused(
        "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": ["
        "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"config\": {\"name\": \"x\", " SHAPE(
            "3") "}, "
                 "\"inbound_nodes\": []}, "
                 "{\"class_name\": \"Add\", \"name\": \"a\", \"config\": {\"name\": \"a\"}, "
                 "\"inbound_nodes\": [[[\"x\", 0, 0], "
                 "[\"b\", 0, 0]]]}, "
                 "{\"class_name\": \"Dense\", \"name\": \"b\", \"config\": {\"name\": \"b\", \"units\": 3}, "
                 "\"inbound_nodes\": [[[\"a\", 0, 0]]]}], "
                 "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"b\", 0, 0]]}}",
        "called on a tensor that is never made");
    refused("{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": ["
            "{\"class_name\": \"Dense\", \"name\": \"b\", \"config\": {\"name\": \"b\", \"units\": 3}, "
            "\"inbound_nodes\": [[[\"b\", 0, 0]]]}], "
            "\"input_layers\": [[\"b\", 0, 0]], \"output_layers\": [[\"b\", 0, 0]]}}",
            "called on a tensor that is never made");
}

/* ---- Random changes ---- */

static const char *const odd_values[] = {
    "null",
    "true",
    "0",
    "-1",
    "1",
    "2",
    "3",
    "7",
    "65536",
    MOST,
    "-" MOST,
    "2147483648",
    "9223372036854775807",
    "0.5",
    "-0.0",
    "1e308",
    "NaN",
    "Infinity",
    "-Infinity",
    "\"\"",
    "\"x\"",
    "\"it\"",
    "\"same\"",
    "\"causal\"",
    "\"channels_first\"",
    "\"softmax\"",
    "\"l2\"",
    "\"max_norm\"",
    "\"Dense\"",
    "\"Model\"",
    "\"Lambda\"",
    "[]",
    "{}",
    "[0]",
    "[-1]",
    "[null]",
    "[1, 2]",
    "[2, 1, 3]",
    "[[1, 2], [3, 4]]",
    "[1, 1, 1, 1, 1, 1, 1, 1, 1]",
    "[null, 3]",
    "[null, 4, 3]",
    "[null, 6, 7, 2]",
    "[[[\"it\", 0, 0]]]",
    "[[[\"x0\", 0, 0]], [[\"it\", 0, 0]]]",
    "{\"class_name\": \"Dense\", \"config\": {\"units\": 2}}",
    "{\"class_name\": \"LSTM\", \"config\": {\"units\": 2, \"return_state\": true}}",
    "{\"class_name\": \"Constant\", \"config\": {\"value\": 1e39}}",
};
#define ODD_VALUES (sizeof odd_values / sizeof odd_values[0])

static json_t *odd_value(leat_rng *rng) {
    leat_error err = {0};
    const char *text = odd_values[leat_rng_below(rng, ODD_VALUES)];
    json_t *value = NULL;
    if (leati_json_parse(&value, text, strlen(text), &err) != LEAT_OK) fail_msg("%s: %s", text, err.message);
    return value;
}

/* Returns an object or a list inside the value; each member is equally likely. */
static json_t *somewhere(json_t *value, leat_rng *rng) {
    for (;;) {
        size_t count = json_is_object(value) ? json_object_size(value) : json_array_size(value), at;
        json_t *inner = NULL, *item;
        const char *key;
        if (count == 0) return value;
        at = (size_t)leat_rng_below(rng, count);
        if (json_is_array(value)) inner = json_array_get(value, at);
        json_object_foreach(value, key, item) if (at-- == 0) inner = item;
        if (!inner || (!json_is_object(inner) && !json_is_array(inner)) || leat_rng_below(rng, 6) == 0)
            return value;
        value = inner;
    }
}

static void mutate_list(json_t *list, leat_rng *rng) {
    const size_t count = json_array_size(list), at = count ? (size_t)leat_rng_below(rng, count) : 0;
    switch (leat_rng_below(rng, 4)) {
    case 0: json_array_insert_new(list, at, odd_value(rng)); break;
    case 1: json_array_remove(list, at); break;
    case 2:
        if (count) json_array_append_new(list, json_deep_copy(json_array_get(list, at)));
        break;
    default: json_array_set_new(list, at, odd_value(rng)); break;
    }
}

/* Copies a random key of the object to out, because the object may change. */
static void pick_key(const json_t *object, leat_rng *rng, char out[64]) {
    size_t at = json_object_size(object) ? (size_t)leat_rng_below(rng, json_object_size(object)) : 0;
    const char *key;
    json_t *item;
    snprintf(out, 64, "units");
    json_object_foreach((json_t *)(uintptr_t)object, key, item) if (at-- == 0) snprintf(out, 64, "%s", key);
}

static void mutate_object(json_t *object, leat_rng *rng) {
    char key[64], other[64];
    int types = 0;
    while (leati_layer_types[types]) ++types;
    pick_key(object, rng, key);
    pick_key(object, rng, other);
    switch (leat_rng_below(rng, 5)) {
    case 0: json_object_del(object, key); break;
    case 1: json_object_set_new(object, key, json_deep_copy(json_object_get(object, other))); break;
    case 2:
        if (json_object_get(object, "class_name")) {
            int type = (int)leat_rng_below(rng, (uint64_t)types);
            json_object_set_new(object, "class_name", json_string(leati_layer_types[type]->class_name));
            break;
        } /* fall through */
    default: json_object_set_new(object, key, odd_value(rng)); break;
    }
}

static void mutate(json_t *root, leat_rng *rng) {
    for (uint64_t left = 1 + leat_rng_below(rng, 3); left > 0; --left) {
        json_t *value = somewhere(root, rng);
        if (json_is_array(value))
            mutate_list(value, rng);
        else
            mutate_object(value, rng);
    }
}

static void run_changed(const json_t *root, leat_rng *rng) {
    json_t *copy = json_deep_copy(root);
    char *text = NULL;
    mutate(copy, rng);
    assert_int_equal(leati_json_write(copy, &text, NULL), LEAT_OK);
    assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)text, strlen(text)), 0);
    leat_string_free(text);
    json_decref(copy);
}

/* LEAT_MUTATIONS sets the number of changes per example, for a longer run. */
static void test_changed(void **state) {
    const char *asked = getenv("LEAT_MUTATIONS");
    const int count = asked ? atoi(asked) : 12;
    (void)state;
    for (const example *e = examples; e->class_name; ++e) {
        char json[EXAMPLE_MODEL_BYTES];
        leat_error err = {0};
        json_t *root = NULL;
        if (example_is_input_layer(e)) continue;
        example_model(json, e, true);
        assert_int_equal(leati_json_parse(&root, json, strlen(json), &err), LEAT_OK);
        for (int i = 0; i < count; ++i) {
            leat_rng rng = leat_rng_for(6, (uint64_t)(e - examples), (uint64_t)i);
            run_changed(root, &rng);
        }
        json_decref(root);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_masses),
        cmocka_unit_test(test_names_that_are_no_paths),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_control_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
