/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the helper program: the caller's side.  Room: feed. */
#define _GNU_SOURCE /* memfd_create */
#include "feed/workers/launch.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

extern char **environ;

/* ---- the record ---- */

static leat_status write_all(int fd, const void *data, size_t bytes, leat_error *err) {
    const unsigned char *from = data;
    while (bytes > 0) {
        ssize_t written = write(fd, from, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            return leati_fail_errno(err, LEAT_EIO, errno, "cannot write the record of a feed's helper");
        from += written;
        bytes -= (size_t)written;
    }
    return LEAT_OK;
}

static leati_launch_record describe(const leati_helper *helper) {
    const leati_pool_work *work = helper->work;
    leati_launch_record record = {.service_size = sizeof(leati_service),
                                  .caller = helper->caller,
                                  .control = helper->control,
                                  .feed_count = work->count,
                                  .generation = helper->generation,
                                  .table = work->table};
    snprintf(record.version, sizeof record.version, "%s", leat_version());
    record.bytes = sizeof record + (size_t)work->count * sizeof(leati_launched_feed);
    for (int i = 0; i < work->count; ++i) record.bytes += leati_align(work->services[i]->helper_data_bytes);
    return record;
}

static leat_status write_record(const leati_helper *helper, int fd, leat_error *err) {
    static const unsigned char padding[LEATI_ALIGNMENT];
    const leati_pool_work *work = helper->work;
    leati_launch_record record = describe(helper);
    size_t offset = sizeof record + (size_t)work->count * sizeof(leati_launched_feed);
    LEATI_TRY(write_all(fd, &record, sizeof record, err));
    for (int i = 0; i < work->count; ++i) {
        const leati_service *service = work->services[i];
        leati_launched_feed feed = {.service = *service,
                                    .mapping = service->ring.places->mapping,
                                    .data_offset = offset,
                                    .data_bytes = service->helper_data_bytes};
        LEATI_TRY(write_all(fd, &feed, sizeof feed, err));
        offset += leati_align(service->helper_data_bytes);
    }
    for (int i = 0; i < work->count; ++i) {
        const leati_service *service = work->services[i];
        size_t bytes = service->helper_data_bytes;
        LEATI_TRY(write_all(fd, service->helper_data, bytes, err));
        LEATI_TRY(write_all(fd, padding, leati_align(bytes) - bytes, err));
    }
    return LEAT_OK;
}

/* ---- the program ---- */

/* A terminal sends SIGINT and SIGQUIT to the whole process group.  They are blocked in the program until it forks
 * workers, so that it is not interrupted while it begins; the caller decides what they mean. */
static int block_terminal_signals(posix_spawnattr_t *attributes) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGQUIT);
    int failed = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK);
    return failed ? failed : posix_spawnattr_setsigmask(attributes, &mask);
}

static int spawn_program(pid_t *pid, char **words, const int *descriptors, int count) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = block_terminal_signals(&attributes);
        for (int i = 0; i < count && !failed; ++i)
            failed = posix_spawn_file_actions_adddup2(&actions, descriptors[i], descriptors[i]);
        if (!failed) failed = posix_spawnp(pid, words[0], &actions, &attributes, words, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

int leati_launch_program(pid_t *pid, const char *const *command, const char *last_word,
                         const int *descriptors, int count) {
    size_t words = 0;
    while (command[words]) ++words;
    char **all = leati_calloc(words + 2, sizeof *all);
    if (!all) return ENOMEM;
    for (size_t i = 0; i < words; ++i) all[i] = (char *)(uintptr_t)command[i]; /* execve changes none */
    all[words] = (char *)(uintptr_t)last_word;
    int failed = spawn_program(pid, all, descriptors, count);
    leati_free(all);
    return failed;
}

/* Starts the program with the number of the record's descriptor as the last word. */
static leat_status start_program(leati_helper *helper, int record, leat_error *err) {
    const leati_pool_work *work = helper->work;
    char number[16];
    int count = 0, *descriptors = leati_calloc((size_t)work->count + 3, sizeof *descriptors);
    if (!descriptors)
        return leati_fail_memory(err, ((size_t)work->count + 3) * sizeof *descriptors,
                                 "the descriptors of a feed's helper");
    descriptors[count++] = record;
    descriptors[count++] = helper->control;
    descriptors[count++] = work->table.mapping.fd;
    for (int i = 0; i < work->count; ++i) descriptors[count++] = work->services[i]->ring.places->mapping.fd;
    snprintf(number, sizeof number, "%d", record);
    int failed = leati_launch_program(&helper->pid, helper->command, number, descriptors, count);
    leati_free(descriptors);
    if (!failed) return LEAT_OK;
    helper->pid = 0;
    return leati_fail_errno(err, LEAT_EIO, failed, "cannot start the feed's helper program '%s'",
                            helper->command[0]);
}

leat_status leati_launch(leati_helper *helper, leat_error *err) {
    int record = memfd_create("leat-helper", MFD_CLOEXEC);
    if (record < 0)
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot make the record of a feed's helper");
    leat_status status = write_record(helper, record, err);
    if (status == LEAT_OK) status = start_program(helper, record, err);
    if (status == LEAT_OK)
        helper->record = record;
    else
        close(record);
    return status;
}

leat_status leati_launch_again(const leati_helper *helper, leat_error *err) {
    if (lseek(helper->record, 0, SEEK_SET) != 0)
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot write the record of a feed's helper");
    LEATI_TRY(write_record(helper, helper->record, err));
    if (ftruncate(helper->record, (off_t)describe(helper).bytes) != 0)
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot write the record of a feed's helper");
    return LEAT_OK;
}
