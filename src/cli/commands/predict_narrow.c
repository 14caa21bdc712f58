/* SPDX-License-Identifier: Apache-2.0 */
/* `leat predict --weights-format`.  Predictors take one sample at a time, since smaller weights bring nothing for
 * batches; a second predictor with f32 weights says what they change.  Room: cli. */
#include "cli/commands/predict_narrow.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/parse.h"
#include "cli/run/json.h"
#include "cli/text/say.h"

enum { first_room = 1024 };

bool cli_narrow_wanted(const cli_arguments *arguments) {
    const char *format = arguments->text[CLI_WEIGHTS_FORMAT];
    return format && strcmp(format, "f32") != 0;
}

/* Compiles the model for one sample of the data. */
static leat_status create(leat_predictor **out, const cli_session *session, leat_weights_format format,
                          leat_error *err) {
    const leat_batch_spec *spec = &session->data.spec;
    leat_predictor_options options = leat_predictor_options_default();
    leat_tensor inputs[LEAT_BATCH_MAX_TENSORS];
    for (int i = 0; i < spec->tensor_count; ++i) {
        const leat_tensor_spec *tensor = &spec->tensors[i];
        int64_t shape[LEAT_MAX_RANK] = {1};
        memcpy(shape + 1, tensor->shape, (size_t)tensor->rank * sizeof *shape);
        inputs[i] = leat_tensor_view(tensor->dtype, tensor->rank + 1, shape, NULL);
    }
    options.inputs = inputs;
    options.threads = (int)cli_number(session->arguments, CLI_THREADS, 1);
    options.weights_format = format;
    return leat_predictor_create(out, session->model, &options, err);
}

static leat_status create_both(cli_narrow *run, const cli_session *session, leat_error *err) {
    const char *name = session->arguments->text[CLI_WEIGHTS_FORMAT];
    const int expected = leat_model_input_count(session->model);
    const int received = leat_batch_spec_count(&session->data.spec, LEAT_PART_INPUT);
    leat_weights_format format = LEAT_WEIGHTS_F32;
    if (expected != received)
        return leat_error_set(err, LEAT_EINVAL, "the model has %d input%s, and the data %d", expected,
                              expected == 1 ? "" : "s", received);
    leat_status status = leat_weights_format_parse(&format, name, err);
    if (status == LEAT_OK) status = create(&run->exact, session, LEAT_WEIGHTS_F32, err);
    if (status == LEAT_OK) status = create(&run->narrow, session, format, err);
    if (status != LEAT_OK) return status;
    if (leat_predictor_state_bytes(run->exact) > 0)
        return leat_error_set(err, LEAT_ENOTSUP,
                              "--weights-format %s: the model has stateful layers, and single samples would "
                              "continue each other's states",
                              name);
    if (leat_predictor_narrow_weights(run->narrow) == 0)
        return leat_error_set(
            err, LEAT_ENOTSUP,
            "--weights-format %s: no layer of the model can use it: only Dense layers with more "
            "than 8 units, LSTM, GRU and SimpleRNN can",
            name);
    return LEAT_OK;
}

/* Makes room for at least `samples` samples in the outputs. */
static leat_status reserve(cli_narrow *run, int64_t samples, leat_error *err) {
    if (samples <= run->room) return LEAT_OK;
    const int64_t room = samples > 2 * run->room ? samples : 2 * run->room;
    for (int i = 0; i < run->output_count; ++i) {
        leat_tensor *output = &run->outputs[i];
        const leat_tensor row = leat_predictor_output(run->narrow, i);
        const size_t bytes = leat_tensor_bytes(&row);
        void *data = bytes > SIZE_MAX / (size_t)room ? NULL : realloc(output->data, (size_t)room * bytes + 1);
        if (!data)
            return leat_error_set(err, LEAT_ENOMEM, "no memory for the predictions of %" PRId64 " samples",
                                  room);
        *output = leat_tensor_view(row.dtype, row.rank, row.shape, data);
        output->shape[0] = run->samples;
    }
    run->room = room;
    return LEAT_OK;
}

static void compare_row(cli_difference *difference, const float *exact, const float *narrow,
                        int64_t columns) {
    int64_t exact_choice = 0, narrow_choice = 0;
    for (int64_t i = 0; i < columns; ++i) {
        const double distance = fabs((double)narrow[i] - (double)exact[i]);
        const double finite = isnan(distance) ? INFINITY : distance;
        difference->largest = fmax(difference->largest, finite);
        difference->sum += finite;
        difference->largest_number = fmax(difference->largest_number, fabs((double)exact[i]));
        if (exact[i] > exact[exact_choice]) exact_choice = i;
        if (narrow[i] > narrow[narrow_choice]) narrow_choice = i;
    }
    difference->numbers += columns;
    difference->rows += 1;
    difference->other_choices += exact_choice != narrow_choice;
}

/* Keeps the newest prediction of each output and adds its differences. */
static void keep_outputs(cli_narrow *run) {
    for (int i = 0; i < run->output_count; ++i) {
        const leat_tensor exact = leat_predictor_output(run->exact, i),
                          narrow = leat_predictor_output(run->narrow, i);
        const int64_t numbers = leat_tensor_count(&exact), columns = exact.shape[exact.rank - 1];
        for (int64_t at = 0; at < numbers; at += columns)
            compare_row(&run->differences[i], (const float *)exact.data + at, (const float *)narrow.data + at,
                        columns);
        const size_t bytes = leat_tensor_bytes(&narrow);
        memcpy((char *)run->outputs[i].data + (size_t)run->samples * bytes, narrow.data, bytes);
        run->outputs[i].shape[0] = run->samples + 1;
    }
    ++run->samples;
}

static leat_status timed_run(leat_predictor *predictor, const leat_tensor *inputs, int64_t *ns,
                             leat_error *err) {
    const int64_t start = cli_now_ns();
    leat_status status = leat_predictor_run_into(predictor, inputs, NULL, err);
    *ns += cli_now_ns() - start;
    return status;
}

static leat_status predict_batch(cli_narrow *run, const leat_batch *batch, leat_error *err) {
    leat_status status = reserve(run, run->samples + batch->size, err);
    for (int64_t sample = 0; status == LEAT_OK && sample < batch->size; ++sample) {
        leat_tensor inputs[LEAT_BATCH_MAX_TENSORS];
        for (int i = 0; i < batch->tensor_count; ++i) {
            inputs[i] = batch->tensors[i];
            inputs[i].shape[0] = 1;
            inputs[i].data = (char *)inputs[i].data + (size_t)sample * leat_tensor_bytes(&inputs[i]);
        }
        status = timed_run(run->exact, inputs, &run->exact_ns, err);
        if (status == LEAT_OK) status = timed_run(run->narrow, inputs, &run->narrow_ns, err);
        if (status == LEAT_OK) keep_outputs(run);
    }
    return status;
}

/* Predicts the batches of one pass, or as many as --steps says. */
static leat_status predict_all(cli_narrow *run, cli_session *session, leat_error *err) {
    const int64_t batches = session->feed_options.limit;
    cli_progress progress = {0};
    leat_status status = LEAT_OK;
    if (cli_number(session->arguments, CLI_VERBOSE, 1) == 1) cli_progress_begin(&progress);
    for (int64_t taken = 1; status == LEAT_OK; ++taken) {
        const leat_batch *batch = NULL;
        status = leat_feed_get(session->feed, &batch, err);
        if (status != LEAT_OK) break;
        status = predict_batch(run, batch, err);
        leat_feed_release(session->feed);
        cli_progress_draw(&progress, batches > 0 ? (double)taken / (double)batches : -1,
                          "predicting sample by sample");
    }
    cli_progress_end(&progress);
    return status;
}

static leat_status open_feed(cli_session *session, leat_error *err) {
    const leat_sequence *data = &session->data;
    const bool finite = !data->next && data->length(data->user) != LEAT_LENGTH_INFINITE;
    leat_feed_options *options = &session->feed_options;
    options->limit = cli_number(session->arguments, CLI_STEPS, 0);
    if (!finite && options->limit == 0)
        return leat_error_set(err, LEAT_EINVAL, "the data has no end: give --steps");
    if (finite && options->limit == 0) options->limit = data->length(data->user);
    if (finite) options->passes = 1;
    options->shuffle = LEAT_SHUFFLE_NONE;
    return leat_feed_open(&session->feed, data, options, err);
}

static leat_status make_results(cli_narrow *run, const cli_session *session, leat_error *err) {
    const int count = leat_model_output_count(session->model);
    run->outputs = calloc((size_t)count, sizeof *run->outputs);
    run->differences = calloc((size_t)count, sizeof *run->differences);
    if (!run->outputs || !run->differences)
        return leat_error_set(err, LEAT_ENOMEM, "no memory for %d outputs", count);
    run->output_count = count;
    return reserve(run, first_room, err);
}

int cli_narrow_predict(cli_narrow *run, cli_session *session) {
    leat_error err = {0};
    leat_status status = create_both(run, session, &err);
    if (status == LEAT_OK) status = make_results(run, session, &err);
    if (status == LEAT_OK) status = open_feed(session, &err);
    if (status == LEAT_OK) {
        cli_catch_signals(session);
        status = predict_all(run, session, &err);
    }
    if (cli_signal_code()) return cli_interrupted(session, "nothing was saved");
    /* The feed reports the end of its stream in this way. */
    return status == LEAT_ENOTFOUND && session->feed ? CLI_SUCCESS : cli_fail(session, &err);
}

static double us_per_sample(const cli_narrow *run, int64_t ns) {
    return run->samples > 0 ? (double)ns / 1e3 / (double)run->samples : 0;
}

static double mean(const cli_difference *difference) {
    return difference->numbers > 0 ? difference->sum / (double)difference->numbers : 0;
}

/* A choice is the place of the largest number, as in a classification. */
static bool has_choices(const cli_narrow *run, int output) {
    return run->outputs[output].rank >= 2 && run->outputs[output].shape[run->outputs[output].rank - 1] > 1;
}

void cli_narrow_say(const cli_narrow *run, const char *format, char *const *names) {
    for (int i = 0; i < run->output_count; ++i) {
        const cli_difference *d = &run->differences[i];
        cli_say("%s: %s weights change predictions by %.2g at most and by %.2g on average; the largest "
                "prediction is %.3g",
                names[i], format, d->largest, mean(d), d->largest_number);
        if (has_choices(run, i))
            cli_say("; %" PRId64 " of %" PRId64 " rows have their largest number at another place",
                    d->other_choices, d->rows);
        cli_say("\n");
    }
    cli_say("a sample takes %.2f us instead of %.2f us\n", us_per_sample(run, run->narrow_ns),
            us_per_sample(run, run->exact_ns));
}

void cli_narrow_print_json(const cli_narrow *run, const char *format, char *const *names) {
    fputs(", \"weights_format\": ", stdout);
    cli_json_string(stdout, format);
    fputs(", \"differences\": {", stdout);
    for (int i = 0; i < run->output_count; ++i) {
        const cli_difference *d = &run->differences[i];
        if (i) fputs(", ", stdout);
        cli_json_string(stdout, names[i]);
        fputs(": {\"largest\": ", stdout);
        cli_json_number(stdout, d->largest);
        fputs(", \"mean\": ", stdout);
        cli_json_number(stdout, mean(d));
        fputs(", \"largest_number\": ", stdout);
        cli_json_number(stdout, d->largest_number);
        if (has_choices(run, i))
            printf(", \"rows\": %" PRId64 ", \"other_choices\": %" PRId64, d->rows, d->other_choices);
        putchar('}');
    }
    fputs("}, \"us_per_sample\": {\"f32\": ", stdout);
    cli_json_number(stdout, us_per_sample(run, run->exact_ns));
    fputs(", ", stdout);
    cli_json_string(stdout, format);
    fputs(": ", stdout);
    cli_json_number(stdout, us_per_sample(run, run->narrow_ns));
    putchar('}');
}

void cli_narrow_free(cli_narrow *run) {
    for (int i = 0; i < run->output_count; ++i) free(run->outputs[i].data);
    free(run->outputs);
    free(run->differences);
    leat_predictor_destroy(&run->exact);
    leat_predictor_destroy(&run->narrow);
}
