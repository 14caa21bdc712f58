/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers rows of arrays and converts them to batches.  Room: data. */
#include "data/columns.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/numbered/numbered.h"
#include "tensor/convert.h"
#include "tensor/number.h"
#include "tensor/sequence.h"
#include "tensor/strided.h"

/* Elements that are copied to a buffer at a time, if they must be aligned or swapped first. */
enum { chunk = 512 };

/* Bytes that are read at a time of an array that is not in memory; one row at least. */
enum { READ_BYTES = 1 << 20 };

typedef struct column column;

struct column {
    leati_array array;
    leati_column_options options;
    /* Converts `rows` consecutive rows, beginning with row `first`. */
    leat_status (*convert)(const column *c, int64_t first, int64_t rows, unsigned char *dst, leat_error *err);
    /* Converts aligned elements in this machine's byte order to the batch's type; NULL: the types are equal. */
    void (*emit)(const column *c, const void *src, void *dst, size_t count);
    leat_dtype dtype;     /* data type in a batch */
    leati_strides row;    /* shape and strides of a row */
    ptrdiff_t row_stride; /* bytes from one row to the next */
    bool dense;           /* the whole array is contiguous */
    size_t row_count;     /* number of elements of a row */
    size_t row_dst_bytes; /* size of a row in a batch */
    float *table;         /* the scaled values of all 256 bytes; NULL: not used */
    int64_t first;        /* the row that is at array.data */
};

struct leati_columns {
    leati_numbered numbered; /* first; its specification has a tensor for each column */
    column columns[LEAT_BATCH_MAX_TENSORS];
    void *owner;
    void (*release)(void *owner);
    char *path; /* of leati_columns_set_path; NULL: none */
    leati_row_place (*find)(const void *owner, int64_t row);
};

leati_column_options leati_column_options_default(void) {
    return (leati_column_options){.shape_rank = -1};
}

static const leat_source_options defaults = {.batch_size = 32};
static const leati_growing type = LEATI_GROWING(leat_source_options, batch_size, &defaults);

void leat_source_options_init(leat_source_options *options, size_t size) {
    leati_growing_init(&type, options, size);
}

leat_status leati_source_options_read(const leat_source_options *in, leat_source_options *out,
                                      leat_error *err) {
    LEATI_TRY(leati_growing_read(&type, in, out, err));
    if (out->validation_split >= 0 && out->validation_split < 1) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL,
                      "validation_split: expected a number from 0 to less than 1, received %g",
                      out->validation_split);
}

leat_status leati_columns_create(leati_columns **out, const leat_source_options *options, void *owner,
                                 void (*release)(void *owner), leat_error *err) {
    *out = NULL;
    LEATI_TRY(leati_check_batch_size(options->batch_size, err));
    leati_columns *columns = leati_calloc(1, sizeof *columns);
    if (!columns) return leati_fail_memory(err, sizeof *columns, "a source");
    columns->numbered.spec.batch_size = options->batch_size;
    columns->owner = owner;
    columns->release = release;
    *out = columns;
    return LEAT_OK;
}

void leati_columns_destroy(leati_columns *columns) {
    if (!columns) return;
    for (int i = 0; i < columns->numbered.spec.tensor_count; ++i) leati_free(columns->columns[i].table);
    if (columns->release) columns->release(columns->owner);
    leati_free(columns->path);
    leati_free(columns);
}

/* ---- Conversions ---- */

static const unsigned char *row_at(const column *c, int64_t row) {
    return c->array.data + (ptrdiff_t)(row - c->first) * c->row_stride;
}

static void emit_converted(const column *c, const void *src, void *dst, size_t count) {
    leati_convert(c->dtype, dst, c->array.dtype, src, count);
}

/* Computes in double, so that the result is rounded only once. */
static void emit_scaled(const column *c, const void *src, void *dst, size_t count) {
    double numbers[chunk];
    const size_t bytes = leat_dtype_bytes(c->array.dtype);
    const double numerator = c->options.numerator, denominator = c->options.denominator;
    float *to = dst;
    for (size_t i = 0; i < count; i += chunk) {
        const size_t n = count - i < chunk ? count - i : chunk;
        leati_convert(LEAT_F64, numbers, c->array.dtype, (const unsigned char *)src + i * bytes, n);
        for (size_t k = 0; k < n; ++k) to[i + k] = (float)(numbers[k] * numerator / denominator);
    }
}

static void emit_from_table(const column *c, const void *src, void *dst, size_t count) {
    const unsigned char *from = src;
    float *to = dst;
    for (size_t i = 0; i < count; ++i) to[i] = c->table[from[i]];
}

/* Converts `count` elements with the strides `over`, beginning at `src`. */
static void convert_span(const column *c, const leati_strides *over, const unsigned char *src, size_t count,
                         unsigned char *dst) {
    const size_t bytes = over->bytes, to_bytes = leat_dtype_bytes(c->dtype);
    uint64_t buffer[chunk]; /* aligned for every type */
    leati_strided_walk walk = leati_strided_begin(over, src);
    if (!c->emit) {
        leati_strided_take(&walk, dst, (int64_t)count);
        if (c->array.swapped) leati_swap_bytes(dst, bytes, count);
        return;
    }
    if (leati_strides_are_dense(over) && !c->array.swapped && (uintptr_t)src % bytes == 0) {
        c->emit(c, src, dst, count);
        return;
    }
    for (size_t i = 0; i < count; i += chunk) {
        const size_t n = count - i < chunk ? count - i : chunk;
        leati_strided_take(&walk, buffer, (int64_t)n);
        if (c->array.swapped) leati_swap_bytes(buffer, bytes, n);
        c->emit(c, buffer, dst + i * to_bytes, n);
    }
}

static leat_status convert_rows(const column *c, int64_t first, int64_t rows, unsigned char *dst,
                                leat_error *err) {
    (void)err;
    if (c->dense) {
        const size_t count = (size_t)rows * c->row_count, bytes = c->row.bytes;
        const leati_strides over = {.bytes = bytes,
                                    .rank = 1,
                                    .shape = {(int64_t)count},
                                    .stride = {(int64_t)bytes}};
        convert_span(c, &over, row_at(c, first), count, dst);
        return LEAT_OK;
    }
    for (int64_t i = 0; i < rows; ++i)
        convert_span(c, &c->row, row_at(c, first + i), c->row_count, dst + (size_t)i * c->row_dst_bytes);
    return LEAT_OK;
}

/* Returns the integer that is the only element of a row. */
static int64_t label_of(const column *c, int64_t row) {
    uint64_t element; /* aligned for every type */
    memcpy(&element, row_at(c, row), c->row.bytes);
    if (c->array.swapped) leati_swap_bytes(&element, c->row.bytes, 1);
    return leati_integer_at(c->array.dtype, &element, 0);
}

static leat_status convert_onehot(const column *c, int64_t first, int64_t rows, unsigned char *dst,
                                  leat_error *err) {
    memset(dst, 0, (size_t)rows * c->row_dst_bytes);
    for (int64_t i = 0; i < rows; ++i) {
        const int64_t label = label_of(c, first + i);
        if (label < 0 || label >= c->options.onehot)
            return leati_fail(err, LEAT_EINVAL,
                              "the label of sample %lld is %lld, expected 0 to %lld (onehot=%lld)",
                              (long long)(first + i), (long long)label, (long long)c->options.onehot - 1,
                              (long long)c->options.onehot);
        ((float *)(void *)(dst + (size_t)i * c->row_dst_bytes))[label] = 1;
    }
    return LEAT_OK;
}

/* ---- Adding ---- */

static const char *part_name(leat_batch_part part) {
    return part == LEAT_PART_INPUT ? "input" : part == LEAT_PART_TARGET ? "target" : "sample weight";
}

static leat_status check_samples(leati_columns *columns, const leati_array *array, const char *origin,
                                 leat_error *err) {
    if (array->rank < 1)
        return leati_fail(err, LEAT_ESHAPE, "'%s' has rank 0, expected samples in its first dimension",
                          origin);
    if (array->shape[0] < 1) return leati_fail(err, LEAT_ESHAPE, "'%s' has no samples", origin);
    if (columns->numbered.spec.tensor_count > 0 && array->shape[0] != columns->numbered.samples)
        return leati_fail(err, LEAT_ESHAPE, "'%s' has %lld samples, but the arrays before it have %lld",
                          origin, (long long)array->shape[0], (long long)columns->numbered.samples);
    columns->numbered.samples = array->shape[0];
    return LEAT_OK;
}

/* Gives the samples the shape of the option. */
static leat_status reshape(column *c, const char *origin, leat_error *err) {
    int64_t present = leati_array_count(&c->array) / c->array.shape[0], wanted = 1;
    bool fits = true;
    for (int i = 0; i < c->options.shape_rank; ++i)
        fits = fits && leati_mul_i64(wanted, c->options.shape[i], &wanted);
    if (!fits || wanted != present) {
        char from[96], to[96];
        return leati_fail(err, LEAT_ESHAPE, "'%s': cannot reshape samples of shape %s to %s", origin,
                          leati_shape_text(from, sizeof from, c->array.rank - 1, c->array.shape + 1),
                          leati_shape_text(to, sizeof to, c->options.shape_rank, c->options.shape));
    }
    c->array.rank = c->options.shape_rank + 1;
    memcpy(c->array.shape + 1, c->options.shape, (size_t)c->options.shape_rank * sizeof *c->options.shape);
    return LEAT_OK;
}

static leat_status choose_onehot(column *c, const char *origin, leat_error *err) {
    if (!leati_dtype_is_integer(c->array.dtype))
        return leati_fail(err, LEAT_EDTYPE, "'%s': onehot needs integers, the array has type '%s'", origin,
                          leati_dtype_code(c->array.dtype));
    if (leati_array_count(&c->array) != c->array.shape[0])
        return leati_fail(err, LEAT_ESHAPE, "'%s': onehot needs one label for each sample", origin);
    c->convert = convert_onehot;
    c->array.rank = 2;
    c->array.shape[1] = c->options.onehot;
    return LEAT_OK;
}

leat_status leati_scaled_bytes(float **out, double numerator, double denominator, leat_error *err) {
    *out = NULL;
    if (denominator == 0) return LEAT_OK;
    float *table = leati_calloc(256, sizeof *table);
    if (!table) return leati_fail_memory(err, 256 * sizeof *table, "a table of scaled bytes");
    for (int i = 0; i < 256; ++i) table[i] = (float)(i * numerator / denominator);
    *out = table;
    return LEAT_OK;
}

static leat_status choose_scale(column *c, leat_error *err) {
    c->emit = emit_scaled;
    if (c->array.dtype != LEAT_U8) return LEAT_OK;
    c->emit = emit_from_table;
    return leati_scaled_bytes(&c->table, c->options.numerator, c->options.denominator, err);
}

/* Computes the strides of the rows. */
static void set_strides(column *c) {
    const leati_array *array = &c->array;
    const size_t bytes = leat_dtype_bytes(array->dtype);
    const int64_t *strides = array->strided ? array->strides : NULL;
    const leati_strides whole = leati_strides_make(bytes, array->rank, array->shape, strides);
    c->row = leati_strides_make(bytes, array->rank - 1, array->shape + 1, strides ? strides + 1 : NULL);
    c->dense = leati_strides_are_dense(&whole);
    c->row_count = (size_t)(leati_array_count(array) / array->shape[0]);
    c->row_stride = strides ? (ptrdiff_t)strides[0] : (ptrdiff_t)(c->row_count * bytes);
}

/* Chooses the conversion and the data type of the batch's tensor. */
static leat_status choose_conversion(column *c, leat_batch_part part, const char *origin, leat_error *err) {
    const bool scaled = part == LEAT_PART_INPUT && c->options.denominator != 0;
    set_strides(c);
    c->dtype = LEAT_F32;
    if (part == LEAT_PART_INPUT && c->options.shape_rank >= 0) LEATI_TRY(reshape(c, origin, err));
    if (part == LEAT_PART_TARGET && c->options.onehot > 0) return choose_onehot(c, origin, err);
    c->convert = convert_rows;
    if (scaled) return choose_scale(c, err);
    if (c->array.dtype != LEAT_F64 && part != LEAT_PART_SAMPLE_WEIGHT) c->dtype = c->array.dtype;
    if (c->dtype != c->array.dtype) c->emit = emit_converted;
    return LEAT_OK;
}

static leat_status add(leati_columns *columns, leat_batch_part part, const char *name, column *c,
                       const char *origin, leat_error *err) {
    if (columns->numbered.spec.tensor_count == LEAT_BATCH_MAX_TENSORS) return leati_fail_tensors(err);
    LEATI_TRY(check_samples(columns, &c->array, origin, err));
    LEATI_TRY(choose_conversion(c, part, origin, err));
    if (c->array.rank == 1 && part != LEAT_PART_SAMPLE_WEIGHT) c->array.shape[c->array.rank++] = 1;
    c->row_dst_bytes = leati_count_bytes(leati_shape_count(c->array.rank - 1, c->array.shape + 1),
                                         leat_dtype_bytes(c->dtype));
    return leat_batch_spec_add(&columns->numbered.spec, part, name, c->dtype, c->array.rank - 1,
                               c->array.shape + 1, err);
}

leat_status leati_columns_add(leati_columns *columns, leat_batch_part part, const char *name,
                              const leati_array *array, const leati_column_options *options,
                              const char *origin, leat_error *err) {
    column c = {.array = *array, .options = *options};
    leat_status status = add(columns, part, name, &c, origin, err);
    if (status == LEAT_OK) {
        columns->columns[columns->numbered.spec.tensor_count - 1] = c;
        return LEAT_OK;
    }
    leati_free(c.table);
    return leati_prefix(status, err, "%s", part_name(part));
}

/* ---- The sequence ---- */

/* Checks that the rows came from the file: the guarded mapping shows zeros for pages that the file no longer has.
 * If the array is not contiguous, all of it is checked.  Errors: LEAT_EIO. */
static leat_status check_rows(const column *c, int64_t first, int64_t rows, leat_error *err) {
    if (!c->array.map) return LEAT_OK;
    if (!c->dense) return leati_map_check(c->array.map, c->array.data, c->array.bytes, err);
    return leati_map_check(c->array.map, row_at(c, first), (size_t)rows * (size_t)c->row_stride, err);
}

static leat_status check_samples_read(const leati_columns *columns, const int64_t *numbers, int64_t count,
                                      leat_error *err) {
    int64_t first = numbers[0], last = numbers[0];
    for (int64_t i = 1; i < count; ++i) {
        if (numbers[i] < first) first = numbers[i];
        if (numbers[i] > last) last = numbers[i];
    }
    for (int k = 0; k < columns->numbered.spec.tensor_count; ++k)
        LEATI_TRY(check_rows(&columns->columns[k], first, last - first + 1, err));
    return LEAT_OK;
}

/* Reads rows and converts them, some at a time. */
static leat_status read_rows(const column *c, int64_t first, int64_t rows, unsigned char *dst,
                             leat_error *err) {
    const leati_array_reader *reader = &c->array.reader;
    const size_t bytes = (size_t)c->row_stride;
    if (!reader->read) return c->convert(c, first, rows, dst, err);
    if (c->convert == convert_rows && !c->emit) return reader->read(reader->user, first, rows, dst, err);
    const int64_t fitting = (int64_t)((size_t)READ_BYTES / (bytes + 1)) + 1,
                  most = rows < fitting ? rows : fitting;
    column piece = *c;
    unsigned char *memory = leati_calloc_aligned(leati_count_bytes(most, bytes));
    if (!memory) return leati_fail_memory(err, leati_count_bytes(most, bytes), "rows of a dataset");
    leat_status status = LEAT_OK;
    for (int64_t done = 0; done < rows && status == LEAT_OK; done += most) {
        const int64_t some = rows - done < most ? rows - done : most;
        piece.array.data = memory;
        piece.first = first + done;
        status = reader->read(reader->user, piece.first, some, memory, err);
        if (status == LEAT_OK)
            status = c->convert(&piece, piece.first, some, dst + (size_t)done * c->row_dst_bytes, err);
    }
    leati_free(memory);
    return status;
}

static leat_status make_batch(leati_numbered *source, const int64_t *numbers, int64_t count, leat_rng *rng,
                              leat_batch *batch, leat_error *err) {
    const leati_columns *columns = (const leati_columns *)source;
    (void)rng;
    for (int64_t i = 0, rows = 1; i < count; i += rows) {
        for (rows = 1; i + rows < count && numbers[i + rows] == numbers[i] + rows; ++rows) {
        }
        for (int k = 0; k < columns->numbered.spec.tensor_count; ++k) {
            const column *c = &columns->columns[k];
            unsigned char *dst = batch->tensors[k].data;
            LEATI_TRY(read_rows(c, numbers[i], rows, dst + (size_t)i * c->row_dst_bytes, err));
        }
    }
    return check_samples_read(columns, numbers, count, err);
}

static void destroy(leati_numbered *source) {
    leati_columns_destroy((leati_columns *)source);
}

leat_status leati_columns_finish(leat_sequence *out, leati_columns *columns, leat_error *err) {
    *out = (leat_sequence){0};
    if (leat_batch_spec_count(&columns->numbered.spec, LEAT_PART_INPUT) == 0) {
        leati_columns_destroy(columns);
        return leati_fail(err, LEAT_EINVAL, "a source needs at least one input");
    }
    leati_columns_finish_any(out, columns);
    return LEAT_OK;
}

leat_status leati_columns_set_path(leati_columns *columns, const char *path, leat_error *err) {
    columns->path = leati_strdup(path);
    return columns->path ? LEAT_OK : leati_fail_memory(err, strlen(path), "the name of a file");
}

void leati_columns_set_place(leati_columns *columns,
                             leati_row_place (*find)(const void *owner, int64_t row)) {
    columns->find = find;
}

bool leati_columns_place(const leat_sequence *sequence, int64_t sample, leati_row_place *out) {
    const leati_columns *columns = (const leati_columns *)leati_numbered_of(sequence, make_batch);
    if (!columns || (!columns->path && !columns->find)) return false;
    *out = columns->find ? columns->find(columns->owner, sample)
                         : (leati_row_place){columns->path, false, sample};
    return true;
}

int leati_columns_count(const leati_columns *columns) {
    return columns->numbered.spec.tensor_count;
}

void leati_columns_finish_any(leat_sequence *out, leati_columns *columns) {
    columns->numbered.make = make_batch;
    columns->numbered.destroy = destroy;
    *out = leati_numbered_sequence(&columns->numbered);
}
