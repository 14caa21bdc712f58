/* SPDX-License-Identifier: Apache-2.0 */
/* Writes small PNG files to memory, for pages. */
#ifndef LEAT_CLI_COMMANDS_FEED_PNG_H
#define LEAT_CLI_COMMANDS_FEED_PNG_H

#include <stddef.h>
#include <stdint.h>

/* Packs a picture, (height, width, channels) with 1, 3 or 4 channels; a fourth channel is left out.
 * Returns memory for free(), or NULL if there is none. */
unsigned char *cli_png_write(const unsigned char *pixels, int64_t width, int64_t height, int64_t channels,
                             size_t *bytes);

#endif
