/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of `leat feed bench` and `leat feed trace`; bench.c measures, bench_report.c prints. */
#ifndef LEAT_CLI_COMMANDS_FEED_BENCH_H
#define LEAT_CLI_COMMANDS_FEED_BENCH_H

#include <sha2.h>

#include "cli/run/session.h"
#include "cli/commands/feed/synthetic.h"

enum { CLI_BENCH_TURNOVERS = 1024 };

typedef struct cli_bench {
    cli_session session;
    cli_synthetic synthetic;
    leat_feed_options options;
    leat_trace *trace;
    int64_t consume_us;
    bool digest;
    SHA2_CTX sha;
    char sha_text[SHA256_DIGEST_STRING_LENGTH];
    int64_t opening_ns; /* time before leat_feed_open */
    int64_t first_ns;   /* time when the first batch arrived */
    int64_t last_ns;    /* time when the last batch was released */
    int64_t batches, passes;
    int64_t turnovers;                        /* number of measured times between two passes */
    int64_t turnover_ns[CLI_BENCH_TURNOVERS]; /* these times, sorted after the measurement */
    leat_feed_stats stats;
} cli_bench;

/* Print the result on standard output, as text or as one JSON object. */
void cli_bench_print(const cli_bench *bench);
void cli_bench_print_json(const cli_bench *bench);

#endif
