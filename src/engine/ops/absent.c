/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that only have a name: the graph refuses their nodes.  A line leaves this list when its row arrives in a file of
 * its family.  Layer: engine. */
#include "engine/ops/rows.h"

#define ABSENT(lower) const leati_op_row leati_op_##lower = {.name = #lower}

ABSENT(matmul);
ABSENT(reduce);
ABSENT(broadcast);
ABSENT(softmax);
ABSENT(softmax_bwd);
ABSENT(softmax_xent);
ABSENT(concat);
ABSENT(slice);
ABSENT(pad);
ABSENT(transpose);
ABSENT(reshape);
ABSENT(reverse);
ABSENT(cast);
ABSENT(copy);
ABSENT(store);
ABSENT(dropout);
ABSENT(one_hot);
ABSENT(argmax);
ABSENT(in_top_k);
ABSENT(moving_average);
ABSENT(update_sgd);
ABSENT(update_rmsprop);
ABSENT(update_adagrad);
ABSENT(update_adadelta);
ABSENT(update_adam);
ABSENT(update_adamax);
ABSENT(update_nadam);
