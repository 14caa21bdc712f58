/* SPDX-License-Identifier: Apache-2.0 */
/* The event files of the callback TensorBoard, read back by another reader. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "leat/inspect.h"
#include "nn/network/network.h"
#include "train/callbacks/tensorboard/summary.h"
#include "train/hooks/training.h"
#include "train/support.h"
#include "train/tensorboard_case.h"

/* ---- The encoding ---- */

static void crc32c_has_the_values_of_rfc_3720(void **state) {
    (void)state;
    unsigned char data[32] = {0};
    assert_int_equal(leati_crc32c(data, 32), 0x8a9136aa);
    memset(data, 0xff, sizeof data);
    assert_int_equal(leati_crc32c(data, 32), 0x62a8ab43);
    for (int i = 0; i < 32; ++i) data[i] = (unsigned char)i;
    assert_int_equal(leati_crc32c(data, 32), 0x46dd794e);
    assert_int_equal(leati_crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(leati_crc32c(NULL, 0), 0);
    assert_int_equal(slow_crc32c((const unsigned char *)"123456789", 9), 0xe3069283);
    assert_int_equal(leati_crc32c_masked("123456789", 9), 0xc78ab0e5);
}

static void expect_message(leati_message *message, const char *expected, size_t count) {
    assert_false(message->failed);
    assert_int_equal(message->length, count);
    assert_memory_equal(message->data, expected, count);
    leati_message_fini(message);
}

static void messages_have_the_encoding_of_protocol_buffers(void **state) {
    (void)state;
    leati_message message = {0};
    leati_message_int(&message, 1, 150);
    expect_message(&message, "\x08\x96\x01", 3);
    leati_message_int(&message, 1, -1);
    expect_message(&message, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    leati_message_double(&message, 2, 1.5);
    expect_message(&message, "\x11\0\0\0\0\0\0\xf8\x3f", 9);
    size_t outer = leati_message_begin(&message, 3), inner = leati_message_begin(&message, 16);
    leati_message_text(&message, 2, "testing");
    leati_message_end(&message, inner);
    leati_message_end(&message, outer);
    expect_message(&message, "\x1a\x0c\x82\x01\x09\x12\x07testing", 14);
    char text[301] = "";
    memset(text, 'x', 300);
    outer = leati_message_begin(&message, 1);
    leati_message_raw(&message, text, 300); /* the length takes two bytes */
    leati_message_end(&message, outer);
    assert_int_equal(message.length, 303);
    assert_memory_equal(message.data, "\x0a\xac\x02xxx", 6);
    leati_message_fini(&message);
}

static void text_becomes_utf_8(void **state) {
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"loss", "loss"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"a\xe2\x82", "a??"},           /* a character that is cut */
        {"\xc0\xaf", "??"},             /* longer than needed */
        {"\xed\xa0\x80", "???"},        /* a surrogate */
        {"\xf4\x90\x80\x80z", "????z"}, /* beyond U+10FFFF */
        {"\xff\x80\xc3.", "\x3f\x3f\x3f."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        leati_message message = {0};
        leati_message_text(&message, 1, cases[i].text);
        assert_int_equal(message.length, 2 + strlen(cases[i].expected));
        assert_memory_equal(message.data + 2, cases[i].expected, strlen(cases[i].expected));
        leati_message_fini(&message);
    }
}

static double counted(const leati_bucket *buckets) {
    double sum = 0;
    for (int i = 0; i < LEATI_BUCKETS; ++i) sum += buckets[i].count;
    return sum;
}

static void a_histogram_counts_each_number_once(void **state) {
    (void)state;
    leati_bucket buckets[LEATI_BUCKETS];
    float values[301];
    for (int i = 0; i <= 300; ++i) values[i] = (float)i;
    leati_histogram(buckets, values, 301);
    for (int i = 0; i < LEATI_BUCKETS; ++i) {
        assert_true(buckets[i].left == 10.0 * i && buckets[i].right == 10.0 * (i + 1));
        assert_true(buckets[i].count == (i == LEATI_BUCKETS - 1 ? 11 : 10));
    }
    leati_histogram(buckets, (const float[]){NAN, 2, INFINITY, 2, -INFINITY, 2}, 6);
    assert_true(buckets[0].left == 2 && buckets[0].right == 2 && buckets[0].count == 0);
    assert_true(buckets[29].left == 2 && buckets[29].right == 2 && buckets[29].count == 3);
    leati_histogram(buckets, (const float[]){NAN}, 1);
    assert_true(counted(buckets) == 0 && buckets[0].left == 0 && buckets[29].right == 0);
    leati_histogram(buckets, (const float[]){-3.4e38f, 0, 3.4e38f, 1e-45f}, 4);
    assert_true(counted(buckets) == 4 && buckets[29].right == (double)3.4e38f);
}

/* ---- Fits ---- */

static void expect_series(const event_list *list, const char *tag, const leat_history *history,
                          const char *name) {
    assert_int_equal(tag_count(list, tag), series_count(history, name));
    for (int i = 0; i < tag_count(list, tag); ++i) {
        const event *at = tag_at(list, tag, i);
        assert_int_equal(at->step, i);
        assert_true(at->wall_time > 1.6e9);
        assert_true(scalar_of(at) == (float)series_at(history, name, i));
    }
}

static void the_scalars_of_epochs_are_the_history(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    leat_callback callback = make_tensorboard(NULL);
    leat_history *history = NULL;
    char path[512];
    expect_ok(train_watched(model, &callback, 3, &history, &err), &err);
    const event_list *training = read_run("train", 0), *validation = read_run("validation", 0);
    expect_series(training, "epoch_loss", history, "loss");
    expect_series(training, "epoch_accuracy", history, "accuracy");
    expect_series(validation, "epoch_loss", history, "val_loss");
    expect_series(validation, "epoch_accuracy", history, "val_accuracy");
    for (int i = 0; i < 3; ++i) {
        const event *after = tag_at(validation, "evaluation_loss_vs_iterations", i);
        assert_int_equal(after->step, 5 * (i + 1));
        assert_true(scalar_of(after) == (float)series_at(history, "val_loss", i));
        assert_true(scalar_of(tag_at(training, "epoch_learning_rate", i)) == 0.01f);
    }
    assert_int_equal(training->count, 2 + 3 * 3); /* version and graph; loss, accuracy, learning rate */
    assert_int_equal(validation->count, 1 + 3 * 4);
    assert_int_equal(find_file("train", 0, path), 1);
    assert_non_null(strstr(path, "/events.out.tfevents."));
    assert_non_null(strstr(path, ".leat."));
    leat_history_destroy(&history);
    leat_callback_destroy(&callback);
    leat_model_destroy(&model);
}

static void update_freq_adds_the_scalars_of_batches(void **state) {
    (void)state;
    leat_tensorboard_options options = leat_tensorboard_options_default();
    options.update_freq = 1;
    train_and_close(&options, 2);
    const event_list *list = read_run("train", 0);
    assert_int_equal(tag_count(list, "batch_loss"), 10);
    assert_int_equal(tag_count(list, "batch_accuracy"), 10);
    for (int i = 0; i < 10; ++i) assert_int_equal(tag_at(list, "batch_loss", i)->step, i + 1);
    for (int i = 0; i < 2; ++i)
        assert_true(scalar_of(tag_at(list, "batch_loss", 5 * i + 4)) ==
                    scalar_of(tag_at(list, "epoch_loss", i)));
    assert_int_equal(tag_count(list, "batch_size") + tag_count(list, "batch_batch"), 0);
    options.update_freq = 3;
    train_and_close(&options, 2);
    const event_list *third = read_run("train", 1);
    assert_int_equal(tag_count(third, "batch_loss"), 3);
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(tag_at(third, "batch_loss", i)->step, 3 * (i + 1));
        assert_true(scalar_of(tag_at(third, "batch_loss", i)) ==
                    scalar_of(tag_at(list, "batch_loss", 3 * i + 2)));
    }
}

static void steps_per_second_are_written_on_request(void **state) {
    (void)state;
    leat_tensorboard_options options = leat_tensorboard_options_default();
    options.update_freq = 1;
    options.write_steps_per_second = true;
    options.write_graph = false;
    train_and_close(&options, 2);
    const event_list *list = read_run("train", 0);
    assert_int_equal(tag_count(list, "batch_steps_per_second"), 10);
    assert_int_equal(tag_count(list, "epoch_steps_per_second"), 2);
    assert_true(scalar_of(tag_at(list, "epoch_steps_per_second", 1)) > 0);
    for (int i = 0; i < list->count; ++i) assert_int_equal(list->events[i].graph.count, 0);
}

/* Returns the sum of the counts of a histogram, and checks that the buckets adjoin each other. */
static double histogram_sum(const event *from) {
    double rows[30][3], sum = 0;
    assert_string_equal(from->plugin, "histograms");
    assert_int_equal(from->data_class, 2);
    assert_int_equal(from->dtype, 2);
    assert_true(from->rank == 2 && from->dims[0] == 30 && from->dims[1] == 3);
    assert_int_equal(from->content.count, sizeof rows);
    memcpy(rows, from->content.data, sizeof rows);
    for (int i = 0; i < 30; ++i) {
        sum += rows[i][2];
        assert_true(rows[i][0] <= rows[i][1]);
        if (i > 0) assert_true(rows[i][0] == rows[i - 1][1]);
    }
    return sum;
}

static void histograms_count_all_weights(void **state) {
    (void)state;
    leat_error err = {0};
    leat_tensorboard_options options = leat_tensorboard_options_default();
    options.histogram_freq = 2;
    leat_callback callback = make_tensorboard(&options);
    leat_model *model = make_classifier(1);
    expect_ok(train_watched(model, &callback, 3, NULL, &err), &err);
    const event_list *list = read_run("train", 0);
    assert_false(*model->weights.lent); /* no view of the weights was taken, which would slow training down */
    for (int i = 0; i < leat_model_weight_count(model); ++i) {
        leat_tensor weight = leat_model_weight(model, i);
        char tag[128];
        snprintf(tag, sizeof tag, "%s", leat_model_weight_name(model, i));
        *strchr(tag, ':') = '_';
        assert_int_equal(tag_count(list, tag), 2);
        assert_int_equal(tag_at(list, tag, 0)->step, 0);
        assert_int_equal(tag_at(list, tag, 1)->step, 2);
        assert_true(histogram_sum(tag_at(list, tag, 1)) == (double)leat_tensor_count(&weight));
    }
    leat_callback_destroy(&callback);
    leat_model_destroy(&model);
}

static leat_status set_logs(void *user, leat_training *training, int64_t index, leat_logs *logs,
                            leat_error *err) {
    (void)user, (void)training, (void)index, (void)err;
    leat_logs_set(logs, "huge", 1e300);
    leat_logs_set(logs, "nothing", NAN);
    leat_logs_set(logs, "val_extra", 2);
    leat_logs_set(logs, "lr", 0.25); /* ReduceLROnPlateau logs the rate before it reduces it */
    leat_logs_set(logs, "cut\xc3", 3);
    return LEAT_OK;
}

static void values_of_other_callbacks_are_written(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_callback tested = make_tensorboard(NULL), setter = leat_callback_default();
    setter.on_epoch_end = set_logs;
    leat_fit_options options = quiet_fit_with(1, (leat_callback *[]){&setter, &tested}, 2);
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    const event_list *list = read_run("train", 0);
    assert_true(scalar_of(tag_at(list, "epoch_huge", 0)) == INFINITY);
    assert_true(isnan(scalar_of(tag_at(list, "epoch_nothing", 0))));
    assert_true(scalar_of(tag_at(list, "epoch_learning_rate", 0)) == 0.25f);
    assert_int_equal(tag_count(list, "epoch_lr"), 0);
    assert_true(scalar_of(tag_at(list, "epoch_cut?", 0)) == 3);
    assert_true(scalar_of(tag_at(read_run("validation", 0), "epoch_extra", 0)) == 2);
    leat_callback_destroy(&tested);
    leat_model_destroy(&model);
}

static void each_fit_has_files_of_its_own(void **state) {
    (void)state;
    leat_error err = {0};
    char path[512];
    leat_model *model = make_classifier(1);
    leat_callback callback = make_tensorboard(NULL);
    expect_ok(train_watched(model, &callback, 1, NULL, &err), &err);
    expect_ok(train_watched(model, &callback, 1, NULL, &err), &err);
    assert_int_equal(find_file("train", 0, path), 2);
    assert_int_equal(find_file("validation", 0, path), 2);
    assert_int_equal(tag_at(read_run("validation", 1), "evaluation_loss_vs_iterations", 0)->step, 10);
    leat_callback_destroy(&callback);
    leat_model_destroy(&model);
}

static void a_run_id_names_the_files_and_replaces_them(void **state) {
    (void)state;
    char path[512];
    leat_tensorboard_options options = leat_tensorboard_options_default();
    options.run_id = "first";
    train_and_close(&options, 3);
    train_and_close(&options, 2);
    assert_int_equal(find_file("train", 0, path), 1);
    assert_non_null(strstr(path, "/train/events.out.tfevents.leat.first.v2"));
    assert_int_equal(tag_count(read_run("train", 0), "epoch_loss"), 2);
    assert_int_equal(tag_count(read_run("validation", 0), "epoch_loss"), 2);
    options.run_id = "second";
    train_and_close(&options, 1);
    assert_int_equal(find_file("train", 0, path), 2);
}

static void an_evaluation_is_written(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    leat_callback callback = make_tensorboard(NULL), *callbacks[] = {&callback};
    clusters data = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_evaluate_options options = leat_evaluate_options_default();
    leat_logs logs;
    double loss = 0;
    char path[512];
    options.callbacks = callbacks;
    options.callback_count = 1;
    expect_ok(leat_model_evaluate_generator(model, &sequence, &options, &logs, &err), &err);
    assert_true(leat_logs_get(&logs, "loss", &loss));
    const event_list *list = read_run("validation", 0); /* before the callback is destroyed */
    assert_true(scalar_of(tag_at(list, "evaluation_loss_vs_iterations", 0)) == (float)loss);
    assert_int_equal(find_file("train", 0, path), 0);
    leat_callback_destroy(&callback);
    leat_model_destroy(&model);
}

static void train_with_text(const char *arguments) {
    leat_error err = {0};
    char text[256];
    leat_callback callback;
    leat_model *model = make_classifier(1);
    snprintf(text, sizeof text, "TensorBoard(log_dir='%s'%s)", log_folder, arguments);
    expect_ok(leat_callback_from_text(&callback, sizeof callback, text, &err), &err);
    expect_ok(train_watched(model, &callback, 2, NULL, &err), &err);
    leat_callback_destroy(&callback);
    leat_model_destroy(&model);
}

static void the_arguments_of_a_text_reach_the_callback(void **state) {
    (void)state;
    train_with_text("");
    const event_list *list = read_run("train", 0);
    assert_true(list->events[1].graph.count > 0);
    assert_int_equal(tag_count(list, "batch_loss") + tag_count(list, "epoch_steps_per_second"), 0);
    train_with_text(", update_freq=batch, histogram_freq=2, write_graph=False, write_steps_per_second=True");
    list = read_run("train", 1);
    assert_int_equal(list->events[1].graph.count, 0);
    assert_int_equal(tag_count(list, "batch_loss"), 10);
    assert_int_equal(tag_count(list, "epoch_steps_per_second"), 2);
    int histograms = 0;
    for (int i = 0; i < list->count; ++i) histograms += strcmp(list->events[i].plugin, "histograms") == 0;
    assert_int_equal(histograms, 4); /* two kernels and two biases, in the first epoch */
    train_with_text(", update_freq=5");
    assert_int_equal(tag_count(read_run("train", 2), "batch_loss"), 2);
    train_with_text(", update_freq='epoch'");
    assert_int_equal(tag_count(read_run("train", 3), "batch_loss"), 0);
}

/* ---- The graph ---- */

static const char network[] =
    "{'class_name': 'Model', 'config': {'name': 'm', 'layers': ["
    "{'class_name': 'InputLayer', 'name': 'in', 'inbound_nodes': [],"
    " 'config': {'name': 'in', 'batch_input_shape': [null, 4]}},"
    "{'class_name': 'Dense', 'name': 'shared', 'inbound_nodes': [[['in', 0, 0, {}]], [['shared', 0, 0, {}]]],"
    " 'config': {'name': 'shared', 'units': 4}},"
    "{'class_name': 'Sequential', 'name': 'inner', 'inbound_nodes': [[['shared', 1, 0, {}]]],"
    " 'config': {'name': 'inner', 'layers': [{'class_name': 'Dense', 'config': {'name': 'a:b', 'units': 5,"
    " 'batch_input_shape': [null, 4]}}, {'class_name': 'ReLU', 'config': {'name': 'last'}}]}},"
    "{'class_name': 'Concatenate', 'name': 'cat', 'inbound_nodes': [[['inner', 1, 0, {}], ['shared', 0, 0, "
    "{}]]],"
    " 'config': {'name': 'cat'}}],"
    " 'input_layers': [['in', 0, 0]], 'output_layers': [['cat', 0, 0]]}}";

/* Finds a node of the graph by its name. */
static bytes node_named(bytes graph, const char *name) {
    bytes node;
    char text[256];
    for (int i = 0; field_bytes(graph, 1, i, &node); ++i)
        if (strcmp(field_text(node, 1, 0, text), name) == 0) return node;
    fail_msg("the graph has no node '%s'", name);
    return node;
}

/* Returns the value of an attribute of a node. */
static bytes attribute(bytes node, const char *key) {
    bytes entry, value = {0};
    char text[256];
    for (int i = 0; field_bytes(node, 5, i, &entry); ++i)
        if (strcmp(field_text(entry, 1, 0, text), key) == 0) assert_true(field_bytes(entry, 2, 0, &value));
    assert_non_null(value.data);
    return value;
}

static void expect_node(bytes graph, const char *name, const char *op, const char *first,
                        const char *second) {
    bytes node = node_named(graph, name);
    char text[256];
    assert_string_equal(field_text(node, 2, 0, text), op);
    assert_string_equal(field_text(node, 3, 0, text), first);
    assert_string_equal(field_text(node, 3, 1, text), second);
}

static void expect_output_shape(bytes node, int64_t units) {
    bytes list, shape, dim;
    uint64_t size;
    assert_true(field_bytes(attribute(node, "_output_shapes"), 1, 0, &list));
    assert_true(field_bytes(list, 7, 0, &shape));
    assert_true(field_bytes(shape, 2, 0, &dim) && field_number(dim, 1, 0, &size));
    assert_int_equal((int64_t)size, -1);
    assert_true(field_bytes(shape, 2, 1, &dim) && field_number(dim, 1, 0, &size));
    assert_int_equal(size, units);
    assert_false(field_bytes(shape, 2, 2, &dim));
}

/* Returns the graph of a model.  The bytes are valid until *file is freed. */
static bytes graph_of(const char *json, event_list *file) {
    leat_error err = {0};
    leat_model *model = NULL;
    leat_callback callback = make_tensorboard(NULL);
    char text[2048], path[512] = "";
    snprintf(text, sizeof text, "%s", json);
    for (char *quote = text; (quote = strchr(quote, '\''));) *quote = '"';
    expect_ok(leat_model_from_json(&model, text, &err), &err);
    struct leat_training training = {.model = model, .params.size = sizeof(leat_training_params)};
    expect_ok(callback.on_train_begin(callback.user, &training, 0, NULL, &err), &err);
    leat_callback_destroy(&callback);
    leat_model_destroy(&model);
    find_file("train", 0, path);
    read_events(file, path);
    assert_int_equal(file->count, 2);
    return file->events[1].graph;
}

static void the_graph_has_a_node_for_each_call(void **state) {
    (void)state;
    static event_list file;
    uint64_t number;
    char text[256];
    bytes node, config, graph = graph_of(network, &file);
    expect_node(graph, "in", "InputLayer", "", "");
    expect_node(graph, "shared/call_0", "Dense", "in", "");
    expect_node(graph, "shared/call_1", "Dense", "shared/call_0", "");
    expect_node(graph, "inner/a_b", "Dense", "inner/a_b_input", ""); /* the colon would begin an index */
    expect_node(graph, "inner/a_b_input", "InputLayer", "shared/call_1", "");
    expect_node(graph, "inner/last", "ReLU", "inner/a_b", "");
    expect_node(graph, "cat", "Concatenate", "inner/last", "shared/call_0");
    assert_false(field_bytes(graph, 1, 7, &node));
    expect_output_shape(node_named(graph, "cat"), 9);
    node = node_named(graph, "inner/a_b");
    assert_true(field_number(attribute(node, "parameters"), 3, 0, &number));
    assert_int_equal(number, 4 * 5 + 5);
    assert_true(field_number(attribute(node, "trainable"), 5, 0, &number));
    assert_int_equal(number, 1);
    config = attribute(node, "config");
    assert_non_null(strstr(field_text(config, 2, 0, text), "\"units\": 5"));
    free_events(&file);
}

static const char two_outputs[] =
    "{'class_name': 'Model', 'config': {'name': 'm', 'layers': ["
    "{'class_name': 'InputLayer', 'name': 'in', 'inbound_nodes': [],"
    " 'config': {'name': 'in', 'batch_input_shape': [null, 3, 2]}},"
    "{'class_name': 'LSTM', 'name': 'lstm', 'inbound_nodes': [[['in', 0, 0, {}]]],"
    " 'config': {'name': 'lstm', 'units': 4, 'return_state': true}},"
    "{'class_name': 'Add', 'name': 'sum', 'inbound_nodes': [[['lstm', 0, 0, {}], ['lstm', 0, 2, {}]]],"
    " 'config': {'name': 'sum'}}],"
    " 'input_layers': [['in', 0, 0]], 'output_layers': [['sum', 0, 0]]}}";

static void an_input_names_the_output_that_it_reads(void **state) {
    (void)state;
    static event_list file;
    bytes list, shape, graph = graph_of(two_outputs, &file);
    expect_node(graph, "sum", "Add", "lstm", "lstm:2");
    assert_true(field_bytes(attribute(node_named(graph, "lstm"), "_output_shapes"), 1, 0, &list));
    assert_true(field_bytes(list, 7, 2, &shape));
    assert_false(field_bytes(list, 7, 3, &shape));
    free_events(&file);
}

/* ---- Failures ---- */

static void expect_refusal(leat_tensorboard_options options, const char *message) {
    leat_error err = {0};
    leat_callback out;
    assert_int_equal(leat_tensorboard_create(&out, sizeof out, &options, &err), LEAT_EINVAL);
    assert_string_equal(err.message, message);
    assert_null(out.destroy);
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    leat_tensorboard_options options = leat_tensorboard_options_default();
    assert_true(options.write_graph && !options.update_freq && !options.histogram_freq);
    expect_refusal(options, "TensorBoard: log_dir: expected the path of a folder, received NULL");
    options.log_dir = "";
    expect_refusal(options, "TensorBoard: log_dir: expected the path of a folder, received an empty text");
    options.log_dir = log_folder;
    options.histogram_freq = -1;
    expect_refusal(options, "TensorBoard: histogram_freq: expected 0 (no histograms) or a number of epochs, "
                            "received -1");
    options.histogram_freq = 0;
    options.run_id = "a/b";
    expect_refusal(options, "TensorBoard: run_id: expected a text without '/', received 'a/b'");
    options.run_id = NULL;
    options.update_freq = -2;
    expect_refusal(options,
                   "TensorBoard: update_freq: expected 0 (each epoch) or a number of batches, received -2");
}

static void a_folder_that_cannot_be_created_ends_the_fit(void **state) {
    (void)state;
    leat_error err = {0};
    char path[128], file[128];
    snprintf(file, sizeof file, "%s/file", log_folder);
    snprintf(path, sizeof path, "%s/file/logs", log_folder);
    fclose(fopen(file, "w"));
    leat_tensorboard_options options = leat_tensorboard_options_default();
    options.log_dir = path;
    leat_callback callback;
    leat_model *model = make_classifier(1);
    expect_ok(leat_tensorboard_create(&callback, sizeof callback, &options, &err), &err);
    assert_int_equal(train_watched(model, &callback, 1, NULL, &err), LEAT_EIO);
    assert_non_null(strstr(err.message, "on_train_begin 0: TensorBoard: cannot create the folder"));
    leat_callback_destroy(&callback);
    leat_model_destroy(&model);
}

static void limit(rlim_t count) {
    struct rlimit now;
    getrlimit(RLIMIT_FSIZE, &now);
    now.rlim_cur = count;
    setrlimit(RLIMIT_FSIZE, &now);
}

/* The limit of file sizes fails like a full disk. */
static void a_full_disk_ends_the_fit(void **state) {
    (void)state;
    leat_error err = {0};
    char path[512] = "";
    struct stat info;
    leat_tensorboard_options options = leat_tensorboard_options_default();
    options.histogram_freq = 1;
    leat_model *model = make_classifier(1);
    leat_callback callback = make_tensorboard(&options);
    limit(4000);
    leat_status status = train_watched(model, &callback, 10, NULL, &err);
    leat_callback_destroy(&callback);
    limit(RLIM_INFINITY);
    assert_int_equal(status, LEAT_EIO);
    assert_non_null(strstr(err.message, "TensorBoard: cannot write '"));
    assert_non_null(strstr(err.message, "File too large"));
    find_file("train", 0, path);
    assert_true(stat(path, &info) == 0 && info.st_size == 4000);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_has_the_values_of_rfc_3720),
        cmocka_unit_test(messages_have_the_encoding_of_protocol_buffers),
        cmocka_unit_test(text_becomes_utf_8),
        cmocka_unit_test(a_histogram_counts_each_number_once),
        IN_FOLDER(the_scalars_of_epochs_are_the_history),
        IN_FOLDER(update_freq_adds_the_scalars_of_batches),
        IN_FOLDER(steps_per_second_are_written_on_request),
        IN_FOLDER(histograms_count_all_weights),
        IN_FOLDER(values_of_other_callbacks_are_written),
        IN_FOLDER(each_fit_has_files_of_its_own),
        IN_FOLDER(a_run_id_names_the_files_and_replaces_them),
        IN_FOLDER(an_evaluation_is_written),
        IN_FOLDER(the_arguments_of_a_text_reach_the_callback),
        IN_FOLDER(the_graph_has_a_node_for_each_call),
        IN_FOLDER(an_input_names_the_output_that_it_reads),
        IN_FOLDER(wrong_options_are_refused),
        IN_FOLDER(a_folder_that_cannot_be_created_ends_the_fit),
        IN_FOLDER(a_full_disk_ends_the_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
