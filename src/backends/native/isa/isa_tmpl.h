/* SPDX-License-Identifier: Apache-2.0 */
/* The body of isa_*.c: all code that is compiled once per instruction set, and the table of its functions.  The
 * including file defines LEATI_ISA (the table's name), LEATI_ISA_NAME and LEATI_LANES; CMake compiles it with the
 * options of that instruction set. */
#include "backends/native/attention/backward_tmpl.h"
#include "backends/native/attention/forward_tmpl.h"
#include "backends/native/norm/batch_norm_tmpl.h"
#include "backends/native/conv/depthwise_forward_tmpl.h"
#include "backends/native/conv/depthwise_tmpl.h"
#include "backends/native/conv/few_filters_tmpl.h"
#include "backends/native/conv/grouped_tmpl.h"
#include "backends/native/elementwise/gather_tmpl.h"
#include "backends/native/norm/group_norm_tmpl.h"
#include "backends/native/elementwise/loops_tmpl.h"
#include "backends/native/elementwise/pooling_tmpl.h"
#include "backends/native/rnn/rnn_tmpl.h"
#include "backends/native/rnn/cell_tmpl.h"
#include "backends/native/elementwise/reduce_tmpl.h"
#include "backends/native/elementwise/resample_tmpl.h"
#include "backends/native/matmul/few_rows_tmpl.h"
#include "backends/native/matmul/matvec_tmpl.h"
#include "backends/native/matmul/streamed_tmpl.h"
#include "backends/native/elementwise/softmax_tmpl.h"
#include "backends/native/elementwise/update_rows_tmpl.h"
#include "backends/native/narrow/narrow_tmpl.h"
#include "backends/native/simd/transpose_tmpl.h"
#include "backends/native/conv/winograd_line_tmpl.h"
#include "backends/native/simd/isa.h"

const leati_native_isa LEATI_ISA = {
    .name = LEATI_ISA_NAME,
    .ranges = {[LEATI_OP_ELTWISE] = eltwise,
               [LEATI_OP_ELTWISE_BWD] = eltwise_bwd,
               [LEATI_OP_BINARY] = binary,
               [LEATI_OP_CAST] = cast,
               [LEATI_OP_DROPOUT] = dropout,
               [LEATI_OP_RANDOM_NORMAL] = random_normal,
               [LEATI_OP_GATHER] = gather,
               [LEATI_OP_GATHER_BWD] = gather_bwd,
               [LEATI_OP_REDUCE] = reduce,
               [LEATI_OP_POOLING] = pooling,
               [LEATI_OP_POOLING_BWD] = pooling_bwd,
               [LEATI_OP_SOFTMAX] = softmax,
               [LEATI_OP_SOFTMAX_BWD] = softmax_bwd,
               [LEATI_OP_SOFTMAX_XENT] = softmax_xent,
               [LEATI_OP_ARGMAX] = argmax,
               [LEATI_OP_IN_TOP_K] = in_top_k,
               [LEATI_OP_RESAMPLE] = resample,
               [LEATI_OP_RESAMPLE_BWD] = resample_bwd,
               [LEATI_OP_LSTM_CELL] = lstm_cell,
               [LEATI_OP_LSTM_CELL_BWD] = lstm_cell_bwd,
               [LEATI_OP_MOVING_AVERAGE] = moving_average,
               [LEATI_OP_UPDATE_SGD] = update_sgd,
               [LEATI_OP_UPDATE_RMSPROP] = update_rmsprop,
               [LEATI_OP_UPDATE_ADAGRAD] = update_adagrad,
               [LEATI_OP_UPDATE_ADADELTA] = update_adadelta,
               [LEATI_OP_UPDATE_ADAM] = update_adam,
               [LEATI_OP_UPDATE_ADAMAX] = update_adamax,
               [LEATI_OP_UPDATE_NADAM] = update_nadam,
               [LEATI_OP_UPDATE_LION] = update_lion},
    .update_rows = update_rows,
    .bf16_to_f32 = bf16_to_f32,
    .f32_to_bf16 = f32_to_bf16,
    .transpose_square = transpose_square,
    .lanes = LEATI_LANES,
    .apply = apply_post,
    .matvec = matvec,
    .few_rows = few_rows,
    .streamed_rows = streamed_rows,
    .product = multiply,
    .pack_columns = pack_columns,
    .pack_bf16_columns = pack_bf16_columns,
    .pack_transposed = pack_transposed,
    .winograd_source = winograd_source,
    .winograd_diff = winograd_diff,
    .winograd_result = winograd_result,
    .winograd_weights = winograd_weights,
    .winograd_weights_back = winograd_weights_back,
    .batch_norm_moments = batch_norm_moments,
    .batch_norm_write = batch_norm_write,
    .batch_norm_sums = batch_norm_sums,
    .batch_norm_diff = batch_norm_diff,
    .group_norm_forward = group_norm_forward,
    .group_norm_backward = group_norm_backward,
    .few_filters_forward = few_filters_forward,
    .few_filters_bwd_weights = few_filters_bwd_weights,
    .grouped_forward = grouped_forward,
    .grouped_bwd_weights = grouped_bwd_weights,
    .depthwise_pack = depthwise_pack,
    .depthwise_forward = depthwise_forward,
    .depthwise_bwd_data = depthwise_bwd_data,
    .depthwise_bwd_weights = depthwise_bwd_weights,
    .panel = LEATI_PANEL,
    .rows = LEATI_ROWS,
    .rnn_scratch = rnn_scratch,
    .rnn_pack = rnn_pack,
    .rnn_pack_transposed = rnn_pack_transposed,
    .rnn_unpack = rnn_unpack,
    .rnn_forward = rnn_forward,
    .rnn_backward = rnn_backward,
    .attention_forward = attention_forward,
    .attention_backward = attention_backward,
    .narrow_prepare_f32 = narrow_prepare_f32,
    .narrow_prepare_int16 = narrow_prepare_int16,
    .narrow_multiply_bf16 = narrow_multiply_bf16,
    .narrow_multiply_int8 = narrow_multiply_int8,
};
