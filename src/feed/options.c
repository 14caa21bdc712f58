/* SPDX-License-Identifier: Apache-2.0 */
/* The feed's options: defaults and limits.  Room: feed. */
#include "feed/options.h"

#include <limits.h>

#include "base/error.h"
#include "base/growing.h"
#include "feed/ring/worker_table.h"
#include "feed/ring/service.h"

static const leat_feed_options defaults = {.workers = 1,
                                           .max_queue_size = 10,
                                           .world = 1,
                                           .faults = {.max_deaths = 3},
                                           .name = "feed",
                                           .spin_us = -1};
static const leati_growing type = LEATI_GROWING(leat_feed_options, workers, &defaults);

void leat_feed_options_init(leat_feed_options *options, size_t size) {
    leati_growing_init(&type, options, size);
}

leat_status leati_feed_options_read(const leat_feed_options *in, leat_feed_options *out, leat_error *err) {
    return leati_growing_read(&type, in, out, err);
}

static leat_status check_range(const char *name, int64_t value, int64_t least, int64_t most,
                               leat_error *err) {
    if (value >= least && value <= most) return LEAT_OK;
    if (most == INT64_MAX)
        return leati_fail(err, LEAT_EINVAL, "%s is %lld, expected at least %lld", name, (long long)value,
                          (long long)least);
    return leati_fail(err, LEAT_EINVAL, "%s is %lld, expected %lld to %lld", name, (long long)value,
                      (long long)least, (long long)most);
}

static leat_status check_descriptors(const leat_feed_options *options, leat_error *err) {
    LEATI_TRY(check_range("kept_descriptor_count", options->kept_descriptor_count, 0, INT_MAX / 2, err));
    if (options->kept_descriptor_count && !options->kept_descriptors)
        return leati_fail(err, LEAT_EINVAL, "kept_descriptors is NULL, expected %d descriptors",
                          options->kept_descriptor_count);
    for (int i = 0; i < options->kept_descriptor_count; ++i)
        if (options->kept_descriptors[i] < 0)
            return leati_fail(err, LEAT_EINVAL, "kept_descriptors[%d] is %d, expected an open descriptor", i,
                              options->kept_descriptors[i]);
    return LEAT_OK;
}

static leat_status check_faults(const leat_feed_options *options, leat_error *err) {
    const leat_faults *faults = &options->faults;
    LEATI_TRY(check_range("bad_batch", faults->bad_batch, LEAT_BAD_BATCH_FAIL, LEAT_BAD_BATCH_SKIP, err));
    LEATI_TRY(check_range("retries", faults->retries, 0, INT64_MAX, err));
    LEATI_TRY(check_range("max_deaths", faults->max_deaths, 1, INT64_MAX, err));
    LEATI_TRY(check_range("deadline_ms", faults->deadline_ms, 0, INT64_MAX / 1000000, err));
    if (faults->deadline_ms > 0 && options->workers == 0)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "a deadline needs workers: with workers = 0 the caller makes the batches, and nobody watches");
    return LEAT_OK;
}

static leat_status check_slots(const leat_feed_options *options, leat_error *err) {
    LEATI_TRY(check_range("kept_batches", options->kept_batches, 0, LEATI_MAX_QUEUE_SIZE, err));
    if (options->elastic && options->memory)
        return leati_fail(err, LEAT_ENOTSUP,
                          "elastic slots have no size in advance: expected max_queue_size instead of memory");
    return LEAT_OK;
}

static leat_status check_parts(const leat_feed_options *options, leat_error *err) {
    LEATI_TRY(check_range("parts", options->parts, 0, 1 << 20, err));
    if (options->parts == 0) return LEAT_OK;
    LEATI_TRY(check_range("first_part", options->first_part, 0, options->parts - 1, err));
    LEATI_TRY(check_range("end_part", options->end_part, options->first_part, options->parts, err));
    if (options->world > 1)
        return leati_fail(err, LEAT_EINVAL,
                          "parts is %d and world is %d: either each rank gets a part of each batch, or whole "
                          "batches are dealt to the ranks",
                          options->parts, options->world);
    if (options->faults.bad_batch == LEAT_BAD_BATCH_FAIL) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP,
                      "bad batches cannot be skipped by a feed of parts of batches: the feeds of the other "
                      "parts would not know it");
}

static leat_status check_helper(const leat_feed_options *options, leat_error *err) {
    if (options->helper_data_bytes > 0 && !options->helper_data)
        return leati_fail(err, LEAT_EINVAL, "helper_data is NULL, expected %zu bytes",
                          options->helper_data_bytes);
    if (!options->helper_command || options->workers == 0) return LEAT_OK;
    if (!options->use_multiprocessing)
        return leati_fail(err, LEAT_EINVAL, "helper_command needs worker processes (use_multiprocessing)");
    if (!options->helper_command[0])
        return leati_fail(err, LEAT_EINVAL, "helper_command is empty, expected a program");
    return LEAT_OK;
}

leat_status leati_feed_options_check(const leat_feed_options *options, leat_error *err) {
    LEATI_TRY(check_range("workers", options->workers, 0, LEATI_MAX_WORKERS, err));
    LEATI_TRY(check_range("max_queue_size", options->max_queue_size, 1, LEATI_MAX_QUEUE_SIZE, err));
    LEATI_TRY(check_range("world", options->world, 1, INT64_MAX, err));
    LEATI_TRY(check_range("rank", options->rank, 0, options->world - 1, err));
    LEATI_TRY(check_range("remainder", options->remainder, LEAT_REMAINDER_UNEVEN, LEAT_REMAINDER_PAD, err));
    LEATI_TRY(check_range("limit", options->limit, 0, INT64_MAX, err));
    LEATI_TRY(check_range("passes", options->passes, 0, INT64_MAX, err));
    LEATI_TRY(check_range("spin_us", options->spin_us, -1, INT64_MAX, err));
    LEATI_TRY(check_slots(options, err));
    LEATI_TRY(check_parts(options, err));
    LEATI_TRY(check_helper(options, err));
    LEATI_TRY(check_descriptors(options, err));
    return check_faults(options, err);
}

static leat_status check_generator(const leat_sequence *sequence, leat_error *err) {
    if (sequence->length || sequence->get || sequence->samples || sequence->get_samples)
        return leati_fail(
            err, LEAT_EINVAL,
            "a generator has next alone: length, get, samples and get_samples are a sequence's");
    if (sequence->on_epoch_end)
        return leati_fail(err, LEAT_EINVAL,
                          "a generator has no passes, so on_epoch_end would never be called");
    return LEAT_OK;
}

leat_status leati_sequence_check(const leat_sequence *sequence, leat_error *err) {
    if (sequence->state_bytes && !sequence->state)
        return leati_fail(err, LEAT_EINVAL, "the sequence declares %zu bytes of state at NULL",
                          sequence->state_bytes);
    if (sequence->state_bytes > PTRDIFF_MAX)
        return leati_fail(err, LEAT_EINVAL,
                          "the sequence declares %zu bytes of state, more than memory can have",
                          sequence->state_bytes);
    if (sequence->next) return check_generator(sequence, err);
    if (!sequence->length || !sequence->get)
        return leati_fail(err, LEAT_EINVAL,
                          "a sequence needs the functions length and get, or next where it is a generator");
    if (!sequence->samples != !sequence->get_samples)
        return leati_fail(err, LEAT_EINVAL, "a sequence has samples and get_samples, or neither");
    return LEAT_OK;
}
