/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a run that another process computes, by its history.json and its lock file.  Room: cli. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "cli/report/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/options/table.h"
#include "cli/report/check.h"
#include "cli/run/progress.h"
#include "cli/text/say.h"
#include "leat/version.h"

/* poll_ms: the time between two looks at the file; reload_s: the browser's; silent_s: a run without a lock file whose
 * history.json is older has ended. */
enum { poll_ms = 500, reload_s = 2, silent_s = 60, name_bytes = 160 };

/* ---- The state of a run ---- */

typedef enum lock_state { LOCK_MISSING, LOCK_FREE, LOCK_HELD } lock_state;

/* The process of a run holds a write lock on DIR/lock, which the system releases even if the process is killed. */
static lock_state look_at_lock(const char *folder) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/lock", folder) >= PATH_MAX) return LOCK_MISSING;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return LOCK_MISSING;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    bool held = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    (void)close(fd);
    return held ? LOCK_HELD : LOCK_FREE;
}

static bool is_text(const char *json, const char *text) {
    size_t length = strlen(text);
    return json && json[0] == '"' && strncmp(json + 1, text, length) == 0 && json[length + 1] == '"';
}

static bool says_running(const char *numbers) {
    return is_text(cli_report_member(numbers, "state"), "running");
}

bool cli_report_is_dead(const char *folder, const char *history, const char *numbers) {
    if (!says_running(numbers)) return false;
    lock_state lock = look_at_lock(folder);
    struct stat info;
    if (lock != LOCK_MISSING) return lock == LOCK_FREE;
    return stat(history, &info) != 0 || difftime(time(NULL), info.st_mtime) >= silent_s;
}

/* ---- Texts about a run ---- */

/* Appends formatted text to a string in `bytes` bytes; what does not fit is cut. */
static void add(char *out, size_t bytes, const char *format, ...) LEAT_PRINTF(3, 4);
static void add(char *out, size_t bytes, const char *format, ...) {
    size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out + used, bytes - used, format, arguments);
    va_end(arguments);
}

static void add_number(char *out, size_t bytes, const char *name, const char *json) {
    if (json && (*json == '-' || (*json >= '0' && *json <= '9')))
        add(out, bytes, "%s%s %.4g", strrchr(out, ':') ? ", " : ": ", name, strtod(json, NULL));
}

static int64_t integer(const char *json) {
    return json ? strtoll(json, NULL, 10) : 0;
}

/* Adds the last values of loss and val_loss. */
static void add_losses(char *out, size_t bytes, const char *numbers) {
    static const char *const names[] = {"loss", "val_loss"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        const char *last = NULL;
        cli_report_elements(cli_report_member(cli_report_member(numbers, "history"), names[i]), &last);
        add_number(out, bytes, names[i], last);
    }
}

/* Writes "epoch 3 of 10, step 120 of 500: loss 0.1234" about a run that is going on. */
static void describe_position(char *out, size_t bytes, const char *numbers) {
    const char *progress = cli_report_member(numbers, "progress");
    out[0] = '\0';
    if (!progress) return;
    add(out, bytes, "epoch %lld of %lld, step %lld of %lld",
        (long long)integer(cli_report_member(progress, "epoch")) + 1,
        (long long)integer(cli_report_member(progress, "epochs")),
        (long long)integer(cli_report_member(progress, "step")),
        (long long)integer(cli_report_member(progress, "steps")));
    add_number(out, bytes, "loss", cli_report_member(cli_report_member(progress, "logs"), "loss"));
}

/* Copies a JSON string, in which control characters are escape sequences, without the backslashes of quotes. */
static void copy_text(char *out, size_t bytes, const char *json) {
    size_t used = 0;
    for (++json; *json && *json != '"' && used + 1 < bytes; ++json) {
        if (*json == '\\' && (json[1] == '"' || json[1] == '\\' || json[1] == '/')) ++json;
        out[used++] = *json;
    }
    out[used] = '\0';
}

static void print_end(const cli_report_page *page, const char *numbers, bool died) {
    const char *state = cli_report_member(numbers, "state"), *why = cli_report_member(numbers, "state_text");
    const char *last = NULL;
    int epochs = cli_report_elements(cli_report_member(numbers, "epoch"), &last);
    char text[512] = "", losses[name_bytes] = "";
    if (why && *why == '"') copy_text(text, sizeof text, why);
    add_losses(losses, sizeof losses, numbers);
    const char *how = died                            ? "its process was killed"
                      : is_text(state, "failed")      ? "it failed"
                      : is_text(state, "interrupted") ? "it was interrupted"
                                                      : "it is complete";
    bool has_losses = losses[0] != '\0'; /* ": loss 0.5" */
    cli_say("the run has ended after %d epoch%s%s%s%s: %s%s%s; wrote %s\n", epochs, epochs == 1 ? "" : "s",
            has_losses ? " (" : "", has_losses ? losses + 2 : "", has_losses ? ")" : "", how,
            text[0] ? ": " : "", text, page->output);
}

/* ---- Following ---- */

typedef struct follower {
    const char *folder;
    cli_report_page page;
    char *numbers;    /* the last ones read; NULL: none so far */
    struct stat seen; /* of the file with these numbers */
    bool announced;   /* the user knows which page to open */
    int epochs;       /* epochs printed */
    cli_progress progress;
} follower;

/* Reads the numbers if the file has changed since they were read; *changed says if so. */
static int read_change(follower *f, bool *changed) {
    struct stat now;
    *changed = false;
    if (stat(f->page.history, &now) != 0) {
        cli_say("leat report: cannot read '%s': %s\n", f->page.history, strerror(errno));
        return CLI_FAILURE;
    }
    if (f->numbers && now.st_ino == f->seen.st_ino && now.st_size == f->seen.st_size &&
        now.st_mtim.tv_sec == f->seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == f->seen.st_mtim.tv_nsec)
        return CLI_SUCCESS;
    char *numbers = cli_report_read(&f->page);
    if (!numbers) return CLI_FAILURE;
    free(f->numbers);
    f->numbers = numbers;
    f->seen = now;
    *changed = true;
    return CLI_SUCCESS;
}

/* Says which page to open, once it exists. */
static void announce(follower *f) {
    char *path = realpath(f->page.output, NULL);
    if (!f->announced)
        cli_say("following '%s': open %s in a browser; Ctrl-C ends this command, but not the run\n",
                f->folder, path ? path : f->page.output);
    f->announced = true;
    free(path);
}

/* Shows where the run is: in one line on a terminal, otherwise in a line for each finished epoch. */
static void show_position(follower *f) {
    char text[name_bytes];
    const char *last = NULL;
    int epochs = cli_report_elements(cli_report_member(f->numbers, "epoch"), &last);
    describe_position(text, sizeof text, f->numbers);
    if (f->progress.shown)
        cli_progress_draw(&f->progress, -1, text);
    else if (epochs > f->epochs) {
        snprintf(text, sizeof text, "epoch %lld of %lld", (long long)integer(last) + 1,
                 (long long)integer(cli_report_member(cli_report_member(f->numbers, "progress"), "epochs")));
        add_losses(text, sizeof text, f->numbers);
        cli_say("%s\n", text);
    }
    f->epochs = epochs;
}

/* Writes the page for the last time, without the script's reloading. */
static int write_last_page(follower *f, bool died) {
    f->page.reload_s = 0;
    f->page.died = died;
    return cli_report_write_page(&f->page, f->numbers);
}

/* Writes the page if it must change.  *ended: the run is not going on. */
static int look(follower *f, bool *ended) {
    bool changed = false;
    /* Look at the lock before the file: a process writes its last numbers before it releases the lock. */
    bool may_be_dead = !f->numbers || cli_report_is_dead(f->folder, f->page.history, f->numbers);
    int code = read_change(f, &changed);
    if (code != CLI_SUCCESS) return code;
    bool died = may_be_dead && cli_report_is_dead(f->folder, f->page.history, f->numbers);
    *ended = died || !says_running(f->numbers);
    if (*ended) {
        code = write_last_page(f, died);
        cli_progress_end(&f->progress);
        if (code == CLI_SUCCESS) print_end(&f->page, f->numbers, died);
        return code;
    }
    if (changed) code = cli_report_write_page(&f->page, f->numbers);
    if (code == CLI_SUCCESS) announce(f);
    if (code == CLI_SUCCESS) show_position(f);
    return code;
}

/* Adds the signals that end the command to `set`; those that were ignored, as SIGHUP is under nohup, stay so. */
static void choose_signals(sigset_t *set) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(set, signals[i]);
    }
}

/* Waits for the next look.  Returns the number of the signal that came meanwhile, or 0. */
static int wait_for_signal(const sigset_t *signals) {
    const struct timespec time = {.tv_sec = poll_ms / 1000, .tv_nsec = poll_ms % 1000 * 1000000L};
    int number = sigtimedwait(signals, NULL, &time);
    return number > 0 ? number : 0;
}

static int follow_to_end(follower *f, const sigset_t *signals) {
    for (;;) {
        bool ended = false;
        int code = look(f, &ended);
        if (code != CLI_SUCCESS || ended) return code;
        int number = wait_for_signal(signals);
        if (number == 0) continue;
        cli_progress_end(&f->progress);
        code = write_last_page(f, false);
        cli_say("stopped following; the run goes on\n");
        return code == CLI_SUCCESS ? 128 + number : code;
    }
}

int cli_report_follow(const char *folder, const cli_report_page *page) {
    follower f = {.folder = folder, .page = *page};
    sigset_t signals, before;
    f.page.reload_s = reload_s;
    choose_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, &before);
    cli_progress_begin(&f.progress);
    int code = follow_to_end(&f, &signals);
    cli_progress_end(&f.progress);
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(f.numbers);
    return code;
}
