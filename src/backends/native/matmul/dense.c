/* SPDX-License-Identifier: Apache-2.0 */
/* MATMUL of any size: c (m, n) = f(op(a) (m, k) op(b) (k, n) + bias + addend), by tiles of rows times packed panels
 * of b (product_tmpl.h).  Room: backends/native.
 *
 * Weights are packed as a whole and kept packed until they change.  A matrix that is too large for that, that cannot
 * be weights, or that is used once for few samples is packed by each task: its own columns, a chunk of the depth at a
 * time, which is still in the L2 cache when it is used.  A gradient with respect to weights is a sum over samples: each
 * thread takes some of the samples, which it may have computed itself and so finds in its cache.  Where the gradient
 * has few columns, its transpose is computed instead.  The chunks of the depth are added up in order, whichever thread
 * computed them, so sums do not depend on the number of threads.
 *
 * A batch normalization behind the product is folded into the packed weights and the bias.
 *
 * The gradient with respect to a bias is the sum of the rows of b: a group of the plan (LEATI_OP_REDUCE and this op)
 * computes it while it packs b. */
#include <stdio.h>
#include <string.h>

#include "backends/native/matmul/jobs.h"
#include "backends/native/simd/isa.h"
#include "backends/native/ops.h"
#include "backends/native/share.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/fold_norm.h"

enum {
    ROWS = 96, /* rows of a, which stay in the L2 cache while the panels change */
    /* depth of a chunk: so much of b is packed, and so many columns of a transposed a are copied at a time */
    DEPTH = 256,
    /* the same for many rows where b is packed as a whole: c is read and written less often */
    WHOLE_DEPTH = 1024,
    MAX_PANEL = 32,
    /* rows at most for which a matrix that changes between runs is packed by chunks, and columns of such a chunk:
     * the chunk and as many columns of c stay in the L2 cache */
    CHUNKED_ROWS = 256,
    CHUNKED_COLUMNS = 512,
    FEW_ROWS_COLUMNS = 64, /* that few rows take at a time; whole panels */
    SHARED_ROWS = 24,      /* rows at least of a task that reads all columns of the weights, as others do */
    SUM_ROWS = 64          /* rows of b whose sums are float, beyond which they are double */
};
#define MAX_PARTIAL_SUMS 1048576 /* floats at most of partial sums over chunks */
#define MIN_SHARED       1e6     /* operations from which a second thread is worthwhile */
#define MIN_CHUNKED      65536   /* elements of a matrix from which it is packed by chunks */
/* operations from which there are more tasks than threads, in case a thread is delayed */
#define MIN_MANY_TASKS 3e7

typedef struct dense_state {
    const leati_native_isa *isa;
    int64_t m, n, k;
    bool ta, tb; /* op(a), op(b) is the transpose */
    bool has_f;
    /* c' = b' a is computed; then a, b, c, m and n here are those of that product */
    bool transposed;
    bool packs_whole; /* b, before it is multiplied */
    leati_eltwise f;
    bool norm; /* a batch normalization is folded into the packed weights */
    float epsilon;
    int threads, bias, addend, dst, sums, post; /* indices of arguments; -1: absent */
    int64_t chunks;                             /* chunks of the depth */
    /* numbers of ranges of chunks, of rows, of columns; a task is one of each */
    int64_t spans, blocks, parts;
    int64_t left, right; /* floats of a and of b that each thread packs at a time */
} dense_state;

typedef struct dense_run {
    const dense_state *s;
    const float *a, *b, *bias, *addend;
    float *c;
    float *packed;       /* b, where s->packs_whole */
    float *scale;        /* (n), of a folded normalization, while b is packed */
    float *partial_sums; /* (chunks after the first span, m, n) */
    float *buffers, *dst;
    double *chunk_sums; /* (chunks, n), of the rows of b, where s->sums is there */
    bool pack;          /* each task packs its own columns of b */
    bool last_first;    /* few rows visit the columns from the last to the first */
} dense_run;

/* The rows and columns of c that one task computes. */
typedef struct dense_area {
    int64_t row, rows, column, columns;
} dense_area;

static int64_t panels_of(const dense_state *s) {
    return leati_ceil_div(s->n, s->isa->panel);
}

static dense_area area_of(const dense_state *s, int64_t task) {
    int64_t block = task / s->parts % s->blocks, part = task % s->parts, panels = panels_of(s);
    dense_area area = {.row = s->m * block / s->blocks, .column = panels * part / s->parts * s->isa->panel};
    int64_t to = panels * (part + 1) / s->parts * s->isa->panel;
    area.rows = s->m * (block + 1) / s->blocks - area.row;
    area.columns = (to < s->n ? to : s->n) - area.column;
    return area;
}

/* Packs rows `from` to `to` - 1 of some columns of op(b) into panels of depth to - from. */
static void pack_depth(const dense_run *r, int64_t column, int64_t columns, int64_t from, int64_t to,
                       float *packed) {
    const dense_state *s = r->s;
    int64_t depth = to - from, floats = depth * s->isa->panel;
    if (s->tb)
        s->isa->pack_transposed(r->b + column * s->k + from, s->k, depth, 0, columns, packed, floats);
    else
        s->isa->pack_columns(r->b + from * s->n + column, s->n, depth, 0, columns, packed, floats, NULL);
}

/* Packs like pack_depth(), and stores the sums of the rows in `sums` (n) at these columns. */
static void pack_and_sum(const dense_run *r, int64_t column, int64_t columns, int64_t from, int64_t to,
                         float *packed, double *sums) {
    const dense_state *s = r->s;
    int64_t panel = s->isa->panel, floats = (to - from) * panel;
    for (int64_t j = 0; j < columns; j += panel, packed += floats) {
        int64_t width = columns - j < panel ? columns - j : panel;
        double *total = sums + column + j;
        for (int64_t i = 0; i < width; i++) total[i] = 0;
        for (int64_t k = from; k < to; k += SUM_ROWS) {
            float part[MAX_PANEL] = {0};
            s->isa->pack_columns(r->b + k * s->n + column + j, s->n, to - k < SUM_ROWS ? to - k : SUM_ROWS, 0,
                                 width, packed + (k - from) * panel, floats, part);
            for (int64_t i = 0; i < width; i++) total[i] += (double)part[i];
        }
    }
}

static void pack_panel(void *of, int64_t task, int member) {
    const dense_run *r = of;
    const dense_state *s = r->s;
    int64_t panel = s->isa->panel, column = task * panel;
    (void)member;
    const int64_t columns = s->n - column < panel ? s->n - column : panel;
    float *packed = r->packed + column * s->k;
    pack_depth(r, column, columns, 0, s->k, packed);
    for (int64_t k = 0; s->norm && k < s->k; k++)
        for (int64_t i = 0; i < columns; i++) packed[k * panel + i] *= r->scale[column + i];
}

/* Returns the floats of the packed weights. */
static int64_t packed_floats(const dense_state *s) {
    return s->k * panels_of(s) * s->isa->panel;
}

/* Packs the weights, and computes the bias of a product into which a normalization is folded. */
static void pack_whole(dense_run *r, void *const *args, leati_thread_pool *pool) {
    const dense_state *s = r->s;
    if (s->norm) leati_norm_scales(args + s->post, s->epsilon, s->n, r->scale);
    leati_thread_pool_share(pool, s->threads, panels_of(s), pack_panel, r);
    if (s->norm) leati_norm_shifts(args + s->post, r->bias, r->scale, s->n, r->packed + packed_floats(s));
}

static int64_t first_chunk(const dense_state *s, int64_t span) {
    return s->chunks * span / s->spans;
}

/* Packed panels at a chunk of the depth. */
typedef struct chunk_panels {
    const float *b;
    int64_t panel; /* floats from one panel to the next */
} chunk_panels;

/* Adds the product over one chunk to an area of c, or stores it as a partial sum. */
static void add_chunk(const dense_run *r, dense_area area, int64_t chunk, chunk_panels panels,
                      float *buffer) {
    const dense_state *s = r->s;
    int64_t k = s->k * chunk / s->chunks, to = s->k * (chunk + 1) / s->chunks;
    leati_product p = {.b = panels.b, .b_panel = panels.panel, .depth = to - k};
    p.columns = area.columns;
    int64_t at = area.row * s->n + area.column, after_first_span = chunk - first_chunk(s, 1);
    p.rows = area.rows;
    p.c = (after_first_span < 0 ? r->c : r->partial_sums + after_first_span * s->m * s->n) + at;
    p.c_row = p.addend_row = s->n;
    if (s->ta) {
        for (int64_t i = 0; i < p.depth; i++)
            memcpy(buffer + i * ROWS, r->a + (k + i) * s->m + area.row, (size_t)area.rows * sizeof *buffer);
        p.a = buffer;
        p.a_row = 1;
        p.a_depth = ROWS;
    } else {
        p.a = r->a + area.row * s->k + k;
        p.a_row = s->k;
        p.a_depth = 1;
    }
    if (chunk == 0)
        p.addend = r->addend ? r->addend + at : NULL;
    else if (after_first_span < 0)
        p.addend = p.c;
    p.bias = r->bias && chunk == 0 ? r->bias + area.column : NULL;
    p.f = s->has_f && to == s->k ? &s->f : NULL;
    s->isa->product(&p);
}

/* Returns the rows of one of `groups` groups, which are as even as possible. */
static dense_area rows_of(dense_area area, int64_t group, int64_t groups) {
    dense_area group_area = area;
    group_area.row += area.rows * group / groups;
    group_area.rows = area.row + area.rows * (group + 1) / groups - group_area.row;
    return group_area;
}

/* Multiplies few rows by packed weights, some columns at a time over the whole depth.  Every second run visits the
 * columns from the last to the first, so that it begins with those that the run before left in the caches. */
static void multiply_few_rows(const dense_run *r, dense_area all) {
    const dense_state *s = r->s;
    const int64_t width = FEW_ROWS_COLUMNS, end = all.column + all.columns;
    const int64_t by = r->last_first ? -width : width;
    dense_area area = all;
    if (r->last_first) area.column += (all.columns - 1) / width * width;
    for (; area.column >= all.column && area.column < end; area.column += by) {
        area.columns = end - area.column < width ? end - area.column : width;
        const float *b = r->packed + area.column * s->k;
        for (int64_t chunk = 0; chunk < s->chunks; chunk++) {
            const int64_t from = s->k * chunk / s->chunks, panel = s->isa->panel;
            add_chunk(r, area, chunk, (chunk_panels){b + from * panel, s->k * panel}, NULL);
        }
    }
}

static void compute(void *of, int64_t task, int member) {
    const dense_run *r = of;
    const dense_state *s = r->s;
    dense_area area = area_of(s, task);
    float *left = r->buffers + (s->left + s->right) * member, *right = left + s->left;
    bool sums = s->sums >= 0 && task / s->parts % s->blocks == 0; /* the first rows of c */
    int64_t span = task / s->parts / s->blocks, first = first_chunk(s, span),
            chunks = first_chunk(s, span + 1) - first;
    int64_t groups = leati_ceil_div(area.rows, ROWS), panel = s->isa->panel;
    if (r->pack) pack_depth(r, area.column, area.columns, 0, s->k, r->packed + area.column * s->k);
    if (s->packs_whole && s->m <= LEATI_FEW_ROWS) {
        multiply_few_rows(r, area);
        return;
    }
    for (int64_t i = 0; i < chunks * groups; i++) {
        int64_t chunk = first + (s->packs_whole ? i % chunks : i / groups),
                group = s->packs_whole ? i / chunks : i % groups;
        int64_t k = s->k * chunk / s->chunks, to = s->k * (chunk + 1) / s->chunks;
        chunk_panels panels = {right, (to - k) * panel};
        if (s->packs_whole)
            panels = (chunk_panels){r->packed + area.column * s->k + k * panel, s->k * panel};
        else if (group == 0 && sums)
            pack_and_sum(r, area.column, area.columns, k, to, right, r->chunk_sums + chunk * s->n);
        else if (group == 0)
            pack_depth(r, area.column, area.columns, k, to, right);
        add_chunk(r, rows_of(area, group, groups), chunk, panels, left);
    }
}

/* Adds the partial sums to c and, where c is transposed, writes its transpose to dst.  Task t of s->threads takes a
 * range of every row of a transposed c, else a range of all of c. */
static void finish(void *of, int64_t task, int member) {
    const dense_run *r = of;
    const dense_state *s = r->s;
    int64_t rows = s->transposed ? s->m : 1, count = s->m * s->n / rows;
    int64_t first = count * task / s->threads, last = count * (task + 1) / s->threads;
    (void)member;
    for (int64_t i = 0; i < rows; i++) {
        float *c = r->c + i * count;
        for (int64_t chunk = 0; chunk < s->chunks - first_chunk(s, 1); chunk++) {
            const float *partial_sums = r->partial_sums + (chunk * rows + i) * count;
            for (int64_t j = first; j < last; j++) c[j] += partial_sums[j];
        }
        for (int64_t j = first; s->transposed && j < last; j++) r->dst[j * rows + i] = c[j];
    }
}

static void add_chunk_sums(const dense_run *r, float *sums) {
    const dense_state *s = r->s;
    for (int64_t j = 0; j < s->n; j++) {
        double sum = 0;
        for (int64_t chunk = 0; chunk < s->chunks; chunk++) sum += r->chunk_sums[chunk * s->n + j];
        sums[j] = (float)sum;
    }
}

/* Returns the bytes of the sums of all chunks, in whole cache lines. */
static size_t chunk_sums_bytes(const dense_state *s) {
    return s->sums >= 0 ? (size_t)leati_round_up(s->chunks * s->n, 8) * sizeof(double) : 0;
}

/* Returns the floats of all partial sums of c, and of c itself where its transpose is computed. */
static int64_t partial_floats(const dense_state *s) {
    return (s->chunks - first_chunk(s, 1) + s->transposed) * s->m * s->n;
}

static int64_t scale_floats(const dense_state *s) {
    return s->norm ? leati_round_up(s->n, s->isa->panel) : 0;
}

static leat_status run_dense(const leati_kernel *kernel, void *const *args, const leati_run *run,
                             leat_error *err) {
    const dense_state *s = kernel->state;
    dense_run r = {.s = s,
                   .a = args[s->transposed],
                   .b = args[!s->transposed],
                   .bias = s->bias >= 0 ? args[s->bias] : NULL,
                   .addend = s->addend >= 0 ? args[s->addend] : NULL,
                   .dst = args[s->dst],
                   .chunk_sums = run->scratch,
                   .buffers = (float *)run->scratch + chunk_sums_bytes(s) / sizeof(float)};
    (void)err;
    float *after_buffers = r.buffers + (s->left + s->right) * s->threads;
    r.scale = after_buffers;
    r.packed = run->pack ? run->pack : after_buffers + scale_floats(s);
    r.c = s->transposed ? after_buffers : r.dst;
    r.partial_sums = s->transposed ? after_buffers + s->m * s->n : after_buffers;
    bool packs = s->packs_whole && !(run->pack && run->packed);
    r.pack = packs && s->blocks == 1 && !s->norm;
    r.last_first = run->run_number % 2 == 1;
    if (packs && !r.pack) pack_whole(&r, args, run->pool);
    if (s->norm) r.bias = r.packed + packed_floats(s);
    leati_thread_pool_share(run->pool, s->threads, s->spans * s->blocks * s->parts, compute, &r);
    if (s->spans > 1 || s->transposed) leati_thread_pool_share(run->pool, s->threads, s->threads, finish, &r);
    if (s->sums >= 0) add_chunk_sums(&r, args[s->sums]);
    return LEAT_OK;
}

/* A gradient with respect to weights is split into one range of chunks per thread, if there are enough chunks and
 * memory; other products are not. */
static void split_depth(dense_state *s) {
    s->chunks = leati_ceil_div(s->k, s->packs_whole && s->m > LEATI_FEW_ROWS ? WHOLE_DEPTH : DEPTH);
    s->spans = s->ta && !s->has_f ? s->threads : 1;
    if (s->spans > s->chunks) s->spans = s->chunks;
    if ((s->chunks - first_chunk(s, 1)) * s->m * s->n > MAX_PARTIAL_SUMS) s->spans = 1;
}

/* Returns the number of ranges of columns.  Ranges of rows leave each thread the rows that it wrote in the op before,
 * and are best where the weights stay packed, or where there are many more rows than columns.  With ranges of columns
 * nothing is packed twice, and a matrix is read once for a few rows. */
static int64_t parts_for(const dense_state *s, int64_t wanted, bool stays_packed) {
    int64_t blocks = stays_packed ? s->m / SHARED_ROWS : 1, panels = panels_of(s);
    if (s->m > 2 * s->n || blocks > wanted) blocks = wanted;
    if (blocks < 1) blocks = 1;
    int64_t parts = leati_ceil_div(wanted, blocks);
    return parts < panels ? parts : panels;
}

/* True for weights that every run changes and that are multiplied by few rows: writing the whole pack to memory and
 * reading it again would take as long as the product. */
static bool is_chunked(const dense_state *s, const leati_task *task) {
    return !s->ta && !s->norm && !task->weights_stay && s->m <= CHUNKED_ROWS && s->m <= s->n &&
           s->k * s->n >= MIN_CHUNKED;
}

/* Splits the work into ranges of the depth, of rows and of columns. */
static void share(dense_state *s, const leati_task *task, bool chunked) {
    double operations = 2 * (double)s->m * (double)s->n * (double)s->k;
    const bool is_small = operations < MIN_SHARED && s->k * s->n < LEATI_SHARED_WEIGHTS;
    s->threads = is_small && !task->measured ? 1 : task->threads;
    split_depth(s);
    int64_t wanted = leati_ceil_div(s->threads, s->spans);
    if (operations >= MIN_MANY_TASKS && s->spans == 1 && s->threads > 1) wanted *= 2;
    int64_t max_blocks = leati_ceil_div(s->m, s->isa->rows);
    s->parts = parts_for(s, wanted, task->weights_stay && s->packs_whole);
    int64_t chunked_parts = leati_ceil_div(s->n, CHUNKED_COLUMNS);
    if (chunked && s->parts < chunked_parts) s->parts = chunked_parts;
    s->blocks = leati_ceil_div(wanted, s->parts);
    if (s->blocks > max_blocks) s->blocks = max_blocks;
}

static leat_status prepare(dense_state *s, const leati_task *task, leati_kernel *kernel) {
    size_t bytes = (size_t)packed_floats(s) * sizeof(float);
    /* a gradient with respect to weights has an operand that is made of samples */
    const bool chunked = is_chunked(s, task);
    s->packs_whole = !s->ta && bytes <= LEATI_PACKED_BYTES && !chunked;
    share(s, task, chunked);
    int64_t panel = s->isa->panel, depth = leati_ceil_div(s->k, s->chunks);
    s->left = s->ta ? depth * ROWS : 0;
    if (s->packs_whole) {
        kernel->pack_bytes = bytes + (s->norm ? (size_t)s->n * sizeof(float) : 0);
        kernel->pack_inputs = 1u << 1;
        for (int i = 2; s->norm && i <= s->post + LEATI_POST_VARIANCE; i++) kernel->pack_inputs |= 1u << i;
        snprintf(kernel->pack_key, sizeof kernel->pack_key, "native %s%s %lldx%lld%s%.9g", s->isa->name,
                 s->tb ? " transposed" : "", (long long)s->k, (long long)s->n, s->norm ? " norm " : " ",
                 (double)s->epsilon);
        snprintf(kernel->layout, sizeof kernel->layout, "weights panels of %d columns", (int)panel);
    } else {
        s->right = depth * leati_ceil_div(panels_of(s), s->parts) * panel;
    }
    int64_t floats = (s->left + s->right) * s->threads + partial_floats(s) + scale_floats(s);
    kernel->scratch_bytes = chunk_sums_bytes(s) + (size_t)floats * sizeof(float) + kernel->pack_bytes;
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_dense;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native dense %s", s->isa->name);
    return LEAT_OK;
}

/* Decides to compute the transpose: few columns would leave most of a panel unused, whereas few rows waste nothing. */
static void choose_transpose(dense_state *s) {
    int64_t rows = s->m;
    if (!s->ta || s->tb || s->has_f || s->bias >= 0 || s->addend >= 0) return;
    if (2 * s->n > s->isa->panel || s->m < s->isa->panel) return;
    s->transposed = true;
    s->m = s->n;
    s->n = rows;
}

static leat_status make(const leati_task *task, int sums, leati_kernel *kernel, leat_error *err) {
    const leati_desc *a = &task->inputs[0], *dst = &task->outputs[0];
    int op_inputs = leati_op_inputs(task);
    dense_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a matrix product");
    *s = (dense_state){.isa = leati_native_isa_of(),
                       .m = dst->shape[0],
                       .n = dst->shape[1],
                       .ta = task->attrs->matmul.transpose_a,
                       .tb = task->attrs->matmul.transpose_b,
                       .has_f = task->attrs->post.kinds & LEATI_POST_FUNCTION,
                       .f = task->attrs->post.function,
                       .norm = task->attrs->post.kinds & LEATI_POST_NORM,
                       .dst = task->input_count,
                       .sums = sums,
                       .post = op_inputs};
    if (s->norm) s->epsilon = task->attrs->post.epsilon;
    s->k = a->shape[!s->ta];
    s->bias = op_inputs > 2 && task->inputs[2].rank >= 0 ? 2 : -1;
    s->addend = task->attrs->post.kinds & LEATI_POST_ADD ? op_inputs + LEATI_POST_ADDEND : -1;
    if (sums < 0) choose_transpose(s);
    return prepare(s, task, kernel);
}

/* True for a normalization that is not folded: the matrix is transposed, not packed as a whole or in another format,
 * or few_rows.c reads it as it is, in less time than packed panels. */
static bool cannot_fold(const leati_task *task) {
    if (!(task->attrs->post.kinds & LEATI_POST_NORM)) return false;
    const leati_desc *b = &task->inputs[1];
    int64_t floats = b->shape[0] * leati_round_up(b->shape[1], leati_native_isa_of()->panel);
    return task->attrs->matmul.transpose_a || task->attrs->matmul.transpose_b ||
           task->weights_format != LEATI_WEIGHTS_F32 || task->outputs[0].shape[0] <= LEATI_FEW_ROWS ||
           floats > LEATI_PACKED_BYTES / (int64_t)sizeof(float);
}

leat_status leati_native_dense(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    const leati_desc *a = &task->inputs[0], *b = &task->inputs[1];
    const char *reason = task->outputs[0].rank > 2                              ? "a batch of matrices"
                         : leati_desc_count(a) == 0 || leati_desc_count(b) == 0 ? "an empty tensor"
                         : cannot_fold(task)                                    ? "not fused"
                                                                                : NULL;
    if (!reason) return make(task, -1, kernel, err);
    snprintf(why, LEATI_REASON_BYTES, "%s", reason);
    return LEAT_OK;
}

/* Takes the gradients of a Dense layer with respect to its weights and its bias. */
leat_status leati_native_dense_group(const leati_group *group, leati_kernel *kernel, char *why,
                                     leat_error *err) {
    const leati_task task = {.op = LEATI_OP_MATMUL,
                             .attrs = group->members[1].attrs,
                             .input_count = 2,
                             .output_count = 1,
                             .inputs = group->inputs,
                             .outputs = group->outputs,
                             .threads = group->threads,
                             .deterministic = group->deterministic};
    const leati_desc *a = &task.inputs[0], *b = &task.inputs[1];
    bool floats = true;
    for (int i = 0; i < 2; i++)
        floats = floats && group->inputs[i].dtype == LEAT_F32 && group->outputs[i].dtype == LEAT_F32;
    if (group->length != 2 || group->members[0].op != LEATI_OP_REDUCE || !floats ||
        leati_desc_count(a) == 0 || leati_desc_count(b) == 0) {
        snprintf(why, LEATI_REASON_BYTES, "not the gradients of weights and bias in f32");
        return LEAT_OK;
    }
    if (2 * b->shape[1] <= leati_native_isa_of()->panel ||
        leati_ceil_div(b->shape[0], DEPTH) * b->shape[1] > MAX_PARTIAL_SUMS) {
        snprintf(why, LEATI_REASON_BYTES, "few columns, or many sums");
        return LEAT_OK;
    }
    LEATI_TRY(make(&task, task.input_count + 1, kernel, err));
    size_t length = strlen(kernel->implementation);
    snprintf(kernel->implementation + length, sizeof kernel->implementation - length, ", 2 ops in one");
    return LEAT_OK;
}
