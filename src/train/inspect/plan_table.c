/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a plan as a table for people.  Room: train. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "train/inspect/plan_view.h"

enum { COLUMNS = 9, CELL_BYTES = 160 };

/* The first row has the headings. */
typedef struct table {
    int columns, rows;
    char (*cells)[COLUMNS][CELL_BYTES];
} table;

static const char *const headings[COLUMNS] = {"layer", "op",   "shapes", "implementation", "layout", "bytes",
                                              "arena", "time", "rate"};
static const bool is_right_aligned[COLUMNS] = {[5] = true, [6] = true, [7] = true, [8] = true};

const char *leati_short_shape(char out[LEATI_SHORT_SHAPE_BYTES], const leati_desc *desc) {
    size_t used = 0;
    if (desc->rank == 0) snprintf(out, LEATI_SHORT_SHAPE_BYTES, "scalar");
    for (int i = 0; i < desc->rank && used < LEATI_SHORT_SHAPE_BYTES; ++i)
        used += (size_t)snprintf(out + used, LEATI_SHORT_SHAPE_BYTES - used, "%s%lld", i ? "x" : "",
                                 (long long)desc->shape[i]);
    return out;
}

/* Writes a size such as "1.2 MB", with units of powers of 1000. */
static void bytes_text(char *out, size_t size, double bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 999.5 && unit < 4; ++unit) bytes /= 1000;
    snprintf(out, size, bytes < 9.95 && unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static void time_text(char *out, size_t size, double ns) {
    if (ns < 9.95e5)
        snprintf(out, size, "%.1f us", ns / 1e3);
    else
        snprintf(out, size, "%.2f ms", ns / 1e6);
}

/* Writes the shapes of at most two inputs and one output, such as "8x56x56x64, 1x1x64x256 -> 8x56x56x256". */
static void shapes_text(char *out, const leati_graph *graph, const leati_node *node) {
    char shape[LEATI_SHORT_SHAPE_BYTES];
    leati_text text = {0};
    for (int side = 0; side < 2; ++side) {
        int count = side ? node->output_count : node->input_count, named = 0;
        const leati_value *values = side ? node->outputs : node->inputs;
        if (side) leati_text_add(&text, " -> ");
        for (int i = 0; i < count && named < (side ? 1 : 2); ++i)
            if (values[i] >= 0)
                leati_text_add(&text, "%s%s", named++ ? ", " : "",
                               leati_short_shape(shape, leati_graph_desc(graph, values[i])));
    }
    snprintf(out, CELL_BYTES, "%s", text.data && !text.failed ? text.data : "");
    leati_text_fini(&text);
}

static void fill_row(const leati_plan_view *view, int32_t s, char (*cells)[CELL_BYTES]) {
    leati_plan_step step;
    leati_plan_step_get(view->step->plan, s, &step);
    snprintf(cells[0], CELL_BYTES, "%s", step.node->label ? step.node->label : "");
    snprintf(cells[1], CELL_BYTES, "%s", step.op);
    shapes_text(cells[2], step.graph, step.node);
    snprintf(cells[3], CELL_BYTES, "%s%s", step.implementation, step.measured ? " *" : "");
    snprintf(cells[4], CELL_BYTES, "%s", step.layout);
    bytes_text(cells[5], CELL_BYTES, (double)step.bytes);
    bytes_text(cells[6], CELL_BYTES, (double)step.arena_bytes);
    if (!view->step_ns) return;
    char time[32];
    double ns = view->step_ns[s] > 1 ? view->step_ns[s] : 1;
    time_text(time, sizeof time, view->step_ns[s]);
    snprintf(cells[7], CELL_BYTES, "%s %5.1f %%", time, 100 * view->step_ns[s] / view->total_ns);
    if (step.operations > 0)
        snprintf(cells[8], CELL_BYTES, "%.1f GFLOP/s", step.operations / ns);
    else
        snprintf(cells[8], CELL_BYTES, "%.1f GB/s", (double)step.bytes / ns);
}

static void add_cells(const table *t, leati_text *text) {
    int width[COLUMNS] = {0};
    for (int r = 0; r < t->rows; ++r)
        for (int c = 0; c < t->columns; ++c)
            if ((int)strlen(t->cells[r][c]) > width[c]) width[c] = (int)strlen(t->cells[r][c]);
    for (int r = 0; r < t->rows; ++r)
        for (int c = 0; c < t->columns; ++c) {
            bool last = c + 1 == t->columns;
            int wide = is_right_aligned[c] ? width[c] : last ? 0 : -width[c];
            leati_text_add(text, "%*s%s", wide, t->cells[r][c], last ? "\n" : "  ");
        }
}

/* ---- Sums by op ---- */

typedef struct sum {
    char name[CELL_BYTES]; /* "conv, onednn jit:avx2" */
    int count;
    double ns, operations;
    size_t bytes;
} sum;

static int by_time(const void *a, const void *b) {
    const sum *x = a, *y = b;
    if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->name, y->name);
}

static int sum_up(const leati_plan_view *view, sum *sums) {
    int count = 0;
    for (int32_t s = 0; s < view->count; ++s) {
        leati_plan_step step;
        char name[CELL_BYTES];
        int at = 0;
        leati_plan_step_get(view->step->plan, s, &step);
        snprintf(name, sizeof name, "%s, %s", step.op, step.implementation);
        while (at < count && strcmp(sums[at].name, name) != 0) ++at;
        if (at == count) snprintf(sums[count++].name, CELL_BYTES, "%s", name);
        sums[at].count++;
        sums[at].bytes += step.bytes;
        sums[at].operations += step.operations;
        if (view->step_ns) sums[at].ns += view->step_ns[s];
    }
    qsort(sums, (size_t)count, sizeof *sums, by_time);
    return count;
}

static void add_sums(const leati_plan_view *view, sum *sums, leati_text *text) {
    int count = sum_up(view, sums);
    for (int i = 0; i < count; ++i) {
        char bytes[32], time[32];
        bytes_text(bytes, sizeof bytes, (double)sums[i].bytes);
        time_text(time, sizeof time, sums[i].ns);
        leati_text_add(text, "%5d x %-44s %8s", sums[i].count, sums[i].name, bytes);
        if (view->step_ns) leati_text_add(text, " %10s %5.1f %%", time, 100 * sums[i].ns / view->total_ns);
        leati_text_add(text, "\n");
    }
}

/* ---- The whole table ---- */

static void add_head(const leati_plan_view *view, leati_text *text) {
    leati_text_add(text, "Plan of \"%s\": %s, batch of %lld, %d thread%s\n\n", view->model->name,
                   view->options.train ? "a training step" : "a prediction",
                   (long long)view->options.batch_size, view->options.threads,
                   view->options.threads == 1 ? "" : "s");
}

static void add_foot(const leati_plan_view *view, leati_text *text) {
    const leati_plan *plan = view->step->plan;
    char arena[32], bound[32], reorders[32], kept[32], time[32];
    bytes_text(arena, sizeof arena, (double)leati_plan_arena_bytes(plan));
    bytes_text(bound, sizeof bound, (double)leati_plan_bound_bytes(plan));
    bytes_text(reorders, sizeof reorders, (double)view->reorder_bytes);
    leati_text_add(text, "\n%d steps of %d nodes; %.3g GFLOP; arena %s, of which %s are alive at once\n",
                   (int)view->count, (int)leati_graph_node_count(leati_plan_graph(plan)),
                   view->operations / 1e9, arena, bound);
    if (leati_plan_group_size(plan) > 0)
        leati_text_add(text, "the first %d steps are computed for groups of %lld sample%s\n",
                       (int)view->grouped, (long long)leati_plan_group_size(plan),
                       leati_plan_group_size(plan) > 1 ? "s" : "");
    if (view->measured > 0)
        leati_text_add(text, "* %d kernel%s chosen by measuring\n", (int)view->measured,
                       view->measured == 1 ? "" : "s");
    bytes_text(kept, sizeof kept, (double)view->kept_bytes);
    leati_text_add(text, "%d copies into another layout in each run, %s; %s of weights stay packed\n",
                   view->reorders, reorders, kept);
    if (!view->step_ns) return;
    time_text(time, sizeof time, view->total_ns);
    leati_text_add(text, "a run takes %s, the medians of all steps added up: %.1f GFLOP/s\n", time,
                   view->operations / (view->total_ns > 1 ? view->total_ns : 1));
}

leat_status leati_plan_table(const leati_plan_view *view, char **out, leat_error *err) {
    table t = {.columns = view->step_ns ? COLUMNS : COLUMNS - 2, .rows = (int)view->count + 1};
    sum *sums = leati_calloc((size_t)view->count + 1, sizeof *sums);
    leati_text text = {0};
    t.cells = leati_calloc((size_t)t.rows, sizeof *t.cells);
    if (t.cells && sums) {
        for (int c = 0; c < t.columns; ++c) snprintf(t.cells[0][c], CELL_BYTES, "%s", headings[c]);
        for (int32_t s = 0; s < view->count; ++s) fill_row(view, s, t.cells[s + 1]);
        add_head(view, &text);
        add_cells(&t, &text);
        leati_text_add(&text, "\n");
        add_sums(view, sums, &text);
        add_foot(view, &text);
    }
    bool complete = t.cells && sums && !text.failed;
    leati_free(t.cells);
    leati_free(sums);
    if (complete) *out = text.data;
    if (complete) return LEAT_OK;
    leati_text_fini(&text);
    return leati_fail_memory(err, 0, "a summary of the plan");
}
