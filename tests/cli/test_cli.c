/* SPDX-License-Identifier: Apache-2.0 */
/* The `leat` command: its output, the files that it writes, and its exit codes. */
#include "cmocka_all.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "cli/command.h"
#include "data/files.h"
#include "leat/checkpoint.h"
#include "leat/npz.h"

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static int leave(void **state) {
    if (system("rm -rf run deep logs") != 0) return -1;
    return files_leave(state);
}

/* ---- Usage ---- */

static void help_is_the_table(void **state) {
    (void)state;
    runs("--help");
    assert_non_null(strstr(out, "usage: leat COMMAND"));
    const char *commands[] = {"fit", "evaluate", "predict", "summary", "list", "help", "version"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; ++i) {
        char line[64];
        snprintf(line, sizeof line, "%s --help", commands[i]);
        runs(line);
        assert_non_null(strstr(out, "examples:"));
        assert_string_equal(errors, "");
        char first[text_bytes];
        memcpy(first, out, sizeof first);
        snprintf(line, sizeof line, "help %s", commands[i]);
        runs(line);
        assert_string_equal(out, first);
    }
    runs("help specs");
    assert_non_null(strstr(out, "idx:INPUTS[,TARGETS]"));
    runs("--version");
    assert_string_equal(out, "leat " LEAT_VERSION_STRING "\n");
}

static void wrong_usage_is_told_and_exits_with_2(void **state) {
    (void)state;
    refused("", "usage: leat COMMAND");
    refused("fitt", "unknown command 'fitt': did you mean 'fit'?");
    refused("fti", "unknown command 'fti': did you mean 'fit'?");
    refused("Fit", "unknown command 'Fit': did you mean 'fit'?");
    refused("tes", "unknown command 'tes'\n");
    refused("fit m.h5 --epcohs 3", "unknown option '--epcohs': did you mean '--epochs'?");
    refused("fit m.h5 --x 3", "unknown option '--x'\n");
    refused("fit", "MODEL is missing");
    refused("fit m.h5", "--train SPEC is missing");
    refused("fit m.h5 --train", "--train needs a value");
    refused("fit m.h5 --epoch 3", "unknown option '--epoch': did you mean '--epochs'?");
    refused("fit m.h5 --epoch=3", "did you mean '--epochs'?");
    refused("fit m.h5 n.h5", "unexpected argument 'n.h5'");
    refused("fit m.h5 --epochs 0", "expected an integer of at least 1");
    refused("fit m.h5 --batch-size 99999999999", "expected an integer from 1 to 2147483647");
    refused("fit m.h5 --epochs x", "--epochs 'x'");
    refused("fit m.h5 --epochs 99999999999999999999", "--epochs");
    refused("fit m.h5 --verbose 3", "from 0 to 2");
    refused("fit m.h5 --epochs 1 --epochs 2", "--epochs is given twice");
    refused("fit m.h5 --no-shuffle=1", "takes no value");
    refused("fit m.h5 --train x --initial-epoch 3 --epochs 3", "expected more than --initial-epoch");
    refused("fit m.h5 --train x --update-freq 5", "--update-freq needs --tensorboard");
    refused("fit m.h5 --train x --histogram-freq 1", "--histogram-freq needs --tensorboard");
    refused("fit m.h5 --train x --tensorboard t --update-freq 0",
            "--update-freq '0': expected epoch, batch, or");
    refused("fit m.h5 --train x --tensorboard t --update-freq 5x", "--update-freq '5x': expected epoch");
    refused("fit m.h5 --train x --tensorboard t --update-freq 99999999999999999999", "expected epoch");
    refused("fit m.h5 --train x --tensorboard=", "--tensorboard needs a value: --tensorboard DIR");
    refused("predict m.h5 --data x", "--output FILE is missing");
    refused("predict m.h5 --train x", "unknown option '--train'");
    refused("version x", "unexpected argument");
    refused("help spec", "did you mean 'specs'?");
    refused("evaluate -- --data", "--data SPEC is missing");
}

static void a_manual_page_and_a_completion_for_each_command(void **state) {
    (void)state;
    const char *pages[] = {"leat.1",         "leat-fit.1",     "leat-evaluate.1",
                           "leat-predict.1", "leat-summary.1", "leat-specs.7"};
    char path[512];
    for (size_t i = 0; i < sizeof pages / sizeof *pages; ++i) {
        snprintf(path, sizeof path, LEAT_BINARY_DIR "/manual/%s", pages[i]);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        out[fread(out, 1, sizeof out - 1, file)] = '\0';
        fclose(file);
        assert_memory_equal(out, ".TH LEAT", 8);
        assert_non_null(strstr(out, ".SH NAME"));
    }
    assert_int_equal(system("bash -n " LEAT_BINARY_DIR "/manual/leat.bash"), 0);
}

/* ---- Training and using models ---- */

static void fit_trains_saves_and_reports(void **state) {
    (void)state;
    runs(FIT "--validation npz:d.npz --epochs 3 --out deep/er/run --json --verbose 2");
    json_error_t why;
    json_t *root = json_loads(out, 0, &why), *history = json_object_get(root, "history");
    assert_non_null(root);
    const char *series[] = {"loss", "accuracy", "val_loss", "val_accuracy"};
    for (int i = 0; i < 4; ++i) assert_int_equal(json_array_size(json_object_get(history, series[i])), 3);
    json_t *loss = json_object_get(history, "loss");
    assert_true(json_number_value(json_array_get(loss, 2)) < json_number_value(json_array_get(loss, 0)));
    assert_true(json_is_object(json_object_get(root, "verdict")));
    json_decref(root);
    const char *files[] = {"model.h5", "run.json", "best.h5", "history.json", "log.csv"};
    for (int i = 0; i < 5; ++i) {
        char path[64];
        snprintf(path, sizeof path, "deep/er/run/%s", files[i]);
        if (!exists(path)) fail_msg("%s is missing", path);
    }
    json_t *saved = json_load_file("deep/er/run/history.json", 0, &why);
    assert_int_equal(json_array_size(json_object_get(json_object_get(saved, "history"), "loss")), 3);
    json_decref(saved);
}

/* Returns the number of files in a folder, and the size of all of them together; -1 if there is no folder. */
static int files_in(const char *folder, int64_t *size) {
    int count = 0;
    DIR *directory = opendir(folder);
    *size = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct stat info;
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
        ++count;
        *size += info.st_size;
    }
    if (!directory) return -1;
    closedir(directory);
    return count;
}

/* tests/train/test_tensorboard.c reads the content of the files. */
static void fit_writes_event_files(void **state) {
    (void)state;
    int64_t epochs = 0, batches = 0, histograms = 0, size = 0;
    runs(FIT "--epochs 2 --tensorboard logs/a --verbose 0");
    assert_int_equal(files_in("logs/a/train", &epochs), 1);
    assert_int_equal(files_in("logs/a/validation", &size), -1);
    runs(FIT
         "--epochs 2 --validation npz:d.npz --tensorboard logs/b --update-freq batch --verbose 0 --out run");
    assert_int_equal(files_in("logs/b/train", &batches), 1);
    assert_int_equal(files_in("logs/b/validation", &size), 1);
    assert_true(batches > epochs);
    runs(FIT "--epochs 2 --tensorboard logs/c --update-freq 1 --histogram-freq 1 --verbose 0");
    assert_int_equal(files_in("logs/c/train", &histograms), 1);
    assert_true(histograms > batches + 4 * 30 * 24); /* two epochs of at least two weights */
}

static double evaluate(const char *model) {
    char line[256];
    snprintf(line, sizeof line, "evaluate %s --data npz:d.npz --json", model);
    runs(line);
    json_error_t why;
    json_t *root = json_loads(out, 0, &why);
    assert_non_null(root);
    assert_true(json_is_number(json_object_get(root, "accuracy")));
    double loss = json_number_value(json_object_get(root, "loss"));
    json_decref(root);
    return loss;
}

/* Results go to standard output; progress goes to standard error. */
static void results_are_on_standard_output(void **state) {
    (void)state;
    double loss = 0, accuracy = 0;
    runs(FIT "--epochs 1 --out run --overwrite --verbose 0");
    runs("evaluate run/model.h5 --data npz:d.npz");
    assert_int_equal(sscanf(out, "loss: %lf - accuracy: %lf", &loss, &accuracy), 2);
    assert_true(loss > 0 && accuracy >= 0 && accuracy <= 1);
    assert_non_null(strstr(out, "\n"));
    assert_ptr_equal(strchr(out, '\n'), out + strlen(out) - 1); /* one line, for a pipe */
    assert_non_null(strstr(errors, "3/3 ["));
    runs("evaluate run/model.h5 --data npz:d.npz --verbose 0");
    assert_memory_equal(out, "loss: ", 6);
    assert_string_equal(errors, "");
}

static void training_goes_on_where_it_ended(void **state) {
    (void)state;
    runs(FIT "--epochs 2 --out run --overwrite --verbose 0");
    assert_string_equal(errors, "");
    double before = evaluate("run/model.h5");
    runs("fit --resume run --epochs 6");
    assert_true(evaluate("run/model.h5") < before);
    FILE *log = fopen("run/log.csv", "r");
    assert_non_null(log);
    int lines = 0;
    for (int c; (c = fgetc(log)) != EOF;) lines += c == '\n';
    fclose(log);
    assert_int_equal(lines, 7); /* a heading and six epochs */
}

static void predictions_have_the_shape_and_sum_of_a_softmax(void **state) {
    (void)state;
    runs(FIT "--epochs 1 --out run --overwrite --verbose 0");
    runs("predict run/model.h5 --data npz:d.npz --output p.npy --batch-size 7 --json");
    assert_string_equal(out, "{\"output\": \"p.npy\", \"shapes\": {\"scores\": [90, 3]}}\n");
    runs(
        "predict run/model.h5 --data npz:d.npz --output p.npz --workers 2 --use-multiprocessing --verbose 0");
    assert_string_equal(errors, "");
    leat_npz *one = NULL, *named = NULL;
    leat_tensor p, q;
    assert_int_equal(leat_npz_open(&one, "p.npy", NULL), LEAT_OK);
    assert_int_equal(leat_npz_open(&named, "p.npz", NULL), LEAT_OK);
    assert_int_equal(leat_npz_get(one, "", &p, NULL), LEAT_OK);
    assert_int_equal(leat_npz_get(named, "scores", &q, NULL), LEAT_OK);
    assert_int_equal(p.shape[0], 90);
    for (int i = 0; i < 90; ++i) {
        const float *row = (const float *)p.data + 3 * i, *other = (const float *)q.data + 3 * i;
        assert_true(fabsf(row[0] + row[1] + row[2] - 1) < 1e-5f);
        for (int k = 0; k < 3; ++k) assert_true(fabsf(row[k] - other[k]) < 1e-6f);
    }
    leat_npz_close(&one);
    leat_npz_close(&named);
}

static void predictions_in_a_table_have_the_places_of_their_samples(void **state) {
    (void)state;
    runs(FIT "--epochs 1 --out run --overwrite --verbose 0");
    runs("predict run/model.h5 --data npz:d.npz --output p.npy --verbose 0");
    runs("predict run/model.h5 --data npz:d.npz --output p.csv --verbose 0");
    leat_npz *arrays = NULL;
    leat_tensor p;
    assert_int_equal(leat_npz_open(&arrays, "p.npy", NULL), LEAT_OK);
    assert_int_equal(leat_npz_get(arrays, "", &p, NULL), LEAT_OK);
    const float *expected = p.data;
    char line[256], place[64];
    FILE *table = fopen("p.csv", "r");
    assert_non_null(table);
    assert_non_null(fgets(line, sizeof line, table));
    assert_string_equal(line, "sample,scores_0,scores_1,scores_2\n");
    for (int n = 0; n < 90; ++n, expected += 3) {
        float row[3];
        assert_non_null(fgets(line, sizeof line, table));
        const int length = snprintf(place, sizeof place, "\"d.npz, row %d\"", n);
        assert_memory_equal(line, place, (size_t)length);
        assert_int_equal(sscanf(line + length, ",%f,%f,%f\n", &row[0], &row[1], &row[2]), 3);
        assert_memory_equal(row, expected, sizeof row);
    }
    assert_null(fgets(line, sizeof line, table));
    fclose(table);
    leat_npz_close(&arrays);
}

static void predictions_in_a_table_for_a_combination_have_numbers(void **state) {
    (void)state;
    runs(FIT "--epochs 1 --out run --overwrite --verbose 0");
    runs("predict run/model.h5 --data concat(npz:d.npz;npz:d.npz) --output p.csv --verbose 0");
    char line[256] = "";
    FILE *table = fopen("p.csv", "r");
    assert_non_null(table);
    for (int n = 0; n < 1 + 91; ++n) assert_non_null(fgets(line, sizeof line, table));
    assert_memory_equal(line, "90,", 3);
    fclose(table);
}

static void several_outputs_of_one_layer_have_names_of_their_own(void **state) {
    (void)state;
    write_text("states.json",
               "{\"class_name\": \"Model\", \"config\": {\"name\": \"states\", \"layers\": ["
               "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"inbound_nodes\": [], "
               "\"config\": {\"name\": \"x\", \"batch_input_shape\": [null, 4]}},"
               "{\"class_name\": \"Reshape\", \"name\": \"steps\", \"inbound_nodes\": [[[\"x\", 0, 0, {}]]], "
               "\"config\": {\"name\": \"steps\", \"target_shape\": [2, 2]}},"
               "{\"class_name\": \"LSTM\", \"name\": \"cell\", \"inbound_nodes\": [[[\"steps\", 0, 0, {}]]], "
               "\"config\": {\"name\": \"cell\", \"units\": 3, \"return_state\": true}}],"
               "\"input_layers\": [[\"x\", 0, 0]], "
               "\"output_layers\": [[\"cell\", 0, 0], [\"cell\", 0, 1], [\"cell\", 0, 2]]}}");
    runs("predict states.json --data npz:d.npz?inputs=x --output p.npz --verbose 0 --json");
    assert_string_equal(out, "{\"output\": \"p.npz\", \"shapes\": {\"cell\": [90, 3], \"cell_1\": [90, 3], "
                             "\"cell_2\": [90, 3]}}\n");
    leat_npz *npz = NULL;
    assert_int_equal(leat_npz_open(&npz, "p.npz", NULL), LEAT_OK);
    assert_int_equal(leat_npz_count(npz), 3);
    assert_string_equal(leat_npz_name(npz, 2), "cell_2");
    leat_npz_close(&npz);
}

static void the_same_seed_gives_the_same_model_with_any_workers(void **state) {
    (void)state;
    const char *ways[] = {"--workers 0",
                          "--workers 1",
                          "--workers 2",
                          "--workers 4",
                          "--workers 1 --use-multiprocessing",
                          "--workers 4 --use-multiprocessing"};
    static unsigned char first[text_bytes], now[text_bytes];
    size_t size = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
        char line[512];
        snprintf(line, sizeof line,
                 FIT "--epochs 2 --seed 5 --threads 1 --out run --overwrite --verbose 0 %s", ways[i]);
        runs(line);
        runs("predict run/model.h5 --data npz:d.npz --output p.npy --verbose 0");
        FILE *file = fopen("p.npy", "rb");
        size = fread(now, 1, sizeof now, file);
        fclose(file);
        if (i == 0) memcpy(first, now, size);
        assert_memory_equal(first, now, size);
    }
    runs(FIT "--epochs 2 --seed 6 --threads 1 --out run --overwrite --verbose 0");
    runs("predict run/model.h5 --data npz:d.npz --output p.npy --verbose 0");
    FILE *file = fopen("p.npy", "rb");
    assert_int_equal(fread(now, 1, sizeof now, file), size);
    fclose(file);
    assert_memory_not_equal(first, now, size);
}

static void summary_is_keras_table(void **state) {
    (void)state;
    runs("summary small.json");
    assert_non_null(strstr(out, "hidden (Dense)"));
    assert_non_null(strstr(out, "Total params: 67"));
    assert_string_equal(errors, "");
}

static void summary_of_a_plan(void **state) {
    (void)state;
    runs("summary --plan small.json --batch-size 6 --threads 1");
    assert_non_null(strstr(out, "a prediction, batch of 6, 1 thread"));
    assert_non_null(strstr(out, "6x4, 4x8 -> 6x8"));
    assert_null(strstr(out, "GFLOP/s"));
    runs("summary --plan small.json --train --loss mse --time --threads 1 --json");
    json_t *root = json_loads(out, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(root, "mode")), "train");
    assert_true(json_real_value(json_object_get(root, "us")) > 0);
    json_decref(root);
    runs("summary small.json --json");
    root = json_loads(out, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(root, "params")), 67);
    json_decref(root);
    refused("summary small.json --time", "--time needs --plan");
    refused("summary --plan small.json --train", "give --loss");
}

/* Returns the number of normalization ops in a prediction's plan: those that were not folded. */
static int norms_of_plan(const char *command) {
    int count = 0;
    runs(command);
    for (const char *at = out; (at = strstr(at, "batch_norm_apply")); ++at) ++count;
    return count;
}

static void normalisations_fold_unless_told_not_to(void **state) {
    (void)state;
    write_text("folds.json", "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
                             "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 16, "
                             "\"kernel_size\": [3, 3], \"batch_input_shape\": [null, 6, 6, 8]}}, "
                             "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"n\"}}]}}");
    assert_int_equal(norms_of_plan("summary --plan folds.json --threads 1"), 0);
    assert_true(norms_of_plan("summary --plan folds.json --threads 1 --no-fold") > 0);
    refused("summary folds.json --no-fold", "--no-fold needs --plan");
    runs("predict small.json --data npz:d.npz --output p.npy --verbose 0 --no-fold");
    runs("evaluate small.json --data npz:d.npz --loss mse --verbose 0 --no-fold");
}

static void list_says_the_names(void **state) {
    (void)state;
    static const char *const kinds[] = {"layers",      "losses",       "metrics",      "optimizers",
                                        "activations", "initializers", "regularizers", "constraints"};
    static char counts[text_bytes];
    runs("list");
    memcpy(counts, out, sizeof counts);
    const char *at = counts;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        char line[64], word[32];
        int count = 0, used = 0, lines = 0;
        assert_int_equal(sscanf(at, "%31s %d\n%n", word, &count, &used), 2);
        assert_string_equal(word, kinds[i]);
        at += used;
        snprintf(line, sizeof line, "list %s", kinds[i]);
        runs(line);
        for (const char *c = out; *c; ++c) lines += *c == '\n';
        assert_int_equal(lines, count);
        assert_string_equal(errors, "");
        assert_null(strchr(out, ' '));
    }
    assert_string_equal(at, "");
    runs("list losses");
    assert_non_null(strstr(out, "\nmse\n"));
    json_error_t why;
    runs("list optimizers --json");
    json_t *root = json_loads(out, 0, &why);
    assert_int_equal(json_object_size(root), 1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(root, "optimizers"), 2)), "Adagrad");
    json_decref(root);
    runs("list --json");
    root = json_loads(out, 0, &why);
    assert_int_equal(json_object_size(root), sizeof kinds / sizeof *kinds);
    json_decref(root);
    refused("list loss", "unknown kind 'loss': did you mean 'losses'?");
    refused("list layers losses", "unexpected argument 'losses'");
}

static void a_policy_is_kept_and_its_price_told(void **state) {
    (void)state;
    setenv("LEAT_MAX_ISA", "base", 1);
    runs(FIT "--epochs 1 --dtype-policy mixed_bfloat16 --out run --overwrite");
    assert_non_null(strstr(errors,
                           "leat fit: warning: this CPU does not multiply bfloat16 faster than float32: "
                           "use float32, which is faster unless memory is the limit\n"));
    runs("summary run/model.h5");
    assert_non_null(strstr(out, "Layers of policy mixed_bfloat16: "));
    assert_non_null(strstr(errors, "warning: "));
    runs("summary --plan run/model.h5 --threads 1");
    assert_non_null(strstr(out, "as f32"));
    runs("summary run/model.h5 --dtype-policy float32");
    assert_null(strstr(out, "bfloat16"));
    assert_string_equal(errors, "");
    unsetenv("LEAT_MAX_ISA");
    fails(FIT "--dtype-policy float16",
          "dtype policy: expected float32 or mixed_bfloat16, received 'float16'");
}

static void a_device_that_is_missing_is_named(void **state) {
    (void)state;
    fails(FIT "--epochs 1 --device nonsense", "leat fit: there is no device 'nonsense': expected \"cpu\", "
                                              "\"auto\", \"cuda\" or \"cuda:<number>\"\n");
    fails(FIT "--epochs 1 --device cuda:x", "there is no device 'cuda:x'");
    refused("summary small.json --device cpu", "--device needs --plan");
    runs(FIT "--epochs 1 --device cpu --out run --overwrite");
    assert_int_equal(setenv("LEAT_DEVICE", "gpu", 1), 0);
    fails("evaluate run/model.h5 --data npz:d.npz", "LEAT_DEVICE: there is no device 'gpu'");
    runs("evaluate run/model.h5 --data npz:d.npz --device cpu");
    assert_int_equal(unsetenv("LEAT_DEVICE"), 0);
    if (LEAT_CUDA_IS_BUILT) return; /* then it depends on the machine what these do */
    fails(FIT "--epochs 1 --device cuda",
          "device 'cuda': this leat was built without CUDA; build it with -DLEAT_CUDA=ON\n");
    runs(FIT "--epochs 1 --device auto --out run --overwrite");
    assert_non_null(strstr(errors, " computes on the CPU: device 'cuda': this leat was built without CUDA"));
}

static void what_was_measured_serves_later_runs(void **state) {
    (void)state;
    assert_int_equal(setenv("LEAT_CACHE_DIR", "run/cache", 1), 0);
    write_text("wide.json", "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
                            "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 32, "
                            "\"kernel_size\": [3, 3], \"batch_input_shape\": [null, 16, 16, 32]}}]}}");
    runs("summary --plan wide.json --threads 1");
    assert_null(strstr(out, "chosen by measuring"));
    runs("summary --plan wide.json --threads 1 --tune");
    bool chosen =
        strstr(out, "* 1 kernel chosen by measuring") != NULL; /* without oneDNN there is one candidate */
    assert_int_equal(exists("run/cache/kernels"), chosen);
    runs("summary --plan wide.json --threads 1");
    assert_int_equal(strstr(out, "chosen by measuring") != NULL, chosen);
    runs("summary --plan wide.json --threads 1 --no-tune");
    assert_null(strstr(out, "chosen by measuring"));
    runs("summary --plan wide.json --threads 1 --deterministic --tune");
    assert_null(strstr(out, "chosen by measuring"));
    refused("summary --plan wide.json --tune --no-tune", "--tune and --no-tune exclude each other");
    refused("summary wide.json --tune", "--tune needs --plan");
    runs("fit small.json --train npz:d.npz --loss mse --verbose 0 --tune");
    runs("predict small.json --data npz:d.npz --output p.npy --verbose 0 --no-tune");
    assert_int_equal(setenv("LEAT_CACHE_DIR", "", 1), 0);
}

static void failures_exit_with_1_and_a_sentence(void **state) {
    (void)state;
    fails("fit absent.h5 --train npz:d.npz", "absent.h5");
    fails("summary d.npz", "d.npz");
    fails(FIT "--validation npz:absent.npz", "absent.npz");
    fails("fit small.json --train npz:d.npz --loss nonsense", "nonsense");
    fails(FIT "--out small.json", "small.json");
    fails("fit small.json --train npz:d.npz?inputs=y --loss mse", "3");
    refused("fit small.json --train npz:d.npz", "give --loss");
    refused("fit small.json --train npz:d.npz --loss mse --train x", "twice");
    refused("fit small.json --train nzp:d.npz --loss mse", "leat help specs");
    refused("predict small.json --data npz:d.npz --output p.txt", ".npy, .npz or .csv");
    runs(FIT "--epochs 1 --out run --overwrite --verbose 0");
    fails("predict run/model.h5 --data npz:d.npz --output no/folder/p.npy --verbose 0", "no/folder/p.npy");
}

/* Returns the number after these words on standard error. */
static long after(const char *words) {
    const char *at = strstr(errors, words);
    if (!at) fail_msg("'%s' does not say '%s'", errors, words);
    return strtol(at + strlen(words), NULL, 10);
}

static bool has_checkpoint(void) {
    leat_checkpoint_info info;
    return leat_checkpoint_find("run/checkpoints", &info, sizeof info, NULL) == LEAT_OK;
}

/* Runs the command that leat printed to continue the training, up to the end of its first epoch. */
static void go_on(void) {
    char line[1024];
    leat_checkpoint_info info;
    const char *command = strstr(errors, "\nto continue: leat ");
    if (!command) fail_msg("no command: %s", errors);
    command += strlen("\nto continue: leat ");
    assert_int_equal(leat_checkpoint_find("run/checkpoints", &info, sizeof info, NULL), LEAT_OK);
    snprintf(line, sizeof line, "%.*s --epochs %d --verbose 0", (int)strcspn(command, "\n"), command,
             (int)info.epoch + 1);
    runs(line);
}

static void what_is_no_regular_file_is_not_replaced(void **state) {
    (void)state;
    const char *names[] = {"model.h5", "history.json", "report.html"};
    const char *outputs[] = {"run/fifo.npy", "run/fifo.npz"};
    char path[80], line[200];
    struct stat about;
    runs(FIT "--epochs 1 --out run --overwrite --verbose 0");
    for (int i = 0; i < 3; ++i) {
        snprintf(path, sizeof path, "run/%s", names[i]);
        assert_true(unlink(path) == 0 && mkfifo(path, 0600) == 0);
        fails(FIT "--epochs 1 --out run --overwrite --verbose 0", "is no regular file");
        assert_true(stat(path, &about) == 0 && S_ISFIFO(about.st_mode));
        unlink(path);
    }
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(mkfifo(outputs[i], 0600), 0);
        snprintf(line, sizeof line, "predict small.json --data npz:d.npz --output %s --verbose 0",
                 outputs[i]);
        fails(line, "is a FIFO");
        assert_true(stat(outputs[i], &about) == 0 && S_ISFIFO(about.st_mode));
    }
    runs(FIT "--epochs 1 --out run --overwrite --verbose 0");
    assert_true(rename("run/model.h5", "run/kept.h5") == 0 && symlink("kept.h5", "run/model.h5") == 0);
    runs(FIT "--epochs 1 --out run --overwrite --verbose 0");
    assert_true(lstat("run/model.h5", &about) == 0 && S_ISREG(about.st_mode));
    assert_true(lstat("run/kept.h5", &about) == 0 && S_ISREG(about.st_mode));
}

/* Starts a long fit and sends a signal after some epochs. */
static void interrupt(int number, const char *more) {
    char line[512];
    snprintf(line, sizeof line,
             "fit small.json --train npz:d.npz?inputs=x&targets=y --loss categorical_crossentropy "
             "--optimizer adam "
             "--metrics accuracy --epochs 1000000 --out run --verbose 0 %s",
             more);
    (void)!system("rm -rf run");
    pid_t child = start(line);
    for (int i = 0; i < 3000 && !has_checkpoint(); ++i)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    kill(child, number);
    assert_int_equal(finish(child), 128 + number);
    assert_string_equal(out, "");
    assert_memory_equal(errors, "leat fit: interrupted ", 22);
    assert_non_null(strstr(errors, " of 1000000"));
    assert_non_null(
        strstr(errors,
               "; run/model.h5 has the weights after that step\nto continue: leat fit --resume run\n"));
    go_on();
    assert_true(exists("run/model.h5"));
    assert_true(exists("run/history.json"));
    evaluate("run/model.h5");
}

static void signals_end_training_with_everything_saved(void **state) {
    (void)state;
    interrupt(SIGINT, "--workers 0");
    interrupt(SIGTERM, "--workers 2");
    interrupt(SIGHUP, "--workers 1");
    interrupt(SIGINT, "--workers 2 --use-multiprocessing");
    interrupt(SIGINT, "--validation npz:d.npz --batch-size 4");
}

static void a_run_can_be_watched(void **state) {
    (void)state;
    runs(FIT "--epochs 2 --verbose 0 --open-metrics state.prom --remote-monitor http://127.0.0.1:1");
    assert_int_equal(system(
                         "grep -q '^leat_epoch 2$' state.prom && tail -n 1 state.prom | grep -q '^# EOF$'"),
                     0);
    assert_string_equal(errors, ""); /* --verbose 0 */
    runs(FIT "--epochs 2 --verbose 2 --remote-monitor http://127.0.0.1:1");
    assert_non_null(strstr(errors, "leat: RemoteMonitor: http://127.0.0.1:1: "));
    assert_int_equal(unlink("state.prom"), 0);
    fails(FIT "--open-metrics missing/state.prom", "OpenMetrics: ");
    fails(FIT "--remote-monitor example.org", "RemoteMonitor: root: expected a URL");
}

/* Control characters reach neither the terminal nor the command that continues, where a shell reads them as \033. */
static void an_interrupt_prints_no_control_characters(void **state) {
    (void)state;
    pid_t child = start(FIT "--epochs 1000000 --verbose 0 --out run/a\x1b'b");
    for (int i = 0; i < 3000 && !exists("run/a\x1b'b/log.csv"); ++i)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    kill(child, SIGINT);
    assert_int_equal(finish(child), 128 + SIGINT);
    assert_non_null(strstr(errors, "; run/a?'b/model.h5 has the weights"));
    assert_non_null(strstr(errors, " fit --resume $'run/a\\033\\'b'\n"));
    assert_null(strchr(errors, '\x1b'));
}

/* SIGHUP stays ignored under nohup: training continues when the terminal is closed. */
static void an_ignored_hangup_stays_ignored(void **state) {
    (void)state;
    struct sigaction before, ignore = {.sa_handler = SIG_IGN};
    assert_int_equal(sigaction(SIGHUP, &ignore, &before), 0);
    pid_t child = start(FIT "--epochs 1000000 --verbose 0");
    assert_int_equal(sigaction(SIGHUP, &before, NULL), 0);
    for (int i = 0; i < 3000 && !catches(child); ++i)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    kill(child, SIGHUP);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    kill(child, SIGINT);
    assert_int_equal(finish(child), 128 + SIGINT);
}

/* Interrupts an epoch of a million steps without --out: no command to continue is printed. */
static void an_interrupt_within_an_epoch_is_told(void **state) {
    (void)state;
    pid_t child = start(FIT "--steps-per-epoch 1000000 --epochs 3 --verbose 0");
    for (int i = 0; i < 3000 && !catches(child); ++i)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    kill(child, SIGINT);
    assert_int_equal(finish(child), 128 + SIGINT);
    assert_true(after("leat fit: interrupted in epoch 1 of 3, after step ") >= 1);
    assert_non_null(strstr(errors, " of 1000000; nothing was saved: give --out DIR to save the model\n"));
    assert_null(strstr(errors, "to go on"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_is_the_table),
        cmocka_unit_test(wrong_usage_is_told_and_exits_with_2),
        cmocka_unit_test(a_manual_page_and_a_completion_for_each_command),
        cmocka_unit_test(fit_trains_saves_and_reports),
        cmocka_unit_test(fit_writes_event_files),
        cmocka_unit_test(results_are_on_standard_output),
        cmocka_unit_test(training_goes_on_where_it_ended),
        cmocka_unit_test(predictions_have_the_shape_and_sum_of_a_softmax),
        cmocka_unit_test(predictions_in_a_table_have_the_places_of_their_samples),
        cmocka_unit_test(predictions_in_a_table_for_a_combination_have_numbers),
        cmocka_unit_test(several_outputs_of_one_layer_have_names_of_their_own),
        cmocka_unit_test(the_same_seed_gives_the_same_model_with_any_workers),
        cmocka_unit_test(summary_is_keras_table),
        cmocka_unit_test(summary_of_a_plan),
        cmocka_unit_test(normalisations_fold_unless_told_not_to),
        cmocka_unit_test(list_says_the_names),
        cmocka_unit_test(a_policy_is_kept_and_its_price_told),
        cmocka_unit_test(a_device_that_is_missing_is_named),
        cmocka_unit_test(what_was_measured_serves_later_runs),
        cmocka_unit_test(failures_exit_with_1_and_a_sentence),
        cmocka_unit_test(what_is_no_regular_file_is_not_replaced),
        cmocka_unit_test(signals_end_training_with_everything_saved),
        cmocka_unit_test(a_run_can_be_watched),
        cmocka_unit_test(an_interrupt_prints_no_control_characters),
        cmocka_unit_test(an_ignored_hangup_stays_ignored),
        cmocka_unit_test(an_interrupt_within_an_epoch_is_told),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
