/* SPDX-License-Identifier: Apache-2.0 */
/* docs/keras-names.md: every public name of two Kerases, which were recorded (tests/golden/keras-names.json), and
 * whether leat has it.  The test asks the tables of leat; the rules in keras_names_rules.c have the rest. */
#include "cmocka_all.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/text.h"
#include "nn/activations/activation.h"
#include "nn/constraints/constraint.h"
#include "nn/initializers/types.h"
#include "nn/keras_names.h"
#include "nn/layers/types.h"
#include "nn/layers/operations/operations.h"
#include "nn/losses/types.h"
#include "nn/metrics/types.h"
#include "nn/optimizers/types.h"
#include "nn/regularizers/regularizer.h"

#define PAGE  LEAT_SOURCE_DIR "/docs/keras-names.md"
#define NAMES LEAT_SOURCE_DIR "/tests/golden/keras-names.json"

/* ---- What leat knows ---- */

static bool is_among(const char *(*name_at)(int index), const char *name) {
    const char *known;
    for (int i = 0; (known = name_at(i)) != NULL; ++i)
        if (strcmp(known, name) == 0) return true;
    return false;
}

static bool knows_layer(const char *name) {
    return leati_layer_find(name) != NULL;
}
static bool knows_loss(const char *name) {
    return leati_loss_find(name) != NULL;
}
static bool knows_metric(const char *name) {
    return is_among(leati_metric_name_at, name);
}
static bool knows_optimizer(const char *name) {
    return leati_optimizer_find(name) != NULL;
}
static bool knows_schedule(const char *name) {
    return is_among(leati_schedule_name_at, name);
}
static bool knows_initializer(const char *name) {
    return leati_initializer_find(name) != NULL;
}
static bool knows_regularizer(const char *name) {
    return is_among(leati_regularizer_name_at, name);
}
static bool knows_constraint(const char *name) {
    return is_among(leati_constraint_name_at, name);
}
static bool knows_activation(const char *name) {
    return is_among(leati_activation_name_at, name);
}

/* Modules in the order of the page. */
static const struct {
    const char *name;
    bool (*knows)(const char *name); /* NULL: leat has no table of such names */
} modules[] = {
    {"layers", knows_layer},
    {"losses", knows_loss},
    {"metrics", knows_metric},
    {"optimizers", knows_optimizer},
    {"optimizers.schedules", knows_schedule},
    {"initializers", knows_initializer},
    {"regularizers", knows_regularizer},
    {"constraints", knows_constraint},
    {"activations", knows_activation},
    {"callbacks", NULL},
    {"models", NULL},
    {"saving", NULL},
    {"applications", NULL},
    {"datasets", NULL},
    {"utils", NULL},
    {"preprocessing.image", NULL},
    {"preprocessing.sequence", NULL},
    {"preprocessing.text", NULL},
    {"random", NULL},
    {"ops", NULL},
};
enum { MODULE_COUNT = sizeof modules / sizeof modules[0] };

/* ---- The rules ---- */

/* True if one of the patterns, separated by spaces, fits the name. */
static bool fits(const char *patterns, const char *name) {
    char one[128];
    for (const char *at = patterns; *at;) {
        size_t length = strcspn(at, " ");
        assert_true(length < sizeof one);
        memcpy(one, at, length);
        one[length] = '\0';
        if (fnmatch(one, name, 0) == 0) return true;
        at += length + (at[length] == ' ');
    }
    return false;
}

static const names_rule *rule_of(const char *module, const char *name) {
    for (const names_rule *rule = names_rules; rule->module; ++rule)
        if (fnmatch(rule->module, module, 0) == 0 && fits(rule->patterns, name)) return rule;
    return NULL;
}

/* ---- The page ---- */

typedef struct page {
    json_t *recorded;
    leati_text text;
    int counts[3]; /* yes, partly, no: of all modules */
    int unexplained;
} page;

static json_t *names_of(const page *p, const char *version, const char *module) {
    return json_object_get(json_object_get(json_object_get(p->recorded, version), "modules"), module);
}

static bool has(const json_t *names, const char *name) {
    for (size_t i = 0; i < json_array_size(names); ++i)
        if (strcmp(json_string_value(json_array_get(names, i)), name) == 0) return true;
    return false;
}

/* True if leat has the class under which current Keras saves a function of keras.ops in a functional model. */
static bool knows_operation(const page *p, const char *name) {
    const json_t *functions = names_of(p, "current", "ops"), *classes = names_of(p, "current", "operations");
    const char *class_name = "";
    assert_int_equal(json_array_size(functions), json_array_size(classes));
    for (size_t i = 0; i < json_array_size(functions); ++i)
        if (strcmp(json_string_value(json_array_get(functions, i)), name) == 0)
            class_name = json_string_value(json_array_get(classes, i));
    return class_name[0] && leati_operation_find(class_name) != NULL;
}

/* Sets the state and the text of a name.  Returns false if there is no reason. */
static bool judge(const page *p, int module, const char *name, const char **state, const char **text) {
    const names_rule *rule = rule_of(modules[module].name, name);
    bool known = modules[module].knows && modules[module].knows(name);
    if (strcmp(modules[module].name, "ops") == 0) known = knows_operation(p, name);
    *text = "";
    *state = "yes";
    if (known && (!rule || strcmp(rule->state, "no") == 0)) return true;
    if (!rule) return false;
    *state = rule->state;
    *text = rule->text;
    return true;
}

static void add_row(page *p, int module, const char *name) {
    const char *state, *text;
    bool older = has(names_of(p, "2.3.1", modules[module].name), name);
    bool current = has(names_of(p, "current", modules[module].name), name);
    if (!judge(p, module, name, &state, &text)) {
        print_message("keras.%s.%s: leat does not have it, and keras_names_rules.c has no reason\n",
                      modules[module].name, name);
        ++p->unexplained;
    }
    leati_text_add(&p->text, "| `%s` | %s | %s | %s | %s |\n", name, older ? "x" : "", current ? "x" : "",
                   state, text);
    ++p->counts[strcmp(state, "yes") == 0 ? 0 : strcmp(state, "partly") == 0 ? 1 : 2];
}

/* Returns the names of a module in both Kerases, sorted, without repetitions. */
static json_t *all_names(const page *p, const char *module) {
    json_t *set = json_object();
    static const char *const versions[] = {"2.3.1", "current"};
    for (int v = 0; v < 2; ++v) {
        const json_t *names = names_of(p, versions[v], module);
        for (size_t i = 0; i < json_array_size(names); ++i)
            json_object_set_new(set, json_string_value(json_array_get(names, i)), json_null());
    }
    return set;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_module(page *p, int module) {
    json_t *set = all_names(p, modules[module].name), *value;
    size_t count = json_object_size(set), i = 0;
    const char **names = calloc(count + 1, sizeof *names), *name;
    assert_non_null(names);
    assert_true(count > 0);
    json_object_foreach(set, name, value) names[i++] = name;
    qsort(names, count, sizeof *names, by_name);
    leati_text_add(&p->text, "\n## keras.%s\n\n", modules[module].name);
    leati_text_add(
        &p->text,
        "| Name | 2.3.1 | current | leat | reason, or what leat has instead |\n|---|---|---|---|---|\n");
    for (i = 0; i < count; ++i) add_row(p, module, names[i]);
    free(names);
    json_decref(set);
}

static void write_body(page *p) {
    const char *older = json_string_value(json_object_get(json_object_get(p->recorded, "2.3.1"), "version"));
    const char *current =
        json_string_value(json_object_get(json_object_get(p->recorded, "current"), "version"));
    leati_text_add(&p->text, "The names are those of Keras %s and of Keras %s on TensorFlow.\n", older,
                   current);
    for (int module = 0; module < MODULE_COUNT; ++module) add_module(p, module);
}

static const char heading[] =
    "<!-- Generated by tools/keras-names: do not edit.  The reasons are in tests/nn/keras_names_rules.c. "
    "-->\n"
    "# The public names of two Kerases\n\n"
    "An x says which Keras has the name. *yes*: leat has it, with the options that are in files\n"
    "([layers.md](layers.md) has those of the layers, [differences-from-keras.md](differences-from-keras.md) "
    "what\n"
    "differs). *partly*: with the limits in the last column. A file with a name that leat does not have is "
    "refused, and\n"
    "the message contains the name.\n\n";

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    long size = -1;
    if (!file) fail_msg("%s cannot be read", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size = ftell(file);
    assert_true(size >= 0);
    rewind(file);
    char *text = calloc((size_t)size + 1, 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    fclose(file);
    return text;
}

static void write_page(const leati_text *text) {
    FILE *file = fopen(PAGE, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text->data, 1, text->length, file), text->length);
    assert_int_equal(fclose(file), 0);
}

static void compare_page(const leati_text *text) {
    char *there = read_file(PAGE);
    size_t same = 0;
    while (there[same] && there[same] == text->data[same]) ++same;
    if (there[same] || text->data[same]) {
        while (same > 0 && text->data[same - 1] != '\n') --same;
        fail_msg("%s is not current, run tools/keras-names: expected '%.*s'", PAGE,
                 (int)strcspn(text->data + same, "\n"), text->data + same);
    }
    free(there);
}

/* tools/keras-names makes this test write the page (LEAT_NAMES=write); otherwise the test compares the page. */
static void test_page(void **state) {
    (void)state;
    page p = {0}, whole = {0};
    const char *what = getenv("LEAT_NAMES");
    char *recorded = read_file(NAMES);
    p.recorded = json_loads(recorded, 0, NULL);
    assert_non_null(p.recorded);
    write_body(&p);
    leati_text_add(&whole.text, "%sOf %d names, leat has %d, and %d in part. ", heading,
                   p.counts[0] + p.counts[1] + p.counts[2], p.counts[0], p.counts[1]);
    leati_text_add(&whole.text, "%s", p.text.data);
    assert_false(whole.text.failed || p.text.failed);
    assert_int_equal(p.unexplained, 0);
    assert_true(p.counts[0] > 300);
    if (what && strcmp(what, "write") == 0)
        write_page(&whole.text);
    else
        compare_page(&whole.text);
    leati_text_fini(&whole.text);
    leati_text_fini(&p.text);
    json_decref(p.recorded);
    free(recorded);
}

/* Every rule has a state and a reason. */
static void test_rules(void **state) {
    (void)state;
    for (const names_rule *rule = names_rules; rule->module; ++rule) {
        bool valid = strcmp(rule->state, "yes") == 0 || strcmp(rule->state, "partly") == 0 ||
                     strcmp(rule->state, "no") == 0;
        if (!valid) fail_msg("rule for %s: state '%s'", rule->patterns, rule->state);
        if (!rule->text[0]) fail_msg("rule for %s: no reason", rule->patterns);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
