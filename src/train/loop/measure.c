/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the verdict of a fit, while it runs and at its end.  Room: train. */
#include <string.h>
#include <sys/resource.h>

#include "base/os/clock.h"
#include "nn/network/network.h"
#include "train/history/cores.h"
#include "train/history/verdict.h"
#include "train/loop/fit_loop.h"

static void measure_memory(const leati_fit_loop *loop, leat_verdict *verdict) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) verdict->peak_rss_bytes = (int64_t)usage.ru_maxrss * 1024;
    verdict->model_bytes = (int64_t)(leati_weights_slab_bytes(&loop->training.model->weights) -
                                     leati_shards_absent_bytes(&loop->parallel.shards));
    verdict->activation_bytes = (int64_t)leati_trainer_activation_bytes(loop->train.trainer);
}

/* Adds the sums of the fits that this fit continues. */
static void add_earlier(leat_verdict *verdict, const leati_record_sums *earlier, int64_t earlier_copies) {
    verdict->steps += earlier->steps;
    verdict->wall_ns += earlier->wall_ns;
    verdict->data_wait_ns += earlier->data_wait_ns;
    verdict->compute_ns += earlier->compute_ns;
    verdict->copy_wait_ns += earlier_copies;
}

static void measure_ranks(const leati_fit_loop *loop, leat_verdict *verdict) {
    const leati_parallel *parallel = &loop->parallel;
    const leat_dist *dist = parallel->dist;
    if (!dist || dist->size < 2 || !parallel->times) return;
    int latest = 0;
    for (int i = 1; i < dist->size; ++i)
        if (parallel->times[i].late > parallel->times[latest].late) latest = i;
    verdict->ranks = dist->size;
    verdict->latest_rank = latest;
    verdict->late_ns = (int64_t)parallel->times[latest].late;
    verdict->communication_ns = parallel->busy_ns;
    verdict->exposed_ns = parallel->exposed_ns;
}

/* Adds the sentences about ranks, which are about this fit alone. */
static void explain_ranks(const leati_fit_loop *loop, leat_verdict *verdict) {
    if (verdict->ranks < 2 || loop->train.steps == 0 || verdict->wall_ns == 0) return;
    const leati_rank_times *times = &loop->parallel.times[verdict->latest_rank];
    leat_verdict mine = *verdict;
    mine.steps = loop->train.steps;
    leati_verdict_explain_ranks(&mine, loop->parallel.dist->peers[verdict->latest_rank].host,
                                times->data > times->compute);
    memcpy(verdict->text, mine.text, sizeof verdict->text);
}

void leati_fit_measure(void *user) {
    leati_fit_loop *loop = user;
    leati_record *record = &loop->history->record;
    leat_verdict verdict = {.steps = loop->train.steps,
                            .wall_ns = loop->wall_ns,
                            .data_wait_ns = loop->train.wait_ns,
                            .compute_ns = loop->train.compute_ns,
                            .copy_wait_ns = loop->train.copy_ns,
                            .workers = loop->options->workers,
                            .use_multiprocessing = loop->options->use_multiprocessing,
                            .threads = loop->train.threads,
                            .cores = loop->cores.count};
    if (loop->steps_began_ns > 0) verdict.wall_ns += leati_now_ns() - loop->steps_began_ns;
    if (loop->train.feed) leati_record_end(record, loop->train.feed);
    int64_t used_ns = 0, elapsed_ns = leati_now_ns() - loop->start_ns;
    if (loop->train.feed && loop->start_cores_ns > 0 && leati_cores_used_ns(&used_ns)) {
        leat_feed_stats feed = leat_feed_stats_get(loop->train.feed);
        verdict.get_waits =
            leati_verdict_get_waits(&verdict, &feed, used_ns - loop->start_cores_ns, elapsed_ns);
    }
    add_earlier(&verdict, &record->earlier, record->earlier_copies_ns);
    verdict.generator = loop->train.pace == LEATI_PACE_GENERATOR;
    if (record->feed.batches > 0) verdict.get_mean_ns = record->feed.get_ns / record->feed.batches;
    if (loop->train.trainer) {
        measure_memory(loop, &verdict);
        verdict.on_device = leati_trainer_device(loop->train.trainer) != NULL;
    }
    measure_ranks(loop, &verdict);
    leati_verdict_explain(&verdict, &record->feed);
    explain_ranks(loop, &verdict);
    loop->history->verdict = verdict;
}
