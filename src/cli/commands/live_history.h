/* SPDX-License-Identifier: Apache-2.0 */
/* DIR/history.json of a run that is still going, which `leat report --follow` reads. */
#ifndef LEAT_CLI_COMMANDS_LIVE_HISTORY_H
#define LEAT_CLI_COMMANDS_LIVE_HISTORY_H

#include "leat/callback.h"

/* Creates a callback that writes `folder`/history.json when training begins, after each epoch, and otherwise every 5
 * seconds.  It writes less often, but at least every 15 seconds, if writing would take more than 1 % of the time.  A
 * failure is logged once and does not end training.  Errors: LEAT_EINVAL the path is too long; LEAT_ENOMEM. */
leat_status cli_live_history_create(leat_callback *out, const char *folder, leat_error *err);

#endif
