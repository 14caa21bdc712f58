/* SPDX-License-Identifier: Apache-2.0 */
/* The trial that decides for the device "auto" where the steps of a fit run, with made-up times: workers make batches
 * into a queue while steps take them out. */
#include "cmocka_all.h"

#include <string.h>

#include "train/step/place_trial.h"

/* Times in ns.  Batches take another time while steps run on the CPU, because both need its cores. */
typedef struct job {
    int64_t step[2], batch[2]; /* by place: device, host */
    int64_t start;             /* until the first batch of a fit is there */
    int64_t queue, steps_of_fit;
} job;

/* A queue of batches, and the time. */
typedef struct line {
    int64_t now, ready; /* ready: batches in the queue */
    int64_t next;       /* when the batch in the making is ready */
} line;

/* Lets time go on; the workers stop while the queue is full. */
static void pass(line *l, const job *j, int place, int64_t until) {
    while (l->ready < j->queue && l->next <= until) {
        ++l->ready;
        l->next += j->batch[place];
    }
    if (l->ready == j->queue && l->next <= until) l->next = until + j->batch[place];
    l->now = until;
}

/* Runs an iteration in a place, and returns its time. */
static int64_t iterate(line *l, const job *j, int place) {
    const int64_t start = l->now;
    pass(l, j, place, l->now);
    if (l->ready == 0) pass(l, j, place, l->next);
    --l->ready;
    pass(l, j, place, l->now + j->step[place]);
    return l->now - start;
}

static void begin_fit(line *l, const job *j, int place) {
    *l = (line){.now = l->now, .next = l->now + j->start + j->batch[place]};
}

/* The mean time of an iteration of long fits, all in one place. */
static double steady(const job *j, int place) {
    enum { fits = 50 };
    line l = {0};
    for (int fit = 0; fit < fits; ++fit) {
        begin_fit(&l, j, place);
        for (int64_t i = 0; i < j->steps_of_fit; ++i) (void)iterate(&l, j, place);
    }
    return (double)l.now / (double)(fits * j->steps_of_fit);
}

/* Returns the number of steps until the decision. */
static int64_t decide(const job *j, leati_place_trial *trial) {
    line l = {0};
    *trial = (leati_place_trial){0};
    leati_place_trial_begin(trial, j->queue);
    for (int64_t step = 0; step < 100000; ++step) {
        if (step % j->steps_of_fit == 0) {
            begin_fit(&l, j, trial->on_host);
            if (step > 0) leati_place_trial_go_on(trial);
        }
        if (leati_place_trial_add(trial, j->queue, iterate(&l, j, trial->on_host))) return step + 1;
    }
    return -1;
}

#define US INT64_C(1000)

static const job jobs[] = {
    /* Only the step counts. */
    {{90 * US, 1300 * US}, {10 * US, 10 * US}, 5000 * US, 10, 200},
    {{1300 * US, 90 * US}, {10 * US, 10 * US}, 5000 * US, 10, 200},
    /* The step of the device is shorter, but the batches take as long in both places: then the wait decides nothing. */
    {{90 * US, 1300 * US}, {800 * US, 800 * US}, 5000 * US, 10, 200},
    /* Steps on the CPU take the cores of the predictions. */
    {{90 * US, 1300 * US}, {800 * US, 1500 * US}, 5000 * US, 10, 200},
    /* The GPU's step is shorter, and the batches need longer beside it, as where they are predicted on the GPU. */
    {{90 * US, 700 * US}, {1600 * US, 900 * US}, 5000 * US, 10, 200},
    /* Fits shorter than the queue. */
    {{90 * US, 1300 * US}, {800 * US, 1500 * US}, 3000 * US, 10, 7},
    {{700 * US, 90 * US}, {300 * US, 300 * US}, 3000 * US, 10, 7},
    /* A long queue, long steps. */
    {{20000 * US, 90000 * US}, {30000 * US, 60000 * US}, 50000 * US, 64, 500},
};

static void the_shorter_iteration_stays(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; ++i) {
        leati_place_trial trial;
        int64_t steps = decide(&jobs[i], &trial);
        double device = steady(&jobs[i], 0), host = steady(&jobs[i], 1), best = device < host ? device : host;
        double chosen = trial.on_host ? host : device;
        if (steps < 0) fail_msg("job %d: no decision", (int)i);
        if (chosen > 1.03 * best)
            fail_msg("job %d: chose %s with %.0f ns, the other place has %.0f", (int)i,
                     trial.on_host ? "the host" : "the device", chosen, best);
        assert_true(trial.decided);
        assert_false(leati_place_trial_add(&trial, jobs[i].queue, 1));
    }
}

/* All turns of a job of 1 ms: 50 ms each, after as many steps as the queue holds. */
static void a_trial_ends(void **state) {
    (void)state;
    const job j = {{1000 * US, 1000 * US}, {10 * US, 10 * US}, 0, 10, 1000};
    leati_place_trial trial;
    assert_int_equal(decide(&j, &trial), LEATI_TRIAL_TURNS * (11 + 50));
    assert_true(trial.on_host); /* where both are equal, the CPU */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shorter_iteration_stays),
        cmocka_unit_test(a_trial_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
