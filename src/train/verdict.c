/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict.  Layer: train. */
#include "train/verdict.h"

#include <math.h>
#include <stdio.h>

enum { advice_percent = 10 }; /* of the time spent waiting for data, from where on advice is worth its line */

/* Workers that would make batches as fast as the steps take them. */
static int workers_needed(const leat_verdict *v) {
    double step_ns = (double)v->compute_ns / (double)v->steps;
    return step_ns > 0 ? (int)fmin(ceil((double)v->get_mean_ns / step_ns), 1e6) : 1;
}

static int advise(const leat_verdict *v, char *out, size_t bytes) {
    int needed = workers_needed(v);
    if (v->workers == 0)
        return snprintf(out, bytes,
                        " Batches are made between the steps: with 1 worker or more they would be made "
                        "beside them.");
    if (needed <= v->workers)
        return snprintf(out, bytes, " The workers could keep up, but share the %d core%s with compute.",
                        v->cores, v->cores == 1 ? "" : "s");
    if (needed <= v->cores) return snprintf(out, bytes, " About %d workers would keep up.", needed);
    return snprintf(out, bytes,
                    " About %d workers would keep up, on a machine with as many cores; here there are %d, "
                    "so a cheaper batch helps more.",
                    needed, v->cores);
}

void leati_verdict_explain(leat_verdict *v) {
    if (v->steps == 0 || v->wall_ns == 0) {
        snprintf(v->text, sizeof v->text, "No step was run.");
        return;
    }
    double wall = (double)v->wall_ns, steps = (double)v->steps;
    double data = 100 * (double)v->data_wait_ns / wall, compute = 100 * (double)v->compute_ns / wall;
    int used =
        snprintf(v->text, sizeof v->text,
                 "Training waited %.0f %% of the time for data and %.0f %% for compute: it is bound by %s. "
                 "A step takes %.2f ms, a batch takes a worker %.2f ms.",
                 data, compute, data > compute ? "data" : "compute", (double)v->compute_ns / steps / 1e6,
                 (double)v->get_mean_ns / 1e6);
    if (data >= advice_percent && used > 0 && (size_t)used < sizeof v->text)
        advise(v, v->text + used, sizeof v->text - (size_t)used);
}
