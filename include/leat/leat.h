/* SPDX-License-Identifier: Apache-2.0 */
/* All of leat's public interface. */
#ifndef LEAT_LEAT_H
#define LEAT_LEAT_H

#include "leat/callback.h"
#include "leat/checkpoint.h"
#include "leat/combine.h"
#include "leat/custom.h"
#include "leat/dist.h"
#include "leat/error.h"
#include "leat/feed.h"
#include "leat/file.h"
#include "leat/fork.h"
#include "leat/helper.h"
#include "leat/inspect.h"
#include "leat/layer.h"
#include "leat/log.h"
#include "leat/model.h"
#include "leat/npz.h"
#include "leat/picture.h"
#include "leat/plugin.h"
#include "leat/predictor.h"
#include "leat/rng.h"
#include "leat/sequence.h"
#include "leat/source.h"
#include "leat/tensor.h"
#include "leat/train.h"
#include "leat/version.h"

#endif
