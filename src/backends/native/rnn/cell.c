/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM_CELL and LSTM_CELL_BWD: threads share the rows.  Room: backends/native. */
#include "backends/native/elementwise/ranges.h"
#include "backends/native/ops.h"
#include "base/error.h"

#define WORK 4 /* cost of an element relative to moving its bytes: the activations */

static leat_status prepare(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    const leati_desc *sums = &task->inputs[0];
    leati_range_state *s;
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    s->job.cell.units = sums->shape[sums->rank - 1] / 4;
    s->count = s->job.cell.units > 0 ? leati_desc_count(sums) / (4 * s->job.cell.units) : 0;
    s->unit = 1;
    s->written = task->output_count;
    leati_range_share(s, task, WORK * leati_task_bytes(task));
    return LEAT_OK;
}

leat_status leati_native_lstm_cell(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    return prepare(task, kernel, err);
}

leat_status leati_native_lstm_cell_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err) {
    (void)why;
    return prepare(task, kernel, err);
}
