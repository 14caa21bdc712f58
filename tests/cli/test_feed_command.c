/* SPDX-License-Identifier: Apache-2.0 */
/* `leat feed` and the options of the feed: their errors and output, and that the delivered bytes do not depend on the
 * workers. */
#include "cmocka_all.h"

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "cli/command.h"
#include "data/files.h"
#include "leat/npz.h"
#include "leat/rng.h"

static int leave(void **state) {
    if (system("rm -rf run") != 0) return -1;
    return files_leave(state);
}

/* Runs a command that prints one JSON object and returns the object, for json_decref. */
static json_t *object(const char *line) {
    json_error_t why;
    runs(line);
    json_t *root = json_loads(out, 0, &why);
    if (!json_is_object(root)) fail_msg("leat %s: not a JSON object: %s: %s", line, why.text, out);
    return root;
}

static int64_t whole(const json_t *root, const char *name) {
    const json_t *value = json_object_get(root, name);
    if (!json_is_integer(value)) fail_msg("'%s' is not a integer: %s", name, out);
    return json_integer_value(value);
}

static double number(const json_t *root, const char *name) {
    const json_t *value = json_object_get(root, name);
    if (!json_is_number(value)) fail_msg("'%s' is not a number: %s", name, out);
    return json_number_value(value);
}

/* ---- Usage ---- */

static void a_group_has_commands_and_help(void **state) {
    (void)state;
    refused("feed", "leat feed: COMMAND is missing");
    refused("feed bnech", "unknown command 'feed bnech': did you mean 'feed bench'?");
    refused("bench", "did you mean 'feed bench'?");
    runs("feed --help");
    const char *members[] = {"bench", "tune", "trace", "check", "show"};
    for (int i = 0; i < 5; ++i) {
        char line[64];
        static char first[text_bytes];
        runs("feed --help");
        assert_non_null(strstr(out, members[i]));
        snprintf(line, sizeof line, "feed %s --help", members[i]);
        runs(line);
        memcpy(first, out, sizeof first);
        snprintf(line, sizeof line, "usage: leat feed %s", members[i]);
        assert_memory_equal(first, line, strlen(line));
        snprintf(line, sizeof line, "help feed %s", members[i]);
        runs(line);
        assert_string_equal(out, first);
    }
    runs("--help");
    assert_null(strstr(out, "bench"));
}

static void a_group_is_in_the_manual_and_the_completion(void **state) {
    (void)state;
    const char *pages[] = {"leat-feed.1", "leat-feed-bench.1", "leat-feed-tune.1", "leat-feed-trace.1"};
    FILE *file = fopen(LEAT_BINARY_DIR "/manual/leat-feed.1", "r");
    assert_non_null(file);
    out[fread(out, 1, text_bytes - 1, file)] = '\0';
    fclose(file);
    for (size_t i = 1; i < sizeof pages / sizeof *pages; ++i) {
        char path[512], name[64];
        snprintf(path, sizeof path, LEAT_BINARY_DIR "/manual/%s", pages[i]);
        assert_int_equal(access(path, R_OK), 0);
        snprintf(name, sizeof name, "leat\\-feed\\-%.*s (1)", (int)strcspn(pages[i] + 10, "."),
                 pages[i] + 10);
        assert_non_null(strstr(out, name));
    }
    assert_int_equal(system("bash -c '. " LEAT_BINARY_DIR "/manual/leat.bash; "
                            "complete_one() { COMPREPLY=(); _leat 2>/dev/null; echo ${COMPREPLY[*]}; }; "
                            "COMP_WORDS=(leat feed \"\"); COMP_CWORD=2; complete_one >c1; "
                            "COMP_WORDS=(leat feed bench --dig); COMP_CWORD=3; complete_one >c2'"),
                     0);
    assert_int_equal(system(
                         "grep -q 'bench tune trace' c1 && grep -qx -e --digest c2; r=$?; rm c1 c2; exit $r"),
                     0);
}

static void wrong_feed_usage_is_told(void **state) {
    (void)state;
    refused("feed bench", "a SPEC or --payload BYTES is missing");
    refused("feed bench npz:d.npz --payload 1K", "exclude each other");
    refused("feed bench npz:d.npz --work-us 5", "--work-us needs --payload");
    refused("feed bench --payload 1K --batch-size 5", "--batch-size needs a SPEC");
    refused("feed bench nzp:d.npz", "leat help specs");
    const char *sizes[] = {
        "0", "x", "-1", "1.5M", "12KB", "1T", "K", "9999999999999G", "99999999999999999999"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        char line[128];
        snprintf(line, sizeof line, "feed bench --payload 1K --feed-memory %s", sizes[i]);
        refused(line, "--feed-memory '");
        snprintf(line, sizeof line, "feed bench --payload %s", sizes[i]);
        refused(line, "': expected ");
    }
    refused("feed bench --payload 1K --rank 2 --world 2",
            "--rank 2: expected a rank below --world, which is 2");
    refused("feed bench --payload 1K --passes 0", "--passes '0'");
    refused("feed bench --payload 1K --batches 0", "--batches '0'");
    refused("feed trace --payload 1K", "--output FILE is missing");
    refused("feed tune npz:d.npz", "--model MODEL is missing");
    refused("feed tune --model small.json", "SPEC is missing");
    refused("feed tune npz:d.npz --model small.json", "give --loss");
    refused("feed tune npz:d.npz --model small.json --seconds 0.01", "of at least 0.05");
    refused("feed tune npz:d.npz --model small.json --seconds 0x1", "--seconds '0x1'");
    fails("feed bench npz:absent.npz", "absent.npz");
    fails("feed trace --payload 1K --output no/folder/t.json", "no/folder/t.json");
}

static void every_policy_is_checked_before_anything_is_done(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"--shuffle sometimes", "--shuffle 'sometimes': expected none, batches, samples, window:N"},
        {"--shuffle window:0", "window:N"},
        {"--shuffle window:", "window:N"},
        {"--shuffle window:5x", "window:N"},
        {"--shuffle none --no-shuffle", "--shuffle and --no-shuffle"},
        {"--bad-batch drop", "--bad-batch 'drop': expected fail, skip, retry:N"},
        {"--bad-batch retry", "retry:N"},
        {"--bad-batch retry:0", "retry:N"},
        {"--bad-batch retry:2,fail", "retry:N"},
        {"--bad-batch retry:-2", "retry:N"},
        {"--batch-timeout 0", "--batch-timeout '0': expected seconds"},
        {"--batch-timeout -1", "expected seconds"},
        {"--batch-timeout soon", "expected seconds"},
        {"--batch-timeout nan", "expected seconds"},
        {"--batch-timeout 1.2.3", "expected seconds"},
        {"--max-deaths 0", "--max-deaths '0'"},
        {"--check-finite=1", "takes no value"},
        {"--feed-memory 1M --max-queue-size 3", "--feed-memory and --max-queue-size"},
        {"--feed-memory many", "--feed-memory 'many': expected a number of bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char line[256];
        snprintf(line, sizeof line, "fit absent.h5 --train x %s", cases[i][0]);
        refused(line, cases[i][1]);
        if (strstr(cases[i][0], "shuffle")) continue;
        snprintf(line, sizeof line, "evaluate absent.h5 --data x %s", cases[i][0]);
        refused(line, cases[i][1]);
        snprintf(line, sizeof line, "predict absent.h5 --data x --output p.npy %s", cases[i][0]);
        refused(line, cases[i][1]);
        snprintf(line, sizeof line, "feed bench --payload 1K %s", cases[i][0]);
        refused(line, cases[i][1]);
    }
}

static void keras_old_words_get_a_hint(void **state) {
    (void)state;
    refused("fit m.h5 --nb-worker 2", "use --workers");
    refused("fit m.h5 --nb_worker=2", "use --workers");
    refused("fit m.h5 --pickle_safe", "use --use-multiprocessing");
    refused("fit m.h5 --max-q-size 3", "use --max-queue-size");
    refused("fit m.h5 --wait-time 0.05", "not needed, since leat does not poll");
    refused("fit m.h5 --random-seed 3", "use --seed");
    refused("fit m.h5 --nb-epoch 3", "use --epochs");
}

/* ---- bench ---- */

static void bench_reports_what_it_measured(void **state) {
    (void)state;
    json_t *root =
        object("feed bench --payload 10K --batches 40 --passes 3 --workers 2 --max-queue-size 4 --json");
    assert_string_equal(errors, "");
    assert_true(json_is_null(json_object_get(root, "source")));
    assert_int_equal(whole(root, "payload"), 10240);
    assert_int_equal(whole(root, "batches"), 120);
    assert_int_equal(whole(root, "passes"), 3);
    assert_int_equal(whole(root, "bytes"), 120 * 10240);
    assert_int_equal(whole(root, "workers"), 2);
    assert_int_equal(whole(root, "max_queue_size"), 4);
    const char *zero[] = {"worker_deaths", "timeouts", "retries", "skips", "seed", "rank"};
    for (size_t i = 0; i < sizeof zero / sizeof *zero; ++i) assert_int_equal(whole(root, zero[i]), 0);
    assert_true(whole(root, "ring_bytes") >= 5 * 10240);
    assert_true(whole(root, "starved") >= 0 && whole(root, "starved") <= 120);
    const char *positive[] = {"seconds", "us_per_batch", "mb_per_second", "first_batch_ms"};
    for (size_t i = 0; i < sizeof positive / sizeof *positive; ++i)
        assert_true(number(root, positive[i]) > 0);
    const char *spreads[] = {"get_us", "wait_us"};
    for (int i = 0; i < 2; ++i) {
        json_t *spread = json_object_get(root, spreads[i]);
        assert_true(number(spread, "mean") >= 0 && number(spread, "p50") <= number(spread, "p90"));
        assert_true(number(spread, "p90") <= number(spread, "p99"));
        assert_true(number(spread, "p99") <= number(spread, "max"));
    }
    json_t *turnover = json_object_get(root, "turnover_us"), *busy = json_object_get(root, "busy");
    assert_true(number(turnover, "p50") <= number(turnover, "max"));
    assert_int_equal(json_array_size(busy), 2);
    assert_true(json_number_value(json_array_get(busy, 0)) <= 1);
    assert_null(json_object_get(root, "sha256"));
    json_decref(root);
    runs("feed bench npz:d.npz --workers 1 --use-multiprocessing");
    assert_string_equal(errors, "");
    assert_memory_equal(out, "npz:d.npz, 1 worker process, a queue of 10\n", 43);
    assert_non_null(strstr(out, "6 in 2 passes"));
}

/* A file name can contain any byte, but JSON is UTF-8: other bytes become U+FFFD. */
static void json_is_utf8(void **state) {
    (void)state;
    static const char name[] = "\xC3\xA9\xFF\xED\xA0\x80.npz";
    assert_int_equal(symlink("d.npz", name), 0);
    json_t *root = object("feed bench npz:\xC3\xA9\xFF\xED\xA0\x80.npz --json --passes 1");
    assert_int_equal(unlink(name), 0);
    assert_string_equal(json_string_value(json_object_get(root, "source")),
                        "npz:\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD.npz");
    json_decref(root);
}

static void bench_ends_where_it_is_told(void **state) {
    (void)state;
    json_t *root = object("feed bench npz:d.npz --json --passes 1");
    assert_int_equal(whole(root, "batches"), 3);
    assert_true(json_is_null(json_object_get(root, "turnover_us")));
    assert_string_equal(json_string_value(json_object_get(root, "source")), "npz:d.npz");
    json_decref(root);
    root = object("feed bench npz:d.npz --json --batches 5 --batch-size 30");
    assert_int_equal(whole(root, "batches"), 5);
    assert_int_equal(whole(root, "bytes"), 5 * 30 * 7 * 4);
    json_decref(root);
    root = object("feed bench --payload 1K --batches 5 --passes 2 --rank 0 --world 2 --json");
    assert_int_equal(whole(root, "batches"), 6);
    json_decref(root);
    root = object("feed bench --payload 1K --batches 5 --passes 2 --rank 1 --world 2 --json");
    assert_int_equal(whole(root, "batches"), 4);
    json_decref(root);
}

static void digest_of(const char *line, char sha[65]) {
    json_t *root = object(line);
    const char *text = json_string_value(json_object_get(root, "sha256"));
    assert_non_null(text);
    assert_int_equal(strlen(text), 64);
    memcpy(sha, text, 65);
    json_decref(root);
}

/* Writes the synthetic batches that the manual describes, hashes them with another program, and compares the
 * digests. */
static void a_digest_is_that_of_the_documented_bytes(void **state) {
    (void)state;
    enum { payload = 1003, batches = 7, passes = 2, seed = 5 };
    char line[256], sha[65], other[65] = "";
    FILE *file = fopen("bytes", "wb");
    assert_non_null(file);
    for (uint64_t pass = 0; pass < passes; ++pass)
        for (uint64_t index = 0; index < batches; ++index) {
            leat_rng rng = leat_rng_for(seed, pass, index);
            uint32_t word = 0;
            for (int i = 0; i < payload; ++i) {
                if (i % 4 == 0) word = leat_rng_u32(&rng);
                fputc((int)(word >> 8 * (i % 4) & 0xff), file);
            }
        }
    fclose(file);
    FILE *pipe = popen("sha256sum bytes", "r");
    assert_non_null(pipe);
    assert_non_null(fgets(other, sizeof other, pipe));
    pclose(pipe);
    snprintf(line, sizeof line,
             "feed bench --payload %d --batches %d --passes %d --seed %d --shuffle none --digest --json",
             payload, batches, passes, seed);
    digest_of(line, sha);
    assert_string_equal(sha, other);
    unlink("bytes");
}

static void a_digest_is_the_same_for_all_workers(void **state) {
    (void)state;
    const char *ways[] = {"--workers 0", "--workers 1", "--workers 2 --max-queue-size 1",
                          "--workers 1 --use-multiprocessing", "--workers 2 --use-multiprocessing"};
    const char *sources[] = {"--payload 5001 --batches 50 --seed 3", "npz:d.npz --batch-size 7 --seed 3"};
    const char *shuffles[] = {"none", "batches", "window:3", "auto"};
    for (int s = 0; s < 2; ++s)
        for (size_t k = 0; k < sizeof shuffles / sizeof *shuffles; ++k) {
            char first[65] = "", now[65];
            for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
                char line[256];
                snprintf(line, sizeof line, "feed bench %s --shuffle %s --passes 3 --digest --json %s",
                         sources[s], shuffles[k], ways[i]);
                digest_of(line, now);
                if (i == 0) memcpy(first, now, sizeof first);
                assert_string_equal(first, now);
            }
        }
}

static void each_shuffle_is_another_order(void **state) {
    (void)state;
    const char *ways[] = {"--shuffle none", "--shuffle batches", "--shuffle samples", "--shuffle window:20",
                          "--shuffle samples --seed 1"};
    enum { count = sizeof ways / sizeof *ways };
    char sha[count][65], line[256], automatic[65];
    for (int i = 0; i < count; ++i) {
        snprintf(line, sizeof line, "feed bench npz:d.npz --batch-size 5 --digest --json %s", ways[i]);
        digest_of(line, sha[i]);
        for (int k = 0; k < i; ++k) assert_string_not_equal(sha[i], sha[k]);
    }
    digest_of("feed bench npz:d.npz --batch-size 5 --digest --json", automatic);
    assert_string_equal(automatic, sha[2]);
    fails("feed bench --payload 1K --shuffle samples", "samples");
}

static void memory_bounds_the_ring(void **state) {
    (void)state;
    json_t *root = object("feed bench --payload 100K --batches 20 --passes 1 --feed-memory 1M --json");
    assert_true(whole(root, "ring_bytes") <= 1 << 20);
    assert_in_range(whole(root, "max_queue_size"), 5, 10);
    json_decref(root);
    fails("feed bench --payload 100K --feed-memory 50K", "less than two batches of 102400 bytes");
}

/* ---- Policies ---- */

static void a_batch_that_is_late_ends_the_feed(void **state) {
    (void)state;
    fails("feed bench --payload 1K --work-us 60000000 --workers 1 --use-multiprocessing --batch-timeout 0.05",
          "batch");
}

static void write_nan(void) {
    enum { samples = 12 };
    static float x[samples][4], y[samples][3];
    for (int i = 0; i < samples; ++i) {
        for (int k = 0; k < 4; ++k) x[i][k] = (float)(i + k);
        y[i][i % 3] = 1;
    }
    x[5][2] = NAN;
    leat_tensor tensors[] = {leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 4}, x),
                             leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 3}, y)};
    assert_int_equal(leat_npz_write("nan.npz", (const char *[]){"x", "y"}, tensors, 2, NULL), LEAT_OK);
}

#define FIT_NAN                                                                                              \
    "fit small.json --train npz:nan.npz --loss categorical_crossentropy --batch-size 4 --verbose 0 "         \
    "--shuffle none "

static void bad_batches_fail_or_are_skipped(void **state) {
    (void)state;
    write_nan();
    fails(FIT_NAN, "the loss is not finite after step 2 of epoch 1");
    runs(FIT_NAN "--no-stop-on-nan");
    fails(FIT_NAN "--check-finite", "batch 1");
    fails(FIT_NAN "--check-finite --bad-batch retry:2", "batch 1");
    runs(FIT_NAN "--check-finite --bad-batch skip");
    runs(FIT_NAN "--check-finite --bad-batch retry:1,skip --workers 2 --use-multiprocessing");
    runs(FIT_NAN "--no-stop-on-nan --trace t.json --feed-memory 1M --batch-timeout 30.5 --max-deaths 2");
    json_t *root =
        object("feed bench npz:nan.npz --batch-size 4 --check-finite --bad-batch retry:2,skip --shuffle "
               "none --passes 3 --json");
    assert_int_equal(whole(root, "batches"), 6);
    assert_int_equal(whole(root, "skips"), 3);
    assert_int_equal(whole(root, "retries"), 6);
    json_decref(root);
    unlink("nan.npz");
    unlink("t.json");
}

static void evaluate_and_predict_have_the_same_policies(void **state) {
    (void)state;
    write_nan();
    fails("evaluate small.json --data npz:nan.npz --loss mse --batch-size 4 --verbose 0 --check-finite",
          "batch 1");
    runs("evaluate small.json --data npz:nan.npz --loss mse --batch-size 4 --verbose 0 --check-finite "
         "--bad-batch "
         "skip --feed-memory 1M");
    fails("predict small.json --data npz:nan.npz --output p.npy --batch-size 4 --verbose 0 --check-finite",
          "batch 1");
    json_t *root =
        object("predict small.json --data npz:nan.npz --output p.npy --batch-size 4 --verbose 0 --json "
               "--check-finite --bad-batch skip");
    json_t *shape = json_object_get(json_object_get(root, "shapes"), "scores");
    assert_int_equal(json_integer_value(json_array_get(shape, 0)), 8);
    json_decref(root);
    unlink("p.npy");
    unlink("nan.npz");
}

/* ---- trace ---- */

static json_t *read_trace(const char *path) {
    json_error_t why;
    json_t *root = json_load_file(path, 0, &why);
    if (!root) fail_msg("%s: %s", path, why.text);
    json_t *events = json_is_array(root) ? root : json_object_get(root, "traceEvents");
    assert_true(json_array_size(events) > 20);
    unlink(path);
    return root;
}

static void a_trace_is_json_with_events(void **state) {
    (void)state;
    runs("feed trace --payload 1K --batches 50 --workers 2 --use-multiprocessing --output t.json");
    assert_non_null(strstr(errors, "saved t.json"));
    assert_non_null(strstr(out, "  batches        100 in 2 passes"));
    json_decref(read_trace("t.json"));
    runs(FIT "--epochs 2 --batch-size 4 --verbose 0 --trace t.json");
    json_decref(read_trace("t.json"));
    fails(FIT "--trace no/folder/t.json", "no/folder/t.json");
}

/* ---- tune ---- */

static void tune_compares_batch_sizes(void **state) {
    (void)state;
    const char *command =
        "feed tune npz:d.npz --model small.json --loss categorical_crossentropy --optimizer "
        "SGD(learning_rate=0.5) --batch-size 4 --batch-sizes 16,4 --seconds 0.05";
    char line[256];
    snprintf(line, sizeof line, "%s --json", command);
    json_t *root = object(line);
    json_t *sizes = json_object_get(root, "batch_sizes");
    assert_int_equal(json_array_size(sizes), 2);
    for (size_t i = 0; i < 2; ++i) {
        json_t *row = json_array_get(sizes, i);
        int64_t size = i ? 16 : 4;
        assert_int_equal(whole(row, "batch_size"), size);
        assert_int_equal(whole(row, "steps_per_epoch"), (90 + size - 1) / size);
        assert_true(number(row, "learning_rate") == 0.5 * (double)size / 4); /* SGD: in proportion */
        assert_true(number(row, "samples_per_second") > 0);
        assert_true(whole(row, "memory_bytes") >= size * 7 * 4);
        assert_true(json_array_size(json_object_get(json_object_get(row, "tuning"), "settings")) >= 3);
    }
    double first = number(json_array_get(sizes, 0), "samples_per_second");
    double second = number(json_array_get(sizes, 1), "samples_per_second");
    assert_int_equal(whole(root, "best"), first >= 0.9 * second ? 0 : 1);
    json_decref(root);
    runs(command);
    assert_string_equal(errors, "");
    assert_memory_equal(out, "batch size  samples/s", 21);
    assert_non_null(strstr(out, "for leat fit: --batch-size "));
    runs("feed tune npz:d.npz --model small.json --loss mse --batch-sizes 8 --seconds 0.05");
    assert_non_null(strstr(out, "One batch size was measured."));
    const char *wrong[] = {
        "0", "4,4", "4,", "x", "4;8", "99999999999", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        snprintf(line, sizeof line, "feed tune npz:d.npz --model small.json --loss mse --batch-sizes '%s'",
                 wrong[i]);
        refused(line, "is not a list of 1 to 16 different integers");
    }
}

static void tune_recommends_one_of_its_rows(void **state) {
    (void)state;
    json_t *root =
        object("feed tune npz:d.npz --model small.json --loss categorical_crossentropy --batch-size 4 "
               "--seconds 0.05 --json");
    assert_string_equal(errors, "");
    json_t *settings = json_object_get(root, "settings");
    int64_t best = whole(root, "best");
    assert_true(json_array_size(settings) >= 3);
    assert_in_range(best, 0, json_array_size(settings) - 1);
    assert_true(whole(root, "cores") >= 1);
    double fastest = 0;
    for (size_t i = 0; i < json_array_size(settings); ++i) {
        json_t *row = json_array_get(settings, i);
        assert_true(whole(row, "steps") > 0 && number(row, "steps_per_second") > 0);
        assert_true(number(row, "wait") >= 0 && number(row, "wait") <= 1);
        assert_true(whole(row, "threads") >= 1 && whole(row, "workers") >= 0);
        if (number(row, "steps_per_second") > fastest) fastest = number(row, "steps_per_second");
    }
    json_t *row = json_array_get(settings, (size_t)best);
    assert_true(number(row, "steps_per_second") >= 0.969 * fastest);
    assert_true(strlen(json_string_value(json_object_get(root, "why"))) > 20);
    char expected[128];
    snprintf(expected, sizeof expected, "--workers %d%s --threads %d --max-queue-size %d",
             (int)whole(row, "workers"),
             json_is_true(json_object_get(row, "use_multiprocessing")) ? " --use-multiprocessing" : "",
             (int)whole(row, "threads"), (int)whole(row, "max_queue_size"));
    assert_string_equal(json_string_value(json_object_get(root, "options")), expected);
    json_decref(root);
    runs("feed tune npz:d.npz --model small.json --loss categorical_crossentropy --seconds 0.05");
    assert_string_equal(errors, "");
    assert_memory_equal(out, "workers  kind ", 14);
    assert_non_null(strstr(out, "<- best"));
    assert_non_null(strstr(out, "for leat fit: --workers "));
}

/* ---- Signals ---- */

static void interrupted(const char *line) {
    json_error_t why;
    pid_t child = start(line);
    for (int i = 0; i < 3000 && !catches(child); ++i)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    kill(child, SIGINT);
    assert_int_equal(finish(child), 128 + SIGINT);
    json_t *root = json_loads(out, 0, &why);
    if (*out && !root) fail_msg("leat %s: %s", line, out);
    json_decref(root);
}

static void an_interrupt_ends_a_measurement(void **state) {
    (void)state;
    interrupted("feed bench --payload 1K --batches 100000000 --consume-us 100 --json");
    assert_true(*out);
    interrupted("feed bench --payload 1K --batches 100000000 --consume-us 100 --workers 2 "
                "--use-multiprocessing --json");
    assert_true(*out);
    interrupted(
        "feed tune npz:d.npz --model small.json --loss categorical_crossentropy --seconds 1000 --json");
}

/* ---- check and show ---- */

/* Makes a folder of pictures with two classes: three good pictures, of which two are equal, and a bad one. */
static void make_pictures(void) {
    if (system("mkdir -p run/photos/a run/photos/b") != 0) fail();
    write_text("run/photos/a/1.ppm", "P3 1 1 255 10 20 30");
    write_text("run/photos/a/2.ppm", "P3 2 1 255 11 20 30 11 20 30");
    write_text("run/photos/b/1.ppm", "P3 1 1 255 10 20 30");
    write_text("run/photos/b/2.ppm", "P3 1 1 255 10");
}

static void check_finds_bad_and_equal_pictures(void **state) {
    (void)state;
    make_pictures();
    assert_int_equal(run("feed check images:run/photos?size=2x2"), 1);
    assert_non_null(strstr(out, "4 samples"));
    assert_non_null(strstr(out, "2 samples,  66.7 %  a\n"));
    assert_non_null(strstr(out, "\n  mean       ("));
    assert_non_null(strstr(out, "\n  width      1 to 2 pixels, median 1\n"));
    assert_non_null(strstr(out, "most frequent size (height x width): 1x1, 2 pictures"));
    assert_non_null(strstr(out, "sample 3: picture 'run/photos/b/2.ppm': PPM: the file is truncated"));
    assert_non_null(strstr(out, "samples 0 and 2: run/photos/a/1.ppm and run/photos/b/1.ppm"));
    assert_int_equal(run("feed check images:run/photos?size=2x2&labels=onehot --json"), 1);
    json_t *root = json_loads(out, 0, NULL);
    assert_int_equal(whole(root, "readable"), 3);
    assert_int_equal(whole(json_object_get(root, "sizes"), "pictures"), 3);
    assert_int_equal(whole(root, "not_finite"), 0);
    const json_t *means = json_object_get(root, "mean"), *deviations = json_object_get(root, "std");
    assert_int_equal(json_array_size(means), 3);
    assert_true(json_real_value(json_array_get(means, 0)) > 0);
    assert_true(json_real_value(json_array_get(deviations, 0)) >= 0);
    assert_int_equal(json_array_size(json_object_get(root, "bad")), 1);
    assert_int_equal(whole(json_array_get(json_object_get(root, "classes"), 1), "samples"), 1);
    json_decref(root);
    assert_int_equal(run("feed check images:run/photos?size=2x2&bad=skip"), 1);
    assert_non_null(strstr(out, "left out in training because of bad=skip: 1"));
    assert_non_null(strstr(out, "sample 3: picture 'run/photos/b/2.ppm': PPM: the file is truncated\n"));
    assert_non_null(strstr(out, "2.0 times the samples of the smallest"));
    assert_int_equal(
        run("feed check images:run/photos?size=2x2&validation=0.6&subset=validation&split=ordered"), 1);
    assert_non_null(
        strstr(out, "class 0           0 samples,   0.0 %  a\n")); /* classes without samples, too */
    assert_int_equal(run("feed check repeat(images:run/photos?size=2x2;times=30)"), 1);
    assert_non_null(strstr(out, "120 samples"));
    assert_non_null(strstr(out, "cannot be read: 30"));
    assert_non_null(strstr(out, "sample 7: picture 'run/photos/b/2.ppm'"));
    assert_true(strstr(out, "sample 7:") < strstr(out, "sample 11:"));
}

static void a_fit_counts_samples_that_were_left_out(void **state) {
    (void)state;
    make_pictures();
    write_text("run/m.json",
               "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
               "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\", "
               "\"batch_input_shape\": [null, 1, 1, 3]}}, {\"class_name\": \"Dense\", \"config\": "
               "{\"name\": \"d\", \"units\": 2, \"activation\": \"softmax\"}}]}}");
    for (int i = 0; i < 2; ++i) {
        char command[512];
        snprintf(
            command, sizeof command,
            "fit run/m.json --loss sparse_categorical_crossentropy --optimizer sgd --epochs 3 --out run/fit "
            "--batch-size %d --workers %d --json --train images:run/photos?size=1x1&bad=skip",
            i ? 1 : 3, 2 * i);
        runs(command);
        FILE *file = fopen("run/fit/history.json", "r");
        json_t *root = file ? json_loadf(file, 0, NULL) : NULL;
        assert_non_null(root);
        fclose(file);
        assert_int_equal(whole(json_object_get(root, "feed"), "samples_left_out"), 3);
        assert_non_null(strstr(json_string_value(json_object_get(json_object_get(root, "verdict"), "text")),
                               "Bad samples were left out of batches 3 times."));
        json_decref(root);
        if (system("rm -r run/fit") != 0) fail();
    }
}

static void check_reads_arrays(void **state) {
    (void)state;
    runs("feed check npz:d.npz");
    assert_non_null(strstr(out, "90 samples"));
    assert_non_null(strstr(out, "cannot be read: 0"));
    make_pictures(); /* and the folder */
    float x[] = {1, 2, 3, NAN, 1, 2, 4, 5};
    int32_t y[] = {0, 1, 2, 1};
    static const char *const names[] = {"x", "y"};
    const leat_tensor tensors[] = {leat_tensor_view(LEAT_F32, 2, (int64_t[]){4, 2}, x),
                                   leat_tensor_view(LEAT_I32, 1, (int64_t[]){4}, y)};
    assert_int_equal(leat_npz_write("run/a.npz", names, tensors, 2, NULL), LEAT_OK);
    assert_int_equal(run("feed check npz:run/a.npz?onehot=2"), 1);
    assert_non_null(strstr(out, "sample 2: run/a.npz, row 2: the label of sample 2 is 2"));
    assert_non_null(strstr(out, "with NaN or infinity: 1 samples\n    sample 1: run/a.npz, row 1\n"));
    runs("feed check take(skip(npz:run/a.npz;count=1);count=1) --json");
    json_t *root = json_loads(out, 0, NULL);
    assert_string_equal(json_string_value(
                            json_object_get(json_array_get(json_object_get(root, "not_finite_samples"), 0),
                                            "path")),
                        "run/a.npz, row 1");
    json_decref(root);
    write_text("run/a.csv", "a,b,y\n1,2,0\n\n1,2,1\n3,4,0.5\n");
    runs("feed check csv:run/a.csv?targets=y");
    assert_non_null(strstr(out, "samples 0 and 1: run/a.csv, line 2 and run/a.csv, line 4\n"));
    assert_null(strstr(out, "class")); /* numbers of which some look like classes */
}

/* Rows may have several classes, and masks have values. */
static void check_counts_classes_and_masks(void **state) {
    (void)state;
    make_pictures();
    write_text("run/photos/list.csv", "filename,class\na/1.ppm,sun|sea\na/2.ppm,sea\nb/1.ppm,\n");
    runs("feed check images:run/photos/list.csv?size=2x2&labels=multihot");
    assert_non_null(strstr(out, "class 0           2 samples,  66.7 %  sea\n"));
    assert_non_null(strstr(out, "class 1           1 samples,  33.3 %  sun\n"));
    assert_non_null(strstr(out, "a sample may have several classes, or none\n"));
    if (system("mkdir -p run/masks/a") != 0) fail();
    write_text("run/masks/a/1.pgm", "P2 2 1 255 0 255");
    write_text("run/masks/a/2.pgm", "P2 2 1 255 0 0");
    runs("feed check images:run/photos/a?size=2x2&masks=run/masks/a");
    assert_non_null(strstr(out, "values of the masks: 0 (75.0 %), 255 (25.0 %)\n"));
}

/* Makes an archive of two pictures, of which the second is bad, with labels. */
static void make_shard(void) {
    make_pictures();
    if (system("cd run && cp photos/a/1.ppm 0.ppm && cp photos/b/2.ppm 1.ppm && echo 1 >0.cls && echo 0 "
               ">1.cls && "
               "tar cf s.tar 0.ppm 0.cls 1.ppm 1.cls") != 0)
        fail();
}

/* Sizes, places and classes of samples in shards and combinations. */
static void check_names_places(void **state) {
    (void)state;
    make_shard();
    assert_int_equal(run("feed check tar:run/s.tar?size=2x2"), 1);
    assert_non_null(strstr(out, "most frequent size (height x width): 1x1, 1 pictures"));
    assert_non_null(strstr(out, "sample 1: 'run/s.tar', offset "));
    assert_int_equal(run("feed check concat(images:run/photos?size=2x2;tar:run/s.tar?size=2x2)"), 1);
    assert_non_null(strstr(out, "6 samples"));
    assert_non_null(strstr(out, "most frequent size (height x width): 1x1, 3 pictures"));
    assert_non_null(strstr(out, "samples 0 and 2: run/photos/a/1.ppm and run/photos/b/1.ppm"));
    assert_non_null(strstr(out, "samples 2 and 4: run/photos/b/1.ppm and run/s.tar, offset 512"));
    assert_int_equal(
        run("feed check zip(images:run/photos?size=2x2;mix(skip(images:run/photos?size=2x2;count=2);"
            "tar:run/s.tar?size=2x2))"),
        1);
    assert_non_null(strstr(out, "most frequent size (height x width): 1x1, 2 pictures"));
}

/* Samples in buckets have no numbers: they are read as batches of one. */
static void check_reads_buckets(void **state) {
    (void)state;
    make_pictures(); /* and the folder */
    int32_t values[] = {1, 2, 3, 4, 5, 6, 1, 2}, labels[] = {0, 1, 1};
    int64_t offsets[] = {0, 2, 6, 8};
    static const char *const names[] = {"values", "offsets", "y"};
    const leat_tensor tensors[] = {leat_tensor_view(LEAT_I32, 1, (int64_t[]){8}, values),
                                   leat_tensor_view(LEAT_I64, 1, (int64_t[]){4}, offsets),
                                   leat_tensor_view(LEAT_I32, 1, (int64_t[]){3}, labels)};
    assert_int_equal(leat_npz_write("run/ragged.npz", names, tensors, 3, NULL), LEAT_OK);
    runs("feed check ragged:run/ragged.npz?buckets=2");
    assert_non_null(strstr(out, "3 samples\n  input      int32 (4)"));
    assert_non_null(strstr(out, "the same inputs as another sample: 1"));
    assert_non_null(strstr(out, "class 1           2 samples"));
    runs("feed check ragged:run/ragged.npz");
    assert_non_null(strstr(out, "samples 0 and 2: run/ragged.npz, row 0 and run/ragged.npz, row 2\n"));
}

/* Random changes do not hide that samples are equal. */
static void check_sees_pictures_without_augmentation(void **state) {
    (void)state;
    make_pictures();
    assert_int_equal(run("feed check images:run/photos?size=2x2&augment=brightness(0.9)"), 1);
    assert_non_null(strstr(out, "the same inputs as another sample: 1"));
}

static void read_page(void) {
    FILE *file = fopen("run/page.html", "r");
    assert_non_null(file);
    out[fread(out, 1, text_bytes - 1, file)] = '\0';
    fclose(file);
}

static void show_writes_a_page(void **state) {
    (void)state;
    make_pictures();
    runs("feed show images:run/photos?size=2x2 --output run/page.html --samples 4");
    read_page();
    assert_non_null(strstr(out, "data:image/png;base64,iVBORw0KGgo"));
    assert_non_null(strstr(out, "<b>b</b> class 1<br>sample 2<br>run/photos/b/1.ppm"));
    assert_non_null(strstr(out, "the file is truncated"));
    runs("feed show npz:d.npz --output run/page.html --samples 2");
    read_page();
    assert_non_null(strstr(out, "<figure>input "));
    refused("feed show npz:d.npz", "--output");
}

static void write_flat_model(const char *path) {
    write_text(path,
               "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["
               "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\", \"batch_input_shape\": [null, 2, "
               "2, 3]}},"
               "{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 2, \"activation\": "
               "\"softmax\"}}]}, \"keras_version\": \"2.3.1\", \"backend\": \"tensorflow\"}");
}

/* A fit keeps the statistics of its pictures in its folder; a resume, the validation and a prediction use them. */
static void a_fit_keeps_statistics(void **state) {
    (void)state;
    make_pictures();
    assert_int_equal(remove("run/photos/b/2.ppm"), 0);
    write_flat_model("run/flat.json");
#define WITH "images:run/photos?size=2x2&augment=flip,featurewise_center,featurewise_std_normalization"
#define COMMAND                                                                                              \
    "fit run/flat.json --loss sparse_categorical_crossentropy --optimizer sgd --verbose 2 --out run/out "
    runs(COMMAND "--epochs 1 --train " WITH " --validation " WITH);
    assert_int_equal(access("run/out/statistics.npz", F_OK), 0);
    refused("predict run/out/model.h5 --output run/p.npy --data " WITH "&statistics=run/none.npz",
            "there are no statistics 'run/none.npz'");
    runs("predict run/out/model.h5 --output run/p.npy --data " WITH "&statistics=run/out/statistics.npz");
    runs("fit --resume run/out --epochs 2 --verbose 2");
    assert_int_equal(system("cp run/out/log.csv run/resumed.csv"), 0);
    runs(COMMAND "--overwrite --epochs 2 --train " WITH " --validation " WITH);
    assert_int_equal(access("run/out/statistics.npz", F_OK), 0);
    assert_int_equal(system("cmp run/out/log.csv run/resumed.csv"), 0);
#undef WITH
#undef COMMAND
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_has_commands_and_help),
        cmocka_unit_test(a_group_is_in_the_manual_and_the_completion),
        cmocka_unit_test(wrong_feed_usage_is_told),
        cmocka_unit_test(every_policy_is_checked_before_anything_is_done),
        cmocka_unit_test(keras_old_words_get_a_hint),
        cmocka_unit_test(bench_reports_what_it_measured),
        cmocka_unit_test(bench_ends_where_it_is_told),
        cmocka_unit_test(json_is_utf8),
        cmocka_unit_test(a_fit_keeps_statistics),
        cmocka_unit_test(a_digest_is_that_of_the_documented_bytes),
        cmocka_unit_test(a_digest_is_the_same_for_all_workers),
        cmocka_unit_test(each_shuffle_is_another_order),
        cmocka_unit_test(memory_bounds_the_ring),
        cmocka_unit_test(a_batch_that_is_late_ends_the_feed),
        cmocka_unit_test(bad_batches_fail_or_are_skipped),
        cmocka_unit_test(evaluate_and_predict_have_the_same_policies),
        cmocka_unit_test(a_trace_is_json_with_events),
        cmocka_unit_test(tune_recommends_one_of_its_rows),
        cmocka_unit_test(tune_compares_batch_sizes),
        cmocka_unit_test(check_finds_bad_and_equal_pictures),
        cmocka_unit_test(a_fit_counts_samples_that_were_left_out),
        cmocka_unit_test(check_reads_arrays),
        cmocka_unit_test(check_counts_classes_and_masks),
        cmocka_unit_test(check_names_places),
        cmocka_unit_test(check_reads_buckets),
        cmocka_unit_test(check_sees_pictures_without_augmentation),
        cmocka_unit_test(show_writes_a_page),
        cmocka_unit_test(an_interrupt_ends_a_measurement),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
