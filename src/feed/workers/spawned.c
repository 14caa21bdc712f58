/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes that are programs of their own: the helper's side and the worker's (leat/helper.h).  Room: feed. */
#define _GNU_SOURCE /* getppid beside prctl */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "feed/workers/launched.h"
#include "feed/workers/process.h"
#include "feed/workers/threads.h"

/* ---- the helper ---- */

/* What the last word of a worker's command line says, with commas between the numbers. */
enum { WORD_RECORD, WORD_NUMBER, WORD_GENERATION, WORD_PARENT, WORD_COUNT };

pid_t leati_spawn_worker(const leati_helper *helper, int number) {
    char word[96];
    pid_t pid = -1;
    snprintf(word, sizeof word, "%d,%d,%u,%d", helper->passed[0], number, (unsigned)helper->generation,
             (int)getpid());
    int failed =
        leati_launch_program(&pid, helper->worker_command, word, helper->passed, helper->passed_count);
    if (!failed) return pid;
    errno = failed;
    return -1;
}

/* Lists the descriptors that worker programs inherit. */
static leat_status list_passed(leat_helper *helper, leat_error *err) {
    leati_helper *run = &helper->helper;
    size_t room = (size_t)helper->work.count + 2;
    run->passed = leati_calloc(room, sizeof *run->passed);
    if (!run->passed) return leati_fail_memory(err, room * sizeof *run->passed, "a helper's descriptors");
    run->passed[run->passed_count++] = helper->descriptor;
    run->passed[run->passed_count++] = helper->work.table.mapping.fd;
    for (int i = 0; i < helper->work.count; ++i) run->passed[run->passed_count++] = helper->rings[i].fd;
    return LEAT_OK;
}

static leat_status supervise(leat_helper *helper, const char *const *command, leat_error *err) {
    leati_helper *run = &helper->helper;
    LEATI_TRY(list_passed(helper, err));
    fcntl(helper->record->control, F_SETFD, FD_CLOEXEC);
    run->worker_command = command;
    atomic_store(&helper->work.table.shared->helper_renews, 1);
    leat_error why = {0};
    do {
        LEATI_TRY(leati_launched_prepare(helper, err));
        leati_launched_run(helper);
    } while (leati_launched_renew(helper, &why));
    if (err) *err = why;
    return (leat_status)why.code;
}

leat_status leat_helper_supervise(leat_helper *helper, const char *const *command, leat_error *err) {
    LEATI_GIVEN(helper, err);
    leat_error why = {0};
    leat_status status = command && command[0]
                             ? supervise(helper, command, &why)
                             : leati_fail(&why, LEAT_EINVAL, "the workers' command is empty");
    if (status == LEAT_OK) return LEAT_OK;
    leati_prefix(status, &why, "helper");
    leati_pool_work_fail(&helper->work, &why);
    if (err) *err = why;
    return status;
}

/* ---- the worker ---- */

static bool read_word(const char *word, long numbers[WORD_COUNT]) {
    for (int i = 0; i < WORD_COUNT; ++i) {
        char *end = NULL;
        numbers[i] = strtol(word, &end, 10);
        if (end == word || *end != (i + 1 < WORD_COUNT ? ',' : '\0')) return false;
        word = end + 1;
    }
    return true;
}

static bool is_current(const leat_helper *helper, const long numbers[WORD_COUNT]) {
    return atomic_load(&helper->work.table.shared->generation) == (uint32_t)numbers[WORD_GENERATION];
}

static leat_status make_batches(leat_helper *helper, const long numbers[WORD_COUNT], leat_error *err) {
    leati_worker worker;
    int number = (int)numbers[WORD_NUMBER];
    LEATI_TRY(leati_worker_init(&worker, &helper->work, number, err));
    worker.generation = (uint32_t)numbers[WORD_GENERATION];
    leati_name_worker(number);
    atomic_store(&helper->work.table.workers[number].sleeping, 0); /* Its predecessor may have died asleep. */
    leat_status status = leati_worker_run(&worker, err);
    leati_worker_fini(&worker);
    return status;
}

static leat_status work(leat_helper *helper, const long numbers[WORD_COUNT], leat_helper_make make,
                        void *user, leat_error *err) {
    leati_launched_release(helper);
    if (numbers[WORD_NUMBER] < 0 || numbers[WORD_NUMBER] >= helper->work.table.count)
        return leati_fail(err, LEAT_EINVAL, "there is no worker %ld, only %d", numbers[WORD_NUMBER],
                          helper->work.table.count);
    if (!is_current(helper, numbers)) return LEAT_OK;
    leat_status status = leati_launched_make(helper, make, user, err);
    if (status == LEAT_OK) {
        leati_launched_set_signals();
        status = make_batches(helper, numbers, err);
    }
    /* The caller writes new data into the record after it has retired the workers: this one may have read half of the
     * old data. */
    if (status == LEAT_OK || !is_current(helper, numbers)) return LEAT_OK;
    leati_worker_entry *entry = &helper->work.table.workers[numbers[WORD_NUMBER]];
    entry->error = *err;
    atomic_store(&entry->phase, LEATI_WORKER_REFUSED);
    return status;
}

leat_status leat_helper_work(const char *word, leat_helper_make make, void *user, leat_error *err) {
    long numbers[WORD_COUNT] = {0};
    leat_helper *helper = NULL;
    leat_error why = {0};
    LEATI_GIVEN(word, err);
    if (!make) return leati_fail(err, LEAT_EINVAL, "make is NULL, expected a function");
    if (!read_word(word, numbers)) return leati_fail(err, LEAT_EINVAL, "'%s' is not that of a worker", word);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* Sent when the helper, which has one thread, ends. */
    if (getppid() != (pid_t)numbers[WORD_PARENT])
        return leati_fail(err, LEAT_ESTOPPED, "the helper that started this worker is gone");
    leat_status status = leati_launched_open(&helper, (int)numbers[WORD_RECORD], &why);
    if (status == LEAT_OK) status = work(helper, numbers, make, user, &why);
    leat_helper_close(&helper);
    if (status != LEAT_OK && err) *err = why;
    return status;
}
