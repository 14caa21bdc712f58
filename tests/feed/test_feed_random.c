/* SPDX-License-Identifier: Apache-2.0 */
/* Random options, faults and calls: feeds with workers, alone and together, return the same as feeds without workers in
 * every call.
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

/* The settings that both feeds of a trial have in common. */
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

/* Copies a source for the other feed: the same settings, with its own memory. */
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
    s->short_last = s->growth == 0 && draw(2) == 0; /* the length is not part of the sequence's state */
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

/* Makes one call of both feeds.  Returns false if the stream has ended. */
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
        if (draw(8) == 0) return true; /* the batch is not released, so the next get is refused */
        leat_feed_release(p->plain);
        leat_feed_release(p->feed);
        p->in_hand = false;
    }
    }
    compare_errors(a, &plain, b, &seen);
    compare_positions(leat_feed_position_get(p->plain), leat_feed_position_get(p->feed), true);
    compare_positions(leat_feed_next_position(p->plain), leat_feed_next_position(p->feed), false);
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

/* One of the feeds that are opened together, and its copy without workers. */
typedef struct subject {
    trial t;
    source s, copy;
    leat_sequence sequence, other;
    pair p;
    bool over;
} subject;

enum { most_subjects = 3 };

static bool has_generator(const subject *all, int count) {
    for (int i = 0; i < count; ++i)
        if (all[i].t.kind == 4) return true;
    return false;
}

/* A hook without state starts new processes, which would lose the position of a generator.  leat refuses such pairs, so
 * they are not drawn. */
static void draw_subject(subject *one, const subject *first, int unwanted_kind) {
    *one = (subject){0};
    do {
        if (one->s.counts) source_fini(&one->s);
        draw_trial(&one->t, &one->s);
    } while (one->t.kind == unwanted_kind);
    one->t.options.use_multiprocessing =
        one == first ? one->t.options.use_multiprocessing : first->t.options.use_multiprocessing;
    copy_source(&one->copy, &one->s);
    uint64_t here = number;
    one->sequence = sequence_of(&one->t, &one->s);
    number = here; /* so that the copy gets the same random numbers */
    one->other = sequence_of(&one->t, &one->copy);
}

static bool open_pairs(subject *all, int count) {
    leat_feed_config plain[most_subjects], plans[most_subjects];
    leat_feed_options inline_options[most_subjects];
    leat_feed *in_line[most_subjects], *feeds[most_subjects];
    for (int i = 0; i < count; ++i) {
        const trial *t = &all[i].t;
        plans[i] = (leat_feed_config){.sequence = &all[i].other, .options = &t->options, .at = t->at};
        inline_options[i] = t->options;
        inline_options[i].workers = 0;
        plain[i] =
            (leat_feed_config){.sequence = &all[i].sequence, .options = &inline_options[i], .at = t->at};
    }
    leat_error a_error = {0}, b_error = {0};
    leat_status a = leat_feed_open_together(in_line, plain, count, &a_error);
    leat_status b = leat_feed_open_together(feeds, plans, count, &b_error);
    compare_errors(a, &a_error, b, &b_error);
    for (int i = 0; i < count; ++i) all[i].p = (pair){.plain = in_line[i], .feed = feeds[i]};
    return a == LEAT_OK;
}

static void take_turns(subject *all, int count) {
    int64_t steps = (20 + draw(120)) * count;
    for (int64_t i = 0; i < steps; ++i) {
        subject *one = &all[draw(count)];
        if (!one->over) one->over = !step(&one->p);
    }
    for (int i = 0; i < count; ++i) {
        compare_figures(&all[i].p);
        assert_int_equal(atomic_load(&all[i].copy.counts->crossed), 0);
        if (all[i].t.kind == 1 || all[i].t.kind == 2)
            assert_int_equal(atomic_load(&all[i].copy.counts->hook_overtaken), 0);
    }
}

static void run_trial(int64_t which) {
    subject all[most_subjects];
    number = (uint64_t)which * 7919;
    int count = draw(3) ? 1 : 2 + (int)draw(2);
    int unwanted_kind = count == 1 ? -1 : 2 + 2 * (int)draw(2);
    for (int i = 0; i < count; ++i) draw_subject(&all[i], &all[0], unwanted_kind);
    bool deaths = all[0].t.options.use_multiprocessing && !has_generator(all, count) && draw(3) == 0;
    for (int i = 0; i < count && deaths; ++i) {
        all[i].copy.kill_at = draw(12);
        all[i].copy.kill_signal = SIGKILL;
        atomic_store(&all[i].copy.counts->kills_left, 1 + draw(2));
    }
    resources before = resources_now();
    if (open_pairs(all, count)) take_turns(all, count);
    for (int i = 0; i < count; ++i) {
        leat_feed_close(&all[i].p.plain);
        leat_feed_close(&all[count - 1 - i].p.feed);
    }
    resources_check(before);
    for (int i = 0; i < count; ++i) {
        source_fini(&all[i].s);
        source_fini(&all[i].copy);
    }
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
