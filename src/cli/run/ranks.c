/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the ranks of a command.  Room: cli. */
#include "cli/run/ranks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/options/parse.h"
#include "cli/run/session.h"
#include "cli/text/say.h"

/* Lets this rank write its messages to a file without a name, and its results nowhere. */
static void hold_messages(cli_ranks *ranks) {
    FILE *file = tmpfile();
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        (void)dup2(nowhere, STDOUT_FILENO);
        (void)close(nowhere);
    }
    ranks->shown = dup(STDERR_FILENO);
    if (!file || ranks->shown < 0 || dup2(fileno(file), STDERR_FILENO) < 0) return;
    ranks->held = fileno(file); /* the stream stays open until the process ends */
    ranks->is_held = true;
}

/* Writes the messages to the standard error, behind the rank and its host. */
static void show_messages(const cli_ranks *ranks) {
    static char text[4096];
    const int rank = leat_dist_rank(ranks->dist);
    fflush(stderr);
    ssize_t bytes = pread(ranks->held, text, sizeof text - 1, 0);
    (void)dup2(ranks->shown, STDERR_FILENO);
    if (bytes > 0) cli_say("rank %d (host %s): %s", rank, leat_dist_host(ranks->dist, rank), text);
}

static int read_kind(const char *command, const cli_arguments *arguments, const char *recorded,
                     leat_dist_kind *kind, bool *alone) {
    const char *text = arguments->text[CLI_DIST];
    *kind = LEAT_DIST_AUTO;
    *alone = false;
    if (!text || strcmp(text, "auto") == 0)
        *alone = !leat_dist_is_launched() && (!recorded || strcmp(recorded, "none") == 0);
    else if (strcmp(text, "none") == 0)
        *alone = true;
    else if (strcmp(text, "self") == 0)
        *kind = LEAT_DIST_SELF;
    else if (strcmp(text, "mpi") == 0)
        *kind = LEAT_DIST_MPI;
    else {
        cli_say("leat %s: --dist: expected auto, none, self or mpi, received '%s'\n", command, text);
        return CLI_USAGE;
    }
    return CLI_SUCCESS;
}

static int count_hosts(const leat_dist *dist) {
    int hosts = 0;
    for (int i = 0; i < leat_dist_size(dist); ++i) {
        int first = 0;
        while (strcmp(leat_dist_host(dist, first), leat_dist_host(dist, i)) != 0) ++first;
        hosts += first == i;
    }
    return hosts;
}

/* Says how many ranks there are, and on which cores. */
static void print_ranks(const leat_dist *dist) {
    const int size = leat_dist_size(dist), hosts = count_hosts(dist);
    int least = leat_dist_cores(dist, 0), most = least, sharers = 0;
    char cores[64], sharing[64] = "of its own";
    for (int i = 0; i < size; ++i) {
        const int its = leat_dist_cores(dist, i), sharing_it = leat_dist_sharers(dist, i);
        least = its < least ? its : least;
        most = its > most ? its : most;
        sharers = sharing_it > sharers ? sharing_it : sharers;
    }
    snprintf(cores, sizeof cores, least == most ? "%d" : "%d to %d", least, most);
    if (sharers > 1)
        snprintf(sharing, sizeof sharing, "shared by %s%d ranks", least == most ? "" : "up to ", sharers);
    cli_say("leat: %d ranks on %d host%s, each on %s core%s %s\n", size, hosts, hosts == 1 ? "" : "s", cores,
            most == 1 ? "" : "s", sharing);
}

int cli_ranks_open(cli_ranks *ranks, const char *command, const cli_arguments *arguments,
                   const char *recorded) {
    leat_dist_options options = leat_dist_options_default();
    leat_error err = {0};
    bool alone = false;
    int code = read_kind(command, arguments, recorded, &options.kind, &alone);
    if (code != CLI_SUCCESS || alone || ranks->dist) return code;
    options.timeout_ms = cli_number(arguments, CLI_DIST_TIMEOUT, options.timeout_ms);
    if (leat_dist_open(&ranks->dist, &options, &err) != LEAT_OK) {
        cli_say("leat %s: %s\n", command, err.message);
        if (leat_dist_is_launched())
            _exit(CLI_FAILURE); /* a thread may hang inside MPI, and would hold up exit */
        return CLI_FAILURE;
    }
    if (!cli_ranks_leads(ranks))
        hold_messages(ranks);
    else if (leat_dist_size(ranks->dist) > 1 && cli_number(arguments, CLI_VERBOSE, 1) > 0)
        print_ranks(ranks->dist);
    return CLI_SUCCESS;
}

bool cli_ranks_leads(const cli_ranks *ranks) {
    return leat_dist_rank(ranks->dist) == 0;
}

int cli_ranks_close(cli_ranks *ranks, int code) {
    const struct timespec second = {.tv_sec = 1}, moment = {.tv_nsec = 200000000};
    if (!ranks->dist) return code;
    if (code == CLI_SUCCESS || (cli_signal_code() && code == cli_signal_code())) {
        leat_dist_close(&ranks->dist);
        return code;
    }
    if (!cli_ranks_leads(ranks) && !leat_dist_is_broken(ranks->dist)) (void)nanosleep(&second, NULL);
    if (ranks->is_held) show_messages(ranks);
    fflush(stdout);
    fflush(stderr);
    (void)nanosleep(&moment, NULL); /* MPICH's launcher drops what it has not yet read when a rank aborts */
    leat_dist_abort(ranks->dist, code);
    _exit(code);
}
