/* SPDX-License-Identifier: Apache-2.0 */
/* Time and cores, as the machine counts them. */
#ifndef LEATI_BASE_CLOCK_H
#define LEATI_BASE_CLOCK_H

#include <stdint.h>

int64_t leati_now_ns(void); /* monotonic; a set-back of the wall clock does not touch it */

int leati_core_count(void); /* cores this process may run on (its affinity mask), at least 1 */

#endif
