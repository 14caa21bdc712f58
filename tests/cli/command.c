/* SPDX-License-Identifier: Apache-2.0 */
/* Running the `leat` command from a test. */
#include "cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "data/files.h"
#include "leat/npz.h"

enum { argument_max = 40 };

char out[text_bytes], errors[text_bytes];

static void slurp(const char *path, char *text) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, text_bytes - 1, file)] = '\0';
    fclose(file);
    unlink(path);
}

pid_t start(const char *line) {
    char copy[4096], *argv[argument_max] = {LEAT_COMMAND};
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        assert_true(argc < argument_max - 1);
        argv[argc++] = word;
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    if (!freopen(".out", "w", stdout) || !freopen(".err", "w", stderr)) _exit(99);
    execv(LEAT_COMMAND, argv);
    _exit(99);
}

bool catches(pid_t child) {
    char path[64], line[256];
    unsigned long long caught = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)child);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "SigCgt:", 7) == 0) caught = strtoull(line + 7, NULL, 16);
    fclose(file);
    return caught >> (SIGINT - 1) & 1;
}

int finish(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    slurp(".out", out);
    slurp(".err", errors);
    if (WIFSIGNALED(status)) fail_msg("killed by signal %d: %s", WTERMSIG(status), errors);
    return WEXITSTATUS(status);
}

int run(const char *line) {
    return finish(start(line));
}

void runs(const char *line) {
    int code = run(line);
    if (code != 0) fail_msg("leat %s: exit code %d: %s", line, code, errors);
}

void refused(const char *line, const char *says) {
    int code = run(line);
    if (code != 2 || !strstr(errors, says)) fail_msg("leat %s: exit code %d: %s", line, code, errors);
    assert_string_equal(out, "");
}

void fails(const char *line, const char *says) {
    int code = run(line);
    if (code != 1 || !strstr(errors, says)) fail_msg("leat %s: exit code %d: %s", line, code, errors);
    assert_string_equal(out, "");
}

static const char network[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"small\", \"layers\": ["
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"hidden\", \"batch_input_shape\": [null, 4], "
    "\"units\": 8, "
    "\"activation\": \"tanh\"}},"
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"scores\", \"units\": 3, \"activation\": "
    "\"softmax\"}}]}}";

void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

int enter(void **state) {
    enum { samples = 90 };
    static float x[samples][4], y[samples][3];
    if (files_enter(state) != 0) return -1;
    for (int i = 0; i < samples; ++i) {
        for (int k = 0; k < 4; ++k) x[i][k] = (float)((i * 7 + k * 13) % 11) / 11 + (float)(i % 3 == k);
        y[i][i % 3] = 1;
    }
    leat_tensor tensors[] = {leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 4}, x),
                             leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 3}, y)};
    write_text("small.json", network);
    return leat_npz_write("d.npz", (const char *[]){"x", "y"}, tensors, 2, NULL) == LEAT_OK ? 0 : -1;
}
