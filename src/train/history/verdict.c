/* SPDX-License-Identifier: Apache-2.0 */
/* Judges if data or compute limits training, and gives advice.  Room: train. */
#include "train/history/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Advice is given if training waited for data for at least this share of the time. */
enum { advice_percent = 10 };

/* A rank is named as late if the others waited for it for at least this share of the time. */
enum { late_percent = 5 };

/* In shorter runs the use of cores is not judged, since it is measured in ticks of about 10 ms. */
enum { min_elapsed_ns = 200000000 };

/* Training steps that took less than 100 ms in total are not judged: starting the workers, making the first batch
 * and compiling the first step take tens of milliseconds once, and the verdict would blame them for the time of
 * every step. */
enum { min_judged_ns = 100000000 };

static void add_text(leat_verdict *v, const char *format, ...) LEAT_PRINTF(2, 3);
static void add_text(leat_verdict *v, const char *format, ...) {
    size_t used = strlen(v->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(v->text + used, sizeof v->text - used, format, arguments);
    va_end(arguments);
}

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

static double milliseconds(double ns) {
    return ns / 1e6;
}

static double step_ns(const leat_verdict *v) {
    return (double)(v->copy_wait_ns + v->compute_ns) / (double)v->steps;
}

/* Returns the number of workers that would make batches as fast as the steps consume them. */
static int workers_needed(const leat_verdict *v) {
    return step_ns(v) > 0 ? (int)fmin(fmax(ceil((double)v->get_mean_ns / step_ns(v)), 1), 1e6) : 1;
}

static void advise_workers(leat_verdict *v, int needed) {
    int useful = needed < v->cores || v->get_waits ? needed : v->cores;
    if (v->cores == 1 && !v->get_waits)
        add_text(v, " Batches are made between the steps; on 1 core a worker would not change that.");
    else
        add_text(v, " Batches are made between the steps: %d worker%s would make them beside the steps.",
                 useful, plural(useful));
}

static void advise_more(leat_verdict *v, const leat_feed_stats *feed, int needed) {
    if (needed <= v->cores || v->get_waits) {
        add_text(v, " About %d workers would be enough.", needed);
        if (needed > v->cores)
            add_text(
                v,
                " They may be more than the %d cores: get mostly waits for something else, such as a disk.",
                v->cores);
        if (feed->max_queue_size > 0 && needed > feed->max_queue_size)
            add_text(v, " They need a queue of as many batches.");
        return;
    }
    add_text(v,
             " About %d workers would be enough on a machine with as many cores; here cores are the limit: ",
             needed);
    if (v->workers < v->cores)
        add_text(v, "there are %d, and no more workers than that help.", v->cores);
    else
        add_text(v, "%d serve%s %d worker%s and %d compute thread%s, so only a cheaper batch helps.",
                 v->cores, v->cores == 1 ? "s" : "", v->workers, plural(v->workers), v->threads,
                 plural(v->threads));
}

/* Gives advice if training waits although, on average, the workers are fast enough. */
static void advise_other(leat_verdict *v, const leat_feed_stats *feed) {
    add_text(v, " More workers would not help: ");
    if (2 * feed->wait.max >= v->data_wait_ns)
        add_text(v, "most of it was one wait of %.1f ms.", milliseconds((double)feed->wait.max));
    else if ((double)feed->get.p99 > (double)feed->max_queue_size * step_ns(v))
        add_text(
            v,
            "on average they keep up, but get takes %.2f ms at p99; a queue of more than %d batches would "
            "even that out.",
            milliseconds((double)feed->get.p99), feed->max_queue_size);
    else
        add_text(v, "the %d could keep up, but share%s the %d core%s with %d compute thread%s.", v->workers,
                 v->workers == 1 ? "s" : "", v->cores, plural(v->cores), v->threads, plural(v->threads));
}

/* Says what makes copies to a device shorter, or hides them behind the steps. */
static void advise_copies(leat_verdict *v) {
    if (v->workers == 0)
        add_text(v, " With workers the next batch would be copied while a step computes.");
    else
        add_text(
            v, " Copies take longer than the steps that they run beside: samples of a smaller type, such as "
               "uint8, are copied faster.");
}

static void advise(leat_verdict *v, const leat_feed_stats *feed, double data_percent) {
    int needed = workers_needed(v);
    if (100.0 * (double)v->copy_wait_ns >= advice_percent * (double)v->wall_ns) advise_copies(v);
    if (data_percent < advice_percent)
        add_text(v, " More workers would not help: the batches are there in time.");
    else if (v->workers == 0)
        advise_workers(v, v->generator ? 1 : needed);
    else if (v->generator && needed > 1)
        add_text(v,
                 " More workers would not help: a generator has one owner. A sequence could be made by %d.",
                 needed);
    else if (needed > v->workers)
        advise_more(v, feed, needed);
    else
        advise_other(v, feed);
}

static void add_faults(leat_verdict *v, const leat_feed_stats *feed) {
    if (feed->worker_deaths > 0)
        add_text(v, " %" PRId64 " worker process%s died and %s replaced.", feed->worker_deaths,
                 feed->worker_deaths == 1 ? "" : "es", feed->worker_deaths == 1 ? "was" : "were");
    if (feed->timeouts > 0)
        add_text(v, " %" PRId64 " of them took too long and were killed.", feed->timeouts);
    if (feed->retries > 0)
        add_text(v, " get was called again %" PRId64 " time%s after it failed.", feed->retries,
                 plural(feed->retries));
    if (feed->skips > 0)
        add_text(v, " %" PRId64 " bad batch%s passed over.", feed->skips,
                 feed->skips == 1 ? " was" : "es were");
    if (feed->samples_left_out > 0)
        add_text(v, " Bad samples were left out of batches %" PRId64 " time%s.", feed->samples_left_out,
                 plural(feed->samples_left_out));
}

static void add_memory(leat_verdict *v, const leat_feed_stats *feed) {
    if (v->peak_rss_bytes == 0) return;
    add_text(v,
             " Memory: %.0f MB at most; of it the model with its optimizer %.1f, activations %.1f, the queue "
             "%.1f.",
             (double)v->peak_rss_bytes / 1e6, (double)v->model_bytes / 1e6, (double)v->activation_bytes / 1e6,
             (double)feed->ring_bytes / 1e6);
}

bool leati_verdict_get_waits(const leat_verdict *v, const leat_feed_stats *feed, int64_t used_ns,
                             int64_t elapsed_ns) {
    if (elapsed_ns < min_elapsed_ns || feed->get_ns < elapsed_ns / 10) return false;
    if ((double)used_ns > 0.75 * (double)elapsed_ns * v->cores) return false;
    return used_ns - v->compute_ns < feed->get_ns / 2;
}

void leati_verdict_explain(leat_verdict *v, const leat_feed_stats *feed) {
    v->text[0] = '\0';
    if (v->steps == 0 || v->wall_ns == 0) {
        add_text(v, "No step was run.");
        add_faults(v, feed);
        return;
    }
    bool judged = v->wall_ns >= min_judged_ns;
    double wall = (double)v->wall_ns;
    double data = 100 * (double)v->data_wait_ns / wall, compute = 100 * (double)v->compute_ns / wall,
           copies = 100 * (double)v->copy_wait_ns / wall;
    const char *by = data > compute ? "data" : "compute";
    if (copies > fmax(data, compute)) by = "copies to the GPU";
    if (100 - data - copies - compute > fmax(copies, fmax(data, compute)))
        by = "callbacks and what else comes between the steps";
    if (judged && v->on_device)
        add_text(
            v,
            "Training waited %.0f %% of the time for data, %.0f %% for copies to the GPU and %.0f %% for "
            "compute: it is bound by %s.",
            data, copies, compute, by);
    else if (judged)
        add_text(v,
                 "Training waited %.0f %% of the time for data and %.0f %% for compute: it is bound by %s.",
                 data, compute, by);
    else
        add_text(v, "The run was too short to tell what limits it: %" PRId64 " step%s in %.2f ms.", v->steps,
                 plural(v->steps), milliseconds(wall));
    add_text(v, " A step takes %.2f ms; get takes %.2f ms, %.2f ms at p90.", milliseconds(step_ns(v)),
             milliseconds((double)v->get_mean_ns), milliseconds((double)feed->get.p90));
    if (judged) advise(v, feed, data);
    add_faults(v, feed);
    add_memory(v, feed);
}

void leati_verdict_explain_ranks(leat_verdict *v, const char *host, bool data_bound) {
    const double steps = (double)v->steps, late = 100 * (double)v->late_ns / (double)v->wall_ns;
    add_text(
        v, " %d ranks: summing gradients takes %.2f ms of a step, and communication makes it %.2f ms longer.",
        v->ranks, milliseconds((double)v->communication_ns / steps),
        milliseconds((double)v->exposed_ns / steps));
    if (late < late_percent) return;
    add_text(v, " The other ranks wait %.2f ms in each step for rank %d (host %s), which %s.",
             milliseconds((double)v->late_ns / steps), v->latest_rank, host,
             data_bound ? "waits for its data" : "computes longer");
}
