/* SPDX-License-Identifier: Apache-2.0 */
/* `leat feed check`: reads all samples of a source and reports what is wrong.  Room: cli. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sha2.h>

#include "cli/commands/commands.h"
#include "cli/commands/feed/channels.h"
#include "cli/commands/feed/sample.h"
#include "cli/commands/feed/sizes.h"
#include "cli/commands/feed/targets.h"
#include "cli/run/json.h"
#include "cli/run/progress.h"
#include "cli/text/say.h"
#include "leat/source.h"

/* The most bad samples and pairs of equal samples that are listed. */
enum { MAX_LISTED = 20 };

/* What was found out about a sample. */
typedef struct print {
    uint64_t hash[2]; /* checksum of the inputs */
    int64_t number;
    bool is_finite; /* no input or target is NaN or infinite */
} print;

typedef struct check {
    cli_session session;
    cli_samples samples;
    int64_t count, read, skipped;
    cli_targets targets;
    json_t *bad;        /* objects with sample, path and error */
    json_t *not_finite; /* objects with sample and path */
    json_t *same;       /* objects with two samples and their paths */
    int64_t same_count;
    int64_t *original; /* (samples, 2): height and width of each picture in its file; NULL: no pictures */
    cli_sizes sizes;
    cli_channels channels;
    print *prints;
    atomic_llong next, done; /* the next sample to read, and the number of samples that were read */
    atomic_bool stopped;
    pthread_mutex_t lock; /* guards `read`, `skipped`, `prints` and `bad` */
} check;

/* A thread that reads samples. */
typedef struct reader {
    check *check;
    cli_samples samples;
    cli_channels channels; /* of the pictures that this thread has read */
    cli_targets targets;   /* of its samples */
    pthread_t thread;
    int number;
    bool started;
} reader;

/* Returns true if no number of the sample is NaN or infinite. */
static bool is_finite(const leat_batch *batch) {
    for (int i = 0; i < batch->tensor_count; ++i) {
        const float *numbers = batch->tensors[i].data;
        const int64_t count = batch->tensors[i].dtype == LEAT_F32 ? leat_tensor_count(&batch->tensors[i]) : 0;
        for (int64_t k = 0; k < count; ++k)
            if (!isfinite(numbers[k])) return false;
    }
    return true;
}

static print fingerprint(const cli_samples *samples, int64_t number) {
    SHA2_CTX sha;
    unsigned char digest[SHA256_DIGEST_LENGTH];
    print out = {.number = number, .is_finite = is_finite(&samples->batch)};
    SHA256Init(&sha);
    for (int i = 0; i < leat_batch_spec_count(&samples->data->spec, LEAT_PART_INPUT); ++i) {
        const leat_tensor *tensor = &samples->batch.tensors[i];
        SHA256Update(&sha, tensor->data, leat_tensor_bytes(tensor));
    }
    SHA256Final(digest, &sha);
    memcpy(out.hash, digest, sizeof out.hash);
    return out;
}

static int compare_prints(const void *a, const void *b) {
    const print *left = a, *right = b;
    const int order = memcmp(left->hash, right->hash, sizeof left->hash);
    return order != 0 ? order : (left->number > right->number) - (left->number < right->number);
}

/* ---- Reading ---- */

static json_t *path_json(const check *c, int64_t number) {
    char *name = cli_samples_name(&c->samples, number);
    json_t *out = name ? json_string(name) : json_null();
    leat_string_free(name);
    return out;
}

static void note_bad(check *c, int64_t number, const leat_error *err) {
    json_t *text = json_string(err->message);
    json_array_append_new(c->bad, json_pack("{s:I, s:o, s:o}", "sample", (json_int_t)number, "path",
                                            path_json(c, number), "error", text ? text : json_null()));
}

static void note_not_finite(const check *c, int64_t number) {
    json_array_append_new(c->not_finite, json_pack("{s:I, s:o}", "sample", (json_int_t)number, "path",
                                                   path_json(c, number)));
}

/* Reads one sample and notes the result. */
static void read_one(reader *r, int64_t number) {
    check *c = r->check;
    leat_error err = {0};
    print found;
    const leat_status status = cli_samples_read(&r->samples, number, true, &err);
    if (status == LEAT_OK) {
        found = fingerprint(&r->samples, number);
        cli_channels_note(&r->channels, &r->samples.batch.tensors[0]);
        cli_targets_note(&r->targets, &r->samples);
    }
    pthread_mutex_lock(&c->lock);
    if (status == LEAT_OK)
        c->prints[c->read++] = found;
    else
        note_bad(c, number, &err);
    c->skipped += status == LEAT_ESKIPPED;
    pthread_mutex_unlock(&c->lock);
    atomic_fetch_add(&c->done, 1);
}

static void *read_some(void *argument) {
    reader *r = argument;
    check *c = r->check;
    const leat_sequence *data = r->samples.data;
    leat_error err = {0};
    if (data->worker_init && data->worker_init(data->user, r->number, &err) != LEAT_OK) return NULL;
    while (!atomic_load(&c->stopped)) {
        const int64_t number = (int64_t)atomic_fetch_add(&c->next, 1);
        if (number >= c->count) break;
        read_one(r, number);
    }
    if (data->worker_fini) data->worker_fini(data->user, r->number);
    return NULL;
}

/* Shows how far the readers are, until they have read all samples or a signal arrives. */
static void show_progress(check *c) {
    cli_progress progress;
    char text[96];
    cli_progress_begin(&progress);
    while (atomic_load(&c->done) < c->count && !cli_signal_code()) {
        const struct timespec pause = {.tv_nsec = 20000000};
        const int64_t done = (int64_t)atomic_load(&c->done);
        pthread_mutex_lock(&c->lock);
        snprintf(text, sizeof text, "%" PRId64 " samples, %zu bad", done, json_array_size(c->bad));
        pthread_mutex_unlock(&c->lock);
        cli_progress_draw(&progress, (double)done / (double)c->count, text);
        nanosleep(&pause, NULL);
    }
    cli_progress_end(&progress);
    if (cli_signal_code()) atomic_store(&c->stopped, true);
}

/* Compares bad samples by their number. */
static int compare_bad(const void *a, const void *b) {
    const json_int_t left = json_integer_value(json_object_get(*(json_t *const *)a, "sample"));
    const json_int_t right = json_integer_value(json_object_get(*(json_t *const *)b, "sample"));
    return (left > right) - (left < right);
}

/* Compares pairs of equal samples by the number of the second, which no other pair has. */
static int compare_same(const void *a, const void *b) {
    const json_t *left = json_object_get(*(json_t *const *)a, "samples"),
                 *right = json_object_get(*(json_t *const *)b, "samples");
    const json_int_t x = json_integer_value(json_array_get(left, 1)),
                     y = json_integer_value(json_array_get(right, 1));
    return (x > y) - (x < y);
}

/* Puts the items of an array in order, since the readers find them in any order. */
static void sort(json_t *array, int (*compare)(const void *a, const void *b)) {
    const size_t count = json_array_size(array);
    json_t **items = calloc(count ? count : 1, sizeof(json_t *));
    if (!items) return;
    for (size_t i = 0; i < count; ++i) items[i] = json_incref(json_array_get(array, i));
    qsort(items, count, sizeof(json_t *), compare);
    json_array_clear(array);
    for (size_t i = 0; i < count; ++i) json_array_append_new(array, items[i]);
    free(items);
}

/* Reads all samples with a thread for each core. */
static int read_all(check *c) {
    enum { MAX_READERS = 64 };
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t wanted = cores < 1 ? 1 : cores > MAX_READERS ? MAX_READERS : cores;
    const int count = (int)(wanted < c->count ? wanted : c->count);
    reader *readers = calloc((size_t)count, sizeof *readers);
    int code = readers ? CLI_SUCCESS : CLI_FAILURE, started = 0;
    for (int i = 0; i < count && code == CLI_SUCCESS; ++i) {
        readers[i].check = c;
        readers[i].number = i;
        readers[i].channels = c->channels;
        code = cli_samples_share(&readers[i].samples, &c->samples, c->session.command);
        if (code != CLI_SUCCESS) break;
        readers[i].started = pthread_create(&readers[i].thread, NULL, read_some, &readers[i]) == 0;
        started += readers[i].started;
    }
    if (started == 0) code = CLI_FAILURE;
    if (code == CLI_SUCCESS) show_progress(c);
    atomic_store(&c->stopped, code != CLI_SUCCESS || atomic_load(&c->stopped));
    for (int i = 0; readers && i < count; ++i) {
        if (readers[i].started) pthread_join(readers[i].thread, NULL);
        cli_channels_add(&c->channels, &readers[i].channels);
        cli_targets_add(&c->targets, &readers[i].targets);
        cli_samples_close(&readers[i].samples);
    }
    free(readers);
    if (started == 0) cli_say("leat feed check: cannot start a thread\n");
    sort(c->bad, compare_bad);
    for (int64_t i = 0; i < c->read; ++i)
        if (!c->prints[i].is_finite) note_not_finite(c, c->prints[i].number);
    cli_targets_end(&c->targets, &c->samples);
    sort(c->not_finite, compare_bad);
    return code;
}

static void find_same(check *c) {
    qsort(c->prints, (size_t)c->read, sizeof *c->prints, compare_prints);
    for (int64_t i = 1; i < c->read; ++i) {
        const print *first = &c->prints[i - 1], *second = &c->prints[i];
        if (memcmp(first->hash, second->hash, sizeof first->hash) != 0) continue;
        ++c->same_count;
        json_array_append_new(c->same, json_pack("{s:[I, I], s:[o, o]}", "samples", (json_int_t)first->number,
                                                 (json_int_t)second->number, "paths",
                                                 path_json(c, first->number), path_json(c, second->number)));
    }
    sort(c->same, compare_same);
}

/* ---- The report ---- */

static json_t *report(const check *c) {
    return json_pack("{s:I, s:I, s:I, s:o, s:O, s:O, s:o, s:o, s:o, s:I, s:O, s:o}", "samples",
                     (json_int_t)c->count, "readable", (json_int_t)c->read, "skipped", (json_int_t)c->skipped,
                     "classes", cli_targets_classes(&c->targets, &c->samples), "bad", c->bad, "same", c->same,
                     "mean", cli_channels_means(&c->channels), "std", cli_channels_deviations(&c->channels),
                     "sizes", cli_sizes_json(&c->sizes), "not_finite",
                     (json_int_t)json_array_size(c->not_finite), "not_finite_samples", c->not_finite,
                     "mask_values", cli_targets_masks(&c->targets));
}

static int print_json(const check *c) {
    json_t *root = report(c);
    char *text = root ? json_dumps(root, 0) : NULL;
    json_decref(root);
    if (!text) {
        cli_say("leat feed check: out of memory\n");
        return CLI_FAILURE;
    }
    cli_json_text(stdout, text);
    free(text);
    return CLI_SUCCESS;
}

static void print_tensors(const check *c) {
    static const char *const parts[] = {"input", "target", "weight"};
    const leat_batch_spec *spec = &c->session.data.spec;
    for (int i = 0; i < spec->tensor_count; ++i) {
        const leat_tensor_spec *tensor = &spec->tensors[i];
        cli_say_to(stdout, "  %-10s %s (", parts[tensor->part], leat_dtype_name(tensor->dtype));
        for (int k = 0; k < tensor->rank; ++k)
            cli_say_to(stdout, "%s%" PRId64, k ? ", " : "", tensor->shape[k]);
        cli_say_to(stdout, ")\n");
    }
}

/* Returns true if a message names the file of a place, such as "a.npz, row 5". */
static bool names_file(const char *message, const char *place) {
    const char *end = strrchr(place, ',');
    char file[512];
    snprintf(file, sizeof file, "%.*s", (int)(end ? end - place : (ptrdiff_t)strlen(place)), place);
    return message && strstr(message, file);
}

static void print_bad(const check *c) {
    const size_t count = json_array_size(c->bad);
    cli_say_to(stdout, "  cannot be read: %zu\n", count);
    if (c->skipped > 0)
        cli_say_to(stdout, "  left out in training because of bad=skip: %" PRId64 "\n", c->skipped);
    for (size_t i = 0; i < count && i < MAX_LISTED; ++i) {
        const json_t *bad = json_array_get(c->bad, i);
        const char *path = json_string_value(json_object_get(bad, "path"));
        const char *error = json_string_value(json_object_get(bad, "error"));
        const bool is_named = !path || names_file(error, path);
        cli_say_to(stdout, "    sample %" JSON_INTEGER_FORMAT ": %s%s%s\n",
                   json_integer_value(json_object_get(bad, "sample")), is_named ? "" : path,
                   is_named ? "" : ": ", error ? error : "");
    }
    if (count > MAX_LISTED) cli_say_to(stdout, "    and %zu more: --json lists all\n", count - MAX_LISTED);
}

static void print_not_finite(const check *c) {
    const size_t count = json_array_size(c->not_finite);
    if (count > 0) cli_say_to(stdout, "  with NaN or infinity: %zu samples\n", count);
    for (size_t i = 0; i < count && i < MAX_LISTED; ++i) {
        const json_t *item = json_array_get(c->not_finite, i);
        const char *path = json_string_value(json_object_get(item, "path"));
        cli_say_to(stdout, "    sample %" JSON_INTEGER_FORMAT "%s%s\n",
                   json_integer_value(json_object_get(item, "sample")), path ? ": " : "", path ? path : "");
    }
    if (count > MAX_LISTED) cli_say_to(stdout, "    and %zu more: --json lists all\n", count - MAX_LISTED);
}

static void print_same(const check *c) {
    cli_say_to(stdout, "  the same inputs as another sample: %" PRId64 "\n", c->same_count);
    for (size_t i = 0; i < json_array_size(c->same) && i < MAX_LISTED; ++i) {
        const json_t *pair = json_array_get(c->same, i), *paths = json_object_get(pair, "paths");
        const json_t *numbers = json_object_get(pair, "samples");
        const char *first = json_string_value(json_array_get(paths, 0));
        const char *second = json_string_value(json_array_get(paths, 1));
        cli_say_to(stdout, "    samples %" JSON_INTEGER_FORMAT " and %" JSON_INTEGER_FORMAT "%s%s%s%s\n",
                   json_integer_value(json_array_get(numbers, 0)),
                   json_integer_value(json_array_get(numbers, 1)), first ? ": " : "", first ? first : "",
                   second ? " and " : "", second ? second : "");
    }
    if (c->same_count > MAX_LISTED)
        cli_say_to(stdout, "    and %" PRId64 " more: --json lists all\n", c->same_count - MAX_LISTED);
}

static void print_text(const check *c, const char *spec) {
    cli_say_to(stdout, "%s: %" PRId64 " samples\n", spec, c->count);
    print_tensors(c);
    cli_sizes_print(&c->sizes);
    cli_channels_print(&c->channels);
    cli_targets_print(&c->targets, &c->samples);
    print_bad(c);
    print_not_finite(c);
    print_same(c);
}

/* Asks a source of pictures for the sizes that the pictures have in their files. */
static void ask_for_sizes(check *c) {
    c->original = calloc((size_t)c->count, 2 * sizeof *c->original);
    if (c->original && leat_source_note_sizes(&c->session.data, c->original, NULL) == LEAT_OK) return;
    free(c->original);
    c->original = NULL;
}

static int run(check *c, const cli_arguments *arguments) {
    int code = cli_samples_open(&c->samples, &c->session, arguments->operands[0]);
    if (code != CLI_SUCCESS) return code;
    c->count = cli_samples_count(&c->samples);
    c->channels = cli_channels_of(&c->session.data.spec);
    c->prints = calloc((size_t)c->count, sizeof *c->prints);
    c->bad = json_array();
    c->same = json_array();
    c->not_finite = json_array();
    if (!c->prints || !c->bad || !c->same || !c->not_finite) {
        cli_say("leat feed check: out of memory\n");
        return CLI_FAILURE;
    }
    ask_for_sizes(c);
    cli_catch_signals(&c->session);
    code = read_all(c);
    if (cli_signal_code()) return cli_signal_code();
    if (code != CLI_SUCCESS) return code;
    find_same(c);
    c->sizes = cli_sizes_of(c->original, c->count);
    if (!arguments->text[CLI_JSON])
        print_text(c, arguments->operands[0]);
    else if (print_json(c) != CLI_SUCCESS)
        return CLI_FAILURE;
    return json_array_size(c->bad) > 0 ? CLI_FAILURE : CLI_SUCCESS;
}

int cli_feed_check(const cli_arguments *arguments) {
    check *c = calloc(1, sizeof *c);
    if (!c) {
        cli_say("leat feed check: out of memory\n");
        return CLI_FAILURE;
    }
    c->session = (cli_session){.command = "feed check", .arguments = arguments};
    pthread_mutex_init(&c->lock, NULL);
    int code = run(c, arguments);
    cli_samples_close(&c->samples);
    cli_close(&c->session);
    json_decref(c->bad);
    json_decref(c->same);
    json_decref(c->not_finite);
    pthread_mutex_destroy(&c->lock);
    free(c->prints);
    free(c->original);
    free(c);
    return code;
}
