/* SPDX-License-Identifier: Apache-2.0 */
/* Explores the model at several sizes, and each mutation at a size at which it fails. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "feed/model/ring_model.h"

#define MOST_STATES 50000000u

typedef struct model_size {
    const char *name;
    bool full; /* explored only with --full */
    model_config config;
} model_size;

#define AT(r, w, q, t)  .rings = (r), .workers = (w), .queue = (q), .tickets = (t)
#define DEATHS(n, most) .deaths = (n), .max_deaths = (most), .processes = true

static const model_size sizes[] = {
    {"1 worker", false, {AT(1, 1, 2, 5)}},
    {"1 worker, a stop", false, {AT(1, 1, 1, 4), .stops = 1, .spurious = true}},
    {"1 worker, 2 deaths", false, {AT(1, 1, 1, 3), DEATHS(2, 2)}},
    {"1 worker, a death and a stop", false, {AT(1, 1, 1, 2), DEATHS(1, 1), .stops = 1, .spurious = true}},
    {"2 workers", false, {AT(1, 2, 1, 4)}},
    {"2 workers, a stop", false, {AT(1, 2, 1, 2), .stops = 1}},
    {"2 workers, a death", false, {AT(1, 2, 1, 2), DEATHS(1, 1)}},
    {"2 workers, passes", false, {AT(1, 2, 1, 3), .pass_length = 1}},
    {"1 worker, passes, new workers, a death",
     false,
     {AT(1, 1, 1, 3), .pass_length = 1, .refork = true, DEATHS(1, 2)}},
    {"2 rings, 1 worker", false, {AT(2, 1, 1, 3)}},
    {"a generator, 2 workers", false, {AT(1, 2, 1, 3), .generator = true}},
    {"a generator, 1 worker, a death", false, {AT(1, 1, 2, 3), DEATHS(1, 2), .generator = true}},

    {"2 workers, 3 slots", true, {AT(1, 2, 2, 5)}},
    {"3 workers", true, {AT(1, 3, 1, 3)}},
    {"2 workers, spurious returns, a stop", true, {AT(1, 2, 1, 4), .stops = 1, .spurious = true}},
    {"2 workers, a death, 3 tickets", true, {AT(1, 2, 1, 3), DEATHS(1, 1)}},
    {"2 workers, 2 deaths", true, {AT(1, 2, 1, 2), DEATHS(2, 2)}},
    {"2 workers, passes, new workers, a death",
     true,
     {AT(1, 2, 1, 2), .pass_length = 1, .refork = true, DEATHS(1, 2)}},
    {"2 workers, 4 slots", true, {AT(1, 2, 3, 6)}},
    {"3 workers, a death", true, {AT(1, 3, 1, 1), DEATHS(1, 2)}},
    {"2 rings, 2 workers", true, {AT(2, 2, 1, 2)}},
    {"2 rings, 2 workers, a death", true, {AT(2, 2, 1, 1), DEATHS(1, 1)}},
    {"2 rings, 1 worker, a death", true, {AT(2, 1, 1, 2), DEATHS(1, 2)}},
    {"2 rings, 1 worker, passes, new workers",
     true,
     {AT(2, 1, 1, 2), .pass_length = 1, .refork = true, DEATHS(1, 2)}},
    {"a generator and a ring, 2 workers", true, {AT(2, 2, 1, 2), .generator = true}},
    {"a generator and a ring, 1 worker, a death", true, {AT(2, 1, 1, 2), DEATHS(1, 2), .generator = true}},
};

typedef struct mutation_case {
    explorer_verdict expected;
    model_config config;
} mutation_case;

static const mutation_case mutations[] = {
    [MODEL_WORKER_LOOKS_ONCE] = {EXPLORER_STUCK, {AT(1, 1, 1, 3)}},
    [MODEL_CONSUMER_LOOKS_ONCE] = {EXPLORER_STUCK, {AT(1, 1, 1, 2)}},
    [MODEL_WORKER_LOADS_LATE] = {EXPLORER_STUCK, {AT(1, 1, 1, 3)}},
    [MODEL_CONSUMER_LOADS_LATE] = {EXPLORER_STUCK, {AT(1, 1, 1, 2)}},
    [MODEL_WORKER_ANNOUNCES_LATE] = {EXPLORER_STUCK, {AT(1, 1, 1, 3)}},
    [MODEL_CONSUMER_ANNOUNCES_LATE] = {EXPLORER_STUCK, {AT(1, 1, 1, 2)}},
    [MODEL_AWAITED_EARLY] = {EXPLORER_STUCK, {AT(1, 1, 1, 2)}},
    [MODEL_READY_EARLY] = {EXPLORER_MISTAKE, {AT(1, 1, 1, 2)}},
    [MODEL_ISSUED_EARLY] = {EXPLORER_STUCK, {AT(1, 1, 1, 2)}},
    [MODEL_OPEN_EARLY] = {EXPLORER_MISTAKE, {AT(1, 2, 1, 3)}},
    [MODEL_ISSUED_TOO_FAR] = {EXPLORER_MISTAKE, {AT(1, 2, 2, 3)}},
    [MODEL_HINT_BEFORE_CLAIM] = {EXPLORER_STUCK, {AT(1, 1, 1, 1), DEATHS(1, 2)}},
    [MODEL_HINT_BY_CLAIMER] = {EXPLORER_ENDLESS, {AT(1, 2, 1, 1)}},
    [MODEL_CLAIM_IN_TWO] = {EXPLORER_MISTAKE, {AT(1, 2, 2, 3)}},
    [MODEL_ONE_RING_SEEN] = {EXPLORER_STUCK, {AT(2, 1, 1, 2)}},
    [MODEL_WAKE_COUNTED] = {EXPLORER_STUCK, {AT(1, 2, 1, 3), .generator = true}},
    [MODEL_NO_WAKE_BEFORE_SLEEP] = {EXPLORER_STUCK, {AT(1, 1, 1, 3)}},
    [MODEL_NO_NUDGE] = {EXPLORER_STUCK, {AT(1, 1, 1, 1), DEATHS(1, 2)}},
    [MODEL_NO_TAKE_OVER] = {EXPLORER_STUCK, {AT(1, 1, 1, 1), DEATHS(1, 2)}},
    [MODEL_INHERITS_ENDED] = {EXPLORER_MISTAKE, {AT(2, 1, 1, 1), DEATHS(1, 2), .generator = true}},
    [MODEL_NO_REPLACEMENT] = {EXPLORER_STUCK, {AT(1, 1, 1, 1), DEATHS(1, 2)}},
    [MODEL_DEATHS_UNCOUNTED] = {EXPLORER_MISTAKE, {AT(1, 1, 1, 1), DEATHS(1, 1)}},
    [MODEL_REPLACED_EARLY] = {EXPLORER_MISTAKE, {AT(1, 1, 1, 1), DEATHS(1, 1)}},
    [MODEL_LATE_NOT_KILLED] = {EXPLORER_MISTAKE, {AT(1, 2, 1, 3), DEATHS(1, 2)}},
    [MODEL_FAILED_LATE] = {EXPLORER_MISTAKE, {AT(1, 1, 1, 1), DEATHS(1, 2), .generator = true}},
    [MODEL_ANYBODY_CLAIMS] = {EXPLORER_MISTAKE, {AT(1, 2, 2, 3), .generator = true}},
    [MODEL_OWNER_REPLACED] = {EXPLORER_MISTAKE, {AT(1, 1, 1, 1), DEATHS(1, 2), .generator = true}},
    [MODEL_HELPER_REPORTED_EARLY] = {EXPLORER_MISTAKE,
                                     {AT(1, 1, 1, 1), .stops = 1, .processes = true, .spurious = true}},
    [MODEL_STOP_WITHOUT_WAKE] = {EXPLORER_STUCK, {AT(1, 1, 1, 2), .stops = 1}},
    [MODEL_RETIRE_WITHOUT_WAKE] = {EXPLORER_STUCK, {AT(1, 1, 1, 2), .pass_length = 1, .refork = true}},
};

typedef struct mutation_name {
    const char *name, *text;
} mutation_name;

static const mutation_name names[] = {{NULL, NULL},
#define X(name, text) {#name, text},
                                      MODEL_MUTATIONS(X)
#undef X
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static explorer_result explore(const char *name, const model_config *config, FILE *trace) {
    static const char *const verdicts[] = {"right", "mistake", "stuck", "endless", "too large"};
    explorer_model model = model_of(config);
    double start = now();
    explorer_result result = explorer_run(&model, MOST_STATES, trace);
    printf("%-42s rings %d workers %d slots %d tickets %d %9llu states %9llu steps %6.1f s  %s", name,
           config->rings, config->workers, config->queue + 1, config->tickets,
           (unsigned long long)result.states, (unsigned long long)result.steps, now() - start,
           verdicts[result.verdict]);
    if (result.why) printf(" after %u steps: %s", result.trace, result.why);
    printf("\n");
    fflush(stdout);
    return result;
}

static bool check_mutation(model_mutation mutation, FILE *trace) {
    const mutation_case *test = &mutations[mutation];
    model_config config = test->config;
    config.mutation = mutation;
    if (trace) fprintf(trace, "%s: %s\n", names[mutation].name, names[mutation].text);
    if (explore(names[mutation].name, &config, trace).verdict == test->expected) return true;
    printf("%s did not fail as expected: %s\n", names[mutation].name, names[mutation].text);
    return false;
}

/* Prints how a mutation fails. */
static int show(const char *name) {
    for (int m = 1; m < MODEL_MUTATION_COUNT; ++m)
        if (strcmp(name, names[m].name) == 0) return !check_mutation((model_mutation)m, stdout);
    fprintf(stderr, "ring_check: no mutation '%s'\n", name);
    return 2;
}

int main(int argc, char **argv) {
    bool full = argc == 2 && strcmp(argv[1], "--full") == 0;
    if (argc == 3 && strcmp(argv[1], "--trace") == 0) return show(argv[2]);
    if (argc > 1 && !full) {
        fprintf(stderr, "usage: ring_check [--full | --trace MUTATION]\n");
        return 2;
    }
    int wrong = 0;
    for (int m = 1; m < MODEL_MUTATION_COUNT; ++m) wrong += !check_mutation((model_mutation)m, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        if (full || !sizes[i].full)
            wrong += explore(sizes[i].name, &sizes[i].config, stdout).verdict != EXPLORER_RIGHT;
    return wrong != 0;
}
