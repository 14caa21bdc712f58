/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands: what each one takes, says of itself, and runs.  Layer: cli. */
#include "cli/commands/commands.h"

#include <stddef.h>

/* Options that a command may, or must, be given. */
#define MAY(id)                                                                                              \
    { CLI_##id, false }
#define MUST(id)                                                                                             \
    { CLI_##id, true }

/* What becomes of batches that cannot be made. */
#define FAULT_USES MAY(BAD_BATCH), MAY(BATCH_TIMEOUT), MAY(MAX_DEATHS), MAY(CHECK_FINITE)

/* How batches are made, and how many ahead. */
#define WORKER_USES MAY(WORKERS), MAY(MULTIPROCESSING), MAY(MAX_QUEUE_SIZE), MAY(FEED_MEMORY)

/* What kernels may do. */
#define KERNEL_USES MAY(THREADS), MAY(DETERMINISTIC), MAY(NO_FOLD), MAY(DTYPE_POLICY), MAY(TUNE), MAY(NO_TUNE)

/* What evaluate and predict share. */
#define PASS_USES                                                                                            \
    MAY(LAYERS), MAY(BATCH_SIZE), MAY(STEPS), WORKER_USES, FAULT_USES, MAY(SEED), KERNEL_USES, MAY(VERBOSE), \
        MAY(JSON), MAY(HELP)

static const cli_use fit_uses[] = {
    MUST(TRAIN),
    MAY(VALIDATION),
    MAY(LAYERS),
    MAY(EPOCHS),
    MAY(BATCH_SIZE),
    MAY(STEPS_PER_EPOCH),
    MAY(OPTIMIZER),
    MAY(LOSS),
    MAY(METRICS),
    WORKER_USES,
    MAY(SHUFFLE),
    MAY(NO_SHUFFLE),
    FAULT_USES,
    MAY(SEED),
    KERNEL_USES,
    MAY(GRADIENT_CHECKPOINTING),
    MAY(INITIAL_EPOCH),
    MAY(VALIDATION_STEPS),
    MAY(VALIDATION_FREQ),
    MAY(VERBOSE),
    MAY(OUT),
    MAY(TRACE),
    MAY(JSON),
    MAY(HELP),
};

static const cli_use evaluate_uses[] = {MUST(DATA), MAY(LOSS), MAY(METRICS), PASS_USES};

static const cli_use predict_uses[] = {MUST(DATA), MUST(OUTPUT), PASS_USES};

/* What bench and trace share. */
#define FEED_USES                                                                                            \
    MAY(PAYLOAD), MAY(WORK_US), MAY(CONSUME_US), MAY(BATCH_SIZE), MAY(BATCHES), MAY(PASSES), WORKER_USES,    \
        MAY(SHUFFLE), MAY(SEED), MAY(RANK), MAY(WORLD), FAULT_USES

static const cli_use feed_bench_uses[] = {FEED_USES, MAY(DIGEST), MAY(JSON), MAY(HELP)};

static const cli_use feed_trace_uses[] = {MUST(TRACE_OUTPUT), FEED_USES, MAY(JSON), MAY(HELP)};

static const cli_use feed_tune_uses[] = {MUST(MODEL),       MAY(LOSS),       MAY(OPTIMIZER), MAY(LAYERS),
                                         MAY(DTYPE_POLICY), MAY(BATCH_SIZE), MAY(SHUFFLE),   MAY(SEED),
                                         MAY(SECONDS),      MAY(JSON),       MAY(HELP)};

static const cli_use report_uses[] = {MAY(REPORT_OUTPUT), MAY(HELP)};

static const cli_use summary_uses[] = {
    MAY(LAYERS),
    MAY(PLAN),
    MAY(BATCH_SIZE),
    MAY(TRAIN_STEP),
    MAY(TIME),
    MAY(LOSS),
    MAY(OPTIMIZER),
    MAY(METRICS),
    MAY(UNKNOWN),
    KERNEL_USES,
    MAY(GRADIENT_CHECKPOINTING),
    MAY(JSON),
    MAY(HELP),
};

static const cli_use list_uses[] = {MAY(JSON), MAY(HELP)};

static const cli_use help_uses[] = {MAY(HELP)};

#define USES(array) array, sizeof array / sizeof *array

const cli_command cli_commands[] = {
    {"fit", "MODEL", "train a model",
     "MODEL is a Keras .h5 file, or a .json architecture, whose weights are then drawn anew.  A model "
     "without a "
     "compilation needs --loss.  With --optimizer, --loss or --metrics the model is compiled anew.\n"
     "\n"
     "The folder of --out receives model.h5 (the final model, with the optimizer's state), checkpoint.h5 "
     "(after each "
     "epoch), best.h5 (the lowest val_loss, with --validation), history.json, report.html (see leat report) "
     "and "
     "log.csv.  Without --out nothing is saved.\n"
     "\n"
     "At an interrupt (Ctrl-C, SIGTERM, SIGHUP) training stops after the batch in hand, everything is saved, "
     "and leat says in which epoch it stopped and which command goes on; the exit code is 130, 143 or 129.  "
     "A second "
     "interrupt ends the command at once.\n"
     "\n"
     "To go on, give DIR/model.h5 as MODEL, the same --out, and as --initial-epoch the number of epochs that "
     "are "
     "finished: an epoch that was cut short is trained again from its first step.  --epochs stays the number "
     "of the last epoch.  Leave out --optimizer, --loss and --metrics: they would compile the model anew and "
     "forget the optimizer's state.",
     "leat fit cnn.json --train 'idx:x.gz,y.gz?scale=1/255&onehot=10' \\\n"
     "    --loss categorical_crossentropy --optimizer adam --metrics accuracy \\\n"
     "    --epochs 6 --batch-size 128 --workers 2 --use-multiprocessing --out run\n"
     "leat fit run/model.h5 --train npz:more.npz --validation npz:test.npz \\\n"
     "    --initial-epoch 6 --epochs 8 --out run\n"
     "leat fit model.h5 --train plugin:./frames.so --loss mse \\\n"
     "    --optimizer 'SGD(learning_rate=0.01)' --metrics 'mae,RootMeanSquaredError'\n"
     "leat fit model.h5 --train npz:train.npz --loss binary_crossentropy \\\n"
     "    --metrics 'AUC,Precision(thresholds=[0.3, 0.5])'",
     USES(fit_uses), cli_fit},
    {"evaluate", "MODEL", "loss and metrics of a model on data",
     "Prints loss and metrics on standard output; they are exact over all samples.  MODEL must have a "
     "compilation, or --loss be given.",
     "leat evaluate run/model.h5 --data 'idx:t10k-images.gz,t10k-labels.gz?scale=1/255&onehot=10' --json",
     USES(evaluate_uses), cli_evaluate},
    {"predict", "MODEL", "a model's predictions for data",
     "One array per output of the model, samples along the first axis, in the order of the data.  In an .npz "
     "file the "
     "arrays have the names of the output layers, with _1, _2 for further outputs of one layer.  Targets in "
     "the data are ignored.",
     "leat predict run/model.h5 --data npy:x.npy --output y.npy\n"
     "leat predict two_heads.h5 --data npz:x.npz --output y.npz --workers 2",
     USES(predict_uses), cli_predict},
    {"summary", "MODEL", "a model's layers, shapes and numbers of parameters",
     "Keras's table, on standard output; with --json the same as an object.\n"
     "\n"
     "With --plan instead how a batch is computed: for each op the layer that asked for it, the "
     "implementation "
     "that serves it and what was fused into it (conv+relu), the layout in which it works, the bytes that it "
     "reads and writes, the bytes of the arena that are its own; with --time the median time of each op and "
     "its share.  Then the same by kinds of ops, and how often data is copied into another layout.",
     "leat summary model.h5\n"
     "leat summary --plan model.h5 --batch-size 8 --time\n"
     "leat summary --plan cnn.json --train --loss mse --batch-size 64 --time --json",
     USES(summary_uses), cli_summary},
    {"feed", "COMMAND", "measure how data is fed, and find the best setting",
     "To find out whether data is what training waits for: bench says how fast batches are made and "
     "delivered, "
     "tune tries settings with the real training step, trace shows what each worker did when.",
     "leat feed bench 'npz:train.npz' --workers 2 --use-multiprocessing\n"
     "leat feed tune 'npz:train.npz' --model model.h5\n"
     "leat feed trace 'npz:train.npz' --output feed.json",
     USES(help_uses), NULL},
    {"feed bench", "[SPEC]", "how fast batches are made and delivered",
     "Takes batches from a SPEC, or synthetic ones with --payload, and throws them away.  Reports the time "
     "of a "
     "batch, MB/s (millions of bytes), the first batch, the time between two passes, percentiles of the "
     "workers' "
     "get and of the waiting for them, and what went wrong, on standard output.\n"
     "\n"
     "A synthetic batch is written as a whole, with one random byte throughout, or with random bytes where "
     "--digest asks for them; both are a function of seed, pass and index.  The digest is the same for any "
     "number and kind of workers.",
     "leat feed bench 'idx:x.gz,y.gz?scale=1/255' --workers 2\n"
     "leat feed bench --payload 600K --workers 2 --use-multiprocessing --json\n"
     "leat feed bench --payload 1K --work-us 5000 --workers 2 --digest",
     USES(feed_bench_uses), cli_feed_bench},
    {"feed tune", "SPEC", "the best workers, threads and queue for a model and its data",
     "Trains with one setting after the other, --seconds each, and tells on standard output which one is "
     "fastest and why: first "
     "numbers of worker threads and processes while all cores compute, then fewer compute threads, then "
     "longer "
     "and shorter queues.  Of settings that differ by less than 3 % the smaller one is chosen.  Nothing is "
     "saved, and each setting starts with the model's own weights.",
     "leat feed tune 'npz:train.npz' --model model.h5\n"
     "leat feed tune plugin:./frames.so --model cnn.json --loss mse --batch-size 128 --seconds 5",
     USES(feed_tune_uses), cli_feed_tune},
    {"feed trace", "[SPEC]", "a file that shows what each worker did when",
     "Takes batches as `leat feed bench` does and writes a trace of workers, waits and the queue, which "
     "https://ui.perfetto.dev and chrome://tracing open.  `leat fit --trace FILE` does the same for a "
     "training.",
     "leat feed trace 'npz:train.npz' --output feed.json --workers 2 --batches 500 --consume-us 2000",
     USES(feed_trace_uses), cli_feed_trace},
    {"report", "RUN", "a page with plots of a run",
     "RUN is a folder that `leat fit --out` wrote, or a history.json.  The report is one HTML file that "
     "needs "
     "nothing else and loads nothing: loss and metrics by epoch, the time of a step split into waiting for "
     "data "
     "and compute, how far the workers were ahead, who made which batch when, and the feed's figures.  "
     "`leat fit --out` writes it too.",
     "leat report run\nleat report run --output /tmp/run.html", USES(report_uses), cli_report},
    {"list", "[KIND]", "the names of losses, layers and so on that leat knows",
     "KIND is layers, losses, metrics, optimizers, activations, initializers, regularizers or constraints.  "
     "Prints one name a line, sorted, with Keras's other names for the same thing (mean_squared_error, "
     "MeanSquaredError, mse); without KIND how many names each kind has.  --loss, --metrics and --optimizer "
     "take these names; an optimizer's in upper or lower case.",
     "leat list losses\nleat list layers | grep -i conv\nleat list --json", USES(list_uses), cli_list},
    {"help", "[TOPIC...]", "help on a command, or on specs: how data is named",
     "TOPIC is a command or `specs`.", "leat help specs\nleat help fit\nleat help feed bench",
     USES(help_uses), cli_help},
    {"version", NULL, "the version", "The library's version, on standard output.", "leat version",
     USES(help_uses), cli_version},
};

const int cli_command_count = sizeof cli_commands / sizeof *cli_commands;
