/* SPDX-License-Identifier: Apache-2.0 */
/* The helper in a program of its own (leat/helper.h).  Room: feed. */
#include "feed/workers/launched.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/signals.h"
#include "feed/workers/process.h"
#include "tensor/sequence.h"

static const leati_launched_feed *launched_feed(const leat_helper *helper, int feed) {
    return (const leati_launched_feed *)(helper->record + 1) + feed;
}

/* ---- opening ---- */

static leat_status map_record(leat_helper *helper, int fd, leat_error *err) {
    struct stat about;
    if (fstat(fd, &about) != 0)
        return leati_fail_errno(err, LEAT_EINVAL, errno, "descriptor %d is not that of a feed", fd);
    if (!S_ISREG(about.st_mode) || (size_t)about.st_size < sizeof(leati_launch_record))
        return leati_fail(err, LEAT_EINVAL, "descriptor %d is not that of a feed", fd);
    void *memory = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
        return leati_fail_errno(err, LEAT_ENOMEM, errno, "cannot map the record of a feed");
    helper->record = memory;
    helper->record_bytes = (size_t)about.st_size;
    const leati_launch_record *record = helper->record;
    if (strncmp(record->version, leat_version(), sizeof record->version) != 0 ||
        record->service_size != sizeof(leati_service) || record->bytes != helper->record_bytes)
        return leati_fail(
            err, LEAT_EINVAL,
            "descriptor %d is not that of a feed of leat %s: both programs need the same version", fd,
            leat_version());
    return LEAT_OK;
}

/* Maps the ring of a feed and sets up its service for this process. */
static leat_status attach_feed(leat_helper *helper, int i, leat_error *err) {
    const leati_launched_feed *feed = launched_feed(helper, i);
    leati_service *service = &helper->services[i];
    leati_mapping ring = {.bytes = feed->mapping.bytes,
                          .fd = feed->mapping.fd,
                          .between_processes = true,
                          .backed = feed->mapping.backed};
    LEATI_TRY(leati_mapping_attach(&ring, err));
    helper->rings[i] = ring;
    *service = feed->service;
    service->ring.places = NULL;
    leati_service_point(service, ring.memory, &helper->work.table);
    helper->service_pointers[i] = service;
    helper->work.count = i + 1;
    return LEAT_OK;
}

static leat_status attach_all(leat_helper *helper, leat_error *err) {
    const leati_launch_record *record = helper->record;
    size_t count = (size_t)record->feed_count;
    helper->services = leati_calloc(count, sizeof *helper->services);
    helper->service_pointers = leati_calloc(count, sizeof(leati_service *));
    helper->rings = leati_calloc(count, sizeof *helper->rings);
    if (!helper->services || !helper->service_pointers || !helper->rings)
        return leati_fail_memory(err, count * sizeof *helper->services, "the feeds of a helper");
    helper->work.services = helper->service_pointers;
    helper->work.table = record->table;
    helper->work.table.mapping.memory = NULL;
    LEATI_TRY(leati_mapping_attach(&helper->work.table.mapping, err));
    leati_worker_table_point(&helper->work.table);
    for (int i = 0; i < record->feed_count; ++i) LEATI_TRY(attach_feed(helper, i, err));
    return LEAT_OK;
}

static leat_status check_caller(const leat_helper *helper, leat_error *err) {
    if (getppid() == helper->record->caller) return LEAT_OK;
    return leati_fail(err, LEAT_ESTOPPED, "the process that opened the feed is gone");
}

leat_status leati_launched_open(leat_helper **out, int descriptor, leat_error *err) {
    *out = NULL;
    leat_helper *helper = leati_calloc(1, sizeof *helper);
    if (!helper) return leati_fail_memory(err, sizeof *helper, "a feed's helper");
    helper->descriptor = -1;
    leat_status status = map_record(helper, descriptor, err);
    if (status == LEAT_OK) {
        fcntl(descriptor, F_SETFD, FD_CLOEXEC);
        helper->descriptor = descriptor;
    }
    if (status == LEAT_OK) status = attach_all(helper, err);
    if (status == LEAT_OK)
        *out = helper;
    else
        leat_helper_close(&helper);
    return status;
}

leat_status leat_helper_open(leat_helper **out, int descriptor, leat_error *err) {
    LEATI_GIVEN(out, err);
    leat_status status = leati_launched_open(out, descriptor, err);
    if (status == LEAT_OK) status = check_caller(*out, err);
    if (status == LEAT_OK) return LEAT_OK;
    leat_helper_close(out);
    return leati_prefix(status, err, "helper");
}

void leati_launched_release(leat_helper *helper) {
    leati_mapping_release(&helper->work.table.mapping);
    for (int i = 0; i < helper->work.count; ++i) leati_mapping_release(&helper->rings[i]);
}

void leat_helper_close(leat_helper **helper) {
    if (!helper || !*helper) return;
    leat_helper *self = *helper;
    leati_processes_fini(&self->helper);
    for (int i = 0; i < self->work.count; ++i) leati_mapping_destroy(&self->rings[i]);
    if (self->work.table.mapping.memory) leati_worker_table_fini(&self->work.table);
    if (self->record) munmap((void *)(uintptr_t)self->record, self->record_bytes);
    if (self->descriptor >= 0) close(self->descriptor);
    leati_free(self->sequences);
    leati_free(self->services);
    leati_free(self->service_pointers);
    leati_free(self->rings);
    leati_free(self);
    *helper = NULL;
}

/* ---- what the caller said ---- */

int leat_helper_feed_count(const leat_helper *helper) {
    return helper ? helper->record->feed_count : 0;
}

const void *leat_helper_data(const leat_helper *helper, int feed, size_t *bytes) {
    if (bytes) *bytes = 0;
    if (!helper || feed < 0 || feed >= helper->record->feed_count) return NULL;
    const leati_launched_feed *launched = launched_feed(helper, feed);
    if (bytes) *bytes = launched->data_bytes;
    return launched->data_bytes ? (const unsigned char *)helper->record + launched->data_offset : NULL;
}

void leat_helper_fail(leat_helper *helper, const leat_error *why) {
    if (helper && why) leati_pool_work_fail(&helper->work, why);
}

/* ---- running ---- */

/* Gives a service the functions of the helper's sequence. */
static leat_status adopt_sequence(leati_service *service, const leat_sequence *given, leat_error *err) {
    leat_sequence own, *there = &service->sequence;
    LEATI_TRY(leati_sequence_read(given, &own, err));
    bool same = !own.get == !there->get && !own.get_samples == !there->get_samples &&
                !own.next == !there->next && own.state_bytes == there->state_bytes &&
                !own.state == !there->state;
    if (!same)
        return leati_fail(
            err, LEAT_EINVAL,
            "expected a sequence with the functions and the state with which the feed was opened");
    there->user = own.user;
    there->get = own.get;
    there->get_samples = own.get_samples;
    there->next = own.next;
    there->worker_init = own.worker_init;
    there->worker_fini = own.worker_fini;
    there->state = own.state;
    there->destroy = NULL;
    return LEAT_OK;
}

static leat_status adopt_all(leat_helper *helper, const leat_sequence *sequences, int count,
                             leat_error *err) {
    if (count != helper->record->feed_count)
        return leati_fail(err, LEAT_EINVAL, "expected %d sequences, one for each feed, received %d",
                          helper->record->feed_count, count);
    for (int i = 0; i < count; ++i) LEATI_TRY(adopt_sequence(&helper->services[i], &sequences[i], err));
    return LEAT_OK;
}

leat_status leati_launched_prepare(leat_helper *helper, leat_error *err) {
    leati_helper *run = &helper->helper;
    LEATI_TRY(check_caller(helper, err));
    LEATI_TRY(leati_processes_prepare(run, &helper->work, err));
    run->generation = helper->record->generation;
    run->caller = helper->record->caller;
    run->control = helper->record->control;
    run->caller_pidfd = leati_pidfd_open(run->caller);
    return LEAT_OK;
}

void leati_launched_set_signals(void) {
    sigset_t terminal;
    leati_processes_reset_signals();
    sigemptyset(&terminal);
    sigaddset(&terminal, SIGINT);
    sigaddset(&terminal, SIGQUIT);
    pthread_sigmask(SIG_UNBLOCK, &terminal, NULL);
    leati_mask_no_faults(NULL);
}

void leati_launched_run(leat_helper *helper) {
    leati_launched_set_signals();
    atomic_store(&helper->work.table.shared->helper_runs, 1);
    leati_helper_run(&helper->helper);
}

leat_status leat_helper_run(leat_helper *helper, const leat_sequence *sequences, int count, leat_error *err) {
    LEATI_GIVEN(helper, err);
    LEATI_GIVEN(sequences, err);
    leat_error why = {0};
    leati_launched_release(helper);
    leat_status status = adopt_all(helper, sequences, count, &why);
    if (status == LEAT_OK) status = leati_launched_prepare(helper, &why);
    if (status != LEAT_OK) {
        leati_prefix(status, &why, "helper");
        leati_pool_work_fail(&helper->work, &why);
        if (err) *err = why;
        return status;
    }
    leati_launched_run(helper);
    return LEAT_OK;
}

/* ---- new data ---- */

/* Waits until the caller says what follows.  Returns true if that is new data; false if the helper shall exit, or the
 * caller is gone. */
static bool await_renewal(const leati_helper *run) {
    uint64_t wanted = 0;
    while (getppid() == run->caller) {
        struct pollfd watched[] = {{.fd = run->control, .events = POLLIN},
                                   {.fd = run->caller_pidfd, .events = POLLIN}};
        int ready = poll(watched, 2, run->caller_pidfd < 0 ? 20 : -1);
        if (ready < 0 && errno != EINTR) return false;
        if (ready <= 0 || !watched[0].revents) continue;
        if (read(run->control, &wanted, sizeof wanted) != sizeof wanted) continue;
        return wanted % LEATI_CONTROL_RENEW == 0;
    }
    return false;
}

static leat_status read_record_again(leat_helper *helper, leat_error *err) {
    atomic_store(&helper->work.table.shared->helper_runs,
                 0); /* A caller that closes the feed does not wait. */
    munmap((void *)(uintptr_t)helper->record, helper->record_bytes);
    helper->record = NULL;
    return map_record(helper, helper->descriptor, err);
}

bool leati_launched_renew(leat_helper *helper, leat_error *err) {
    return await_renewal(&helper->helper) && read_record_again(helper, err) == LEAT_OK;
}

static leat_status allocate_sequences(leat_helper *helper, leat_error *err) {
    size_t count = (size_t)helper->record->feed_count;
    helper->sequences = leati_calloc(count, sizeof *helper->sequences);
    if (helper->sequences) return LEAT_OK;
    return leati_fail_memory(err, count * sizeof *helper->sequences, "the sequences of a helper");
}

leat_status leati_launched_make(leat_helper *helper, leat_helper_make make, void *user, leat_error *err) {
    LEATI_TRY(allocate_sequences(helper, err));
    LEATI_TRY(make(user, helper, helper->sequences, err));
    return adopt_all(helper, helper->sequences, helper->record->feed_count, err);
}

static leat_status make_and_run(leat_helper *helper, leat_helper_make make, void *user, leat_error *err) {
    memset(helper->sequences, 0, (size_t)helper->record->feed_count * sizeof *helper->sequences);
    leat_status status = make(user, helper, helper->sequences, err);
    if (status != LEAT_OK) {
        leati_pool_work_fail(&helper->work, err);
        return status;
    }
    return leat_helper_run(helper, helper->sequences, helper->record->feed_count, err);
}

leat_status leat_helper_serve(leat_helper *helper, leat_helper_make make, void *user, leat_error *err) {
    leat_error why = {0};
    LEATI_GIVEN(helper, err);
    if (!make) return leati_fail(err, LEAT_EINVAL, "make is NULL, expected a function");
    LEATI_TRY(allocate_sequences(helper, err));
    atomic_store(&helper->work.table.shared->helper_renews, 1);
    leat_status status = make_and_run(helper, make, user, &why);
    while (status == LEAT_OK && leati_launched_renew(helper, &why))
        status = make_and_run(helper, make, user, &why);
    if (err) *err = why;
    return status == LEAT_OK ? (leat_status)why.code : status;
}
