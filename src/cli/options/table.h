/* SPDX-License-Identifier: Apache-2.0 */
/* The table of subcommands and options.  The parser, --help, the man pages and the bash completion are made from
 * it. */
#ifndef LEAT_CLI_OPTIONS_TABLE_H
#define LEAT_CLI_OPTIONS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* The kind of an option's value: says how the parser checks the value and what completion offers. */
typedef enum cli_value {
    CLI_FLAG, /* no value */
    CLI_TEXT,
    CLI_NUMBER,   /* an integer from minimum to maximum */
    CLI_SIZE,     /* bytes, such as 512M */
    CLI_DURATION, /* seconds, with decimals; stored in milliseconds, as are minimum and maximum */
    CLI_SPEC,     /* the SPEC of a data source */
    CLI_FILE,
    CLI_FOLDER
} cli_value;

/* Every option: identifier, name, kind of its value, name of its value, minimum, maximum, default as text, help. */
#define CLI_OPTION_LIST(X)                                                                                   \
    X(TRAIN, "--train", CLI_SPEC, "SPEC", 0, 0, NULL, "the training data (see: leat help specs)")            \
    X(VALIDATION, "--validation", CLI_SPEC, "SPEC", 0, 0, NULL,                                              \
      "the validation data, evaluated after each epoch")                                                     \
    X(VALIDATION_SPLIT, "--validation-split", CLI_TEXT, "SHARE", 0, 0, NULL,                                 \
      "validate on the last share of the training samples, such as 0.2, and train on the others")            \
    X(DATA, "--data", CLI_SPEC, "SPEC", 0, 0, NULL, "the data (see: leat help specs)")                       \
    X(OUTPUT, "--output", CLI_FILE, "FILE", 0, 0, NULL,                                                      \
      "the file to write: .npy, .npz with one array per output, or .csv with one row per sample")            \
    X(TRACE_OUTPUT, "--output", CLI_FILE, "FILE", 0, 0, NULL, "the trace file to write")                     \
    X(PAGE_OUTPUT, "--output", CLI_FILE, "FILE", 0, 0, NULL, "the HTML file to write")                       \
    X(SAMPLES, "--samples", CLI_NUMBER, "N", 1, 10000, "48", "samples to show, spread over the data")        \
    X(REPORT_OUTPUT, "--output", CLI_FILE, "FILE", 0, 0, "RUN/report.html", "the HTML file to write")        \
    X(FOLLOW, "--follow", CLI_FLAG, NULL, 0, 0, NULL,                                                        \
      "rewrite the report while the run goes on, until it ends; the page reloads itself")                    \
    X(LAYERS, "--layers", CLI_FILE, "PLUGIN", 0, 0, NULL,                                                    \
      "a shared object that defines custom layers, losses and other objects (see leat/layer.h and "          \
      "leat/custom.h)")                                                                                      \
    X(EPOCHS, "--epochs", CLI_NUMBER, "N", 1, INT32_MAX, "1", "train up to this epoch")                      \
    X(INITIAL_EPOCH, "--initial-epoch", CLI_NUMBER, "N", 0, INT32_MAX, "0",                                  \
      "number of epochs that an earlier run has finished")                                                   \
    X(BATCH_SIZE, "--batch-size", CLI_NUMBER, "N", 1, INT32_MAX, "32", "samples per batch")                  \
    X(STEPS_PER_EPOCH, "--steps-per-epoch", CLI_NUMBER, "N", 1, INT32_MAX, "all", "batches per epoch")       \
    X(VALIDATION_STEPS, "--validation-steps", CLI_NUMBER, "N", 1, INT32_MAX, "all",                          \
      "batches per validation")                                                                              \
    X(VALIDATION_FREQ, "--validation-freq", CLI_NUMBER, "N", 1, INT32_MAX, "1",                              \
      "validate after every N epochs")                                                                       \
    X(VALIDATION_EVERY, "--validation-every", CLI_NUMBER, "N", 1, INT32_MAX, NULL,                           \
      "also validate inside epochs, after every N training steps")                                           \
    X(STOP_ON_NAN, "--stop-on-nan", CLI_FLAG, NULL, 0, 0, NULL,                                              \
      "stop with an error if the loss becomes NaN or infinite: the default")                                 \
    X(NO_STOP_ON_NAN, "--no-stop-on-nan", CLI_FLAG, NULL, 0, 0, NULL,                                        \
      "go on training if the loss becomes NaN or infinite")                                                  \
    X(STEPS, "--steps", CLI_NUMBER, "N", 1, INT32_MAX, "all", "batches to use")                              \
    X(OPTIMIZER, "--optimizer", CLI_TEXT, "NAME|JSON", 0, 0, "the model's, or rmsprop",                      \
      "compile with this optimizer, such as adam or SGD(momentum=0.9); the optimizer's state in MODEL is "   \
      "not used")                                                                                            \
    X(LOSS, "--loss", CLI_TEXT, "NAME", 0, 0, "the model's",                                                 \
      "compile with this loss, such as categorical_crossentropy or Huber(delta=2)")                          \
    X(METRICS, "--metrics", CLI_TEXT, "A,B", 0, 0, "the model's",                                            \
      "compile with these metrics, such as accuracy or AUC(curve=PR)")                                       \
    X(ARITHMETIC, "--arithmetic", CLI_TEXT, "KERAS", 0, 0, "the model's, or keras2",                         \
      "compile with the arithmetic of Keras 2.3.1 (keras2) or of current Keras (keras3)")                    \
    X(WEIGHTS, "--weights", CLI_FILE, "FILE", 0, 0, NULL,                                                    \
      "load the weights from this file: .h5 of weights or of a model, .weights.h5 or .safetensors")          \
    X(WEIGHTS_FORMAT, "--weights-format", CLI_TEXT, "f32|bf16|int8", 0, 0, "f32",                            \
      "keep the weights of Dense and recurrent layers in bf16 or int8, as a predictor of a program can; "    \
      "samples are predicted one by one, and compared with predictions with f32 weights")                    \
    X(NO_COMPILE, "--no-compile", CLI_FLAG, NULL, 0, 0, NULL,                                                \
      "leave out the loss, metrics and optimizer that the file of the model has")                            \
    X(INPUT_LAYER, "--input-layer", CLI_TEXT, "NAME,...", 0, 0, NULL,                                        \
      "begin at these layers: the tensors that they read become the inputs")                                 \
    X(OUTPUT_LAYER, "--output-layer", CLI_TEXT, "NAME,...", 0, 0, NULL,                                      \
      "end at these layers, such as avg_pool, base/conv1 (of a nested model) or -2 (the last but one)")      \
    X(FREEZE, "--freeze", CLI_TEXT, "PATTERN,...", 0, 0, NULL,                                               \
      "do not train the layers whose names match, such as 'block[1-4]_*' or 'base/*'; the model is "         \
      "compiled "                                                                                            \
      "again")                                                                                               \
    X(UNFREEZE, "--unfreeze", CLI_TEXT, "PATTERN,...", 0, 0, NULL,                                           \
      "train the layers whose names match, also those of --freeze; the model is compiled again")             \
    X(CLASS_WEIGHT, "--class-weight", CLI_TEXT, "WEIGHTS", 0, 0, NULL,                                       \
      "factors of the loss by class, such as 0:1,1:5, or by output, such as 'a=0:1,1:5;b=0:2,1:1', or "      \
      "balanced: the rarer a class, the larger")                                                             \
    X(LR_SCHEDULE, "--lr-schedule", CLI_TEXT, "SCHEDULE", 0, 0, NULL,                                        \
      "set the learning rate before each step, such as CosineDecay(initial_learning_rate=0.1, "              \
      "decay_steps=1000)")                                                                                   \
    X(REDUCE_LR, "--reduce-lr-on-plateau", CLI_TEXT, "ARGS", 0, 0, NULL,                                     \
      "reduce the learning rate when a value no longer improves, such as factor=0.5,patience=3")             \
    X(EARLY_STOPPING, "--early-stopping", CLI_TEXT, "ARGS", 0, 0, NULL,                                      \
      "stop when a value no longer improves, such as patience=5,monitor=val_loss")                           \
    X(SAVE_BEST, "--save-best", CLI_TEXT, "NAME", 0, 0, "val_loss",                                          \
      "the value, such as val_accuracy or loss, that decides which model is DIR/best.h5")                    \
    X(WORKERS, "--workers", CLI_NUMBER, "N", 0, 1024, "1",                                                   \
      "number of workers that make batches; 0: the training thread makes them between steps")                \
    X(MULTIPROCESSING, "--use-multiprocessing", CLI_FLAG, NULL, 0, 0, NULL,                                  \
      "worker processes instead of threads")                                                                 \
    X(MAX_QUEUE_SIZE, "--max-queue-size", CLI_NUMBER, "N", 1, 65536, "10",                                   \
      "maximum number of batches made ahead")                                                                \
    X(FEED_MEMORY, "--feed-memory", CLI_SIZE, "SIZE", 1, INT64_MAX, NULL,                                    \
      "memory for batches, such as 512M, instead of --max-queue-size; K, M and G are powers of 1024")        \
    X(SHUFFLE, "--shuffle", CLI_TEXT, "HOW", 0, 0, "auto",                                                   \
      "none, batches, samples, window:N (within runs of N samples), blocks (chunks of HDF5, and samples "    \
      "within groups of them) or blocks:N (groups of N), or auto: blocks where the data has them, samples "  \
      "where it allows it, otherwise batches")                                                               \
    X(NO_SHUFFLE, "--no-shuffle", CLI_FLAG, NULL, 0, 0, NULL,                                                \
      "keep the order of the samples, like --shuffle none")                                                  \
    X(BAD_BATCH, "--bad-batch", CLI_TEXT, "POLICY", 0, 0, "fail",                                            \
      "what to do about a batch that cannot be made: fail, skip, retry:N (N more attempts, then fail), or "  \
      "retry:N,skip")                                                                                        \
    X(BATCH_TIMEOUT, "--batch-timeout", CLI_DURATION, "SECONDS", 1, INT64_MAX, "none",                       \
      "maximum time to make one batch; then the worker process is killed and the batch is made again")       \
    X(MAX_DEATHS, "--max-deaths", CLI_NUMBER, "N", 1, 1000000, "3",                                          \
      "how many worker processes may die while making the same batch before it is a bad batch")              \
    X(CHECK_FINITE, "--check-finite", CLI_FLAG, NULL, 0, 0, NULL,                                            \
      "treat a batch with NaN or infinity as a bad batch")                                                   \
    X(TRACE, "--trace", CLI_FILE, "FILE", 0, 0, NULL,                                                        \
      "write a trace of workers and training steps, for https://ui.perfetto.dev")                            \
    X(SEED, "--seed", CLI_NUMBER, "N", 0, INT64_MAX, "0",                                                    \
      "seed of all random numbers: a new model's weights, shuffling, dropout")                               \
    X(DEVICE, "--device", CLI_TEXT, "DEVICE", 0, 0, "cpu",                                                   \
      "compute on cpu, on a GPU (cuda:NUMBER; cuda: the first one, or one for each rank), or where a "       \
      "measurement is faster (auto)")                                                                        \
    X(THREADS, "--threads", CLI_NUMBER, "N", 1, 1024, "all cores", "number of compute threads")              \
    X(GRADIENT_CHECKPOINTING, "--gradient-checkpointing", CLI_FLAG, NULL, 0, 0, NULL,                        \
      "recompute activations in the backward pass: less memory, up to a third more time")                    \
    X(DETERMINISTIC, "--deterministic", CLI_FLAG, NULL, 0, 0, NULL,                                          \
      "bit-identical results for any --threads; slower")                                                     \
    X(TF32, "--tf32", CLI_FLAG, NULL, 0, 0, NULL,                                                            \
      "on a GPU: multiply float32 with 10 bits of mantissa (TF32), which is faster")                         \
    X(DIST, "--dist", CLI_TEXT, "KIND", 0, 0, "auto",                                                        \
      "compute together with the other processes that mpirun or srun has started (auto), alone (none), "     \
      "always "                                                                                              \
      "over MPI (mpi), or alone but as one rank computes (self)")                                            \
    X(DIST_TIMEOUT, "--dist-timeout", CLI_DURATION, "SECONDS", 1000, 86400000, "10",                         \
      "end the run if a rank does not answer for so long")                                                   \
    X(SYNC_BATCH_NORM, "--sync-batch-norm", CLI_FLAG, NULL, 0, 0, NULL,                                      \
      "with several ranks, BatchNormalization uses the statistics of the whole batch, not those of each "    \
      "rank's part")                                                                                         \
    X(BF16_GRADIENTS, "--bf16-gradients", CLI_FLAG, NULL, 0, 0, NULL,                                        \
      "send gradients between ranks as bfloat16: half of the bytes, but only 8 significant bits")            \
    X(SHARD_OPTIMIZER, "--shard-optimizer", CLI_FLAG, NULL, 0, 0, NULL,                                      \
      "spread the optimizer's slots over the ranks: less memory on each, the same numbers")                  \
    X(NO_FOLD, "--no-fold", CLI_FLAG, NULL, 0, 0, NULL,                                                      \
      "in predictions, do not fold BatchNormalization into the weights of the convolution or Dense layer "   \
      "before it")                                                                                           \
    X(DTYPE_POLICY, "--dtype-policy", CLI_TEXT, "POLICY", 0, 0, "MODEL's",                                   \
      "dtype policy of all layers: float32, or mixed_bfloat16, which computes in bfloat16 and keeps "        \
      "weights "                                                                                             \
      "in float32")                                                                                          \
    X(TUNE, "--tune", CLI_FLAG, NULL, 0, 0, NULL,                                                            \
      "measure which kernels are fastest on this machine, once and at most 10 s for each batch size, and "   \
      "store the result for later runs")                                                                     \
    X(NO_TUNE, "--no-tune", CLI_FLAG, NULL, 0, 0, NULL,                                                      \
      "do not use the stored results of --tune in this run")                                                 \
    X(VERBOSE, "--verbose", CLI_NUMBER, "0|1|2", 0, 2, "1",                                                  \
      "0: silent, 1: a progress bar, 2: one line per epoch")                                                 \
    X(OUT, "--out", CLI_FOLDER, "DIR", 0, 0, NULL,                                                           \
      "folder of the run: the model, checkpoints, history, report and log")                                  \
    X(RESUME, "--resume", CLI_FOLDER, "DIR", 0, 0, NULL,                                                     \
      "continue the run in this folder, after it was interrupted or with more --epochs")                     \
    X(OVERWRITE, "--overwrite", CLI_FLAG, NULL, 0, 0, NULL,                                                  \
      "replace the run that is in the folder of --out")                                                      \
    X(DATA_CHANGED, "--data-changed", CLI_FLAG, NULL, 0, 0, NULL,                                            \
      "with --resume: continue although files of the data have changed")                                     \
    X(CHECKPOINT_EVERY, "--checkpoint-every", CLI_TEXT, "N|TIME|epoch", 0, 0, "epoch",                       \
      "write a checkpoint every N steps, after a time such as 30s, 10m or 2h, or after each epoch")          \
    X(KEEP_CHECKPOINTS, "--keep-checkpoints", CLI_NUMBER, "N", 1, 10000, "2",                                \
      "number of checkpoints to keep")                                                                       \
    X(REMOTE_MONITOR, "--remote-monitor", CLI_TEXT, "URL", 0, 0, NULL,                                       \
      "send the logs of each epoch to URL/publish/epoch/end/, as Keras's RemoteMonitor does")                \
    X(OPEN_METRICS, "--open-metrics", CLI_FILE, "FILE", 0, 0, NULL,                                          \
      "write the state of the run to this file, for Prometheus (OpenMetrics text)")                          \
    X(TENSORBOARD, "--tensorboard", CLI_FOLDER, "DIR", 0, 0, NULL,                                           \
      "write event files for TensorBoard to DIR/train and DIR/validation")                                   \
    X(UPDATE_FREQ, "--update-freq", CLI_TEXT, "FREQ", 0, 0, "epoch",                                         \
      "with --tensorboard, when to write scalars: epoch, also for each batch, or also after every N "        \
      "batches: N")                                                                                          \
    X(HISTOGRAM_FREQ, "--histogram-freq", CLI_NUMBER, "N", 1, INT32_MAX, "none",                             \
      "with --tensorboard: write histograms of the weights every N epochs")                                  \
    X(ARCHITECTURE, "--model", CLI_FILE, "MODEL", 0, 0, NULL,                                                \
      "the model whose weights IN has: a .keras, .h5 or .json file")                                         \
    X(MODEL, "--model", CLI_FILE, "MODEL", 0, 0, NULL,                                                       \
      "the model to train: a .keras, .h5, .onnx or .json file")                                              \
    X(PAYLOAD, "--payload", CLI_SIZE, "BYTES", 1, INT64_C(1) << 40, NULL,                                    \
      "use synthetic batches of this size instead of a SPEC")                                                \
    X(WORK_US, "--work-us", CLI_NUMBER, "N", 0, INT32_MAX, "0",                                              \
      "with --payload: microseconds of CPU time for each batch, in addition to writing it")                  \
    X(CONSUME_US, "--consume-us", CLI_NUMBER, "N", 0, INT32_MAX, "0",                                        \
      "microseconds of CPU time to spend on each delivered batch, like a training step")                     \
    X(BATCHES, "--batches", CLI_NUMBER, "N", 1, INT32_MAX, "1000 per pass with --payload, all of a SPEC",    \
      "with --payload: batches per pass; with a SPEC: total number of batches to take")                      \
    X(PASSES, "--passes", CLI_NUMBER, "N", 1, INT32_MAX, "2", "number of passes over the data")              \
    X(RANK, "--rank", CLI_NUMBER, "R", 0, INT32_MAX - 1, "0",                                                \
      "with --world: the number of this share, from 0")                                                      \
    X(WORLD, "--world", CLI_NUMBER, "W", 1, INT32_MAX, "1",                                                  \
      "take only every W-th batch, from batch R on, like one of W processes that share the data")            \
    X(DIGEST, "--digest", CLI_FLAG, NULL, 0, 0, NULL,                                                        \
      "also print the SHA-256 of all delivered bytes, in order; makes every byte of synthetic batches "      \
      "random")                                                                                              \
    X(PLAN, "--plan", CLI_FLAG, NULL, 0, 0, NULL,                                                            \
      "print how a batch is computed, op by op, instead of the layers")                                      \
    X(TRAIN_STEP, "--train", CLI_FLAG, NULL, 0, 0, NULL,                                                     \
      "with --plan: print a training step instead of a prediction")                                          \
    X(TIME, "--time", CLI_FLAG, NULL, 0, 0, NULL,                                                            \
      "with --plan: measure each op on random data and print its share of the time")                         \
    X(UNKNOWN, "--unknown", CLI_NUMBER, "N", 1, INT32_MAX, "32",                                             \
      "with --plan: size to use for each None in an input's shape except the batch")                         \
    X(BATCH_SIZES, "--batch-sizes", CLI_TEXT, "N,N...", 0, 0, NULL,                                          \
      "find the best setting of each of these batch sizes, and compare the sizes")                           \
    X(SECONDS, "--seconds", CLI_DURATION, "SECONDS", 50, 3600000, "2", "how long to measure each setting")   \
    X(JSON, "--json", CLI_FLAG, NULL, 0, 0, NULL, "print the result as one JSON object")                     \
    X(HELP, "--help", CLI_FLAG, NULL, 0, 0, NULL, "print this help")

typedef enum cli_option_id {
#define CLI_OPTION_ID(id, name, value, metavar, low, high, fallback, help) CLI_##id,
    CLI_OPTION_LIST(CLI_OPTION_ID)
#undef CLI_OPTION_ID
        CLI_OPTION_COUNT
} cli_option_id;

typedef struct cli_option {
    const char *name;
    cli_value value;
    const char *metavar;
    int64_t minimum, maximum;
    const char *fallback; /* the default as text; NULL: none */
    const char *help;
} cli_option;

extern const cli_option cli_options[CLI_OPTION_COUNT];

/* The arguments of a command line: texts as the user gave them, and their numbers. */
typedef struct cli_arguments {
    const char *program; /* argv[0] */
    const char *operands[2];
    int operand_count;
    const char *text[CLI_OPTION_COUNT]; /* values of options; "" for a flag; NULL: not given */
    int64_t number[CLI_OPTION_COUNT];   /* values of numbers, sizes (in bytes) and durations (in ms) */
} cli_arguments;

/* The kinds of names that `leat list` prints: the end of the enumerator LEAT_NAMES_*, and the word on the command
 * line. */
#define CLI_KIND_LIST(X)                                                                                     \
    X(LAYERS, "layers")                                                                                      \
    X(LOSSES, "losses")                                                                                      \
    X(METRICS, "metrics")                                                                                    \
    X(OPTIMIZERS, "optimizers")                                                                              \
    X(ACTIVATIONS, "activations")                                                                            \
    X(INITIALIZERS, "initializers")                                                                          \
    X(REGULARIZERS, "regularizers")                                                                          \
    X(CONSTRAINTS, "constraints")

enum { CLI_SUCCESS = 0, CLI_FAILURE = 1, CLI_USAGE = 2 };

/* An option of one command. */
typedef struct cli_use {
    cli_option_id id;
    bool required;
} cli_use;

typedef struct cli_command {
    const char *name; /* "fit"; "feed bench": a member of the group "feed" */
    const char *
        operand; /* name of the operand: in brackets if optional, with "..." if two are allowed, two names with a space
                    between them if two are required; NULL: none */
    const char *summary;
    const char *description; /* paragraphs, separated by an empty line */
    const char *examples;    /* command lines, separated by line breaks */
    const cli_use *uses;
    int use_count;
    /* Runs the command and returns the exit code.  NULL: a group, whose members are commands of their own. */
    int (*run)(const cli_arguments *arguments);
} cli_command;

extern const cli_command cli_commands[]; /* defined in cli/commands/commands.c */
extern const int cli_command_count;

/* Returns the command of that name; NULL: there is none. */
const cli_command *cli_command_find(const char *name);

/* Returns true if the command is a member of the group; if group is NULL, true if it is a member of no group. */
bool cli_command_is_in(const cli_command *command, const cli_command *group);

/* Returns the command's name without the name of its group: "bench" of "feed bench". */
const char *cli_command_last_name(const cli_command *command);

#endif
