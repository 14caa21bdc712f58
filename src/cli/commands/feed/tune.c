/* SPDX-License-Identifier: Apache-2.0 */
/* `leat feed tune`: trains for a short time with one setting after another.  Room: cli. */
#include "cli/commands/feed/tune.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/commands/commands.h"
#include "cli/options/feed_options.h"
#include "cli/options/parse.h"
#include "cli/run/progress.h"
#include "cli/run/session.h"
#include "cli/text/say.h"
#include "leat/inspect.h"

enum { default_ms = 2000, default_queue = 10, min_steps = 2, min_trials = 6 };

/* A longer queue is tried only if it needs at most so much memory. */
static const int64_t queue_bytes_max = INT64_C(1) << 30;

typedef struct tuner {
    cli_session session;
    cli_arguments arguments; /* the command's, with the batch size that is measured */
    cli_tunings *tunings;
    cli_tuning *tuning;     /* of the batch size that is measured */
    unsigned char *weights; /* copy of the model's weights after loading */
    int64_t longest;        /* first dimension of a sample of the data's first tensor; 0: none */
    int64_t budget_ns;      /* time of a trial: a quarter to warm up, the rest is measured */
    int done;               /* number of trials of smaller batch sizes */
    int expected;           /* estimated number of trials with this batch size */
    int all_threads;        /* number of compute threads that use all cores */
    cli_progress progress;
    /* The current trial. */
    bool counting;            /* the warm-up is over */
    int64_t start_ns;         /* when the trial started */
    int64_t count_ns;         /* when the measurement started */
    int64_t begin_ns, end_ns; /* when the last step began and ended */
    int64_t steps, samples, wait_ns, step_ns;
} tuner;

/* ---- One trial ---- */

static leat_status step_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                              leat_error *err) {
    (void)training, (void)index, (void)logs, (void)err;
    tuner *t = user;
    t->begin_ns = cli_now_ns();
    if (t->counting) t->wait_ns += t->begin_ns - t->end_ns;
    return LEAT_OK;
}

static void draw(tuner *t, int64_t now) {
    char text[96];
    double done = (double)(now - t->start_ns) / (double)t->budget_ns;
    int number = t->done + t->tuning->count + 1;
    int left =
        (int)(t->tunings->sizes + t->tunings->count - t->tuning); /* number of batch sizes to measure */
    int all = t->done + t->expected * left;
    snprintf(text, sizeof text, "setting %d of about %d", number, all >= number ? all : number);
    cli_progress_draw(&t->progress, ((double)(number - 1) + (done < 1 ? done : 1)) / (double)all, text);
}

/* Measures a step after the warm-up, which includes the first step, since that compiles the plan. */
static leat_status step_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                            leat_error *err) {
    (void)err;
    tuner *t = user;
    int64_t now = cli_now_ns();
    double size = 0;
    t->end_ns = now;
    draw(t, now);
    if (cli_signal_code()) leat_training_stop(training, "a signal came");
    if (!t->counting) {
        t->counting = index > 0 && now - t->start_ns >= t->budget_ns / 4;
        t->count_ns = now;
        return LEAT_OK;
    }
    ++t->steps;
    if (leat_logs_get(logs, "size", &size)) t->samples += (int64_t)size;
    t->step_ns += now - t->begin_ns;
    if (now - t->count_ns >= t->budget_ns / 4 * 3 && t->steps >= min_steps)
        leat_training_stop(training, "measured");
    return LEAT_OK;
}

/* Fills in the trial.  If the workers make batches more slowly than training took them, training used up a queue that
 * was full at the start: the rate is then that of the workers, which a longer training would have. */
static void finish_trial(const tuner *t, const leat_verdict *verdict, cli_trial *trial) {
    double counted = (double)(t->end_ns - t->count_ns), worker_rate = 0;
    trial->steps = t->steps;
    trial->samples = (double)t->samples / (double)t->steps;
    trial->setting.threads = verdict->threads;
    trial->get_ns = (double)verdict->get_mean_ns;
    trial->step_ns = (double)t->step_ns / (double)t->steps;
    trial->rate = 1e9 * (double)t->steps / counted;
    trial->wait = (double)t->wait_ns / counted;
    if (trial->get_ns > 0) worker_rate = 1e9 * trial->setting.workers / trial->get_ns;
    if (worker_rate > 0 && worker_rate < trial->rate * (1 - CLI_TUNE_TIE)) {
        trial->rate = worker_rate;
        trial->wait = 1 - worker_rate * trial->step_ns / 1e9;
    }
}

static void copy_weights(tuner *t, bool restore) {
    unsigned char *saved = t->weights;
    for (int i = 0; i < leat_model_weight_count(t->session.model); ++i) {
        leat_tensor weight = leat_model_weight(t->session.model, i);
        size_t bytes = leat_tensor_bytes(&weight);
        memcpy(restore ? weight.data : saved, restore ? saved : weight.data, bytes);
        saved += bytes;
    }
}

static leat_status train(tuner *t, const cli_setting *setting, leat_history **history, leat_error *err) {
    leat_fit_options options = leat_fit_options_default();
    leat_callback callback = {.size = sizeof(leat_callback),
                              .user = t,
                              .on_train_batch_begin = step_begin,
                              .on_train_batch_end = step_end};
    leat_callback *const callbacks[] = {&callback};
    options.steps_per_epoch = INT32_MAX;
    options.verbose = 0;
    options.callbacks = callbacks;
    options.callback_count = 1;
    options.workers = setting->workers;
    options.use_multiprocessing = setting->processes;
    options.threads = setting->threads;
    options.max_queue_size = setting->queue;
    options.shuffle = t->session.feed_options.shuffle;
    options.shuffle_window = t->session.feed_options.shuffle_window;
    options.seed = t->session.feed_options.seed;
    t->counting = false;
    t->steps = t->samples = t->wait_ns = t->step_ns = 0;
    t->start_ns = cli_now_ns();
    return leat_model_fit_generator(t->session.model, &t->session.data, &options, history, err);
}

/* Measures one setting.  A generator may end before the time is over; the steps until then are the measurement. */
static int run_trial(tuner *t, cli_trial *trial) {
    leat_history *history = NULL;
    leat_error err = {0};
    int code = cli_open_data(&t->session, &t->session.data, t->session.arguments->operands[0]);
    if (code != CLI_SUCCESS) return code;
    leat_status status = train(t, &trial->setting, &history, &err);
    leat_sequence_destroy(&t->session.data);
    copy_weights(t, true);
    code = cli_signal_code();
    if (code == 0 && status != LEAT_OK && t->steps == 0) {
        cli_progress_end(&t->progress);
        code = cli_fail(&t->session, &err);
    } else if (code == 0 && t->steps == 0) {
        cli_progress_end(&t->progress);
        cli_say("leat feed tune: the data ended before %d steps could be measured\n", min_steps);
        code = CLI_FAILURE;
    }
    if (code == CLI_SUCCESS) {
        leat_verdict verdict = leat_history_verdict(history);
        finish_trial(t, &verdict, trial);
        t->tuning->cores = verdict.cores;
    }
    leat_history_destroy(&history);
    return code;
}

/* ---- The search ---- */

static bool same_setting(const cli_setting *a, const cli_setting *b) {
    return a->workers == b->workers && a->processes == b->processes && a->threads == b->threads &&
           a->queue == b->queue;
}

/* Measures a setting unless that was done before; *out is its row. */
static int try_setting(tuner *t, cli_setting setting, const cli_trial **out) {
    cli_tuning *tuning = t->tuning;
    for (int i = 0; i < tuning->count; ++i)
        if (same_setting(&tuning->rows[i].setting, &setting)) {
            *out = &tuning->rows[i];
            return CLI_SUCCESS;
        }
    cli_trial trial = {.setting = setting};
    int code = run_trial(t, &trial);
    if (code != CLI_SUCCESS) return code;
    if (tuning->count < CLI_TUNE_ROWS - 1) ++tuning->count;
    tuning->rows[tuning->count - 1] = trial;
    *out = &tuning->rows[tuning->count - 1];
    return CLI_SUCCESS;
}

static cli_setting best_setting(const tuner *t) {
    return t->tuning->rows[cli_tune_best(t->tuning)].setting;
}

/* Tries more and more workers as long as that is faster, even more workers than cores, since workers may wait for a
 * disk. */
static int sweep_workers(tuner *t, cli_setting setting) {
    int cores = t->tuning->cores, code = CLI_SUCCESS;
    double last = 0;
    while (code == CLI_SUCCESS && setting.workers <= 4 * cores) {
        const cli_trial *trial = NULL;
        code = try_setting(t, setting, &trial);
        if (code != CLI_SUCCESS || trial->wait < 0.01 || trial->rate < last * (1 + CLI_TUNE_TIE)) break;
        last = trial->rate;
        setting.workers =
            setting.workers < cores && 2 * setting.workers > cores ? cores : 2 * setting.workers;
    }
    return code;
}

/* Tries fewer and fewer compute threads until the rate falls below 80 % of the best one. */
static int sweep_threads(tuner *t) {
    int cores = t->tuning->cores;
    cli_setting setting = best_setting(t);
    double best = 0;
    const cli_trial *trial = NULL;
    int code = try_setting(t, setting, &trial);
    if (code == CLI_SUCCESS) best = trial->rate;
    if (code == CLI_SUCCESS && setting.workers > 0 && setting.workers < cores) {
        setting.threads = cores - setting.workers;
        code = try_setting(t, setting, &trial);
    }
    for (int threads = cores / 2; code == CLI_SUCCESS && threads > 0; threads /= 2) {
        setting.threads = threads;
        code = try_setting(t, setting, &trial);
        if (code == CLI_SUCCESS && trial->rate < 0.8 * best) break;
    }
    return code;
}

/* If fewer compute threads are best, tries numbers of workers again, since workers then have cores of their own. */
static int sweep_workers_again(tuner *t) {
    cli_setting setting = best_setting(t);
    if (setting.threads == t->all_threads) return CLI_SUCCESS;
    setting.workers = 1;
    setting.processes = false;
    int code = sweep_workers(t, setting);
    setting.processes = true;
    return code == CLI_SUCCESS ? sweep_workers(t, setting) : code;
}

static int sweep_queue(tuner *t) {
    cli_setting setting = best_setting(t);
    const cli_trial *trial = NULL;
    if (setting.workers == 0) return CLI_SUCCESS;
    setting.queue = default_queue / 5;
    int code = try_setting(t, setting, &trial);
    setting.queue = default_queue * 4;
    if (code == CLI_SUCCESS && t->tuning->batch_bytes <= queue_bytes_max / setting.queue)
        code = try_setting(t, setting, &trial);
    return code;
}

static int search(tuner *t) {
    const cli_trial *trial = NULL;
    int doublings = 0;
    int code = try_setting(t, (cli_setting){.queue = default_queue}, &trial);
    if (code != CLI_SUCCESS) return code;
    for (int n = t->tuning->cores; n > 1; n /= 2) ++doublings;
    t->expected = 1 + 2 * (doublings + 1) + doublings + 2;
    t->all_threads = trial->setting.threads;
    code = sweep_workers(t, (cli_setting){1, false, t->all_threads, default_queue});
    if (code == CLI_SUCCESS) code = sweep_workers(t, (cli_setting){1, true, t->all_threads, default_queue});
    if (code == CLI_SUCCESS) code = sweep_threads(t);
    if (code == CLI_SUCCESS) code = sweep_workers_again(t);
    return code == CLI_SUCCESS ? sweep_queue(t) : code;
}

/* ---- The command ---- */

static int save_weights(tuner *t) {
    size_t bytes = 0;
    for (int i = 0; i < leat_model_weight_count(t->session.model); ++i) {
        leat_tensor weight = leat_model_weight(t->session.model, i);
        bytes += leat_tensor_bytes(&weight);
    }
    t->weights = malloc(bytes + 1);
    if (!t->weights) {
        fputs("leat feed tune: no memory to keep the model's weights\n", stderr);
        return CLI_FAILURE;
    }
    copy_weights(t, false);
    return CLI_SUCCESS;
}

static void set_batch_size(tuner *t, cli_tuning *tuning) {
    t->tuning = tuning;
    t->arguments.number[CLI_BATCH_SIZE] = tuning->batch_size;
    if (!t->arguments.text[CLI_BATCH_SIZE]) t->arguments.text[CLI_BATCH_SIZE] = "";
}

/* Opens the SPEC once, to check it and to describe its batches. */
static int check_data(tuner *t) {
    leat_sequence *data = &t->session.data;
    cli_tuning *tuning = t->tuning;
    int code = cli_open_data(&t->session, data, t->arguments.operands[0]);
    if (code != CLI_SUCCESS) return code;
    for (int i = 0; i < data->spec.tensor_count; ++i) {
        const leat_tensor_spec *spec = &data->spec.tensors[i];
        leat_tensor sample = leat_tensor_view(spec->dtype, spec->rank, spec->shape, NULL);
        tuning->batch_bytes += data->spec.batch_size * (int64_t)leat_tensor_bytes(&sample);
    }
    if (data->spec.tensors[0].rank > 0) t->longest = data->spec.tensors[0].shape[0];
    if (data->length) tuning->steps_per_epoch = data->length(data->user);
    if (tuning->steps_per_epoch == LEAT_LENGTH_INFINITE) tuning->steps_per_epoch = 0;
    if (t->arguments.text[CLI_BATCH_SIZES] && data->spec.batch_size != tuning->batch_size) {
        cli_say("leat feed tune: --batch-sizes has %" PRId64 ", but the data has batches of %" PRId64
                " samples, which --batch-size does not change\n",
                tuning->batch_size, (int64_t)data->spec.batch_size);
        code = CLI_USAGE;
    }
    leat_sequence_destroy(data);
    return code;
}

/* Finds the memory of a training step.  Dimensions of inputs that are None besides the batch, such as the length of a
 * text, are taken to be those of the longest sample of the data's first tensor. */
static int measure_memory(tuner *t) {
    leat_plan_options options = leat_plan_options_default();
    leat_error err = {0};
    char *text = NULL;
    options.batch_size = t->tuning->batch_size;
    if (t->longest > 0) options.unknown = t->longest;
    options.train = true;
    options.json = true;
    if (leat_model_plan_summary(t->session.model, &options, &text, &err) != LEAT_OK)
        return cli_fail(&t->session, &err);
    json_t *plan = json_loads(text, 0, NULL);
    t->tuning->arena_bytes = (int64_t)json_integer_value(json_object_get(plan, "arena_bytes"));
    json_decref(plan);
    leat_string_free(text);
    return CLI_SUCCESS;
}

/* Reads --batch-size and --batch-sizes. */
static int read_sizes(tuner *t) {
    const char *sizes = t->arguments.text[CLI_BATCH_SIZES];
    int64_t size = cli_number(&t->arguments, CLI_BATCH_SIZE, leat_source_options_default().batch_size);
    t->tunings->base_size = size;
    t->tunings->count = 1;
    t->tunings->sizes[0].batch_size = size;
    return !sizes || cli_tune_read_sizes(sizes, t->tunings) ? CLI_SUCCESS : CLI_USAGE;
}

static int describe_optimizer(tuner *t) {
    leat_error err = {0};
    char *text = NULL;
    if (leat_model_optimizer_config(t->session.model, &text, &err) != LEAT_OK)
        return cli_fail(&t->session, &err);
    json_t *config = json_loads(text, 0, NULL);
    const char *name = json_string_value(json_object_get(config, "class_name"));
    t->tunings->is_sgd = name && strcmp(name, "SGD") == 0;
    t->tunings->learning_rate = leat_model_learning_rate(t->session.model);
    json_decref(config);
    leat_string_free(text);
    return CLI_SUCCESS;
}

static int prepare(tuner *t) {
    const cli_arguments *a = &t->arguments;
    t->budget_ns = cli_number(a, CLI_SECONDS, default_ms) * 1000000;
    t->expected = min_trials;
    int code = read_sizes(t);
    if (code == CLI_SUCCESS) code = cli_feed_options(t->session.command, a, &t->session.feed_options);
    for (int i = 0; code == CLI_SUCCESS && i < t->tunings->count; ++i) {
        set_batch_size(t, &t->tunings->sizes[i]);
        code = check_data(t);
    }
    if (code == CLI_SUCCESS) code = cli_load(&t->session, a->text[CLI_MODEL], CLI_FOR_TRAINING);
    if (code == CLI_SUCCESS) code = cli_compile(&t->session);
    if (code == CLI_SUCCESS) code = describe_optimizer(t);
    return code == CLI_SUCCESS ? save_weights(t) : code;
}

/* Tries settings with each batch size. */
static int search_sizes(tuner *t) {
    int code = CLI_SUCCESS;
    for (int i = 0; code == CLI_SUCCESS && i < t->tunings->count; ++i) {
        set_batch_size(t, &t->tunings->sizes[i]);
        code = search(t);
        if (code == CLI_SUCCESS && t->arguments.text[CLI_BATCH_SIZES]) code = measure_memory(t);
        t->done += t->tuning->count;
    }
    return code;
}

static void print(const tuner *t) {
    bool sizes = t->arguments.text[CLI_BATCH_SIZES], json = t->arguments.text[CLI_JSON];
    if (sizes && json)
        cli_tune_print_sizes_json(t->tunings);
    else if (sizes)
        cli_tune_print_sizes(t->tunings);
    else if (json)
        cli_tune_print_json(t->tunings->sizes);
    else
        cli_tune_print(t->tunings->sizes);
    if (json) putchar('\n');
}

static int tune(tuner *t) {
    cli_catch_signals(&t->session);
    cli_progress_begin(&t->progress);
    int code = search_sizes(t);
    cli_progress_end(&t->progress);
    bool interrupted = code != CLI_SUCCESS && code == cli_signal_code();
    if (interrupted && t->done == 0)
        return cli_interrupted(&t->session, "no setting was measured to its end");
    if (code != CLI_SUCCESS && !interrupted) return code;
    if (interrupted) {
        int measured = (int)(t->tuning - t->tunings->sizes) + (t->tuning->count > 0);
        t->tunings->count = measured;
    }
    print(t);
    return code;
}

int cli_feed_tune(const cli_arguments *arguments) {
    tuner t = {.session = {.command = "feed tune"}, .arguments = *arguments};
    t.session.arguments = &t.arguments;
    t.tunings = calloc(1, sizeof *t.tunings);
    if (!t.tunings) {
        fputs("leat feed tune: out of memory\n", stderr);
        return CLI_FAILURE;
    }
    int code = prepare(&t);
    if (code == CLI_SUCCESS) code = tune(&t);
    cli_close(&t.session);
    free(t.weights);
    free(t.tunings);
    return code;
}
