/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers formatted for people.  Room: cli. */
#include "cli/run/figures.h"

#include <stdio.h>

const char *cli_time_text(char out[CLI_TIME_BYTES], double ns) {
    static const struct {
        double ns;
        const char *unit;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
    int i = 0;
    while (i < 2 && ns < units[i].ns) ++i;
    double value = ns / units[i].ns;
    snprintf(out, CLI_TIME_BYTES, "%.*f %s", value >= 100 ? 0 : value >= 10 ? 1 : 2, value, units[i].unit);
    return out;
}
