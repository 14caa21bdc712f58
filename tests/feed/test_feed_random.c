/* SPDX-License-Identifier: Apache-2.0 */
/* Random options, random faults and random calls: a feed with workers does and tells what one without does, call by call.
 *
 *     test_feed_random [TRIALS [FIRST]] */
#include "cmocka_all.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed/source.h"

static int64_t trials = 250, first_trial = 1;

static uint64_t number;

static int64_t draw(int64_t below) {
    number = number * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((number >> 33) % (uint64_t)below);
}

/* What both feeds of a trial have in common. */
typedef struct trial {
    int kind; /* 0 batches, 1 hook with state, 2 hook without, 3 samples, 4 generator, 5 without end */
    int64_t length, growth;
    leat_feed_options options;
    leat_feed_position at;
} trial;

static void draw_faults(source *s, leat_feed_options *options) {
    leat_faults *faults = &options->faults;
    faults->bad_batch = draw(3) ? LEAT_BAD_BATCH_SKIP : LEAT_BAD_BATCH_FAIL;
    faults->retries = (int)draw(3);
    faults->check_finite = draw(2) == 0;
    if (draw(3) == 0) s->skip_at = draw(12);
    if (draw(3) == 0) {
        s->fail_every = draw(2) * 5;
        s->fail_at = draw(5);
    }
    if (draw(4) == 0) {
        s->wrong_at = draw(12);
        s->wrong = (int)draw(5);
    }
}

static void draw_shuffle(const trial *t, leat_feed_options *options) {
    static const leat_shuffle any[] = {LEAT_SHUFFLE_NONE, LEAT_SHUFFLE_BATCHES, LEAT_SHUFFLE_WINDOW,
                                       LEAT_SHUFFLE_AUTO, LEAT_SHUFFLE_SAMPLES};
    options->shuffle = any[draw(t->kind == 3 ? 5 : 4)];
    options->shuffle_window = 1 + draw(9);
    if (t->kind >= 4) options->shuffle = LEAT_SHUFFLE_NONE;
    if (t->kind == 4) return;
    options->world = 1 + (int)draw(3);
    options->rank = (int)draw(options->world);
    options->remainder = (leat_remainder)draw(3);
}

/* The same source again, for the other feed: fresh memory, the same habits. */
static void copy_source(source *copy, const source *s) {
    source fresh;
    source_init(&fresh, s->length, s->batch_size, s->width);
    *copy = *s;
    copy->own = fresh.own;
    copy->counts = fresh.counts;
}

static leat_sequence sequence_of(const trial *t, source *s) {
    switch (t->kind) {
    case 1: return source_sequence_with_hook(s, true);
    case 2: return source_sequence_with_hook(s, false);
    case 3: return source_sequence_of_samples(s, t->length * s->batch_size - draw(2) * (s->batch_size - 1));
    case 4: return source_generator(s);
    default: return source_sequence(s);
    }
}

static void draw_trial(trial *t, source *s) {
    *t = (trial){.kind = (int)draw(6), .length = 4 + draw(14)};
    source_init(s, t->kind == 5 ? LEAT_LENGTH_INFINITE : t->length, 1 + draw(5), 1 + draw(30));
    s->varying = draw(2) == 0;
    s->borrowed = draw(4) == 0;
    s->delay_us = (int)draw(3) * 150;
    if (t->kind == 1 || t->kind == 2) s->growth = draw(3) - 1;
    s->short_last =
        s->growth == 0 && draw(2) == 0; /* the length is no part of the state that is handed over */
    if (t->kind == 4 && draw(2)) s->length = -1;
    t->options = source_options((feed_mode){1 + (int)draw(4), draw(2) == 0});
    t->options.seed = (uint64_t)draw(1000);
    t->options.max_queue_size = 1 + (int)draw(draw(2) ? 4 : 40);
    if (draw(4) == 0) t->options.limit = 1 + draw(40);
    if (draw(4) == 0) t->options.passes = 1 + draw(4);
    draw_faults(s, &t->options);
    draw_shuffle(t, &t->options);
    if (t->kind != 4 && t->kind != 1 && t->kind != 2 && draw(3) == 0)
        t->at = (leat_feed_position){.pass = t->kind == 5 ? 0 : draw(3), .ordinal = draw(2)};
}

typedef struct pair {
    leat_feed *plain, *feed;
    bool in_hand;
} pair;

static void compare_errors(leat_status a, const leat_error *plain, leat_status b, const leat_error *seen) {
    if (a != b || (a != LEAT_OK && strcmp(plain->message, seen->message) != 0))
        fail_msg("status %d '%s', in line %d '%s'", (int)b, seen->message, (int)a, plain->message);
}

static void compare_positions(leat_feed_position a, leat_feed_position b, bool with_index) {
    assert_int_equal(b.pass, a.pass);
    assert_int_equal(b.ordinal, a.ordinal);
    if (with_index) assert_int_equal(b.index, a.index);
}

/* One call of both; false when the stream has ended. */
static bool step(pair *p) {
    leat_error plain = {0}, seen = {0};
    leat_status a = LEAT_OK, b = LEAT_OK;
    switch (draw(6)) {
    case 0: {
        bool more_a = false, more_b = false;
        a = leat_feed_await(p->plain, &more_a, &plain);
        b = leat_feed_await(p->feed, &more_b, &seen);
        if (!p->in_hand) assert_int_equal(more_b, more_a);
        break;
    }
    case 1:
        a = leat_feed_end_pass(p->plain, &plain);
        b = leat_feed_end_pass(p->feed, &seen);
        break;
    case 2:
        leat_feed_release(p->plain);
        leat_feed_release(p->feed);
        p->in_hand = false;
        break;
    default: {
        const leat_batch *batch_a = NULL, *batch_b = NULL;
        a = leat_feed_get(p->plain, &batch_a, &plain);
        b = leat_feed_get(p->feed, &batch_b, &seen);
        if (a == LEAT_OK && b == LEAT_OK) {
            p->in_hand = true;
            if (source_batch_digest(p->feed, batch_b) != source_batch_digest(p->plain, batch_a))
                fail_msg("other bytes");
        }
        compare_errors(a, &plain, b, &seen);
        if (draw(8) == 0) return true; /* kept in hand: the next get is refused */
        leat_feed_release(p->plain);
        leat_feed_release(p->feed);
        p->in_hand = false;
    }
    }
    compare_errors(a, &plain, b, &seen);
    compare_positions(leat_feed_position_get(p->plain), leat_feed_position_get(p->feed), true);
    compare_positions(leat_feed_next(p->plain), leat_feed_next(p->feed), false);
    assert_int_equal(leat_feed_length(p->feed), leat_feed_length(p->plain));
    return a == LEAT_OK || a == LEAT_EINVAL;
}

static void compare_figures(const pair *p) {
    leat_feed_stats a = leat_feed_stats_get(p->plain), b = leat_feed_stats_get(p->feed);
    assert_int_equal(b.batches, a.batches);
    assert_int_equal(b.bytes, a.bytes);
    assert_int_equal(b.skips, a.skips);
    assert_int_equal(b.retries, a.retries);
}

static void run_trial(int64_t which) {
    trial t;
    source s, copy;
    number = (uint64_t)which * 7919;
    draw_trial(&t, &s);
    copy_source(&copy, &s);
    uint64_t here = number;
    leat_sequence sequence = sequence_of(&t, &s);
    number = here; /* the same draws for the copy */
    leat_sequence other = sequence_of(&t, &copy);
    if (t.options.use_multiprocessing && t.kind != 4 && draw(3) == 0) {
        copy.kill_at = draw(12);
        copy.kill_signal = SIGKILL;
        atomic_store(&copy.counts->kills_left, 1 + draw(2));
    }
    resources before = resources_now();
    pair p = {0};
    leat_error plain = {0}, seen = {0};
    leat_feed_options in_line = t.options;
    in_line.workers = 0;
    leat_status a = leat_feed_open_at(&p.plain, &sequence, &in_line, &t.at, &plain);
    leat_status b = leat_feed_open_at(&p.feed, &other, &t.options, &t.at, &seen);
    compare_errors(a, &plain, b, &seen);
    int64_t steps = 20 + draw(120);
    for (int64_t i = 0; a == LEAT_OK && i < steps; ++i)
        if (!step(&p)) break;
    if (a == LEAT_OK) compare_figures(&p);
    assert_int_equal(atomic_load(&copy.counts->crossed), 0);
    if (t.kind == 1 || t.kind == 2) assert_int_equal(atomic_load(&copy.counts->hook_overtaken), 0);
    leat_feed_close(&p.plain);
    leat_feed_close(&p.feed);
    resources_check(before);
    source_fini(&s);
    source_fini(&copy);
}

static void random_calls_do_what_they_do_in_line(void **state) {
    (void)state;
    for (int64_t i = first_trial; i < first_trial + trials; ++i) {
        if (getenv("LEAT_SHOW_TRIALS")) fprintf(stderr, "trial %" PRId64 "\n", i);
        run_trial(i);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) trials = strtoll(argv[1], NULL, 10);
    if (argc > 2) first_trial = strtoll(argv[2], NULL, 10);
    if (argc < 2) alarm(280);
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_calls_do_what_they_do_in_line)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
