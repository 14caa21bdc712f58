/* SPDX-License-Identifier: Apache-2.0 */
/* Running the `leat` command from a test: what it prints where, how it exits; a small model and its data. */
#ifndef LEAT_TESTS_CLI_COMMAND_H
#define LEAT_TESTS_CLI_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

enum { text_bytes = 1 << 16 };

/* What the last command printed. */
extern char out[text_bytes], err[text_bytes];

/* Starts `leat ARGUMENTS`, blanks between them; its outputs go to the files .out and .err. */
pid_t start(const char *line);

/* Whether the process catches SIGINT by now. */
bool catches(pid_t child);

/* Waits for it, and reads what it printed; the exit code.  A signal fails the test. */
int finish(pid_t child);
int run(const char *line);

/* It exits with 0. */
void runs(const char *line);

/* It is refused as wrong usage, or fails, with these words on standard error and nothing on standard output. */
void refused(const char *line, const char *says);
void fails(const char *line, const char *says);

void write_text(const char *path, const char *text);

/* Enters a folder of its own, with small.json (a network of 4 inputs and 3 classes) and d.npz (90 samples of x and y). */
int enter(void **state);

#define FIT                                                                                                  \
    "fit small.json --train npz:d.npz --loss categorical_crossentropy --optimizer adam --metrics accuracy "

#endif
