/* SPDX-License-Identifier: Apache-2.0 */
/* `leat report`: the page is complete, loads nothing, and contains the run's numbers whatever their text is. */
#include "cmocka_all.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "cli/command.h"
#include "cli/report/check.h"
#include "data/files.h"

static char page[text_bytes];

static void slurp(const char *path, char *text) {
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s is missing", path);
    size_t size = fread(text, 1, text_bytes - 1, file);
    text[size] = '\0';
    assert_int_equal(strlen(text), size);
    fclose(file);
}

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static void go(const char *folder) {
    if (chdir(folder) != 0) fail_msg("no folder %s", folder);
}

static int enter_with_run(void **state) {
    return enter(state) == 0 && system("mkdir run") == 0 ? 0 : -1;
}

static int leave(void **state) {
    return system("rm -rf ./*/") == 0 ? files_leave(state) : -1;
}

static int times(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) ++count;
    return count;
}

/* ---- A page ---- */

static const char whole[] =
    "{\"epoch\": [0, 1], \"history\": {\"loss\": [0.5, null], \"accuracy\": [0.7, 0.8], \"val_loss\": [0.6, "
    "0.4]},\n"
    " \"verdict\": {\"text\": \"Training waited.\", \"steps\": 20, \"wall_s\": 1.5, \"data_wait_s\": 0.5, "
    "\"compute_s\": 0.9, \"workers\": 2, \"use_multiprocessing\": true, \"threads\": 2, \"cores\": 2},\n"
    " \"feed\": {\"batches\": 20, \"bytes\": 4096, \"starved\": 3, \"wait_s\": 0.5, \"get_s\": 1.25, "
    "\"wait_ms\": {\"p50\": 0.1, \"p90\": 1, \"p99\": 2e1, \"max\": 25.5}, \"workers\": [{\"busy\": 0.83}], "
    "\"depth\": {\"t_s\": [0, 0.5], \"ready\": [0, 10]}},\n"
    " \"timeline\": {\"t_s\": [0, 0.75], \"wait_ms\": [3, 2], \"compute_ms\": [7, 8], \"steps_per_point\": "
    "10},\n"
    " \"lanes\": {\"spans\": [[0, 0.001, 0.02, 5], [1, 0.002, 0.03, 6]]}}\n";

/* Returns the text of the page's element of numbers. */
static json_t *embedded(void) {
    static const char open[] = "<script type=\"application/json\" id=\"run\">";
    const char *from = strstr(page, open);
    assert_non_null(from);
    from += sizeof open - 1;
    const char *to = strstr(from, "</script>");
    assert_non_null(to);
    assert_null(memchr(from, '<', (size_t)(to - from)));
    json_error_t why;
    json_t *root = json_loadb(from, (size_t)(to - from), 0, &why);
    if (!root) fail_msg("%s", why.text);
    return root;
}

/* The page equals the template, except for the numbers. */
static void check_page(const char *path, const char *history, const char *name) {
    slurp(path, page);
    assert_memory_equal(page, "<!doctype html>", 15);
    assert_int_equal(times(page, "@LEAT_RUN@"), 0);
    assert_int_equal(times(page, "<html"), 1);
    assert_int_equal(times(page, "</html>"), 1);
    assert_int_equal(times(page, "<script"), 2);
    assert_int_equal(times(page, "</script>"), 2);
    json_t *root = embedded(), *numbers = json_loads(history, 0, NULL);
    assert_non_null(numbers);
    assert_true(json_equal(json_object_get(root, "run"), numbers));
    assert_string_equal(json_string_value(json_object_get(root, "name")), name);
    assert_int_equal(strlen(json_string_value(json_object_get(root, "date"))),
                     strlen("2026-01-01 00:00 UTC"));
    json_decref(root);
    json_decref(numbers);
}

static void a_report_holds_the_run_and_loads_nothing(void **state) {
    (void)state;
    write_text("run/history.json", whole);
    runs("report run");
    assert_string_equal(errors, "wrote run/report.html\n");
    check_page("run/report.html", whole, "run");
    assert_int_equal(times(page, "src="), 0);
    assert_int_equal(times(page, "href"), 0);
    assert_int_equal(times(page, "url("), 0);
    assert_int_equal(times(page, "@import"), 0);
    assert_int_equal(times(page, "://"),
                     times(page,
                           "http://www.w3.org/2000/svg")); /* the name of a namespace, which is not loaded */
    assert_int_equal(times(page, "content=\"default-src 'none';"), 1);
    const char *parts[] = {"'steps'", "'depth'", "'busy'", "'lanes'", "id: 'verdict'", "id: 'feed'"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        if (times(page, parts[i]) != 1) fail_msg("%s: %d times", parts[i], times(page, parts[i]));
}

static void a_report_goes_where_it_is_told(void **state) {
    (void)state;
    write_text("run/history.json", whole);
    write_text("numbers", whole);
    runs("report run/ --output a.html");
    check_page("a.html", whole, "run");
    runs("report run/history.json --output b.html");
    check_page("b.html", whole, "run");
    runs("report numbers --output b.html"); /* replaces the first page */
    check_page("b.html", whole, "numbers");
    runs("report numbers --output a.html");
    go("run");
    runs("report .");
    check_page("report.html", whole, "run");
    go("..");
}

/* Names of metrics and folders are shown as text, never interpreted as HTML or script. */
static void hostile_strings_stay_strings(void **state) {
    (void)state;
    static const char history[] =
        "{\"epoch\": [0], \"history\": {\"</script><script>alert(1)</script>\": [1], \"<!--<script>\": [2], "
        "\"]]>\": [3], \"__proto__\": [4], \"\": [5], \"a\\\"b\\\\\\u0001\": [6], \"&lt;\": [7], "
        "\"@LEAT_RUN@\": [8], "
        "\"\xe2\x80\xa8%s\": [9], \"<img src=x onerror=alert(1)>\": [10]}, "
        "\"verdict\": {\"text\": \"</ScRiPt ><b>\"}}";
    assert_int_equal(system("mkdir 'a<b> & \"c\"\\d'"), 0);
    write_text("a<b> & \"c\"\\d/history.json", history);
    go("a<b> & \"c\"\\d");
    runs("report .");
    slurp("report.html", page);
    go("..");
    assert_int_equal(times(page, "@LEAT_RUN@"), 1); /* the metric of this name */
    json_t *root = embedded(), *numbers = json_loads(history, 0, NULL);
    assert_non_null(numbers);
    assert_true(json_equal(json_object_get(root, "run"), numbers));
    assert_string_equal(json_string_value(json_object_get(root, "name")), "a<b> & \"c\"\\d");
    assert_int_equal(times(page, "<script"), 2);
    assert_int_equal(times(page, "</script>"), 2);
    assert_int_equal(times(page, "alert(1)"), 2);
    assert_int_equal(times(page, "<img"), 0);
    json_decref(root);
    json_decref(numbers);
}

static void runs_of_older_versions_are_reported(void **state) {
    (void)state;
    const char *some[] = {"{}", "{\"epoch\": [], \"history\": {}}",
                          "{\"epoch\": 3, \"history\": [1], \"feed\": null}",
                          "{\"epoch\": [0], \"history\": {\"loss\": [1]}, \"verdict\": {\"text\": \"\"}}"};
    for (size_t i = 0; i < sizeof some / sizeof *some; ++i) {
        write_text("run/history.json", some[i]);
        runs("report run");
        check_page("run/report.html", some[i], "run");
    }
}

static void fit_writes_a_report(void **state) {
    (void)state;
    runs(FIT "--epochs 2 --out fitted --verbose 0");
    assert_string_equal(errors, "");
    slurp("fitted/history.json", out);
    check_page("fitted/report.html", out, "fitted");
}

static void the_record_of_the_command_is_shown(void **state) {
    (void)state;
    static const char record[] = "{\"command\": [\"leat\", \"<b>&\"], \"train\": \"npz:d.npz\"}";
    write_text("run/history.json", whole);
    write_text("run/run.json", record);
    runs("report run");
    check_page("run/report.html", whole, "run");
    json_t *root = embedded(), *expected = json_loads(record, 0, NULL);
    assert_true(json_equal(json_object_get(root, "record"), expected));
    json_decref(root);
    write_text("run/run.json", "{\"command\": ");
    runs("report run");
    assert_non_null(strstr(errors, "leat report: 'run/run.json' is damaged: expected a value in line 1"));
    assert_non_null(strstr(errors, "leat report: the report is written without 'run/run.json'"));
    check_page("run/report.html", whole, "run");
    root = embedded();
    assert_null(json_object_get(root, "record"));
    json_decref(root);
    json_decref(expected);
    (void)unlink("run/run.json");
}

/* ---- Following a run ---- */

static const char running[] =
    "{\"state\": \"running\", \"progress\": {\"epoch\": 1, \"epochs\": 9, \"step\": 3, "
    "\"steps\": 10, \"logs\": {\"loss\": 0.25}}, \"epoch\": [0], "
    "\"history\": {\"loss\": [0.5]}}";

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* Waits until the file contains the text. */
static void await(const char *path, const char *text) {
    for (int i = 0; i < 3000; ++i, nap()) {
        FILE *file = fopen(path, "r");
        if (!file) continue;
        page[fread(page, 1, text_bytes - 1, file)] = '\0';
        fclose(file);
        if (strstr(page, text)) return;
    }
    fail_msg("'%s' never contained '%s'", path, text);
}

static void expect_in_page(const char *path, const char *text) {
    slurp(path, page);
    if (!strstr(page, text)) fail_msg("'%s' does not contain '%s'", path, text);
}

/* Locks run/lock as the process of a run does; returns the descriptor. */
static int hold_lock(void) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open("run/lock", O_RDWR | O_CREAT, 0666);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
    return fd;
}

static void a_fit_is_followed_to_its_end(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf live; mkdir live"), 0);
    pid_t fit = fork();
    assert_true(fit >= 0);
    if (fit == 0) {
        execl("/bin/sh", "sh", "-c",
              "exec '" LEAT_COMMAND "' " FIT "--epochs 1000000 --out live --verbose 0 >.fit 2>&1",
              (char *)NULL);
        _exit(99);
    }
    await("live/history.json", "\"state\": \"running\"");
    pid_t follower = start("report live --follow");
    await("live/report.html", "\"reload_s\": 2");
    assert_non_null(strstr(page, "</html>"));
    await("live/history.json", "\"epoch\": [0, 1");
    await("live/report.html", "\"epoch\": [0, 1");
    assert_int_equal(kill(fit, SIGINT), 0);
    int status = 0;
    assert_int_equal(waitpid(fit, &status, 0), fit);
    assert_int_equal(WEXITSTATUS(status), 130);
    assert_int_equal(finish(follower), 0);
    assert_non_null(strstr(errors, "following 'live': open /"));
    assert_non_null(
        strstr(errors, "live/report.html in a browser; Ctrl-C ends this command, but not the run\n"));
    assert_non_null(strstr(errors, " of 1000000: loss "));
    assert_non_null(strstr(errors, "the run has ended after "));
    assert_non_null(strstr(errors, ": it was interrupted: "));
    expect_in_page("live/report.html", "\"reload_s\": 0, \"died\": false");
    expect_in_page("live/report.html", "\"state\": \"interrupted\"");
    (void)unlink(".fit");
}

static void the_page_changes_with_the_run(void **state) {
    (void)state;
    write_text("run/history.json", running);
    (void)unlink("run/report.html");
    int lock = hold_lock();
    pid_t follower = start("report run --follow");
    await("run/report.html", "\"reload_s\": 2, \"died\": false");
    write_text("run/next",
               "{\"state\": \"running\", \"epoch\": [0, 1], \"history\": {\"loss\": [0.5, 0.125]}}");
    assert_int_equal(rename("run/next", "run/history.json"), 0);
    await("run/report.html", "0.125");
    assert_non_null(strstr(page, "\"reload_s\": 2"));
    close(lock); /* as the system does when the process is killed */
    assert_int_equal(finish(follower), 0);
    assert_non_null(strstr(errors, "epoch 1 of 9: loss 0.5\n"));
    assert_non_null(strstr(
        errors,
        "the run has ended after 2 epochs (loss 0.125): its process was killed; wrote run/report.html\n"));
    expect_in_page("run/report.html", "\"reload_s\": 0, \"died\": true");
    (void)unlink("run/lock");
}

static void a_signal_ends_the_following_only(void **state) {
    (void)state;
    static const struct { int number, code; } signals[] = {{SIGINT, 130}, {SIGTERM, 143}};
    write_text("run/history.json", running);
    for (size_t i = 0; i < 2; ++i) {
        (void)unlink("run/report.html");
        int lock = hold_lock();
        pid_t follower = start("report run --follow");
        await("run/report.html", "\"reload_s\": 2");
        assert_int_equal(kill(follower, signals[i].number), 0);
        assert_int_equal(finish(follower), signals[i].code);
        assert_non_null(strstr(errors, "stopped following; the run goes on\n"));
        expect_in_page("run/report.html", "\"reload_s\": 0, \"died\": false");
        close(lock);
    }
    (void)unlink("run/lock");
}

static void a_run_that_has_ended_is_not_followed(void **state) {
    (void)state;
    static const struct {
        const char *history, *says;
    } cases[] = {
        {whole, "the run has ended after 2 epochs (val_loss 0.4): it is complete; wrote run/report.html\n"},
        {"{\"state\": \"ended\", \"state_text\": \"patience\", \"epoch\": [0]}",
         "the run has ended after 1 epoch: it is complete: patience; wrote run/report.html\n"},
        {"{\"state\": \"failed\", \"state_text\": \"batch 'a\\\\b\\\"'\", \"epoch\": []}",
         "the run has ended after 0 epochs: it failed: batch 'a\\b\"'; wrote run/report.html\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        write_text("run/history.json", cases[i].history);
        runs("report run --follow");
        assert_string_equal(errors, cases[i].says);
        check_page("run/report.html", cases[i].history, "run");
    }
    /* A run without a lock file is dead if its numbers are older than a minute. */
    write_text("run/history.json", running);
    struct timespec old[2] = {{.tv_sec = time(NULL) - 100}, {.tv_sec = time(NULL) - 100}};
    assert_int_equal(utimensat(AT_FDCWD, "run/history.json", old, 0), 0);
    runs("report run --follow");
    assert_non_null(strstr(errors, "its process was killed"));
    runs("report run"); /* a report that is written once says so, too */
    expect_in_page("run/report.html", "\"reload_s\": 0, \"died\": true");
    refused("report run/history.json --follow", "--follow needs the folder");
    assert_int_equal(system("mkdir -p empty"), 0);
    fails("report empty --follow", "cannot read 'empty/history.json': No such file");
}

/* ---- Errors ---- */

static void what_is_missing_is_told(void **state) {
    (void)state;
    write_text("run/history.json", whole);
    refused("report", "RUN is missing");
    fails("report absent", "cannot read 'absent': No such file");
    fails("report absent --output c.html", "cannot read 'absent': No such file");
    assert_int_equal(system("mkdir -p empty"), 0);
    fails("report empty", "cannot read 'empty/history.json': No such file");
    refused("report run/history.json", "--output FILE");
    fails("report run --output no/such/folder.html", "cannot write 'no/such/folder.html'");
    fails("report run --output empty", "cannot write 'empty': it is a directory");
    assert_false(exists("c.html"));
}

/* If the file cannot grow beyond 16 KB, as on a full disk, the old file stays. */
static void a_full_disk_leaves_the_old_report(void **state) {
    (void)state;
    write_text("run/history.json", whole);
    write_text("run/report.html", "the old one");
    int status = system("trap '' XFSZ; ulimit -f 16; exec '" LEAT_COMMAND "' report run 2>.err");
    assert_int_equal(WEXITSTATUS(status), 1);
    slurp(".err", errors);
    assert_non_null(strstr(errors, "cannot write 'run/report.html': File too large"));
    slurp("run/report.html", page);
    assert_string_equal(page, "the old one");
    assert_int_equal(system("test $(ls run | wc -l) = 2"), 0);
}

static void damaged_numbers_are_told_with_their_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "expected an object in line 1, column 1, where it ends"},
        {"[1]", "expected an object in line 1, column 1"},
        {"{\"epoch\": [0,\n 1", "expected ',' or ']' in line 2, column 3, where it ends"},
        {"{\"epoch\": [0, NaN]}", "expected a value in line 1, column 15"},
        {"{\"loss\": 0.}", "expected a digit in line 1"},
        {"{\"a\": 1}\n\n{", "expected nothing after the object in line 3"},
        {"{\"a\": \"\xff\"}", "expected UTF-8 in line 1, column 8"},
        {"{\"a\" 1}", "expected ':'"},
        {"{\"a\": </script><script>alert(1)</script>}", "expected a value"},
    };
    (void)unlink("run/report.html");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        write_text("run/history.json", cases[i].text);
        fails("report run", cases[i].says);
        assert_non_null(strstr(errors, "leat report: 'run/history.json' is damaged: "));
        assert_false(exists("run/report.html"));
    }
    FILE *file = fopen("run/history.json", "w");
    fwrite("{}\0{}", 1, 5, file);
    fclose(file);
    fails("report run", "is damaged");
}

/* ---- The JSON check ---- */

static bool accepted(const char *text) {
    const char *at = NULL;
    const char *wrong = cli_report_check(text, &at);
    assert_true(at >= text && at <= text + strlen(text));
    return !wrong;
}

static void members_are_found(void **state) {
    (void)state;
    static const char text[] =
        "{\"ab\": {\"a\": [1]}, \"a\" :[ 1, [2, 3], \"]\", -4 ], \"e\": [ ], \"z\": null}";
    const char *last = NULL;
    assert_true(accepted(text));
    assert_int_equal(cli_report_elements(cli_report_member(text, "a"), &last), 4);
    assert_memory_equal(last, "-4", 2);
    assert_int_equal(cli_report_elements(cli_report_member(cli_report_member(text, "ab"), "a"), &last), 1);
    assert_memory_equal(last, "1]", 2);
    assert_int_equal(cli_report_elements(cli_report_member(text, "e"), &last), 0);
    assert_null(last);
    assert_memory_equal(cli_report_member(text, "z"), "null", 4);
    assert_null(cli_report_member(text, "b"));
    assert_null(cli_report_member("{}", "a"));
    assert_null(cli_report_member(cli_report_member(text, "z"), "a"));
    assert_int_equal(cli_report_elements(cli_report_member(text, "z"), &last), 0);
}

/* Returns a document whose value is nested brackets. */
static bool nested(size_t depth) {
    static char text[4000];
    assert_true(2 * depth + 8 < sizeof text);
    strcpy(text, "{\"a\":");
    memset(text + 5, '[', depth);
    memset(text + 5 + depth, ']', depth);
    strcpy(text + 5 + 2 * depth, "}");
    return accepted(text);
}

static void depth_is_limited(void **state) {
    (void)state;
    assert_true(nested(10));
    assert_true(nested(63));
    assert_false(nested(64));
    assert_false(nested(1900));
}

/* On documents that are changed at random, the check agrees with jansson, except for texts that the page's parser
 * accepts and jansson does not (half a surrogate pair, NUL, a number out of the range of double). */
static void the_check_agrees_with_jansson(void **state) {
    (void)state;
    static const char start[] =
        "{\"a\": [0, -1.5e+3, true, false, null, {}], \"\\u00e9\\n\": \"\xc3\xa9\xe2\x82\xac\", "
        "\"b\": {\"c\": [[], \"\"]}}";
    static const char letters[] = "{}[]\",:\\0123456789-+eE. \ntrufalsn\xc3\xa9\xe2\xf0\x80\x01";
    uint64_t random = 7;
    int taken = 0, refused = 0;
    for (int round = 0; round < 100000; ++round) {
        char text[sizeof start];
        memcpy(text, start, sizeof start);
        for (int change = round % 3; change >= 0; --change) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            text[(random >> 33) % (sizeof start - 1)] = letters[(random >> 20) % (sizeof letters - 1)];
        }
        bool ours = accepted(text);
        json_t *root = json_loads(text, 0, NULL);
        bool theirs = json_is_object(root);
        if (theirs && !ours) fail_msg("refused: %s", text);
        if (ours && !theirs && !strstr(text, "\\u") && !strpbrk(text, "eE")) fail_msg("taken: %s", text);
        json_decref(root);
        taken += ours;
        refused += !ours;
    }
    assert_true(taken > 1000 && refused > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_holds_the_run_and_loads_nothing),
        cmocka_unit_test(a_report_goes_where_it_is_told),
        cmocka_unit_test(hostile_strings_stay_strings),
        cmocka_unit_test(runs_of_older_versions_are_reported),
        cmocka_unit_test(fit_writes_a_report),
        cmocka_unit_test(the_record_of_the_command_is_shown),
        cmocka_unit_test(a_fit_is_followed_to_its_end),
        cmocka_unit_test(the_page_changes_with_the_run),
        cmocka_unit_test(a_signal_ends_the_following_only),
        cmocka_unit_test(a_run_that_has_ended_is_not_followed),
        cmocka_unit_test(what_is_missing_is_told),
        cmocka_unit_test(a_full_disk_leaves_the_old_report),
        cmocka_unit_test(damaged_numbers_are_told_with_their_place),
        cmocka_unit_test(members_are_found),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(the_check_agrees_with_jansson),
    };
    return cmocka_run_group_tests(tests, enter_with_run, leave);
}
