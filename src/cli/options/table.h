/* SPDX-License-Identifier: Apache-2.0 */
/* The command's table: subcommands and their options.  The parser, --help, the man pages and the bash completion all
 * read it. */
#ifndef LEAT_CLI_OPTIONS_TABLE_H
#define LEAT_CLI_OPTIONS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* What a value is: how it is checked, and what completion offers for it. */
typedef enum cli_value {
    CLI_FLAG, /* none */
    CLI_TEXT,
    CLI_NUMBER,   /* from minimum to maximum */
    CLI_SIZE,     /* bytes, 512M */
    CLI_DURATION, /* seconds, with decimals; kept as milliseconds, as are minimum and maximum */
    CLI_SPEC,     /* data */
    CLI_FILE,
    CLI_FOLDER
} cli_value;

/* Every option: identifier, name, value's kind, value's name, minimum, maximum, default (as text), help. */
#define CLI_OPTION_LIST(X)                                                                                   \
    X(TRAIN, "--train", CLI_SPEC, "SPEC", 0, 0, NULL, "the training data (see: leat help specs)")            \
    X(VALIDATION, "--validation", CLI_SPEC, "SPEC", 0, 0, NULL, "data to validate on after each epoch")      \
    X(DATA, "--data", CLI_SPEC, "SPEC", 0, 0, NULL, "the data (see: leat help specs)")                       \
    X(OUTPUT, "--output", CLI_FILE, "FILE", 0, 0, NULL,                                                      \
      "where the predictions go: a .npy file, or an .npz file with one array per output")                    \
    X(TRACE_OUTPUT, "--output", CLI_FILE, "FILE", 0, 0, NULL, "where the trace goes")                        \
    X(REPORT_OUTPUT, "--output", CLI_FILE, "FILE", 0, 0, "RUN/report.html", "where the report goes")         \
    X(LAYERS, "--layers", CLI_FILE, "PLUGIN", 0, 0, NULL,                                                    \
      "a shared object with layers of your own, for a model that has such (see leat/layer.h)")               \
    X(EPOCHS, "--epochs", CLI_NUMBER, "N", 1, INT32_MAX, "1", "train up to this epoch")                      \
    X(INITIAL_EPOCH, "--initial-epoch", CLI_NUMBER, "N", 0, INT32_MAX, "0",                                  \
      "epochs that an earlier run has done")                                                                 \
    X(BATCH_SIZE, "--batch-size", CLI_NUMBER, "N", 1, INT32_MAX, "32", "samples per batch")                  \
    X(STEPS_PER_EPOCH, "--steps-per-epoch", CLI_NUMBER, "N", 1, INT32_MAX, "all", "batches per epoch")       \
    X(VALIDATION_STEPS, "--validation-steps", CLI_NUMBER, "N", 1, INT32_MAX, "all",                          \
      "batches per validation")                                                                              \
    X(VALIDATION_FREQ, "--validation-freq", CLI_NUMBER, "N", 1, INT32_MAX, "1",                              \
      "validate after every so many epochs")                                                                 \
    X(STEPS, "--steps", CLI_NUMBER, "N", 1, INT32_MAX, "all", "batches to use")                              \
    X(OPTIMIZER, "--optimizer", CLI_TEXT, "NAME|JSON", 0, 0, "the model's, or rmsprop",                      \
      "compile with this optimizer, such as adam or SGD(momentum=0.9); anew, without the state that the "    \
      "file has")                                                                                            \
    X(LOSS, "--loss", CLI_TEXT, "NAME", 0, 0, "the model's",                                                 \
      "compile with this loss, such as categorical_crossentropy or Huber(delta=2)")                          \
    X(METRICS, "--metrics", CLI_TEXT, "A,B", 0, 0, "the model's",                                            \
      "compile with these metrics, such as accuracy or AUC(curve=PR)")                                       \
    X(WORKERS, "--workers", CLI_NUMBER, "N", 0, 1024, "1",                                                   \
      "workers that make batches; 0: batches are made between the steps")                                    \
    X(MULTIPROCESSING, "--use-multiprocessing", CLI_FLAG, NULL, 0, 0, NULL,                                  \
      "worker processes instead of threads")                                                                 \
    X(MAX_QUEUE_SIZE, "--max-queue-size", CLI_NUMBER, "N", 1, 65536, "10", "batches made ahead")             \
    X(FEED_MEMORY, "--feed-memory", CLI_SIZE, "SIZE", 1, INT64_MAX, NULL,                                    \
      "memory for batches, such as 512M, instead of --max-queue-size; K, M and G count in 1024")             \
    X(SHUFFLE, "--shuffle", CLI_TEXT, "HOW", 0, 0, "auto",                                                   \
      "none, batches, samples, window:N (within runs of N samples), or auto: samples where the data "        \
      "allows it, otherwise batches")                                                                        \
    X(NO_SHUFFLE, "--no-shuffle", CLI_FLAG, NULL, 0, 0, NULL,                                                \
      "take the samples in their order: the same as --shuffle none")                                         \
    X(BAD_BATCH, "--bad-batch", CLI_TEXT, "POLICY", 0, 0, "fail",                                            \
      "what becomes of a batch that cannot be made: fail, skip, retry:N (N more attempts, then fail), or "   \
      "retry:N,skip")                                                                                        \
    X(BATCH_TIMEOUT, "--batch-timeout", CLI_DURATION, "SECONDS", 1, INT64_MAX, "none",                       \
      "longest time for making one batch; then its worker process is killed and the batch made once more")   \
    X(MAX_DEATHS, "--max-deaths", CLI_NUMBER, "N", 1, 1000000, "3",                                          \
      "worker processes that may die making one batch before it counts as bad")                              \
    X(CHECK_FINITE, "--check-finite", CLI_FLAG, NULL, 0, 0, NULL,                                            \
      "a batch that holds NaN or infinity is a bad batch")                                                   \
    X(TRACE, "--trace", CLI_FILE, "FILE", 0, 0, NULL,                                                        \
      "write what workers and steps did when, for https://ui.perfetto.dev")                                  \
    X(SEED, "--seed", CLI_NUMBER, "N", 0, INT64_MAX, "0",                                                    \
      "of everything random: a new model's weights, shuffling, dropout")                                     \
    X(THREADS, "--threads", CLI_NUMBER, "N", 1, 1024, "all cores", "threads to compute with")                \
    X(GRADIENT_CHECKPOINTING, "--gradient-checkpointing", CLI_FLAG, NULL, 0, 0, NULL,                        \
      "compute activations again for the gradients: less memory, up to a third more time")                   \
    X(DETERMINISTIC, "--deterministic", CLI_FLAG, NULL, 0, 0, NULL,                                          \
      "the same bytes for any --threads, at some cost in time")                                              \
    X(NO_FOLD, "--no-fold", CLI_FLAG, NULL, 0, 0, NULL,                                                      \
      "predictions leave BatchNormalization by itself, not in the weights of the convolution before it")     \
    X(DTYPE_POLICY, "--dtype-policy", CLI_TEXT, "POLICY", 0, 0, "as MODEL says",                             \
      "of all layers: float32, or mixed_bfloat16, which computes with bfloat16 and keeps weights in "        \
      "float32")                                                                                             \
    X(TUNE, "--tune", CLI_FLAG, NULL, 0, 0, NULL,                                                            \
      "measure once which kernels are fastest here, up to 10 s for each size of batch, and remember it for " \
      "later runs")                                                                                          \
    X(NO_TUNE, "--no-tune", CLI_FLAG, NULL, 0, 0, NULL, "forget for this run what --tune has measured")      \
    X(VERBOSE, "--verbose", CLI_NUMBER, "0|1|2", 0, 2, "1",                                                  \
      "0: silent, 1: a progress bar, 2: one line per epoch")                                                 \
    X(OUT, "--out", CLI_FOLDER, "DIR", 0, 0, NULL,                                                           \
      "folder for model.h5, checkpoint.h5, best.h5, history.json, report.html and log.csv")                  \
    X(MODEL, "--model", CLI_FILE, "MODEL", 0, 0, NULL, "the model that is to be trained: .h5 or .json")      \
    X(PAYLOAD, "--payload", CLI_SIZE, "BYTES", 1, INT64_C(1) << 40, NULL,                                    \
      "instead of a SPEC: synthetic batches of so many bytes")                                               \
    X(WORK_US, "--work-us", CLI_NUMBER, "N", 0, INT32_MAX, "0",                                              \
      "of --payload: microseconds of CPU time that making a batch costs beside writing it")                  \
    X(CONSUME_US, "--consume-us", CLI_NUMBER, "N", 0, INT32_MAX, "0",                                        \
      "microseconds of CPU time that are spent on each delivered batch, as a training step would")           \
    X(BATCHES, "--batches", CLI_NUMBER, "N", 1, INT32_MAX, "1000 a pass; of a SPEC, all",                    \
      "of --payload: batches of a pass; of a SPEC: batches to take in all")                                  \
    X(PASSES, "--passes", CLI_NUMBER, "N", 1, INT32_MAX, "2", "passes to take")                              \
    X(RANK, "--rank", CLI_NUMBER, "R", 0, INT32_MAX - 1, "0", "with --world: which share of the batches")    \
    X(WORLD, "--world", CLI_NUMBER, "W", 1, INT32_MAX, "1",                                                  \
      "take every W-th batch alone, from the R-th on, as one of W processes does")                           \
    X(DIGEST, "--digest", CLI_FLAG, NULL, 0, 0, NULL,                                                        \
      "also the SHA-256 of every byte delivered, in order; synthetic batches then are random throughout")    \
    X(PLAN, "--plan", CLI_FLAG, NULL, 0, 0, NULL, "instead: how a batch is computed, op by op")              \
    X(TRAIN_STEP, "--train", CLI_FLAG, NULL, 0, 0, NULL,                                                     \
      "with --plan: a training step instead of a prediction")                                                \
    X(TIME, "--time", CLI_FLAG, NULL, 0, 0, NULL,                                                            \
      "with --plan: measure each op on made-up data, and tell its share of the time")                        \
    X(UNKNOWN, "--unknown", CLI_NUMBER, "N", 1, INT32_MAX, "32",                                             \
      "with --plan: what counts for a None in an input's shape, beside the batch")                           \
    X(SECONDS, "--seconds", CLI_DURATION, "SECONDS", 50, 3600000, "2", "time for each setting")              \
    X(JSON, "--json", CLI_FLAG, NULL, 0, 0, NULL, "print the result as one JSON object")                     \
    X(HELP, "--help", CLI_FLAG, NULL, 0, 0, NULL, "say all this")

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
    const char *fallback; /* the default in words, NULL: none */
    const char *help;
} cli_option;

extern const cli_option cli_options[CLI_OPTION_COUNT];

/* What the user said: texts as given, numbers read. */
typedef struct cli_arguments {
    const char *program; /* argv[0] */
    const char *operands[2];
    int operand_count;
    const char *text[CLI_OPTION_COUNT]; /* NULL: not given */
    int64_t number[CLI_OPTION_COUNT];   /* of numbers, sizes (bytes) and seconds (ms) */
} cli_arguments;

/* What `leat list` lists: the enumerator LEAT_NAMES_*, and its word on the command line. */
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

/* A command's option, and whether it must be given. */
typedef struct cli_use {
    cli_option_id id;
    bool required;
} cli_use;

typedef struct cli_command {
    const char *name; /* "fit"; "feed bench": a member of the group "feed" */
    const char *
        operand; /* its name, in brackets where it may be left out, with "..." where two may be given; NULL: none */
    const char *summary;
    const char *description; /* paragraphs, with an empty line between them */
    const char *examples;    /* one a line */
    const cli_use *uses;
    int use_count;
    int (*run)(const cli_arguments
                   *arguments); /* an exit code; NULL: a group, whose members have rows of their own */
} cli_command;

extern const cli_command cli_commands[]; /* defined in cli/commands/commands.c */
extern const int cli_command_count;

/* The command of that name, NULL where there is none. */
const cli_command *cli_command_find(const char *name);

/* Whether a command is a member of a group; of NULL: whether it is of none. */
bool cli_command_is_in(const cli_command *command, const cli_command *group);

/* A command's name without its group's: "bench". */
const char *cli_command_last_name(const cli_command *command);

#endif
