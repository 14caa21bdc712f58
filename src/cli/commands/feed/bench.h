/* SPDX-License-Identifier: Apache-2.0 */
/* What `leat feed bench` measured, between the file that measures and the file that reports. */
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
    int64_t opening_ns, first_ns,
        last_ns; /* before leat_feed_open; the first batch was there; the last was released */
    int64_t batches, passes;
    int64_t turnovers; /* between two passes; those kept, in ns, in ascending order once all are there */
    int64_t turnover_ns[CLI_BENCH_TURNOVERS];
    leat_feed_stats stats;
} cli_bench;

/* The result on standard output: figures for people, or one JSON object. */
void cli_bench_print(const cli_bench *bench);
void cli_bench_print_json(const cli_bench *bench);

#endif
