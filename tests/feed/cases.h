/* SPDX-License-Identifier: Apache-2.0 */
/* The feed's contract as test cases.  The program that runs them defines `modes`, the kinds and numbers of workers. */
#ifndef LEAT_TESTS_FEED_CASES_H
#define LEAT_TESTS_FEED_CASES_H

#include "cmocka_all.h"

#include "feed/source.h"

extern const feed_mode modes[];
extern const int mode_count;

#define FEED_CASES(X)                                                                                        \
    X(stream_is_the_same_for_all_workers)                                                                    \
    X(shuffled_stream_is_the_same_for_all_workers)                                                           \
    X(each_pass_has_an_order_of_its_own)                                                                     \
    X(short_and_varying_batches_have_their_shapes)                                                           \
    X(borrowed_memory_is_delivered)                                                                          \
    X(never_more_than_the_queue_is_made_ahead)                                                               \
    X(ready_counts_what_lies_ahead)                                                                          \
    X(limit_ends_the_stream)                                                                                 \
    X(passes_end_the_stream)                                                                                 \
    X(hook_runs_once_between_passes)                                                                         \
    X(hook_without_state_reaches_all_workers)                                                                \
    X(end_pass_does_what_get_would)                                                                          \
    X(length_follows_the_hook)                                                                               \
    X(hook_error_ends_the_stream)                                                                            \
    X(error_comes_in_order_with_index_and_pass)                                                              \
    X(wrong_shapes_are_named)                                                                                \
    X(refused_worker_is_told)                                                                                \
    X(empty_sequence_is_refused_at_once)                                                                     \
    X(sequence_that_runs_empty_is_told)                                                                      \
    X(bad_options_are_refused)                                                                               \
    X(get_twice_is_refused)                                                                                  \
    X(feeds_do_not_disturb_each_other)                                                                       \
    X(stop_wakes_a_waiting_get)                                                                              \
    X(close_leaves_nothing)                                                                                  \
    X(memory_of_many_feeds_is_given_back)                                                                    \
    X(workers_begin_and_end_once)                                                                            \
    X(figures_add_up)

#define FEED_CASE_DECLARE(name) void name(void **state);
FEED_CASES(FEED_CASE_DECLARE)
#undef FEED_CASE_DECLARE

#endif
