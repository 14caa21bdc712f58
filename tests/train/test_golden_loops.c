/* SPDX-License-Identifier: Apache-2.0 */
/* Whole fits as Keras 2.3.1 runs them: History (epochs, names and their order, values), CSVLogger's file,
 * evaluation and the weights at the end; where leat differs on purpose, what it does instead. */
#include "cmocka_all.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/loop_case.h"

#define MAX_EPOCHS 32

typedef enum rule {
    RIGHT_VALUES, /* of the losses: those that the recorder computed, one for each epoch that has one */
    VALIDATED_ONLY, /* Keras has a value for each epoch since the first validation, leat for those that validate */
    FIRST_ONLY,      /* only the first value is Keras's */
    FIRST_EPOCH,     /* leat ends after the first epoch, Keras does not */
    VALIDATION_LAST, /* names: val_* after the others */
    MORE_COLUMNS     /* CSVLogger's file has columns that Keras's lacks */
} rule;

/* The documented differences of leat: docs/differences-from-keras.md.  A row that makes no difference in any case
 * fails the test. */
typedef struct difference {
    const char *cases, *series; /* patterns */
    bool generator;             /* in fit_generator only */
    rule rule;
    const char *reason;
} difference;

static const difference differences[] = {
    {"*", "val_loss", true, RIGHT_VALUES, "Keras's is the loss of the last batch"},
    {"*", "*_loss", false, RIGHT_VALUES, "Keras's losses of outputs are means over batches of whatever size"},
    {"*", "val_*", true, VALIDATED_ONLY, "Keras repeats the old val_* in an epoch without validation"},
    {"validation_steps", "val_accuracy", true, FIRST_ONLY,
     "Keras's validation goes on where the last one ended, leat's starts at index 0"},
    {"nan_in_last_batch", "*", true, FIRST_EPOCH, "Keras's validation forgets a stop of the last batch"},
    {"*", "names", false, VALIDATION_LAST, "Keras fills in val_* first, leat in the order of computing"},
    {"csv_logger_validation_freq", "csv", true, MORE_COLUMNS,
     "Keras fixes the columns in the first epoch, which here has no val_*"},
};
enum { DIFFERENCE_COUNT = sizeof differences / sizeof differences[0] };

typedef struct visit_state {
    int workers;
    int made[DIFFERENCE_COUNT]; /* how often each row made a difference */
} visit_state;

/* Returns true if a rule applies to the case and the series, and gets the rule's index. */
static bool holds(const loop_case *c, const char *series, rule wanted, int *row) {
    for (*row = 0; *row < DIFFERENCE_COUNT; ++*row) {
        const difference *d = &differences[*row];
        if (d->rule == wanted && (loop_case_generates(c) || !d->generator) &&
            fnmatch(d->cases, golden_text(&c->g, "case"), 0) == 0 && fnmatch(d->series, series, 0) == 0)
            return true;
    }
    return false;
}

static bool validated(const loop_case *c, int64_t epoch) {
    const json_t *epochs = json_object_get(c->g.meta, "validated");
    for (size_t i = 0; i < json_array_size(epochs); ++i)
        if (json_integer_value(json_array_get(epochs, i)) == epoch) return true;
    return false;
}

static int64_t epoch_at(const loop_case *c, int index) {
    return json_integer_value(json_array_get(json_object_get(c->g.meta, "epoch"), (size_t)index));
}

/* The values, without those of epochs that did not validate; the last ones belong to the last epochs. */
static int drop_stale(const loop_case *c, float *values, int count) {
    int epochs = (int)json_array_size(json_object_get(c->g.meta, "epoch")), kept = 0;
    for (int i = 0; i < count; ++i)
        if (validated(c, epoch_at(c, epochs - count + i))) values[kept++] = values[i];
    return kept;
}

static int read_series(const loop_case *c, const char *prefix, int index, float *values) {
    leat_tensor series;
    if (!golden_member(&c->g, prefix, index, &series)) return 0;
    int count = (int)leat_tensor_count(&series);
    assert_true(count <= MAX_EPOCHS);
    memcpy(values, series.data, (size_t)count * sizeof *values);
    return count;
}

/* Computes the values that leat must have for Keras's series number index; counts the rules that changed a value. */
static int expected_series(const loop_case *c, const char *name, int index, float *values,
                           visit_state *state) {
    float right[MAX_EPOCHS];
    int row = 0, count = read_series(c, "h", index, values),
        right_count = read_series(c, "right", index, right);
    if (holds(c, name, VALIDATED_ONLY, &row)) {
        int kept = drop_stale(c, values, count);
        state->made[row] += kept != count;
        count = kept;
    }
    if (right_count > 0 && holds(c, name, RIGHT_VALUES, &row)) {
        assert_int_equal(right_count, count);
        state->made[row] += golden_distance(right, values, count) > GOLDEN_TOLERANCE;
        memcpy(values, right, (size_t)count * sizeof *values);
    }
    if (holds(c, name, FIRST_EPOCH, &row)) {
        state->made[row] += count > 1;
        count = 1;
    }
    return count;
}

static void compare_series(const loop_case *c, const char *name, int index, visit_state *state) {
    float expected[MAX_EPOCHS], got[MAX_EPOCHS];
    int count = expected_series(c, name, index, expected, state), got_count = 0, row = 0;
    const double *values = leat_history_values(c->history, name, &got_count);
    if (got_count != count) fail_msg("%s: '%s' has %d values, Keras's %d", c->g.name, name, got_count, count);
    for (int i = 0; i < count; ++i) got[i] = (float)values[i];
    if (holds(c, name, FIRST_ONLY, &row)) {
        state->made[row] += golden_distance(got, expected, count) > GOLDEN_TOLERANCE;
        count = 1;
    }
    golden_compare(&c->g, name, got, expected, count, GOLDEN_TOLERANCE);
}

static bool is_validation(const char *name) {
    return strncmp(name, "val_", 4) == 0;
}

/* Names in leat's order: where the first epoch validates, val_* after the metrics, but before what callbacks add. */
static int expected_names(const loop_case *c, const char **names, visit_state *state) {
    const json_t *keras = json_object_get(c->g.meta, "history");
    size_t count = json_array_size(keras),
           metrics = json_array_size(json_object_get(c->g.meta, "metrics_names"));
    int kept = 0, row = 0;
    bool first = is_validation(json_string_value(json_array_get(keras, 0)));
    first = first && holds(c, "names", VALIDATION_LAST, &row);
    for (size_t i = 0; first && i < metrics; ++i)
        names[kept++] = json_string_value(json_array_get(keras, metrics + i));
    for (size_t i = 0; i < count; ++i)
        if (!first || i < metrics || i >= 2 * metrics)
            names[kept++] = json_string_value(json_array_get(keras, i));
    state->made[row] += first;
    return kept;
}

static void compare_names(const loop_case *c, visit_state *state) {
    const char *names[LEAT_MAX_LOGS];
    int count = expected_names(c, names, state);
    assert_int_equal(leat_history_count(c->history), count);
    for (int i = 0; i < count; ++i)
        if (strcmp(leat_history_name(c->history, i), names[i]) != 0)
            fail_msg("%s: name %d is '%s', expected '%s'", c->g.name, i, leat_history_name(c->history, i),
                     names[i]);
}

static void compare_epochs(const loop_case *c) {
    leat_error err = {0};
    char *text = NULL;
    int row = 0;
    assert_int_equal(leat_history_json(c->history, &text, &err), LEAT_OK);
    json_t *json = json_loads(text, 0, NULL), *keras = json_deep_copy(json_object_get(c->g.meta, "epoch"));
    leat_string_free(text);
    while (holds(c, "epoch", FIRST_EPOCH, &row) && json_array_size(keras) > 1) json_array_remove(keras, 1);
    if (!json_equal(json_object_get(json, "epoch"), keras)) fail_msg("%s: other epochs", c->g.name);
    json_decref(keras);
    json_decref(json);
}

static void compare_history(const loop_case *c, visit_state *state) {
    const json_t *names = json_object_get(c->g.meta, "history");
    compare_epochs(c);
    compare_names(c, state);
    for (size_t i = 0; i < json_array_size(names); ++i)
        compare_series(c, json_string_value(json_array_get(names, i)), (int)i, state);
}

static void compare_weights(const loop_case *c) {
    leat_tensor expected;
    for (int i = 0; i < leat_model_weight_count(c->model); ++i) {
        leat_tensor got = leat_model_weight(c->model, i);
        assert_true(golden_member(&c->g, "wt", i, &expected));
        assert_int_equal(leat_tensor_count(&got), leat_tensor_count(&expected));
        golden_compare(&c->g, leat_model_weight_name(c->model, i), got.data, expected.data,
                       leat_tensor_count(&got), GOLDEN_TOLERANCE);
    }
}

static void compare_evaluation(loop_case *c) {
    if (!loop_case_validates(c)) return;
    const json_t *names = json_object_get(c->g.meta, "metrics_names");
    leat_tensor expected = test_npz_get(c->g.npz, "evaluated");
    float got[LEAT_MAX_LOGS];
    leat_logs logs;
    loop_case_evaluate(c, &logs);
    assert_int_equal(logs.count, json_array_size(names));
    assert_int_equal(logs.count, leat_tensor_count(&expected));
    for (int i = 0; i < logs.count; ++i) {
        assert_string_equal(logs.items[i].name, json_string_value(json_array_get(names, (size_t)i)));
        got[i] = (float)logs.items[i].value;
    }
    golden_compare(&c->g, "evaluated", got, expected.data, logs.count, GOLDEN_TOLERANCE);
}

/* A text that is taken apart: lines end in \r\n, fields in the separator.  Writes into the text. */
typedef struct table {
    int rows, columns;
    char *cells[MAX_EPOCHS][LEAT_MAX_LOGS];
} table;

static void split(table *t, const golden *g, char *text, char separator) {
    *t = (table){0};
    while (*text) {
        char *end = strstr(text, "\r\n");
        if (!end) fail_msg("%s: a line of CSVLogger's file does not end in CR LF", g->name);
        *end = '\0';
        int column = 0;
        for (char *field = text; field; ++column) {
            assert_true(column < LEAT_MAX_LOGS && t->rows < MAX_EPOCHS);
            t->cells[t->rows][column] = field;
            field = strchr(field, separator);
            if (field) *field++ = '\0';
        }
        if (t->rows++ == 0) t->columns = column;
        assert_int_equal(column, t->columns);
        text = end + 2;
    }
}

static int column_of(const table *t, const char *name) {
    for (int i = 0; i < t->columns; ++i)
        if (strcmp(t->cells[0][i], name) == 0) return i;
    fail_msg("CSVLogger's file has no column '%s'", name);
    return -1;
}

/* A column against Keras's; where the series itself differs on purpose (History was compared), against History's. */
static void compare_column(const loop_case *c, const table *got, const table *keras, int column) {
    float a[MAX_EPOCHS], b[MAX_EPOCHS];
    const char *name = keras->cells[0][column];
    int at = column_of(got, name), count = 0, row = 0;
    const double *own = leat_history_values(c->history, name, &count);
    bool differs = holds(c, name, RIGHT_VALUES, &row);
    for (int i = 1; i < keras->rows; ++i) {
        a[i - 1] = strtof(got->cells[i][at], NULL);
        b[i - 1] = differs ? (float)own[i - 1] : strtof(keras->cells[i][column], NULL);
    }
    if (differs) assert_int_equal(count, keras->rows - 1);
    golden_compare(&c->g, name, a, b, keras->rows - 1, GOLDEN_TOLERANCE);
}

/* Columns that Keras lacks: they must have History's val_*, and NA in epochs without validation. */
static void check_more_columns(const loop_case *c, const table *got, visit_state *state) {
    int row = 0;
    if (!holds(c, "csv", MORE_COLUMNS, &row)) return;
    for (int i = 0; i < got->columns; ++i) {
        if (!is_validation(got->cells[0][i])) continue;
        ++state->made[row];
        int count = 0, next = 0;
        const double *values = leat_history_values(c->history, got->cells[0][i], &count);
        for (int line = 1; line < got->rows; ++line) {
            if (!validated(c, epoch_at(c, line - 1)))
                assert_string_equal(got->cells[line][i], "NA");
            else
                assert_true(next < count && fabs(strtod(got->cells[line][i], NULL) - values[next++]) < 1e-6);
        }
        assert_int_equal(next, count);
    }
}

static void compare_csv(const loop_case *c, visit_state *state) {
    if (!test_npz_has(c->g.npz, "csv")) return;
    char own[4096] = {0}, theirs[4096] = {0};
    table got, keras;
    leat_tensor text = test_npz_get(c->g.npz, "csv");
    assert_true(leat_tensor_bytes(&text) < sizeof theirs);
    memcpy(theirs, text.data, leat_tensor_bytes(&text));
    FILE *file = fopen(c->csv_path, "rb");
    assert_non_null(file);
    assert_true(fread(own, 1, sizeof own - 1, file) < sizeof own - 1);
    fclose(file);
    char separator = theirs[strlen("epoch")];
    split(&got, &c->g, own, separator);
    split(&keras, &c->g, theirs, separator);
    assert_int_equal(got.rows, keras.rows);
    int row = 0;
    bool more = holds(c, "csv", MORE_COLUMNS, &row);
    if (!more) assert_int_equal(got.columns, keras.columns);
    for (int i = 0; i < keras.columns; ++i) {
        if (!more) assert_string_equal(got.cells[0][i], keras.cells[0][i]);
        compare_column(c, &got, &keras, i);
    }
    check_more_columns(c, &got, state);
    remove(c->csv_path);
}

static void visit(const char *name, void *user) {
    visit_state *state = user;
    loop_case c;
    loop_case_run(&c, name, state->workers);
    compare_history(&c, state);
    compare_weights(&c);
    compare_evaluation(&c);
    compare_csv(&c, state);
    loop_case_close(&c);
}

static void replay(int workers) {
    visit_state state = {.workers = workers};
    print_message("%d cases\n", golden_each("loops", visit, &state));
    for (int i = 0; i < DIFFERENCE_COUNT; ++i)
        if (state.made[i] == 0) fail_msg("no case shows that: %s", differences[i].reason);
}

static void fits_are_those_of_keras(void **state) {
    (void)state;
    replay(0);
}

static void fits_with_workers_are_those_of_keras(void **state) {
    (void)state;
    replay(2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_are_those_of_keras),
        cmocka_unit_test(fits_with_workers_are_those_of_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
