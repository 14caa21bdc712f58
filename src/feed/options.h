/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks the options of a feed. */
#ifndef LEATI_FEED_OPTIONS_H
#define LEATI_FEED_OPTIONS_H

#include "leat/feed.h"

/* Copies the caller's options, or the defaults for NULL, into a struct of this version.  Errors: those of
 * leati_growing_read. */
leat_status leati_feed_options_read(const leat_feed_options *in, leat_feed_options *out, leat_error *err);

/* Checks options of this version.  Errors: LEAT_EINVAL, LEAT_ENOTSUP. */
leat_status leati_feed_options_check(const leat_feed_options *options, leat_error *err);
leat_status leati_sequence_check(const leat_sequence *sequence, leat_error *err);

#endif
