/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that run the `leat` command and check its output and exit code; a small model and its data. */
#ifndef LEAT_TESTS_CLI_COMMAND_H
#define LEAT_TESTS_CLI_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

enum { text_bytes = 1 << 18 };

/* Standard output and standard error of the last command. */
extern char out[text_bytes], errors[text_bytes];

/* Starts `leat LINE`; its standard output and error go to the files .out and .err. */
pid_t start(const char *line);

/* Returns true once the process has a handler of SIGINT. */
bool catches(pid_t child);

/* Waits for the command and reads its output; returns the exit code.  Fails the test if a signal ended the
 * command. */
int finish(pid_t child);
int run(const char *line);

/* Runs the command and checks that it exits with 0. */
void runs(const char *line);

/* Run the command and check that it exits with 2 (refused) or 1 (fails), with these words on standard error and
 * nothing on standard output. */
void refused(const char *line, const char *says);
void fails(const char *line, const char *says);

void write_text(const char *path, const char *text);

/* Creates and enters a folder with small.json (a network of 4 inputs and 3 classes) and d.npz (90 samples of x and
 * y). */
int enter(void **state);

#define FIT                                                                                                  \
    "fit small.json --train npz:d.npz --loss categorical_crossentropy --optimizer adam --metrics accuracy "

#endif
