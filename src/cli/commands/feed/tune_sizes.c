/* SPDX-License-Identifier: Apache-2.0 */
/* `leat feed tune --batch-sizes`: reads the sizes, compares them, prints the comparison.  Room: cli. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/feed/tune.h"
#include "cli/run/json.h"
#include "cli/text/say.h"

/* A larger batch size is recommended only if it brings more than this share of samples per second. */
static const double size_tie = 0.1;

/* ---- The list of sizes ---- */

static int compare_sizes(const void *a, const void *b) {
    int64_t first = ((const cli_tuning *)a)->batch_size, second = ((const cli_tuning *)b)->batch_size;
    return first < second ? -1 : first > second;
}

static bool has_size(const cli_tunings *tunings, int64_t size) {
    for (int i = 0; i < tunings->count; ++i)
        if (tunings->sizes[i].batch_size == size) return true;
    return false;
}

bool cli_tune_read_sizes(const char *text, cli_tunings *out) {
    const char *at = text;
    out->count = 0;
    do {
        char *end = NULL;
        long long size = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : 0;
        if (size < 1 || size > INT32_MAX || (*end != ',' && *end != '\0') || out->count == CLI_TUNE_SIZES ||
            has_size(out, size)) {
            cli_say("leat feed tune: --batch-sizes '%s' is not a list of 1 to %d different integers from 1 "
                    "to %d, such "
                    "as 64,256,1024\n",
                    text, CLI_TUNE_SIZES, INT32_MAX);
            return false;
        }
        out->sizes[out->count++].batch_size = size;
        at = *end == ',' ? end + 1 : NULL;
    } while (at);
    qsort(out->sizes, (size_t)out->count, sizeof *out->sizes, compare_sizes);
    return true;
}

/* ---- The comparison ---- */

static const cli_trial *best_trial(const cli_tuning *tuning) {
    return &tuning->rows[cli_tune_best(tuning)];
}

static double samples_per_second(const cli_tuning *tuning) {
    const cli_trial *trial = best_trial(tuning);
    return trial->rate * trial->samples;
}

/* Returns the memory of a training step and of the queue. */
static int64_t memory(const cli_tuning *tuning) {
    int queue = best_trial(tuning)->setting.workers > 0 ? best_trial(tuning)->setting.queue : 0;
    return tuning->arena_bytes + tuning->batch_bytes * (queue + 1);
}

/* Returns the learning rate by the usual rules of thumb: it grows with the batch size for SGD ("Accurate, Large
 * Minibatch SGD", Goyal et al. 2017), with its square root for optimizers that divide by the gradient's size ("On the
 * SDEs and Scaling Rules for Adaptive Gradient Algorithms", Malladi et al. 2022). */
static double scaled_rate(const cli_tunings *tunings, const cli_tuning *tuning) {
    double ratio = (double)tuning->batch_size / (double)tunings->base_size;
    return tunings->learning_rate * (tunings->is_sgd ? ratio : sqrt(ratio));
}

static double fastest_rate(const cli_tunings *tunings) {
    double fastest = 0;
    for (int i = 0; i < tunings->count; ++i) fastest = fmax(fastest, samples_per_second(&tunings->sizes[i]));
    return fastest;
}

int cli_tune_best_size(const cli_tunings *tunings) {
    double fastest = fastest_rate(tunings);
    int best = 0;
    while (samples_per_second(&tunings->sizes[best]) < fastest * (1 - size_tie)) ++best;
    return best;
}

static void explain(const cli_tunings *tunings, int best, char *out, size_t bytes) {
    const cli_tuning *chosen = &tunings->sizes[best];
    const cli_tuning *last = &tunings->sizes[tunings->count - 1];
    double gain = fastest_rate(tunings) / samples_per_second(chosen) - 1;
    if (tunings->count == 1)
        snprintf(out, bytes, "One batch size was measured.");
    else if (chosen == last)
        snprintf(out, bytes,
                 "Samples per second grow up to the largest batch size, %" PRId64 ": larger ones may bring "
                 "more.",
                 chosen->batch_size);
    else if (gain < 0.01)
        snprintf(out, bytes,
                 "Batches of more than %" PRId64
                 " samples bring no more samples per second on this machine, and "
                 "fewer updates of the weights in an epoch.",
                 chosen->batch_size);
    else
        snprintf(out, bytes,
                 "Batches of more than %" PRId64 " samples bring at most %.0f %% more samples per second on "
                 "this machine, and fewer updates of the weights in an epoch.",
                 chosen->batch_size, 100 * gain);
}

/* ---- The output ---- */

static const char *memory_text(char out[32], int64_t bytes) {
    if (bytes < INT64_C(10) << 20)
        snprintf(out, 32, "%.1f KiB", (double)bytes / 1024);
    else
        snprintf(out, 32, "%.1f MiB", (double)bytes / (1 << 20));
    return out;
}

static void print_size(const cli_tunings *tunings, const cli_tuning *tuning, bool best) {
    char options[128], bytes[32], steps[24] = "-";
    cli_tune_options_text(&best_trial(tuning)->setting, options, sizeof options);
    if (tuning->steps_per_epoch > 0) snprintf(steps, sizeof steps, "%" PRId64, tuning->steps_per_epoch);
    printf("%10" PRId64 "  %9.0f  %11s  %12s  %13.4g  %s%s\n", tuning->batch_size, samples_per_second(tuning),
           steps, memory_text(bytes, memory(tuning)), scaled_rate(tunings, tuning), options,
           best ? "  <- best" : "");
}

void cli_tune_print_sizes(const cli_tunings *tunings) {
    char text[1024];
    int best = cli_tune_best_size(tunings);
    const cli_tuning *chosen = &tunings->sizes[best];
    fputs("batch size  samples/s  steps/epoch        memory  learning rate  options\n", stdout);
    for (int i = 0; i < tunings->count; ++i) print_size(tunings, &tunings->sizes[i], i == best);
    explain(tunings, best, text, sizeof text);
    printf("%s\n", text);
    cli_tune_explain(chosen, cli_tune_best(chosen), text, sizeof text);
    printf("%s\n", text);
    printf("The learning rates scale the model's, %.4g, from batch size %" PRId64
           " with %s: a rule of thumb to start "
           "from.\n",
           tunings->learning_rate, tunings->base_size,
           tunings->is_sgd ? "the batch size, for SGD" : "the square root of the batch size");
    cli_tune_options_text(&best_trial(chosen)->setting, text, sizeof text);
    printf("for leat fit: --batch-size %" PRId64 " %s\n", chosen->batch_size, text);
}

static void print_json_number(const char *name, double value) {
    printf(", \"%s\": ", name);
    cli_json_number(stdout, value);
}

void cli_tune_print_sizes_json(const cli_tunings *tunings) {
    char text[1024];
    int best = cli_tune_best_size(tunings);
    printf("{\"batch_sizes\": [");
    for (int i = 0; i < tunings->count; ++i) {
        const cli_tuning *tuning = &tunings->sizes[i];
        printf("%s{\"batch_size\": %" PRId64, i ? ", " : "", tuning->batch_size);
        print_json_number("samples_per_second", samples_per_second(tuning));
        if (tuning->steps_per_epoch > 0) printf(", \"steps_per_epoch\": %" PRId64, tuning->steps_per_epoch);
        printf(", \"memory_bytes\": %" PRId64, memory(tuning));
        print_json_number("learning_rate", scaled_rate(tunings, tuning));
        fputs(", \"tuning\": ", stdout);
        cli_tune_print_json(tuning);
        putchar('}');
    }
    printf("], \"best\": %d, \"why\": ", best);
    explain(tunings, best, text, sizeof text);
    cli_json_string(stdout, text);
    putchar('}');
}
