/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of `leat fit`, `evaluate` or `predict` under mpirun or srun.
 * Rank 0 speaks and writes; others are silent unless they alone fail. */
#ifndef LEAT_CLI_RUN_RANKS_H
#define LEAT_CLI_RUN_RANKS_H

#include <stdbool.h>

#include "cli/options/table.h"
#include "leat/dist.h"

typedef struct cli_ranks {
    leat_dist *dist; /* NULL: this process trains alone */
    bool is_held;    /* messages of this rank are held back in `held` */
    int held, shown; /* descriptors: the file of the messages, and the standard error */
} cli_ranks;

/* Connects this process with the other ranks, as --dist says.  command: "fit", for messages.
 * recorded: --dist of the run that --resume continues; NULL: none.  Returns an exit code after a message. */
int cli_ranks_open(cli_ranks *ranks, const char *command, const cli_arguments *arguments,
                   const char *recorded);

/* Returns true if this rank speaks and writes: rank 0, or the only process. */
bool cli_ranks_leads(const cli_ranks *ranks);

/* Disconnects at the end of the command and returns `code`.  After a failure it ends all ranks; a rank other than 0
 * then shows its messages, unless rank 0 shows its own within a second. */
int cli_ranks_close(cli_ranks *ranks, int code);

#endif
