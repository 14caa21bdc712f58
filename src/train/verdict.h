/* SPDX-License-Identifier: Apache-2.0 */
/* Whether training waited for data or for compute, in words. */
#ifndef LEATI_TRAIN_VERDICT_H
#define LEATI_TRAIN_VERDICT_H

#include "leat/train.h"

/* Writes verdict->text from its numbers. */
void leati_verdict_explain(leat_verdict *verdict);

#endif
