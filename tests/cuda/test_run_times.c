/* SPDX-License-Identifier: Apache-2.0 */
/* A fit on a device tells waiting for data, for copies and for compute apart, and a trace shows what the device did. */
#include "cmocka_all.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/sim/sim.h"
#include "leat/predictor.h"
#include "leat/trace.h"
#include "train/support.h"

/* Batches whose input of 128 KiB is copied from where it is; the targets travel with the step. */
enum { width = 512, batch_size = 64, steps = 3, epochs = 2, slow_ns = 20000000 };

static int64_t wide_length(void *user) {
    return *(const int64_t *)user;
}

static leat_status wide_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)user, (void)rng, (void)err;
    float *x = batch->tensors[0].data, *y = batch->tensors[1].data;
    for (int64_t i = 0; i < batch_size * width; ++i) x[i] = (float)((i + index) % 7) / 7;
    for (int64_t i = 0; i < batch_size; ++i) y[i] = (float)(i % 3);
    return LEAT_OK;
}

/* A sequence of *length batches. */
static leat_sequence wide_sequence(int64_t *length) {
    leat_sequence sequence = leat_sequence_default();
    sequence.user = length;
    sequence.length = wide_length;
    sequence.get = wide_get;
    leat_error err = {0};
    sequence.spec.batch_size = batch_size;
    expect_ok(leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, NULL, LEAT_F32, 1, (int64_t[]){width},
                                  &err),
              &err);
    expect_ok(leat_batch_spec_add(&sequence.spec, LEAT_PART_TARGET, NULL, LEAT_F32, 1, (int64_t[]){1}, &err),
              &err);
    return sequence;
}

static leat_model *make_wide(const char *device) {
    leat_model *model = NULL;
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.001}}";
    options.loss = "mse";
    expect_ok(
        leat_model_from_json(&model,
                             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"wide\", \"layers\": ["
                             "{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 1,"
                             " \"batch_input_shape\": [null, 512]}}]}}",
                             &err),
        &err);
    expect_ok(leat_model_initialize(model, 1, &err), &err);
    expect_ok(leat_model_compile(model, &options, &err), &err);
    expect_ok(leat_model_set_device(model, device, &err), &err);
    return model;
}

static leat_history *fit(int workers, const char *device, leat_trace *trace) {
    leat_error err = {0};
    leat_model *model = make_wide(device);
    int64_t length = steps;
    leat_sequence sequence = wide_sequence(&length);
    leat_fit_options options = quiet_fit(epochs);
    leat_history *history = NULL;
    options.workers = workers;
    options.trace = trace;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    leat_model_destroy(&model);
    return history;
}

static json_t *json_of(const leat_history *history) {
    leat_error err = {0};
    char *text = NULL;
    expect_ok(leat_history_json(history, &text, &err), &err);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    leat_string_free(text);
    return root;
}

static void copies_are_told_apart(void **state) {
    (void)state;
    for (int workers = 0; workers < 2; ++workers) {
        sim_slow_copies(64 * 1024, slow_ns);
        leat_history *history = fit(workers, "cuda", NULL);
        sim_slow_copies(0, 0);
        leat_verdict v = leat_history_verdict(history);
        assert_true(v.on_device);
        assert_int_equal(v.steps, epochs * steps);
        /* Without a worker nothing is copied ahead, and each step waits for its copy. */
        if (workers == 0) assert_true(v.copy_wait_ns >= (int64_t)epochs * steps * slow_ns * 99 / 100);
        assert_true(v.data_wait_ns >= 0 && v.copy_wait_ns >= 0 && v.compute_ns > 0);
        assert_true(v.data_wait_ns + v.copy_wait_ns + v.compute_ns <= v.wall_ns);
        assert_non_null(strstr(v.text, "% for copies to the GPU and "));
        json_t *root = json_of(history), *verdict = json_object_get(root, "verdict");
        double copies = json_number_value(json_object_get(verdict, "copy_wait_s"));
        assert_true(copies > 0.9e-9 * (double)v.copy_wait_ns &&
                    copies < 1.1e-9 * (double)v.copy_wait_ns + 1e-9);
        json_decref(root);
        leat_history_destroy(&history);
    }
}

static void the_host_has_no_copies(void **state) {
    (void)state;
    leat_history *history = fit(1, "cpu", NULL);
    leat_verdict v = leat_history_verdict(history);
    assert_false(v.on_device);
    assert_int_equal(v.copy_wait_ns, 0);
    assert_null(strstr(v.text, "copies"));
    json_t *root = json_of(history);
    assert_null(json_object_get(json_object_get(root, "verdict"), "copy_wait_s"));
    json_decref(root);
    leat_history_destroy(&history);
}

/* The next batch may still be copied when the feed is closed, also if the driver could not pin its memory. */
static void copies_end_before_their_memory(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; ++seed) {
        leat_error err = {0};
        leat_model *model = make_wide("cuda");
        int64_t length = LEAT_LENGTH_INFINITE;
        leat_sequence sequence = wide_sequence(&length);
        leat_fit_options options = quiet_fit(1);
        options.workers = 2;
        options.steps_per_epoch = 2;
        sim_seed(seed);
        if (seed % 4 != 3) sim_fail_at("cuMemHostRegister", 1, CUDA_ERROR_UNKNOWN);
        expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
        sim_fail_at(NULL, 0, CUDA_SUCCESS);
        leat_model_destroy(&model);
    }
}

/* A file is not written from weights that could not be fetched: the one that is there stays. */
static void lost_weights_are_no_file(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_line(0.1);
    float x[2] = {1, 1}, y[2] = {8, 8};
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 1}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 1}, y)};
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    void *bytes = NULL;
    size_t count = 0;
    expect_ok(leat_model_set_device(model, "cuda", &err), &err);
    expect_ok(leat_model_train_on_batch(model, &arrays, NULL, &err), &err);
    sim_fail_at("cuMemcpyDtoHAsync", 1, CUDA_ERROR_UNKNOWN);
    assert_int_equal(leat_model_save_weights_memory(model, LEAT_MODEL_FORMAT_SAFETENSORS, &bytes, &count,
                                                    &err),
                     LEAT_EIO);
    assert_null(bytes);
    assert_non_null(strstr(err.message, "the newest weights are lost"));
    sim_fail_at(NULL, 0, CUDA_SUCCESS);
    assert_int_equal(leat_model_publish(model, &err), LEAT_EIO); /* still */
    assert_int_equal(leat_model_train_on_batch(model, &arrays, NULL, &err), LEAT_EIO);
    leat_model_destroy(&model);
}

static void *save_in_thread(void *user) {
    leat_error err = {0};
    void *bytes = NULL;
    size_t count = 0;
    expect_ok(leat_model_save_weights_memory(user, LEAT_MODEL_FORMAT_SAFETENSORS, &bytes, &count, &err),
              &err);
    float slope = 0;
    assert_true(count > sizeof slope);
    memcpy(&slope, (const char *)bytes + count - sizeof slope, sizeof slope);
    assert_true(slope > 0); /* what the other thread has trained */
    leat_bytes_free(bytes);
    return NULL;
}

/* A model may be used by one thread after the other, as Python's threads do. */
static void another_thread_saves_the_weights(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_line(0.1);
    pthread_t thread;
    float x[2] = {1, 1}, y[2] = {8, 8};
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 1}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 1}, y)};
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    expect_ok(leat_model_set_device(model, "cuda", &err), &err);
    expect_ok(leat_model_train_on_batch(model, &arrays, NULL, &err), &err);
    assert_int_equal(pthread_create(&thread, NULL, save_in_thread, model), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    leat_model_destroy(&model);
}

/* ---- Traces ---- */

/* Returns the numbers of a lane: thread and process. */
static bool find_lane(const json_t *events, const char *group, const char *lane, json_int_t *pid,
                      json_int_t *tid) {
    size_t i = 0;
    json_t *event = NULL;
    bool found = false;
    json_array_foreach(events, i, event) {
        const char *kind = json_string_value(json_object_get(event, "name"));
        const char *name = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
        if (kind && name && strcmp(kind, "process_name") == 0 && strcmp(name, group) == 0)
            *pid = json_integer_value(json_object_get(event, "pid"));
    }
    json_array_foreach(events, i, event) {
        const char *kind = json_string_value(json_object_get(event, "name"));
        const char *name = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
        if (!kind || !name || strcmp(kind, "thread_name") != 0 || strcmp(name, lane) != 0) continue;
        if (json_integer_value(json_object_get(event, "pid")) != *pid) continue;
        *tid = json_integer_value(json_object_get(event, "tid"));
        found = true;
    }
    return found;
}

/* A span in microseconds. */
typedef struct span {
    double from, to;
} span;

static int spans_of(const json_t *events, const char *group, const char *lane, const char *name, span *out,
                    int most) {
    json_int_t pid = -1, tid = -1;
    size_t i = 0;
    int count = 0;
    json_t *event = NULL;
    if (!find_lane(events, group, lane, &pid, &tid)) fail_msg("no lane '%s' of '%s'", lane, group);
    json_array_foreach(events, i, event) {
        const char *phase = json_string_value(json_object_get(event, "ph"));
        const char *called = json_string_value(json_object_get(event, "name"));
        if (!phase || !called || strcmp(phase, "X") != 0 || strcmp(called, name) != 0) continue;
        if (json_integer_value(json_object_get(event, "pid")) != pid ||
            json_integer_value(json_object_get(event, "tid")) != tid)
            continue;
        assert_true(count < most);
        double from = json_number_value(json_object_get(event, "ts"));
        out[count++] = (span){from, from + json_number_value(json_object_get(event, "dur"))};
    }
    return count;
}

/* True if a is within one of the spans, up to rounding. */
static bool is_within(span a, const span *spans, int count) {
    const double rounding = 5;
    for (int i = 0; i < count; ++i)
        if (a.from >= spans[i].from - rounding && a.to <= spans[i].to + rounding) return true;
    return false;
}

static void a_trace_has_the_device_s_lanes(void **state) {
    (void)state;
    enum { most = 4 * epochs * steps };
    leat_error err = {0};
    char path[] = "/tmp/leat-trace-XXXXXX";
    span host[most], launches[most], device[most], copies[most];
    leat_trace *trace = NULL;
    close(mkstemp(path));
    expect_ok(leat_trace_open(&trace, path, &err), &err);
    leat_history *history = fit(0, "cuda", trace);
    expect_ok(leat_trace_close(&trace, &err), &err);
    leat_history_destroy(&history);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    json_t *events = json_is_array(root) ? root : json_object_get(root, "traceEvents");
    int steps_of_host = spans_of(events, "training", "steps", "step", host, most);
    int launch_count = spans_of(events, "training", "steps", "launch", launches, most);
    int step_count = spans_of(events, "cuda:0", "compute", "step", device, most);
    int copy_count = spans_of(events, "cuda:0", "copies", "wait for the batch", copies, most);
    assert_int_equal(steps_of_host, epochs * steps);
    /* Simulated steps are longer than the pause between two that are watched, and after each of them one rests. */
    assert_int_equal(step_count, epochs * steps / 2);
    assert_int_equal(launch_count, step_count);
    assert_int_equal(copy_count, step_count); /* without a worker each waits for its batch */
    for (int i = 0; i < step_count; ++i) {
        assert_true(is_within(device[i], host, steps_of_host));
        assert_true(is_within(launches[i], host, steps_of_host));
        assert_true(is_within(copies[i], host, steps_of_host));
        assert_true(copies[i].to <= device[i].from + 5);
    }
    json_decref(root);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_told_apart),
        cmocka_unit_test(the_host_has_no_copies),
        cmocka_unit_test(copies_end_before_their_memory),
        cmocka_unit_test(lost_weights_are_no_file),
        cmocka_unit_test(another_thread_saves_the_weights),
        cmocka_unit_test(a_trace_has_the_device_s_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
