/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the data of `leat fit`, and computes the weights of classes.  Room: cli. */
#include "cli/commands/fit_data.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/parse.h"
#include "cli/run/progress.h"
#include "cli/text/say.h"
#include "leat/source.h"

enum { max_classes = 1 << 20 };

bool cli_has_validation(const cli_arguments *arguments) {
    return arguments->text[CLI_VALIDATION] || arguments->text[CLI_VALIDATION_SPLIT];
}

static int refuse(cli_option_id id, const char *value, const char *expected) {
    cli_say("leat fit: %s '%.200s': %s\ntry: leat fit --help\n", cli_options[id].name, value, expected);
    return CLI_USAGE;
}

/* Reads a decimal number that is the whole text up to `stop`. */
static bool read_real(const char *text, char stop, double *out, const char **end) {
    char *after = NULL;
    *out = strtod(text, &after);
    *end = after;
    return after != text && strspn(text, "+-.0123456789eE") >= (size_t)(after - text) && isfinite(*out) &&
           (*after == '\0' || *after == stop);
}

/* ---- Validation data ---- */

static bool read_share(const char *text, double *share) {
    const char *end = NULL;
    return read_real(text, '\0', share, &end) && *share > 0 && *share < 1;
}

static int open_split(cli_session *session) {
    leat_sequence whole = {0};
    leat_error err = {0};
    double share = 0;
    const char *text = session->arguments->text[CLI_VALIDATION_SPLIT];
    if (!read_share(text, &share)) return CLI_USAGE; /* cli_check_fit_data has refused it */
    session->validation_split = share;
    int code = cli_open_data(session, &whole, session->arguments->text[CLI_TRAIN]);
    if (code != CLI_SUCCESS) return code;
    leat_status status =
        leat_sequence_split(&whole, share, &session->data, &session->validation, sizeof whole, &err);
    if (status == LEAT_OK) return CLI_SUCCESS;
    leat_sequence_destroy(&whole);
    cli_say("leat fit: --validation-split: %s\n", err.message);
    if (status == LEAT_ENOTSUP) cli_say("try: give the validation data with --validation SPEC\n");
    return status == LEAT_ENOMEM ? CLI_FAILURE : CLI_USAGE;
}

int cli_open_fit_data(cli_session *session) {
    const char *const *text = session->arguments->text;
    if (text[CLI_VALIDATION_SPLIT]) return open_split(session);
    int code = cli_open_data(session, &session->data, text[CLI_TRAIN]);
    if (code != CLI_SUCCESS || !text[CLI_VALIDATION]) return code;
    session->reads_statistics = true;
    return cli_open_data(session, &session->validation, text[CLI_VALIDATION]);
}

/* ---- Weights of classes ---- */

static bool is_balanced(const char *text) {
    return strcmp(text, "balanced") == 0;
}

void cli_class_weights_free(cli_class_weights *weights) {
    free(weights->names);
    free(weights->outputs);
    free(weights->items);
    *weights = (cli_class_weights){0};
}

static bool reserve(cli_class_weights *out, size_t count) {
    out->items = calloc(count + 1, sizeof *out->items);
    if (!out->items) cli_say("leat fit: no memory for the weights of classes\n");
    return out->items != NULL;
}

/* Reads "0:1,1:5" to the end of *out, which has room for all weights of the option. */
static bool read_list(const char *text, cli_class_weights *out) {
    for (const char *at = text;;) {
        char *colon = NULL;
        double weight = 0;
        errno = 0;
        int64_t number = strtoll(at, &colon, 10);
        if (*at < '0' || *at > '9' || *colon != ':' || errno != 0) return false;
        if (!read_real(colon + 1, ',', &weight, &at)) return false;
        out->items[out->count++] = (leat_class_weight){number, weight};
        if (*at++ == '\0') return true;
    }
}

/* Reads "a=0:1,1:5;b=0:2,1:1". */
static bool read_outputs(const char *text, cli_class_weights *out) {
    const size_t bytes = strlen(text) + 1;
    out->names = malloc(bytes);
    out->outputs = calloc(bytes, sizeof *out->outputs);
    if (!out->names || !out->outputs) return false;
    memcpy(out->names, text, bytes);
    for (char *at = out->names, *end = at; end; at = end + 1) {
        end = strchr(at, ';');
        if (end) *end = '\0';
        char *equals = strrchr(at, '=');
        const int first = out->count;
        if (!equals || equals == at) return false;
        *equals = '\0';
        if (!read_list(equals + 1, out)) return false;
        out->outputs[out->output_count++] = (leat_output_class_weight){.output = at,
                                                                       .weights = out->items + first,
                                                                       .count = out->count - first};
    }
    return true;
}

/* Reads the value of --class-weight.  Returns CLI_SUCCESS, CLI_USAGE without a message, or CLI_FAILURE. */
static int read_weights(const char *text, cli_class_weights *out) {
    if (!reserve(out, strlen(text))) return CLI_FAILURE;
    const bool read = strchr(text, '=') ? read_outputs(text, out) : read_list(text, out);
    return read ? CLI_SUCCESS : CLI_USAGE;
}

static bool is_list(const char *text) {
    cli_class_weights read = {0};
    const int code = read_weights(text, &read);
    cli_class_weights_free(&read);
    return code == CLI_SUCCESS;
}

int cli_check_fit_data(const cli_arguments *a) {
    const char *split = a->text[CLI_VALIDATION_SPLIT], *weights = a->text[CLI_CLASS_WEIGHT];
    double share = 0;
    if (split && a->text[CLI_VALIDATION]) return cli_exclusive("fit", "--validation", "--validation-split");
    if (split && !read_share(split, &share))
        return refuse(CLI_VALIDATION_SPLIT, split, "expected a number between 0 and 1, such as 0.2");
    if (weights && !is_balanced(weights) && !is_list(weights))
        return refuse(
            CLI_CLASS_WEIGHT, weights,
            "expected balanced, or classes with weights, such as 0:1,1:5, or these by output, such as "
            "'a=0:1,1:5;b=0:2,1:1'");
    return CLI_SUCCESS;
}

/* The number of samples of each class. */
typedef struct tally {
    int64_t *counts; /* `room` numbers */
    int64_t room, samples;
} tally;

/* Returns element `i`; NAN for a type that is not supported. */
static double element(const leat_tensor *tensor, int64_t i) {
    const void *data = tensor->data;
    switch (tensor->dtype) {
    case LEAT_BOOL:
    case LEAT_U8: return ((const uint8_t *)data)[i];
    case LEAT_I8: return ((const int8_t *)data)[i];
    case LEAT_I16: return ((const int16_t *)data)[i];
    case LEAT_U16: return ((const uint16_t *)data)[i];
    case LEAT_I32: return ((const int32_t *)data)[i];
    case LEAT_U32: return ((const uint32_t *)data)[i];
    case LEAT_I64: return (double)((const int64_t *)data)[i];
    case LEAT_U64: return (double)((const uint64_t *)data)[i];
    case LEAT_F32: return (double)((const float *)data)[i];
    case LEAT_F64: return ((const double *)data)[i];
    default: return (double)NAN;
    }
}

/* Returns the class of a sample by Keras's rule: the largest of several columns, or the number in a single column. */
static double class_of(const leat_tensor *target, int64_t sample, int64_t columns) {
    if (columns == 1) return element(target, sample);
    int64_t best = 0;
    for (int64_t c = 1; c < columns; ++c)
        if (element(target, sample * columns + c) > element(target, sample * columns + best)) best = c;
    return (double)best;
}

static bool count_class(tally *t, double class_index) {
    if (!(class_index >= 0 && class_index < max_classes) || floor(class_index) != class_index) return false;
    const int64_t index = (int64_t)class_index;
    if (index >= t->room) {
        int64_t room = 2 * index + 16;
        int64_t *grown = realloc(t->counts, (size_t)room * sizeof *grown);
        if (!grown) return false;
        memset(grown + t->room, 0, (size_t)(room - t->room) * sizeof *grown);
        t->counts = grown;
        t->room = room;
    }
    ++t->counts[index];
    ++t->samples;
    return true;
}

static int count_batch(tally *t, const leat_tensor *target) {
    const int64_t columns = target->rank == 2 ? target->shape[1] : 1;
    for (int64_t i = 0; i < target->shape[0]; ++i) {
        double class_index = class_of(target, i, columns);
        if (count_class(t, class_index)) continue;
        cli_say(
            "leat fit: --class-weight balanced: expected targets that are classes from 0 to %d, received %g "
            "in sample %" PRId64 "\n",
            max_classes - 1, class_index, t->samples);
        return CLI_FAILURE;
    }
    return CLI_SUCCESS;
}

/* Takes each batch of one pass from session->feed. */
static int count_pass(cli_session *session, int target, tally *t) {
    const int64_t length = leat_feed_length(session->feed);
    leat_error err = {0};
    cli_progress progress = {0};
    int code = CLI_SUCCESS;
    if (cli_number(session->arguments, CLI_VERBOSE, 1) == 1) cli_progress_begin(&progress);
    for (int64_t taken = 0; taken < length && code == CLI_SUCCESS;) {
        const leat_batch *batch = NULL;
        leat_status status = leat_feed_get(session->feed, &batch, &err);
        if (status != LEAT_OK) {
            code = cli_fail(session, &err);
            break;
        }
        leat_feed_position at = leat_feed_position_get(session->feed);
        if (at.pass > 0) break; /* batches of the first pass were skipped */
        taken = at.ordinal + 1;
        code = count_batch(t, &batch->tensors[target]);
        leat_feed_release(session->feed);
        cli_progress_draw(&progress, (double)taken / (double)length, "counting classes");
    }
    cli_progress_end(&progress);
    return code;
}

/* Checks that the data has one target, which may be a class, and an end.  Returns the target's index; -1: no. */
static int find_target(const leat_sequence *data) {
    const int target = leat_batch_spec_first(&data->spec, LEAT_PART_TARGET);
    const char *problem = NULL;
    if (leat_batch_spec_count(&data->spec, LEAT_PART_TARGET) != 1)
        problem = "expected data with one target";
    else if (data->spec.tensors[target].rank > 1 || data->spec.tensors[target].dtype == LEAT_F16)
        problem = "expected a target that is a class or a row of classes, not of type float16";
    else if (data->next || data->length(data->user) == LEAT_LENGTH_INFINITE)
        problem = "expected data that has an end";
    if (!problem) return target;
    cli_say("leat fit: --class-weight balanced: %s: list the weights, such as 0:1,1:5\n", problem);
    return -1;
}

/* Gives each class of the data the weight samples / (classes * samples of the class), like scikit-learn. */
static int write_balanced(const tally *t, cli_class_weights *out) {
    int classes = 0;
    for (int64_t i = 0; i < t->room; ++i) classes += t->counts[i] > 0;
    if (!reserve(out, (size_t)classes)) return CLI_FAILURE;
    for (int64_t i = 0; i < t->room; ++i)
        if (t->counts[i] > 0)
            out->items[out->count++] =
                (leat_class_weight){i, (double)t->samples / ((double)classes * (double)t->counts[i])};
    return CLI_SUCCESS;
}

static int balance(cli_session *session, cli_class_weights *out) {
    leat_feed_options options = session->feed_options;
    leat_error err = {0};
    tally t = {0};
    const int target = find_target(&session->data);
    if (target < 0) return CLI_USAGE;
    options.shuffle = LEAT_SHUFFLE_NONE;
    if (leat_feed_open(&session->feed, &session->data, &options, &err) != LEAT_OK)
        return cli_fail(session, &err);
    int code = count_pass(session, target, &t);
    leat_feed_close(&session->feed);
    if (code == CLI_SUCCESS) code = write_balanced(&t, out);
    free(t.counts);
    return code;
}

int cli_read_class_weights(cli_session *session, cli_class_weights *out) {
    const char *text = session->arguments->text[CLI_CLASS_WEIGHT];
    if (!text) return CLI_SUCCESS;
    if (is_balanced(text)) return balance(session, out);
    return read_weights(text, out) == CLI_SUCCESS ? CLI_SUCCESS : CLI_FAILURE;
}
