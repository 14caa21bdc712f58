/* SPDX-License-Identifier: Apache-2.0 */
/* CTC of current Keras: the probability of a list of labels, whatever the time steps at which they occur.  Predictions
 * are logits, whose class 0 is the blank.  Room: nn. */
#include "engine/graph/build.h"
#include "nn/losses/types.h"

static leati_value ctc(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                       leati_value y_pred) {
    (void)options;
    return leati_ctc(g, y_pred, y_true);
}

const leati_loss_type leati_loss_ctc = {.measure = {.name = "ctc", .class_name = "CTC", .lower = ctc},
                                        .label_lists = true};
