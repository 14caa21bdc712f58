/* SPDX-License-Identifier: Apache-2.0 */
/* A worker process that is stopped (SIGSTOP) during a fit: the fit replaces it, or waits and says so. */
#include "cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "data/files.h"
#include "feed/procs.h"
#include "feed/source.h"

#define LONG_FIT FIT "--epochs 200 --verbose 0 --out run --use-multiprocessing --workers 1 "

/* Starts a fit and stops its worker process. */
static pid_t start_and_stop(const char *line, pid_t *worker) {
    pid_t pids[most_children];
    pid_t child = start(line);
    workers_of(helper_of(child), 1, pids);
    assert_int_equal(kill(pids[0], SIGSTOP), 0);
    *worker = pids[0];
    return child;
}

static void expect_model(void) {
    assert_int_equal(access("run/model.h5", F_OK), 0);
    assert_int_equal(system("rm -r run"), 0);
}

static void with_batch_timeout_the_worker_is_replaced(void **state) {
    (void)state;
    pid_t worker, child = start_and_stop(LONG_FIT "--batch-timeout 1", &worker);
    if (finish(child) != 0) fail_msg("%s", errors);
    assert_int_not_equal(kill(worker, 0), 0);
    expect_model();
}

static void without_batch_timeout_the_fit_waits_and_says_so(void **state) {
    (void)state;
    static char said[text_bytes];
    char name[64];
    pid_t worker, child = start_and_stop(LONG_FIT, &worker);
    snprintf(name, sizeof name, "worker process %d is stopped (SIGSTOP)", (int)worker);
    for (int tries = 0; tries < 6000 && !strstr(said, name); ++tries, sleep_us(10000)) {
        FILE *file = fopen(".err", "r");
        if (!file) continue;
        said[fread(said, 1, sizeof said - 1, file)] = '\0';
        fclose(file);
    }
    kill(worker, SIGCONT);
    if (finish(child) != 0 || !strstr(errors, name)) fail_msg("%s", errors);
    expect_model();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_batch_timeout_the_worker_is_replaced),
        cmocka_unit_test(without_batch_timeout_the_fit_waits_and_says_so),
    };
    alarm(240);
    return cmocka_run_group_tests(tests, enter, files_leave);
}
