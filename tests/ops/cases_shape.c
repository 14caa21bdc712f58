/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that move elements, DROPOUT among them; other types than f32 where they are allowed. */
#include "ops/harness.h"

#define SHAPE(title, which, attributes, count, ...)                                                          \
    {                                                                                                        \
        .name = title, .op = LEATI_OP_##which, .attrs = {attributes}, .input_count = (count), .inputs = {    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define WITH(...) __VA_ARGS__

const op_case cases_shape[] = {
    SHAPE("concat, last axis", CONCAT, WITH(.concat = {.axis = 2}), 3, OP_F32(2, 3, 4), OP_F32(2, 3, 1),
          OP_F32(2, 3, 2)),
    SHAPE("concat, first axis", CONCAT, WITH(.concat = {.axis = 0}), 2, OP_F32(2, 3), OP_F32(4, 3)),
    SHAPE("concat, one", CONCAT, WITH(.concat = {.axis = 1}), 1, OP_F32(2, 3)),
    SHAPE("concat, bytes", CONCAT, WITH(.concat = {.axis = 1}), 2, OP_TYPED(LEAT_U8, 0, 9, 2, 3),
          OP_TYPED(LEAT_U8, 0, 9, 2, 2)),
    SHAPE("slice", SLICE, WITH(.slice = {.start = {1, 0, 2}, .size = {2, 3, 1}}), 1, OP_F32(4, 3, 4)),
    SHAPE("slice, all", SLICE, WITH(.slice = {.size = {4, 3}}), 1, OP_F32(4, 3)),
    SHAPE("slice, i64", SLICE, WITH(.slice = {.start = {1, 1}, .size = {2, 2}}), 1,
          OP_TYPED(LEAT_I64, -5, 5, 4, 3)),
    SHAPE("pad", PAD, WITH(.pad = {.before = {0, 1, 2}, .after = {0, 2, 0}, .value = 1.5f}), 1,
          OP_F32(2, 3, 4)),
    SHAPE("pad, nothing", PAD, WITH(.pad = {.value = 0}), 1, OP_F32(2, 3)),
    SHAPE("transpose, matrix", TRANSPOSE, WITH(.transpose = {{1, 0}}), 1, OP_F32(4, 5)),
    SHAPE("transpose, four axes", TRANSPOSE, WITH(.transpose = {{0, 3, 1, 2}}), 1, OP_F32(2, 3, 4, 5)),
    SHAPE("transpose, a cycle", TRANSPOSE, WITH(.transpose = {{2, 0, 1}}), 1, OP_F32(2, 3, 4)),
    SHAPE("transpose, squares", TRANSPOSE, WITH(.transpose = {{0, 2, 1}}), 1, OP_F32(2, 19, 35)),
    SHAPE("transpose, channels first", TRANSPOSE, WITH(.transpose = {{0, 3, 1, 2}}), 1, OP_F32(2, 5, 7, 3)),
    SHAPE("transpose, channels last", TRANSPOSE, WITH(.transpose = {{0, 2, 3, 1}}), 1, OP_F32(1, 3, 20, 21)),
    SHAPE("transpose, all turned", TRANSPOSE, WITH(.transpose = {{3, 2, 1, 0}}), 1, OP_F32(3, 2, 4, 18)),
    SHAPE("transpose, i32", TRANSPOSE, WITH(.transpose = {{1, 0}}), 1, OP_TYPED(LEAT_I32, -9, 9, 17, 5)),
    SHAPE("transpose, f64", TRANSPOSE, WITH(.transpose = {{1, 0}}), 1, OP_TYPED(LEAT_F64, 0, 9, 4, 5)),
    SHAPE("reshape", RESHAPE, WITH(.shape = {.rank = 2, .dims = {4, 6}}), 1, OP_F32(2, 3, 4)),
    SHAPE("reverse, first axis", REVERSE, WITH(.reverse = {.axis = 0}), 1, OP_F32(4, 3)),
    SHAPE("reverse, inner axis", REVERSE, WITH(.reverse = {.axis = 1}), 1, OP_F32(2, 4, 3)),
    SHAPE("copy", COPY, WITH(.concat = {0}), 1, OP_F32(2, 4, 3)),
    SHAPE("cast, f32 scaled", CAST, WITH(.cast = {.dtype = LEAT_F32, .scale = 0.5f}), 1, OP_F32(4, 3)),
    SHAPE("cast, bytes to f32", CAST, WITH(.cast = {.dtype = LEAT_F32, .scale = 1.0f / 255}), 1,
          OP_TYPED(LEAT_U8, 0, 255, 4, 5)),
    SHAPE("cast, i64 to f32", CAST, WITH(.cast = {.dtype = LEAT_F32, .scale = 1}), 1,
          OP_TYPED(LEAT_I64, -1000, 1000, 4, 5)),
    SHAPE("cast, i32 to f32", CAST, WITH(.cast = {.dtype = LEAT_F32, .scale = 0.5f}), 1,
          OP_TYPED(LEAT_I32, -1000, 1000, 4, 15)),
    SHAPE("cast, f64 to f32", CAST, WITH(.cast = {.dtype = LEAT_F32, .scale = 1}), 1,
          OP_TYPED(LEAT_F64, -1000, 1000, 4, 15)),
    SHAPE("cast, f64 to i32", CAST, WITH(.cast = {.dtype = LEAT_I32, .scale = 1}), 1,
          OP_TYPED(LEAT_F64, -1000, 1000, 4, 5)),
    SHAPE("dropout", DROPOUT, WITH(.dropout = {.rate = 0.4f, .stream = 9}), 1, OP_F32(5, 7)),
    SHAPE("dropout, shared axes", DROPOUT, WITH(.dropout = {.rate = 0.5f, .shared = 2, .stream = 2}), 1,
          OP_F32(4, 3, 5)),
    SHAPE("dropout, none", DROPOUT, WITH(.dropout = {.rate = 0}), 1, OP_F32(4, 3)),
    SHAPE("random_normal", RANDOM_NORMAL, WITH(.random_normal = {.mean = 1, .stddev = 2, .stream = 5}), 1,
          OP_F32(7, 31)),
    SHAPE("random_normal, one", RANDOM_NORMAL, WITH(.random_normal = {.stddev = 1}), 1, OP_F32(1)),
    {0}};
