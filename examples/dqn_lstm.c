/* SPDX-License-Identifier: Apache-2.0 */
/* Deep Q-learning with an LSTM balances a pole on a cart whose speeds are not observed.  Each iteration acts for some
 * thousand steps, with one prediction per step, and then trains the network on windows from a replay memory.
 *
 *     cc dqn_lstm.c cartpole.c -o dqn_lstm $(pkg-config --cflags --libs leat) -lm && ./dqn_lstm --seed 1
 *
 * Mnih et al. 2015 (replay, target network), van Hasselt et al. 2016 (double Q-learning), Hausknecht and Stone 2015
 * (windows of episodes; the LSTM's state is zero at the start of a window), Watkins 1989 (Q(lambda)). */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cartpole.h"
#include "leat/leat.h"

enum { seen = cartpole_observed, actions = cartpole_actions, memory_steps = 200000 };

typedef struct settings {
    int64_t seed, iterations, steps, passes, batches, batch_size, window, units, explore, workers, threads;
    int64_t stream, json;
} settings;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- The network: Q of both actions at each step of a window, times a mask ---- */

static leat_status build(leat_model **out, const settings *s, leat_error *err) {
    leat_builder *builder = NULL;
    leat_status status = leat_builder_create(&builder, err);
    if (status != LEAT_OK) return status;
    leat_node *inputs[2] = {leat_input(builder, (int64_t[]){-1, seen}, 2),
                            leat_input(builder, (int64_t[]){-1, actions}, 2)};
    leat_node *q = leat_dense(leat_lstm(inputs[0], s->units, true), actions, NULL);
    leat_node *masked = leat_merge((leat_node *[]){q, inputs[1]}, 2, "Multiply", NULL);
    status = leat_model_create(out, &builder, inputs, 2, &masked, 1, err);
    if (status != LEAT_OK) return status;
    leat_compile_options compile = leat_compile_options_default();
    compile.optimizer = "adam";
    compile.loss = "mse";
    status = leat_model_compile(*out, &compile, err);
    return status == LEAT_OK ? leat_model_initialize(*out, (uint64_t)s->seed, err) : status;
}

/* Compiles the network for `count` windows of `steps` steps, or, with stream, for one step per call.  Nothing is
 * masked. */
static leat_status compile(leat_predictor **out, leat_model *model, int64_t count, int64_t steps, bool stream,
                           leat_error *err) {
    leat_tensor inputs[2] = {leat_tensor_view(LEAT_F32, 3, (int64_t[]){count, steps, seen}, NULL),
                             leat_tensor_view(LEAT_F32, 3, (int64_t[]){count, steps, actions}, NULL)};
    leat_predictor_options options = leat_predictor_options_default();
    options.batch_size = count;
    options.streaming = stream;
    options.inputs = inputs;
    leat_status status = leat_predictor_create(out, model, &options, err);
    if (status != LEAT_OK) return status;
    float *mask = leat_predictor_input(*out, 1).data;
    for (int64_t i = 0; i < count * steps * actions; ++i) mask[i] = 1;
    return LEAT_OK;
}

/* ---- The replay memory: a Sequence that draws its batches from the last steps ---- */

typedef enum ending { GOES_ON, FELL, WAS_CUT } ending;

typedef struct step {
    float seen[seen];
    int action;
    ending end;
} step;

typedef struct replay {
    const settings *settings;
    step *steps; /* a ring buffer of memory_steps steps */
    int64_t first, count;
    leat_model *online;
    leat_predictor *chooser, *target; /* the online network with older weights */
} replay;

static void remember(replay *r, step one) {
    r->steps[(r->first + r->count) % memory_steps] = one;
    if (r->count < memory_steps)
        ++r->count;
    else
        r->first = (r->first + 1) % memory_steps;
}

/* Copies a window from `start` on: the observations up to the end of the episode, then zeros.  Returns the number of
 * observations. */
static int64_t cut_window(const replay *r, int64_t start, float *windows) {
    int64_t window = r->settings->window, used = 0;
    bool ended = false;
    memset(windows, 0, (size_t)(window * seen) * sizeof *windows);
    for (; used < window && !ended; ++used) {
        const step *one = &r->steps[(r->first + start + used) % memory_steps];
        memcpy(windows + used * seen, one->seen, sizeof one->seen);
        ended = one->end != GOES_ON;
    }
    return used;
}

/* y_t = r_t + 0.99 v, where v = Q_target(s_t+1, a) with a = argmax Q_chooser(s_t+1, .); if a is the action that was
 * taken next, v = 0.2 Q_target(s_t+1, a) + 0.8 y_t+1 (Watkins's Q(lambda)).  The reward is that of Barto, Sutton and
 * Anderson: -1 for a fall, otherwise 0.  Masked are actions that were not taken, and the last step of a window, whose
 * outcome is not in the window. */
static void set_targets(const replay *r, int64_t start, int64_t used, const float *chooser,
                        const float *target, float *mask, float *y) {
    int64_t window = r->settings->window;
    memset(mask, 0, (size_t)(window * actions) * sizeof *mask);
    memset(y, 0, (size_t)(window * actions) * sizeof *y);
    for (int64_t t = used - 1, next = -1; t >= 0; --t) {
        const step *one = &r->steps[(r->first + start + t) % memory_steps];
        int64_t place = t * actions + one->action, after = (t + 1) * actions;
        if (one->end == WAS_CUT || (one->end == GOES_ON && t + 1 == used)) continue;
        mask[place] = 1;
        if (one->end == FELL) {
            y[place] = -1;
        } else {
            int64_t best = after + (chooser[after + 1] > chooser[after]);
            y[place] = 0.99f * (next == best ? 0.2f * target[best] + 0.8f * y[next] : target[best]);
        }
        next = place;
    }
}

static int64_t replay_length(void *user) {
    const replay *r = user;
    return r->settings->batches;
}

static leat_status replay_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    const replay *r = user;
    const settings *s = r->settings;
    float *windows = batch->tensors[0].data, *mask = batch->tensors[1].data, *y = batch->tensors[2].data;
    const void *inputs[2] = {windows, NULL};
    leat_rng again = *rng; /* to draw the same windows a second time */
    uint64_t starts = (uint64_t)(r->count - s->window);
    (void)index;
    for (int64_t i = 0; i < batch->size; ++i)
        cut_window(r, (int64_t)leat_rng_below(rng, starts), windows + i * s->window * seen);
    leat_status status = leat_predictor_run(r->chooser, inputs, NULL, err);
    if (status == LEAT_OK) status = leat_predictor_run(r->target, inputs, NULL, err);
    const float *chooser = leat_predictor_output(r->chooser, 0).data;
    const float *target = leat_predictor_output(r->target, 0).data;
    for (int64_t i = 0; status == LEAT_OK && i < batch->size; ++i) {
        int64_t start = (int64_t)leat_rng_below(&again, starts), at = i * s->window * actions;
        int64_t used = cut_window(r, start, windows + i * s->window * seen);
        set_targets(r, start, used, chooser + at, target + at, mask + at, y + at);
    }
    return status;
}

/* The chooser takes the weights that were published before, the target network the current ones.  This is safe here: no
 * batch is made between two passes. */
static leat_status replay_on_epoch_end(void *user, int64_t pass, leat_error *err) {
    replay *r = user;
    (void)pass;
    leat_status status = leat_predictor_sync(r->chooser, err); /* weights of the pass before */
    if (status == LEAT_OK) status = leat_model_publish(r->online, err);
    return status == LEAT_OK ? leat_predictor_sync(r->target, err) : status;
}

static leat_status replay_open(leat_sequence *out, replay *r, leat_error *err) {
    int64_t shape[2] = {r->settings->window, seen}, mask[2] = {r->settings->window, actions};
    *out = leat_sequence_default();
    out->user = r;
    out->length = replay_length;
    out->get = replay_get;
    out->on_epoch_end = replay_on_epoch_end;
    out->spec.batch_size = r->settings->batch_size;
    leat_status status = leat_batch_spec_add(&out->spec, LEAT_PART_INPUT, NULL, LEAT_F32, 2, shape, err);
    if (status == LEAT_OK)
        status = leat_batch_spec_add(&out->spec, LEAT_PART_INPUT, NULL, LEAT_F32, 2, mask, err);
    if (status == LEAT_OK)
        status = leat_batch_spec_add(&out->spec, LEAT_PART_TARGET, NULL, LEAT_F32, 2, mask, err);
    return status;
}

/* ---- Acting: one prediction per step ---- */

typedef struct player {
    cartpole pole;
    leat_rng rng;
    leat_predictor *actor;
    float *
        window; /* (window, seen), the actor's input: the last steps of the episode; with stream, this step */
    int64_t filled; /* steps in it; at most window - 1, since training masks the last step of a window */
} player;

typedef struct record {
    int64_t episodes, returned;
    double acting_s, predictions_s, fit_s, waiting_s, computing_s, loss;
} record;

static void begin(player *p) {
    cartpole_reset(&p->pole, &p->rng);
    leat_predictor_reset(p->actor);
    p->filled = 0;
}

static void look(player *p, const settings *s) {
    if (s->stream) p->filled = 0; /* the actor keeps its state */
    if (p->filled == s->window - 1)
        memmove(p->window, p->window + seen, (size_t)((--p->filled) * seen) * sizeof *p->window);
    cartpole_observe(&p->pole, p->window + p->filled++ * seen);
}

static leat_status play(player *p, replay *r, int64_t steps, double explore, record *log, leat_error *err) {
    const settings *s = r->settings;
    double began = now_s();
    for (int64_t i = 0; i < steps; ++i) {
        look(p, s);
        double asked = now_s();
        leat_status status = leat_predictor_run(p->actor, NULL, NULL, err);
        if (status != LEAT_OK) return status;
        log->predictions_s += now_s() - asked;
        const float *q = leat_predictor_output(p->actor, 0).data;
        q += (p->filled - 1) * actions;
        step one = {.action = q[1] > q[0]};
        memcpy(one.seen, p->window + (p->filled - 1) * seen, sizeof one.seen);
        if (leat_rng_uniform(&p->rng) < explore) one.action = (int)leat_rng_below(&p->rng, actions);
        bool stands = cartpole_step(&p->pole, one.action);
        one.end = !stands ? FELL : p->pole.steps == cartpole_limit ? WAS_CUT : GOES_ON;
        remember(r, one);
        if (one.end == GOES_ON) continue;
        ++log->episodes;
        log->returned += p->pole.steps;
        begin(p);
    }
    log->acting_s += now_s() - began;
    return LEAT_OK;
}

/* ---- An iteration ---- */

static leat_status learn(replay *r, const leat_sequence *sequence, int64_t iteration, record *log,
                         leat_verdict *verdict, leat_error *err) {
    const settings *s = r->settings;
    leat_fit_options fit = leat_fit_options_default();
    leat_history *history = NULL;
    fit.initial_epoch = iteration * s->passes;
    fit.epochs = (iteration + 1) * s->passes;
    fit.seed = (uint64_t)s->seed;
    fit.workers = (int)s->workers;
    fit.threads = (int)s->threads;
    fit.verbose = 0;
    leat_model_set_learning_rate(r->online, 0.002 * (1 - 0.9 * (double)iteration / (double)s->iterations));
    double began = now_s();
    leat_status status = leat_model_fit_generator(r->online, sequence, &fit, &history, err);
    log->fit_s = now_s() - began;
    if (status == LEAT_OK) {
        int count = 0;
        const double *loss = leat_history_values(history, "loss", &count);
        *verdict = leat_history_verdict(history);
        log->loss = count ? loss[count - 1] : 0;
        log->waiting_s = (double)verdict->data_wait_ns / 1e9;
        log->computing_s = (double)verdict->compute_ns / 1e9;
    }
    leat_history_destroy(&history);
    return status;
}

static double mean_return(const record *log) {
    return log->episodes ? (double)log->returned / (double)log->episodes : 0;
}

static void print(const settings *s, int64_t iteration, const record *log) {
    const char *format =
        s->json ? "{\"iteration\": %d, \"return\": %.2f, \"loss\": %.6g, \"environment_s\": %.4f, "
                  "\"predictions_s\": %.4f, \"fit_s\": %.4f, \"waiting_s\": %.4f, "
                  "\"computing_s\": %.4f}\n"
                : "iteration %2d: return %6.1f, loss %.5f; environment %.2f s, predictions %.2f s, "
                  "fit %.2f s (waiting %.2f, computing %.2f)\n";
    printf(format, (int)iteration + 1, mean_return(log), log->loss, log->acting_s - log->predictions_s,
           log->predictions_s, log->fit_s, log->waiting_s, log->computing_s);
    fflush(stdout);
}

static leat_status run(const settings *s, player *p, replay *r, leat_error *err) {
    leat_sequence sequence = {0};
    leat_verdict verdict = {0};
    leat_status status = replay_open(&sequence, r, err);
    begin(p);
    for (int64_t i = 0; status == LEAT_OK && i < s->iterations; ++i) {
        record log = {0};
        double explore = 1 - 0.95 * (double)i / (double)s->explore;
        status = play(p, r, s->steps, explore > 0.05 ? explore : 0.05, &log, err);
        if (status == LEAT_OK) status = learn(r, &sequence, i, &log, &verdict, err);
        if (status == LEAT_OK) status = leat_predictor_sync(p->actor, err);
        if (status == LEAT_OK) print(s, i, &log);
    }
    record last = {0};
    begin(p);
    for (int64_t i = 0; status == LEAT_OK && last.episodes < 10; ++i) status = play(p, r, 1, 0, &last, err);
    if (status == LEAT_OK) fprintf(stderr, "fit: %s\n", verdict.text);
    if (status == LEAT_OK)
        fprintf(stderr, "ten episodes without exploration: %.1f of %d steps\n", mean_return(&last),
                cartpole_limit);
    leat_sequence_destroy(&sequence);
    return status;
}

static leat_status prepare(const settings *s, player *p, replay *r, leat_error *err) {
    r->steps = calloc(memory_steps, sizeof *r->steps);
    if (!r->steps) return leat_error_set(err, LEAT_ENOMEM, "no memory for %d steps", memory_steps);
    leat_status status = build(&r->online, s, err);
    if (status == LEAT_OK) status = compile(&r->chooser, r->online, s->batch_size, s->window, false, err);
    if (status == LEAT_OK) status = compile(&r->target, r->online, s->batch_size, s->window, false, err);
    if (status == LEAT_OK)
        status = compile(&p->actor, r->online, 1, s->stream ? 1 : s->window, s->stream, err);
    if (status == LEAT_OK) p->window = leat_predictor_input(p->actor, 0).data;
    return status;
}

/* ---- The program ---- */

static bool parse(settings *s, int argc, char **argv) {
    const struct {
        const char *word;
        int64_t *number;
    } options[] = {{"--seed", &s->seed},       {"--iterations", &s->iterations},
                   {"--steps", &s->steps},     {"--passes", &s->passes},
                   {"--batches", &s->batches}, {"--batch-size", &s->batch_size},
                   {"--window", &s->window},   {"--units", &s->units},
                   {"--explore", &s->explore}, {"--workers", &s->workers},
                   {"--threads", &s->threads}, {"--stream", &s->stream},
                   {"--json", &s->json}};
    const size_t count = sizeof options / sizeof options[0];
    for (int i = 1; i < argc; i += 2) {
        size_t k = 0;
        char *end = NULL;
        while (k < count && strcmp(argv[i], options[k].word) != 0) ++k;
        if (k == count || i + 1 == argc) return false;
        *options[k].number = strtoll(argv[i + 1], &end, 10);
        if (*end != '\0' || *options[k].number < 0) return false;
    }
    return s->steps > s->window && s->batch_size > 0 && s->window > 1 && s->explore > 0 && s->workers < 2;
}

int main(int argc, char **argv) {
    settings s = {.seed = 1,
                  .iterations = 20,
                  .steps = 20000,
                  .passes = 8,
                  .batches = 40,
                  .batch_size = 64,
                  .window = 16,
                  .units = 64,
                  .explore = 5,
                  .workers = 1,
                  .threads = 1,
                  .stream = 1};
    if (!parse(&s, argc, argv)) {
        fputs("usage: dqn_lstm [--seed N] [--iterations N] [--steps N] [--passes N] [--batches N] "
              "[--batch-size N]\n"
              "                [--window N] [--units N] [--explore ITERATIONS] [--workers 0|1] [--threads N] "
              "[--stream 0|1] [--json 0|1]\n",
              stderr);
        return 2;
    }
    leat_error err = {0};
    replay r = {.settings = &s};
    player p = {.rng = leat_rng_for((uint64_t)s.seed, 0, UINT64_MAX)};
    leat_status status = prepare(&s, &p, &r, &err);
    if (status == LEAT_OK) status = run(&s, &p, &r, &err);
    if (status != LEAT_OK) fprintf(stderr, "dqn_lstm: %s\n", err.message);
    leat_predictor_destroy(&p.actor);
    leat_predictor_destroy(&r.chooser);
    leat_predictor_destroy(&r.target);
    leat_model_destroy(&r.online);
    free(r.steps);
    return status == LEAT_OK ? 0 : 1;
}
