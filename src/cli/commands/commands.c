/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands: their operands, options, help texts and functions.  Room: cli. */
#include "cli/commands/commands.h"

#include <stddef.h>

/* Optional and required options of a command. */
#define MAY(id)                                                                                              \
    { CLI_##id, false }
#define MUST(id)                                                                                             \
    { CLI_##id, true }

/* Options for batches that cannot be made. */
#define FAULT_USES MAY(BAD_BATCH), MAY(BATCH_TIMEOUT), MAY(MAX_DEATHS), MAY(CHECK_FINITE)

/* Options for workers and the queue. */
#define WORKER_USES MAY(WORKERS), MAY(MULTIPROCESSING), MAY(MAX_QUEUE_SIZE), MAY(FEED_MEMORY)

/* Options for computing. */
#define KERNEL_USES                                                                                          \
    MAY(DEVICE), MAY(TF32), MAY(THREADS), MAY(DETERMINISTIC), MAY(NO_FOLD), MAY(DTYPE_POLICY), MAY(TUNE),    \
        MAY(NO_TUNE)

/* Options that evaluate and predict share. */
#define PASS_USES                                                                                            \
    MAY(LAYERS), MAY(WEIGHTS), MAY(BATCH_SIZE), MAY(STEPS), WORKER_USES, FAULT_USES, MAY(SEED), KERNEL_USES, \
        MAY(DIST), MAY(DIST_TIMEOUT), MAY(VERBOSE), MAY(JSON), MAY(HELP)

static const cli_use fit_uses[] = {
    MUST(TRAIN),
    MAY(VALIDATION),
    MAY(VALIDATION_SPLIT),
    MAY(LAYERS),
    MAY(WEIGHTS),
    MAY(EPOCHS),
    MAY(BATCH_SIZE),
    MAY(STEPS_PER_EPOCH),
    MAY(OPTIMIZER),
    MAY(LOSS),
    MAY(METRICS),
    MAY(ARITHMETIC),
    MAY(NO_COMPILE),
    MAY(FREEZE),
    MAY(UNFREEZE),
    MAY(CLASS_WEIGHT),
    MAY(LR_SCHEDULE),
    MAY(REDUCE_LR),
    MAY(EARLY_STOPPING),
    MAY(SAVE_BEST),
    WORKER_USES,
    MAY(SHUFFLE),
    MAY(NO_SHUFFLE),
    FAULT_USES,
    MAY(SEED),
    KERNEL_USES,
    MAY(GRADIENT_CHECKPOINTING),
    MAY(DIST),
    MAY(DIST_TIMEOUT),
    MAY(SYNC_BATCH_NORM),
    MAY(BF16_GRADIENTS),
    MAY(SHARD_OPTIMIZER),
    MAY(INITIAL_EPOCH),
    MAY(VALIDATION_STEPS),
    MAY(VALIDATION_FREQ),
    MAY(VALIDATION_EVERY),
    MAY(STOP_ON_NAN),
    MAY(NO_STOP_ON_NAN),
    MAY(VERBOSE),
    MAY(OUT),
    MAY(OVERWRITE),
    MAY(CHECKPOINT_EVERY),
    MAY(KEEP_CHECKPOINTS),
    MAY(RESUME),
    MAY(DATA_CHANGED),
    MAY(REMOTE_MONITOR),
    MAY(OPEN_METRICS),
    MAY(TENSORBOARD),
    MAY(UPDATE_FREQ),
    MAY(HISTOGRAM_FREQ),
    MAY(TRACE),
    MAY(JSON),
    MAY(HELP),
};

static const cli_use evaluate_uses[] = {MUST(DATA), MAY(LOSS), MAY(METRICS), MAY(NO_COMPILE), PASS_USES};

static const cli_use predict_uses[] = {MUST(DATA),        MUST(OUTPUT),        MAY(INPUT_LAYER),
                                       MAY(OUTPUT_LAYER), MAY(WEIGHTS_FORMAT), PASS_USES};

/* Options that bench and trace share. */
#define FEED_USES                                                                                            \
    MAY(PAYLOAD), MAY(WORK_US), MAY(CONSUME_US), MAY(BATCH_SIZE), MAY(BATCHES), MAY(PASSES), WORKER_USES,    \
        MAY(SHUFFLE), MAY(SEED), MAY(RANK), MAY(WORLD), FAULT_USES

static const cli_use feed_bench_uses[] = {FEED_USES, MAY(DIGEST), MAY(JSON), MAY(HELP)};

static const cli_use feed_trace_uses[] = {MUST(TRACE_OUTPUT), FEED_USES, MAY(JSON), MAY(HELP)};

static const cli_use feed_check_uses[] = {MAY(JSON), MAY(HELP)};

static const cli_use feed_show_uses[] = {MUST(PAGE_OUTPUT), MAY(SAMPLES), MAY(HELP)};

static const cli_use feed_tune_uses[] = {MUST(MODEL),     MAY(LOSS),         MAY(OPTIMIZER),  MAY(NO_COMPILE),
                                         MAY(LAYERS),     MAY(DTYPE_POLICY), MAY(BATCH_SIZE), MAY(SHUFFLE),
                                         MAY(SEED),       MAY(SECONDS),      MAY(JSON),       MAY(HELP),
                                         MAY(BATCH_SIZES)};

static const cli_use report_uses[] = {MAY(REPORT_OUTPUT), MAY(FOLLOW), MAY(HELP)};

static const cli_use summary_uses[] = {
    MAY(INPUT_LAYER), MAY(OUTPUT_LAYER),
    MAY(LAYERS),      MAY(PLAN),
    MAY(BATCH_SIZE),  MAY(TRAIN_STEP),
    MAY(TIME),        MAY(LOSS),
    MAY(OPTIMIZER),   MAY(METRICS),
    MAY(NO_COMPILE),  MAY(UNKNOWN),
    KERNEL_USES,      MAY(GRADIENT_CHECKPOINTING),
    MAY(JSON),        MAY(HELP),
};

static const cli_use convert_uses[] = {MAY(ARCHITECTURE), MAY(INPUT_LAYER), MAY(OUTPUT_LAYER),
                                       MAY(LAYERS),       MAY(NO_COMPILE),  MAY(HELP)};

static const cli_use list_uses[] = {MAY(JSON), MAY(HELP)};

static const cli_use help_uses[] = {MAY(HELP)};

#define USES(array) array, sizeof array / sizeof *array

const cli_command cli_commands[] = {
    {"fit", "MODEL", "train a model",
     "MODEL is a file of Keras (.keras, .h5), an ONNX file, or a .json architecture, whose weights are then "
     "initialized.  A model "
     "without a compilation needs --loss.  With --optimizer, --loss, --metrics or --arithmetic the model is "
     "compiled again, with a new state of the optimizer; those that are not given are the file's, unless "
     "--no-compile "
     "is given.\n"
     "\n"
     "The folder of --out receives model.h5 (the final model, with the optimizer's state), best.h5 (the "
     "lowest val_loss if there is validation data, or the best value of --save-best), history.json, "
     "report.html (see leat report) and log.csv; while the run goes on, run.json (how it was started), "
     "start.h5 (a copy of MODEL) and checkpoints/.  Without --out nothing is saved.  A folder that has a run "
     "already is refused without --overwrite.\n"
     "\n"
     "--early-stopping and --reduce-lr-on-plateau take arguments of Keras's callbacks EarlyStopping "
     "(monitor, min_delta, patience, mode, baseline, restore_best_weights, verbose) and ReduceLROnPlateau "
     "(monitor, factor, patience, mode, min_delta, cooldown, min_lr, verbose), separated by commas; monitor "
     "is val_loss and verbose is 1 if they are not given.  --lr-schedule takes CosineDecay, "
     "CosineDecayRestarts, ExponentialDecay, InverseTimeDecay, PiecewiseConstantDecay or PolynomialDecay "
     "with the arguments that "
     "they have in keras.optimizers.schedules.\n"
     "\n"
     "--freeze and --unfreeze take patterns for the names of layers: `*` is any text, `?` any character and "
     "`[a-c]` one of these characters.  A pattern also matches the path of a layer of a nested model, such "
     "as "
     "base/conv1, and one that matches a nested model means all layers in it.  --freeze is applied first.\n"
     "\n"
     "With --tensorboard, `tensorboard --logdir DIR` shows loss and metrics while the model is trained, the "
     "learning rate, the graph of the layers, and with --histogram-freq the distributions of the weights.\n"
     "\n"
     "`leat fit --resume DIR` continues a run that was interrupted or killed, from its newest checkpoint, "
     "and "
     "ends with the same bytes as if it had never been interrupted.  It needs no other argument.  Options "
     "that do "
     "not change the result may be added: --workers (processes with --use-multiprocessing, otherwise "
     "threads), "
     "--threads, --verbose, --checkpoint-every, and a greater --epochs, which also continues a run that has "
     "ended.\n"
     "\n"
     "On an interrupt (Ctrl-C, SIGTERM, SIGHUP) training stops after the current batch and writes a "
     "checkpoint; "
     "leat says how to go on, and the exit code is 130, 143 or 129.  A second interrupt ends the command at "
     "once; "
     "then, and after SIGKILL, the steps since the last checkpoint are computed again.\n"
     "\n"
     "If the loss becomes NaN or infinite, training stops with an error, and model.h5 is not written.",
     "leat fit cnn.json --train 'idx:x.gz,y.gz?scale=1/255&onehot=10' \\\n"
     "    --loss categorical_crossentropy --optimizer adam --metrics accuracy \\\n"
     "    --epochs 6 --batch-size 128 --workers 2 --use-multiprocessing --out run\n"
     "leat fit --resume run\n"
     "leat fit --resume run --epochs 12 --workers 4\n"
     "leat fit run/model.h5 --train npz:more.npz --validation npz:test.npz --epochs 2 --out run2\n"
     "leat fit model.h5 --train plugin:./frames.so --loss mse \\\n"
     "    --optimizer 'SGD(learning_rate=0.01)' --metrics 'mae,RootMeanSquaredError'\n"
     "leat fit cnn.h5 --train npz:train.npz --validation-split 0.1 --epochs 100 --out run \\\n"
     "    --early-stopping patience=5,restore_best_weights=true --save-best val_accuracy \\\n"
     "    --lr-schedule 'CosineDecay(initial_learning_rate=0.01, decay_steps=5000)'\n"
     "leat fit model.h5 --train npz:train.npz --loss binary_crossentropy \\\n"
     "    --metrics 'AUC,Precision(thresholds=[0.3, 0.5])'\n"
     "leat fit model.h5 --train npz:train.npz --freeze '*' --unfreeze 'block5_*,predictions' --out run",
     USES(fit_uses), cli_fit},
    {"evaluate", "MODEL", "compute the loss and the metrics of a model on data",
     "Prints the loss and the metrics, computed over all samples, on standard output.  MODEL must have a "
     "compilation, or --loss must be given.",
     "leat evaluate run/model.h5 --data 'idx:t10k-images.gz,t10k-labels.gz?scale=1/255&onehot=10' --json",
     USES(evaluate_uses), cli_evaluate},
    {"predict", "MODEL", "compute the predictions of a model for data",
     "Writes one array per output of the model, with the samples along the first axis in the order of the "
     "data.  In an .npz file the arrays have the names of the output layers, with _1, _2 for further outputs "
     "of the same layer.  Targets in the data are ignored.\n"
     "\n"
     "In a .csv file the column `sample` says where a sample comes from: the path of its picture, the file "
     "and "
     "the line of a table, the row of an array, or, in combinations, its number from 0; it is empty if "
     "`bad=skip` has left out samples.  The other columns "
     "are "
     "the outputs; one with several numbers has the columns NAME_0, NAME_1 and so on.\n"
     "\n"
     "With --output-layer the predictions are the outputs of inner layers; with --input-layer the data is "
     "what an inner layer reads.\n"
     "\n"
     "With --weights-format bf16 or int8 the predictions are those of a predictor that keeps smaller weights "
     "(leat_predictor_options.weights_format in C).  The command then says how much they differ from those "
     "with "
     "f32 weights, and how long a sample takes with each.",
     "leat predict run/model.h5 --data npy:x.npy --output y.npy\n"
     "leat predict two_heads.h5 --data npz:x.npz --output y.npz --workers 2\n"
     "leat predict run/model.h5 --data 'images:new?size=224x224&labels=none' --output classes.csv\n"
     "leat predict resnet50.h5 --data npz:x.npz --output features.npy --output-layer avg_pool\n"
     "leat predict run/model.h5 --data npy:x.npy --output y.npy --weights-format int8",
     USES(predict_uses), cli_predict},
    {"summary", "MODEL", "print a model's layers, shapes and numbers of parameters",
     "Prints Keras's table on standard output; with --json, an object with the same content.\n"
     "\n"
     "With --plan, prints how a batch is computed instead.  For each op: the layer that it belongs to, the "
     "implementation with the ops that were fused into it (conv+relu), the memory layout, the bytes that the "
     "op reads and writes, and its bytes of the arena; with --time also the median time and its share of the "
     "total.  Then totals by kind of op, and the number of copies between layouts.",
     "leat summary model.h5\n"
     "leat summary --plan model.h5 --batch-size 8 --time\n"
     "leat summary --plan cnn.json --train --loss mse --batch-size 64 --time --json",
     USES(summary_uses), cli_summary},
    {"convert", "IN OUT", "convert a model from one file format into another",
     "The suffixes of IN and OUT decide the formats:\n"
     "\n"
     ".keras, the archive of current Keras, and .h5 have the layers, the weights and, if the model is "
     "compiled, the loss and the optimizer with its state; an .h5 file is in the form of the Keras that the "
     "model came from.  .weights.h5, of current Keras, and .safetensors have weights only.  .json has the "
     "layers only.  .onnx has the prediction of the model, for programs such as ONNX Runtime; leat reads the "
     "files "
     "of PyTorch and others, and its own, as models that can be trained.\n"
     "\n"
     "With --output-layer and --input-layer, OUT has the part of the model that ends or begins at these "
     "layers, without a compilation.\n"
     "\n"
     "OUT cannot have what IN lacks: weights alone need --model to become a model.  A layer that the "
     "format of OUT cannot hold is refused by name.",
     "leat convert old.h5 new.keras\nleat convert model.keras model.json\n"
     "leat convert model.h5 model.weights.h5\n"
     "leat convert model.h5 model.onnx\nleat convert resnet.onnx resnet.keras\n"
     "leat convert model.h5 model.safetensors\n"
     "leat convert best.weights.h5 best.keras --model model.json\n"
     "leat convert resnet50.h5 base.h5 --output-layer avg_pool",
     USES(convert_uses), cli_convert},
    {"feed", "COMMAND", "check data, measure how fast it is fed, and find the best setting",
     "These commands show whether training waits for data: bench measures how fast batches are made and "
     "delivered, tune tries settings with the real training step, and trace records what each worker does "
     "over time.  check reads all samples and finds broken files, and show writes a page of samples.",
     "leat feed bench 'npz:train.npz' --workers 2 --use-multiprocessing\n"
     "leat feed tune 'npz:train.npz' --model model.h5\n"
     "leat feed trace 'npz:train.npz' --output feed.json\n"
     "leat feed check 'images:photos'",
     USES(help_uses), NULL},
    {"feed bench", "[SPEC]", "measure how fast batches are made and delivered",
     "Takes batches from a SPEC, or synthetic batches with --payload, and discards them.  Prints on standard "
     "output: the time per batch, MB/s (millions of bytes per second), the time to the first batch, the time "
     "between two passes, percentiles of the time that workers need for a batch and of the time that the "
     "reader waits for one, and faults.\n"
     "\n"
     "All bytes of a synthetic batch have the same random value; with --digest each byte is random.  The "
     "values depend on seed, pass and index only, so the digest is the same for any number and kind of "
     "workers.",
     "leat feed bench 'idx:x.gz,y.gz?scale=1/255' --workers 2\n"
     "leat feed bench --payload 600K --workers 2 --use-multiprocessing --json\n"
     "leat feed bench --payload 1K --work-us 5000 --workers 2 --digest",
     USES(feed_bench_uses), cli_feed_bench},
    {"feed tune", "SPEC", "find the best workers, threads, queue and batch size for a model and its data",
     "Trains with one setting after another, --seconds each, and prints on standard output which setting is "
     "fastest and why.  It tries numbers of worker threads and processes while all cores compute, then fewer "
     "compute threads, then longer and shorter queues.  Among settings whose speeds differ by less than 3 % "
     "it chooses the smallest.  Nothing is saved, and each setting starts with the model's own weights.\n"
     "With --batch-sizes it does this for each batch size and compares samples per second, memory and steps "
     "per epoch.  The learning rate in that table is the model's, which is taken to fit --batch-size, scaled "
     "by a rule of thumb: with the batch size for SGD, with its square root for other optimizers.",
     "leat feed tune 'npz:train.npz' --model model.h5\n"
     "leat feed tune plugin:./frames.so --model cnn.json --loss mse --batch-size 128 --seconds 5\n"
     "leat feed tune 'npz:train.npz' --model model.h5 --batch-size 64 --batch-sizes 64,256,1024",
     USES(feed_tune_uses), cli_feed_tune},
    {"feed trace", "[SPEC]", "record what each worker does over time",
     "Takes batches like `leat feed bench` and writes a trace of workers, waits and the queue, which "
     "https://ui.perfetto.dev and chrome://tracing can open.  `leat fit --trace FILE` writes such a trace of "
     "a training.",
     "leat feed trace 'npz:train.npz' --output feed.json --workers 2 --batches 500 --consume-us 2000",
     USES(feed_trace_uses), cli_feed_trace},
    {"feed check", "SPEC", "read all samples and report what is wrong",
     "Reads each sample once, on all cores, and prints on standard output: the number of samples, the "
     "shapes, the mean and the standard deviation of the channels of pictures, how many samples "
     "each class has, the samples that cannot be read, with the reason, and samples whose inputs are the "
     "same (by their SHA-256), with the place that each comes from: a file, a file with the line of a table "
     "or the row of "
     "an array, or a shard and an offset.  Pictures "
     "are read without their augmentation.  The "
     "exit code is 1 if a sample cannot be read.  Targets that are one integer, or a row of zeros and "
     "ones, are classes; of masks, the values of the pixels are counted.",
     "leat feed check 'images:photos?size=224x224'\nleat feed check npz:train.npz --json",
     USES(feed_check_uses), cli_feed_check},
    {"feed show", "SPEC", "write a page with samples and their labels",
     "Writes one HTML file that loads nothing from elsewhere, with samples as the model receives them, and "
     "their "
     "labels.  Tensors of the shape (height, width, channels) with 1, 3 or 4 channels, of uint8 or float32, "
     "are shown "
     "as pictures: bytes unchanged; other numbers are scaled so that the smallest number of a sample is "
     "black and the "
     "largest white.  Of other inputs the first 64 numbers are shown, a line for each step of time.",
     "leat feed show 'images:photos?size=224x224' --output samples.html", USES(feed_show_uses),
     cli_feed_show},
    {"report", "RUN", "write a page with plots of a run",
     "RUN is a folder that `leat fit --out` wrote, or a history.json.  The report is one HTML file that "
     "loads nothing from elsewhere.  It shows loss and metrics by epoch, the time of a step divided into "
     "waiting for data and computing, the number of batches ahead, the times at which each worker made its "
     "batches, the feed's figures, and the run's configuration.  `leat fit --out` writes it, too.\n"
     "\n"
     "With --follow, the report shows a run that is still going: open the page in a browser, where it "
     "reloads "
     "itself.  The command ends when the run ends, even if the run is killed; Ctrl-C ends the command (exit "
     "code 130), but not the run.",
     "leat report run\nleat report run --output /tmp/run.html\nleat report run --follow", USES(report_uses),
     cli_report},
    {"list", "[KIND]", "list the losses, layers and other names that leat supports",
     "KIND is layers, losses, metrics, optimizers, activations, initializers, regularizers or constraints.  "
     "Prints one name per line, sorted, including all of Keras's names for the same thing "
     "(mean_squared_error, MeanSquaredError, mse); without KIND, the number of names of each kind.  --loss, "
     "--metrics and --optimizer take these names; the names of optimizers may be in upper or lower case.",
     "leat list losses\nleat list layers | grep -i conv\nleat list --json", USES(list_uses), cli_list},
    {"help", "[TOPIC...]", "explain a command, or how to name data (specs)", "TOPIC is a command or `specs`.",
     "leat help specs\nleat help fit\nleat help feed bench", USES(help_uses), cli_help},
    {"version", NULL, "print the version", "Prints the version of the library on standard output.",
     "leat version", USES(help_uses), cli_version},
};

const int cli_command_count = sizeof cli_commands / sizeof *cli_commands;
