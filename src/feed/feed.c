/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes feeds.  Room: feed. */
#include "leat/feed.h"

#include <string.h>

#include "base/error.h"
#include "feed/options.h"
#include "feed/stream.h"
#include "tensor/sequence.h"

/* ---- one feed ---- */

static leat_status check_generator(const leat_feed *feed, const leat_feed_position *at, leat_error *err) {
    if (!feed->service.sequence.next) return LEAT_OK;
    if (feed->options.world > 1)
        return leati_fail(err, LEAT_ENOTSUP, "a generator cannot be shared among %d ranks: give each its own",
                          feed->options.world);
    if (at->pass || at->ordinal)
        return leati_fail(err, LEAT_ENOTSUP, "a generator can be opened only at its beginning");
    return LEAT_OK;
}

static leat_status check_promise(const leat_feed *feed, leat_error *err) {
    const leat_sequence *sequence = &feed->service.sequence;
    if (feed->options.parts == 0 || (sequence->get_samples && sequence->independent_samples)) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP,
                      "parts of batches need a sequence with get_samples that promises independent_samples");
}

/* Checks the configuration of a feed and copies it, before any memory is mapped. */
static leat_status adopt_config(leat_feed *feed, const leat_feed_config *config, leat_error *err) {
    const leat_feed_options *options = &feed->options;
    leati_service *service = &feed->service;
    LEATI_TRY(leati_feed_options_read(config->options, &feed->options, err));
    LEATI_TRY(leati_feed_options_check(options, err));
    LEATI_TRY(leati_sequence_read(config->sequence, &service->sequence, err));
    LEATI_TRY(leati_sequence_check(&service->sequence, err));
    LEATI_TRY(check_generator(feed, &config->at, err));
    LEATI_TRY(check_promise(feed, err));
    leati_service_cut(service, options);
    if (options->elastic && service->sequence.spec.tensor_count != 1)
        return leati_fail(err, LEAT_ENOTSUP,
                          "elastic slots need a specification with one tensor, this one has %d",
                          (int)service->sequence.spec.tensor_count);
    LEATI_TRY(leati_order_rule_init(&service->rule, options, &service->sequence, err));
    service->faults = options->faults;
    service->max_queue_size = options->max_queue_size;
    service->kept_batches = options->kept_batches;
    service->max_worker_memory = options->max_worker_memory;
    service->helper_data = options->helper_data;
    service->helper_data_bytes = options->helper_data_bytes;
    feed->order =
        (leati_order){.rank = options->rank, .world = options->world, .remainder = options->remainder};
    feed->spin.longest_ns = options->spin_us < 0 ? LEATI_WAKE_UP_NS : (int64_t)options->spin_us * 1000;
    leati_figures_init(&feed->figures, options->trace, options->name, feed->group->opened_ns);
    return LEAT_OK;
}

static leat_status prepare_inline(leat_feed *feed, leat_error *err) {
    feed->inline_service = &feed->service;
    feed->inline_works = (leati_pool_work){.services = &feed->inline_service, .count = 1};
    return leati_worker_init(&feed->inline_worker, &feed->inline_works, 0, err);
}

static leat_status open_feed(leat_feed *feed, const leat_feed_position *at, leat_error *err) {
    leati_group *group = feed->group;
    const leati_worker_table *table = leati_feed_is_inline(feed) ? &group->no_workers : &group->work.table;
    LEATI_TRY(leati_stream_set_position(feed, at, err));
    LEATI_TRY(leati_service_map(&feed->service, table, &feed->options, err));
    if (leati_feed_is_inline(feed)) return prepare_inline(feed, err);
    if (feed->service.sequence.next) {
        feed->service.ring.owner = group->work.count % table->count;
        group->work.table.wake_all = true;
    }
    LEATI_TRY(leati_descriptors_add(&group->pool.helper.descriptors, &feed->options, err));
    group->services[group->work.count++] = &feed->service;
    leati_stream_issue_ahead(feed, true);
    return LEAT_OK;
}

/* ---- several feeds ---- */

static bool has_same_command(const char *const *a, const char *const *b) {
    if (!a || !b) return a == b;
    while (*a && *b && strcmp(*a, *b) == 0) ++a, ++b;
    return !*a && !*b;
}

/* Checks that one worker pool can serve all feeds: it has either threads or processes, and it cannot fork new processes
 * at the end of a pass if a generator lives in one of them. */
static leat_status check_together(const leati_group *group, leat_error *err) {
    const leat_feed *first = NULL, *generator = NULL, *renewed = NULL;
    for (int i = 0; i < group->feed_count; ++i) {
        const leat_feed *feed = &group->feeds[i];
        const leat_sequence *sequence = &feed->service.sequence;
        if (leati_feed_is_inline(feed)) continue;
        if (!first) first = feed;
        if (first->options.use_multiprocessing != feed->options.use_multiprocessing)
            return leati_fail(
                err, LEAT_EINVAL,
                "feeds that are opened together have the same workers: all threads, or all processes "
                "(use_multiprocessing)");
        if (!has_same_command(first->options.helper_command, feed->options.helper_command))
            return leati_fail(err, LEAT_EINVAL,
                              "feeds that are opened together have the same helper_command");
        if (sequence->next) generator = feed;
        if (sequence->on_epoch_end && !sequence->state_bytes) renewed = feed;
    }
    if (generator && renewed && first->options.use_multiprocessing)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "for a sequence whose on_epoch_end declares no state, the worker processes are forked again "
            "after "
            "each pass, and a generator in one of them would be lost: declare the state, or open the two "
            "feeds separately");
    return LEAT_OK;
}

/* Returns the number of workers of a group: the largest number that a feed wants.  A generator can use only one, but
 * each generator of a group may have a worker of its own. */
static int count_workers(const leati_group *group, bool *processes) {
    int most = 0, generators = 0, most_of_generators = 0;
    for (int i = 0; i < group->feed_count; ++i) {
        const leat_feed *feed = &group->feeds[i];
        int wanted = feed->options.workers;
        if (wanted > 0) *processes = feed->options.use_multiprocessing;
        if (feed->service.sequence.next) {
            generators += wanted > 0;
            if (wanted > most_of_generators) most_of_generators = wanted;
        } else if (wanted > most)
            most = wanted;
    }
    if (most_of_generators > generators) most_of_generators = generators;
    return most > most_of_generators ? most : most_of_generators;
}

/* Returns the command of the helper program; NULL if no feed has one. */
static const char *const *find_command(const leati_group *group) {
    for (int i = 0; i < group->feed_count; ++i)
        if (!leati_feed_is_inline(&group->feeds[i])) return group->feeds[i].options.helper_command;
    return NULL;
}

/* Prefixes an error with the name of the feed, if several feeds are opened. */
static leat_status prefix_name(int count, const leat_feed *feed, leat_status status, leat_error *err) {
    if (status == LEAT_OK || count == 1 || !feed->options.name) return status;
    return leati_prefix(status, err, "%s", feed->options.name);
}

static leat_status open_group(leati_group *group, const leat_feed_config *configs, int count,
                              leat_error *err) {
    bool processes = false;
    for (int i = 0; i < count; ++i) {
        group->feeds[i].group = group;
        LEATI_TRY(
            prefix_name(count, &group->feeds[i], adopt_config(&group->feeds[i], &configs[i], err), err));
    }
    LEATI_TRY(check_together(group, err));
    int workers = count_workers(group, &processes);
    const char *const *command = find_command(group);
    group->pool.helper.command = command;
    LEATI_TRY(leati_worker_table_init(&group->work.table, workers, processes, command != NULL, err));
    LEATI_TRY(leati_worker_table_init(&group->no_workers, 0, false, false, err));
    for (int i = 0; i < count; ++i)
        LEATI_TRY(
            prefix_name(count, &group->feeds[i], open_feed(&group->feeds[i], &configs[i].at, err), err));
    return leati_worker_pool_start(&group->pool, err);
}

leat_status leat_feed_open_together(leat_feed **out, const leat_feed_config *configs, int count,
                                    leat_error *err) {
    LEATI_GIVEN(out, err);
    for (int i = 0; i < count; ++i) out[i] = NULL;
    LEATI_GIVEN(configs, err);
    leati_group *group = NULL;
    if (count < 1) return leati_fail(err, LEAT_EINVAL, "feed: %d feeds to open, expected at least 1", count);
    leat_status status = leati_group_create(&group, count, err);
    if (status == LEAT_OK) {
        status = open_group(group, configs, count, err);
        if (status != LEAT_OK) leati_group_destroy(group);
    }
    if (status != LEAT_OK) return leati_prefix(status, err, "feed");
    group->open_count = count;
    for (int i = 0; i < count; ++i) out[i] = &group->feeds[i];
    return LEAT_OK;
}

leat_status leat_feed_open_at(leat_feed **out, const leat_sequence *sequence,
                              const leat_feed_options *options, const leat_feed_position *at,
                              leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(sequence, err);
    LEATI_GIVEN(at, err);
    leat_feed_config config = {.sequence = sequence, .options = options, .at = *at};
    return leat_feed_open_together(out, &config, 1, err);
}

leat_status leat_feed_open(leat_feed **out, const leat_sequence *sequence, const leat_feed_options *options,
                           leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(sequence, err);
    const leat_feed_position beginning = {0};
    return leat_feed_open_at(out, sequence, options, &beginning, err);
}

leat_status leat_feed_set_helper_data(leat_feed *feed, const void *data, size_t bytes, leat_error *err) {
    LEATI_GIVEN(feed, err);
    if (bytes > 0 && !data) return leati_fail(err, LEAT_EINVAL, "data is NULL, expected %zu bytes", bytes);
    if (!feed->options.helper_command || leati_feed_is_inline(feed))
        return leati_fail(err, LEAT_EINVAL, "the feed has no helper program (helper_command)");
    feed->service.helper_data = data;
    feed->service.helper_data_bytes = bytes;
    return LEAT_OK;
}

void leat_feed_stop(leat_feed *feed) {
    if (!feed || leati_group_is_inherited(feed->group)) return;
    leati_ring_stop(&feed->service.ring);
}

int leat_feed_close(leat_feed **feed) {
    if (!feed || !*feed) return 0;
    leati_group *group = (*feed)->group;
    if (!(*feed)->closed) {
        (*feed)->closed = true;
        --group->open_count;
    }
    if (group->open_count > 0 && !leati_group_is_inherited(group)) leati_ring_stop(&(*feed)->service.ring);
    *feed = NULL;
    return group->open_count > 0 ? 0 : leati_group_destroy(group);
}
