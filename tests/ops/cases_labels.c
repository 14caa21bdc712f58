/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on indices.  ONE_HOT, ARGMAX, IN_TOP_K have no gradient, and their outputs are exact on every backend; GATHER
 * looks some rows up several times and others never. */
#include "ops/harness.h"

#define LABELS(title, which, attributes, count, ...)                                                         \
    {                                                                                                        \
        .name = title, .op = LEATI_OP_##which, .attrs = {attributes}, .input_count = (count), .inputs = {    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define WITH(...) __VA_ARGS__

const op_case cases_labels[] = {
    LABELS("one_hot, bool", ONE_HOT, WITH(.one_hot = {5}), 1, OP_TYPED(LEAT_BOOL, 0, 6, 12)),
    LABELS("gather, bool", GATHER, WITH(.gather = {0}), 2, OP_F32(6, 5), OP_TYPED(LEAT_BOOL, 0, 1, 7)),
    LABELS("in_top_k, bool", IN_TOP_K, WITH(.top_k = {2}), 2, OP_F32(20, 6), OP_TYPED(LEAT_BOOL, 0, 1, 20)),
    LABELS("one_hot, i8", ONE_HOT, WITH(.one_hot = {5}), 1, OP_TYPED(LEAT_I8, -1, 6, 12)),
    LABELS("gather, i8", GATHER, WITH(.gather = {0}), 2, OP_F32(6, 5), OP_TYPED(LEAT_I8, 0, 5, 7)),
    LABELS("in_top_k, i8", IN_TOP_K, WITH(.top_k = {2}), 2, OP_F32(20, 6), OP_TYPED(LEAT_I8, 0, 5, 20)),
    LABELS("one_hot, i16", ONE_HOT, WITH(.one_hot = {5}), 1, OP_TYPED(LEAT_I16, -1, 6, 12)),
    LABELS("gather, i16", GATHER, WITH(.gather = {0}), 2, OP_F32(6, 5), OP_TYPED(LEAT_I16, 0, 5, 7)),
    LABELS("in_top_k, i16", IN_TOP_K, WITH(.top_k = {2}), 2, OP_F32(20, 6), OP_TYPED(LEAT_I16, 0, 5, 20)),
    LABELS("one_hot, u16", ONE_HOT, WITH(.one_hot = {5}), 1, OP_TYPED(LEAT_U16, 0, 6, 12)),
    LABELS("gather, u16", GATHER, WITH(.gather = {0}), 2, OP_F32(6, 5), OP_TYPED(LEAT_U16, 0, 5, 7)),
    LABELS("in_top_k, u16", IN_TOP_K, WITH(.top_k = {2}), 2, OP_F32(20, 6), OP_TYPED(LEAT_U16, 0, 5, 20)),
    LABELS("one_hot, u32", ONE_HOT, WITH(.one_hot = {5}), 1, OP_TYPED(LEAT_U32, 0, 6, 12)),
    LABELS("gather, u32", GATHER, WITH(.gather = {0}), 2, OP_F32(6, 5), OP_TYPED(LEAT_U32, 0, 5, 7)),
    LABELS("in_top_k, u32", IN_TOP_K, WITH(.top_k = {2}), 2, OP_F32(20, 6), OP_TYPED(LEAT_U32, 0, 5, 20)),
    LABELS("one_hot, u64", ONE_HOT, WITH(.one_hot = {5}), 1, OP_TYPED(LEAT_U64, 0, 6, 12)),
    LABELS("gather, u64", GATHER, WITH(.gather = {0}), 2, OP_F32(6, 5), OP_TYPED(LEAT_U64, 0, 5, 7)),
    LABELS("in_top_k, u64", IN_TOP_K, WITH(.top_k = {2}), 2, OP_F32(20, 6), OP_TYPED(LEAT_U64, 0, 5, 20)),
    LABELS("one_hot, f16", ONE_HOT, WITH(.one_hot = {5}), 1, OP_TYPED(LEAT_F16, -1, 6, 12)),
    LABELS("one_hot, u8", ONE_HOT, WITH(.one_hot = {5}), 1, OP_TYPED(LEAT_U8, 0, 6, 12)),
    LABELS("one_hot, i64", ONE_HOT, WITH(.one_hot = {5}), 1, OP_TYPED(LEAT_I64, -1, 6, 4, 3)),
    LABELS("one_hot, f32", ONE_HOT, WITH(.one_hot = {5}), 1, OP_TYPED(LEAT_F32, -1, 6, 12)),
    LABELS("argmax, last axis", ARGMAX, WITH(.argmax = {.axis = 1}), 1, OP_TYPED(LEAT_F32, 0, 3, 20, 6)),
    LABELS("argmax, first axis", ARGMAX, WITH(.argmax = {.axis = 0}), 1, OP_TYPED(LEAT_F32, 0, 3, 6, 5)),
    LABELS("argmax, long rows", ARGMAX, WITH(.argmax = {.axis = 1}), 1, OP_TYPED(LEAT_F32, 0, 30, 9, 45)),
    LABELS("argmax, many columns", ARGMAX, WITH(.argmax = {.axis = 1}), 1,
           OP_TYPED(LEAT_F32, 0, 3, 2, 6, 21)),
    LABELS("in_top_k, long rows", IN_TOP_K, WITH(.top_k = {5}), 2, OP_F32(40, 21),
           OP_TYPED(LEAT_I32, 0, 20, 40)),
    LABELS("in_top_k", IN_TOP_K, WITH(.top_k = {2}), 2, OP_TYPED(LEAT_F32, 0, 4, 20, 6),
           OP_TYPED(LEAT_I32, 0, 6, 20)),
    LABELS("in_top_k, i64", IN_TOP_K, WITH(.top_k = {1}), 2, OP_F32(20, 6), OP_TYPED(LEAT_I64, 0, 5, 20)),
    LABELS("gather, i32", GATHER, WITH(.gather = {0}), 2, OP_F32(6, 5), OP_TYPED(LEAT_I32, 0, 4, 7)),
    {.name = "gather, f32",
     .op = LEATI_OP_GATHER,
     .input_count = 2,
     .inputs = {OP_F32(5, 19), OP_TYPED(LEAT_F32, 0, 4, 4, 3)},
     .constant = 2},
    LABELS("gather, u8, one column", GATHER, WITH(.gather = {0}), 2, OP_F32(3, 1),
           OP_TYPED(LEAT_U8, 0, 2, 2, 2, 2)),
    LABELS("gather, whole vectors", GATHER, WITH(.gather = {0}), 2, OP_F32(4, 36),
           OP_TYPED(LEAT_I32, 0, 3, 5, 3)),
    LABELS("gather, many of few rows", GATHER, WITH(.gather = {0}), 2, OP_F32(5, 1),
           OP_TYPED(LEAT_I32, 0, 4, 9000)),
    {.name = "gather, one row often",
     .op = LEATI_OP_GATHER,
     .input_count = 2,
     .inputs = {OP_F32(2, 4), OP_TYPED(LEAT_F32, 0, 1, 8200)},
     .constant = 2},
    {.name = "gather_bwd of a large table",
     .op = LEATI_OP_GATHER_BWD,
     .attrs = {.gather = {33000}},
     .input_count = 2,
     .inputs = {OP_TYPED(LEAT_I32, 0, 32999, 70), OP_F32(70, 67)},
     .constant = 3},
    LABELS("gather, nothing", GATHER, WITH(.gather = {0}), 2, OP_F32(3, 4), OP_TYPED(LEAT_I64, 0, 2, 0, 2)),
    {0}};
