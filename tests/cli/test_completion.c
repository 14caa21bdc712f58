/* SPDX-License-Identifier: Apache-2.0 */
/* The bash completion, run in bash: passes words as readline splits them, and checks what readline would insert. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/command.h"
#include "data/files.h"

static int leave(void **state) {
    if (system("rm -rf sets script") != 0) return -1;
    return files_leave(state);
}

static int enter_with_files(void **state) {
    if (enter(state) != 0) return -1;
    return system(
        "mkdir -p 'sets/a b' sets/home/h && touch 'sets/a b/x y.npz' 'sets/a b/z.npz' \"sets/it's.h5\" "
        "'sets/plain.npz' 'sets/c=d' 'sets/home/h/own.npz'");
}

/* Returns the completions of the last of the words (in bash's syntax of an array), one per line. */
static const char *offers(const char *words) {
    FILE *file = fopen("script", "w");
    assert_non_null(file);
    fprintf(file,
            ". '" LEAT_BINARY_DIR "/manual/leat.bash'\nHOME=$PWD/sets/home\ncompopt() { :; }\n"
            "COMP_WORDS=(leat %s)\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\nCOMPREPLY=()\n_leat\n"
            "printf '%%s\\n' \"${COMPREPLY[@]}\"\n",
            words);
    fclose(file);
    FILE *pipe = popen("bash -u script 2>&1", "r");
    assert_non_null(pipe);
    out[fread(out, 1, text_bytes - 1, pipe)] = '\0';
    assert_int_equal(pclose(pipe), 0);
    return out;
}

static void offers_exactly(const char *words, const char *expected) {
    if (strcmp(offers(words), expected) != 0) fail_msg("leat %s: '%s' instead of '%s'", words, out, expected);
}

static void offers_among_others(const char *words, const char *expected) {
    char line[64];
    snprintf(line, sizeof line, "\n%s\n", expected);
    if (!strstr(offers(words), line + 1)) fail_msg("leat %s: '%s' without '%s'", words, out, expected);
}

static void commands_and_their_members_are_offered(void **state) {
    (void)state;
    offers_exactly("ev", "evaluate\n");
    offers_exactly("--v", "--version\n");
    offers_exactly("feed ''", "bench\ntune\ntrace\ncheck\nshow\n--help\n");
    offers_exactly("feed t", "tune\ntrace\n");
    offers_exactly("help fe", "feed\n");
    offers_exactly("help spec", "specs\n");
    offers_exactly("help feed ''", "bench\ntune\ntrace\ncheck\nshow\n");
    offers_exactly("help feed b", "bench\n");
    offers_exactly("help fit ''", "\n");
    offers_exactly("list opt", "optimizers\n");
    offers_exactly("nosuch ''", "\n");
}

static void options_are_those_of_the_command(void **state) {
    (void)state;
    offers_exactly("feed bench --dig", "--digest\n");
    offers_exactly("fit m.h5 --dig", "\n");
    offers_exactly("fit m.h5 --epochs ''", "\n"); /* a number */
    offers_among_others("fit m.h5 --epochs 3 --val", "--validation-steps");
    offers_exactly("summary --train sets/pl", "sets/plain.npz\n"); /* a flag here, data in fit */
    offers_exactly("version ''", "\n");
}

static void files_have_any_names(void **state) {
    (void)state;
    offers_exactly("fit sets/pl", "sets/plain.npz\n");
    offers_exactly("fit 'sets/a\\ b/'", "sets/a b/x y.npz\nsets/a b/z.npz\n");
    offers_exactly("fit 'sets/a\\ b/x\\ '", "sets/a b/x y.npz\n");
    offers_exactly("fit '\"sets/a b/x'", "sets/a b/x y.npz\n");
    offers_exactly("fit \"'sets/a b/x\"", "sets/a b/x y.npz\n");
    offers_exactly("fit 'sets/it\\'\"'\"", "sets/it's.h5\n");
    offers_exactly("fit m.h5 --out sets/",
                   "sets/a b\nsets/home\n"); /* only folders, to which readline adds a slash */
    offers_exactly("fit sets/nosuch", "\n");
    char expected[4200];
    FILE *pipe = popen("pwd", "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%4000s", expected), 1);
    pclose(pipe);
    strcat(expected, "/sets/home/h/own.npz\n");
    offers_exactly("fit '~/h/o'", expected);
    offers_exactly("fit m.h5 --train npz : '~/h/o'", expected);
}

static void options_may_have_an_equals_sign(void **state) {
    (void)state;
    offers_exactly("fit m.h5 --out = sets/a", "sets/a b\n");
    offers_among_others("fit m.h5 --out =", "sets");
    offers_exactly("fit m.h5 --trace = sets/c = d", "d\n");
    offers_exactly("fit m.h5 --train = npz : sets/pl", "sets/plain.npz\n");
    offers_exactly("fit m.h5 --epochs = ''", "\n");
}

static void data_is_a_kind_and_paths(void **state) {
    (void)state;
    offers_exactly("fit m.h5 --train n", "npy:\nnpz:\n");
    offers_exactly("feed bench n", "npy:\nnpz:\n");
    offers_among_others("feed bench npz :", "sets");
    offers_exactly("feed bench npz : sets/plain.npz,sets/ho", "sets/plain.npz,sets/home/\n");
    offers_exactly("fit m.h5 --train npz : sets/p", "sets/plain.npz\n");
    offers_exactly("fit m.h5 --train npz : 'sets/a\\ b/x'", "sets/a b/x y.npz\n");
    offers_exactly("fit m.h5 --train npz : 'sets/a\\ b/z.npz,sets/pl'", "sets/a b/z.npz,sets/plain.npz\n");
    offers_exactly("fit m.h5 --train \"'npz:sets/a b/x\"", "npz:sets/a b/x y.npz\n");
    offers_exactly("fit m.h5 --train npz : 'sets/plain.npz?inp'", "\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_and_their_members_are_offered),
        cmocka_unit_test(options_are_those_of_the_command),
        cmocka_unit_test(files_have_any_names),
        cmocka_unit_test(options_may_have_an_equals_sign),
        cmocka_unit_test(data_is_a_kind_and_paths),
    };
    return cmocka_run_group_tests(tests, enter_with_files, leave);
}
