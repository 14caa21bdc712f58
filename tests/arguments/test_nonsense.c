/* SPDX-License-Identifier: Apache-2.0 */
/* Tests for every public function what leat/error.h promises about arguments: the test calls the function with valid
 * arguments, then with each pointer NULL, each enumeration and rank out of range, and each index and count negative
 * or too large, also in the members of structs.  generate.awk reads the functions from the headers, so that a new
 * function is tested at once.  Each call has a process of its own, so that a crash is one failure with a name. */
#include "cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments/values.h"

static void keep(answer *to, const void *returned, size_t bytes) {
    assert_true(bytes <= sizeof to->returned);
    memcpy(to->returned, returned, bytes);
    to->bytes = bytes;
}

/* The generated calls pass formats that are valid but not literal. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#include "functions.inc"
#pragma GCC diagnostic pop

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* ---- What the headers allow ---- */

/* Parameters for which the header allows NULL, so that the call succeeds: "f(p)" is parameter p of function f, "p" is
 * the parameter p of every function. */
static const char *const optional[] = {
    "err",
    "leat_tensor_view(shape)",
    "leat_tensor_view(data)",
    "leat_tensor_view_into(data)",
    "leat_tensor_copy(strides)",
    "leat_model_optimizer_weight_shape(name)",
    "leat_predictor_run_into(inputs)",
    "leat_predictor_run_into(outputs)",
    "leat_model_predict_into(options)",
    "leat_model_predict_generator_into(options)",
    "leat_merge(config)",
    "leat_layer(config)",
    "leat_layer_check_gradient(config)",
    "leat_loss_check_gradient(config)",
    "leat_activation_check_gradient(config)",
    "leat_regularizer_check_gradient(config)",
    "leat_dense(activation)",
    "leat_conv2d(activation)",
    "leat_activation(activation)",
    "leat_model_from_json_with(registry)",
    "leat_model_load_with(registry)",
    "leat_model_load_memory(registry)",
    "leat_model_load_using(options)",
    "leat_model_load_memory_using(options)",
    "leat_model_load_weights_using(options)",
    "leat_model_set_trainable_matching(count)",
    "leat_model_train_on_batch_using(options)",
    "leat_model_train_on_batch_using(logs)",
    "leat_model_test_on_batch_using(options)",
    "leat_model_test_on_batch_using(logs)",
    "leat_batch_spec_add(name)",
    "leat_learning_rate_scheduler_create(user)",
    "leat_csv_logger_create(separator)",
    "leat_trace_close(trace)",
    "leat_dist_open(options)",
    "leat_feed_open(options)",
    "leat_feed_open_at(options)",
    "leat_arrays_open(options)",
    "leat_source_open(options)",
    "leat_source_note_sizes(sizes)",
    "leat_source_sample_name(rng)",
    "leat_sequence_cache(options)",
    "leat_picture_decode(options)",
    "leat_picture_resize(interpolation)",
    "leat_picture_resize(aspect)",
    "leat_predictor_create(options)",
    "leat_predictor_run(inputs)",
    "leat_predictor_run(outputs)",
    "leat_model_fit_generator(options)",
    "leat_model_fit_generator(history)",
    "leat_model_fit(options)",
    "leat_model_fit(history)",
    "leat_model_evaluate_generator(options)",
    "leat_model_evaluate(options)",
    "leat_model_predict_generator(options)",
    "leat_model_predict(options)",
    "leat_model_train_on_batch(logs)",
    "leat_model_test_on_batch(logs)",
    "leat_model_plan_summary(options)",
};

/* Members of structs that leat does not read: "member" in all functions, "f(member)" in function f. */
static const char *const ignored[] = {
    "user", /* opaque: leat only passes it on */
    "leat_model_predict_on_batch(targets)",
    "leat_model_predict_on_batch(sample_weights)",
    "leat_model_predict_on_batch(target_count)",
    "leat_model_predict_on_batch(sample_weight_count)",
    "leat_model_predict_on_batch_into(targets)",
    "leat_model_predict_on_batch_into(sample_weights)",
    "leat_model_predict_on_batch_into(target_count)",
    "leat_model_predict_on_batch_into(sample_weight_count)",
};

/* Functions that work only in a helper program, in `get`, or with a batch in use: tests/feed/test_feed_helper.c and
 * test_feed_keep.c try their arguments. */
static const char *const situated[] = {
    "leat_helper_open", "leat_helper_feed_count", "leat_helper_data",          "leat_helper_fail",
    "leat_helper_run",  "leat_helper_close",      "leat_feed_set_helper_data", "leat_batch_reserve",
    "leat_feed_keep",   "leat_kept_release",      "leat_helper_serve",         "leat_helper_supervise",
    "leat_helper_work",
};

static bool listed(const char *const *list, size_t count, const char *owner, const char *name) {
    char full[256];
    snprintf(full, sizeof full, "%s(%s)", owner, name);
    for (size_t i = 0; i < count; ++i)
        if (strcmp(list[i], full) == 0 || strcmp(list[i], name) == 0) return true;
    return false;
}

/* ---- One call in a process of its own ---- */

typedef enum expectation {
    SUCCEEDS, /* a valid call */
    REFUSED,  /* an error whose message contains `word`; a function without a status returns NULL or 0 */
    SURVIVES  /* success, or an error with a message */
} expectation;

/* The change that makes a valid call invalid. */
typedef struct nonsense {
    int place; /* index of the changed parameter; -1: none, the call is valid */
    /* The changed member of the struct that the parameter points to, or of a struct that this member points to;
     * NULL: the parameter itself is changed. */
    const member *members[2];
    int64_t number; /* the value that is stored there */
    expectation expected;
    const char *word;
} nonsense;

static bool is_zero(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (bytes[i]) return false;
    return true;
}

/* Returns true for functions that return an index, and -1 if nothing is found. */
static bool finds(const function *f) {
    static const char *const names[] = {"leat_model_find_layer", "leat_model_find_weight",
                                        "leat_model_layer_parent", "leat_model_layer_weight"};
    for (size_t i = 0; i < COUNT(names); ++i)
        if (strcmp(names[i], f->name) == 0) return true;
    return false;
}

/* Returns true if the function returned NULL, 0, -1 (see finds) or a struct of zeros; padding does not count. */
static bool is_empty(const function *f, const answer *a) {
    const int none = -1;
    if (finds(f)) return memcmp(a->returned, &none, sizeof none) == 0;
    if (f->returns != RETURNS_STRUCT) return is_zero(a->returned, a->bytes);
    for (size_t i = 0; i < COUNT(members); ++i)
        if (strcmp(members[i].root, f->result) == 0 &&
            !is_zero(a->returned + members[i].offset, members[i].bytes))
            return false;
    return true;
}

static bool is_count(const char *name) {
    const size_t length = strlen(name), tail = strlen("count");
    return length >= tail && strcmp(name + length - tail, "count") == 0;
}

/* Writes a description of the error in the answer to out, "" if there is none. */
static void judge(const function *f, const nonsense *n, const answer *a, const leat_error *err, char *out,
                  size_t bytes) {
    const bool has_err = f->count && strcmp(f->parameters[f->count - 1].type, "leat_error *") == 0;
    const bool setter =
        strncmp(f->name, "leat_error_set", strlen("leat_error_set")) == 0; /* returns its argument */
    out[0] = 0;
    if (f->returns == RETURNS_STATUS && !setter) {
        if (n->expected == SUCCEEDS && a->status != LEAT_OK)
            snprintf(out, bytes, "failed: %s", err->message);
        else if (n->expected == REFUSED && a->status == LEAT_OK)
            snprintf(out, bytes, "returned LEAT_OK");
        else if (a->status != LEAT_OK && has_err && !err->message[0])
            snprintf(out, bytes, "returned an error without a message");
        else if (n->expected == REFUSED && n->word && !strstr(err->message, n->word))
            snprintf(out, bytes, "message is '%s', expected '%s' in it", err->message, n->word);
    } else if (n->expected == SUCCEEDS && strchr(f->result, '*') && is_empty(f, a) &&
               strcmp(f->name, "leat_training_stop_reason") != 0)
        snprintf(out, bytes, "returned NULL");
    else if (n->expected == REFUSED && !setter && !is_empty(f, a))
        snprintf(out, bytes, "returned something");
}

static void put(void *at, size_t bytes, int64_t number) {
    const int32_t narrow = (int32_t)number;
    if (bytes == sizeof narrow)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &number, sizeof number);
}

static void put_nonsense(const function *f, const nonsense *n, value *arguments) {
    const parameter *p = &f->parameters[n->place];
    char *at = arguments[n->place].pointer;
    if (!n->members[0]) {
        arguments[n->place].integer = n->number;
        if (p->kind == KIND_POINTER) arguments[n->place].pointer = NULL;
        if (p->kind == KIND_CALLBACK) arguments[n->place].callback = NULL;
        return;
    }
    for (int i = 0; i < 2 && n->members[i]; ++i) {
        at += n->members[i]->offset;
        if (i + 1 < 2 && n->members[i + 1]) memcpy(&at, at, sizeof at);
    }
    const member *last = n->members[1] ? n->members[1] : n->members[0];
    put(at, last->bytes, n->number);
}

/* Finds the `out` argument for a new object and stores a pointer in it that a failure must replace by NULL.  Returns
 * NULL if the function has no such argument. */
static void **soil_out(const function *f, const nonsense *n, const value *arguments) {
    static char older;
    if (n->place >= 0 && is_count(f->parameters[n->place].name))
        return NULL; /* an array of objects, whose length is wrong in this call */
    for (int i = 0; i < f->count; ++i) {
        const parameter *p = &f->parameters[i];
        void **out = arguments[i].pointer;
        if (f->returns != RETURNS_STATUS || strcmp(p->name, "out") != 0 || !strstr(p->type, "**") || !out)
            continue;
        *out = &older;
        return out;
    }
    return NULL;
}

/* Restores the default actions of fatal signals: cmocka's handlers would continue the test. */
static void die_of_signals(void) {
    const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < COUNT(fatal); ++i) signal(fatal[i], SIG_DFL);
}

/* Makes the call in the child process and writes the verdict to the pipe. */
static void call_once(const function *f, const nonsense *n, int to) {
    static answer a;
    static char verdict[768];
    value arguments[MOST_PARAMETERS];
    leat_error *err = NULL;
    prepare_call(f);
    for (int i = 0; i < f->count; ++i) {
        valid_value(f, &f->parameters[i], &arguments[i]);
        if (strcmp(f->parameters[i].type, "leat_error *") == 0) err = arguments[i].pointer;
    }
    if (n->place >= 0) put_nonsense(f, n, arguments);
    if (err) *err = (leat_error){0};
    void **out = soil_out(f, n, arguments);
    die_of_signals();
    alarm(60);
    call_with(f, arguments, &a);
    judge(f, n, &a, err, verdict, sizeof verdict);
    if (out && a.status != LEAT_OK && *out)
        snprintf(verdict, sizeof verdict, "failed and did not set *out to NULL");
    if (write(to, verdict, strlen(verdict)) < 0) _exit(3);
    _exit(0);
}

static void describe(const function *f, const nonsense *n, char *out, size_t bytes) {
    const char *name = n->place < 0 ? "" : f->parameters[n->place].name;
    const member *first = n->members[0], *second = n->members[1];
    if (n->place < 0)
        snprintf(out, bytes, "%s, valid", f->name);
    else
        snprintf(out, bytes, "%s, %s%s%s%s%s = %lld", f->name, name, first ? "->" : "",
                 first ? first->path : "", second ? "->" : "", second ? second->path : "",
                 (long long)n->number);
}

static int failures, calls;

static void try(const function *f, const nonsense *n) {
    char verdict[768] = "", what[256];
    size_t used = 0;
    ssize_t got;
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        call_once(f, n, ends[1]);
    }
    close(ends[1]);
    while (used < sizeof verdict - 1 && (got = read(ends[0], verdict + used, sizeof verdict - 1 - used)) > 0)
        used += (size_t)got;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        snprintf(verdict, sizeof verdict, "was killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        snprintf(verdict, sizeof verdict, "ended its process with status %d", WEXITSTATUS(status));
    ++calls;
    if (!verdict[0]) return;
    describe(f, n, what, sizeof what);
    print_error("%s: %s\n", what, verdict);
    ++failures;
}

/* ---- All calls ---- */

static void try_member(const function *f, int place, const member *first, const member *second) {
    const member *m = second ? second : first;
    nonsense n = {.place = place, .members = {first, second}, .expected = SURVIVES};
    if (listed(ignored, COUNT(ignored), f->name, m->path)) return;
    if (m->kind == KIND_POINTER || m->kind == KIND_CALLBACK) try(f, &n);
    n.number = -1;
    if (f->returns == RETURNS_STATUS && is_count(m->path)) n.expected = REFUSED;
    if (m->kind == KIND_INTEGER && (m->bytes == sizeof(int32_t) || m->bytes == sizeof(int64_t))) try(f, &n);
    if (m->kind != KIND_ENUM && m->kind != KIND_RANK) return;
    if (f->returns == RETURNS_STATUS && !listed(ignored, COUNT(ignored), f->name, first->path))
        n.expected = REFUSED;
    n.number = -1, try(f, &n);
    n.number = m->kind == KIND_RANK ? LEAT_MAX_RANK + 1 : 77, try(f, &n);
}

/* Returns true if type is a pointer to the struct root: "const leat_tensor *" points to a leat_tensor. */
static bool points_to(const char *type, const char *root) {
    char text[128];
    snprintf(text, sizeof text, "const %s *", root);
    return strcmp(type, text) == 0;
}

static void try_members(const function *f, int place, const char *base) {
    for (size_t i = 0; i < COUNT(members); ++i) {
        const member *m = &members[i];
        if (!points_to(f->parameters[place].type, m->root)) continue;
        const char *inner = NULL;
        if (m->kind == KIND_POINTER || m->kind == KIND_CALLBACK) {
            memcpy(&inner, base + m->offset, sizeof inner);
            if (!inner) continue; /* NULL in the valid call, too */
        }
        try_member(f, place, m, NULL);
        for (size_t j = 0; inner && j < COUNT(members); ++j) {
            const char *deep = NULL;
            if (!points_to(m->type, members[j].root)) continue;
            if (members[j].kind == KIND_POINTER || members[j].kind == KIND_CALLBACK) {
                memcpy(&deep, inner + members[j].offset, sizeof deep);
                if (!deep) continue;
            }
            try_member(f, place, m, &members[j]);
        }
    }
}

static void try_parameter(const function *f, int place, value valid) {
    const parameter *p = &f->parameters[place];
    nonsense n = {.place = place, .expected = SURVIVES};
    char word[128];
    snprintf(word, sizeof word, "%s is NULL", p->name);
    switch (p->kind) {
    case KIND_POINTER:
    case KIND_CALLBACK:
        if (listed(optional, COUNT(optional), f->name, p->name))
            n.expected = strcmp(p->name, "err") == 0 ? SURVIVES : SUCCEEDS;
        else
            n = (nonsense){.place = place, .expected = REFUSED, .word = word};
        try(f, &n);
        if (p->kind == KIND_POINTER) try_members(f, place, valid.pointer);
        break;
    case KIND_ENUM:
    case KIND_RANK:
        if (f->returns == RETURNS_STATUS) n.expected = REFUSED;
        n.number = -1, try(f, &n);
        n.number = p->kind == KIND_RANK ? LEAT_MAX_RANK + 1 : 77, try(f, &n);
        break;
    case KIND_INTEGER:
        if (f->returns == RETURNS_STATUS && is_count(p->name)) n.expected = REFUSED;
        n.number = -1, try(f, &n);
        if (!strstr("index output worker sample", p->name)) break;
        n.number = INT32_MAX, try(f, &n);
        break;
    default: break;
    }
}

static void no_argument_is_fatal(void **state) {
    (void)state;
    make_values();
    for (size_t i = 0; i < COUNT(functions); ++i) {
        const function *f = &functions[i];
        value valid[MOST_PARAMETERS];
        if (listed(situated, COUNT(situated), "", f->name)) continue;
        for (int k = 0; k < f->count; ++k)
            if (!valid_value(f, &f->parameters[k], &valid[k]))
                fail_msg("%s(%s %s): tests/arguments/values.c has no value for it", f->name,
                         f->parameters[k].type, f->parameters[k].name);
        try(f, &(nonsense){.place = -1, .expected = SUCCEEDS});
        for (int k = 0; k < f->count; ++k) try_parameter(f, k, valid[k]);
    }
    print_message("%d functions, %d calls\n", (int)COUNT(functions), calls);
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_argument_is_fatal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
